// SPDX-License-Identifier: Apache-2.0
// A merge of runs, or of a range of their rows.
#ifndef QUERN_RUNTIME_SORT_RANGE_MERGE_H_
#define QUERN_RUNTIME_SORT_RANGE_MERGE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/rows/output_batch.h"
#include "runtime/sort/run_merger.h"
#include "runtime/sort/sort_descriptor.h"
#include "runtime/spec/column_type.h"
#include "runtime/spill/budget_with_reserve.h"
#include "runtime/spill/spill_context.h"
#include "runtime/spill/spilled_rows.h"

namespace quern {

// The bytes of memory that a merge takes at most: of each run, blocks of so many bytes at most; windows; and a block of
// picked rows.
uint64_t MergeBytes(const SpillContext& spill, const SortDescriptor& descriptor,
                    const std::vector<uint64_t>& most_block_bytes);

// *Threads*: one at a time.
class RangeMerge {
 public:
  // descriptor: of the merge, whose keys are the first columns of `types`, those of a run. num_runs: at least 1.
  RangeMerge(std::shared_ptr<const SortDescriptor> descriptor, const QuernSortEntryPoints& generic,
             std::shared_ptr<SpillContext> spill, std::vector<ColumnType> types, size_t num_runs);

  // Takes memory for what is read, so that it is not refused later. *Errors*: ResourceExhausted; the merge may go on
  // without it, and takes memory as it is needed.
  absl::Status Reserve(uint64_t bytes);
  // Adds a run, or a part of one. *Threads*, *errors*: as RowReader.
  void Add(SpilledRows run);
  void Add(const std::shared_ptr<SharedRows>& run, const RowPart& part);
  // num_rows: after which the merge ends, in any case.
  void SetLimit(uint64_t num_rows) { merger_.SetLimit(num_rows); }

  // Fills `out` with rows; false behind the last ones. *Errors*: those of RunMerger and RowReader.
  absl::StatusOr<bool> Next(OutputBatch* out);

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

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_RANGE_MERGE_H_
