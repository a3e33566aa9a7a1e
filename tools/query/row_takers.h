// SPDX-License-Identifier: Apache-2.0
// What a thread holds while it sends morsels through a pipeline: the way through the steps, and the end, which is the
// result or a sink.
#ifndef QUERN_TOOLS_QUERY_ROW_TAKERS_H_
#define QUERN_TOOLS_QUERY_ROW_TAKERS_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/abi/arrow_abi.h"
#include "runtime/base/memory.h"
#include "runtime/base/stop_flag.h"
#include "runtime/pipeline/pipeline.h"
#include "runtime/rows/batch_view.h"
#include "runtime/rows/output_batch.h"
#include "runtime/sink/sink_driver.h"
#include "runtime/spec/column_type.h"
#include "tools/query/query_run.h"
#include "tools/query/row_sources.h"
#include "tools/query/text_views.h"

namespace quern::query {

// Copies rows; those of each morsel come in batches of their own.
class ResultTaker final : public PipelineEnd {
 public:
  // types: as the rows come; columns: as they become batches.
  ResultTaker(std::vector<ColumnType> types, const std::vector<QueryColumn>& columns,
              std::shared_ptr<MemoryBudget> budget);
  ~ResultTaker() override;

  absl::Status Append(const BatchView& batch) override;
  // Those since the last call. *Ownership*: the caller releases them. *Errors*: as Append.
  absl::StatusOr<std::vector<ArrowArray>> TakeBatches();
  uint64_t num_rows() const { return num_rows_; }

 private:
  absl::Status Flush();

  const std::vector<ColumnType> types_;
  const std::vector<QueryColumn> columns_;
  const std::shared_ptr<MemoryBudget> budget_;
  std::unique_ptr<OutputBatch> out_;
  uint64_t next_rows_;
  std::vector<ArrowArray> batches_;
  uint64_t num_rows_ = 0;
};

// Appends rows to a sink, with texts as views where it wants them so. Where a step is refused memory, the sink writes
// rows, and the piece comes again: the batches that the sink has of it are left out.
class SinkTaker final : public PipelineEnd {
 public:
  // made_views: which of the payload.
  SinkTaker(const SinkInput& input, const std::vector<uint32_t>& made_views, std::shared_ptr<MemoryBudget> budget)
      : input_(input), made_views_(made_views), views_(made_views.size()), budget_(std::move(budget)) {}
  absl::Status Append(const BatchView& batch) override;
  absl::Status FreeMemory(const absl::Status& refused) override {
    return sink_refused_ ? refused : input_.FreeMemory(refused);
  }
  void BeginPiece() override { next_ = 0; }
  void EndPiece() override { num_done_ = 0; }
  uint64_t num_rows() const { return num_rows_; }

 private:
  const SinkInput input_;
  const std::vector<uint32_t> made_views_;
  std::vector<TextViews> views_;  // as many
  const std::shared_ptr<MemoryBudget> budget_;
  BatchView with_views_;
  uint64_t num_rows_ = 0;
  uint64_t next_ = 0, num_done_ = 0;  // batches of the piece
  bool sink_refused_ = false;         // the sink itself, which has written what it can
};

// Sends the batches of a source through the steps to the end.
class PipelineTaker final : public RowTaker {
 public:
  // *Ownership*: `end` and `stop`, which may be null, must outlive it.
  PipelineTaker(std::shared_ptr<const Pipeline> pipeline, const std::shared_ptr<MemoryBudget>& budget, PipelineEnd* end,
                uint64_t piece_rows, const StopFlag* stop);

  absl::Status Take(const BatchView& batch) override;
  absl::Status FreeMemory(const absl::Status& refused) override { return end_->FreeMemory(refused); }
  uint64_t num_rows() const { return num_rows_; }

 private:
  const std::shared_ptr<const Pipeline> pipeline_;
  PipelineEnd* const end_;
  PipelineInput input_;
  const StopFlag* const stop_;
  uint64_t num_rows_ = 0;
};

// A taker and its end for each thread, which makes them when it has its first morsel.
template <class End>
class Takers {
 public:
  struct Thread {
    std::unique_ptr<End> end;
    std::unique_ptr<PipelineTaker> taker;
  };

  // *Ownership*: `options` must outlive it.
  Takers(std::shared_ptr<const Pipeline> pipeline, const RunQueryOptions& options, uint64_t piece_rows,
         uint32_t threads)
      : pipeline_(std::move(pipeline)), options_(options), piece_rows_(piece_rows), threads_(threads) {}

  // end: what the end is made of. *Threads*: each calls it with its own number.
  template <class... EndArguments>
  const Thread& Of(uint32_t thread, const EndArguments&... end) {
    Thread& own = threads_[thread];
    if (own.end == nullptr) {
      own.end = std::make_unique<End>(end...);
      own.taker =
          std::make_unique<PipelineTaker>(pipeline_, options_.budget, own.end.get(), piece_rows_, options_.stop.get());
    }
    return own;
  }

  // The rows of all threads.
  void AddTo(PipelineStats* stats) const {
    for (const Thread& thread : threads_) {
      if (thread.end == nullptr) continue;
      stats->rows_in += thread.taker->num_rows();
      stats->rows_out += thread.end->num_rows();
    }
  }

 private:
  const std::shared_ptr<const Pipeline> pipeline_;
  const RunQueryOptions& options_;
  const uint64_t piece_rows_;
  std::vector<Thread> threads_;
};

}  // namespace quern::query

#endif  // QUERN_TOOLS_QUERY_ROW_TAKERS_H_
