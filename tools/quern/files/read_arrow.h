// SPDX-License-Identifier: Apache-2.0
// Reads Arrow IPC, files and streams.
#ifndef QUERN_TOOLS_FILES_READ_ARROW_H_
#define QUERN_TOOLS_FILES_READ_ARROW_H_

#include <arrow/io/type_fwd.h>
#include <arrow/ipc/type_fwd.h>
#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace quern::cli {

absl::StatusOr<std::shared_ptr<arrow::Schema>> ArrowSchemaOf(const std::string& path);

// The named columns, in the order of the file. Their values are not checked yet. *Errors*: a damaged frame; more rows
// without values than such a file has.
absl::StatusOr<std::shared_ptr<arrow::Table>> ReadArrow(const std::string& path,
                                                        const std::vector<std::string>& columns);

// The record batches of a file or a stream.
class ArrowBatches {
 public:
  // Of the columns that the options include.
  static arrow::Result<ArrowBatches> Open(const std::shared_ptr<arrow::io::RandomAccessFile>& file,
                                          const arrow::ipc::IpcReadOptions& options);

  // Of the whole file.
  std::shared_ptr<arrow::Schema> schema() const;
  // Whether the batches of a file can be read in any order.
  bool is_file() const { return file_ != nullptr; }
  int num_batches() const;  // of a file
  arrow::Result<std::shared_ptr<arrow::RecordBatch>> ReadBatch(int i);
  // The one after the last that this has returned; null: there are no more.
  arrow::Result<std::shared_ptr<arrow::RecordBatch>> Next();

 private:
  std::shared_ptr<arrow::ipc::RecordBatchFileReader> file_;
  std::shared_ptr<arrow::ipc::RecordBatchStreamReader> stream_;
  int next_ = 0;
};

// Options that include the named columns. `pool`: for what is read.
arrow::ipc::IpcReadOptions ArrowOptions(const arrow::Schema& schema, const std::vector<std::string>& columns,
                                        arrow::MemoryPool* pool);

// *Errors*: rows that no value takes part in, more than there may be.
absl::Status CheckRowsWithoutValues(const arrow::Schema& schema, int64_t num_rows, int64_t file_bytes,
                                    const std::string& path);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FILES_READ_ARROW_H_
