// SPDX-License-Identifier: Apache-2.0
// Pipelines run one after the other, each on several threads that take the source's morsels in turns:
//
//     thread 0   morsel 0, 2, ..  ─ steps ─ appender ─┐
//     thread 1   morsel 1, 3, ..  ─ steps ─ appender ─┴─ finalise ─> source of the next pipeline
//
// Where a step is a join whose build rows come out on their own, or one that has written rows, these go through the
// steps behind it when all rows have probed, join by join; the sink is finalised after them:
//
//     orders ─ probe A ─ probe B ─ aggregate      keys of which B has written rows: B writes their rows, too
//        what A has left ─ probe B ─ aggregate    all probes of A have ended; the same here
//                  what B has left ─ aggregate    now all probes of B have ended
//
// A pipeline of the result copies its rows out; where the result is what
// a sink has collected, its reader's batches are the result.
#include "tools/query/query_run.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>

#include "codegen/inspect/capture.h"
#include "codegen/inspect/pipeline_capture.h"
#include "codegen/operators.h"
#include "runtime/base/shared_work.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/pipeline/pipeline.h"
#include "runtime/pipeline/pipeline_spec.h"
#include "runtime/rows/output_batch.h"
#include "runtime/sink/sink_driver.h"
#include "runtime/spill/spilled_rows.h"
#include "tools/query/query_memory.h"
#include "tools/query/row_sources.h"
#include "tools/query/row_takers.h"
#include "tools/query/text_views.h"

namespace quern::query {
namespace {

std::vector<ColumnType> TypesOf(const std::vector<QueryColumn>& columns) {
  std::vector<ColumnType> types;
  for (const QueryColumn& column : columns) types.push_back(*column.type);
  return types;
}

// The columns that a sink reads.
PipelineSink SinkColumns(const PlannedPipeline& planned) {
  const auto type = [&planned](uint32_t number) { return *planned.last_columns[number].type; };
  if (!planned.spec.has_value()) {
    PipelineSink sink{.keys = {}, .payload = {}, .values = {}, .columns = planned.sink_columns};
    for (const uint32_t number : planned.sink_columns.keys) sink.keys.push_back(type(number));
    return sink;
  }
  PipelineSink sink = SinkOf(*planned.spec, planned.sink_columns);
  for (const uint32_t p : planned.made_views) sink.payload[p] = type(planned.sink_columns.payload[p]);
  return sink;
}

// The pipeline as a spec, for capture: with columns of any digits.
PipelineSpec SpecOf(const PlannedPipeline& planned) {
  PipelineSpec spec;
  spec.source = PipelineColumnsOf(TypesOf(planned.columns));
  for (const PlannedStep& step : planned.steps) spec.steps.push_back({step.spec, step.columns});
  spec.end = planned.spec;
  spec.end_columns = planned.sink_columns;
  return spec;
}

// One run of a query.
class QueryRun {
 public:
  QueryRun(const PreparedQuery& query, const std::vector<TableRows>& tables, const RunQueryOptions& options)
      : query_(query),
        plan_(query.plan()),
        tables_(tables),
        options_(options),
        memory_(query, tables, options),
        sinks_(plan_.pipelines.size()) {}

  absl::StatusOr<QueryRows> Run(std::vector<PipelineStats>* stats);

 private:
  // A pipeline's sink, by its kind.
  struct SinkOf {
    std::shared_ptr<HashJoin> join;
    std::shared_ptr<HashAggregate> groups;
    std::shared_ptr<RowSort> sort;
    std::shared_ptr<Sink> any;
    SinkMemory memory;
  };

