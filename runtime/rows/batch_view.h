// SPDX-License-Identifier: Apache-2.0
// Batches in the form that all operators accept, and the checks that each operator makes on an incoming batch, an
// output batch and the code that a kernel returns.
#ifndef QUERN_RUNTIME_ROWS_BATCH_VIEW_H_
#define QUERN_RUNTIME_ROWS_BATCH_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "runtime/abi/kernel_abi.h"
#include "runtime/spec/column_type.h"

namespace quern {

class OutputBatch;

// Row ids continue from the previous batch.
constexpr uint64_t kCountedRowIds = UINT64_MAX;

// The rows of columns up to the last selected one. selection: row numbers in any order; null: all.
uint64_t RowSpan(const uint32_t* selection, uint64_t num_rows);

// The columns of one batch as kernels see them, with the owner of their memory.
struct BatchView {
  std::vector<QuernColumn> keys;
  std::vector<QuernColumn>
      payload;  // joins: followed by the columns of the residual predicate; aggregations: the aggregates' columns
  const uint32_t* selection = nullptr;     // rows that take part, in order; nullptr: all
  uint64_t num_rows = 0;                   // selected rows
  uint64_t num_following = 0;              // rows of the columns behind these that are read next: worth a prefetch
  uint64_t first_row_id = kCountedRowIds;  // the row id of the batch's row 0
  std::shared_ptr<const void>
      owner;  // kept until the last reader of the columns is gone; may be null if the caller keeps the memory
  bool owns_strings = false;  // the owner keeps the bytes of all strings, and the caller need not
};

// The column without its first rows.
QuernColumn ColumnFrom(uint64_t first_row, const ColumnType& type, QuernColumn column);

// Rows first_row .. first_row+num_rows-1 of a batch (of its selection) as a batch, with the same owner; nothing is
// copied. The keys and the payload have these types.
BatchView SliceOf(const BatchView& batch, const std::vector<ColumnType>& keys, const std::vector<ColumnType>& payload,
                  uint64_t first_row, uint64_t num_rows);

// The rows of an output batch as a batch whose columns are all `keys`; valid until the output batch changes.
BatchView ViewOf(const OutputBatch& rows);

// Checks that row numbers of the batch fit their type, and that it has as many columns as a kernel reads, whatever the
// batch holds. payload_name: what messages call the columns of `payload`. *Errors*: InvalidArgument.
absl::Status CheckBatch(const BatchView& batch, size_t num_keys, size_t num_payload,
                        const char* payload_name = "payload columns");

enum class NoColumns : uint8_t { kRefused, kCounts };
// Checks that an output batch has this many columns (or none, where the operator then counts) and room for a row.
// *Errors*: InvalidArgument.
absl::Status CheckOutput(const OutputBatch& out, size_t num_columns, NoColumns no_columns = NoColumns::kCounts);

// The status for a kernel's negative return value (QuernCode).
absl::Status StatusOfCode(int64_t code);

}  // namespace quern

#endif  // QUERN_RUNTIME_ROWS_BATCH_VIEW_H_
