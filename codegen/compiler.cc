// SPDX-License-Identifier: Apache-2.0
// Kernels on request: from the caches of the process, as a generic kernel whose compiled one follows in the background
// (tier.h), or compiled at once. The compilation itself is compile_kernel.cc.
#include "codegen/compiler.h"

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "codegen/base/environment.h"
#include "codegen/base/log.h"
#include "codegen/cache/disk_cache.h"
#include "codegen/cache/kernel_cache.h"
#include "codegen/cache/kernel_key.h"
#include "codegen/compile_kernel.h"
#include "codegen/inspect/capture.h"
#include "codegen/inspect/stage_files.h"
#include "codegen/inspect/verbose.h"
#include "codegen/llvm/code_memory.h"
#include "codegen/llvm/module.h"
#include "codegen/machine/profile.h"
#include "codegen/tier/tier.h"
#include "runtime/base/fork_safety.h"
#include "runtime/base/hash_secret.h"
#include "runtime/base/kept_pages.h"
#include "runtime/base/status.h"

namespace quern {
namespace {

// HostMachine without a copy: its list of features has two thousand characters.
const absl::StatusOr<Machine>& Host() {
  const NoFork no_fork;  // the first call makes it
  static const auto* host = new absl::StatusOr<Machine>(HostMachine());
  return *host;
}

// A folder of templates may change between two calls, so its kernels are not cached.
bool IsCached(const CompileOptions& options) { return options.use_cache && options.template_dir.empty(); }

// The compiled kernel of a plan for this machine: from memory, from disk, or newly compiled.
absl::StatusOr<CompiledKernel> CompilePlanned(const KernelPlan& plan, const Machine& host,
                                              const CompileOptions& options, uint64_t profile_number, double plan_ms,
                                              const std::atomic<bool>* stop) {
  const std::string key = KernelKey(plan, host), code_key = CodeKey(plan, host);
  const bool is_cached = IsCached(options);
  const auto make = [&]() -> absl::StatusOr<std::shared_ptr<const Kernel>> {
    if (is_cached) {
      if (const auto same_code = KernelCache::OfProcess().FindByName(code_key)) return Replanned(*same_code, plan);
    }
    return CompileKernel({plan, host, code_key, options.template_dir, is_cached, plan_ms, stop, options.overrides});
  };
  if (is_cached) {
    QUERN_ASSIGN_OR_RETURN(CompiledKernel found, KernelCache::OfProcess().FindOrMake(key, make));
    if (found.cache == CacheOutcome::kMiss && found.kernel->from_disk) found.cache = CacheOutcome::kDisk;
    KernelCache::OfProcess().AddName(NameOf(plan.spec, options.overrides, profile_number), key);
    KernelCache::OfProcess().AddName(code_key, key);
    return found;
  }
  QUERN_ASSIGN_OR_RETURN(auto kernel, make());
  return CompiledKernel{std::move(kernel), CacheOutcome::kOff, ""};
}

absl::StatusOr<CompiledKernel> CompileForHost(const KernelSpec& spec, const CompileOptions& options,
                                              uint64_t profile_number) {
  const double start = NowMs();
  QUERN_ASSIGN_OR_RETURN(const Machine host, HostMachine());
  QUERN_ASSIGN_OR_RETURN(const KernelPlan plan, MakePlan(spec, host, options.overrides, ProfileOfProcess().get()));
  return CompilePlanned(plan, host, options, profile_number, NowMs() - start, nullptr);
}

// How the tier of a generic kernel obtains the compiled one. *Ownership*: the kernel owns the tier, which owns this.
class HostKernelMaker final : public KernelMaker {
 public:
  HostKernelMaker(const std::shared_ptr<const Kernel>& generic, std::string name, CompileOptions options,
                  uint64_t profile_number)
      : generic_(generic), name_(std::move(name)), options_(std::move(options)), profile_number_(profile_number) {}