  absl::Status RunPipeline(size_t number, PipelineStats* stats);
  void UseMemoryOf(const SinkMemory& memory, SourceContext* context) const;
  absl::Status SendLeft(size_t number, bool keeps_strings, PipelineStats* stats);
  void MakeSink(size_t number);
  std::unique_ptr<RowSource> SourceOf(const PlannedPipeline& planned, bool keeps_strings) const;
  SourceContext ContextOf(const std::vector<ColumnType>& types, bool keeps_strings) const;
  absl::StatusOr<std::shared_ptr<const Pipeline>> PipelineOf(size_t number, size_t first_step) const;
  absl::Status Send(RowSource* source, size_t number, size_t first_step, PipelineStats* stats);
  absl::Status SendToResult(RowSource* source, const std::shared_ptr<const Pipeline>& pipeline, uint32_t threads,
                            PipelineStats* stats);
  absl::Status SendToSink(RowSource* source, size_t number, const std::shared_ptr<const Pipeline>& pipeline,
                          uint32_t threads, PipelineStats* stats);
  void DropWhatWasRead(const PlannedPipeline& planned);
  absl::Status ReadCollected(const PlannedPipeline& last);
  absl::StatusOr<QueryRows> Result();

  const PreparedQuery& query_;
  const QueryPlan& plan_;
  const std::vector<TableRows>& tables_;
  const RunQueryOptions& options_;
  const QueryMemory memory_;
  std::vector<SinkOf> sinks_;                               // by pipeline
  std::vector<std::vector<std::vector<ArrowArray>>> rows_;  // of the result: by source, then by morsel
};

void QueryRun::MakeSink(size_t number) {
  const PlannedPipeline& planned = plan_.pipelines[number];
  SinkOf& sink = sinks_[number];
  if (planned.sink == SinkKind::kResult) return;
  const std::shared_ptr<const Kernel>& kernel = query_.kernels(number).back().kernel;
  sink.memory = memory_.Of(number);
  const std::shared_ptr<MemoryBudget>& budget = sink.memory.budget;
  switch (planned.sink) {
    case SinkKind::kBuild: sink.any = sink.join = MakeHashJoin(kernel, budget); break;
    case SinkKind::kAggregate: sink.any = sink.groups = MakeHashAggregate(kernel, budget); break;
    case SinkKind::kSort: sink.any = sink.sort = MakeRowSort(kernel, budget); break;
    case SinkKind::kResult: break;
  }
  sink.any->SetStopFlag(options_.stop);
  sink.any->SetSpill(sink.memory.spill);
}

SourceContext QueryRun::ContextOf(const std::vector<ColumnType>& types, bool keeps_strings) const {
  SourceContext context{types, options_.budget, std::max(options_.threads, 1u), false, thresholds::kMorselRows};
  for (const ColumnType& type : types) context.keeps_strings |= keeps_strings && IsVariable(RowOf(type.id).storage);
  const uint64_t limit = options_.budget == nullptr ? 0 : options_.budget->limit_bytes();
  if (limit == 0 || options_.spill == nullptr) return context;
  const uint64_t bytes_each = limit / (thresholds::kBatchesShareOfLimit * context.threads);
  context.most_rows =
      std::clamp(bytes_each / (RowBytesOf(types) + 1), thresholds::kFirstPieceRows, thresholds::kMorselRows);
  return context;
}

std::unique_ptr<RowSource> QueryRun::SourceOf(const PlannedPipeline& planned, bool keeps_strings) const {
  const std::vector<ColumnType> types = TypesOf(planned.columns);
  if (planned.reads_table)
    return MakeTableSource(tables_[planned.source], planned.children, ContextOf(types, keeps_strings));
  const SinkOf& from = sinks_[planned.source];
  if (from.sort != nullptr) return MakeSortSource(from.sort, planned.offset, ContextOf(types, keeps_strings));
  return MakeGroupSource(from.groups, ContextOf(types, keeps_strings));
}

// The steps of a pipeline from one of them on.
absl::StatusOr<std::shared_ptr<const Pipeline>> QueryRun::PipelineOf(size_t number, size_t first_step) const {
  const PlannedPipeline& planned = plan_.pipelines[number];
  std::vector<PipelineStep> steps;
  std::vector<ColumnType> source = TypesOf(planned.columns);
  for (size_t s = 0; s < planned.steps.size(); ++s) {
    const PlannedStep& step = planned.steps[s];
    const std::shared_ptr<const Kernel>& kernel = query_.kernels(number)[s].kernel;
    const auto* join = std::get_if<JoinSpec>(&step.spec);
    if (s + 1 == first_step) source = JoinOutputTypes(*join);
    if (s < first_step) continue;
    PipelineStep made{.op = {}, .columns = step.columns};
    if (join != nullptr) made.op = std::shared_ptr<const HashJoin>(sinks_[step.table].join);
    else if (std::holds_alternative<FilterSpec>(step.spec))
      made.op = std::shared_ptr<const RowFilter>(MakeRowFilter(kernel));
    else made.op = MakeRowMapper(kernel);
    steps.push_back(std::move(made));
  }
  return Pipeline::Make(PipelineColumnsOf(source), std::move(steps), SinkColumns(planned));
}

absl::Status QueryRun::SendToResult(RowSource* source, const std::shared_ptr<const Pipeline>& pipeline,
                                    uint32_t threads, PipelineStats* stats) {
  Takers<ResultTaker> takers(pipeline, options_, query_.piece_rows(), threads);
  std::vector<std::vector<ArrowArray>> rows(source->num_morsels());
  const absl::Status status = RunMorsels(threads, rows.size(), [&](uint32_t thread, uint64_t morsel) -> absl::Status {
    const auto& own = takers.Of(thread, pipeline->sink().keys, plan_.pipelines.back().results, options_.budget);
    QUERN_RETURN_IF_ERROR(source->Send(morsel, own.taker.get()));
    QUERN_ASSIGN_OR_RETURN(rows[morsel], own.end->TakeBatches());
    return absl::OkStatus();
  });
  rows_.push_back(std::move(rows));
  takers.AddTo(stats);
  return status;
}

absl::Status QueryRun::SendToSink(RowSource* source, size_t number, const std::shared_ptr<const Pipeline>& pipeline,
                                  uint32_t threads, PipelineStats* stats) {
  Takers<SinkTaker> takers(pipeline, options_, query_.piece_rows(), threads);
  const auto append = [&](const SinkInput& input, uint32_t thread, uint64_t morsel) {
    const auto& own = takers.Of(thread, input, plan_.pipelines[number].made_views, options_.budget);
    return source->Send(morsel, own.taker.get());
  };
  const absl::Status status = AppendMorsels(sinks_[number].any, source->num_morsels(), threads, append);
  takers.AddTo(stats);
  return status;
}

// Sends the rows of a source through the steps from one of them on.
absl::Status QueryRun::Send(RowSource* source, size_t number, size_t first_step, PipelineStats* stats) {
  QUERN_ASSIGN_OR_RETURN(const std::shared_ptr<const Pipeline> pipeline, PipelineOf(number, first_step));
  const auto threads =
      static_cast<uint32_t>(std::clamp<uint64_t>(source->num_morsels(), 1, std::max<uint32_t>(options_.threads, 1)));
  return plan_.pipelines[number].sink == SinkKind::kResult ? SendToResult(source, pipeline, threads, stats)
                                                           : SendToSink(source, number, pipeline, threads, stats);
}

absl::Status QueryRun::RunPipeline(size_t number, PipelineStats* stats) {
  const PlannedPipeline& planned = plan_.pipelines[number];
  MakeSink(number);
  const bool keeps_strings = SinkColumns(planned).keeps_strings;
  const std::unique_ptr<PipelineCapture> capture = IsCapturing() ? PipelineCapture::Of(SpecOf(planned), {}) : nullptr;
  const auto start = std::chrono::steady_clock::now();
  QUERN_RETURN_IF_ERROR(Send(SourceOf(planned, keeps_strings).get(), number, 0, stats));
  if (capture != nullptr) {
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start);
    const uint64_t morsels = (stats->rows_in + thresholds::kMorselRows - 1) / thresholds::kMorselRows;
    const uint64_t threads = std::clamp<uint64_t>(morsels, 1, std::max(options_.threads, 1u));
    for (uint64_t i = 0; i < threads; ++i) capture->AddThread();
    capture->Add(stats->rows_in, threads * static_cast<uint64_t>(ns.count()));
    capture->End();
  }
  QUERN_RETURN_IF_ERROR(SendLeft(number, keeps_strings, stats));
  if (planned.sink == SinkKind::kResult) return absl::OkStatus();
  // Starting a thread costs more than a morsel's share of the work.
  const uint64_t threads =
      std::clamp<uint64_t>(stats->rows_out / thresholds::kMorselRows, 1, std::max(options_.threads, 1u));
  const SinkOf& sink = sinks_[number];
  QUERN_RETURN_IF_ERROR(FinaliseOnThreads(sink.any.get(), static_cast<uint32_t>(threads)));
  if (sink.join != nullptr) sink.memory.EndBuild(sink.join->has_spilled());
  return absl::OkStatus();
}

// Of a join that has spilled: its results are made in its own share, of which its partitions have the most.
void QueryRun::UseMemoryOf(const SinkMemory& memory, SourceContext* context) const {
  constexpr uint64_t kLeastRows = 256, kStringBytes = 64;
  uint64_t row_bytes = RowBytesOf(context->types) + 1;
  for (const ColumnType& type : context->types) row_bytes += IsVariable(RowOf(type.id).storage) ? kStringBytes : 0;
  const uint64_t bytes_each = memory.share_bytes / (thresholds::kBatchesShareOfLimit / 2 * context->threads);
  context->most_rows = std::clamp(bytes_each / row_bytes, kLeastRows, thresholds::kFirstPieceRows);
  context->kept_budget = std::exchange(context->budget, memory.budget);
}

// Sends what each join has left through the steps behind it, when all rows have probed that join. A join is dropped as
// soon as nothing probes it any more, so that the others have its memory.
absl::Status QueryRun::SendLeft(size_t number, bool keeps_strings, PipelineStats* stats) {
  const PlannedPipeline& planned = plan_.pipelines[number];
  for (size_t s = 0; s < planned.steps.size(); ++s) {
    const auto* spec = std::get_if<JoinSpec>(&planned.steps[s].spec);
    if (spec == nullptr) continue;
    std::shared_ptr<HashJoin>& join = sinks_[planned.steps[s].table].join;
    if (join->has_spilled() || RowOf(spec->kind).flags_matched_rows()) {
      SourceContext context = ContextOf(JoinOutputTypes(*spec), keeps_strings);
      if (join->has_spilled()) UseMemoryOf(sinks_[planned.steps[s].table].memory, &context);
      const auto left = MakeUnmatchedSource(join, std::move(context));
      PipelineStats of_left;
      QUERN_RETURN_IF_ERROR(Send(left.get(), number, s + 1, &of_left));
      stats->rows_out += of_left.rows_out;
    }
    sinks_[planned.steps[s].table] = {};
  }
  return absl::OkStatus();
}

// One pipeline alone reads the groups or sorted rows of another, and one alone probes a table. A sink that keeps
// strings has the batches that they were copied to, not the sink that these came from.
void QueryRun::DropWhatWasRead(const PlannedPipeline& planned) {
  if (!planned.reads_table) sinks_[planned.source] = {};
}

// The result is what the last sink has collected.
absl::Status QueryRun::ReadCollected(const PlannedPipeline& last) {
  const std::vector<ColumnType> types = TypesOf(last.results);
  const SinkOf& sink = sinks_.back();
  const uint64_t num_rows = sink.sort != nullptr ? sink.sort->stats().num_rows : sink.groups->stats().num_groups;
  const uint64_t readers = Readers(num_rows, options_.threads);
  struct Placed {
    uint64_t position;
    ArrowArray batch;
  };
  std::vector<Placed> placed;
  std::mutex mutex;
  const absl::Status status = RunMorsels(options_.threads, readers, [&](uint32_t, uint64_t) -> absl::Status {
    OutputBatch out(types, std::clamp<uint64_t>(num_rows, 1, thresholds::kMorselRows), options_.budget);
    const auto read = [&](auto& reader, const auto& position) -> absl::Status {
      for (bool more = true; more;) {
        if (options_.stop != nullptr) QUERN_RETURN_IF_ERROR(options_.stop->Check());
        QUERN_ASSIGN_OR_RETURN(more, reader.Next(&out));
        if (out.num_rows() == 0) continue;
        Placed rows = {position(), {}};
        out.ExportArrow(&rows.batch);
        const absl::Status made = MakeOffsets(last.results, options_.budget, &rows.batch);
        const std::lock_guard lock(mutex);
        placed.push_back(rows);
        QUERN_RETURN_IF_ERROR(made);
      }
      return absl::OkStatus();
    };
    if (sink.sort != nullptr) {
      SortReader reader(sink.sort);
      return read(reader, [&] { return reader.position(); });
    }
    GroupReader reader(sink.groups);
    return read(reader, [] { return uint64_t{0}; });
  });
  std::sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) { return a.position < b.position; });
  rows_.emplace_back(1);
  for (const Placed& one : placed) rows_.back().front().push_back(one.batch);
  return status;
}

