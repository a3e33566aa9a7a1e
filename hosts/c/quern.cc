// SPDX-License-Identifier: Apache-2.0
// The C ABI over the C++ inside: kernels, joins and probers as counted handles, batches as a host's own vectors. (Arrow: quern_arrow.cc.)
//
// Every function has the same shape: check what a caller can get wrong, do the work inside Boundary, which turns a Status into code and
// text and lets no exception out. A handle is a small object around a shared_ptr; what it needs lives as long as any handle that needs it:
//
//     quern_kernel -> Kernel (machine code) <- JoinState (table, memory budget) <- quern_join
//                                              JoinState                        <- quern_prober, quern_prober, ..
//
// so that a host may destroy the kernel first and the join before its probers. Result columns belong to their prober.
//
// Two failures cannot be undone, and are remembered so that they cannot pass for success: an append that stopped in the middle of a batch
// (part of it is in the table) and a result that stopped in the middle (rows of it are lost). Example: memory_limit = 1 MiB and an append
// that wants 2 MiB answers QUERN_RESOURCE_EXHAUSTED, and each call after it that needs the table QUERN_FAILED_PRECONDITION.
#include "hosts/c/quern.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "hosts/c/handles.h"
#include "hosts/c/raw_batch.h"
#include "runtime/join_shape.h"

namespace quern::c_abi {
namespace {

constexpr uint64_t kDefaultBatchRows = 65536;
constexpr uint64_t kMaxResultRows = INT32_MAX;

quern_status CodeOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk: return QUERN_OK;
    case absl::StatusCode::kInvalidArgument: return QUERN_INVALID_ARGUMENT;
    case absl::StatusCode::kResourceExhausted: return QUERN_RESOURCE_EXHAUSTED;
    case absl::StatusCode::kFailedPrecondition: return QUERN_FAILED_PRECONDITION;
    case absl::StatusCode::kUnimplemented: return QUERN_UNIMPLEMENTED;
    default: return QUERN_INTERNAL;  // not our enum: Abseil may have more
  }
}

// Copies text into an error object as one line, cut where no UTF-8 character is split.
void SetText(std::string_view text, quern_error* error) noexcept {
  size_t length = text.size();
  if (length > sizeof(error->text) - 1) {
    length = sizeof(error->text) - 1;
    while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80) --length;
  }
  for (size_t i = 0; i < length; ++i) error->text[i] = text[i] == '\n' || text[i] == '\r' || text[i] == '\0' ? ' ' : text[i];
  error->text[length] = '\0';
}

// A caller's enum as the number that it is: C lets any through.
absl::StatusOr<Engine> EngineOf(const quern_engine& engine) {
  static_assert(sizeof(quern_engine) == sizeof(uint32_t));
  uint32_t number = 0;
  std::memcpy(&number, &engine, sizeof(number));
  if (number == QUERN_ENGINE_AUTO) return Engine::kAuto;
  if (number == QUERN_ENGINE_JIT) return Engine::kJit;
  if (number == QUERN_ENGINE_GENERIC) return Engine::kGeneric;
  return InvalidArgument("unknown engine: " + std::to_string(number) +
                         "; accepted: QUERN_ENGINE_AUTO (0), QUERN_ENGINE_JIT (1), QUERN_ENGINE_GENERIC (2)");
}

// "name=value name=value".
absl::StatusOr<PlanOverrides> ParseParams(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  PlanOverrides overrides;
  for (size_t begin = text.find_first_not_of(kBlanks); begin != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kBlanks, begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    const size_t equals = word.find('=');
    if (equals == 0 || equals == std::string_view::npos || equals + 1 == word.size()) {
      return InvalidArgument("bad parameter: " + std::string(word) + "; accepted: name=value, separated by spaces");
    }
    overrides.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    begin = text.find_first_not_of(kBlanks, end);
  }
  return overrides;
}

