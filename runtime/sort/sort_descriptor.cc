// SPDX-License-Identifier: Apache-2.0
// Which bits of which word each key takes, and what a tuple holds. For keys=i32,utf8:nullable:out,i64:desc payload=f64:
//
//     word  bits    of       part
//        0  63..32  keys[0]  i32
//        0      31  keys[1]  null
//        1  63.. 0  keys[1]  bytes 0 to 7
//        2  63.. 0  keys[1]  bytes 8 to 15
//        3  63.. 0  keys[2]  i64, descending
//
//     offset  bytes  field      type   storage
//          0     16  keys[1]    utf8   var32
//         16      8  payload[0] f64    64
//         24      1  null bits  of keys[1]
//     tuple_bytes 32
//
// Bits that are the same in all rows cost nothing, since prefixes are made of those that vary (sort_prefixes.h). Parts
// may therefore leave gaps, but they are in order and none crosses a word. A string's bytes begin in a word that
// earlier parts have begun if four of them fit, so that the first word, which decides most comparisons, holds as much
// as it can.
//
// Integers are decoded from their words. Floats may not be, since -0 and NaNs lose their bits there, nor can strings
// be: these are fields of the tuple. Keys that may not fit their words are fields too, even if they are not in the
// result. If all fields are keys of these kinds, a sort may find that it needs no tuples
// (local_rows_dictionary.cc). A comparison sort has all keys as fields and reads no words.
#include "runtime/sort/sort_descriptor.h"

#include <algorithm>
#include <utility>

