// SPDX-License-Identifier: Apache-2.0
// One file that is read piece by piece, whatever its format.
#ifndef QUERN_TOOLS_STREAM_FILE_PIECES_H_
#define QUERN_TOOLS_STREAM_FILE_PIECES_H_

#include <arrow/type_fwd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace quern::cli {

// Some columns of a file. *Threads*: once it is open, any read pieces at once, but no more than most_threads.
class FilePieces {
 public:
  virtual ~FilePieces() = default;

  const std::string& path() const { return path_; }
  // Of the columns, in the order that was asked for; null is the type of a column without values.
  const std::vector<std::shared_ptr<arrow::DataType>>& types() const { return types_; }
  // By column: false where the file has no null.
  const std::vector<bool>& may_be_null() const { return may_be_null_; }
  // The number of rows of each piece.
  const std::vector<uint64_t>& rows() const { return rows_; }
  uint32_t most_threads() const { return most_threads_; }

  // Reads a piece batch by batch. *Errors*: those of the file, and those of `take`.
  using Take = std::function<absl::Status(const std::vector<std::shared_ptr<arrow::Array>>& columns, int64_t num_rows)>;
  virtual absl::Status ReadPiece(size_t piece, const Take& take) const = 0;

 protected:
  FilePieces(std::string path, std::vector<std::string> columns);

  const std::string path_;
  const std::vector<std::string> columns_;
  std::vector<std::shared_ptr<arrow::DataType>> types_;
  std::vector<bool> may_be_null_;
  std::vector<uint64_t> rows_;
  uint32_t most_threads_ = UINT32_MAX;
};

using FilePiecesPointer = std::unique_ptr<FilePieces>;

// Row groups of a Parquet file, read page by page.
absl::StatusOr<FilePiecesPointer> OpenParquetPieces(const std::string& path, const std::vector<std::string>& columns);
// Record batches of an Arrow IPC file; an IPC stream is one piece.
absl::StatusOr<FilePiecesPointer> OpenArrowPieces(const std::string& path, const std::vector<std::string>& columns);
// Lines of a CSV file.
absl::StatusOr<FilePiecesPointer> OpenCsvPieces(const std::string& path, const std::vector<std::string>& columns);

// Bytes that one of the threads that read may hold; 0: there is no limit.
uint64_t ReaderBytes();

// The rows of a batch: as many as elsewhere, or fewer where the batches of all threads would take more than their share
// of the memory. row_bytes: of the columns, as they are encoded.
int64_t BatchRows(uint64_t row_bytes);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_STREAM_FILE_PIECES_H_
