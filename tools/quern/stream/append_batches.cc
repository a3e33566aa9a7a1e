// SPDX-License-Identifier: Apache-2.0
#include "tools/quern/stream/append_batches.h"

#include <arrow/api.h>

#include <algorithm>

#include "runtime/base/status.h"

namespace quern::cli {

uint64_t StreamedRows(const std::vector<ColumnType>& types, const MemoryBudget& budget) {
  constexpr uint64_t kShare = 64, kGuessedColumnBytes = 24, kFewestRows = 1024;
  const uint64_t row_bytes = std::max<uint64_t>(types.size(), 1) * kGuessedColumnBytes;
  return std::clamp(budget.limit_bytes() / kShare / row_bytes, kFewestRows, kOutputRows);
}

absl::Status ForEachBatch(const StreamedInput& from, size_t piece, std::vector<uint32_t>* selection, Progress* progress,
                          const std::function<absl::Status(const BatchView& batch)>& take) {
  return from.stream->ReadPiece(piece, [&](const std::shared_ptr<arrow::Table>& table, uint64_t first_row) {
    KernelInput input = from.input;
    QUERN_ASSIGN_OR_RETURN(input.table, from.prepare(table));
    QUERN_ASSIGN_OR_RETURN(const InputBatches batches, InputBatches::Cut(input, first_row));
    for (size_t i = 0; i < batches.size(); ++i) {
      QUERN_ASSIGN_OR_RETURN(const BatchView view, batches.View(i, selection));
      QUERN_RETURN_IF_ERROR(take(view));
      progress->Add(batches.num_rows(i));
    }
    return absl::OkStatus();
  });
}

absl::Status AppendStream(const StreamedInput& from, uint32_t threads, const char* phase, Progress* progress,
                          const std::shared_ptr<Sink>& sink) {
  progress->Begin(phase, from.stream->num_rows());
  const uint32_t used = ThreadsFor(*from.stream, threads);
  std::vector<std::vector<uint32_t>> selections(used);
  const auto append = [&](const SinkInput& input, uint32_t thread, uint64_t piece) {
    return ForEachBatch(from, piece, &selections[thread], progress,
                        [&](const BatchView& batch) { return input.Append(batch); });
  };
  QUERN_RETURN_IF_ERROR(AppendMorsels(sink, from.stream->num_pieces(), used, append));
  progress->Begin("finalise", 0);
  return FinaliseOnThreads(sink.get(), used);
}

}  // namespace quern::cli
