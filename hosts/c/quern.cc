// SPDX-License-Identifier: Apache-2.0
// The C ABI of joins: joins and probers as counted handles, batches as a host's own vectors. (Kernels: compile.cc;
// Arrow: quern_arrow.cc; aggregations: aggregate.cc; sorts: sort.cc; merges: merge.cc.)
//
// Every function has the same form: it checks what a caller can get wrong, then does its work inside Boundary, which
// turns a Status into a code and a text and lets no exception out. A handle is a small object around a shared_ptr;
// whatever it needs lives as long as the handle:
//
//     quern_kernel -> Kernel (machine code) <- JoinState (table, memory budget) <- quern_join
//                                              JoinState                        <- quern_appender, quern_appender, ..
//                                              JoinState                        <- quern_prober, quern_prober, ..
//
// A host may therefore destroy the kernel first, and the join before its probers. Result columns belong to their
// prober.
//
// Two failures cannot be undone and are remembered, so that they cannot pass for success: an append that stopped in the
// middle of a batch (part of it is in the table), and a result that stopped in the middle (rows of it are lost).
// Example: with memory_limit = 1 MiB, an append that needs 2 MiB returns QUERN_RESOURCE_EXHAUSTED, and each later call
// that needs the table returns QUERN_FAILED_PRECONDITION. The failure of one appender is enough: the others see it at
// their next call, and the join cannot be finalised.
#include "hosts/c/quern.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "hosts/c/handles.h"
#include "hosts/c/host_batch.h"
#include "runtime/join/join_descriptor.h"

