// SPDX-License-Identifier: Apache-2.0
// Kernels and the process's part in them: compiling, on which thread, its messages, and the cache.
//
// quern_compile is quern_compile_with under another name: the zeros of the struct are its defaults, so both compile
// QUERN_ENGINE_AUTO in the background. A handle holds what Compile returned, and that stays: a compiled kernel, or the
// generic one with a tier, in which a compiled kernel may appear while the host holds the handle. Its texts therefore
// depend on when they are requested, and yet each text that was returned must live on:
//
//     kAsMade   engine generic, code_bytes 0    made at the first request
//     kSwapped  engine jit, code_bytes 348      made at the first request after the swap; earlier texts stay
#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/base/log.h"
#include "codegen/base/text_words.h"
#include "codegen/plan/thread_advice.h"
#include "codegen/tier/compile_queue.h"
#include "codegen/tier/tier.h"
#include "hosts/c/kernel_handle.h"
#include "hosts/c/quern.h"
#include "runtime/base/fork_safety.h"
#include "runtime/base/kept_pages.h"
#include "runtime/join/join_descriptor.h"

namespace quern::c_abi {
namespace {

constexpr size_t kCompileOptionsSize = sizeof(quern_compile_options);  // in version 2.0

absl::StatusOr<Engine> EngineOf(const quern_engine& engine) {
  const uint32_t number = NumberOf(engine);
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

absl::StatusOr<CompileWhen> WhenOf(const quern_compile_when& when) {
  const uint32_t number = NumberOf(when);
  if (number == QUERN_COMPILE_BACKGROUND) return CompileWhen::kBackground;
  if (number == QUERN_COMPILE_NOW) return CompileWhen::kNow;
  return InvalidArgument("unknown time to compile: " + std::to_string(number) +
                         "; accepted: QUERN_COMPILE_BACKGROUND (0), QUERN_COMPILE_NOW (1)");
}

absl::StatusOr<CompileOptions> OptionsOf(const quern_compile_options& given) {
  CompileOptions options;
  QUERN_ASSIGN_OR_RETURN(options.engine, EngineOf(given.engine));
  QUERN_ASSIGN_OR_RETURN(options.when, WhenOf(given.when));
  QUERN_ASSIGN_OR_RETURN(options.overrides, ParseParams(given.params == nullptr ? "" : given.params));
  options.expected_rows = given.expected_rows;
  if (given.compile_after_rows != 0) options.compile_after_rows = given.compile_after_rows;
  options.swap_waits = given.swap_waits;
  return options;
}

absl::Status CompileWith(const char* spec_text, const quern_compile_options* given, quern_kernel** kernel) {
  if (kernel == nullptr) return MissingArgument("kernel");
  *kernel = nullptr;
  if (spec_text == nullptr) return MissingArgument("spec");
  QUERN_ASSIGN_OR_RETURN(const quern_compile_options all, ReadOptions(given, kCompileOptionsSize));
  QUERN_ASSIGN_OR_RETURN(const CompileOptions options, OptionsOf(all));
  auto handle = std::make_unique<quern_kernel>();
  if (IsPipelineText(spec_text)) {
    QUERN_ASSIGN_OR_RETURN(handle->pipeline, CompilePipeline(spec_text, options));
    const std::vector<CompiledKernel>& kernels = handle->pipeline->kernels;
    handle->compiled = *std::find_if(kernels.rbegin(), kernels.rend(),
                                     [](const CompiledKernel& kernel) { return kernel.kernel != nullptr; });
  } else {
    QUERN_ASSIGN_OR_RETURN(handle->compiled, CompileText(spec_text, options));
  }
  *kernel = handle.release();
  return absl::OkStatus();
}

}  // namespace

void ExpectRows(const quern_kernel& handle, uint64_t num_rows) {
  if (!handle.pipeline.has_value()) return ExpectRows(*handle.compiled.kernel, num_rows);
  for (size_t i = 0; i < StepsOfAllRows(handle.pipeline->plan->spec); ++i)
    if (const auto& kernel = handle.pipeline->kernels[i].kernel; kernel != nullptr) ExpectRows(*kernel, num_rows);
}

namespace {

KernelState StateOf(const Kernel& kernel) {
  if (kernel.tier == nullptr) return KernelState::kAsMade;
  if (kernel.tier->Compiled() != nullptr) return KernelState::kSwapped;
  return kernel.tier->Failure().empty() ? KernelState::kAsMade : KernelState::kFailed;
}

// What runs in a state, where it came from, and what failed.
CompiledKernel KernelIn(KernelState state, const CompiledKernel& made) {
  switch (state) {
    case KernelState::kAsMade: return made;
    case KernelState::kSwapped: return {made.kernel->tier->Compiled(), made.kernel->tier->cache(), ""};
    case KernelState::kFailed: return {made.kernel, made.cache, made.kernel->tier->Failure()};
  }
  return made;
}

KernelTexts MakeTexts(const CompiledKernel& compiled) {
  const Kernel& kernel = *compiled.kernel;
  KernelTexts texts;
  texts.spec = PrintSpec(kernel.plan.spec);
  texts.plan = PrintPlan(kernel.plan);
  texts.layout = PrintLayout(kernel.of);
  texts.engine = kernel.engine == Engine::kJit ? "jit" : "generic";
  texts.cache = CacheText(compiled.cache);
  texts.compile_ms = PrintFixed(kernel.times.total_ms, 3);
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

// What runs of a kernel now.
CompiledKernel KernelNow(const CompiledKernel& made) { return KernelIn(StateOf(*made.kernel), made); }

// "jit" where all kernels are compiled; the worst of their outcomes of the cache; sums; the first warning.
KernelTexts MakePipelineTexts(const CompiledPipeline& pipeline) {
  KernelTexts texts;
  texts.spec = PrintPipeline(pipeline.plan->asked);
  texts.plan = PrintPipelinePlan(*pipeline.plan);
  bool is_compiled = true;
  CacheOutcome cache = CacheOutcome::kMemory;
  double compile_ms = 0;
  uint64_t code_bytes = 0;
  // From the best to the worst.
  constexpr CacheOutcome kOutcomes[] = {CacheOutcome::kMemory, CacheOutcome::kDisk, CacheOutcome::kMiss,
                                        CacheOutcome::kOff};
  const auto rank = [&](CacheOutcome outcome) { return std::find(kOutcomes, std::end(kOutcomes), outcome); };
  for (size_t i = 0; i < pipeline.kernels.size(); ++i) {
    if (pipeline.kernels[i].kernel == nullptr) continue;
    const CompiledKernel now = KernelNow(pipeline.kernels[i]);
    const std::string title = "\n# " + std::to_string(i) + ": " + PrintPipelineStep(pipeline.plan->spec, i) + "\n";
    texts.plan += title + PrintPlan(now.kernel->plan);
    texts.layout += (texts.layout.empty() ? title.substr(1) : title) + PrintLayout(now.kernel->of);
    is_compiled = is_compiled && now.kernel->engine == Engine::kJit;
    if (rank(now.cache) > rank(cache)) cache = now.cache;
    compile_ms += now.kernel->times.total_ms;
    code_bytes += now.kernel->code_bytes;
    if (texts.warning.empty()) texts.warning = now.warning;
  }
  texts.engine = is_compiled ? "jit" : "generic";
  texts.cache = CacheText(cache);
  texts.compile_ms = PrintFixed(compile_ms, 3);
  texts.code_bytes = std::to_string(code_bytes);
  return texts;
}

const std::string* TextOf(const quern_kernel& handle, std::string_view name) {
  if (handle.pipeline.has_value()) {
    const KernelTexts texts = MakePipelineTexts(*handle.pipeline);
    const std::string* const text = FindText(texts, name);
    const std::lock_guard<ForkSafeMutex> lock(handle.texts_mutex);
    return text == nullptr ? nullptr : &*handle.pipeline_texts.insert(*text).first;
  }
  const KernelState state = StateOf(*handle.compiled.kernel);
  const std::lock_guard<ForkSafeMutex> lock(handle.texts_mutex);
  std::unique_ptr<const KernelTexts>& texts = handle.texts[static_cast<size_t>(state)];
  if (texts == nullptr) texts = std::make_unique<const KernelTexts>(MakeTexts(KernelIn(state, handle.compiled)));
  return FindText(*texts, name);
}

quern_log_level LevelOf(LogLevel level) {
  switch (level) {
    case LogLevel::kWarning: return QUERN_LOG_WARNING;
    case LogLevel::kInfo: return QUERN_LOG_INFO;
  }
  return QUERN_LOG_WARNING;
}

// Exceptions of a host in C++ end here.
LogCallback CallbackOf(quern_on_log on_log, void* context) {
  if (on_log == nullptr) return nullptr;
  return [on_log, context](LogLevel level, std::string_view line) {
    try {
      on_log(context, LevelOf(level), std::string(line).c_str());
    } catch (...) {
      return;
    }
  };
}

absl::Status SetThread(const quern_compile_thread& thread) {
  const uint32_t number = NumberOf(thread);
  if (number != QUERN_COMPILE_THREAD_OWN && number != QUERN_COMPILE_THREAD_HOST) {
    return InvalidArgument("unknown thread: " + std::to_string(number) +
                           "; accepted: QUERN_COMPILE_THREAD_OWN (0), QUERN_COMPILE_THREAD_HOST (1)");
  }
  CompileQueue::OfProcess().SetThread(number == QUERN_COMPILE_THREAD_OWN ? CompileThread::kOwn : CompileThread::kHost);
  return absl::OkStatus();
}

absl::Status Work(uint32_t timeout_ms, bool* worked) {
  if (worked == nullptr) return MissingArgument("worked");
  *worked = CompileQueue::OfProcess().RunOne(std::chrono::milliseconds(timeout_ms));
  return absl::OkStatus();
}

}  // namespace
}  // namespace quern::c_abi

namespace c_abi = quern::c_abi;

extern "C" {

uint32_t quern_abi_version(void) { return QUERN_ABI_VERSION; }
const char* quern_version(void) { return QUERN_VERSION; }

quern_status quern_compile(const char* spec, quern_engine engine, const char* params, quern_kernel** kernel,
                           quern_error* error) {
  quern_compile_options options = {};
  options.struct_size = sizeof(options);
  options.engine = engine;
  options.params = params;
  return quern_compile_with(spec, &options, kernel, error);
}

quern_status quern_compile_with(const char* spec, const quern_compile_options* options, quern_kernel** kernel,
                                quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::CompileWith(spec, options, kernel); });
}

void quern_kernel_destroy(quern_kernel* kernel) { delete kernel; }

const char* quern_kernel_text(const quern_kernel* kernel, const char* name) {
  if (kernel == nullptr || name == nullptr) return nullptr;
  try {
    const std::string* text = c_abi::TextOf(*kernel, name);
    return text == nullptr ? nullptr : text->c_str();
  } catch (...) {
    return nullptr;
  }
}

void quern_kernel_expect_rows(quern_kernel* kernel, uint64_t num_rows) {
  c_abi::Boundary(nullptr, [&] {
    if (kernel != nullptr) c_abi::ExpectRows(*kernel, num_rows);
    return absl::OkStatus();
  });
}

uint32_t quern_advise_threads(const quern_kernel* kernel, uint64_t num_rows, uint32_t available,
                              const uint64_t* groups_seen, size_t num_looks, uint64_t* look_rows) {
  if (look_rows != nullptr) *look_rows = 0;
  if (kernel == nullptr || look_rows == nullptr) return quern::ThreadsForRows(num_rows, available);
  const quern::ThreadAdvice advice =
      quern::AdviseThreads(kernel->compiled.kernel->plan.spec, num_rows, {groups_seen, num_looks}, available);
  *look_rows = advice.look_rows;
  return advice.threads;
}

quern_status quern_compile_thread_mode(quern_compile_thread thread, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::SetThread(thread); });
}

quern_status quern_compile_work(uint32_t timeout_ms, bool* worked, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::Work(timeout_ms, worked); });
}

void quern_set_log_callback(quern_on_log on_log, void* context) {
  c_abi::Boundary(nullptr, [&] {
    quern::SetLogCallback(c_abi::CallbackOf(on_log, context));
    return absl::OkStatus();
  });
}

void quern_set_kept_memory(uint64_t bytes) {
  c_abi::Boundary(nullptr, [&] {
    quern::KeptPages::OfProcess().SetMost(bytes);
    return absl::OkStatus();
  });
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

void quern_cache_get_stats(quern_cache_stats* stats) {
  if (stats == nullptr) return;
  c_abi::Boundary(nullptr, [&] {
    const quern::KernelCacheStats now = quern::GetKernelCacheStats();
    const quern_cache_stats all = {0,           now.kernels,   now.code_bytes,   now.limit_bytes, now.hits,
                                   now.misses,  now.evictions, now.live_kernels, now.live_bytes,  now.reserved_bytes,
                                   now.mappings};
    c_abi::WriteAnswer(all, stats);
    return absl::OkStatus();
  });
}

}  // extern "C"
