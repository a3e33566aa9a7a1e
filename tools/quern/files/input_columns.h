// SPDX-License-Identifier: Apache-2.0
// The columns of one input of a command: found by their names, cast, and collected as its kernel reads them.
#ifndef QUERN_TOOLS_FILES_INPUT_COLUMNS_H_
#define QUERN_TOOLS_FILES_INPUT_COLUMNS_H_

#include <arrow/type_fwd.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/spec/column_type.h"
#include "tools/frontend/column_names.h"

namespace quern::cli {

// "column k of PROBE". `what` is the argument that named the input, here and below.
std::string ColumnText(const std::string& what, const std::string& name);

// Finds a column that must occur in the input exactly once.
absl::Status CheckColumn(const std::vector<std::string>& names, const std::string& what, const std::string& name);

// "" is binary.
absl::StatusOr<Collation> CollationByName(const std::string& name);

// Only strings have collations other than binary. `column` and `arrow` are the column's text and its type in the file,
// for errors.
absl::Status SetCollation(Collation collation, const std::string& column, const arrow::DataType& arrow,
                          ColumnType* type);

// Whether a null was read, in the column or in its dictionary.
bool HasNulls(const arrow::ChunkedArray& column);

// *Errors*: a value that the type does not hold; `text` names the column.
absl::StatusOr<std::shared_ptr<arrow::ChunkedArray>> CastColumn(std::shared_ptr<arrow::ChunkedArray> column,
                                                                const std::shared_ptr<arrow::DataType>& type,
                                                                const std::string& text);

// A column as the kernel reads it.
struct ReadColumn {
  int place;                               // in the kernel's table
  ColumnType type;                         // nullable where nulls were read
  std::shared_ptr<arrow::DataType> arrow;  // of the column there
};

// Collects the columns that a kernel reads from one input; for a column that it has already it returns the same
// position.
class InputColumns {
 public:
  InputColumns(std::string what, std::shared_ptr<arrow::Table> table);
  ~InputColumns();

  std::string Text(const std::string& name) const { return ColumnText(what_, name); }
  std::shared_ptr<arrow::ChunkedArray> Find(const std::string& name) const;

  // The position of the column with that type.
  absl::StatusOr<int> Add(const std::string& name, const std::shared_ptr<arrow::DataType>& type);
  // The position of the column with its own type, or with `without_values` if it has none (type null). *Errors*: types
  // that no kernel reads, unknown collations, and collations on a column that is not text.
  absl::StatusOr<ReadColumn> Add(const KeyText& column, const std::shared_ptr<arrow::DataType>& without_values);

  int size() const { return static_cast<int>(fields_.size()); }
  std::shared_ptr<arrow::Table> Finish() const;

 private:
  int Append(const std::string& name, std::shared_ptr<arrow::ChunkedArray> column);

  std::string what_;
  std::shared_ptr<arrow::Table> table_;
  std::vector<std::shared_ptr<arrow::Field>> fields_;
  std::vector<std::shared_ptr<arrow::ChunkedArray>> columns_;
};

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FILES_INPUT_COLUMNS_H_
