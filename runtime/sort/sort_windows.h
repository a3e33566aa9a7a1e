// SPDX-License-Identifier: Apache-2.0
// Window functions over sorted rows, from marks where partitions and groups of peers begin.
#ifndef QUERN_RUNTIME_SORT_SORT_WINDOWS_H_
#define QUERN_RUNTIME_SORT_SORT_WINDOWS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/memory.h"

namespace quern {

// *Threads*: different ranges of whole blocks may be marked at the same time. Call Finish when all are marked; then any
// number of threads may read.
class SortWindows {
 public:
  static constexpr uint32_t kBlockRows = 512;

  // *Errors*: ResourceExhausted.
  absl::Status Begin(uint64_t num_rows, const std::shared_ptr<MemoryBudget>& budget);
  // Marks the row at a position as the first of its partition, or as the first with its keys.
  void MarkPartition(uint64_t position) { Set(partitions_, position); }
  void MarkPeers(uint64_t position) { Set(peers_, position); }
  void Finish();

  // For rows position .. position+n-1: row numbers, ranks and dense ranks within their partitions, from 1; null if not
  // needed.
  void Fill(uint64_t position, uint32_t n, uint64_t* row_numbers, uint64_t* ranks, uint64_t* dense_ranks) const;

 private:
  // The state at the row before a block's first row.
  struct State {
    uint64_t partition = 0;  // where its partition begins
    uint64_t peers = 0;      // where the rows with its keys begin
    uint64_t dense_rank = 0;
    void Step(const SortWindows& windows, uint64_t position);
  };
  static void Set(const HugeBuffer& bits, uint64_t i) {
    reinterpret_cast<uint64_t*>(bits.data())[i / 64] |= uint64_t{1} << (i % 64);
  }
  static bool Get(const HugeBuffer& bits, uint64_t i) {
    return (reinterpret_cast<const uint64_t*>(bits.data())[i / 64] >> (i % 64) & 1) != 0;
  }

  uint64_t num_rows_ = 0;
  HugeBuffer partitions_, peers_;
  std::vector<State> states_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_SORT_WINDOWS_H_
