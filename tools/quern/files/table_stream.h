// SPDX-License-Identifier: Apache-2.0
// An input that is read piece by piece, for files that are larger than memory.
#ifndef QUERN_TOOLS_FILES_TABLE_STREAM_H_
#define QUERN_TOOLS_FILES_TABLE_STREAM_H_

#include <arrow/type_fwd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/quern/files/table_io.h"

namespace parquet {
class FileMetaData;
}  // namespace parquet

namespace quern::cli {

// The row groups of Parquet files. *Threads*: once it is open, any read pieces at once.
class TableStream {
 public:
  // Reads the files' footers. *Errors*: files that cannot be read; columns whose types differ from file to file.
  static absl::StatusOr<TableStream> Open(const TableInput& input, const std::vector<std::string>& columns);

  // A table of one row, with the columns in the order that was asked for: null where a column may have nulls, by the
  // files' statistics, and any other value elsewhere. What is prepared of it is right for all pieces.
  const std::shared_ptr<arrow::Table>& sample() const { return sample_; }

  uint64_t num_rows() const { return num_rows_; }
  size_t num_pieces() const { return pieces_.size(); }
  uint64_t num_rows(size_t piece) const { return pieces_[piece].num_rows; }

  // Reads a piece batch by batch; first_row: the number of its first row in the input. *Errors*: those of the file, and
  // those of `take`.
  using Take = std::function<absl::Status(const std::shared_ptr<arrow::Table>& batch, uint64_t first_row)>;
  absl::Status ReadPiece(size_t piece, const Take& take) const;

 private:
  struct File {
    std::string path;
    std::shared_ptr<parquet::FileMetaData> metadata;
    std::vector<int> leaves;
  };
  struct Piece {
    size_t file;
    int row_group;
    uint64_t first_row, num_rows;
  };
  TableStream() = default;
  absl::Status AddFile(const std::string& path);

  std::vector<std::string> columns_;
  std::vector<File> files_;
  std::vector<Piece> pieces_;
  std::shared_ptr<arrow::Schema> schema_;
  std::shared_ptr<arrow::Table> sample_;
  std::vector<bool> may_be_null_;  // by column
  uint64_t num_rows_ = 0;
  uint64_t row_bytes_ = 1;  // of the columns as they are encoded, in the row group with the widest rows
};

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FILES_TABLE_STREAM_H_
