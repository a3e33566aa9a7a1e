// SPDX-License-Identifier: Apache-2.0
// Whether a result is the workload, sorted.
#ifndef QUERN_BENCH_SORT_SORT_CHECK_H_
#define QUERN_BENCH_SORT_SORT_CHECK_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "bench/sort/sort_workload.h"
#include "runtime/rows/output_batch.h"
#include "runtime/spec/spec.h"

namespace quern::bench {

// Takes the batches of a result one after the other. Of the last row that came it keeps a copy, since its batch is
// emptied.
class SortCheck {
 public:
  SortCheck(const KernelSpec& spec, const SortWorkload& workload);

  // *Errors*: Internal for a row that comes before the one before it.
  absl::Status Add(const OutputBatch& batch);
  // *Errors*: Internal for values that are not those of the workload; not looked for where the spec has a limit.
  absl::Status Finish() const;

 private:
  struct LastRow {
    std::vector<uint8_t> bytes;
    int32_t offsets[2];
  };
  CollationRule Rule(size_t key) const;
  void KeepLast(const std::vector<SortValue>& columns, uint64_t row);
  std::vector<SortValue> LastColumns() const;

  const KernelSpec& spec_;
  const SortWorkload& workload_;
  std::vector<LastRow> last_;  // by key; empty: no row yet
  std::vector<uint64_t> sums_;
  uint64_t num_rows_ = 0;
};

}  // namespace quern::bench

#endif  // QUERN_BENCH_SORT_SORT_CHECK_H_
