// SPDX-License-Identifier: Apache-2.0
// The objects behind the C ABI's handles, and the boundary that each of its functions passes through. Internal: quern.h
// is the interface.
#ifndef QUERN_HOSTS_C_HANDLES_H_
#define QUERN_HOSTS_C_HANDLES_H_

#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "codegen/compiler.h"
#include "codegen/operators.h"
#include "codegen/tier/tier.h"
#include "hosts/c/boundary.h"
#include "hosts/c/quern.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/join/hash_join.h"
#include "runtime/rows/arrow_import.h"
#include "runtime/rows/output_batch.h"
#include "runtime/sink/sink_driver.h"

namespace quern::c_abi {

// Announces the rows of a run to a kernel that is not compiled yet. What matters is how long the run takes: the rows of
// one of its threads.
inline void ExpectRows(const Kernel& kernel, uint64_t num_rows, uint32_t threads = 1) {
  if (kernel.tier != nullptr) kernel.tier->Expect(num_rows / threads);
}

// The state of a kernel: unchanged since it was made, or, with a tier, the outcome of its compilation.
enum class KernelState : uint8_t { kAsMade, kSwapped, kFailed };

// The texts of quern_kernel_text in one of these states, made at the first request, so that a cache hit does not print
// a plan.
struct KernelTexts {
  std::string spec, plan, layout, engine, cache, compile_ms, code_bytes, warning;
};

// One column of the result's Arrow schema.
struct ResultField {
  std::string name;
  std::string format;
  bool nullable = false;
};

// The positions of the spec's columns in Arrow batches.
struct ArrowBinding {
  ColumnBinding build;
  ColumnBinding probe;
  std::vector<ResultField> result;
};

// The columns of an input batch.
struct BatchTypes {
  std::vector<ColumnType> keys;
  std::vector<ColumnType> payload;
};
// Whether there are strings or binaries among them: stored rows may then point to bytes outside themselves.
bool HasStrings(const BatchTypes& types);

// What joins, aggregations and sorts share: a sink and everything that it needs when other handles are gone. *Threads*:
// members are written before appenders and readers exist, and only read from then on.
struct SinkState {
  std::shared_ptr<const Kernel> kernel;
  CacheOutcome cache = CacheOutcome::kOff;  // of the kernel, when the operator was made
  std::shared_ptr<MemoryBudget> budget;
  std::shared_ptr<Sink> sink;

  const KernelSpec& spec() const { return kernel->plan.spec; }
};

// A join. The binding is written before the first Arrow batch of appenders and probers.
struct JoinState : SinkState {
  static constexpr const char* kArgument = "join";

  BatchTypes build;  // the payload is followed by the columns of the residual predicate
  BatchTypes probe;  // likewise
  std::optional<ArrowBinding> binding;
  bool keeps_strings = false;  // tuples point into the build batches

  std::shared_ptr<HashJoin> join() const { return std::static_pointer_cast<HashJoin>(sink); }
};

// The handle of an appender.
template <class State>
struct AppenderHandle {
  static constexpr const char* kArgument = "appender";
  explicit AppenderHandle(std::shared_ptr<State> of_operator) : state(std::move(of_operator)), appender(state->sink) {}

