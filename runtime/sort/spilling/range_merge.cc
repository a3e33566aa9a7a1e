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

absl::Status RangeMerge::Read(OutputBatch* out) {
  if (!std::exchange(has_begun_, true))
    for (const auto& reader : readers_) QUERN_RETURN_IF_ERROR(reader->Begin());
  for (;;) {
    QUERN_ASSIGN_OR_RETURN(const MergeState state, merger_.Next(out));
    if (state == MergeState::kDone) return absl::OkStatus();
    if (state == MergeState::kNeedsInput) QUERN_RETURN_IF_ERROR(Feed(merger_.needed_run()));
    if (out->num_rows() != 0) return absl::OkStatus();
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

namespace {

// Where the ranges of merged runs begin in the result, which may end before all rows.
std::vector<uint64_t> FirstRows(const std::vector<SortedRun>& runs, const std::vector<std::vector<uint64_t>>& bounds,
                                uint64_t limit) {
  std::vector<uint64_t> first_rows(bounds.empty() ? 2 : bounds[0].size() + 2);
  for (size_t r = 0; r < runs.size(); ++r) {
    for (size_t b = 0; b < bounds[r].size(); ++b) first_rows[b + 1] += bounds[r][b];
    first_rows.back() += runs[r].rows.num_rows();
  }
  for (uint64_t& row : first_rows) row = limit == 0 ? row : std::min(row, limit);
  return first_rows;
}

}  // namespace

MergedRanges::MergedRanges(std::shared_ptr<const SortDescriptor> descriptor, const QuernSortEntryPoints& generic,
                           std::shared_ptr<SpillContext> spill, std::vector<ColumnType> types,
                           std::vector<SortedRun> runs, std::vector<std::vector<uint64_t>> bounds, uint64_t limit)
    : RangesInTurn(FirstRows(runs, bounds, limit)),
      descriptor_(std::move(descriptor)),
      generic_(generic),
      spill_(std::move(spill)),
      types_(std::move(types)),
      bounds_(std::move(bounds)) {
  std::vector<uint64_t> most_block_bytes;
  for (size_t r = 0; r < runs.size(); ++r) {
    most_block_bytes.push_back(runs[r].most_block_bytes());
    runs_.push_back(std::make_shared<SharedRows>(std::move(runs[r].rows), bounds_[r]));
  }
  merge_bytes_ = MergeBytes(*spill_, *descriptor_, most_block_bytes);
  // Of the first range, and of results. Where it is refused, a reader takes memory as it needs it.
  spill_->SetMoreAside(merge_bytes_ + kSharesOfResults * spill_->io_bytes()).IgnoreError();
}

// The rows of each run.
std::vector<RowPart> MergedRanges::PartsOf(uint64_t range) const {
  std::vector<RowPart> parts;
  for (size_t r = 0; r < runs_.size(); ++r) {
    const uint64_t begin = range == 0 ? 0 : bounds_[r][range - 1];
    const uint64_t end = range == bounds_[r].size() ? runs_[r]->rows().num_rows() : bounds_[r][range];
    parts.push_back({begin, end});
  }
  return parts;
}

absl::StatusOr<std::unique_ptr<RangeReader>> MergedRanges::Begin(uint64_t range, bool is_first) {
  auto merge = std::make_unique<RangeMerge>(descriptor_, generic_, spill_, types_, runs_.size(),
                                            is_first ? nullptr : spill_->budget());
  if (!is_first && (!spill_->HasRoom(merge_bytes_ + spill_->io_bytes()) || !merge->Reserve(merge_bytes_).ok()))
    return nullptr;
  const std::vector<RowPart> parts = PartsOf(range);
  for (size_t r = 0; r < parts.size(); ++r) merge->Add(runs_[r], parts[r]);
  merge->SetLimit(rows_of(range));
  return merge;
}

}  // namespace quern
