// SPDX-License-Identifier: Apache-2.0
// A whole aggregation over batches that are all there, on threads of the library, for hosts that have no threads to
// spare.
//
// Like join_run.cc, it has three phases, and none begins before all threads have finished the previous one. Example: 3
// threads, 200,000 rows in one batch, 5 million groups:
//
//     append    65536 | 65536 | 65536 | 3392    each thread by its own appender, finished when no morsel is left
//     finalise  all threads, as quern_aggregate_finalise_shared does: each merges some partitions of all threads'
//     groups read      65536 | 65536 | ..              each thread by its own reader; results go to the host at once
//
// A single thread, or a single morsel, appends to the aggregation itself, since there is nothing to merge. At most as
// many threads read as there are results: 5 groups are one result, which one reader returns.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "hosts/c/aggregate_handles.h"
#include "hosts/c/host_batch.h"
#include "hosts/c/morsels.h"
#include "hosts/c/quern.h"
#include "runtime/base/shared_work.h"
#include "runtime/base/status.h"

namespace quern::c_abi {
namespace {

absl::Status ReadGroups(const std::shared_ptr<AggregateState>& state, uint64_t batch_rows, ResultSink* sink) {
  if (sink->stopped) return absl::OkStatus();
  QUERN_ASSIGN_OR_RETURN(const std::unique_ptr<quern_groups> groups,
                         NewGroups(state, GroupColumns::kResults, {}, batch_rows));
  bool more = true;
  while (more && !sink->stopped) {
    QUERN_ASSIGN_OR_RETURN(more, ReadNext(groups.get()));
    sink->Take(ResultOf(groups.get()));
  }
  return absl::OkStatus();
}

uint32_t NumReaders(const AggregateState& state, uint64_t batch_rows, uint32_t threads) {
  const uint64_t num_results =
      state.aggregate()->stats().num_groups / (batch_rows == 0 ? kDefaultBatchRows : batch_rows) + 1;
  return static_cast<uint32_t>(std::min<uint64_t>(threads, num_results));
}

absl::Status RunAggregate(quern_aggregate* aggregate, const Batches& batches, uint32_t threads, uint64_t batch_rows,
                          ResultSink* sink) {
  if (aggregate == nullptr) return MissingArgument("aggregate");
  QUERN_ASSIGN_OR_RETURN(const std::vector<Morsel> morsels, CutIntoMorsels(batches, "batches"));
  QUERN_ASSIGN_OR_RETURN(threads, NumThreads(threads));
  QUERN_RETURN_IF_ERROR(CheckBatchRows(batch_rows));
  const std::shared_ptr<AggregateState>& state = aggregate->state;
  QUERN_RETURN_IF_ERROR(state->sink->CheckOpen("run"));
  ExpectRows(*state->kernel, RowsOf(morsels), threads);
  const auto append = [&state](const SinkInput& input, const quern_batch& batch) {
    return AddHostBatch(*state, input, batch, RowKind::kInput);
  };
  QUERN_RETURN_IF_ERROR(AppendAndFinalise(*state, state->input, morsels, threads, append));
  const uint32_t readers = NumReaders(*state, batch_rows, threads);
  return RunMorsels(readers, readers, [&](uint32_t, uint64_t) { return ReadGroups(state, batch_rows, sink); });
}

}  // namespace
}  // namespace quern::c_abi

extern "C" {

quern_status quern_aggregate_run(quern_aggregate* aggregate, const quern_batch* batches, size_t num_batches,
                                 uint32_t threads, uint64_t batch_rows, quern_on_result on_result, void* context,
                                 uint64_t* num_groups, quern_error* error) {
  quern::c_abi::ResultSink sink{on_result, context};
  const quern_status status = quern::c_abi::Boundary(
      error, [&] { return quern::c_abi::RunAggregate(aggregate, {batches, num_batches}, threads, batch_rows, &sink); });
  if (num_groups != nullptr) *num_groups = sink.num_rows;
  return status;
}

}  // extern "C"