absl::Status CompileKernel(const char* spec_text, const quern_engine& engine, const char* params, quern_kernel** kernel) {
  if (kernel == nullptr) return MissingArgument("kernel");
  *kernel = nullptr;
  if (spec_text == nullptr) return MissingArgument("spec");
  CompileOptions options;
  QUERN_ASSIGN_OR_RETURN(options.engine, EngineOf(engine));
  QUERN_ASSIGN_OR_RETURN(options.overrides, ParseParams(params == nullptr ? "" : params));
  QUERN_ASSIGN_OR_RETURN(CompiledKernel compiled, CompileText(spec_text, options));
  auto handle = std::make_unique<quern_kernel>();
  handle->compiled = std::move(compiled);
  *kernel = handle.release();
  return absl::OkStatus();
}

std::string CacheText(CacheOutcome outcome) {
  switch (outcome) {
    case CacheOutcome::kOff: return "off";
    case CacheOutcome::kMiss: return "miss";
    case CacheOutcome::kMemory: return "memory";
  }
  return "";
}

KernelTexts MakeTexts(const CompiledKernel& compiled) {
  const Kernel& kernel = *compiled.kernel;
  char milliseconds[32];
  std::snprintf(milliseconds, sizeof(milliseconds), "%.3f", kernel.times.total_ms);
  KernelTexts texts;
  texts.spec = PrintSpec(kernel.plan.spec);
  texts.plan = PrintPlan(kernel.plan);
  texts.layout = kernel.shape->Print();
  texts.engine = kernel.engine == Engine::kJit ? "jit" : "generic";
  texts.cache = CacheText(compiled.cache);
  texts.compile_ms = milliseconds;
  texts.code_bytes = std::to_string(kernel.code_bytes);
  texts.warning = compiled.warning;
  return texts;
}

const std::string* FindText(const KernelTexts& texts, std::string_view name) {
  if (name == "spec") return &texts.spec;
  if (name == "plan") return &texts.plan;
  if (name == "layout") return &texts.layout;
  if (name == "engine") return &texts.engine;
  if (name == "cache") return &texts.cache;
  if (name == "compile_ms") return &texts.compile_ms;
  if (name == "code_bytes") return &texts.code_bytes;
  if (name == "warning") return &texts.warning;
  return nullptr;
}

// Whether tuples point to bytes that lie outside of them.
bool KeepsStrings(const KernelSpec& spec) {
  for (const KeySpec& key : spec.keys) {
    if (IsVariable(RowOf(key.type.id).storage)) return true;
  }
  for (const ColumnType& type : spec.build) {
    if (IsVariable(RowOf(type.id).storage)) return true;
  }
  return false;
}

absl::Status CreateJoin(quern_kernel* kernel, uint64_t memory_limit, quern_join** join) {
  if (join == nullptr) return MissingArgument("join");
  *join = nullptr;
  if (kernel == nullptr) return MissingArgument("kernel");
  auto state = std::make_shared<JoinState>();
  state->kernel = kernel->compiled.kernel;
  state->budget = std::make_shared<MemoryBudget>(memory_limit);
  state->join = MakeHashJoin(state->kernel, state->budget);
  for (const KeySpec& key : state->spec().keys) state->key_types.push_back(key.type);
  state->keeps_strings = KeepsStrings(state->spec());
  *join = std::make_unique<quern_join>(quern_join{std::move(state)}).release();
  return absl::OkStatus();
}

absl::Status AppendHostBatch(quern_join* join, const quern_batch* batch, bool copy_bytes) {
  if (join == nullptr) return MissingArgument("join");
  if (batch == nullptr) return MissingArgument("batch");
  JoinState& state = *join->state;
  QUERN_RETURN_IF_ERROR(CheckOpen(state, "append"));
  const bool copies = copy_bytes && state.keeps_strings;
  QUERN_ASSIGN_OR_RETURN(HostBatchView view,
                         ViewOfHostBatch(*batch, state.key_types, state.spec().build, "build", copies ? state.budget : nullptr));
  const std::shared_ptr<const void> needed_for_this_call = std::exchange(view.batch.owner, view.strings);
  return AppendToBuild(&state, view.batch);
}

