// SPDX-License-Identifier: Apache-2.0
// Row groups are read page by page: of each column that is wanted, a reader holds one page as it is in the file and one
// batch of values. Threads take row groups in turns, each with a reader of its own:
//
//     file 1    row group 0: A    row group 1: B    row group 2: A        A    rows 0 .. 65,535 | 65,536 .. 131,071 |
//     .. file 2    row group 0: B
//
// Batches are smaller where the memory limit is low and columns are many: 3072 rows of 16 columns at 16 MiB.
#include <arrow/api.h>
#include <parquet/arrow/reader.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/schema.h>
#include <parquet/statistics.h>

#include <algorithm>
#include <utility>

#include "runtime/base/status.h"
#include "tools/frontend/column_names.h"
#include "tools/frontend/errors.h"
#include "tools/quern/files/bounded_file.h"
#include "tools/quern/files/reading_memory.h"
#include "tools/quern/files/table_io.h"
#include "tools/quern/stream/file_pieces.h"

namespace quern::cli {
namespace {

// Bytes that a reader holds of a column as they are in the file.
constexpr int64_t kBufferBytes = int64_t{64} << 10;

using ReaderPointer = std::unique_ptr<parquet::arrow::FileReader>;

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
  properties.set_smallest_decimal_enabled(true);
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

class ParquetPieces final : public FilePieces {
 public:
  ParquetPieces(const std::string& path, const std::vector<std::string>& columns) : FilePieces(path, columns) {}

  // Reads the footer.
  absl::Status Open();
  absl::Status ReadPiece(size_t piece, const Take& take) const override {
    return Reading(path_, [&] { return ReadRowGroup(static_cast<int>(piece), take); });
  }

 private:
  absl::Status ReadRowGroup(int row_group, const Take& take) const;

  std::shared_ptr<parquet::FileMetaData> metadata_;
  std::vector<int> leaves_;
  uint64_t row_bytes_ = 1;  // of the columns as they are encoded, in the row group with the widest rows
};

absl::Status ParquetPieces::Open() {
  QUERN_ASSIGN_OR_RETURN(const ReaderPointer reader, OpenReader(path_, nullptr, 1));
  metadata_ = reader->parquet_reader()->metadata();
  std::shared_ptr<arrow::Schema> whole;
  QUERN_RETURN_IF_ARROW_ERROR(reader->GetSchema(&whole), CannotRead(path_));
  for (const std::string& column : columns_) {
    const std::shared_ptr<arrow::Field> field = whole->GetFieldByName(column);
    if (field == nullptr) return DataError(CannotRead(path_) + "; no column " + QuoteName(column));
    types_.push_back(field->type());
  }
  const parquet::SchemaDescriptor& leaves = *metadata_->schema();
  for (int leaf = 0; leaf < leaves.num_columns(); ++leaf) {
    const auto column = std::find(columns_.begin(), columns_.end(), leaves.GetColumnRoot(leaf)->name());
    if (column == columns_.end()) continue;
    leaves_.push_back(leaf);
    for (int group = 0; group < metadata_->num_row_groups(); ++group)
      if (!HasNoNull(*metadata_, group, leaf)) may_be_null_[static_cast<size_t>(column - columns_.begin())] = true;
  }
  for (int group = 0; group < metadata_->num_row_groups(); ++group) {
    uint64_t bytes = 0;
    for (const int leaf : leaves_) bytes += BytesOf(*metadata_, group, leaf);
    rows_.push_back(static_cast<uint64_t>(std::max<int64_t>(metadata_->RowGroup(group)->num_rows(), 0)));
    row_bytes_ = std::max(row_bytes_, bytes / std::max<uint64_t>(rows_.back(), 1));
  }
  return absl::OkStatus();
}

absl::Status ParquetPieces::ReadRowGroup(int row_group, const Take& take) const {
  QUERN_ASSIGN_OR_RETURN(const ReaderPointer reader, OpenReader(path_, metadata_, row_bytes_));
  QUERN_ASSIGN_OR_RETURN_ARROW(const auto batches, reader->GetRecordBatchReader({row_group}, leaves_),
                               CannotRead(path_));
  while (true) {
    QUERN_ASSIGN_OR_RETURN_ARROW(const std::shared_ptr<arrow::RecordBatch> batch, batches->Next(), CannotRead(path_));
    if (batch == nullptr) return absl::OkStatus();
    QUERN_RETURN_IF_ARROW_ERROR(batch->Validate(), "damaged file: " + path_);
    arrow::ArrayVector columns;
    for (const std::string& column : columns_) columns.push_back(batch->GetColumnByName(column));
    QUERN_RETURN_IF_ERROR(take(columns, batch->num_rows()));
  }
}

}  // namespace

absl::StatusOr<FilePiecesPointer> OpenParquetPieces(const std::string& path, const std::vector<std::string>& columns) {
  auto pieces = std::make_unique<ParquetPieces>(path, columns);
  QUERN_RETURN_IF_ERROR(Reading(path, [&] { return pieces->Open(); }));
  return pieces;
}

}  // namespace quern::cli
