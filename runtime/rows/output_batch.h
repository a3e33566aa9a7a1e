// SPDX-License-Identifier: Apache-2.0
// The batch into which kernels write result columns.
#ifndef QUERN_RUNTIME_ROWS_OUTPUT_BATCH_H_
#define QUERN_RUNTIME_ROWS_OUTPUT_BATCH_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "runtime/abi/arrow_abi.h"
#include "runtime/abi/kernel_abi.h"
#include "runtime/base/memory.h"
#include "runtime/spec/column_type.h"

namespace quern {

// The offsets of a column of strings as its readers need them: one without rows has no memory where that was refused,
// and has its one offset all the same. They live as long as the column's buffers.
const void* OffsetsOf(const QuernOutColumn& column);

// The buffers of one batch of result rows. They are reused from call to call unless they were exported.
// *Nulls*: a column has a validity bitmap if and only if its type is nullable. *Threads*: one.
class OutputBatch {
 public:
  // Types as in the spec; dictionary types are output decoded, as their value type.
  // capacity_rows: at most 2^31 - 1.
  OutputBatch(std::vector<ColumnType> types, uint64_t capacity_rows, std::shared_ptr<MemoryBudget> budget);
  ~OutputBatch();

  // Allocates (or zeroes) the buffers for a new batch. *Errors*: ResourceExhausted.
  absl::Status Reset();
  // From now on batches that are refused memory have fewer rows, but no less than these where there were more.
  void SetFewestRows(uint64_t rows) { fewest_rows_ = rows; }

  // From the next batch on, one has no more rows than those whose strings, column by column, take so many bytes; but it
  // has one. 0: as many as there is memory for.
  void SetMostStringBytes(uint64_t bytes) { most_string_bytes_ = bytes; }

  uint64_t capacity() const { return capacity_rows_; }
  uint64_t num_rows() const { return num_rows_; }
  void set_num_rows(uint64_t rows) { num_rows_ = rows; }
  size_t num_columns() const { return types_.size(); }
  const ColumnType& type(size_t column) const { return types_[column]; }
  QuernOutColumn* columns() { return columns_.data(); }
  const QuernOutColumn& column(size_t i) const { return columns_[i]; }

  // Moves the rows out as an Arrow struct array, one child per column, whose release callback frees the buffers; the
  // batch is then empty. *Ownership*: the caller releases `out`. *Cost*: no row is copied.
  void ExportArrow(ArrowArray* out);

 private:
  struct Buffers;
  absl::Status StartBatch();

  std::vector<ColumnType> types_;
  uint64_t capacity_rows_;
  uint64_t fewest_rows_ = UINT64_MAX;  // to which a refusal may lower capacity_rows_
  uint64_t most_string_bytes_ = 0;
  uint64_t num_rows_ = 0;
  std::shared_ptr<MemoryBudget> budget_;
  std::vector<QuernOutColumn> columns_;
  std::vector<std::unique_ptr<Buffers>> buffers_;
  std::vector<uint64_t>
      exported_bytes_;  // string bytes of the last exported batch, by column: a guess for the next batch
};

}  // namespace quern

#endif  // QUERN_RUNTIME_ROWS_OUTPUT_BATCH_H_
