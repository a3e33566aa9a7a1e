// SPDX-License-Identifier: Apache-2.0
// What stands behind the C ABI's handles, and the boundary that each of its functions passes through. Internal: quern.h is the interface.
#ifndef QUERN_HOSTS_C_HANDLES_H_
#define QUERN_HOSTS_C_HANDLES_H_

#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "codegen/compiler.h"
#include "hosts/c/quern.h"
#include "runtime/arrow_import.h"
#include "runtime/hash_join.h"
#include "runtime/memory.h"
#include "runtime/output_batch.h"
#include "runtime/status.h"

namespace quern::c_abi {

// What quern_kernel_text answers. Made at the first question, so that a cache hit does not print a plan.
struct KernelTexts {
  std::string spec, plan, layout, engine, cache, compile_ms, code_bytes, warning;
};

// One column of the result's Arrow schema.
struct ResultField {
  std::string name;
  std::string format;
  bool nullable = false;
};

// Where the spec's columns stand in Arrow batches.
struct ArrowBinding {
  ColumnBinding build;
  ColumnBinding probe;
  std::vector<ResultField> result;
};

// A join and all that it needs to live on when other handles are gone.
struct JoinState {
  std::shared_ptr<const Kernel> kernel;
  std::shared_ptr<MemoryBudget> budget;
  std::shared_ptr<HashJoin> join;
  std::vector<ColumnType> key_types;
  std::optional<ArrowBinding> binding;
  bool keeps_strings = false;  // tuples point into the build batches
  bool finalised = false;
  bool append_failed = false;  // a batch is missing: a host that went on would get wrong rows

  const KernelSpec& spec() const { return kernel->plan.spec; }
};

enum class ProbeState : uint8_t {
  kNoInput,  // nothing to answer yet
  kRunning,  // rows may come
  kDone,     // the input is used up
  kFailed,   // rows may have been lost: only a new input helps
};

// FailedPrecondition unless rows may still be added; `call` is what the text names.
absl::Status CheckOpen(const JoinState& state, const char* call);
// Adds a batch to the table. Its owner is kept until the join is gone.
absl::Status AppendToBuild(JoinState* state, const BatchView& batch);
absl::Status StartProbe(quern_prober* prober, BatchView batch);
// Fills the prober's output batch; answers whether there is more to come.
absl::StatusOr<bool> NextRows(quern_prober* prober);

absl::Status MissingArgument(const char* name);

// Leaves a failure's text in `error` (may be null) and answers its code. Never throws.
quern_status Report(const absl::Status& status, quern_error* error) noexcept;
quern_status Report(quern_status status, const char* text, quern_error* error) noexcept;

// Runs what a function of the ABI does. No exception passes. *Cost*: nothing while nothing is thrown.
template <class Body>
quern_status Boundary(quern_error* error, Body&& body) noexcept {
  try {
    return Report(body(), error);
  } catch (const std::bad_alloc&) {
    return Report(QUERN_RESOURCE_EXHAUSTED, "out of memory: an allocation failed; accepted: more memory", error);
  } catch (const std::exception& thrown) {
    return Report(QUERN_INTERNAL, thrown.what(), error);
  } catch (...) {
    return Report(QUERN_INTERNAL, "unknown exception: not a std::exception; accepted: none", error);
  }
}

}  // namespace quern::c_abi

struct quern_kernel {
  quern::CompiledKernel compiled;
  mutable std::once_flag texts_made;
  mutable quern::c_abi::KernelTexts texts;
};

struct quern_join {
  std::shared_ptr<quern::c_abi::JoinState> state;
};

struct quern_prober {
  quern_prober(std::shared_ptr<quern::c_abi::JoinState> join_state, std::vector<quern::ColumnType> result_types, uint64_t batch_rows)
      : state(std::move(join_state)), prober(state->join), output(std::move(result_types), batch_rows, state->budget) {}

  std::shared_ptr<quern::c_abi::JoinState> state;
  quern::JoinProber prober;
  quern::OutputBatch output;
  std::vector<quern_result_column> result_columns;
  quern::c_abi::ProbeState probe_state = quern::c_abi::ProbeState::kNoInput;
};

#endif  // QUERN_HOSTS_C_HANDLES_H_
