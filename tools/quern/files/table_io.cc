// SPDX-License-Identifier: Apache-2.0
// Each file is read twice: first for the names of its columns (the footer of Parquet and Arrow files, the first block
// of CSV), so that a command can find its columns and fail before any work; then for the columns that it needs, and
// only those. For `join --on a=b --select c` over a Parquet file of 16 columns, 2 are read.
//
// CSV follows DuckDB where readers disagree: an empty field is null, "" in quotes is an empty string, a header row is
// required, types come from the values. A column of a CSV file without values has type null; it takes the type of the
// same column in another file.
//
// What readers take is counted by the run's budget while they read (reading_memory.h).
//
// Output is written to ".NAME.PID.tmp" in the folder of the result and renamed by rename(2), which POSIX makes atomic:
// a reader of the result sees the old file or all of the new one.
#include "tools/quern/files/table_io.h"

#include <arrow/api.h>
#include <arrow/compute/api.h>
#include <arrow/csv/api.h>
#include <arrow/io/api.h>
#include <arrow/ipc/api.h>
#include <arrow/util/config.h>
#include <arrow/util/thread_pool.h>
#include <fcntl.h>
#include <glob.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/writer.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/schema.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <utility>

#include "runtime/base/status.h"
#include "tools/frontend/column_names.h"
#include "tools/frontend/errors.h"
#include "tools/quern/files/reading_memory.h"

