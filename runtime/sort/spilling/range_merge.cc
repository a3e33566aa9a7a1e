// SPDX-License-Identifier: Apache-2.0
// A run's blocks are read ahead; each is decoded where it lies, and its rows go to the merger's windows.
#include "runtime/sort/spilling/range_merge.h"

#include <algorithm>
#include <utility>

#include "runtime/base/status.h"

namespace quern {
namespace {

// So many times as much as is set aside anyway is set aside for results.
constexpr uint64_t kSharesOfResults = 2;

// Of all windows together. With many runs a window has few rows, but a run never less than eight (run_merger.cc).
uint64_t WindowBytes(const SpillContext& spill) { return spill.block_bytes() * spill.max_readers() / 2; }

}  // namespace

uint64_t MergeBytes(const SpillContext& spill, const SortDescriptor& descriptor,
                    const std::vector<uint64_t>& most_block_bytes) {
  constexpr uint64_t kWordsOfPicked = 3, kLeastPlaces = 9;
  const QuernSortDescriptor& sort = *descriptor.get();
  const uint64_t place_bytes = 8 * (sort.num_words + 1) + sort.rows.tuple_bytes;
  uint64_t bytes = std::max(WindowBytes(spill), place_bytes * kLeastPlaces * most_block_bytes.size()) +
                   uint64_t{kMaxBatchRows} * 8 * (sort.num_words + kWordsOfPicked);
  for (const uint64_t block_bytes : most_block_bytes) bytes += block_bytes * (spill.read_depth() + 1);
  return bytes;
}

RangeMerge::RangeMerge(std::shared_ptr<const SortDescriptor> descriptor, const QuernSortEntryPoints& generic,
                       std::shared_ptr<SpillContext> spill, std::vector<ColumnType> types, size_t num_runs,
                       const std::shared_ptr<MemoryBudget>& budget)
    : num_keys_(descriptor->spec().keys.size()),
      spill_(std::move(spill)),
      types_(std::move(types)),
      memory_(budget == nullptr ? spill_->io_budget() : budget),
      merger_(std::move(descriptor), SortEntrySource(generic), nullptr, memory_.budget(),
              static_cast<uint32_t>(num_runs)) {
  merger_.SetWindowBytes(WindowBytes(*spill_));
}

absl::Status RangeMerge::Reserve(uint64_t bytes) {
  QUERN_RETURN_IF_ERROR(memory_.GrowBy(bytes));
  memory_.Open();
  return absl::OkStatus();
}

void RangeMerge::Add(SpilledRows run) {
  readers_.push_back(
      std::make_unique<RowReader>(spill_, types_, std::move(run), RowReader::After::kFree, memory_.budget()));
}

void RangeMerge::Add(const std::shared_ptr<SharedRows>& run, const RowPart& part) {
  readers_.push_back(std::make_unique<RowReader>(spill_, types_, run, part, memory_.budget()));
}

absl::StatusOr<bool> RangeMerge::Next(OutputBatch* out) {
  if (!std::exchange(has_begun_, true))
    for (const auto& reader : readers_) QUERN_RETURN_IF_ERROR(reader->Begin());
  for (;;) {
    QUERN_ASSIGN_OR_RETURN(const MergeState state, merger_.Next(out));
    if (state == MergeState::kDone) return false;
    if (state == MergeState::kNeedsInput) QUERN_RETURN_IF_ERROR(Feed(merger_.needed_run()));
    if (out->num_rows() != 0) return true;
  }
}

absl::Status RangeMerge::Feed(uint32_t run) {
  BatchView batch;
  QUERN_ASSIGN_OR_RETURN(const bool has_rows, readers_[run]->Next(&batch));
  if (!has_rows) return merger_.End(run);
  batch.payload.assign(batch.keys.begin() + static_cast<ptrdiff_t>(num_keys_), batch.keys.end());
  batch.keys.resize(num_keys_);
  return merger_.Input(run, batch);
}

// ---- ranges ---------------------------------------------------------------------------------------------------------

MergedRanges::MergedRanges(std::shared_ptr<const SortDescriptor> descriptor, const QuernSortEntryPoints& generic,
                           std::shared_ptr<SpillContext> spill, std::vector<ColumnType> types,
                           std::vector<SortedRun> runs, std::vector<std::vector<uint64_t>> bounds, uint64_t limit)
    : descriptor_(std::move(descriptor)),
      generic_(generic),
      spill_(std::move(spill)),
      types_(std::move(types)),
      bounds_(std::move(bounds)) {
  std::vector<uint64_t> most_block_bytes;
  for (size_t r = 0; r < runs.size(); ++r) {
    num_rows_ += runs[r].rows.num_rows();
    num_ranges_ = bounds_[r].size() + 1;
    most_block_bytes.push_back(runs[r].most_block_bytes());
    runs_.push_back(std::make_shared<SharedRows>(std::move(runs[r].rows), bounds_[r]));
  }
  merge_bytes_ = MergeBytes(*spill_, *descriptor_, most_block_bytes);
  // Of the first range, and of results. Where it is refused, a reader takes memory as it needs it.
  spill_->SetMoreAside(merge_bytes_ + kSharesOfResults * spill_->io_bytes()).IgnoreError();
  if (limit != 0) num_rows_ = std::min(num_rows_, limit);
}

uint64_t MergedRanges::FirstRowOf(uint64_t range) const {
  if (range == num_ranges_) return num_rows_;
  uint64_t row = 0;
  for (const std::vector<uint64_t>& bounds : bounds_) row += range == 0 ? 0 : bounds[range - 1];
  return std::min(row, num_rows_);
}

// The rows of each run.
std::vector<RowPart> MergedRanges::PartsOf(uint64_t range) const {
  std::vector<RowPart> parts;
  for (size_t r = 0; r < runs_.size(); ++r) {
    const uint64_t begin = range == 0 ? 0 : bounds_[r][range - 1];
    const uint64_t end = range + 1 == num_ranges_ ? runs_[r]->rows().num_rows() : bounds_[r][range];
    parts.push_back({begin, end});
  }
  return parts;
}

absl::StatusOr<bool> MergedRanges::Take(Range* range) {
  const std::lock_guard<std::mutex> lock(mutex_);
  QUERN_RETURN_IF_ERROR(status_);
  if (!given_back_.empty()) {
    *range = std::move(given_back_.back());
    given_back_.pop_back();
    ++num_active_;
    return true;
  }
  for (; next_range_ < num_ranges_; ++next_range_) {
    range->position = FirstRowOf(next_range_);
    range->end = FirstRowOf(next_range_ + 1);
    if (range->position == range->end) continue;
    const bool is_first = num_active_ == 0;
    auto merge = std::make_unique<RangeMerge>(descriptor_, generic_, spill_, types_, runs_.size(),
                                              is_first ? nullptr : spill_->budget());
    if (!is_first && (!spill_->HasRoom(merge_bytes_ + spill_->io_bytes()) || !merge->Reserve(merge_bytes_).ok()))
      return false;
    const std::vector<RowPart> parts = PartsOf(next_range_);
    for (size_t r = 0; r < parts.size(); ++r) merge->Add(runs_[r], parts[r]);
    merge->SetLimit(range->end - range->position);
    range->merge = std::move(merge);
    ++next_range_;
    ++num_active_;
    return true;
  }
  return false;
}

void MergedRanges::End(Range* range, const absl::Status& status) {
  *range = {};
  const std::lock_guard<std::mutex> lock(mutex_);
  --num_active_;
  if (status_.ok()) status_ = status;
}

void MergedRanges::GiveBack(Range range) {
  const std::lock_guard<std::mutex> lock(mutex_);
  --num_active_;
  given_back_.push_back(std::move(range));
}

absl::StatusOr<bool> MergedRanges::Next(Range* range, OutputBatch* out, uint64_t* position) {
  if (out->num_columns() == 0) return Count(out, position);
  if (range->merge == nullptr) {
    *position = num_rows_;
    QUERN_ASSIGN_OR_RETURN(const bool has_range, Take(range));
    if (!has_range) return false;
  }
  *position = range->position;
  absl::StatusOr<bool> next = range->merge->Next(out);
  if (next.ok() && !*next && range->position + out->num_rows() != range->end)
    next = absl::InternalError("sort that spills: a range has other rows than were counted");
  if (!next.ok()) {
    End(range, next.status());
    return next.status();
  }
  range->position += out->num_rows();
  if (range->position != range->end) return true;
  End(range, absl::OkStatus());
  const std::lock_guard<std::mutex> lock(mutex_);
  return next_range_ < num_ranges_ || !given_back_.empty();
}

// All rows that no reader has taken, without reading them.
absl::StatusOr<bool> MergedRanges::Count(OutputBatch* out, uint64_t* position) {
  const std::lock_guard<std::mutex> lock(mutex_);
  QUERN_RETURN_IF_ERROR(status_);
  *position = FirstRowOf(next_range_);
  out->set_num_rows(num_rows_ - *position);
  next_range_ = num_ranges_;
  return false;
}

}  // namespace quern
