// SPDX-License-Identifier: Apache-2.0
// The merge of runs, or of a range of their rows; and the ranges into which the last merge of a sort is divided.
#ifndef QUERN_RUNTIME_SORT_SPILLING_RANGE_MERGE_H_
#define QUERN_RUNTIME_SORT_SPILLING_RANGE_MERGE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/rows/output_batch.h"
#include "runtime/sort/run_merger.h"
#include "runtime/sort/sort_descriptor.h"
#include "runtime/sort/spilling/ranges_in_turn.h"
#include "runtime/sort/spilling/sorted_run.h"
#include "runtime/spec/column_type.h"
#include "runtime/spill/budget_with_reserve.h"
#include "runtime/spill/spill_context.h"
#include "runtime/spill/spilled_rows.h"

namespace quern {

// The bytes of memory that a merge takes at most: of each run, blocks of so many bytes at most; windows; and a block of
// picked rows.
uint64_t MergeBytes(const SpillContext& spill, const SortDescriptor& descriptor,
                    const std::vector<uint64_t>& most_block_bytes);

class RangeMerge final : public RangeReader {
 public:
  // descriptor: of the merge, whose keys are the first columns of `types`, those of a run. num_runs: at least 1.
  // budget: of what is read; null: the memory that was set aside, and what is free beside it.
  RangeMerge(std::shared_ptr<const SortDescriptor> descriptor, const QuernSortEntryPoints& generic,
             std::shared_ptr<SpillContext> spill, std::vector<ColumnType> types, size_t num_runs,
             const std::shared_ptr<MemoryBudget>& budget = nullptr);

  // Takes memory for what is read, so that it is not refused later. *Errors*: ResourceExhausted.
  absl::Status Reserve(uint64_t bytes);
  // Adds a run, or a part of one. *Threads*, *errors*: as RowReader.
  void Add(SpilledRows run);
  void Add(const std::shared_ptr<SharedRows>& run, const RowPart& part);
  // num_rows: after which the merge ends, in any case.
  void SetLimit(uint64_t num_rows) { merger_.SetLimit(num_rows); }

  // *Errors*: those of RunMerger and RowReader.
  absl::Status Read(OutputBatch* out) override;

 private:
  absl::Status Feed(uint32_t run);

  const size_t num_keys_;
  const std::shared_ptr<SpillContext> spill_;
  const std::vector<ColumnType> types_;
  BudgetWithReserve memory_;
  bool has_begun_ = false;
  std::vector<std::unique_ptr<RowReader>> readers_;
  RunMerger merger_;  // destroyed first: it holds readers' blocks
};

// The rows of a sort's result, which readers merge range by range. While a reader has a range, the others' take memory
// for all that they need before they begin, and leave some to results.
class MergedRanges final : public RangesInTurn {
 public:
  // bounds: by run, the row of it with which each range but the first begins. limit: rows of the result; 0: all.
  MergedRanges(std::shared_ptr<const SortDescriptor> descriptor, const QuernSortEntryPoints& generic,
               std::shared_ptr<SpillContext> spill, std::vector<ColumnType> types, std::vector<SortedRun> runs,
               std::vector<std::vector<uint64_t>> bounds, uint64_t limit);

 private:
  absl::StatusOr<std::unique_ptr<RangeReader>> Begin(uint64_t range, bool is_first) override;
  std::vector<RowPart> PartsOf(uint64_t range) const;

  const std::shared_ptr<const SortDescriptor> descriptor_;
  const QuernSortEntryPoints generic_;
  const std::shared_ptr<SpillContext> spill_;
  const std::vector<ColumnType> types_;
  const std::vector<std::vector<uint64_t>> bounds_;
  std::vector<std::shared_ptr<SharedRows>> runs_;
  uint64_t merge_bytes_ = 0;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_SPILLING_RANGE_MERGE_H_
