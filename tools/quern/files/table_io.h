// SPDX-License-Identifier: Apache-2.0
// Files to tables and tables to files: .parquet, .csv, .arrow, through Arrow C++.
#ifndef QUERN_TOOLS_FILES_TABLE_IO_H_
#define QUERN_TOOLS_FILES_TABLE_IO_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace arrow {
class ChunkedArray;
class DataType;
class Status;
class Table;
}  // namespace arrow

namespace quern::cli {

enum class FileFormat : uint8_t { kParquet, kCsv, kArrow };

// Chosen by the extension. *Errors*: InvalidArgument that names `what` (the argument), the file and the extensions.
absl::StatusOr<FileFormat> FormatOfFile(std::string_view what, const std::string& path);

// One input of a command: one file, or all files that match a pattern, sorted by name.
class TableInput {
 public:
  // Finds the files and reads the names of the columns. `what` names the argument in errors ("PROBE").
  // *Errors*: no such file, unknown extension, a file that cannot be read, files whose columns differ.
  static absl::StatusOr<TableInput> Open(const std::string& what, const std::string& pattern);

  const std::string& what() const { return what_; }
  const std::vector<std::string>& column_names() const { return column_names_; }
  const std::vector<std::string>& files() const { return files_; }
  FileFormat format() const { return format_; }

  // Reads the named columns, and nothing else of Parquet and Arrow files, in that order. CSV columns get their types
  // from their values.
  absl::StatusOr<std::shared_ptr<arrow::Table>> Read(const std::vector<std::string>& columns) const;

 private:
  TableInput() = default;
  std::string what_;
  FileFormat format_ = FileFormat::kParquet;
  std::vector<std::string> files_;
  std::vector<std::string> column_names_;
};

// Must be called once before everything else: sets the number of threads that read files and registers Arrow's casts.
absl::Status StartArrow(uint32_t threads);

// Columns of several files: of one type, or null (a CSV file without values) beside it.
absl::Status CheckSameType(const std::string& column, const arrow::DataType& first, const std::string& first_path,
                           const arrow::DataType& other, const std::string& other_path);

// What is read is checked before a kernel reads it. *Errors*: offsets, lengths and indices that are wrong.
absl::Status CheckColumnValues(const arrow::ChunkedArray& column, const std::string& name, FileFormat format,
                               const std::string& path);

// "cannot read file: PATH".
std::string CannotRead(const std::string& path);

// The version of Arrow C++ that runs.
std::string ArrowVersion();

// The number of the system's error behind an Arrow error; 0: there is none.
int ErrnoOf(const arrow::Status& status);

// An Arrow error as a DataError: "<what>: <value>; <Arrow's text>".
absl::Status FromArrow(const arrow::Status& status, const std::string& what);

#define QUERN_ASSIGN_OR_RETURN_ARROW(lhs, expression, what) \
  QUERN_ASSIGN_OR_RETURN_ARROW_(QUERN_CONCAT_(quern_arrow_status, __LINE__), lhs, expression, what)
#define QUERN_ASSIGN_OR_RETURN_ARROW_(temporary, lhs, expression, what)        \
  auto temporary = (expression);                                               \
  if (!temporary.ok()) return quern::cli::FromArrow(temporary.status(), what); \
  lhs = std::move(temporary).ValueUnsafe()

#define QUERN_RETURN_IF_ARROW_ERROR(expression, what)                              \
  do {                                                                             \
    if (arrow::Status quern_arrow_status = (expression); !quern_arrow_status.ok()) \
      return quern::cli::FromArrow(quern_arrow_status, what);                      \
  } while (false)

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FILES_TABLE_IO_H_
