// SPDX-License-Identifier: Apache-2.0
// Places keys, fields and null bits. Each part begins with its widest fields, at multiples of their own widths (at most
// 8, the largest unit that is read at once). Keys utf8:nullable:nullequal,i32 and fields u16:nullable,f64 give
//
//     offset  bytes  field      type   storage
//          0     16  keys[0]    utf8   var32
//         16      4  keys[1]    i32    32
//         24      8  fields[1]  f64    64
//         32      2  fields[0]  u16    16
//         34      1  null bits  of keys[0], fields[0]
//     tuple_bytes 40
//
// Keys that fit 64 bits together are packed into one word at the beginning of the tuple instead; two keys i32,i16 take
// bits 0 to 31 and 32 to 47 of it. A null among them is a bit of the word.
//
// Keys come first, because a search that ends with "not equal" reads nothing else: the fewer cache lines the keys
// touch, the better. With the widest fields first, natural alignment costs padding only between the parts and at the
// end. A null takes one bit where it must be distinguished from a value: in a nullable field, and in a nullable key
// whose nulls are stored.
#include "runtime/rows/row_layout.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "runtime/rows/prefetch.h"

namespace quern {
namespace {

// Bits of a key in a word, including the null bit; more than 64 where it does not fit at all.
uint32_t BitsInWord(const KeySpec& key) {
  const Storage storage = RowOf(key.type.id).key_storage;
  const uint32_t null_bits = key.type.nullable && key.null_equal ? 1 : 0;
  if (storage == kBit) return 1 + null_bits;
  if (storage == kFixed || IsVariable(storage)) return 65;
  return 8 * StorageFieldBytes(storage) + null_bits;
}

// Nothing in a tuple is read in units above 8 bytes; fixed binaries are read bytewise.
uint32_t Alignment(const QuernField& field) {
  return field.storage == kFixed ? 1 : std::min<uint32_t>(FieldBytes(field), 8);
}

// The field of a key, not yet placed. inline_key_bytes: how many bytes of a string the tuple itself holds.
QuernField MakeKey(const KeySpec& key, uint32_t inline_key_bytes) {
  QuernField field = MakeField(key.type, RowOf(key.type.id).key_storage);
  field.null_equal = key.null_equal;
  field.rule = RuleOf(key.type.collation);
  if (IsVariable(field.storage)) field.width_bytes = inline_key_bytes;
  return field;
}

// Assigns each key its bits of the word; returns the sign bit of a single signed key, else 0.
uint64_t PackKeys(const std::vector<KeySpec>& specs, std::vector<QuernField>* keys) {
  uint32_t bit = 0;
  for (size_t i = 0; i < keys->size(); ++i) {
    const uint32_t bits = BitsInWord(specs[i]);
    (*keys)[i].packed_shift = static_cast<uint8_t>(bit);
    bit += bits;
    (*keys)[i].packed_null_bit = static_cast<uint8_t>(bit - 1);
  }
  const QuernField& key = keys->front();
  const bool is_ordered = keys->size() == 1 && key.is_signed && key.storage != kF32 && key.storage != kF64;
  return is_ordered ? uint64_t{1} << (8 * StorageFieldBytes(key.storage) - 1) : 0;
}

// "keys[0] from bit 0, keys[1] from bit 32 (null: bit 48)"
std::string WordText(const std::vector<QuernField>& keys) {
  std::string text;
  for (size_t i = 0; i < keys.size(); ++i) {
    text += (i == 0 ? "" : ", ") + Numbered("keys", i) + " from bit " + std::to_string(keys[i].packed_shift);
    if (keys[i].nullable && keys[i].null_equal) text += " (null: bit " + std::to_string(keys[i].packed_null_bit) + ")";
  }
  return text;
}

std::string PadLeft(const std::string& text, size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}
std::string PadRight(const std::string& text, size_t width) {
  return text + std::string(width - std::min(width, text.size()), ' ');
}

}  // namespace

bool IsUnsigned(TypeId id) { return id == TypeId::kBool || (id >= TypeId::kU8 && id <= TypeId::kU64); }

QuernField MakeField(const ColumnType& type, Storage storage) {
  QuernField field = {};
  field.storage = storage;
  field.index_storage = type.is_dictionary ? RowOf(type.index).storage : kNoStorage;
  field.index_is_signed = type.is_dictionary && type.index >= TypeId::kI8 && type.index <= TypeId::kI64;
  field.nullable = type.nullable;
  field.width_bytes = type.width_bytes;
  field.is_signed = !IsUnsigned(type.id);
  return field;
}

uint32_t FieldBytes(const QuernField& field) {
  if (field.storage == kFixed) return field.width_bytes;
  if (IsVariable(field.storage) && field.width_bytes > kInlineStringBytes) return field.width_bytes + 4;
  return StorageFieldBytes(field.storage);
}

uint32_t RoundUp(uint32_t n, uint32_t multiple) { return (n + multiple - 1) / multiple * multiple; }

void TuplePlacer::Place(std::vector<QuernField>* fields) {
  std::multimap<uint32_t, QuernField*, std::greater<>> widest_first;
  for (QuernField& field : *fields) widest_first.emplace(FieldBytes(field), &field);
  for (const auto& [bytes, field] : widest_first) {
    field->tuple_offset = RoundUp(end, Alignment(*field));
    end = field->tuple_offset + bytes;
    alignment = std::max(alignment, Alignment(*field));
  }
}

void TuplePlacer::PlaceNullBit(QuernField* field) {
  field->null_offset = end + num_null_bits / 8;
  field->null_mask = static_cast<uint8_t>(1u << (num_null_bits % 8));
  ++num_null_bits;
}

std::string Numbered(std::string_view name, size_t i) { return std::string(name) + "[" + std::to_string(i) + "]"; }

LayoutLine MakeLine(const QuernField& field, const ColumnType& type, std::string name) {
  return {field.tuple_offset, FieldBytes(field), std::move(name), PrintType(type),
          std::string(StorageText(field.storage))};
}

void AddNullBit(const QuernField& field, const std::string& name, LayoutLine* null_bits) {
  if (field.null_mask != 0) null_bits->type += (null_bits->type.empty() ? "of " : ", ") + name;
}

std::string PrintTable(const std::vector<LayoutLine>& lines) {
  size_t field_width = 5, type_width = 4;
  for (const LayoutLine& line : lines) {
    field_width = std::max(field_width, line.field.size());
    if (!line.storage.empty()) type_width = std::max(type_width, line.type.size());
  }
  std::string text =
      "offset  bytes  " + PadRight("field", field_width) + "  " + PadRight("type", type_width) + "  storage\n";
  for (const LayoutLine& line : lines) {
    text += PadLeft(std::to_string(line.offset), 6) + "  " + PadLeft(std::to_string(line.bytes), 5) + "  " +
            PadRight(line.field, field_width) + "  ";
    text += line.storage.empty() ? line.type : PadRight(line.type, type_width) + "  " + line.storage;
    text += "\n";
  }
  return text;
}

uint32_t WordBits(std::span<const KeySpec> keys) {
  uint32_t bits = 0;
  for (const KeySpec& key : keys) bits += BitsInWord(key);
  return bits <= 64 ? bits : 0;
}

void RowLayout::PlaceKeys(const std::vector<KeySpec>& keys, uint32_t inline_key_bytes, TuplePlacer* placer) {
  for (const KeySpec& key : keys) keys_.push_back(MakeKey(key, inline_key_bytes));
  layout_.num_keys = static_cast<uint32_t>(keys_.size());
  layout_.keys = keys_.data();
  layout_.packed_bits = WordBits(keys);
  layout_.packed_bytes = layout_.packed_bits == 0 ? 0 : layout_.packed_bits <= 32 ? 4 : 8;
  if (layout_.packed_bytes == 0) return placer->Place(&keys_);
  layout_.packed_sign_bit = PackKeys(keys, &keys_);
  placer->PlacePackedKey(layout_.packed_bytes);
}

void RowLayout::PlaceFields(std::vector<QuernField> fields, uint32_t num_output, TuplePlacer* placer) {
  fields_ = std::move(fields);
  layout_.num_fields = static_cast<uint32_t>(fields_.size());
  layout_.num_output_fields = num_output;
  layout_.fields = fields_.data();
  placer->Place(&fields_);
}

void RowLayout::PlaceNullBits(bool of_unequal_nulls, TuplePlacer* placer) {
  for (QuernField& key : keys_)
    if (layout_.packed_bytes == 0 && key.nullable && (key.null_equal || of_unequal_nulls)) placer->PlaceNullBit(&key);
  for (QuernField& field : fields_)
    if (field.nullable) placer->PlaceNullBit(&field);
}

void RowLayout::Finish(const TuplePlacer& placer) {
  layout_.null_bits_offset = placer.end;
  layout_.null_bits_bytes = placer.num_null_bit_bytes() + placer.num_flag_bytes;
  layout_.tuple_bytes = RoundUp(placer.end + layout_.null_bits_bytes, placer.alignment);
  layout_.prefetch_string_bytes = PrefetchDistances().string_bytes;
}

void RowLayout::AddKeyLines(const std::vector<KeySpec>& keys, std::vector<LayoutLine>* lines,
                            LayoutLine* null_bits) const {
  if (layout_.packed_bytes != 0) {
    lines->push_back(
        {0, layout_.packed_bytes, "packed key", std::to_string(layout_.packed_bits) + " bits", WordText(keys_)});
    return;
  }
  for (size_t i = 0; i < keys_.size(); ++i) {
    lines->push_back(MakeLine(keys_[i], keys[i].type, Numbered("keys", i)));
    AddNullBit(keys_[i], lines->back().field, null_bits);
  }
}

}  // namespace quern