  std::shared_ptr<State> state;
  Appender appender;
};

enum class ProbeState : uint8_t {
  kNoInput,  // no result yet
  kRunning,  // rows may come
  kDone,     // the input is used up
  kFailed,   // rows may have been lost: only a new input can follow
};

constexpr uint64_t kDefaultBatchRows = 65536;

// ---- what operators share ----

// Copies as many counters as the host's struct_size has room for.
void CopyCounters(const Counters& counted, const char* prefetch_class, const Kernel& kernel, CacheOutcome cache,
                  quern_counters* counters);

// The destination of the rows of a handle: the operator itself, or an appender.
// *Errors*: InvalidArgument for null; FailedPrecondition unless rows may still be added.
template <class Handle>
absl::StatusOr<SinkInput> OpenInput(Handle* handle) {
  constexpr bool kIsAppender = requires { handle->appender; };
  if (handle == nullptr) {
    if constexpr (kIsAppender) return MissingArgument("appender");
    else return MissingArgument(decltype(handle->state)::element_type::kArgument);
  }
  SinkInput input = {handle->state->sink.get(), nullptr};
  if constexpr (kIsAppender) input.appender = &handle->appender;
  QUERN_RETURN_IF_ERROR(input.CheckOpen("append"));
  return input;
}

// Makes an appender of an operator.
template <class Handle, class Appending>
absl::Status CreateAppender(Handle* handle, Appending** appender) {
  if (appender == nullptr) return MissingArgument("appender");
  *appender = nullptr;
  if (handle == nullptr) return MissingArgument(decltype(handle->state)::element_type::kArgument);
  QUERN_RETURN_IF_ERROR(handle->state->sink->CheckOpen("appender"));
  *appender = new Appending(handle->state);
  return absl::OkStatus();
}

// Hands an appender's rows over. *Errors*: InvalidArgument for null.
template <class Appending>
absl::Status FinishAppender(Appending* appender) {
  if (appender == nullptr) return MissingArgument("appender");
  QUERN_RETURN_IF_ERROR(appender->appender.CheckOpen("finish"));
  return appender->appender.Finish();
}

// *Errors*: InvalidArgument for null.
template <class Handle>
absl::Status Finalise(Handle* handle) {
  if (handle == nullptr) return MissingArgument(decltype(handle->state)::element_type::kArgument);
  QUERN_RETURN_IF_ERROR(handle->state->sink->CheckOpen("finalise"));
  return handle->state->sink->Finalise();
}
template <class Handle>
absl::Status FinaliseShared(Handle* handle) {
  if (handle == nullptr) return MissingArgument(decltype(handle->state)::element_type::kArgument);
  return handle->state->sink->Finalise();
}

enum class ReadState : uint8_t {
  kRunning,  // rows may come
  kDone,
  kFailed,  // rows may have been lost
};

// Empties an output batch.
absl::Status ShowNothing(OutputBatch* output);
// FailedPrecondition for a reader that has failed before.
absl::Status ReadAfterFailure(const SinkTexts& texts);

// Fills the output batch of a reader's handle; returns whether there is more to come.
template <class Reader>
absl::StatusOr<bool> ReadNext(Reader* handle) {
  switch (handle->read_state) {
    case ReadState::kFailed: return ReadAfterFailure(handle->state->sink->texts());
    case ReadState::kDone: {
      QUERN_RETURN_IF_ERROR(ShowNothing(&handle->output));
      return false;
    }
    case ReadState::kRunning: break;
  }
  handle->read_state = ReadState::kFailed;
  QUERN_ASSIGN_OR_RETURN(const bool more, handle->reader.Next(&handle->output));
  handle->read_state = more ? ReadState::kRunning : ReadState::kDone;
  return more;
}

absl::Status CheckBatchRows(uint64_t batch_rows);
// The rows of a reader's results: as many as the caller requested (0: the default), and no more than there are.
uint64_t ResultRows(uint64_t batch_rows, uint64_t num_rows);
// An output batch as the ABI shows it; `columns` becomes the array that the result points to.
quern_result ShowRows(const OutputBatch& output, std::vector<quern_column>* columns);

// ---- joins ----

// Adds a host's vectors to the build side. They are only read during the call, except for bytes of strings that are not
// copied.
absl::Status AddHostBatch(const JoinState& state, const SinkInput& input, const quern_batch& batch, bool copy_bytes);

// *Errors*: FailedPrecondition before finalise; InvalidArgument.
absl::StatusOr<std::unique_ptr<quern_prober>> NewProber(const std::shared_ptr<JoinState>& state, uint64_t batch_rows);
absl::Status StartProbe(quern_prober* prober, BatchView batch);
absl::Status StartHostProbe(quern_prober* prober, const quern_batch& batch);
absl::Status StartUnmatched(quern_prober* prober);
// Fills the prober's output batch; returns whether there is more to come.
absl::StatusOr<bool> NextRows(quern_prober* prober);
// The prober's output batch as the ABI shows it, valid until the next rows.
quern_result ResultOf(quern_prober* prober);

// ---- arguments and errors ----

// InvalidArgument for a kernel of another operator; `what` is made from it: "a join".
absl::Status CheckOperator(const quern_kernel& kernel, Operator wanted, const char* what);

// Fills the counters of a handle by copy(); for null with zeros.
template <class Handle, class Copy>
void GetCounters(const Handle* handle, quern_counters* counters, Copy&& copy) {
  if (counters == nullptr) return;
  Boundary(nullptr, [&] {
    if (handle != nullptr) copy();
    else CopyCounters({}, "", Kernel(), CacheOutcome::kOff, counters);
    return absl::OkStatus();
  });
}

}  // namespace quern::c_abi

struct quern_kernel {
  quern::CompiledKernel compiled;
  // One for each KernelState, made at the first request. No std::call_once: glibc ends the process where an exception
  // passes through it and the memory to load its unwinder is refused.
  mutable quern::ForkSafeMutex texts_mutex;
  mutable std::array<std::unique_ptr<const quern::c_abi::KernelTexts>, 3> texts;
};

struct quern_join {
  std::shared_ptr<quern::c_abi::JoinState> state;
};

struct quern_appender : quern::c_abi::AppenderHandle<quern::c_abi::JoinState> {
  using AppenderHandle::AppenderHandle;
};

struct quern_prober {
  quern_prober(std::shared_ptr<quern::c_abi::JoinState> join_state, std::vector<quern::ColumnType> result_types,
               uint64_t batch_rows)
      : state(std::move(join_state)),
        prober(state->join()),
        output(std::move(result_types), batch_rows, state->budget) {}

  std::shared_ptr<quern::c_abi::JoinState> state;
  quern::JoinProber prober;
  quern::OutputBatch output;
  std::vector<quern_column> result_columns;
  quern::c_abi::ProbeState probe_state = quern::c_abi::ProbeState::kNoInput;
};

#endif  // QUERN_HOSTS_C_HANDLES_H_
