// SPDX-License-Identifier: Apache-2.0
// Prefetches the columns of selected rows. Rows that lie far apart, as a selective filter or join leaves them of a
// large batch, are *sparse*: each has a cache line of its own in each column, which no hardware prefetcher foresees.
//
//     rows 3, 70, 131, 180 ..     column of 8 bytes     lines 0, 8, 16, 22 ..    all asked for before the first is read
//
// A loop that reads such a column waits for as many lines at a time as its rows fit the processor's window: about ten.
// Asked for beforehand, as many are on their way as the processor has buffers for, twice to three times as many.
//
// Rows that lie closer together touch nearly every line, one after the other. The processor's own prefetchers begin
// anew in each block of them, so that the lines of later rows are asked for, input_rows ahead.
#ifndef QUERN_RUNTIME_ROWS_SELECTED_ROWS_H_
#define QUERN_RUNTIME_ROWS_SELECTED_ROWS_H_

#include <cstdint>

#include "runtime/abi/kernel_abi.h"
#include "runtime/spec/column_type.h"

namespace quern {

// Bytes from a row's value to the next one's in a column; of strings with offsets, from one offset to the next; 0:
// bits, and row ids, which lie in no column.
uint32_t ColumnRowBytes(const QuernField& field);
uint32_t ColumnRowBytes(const ColumnType& type);

class SelectedRows {
 public:
  // The rows of a block of n; rows: null where all rows of the columns take part. distance: of sparse rows, on average
  // (PrefetchDistances::sparse_rows). input_rows: how far ahead other rows are prefetched. *Units*: rows; 0: not at
  // all.
  SelectedRows(uint32_t distance, const uint32_t* rows, uint32_t n, uint32_t input_rows = 0)
      : rows_(rows), n_(n), input_rows_(rows == nullptr || n == 0 ? 0 : input_rows) {
    if (rows == nullptr || n == 0 || distance == 0) return;
    // Rows that do not ascend are those of a join, and as sparse as its first and last one.
    const uint32_t first = rows[0], last = rows[n - 1];
    is_sparse_ = uint64_t{last > first ? last - first : first - last} + 1 >= uint64_t{distance} * n;
  }

  bool is_sparse() const { return is_sparse_; }
  // Prefetches lines of a column with so many bytes a row.
  void Prefetch(const QuernColumn& column, uint32_t row_bytes) const;
  // The same for a column of each of these fields.
  void Prefetch(const QuernField* fields, uint32_t num_fields, const QuernColumn* columns) const {
    for (uint32_t f = 0; f < num_fields && prefetches(); ++f) Prefetch(columns[f], ColumnRowBytes(fields[f]));
  }

 private:
  bool prefetches() const { return is_sparse_ || input_rows_ != 0; }

  const uint32_t* const rows_;
  const uint32_t n_, input_rows_;
  bool is_sparse_ = false;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_ROWS_SELECTED_ROWS_H_
