// SPDX-License-Identifier: Apache-2.0
// Where each field of a build tuple lies. For keys=i32,utf8:nullable:nullequal build=u16:nullable,f64 the tuple is
//
//     offset  bytes  field      type   storage
//          0     16  keys[1]    utf8   var32
//         16      4  keys[0]    i32    32
//         24      8  build[1]   f64    64
//         32      2  build[0]   u16    16
//         34      1  null bits  of keys[1], build[0]
//     tuple_bytes 40
//
// Keys that fit 64 bits together are packed into one word instead, at the tuple's beginning: keys=i32,bool build=f64 gives
//
//     offset  bytes  field      type       storage
//          0      8  word       33 bits    keys[0] from bit 0, keys[1] from bit 32
//          8      8  build[0]   f64        64
//     tuple_bytes 16
//
// Keys come first, because a probe that ends with "not equal" reads nothing else: the fewer cache lines they touch the better. The widest
// go first in each part, so that natural alignment costs padding only between the parts and at the end. A null takes one bit where it
// has to be told apart from a value: a nullable payload column, and a nullable key whose nulls are equal. A null key that equals nothing
// never gets into the table; where its row comes out all the same (right, full, right_anti), the bit says that the field was not written.
#include "runtime/join_shape.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace quern {
namespace {

constexpr uint32_t kDefaultBatchRows = 1024;
constexpr uint32_t kDefaultGroupRows = 64;

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

QuernField MakeKey(const KeySpec& key, uint32_t inline_key_bytes) {
  QuernField field = MakeField(key.type, RowOf(key.type.id).key_storage);
  field.null_equal = key.null_equal;
  field.trims_spaces = RowOf(key.type.collation).trims_spaces;
  if (IsVariable(field.storage)) field.width_bytes = inline_key_bytes;
  return field;
}

QuernField MakeResidual(const ResidualSpec& residual) {
  QuernField field = MakeField(residual.type, RowOf(residual.type.id).key_storage);
  field.comparison = static_cast<uint8_t>(residual.op);
  return field;
}

uint32_t FieldBytes(const QuernField& field) {
  if (field.storage == kFixed) return field.width_bytes;
  if (IsVariable(field.storage) && field.width_bytes > kInlineStringBytes) return field.width_bytes + 4;
  return StorageFieldBytes(field.storage);
}

// Bits of a key in a word, the null bit included; more than 64 where it does not fit at all.
uint32_t BitsInWord(const KeySpec& key) {
  const Storage storage = RowOf(key.type.id).key_storage;
  const uint32_t null_bits = key.type.nullable && key.null_equal ? 1 : 0;
  if (storage == kBit) return 1 + null_bits;
  if (storage == kFixed || IsVariable(storage)) return 65;
  return 8 * StorageFieldBytes(storage) + null_bits;
}

// Nothing in a tuple is read in units above 8 bytes; fixed binaries are read bytewise.
uint32_t Alignment(const QuernField& field) { return field.storage == kFixed ? 1 : std::min<uint32_t>(FieldBytes(field), 8); }

uint32_t RoundUp(uint32_t n, uint32_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// Lays out tuples field by field.
struct TupleLayout {
  uint32_t end = 0;
  uint32_t alignment = 1;
  uint32_t num_null_bits = 0;

  void PlaceWord(uint32_t bytes) { end = alignment = bytes; }

  void Place(std::initializer_list<std::vector<QuernField>*> parts) {
    std::multimap<uint32_t, QuernField*, std::greater<>> widest_first;  // equally wide ones in the spec's order
    for (std::vector<QuernField>* fields : parts)
      for (QuernField& field : *fields) widest_first.emplace(FieldBytes(field), &field);
    for (const auto& [bytes, field] : widest_first) {
      field->tuple_offset = RoundUp(end, Alignment(*field));
      end = field->tuple_offset + bytes;
      alignment = std::max(alignment, Alignment(*field));
    }
  }

  void PlaceNullBit(QuernField* field) {
    field->null_offset = end + num_null_bits / 8;
    field->null_mask = static_cast<uint8_t>(1u << (num_null_bits % 8));
    ++num_null_bits;
  }
};

// One line of the printed table.
struct Line {
  uint32_t offset;
  uint32_t bytes;
  std::string field;
  std::string type;
  std::string storage;
};

std::string PadLeft(const std::string& text, size_t width) { return std::string(width - std::min(width, text.size()), ' ') + text; }
std::string PadRight(const std::string& text, size_t width) { return text + std::string(width - std::min(width, text.size()), ' '); }

std::string Numbered(std::string_view name, size_t i) { return std::string(name) + "[" + std::to_string(i) + "]"; }

Line MakeLine(const QuernField& field, const ColumnType& type, std::string name) {
  return {field.tuple_offset, FieldBytes(field), std::move(name), PrintType(type), std::string(StorageText(field.storage))};
}

void AddNullBit(const QuernField& field, const std::string& name, Line* null_bits) {
  if (field.null_mask != 0) null_bits->type += (null_bits->type.empty() ? "of " : ", ") + name;
}

std::string PrintTable(const std::vector<Line>& lines) {
  size_t field_width = 5, type_width = 4;
  for (const Line& line : lines) {
    field_width = std::max(field_width, line.field.size());
    if (!line.storage.empty()) type_width = std::max(type_width, line.type.size());
  }
  std::string text = "offset  bytes  " + PadRight("field", field_width) + "  " + PadRight("type", type_width) + "  storage\n";
  for (const Line& line : lines) {
    text += PadLeft(std::to_string(line.offset), 6) + "  " + PadLeft(std::to_string(line.bytes), 5) + "  " +
            PadRight(line.field, field_width) + "  ";
    text += line.storage.empty() ? line.type : PadRight(line.type, type_width) + "  " + line.storage;
    text += "\n";
  }
  return text;
}

}  // namespace

uint32_t WordBits(const KernelSpec& spec) {
  uint32_t bits = 0;
  for (const KeySpec& key : spec.keys) bits += BitsInWord(key);
  return bits <= 64 ? bits : 0;
}

NeededEntryPoints EntryPointsOf(const QuernJoinShape& shape) {
  const auto any = [](const QuernField* fields, uint32_t n, auto&& is) { return std::any_of(fields, fields + n, is); };
  const auto varies = [](const QuernField& field) { return IsVariable(field.storage); };
  const bool wide = shape.word_bytes == 0;
  NeededEntryPoints needed = {};
  needed.filter = any(shape.keys, shape.num_keys, [](const QuernField& key) { return key.nullable && !key.null_equal; });
  needed.pack = !wide;
  needed.hash = needed.test = needed.compare = wide;
  needed.reach = wide && shape.prefetches && any(shape.keys, shape.num_keys, varies);
  needed.store = wide || shape.num_build + shape.num_residual + shape.null_bits_bytes != 0;
  needed.refine = shape.num_residual != 0;
  needed.fit = any(shape.probe, shape.num_probe, varies) || any(shape.build, shape.num_build, varies);
  needed.emit = shape.num_probe + shape.num_build != 0;
  return needed;
}

JoinShape::JoinShape(const KernelSpec& spec, uint32_t inline_key_bytes) : spec_(spec), shape_() {
  const JoinKindRow& kind = RowOf(spec_.join_kind);
  for (const KeySpec& key : spec_.keys) keys_.push_back(MakeKey(key, inline_key_bytes));
  for (const ColumnType& type : spec_.build) build_.push_back(MakeField(type, RowOf(type.id).storage));
  for (const ColumnType& type : spec_.probe) probe_.push_back(MakeField(type, RowOf(type.id).storage));
  for (const ResidualSpec& residual : spec_.residual) build_residual_.push_back(MakeResidual(residual));
  probe_residual_ = build_residual_;
  for (QuernField& column : build_) column.nullable |= kind.nulls_build_columns();
  for (QuernField& column : probe_) column.nullable |= kind.nulls_probe_columns();
  shape_.word_bits = WordBits(spec_);
  shape_.word_bytes = shape_.word_bits == 0 ? 0 : shape_.word_bits <= 32 ? 4 : 8;
  TupleLayout layout;
  if (shape_.word_bytes != 0) {
    PackKeys();
    layout.PlaceWord(shape_.word_bytes);
  } else {
    layout.Place({&keys_});
  }
  layout.Place({&build_, &build_residual_});
  for (QuernField& key : keys_)
    if (shape_.word_bytes == 0 && key.nullable && (key.null_equal || kind.build_row == RowsOut::kUnmatched)) layout.PlaceNullBit(&key);
  for (QuernField& column : build_)
    if (column.nullable) layout.PlaceNullBit(&column);
  for (QuernField& column : build_residual_)
    if (column.nullable) layout.PlaceNullBit(&column);
  shape_.num_keys = static_cast<uint32_t>(keys_.size());
  shape_.num_build = static_cast<uint32_t>(build_.size());
  shape_.num_probe = static_cast<uint32_t>(probe_.size());
  shape_.num_residual = static_cast<uint32_t>(build_residual_.size());
  shape_.null_bits_offset = layout.end;
  shape_.null_bits_bytes = (layout.num_null_bits + 7) / 8;
  if (kind.marks_build_rows()) shape_.mark_offset = layout.end + shape_.null_bits_bytes++;  // zeroed with the null bits
  shape_.tuple_bytes = std::max(RoundUp(layout.end + shape_.null_bits_bytes, layout.alignment), 1u);
  shape_.stops_at_first = !kind.pairs && !kind.marks_build_rows() && spec_.residual.empty();
  shape_.stops_at_marked = !kind.pairs && kind.marks_build_rows() && spec_.residual.empty();
  shape_.keys = keys_.data();
  shape_.build = build_.data();
  shape_.probe = probe_.data();
  shape_.build_residual = build_residual_.data();
  shape_.probe_residual = probe_residual_.data();
  shape_.batch_rows = kDefaultBatchRows;
  shape_.group_rows = kDefaultGroupRows;
}

void JoinShape::PackKeys() {
  uint32_t bit = 0;
  for (size_t i = 0; i < keys_.size(); ++i) {
    const uint32_t bits = BitsInWord(spec_.keys[i]);
    keys_[i].word_shift = static_cast<uint8_t>(bit);
    bit += bits;
    keys_[i].word_null_bit = static_cast<uint8_t>(bit - 1);
  }
  const QuernField& key = keys_[0];
  const bool is_ordered = keys_.size() == 1 && key.is_signed && key.storage != kF32 && key.storage != kF64;
  shape_.word_sign_bit = is_ordered ? uint64_t{1} << (8 * StorageFieldBytes(key.storage) - 1) : 0;
}

std::string JoinShape::Print() const {
  std::vector<Line> lines;
  Line null_bits = {shape_.null_bits_offset, shape_.null_bits_bytes - (shape_.mark_offset != 0 ? 1 : 0), "null bits", "", ""};
  if (shape_.word_bytes != 0) lines.push_back({0, shape_.word_bytes, "word", std::to_string(shape_.word_bits) + " bits", WordText()});
  for (size_t i = 0; i < keys_.size() && shape_.word_bytes == 0; ++i) {
    lines.push_back(MakeLine(keys_[i], spec_.keys[i].type, Numbered("keys", i)));
    AddNullBit(keys_[i], lines.back().field, &null_bits);
  }
  for (size_t i = 0; i < build_.size(); ++i) {
    lines.push_back(MakeLine(build_[i], spec_.build[i], Numbered("build", i)));
    AddNullBit(build_[i], lines.back().field, &null_bits);
  }
  for (size_t i = 0; i < build_residual_.size(); ++i) {
    lines.push_back(MakeLine(build_residual_[i], spec_.residual[i].type, Numbered("residual", i)));
    AddNullBit(build_residual_[i], lines.back().field, &null_bits);
  }
  std::sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.offset < b.offset; });
  if (null_bits.bytes > 0) lines.push_back(null_bits);
  if (shape_.mark_offset != 0) lines.push_back({shape_.mark_offset, 1, "mark", "set once a probe row matched", ""});
  return PrintTable(lines) + "tuple_bytes " + std::to_string(shape_.tuple_bytes) + "\n";
}

// "keys[0] from bit 0, keys[1] from bit 32 (null: bit 48)"
std::string JoinShape::WordText() const {
  std::string text;
  for (size_t i = 0; i < keys_.size(); ++i) {
    text += (i == 0 ? "" : ", ") + Numbered("keys", i) + " from bit " + std::to_string(keys_[i].word_shift);
    if (keys_[i].nullable && keys_[i].null_equal) text += " (null: bit " + std::to_string(keys_[i].word_null_bit) + ")";
  }
  return text;
}

}  // namespace quern
