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
// Keys come first, because a probe that ends with "not equal" reads nothing else: the fewer cache lines they touch the better. The widest
// go first in each part, so that natural alignment costs padding only between the parts and at the end. A null takes one bit where it
// has to be told apart from a value: a nullable payload column, and a nullable key whose nulls are equal. A null key that equals nothing
// never gets into the table.
#include "runtime/join_shape.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace quern {
namespace {

constexpr uint32_t kDefaultBatchRows = 1024;
constexpr uint32_t kDefaultGroupRows = 64;

QuernField MakeField(const ColumnType& type, Storage storage) {
  QuernField field = {};
  field.storage = storage;
  field.index_storage = type.is_dictionary ? RowOf(type.index).storage : kNoStorage;
  field.index_is_signed = type.is_dictionary && type.index >= TypeId::kI8 && type.index <= TypeId::kI64;
  field.nullable = type.nullable;
  field.width_bytes = type.width_bytes;
  return field;
}

QuernField MakeKey(const KeySpec& key) {
  QuernField field = MakeField(key.type, RowOf(key.type.id).key_storage);
  field.null_equal = key.null_equal;
  field.trims_spaces = RowOf(key.type.collation).trims_spaces;
  return field;
}

uint32_t FieldBytes(const QuernField& field) { return field.storage == kFixed ? field.width_bytes : StorageFieldBytes(field.storage); }

// Nothing in a tuple is read in units above 8 bytes; fixed binaries are read bytewise.
uint32_t Alignment(const QuernField& field) { return field.storage == kFixed ? 1 : std::min<uint32_t>(FieldBytes(field), 8); }

uint32_t RoundUp(uint32_t n, uint32_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// Lays out tuples field by field.
struct TupleLayout {
  uint32_t end = 0;
  uint32_t alignment = 1;
  uint32_t num_null_bits = 0;

  void Place(std::vector<QuernField>* fields) {
    std::vector<QuernField*> widest_first;
    for (QuernField& field : *fields) widest_first.push_back(&field);
    std::sort(widest_first.begin(), widest_first.end(), [](const QuernField* a, const QuernField* b) {
      return FieldBytes(*a) != FieldBytes(*b) ? FieldBytes(*a) > FieldBytes(*b) : a < b;  // equally wide ones in the spec's order
    });
    for (QuernField* field : widest_first) {
      field->tuple_offset = RoundUp(end, Alignment(*field));
      end = field->tuple_offset + FieldBytes(*field);
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

JoinShape::JoinShape(const KernelSpec& spec) : spec_(spec), shape_() {
  for (const KeySpec& key : spec_.keys) keys_.push_back(MakeKey(key));
  for (const ColumnType& type : spec_.build) build_.push_back(MakeField(type, RowOf(type.id).storage));
  for (const ColumnType& type : spec_.probe) probe_.push_back(MakeField(type, RowOf(type.id).storage));
  TupleLayout layout;
  layout.Place(&keys_);
  layout.Place(&build_);
  for (QuernField& key : keys_)
    if (key.nullable && key.null_equal) layout.PlaceNullBit(&key);
  for (QuernField& column : build_)
    if (column.nullable) layout.PlaceNullBit(&column);
  shape_.num_keys = static_cast<uint32_t>(keys_.size());
  shape_.num_build = static_cast<uint32_t>(build_.size());
  shape_.num_probe = static_cast<uint32_t>(probe_.size());
  shape_.null_bits_offset = layout.end;
  shape_.null_bits_bytes = (layout.num_null_bits + 7) / 8;
  shape_.tuple_bytes = std::max(RoundUp(layout.end + shape_.null_bits_bytes, layout.alignment), 1u);
  shape_.keys = keys_.data();
  shape_.build = build_.data();
  shape_.probe = probe_.data();
  shape_.batch_rows = kDefaultBatchRows;
  shape_.group_rows = kDefaultGroupRows;
}

std::string JoinShape::Print() const {
  std::vector<Line> lines;
  Line null_bits = {shape_.null_bits_offset, shape_.null_bits_bytes, "null bits", "", ""};
  for (size_t i = 0; i < keys_.size(); ++i) {
    lines.push_back(MakeLine(keys_[i], spec_.keys[i].type, Numbered("keys", i)));
    AddNullBit(keys_[i], lines.back().field, &null_bits);
  }
  for (size_t i = 0; i < build_.size(); ++i) {
    lines.push_back(MakeLine(build_[i], spec_.build[i], Numbered("build", i)));
    AddNullBit(build_[i], lines.back().field, &null_bits);
  }
  std::sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.offset < b.offset; });
  if (null_bits.bytes > 0) lines.push_back(null_bits);
  return PrintTable(lines) + "tuple_bytes " + std::to_string(shape_.tuple_bytes) + "\n";
}

}  // namespace quern