namespace quern::cli {
namespace {

constexpr char kLimitExceeded[] = "memory limit exceeded: ";           // the budget's message
constexpr const char* kExtensions[] = {".parquet", ".csv", ".arrow"};  // in the order of FileFormat

using SchemaPointer = std::shared_ptr<arrow::Schema>;
using TablePointer = std::shared_ptr<arrow::Table>;
using FilePointer = std::shared_ptr<arrow::io::ReadableFile>;

absl::StatusOr<std::vector<std::string>> FindFiles(const std::string& what, const std::string& pattern) {
  struct stat status;
  if (stat(pattern.c_str(), &status) == 0) {
    if (!S_ISDIR(status.st_mode)) return std::vector<std::string>{pattern};
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

absl::StatusOr<std::unique_ptr<parquet::arrow::FileReader>> OpenParquet(const FilePointer& file,
                                                                        const std::string& what) {
  parquet::arrow::FileReaderBuilder builder;
  QUERN_RETURN_IF_ARROW_ERROR(builder.Open(file, parquet::ReaderProperties(ReadingPool())), what);
  parquet::ArrowReaderProperties properties(/*use_threads=*/true);
  properties.set_pre_buffer(true);
  properties.set_io_context(arrow::io::IOContext(ReadingPool()));
  std::unique_ptr<parquet::arrow::FileReader> reader;
  QUERN_RETURN_IF_ARROW_ERROR(builder.memory_pool(ReadingPool())->properties(properties)->Build(&reader), what);
  return reader;
}

// A Parquet file is read by leaves; a column of nested type has several.
absl::StatusOr<TablePointer> ReadParquet(const FilePointer& file, const std::vector<std::string>& columns,
                                         const std::string& what) {
  QUERN_ASSIGN_OR_RETURN(const auto reader, OpenParquet(file, what));
  const parquet::SchemaDescriptor& schema = *reader->parquet_reader()->metadata()->schema();
  std::vector<int> leaves;
  for (int leaf = 0; leaf < schema.num_columns(); ++leaf) {
    const std::string& root = schema.GetColumnRoot(leaf)->name();
    if (std::find(columns.begin(), columns.end(), root) != columns.end()) leaves.push_back(leaf);
  }
  QUERN_ASSIGN_OR_RETURN_ARROW(TablePointer table, reader->ReadTable(leaves), what);
  return table;
}

absl::StatusOr<SchemaPointer> ParquetSchema(const FilePointer& file, const std::string& what) {
  QUERN_ASSIGN_OR_RETURN(const auto reader, OpenParquet(file, what));
  SchemaPointer schema;
  QUERN_RETURN_IF_ARROW_ERROR(reader->GetSchema(&schema), what);
  return schema;
}

// CSV

arrow::csv::ConvertOptions CsvOptions() {
  arrow::csv::ConvertOptions options = arrow::csv::ConvertOptions::Defaults();
  options.null_values = {""};
  options.strings_can_be_null = true;
  options.quoted_strings_can_be_null = false;
  return options;
}

arrow::csv::ParseOptions CsvParseOptions() {
  arrow::csv::ParseOptions options = arrow::csv::ParseOptions::Defaults();
  options.newlines_in_values = true;
  return options;
}

absl::StatusOr<SchemaPointer> CsvSchema(const FilePointer& file, const std::string& what) {
  QUERN_ASSIGN_OR_RETURN_ARROW(
      const auto reader,
      arrow::csv::StreamingReader::Make(arrow::io::default_io_context(), file, arrow::csv::ReadOptions::Defaults(),
                                        CsvParseOptions(), CsvOptions()),
      what);
  return reader->schema();
}

// Arrow's CSV reader ends the process where a pool refuses memory for a parsed block. So it takes the default pool, and
// the file refuses the next block of 1 MiB once what that pool holds is over the budget.
absl::StatusOr<TablePointer> ReadCsv(const FilePointer& file, const std::vector<std::string>& columns,
                                     const std::string& what) {
  arrow::csv::ConvertOptions convert = CsvOptions();
  convert.include_columns = columns;
  QUERN_ASSIGN_OR_RETURN_ARROW(
      const auto reader,
      arrow::csv::TableReader::Make(arrow::io::default_io_context(), CountedFile(file),
                                    arrow::csv::ReadOptions::Defaults(), CsvParseOptions(), convert),
      what);
  QUERN_ASSIGN_OR_RETURN_ARROW(TablePointer table, reader->Read(), what);
  return table;
}

// Arrow IPC: the file format begins with its magic word, the stream format does not.

absl::StatusOr<bool> IsIpcFile(const FilePointer& file, const std::string& what) {
  constexpr std::string_view kMagic = "ARROW1";
  QUERN_ASSIGN_OR_RETURN_ARROW(const auto head, file->ReadAt(0, static_cast<int64_t>(kMagic.size())), what);
  QUERN_RETURN_IF_ARROW_ERROR(file->Seek(0), what);  // stream readers begin at the current position
  return head->ToString() == kMagic;
}

arrow::ipc::IpcReadOptions IpcOptions() {
  arrow::ipc::IpcReadOptions options = arrow::ipc::IpcReadOptions::Defaults();
  options.memory_pool = ReadingPool();
  return options;
}

absl::StatusOr<SchemaPointer> ArrowSchemaOf(const FilePointer& file, const std::string& what) {
  QUERN_ASSIGN_OR_RETURN(const bool is_file, IsIpcFile(file, what));
  if (is_file) {
    QUERN_ASSIGN_OR_RETURN_ARROW(const auto reader, arrow::ipc::RecordBatchFileReader::Open(file, IpcOptions()), what);
    return reader->schema();
  }
  QUERN_ASSIGN_OR_RETURN_ARROW(const auto reader, arrow::ipc::RecordBatchStreamReader::Open(file, IpcOptions()), what);
  return reader->schema();
}

absl::StatusOr<TablePointer> ReadArrow(const FilePointer& file, const std::vector<std::string>& columns,
                                       const std::string& what) {
  QUERN_ASSIGN_OR_RETURN(const SchemaPointer schema, ArrowSchemaOf(file, what));
  arrow::ipc::IpcReadOptions options = IpcOptions();
  for (int i = 0; i < schema->num_fields(); ++i) {
    if (std::find(columns.begin(), columns.end(), schema->field(i)->name()) != columns.end())
      options.included_fields.push_back(i);
  }
  QUERN_ASSIGN_OR_RETURN(const bool is_file, IsIpcFile(file, what));
  if (is_file) {
    QUERN_ASSIGN_OR_RETURN_ARROW(const auto reader, arrow::ipc::RecordBatchFileReader::Open(CountedFile(file), options),
                                 what);
    QUERN_ASSIGN_OR_RETURN_ARROW(TablePointer table, reader->ToTable(), what);
    return table;
  }
  QUERN_ASSIGN_OR_RETURN_ARROW(const auto reader, arrow::ipc::RecordBatchStreamReader::Open(file, options), what);
  QUERN_ASSIGN_OR_RETURN_ARROW(TablePointer table, reader->ToTable(), what);
  return table;
}

// All formats

std::string CannotRead(const std::string& path) { return "cannot read file: " + path; }

// Of CSV files blocks too come from Arrow's default pool (ReadCsv).
absl::StatusOr<FilePointer> OpenFile(const std::string& path, FileFormat format) {
  arrow::MemoryPool* const pool = format == FileFormat::kCsv ? arrow::default_memory_pool() : ReadingPool();
  QUERN_ASSIGN_OR_RETURN_ARROW(FilePointer file, arrow::io::ReadableFile::Open(path, pool), CannotRead(path));
  return file;
}

absl::StatusOr<SchemaPointer> SchemaOf(const std::string& path, FileFormat format) {
  QUERN_ASSIGN_OR_RETURN(const FilePointer file, OpenFile(path, format));
  switch (format) {
    case FileFormat::kParquet: return ParquetSchema(file, CannotRead(path));
    case FileFormat::kCsv: return CsvSchema(file, CannotRead(path));
    case FileFormat::kArrow: return ArrowSchemaOf(file, CannotRead(path));
  }
  return Internal("unknown file format: " + path);
}

absl::StatusOr<TablePointer> ReadOne(const std::string& path, FileFormat format,
                                     const std::vector<std::string>& columns) {
  QUERN_ASSIGN_OR_RETURN(const FilePointer file, OpenFile(path, format));
  absl::StatusOr<TablePointer> table = Internal("unknown file format: " + path);
  switch (format) {
    case FileFormat::kParquet: table = ReadParquet(file, columns, CannotRead(path)); break;
    case FileFormat::kCsv: table = ReadCsv(file, columns, CannotRead(path)); break;
    case FileFormat::kArrow: table = ReadArrow(file, columns, CannotRead(path)); break;
  }
  if (!table.ok()) return table;
  QUERN_RETURN_IF_ARROW_ERROR(CountOtherMemory(), CannotRead(path));
  std::vector<int> order;
  for (const std::string& column : columns) order.push_back((*table)->schema()->GetFieldIndex(column));
  QUERN_ASSIGN_OR_RETURN_ARROW(TablePointer ordered, (*table)->SelectColumns(order), CannotRead(path));
  return ordered->ReplaceSchemaMetadata(nullptr);
}

// Columns of several files: of one type, or null (a CSV file without values) beside it.
absl::Status CheckSameTypes(const arrow::Schema& first, const std::string& first_path, const arrow::Schema& other,
                            const std::string& other_path) {
  for (int i = 0; i < first.num_fields(); ++i) {
    const arrow::DataType& expected = *first.field(i)->type();
    const arrow::DataType& found = *other.field(i)->type();
    if (expected.Equals(found) || expected.id() == arrow::Type::NA || found.id() == arrow::Type::NA) continue;
    return DataError("files of one input differ in column " + QuoteName(first.field(i)->name()) + ": " +
                     found.ToString() + " in " + other_path + "; accepted: " + expected.ToString() + ", as in " +
                     first_path);
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

// Writing

arrow::Status WriteParquet(const TablePointer& table, const std::shared_ptr<arrow::io::OutputStream>& stream) {
  parquet::ArrowWriterProperties::Builder arrow_properties;
  arrow_properties.store_schema();
  constexpr int64_t kRowGroupRows = 1 << 20;
  return parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), stream, kRowGroupRows,
                                    parquet::default_writer_properties(), arrow_properties.build());
}

// Bytes that are not text, as DuckDB writes them to CSV: \x00 for everything but printable ASCII.
arrow::Result<std::shared_ptr<arrow::Array>> BinaryText(const arrow::ChunkedArray& column) {
  arrow::LargeStringBuilder builder;
  for (int64_t row = 0; row < column.length(); ++row) {
    ARROW_ASSIGN_OR_RAISE(const auto scalar, column.GetScalar(row));
    if (!scalar->is_valid) {
      ARROW_RETURN_NOT_OK(builder.AppendNull());
      continue;
    }
    std::string text;
    for (const char c : static_cast<const arrow::BaseBinaryScalar&>(*scalar).view()) {
      char hex[8];
      std::snprintf(hex, sizeof hex, "\\x%02X", static_cast<unsigned char>(c));
      text += c >= 0x20 && c < 0x7f && c != '\\' ? std::string(1, c) : std::string(hex);
    }
    ARROW_RETURN_NOT_OK(builder.Append(text));
  }
  return builder.Finish();
}

bool IsBinary(arrow::Type::type id) {
  return id == arrow::Type::BINARY || id == arrow::Type::LARGE_BINARY || id == arrow::Type::BINARY_VIEW ||
         id == arrow::Type::FIXED_SIZE_BINARY;
}

// Arrow's CSV writer supports fewer types than Arrow's casts to utf8, and treats binary columns as text.
arrow::Result<TablePointer> CsvTable(TablePointer table) {
  for (int i = 0; i < table->num_columns(); ++i) {
    const arrow::Type::type id = table->field(i)->type()->id();
    if (id != arrow::Type::STRING_VIEW && !arrow::is_decimal(id) && !IsBinary(id)) continue;
    std::shared_ptr<arrow::ChunkedArray> text;
    if (IsBinary(id)) {
      ARROW_ASSIGN_OR_RAISE(const auto array, BinaryText(*table->column(i)));
      text = std::make_shared<arrow::ChunkedArray>(array);
    } else {
      ARROW_ASSIGN_OR_RAISE(const arrow::Datum cast, arrow::compute::Cast(table->column(i), arrow::large_utf8()));
      text = cast.chunked_array();
    }
    ARROW_ASSIGN_OR_RAISE(table, table->SetColumn(i, arrow::field(table->field(i)->name(), text->type()), text));
  }
  return table;
}

arrow::Status WriteCsv(const TablePointer& table, const std::shared_ptr<arrow::io::OutputStream>& stream) {
  ARROW_ASSIGN_OR_RAISE(const TablePointer text, CsvTable(table));
  return arrow::csv::WriteCSV(*text, arrow::csv::WriteOptions::Defaults(), stream.get());
}

arrow::Status WriteArrow(const TablePointer& table, const std::shared_ptr<arrow::io::OutputStream>& stream) {
  ARROW_ASSIGN_OR_RAISE(const auto writer, arrow::ipc::MakeFileWriter(stream, table->schema()));
  ARROW_RETURN_NOT_OK(writer->WriteTable(*table));
  return writer->Close();
}

arrow::Status WriteAndClose(const TablePointer& table, FileFormat format, const std::string& path) {
  ARROW_ASSIGN_OR_RAISE(const auto stream, arrow::io::FileOutputStream::Open(path));
  switch (format) {
    case FileFormat::kParquet: ARROW_RETURN_NOT_OK(WriteParquet(table, stream)); break;
    case FileFormat::kCsv: ARROW_RETURN_NOT_OK(WriteCsv(table, stream)); break;
    case FileFormat::kArrow: ARROW_RETURN_NOT_OK(WriteArrow(table, stream)); break;
  }
  return stream->Close();
}

// The temporary file's name for the signal handler, which may only touch plain memory; empty: there is none.
char signal_path[4096];

extern "C" void RemoveTemporaryAndDie(int signal) {
  if (signal_path[0] != '\0') unlink(signal_path);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void RemoveOnSignals(const std::string& temporary) {
  if (temporary.size() >= sizeof signal_path) return;
  std::memcpy(signal_path, temporary.c_str(), temporary.size() + 1);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, RemoveTemporaryAndDie);
}

std::string CannotWrite(const std::string& path) { return "cannot write file: " + path; }

absl::Status WriteError(const std::string& path) {
  return DataError(CannotWrite(path) + "; " + std::strerror(errno) +
                   "; accepted: a name in a folder that takes new files");
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
    QUERN_ASSIGN_OR_RETURN(const SchemaPointer schema, SchemaOf(file, input.format_));
    if (file == input.files_[0]) input.column_names_ = schema->field_names();
    QUERN_RETURN_IF_ERROR(CheckSameNames(input.column_names_, input.files_[0], schema->field_names(), file));
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
  arrow::ConcatenateTablesOptions options;
  options.unify_schemas = true;  // null beside another type, not null beside nullable
  QUERN_ASSIGN_OR_RETURN_ARROW(TablePointer table, arrow::ConcatenateTables(tables, options, ReadingPool()),
                               "cannot put together the files of: " + what_);
  return table;
}

absl::StatusOr<OutputFile> OutputFile::Create(const std::string& path) {
  const std::filesystem::path target(path);
  if (struct stat status; stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    return DataError(CannotWrite(path) +
                     "; it is there and is no file; accepted: a name in a folder that takes new files");
  }
  const std::string name = "." + target.filename().string() + "." + std::to_string(getpid()) + ".tmp";
  const std::string temporary = (target.parent_path() / name).string();
  const int descriptor = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) return WriteError(path);
  close(descriptor);
  RemoveOnSignals(temporary);
  return OutputFile(path, temporary);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, "")) {}

OutputFile::~OutputFile() {
  if (temporary_.empty()) return;
  unlink(temporary_.c_str());
  signal_path[0] = '\0';
}

absl::Status OutputFile::WriteTable(const TablePointer& table, FileFormat format) {
  try {
    QUERN_RETURN_IF_ARROW_ERROR(WriteAndClose(table, format, temporary_), CannotWrite(path_));
  } catch (const parquet::ParquetException& error) {  // the Parquet library throws some of its errors
    return DataError(CannotWrite(path_) + "; " + error.what());
  }
  return absl::OkStatus();
}

absl::Status OutputFile::WriteText(const std::string& text) {
  std::FILE* file = std::fopen(temporary_.c_str(), "wb");
  if (file == nullptr) return WriteError(path_);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = std::fclose(file) == 0;
  return written && closed ? absl::OkStatus() : WriteError(path_);
}

absl::Status OutputFile::Commit() {
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return WriteError(path_);
  signal_path[0] = '\0';
  temporary_.clear();
  return absl::OkStatus();
}

absl::Status StartArrow(uint32_t threads) {
  QUERN_RETURN_IF_ARROW_ERROR(arrow::compute::Initialize(), "cannot start Arrow: " + ArrowVersion());
  QUERN_RETURN_IF_ARROW_ERROR(arrow::SetCpuThreadPoolCapacity(static_cast<int>(threads)),
                              "cannot start threads: " + std::to_string(threads));
  return absl::OkStatus();
}

std::string ArrowVersion() { return arrow::GetBuildInfo().version_string; }

absl::Status FromArrow(const arrow::Status& status, const std::string& what) {
  const std::string message = OneLine(status.message());
  const size_t refused = message.find(kLimitExceeded);  // by the reading pool; readers put texts of their own around it
  if (refused != std::string::npos) return absl::ResourceExhaustedError(message.substr(refused));
  const std::string text = what + "; " + message;
  return status.IsOutOfMemory() ? absl::ResourceExhaustedError(text) : DataError(text);
}

}  // namespace quern::cli