// Rows of a struct array from number `first` on.
void Cut(uint64_t first, uint64_t num_rows, ArrowArray* batch) {
  for (int64_t c = 0; c < batch->n_children; ++c) {
    ArrowArray& child = *batch->children[c];
    child.offset += static_cast<int64_t>(first);
    child.length = static_cast<int64_t>(num_rows);
    if (child.null_count != 0) child.null_count = -1;
  }
  batch->length = static_cast<int64_t>(num_rows);
}

absl::StatusOr<QueryRows> QueryRun::Result() {
  QueryRows result;
  for (size_t i = 0; i < plan_.columns.size(); ++i) {
    result.columns.push_back(plan_.pipelines.back().results[plan_.columns[i]]);
    result.columns.back().name = plan_.names[i];
    result.columns.back().type = StoredType(result.columns.back());
  }
  uint64_t left_out = plan_.offset, wanted = plan_.limit == 0 ? UINT64_MAX : plan_.limit;
  for (auto& of_source : rows_) {
    for (auto& of_morsel : of_source) {
      for (ArrowArray& batch : of_morsel) {
        const auto num_rows = static_cast<uint64_t>(batch.length);
        const uint64_t first = std::min(left_out, num_rows), taken = std::min(num_rows - first, wanted);
        left_out -= first;
        wanted -= taken;
        if (taken == 0) {
          batch.release(&batch);
          continue;
        }
        // The array's own list of children frees them, whatever the order of the pointers.
        std::vector<ArrowArray*> children;
        for (const uint32_t column : plan_.columns) children.push_back(batch.children[column]);
        std::copy(children.begin(), children.end(), batch.children);
        batch.n_children = static_cast<int64_t>(children.size());
        if (taken != num_rows) Cut(first, taken, &batch);
        result.num_rows += taken;
        result.batches.push_back(batch);
      }
    }
  }
  rows_.clear();
  return result;
}