namespace quern::c_abi {
namespace {

constexpr uint64_t kMaxResultRows = INT32_MAX;

// Batches hold the columns of the residual predicate after their payload.
std::vector<ColumnType> WithResidual(std::vector<ColumnType> payload, const std::vector<ResidualSpec>& residual) {
  for (const ResidualSpec& conjunct : residual) payload.push_back(conjunct.type);
  return payload;
}

absl::Status CreateJoin(quern_kernel* kernel, uint64_t memory_limit, quern_join** join) {
  if (join == nullptr) return MissingArgument("join");
  *join = nullptr;
  if (kernel == nullptr) return MissingArgument("kernel");
  QUERN_RETURN_IF_ERROR(CheckOperator(*kernel, Operator::kJoin, "a join"));
  auto state = std::make_shared<JoinState>();
  state->kernel = kernel->compiled.kernel;
  state->cache = kernel->compiled.cache;
  state->budget = std::make_shared<MemoryBudget>(memory_limit);
  state->sink = MakeHashJoin(state->kernel, state->budget);
  const KernelSpec& spec = state->spec();
  for (const KeySpec& key : spec.keys) state->build.keys.push_back(key.type);
  state->probe.keys = state->build.keys;
  state->build.payload = WithResidual(spec.build, spec.residual);
  state->probe.payload = WithResidual(spec.probe, spec.residual);
  state->keeps_strings = HasStrings({state->build.keys, spec.build});
  *join = std::make_unique<quern_join>(quern_join{std::move(state)}).release();
  return absl::OkStatus();
}

template <class Handle>
absl::Status Append(Handle* handle, const quern_batch* batch, bool copy_bytes) {
  QUERN_ASSIGN_OR_RETURN(const SinkInput input, OpenInput(handle));
  if (batch == nullptr) return MissingArgument("batch");
  return AddHostBatch(*handle->state, input, *batch, copy_bytes);
}

void GetStats(const quern_join* join, quern_join_stats* stats) {
  if (stats == nullptr) return;
  *stats = {};
  if (join == nullptr) return;
  const JoinStats& counted = join->state->join()->stats();
  stats->build_rows = counted.build_rows;
  stats->table_rows = counted.table_rows;
  stats->directory_bytes = counted.directory_bytes;
  stats->tuple_bytes = counted.tuple_bytes;
  stats->peak_bytes = join->state->budget->peak_bytes();
  stats->prefetch_distance = counted.prefetch_distance;
}

const char* LayoutOf(const quern_join* join) {
  if (join == nullptr) return nullptr;
  return join->state->sink->is_finalised() ? join->state->join()->stats().layout : "";
}

absl::Status CreateProber(quern_join* join, uint64_t batch_rows, quern_prober** prober) {
  if (prober == nullptr) return MissingArgument("prober");
  *prober = nullptr;
  if (join == nullptr) return MissingArgument("join");
  QUERN_ASSIGN_OR_RETURN(std::unique_ptr<quern_prober> made, NewProber(join->state, batch_rows));
  *prober = made.release();
  return absl::OkStatus();
}

absl::Status Input(quern_prober* prober, const quern_batch* batch) {
  if (prober == nullptr) return MissingArgument("prober");
  if (batch == nullptr) return MissingArgument("batch");
  return StartHostProbe(prober, *batch);
}

quern_column ResultColumn(const QuernOutColumn& column, const ColumnType& type) {
  const Storage storage = RowOf(type.id).storage;
  quern_column result = {};
  result.validity = column.validity;
  result.values = storage == kVar32 || storage == kVar64 ? column.bytes : column.values;
  result.offsets = column.offsets;
  result.buffers = storage == kView ? &column.bytes : nullptr;
  result.num_bytes = column.num_bytes;
  result.null_count = column.null_count;
  return result;
}

absl::Status NextResult(quern_prober* prober, quern_result* result, bool* more) {
  if (result == nullptr) return MissingArgument("result");
  *result = {};
  if (more == nullptr) return MissingArgument("more");
  *more = false;
  if (prober == nullptr) return MissingArgument("prober");
  QUERN_ASSIGN_OR_RETURN(*more, NextRows(prober));
  *result = ResultOf(prober);
  return absl::OkStatus();
}

// "join.inner", "aggregate": how a spec's text begins.
std::string OperatorText(const KernelSpec& spec) {
  switch (spec.op) {
    case Operator::kJoin: return "join." + std::string(RowOf(spec.join_kind).text);
    case Operator::kAggregate: return "aggregate";
    case Operator::kSort: return "sort";
    case Operator::kFilter: return "filter";
  }
  return "";
}

const char* AcceptedOf(Operator op) {
  switch (op) {
    case Operator::kJoin: return "one of join.KIND";
    case Operator::kAggregate: return "one of aggregate";
    case Operator::kSort: return "one of sort";
    case Operator::kFilter: return "one of filter";
  }
  return "";
}

}  // namespace

absl::Status CheckOperator(const quern_kernel& kernel, Operator wanted, const char* what) {
  const KernelSpec& spec = kernel.compiled.kernel->plan.spec;
  if (spec.op == wanted) return absl::OkStatus();
  return InvalidArgument("wrong kernel for " + std::string(what) + ": " + OperatorText(spec) +
                         "; accepted: " + AcceptedOf(wanted));
}

bool HasStrings(const BatchTypes& types) {
  const auto is_string = [](const ColumnType& type) { return IsVariable(RowOf(type.id).storage); };
  return std::any_of(types.keys.begin(), types.keys.end(), is_string) ||
         std::any_of(types.payload.begin(), types.payload.end(), is_string);
}

absl::Status ShowNothing(OutputBatch* output) {
  QUERN_RETURN_IF_ERROR(output->Reset());
  output->set_num_rows(0);
  return absl::OkStatus();
}

absl::Status ReadAfterFailure(const SinkTexts& texts) {
  return absl::FailedPreconditionError(std::string(texts.rows) +
                                       " after a failure: some of them are lost; accepted: " + texts.accepted);
}

absl::Status AddHostBatch(const JoinState& state, const SinkInput& input, const quern_batch& batch, bool copy_bytes) {
  const bool copies = copy_bytes && state.keeps_strings;
  QUERN_ASSIGN_OR_RETURN(HostBatchView view, ViewOfHostBatch(batch, state.build.keys, state.build.payload, "build",
                                                             {state.budget, copies}));
  const std::shared_ptr<const void> needed_for_this_call = std::exchange(view.batch.owner, view.strings);
  return input.Append(view.batch);
}

absl::Status CheckBatchRows(uint64_t batch_rows) {
  if (batch_rows <= kMaxResultRows) return absl::OkStatus();
  return InvalidArgument("batch_rows out of range: " + std::to_string(batch_rows) + "; accepted: 0 to " +
                         std::to_string(kMaxResultRows));
}

// A table of few rows needs only small result batches.
uint64_t ResultRows(uint64_t batch_rows, uint64_t num_rows) {
  return std::clamp<uint64_t>(num_rows, 1, batch_rows == 0 ? kDefaultBatchRows : batch_rows);
}

absl::StatusOr<std::unique_ptr<quern_prober>> NewProber(const std::shared_ptr<JoinState>& state, uint64_t batch_rows) {
  QUERN_RETURN_IF_ERROR(CheckBatchRows(batch_rows));
  if (!state->sink->is_finalised()) {
    return absl::FailedPreconditionError(
        "prober before finalise: the table is not built; accepted: after quern_join_finalise");
  }
  return std::make_unique<quern_prober>(state, JoinOutputTypes(state->spec()),
                                        batch_rows == 0 ? kDefaultBatchRows : batch_rows);
}

absl::Status StartProbe(quern_prober* prober, BatchView batch) {
  prober->probe_state = ProbeState::kFailed;
  QUERN_RETURN_IF_ERROR(prober->prober.SetInput(std::move(batch)));
  prober->probe_state = ProbeState::kRunning;
  return absl::OkStatus();
}

absl::Status StartHostProbe(quern_prober* prober, const quern_batch& batch) {
  const JoinState& state = *prober->state;
  QUERN_ASSIGN_OR_RETURN(HostBatchView view,
                         ViewOfHostBatch(batch, state.probe.keys, state.probe.payload, "probe", {state.budget}));
  return StartProbe(prober, std::move(view.batch));
}

absl::Status StartUnmatched(quern_prober* prober) {
  if (prober == nullptr) return MissingArgument("prober");
  prober->probe_state = ProbeState::kFailed;
  QUERN_RETURN_IF_ERROR(prober->prober.SetUnmatched());
  prober->probe_state = ProbeState::kRunning;
  return absl::OkStatus();
}

absl::StatusOr<bool> NextRows(quern_prober* prober) {
  switch (prober->probe_state) {
    case ProbeState::kNoInput:
      return absl::FailedPreconditionError(
          "result before input: the prober has no batch; accepted: after quern_prober_input");
    case ProbeState::kFailed:
      return absl::FailedPreconditionError(
          "result after a failure: rows of this input are lost; accepted: a new input");
    case ProbeState::kDone: {
      QUERN_RETURN_IF_ERROR(ShowNothing(&prober->output));
      return false;
    }
    case ProbeState::kRunning: break;
  }
  prober->probe_state = ProbeState::kFailed;
  QUERN_ASSIGN_OR_RETURN(const bool more, prober->prober.Next(&prober->output));
  prober->probe_state = more ? ProbeState::kRunning : ProbeState::kDone;
  return more;
}

quern_result ShowRows(const OutputBatch& output, std::vector<quern_column>* columns) {
  columns->clear();
  for (size_t i = 0; i < output.num_columns(); ++i) columns->push_back(ResultColumn(output.column(i), output.type(i)));
  quern_result result = {};
  result.num_rows = output.num_rows();
  result.num_columns = columns->size();
  result.columns = columns->empty() ? nullptr : columns->data();
  return result;
}

quern_result ResultOf(quern_prober* prober) { return ShowRows(prober->output, &prober->result_columns); }

}  // namespace quern::c_abi

