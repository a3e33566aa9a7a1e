// SPDX-License-Identifier: Apache-2.0
// Checks whether a result is the sorted workload.
#ifndef QUERN_BENCH_SORT_SORT_CHECK_H_
#define QUERN_BENCH_SORT_SORT_CHECK_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "bench/sort/sort_workload.h"
#include "runtime/rows/output_batch.h"
#include "runtime/spec/spec.h"

namespace quern::bench {

// Receives the batches of a result in order. It keeps a copy of the last row, since the batch is emptied afterwards.
class SortCheck {
 public:
  SortCheck(const SortSpec& spec, const SortWorkload& workload);

  // *Errors*: Internal for a row that precedes the one before it.
  absl::Status Add(const OutputBatch& batch);
  // *Errors*: Internal if the values are not those of the workload; not checked if the spec has a limit.
  absl::Status Finish() const;

 private:
  struct LastRow {
    std::vector<uint8_t> bytes;
    int32_t offsets[2];
  };
  CollationRule Rule(size_t key) const;
  void KeepLast(const std::vector<SortValue>& columns, uint64_t row);
  std::vector<SortValue> LastColumns() const;

  const SortSpec& spec_;
  const SortWorkload& workload_;
  std::vector<LastRow> last_;  // one per key; empty before the first row
  std::vector<uint64_t> sums_;
  uint64_t num_rows_ = 0;
};

}  // namespace quern::bench

#endif  // QUERN_BENCH_SORT_SORT_CHECK_H_