  std::shared_ptr<const Kernel> FindInMemory() override {
    const auto generic = generic_.lock();
    if (generic == nullptr || !IsCached(options_)) return nullptr;
    auto found = KernelCache::OfProcess().FindByName(NameOf(generic->plan.spec, options_.overrides, profile_number_));
    if (found != nullptr) NameCompiled(*generic);
    return found;
  }
  bool IsOnDisk() override {
    const auto generic = generic_.lock();
    if (generic == nullptr || !IsCached(options_) || HasStageFiles()) return false;
    return DiskCache::OfProcess().Has(CodeKey(generic->plan, *Host()));
  }
  absl::StatusOr<CompiledKernel> Make(const std::atomic<bool>& stop) override {
    const auto generic = generic_.lock();
    if (generic == nullptr)
      return absl::CancelledError("compilation stopped: nobody has the kernel any more; accepted: none");
    QUERN_ASSIGN_OR_RETURN(CompiledKernel made,
                           CompilePlanned(generic->plan, *Host(), options_, profile_number_, 0, &stop));
    NameCompiled(*generic);
    return made;
  }

 private:
  // From now on, callers that spell the spec as this one did find the compiled kernel.
  void NameCompiled(const Kernel& generic) const {
    if (!name_.empty())
      KernelCache::OfProcess().AddAlias(name_, NameOf(generic.plan.spec, options_.overrides, profile_number_));
  }

