// SPDX-License-Identifier: Apache-2.0
// Two bits a row suffice: whether it begins a partition, and whether its keys differ from those of the row before. For
// rows of partition and key:
//
//     a 1, a 1, a 3, b 1, b 2      partitions 1 0 0 1 0     peers 1 0 1 1 1
//     row_number  1 2 3 1 2    rank  1 1 3 1 2    dense_rank  1 1 2 1 2
//
// Readers begin anywhere. Every 512 rows we therefore store where the partition and the peers of the row before began,
// and its dense rank.
#include "runtime/sort/sort_windows.h"

#include "runtime/base/status.h"

namespace quern {

absl::Status SortWindows::Begin(uint64_t num_rows, const std::shared_ptr<MemoryBudget>& budget) {
  num_rows_ = num_rows;
  const uint64_t bytes = (num_rows + 63) / 64 * 8;
  QUERN_ASSIGN_OR_RETURN(partitions_, HugeBuffer::Allocate(budget, bytes, true));
  QUERN_ASSIGN_OR_RETURN(peers_, HugeBuffer::Allocate(budget, bytes, true));
  return absl::OkStatus();
}

void SortWindows::State::Step(const SortWindows& windows, uint64_t position) {
  if (Get(windows.partitions_, position)) {
    partition = peers = position;
    dense_rank = 1;
  } else if (Get(windows.peers_, position)) {
    peers = position;
    ++dense_rank;
  }
}

void SortWindows::Finish() {
  State state;
  for (uint64_t position = 0; position < num_rows_; ++position) {
    if (position % kBlockRows == 0) states_.push_back(state);
    state.Step(*this, position);
  }
}

void SortWindows::Fill(uint64_t position, uint32_t n, uint64_t* row_numbers, uint64_t* ranks,
                       uint64_t* dense_ranks) const {
  State state = states_[position / kBlockRows];
  for (uint64_t before = position / kBlockRows * kBlockRows; before < position; ++before) state.Step(*this, before);
  for (uint32_t i = 0; i < n; ++i) {
    state.Step(*this, position + i);
    if (row_numbers != nullptr) row_numbers[i] = position + i - state.partition + 1;
    if (ranks != nullptr) ranks[i] = state.peers - state.partition + 1;
    if (dense_ranks != nullptr) dense_ranks[i] = state.dense_rank;
  }
}

}  // namespace quern
