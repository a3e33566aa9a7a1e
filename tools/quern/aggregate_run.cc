// SPDX-License-Identifier: Apache-2.0
// The input is cut into batches of up to 64 Ki rows, which threads take in turns, each for groups of its own; then all threads bring their
// groups together, and read them:
//
//     append     A: batches 0, 2, 5, ..   B: 1, 3, 4, ..      6,000,000 rows: 92 batches; with 4 threads each takes about 23
//     finalise   A and B together
//     read       A: 64 Ki groups, and again    B: likewise    each group comes out of one of them
//
// One thread needs none of that: it appends to the aggregation itself. Few groups are read by one thread, whatever there are.
//
// Groups come in no order. first, last and string_agg do have one, that of the rows in the files: batches carry the number of their first
// row, so it makes no difference which thread takes which. --filter leaves rows out by a selection, which keeps their numbers.
#include "tools/quern/aggregate_run.h"

#include <arrow/api.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/hash_aggregate.h"
#include "runtime/output_batch.h"
#include "runtime/shared_work.h"
#include "runtime/status.h"
#include "tools/quern/batches.h"
#include "tools/quern/errors.h"
#include "tools/quern/run_options.h"

namespace quern::cli {
namespace {

using AggregatePointer = std::shared_ptr<HashAggregate>;

// The rows of a bool column that are true.
void SelectRows(const arrow::Array& column, std::vector<uint32_t>* selection) {
  const auto& rows = static_cast<const arrow::BooleanArray&>(column);
  selection->resize(static_cast<size_t>(rows.length()));
  size_t selected = 0;
  for (int64_t i = 0; i < rows.length(); ++i) {
    (*selection)[selected] = static_cast<uint32_t>(i);
    selected += rows.IsValid(i) && rows.Value(i) ? 1 : 0;
  }
  selection->resize(selected);
}

// The input in batches, as kernels see them.
class Batches {
 public:
  static absl::StatusOr<Batches> Cut(const PreparedAggregate& prepared) {
    Batches batches(prepared);
    QUERN_ASSIGN_OR_RETURN(batches.batches_, CutIntoBatches(prepared.input.table));
    uint64_t first_row = 0;
    for (const RecordBatchPointer& batch : batches.batches_) {
      batches.first_rows_.push_back(first_row);
      first_row += static_cast<uint64_t>(batch->num_rows());
    }
    return batches;
  }

  size_t size() const { return batches_.size(); }
  uint64_t num_rows(size_t i) const { return static_cast<uint64_t>(batches_[i]->num_rows()); }

  // `selection` holds the rows that the view selects, and must outlive it.
  absl::StatusOr<BatchView> View(size_t i, std::vector<uint32_t>* selection) const {
    QUERN_ASSIGN_OR_RETURN(BatchView view, ViewOf(*batches_[i], prepared_->input));
    view.first_row_id = first_rows_[i];
    if (!prepared_->filter.has_value()) return view;
    SelectRows(*batches_[i]->column(*prepared_->filter), selection);
    view.selection = selection->data();
    view.num_rows = selection->size();
    return view;
  }

 private:
  explicit Batches(const PreparedAggregate& prepared) : prepared_(&prepared) {}

