// SPDX-License-Identifier: Apache-2.0
// Arrow columns that several owners share: batches that came in from a producer, parts of them, and batches that go out
// again.
#ifndef QUERN_HOSTS_PYTHON_SRC_ARROW_COLUMNS_H_
#define QUERN_HOSTS_PYTHON_SRC_ARROW_COLUMNS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/abi/arrow_abi.h"
#include "runtime/spec/column_type.h"

namespace quern::python {

// A column of a schema. Nested types have no children here: nothing reads them.
struct Field {
  std::string name;
  std::string format;
  std::string dictionary;  // format of the values where `format` is that of indices; else empty
  bool nullable = true;    // a producer may say so of a column without nulls
  bool ordered = false;    // the dictionary's values
};

// One column of one batch. The array has no release: its buffers live as long as `owner`.
struct Column {
  ArrowArray array = {};
  std::shared_ptr<const void> owner;
};

struct Batch {
  int64_t num_rows = 0;
  std::vector<Column> columns;
};

// *Errors*: std::invalid_argument where a text of the Arrow C data interface is missing or too long.
Field FieldOf(const ArrowSchema& schema);
// The columns of a struct schema of a producer. `what` names the argument that gave it. *Errors*: std::invalid_argument
// for a schema that was released, is no struct or lacks a part.
std::vector<Field> FieldsOf(const ArrowSchema& schema, const std::string& what);
// A struct schema. *Ownership*: the caller releases it.
void ExportSchema(const std::vector<Field>& fields, ArrowSchema* schema);

// The types by which kernels read these columns; nullopt: none does.
std::vector<std::optional<ColumnType>> TypesOf(const std::vector<Field>& fields);

// A struct array of a producer without nulls, which is moved. `types`: those of its columns, as of TypesOf. *Cost*:
// O(columns); rows are checked when an operator reads them. *Errors*: std::invalid_argument where it is no struct of
// these columns, or where one of them lacks a part (CheckArrowArray).
Batch ImportBatch(ArrowArray* array, const std::vector<std::optional<ColumnType>>& types);
// The same for an array of the library. A struct array without nulls, which is moved. *Errors*: std::invalid_argument
// where it is no struct of that many columns.
Batch ImportBatch(ArrowArray* array, size_t num_columns);
// A struct array that shares the buffers. *Ownership*: the caller releases it.
void ExportBatch(const Batch& batch, ArrowArray* array);

// Rows first, first + 1, .. of a column or batch; buffers are shared.
Column SliceColumn(const Column& column, int64_t first, int64_t num_rows);
Batch SliceBatch(const Batch& batch, int64_t first, int64_t num_rows);

// Whether a row is null, itself or as the dictionary's value is. *Cost*: rows / 8 bytes where the producer has not
// counted.
bool HasNulls(const Column& column);

}  // namespace quern::python

#endif  // QUERN_HOSTS_PYTHON_SRC_ARROW_COLUMNS_H_
