// SPDX-License-Identifier: Apache-2.0
// Appends one input to an operator with any number of threads, which take its batches in turns; then all threads
// finalise together.
//
//     append     A: batches 0, 2, 5, ..   B: 1, 3, 4, ..    of 6,000,000 rows, 4 threads take about 23 batches each
//     finalise   A and B together
//
// A single thread appends to the operator itself.
#ifndef QUERN_TOOLS_STREAM_APPEND_BATCHES_H_
#define QUERN_TOOLS_STREAM_APPEND_BATCHES_H_

#include <arrow/type_fwd.h>

#include <algorithm>
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
#include "runtime/rows/output_batch.h"
#include "runtime/sink/sink_driver.h"
#include "runtime/spec/column_type.h"
#include "tools/quern/files/batches.h"
#include "tools/quern/files/progress.h"
#include "tools/quern/stream/table_stream.h"

namespace quern::cli {

// The number of threads that so many batches keep busy.
inline uint32_t ThreadsFor(size_t num_batches, uint32_t threads) {
  return static_cast<uint32_t>(std::min<size_t>(threads, std::max<size_t>(num_batches, 1)));
}

// Appends all batches, then finalises.
inline absl::Status AppendAndFinalise(const InputBatches& batches, uint32_t threads, Progress* progress,
                                      const std::shared_ptr<Sink>& sink) {
  progress->Begin("append", batches.num_rows());
  std::vector<std::vector<uint32_t>> selections(std::max(threads, 1u));
  const auto append = [&](const SinkInput& input, uint32_t thread, uint64_t i) -> absl::Status {
    QUERN_ASSIGN_OR_RETURN(const BatchView view, batches.View(i, &selections[thread]));
    QUERN_RETURN_IF_ERROR(input.Append(view));
    progress->Add(batches.num_rows(i));
    return absl::OkStatus();
  };
  QUERN_RETURN_IF_ERROR(AppendMorsels(sink, batches.size(), threads, append));
  progress->Begin("finalise", 0);
  return FinaliseOnThreads(sink.get(), threads);
}

// ---- inputs that are read piece by piece ----

inline uint32_t ThreadsFor(const TableStream& stream, uint32_t threads) {
  return ThreadsFor(stream.num_pieces(), std::min(threads, stream.most_threads()));
}

// An input that is read piece by piece.
struct StreamedInput {
  std::optional<TableStream> stream;
  KernelInput input;  // as prepared from the stream's sample
  // The columns that the kernel reads, of a batch as it is in the file.
  std::function<absl::StatusOr<std::shared_ptr<arrow::Table>>(const std::shared_ptr<arrow::Table>& batch)> prepare;
};

// The columns of what was prepared of one input.
template <class Prepared>
absl::StatusOr<std::shared_ptr<arrow::Table>> TableOfInput(const absl::StatusOr<Prepared>& prepared) {
  QUERN_RETURN_IF_ERROR(prepared.status());
  return prepared->input.table;
}

// For batches of results of these types, which have as many rows as elsewhere, or fewer where the budget is small.
// out_budget: counts them.
std::unique_ptr<OutputBatch> StreamedResults(const std::vector<ColumnType>& types, const MemoryBudget& budget,
                                             const std::shared_ptr<MemoryBudget>& out_budget);

// Adds a batch of a stream. Where the batches that the operator keeps leave too little memory, it writes rows before.
absl::Status AppendStreamed(const SinkInput& input, const BatchView& batch);

// Reads a piece and calls `take` for each of its batches. selection: memory of the calling thread. Adds the rows to
// `progress`.
absl::Status ForEachBatch(const StreamedInput& from, size_t piece, std::vector<uint32_t>* selection, Progress* progress,
                          const std::function<absl::Status(const BatchView& batch)>& take);

// Appends all pieces, which threads take in turns, then finalises.
absl::Status AppendStream(const StreamedInput& from, uint32_t threads, const char* phase, Progress* progress,
                          const std::shared_ptr<Sink>& sink);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_STREAM_APPEND_BATCHES_H_
