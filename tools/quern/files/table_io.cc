// SPDX-License-Identifier: Apache-2.0
// Each file is read twice: first for the names of its columns (the footer of Parquet and Arrow files, the first row
// of CSV), so that a command can find its columns and fail before any work; then for the columns that it needs, and
// only those. For `join --on a=b --select c` over a Parquet file of 16 columns, 2 are read.
//
// What readers take is counted by the run's budget while they read (reading_memory.h).
//
// Nothing in a file is believed. No reader allocates more for a part of a file than the file has bytes
// (bounded_file.h), and what readers return is checked before a kernel reads it: Arrow's readers take lengths, offsets
// and indices from the file as they are, and a kernel that followed an offset of 3,000 into a text of 3 bytes would
// write other memory of the process into the result.
#include "tools/quern/files/table_io.h"

#include <arrow/api.h>
#include <arrow/compute/api.h>
#include <arrow/io/api.h>
#include <arrow/util/config.h>
#include <arrow/util/io_util.h>
#include <arrow/util/thread_pool.h>
#include <glob.h>
#include <parquet/arrow/reader.h>
#include <parquet/file_reader.h>
#include <parquet/schema.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <utility>

#include "runtime/base/shared_work.h"
#include "runtime/base/status.h"
#include "tools/frontend/column_names.h"
#include "tools/frontend/errors.h"
#include "tools/quern/files/bounded_file.h"
#include "tools/quern/files/input_columns.h"
#include "tools/quern/files/read_arrow.h"
#include "tools/quern/files/read_csv.h"
#include "tools/quern/files/reading_memory.h"

