// SPDX-License-Identifier: Apache-2.0
// Batches as all operators take them, and what each of them checks of a batch that comes in, an output batch, and a
// kernel's answer.
#ifndef QUERN_RUNTIME_ROWS_BATCH_VIEW_H_
#define QUERN_RUNTIME_ROWS_BATCH_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "runtime/abi/kernel_abi.h"

namespace quern {

class OutputBatch;

// Row ids go on from the batch before.
constexpr uint64_t kCountedRowIds = UINT64_MAX;

// Columns of one batch as kernels see them, plus what keeps their memory alive.
struct BatchView {
  std::vector<QuernColumn> keys;
  std::vector<QuernColumn>
      payload;  // joins: then the columns of the residual predicate; aggregations: the aggregates' columns
  const uint32_t* selection = nullptr;     // rows that take part, in order; nullptr: all
  uint64_t num_rows = 0;                   // selected rows
  uint64_t first_row_id = kCountedRowIds;  // what rowid columns call the batch's row 0
  std::shared_ptr<const void>
      owner;  // kept until the last reader of the columns is gone; may be null if the caller keeps them
};

// Whether a batch has fewer rows than numbers of rows can tell, and as many columns as a kernel reads, which it does
// whatever the batch holds. payload_name: what the text calls the columns of `payload`. *Errors*: InvalidArgument.
absl::Status CheckBatch(const BatchView& batch, size_t num_keys, size_t num_payload,
                        const char* payload_name = "payload columns");

enum class NoColumns : uint8_t { kRefused, kCounts };
// Whether an output batch has this many columns (or, where it counts, none) and room for a row. *Errors*:
// InvalidArgument.
absl::Status CheckOutput(const OutputBatch& out, size_t num_columns, NoColumns no_columns = NoColumns::kCounts);

// What a kernel's negative answer (QuernCode) says.
absl::Status StatusOfCode(int64_t code);

}  // namespace quern

#endif  // QUERN_RUNTIME_ROWS_BATCH_VIEW_H_
