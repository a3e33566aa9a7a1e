// SPDX-License-Identifier: Apache-2.0
// Sorts of more rows than memory holds. What its threads share: whether rows are divided into ranges of keys
// (range_partitions.h) or sorted in runs, which are merged (spilled_runs.h), and where they are then.
#ifndef QUERN_RUNTIME_SORT_SPILLING_SPILLED_SORT_H_
#define QUERN_RUNTIME_SORT_SPILLING_SPILLED_SORT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/shared_work.h"
#include "runtime/base/stop_flag.h"
#include "runtime/rows/output_batch.h"
#include "runtime/sort/local_rows.h"
#include "runtime/sort/spilling/range_partitions.h"
#include "runtime/sort/spilling/spilled_runs.h"
#include "runtime/spill/spill_context.h"

namespace quern {

class SpillingRows;

// *Threads*: any number at once.
class SpilledSort {
 public:
  // stop_flag: not owned; may be null.
  SpilledSort(const SortContext& context, const QuernSortEntryPoints& generic, std::shared_ptr<SpillContext> spill,
              const StopFlag* stop_flag);

  const SortContext& context() const { return runs_.context(); }
  SpillContext* spill() const { return runs_.spill(); }
  const StopFlag* stop_flag() const { return runs_.stop_flag(); }
  SpilledRuns* runs() { return &runs_; }
  RangePartitions* partitions() { return partitions_.get(); }  // null: rows are sorted in runs

  void Register(SpillingRows* rows);
  void Deregister(SpillingRows* rows);
  // For a thread that was refused memory, and has no lock on its rows: chooses what becomes of the rows that leave.
  // True: memory that all had in reserve is free now.
  bool Choose();
  // Lets rows of other threads go, for one that finds no memory. Waits for those that are at work, and a millisecond
  // where they have no rows then. Returns whether some have left, or were about to. *Errors*: those of
  // SpillingRows::LetGo.
  absl::StatusOr<bool> LetOthersGo(const SpillingRows* except);
  // A thread has begun to divide its rows.
  void BeginDividing() { divides_.store(true, std::memory_order_release); }
  bool divides() const { return divides_.load(std::memory_order_acquire); }

  // Whether rows have left the threads' memory, or have no room to be sorted in it. locals: of all threads, which
  // append no more.
  bool HasToSpill(const std::vector<SpillingRows*>& locals);
  // The work after which rows can be read. Called once.
  SharedWork* BeginRead(std::vector<SpillingRows*> locals);

  // After that work: the result, and how it was made.
  RangesInTurn* result() const;
  const char* method() const {
    return partitions_ != nullptr && partitions_->sorted() != nullptr ? "distributed" : "merged";
  }

 private:
  RangePartitions::Sample SampleAll();
  absl::StatusOr<std::optional<SharedWork::Phase>> NextPhase();

  SpilledRuns runs_;
  std::unique_ptr<RangePartitions> partitions_;
  std::mutex mutex_;  // guards locals_
  std::vector<SpillingRows*> locals_;
  std::atomic<bool> divides_{false};
  std::vector<SpillingRows*> last_locals_;
  bool has_divided_ = false;
  std::atomic<int64_t> bytes_to_free_{0};
  SharedWork work_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_SPILLING_SPILLED_SORT_H_
