// SPDX-License-Identifier: Apache-2.0
#include "tools/quern/stream/append_batches.h"

#include <arrow/api.h>
#include <arrow/util/byte_size.h>

#include <algorithm>
#include <utility>

#include "runtime/base/status.h"
#include "tools/quern/files/reading_memory.h"

namespace quern::cli {
namespace {

// Calls `take` for a batch of which it may keep the owner, and counts what it keeps.
absl::Status TakeCounted(const std::shared_ptr<arrow::Table>& table, int64_t num_batches, BatchView view,
                         const std::function<absl::Status(const BatchView& batch)>& take) {
  const auto bytes = arrow::util::ReferencedBufferSize(*table);
  if (!bytes.ok()) return absl::InternalError(bytes.status().ToString());
  const auto kept = std::make_shared<KeptBatch>(std::move(view.owner), *bytes / num_batches);
  view.owner = kept;
  QUERN_RETURN_IF_ERROR(take(view));
  view.owner = nullptr;
  if (kept.use_count() > 1) kept->Count();
  return absl::OkStatus();
}

}  // namespace

// Some eight batches are in memory at a time: filled, waiting to be written, and encoded.
std::unique_ptr<OutputBatch> StreamedResults(const std::vector<ColumnType>& types, const MemoryBudget& budget,
                                             const std::shared_ptr<MemoryBudget>& out_budget) {
  constexpr uint64_t kShare = 64, kGuessedColumnBytes = 24, kFewestRows = 1024;
  const uint64_t row_bytes = std::max<uint64_t>(types.size(), 1) * kGuessedColumnBytes;
  const uint64_t most_bytes = budget.limit_bytes() / kShare;
  const uint64_t rows = std::clamp(most_bytes / row_bytes, kFewestRows, kOutputRows);
  auto out = std::make_unique<OutputBatch>(types, rows, out_budget);
  out->SetMostStringBytes(most_bytes);
  return out;
}

absl::Status ForEachBatch(const StreamedInput& from, size_t piece, std::vector<uint32_t>* selection, Progress* progress,
                          const std::function<absl::Status(const BatchView& batch)>& take) {
  return from.stream->ReadPiece(piece, [&](const std::shared_ptr<arrow::Table>& table, uint64_t first_row) {
    KernelInput input = from.input;
    QUERN_ASSIGN_OR_RETURN(input.table, from.prepare(table));
    QUERN_ASSIGN_OR_RETURN(const InputBatches batches, InputBatches::Cut(input, first_row));
    for (size_t i = 0; i < batches.size(); ++i) {
      QUERN_ASSIGN_OR_RETURN(BatchView view, batches.View(i, selection));
      if (ReadingLimit() == 0) QUERN_RETURN_IF_ERROR(take(view));
      else QUERN_RETURN_IF_ERROR(TakeCounted(input.table, static_cast<int64_t>(batches.size()), std::move(view), take));
      progress->Add(batches.num_rows(i));
    }
    return absl::OkStatus();
  });
}

absl::Status AppendStreamed(const SinkInput& input, const BatchView& batch) {
  for (absl::Status refused = CheckKeptBatches(); !refused.ok(); refused = CheckKeptBatches()) {
    const absl::Status freed = input.FreeMemory(refused);
    if (absl::IsResourceExhausted(freed)) break;  // nothing is left to write
    QUERN_RETURN_IF_ERROR(freed);
  }
  return input.Append(batch);
}

absl::Status AppendStream(const StreamedInput& from, uint32_t threads, const char* phase, Progress* progress,
                          const std::shared_ptr<Sink>& sink) {
  progress->Begin(phase, from.stream->num_rows());
  const uint32_t used = ThreadsFor(*from.stream, threads);
  std::vector<std::vector<uint32_t>> selections(used);
  const auto append = [&](const SinkInput& input, uint32_t thread, uint64_t piece) {
    return ForEachBatch(from, piece, &selections[thread], progress,
                        [&](const BatchView& batch) { return AppendStreamed(input, batch); });
  };
  QUERN_RETURN_IF_ERROR(AppendMorsels(sink, from.stream->num_pieces(), used, append));
  progress->Begin("finalise", 0);
  return FinaliseOnThreads(sink.get(), used);
}

}  // namespace quern::cli
