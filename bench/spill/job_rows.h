// SPDX-License-Identifier: Apache-2.0
// The rows of a job that may spill: made as they are asked for, or all of them before.
#ifndef QUERN_BENCH_SPILL_JOB_ROWS_H_
#define QUERN_BENCH_SPILL_JOB_ROWS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/rows/batch_view.h"

namespace quern::bench {

enum class RowNumbers : uint8_t {
  kDistinct,  // each row has a number of its own
  kDrawn,     // rows draw from num_numbers numbers, uniformly
};

// Keys and payload of a row follow from its number, so that sides of a join have keys in common.
struct JobRowsSpec {
  uint64_t num_rows = 0;
  RowNumbers numbers = RowNumbers::kDistinct;
  uint64_t num_numbers = 0;  // kDrawn
  bool has_text = false;     // as the first key: utf8, 16 bytes
  bool has_integer = false;  // as the next key: i64, 64 random bits, of the row where there is a text before it
  bool has_payload = true;   // i64, the number of the row
};

// *Threads*: any number may read it.
class JobRows {
 public:
  // is_stored: all rows are made here, for jobs whose time is not to contain the making of their rows.
  JobRows(const JobRowsSpec& spec, bool is_stored);

  const JobRowsSpec& spec() const { return spec_; }
  // Rows [first, first + num_rows), a batch of AppendRows (append_rows.h).
  BatchView View(uint64_t first, uint64_t num_rows) const;

 private:
  struct Columns;
  std::shared_ptr<const Columns> Make(uint64_t first, uint64_t num_rows) const;

  const JobRowsSpec spec_;
  std::vector<std::shared_ptr<const Columns>> batches_;  // empty: rows are made when they are asked for
};

}  // namespace quern::bench

#endif  // QUERN_BENCH_SPILL_JOB_ROWS_H_
