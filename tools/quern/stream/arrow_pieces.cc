// SPDX-License-Identifier: Apache-2.0
// A record batch is read whole: its buffers are in the file as they are in memory. Threads take the batches of a file
// in turns; a stream says nowhere where its batches are, so one thread reads them all. Before that, the file is read
// once from beginning to end, as only the batches themselves know their rows, their nulls and their bytes:
//
//     first     batch 0: 65,536 rows, 1 MiB | batch 1: 65,536 rows, 1 MiB | batch 2: 10,000 rows, no null in x
//     then      A: batch 0, batch 2           B: batch 1
//
// What threads hold together stays below PiecesLimit: under 16 MiB, batches of up to 9 MiB are accepted, and two
// threads read those of up to 4.5 MiB.
//
// Each reader of a file with dictionaries has read these, so readers are used again.
#include <arrow/api.h>
#include <arrow/io/api.h>
#include <arrow/ipc/api.h>
#include <arrow/util/byte_size.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "runtime/base/status.h"
#include "tools/quern/files/bounded_file.h"
#include "tools/quern/files/input_columns.h"
#include "tools/quern/files/read_arrow.h"
#include "tools/quern/files/reading_memory.h"
#include "tools/quern/files/table_io.h"
#include "tools/quern/stream/file_pieces.h"

namespace quern::cli {
namespace {

using BatchPointer = std::shared_ptr<arrow::RecordBatch>;

constexpr char kLimitExceeded[] = "memory limit exceeded: ";

class ArrowPieces final : public FilePieces {
 public:
  ArrowPieces(const std::string& path, const std::vector<std::string>& columns) : FilePieces(path, columns) {}

  // Reads all batches once.
  absl::Status Open();
  absl::Status ReadPiece(size_t piece, const Take& take) const override;

 private:
  struct Batches {
    ArrowBatches batches;
    std::shared_ptr<std::atomic<int64_t>> piece_bytes;
  };
  using Reader = std::unique_ptr<Batches>;
  absl::StatusOr<Reader> OpenReader() const;
  absl::StatusOr<Reader> TakeReader() const;
  // *Errors*: values that are wrong.
  absl::StatusOr<arrow::ArrayVector> ColumnsOf(const arrow::RecordBatch& batch) const;
  // first_held: what the pool had handed out before the batch was read.
  absl::Status AddBatch(const arrow::RecordBatch& batch, size_t number, int64_t held_before);
  absl::Status CannotReadBatch(const arrow::Status& status, size_t number) const;
  absl::Status TakeBatch(const arrow::RecordBatch& batch, const Take& take) const;

  std::shared_ptr<arrow::Schema> schema_;
  bool is_file_ = false;
  bool has_dictionaries_ = false;
  // Of the largest batch.
  int64_t batch_bytes_ = 0;
  int64_t bytes_beside_pool_ = 0;
  mutable std::mutex mutex_;
  mutable std::vector<Reader> idle_;  // of a file with dictionaries
};

absl::StatusOr<ArrowPieces::Reader> ArrowPieces::OpenReader() const {
  QUERN_ASSIGN_OR_RETURN_ARROW(const auto file, BoundedFile::Open(path_, PiecePool()), CannotRead(path_));
  const auto piece_bytes = std::make_shared<std::atomic<int64_t>>(0);
  QUERN_ASSIGN_OR_RETURN_ARROW(
      ArrowBatches batches,
      ArrowBatches::Open(PieceFile(file, piece_bytes), ArrowOptions(*schema_, columns_, PiecePool())),
      CannotRead(path_));
  return std::make_unique<Batches>(Batches{std::move(batches), piece_bytes});
}

absl::StatusOr<ArrowPieces::Reader> ArrowPieces::TakeReader() const {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!idle_.empty()) {
      Reader reader = std::move(idle_.back());
      idle_.pop_back();
      return reader;
    }
  }
  return OpenReader();
}

absl::Status ArrowPieces::CannotReadBatch(const arrow::Status& status, size_t number) const {
  const absl::Status error = FromArrow(status, CannotRead(path_));
  if (error.message().rfind(kLimitExceeded, 0) != 0) return error;
  return absl::ResourceExhaustedError(std::string(error.message()) + " for record batch " + std::to_string(number + 1) +
                                      " of " + path_ + "; accepted: up to " + std::to_string(PiecesLimit()) +
                                      ", or a file with smaller batches");
}

absl::StatusOr<arrow::ArrayVector> ArrowPieces::ColumnsOf(const arrow::RecordBatch& batch) const {
  QUERN_RETURN_IF_ARROW_ERROR(batch.Validate(), "damaged file: " + path_);
  arrow::ArrayVector columns;
  for (const std::string& name : columns_) {
    columns.push_back(batch.GetColumnByName(name));
    QUERN_RETURN_IF_ERROR(CheckColumnValues(arrow::ChunkedArray(columns.back()), name, FileFormat::kArrow, path_));
  }
  return columns;
}

