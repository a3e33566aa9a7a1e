// SPDX-License-Identifier: Apache-2.0
// The result of a sort whose rows were divided into ranges of keys: each is sorted in memory when its turn comes.
#ifndef QUERN_RUNTIME_SORT_SPILLING_SORTED_PARTITIONS_H_
#define QUERN_RUNTIME_SORT_SPILLING_SORTED_PARTITIONS_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/base/stop_flag.h"
#include "runtime/sort/local_rows.h"
#include "runtime/sort/spilling/ranges_in_turn.h"
#include "runtime/sort/spilling/row_tuples.h"
#include "runtime/spill/budget_with_reserve.h"
#include "runtime/spill/partitioned_tuples.h"
#include "runtime/spill/spill_context.h"

namespace quern {

// *Threads*: any number at once.
class SortedPartitions final : public RangesInTurn {
 public:
  // tuples: complete, in partitions by ranges of keys. incomplete: keys with values that do not fit their words.
  // stop_flag: not owned; may be null.
  SortedPartitions(const SortContext& context, const QuernSortEntryPoints& generic, std::shared_ptr<SpillContext> spill,
                   const RowTuples& layout, std::unique_ptr<PartitionedTuples> tuples, uint32_t incomplete,
                   const StopFlag* stop_flag);
  ~SortedPartitions() override;

  // What is to be freed, so that so many readers have room for a partition each.
  uint64_t BytesToFreeFor(uint64_t num_readers) const;
  // Writes rows of a partition that memory holds, until so many bytes are free. Returns how many are. *Errors*: those
  // of the store.
  absl::StatusOr<uint64_t> FreePart(uint32_t part, uint64_t bytes) { return tuples_->FreeKeptOf(part, bytes); }
  // Takes memory for the first reader, which results could take else. Called when enough is free.
  void HoldMemory();

 private:
  class Partition;
  uint64_t BytesToSort(uint64_t num_rows) const;
  absl::StatusOr<std::unique_ptr<RangeReader>> Begin(uint64_t range, bool is_first) override;
  void HasReadAllBegun() override;

  const SortContext context_;
  const QuernSortEntryPoints generic_;
  const std::shared_ptr<SpillContext> spill_;
  const RowTuples layout_;
  const std::unique_ptr<PartitionedTuples> tuples_;
  const uint32_t incomplete_;
  const StopFlag* const stop_flag_;
  uint64_t most_rows_ = 0;  // of a partition
  BudgetWithReserve held_;  // while no reader has a partition
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_SPILLING_SORTED_PARTITIONS_H_
