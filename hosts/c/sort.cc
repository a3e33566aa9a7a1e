// SPDX-License-Identifier: Apache-2.0
// The C ABI of sorts: batches of a host's own vectors in, rows in order out. (Arrow: sort_arrow.cc; runs on threads of
// the library: sort_run.cc; merges of the output of several sorts: merge.cc.)
//
// Its functions have the form that quern.cc describes, and so have its handles:
//
//     quern_kernel -> Kernel (machine code) <- SortState (rows, memory budget) <- quern_sort
//                                              SortState                       <- quern_sort_appender, ..
//                                              SortState                       <- quern_sorted, quern_sorted, ..
//
// As in the build side of a join, rows point to the bytes of long strings, which the host keeps in place or has copied.
// A sort that keeps no more rows than a small limit copies the strings of those rows, so `copy_bytes` has nothing to
// do.
//
// A sort with a limit has a threshold, which it updates when it selects the best of its rows. Example: `sort
// keys=i32:desc limit=2`:
//
//     rows so far 5, 9, 4, ..    best two 9, 5     threshold 5: a row below 5 will not come out
//     then 7, 3, ..              best two 9, 7     threshold 7
//
// The threshold is returned as one row of an output batch that belongs to the handle. Readers share rows: each takes
// the next ones that no reader has taken and returns their position. Two readers with 65536 rows each may hold rows 0
// to 65535 and 65536 to 131071.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "codegen/plan/plan.h"
#include "hosts/c/host_batch.h"
#include "hosts/c/quern.h"
#include "hosts/c/sort_handles.h"
#include "runtime/base/status.h"

namespace quern::c_abi {
namespace {

absl::Status CreateSort(quern_kernel* kernel, uint64_t memory_limit, quern_sort** sort) {
  if (sort == nullptr) return MissingArgument("sort");
  *sort = nullptr;
  if (kernel == nullptr) return MissingArgument("kernel");
  QUERN_RETURN_IF_ERROR(CheckOperator(*kernel, Operator::kSort, "a sort"));
  *sort = new quern_sort(std::make_shared<SortState>(kernel->compiled, memory_limit));
  return absl::OkStatus();
}

// ---- input ----

template <class Handle>
absl::Status Append(Handle* handle, const quern_batch* batch, bool copy_bytes) {
  QUERN_ASSIGN_OR_RETURN(const SinkInput input, OpenInput(handle));
  if (batch == nullptr) return MissingArgument("batch");
  return AddHostBatch(*handle->state, input, *batch, copy_bytes);
}

// ---- the threshold ----

absl::Status GetThreshold(quern_sort* sort, quern_result* row, bool* exists) {
  if (row == nullptr) return MissingArgument("row");
  *row = {};
  if (exists == nullptr) return MissingArgument("exists");
  *exists = false;
  if (sort == nullptr) return MissingArgument("sort");
  QUERN_RETURN_IF_ERROR(sort->state->sink->CheckOpen("threshold"));
  QUERN_ASSIGN_OR_RETURN(*exists, sort->state->sort()->GetThreshold(&sort->threshold));
  if (*exists) *row = ShowRows(sort->threshold, &sort->threshold_columns);
  return absl::OkStatus();
}

absl::Status SetThreshold(quern_sort* sort, const quern_batch* keys) {
  if (sort == nullptr) return MissingArgument("sort");
  if (keys == nullptr) return MissingArgument("keys");
  const SortState& state = *sort->state;
  QUERN_RETURN_IF_ERROR(state.sink->CheckOpen("threshold"));
  QUERN_ASSIGN_OR_RETURN(const HostBatchView view,
                         ViewOfHostBatch(*keys, state.input.types.keys, {}, "threshold", {state.budget}));
  return state.sort()->SetThreshold(view.batch);
}

// ---- method, statistics and counters ----

void GetStats(const quern_sort* sort, quern_sort_stats* stats) {
  if (stats == nullptr) return;
  *stats = {};
  if (sort == nullptr) return;
  const SortStats& counted = sort->state->sort()->stats();
  stats->input_rows = counted.input_rows;
  stats->num_rows = counted.num_rows;
  stats->dropped_rows = counted.dropped_rows;
  stats->collided_rows = counted.collided_rows;
  stats->peak_bytes = sort->state->budget->peak_bytes();
  stats->entry_bytes = counted.entry_bytes;
  stats->key_bits = counted.key_bits;
}

const char* MethodOf(const quern_sort* sort) {
  if (sort == nullptr) return nullptr;
  return sort->state->sink->is_finalised() ? sort->state->sort()->stats().method : "";
}

// ---- reading rows ----

absl::Status CreateSorted(quern_sort* sort, uint64_t batch_rows, quern_sorted** sorted) {
  if (sorted == nullptr) return MissingArgument("sorted");
  *sorted = nullptr;
  if (sort == nullptr) return MissingArgument("sort");
  QUERN_ASSIGN_OR_RETURN(std::unique_ptr<quern_sorted> made, NewSorted(sort->state, batch_rows));
  *sorted = made.release();
  return absl::OkStatus();
}

absl::Status NextResult(quern_sorted* sorted, quern_result* result, uint64_t* position, bool* more) {
  if (result == nullptr) return MissingArgument("result");
  *result = {};
  if (position != nullptr) *position = 0;
  if (more == nullptr) return MissingArgument("more");
  *more = false;
  if (sorted == nullptr) return MissingArgument("sorted");
  QUERN_ASSIGN_OR_RETURN(*more, ReadNext(sorted));
  if (position != nullptr) *position = sorted->reader.position();
  *result = ResultOf(sorted);
  return absl::OkStatus();
}

}  // namespace

RowInput::RowInput(const KernelSpec& spec) {
  for (const KeySpec& key : spec.keys) types.keys.push_back(key.type);
  types.payload = spec.payload;
}

SortState::SortState(const CompiledKernel& compiled, uint64_t memory_limit) : input(compiled.kernel->plan.spec) {
  kernel = compiled.kernel;
  cache = compiled.cache;
  budget = std::make_shared<MemoryBudget>(memory_limit);
  sink = MakeRowSort(kernel, budget);
  keeps_strings = sort()->keeps_strings() && HasStrings(input.types);
}

absl::Status AddHostBatch(const SortState& state, const SinkInput& input, const quern_batch& batch, bool copy_bytes) {
  const BatchTypes& types = state.input.types;
  const bool copies = copy_bytes && state.keeps_strings;
  QUERN_ASSIGN_OR_RETURN(HostBatchView view,
                         ViewOfHostBatch(batch, types.keys, types.payload, "input", {state.budget, copies}));
  const std::shared_ptr<const void> needed_for_this_call = std::exchange(view.batch.owner, view.strings);
  return input.Append(view.batch);
}

absl::StatusOr<std::unique_ptr<quern_sorted>> NewSorted(const std::shared_ptr<SortState>& state, uint64_t batch_rows) {
  QUERN_RETURN_IF_ERROR(CheckBatchRows(batch_rows));
  if (!state->sink->is_finalised()) {
    return absl::FailedPreconditionError(
        "reader before finalise: the rows are not sorted; accepted: after quern_sort_finalise");
  }
  return std::make_unique<quern_sorted>(state, ResultRows(batch_rows, state->sort()->stats().num_rows));
}

quern_result ResultOf(quern_sorted* sorted) { return ShowRows(sorted->output, &sorted->result_columns); }

}  // namespace quern::c_abi