namespace quern::cli {
namespace {

constexpr char kLimitExceeded[] = "memory limit exceeded: ";           // the budget's message
constexpr const char* kExtensions[] = {".parquet", ".csv", ".arrow"};  // in the order of FileFormat

using SchemaPointer = std::shared_ptr<arrow::Schema>;
using TablePointer = std::shared_ptr<arrow::Table>;

absl::StatusOr<std::vector<std::string>> FindFiles(const std::string& what, const std::string& pattern) {
  struct stat status;
  if (stat(pattern.c_str(), &status) == 0) {
    if (S_ISREG(status.st_mode)) return std::vector<std::string>{pattern};
    if (!S_ISDIR(status.st_mode))
      return DataError(what + " is a pipe or a device: " + pattern + "; accepted: a file, which is read twice");
    return DataError(what + " is a folder: " + pattern + "; accepted: a file or a pattern, as '" + pattern +
                     "/*.parquet'");
  }
  glob_t found = {};
  std::vector<std::string> files;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  std::sort(files.begin(), files.end());
  if (files.empty())
    return DataError("no such file for " + what + ": " + pattern +
                     "; accepted: a file, or a pattern that matches some");
  return files;
}

// Parquet

absl::StatusOr<std::unique_ptr<parquet::arrow::FileReader>> OpenParquet(const std::string& path) {
  QUERN_ASSIGN_OR_RETURN_ARROW(const auto file, BoundedFile::Open(path), CannotRead(path));
  parquet::arrow::FileReaderBuilder builder;
  QUERN_RETURN_IF_ARROW_ERROR(builder.Open(file, parquet::ReaderProperties(ReadingPool())), CannotRead(path));
  parquet::ArrowReaderProperties properties(/*use_threads=*/true);
  properties.set_pre_buffer(true);
  properties.set_smallest_decimal_enabled(true);
  properties.set_io_context(arrow::io::IOContext(ReadingPool()));
  std::unique_ptr<parquet::arrow::FileReader> reader;
  QUERN_RETURN_IF_ARROW_ERROR(builder.memory_pool(ReadingPool())->properties(properties)->Build(&reader),
                              CannotRead(path));
  return reader;
}

// A Parquet file is read by leaves; a column of nested type has several.
absl::StatusOr<TablePointer> ReadParquet(const std::string& path, const std::vector<std::string>& columns) {
  QUERN_ASSIGN_OR_RETURN(const auto reader, OpenParquet(path));
  const parquet::SchemaDescriptor& schema = *reader->parquet_reader()->metadata()->schema();
  std::vector<int> leaves;
  for (int leaf = 0; leaf < schema.num_columns(); ++leaf) {
    const std::string& root = schema.GetColumnRoot(leaf)->name();
    if (std::find(columns.begin(), columns.end(), root) != columns.end()) leaves.push_back(leaf);
  }
  QUERN_ASSIGN_OR_RETURN_ARROW(TablePointer table, reader->ReadTable(leaves), CannotRead(path));
  return table;
}

absl::StatusOr<SchemaPointer> ParquetSchema(const std::string& path) {
  QUERN_ASSIGN_OR_RETURN(const auto reader, OpenParquet(path));
  SchemaPointer schema;
  QUERN_RETURN_IF_ARROW_ERROR(reader->GetSchema(&schema), CannotRead(path));
  return schema;
}

// All formats

absl::StatusOr<std::vector<std::string>> NamesOf(const std::string& path, FileFormat format) {
  if (format == FileFormat::kCsv) {
    QUERN_ASSIGN_OR_RETURN(CsvHeader header, ReadCsvHeader(path));
    return std::move(header.names);
  }
  QUERN_ASSIGN_OR_RETURN(const SchemaPointer schema,
                         format == FileFormat::kParquet ? ParquetSchema(path) : ArrowSchemaOf(path));
  return schema->field_names();
}

absl::Status CheckTable(const arrow::Table& table, FileFormat format, const std::string& path) {
  for (int i = 0; i < table.num_columns(); ++i)
    QUERN_RETURN_IF_ERROR(CheckColumnValues(*table.column(i), table.field(i)->name(), format, path));
  QUERN_RETURN_IF_ARROW_ERROR(table.Validate(), "damaged file: " + path);
  return absl::OkStatus();
}

absl::StatusOr<TablePointer> ReadOne(const std::string& path, FileFormat format,
                                     const std::vector<std::string>& columns) {
  absl::StatusOr<TablePointer> table = Internal("unknown file format: " + path);
  switch (format) {
    case FileFormat::kParquet: table = ReadParquet(path, columns); break;
    case FileFormat::kCsv: table = ReadCsv(path, columns); break;
    case FileFormat::kArrow: table = ReadArrow(path, columns); break;
  }
  if (!table.ok()) return table;
  QUERN_RETURN_IF_ARROW_ERROR(CountOtherMemory(), CannotRead(path));
  QUERN_RETURN_IF_ERROR(CheckTable(**table, format, path));
  std::vector<int> order;
  for (const std::string& column : columns) order.push_back((*table)->schema()->GetFieldIndex(column));
  QUERN_ASSIGN_OR_RETURN_ARROW(TablePointer ordered, (*table)->SelectColumns(order), CannotRead(path));
  // Arrow's ReplaceSchemaMetadata forgets the number of rows of a table without columns.
  return arrow::Table::Make(ordered->schema()->RemoveMetadata(), ordered->columns(), ordered->num_rows());
}

// Tables without columns as one; ConcatenateTables does not count their rows.
TablePointer RowsOfAll(const std::vector<TablePointer>& tables) {
  int64_t num_rows = 0;
  for (const TablePointer& table : tables) num_rows += table->num_rows();
  return arrow::Table::Make(tables[0]->schema(), arrow::ChunkedArrayVector(), num_rows);
}

absl::Status CheckSameTypes(const arrow::Schema& first, const std::string& first_path, const arrow::Schema& other,
                            const std::string& other_path) {
  for (int i = 0; i < first.num_fields(); ++i) {
    QUERN_RETURN_IF_ERROR(CheckSameType(first.field(i)->name(), *first.field(i)->type(), first_path,
                                        *other.field(i)->type(), other_path));
  }
  return absl::OkStatus();
}

absl::Status CheckSameNames(const std::vector<std::string>& first, const std::string& first_path,
                            const std::vector<std::string>& other, const std::string& other_path) {
  if (first == other) return absl::OkStatus();
  const auto [expected, found] = std::mismatch(first.begin(), first.end(), other.begin(), other.end());
  return DataError("files of one input differ in column " + std::to_string(expected - first.begin() + 1) + ": " +
                   (found == other.end() ? "none" : QuoteName(*found)) + " in " + other_path + "; accepted: " +
                   (expected == first.end() ? "none" : QuoteName(*expected)) + ", as in " + first_path);
}

}  // namespace

absl::StatusOr<FileFormat> FormatOfFile(std::string_view what, const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  for (size_t i = 0; i < std::size(kExtensions); ++i) {
    if (extension == kExtensions[i]) return static_cast<FileFormat>(i);
  }
  return CommandError("unknown file extension of " + std::string(what) + ": " + path +
                      "; accepted: .parquet, .csv, .arrow");
}

absl::StatusOr<TableInput> TableInput::Open(const std::string& what, const std::string& pattern) {
  TableInput input;
  input.what_ = what;
  QUERN_ASSIGN_OR_RETURN(input.format_, FormatOfFile(what, pattern));
  QUERN_ASSIGN_OR_RETURN(input.files_, FindFiles(what, pattern));
  for (const std::string& file : input.files_) {
    QUERN_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesOf(file, input.format_));
    if (file == input.files_[0]) input.column_names_ = names;
    QUERN_RETURN_IF_ERROR(CheckSameNames(input.column_names_, input.files_[0], names, file));
  }
  return input;
}

