// SPDX-License-Identifier: Apache-2.0
// The file format of Arrow IPC begins with its magic word, the stream format does not. Both are read column by column,
// as they are: values are not touched, so their check is that of table_io.cc.
//
// The number of rows is a number in the file. Columns with values need bytes for it, and a file that has too few is
// refused by that check. A table of no columns, or of columns of type null, needs none, so one changed bit could make a
// job of 2^62 rows of 500 bytes: there the number is bounded by the file's size.
#include "tools/quern/files/read_arrow.h"

#include <arrow/api.h>
#include <arrow/io/api.h>
#include <arrow/ipc/api.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "runtime/base/status.h"
#include "tools/frontend/errors.h"
#include "tools/quern/files/bounded_file.h"
#include "tools/quern/files/reading_memory.h"
#include "tools/quern/files/table_io.h"

namespace quern::cli {
namespace {

using FilePointer = std::shared_ptr<arrow::io::RandomAccessFile>;
using SchemaPointer = std::shared_ptr<arrow::Schema>;
using TablePointer = std::shared_ptr<arrow::Table>;

arrow::Result<bool> IsIpcFile(const FilePointer& file) {
  constexpr std::string_view kMagic = "ARROW1";
  ARROW_ASSIGN_OR_RAISE(const auto head, file->ReadAt(0, static_cast<int64_t>(kMagic.size())));
  ARROW_RETURN_NOT_OK(file->Seek(0));  // stream readers begin at the current position
  return head->ToString() == kMagic;
}

arrow::ipc::IpcReadOptions IpcOptions() {
  arrow::ipc::IpcReadOptions options = arrow::ipc::IpcReadOptions::Defaults();
  options.memory_pool = ReadingPool();
  return options;
}

arrow::Result<SchemaPointer> SchemaOf(const FilePointer& file) {
  ARROW_ASSIGN_OR_RAISE(const ArrowBatches batches, ArrowBatches::Open(file, IpcOptions()));
  return batches.schema();
}

arrow::Result<TablePointer> TableOf(const FilePointer& file, const arrow::ipc::IpcReadOptions& options) {
  ARROW_ASSIGN_OR_RAISE(const bool is_file, IsIpcFile(file));
  if (is_file) {
    ARROW_ASSIGN_OR_RAISE(const auto reader, arrow::ipc::RecordBatchFileReader::Open(CountedFile(file), options));
    return reader->ToTable();
  }
  ARROW_ASSIGN_OR_RAISE(const auto reader, arrow::ipc::RecordBatchStreamReader::Open(file, options));
  return reader->ToTable();
}

// A file without columns, whose rows ToTable does not count.
arrow::Result<TablePointer> RowsAlone(const FilePointer& file, const SchemaPointer& schema) {
  ARROW_ASSIGN_OR_RAISE(ArrowBatches batches, ArrowBatches::Open(file, IpcOptions()));
  int64_t num_rows = 0;
  while (true) {
    ARROW_ASSIGN_OR_RAISE(const auto batch, batches.Next());
    if (batch == nullptr) return arrow::Table::Make(schema, arrow::ChunkedArrayVector(), num_rows);
    num_rows += std::min(batch->num_rows(), INT64_MAX - num_rows);
  }
}

bool HasValues(const arrow::DataType& type) {
  if (type.id() == arrow::Type::NA) return false;
  return type.id() != arrow::Type::FIXED_SIZE_BINARY || type.byte_width() > 0;
}

}  // namespace

arrow::Result<ArrowBatches> ArrowBatches::Open(const FilePointer& file, const arrow::ipc::IpcReadOptions& options) {
  ArrowBatches batches;
  ARROW_ASSIGN_OR_RAISE(const bool is_file, IsIpcFile(file));
  if (is_file) {
    ARROW_ASSIGN_OR_RAISE(batches.file_, arrow::ipc::RecordBatchFileReader::Open(file, options));
  } else {
    ARROW_ASSIGN_OR_RAISE(batches.stream_, arrow::ipc::RecordBatchStreamReader::Open(file, options));
  }
  return batches;
}

SchemaPointer ArrowBatches::schema() const { return is_file() ? file_->schema() : stream_->schema(); }

int ArrowBatches::num_batches() const { return file_->num_record_batches(); }

arrow::Result<std::shared_ptr<arrow::RecordBatch>> ArrowBatches::ReadBatch(int i) { return file_->ReadRecordBatch(i); }

arrow::Result<std::shared_ptr<arrow::RecordBatch>> ArrowBatches::Next() {
  if (!is_file()) return stream_->Next();
  return next_ < num_batches() ? ReadBatch(next_++) : nullptr;
}

arrow::ipc::IpcReadOptions ArrowOptions(const arrow::Schema& schema, const std::vector<std::string>& columns,
                                        arrow::MemoryPool* pool) {
  arrow::ipc::IpcReadOptions options = IpcOptions();
  options.memory_pool = pool;
  for (int i = 0; i < schema.num_fields(); ++i) {
    if (std::find(columns.begin(), columns.end(), schema.field(i)->name()) != columns.end())
      options.included_fields.push_back(i);
  }
  return options;
}

absl::Status CheckRowsWithoutValues(const arrow::Schema& schema, int64_t num_rows, int64_t file_bytes,
                                    const std::string& path) {
  constexpr int64_t kAlwaysAccepted = int64_t{1} << 24;
  constexpr int64_t kRowsPerByte = 8;
  const auto& fields = schema.fields();
  if (std::any_of(fields.begin(), fields.end(), [](const auto& field) { return HasValues(*field->type()); }))
    return absl::OkStatus();
  const int64_t accepted = std::max(kAlwaysAccepted, file_bytes * kRowsPerByte);
  if (num_rows >= 0 && num_rows <= accepted) return absl::OkStatus();
  return DataError("damaged file: " + path + "; " + std::to_string(num_rows) + " rows without values in " +
                   std::to_string(file_bytes) + " bytes; accepted: up to " + std::to_string(accepted) + " rows");
}

absl::StatusOr<SchemaPointer> ArrowSchemaOf(const std::string& path) {
  QUERN_ASSIGN_OR_RETURN_ARROW(const FilePointer file, BoundedFile::Open(path), CannotRead(path));
  QUERN_ASSIGN_OR_RETURN_ARROW(SchemaPointer schema, SchemaOf(file), CannotRead(path));
  return schema;
}

absl::StatusOr<TablePointer> ReadArrow(const std::string& path, const std::vector<std::string>& columns) {
  QUERN_ASSIGN_OR_RETURN_ARROW(const FilePointer file, BoundedFile::Open(path), CannotRead(path));
  QUERN_ASSIGN_OR_RETURN_ARROW(const SchemaPointer schema, SchemaOf(file), CannotRead(path));
  QUERN_ASSIGN_OR_RETURN_ARROW(TablePointer table,
                               schema->num_fields() == 0 ? RowsAlone(file, schema)
                                                         : TableOf(file, ArrowOptions(*schema, columns, ReadingPool())),
                               CannotRead(path));
  QUERN_ASSIGN_OR_RETURN_ARROW(const int64_t file_bytes, file->GetSize(), CannotRead(path));
  QUERN_RETURN_IF_ERROR(CheckRowsWithoutValues(*table->schema(), table->num_rows(), file_bytes, path));
  return table;
}

}  // namespace quern::cli