absl::Status Finalise(quern_join* join) {
  if (join == nullptr) return MissingArgument("join");
  JoinState& state = *join->state;
  QUERN_RETURN_IF_ERROR(CheckOpen(state, "finalise"));
  QUERN_RETURN_IF_ERROR(state.join->Finalise());
  state.finalised = true;
  return absl::OkStatus();
}

void GetStats(const quern_join* join, quern_join_stats* stats) {
  if (stats == nullptr) return;
  *stats = {};
  if (join == nullptr) return;
  const JoinStats& counted = join->state->join->stats();
  stats->build_rows = counted.build_rows;
  stats->table_rows = counted.table_rows;
  stats->directory_bytes = counted.directory_bytes;
  stats->tuple_bytes = counted.tuple_bytes;
  stats->peak_bytes = join->state->budget->peak_bytes();
  stats->prefetch_distance = counted.prefetch_distance;
}

absl::Status CreateProber(quern_join* join, uint64_t batch_rows, quern_prober** prober) {
  if (prober == nullptr) return MissingArgument("prober");
  *prober = nullptr;
  if (join == nullptr) return MissingArgument("join");
  if (batch_rows > kMaxResultRows) {
    return InvalidArgument("batch_rows out of range: " + std::to_string(batch_rows) + "; accepted: 0 to " + std::to_string(kMaxResultRows));
  }
  const JoinState& state = *join->state;
  if (!state.finalised) {
    return absl::FailedPreconditionError("prober before finalise: the table is not built; accepted: after quern_join_finalise");
  }
  std::vector<ColumnType> types = state.spec().probe;
  types.insert(types.end(), state.spec().build.begin(), state.spec().build.end());
  *prober = new quern_prober(join->state, std::move(types), batch_rows == 0 ? kDefaultBatchRows : batch_rows);
  return absl::OkStatus();
}

absl::Status InputHostBatch(quern_prober* prober, const quern_batch* batch) {
  if (prober == nullptr) return MissingArgument("prober");
  if (batch == nullptr) return MissingArgument("batch");
  const JoinState& state = *prober->state;
  QUERN_ASSIGN_OR_RETURN(HostBatchView view, ViewOfHostBatch(*batch, state.key_types, state.spec().probe, "probe", nullptr));
  return StartProbe(prober, std::move(view.batch));
}

quern_result_column ResultColumn(const QuernOutColumn& column, const ColumnType& type) {
  const Storage storage = RowOf(type.id).storage;
  quern_result_column result = {};
  result.validity = column.validity;
  result.values = storage == kVar32 || storage == kVar64 ? column.bytes : column.values;
  result.offsets = column.offsets;
  result.bytes = storage == kView ? column.bytes : nullptr;
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
  prober->result_columns.clear();
  for (size_t i = 0; i < prober->output.num_columns(); ++i) {
    prober->result_columns.push_back(ResultColumn(prober->output.column(i), prober->output.type(i)));
  }
  result->num_rows = prober->output.num_rows();
  result->num_columns = prober->result_columns.size();
  result->columns = prober->result_columns.empty() ? nullptr : prober->result_columns.data();
  return absl::OkStatus();
}

}  // namespace

absl::Status MissingArgument(const char* name) { return InvalidArgument("null argument: " + std::string(name) + "; accepted: a pointer"); }

quern_status Report(quern_status status, const char* text, quern_error* error) noexcept {
  if (error == nullptr) return status;
  error->status = status;
  SetText(text, error);
  return status;
}

quern_status Report(const absl::Status& status, quern_error* error) noexcept {
  if (status.ok()) return QUERN_OK;
  if (error != nullptr) SetText({status.message().data(), status.message().size()}, error);
  const quern_status code = CodeOf(status.code());
  if (error != nullptr) error->status = code;
  return code;
}

absl::Status CheckOpen(const JoinState& state, const char* call) {
  if (state.append_failed) {
    return absl::FailedPreconditionError(std::string(call) +
                                         " after a failed append: a batch is missing from the table; accepted: a new join");
  }
  if (state.finalised)
    return absl::FailedPreconditionError(std::string(call) + " after finalise: the table is built; accepted: a new join");
  return absl::OkStatus();
}