namespace c_abi = quern::c_abi;

extern "C" {

uint32_t quern_abi_version(void) { return QUERN_ABI_VERSION; }
const char* quern_version(void) { return QUERN_VERSION; }

quern_status quern_join_create(quern_kernel* kernel, uint64_t memory_limit, quern_join** join, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::CreateJoin(kernel, memory_limit, join); });
}

void quern_join_destroy(quern_join* join) { delete join; }

quern_status quern_join_append(quern_join* join, const quern_batch* batch, bool copy_bytes, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::Append(join, batch, copy_bytes); });
}

quern_status quern_join_finalise(quern_join* join, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::Finalise(join); });
}

quern_status quern_join_finalise_shared(quern_join* join, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::FinaliseShared(join); });
}

quern_status quern_appender_create(quern_join* join, quern_appender** appender, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::CreateAppender(join, appender); });
}

void quern_appender_destroy(quern_appender* appender) { delete appender; }

quern_status quern_appender_append(quern_appender* appender, const quern_batch* batch, bool copy_bytes,
                                   quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::Append(appender, batch, copy_bytes); });
}

quern_status quern_appender_finish(quern_appender* appender, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::FinishAppender(appender); });
}

const char* quern_join_layout(const quern_join* join) { return c_abi::LayoutOf(join); }

void quern_join_get_stats(const quern_join* join, quern_join_stats* stats) { c_abi::GetStats(join, stats); }

quern_status quern_prober_create(quern_join* join, uint64_t batch_rows, quern_prober** prober, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::CreateProber(join, batch_rows, prober); });
}

void quern_prober_destroy(quern_prober* prober) { delete prober; }

quern_status quern_prober_input(quern_prober* prober, const quern_batch* batch, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::Input(prober, batch); });
}

quern_status quern_prober_input_unmatched(quern_prober* prober, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::StartUnmatched(prober); });
}

quern_status quern_prober_next(quern_prober* prober, quern_result* result, bool* more, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::NextResult(prober, result, more); });
}

}  // extern "C"