namespace c_abi = quern::c_abi;

extern "C" {

quern_status quern_sort_create(quern_kernel* kernel, uint64_t memory_limit, quern_sort** sort, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::CreateSort(kernel, memory_limit, sort); });
}

void quern_sort_destroy(quern_sort* sort) { delete sort; }

quern_status quern_sort_append(quern_sort* sort, const quern_batch* batch, bool copy_bytes, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::Append(sort, batch, copy_bytes); });
}

quern_status quern_sort_finalise(quern_sort* sort, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::Finalise(sort); });
}

quern_status quern_sort_finalise_shared(quern_sort* sort, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::FinaliseShared(sort); });
}

const char* quern_sort_method(const quern_sort* sort) { return c_abi::MethodOf(sort); }

void quern_sort_get_stats(const quern_sort* sort, quern_sort_stats* stats) { c_abi::GetStats(sort, stats); }

quern_status quern_sort_get_threshold(quern_sort* sort, quern_result* row, bool* exists, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::GetThreshold(sort, row, exists); });
}

quern_status quern_sort_set_threshold(quern_sort* sort, const quern_batch* keys, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::SetThreshold(sort, keys); });
}

quern_status quern_sort_appender_create(quern_sort* sort, quern_sort_appender** appender, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::CreateAppender(sort, appender); });
}

void quern_sort_appender_destroy(quern_sort_appender* appender) { delete appender; }

quern_status quern_sort_appender_append(quern_sort_appender* appender, const quern_batch* batch, bool copy_bytes,
                                        quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::Append(appender, batch, copy_bytes); });
}

quern_status quern_sort_appender_finish(quern_sort_appender* appender, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::FinishAppender(appender); });
}

quern_status quern_sorted_create(quern_sort* sort, uint64_t batch_rows, quern_sorted** sorted, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::CreateSorted(sort, batch_rows, sorted); });
}

void quern_sorted_destroy(quern_sorted* sorted) { delete sorted; }

quern_status quern_sorted_next(quern_sorted* sorted, quern_result* result, uint64_t* position, bool* more,
                               quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::NextResult(sorted, result, position, more); });
}

}  // extern "C"
