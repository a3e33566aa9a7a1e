// SPDX-License-Identifier: Apache-2.0
// Outputs that take batches: probes and maps. Internal.
#ifndef QUERN_HOSTS_C_JOBS_GROWING_OUTPUT_H_
#define QUERN_HOSTS_C_JOBS_GROWING_OUTPUT_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "hosts/c/job.h"
#include "runtime/base/memory.h"
#include "runtime/rows/output_batch.h"

namespace quern::c_abi {

// Results have room for as many rows as the largest batch so far, up to batch_rows: a probe of ten rows should not
// allocate memory for 65536. *Example*: batches of 10, 700 and 20 rows have results of 256, 1024 and 1024.
class GrowingOutput : public JobOutput {
 public:
  GrowingOutput(const std::vector<ColumnType>& types, uint64_t batch_rows, const std::shared_ptr<MemoryBudget>& budget)
      : JobOutput(types, std::min(batch_rows, kFewRows), budget),
        types_(types),
        batch_rows_(batch_rows),
        budget_(budget) {}

 protected:
  // What an earlier batch has left in `rows` is lost where they grow.
  void FitRows(uint64_t num_rows) {
    if (num_rows <= rows->capacity() || rows->capacity() >= batch_rows_) return;
    rows = NewResults(types_, std::min(std::bit_ceil(num_rows), batch_rows_), budget_);
  }

 private:
  // The rows for which a first result has room, however few rows are pushed.
  static constexpr uint64_t kFewRows = 256;

  const std::vector<ColumnType> types_;
  const uint64_t batch_rows_;
  const std::shared_ptr<MemoryBudget> budget_;
};

}  // namespace quern::c_abi

#endif  // QUERN_HOSTS_C_JOBS_GROWING_OUTPUT_H_
