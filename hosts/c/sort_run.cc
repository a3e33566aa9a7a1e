// SPDX-License-Identifier: Apache-2.0
// A whole sort over batches that are all there, on threads of the library, for hosts that have no threads to spare.
//
// Like aggregate_run.cc, except for the last phase. Example: 3 threads, 200,000 rows in one batch:
//
//     append    65536 | 65536 | 65536 | 3392    each thread by its own appender, finished when no morsel is left
//     finalise  all threads, as quern_sort_finalise_shared does
//     read      65536, 65536, 65536, 3392       this thread alone, since the host's function receives the rows in order
//
// Several threads could only read ahead and would wait for each other's turn. A host that can use rows by position
// makes its own readers: without a function for results nothing is read here, and all rows remain for readers.
#include <cstdint>
#include <memory>
#include <vector>

#include "hosts/c/host_batch.h"
#include "hosts/c/morsels.h"
#include "hosts/c/quern.h"
#include "hosts/c/sort_handles.h"
#include "runtime/base/status.h"

namespace quern::c_abi {
namespace {

absl::Status ReadRows(const std::shared_ptr<SortState>& state, uint64_t batch_rows, ResultSink* sink) {
  if (sink->on_result == nullptr) {
    sink->num_rows = state->sort()->stats().num_rows;
    return absl::OkStatus();
  }
  QUERN_ASSIGN_OR_RETURN(const std::unique_ptr<quern_sorted> sorted, NewSorted(state, batch_rows));
  bool more = true;
  while (more && !sink->stopped) {
    QUERN_ASSIGN_OR_RETURN(more, ReadNext(sorted.get()));
    sink->Take(ResultOf(sorted.get()));
  }
  return absl::OkStatus();
}

absl::Status RunSort(quern_sort* sort, const Batches& batches, uint32_t threads, uint64_t batch_rows,
                     ResultSink* sink) {
  if (sort == nullptr) return MissingArgument("sort");
  QUERN_ASSIGN_OR_RETURN(const std::vector<Morsel> morsels, CutIntoMorsels(batches, "batches"));
  QUERN_ASSIGN_OR_RETURN(threads, NumThreads(threads));
  QUERN_RETURN_IF_ERROR(CheckBatchRows(batch_rows));
  const std::shared_ptr<SortState>& state = sort->state;
  QUERN_RETURN_IF_ERROR(state->sink->CheckOpen("run"));
  ExpectRows(*state->kernel, RowsOf(morsels), threads);
  const auto append = [&state](const SinkInput& input, const quern_batch& batch) {
    return AddHostBatch(*state, input, batch, false);
  };
  QUERN_RETURN_IF_ERROR(AppendAndFinalise(*state, state->input.types, morsels, threads, append));
  return ReadRows(state, batch_rows, sink);
}

}  // namespace
}  // namespace quern::c_abi

extern "C" {

quern_status quern_sort_run(quern_sort* sort, const quern_batch* batches, size_t num_batches, uint32_t threads,
                            uint64_t batch_rows, quern_on_result on_result, void* context, uint64_t* num_rows,
                            quern_error* error) {
  quern::c_abi::ResultSink sink{on_result, context};
  const quern_status status = quern::c_abi::Boundary(
      error, [&] { return quern::c_abi::RunSort(sort, {batches, num_batches}, threads, batch_rows, &sink); });
  if (num_rows != nullptr) *num_rows = sink.num_rows;
  return status;
}

}  // extern "C"