absl::Status ArrowPieces::AddBatch(const arrow::RecordBatch& batch, size_t number, int64_t held_before) {
  const int64_t in_pool = ReadingPool()->bytes_allocated() - held_before;
  const int64_t in_columns = arrow::util::TotalBufferSize(batch);
  const int64_t bytes = std::max(in_pool, in_columns);
  if (PiecesLimit() != 0 && bytes > static_cast<int64_t>(PiecesLimit())) {
    return CannotReadBatch(arrow::Status::OutOfMemory(kLimitExceeded, bytes, " bytes requested"), number);
  }
  batch_bytes_ = std::max(batch_bytes_, bytes);
  bytes_beside_pool_ = std::max(bytes_beside_pool_, in_columns - in_pool);
  QUERN_ASSIGN_OR_RETURN(const arrow::ArrayVector columns, ColumnsOf(batch));
  for (size_t c = 0; c < columns.size(); ++c)
    may_be_null_[c] = may_be_null_[c] || HasNulls(arrow::ChunkedArray(columns[c]));
  const uint64_t num_rows = static_cast<uint64_t>(std::max<int64_t>(batch.num_rows(), 0));
  if (is_file_ || rows_.empty()) rows_.push_back(num_rows);
  else rows_.back() += std::min(num_rows, INT64_MAX - rows_.back());
  return absl::OkStatus();
}

absl::Status ArrowPieces::Open() {
  QUERN_ASSIGN_OR_RETURN(schema_, ArrowSchemaOf(path_));
  for (const std::string& column : columns_) {
    types_.push_back(schema_->GetFieldByName(column)->type());
    has_dictionaries_ = has_dictionaries_ || types_.back()->id() == arrow::Type::DICTIONARY;
  }
  QUERN_ASSIGN_OR_RETURN(Reader reader, OpenReader());
  is_file_ = reader->batches.is_file();
  int64_t num_rows = 0;
  for (size_t number = 0;; ++number) {
    const int64_t held_before = ReadingPool()->bytes_allocated();
    *reader->piece_bytes = 0;
    const arrow::Result<BatchPointer> batch = reader->batches.Next();
    if (!batch.ok()) return CannotReadBatch(batch.status(), number);
    if (*batch == nullptr) break;
    QUERN_RETURN_IF_ERROR(AddBatch(**batch, number, held_before));
    num_rows += std::min((*batch)->num_rows(), INT64_MAX - num_rows);
  }
  if (batch_bytes_ > 0 && PiecesLimit() != 0)
    most_threads_ = static_cast<uint32_t>(
        std::min<uint64_t>(std::max<uint64_t>(PiecesLimit() / static_cast<uint64_t>(batch_bytes_), 1), UINT32_MAX));
  if (is_file_ && has_dictionaries_) idle_.push_back(std::move(reader));
  QUERN_ASSIGN_OR_RETURN_ARROW(const auto file, BoundedFile::Open(path_), CannotRead(path_));
  QUERN_ASSIGN_OR_RETURN_ARROW(const int64_t file_bytes, file->GetSize(), CannotRead(path_));
  std::vector<std::shared_ptr<arrow::Field>> fields;
  for (size_t c = 0; c < columns_.size(); ++c) fields.push_back(arrow::field(columns_[c], types_[c]));
  return CheckRowsWithoutValues(arrow::Schema(fields), num_rows, file_bytes, path_);
}

absl::Status ArrowPieces::TakeBatch(const arrow::RecordBatch& batch, const Take& take) const {
  QUERN_ASSIGN_OR_RETURN(const arrow::ArrayVector columns, ColumnsOf(batch));
  const int64_t num_rows = batch.num_rows();
  const int64_t most = BatchRows(static_cast<uint64_t>(batch_bytes_ / std::max<int64_t>(num_rows, 1)));
  for (int64_t first = 0; first < num_rows; first += most) {
    const int64_t rows = std::min(most, num_rows - first);
    arrow::ArrayVector parts;
    for (const auto& column : columns) parts.push_back(column->Slice(first, rows));
    QUERN_RETURN_IF_ERROR(take(parts, rows));
  }
  return absl::OkStatus();
}

absl::Status ArrowPieces::ReadPiece(size_t piece, const Take& take) const {
  QUERN_ASSIGN_OR_RETURN(Reader reader, TakeReader());
  const HeldElsewhere held(bytes_beside_pool_);
  for (size_t number = is_file_ ? piece : 0;; ++number) {
    *reader->piece_bytes = 0;
    const arrow::Result<BatchPointer> batch =
        is_file_ ? reader->batches.ReadBatch(static_cast<int>(piece)) : reader->batches.Next();
    if (!batch.ok()) return CannotReadBatch(batch.status(), number);
    if (*batch == nullptr) return absl::OkStatus();
    QUERN_RETURN_IF_ERROR(TakeBatch(**batch, take));
    if (is_file_) break;
  }
  if (has_dictionaries_ && piece + 1 < rows_.size()) {
    const std::lock_guard<std::mutex> lock(mutex_);
    idle_.push_back(std::move(reader));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FilePiecesPointer> OpenArrowPieces(const std::string& path, const std::vector<std::string>& columns) {
  auto pieces = std::make_unique<ArrowPieces>(path, columns);
  QUERN_RETURN_IF_ERROR(pieces->Open());
  return pieces;
}

}  // namespace quern::cli
