// SPDX-License-Identifier: Apache-2.0
// With 64 partitions a level, a hash has these numbers:
//
//     hash * multiplier     | 6 bits | 6 bits | 6 bits | ..
//                             level 0  level 1  level 2
//
// A row of `join.inner keys=i64,utf8 build=f64 probe=rowid,i32` is written as
//
//     build    tuple of 40 bytes | hash | bytes of strings above 12
//     probe    i64 | utf8 | i32 | row id
#include "runtime/join/join_parts.h"

#include <algorithm>
#include <bit>

#include "runtime/base/refused_calls.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/blocks/blocks.h"
#include "runtime/join/join_loop.h"
#include "runtime/join/tuple_strings.h"

namespace quern {
namespace {

constexpr uint32_t kHashedRows = 1024;

ColumnType NumberType() {
  ColumnType type;
  type.id = TypeId::kU64;
  return type;
}

}  // namespace

HashParts::HashParts(const SpillContext& spill, uint64_t row_bytes) {
  const uint64_t most =
      spill.io_bytes() / thresholds::kPartitionBlocksShare / (kMinBlockRows * std::max<uint64_t>(row_bytes, 1));
  const uint64_t num_parts = std::clamp<uint64_t>(std::bit_floor(most), 2, spill.num_partitions());
  bits_ = static_cast<uint32_t>(std::countr_zero(std::bit_floor(num_parts)));
}

// ---- the build side -------------------------------------------------------------------------------------------------

std::vector<ColumnType> TupleColumns(const QuernRowLayout& layout) {
  ColumnType tuple, strings;
  tuple.id = TypeId::kFixedBinary;
  tuple.width_bytes = layout.tuple_bytes;
  strings.id = TypeId::kLargeBinary;
  std::vector<ColumnType> types = {tuple};
  if (layout.packed_bytes == 0) types.push_back(NumberType());
  if (TupleStrings(layout).any()) types.push_back(strings);
  return types;
}

uint64_t TupleBytesOf(const QuernRowLayout& layout, uint64_t num_tuples) {
  const uint64_t hash_bytes = layout.packed_bytes == 0 ? sizeof(uint64_t) : 0;
  return num_tuples * (layout.tuple_bytes + hash_bytes) * 9 / 8;  // spans that are not full
}

uint64_t StringBytesOf(const QuernRowLayout& layout, const SpilledRows& tuples) {
  return TupleStrings(layout).any() ? tuples.num_bytes() : 0;  // strings keep their blocks
}

void PartsOfTuples(const TupleFormat& format, const uint8_t* tuples, const uint64_t* hashes, uint64_t n,
                   const HashParts& parts, uint32_t level, uint32_t* numbers) {
  uint64_t computed[kHashedRows];
  for (uint64_t first = 0; first < n; first += kHashedRows) {
    const auto count = static_cast<uint32_t>(std::min<uint64_t>(kHashedRows, n - first));
    const uint64_t* const of_rows = hashes == nullptr ? computed : hashes + first;
    if (hashes == nullptr) {
      LoadPackedKeys(tuples + first * format.tuple_bytes, count, format, computed);
      HashPackedKeys(computed, count, format.zero_hashes, computed);
    }
    for (uint32_t i = 0; i < count; ++i) numbers[first + i] = parts.PartOf(of_rows[i], level);
  }
}

// ---- the probe side -------------------------------------------------------------------------------------------------

absl::Status PartsOfRows(const QuernJoinDescriptor& descriptor, const JoinEntrySource& entry_points,
                         const BatchView& batch, const HashParts& parts, uint32_t level, QuernProbeScratch* scratch,
                         uint32_t* numbers) {
  const QuernRowLayout& layout = descriptor.rows;
  const RefusedCalls refused;
  for (uint64_t next = 0; next < batch.num_rows;) {
    const auto n = static_cast<uint32_t>(std::min<uint64_t>(descriptor.batch_rows, batch.num_rows - next));
    const QuernJoinEntryPoints& kernel = entry_points.ForLook(n);
    const BatchRows kept = SelectRows(kernel, &layout, batch.keys.data(), batch.selection, next, n, scratch->rows);
    uint64_t* const hashes = scratch->hashes;
    if (layout.packed_bytes != 0) {
      kernel.pack(&layout, batch.keys.data(), kept.first, kept.rows, kept.n, scratch->words);
      HashPackedKeys(scratch->words, kept.n, layout.zero_hashes, hashes);
    } else {
      kernel.hash(&layout, batch.keys.data(), kept.first, kept.rows, kept.n, hashes);
      QUERN_RETURN_IF_ERROR(refused.status());
    }
    uint32_t k = 0;
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t row = blocks::RowAt(batch.selection == nullptr ? nullptr : batch.selection + next, next, i);
      const bool is_kept = kept.n == n || (k < kept.n && kept.rows[k] == row);
      numbers[next + i] = is_kept ? parts.PartOf(hashes[k], level) : kNoPart;
      k += is_kept;
    }
    next += n;
  }
  return absl::OkStatus();
}

ProbeColumns::ProbeColumns(const JoinSpec& spec) : num_keys_(spec.keys.size()), has_row_ids_(spec.host_residual) {
  for (const KeySpec& key : spec.keys) types_.push_back(key.type);
  const auto add = [&](const ColumnType& type) {
    is_row_id_.push_back(type.id == TypeId::kRowId);
    if (is_row_id_.back()) has_row_ids_ = true;
    else types_.push_back(type);
  };
  for (const ColumnType& type : spec.probe) add(type);
  for (const ResidualSpec& residual : spec.residual) add(residual.type);
  if (has_row_ids_) types_.push_back(NumberType());
  for (const ColumnType& type : types_) read_types_.push_back(SpilledType(type));
}

BatchView ProbeColumns::ToWrite(const BatchView& batch, const uint64_t* row_ids) const {
  BatchView columns = batch;
  columns.payload.clear();
  columns.keys.resize(num_keys_);
  for (size_t c = 0; c < is_row_id_.size(); ++c)
    if (!is_row_id_[c]) columns.keys.push_back(batch.payload[c]);
  if (!has_row_ids_) return columns;
  QuernColumn ids = {};
  ids.values = row_ids;
  columns.keys.push_back(ids);
  return columns;
}

BatchView ProbeColumns::FromRead(const BatchView& read) const {
  BatchView batch = read;
  batch.keys.resize(num_keys_);
  batch.payload.clear();
  size_t next = num_keys_;
  for (const bool is_row_id : is_row_id_) batch.payload.push_back(is_row_id ? read.keys.back() : read.keys[next++]);
  return batch;
}

const uint64_t* ProbeColumns::RowIdsOf(const BatchView& read) const {
  return has_row_ids_ ? static_cast<const uint64_t*>(read.keys.back().values) : nullptr;
}

JoinSpec SpilledJoinSpec(JoinSpec spec) {
  for (KeySpec& key : spec.keys) key.type = SpilledType(key.type);
  for (ColumnType& type : spec.probe) {
    type = SpilledType(type);
    if (type.id == TypeId::kRowId) type.id = TypeId::kU64;
  }
  return spec;
}

bool ChangesWhenSpilled(const JoinSpec& spec) {
  const auto changes = [](const ColumnType& type) { return type.is_dictionary || type.id == TypeId::kRowId; };
  return std::any_of(spec.probe.begin(), spec.probe.end(), changes) ||
         std::any_of(spec.keys.begin(), spec.keys.end(), [&](const KeySpec& key) { return changes(key.type); });
}

}  // namespace quern