namespace quern {
namespace {

bool IsBytes(Storage storage) { return storage == kFixed || IsVariable(storage); }
bool IsFloat(Storage storage) { return storage == kF32 || storage == kF64; }
// Whether a key's value can be decoded from its words.
bool IsDecodable(Storage key_storage) { return !IsBytes(key_storage) && !IsFloat(key_storage); }
bool WordsMayNotSayAll(const QuernSortKey& key) {
  return IsVariable(key.storage) || (key.storage == kFixed && key.width_bytes > kSortPrefixBytes);
}

QuernSortKey MakeSortKey(const KeySpec& spec) {
  QuernSortKey key = {};
  key.storage = RowOf(spec.type.id).key_storage;
  key.index_storage = spec.type.is_dictionary ? RowOf(spec.type.index).storage : kNoStorage;
  key.nullable = spec.type.nullable;
  key.is_signed = !IsUnsigned(spec.type.id);
  key.rule = RuleOf(spec.type.collation);
  key.descending = spec.descending;
  key.nulls_first = spec.nulls_first;
  key.width_bytes = spec.type.width_bytes;
  key.field = kNoField;
  return key;
}

std::string PartText(const QuernSortPart& part, const KeySpec& key) {
  switch (part.kind) {
    case kNullPart: return key.nulls_first ? "not null" : "null";
    case kBytesPart: {
      const uint32_t last = part.first_byte + part.bits / 8 - 1;
      return "bytes " + std::to_string(part.first_byte) + " to " + std::to_string(last) +
             (key.descending ? ", descending" : "");
    }
    case kHighPart: return "upper half" + std::string(key.descending ? ", descending" : "");
    case kValuePart: break;
  }
  const bool is_half = RowOf(key.type.id).key_storage == k128;
  return (is_half ? "lower half" : PrintType(key.type)) + std::string(key.descending ? ", descending" : "");
}

}  // namespace

NeededSortEntryPoints EntryPointsOf(const QuernSortDescriptor& descriptor) {
  const auto has_field = [](const QuernSortKey& key) { return key.field != kNoField; };
  NeededSortEntryPoints needed = {};
  needed.encode = needed.encode_leading = true;
  needed.store = descriptor.rows.num_fields != 0;
  needed.compare = std::any_of(descriptor.keys, descriptor.keys + descriptor.num_keys, has_field);
  needed.sort = std::all_of(descriptor.keys, descriptor.keys + descriptor.num_keys, has_field);
  needed.reserve_output =
      std::any_of(descriptor.rows.fields, descriptor.rows.fields + descriptor.rows.num_output_fields,
                  [](const QuernField& field) { return IsVariable(field.storage); });
  needed.emit = descriptor.rows.num_output_fields != 0;
  return needed;
}

SortDescriptor::SortDescriptor(const SortSpec& spec, SortMethod method)
    : spec_(spec), method_(spec.window.empty() ? method : SortMethod::kRadix), descriptor_(), rows_(&descriptor_.rows) {
  for (const KeySpec& key : spec_.keys) keys_.push_back(MakeSortKey(key));
  PlaceParts();
  PlaceFields();
  descriptor_.num_keys = static_cast<uint32_t>(keys_.size());
  descriptor_.num_parts = static_cast<uint32_t>(parts_.size());
  descriptor_.num_words = parts_.back().word + 1u;
  descriptor_.batch_rows = kDefaultBatchRows;
  descriptor_.prefetch_merge_rows = PrefetchDistances().merge_rows;
  descriptor_.keys = keys_.data();
  descriptor_.parts = parts_.data();
}

void SortDescriptor::PlacePart(QuernSortPart part, uint32_t* used_bits) {
  const uint32_t left = 64 - *used_bits % 64;
  if (part.bits > left) *used_bits += left;
  part.word = static_cast<uint8_t>(*used_bits / 64);
  part.shift = static_cast<uint8_t>(64 - *used_bits % 64 - part.bits);
  part.begins_word = *used_bits % 64 == 0;
  *used_bits += part.bits;
  parts_.push_back(part);
}

void SortDescriptor::PlaceBytes(uint32_t key, uint32_t num_bytes, uint32_t* used_bits) {
  for (uint32_t first = 0; first < num_bytes;) {
    uint32_t left = (64 - *used_bits % 64) / 8;
    if (left == 0 || (first == 0 && left < 4 && left < num_bytes)) left = 8;
    const uint32_t taken = std::min(left, num_bytes - first);
    PlacePart({.key = key,
               .kind = kBytesPart,
               .word = 0,
               .shift = 0,
               .bits = static_cast<uint8_t>(8 * taken),
               .first_byte = static_cast<uint8_t>(first),
               .begins_word = false},
              used_bits);
    first += taken;
  }
}

void SortDescriptor::PlaceParts() {
  uint32_t used_bits = 0;
  for (uint32_t k = 0; k < keys_.size(); ++k) {
    QuernSortKey& key = keys_[k];
    key.first_part = static_cast<uint32_t>(parts_.size());
    QuernSortPart part = {};
    part.key = k;
    part.bits = 1;
    part.kind = kNullPart;
    if (key.nullable) PlacePart(part, &used_bits);
    part.kind = kValuePart;
    part.bits = 64;
    if (IsBytes(key.storage)) {
      PlaceBytes(k, key.storage == kFixed ? std::min(key.width_bytes, kSortPrefixBytes) : kSortPrefixBytes, &used_bits);
    } else if (key.storage == k128) {
      part.kind = kHighPart;
      PlacePart(part, &used_bits);
      part.kind = kValuePart;
      PlacePart(part, &used_bits);
    } else {
      part.bits = static_cast<uint8_t>(key.storage == kBit ? 1 : 8 * StorageFieldBytes(key.storage));
      PlacePart(part, &used_bits);
    }
    key.num_parts = static_cast<uint32_t>(parts_.size()) - key.first_part;
  }
}

void SortDescriptor::PlaceFields() {
  const bool compares = method_ == SortMethod::kComparison;
  std::vector<QuernField> fields;
  const auto add_field = [&](const ColumnType& type, SortFieldSource source) {
    fields.push_back(MakeField(type, RowOf(type.id).storage));
    field_types_.push_back(type);
    fields_.push_back(source);
    return static_cast<uint32_t>(fields.size()) - 1;
  };
  std::vector<uint32_t> hidden_keys;
  for (uint32_t k = 0; k < keys_.size(); ++k) {
    QuernSortKey& key = keys_[k];
    const ColumnType& type = spec_.keys[k].type;
    const bool is_decodable = IsDecodable(key.storage) && !compares;
    const bool needs_field = compares || WordsMayNotSayAll(key) || (spec_.limit != 0 && !is_decodable);
    if (spec_.keys[k].out && is_decodable) {
      columns_.push_back({SortColumn::Source::kWords, k});
    } else if (spec_.keys[k].out) {
      const uint32_t field = add_field(type, {true, k});
      columns_.push_back({SortColumn::Source::kField, field});
      if (needs_field) key.field = field;
    }
    if (needs_field && key.field == kNoField) hidden_keys.push_back(k);
  }
  for (uint32_t c = 0; c < spec_.payload.size(); ++c) {
    const ColumnType& type = spec_.payload[c];
    if (type.id == TypeId::kRowId && !compares) columns_.push_back({SortColumn::Source::kRowId, 0});
    else columns_.push_back({SortColumn::Source::kField, add_field(type, {false, c})});
  }
  for (const WindowFunction function : spec_.window) {
    columns_.push_back({function == WindowFunction::kRowNumber ? SortColumn::Source::kRowNumber
                        : function == WindowFunction::kRank    ? SortColumn::Source::kRank
                                                               : SortColumn::Source::kDenseRank,
                        0});
  }
  const auto num_output = static_cast<uint32_t>(fields.size());
  for (const uint32_t k : hidden_keys) keys_[k].field = add_field(spec_.keys[k].type, {true, k});
  const auto may_be_said = [this](const SortFieldSource& field) {
    const QuernSortKey* const key = field.is_key ? &keys_[field.index] : nullptr;
    return key != nullptr && (IsFloat(key->storage) || (IsVariable(key->storage) && key->rule == 0));
  };
  may_drop_tuples_ = !compares && !fields_.empty() && std::all_of(fields_.begin(), fields_.end(), may_be_said);
  TuplePlacer placer;
  rows_.PlaceFields(std::move(fields), num_output, &placer);
  rows_.PlaceNullBits(/*of_unequal_nulls=*/false, &placer);
  rows_.Finish(placer);
}

std::shared_ptr<const SortDescriptor> SortDescriptor::WithAllColumns() const {
  auto all = std::make_shared<SortDescriptor>(spec_, method_);
  all->descriptor_.batch_rows = descriptor_.batch_rows;
  all->descriptor_.prefetch_merge_rows = descriptor_.prefetch_merge_rows;
  all->descriptor_.rows.num_output_fields = all->descriptor_.rows.num_fields;
  all->columns_.clear();
  const auto column_of = [&](bool is_key, uint32_t index, SortColumn otherwise) {
    for (uint32_t f = 0; f < fields_.size(); ++f)
      if (fields_[f].is_key == is_key && fields_[f].index == index) return SortColumn{SortColumn::Source::kField, f};
    return otherwise;
  };
  for (uint32_t k = 0; k < spec_.keys.size(); ++k)
    all->columns_.push_back(column_of(true, k, {SortColumn::Source::kWords, k}));
  if (spec_.stable) all->columns_.push_back({SortColumn::Source::kRowId, 0});
  for (uint32_t c = 0; c < spec_.payload.size(); ++c)
    all->columns_.push_back(column_of(false, c, {SortColumn::Source::kRowId, 0}));
  return all;
}

std::string SortDescriptor::Print() const {
  const auto pad = [](const std::string& text, size_t width) {
    return text + std::string(width - std::min(width, text.size()), ' ');
  };
  std::string text = "word  bits    of        part\n";
  for (const QuernSortPart& part : parts_) {
    const std::string bits = part.bits == 1
                                 ? std::to_string(part.shift)
                                 : std::to_string(part.shift + part.bits - 1) + ".." + std::to_string(part.shift);
    const std::string word = std::to_string(part.word);
    text += std::string(4 - word.size(), ' ') + word + "  " + pad(bits, 6) + "  " + pad(Numbered("keys", part.key), 8) +
            "  " + PartText(part, spec_.keys[part.key]) + "\n";
  }
  text += "num_words " + std::to_string(descriptor_.num_words) + "\n";
  if (!has_tuples()) return text + "tuple_bytes 0\n";
  std::vector<LayoutLine> lines;
  LayoutLine null_bits = {descriptor_.rows.null_bits_offset, descriptor_.rows.null_bits_bytes, "null bits", "", ""};
  for (size_t f = 0; f < fields_.size(); ++f) {
    const QuernField& field = rows_.fields()[f];
    lines.push_back(
        MakeLine(field, field_types_[f], Numbered(fields_[f].is_key ? "keys" : "payload", fields_[f].index)));
    AddNullBit(field, lines.back().field, &null_bits);
  }
  std::sort(lines.begin(), lines.end(), [](const LayoutLine& a, const LayoutLine& b) { return a.offset < b.offset; });
  if (null_bits.bytes > 0) lines.push_back(null_bits);
  return text + "\n" + PrintTable(lines) + "tuple_bytes " + std::to_string(descriptor_.rows.tuple_bytes) + "\n";
}

}  // namespace quern
