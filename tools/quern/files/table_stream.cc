// SPDX-License-Identifier: Apache-2.0
// Row groups are read page by page: of each column that is wanted, a reader holds one page as it is in the file and one
// batch of values. Threads take row groups in turns, each with a reader of its own:
//
//     file 1    row group 0: A    row group 1: B    row group 2: A        A    rows 0 .. 65,535 | 65,536 .. 131,071 |
//     .. file 2    row group 0: B
//
// Batches are smaller where the memory limit is low and columns are many: 2048 rows of 16 columns at 16 MiB.
#include "tools/quern/files/table_stream.h"

#include <arrow/api.h>
#include <arrow/util/thread_pool.h>
#include <parquet/arrow/reader.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/schema.h>
#include <parquet/statistics.h>

#include <algorithm>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "tools/frontend/column_names.h"
#include "tools/frontend/errors.h"
#include "tools/quern/files/bounded_file.h"
#include "tools/quern/files/reading_memory.h"

namespace quern::cli {
namespace {

// Bytes that a reader holds of a column as they are in the file.
constexpr int64_t kBufferBytes = int64_t{64} << 10;

using ReaderPointer = std::unique_ptr<parquet::arrow::FileReader>;

// The rows of a batch: as many as elsewhere, or fewer where the batches of all threads would take more than their share
// of the memory. A column's builder may be twice as long as its values, and the values longer than their encoding.
int64_t BatchRows(uint64_t row_bytes) {
  constexpr uint64_t kShare = 4, kTimesEncoded = 4, kFewestRows = 1024;
  const uint64_t limit = ReadingLimit();
  if (limit == 0) return static_cast<int64_t>(thresholds::kMorselRows);
  const auto threads = static_cast<uint64_t>(std::max(arrow::GetCpuThreadPoolCapacity(), 1));
  const uint64_t rows = limit / kShare / threads / (kTimesEncoded * row_bytes);
  return static_cast<int64_t>(std::clamp<uint64_t>(rows, kFewestRows, thresholds::kMorselRows));
}

absl::StatusOr<ReaderPointer> OpenReader(const std::string& path, std::shared_ptr<parquet::FileMetaData> metadata,
                                         uint64_t row_bytes) {
  QUERN_ASSIGN_OR_RETURN_ARROW(const auto file, BoundedFile::Open(path), CannotRead(path));
  parquet::ReaderProperties of_file(ReadingPool());
  of_file.enable_buffered_stream();
  of_file.set_buffer_size(kBufferBytes);
  parquet::arrow::FileReaderBuilder builder;
  QUERN_RETURN_IF_ARROW_ERROR(builder.Open(file, of_file, std::move(metadata)), CannotRead(path));
  parquet::ArrowReaderProperties properties(/*use_threads=*/false);
  properties.set_pre_buffer(false);
  properties.set_batch_size(BatchRows(row_bytes));
  properties.set_io_context(arrow::io::IOContext(ReadingPool()));
  ReaderPointer reader;
  QUERN_RETURN_IF_ARROW_ERROR(builder.memory_pool(ReadingPool())->properties(properties)->Build(&reader),
                              CannotRead(path));
  return reader;
}

// The Parquet library throws some of its errors.
template <class F>
auto Reading(const std::string& path, const F& read) -> decltype(read()) {
  try {
    return read();
  } catch (const parquet::ParquetException& error) {
    return DataError(CannotRead(path) + "; " + error.what());
  }
}

// Whether a column chunk has no null, by the file's own word.
bool HasNoNull(const parquet::FileMetaData& metadata, int row_group, int leaf) {
  const auto chunk = metadata.RowGroup(row_group)->ColumnChunk(leaf);
  if (metadata.schema()->Column(leaf)->max_definition_level() == 0) return true;
  const auto statistics = chunk->statistics();
  return statistics != nullptr && statistics->HasNullCount() && statistics->null_count() == 0;
}

// Of a column chunk as it is encoded, at least 8 a row: values may be numbers in a dictionary.
uint64_t BytesOf(const parquet::FileMetaData& metadata, int row_group, int leaf) {
  constexpr int64_t kLeastValueBytes = 8;
  const auto group = metadata.RowGroup(row_group);
  const int64_t bytes = group->ColumnChunk(leaf)->total_uncompressed_size();
  return static_cast<uint64_t>(std::max<int64_t>({bytes, kLeastValueBytes * group->num_rows(), 0}));
}

absl::StatusOr<std::shared_ptr<arrow::Array>> OneValue(const std::shared_ptr<arrow::DataType>& type, bool is_null) {
  const std::string what = "cannot make a value of type: " + type->ToString();
  std::unique_ptr<arrow::ArrayBuilder> builder;
  QUERN_RETURN_IF_ARROW_ERROR(arrow::MakeBuilder(arrow::default_memory_pool(), type, &builder), what);
  QUERN_RETURN_IF_ARROW_ERROR(is_null ? builder->AppendNull() : builder->AppendEmptyValue(), what);
  QUERN_ASSIGN_OR_RETURN_ARROW(std::shared_ptr<arrow::Array> array, builder->Finish(), what);
  return array;
}

}  // namespace

absl::StatusOr<TableStream> TableStream::Open(const TableInput& input, const std::vector<std::string>& columns) {
  TableStream stream;
  stream.columns_ = columns;
  stream.may_be_null_.resize(columns.size());
  for (const std::string& path : input.files())
    QUERN_RETURN_IF_ERROR(Reading(path, [&] { return stream.AddFile(path); }));
  std::vector<std::shared_ptr<arrow::ChunkedArray>> values;
  for (size_t c = 0; c < columns.size(); ++c) {
    QUERN_ASSIGN_OR_RETURN(auto value,
                           OneValue(stream.schema_->field(static_cast<int>(c))->type(), stream.may_be_null_[c]));
    values.push_back(std::make_shared<arrow::ChunkedArray>(std::move(value)));
  }
  stream.sample_ = arrow::Table::Make(stream.schema_, values, 1);
  return stream;
}

absl::Status TableStream::AddFile(const std::string& path) {
  QUERN_ASSIGN_OR_RETURN(const ReaderPointer reader, OpenReader(path, nullptr, 1));
  File file = {path, reader->parquet_reader()->metadata(), {}};
  std::shared_ptr<arrow::Schema> whole;
  QUERN_RETURN_IF_ARROW_ERROR(reader->GetSchema(&whole), CannotRead(path));
  arrow::FieldVector fields;
  for (const std::string& column : columns_) {
    const std::shared_ptr<arrow::Field> field = whole->GetFieldByName(column);
    if (field == nullptr) return DataError(CannotRead(path) + "; no column " + QuoteName(column));
    if (schema_ != nullptr && !schema_->GetFieldByName(column)->type()->Equals(field->type())) {
      return DataError("files of one input differ in column " + QuoteName(column) + ": " + field->type()->ToString() +
                       " in " + path + "; accepted: " + schema_->GetFieldByName(column)->type()->ToString() +
                       ", as in " + files_.front().path);
    }
    fields.push_back(field->WithNullable(true)->WithMetadata(nullptr));
  }
  if (schema_ == nullptr) schema_ = arrow::schema(std::move(fields));
  const parquet::SchemaDescriptor& leaves = *file.metadata->schema();
  for (int leaf = 0; leaf < leaves.num_columns(); ++leaf) {
    const auto column = std::find(columns_.begin(), columns_.end(), leaves.GetColumnRoot(leaf)->name());
    if (column == columns_.end()) continue;
    file.leaves.push_back(leaf);
    for (int group = 0; group < file.metadata->num_row_groups(); ++group)
      if (!HasNoNull(*file.metadata, group, leaf)) may_be_null_[static_cast<size_t>(column - columns_.begin())] = true;
  }
  for (int group = 0; group < file.metadata->num_row_groups(); ++group) {
    uint64_t bytes = 0;
    for (const int leaf : file.leaves) bytes += BytesOf(*file.metadata, group, leaf);
    const auto rows = static_cast<uint64_t>(std::max<int64_t>(file.metadata->RowGroup(group)->num_rows(), 0));
    pieces_.push_back({files_.size(), group, num_rows_, rows});
    num_rows_ += rows;
    row_bytes_ = std::max(row_bytes_, bytes / std::max<uint64_t>(rows, 1));
  }
  files_.push_back(std::move(file));
  return absl::OkStatus();
}

absl::Status TableStream::ReadPiece(size_t piece, const Take& take) const {
  const Piece& of = pieces_[piece];
  const File& file = files_[of.file];
  return Reading(file.path, [&]() -> absl::Status {
    QUERN_ASSIGN_OR_RETURN(const ReaderPointer reader, OpenReader(file.path, file.metadata, row_bytes_));
    QUERN_ASSIGN_OR_RETURN_ARROW(const auto batches, reader->GetRecordBatchReader({of.row_group}, file.leaves),
                                 CannotRead(file.path));
    uint64_t first_row = of.first_row;
    while (true) {
      QUERN_ASSIGN_OR_RETURN_ARROW(const std::shared_ptr<arrow::RecordBatch> batch, batches->Next(),
                                   CannotRead(file.path));
      if (batch == nullptr) return absl::OkStatus();
      QUERN_RETURN_IF_ARROW_ERROR(batch->Validate(), "damaged file: " + file.path);
      std::vector<std::shared_ptr<arrow::ChunkedArray>> columns;
      for (const std::string& column : columns_)
        columns.push_back(std::make_shared<arrow::ChunkedArray>(batch->GetColumnByName(column)));
      QUERN_RETURN_IF_ERROR(take(arrow::Table::Make(schema_, std::move(columns), batch->num_rows()), first_row));
      first_row += static_cast<uint64_t>(batch->num_rows());
    }
  });
}

}  // namespace quern::cli
