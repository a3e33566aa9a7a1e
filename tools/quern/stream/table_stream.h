// SPDX-License-Identifier: Apache-2.0
// An input that is read piece by piece, for files that are larger than memory.
#ifndef QUERN_TOOLS_STREAM_TABLE_STREAM_H_
#define QUERN_TOOLS_STREAM_TABLE_STREAM_H_

#include <arrow/type_fwd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/quern/files/table_io.h"
#include "tools/quern/stream/file_pieces.h"

namespace quern::cli {

// The pieces of all files of an input. *Threads*: once it is open, most_threads read pieces at once.
class TableStream {
 public:
  // Finds the pieces, and the types of the columns. *Errors*: files that cannot be read; columns whose types differ
  // from file to file; pieces too large for the memory limit.
  static absl::StatusOr<TableStream> Open(const TableInput& input, const std::vector<std::string>& columns);

  // A table of one row, or of none if the files have none, with the columns in the order that was asked for: null where
  // a column may have nulls, and any other value elsewhere. What is prepared of it is right for all pieces.
  const std::shared_ptr<arrow::Table>& sample() const { return sample_; }

  uint64_t num_rows() const { return num_rows_; }
  size_t num_pieces() const { return pieces_.size(); }
  // How many threads may read pieces at once.
  uint32_t most_threads() const { return most_threads_; }

  // Reads a piece batch by batch; first_row: the number of its first row in the input. *Errors*: those of the file, and
  // those of `take`.
  using Take = std::function<absl::Status(const std::shared_ptr<arrow::Table>& batch, uint64_t first_row)>;
  absl::Status ReadPiece(size_t piece, const Take& take) const;

 private:
  struct Piece {
    size_t file;
    size_t of_file;
    uint64_t first_row;
  };
  TableStream() = default;
  // *Errors*: a type that another file before it does not have.
  absl::Status AddTypes(const FilePieces& file, std::vector<std::string>* paths);

  std::vector<std::string> columns_;
  std::vector<FilePiecesPointer> files_;
  std::vector<Piece> pieces_;
  std::vector<std::shared_ptr<arrow::DataType>> types_;
  std::shared_ptr<arrow::Schema> schema_;
  std::shared_ptr<arrow::Table> sample_;
  uint64_t num_rows_ = 0;
  uint32_t most_threads_ = UINT32_MAX;
};

}  // namespace quern::cli

#endif  // QUERN_TOOLS_STREAM_TABLE_STREAM_H_
