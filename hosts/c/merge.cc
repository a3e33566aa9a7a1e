// SPDX-License-Identifier: Apache-2.0
// The C ABI of merges: sorted runs in, batch by batch as the merge requests them; one sorted stream out. (Arrow:
// sort_arrow.cc.)
//
// The host drives the merge; its runs come from sorts, files or other machines. Example: `sort keys=i32:out`, two runs
// of two batches each:
//
//     run 0   2 5 | 9       run 1   3 4 | 6
//
//     quern_merge_next    needs run 0          the host hands in  2 5
//     quern_merge_next    needs run 1          the host hands in  3 4
//     quern_merge_next    2 3 4, needs run 1   5 may not come out yet: run 1 may go on with a 4.   The host hands in  6
//     quern_merge_next    5, needs run 0       ..
//
// A batch is read in place until its run requests the next one. Until then an Arrow array is kept, and so is what had
// to be made to read a host's vectors (null values in dictionaries).
//
// As with other readers, a failure in the middle of a result is remembered: rows of it are lost, and no later call can
// return them.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "hosts/c/host_batch.h"
#include "hosts/c/quern.h"
#include "hosts/c/sort_handles.h"
#include "runtime/base/status.h"
#include "runtime/spec/spec_text.h"

namespace quern::c_abi {
namespace {

constexpr SinkTexts kMergeTexts = {"rows", "", "", "a new merge"};
constexpr uint32_t kMaxRuns = 65536;

absl::Status CheckMerge(const quern_kernel& kernel, uint32_t num_runs, uint64_t batch_rows) {
  QUERN_RETURN_IF_ERROR(CheckOperator(kernel, Operator::kSort, "a merge"));
  const KernelSpec& spec = kernel.compiled.kernel->plan.spec;
  if (!spec.window.empty()) {
    return InvalidArgument("window function of a merge: " + PrintItem(spec.window.front()) +
                           "; accepted: a spec without window");
  }
  if (num_runs == 0 || num_runs > kMaxRuns) {
    return InvalidArgument("num_runs out of range: " + std::to_string(num_runs) + "; accepted: 1 to " +
                           std::to_string(kMaxRuns));
  }
  return CheckBatchRows(batch_rows);
}

absl::Status CreateMerge(quern_kernel* kernel, uint64_t memory_limit, uint32_t num_runs, uint64_t batch_rows,
                         quern_merge** merge) {
  if (merge == nullptr) return MissingArgument("merge");
  *merge = nullptr;
  if (kernel == nullptr) return MissingArgument("kernel");
  QUERN_RETURN_IF_ERROR(CheckMerge(*kernel, num_runs, batch_rows));
  const uint64_t result_rows = batch_rows == 0 ? kDefaultBatchRows : batch_rows;
  *merge = new quern_merge(kernel->compiled, std::make_shared<MemoryBudget>(memory_limit), num_runs, result_rows);
  return absl::OkStatus();
}

absl::Status CheckNoFailure(const quern_merge& merge) {
  return merge.read_state == ReadState::kFailed ? ReadAfterFailure(kMergeTexts) : absl::OkStatus();
}

absl::Status Input(quern_merge* merge, uint32_t run, const quern_batch* batch) {
  if (merge == nullptr) return MissingArgument("merge");
  if (batch == nullptr) return MissingArgument("batch");
  const BatchTypes& types = merge->input.types;
  QUERN_ASSIGN_OR_RETURN(const HostBatchView view, ViewOfHostBatch(*batch, types.keys, types.payload, "input",
                                                                   {std::make_shared<MemoryBudget>()}));
  return StartRun(merge, run, view.batch);
}

absl::Status End(quern_merge* merge, uint32_t run) {
  if (merge == nullptr) return MissingArgument("merge");
  QUERN_RETURN_IF_ERROR(CheckNoFailure(*merge));
  return merge->merger->End(run);
}

quern_merge_state StateOf(MergeState state) {
  switch (state) {
    case MergeState::kRows: return QUERN_MERGE_ROWS;
    case MergeState::kNeedsInput: return QUERN_MERGE_NEEDS_INPUT;
    case MergeState::kDone: return QUERN_MERGE_DONE;
  }
  return QUERN_MERGE_DONE;
}

absl::Status NextResult(quern_merge* merge, quern_result* result, const MergeAnswer& answer) {
  if (result == nullptr) return MissingArgument("result");
  *result = {};
  QUERN_RETURN_IF_ERROR(NextMerged(merge, answer));
  *result = ShowRows(merge->output, &merge->result_columns);
  return absl::OkStatus();
}

}  // namespace

absl::Status StartRun(quern_merge* merge, uint32_t run, const BatchView& batch) {
  QUERN_RETURN_IF_ERROR(CheckNoFailure(*merge));
  return merge->merger->Input(run, batch);
}

absl::Status NextMerged(quern_merge* merge, const MergeAnswer& answer) {
  if (answer.state == nullptr) return MissingArgument("state");
  *answer.state = QUERN_MERGE_DONE;
  if (answer.run == nullptr) return MissingArgument("run");
  *answer.run = 0;
  if (merge == nullptr) return MissingArgument("merge");
  QUERN_RETURN_IF_ERROR(CheckNoFailure(*merge));
  if (merge->read_state == ReadState::kDone) return ShowNothing(&merge->output);
  merge->read_state = ReadState::kFailed;
  QUERN_ASSIGN_OR_RETURN(const MergeState state, merge->merger->Next(&merge->output));
  merge->read_state = state == MergeState::kDone ? ReadState::kDone : ReadState::kRunning;
  *answer.state = StateOf(state);
  if (state == MergeState::kNeedsInput) *answer.run = merge->merger->needed_run();
  return absl::OkStatus();
}

}  // namespace quern::c_abi

namespace c_abi = quern::c_abi;

extern "C" {

quern_status quern_merge_create(quern_kernel* kernel, uint64_t memory_limit, uint32_t num_runs, uint64_t batch_rows,
                                quern_merge** merge, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::CreateMerge(kernel, memory_limit, num_runs, batch_rows, merge); });
}

void quern_merge_destroy(quern_merge* merge) { delete merge; }

quern_status quern_merge_input(quern_merge* merge, uint32_t run, const quern_batch* batch, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::Input(merge, run, batch); });
}

quern_status quern_merge_end(quern_merge* merge, uint32_t run, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::End(merge, run); });
}

quern_status quern_merge_next(quern_merge* merge, quern_result* result, quern_merge_state* state, uint32_t* run,
                              quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::NextResult(merge, result, {state, run}); });
}

}  // extern "C"
