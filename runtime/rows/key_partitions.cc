// SPDX-License-Identifier: Apache-2.0
// Partition numbers follow from a public hash, never from the secret of a process. A hash begins with 0, and takes in
// one key after the other:
//
//     integer, date, time, bool   its bits, zero-extended        (1: i32 and i64 agree; -1: they do not)
//     f32, f64                    its bits; -0 is 0, and there is one NaN
//     decimal128                  both halves
//     string, binary              its bytes; under a collation what it makes equal
//     dictionary                  the value, never the index
//     null                        a constant
//
// Groups have the same numbers (HashKeys in group_keys.cc), whose keys come from tuples.
#include "runtime/rows/key_partitions.h"

#include <algorithm>

#include "runtime/base/refused_calls.h"
#include "runtime/base/status.h"
#include "runtime/blocks/blocks.h"
#include "runtime/blocks/storage_dispatch.h"
#include "runtime/collation/collation.h"

namespace quern {
namespace {

constexpr uint32_t kBlockRows = 1024;

constexpr const blocks::HashSecret& kPublic = blocks::kPublicHash;

// The rows of one block.
struct Block {
  uint64_t first;
  const uint32_t* rows;  // null: first, first + 1, ..
  uint32_t n;
};

template <Storage kStorage>
uint64_t InputOf(const QuernColumn& column, uint32_t row, CollationRule rule, uint32_t width, blocks::HashMemo* memo) {
  if (!blocks::IsValid(&column, row)) return blocks::kNullInput;
  if constexpr (kStorage == k128) {
    const auto value = blocks::ReaderOf<k128>::Read(&column, row);
    return blocks::Combine(static_cast<uint64_t>(value), static_cast<uint64_t>(value >> 64), kPublic);
  } else {
    return blocks::HashInput<kStorage>(&column, row, rule, width, memo, kPublic);
  }
}

void AddColumn(const ColumnType& type, const QuernColumn& column, const Block& block, uint64_t* hashes) {
  const CollationRule rule = RuleOf(type.collation);
  uint32_t translated[kBlockRows];
  const QuernColumn* values = &column;
  const uint32_t* rows = block.rows;
  if (type.is_dictionary) {
    TranslateRows(RowOf(type.index).storage, &column, block.first, block.rows, block.n, translated);
    values = column.dictionary;
    rows = translated;
  }
  blocks::HashMemo memo(&kPublic);
  DispatchStorage(RowOf(type.id).key_storage, [&](auto tag) {
    constexpr Storage kStorage = decltype(tag)::value;
    for (uint32_t i = 0; i < block.n; ++i) {
      const uint32_t row = blocks::RowAt(rows, block.first, i);
      hashes[i] = blocks::Combine(hashes[i], InputOf<kStorage>(*values, row, rule, type.width_bytes, &memo), kPublic);
    }
  });
}

}  // namespace

absl::Status PartitionRows(const std::vector<ColumnType>& types, const BatchView& batch, uint32_t num_partitions,
                           const StopFlag* stop_flag, uint32_t* partitions) {
  QUERN_RETURN_IF_ERROR(CheckBatch(batch, types.size(), 0));
  const RefusedCalls refused;
  for (uint64_t next = 0; next < batch.num_rows; next += kBlockRows) {
    if (stop_flag != nullptr) QUERN_RETURN_IF_ERROR(stop_flag->Check());
    const Block block = {next, batch.selection == nullptr ? nullptr : batch.selection + next,
                         static_cast<uint32_t>(std::min<uint64_t>(kBlockRows, batch.num_rows - next))};
    uint64_t hashes[kBlockRows] = {};
    for (size_t k = 0; k < types.size(); ++k) AddColumn(types[k], batch.keys[k], block, hashes);
    for (uint32_t i = 0; i < block.n; ++i) partitions[next + i] = PartitionOf(hashes[i], num_partitions);
  }
  return refused.status();
}

}  // namespace quern
