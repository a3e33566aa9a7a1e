// SPDX-License-Identifier: Apache-2.0
// The objects behind the handles of sorts and merges. Internal: quern.h is the interface.
#ifndef QUERN_HOSTS_C_SORT_HANDLES_H_
#define QUERN_HOSTS_C_SORT_HANDLES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/compiler.h"
#include "codegen/operators.h"
#include "hosts/c/handles.h"
#include "hosts/c/quern.h"
#include "runtime/base/memory.h"
#include "runtime/rows/arrow_import.h"
#include "runtime/rows/output_batch.h"
#include "runtime/sort/row_sort.h"
#include "runtime/sort/run_merger.h"

namespace quern::c_abi {

// The positions of the spec's columns in Arrow batches, and the fields of the output.
struct SortBinding {
  ColumnBinding input;
  std::vector<ResultField> result;
};

// The columns of the input batches of a sort or merge.
struct RowInput {
  explicit RowInput(const KernelSpec& spec);

  BatchTypes types;
  std::optional<SortBinding> binding;
};

// A sort. The binding is written before the first Arrow batch of appenders.
struct SortState : SinkState {
  static constexpr const char* kArgument = "sort";
  SortState(const CompiledKernel& compiled, uint64_t memory_limit);

  RowInput input;
  bool keeps_strings;  // tuples point into the batches

  std::shared_ptr<RowSort> sort() const { return std::static_pointer_cast<RowSort>(sink); }
};

// Adds a host's vectors. They are only read during the call, except for bytes of strings that are not copied.
absl::Status AddHostBatch(const SortState& state, const SinkInput& input, const quern_batch& batch, bool copy_bytes);

// *Errors*: FailedPrecondition before finalise; InvalidArgument.
absl::StatusOr<std::unique_ptr<quern_sorted>> NewSorted(const std::shared_ptr<SortState>& state, uint64_t batch_rows);
// The reader's output batch as the ABI shows it, valid until the next ReadNext.
quern_result ResultOf(quern_sorted* sorted);

// Hands the next batch of a run to the merge. *Errors*: those of RunMerger::Input; FailedPrecondition after a failure.
absl::Status StartRun(quern_merge* merge, uint32_t run, const BatchView& batch);

// The output arguments of a merge.
struct MergeAnswer {
  quern_merge_state* state;
  uint32_t* run;
};
// Fills the merge's output batch and sets its next state. *Errors*: InvalidArgument for null; FailedPrecondition after
// a failure.
absl::Status NextMerged(quern_merge* merge, const MergeAnswer& answer);

}  // namespace quern::c_abi

struct quern_sort {
  explicit quern_sort(std::shared_ptr<quern::c_abi::SortState> sort_state)
      : state(std::move(sort_state)), threshold(quern::SortKeyTypes(state->spec()), 1, state->budget) {}

  std::shared_ptr<quern::c_abi::SortState> state;
  quern::OutputBatch threshold;  // what quern_sort_get_threshold shows
  std::vector<quern_column> threshold_columns;
};

struct quern_sort_appender : quern::c_abi::AppenderHandle<quern::c_abi::SortState> {
  using AppenderHandle::AppenderHandle;
};

struct quern_sorted {
  quern_sorted(std::shared_ptr<quern::c_abi::SortState> sort_state, uint64_t batch_rows)
      : state(std::move(sort_state)),
        reader(state->sort()),
        output(quern::SortOutputTypes(state->spec()), batch_rows, state->budget) {}

  std::shared_ptr<quern::c_abi::SortState> state;
  quern::SortReader reader;
  quern::OutputBatch output;
  std::vector<quern_column> result_columns;
  quern::c_abi::ReadState read_state = quern::c_abi::ReadState::kRunning;
};

struct quern_merge {
  quern_merge(const quern::CompiledKernel& compiled, const std::shared_ptr<quern::MemoryBudget>& budget,
              uint32_t num_runs, uint64_t batch_rows)
      : kernel(compiled.kernel),
        cache(compiled.cache),
        input(kernel->plan.spec),
        merger(quern::MakeRunMerger(kernel, budget, num_runs)),
        output(quern::SortOutputTypes(kernel->plan.spec), batch_rows, budget) {}

  std::shared_ptr<const quern::Kernel> kernel;
  quern::CacheOutcome cache;
  quern::c_abi::RowInput input;
  std::unique_ptr<quern::RunMerger> merger;
  quern::OutputBatch output;
  std::vector<quern_column> result_columns;
  quern::c_abi::ReadState read_state = quern::c_abi::ReadState::kRunning;
};

#endif  // QUERN_HOSTS_C_SORT_HANDLES_H_
