// SPDX-License-Identifier: Apache-2.0
// Dividing writes only what does not fit, and merges nothing. It needs keys of a fixed size and a sample that says what
// keys will come; so rows that come in the order of a key, or with few different keys, are sorted in runs, as are rows
// with strings:
//
//     SpillingRows: rows, rows, ..  -> range, range, ..  -> each sorted when it is read
//     SpillingRows: rows, rows, ..  -> run, run, ..      -> all merged
#include "runtime/sort/spilling/spilled_sort.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/sort/spilling/spilling_rows.h"

namespace quern {

SpilledSort::SpilledSort(const SortContext& context, const QuernSortEntryPoints& generic,
                         std::shared_ptr<SpillContext> spill, const StopFlag* stop_flag)
    : runs_(context, generic, spill, stop_flag),
      partitions_(RangePartitions::Make(context, generic, std::move(spill), stop_flag)),
      work_([this] { return NextPhase(); }) {}

// ---- threads --------------------------------------------------------------------------------------------------------

void SpilledSort::Register(SpillingRows* rows) {
  const std::lock_guard<std::mutex> lock(mutex_);
  locals_.push_back(rows);
}

void SpilledSort::Deregister(SpillingRows* rows) {
  const std::lock_guard<std::mutex> lock(mutex_);
  locals_.erase(std::remove(locals_.begin(), locals_.end(), rows), locals_.end());
}

// With the mutex.
RangePartitions::Sample SpilledSort::SampleAll() {
  uint64_t num_rows = 0;
  for (SpillingRows* const rows : locals_) num_rows += rows->num_rows();
  RangePartitions::Sample sample;
  for (SpillingRows* const rows : locals_)
    rows->AddSample(std::max<uint64_t>(num_rows / RangePartitions::sample_rows(), 1), &sample.emplace_back());
  return sample;
}

bool SpilledSort::Choose() {
  if (partitions_ == nullptr) return false;
  const bool was_undecided = partitions_->is_undecided();
  if (!was_undecided && (!partitions_->is_chosen() || partitions_->has_splitters())) return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (was_undecided && !partitions_->is_undecided()) return partitions_->is_chosen();  // by another thread
  if (partitions_->has_splitters()) return false;  // likewise: threads that divide their rows have their locks
  if (was_undecided) partitions_->Choose(SampleAll());
  else partitions_->Split(SampleAll());
  if (!was_undecided || !partitions_->is_chosen()) return false;
  for (SpillingRows* const rows : locals_) rows->ShrinkReserve();
  return true;
}

absl::StatusOr<bool> SpilledSort::LetOthersGo(const SpillingRows* except) {
  bool any_rows = false, any_at_work = false, has_others = false;
  {
    std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    any_at_work = !lock.owns_lock();
    if (any_at_work) lock.lock();
    has_others = locals_.size() > 1;
    for (SpillingRows* const rows : locals_) {
      if (rows == except) continue;
      any_at_work |= rows->is_at_work();
      QUERN_ASSIGN_OR_RETURN(const bool had_rows, rows->LetGo(/*frees_blocks=*/true));
      any_rows |= had_rows;
    }
  }
  if (has_others && !any_rows) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return any_rows || any_at_work;
}

// ---- reading --------------------------------------------------------------------------------------------------------

bool SpilledSort::HasToSpill(const std::vector<SpillingRows*>& locals) {
  if (runs_.has_runs() || divides_.load(std::memory_order_acquire)) return true;
  const bool fits = partitions_ == nullptr || !partitions_->is_chosen() ||
                    std::all_of(locals.begin(), locals.end(), [](SpillingRows* rows) { return rows->ReserveToSort(); });
  for (SpillingRows* const rows : locals) rows->GiveReserveBack();
  return !fits;
}

SharedWork* SpilledSort::BeginRead(std::vector<SpillingRows*> locals) {
  if (runs_.has_runs()) return runs_.BeginMerge(std::move(locals));
  last_locals_ = std::move(locals);
  return &work_;
}

absl::StatusOr<std::optional<SharedWork::Phase>> SpilledSort::NextPhase() {
  if (partitions_->sorted() != nullptr) {
    partitions_->sorted()->HoldMemory();
    return std::nullopt;
  }
  if (!std::exchange(has_divided_, true)) {
    Choose();
    return SharedWork::Phase{last_locals_.size(), [this](uint64_t task) { return last_locals_[task]->EndDividing(); }};
  }
  QUERN_RETURN_IF_ERROR(partitions_->Finish());
  bytes_to_free_ = static_cast<int64_t>(partitions_->sorted()->BytesToFreeFor(last_locals_.size()));
  return SharedWork::Phase{partitions_->num_parts(), [this](uint64_t task) -> absl::Status {
                             const auto part = static_cast<uint32_t>(partitions_->num_parts() - 1 - task);
                             const int64_t bytes = bytes_to_free_;
                             if (bytes <= 0) return absl::OkStatus();
                             QUERN_ASSIGN_OR_RETURN(const uint64_t freed, partitions_->sorted()->FreePart(
                                                                              part, static_cast<uint64_t>(bytes)));
                             bytes_to_free_ -= static_cast<int64_t>(freed);
                             return absl::OkStatus();
                           }};
}

RangesInTurn* SpilledSort::result() const {
  if (runs_.ranges() != nullptr) return runs_.ranges();
  return partitions_->sorted();
}

}  // namespace quern
