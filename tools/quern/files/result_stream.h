// SPDX-License-Identifier: Apache-2.0
// Where result rows go as they come, for results that are larger than memory.
#ifndef QUERN_TOOLS_FILES_RESULT_STREAM_H_
#define QUERN_TOOLS_FILES_RESULT_STREAM_H_

#include <arrow/type_fwd.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/rows/output_batch.h"
#include "tools/quern/files/batches.h"
#include "tools/quern/files/output_file.h"
#include "tools/quern/files/table_io.h"

namespace quern::cli {

// The columns of a result: those of the kernel, and for each column of the result its number among them.
struct ResultColumns {
  std::shared_ptr<arrow::Schema> kernel_schema;  // null: rows are counted
  std::vector<int> order;
};

// Writes rows to a file, keeps the first of them, or counts them. *Threads*: Write from any. The rows of one thread are
// in the order of its calls. A thread that finds another one writing leaves its rows to it, unless there are many.
class ResultStream {
 public:
  // rows_kept: how many are kept where there is no file. file: may be null; not owned.
  ResultStream(ResultColumns columns, int64_t rows_kept, OutputFile* file, FileFormat format);

  absl::Status Begin();
  // Takes the rows of `out`.
  absl::Status Write(OutputBatch* out);
  // The same in two steps: makes columns of the rows of `out`, which has some, and writes them. Counted rows have no
  // columns. *Threads*: Take from any, also while another one writes.
  absl::StatusOr<RecordBatchPointer> Take(OutputBatch* out) const;
  absl::Status Write(const RecordBatchPointer& rows);
  // Completes the file; the caller gives it its name.
  absl::Status End();

  uint64_t num_rows() const { return num_rows_; }
  // The rows that were kept; null where rows went to a file or were counted.
  absl::StatusOr<std::shared_ptr<arrow::Table>> FirstRows() const;

 private:
  const ResultColumns columns_;
  const int64_t rows_kept_;
  OutputFile* const file_;
  const FileFormat format_;
  std::shared_ptr<arrow::Schema> schema_;  // of the result
  absl::Status WriteToFile(RecordBatchPointer rows);

  std::mutex mutex_;  // guards what follows
  uint64_t num_rows_ = 0;
  bool is_writing_ = false;
  std::condition_variable written_;
  std::deque<RecordBatchPointer> waiting_;  // for the thread that writes
  absl::Status status_;
  int64_t num_kept_ = 0;
  std::vector<RecordBatchPointer> kept_;
};

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FILES_RESULT_STREAM_H_
