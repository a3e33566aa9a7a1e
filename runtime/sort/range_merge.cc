// SPDX-License-Identifier: Apache-2.0
// A run's blocks are read ahead; each is decoded where it lies, and its rows go to the merger's windows.
#include "runtime/sort/range_merge.h"

#include <algorithm>
#include <utility>

#include "runtime/base/status.h"

namespace quern {
namespace {

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
                       std::shared_ptr<SpillContext> spill, std::vector<ColumnType> types, size_t num_runs)
    : num_keys_(descriptor->spec().keys.size()),
      spill_(std::move(spill)),
      types_(std::move(types)),
      memory_(spill_->io_budget()),
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

}  // namespace quern