absl::StatusOr<QueryRows> QueryRun::Run(std::vector<PipelineStats>* stats) {
  std::vector<PipelineStats> of_pipelines(plan_.pipelines.size());
  absl::Status status;
  for (size_t i = 0; i < plan_.pipelines.size() && status.ok(); ++i) {
    const auto start = std::chrono::steady_clock::now();
    status = RunPipeline(i, &of_pipelines[i]);
    if (status.ok()) DropWhatWasRead(plan_.pipelines[i]);
    of_pipelines[i].milliseconds =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }
  const PlannedPipeline& last = plan_.pipelines.back();
  if (status.ok() && last.sink != SinkKind::kResult) status = ReadCollected(last);
  if (stats != nullptr) *stats = std::move(of_pipelines);
  if (status.ok()) return Result();
  for (auto& of_source : rows_)
    for (auto& of_morsel : of_source)
      for (ArrowArray& batch : of_morsel) batch.release(&batch);
  return status;
}

}  // namespace

QueryRows& QueryRows::operator=(QueryRows&& other) noexcept {
  std::swap(columns, other.columns);
  std::swap(batches, other.batches);
  std::swap(num_rows, other.num_rows);
  return *this;
}

QueryRows::~QueryRows() {
  for (ArrowArray& batch : batches)
    if (batch.release != nullptr) batch.release(&batch);
}

absl::StatusOr<QueryRows> PreparedQuery::Run(const std::vector<TableRows>& tables, const RunQueryOptions& options,
                                             std::vector<PipelineStats>* stats) const {
  return QueryRun(*this, tables, options).Run(stats);
}

}  // namespace quern::query
