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
// Keys come first, because a probe that ends with "not equal" reads nothing else: the fewer cache lines the keys touch,
// the better. Within each part the widest fields go first, so that natural alignment costs padding only between the
// parts and at the end. A null takes one bit where it must be distinguished from a value: in a nullable payload column,
// and in a nullable key whose nulls are equal. A null key that equals nothing never enters the table; where its row is
// output all the same (right, full, right_anti), the bit shows that the field was not written.
#include "runtime/join/join_descriptor.h"

#include <algorithm>
#include <string>

#include "runtime/rows/prefetch.h"
#include "runtime/rows/tuple_layout.h"

namespace quern {
namespace {

QuernField MakeResidual(const ResidualSpec& residual) {
  QuernField field = MakeField(residual.type, RowOf(residual.type.id).key_storage);
  field.comparison = static_cast<uint8_t>(residual.op);
  return field;
}

}  // namespace

NeededEntryPoints EntryPointsOf(const QuernJoinDescriptor& descriptor) {
  const auto any = [](const QuernField* fields, uint32_t n, auto&& is) { return std::any_of(fields, fields + n, is); };
  const auto varies = [](const QuernField& field) { return IsVariable(field.storage); };
  const bool wide = descriptor.packed_bytes == 0;
  NeededEntryPoints needed = {};
  needed.filter =
      any(descriptor.keys, descriptor.num_keys, [](const QuernField& key) { return key.nullable && !key.null_equal; });
  needed.pack = !wide;
  needed.hash = needed.check_tags = needed.compare = wide;
  needed.prefetch_keys = wide && descriptor.prefetches && any(descriptor.keys, descriptor.num_keys, varies);
  needed.store = wide || descriptor.num_build + descriptor.num_residual + descriptor.null_bits_bytes != 0 ||
                 descriptor.host_row != nullptr;
  needed.filter_residual = descriptor.num_residual != 0;
  needed.reserve_output =
      any(descriptor.probe, descriptor.num_probe, varies) || any(descriptor.build, descriptor.num_build, varies);
  needed.emit = descriptor.num_probe + descriptor.num_build != 0;
  return needed;
}

JoinDescriptor::JoinDescriptor(const JoinSpec& spec, uint32_t inline_key_bytes) : spec_(spec), descriptor_() {
  const JoinKindRow& kind = RowOf(spec_.kind);
  for (const KeySpec& key : spec_.keys) keys_.push_back(MakeKey(key, inline_key_bytes));
  for (const ColumnType& type : spec_.build) build_.push_back(MakeField(type, RowOf(type.id).storage));
  for (const ColumnType& type : spec_.probe) probe_.push_back(MakeField(type, RowOf(type.id).storage));
  for (const ResidualSpec& residual : spec_.residual) build_residual_.push_back(MakeResidual(residual));
  probe_residual_ = build_residual_;
  for (QuernField& column : build_) column.nullable |= kind.nulls_build_columns();
  for (QuernField& column : probe_) column.nullable |= kind.nulls_probe_columns();
  descriptor_.packed_bits = WordBits(spec_.keys);
  descriptor_.packed_bytes = descriptor_.packed_bits == 0 ? 0 : descriptor_.packed_bits <= 32 ? 4 : 8;
  TupleLayout layout;
  if (descriptor_.packed_bytes != 0) {
    descriptor_.packed_sign_bit = PackKeys(spec_.keys, &keys_);
    layout.PlacePackedKey(descriptor_.packed_bytes);
  } else {
    layout.Place({&keys_});
  }
  // The row id that the host's residual is asked with: a column of the payload, or a field of its own.
  const auto is_rowid = [](const QuernField& field) { return field.storage == kRowId; };
  std::vector<QuernField> host_rows;
  descriptor_.asks_host = spec_.host_residual;
  if (spec_.host_residual && std::none_of(build_.begin(), build_.end(), is_rowid))
    host_rows.push_back(MakeField({.id = TypeId::kRowId}, kRowId));
  layout.Place({&build_, &build_residual_, &host_rows});
  if (!host_rows.empty()) {
    host_row_ = host_rows.front();
    descriptor_.host_row = &host_row_;
    descriptor_.host_row_offset = host_row_.tuple_offset;
  } else if (spec_.host_residual) {
    descriptor_.host_row_offset = std::find_if(build_.begin(), build_.end(), is_rowid)->tuple_offset;
  }
  for (QuernField& key : keys_)
    if (descriptor_.packed_bytes == 0 && key.nullable && (key.null_equal || kind.build_row == RowsOut::kUnmatched))
      layout.PlaceNullBit(&key);
  for (QuernField& column : build_)
    if (column.nullable) layout.PlaceNullBit(&column);
  for (QuernField& column : build_residual_)
    if (column.nullable) layout.PlaceNullBit(&column);
  descriptor_.num_keys = static_cast<uint32_t>(keys_.size());
  descriptor_.num_build = static_cast<uint32_t>(build_.size());
  descriptor_.num_probe = static_cast<uint32_t>(probe_.size());
  descriptor_.num_residual = static_cast<uint32_t>(build_residual_.size());
  descriptor_.null_bits_offset = layout.end;
  descriptor_.null_bits_bytes = (layout.num_null_bits + 7) / 8;
  if (kind.flags_matched_rows())
    descriptor_.matched_offset = layout.end + descriptor_.null_bits_bytes++;  // zeroed with the null bits
  descriptor_.tuple_bytes = std::max(RoundUp(layout.end + descriptor_.null_bits_bytes, layout.alignment), 1u);
  const bool key_decides = spec_.residual.empty() && !spec_.host_residual;
  descriptor_.stops_at_first = !kind.pairs && !kind.flags_matched_rows() && key_decides;
  descriptor_.stops_at_matched = !kind.pairs && kind.flags_matched_rows() && key_decides;
  descriptor_.keys = keys_.data();
  descriptor_.build = build_.data();
  descriptor_.probe = probe_.data();
  descriptor_.build_residual = build_residual_.data();
  descriptor_.probe_residual = probe_residual_.data();
  descriptor_.batch_rows = kDefaultBatchRows;
  descriptor_.group_rows = kDefaultGroupRows;
  descriptor_.prefetch_string_bytes = PrefetchDistances().string_bytes;
}

std::string JoinDescriptor::Print() const {
  std::vector<LayoutLine> lines;
  LayoutLine null_bits = {descriptor_.null_bits_offset,
                          descriptor_.null_bits_bytes - (descriptor_.matched_offset != 0 ? 1 : 0), "null bits", "", ""};
  if (descriptor_.packed_bytes != 0)
    lines.push_back({0, descriptor_.packed_bytes, "packed key", std::to_string(descriptor_.packed_bits) + " bits",
                     WordText(keys_)});
  for (size_t i = 0; i < keys_.size() && descriptor_.packed_bytes == 0; ++i) {
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
  if (descriptor_.host_row != nullptr)
    lines.push_back(MakeLine(host_row_, {.id = TypeId::kRowId}, "row of the host's residual"));
  std::sort(lines.begin(), lines.end(), [](const LayoutLine& a, const LayoutLine& b) { return a.offset < b.offset; });
  if (null_bits.bytes > 0) lines.push_back(null_bits);
  if (descriptor_.matched_offset != 0)
    lines.push_back({descriptor_.matched_offset, 1, "matched flag", "set once a probe row matched", ""});
  return PrintTable(lines) + "tuple_bytes " + std::to_string(descriptor_.tuple_bytes) + "\n";
}

}  // namespace quern
