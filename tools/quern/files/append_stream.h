// SPDX-License-Identifier: Apache-2.0
// Batches of an input that is read piece by piece, as a kernel reads them.
#ifndef QUERN_TOOLS_FILES_APPEND_STREAM_H_
#define QUERN_TOOLS_FILES_APPEND_STREAM_H_

#include <arrow/type_fwd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/sink/sink_driver.h"
#include "runtime/spec/column_type.h"
#include "tools/quern/files/batches.h"
#include "tools/quern/files/progress.h"
#include "tools/quern/files/table_stream.h"

namespace quern::cli {

// An input that is read piece by piece.
struct StreamedInput {
  std::optional<TableStream> stream;
  KernelInput input;  // as prepared from the stream's sample
  // The columns that the kernel reads, of a batch as it is in the file.
  std::function<absl::StatusOr<std::shared_ptr<arrow::Table>>(const std::shared_ptr<arrow::Table>& batch)> prepare;
};

// Whether an argument names files that can be read piece by piece.
bool StreamsFile(const std::string& pattern);

// The columns of what was prepared of one input.
template <class Prepared>
absl::StatusOr<std::shared_ptr<arrow::Table>> TableOfInput(const absl::StatusOr<Prepared>& prepared) {
  QUERN_RETURN_IF_ERROR(prepared.status());
  return prepared->input.table;
}

// The rows of a batch of results: as many as elsewhere, or fewer where the budget is small.
uint64_t StreamedRows(const std::vector<ColumnType>& types, const MemoryBudget& budget);

// Reads a piece and calls `take` for each of its batches. selection: memory of the calling thread. Adds the rows to
// `progress`.
absl::Status ForEachBatch(const StreamedInput& from, size_t piece, std::vector<uint32_t>* selection, Progress* progress,
                          const std::function<absl::Status(const BatchView& batch)>& take);

// Appends all pieces, which threads take in turns, then finalises.
absl::Status AppendStream(const StreamedInput& from, uint32_t threads, const char* phase, Progress* progress,
                          const std::shared_ptr<Sink>& sink);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FILES_APPEND_STREAM_H_
