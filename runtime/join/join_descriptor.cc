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
// Keys that fit 64 bits together are packed into one word at the beginning of the tuple instead:
// keys=i32,bool build=f64 gives
//
//     offset  bytes  field      type       storage
//          0      8  word       33 bits    keys[0] from bit 0, keys[1] from bit 32
//          8      8  build[0]   f64        64
//     tuple_bytes 16
//
// row_layout.cc places all of them. A null key that equals nothing never enters the table; where its row is output all
// the same (right, full, right_anti), a null bit shows that the field was not written.
#include "runtime/join/join_descriptor.h"

#include <algorithm>
#include <string>
#include <utility>

namespace quern {
namespace {

constexpr uint32_t kDefaultGroupRows = 64;

QuernField MakeResidual(const ResidualSpec& residual) {
  QuernField field = MakeField(residual.type, RowOf(residual.type.id).key_storage);
  field.comparison = static_cast<uint8_t>(residual.op);
  return field;
}

}  // namespace

NeededEntryPoints EntryPointsOf(const QuernJoinDescriptor& descriptor) {
  const auto any = [](const QuernField* fields, uint32_t n, auto&& is) { return std::any_of(fields, fields + n, is); };
  const auto varies = [](const QuernField& field) { return IsVariable(field.storage); };
  const QuernRowLayout& rows = descriptor.rows;
  const bool wide = rows.packed_bytes == 0;
  NeededEntryPoints needed = {};
  needed.filter = any(rows.keys, rows.num_keys, [](const QuernField& key) { return key.nullable && !key.null_equal; });
  needed.pack = !wide;
  needed.hash = needed.check_tags = needed.compare = wide;
  needed.prefetch_keys = wide && rows.prefetches && any(rows.keys, rows.num_keys, varies);
  needed.store = wide || rows.num_fields + rows.null_bits_bytes != 0;
  needed.filter_residual = descriptor.num_residual != 0;
  needed.reserve_output =
      any(descriptor.probe, descriptor.num_probe, varies) || any(rows.fields, rows.num_output_fields, varies);
  needed.emit = descriptor.num_probe + rows.num_output_fields != 0;
  return needed;
}

JoinDescriptor::JoinDescriptor(const JoinSpec& spec, uint32_t inline_key_bytes)
    : spec_(spec), inline_key_bytes_(inline_key_bytes), descriptor_(), rows_(&descriptor_.rows) {
  const JoinKindRow& kind = RowOf(spec_.kind);
  for (const ColumnType& type : spec_.probe) probe_.push_back(MakeField(type, RowOf(type.id).storage));
  for (QuernField& column : probe_) column.nullable |= kind.nulls_probe_columns();
  TuplePlacer placer;
  rows_.PlaceKeys(spec_.keys, inline_key_bytes, &placer);
  PlaceFields(&placer);
  rows_.PlaceNullBits(/*of_unequal_nulls=*/kind.build_row == RowsOut::kUnmatched, &placer);
  if (kind.flags_matched_rows()) descriptor_.matched_offset = placer.PlaceFlag();
  rows_.Finish(placer);
  descriptor_.rows.tuple_bytes = std::max(descriptor_.rows.tuple_bytes, 1u);
  descriptor_.num_probe = static_cast<uint32_t>(probe_.size());
  descriptor_.num_residual = static_cast<uint32_t>(spec_.residual.size());
  descriptor_.probe = probe_.data();
  descriptor_.asks_host = spec_.host_residual;
  const bool key_decides = spec_.residual.empty() && !spec_.host_residual;
  descriptor_.stops_at_first = !kind.pairs && !kind.flags_matched_rows() && key_decides;
  descriptor_.stops_at_matched = !kind.pairs && kind.flags_matched_rows() && key_decides;
  descriptor_.batch_rows = kDefaultBatchRows;
  descriptor_.group_rows = kDefaultGroupRows;
}

std::shared_ptr<const JoinDescriptor> JoinDescriptor::WithSpec(const JoinSpec& spec) const {
  auto other = std::make_shared<JoinDescriptor>(spec, inline_key_bytes_);
  other->descriptor_.batch_rows = descriptor_.batch_rows;
  other->descriptor_.group_rows = descriptor_.group_rows;
  other->descriptor_.rows.prefetches = descriptor_.rows.prefetches;
  other->descriptor_.rows.zero_hashes = descriptor_.rows.zero_hashes;
  other->descriptor_.rows.prefetch_string_bytes = descriptor_.rows.prefetch_string_bytes;
  return other;
}

void JoinDescriptor::PlaceFields(TuplePlacer* placer) {
  const bool nullable = RowOf(spec_.kind).nulls_build_columns();
  std::vector<QuernField> fields;
  for (const ColumnType& type : spec_.build) {
    fields.push_back(MakeField(type, RowOf(type.id).storage));
    fields.back().nullable |= nullable;
  }
  for (const ResidualSpec& residual : spec_.residual) fields.push_back(MakeResidual(residual));
  // The row id that the host's residual is asked with: a column of the payload, or a field of its own.
  const auto is_rowid = [](const QuernField& field) { return field.storage == kRowId; };
  if (spec_.host_residual && std::none_of(fields.begin(), fields.end(), is_rowid))
    fields.push_back(MakeField({.id = TypeId::kRowId}, kRowId));
  rows_.PlaceFields(std::move(fields), static_cast<uint32_t>(spec_.build.size()), placer);
  if (!spec_.host_residual) return;
  descriptor_.host_row_offset = std::find_if(rows_.fields().begin(), rows_.fields().end(), is_rowid)->tuple_offset;
}

std::string JoinDescriptor::Print() const {
  const QuernRowLayout& rows = descriptor_.rows;
  const bool is_flagged = descriptor_.matched_offset != 0;
  std::vector<LayoutLine> lines;
  LayoutLine null_bits = {rows.null_bits_offset, rows.null_bits_bytes - (is_flagged ? 1 : 0), "null bits", "", ""};
  rows_.AddKeyLines(spec_.keys, &lines, &null_bits);
  const size_t num_build = spec_.build.size(), num_columns = num_build + spec_.residual.size();
  for (size_t i = 0; i < num_columns; ++i) {
    const bool is_build = i < num_build;
    const ColumnType& type = is_build ? spec_.build[i] : spec_.residual[i - num_build].type;
    lines.push_back(
        MakeLine(rows_.fields()[i], type, is_build ? Numbered("build", i) : Numbered("residual", i - num_build)));
    AddNullBit(rows_.fields()[i], lines.back().field, &null_bits);
  }
  if (rows_.fields().size() > num_columns)
    lines.push_back(MakeLine(rows_.fields().back(), {.id = TypeId::kRowId}, "row of the host's residual"));
  std::sort(lines.begin(), lines.end(), [](const LayoutLine& a, const LayoutLine& b) { return a.offset < b.offset; });
  if (null_bits.bytes > 0) lines.push_back(null_bits);
  if (is_flagged) lines.push_back({descriptor_.matched_offset, 1, "matched flag", "set once a probe row matched", ""});
  return PrintTable(lines) + "tuple_bytes " + std::to_string(rows.tuple_bytes) + "\n";
}

}  // namespace quern