absl::Status AppendToBuild(JoinState* state, const BatchView& batch) {
  QUERN_RETURN_IF_ERROR(CheckOpen(*state, "append"));
  state->append_failed = true;  // also when an exception ends it
  QUERN_RETURN_IF_ERROR(state->join->Append(batch));
  state->append_failed = false;
  return absl::OkStatus();
}

absl::Status StartProbe(quern_prober* prober, BatchView batch) {
  prober->probe_state = ProbeState::kFailed;
  QUERN_RETURN_IF_ERROR(prober->prober.SetInput(std::move(batch)));
  prober->probe_state = ProbeState::kRunning;
  return absl::OkStatus();
}

absl::StatusOr<bool> NextRows(quern_prober* prober) {
  switch (prober->probe_state) {
    case ProbeState::kNoInput:
      return absl::FailedPreconditionError("result before input: the prober has no batch; accepted: after quern_prober_input");
    case ProbeState::kFailed:
      return absl::FailedPreconditionError("result after a failure: rows of this input are lost; accepted: a new input");
    case ProbeState::kDone: {
      QUERN_RETURN_IF_ERROR(prober->output.Reset());
      prober->output.set_num_rows(0);
      return false;
    }
    case ProbeState::kRunning: break;
  }
  prober->probe_state = ProbeState::kFailed;
  QUERN_ASSIGN_OR_RETURN(const bool more, prober->prober.Next(&prober->output));
  prober->probe_state = more ? ProbeState::kRunning : ProbeState::kDone;
  return more;
}

}  // namespace quern::c_abi

namespace c_abi = quern::c_abi;

extern "C" {

uint32_t quern_abi_version(void) { return QUERN_ABI_VERSION; }
const char* quern_version(void) { return QUERN_VERSION; }

quern_status quern_compile(const char* spec, quern_engine engine, const char* params, quern_kernel** kernel, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::CompileKernel(spec, engine, params, kernel); });
}

void quern_kernel_destroy(quern_kernel* kernel) { delete kernel; }

const char* quern_kernel_text(const quern_kernel* kernel, const char* name) {
  if (kernel == nullptr || name == nullptr) return nullptr;
  try {
    std::call_once(kernel->texts_made, [&] { kernel->texts = c_abi::MakeTexts(kernel->compiled); });
    const std::string* text = c_abi::FindText(kernel->texts, name);
    return text == nullptr ? nullptr : text->c_str();
  } catch (...) {
    return nullptr;
  }
}

quern_status quern_join_create(quern_kernel* kernel, uint64_t memory_limit, quern_join** join, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::CreateJoin(kernel, memory_limit, join); });
}

void quern_join_destroy(quern_join* join) { delete join; }

quern_status quern_join_append(quern_join* join, const quern_batch* batch, bool copy_bytes, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::AppendHostBatch(join, batch, copy_bytes); });
}

quern_status quern_join_finalise(quern_join* join, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::Finalise(join); });
}

void quern_join_get_stats(const quern_join* join, quern_join_stats* stats) { c_abi::GetStats(join, stats); }

quern_status quern_prober_create(quern_join* join, uint64_t batch_rows, quern_prober** prober, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::CreateProber(join, batch_rows, prober); });
}

void quern_prober_destroy(quern_prober* prober) { delete prober; }

quern_status quern_prober_input(quern_prober* prober, const quern_batch* batch, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::InputHostBatch(prober, batch); });
}

quern_status quern_prober_next(quern_prober* prober, quern_result* result, bool* more, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::NextResult(prober, result, more); });
}

void quern_cache_set_limit(uint64_t code_bytes) {
  c_abi::Boundary(nullptr, [&] {
    quern::SetKernelCacheLimit(code_bytes);
    return absl::OkStatus();
  });
}

void quern_cache_clear(void) {
  c_abi::Boundary(nullptr, [] {
    quern::ClearKernelCache();
    return absl::OkStatus();
  });
}

}  // extern "C"