absl::StatusOr<TablePointer> TableInput::Read(const std::vector<std::string>& columns) const {
  std::vector<TablePointer> tables;
  for (const std::string& file : files_) {
    QUERN_ASSIGN_OR_RETURN(TablePointer table, ReadOne(file, format_, columns));
    tables.push_back(std::move(table));
    QUERN_RETURN_IF_ERROR(CheckSameTypes(*tables[0]->schema(), files_[0], *tables.back()->schema(), file));
  }
  if (tables.size() == 1) return tables[0];
  if (tables[0]->num_columns() == 0) return RowsOfAll(tables);
  arrow::ConcatenateTablesOptions options;
  options.unify_schemas = true;  // null beside another type, not null beside nullable
  QUERN_ASSIGN_OR_RETURN_ARROW(TablePointer table, arrow::ConcatenateTables(tables, options, ReadingPool()),
                               "cannot put together the files of: " + what_);
  return table;
}

absl::Status CheckSameType(const std::string& column, const arrow::DataType& first, const std::string& first_path,
                           const arrow::DataType& other, const std::string& other_path) {
  if (first.Equals(other) || first.id() == arrow::Type::NA || other.id() == arrow::Type::NA) return absl::OkStatus();
  return DataError("files of one input differ in column " + QuoteName(column) + ": " + other.ToString() + " in " +
                   other_path + "; accepted: " + first.ToString() + ", as in " + first_path);
}

// Arrow files are in memory as they are on disk, so all their bytes are checked, by all threads. Columns of the other
// formats are made by their readers from values, whose lengths and indices they check.
absl::Status CheckColumnValues(const arrow::ChunkedArray& column, const std::string& name, FileFormat format,
                               const std::string& path) {
  const std::string damaged = "damaged file: " + ColumnText(path, name);
  QUERN_RETURN_IF_ARROW_ERROR(column.Validate(), damaged);
  if (format != FileFormat::kArrow) return absl::OkStatus();
  const auto threads = static_cast<uint32_t>(std::max(arrow::GetCpuThreadPoolCapacity(), 1));
  return RunMorsels(threads, static_cast<uint64_t>(column.num_chunks()), [&](uint32_t, uint64_t i) -> absl::Status {
    QUERN_RETURN_IF_ARROW_ERROR(column.chunk(static_cast<int>(i))->ValidateFull(), damaged);
    return absl::OkStatus();
  });
}

absl::Status StartArrow(uint32_t threads) {
  QUERN_RETURN_IF_ARROW_ERROR(arrow::compute::Initialize(), "cannot start Arrow: " + ArrowVersion());
  QUERN_RETURN_IF_ARROW_ERROR(arrow::SetCpuThreadPoolCapacity(static_cast<int>(threads)),
                              "cannot start threads: " + std::to_string(threads));
  return absl::OkStatus();
}

std::string CannotRead(const std::string& path) { return "cannot read file: " + path; }

std::string ArrowVersion() { return arrow::GetBuildInfo().version_string; }

int ErrnoOf(const arrow::Status& status) { return arrow::internal::ErrnoFromStatus(status); }

absl::Status FromArrow(const arrow::Status& status, const std::string& what) {
  const std::string message = OneLine(status.message());
  const size_t refused = message.find(kLimitExceeded);  // by the reading pool; readers put texts of their own around it
  if (refused != std::string::npos) return absl::ResourceExhaustedError(message.substr(refused));
  const int number = ErrnoOf(status);
  const std::string text = what + "; " + (number != 0 ? OneLine(std::strerror(number)) : message);
  return status.IsOutOfMemory() ? absl::ResourceExhaustedError(text) : DataError(text);
}

}  // namespace quern::cli