  const std::weak_ptr<const Kernel> generic_;
  const std::string name_;  // in the table of tiers; empty: not in the table
  const CompileOptions options_;
  const uint64_t profile_number_;
};

bool IsBackground(const CompileOptions& options) {
  return options.engine == Engine::kAuto && options.when == CompileWhen::kBackground;
}

// Whether this caller may share kernels of other callers; not if it sets a number of rows for the generic kernel.
bool IsShared(const CompileOptions& options) {
  return IsCached(options) && !(IsBackground(options) && options.compile_after_rows.has_value());
}

// Returns what a caller gets for a kernel with a tier.
CompiledKernel StartJob(std::shared_ptr<const Kernel> kernel, const CompileOptions& options) {
  kernel->tier->Expect(options.expected_rows);
  if (auto compiled = kernel->tier->Compiled()) return {std::move(compiled), CacheOutcome::kMemory, ""};
  std::string failure = kernel->tier->Failure();
  return {std::move(kernel), CacheOutcome::kOff, std::move(failure)};
}

// A kernel that other callers have obtained under this name, compiled or with a tier.
std::optional<CompiledKernel> FindShared(const std::string& name, const CompileOptions& options) {
  if (auto kernel = KernelCache::OfProcess().FindByName(name))
    return CompiledKernel{std::move(kernel), CacheOutcome::kMemory, ""};
  if (!IsBackground(options)) return std::nullopt;
  auto kernel = TierTable::OfProcess().Find(name);
  if (kernel == nullptr) return std::nullopt;
  return StartJob(std::move(kernel), options);
}

// The generic kernel with a tier, shared by all callers that use `name` (empty: for this caller only).
absl::StatusOr<CompiledKernel> CompileBeside(const KernelSpec& spec, const std::string& name,
                                             const CompileOptions& options, uint64_t profile_number) {
  QUERN_ASSIGN_OR_RETURN(KernelPlan plan, MakePlan(spec, *Host(), options.overrides, ProfileOfProcess().get()));
  QUERN_ASSIGN_OR_RETURN(const std::shared_ptr<Kernel> generic, MakeGenericKernel(std::move(plan)));
  LogCompiled(*generic, CacheOutcome::kOff, options.overrides);
  AddTier(std::make_unique<HostKernelMaker>(generic, name, options, profile_number), options.compile_after_rows,
          options.swap_waits, generic.get());
  return StartJob(name.empty() ? generic : TierTable::OfProcess().Keep(name, generic), options);
}

// What the environment sets for the whole process. Called before its first job.
void ApplyEnvironment() {
  const NoFork no_fork;  // the first call applies it
  static const bool applied = [] {
    const absl::StatusOr<std::optional<uint64_t>> kept = KeptBytesOfEnvironment();
    if (!kept.ok()) WarnOnce(std::string(kept.status().message()));
    else if (kept->has_value()) KeptPages::OfProcess().SetMost(**kept);
    const absl::StatusOr<std::optional<uint64_t>> seed = HashSeedOfEnvironment();
    if (!seed.ok()) WarnOnce(std::string(seed.status().message()));
    else if (seed->has_value()) SetHashSeed(**seed);
    return true;
  }();
  (void)applied;
}

}  // namespace

absl::StatusOr<CompiledKernel> Compile(const KernelSpec& spec, const CompileOptions& options) {
  const NoFork no_fork;
  ApplyEnvironment();
  std::string warning;
  const uint64_t profile_number = ProfileNumber();
  if (IsBackground(options) && Host().ok()) {
    const std::string name = IsShared(options) ? NameOf(spec, options.overrides, profile_number) : "";
    if (IsShared(options)) {
      if (auto found = FindShared(name, options)) return *std::move(found);
    }
    return CompileBeside(spec, name, options, profile_number);
  }
  if (options.engine != Engine::kGeneric) {
    absl::StatusOr<CompiledKernel> compiled = CompileForHost(spec, options, profile_number);
    const bool callers_mistake = compiled.status().code() == absl::StatusCode::kInvalidArgument;
    if (compiled.ok() || options.engine == Engine::kJit || callers_mistake) return compiled;
    warning = "not compiled, running the generic kernel: " + std::string(compiled.status().message());
    if (!absl::IsCancelled(compiled.status())) WarnOnce(warning);
  }
  absl::StatusOr<Machine> host = HostMachine();
  QUERN_ASSIGN_OR_RETURN(KernelPlan plan,
                         MakePlan(spec, host.ok() ? *host : Machine{}, options.overrides, ProfileOfProcess().get()));
  QUERN_ASSIGN_OR_RETURN(auto kernel, MakeGenericKernel(std::move(plan)));
  LogCompiled(*kernel, CacheOutcome::kOff, options.overrides);
  return CompiledKernel{std::move(kernel), CacheOutcome::kOff, std::move(warning)};
}

absl::StatusOr<CompiledKernel> CompileText(std::string_view text, const CompileOptions& options) {
  const NoFork no_fork;
  ApplyEnvironment();
  const bool is_shared = options.engine != Engine::kGeneric && IsShared(options);
  const uint64_t profile_number = ProfileNumber();
  const std::string name = is_shared ? NameOf(text, options.overrides, profile_number) : "";
  if (is_shared) {
    if (auto found = FindShared(name, options)) return *std::move(found);
  }
  QUERN_ASSIGN_OR_RETURN(const KernelSpec spec, ParseSpec(text));
  // The canonical text is not needed here, and printing it takes as long as a small job. A spec with two spellings gets
  // two tiers; each finds the other's compiled kernel when it looks for one.
  if (IsBackground(options) && Host().ok()) return CompileBeside(spec, name, options, profile_number);
  QUERN_ASSIGN_OR_RETURN(CompiledKernel compiled, Compile(spec, options));
  if (is_shared && compiled.kernel->engine == Engine::kJit)
    KernelCache::OfProcess().AddAlias(name, NameOf(spec, options.overrides, profile_number));
  return compiled;
}

void SetKernelCacheLimit(uint64_t code_bytes) { KernelCache::OfProcess().SetLimit(code_bytes); }
KernelCacheStats GetKernelCacheStats() {
  KernelCacheStats stats = KernelCache::OfProcess().Stats();
  const CodeMemoryStats memory = CodeMemory::OfProcess().Stats();
  stats.live_kernels = memory.kernels;
  stats.live_bytes = memory.used_bytes;
  stats.reserved_bytes = memory.reserved_bytes;
  stats.mappings = memory.mappings;
  return stats;
}
void ClearKernelCache() {
  KernelCache::OfProcess().Clear();
  TierTable::OfProcess().Clear();
}

}  // namespace quern