  const PreparedAggregate* prepared_;
  std::vector<RecordBatchPointer> batches_;
  std::vector<uint64_t> first_rows_;
};

absl::Status AppendByOne(const Batches& batches, Progress* progress, HashAggregate* aggregate) {
  std::vector<uint32_t> selection;
  for (size_t i = 0; i < batches.size(); ++i) {
    QUERN_ASSIGN_OR_RETURN(const BatchView view, batches.View(i, &selection));
    QUERN_RETURN_IF_ERROR(aggregate->Append(view));
    progress->Add(batches.num_rows(i));
  }
  return absl::OkStatus();
}

absl::Status AppendByAll(const Batches& batches, uint32_t threads, Progress* progress, const AggregatePointer& aggregate) {
  std::vector<std::unique_ptr<AggregateAppender>> appenders;
  for (uint32_t thread = 0; thread < threads; ++thread) appenders.push_back(std::make_unique<AggregateAppender>(aggregate));
  std::vector<std::vector<uint32_t>> selections(threads);
  const absl::Status appended = RunMorsels(threads, batches.size(), [&](uint32_t thread, uint64_t i) -> absl::Status {
    QUERN_ASSIGN_OR_RETURN(const BatchView view, batches.View(i, &selections[thread]));
    QUERN_RETURN_IF_ERROR(appenders[thread]->Append(view));
    progress->Add(batches.num_rows(i));
    return absl::OkStatus();
  });
  QUERN_RETURN_IF_ERROR(appended);
  return RunMorsels(threads, threads, [&](uint32_t, uint64_t i) { return appenders[i]->Finish(); });
}

absl::Status Finalise(uint32_t threads, HashAggregate* aggregate) {
  if (threads == 1) return aggregate->Finalise();
  return RunMorsels(threads, threads, [aggregate](uint32_t, uint64_t) { return aggregate->FinaliseShared(); });
}

// What the threads that read share.
struct Reading {
  const PreparedAggregate& prepared;
  const AggregatePointer& aggregate;
  const std::shared_ptr<MemoryBudget>& budget;
  bool count;
  std::vector<std::vector<RecordBatchPointer>> results;  // by reader
  std::vector<uint64_t> num_rows;                        // likewise
};

absl::Status ReadGroups(size_t reader_number, Reading* reading) {
  GroupReader reader(reading->aggregate);
  const KernelSpec& spec = reading->prepared.spec;
  OutputBatch out(reading->count ? std::vector<ColumnType>() : AggregateOutputTypes(spec), kOutputRows, reading->budget);
  bool more = true;
  while (more) {
    QUERN_ASSIGN_OR_RETURN(more, reader.Next(&out));
    reading->num_rows[reader_number] += out.num_rows();
    if (reading->count || out.num_rows() == 0) continue;
    QUERN_ASSIGN_OR_RETURN(RecordBatchPointer rows, TakeRows(reading->prepared.schema, &out));
    reading->results[reader_number].push_back(std::move(rows));
  }
  return absl::OkStatus();
}

absl::Status Read(uint32_t threads, Reading* reading) {
  const uint64_t num_batches = reading->aggregate->stats().num_groups / kOutputRows + 1;
  const uint64_t readers = std::min<uint64_t>(threads, num_batches);
  reading->results.resize(readers);
  reading->num_rows.resize(readers);
  return RunMorsels(threads, readers, [reading](uint32_t, uint64_t reader) { return ReadGroups(reader, reading); });
}

absl::Status Aggregate(const Batches& batches, uint32_t threads, Progress* progress, Reading* reading) {
  uint64_t num_rows = 0;
  for (size_t i = 0; i < batches.size(); ++i) num_rows += batches.num_rows(i);
  progress->Begin("append", num_rows);
  if (threads == 1) {
    QUERN_RETURN_IF_ERROR(AppendByOne(batches, progress, reading->aggregate.get()));
  } else {
    QUERN_RETURN_IF_ERROR(AppendByAll(batches, threads, progress, reading->aggregate));
  }
  progress->Begin("finalise", 0);
  QUERN_RETURN_IF_ERROR(Finalise(threads, reading->aggregate.get()));
  progress->Begin("groups", 0);
  return Read(threads, reading);
}

}  // namespace

absl::StatusOr<AggregateResult> RunPreparedAggregate(const PreparedAggregate& prepared, const CompiledKernel& compiled, bool count,
                                                     const std::shared_ptr<MemoryBudget>& budget, uint32_t threads, Progress* progress) {
  Stopwatch watch;
  const AggregatePointer aggregate = MakeHashAggregate(compiled.kernel, budget);
  QUERN_ASSIGN_OR_RETURN(const Batches batches, Batches::Cut(prepared));
  AggregateResult result;
  result.threads = static_cast<uint32_t>(std::min<size_t>(threads, std::max<size_t>(batches.size(), 1)));
  Reading reading{prepared, aggregate, budget, count, {}, {}};
  QUERN_RETURN_IF_ERROR(AsDataError(Aggregate(batches, result.threads, progress, &reading)));
  for (const uint64_t rows : reading.num_rows) result.num_rows += rows;
  if (!count) {
    QUERN_ASSIGN_OR_RETURN(result.table, TableOf(prepared.schema, reading.results));
  }
  result.run_ms = watch.Lap();
  result.stats = aggregate->stats();
  return result;
}

}  // namespace quern::cli
