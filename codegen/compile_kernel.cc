// SPDX-License-Identifier: Apache-2.0
// Read this file first. CompileKernel is the whole way from a plan to machine code, and GenerateObject the part of it
// that needs LLVM's code generator; each stage has a file of its own:
//
//     plan ─> descriptor ─> instantiate ─> optimise ─> generate code ─> load ─> kernel
//             descriptors   instantiate.cc optimise.cc module.h        jit.cc
//             of runtime/   emit/                      object file     code_memory.cc
//                                              └────> disk cache ─────────┘
//
// A fork waits for compilations (fork_safety.h): LLVM has locks and tables of the process, which it makes at their
// first use, and which nobody else can lock.
#include "codegen/compile_kernel.h"

#include <sys/mman.h>

#include <optional>
#include <utility>
#include <vector>

#include "codegen/cache/disk_cache.h"
#include "codegen/inspect/stage_files.h"
#include "codegen/inspect/verbose.h"
#include "codegen/llvm/diagnostics.h"
#include "codegen/llvm/jit.h"
#include "codegen/llvm/left_on_exception.h"
#include "codegen/llvm/module.h"
#include "codegen/llvm/target_lease.h"
#include "codegen/tier/tier_policy.h"
#include "runtime/base/status.h"

namespace quern {
namespace {

// ---- the stages -----------------------------------------------------------------------------------------------------

// Called between two stages: an error if this thread should stop compiling.
absl::Status CheckGoOn(const KernelRequest& request) {
  const bool stops = request.stop != nullptr && *request.stop;
  return stops ? absl::CancelledError("compilation stopped: the process ends; accepted: none") : absl::OkStatus();
}

// Checks that there is memory for a compilation, which takes 10 to 30 MiB: a request that is refused within LLVM leaves
// half-made objects behind (left_on_exception.h).
absl::Status CheckMemory() {
  constexpr size_t kBytes = size_t{64} << 20;
  void* const probe = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (probe == MAP_FAILED)
    return absl::ResourceExhaustedError("out of memory: 64 MiB to compile in; accepted: what the system has free");
  munmap(probe, kBytes);
  return absl::OkStatus();
}

// From a descriptor to the bytes of an object file. Fills all of `times` except plan and jit.
absl::StatusOr<std::string> GenerateObject(const KernelRequest& request, const AnyOperatorKernel& of,
                                           CompileTimes* times) {
  QUERN_RETURN_IF_ERROR(CheckMemory());
  QUERN_RETURN_IF_ERROR(CheckGoOn(request));
  auto context = std::make_unique<llvm::LLVMContext>();
  const LeftOnException left_context(&context);
  context->setDiagnosticHandler(std::make_unique<Diagnostics>());
  context->setDiscardValueNames(!HasStageFiles());  // dumps keep them for their readers
  QUERN_ASSIGN_OR_RETURN(const TargetLease target, TargetLease::Take(request.machine));

  QUERN_ASSIGN_OR_RETURN(auto module, Instantiate(request.plan, of, request.machine, target.get(), request.template_dir,
                                                  context.get(), times));
  const LeftOnException left_module(&module);
  if (HasStageFiles()) {
    module = OverrideModule(request.plan, request.code_key, *target.get(), std::move(module));
    DumpInstantiated(request.plan, request.code_key, *module);
  }
  QUERN_RETURN_IF_ERROR(CheckGoOn(request));

  const double instantiated = NowMs();
  QUERN_RETURN_IF_ERROR(Optimise(module.get(), target.get(), PassesOf(request.plan)));
  QUERN_RETURN_IF_ERROR(CheckGoOn(request));
  if (HasStageFiles()) DumpOptimised(request.plan, request.code_key, *module, target.get());

  const double optimised = NowMs();
  llvm::SmallVector<char, 0> object;
  QUERN_RETURN_IF_ERROR(GenerateCode(module.get(), target.get(), CodeFormat::kObject, &object, PassesOf(request.plan)));
  times->optimise_ms = optimised - instantiated;
  times->codegen_ms = NowMs() - optimised;
  return std::string(object.data(), object.size());
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Kernel>> CompileKernel(KernelRequest request) {
  const double start = NowMs();
  auto kernel = std::make_shared<Kernel>();
  QUERN_ASSIGN_OR_RETURN(kernel->of, DescribeKernel(request.plan));
  const std::string spec = PrintSpec(request.plan.spec);
  const std::vector<std::string> symbols = EntryPointSymbols(kernel->of);
  const bool uses_disk = request.is_cached && !HasStageFiles();

  // An object on disk that fails to load counts as missing, unless memory is short.
  absl::StatusOr<LoadedCode> code = absl::NotFoundError("no kernel on disk");
  double generated = NowMs();
  if (const auto object = uses_disk ? DiskCache::OfProcess().Find(request.code_key) : std::nullopt; object.has_value())
    code = LoadObject(*object, symbols, spec);
  kernel->from_disk = code.ok();
  if (!code.ok() && !absl::IsResourceExhausted(code.status())) {
    QUERN_ASSIGN_OR_RETURN(const std::string object, GenerateObject(request, kernel->of, &kernel->times));
    if (uses_disk) DiskCache::OfProcess().Store(request.code_key, object);
    generated = NowMs();
    code = LoadObject(object, symbols, spec);
  }
  QUERN_RETURN_IF_ERROR(code.status());

  SetEntryPoints(code->addresses, &kernel->of);
  kernel->code = std::move(code->owner);
  kernel->code_bytes = code->code_bytes;
  kernel->page_bytes = code->page_bytes;
  kernel->engine = Engine::kJit;
  kernel->plan = std::move(request.plan);
  kernel->times.plan_ms = request.plan_ms;
  kernel->times.jit_ms = NowMs() - generated;
  kernel->times.total_ms = request.plan_ms + NowMs() - start;
  if (!kernel->from_disk) TierPolicy::OfProcess().Learn(EstimateCosts(kernel->plan.spec), kernel->times.total_ms);
  const CacheOutcome of_disk = kernel->from_disk ? CacheOutcome::kDisk : CacheOutcome::kMiss;
  LogCompiled(*kernel, request.is_cached ? of_disk : CacheOutcome::kOff, request.overrides);
  return std::shared_ptr<const Kernel>(std::move(kernel));
}

// ---- kernels without a compilation ----------------------------------------------------------------------------------

absl::StatusOr<std::shared_ptr<Kernel>> MakeGenericKernel(KernelPlan plan) {
  auto kernel = std::make_shared<Kernel>();
  QUERN_ASSIGN_OR_RETURN(kernel->of, DescribeKernel(plan));
  SetGenericEntryPoints(&kernel->of);
  kernel->plan = std::move(plan);
  kernel->engine = Engine::kGeneric;
  return kernel;
}

absl::StatusOr<std::shared_ptr<const Kernel>> Replanned(const Kernel& same_code, const KernelPlan& plan) {
  auto kernel = std::make_shared<Kernel>(same_code);
  QUERN_RETURN_IF_ERROR(ChangePlan(plan, &kernel->of));
  kernel->plan = plan;
  kernel->counters = std::make_shared<CounterSet>();
  return std::shared_ptr<const Kernel>(std::move(kernel));
}

}  // namespace quern
