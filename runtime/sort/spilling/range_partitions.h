// SPDX-License-Identifier: Apache-2.0
// Sorts of more rows than memory holds, by distribution: rows are divided into ranges of keys, of which those that fit
// stay in memory, and each range is sorted on its own. (Knuth, The Art of Computer Programming 3, 5.4.9; Vitter,
// Algorithms and Data Structures for External Memory, 2008, chapter 5.)
#ifndef QUERN_RUNTIME_SORT_SPILLING_RANGE_PARTITIONS_H_
#define QUERN_RUNTIME_SORT_SPILLING_RANGE_PARTITIONS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/stop_flag.h"
#include "runtime/sort/local_rows.h"
#include "runtime/sort/spilling/row_tuples.h"
#include "runtime/sort/spilling/sorted_partitions.h"
#include "runtime/sort/spilling/splitters.h"
#include "runtime/spill/partitioned_tuples.h"
#include "runtime/spill/spill_context.h"

namespace quern {

// What the threads of a sort share that divides its rows. *Threads*: any, but for Finish.
class RangePartitions {
 public:
  // Leads of the rows of some threads, each in the order of arrival.
  using Sample = std::vector<std::vector<RowLead>>;

  // Null where rows or keys are of a size that differs, so that they are sorted in runs. stop_flag: not owned; may be
  // null.
  static std::unique_ptr<RangePartitions> Make(const SortContext& context, const QuernSortEntryPoints& generic,
                                               std::shared_ptr<SpillContext> spill, const StopFlag* stop_flag);

  uint32_t num_parts() const;
  // Whether nobody has chosen yet.
  bool is_undecided() const { return choice_.load(std::memory_order_acquire) == Choice::kUndecided; }
  // Whether rows are to be divided: threads need no memory in reserve that sorting takes.
  bool is_chosen() const { return choice_.load(std::memory_order_acquire) == Choice::kDivides; }
  // Chooses by a sample of the rows so far: rows that come clustered by their keys, or of which many share one, are
  // sorted in runs.
  void Choose(const Sample& sample);
  // Whether ranges are fixed; and fixes them.
  bool has_splitters() const { return has_splitters_.load(std::memory_order_acquire); }
  void Split(const Sample& sample);
  // Adds leads of every step-th row, and of a random one in each step.
  void AddSample(const LocalRows& rows, uint64_t step, std::vector<RowLead>* sample) const;
  // How many rows a sample is best taken of.
  static uint64_t sample_rows();

  // What a thread keeps in reserve to begin to divide so many rows.
  uint64_t BytesToBegin(uint64_t num_rows) const;
  // Rows that are divided at a time.
  uint32_t step_rows() const;
  std::unique_ptr<TupleBlocks> NewBlocks(std::shared_ptr<MemoryBudget> budget);
  // Copies the rows of a chunk, which has fields where the sort has any, to blocks of their ranges. *Errors*: those of
  // TupleBlocks::Add.
  absl::Status Divide(const SortChunk& chunk, uint32_t incomplete, TupleBlocks* blocks);
  // Keeps the blocks of a thread, which adds no more.
  absl::Status Keep(TupleBlocks* blocks) { return tuples_->Keep(blocks); }

  // Completes the ranges. Called once, when all threads have ended.
  absl::Status Finish();
  // The result, after that; null before.
  SortedPartitions* sorted() const { return sorted_.get(); }

 private:
  enum class Choice : uint8_t { kUndecided, kDivides, kMerges };
  RangePartitions(const SortContext& context, const QuernSortEntryPoints& generic, std::shared_ptr<SpillContext> spill,
                  const StopFlag* stop_flag);

  const SortContext context_;
  const QuernSortEntryPoints generic_;
  const std::shared_ptr<SpillContext> spill_;
  const StopFlag* const stop_flag_;
  const LeadWords leads_;
  const RowTuples layout_;
  std::atomic<Choice> choice_{Choice::kUndecided};
  std::mutex mutex_;  // guards the making of splitters_
  std::atomic<bool> has_splitters_{false};
  std::optional<Splitters> splitters_;
  std::unique_ptr<PartitionedTuples> tuples_;
  std::atomic<uint32_t> incomplete_{0};
  std::unique_ptr<SortedPartitions> sorted_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_SPILLING_RANGE_PARTITIONS_H_
