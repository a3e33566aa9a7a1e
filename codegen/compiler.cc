// SPDX-License-Identifier: Apache-2.0
// All stages of a compilation: spec -> plan -> instantiate -> optimise -> generate code -> load -> kernel. Read this
// file first; each stage has a file of its own.
//
// Only this file computes the key of a kernel: canonical spec, plan, engine, and everything that is fixed for the
// process (machine, templates, LLVM), which is computed once. Two callers that write one spec with its fields in
// different orders share one kernel.
//
// A fork waits for compilations (fork_safety.h): LLVM has locks and tables of the process, which it makes at their
// first use, and which nobody else can lock.
#include "codegen/compiler.h"

#include <sys/mman.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "codegen/base/environment.h"
#include "codegen/base/log.h"
#include "codegen/cache/build_identity.h"
#include "codegen/cache/disk_cache.h"
#include "codegen/cache/kernel_cache.h"
#include "codegen/inspect/capture.h"
#include "codegen/inspect/stage_files.h"
#include "codegen/inspect/verbose.h"
#include "codegen/listeners/code_events.h"
#include "codegen/llvm/code_memory.h"
#include "codegen/llvm/diagnostics.h"
#include "codegen/llvm/jit.h"
#include "codegen/llvm/left_on_exception.h"
#include "codegen/llvm/module.h"
#include "codegen/llvm/template_library.h"
#include "codegen/machine/profile.h"
#include "codegen/tier/tier.h"
#include "codegen/tier/tier_policy.h"
#include "ir-templates/generic/generic_aggregate.h"
#include "ir-templates/generic/generic_filter.h"
#include "ir-templates/generic/generic_join.h"
#include "ir-templates/generic/generic_sort.h"
#include "llvm/Config/llvm-config.h"
#include "runtime/base/fork_safety.h"
#include "runtime/base/hash_secret.h"
#include "runtime/base/kept_pages.h"
#include "runtime/base/status.h"
#include "runtime/spec/host_aggregates.h"

namespace quern {
namespace {

void SetDescriptor(KernelDescriptor descriptor, Kernel* kernel) {
  kernel->descriptor = std::move(descriptor.join);
  kernel->groups = std::move(descriptor.aggregate);
  kernel->rows = std::move(descriptor.sort);
  kernel->where = std::move(descriptor.filter);
}

// Addresses in the order of EntryPointSymbols.
void SetEntryPoints(const std::vector<void*>& addresses, Kernel* kernel) {
  size_t i = 0;
  if (kernel->descriptor != nullptr) {
    const NeededEntryPoints needed = EntryPointsOf(*kernel->descriptor->get());
#define QUERN_JOIN_ENTRY(field, result, parameters) \
  if (needed.field) kernel->join.field = reinterpret_cast<result(*) parameters>(addresses[i++]);
#include "runtime/abi/join_entry_points.def"
  } else if (kernel->groups != nullptr) {
    const NeededAggregateEntryPoints needed = EntryPointsOf(*kernel->groups->get());
#define QUERN_AGGREGATE_ENTRY(field, result, parameters) \
  if (needed.field) kernel->aggregate.field = reinterpret_cast<result(*) parameters>(addresses[i++]);
#include "runtime/abi/aggregate_entry_points.def"
  } else if (kernel->where != nullptr) {
    kernel->filter.mask = reinterpret_cast<void (*)(QuernFilterArgs*)>(addresses[i++]);
  } else {
    const NeededSortEntryPoints needed = EntryPointsOf(*kernel->rows->get());
#define QUERN_SORT_ENTRY(field, result, parameters) \
  if (needed.field) kernel->sort.field = reinterpret_cast<result(*) parameters>(addresses[i++]);
#include "runtime/abi/sort_entry_points.def"
  }
}

absl::StatusOr<std::shared_ptr<Kernel>> MakeGenericKernel(KernelPlan plan) {
  auto kernel = std::make_shared<Kernel>();
  QUERN_ASSIGN_OR_RETURN(KernelDescriptor descriptor, MakeKernelDescriptor(plan));
  SetDescriptor(std::move(descriptor), kernel.get());
  switch (plan.spec.op) {
    case Operator::kJoin: kernel->join = GenericJoinKernel(); break;
    case Operator::kAggregate: kernel->aggregate = GenericAggregateKernel(); break;
    case Operator::kSort: kernel->sort = GenericSortKernel(); break;
    case Operator::kFilter: kernel->filter = GenericFilterKernel(); break;
  }
  kernel->plan = std::move(plan);
  kernel->engine = Engine::kGeneric;
  return kernel;
}

// The same code under another plan that leads to the same code.
absl::StatusOr<std::shared_ptr<const Kernel>> Replanned(const Kernel& same_code, const KernelPlan& plan) {
  auto kernel = std::make_shared<Kernel>(same_code);
  QUERN_ASSIGN_OR_RETURN(KernelDescriptor descriptor, MakeKernelDescriptor(plan));
  SetDescriptor(std::move(descriptor), kernel.get());
  kernel->plan = plan;
  kernel->counters = std::make_shared<CounterSet>();
  return std::shared_ptr<const Kernel>(std::move(kernel));
}

constinit ForkSafeMutex idle_mutex;  // for TargetLease::Idle

// Lends the host's target machine for one compilation. Creating one takes a tenth of a compilation, because LLVM parses
// a hundred CPU features. Idle ones are therefore kept, as many as threads have compiled at the same time; a target
// machine never serves two threads at once.
class TargetLease {
 public:
  static absl::StatusOr<TargetLease> Take(const Machine& host) {
    {
      std::lock_guard<ForkSafeMutex> lock(idle_mutex);
      if (!Idle().empty()) {
        TargetLease lease(std::move(Idle().back()));
        Idle().pop_back();
        return lease;
      }
    }
    QUERN_ASSIGN_OR_RETURN(auto target, MakeTargetMachine(host));
    {
      std::lock_guard<ForkSafeMutex> lock(idle_mutex);
      Idle().reserve(++NumMade());  // room for all: giving one back must not allocate
    }
    return TargetLease(std::move(target));
  }
  TargetLease(TargetLease&&) = default;
  TargetLease& operator=(TargetLease&&) = delete;
  ~TargetLease() {
    if (target_ == nullptr) return;
    if (std::uncaught_exceptions() > begun_) {  // as LeftOnException
      static_cast<void>(target_.release());
      return;
    }
    std::lock_guard<ForkSafeMutex> lock(idle_mutex);
    Idle().push_back(std::move(target_));
  }
  llvm::TargetMachine* get() const { return target_.get(); }

 private:
  using Targets = std::vector<std::unique_ptr<llvm::TargetMachine>>;
  explicit TargetLease(std::unique_ptr<llvm::TargetMachine> target) : target_(std::move(target)) {}
  static size_t& NumMade() {
    static size_t num_made = 0;
    return num_made;
  }
  static Targets& Idle() {
    const NoFork no_fork;  // the first call makes them
    static auto* idle = new Targets;
    return *idle;
  }
  std::unique_ptr<llvm::TargetMachine> target_;
  int begun_ = std::uncaught_exceptions();
};

// Called between two stages: an error if this thread should stop compiling.
absl::Status CheckGoOn(const std::atomic<bool>& stop) {
  return stop ? absl::CancelledError("compilation stopped: the process ends; accepted: none") : absl::OkStatus();
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

// For compilations that are never stopped.
const std::atomic<bool> kGoOn{false};

// The stages that need LLVM's code generator, from a descriptor to the bytes of an object file. Fills all of `times`
// except plan and jit.
absl::StatusOr<std::string> MakeObject(const KernelPlan& plan, const KernelDescriptor& descriptor,
                                       const Machine& machine, const std::string& key, const std::string& template_dir,
                                       const std::atomic<bool>& stop, CompileTimes* times) {
  QUERN_RETURN_IF_ERROR(CheckMemory());
  QUERN_RETURN_IF_ERROR(CheckGoOn(stop));
  auto context = std::make_unique<llvm::LLVMContext>();
  const LeftOnException left_context(&context);
  context->setDiagnosticHandler(std::make_unique<Diagnostics>());
  context->setDiscardValueNames(!HasStageFiles());  // dumps keep them for their readers
  QUERN_ASSIGN_OR_RETURN(TargetLease target, TargetLease::Take(machine));
  QUERN_ASSIGN_OR_RETURN(auto module,
                         Instantiate(plan, descriptor, machine, target.get(), template_dir, context.get(), times));
  const LeftOnException left_module(&module);
  if (HasStageFiles()) {
    module = OverrideModule(plan, key, *target.get(), std::move(module));
    DumpInstantiated(plan, key, *module);
  }
  QUERN_RETURN_IF_ERROR(CheckGoOn(stop));
  const double instantiated = NowMs();
  QUERN_RETURN_IF_ERROR(Optimise(module.get(), target.get(), PassesOf(plan)));
  QUERN_RETURN_IF_ERROR(CheckGoOn(stop));
  if (HasStageFiles()) DumpOptimised(plan, key, *module, target.get());
  const double optimised = NowMs();
  llvm::SmallVector<char, 0> object;
  QUERN_RETURN_IF_ERROR(GenerateCode(module.get(), target.get(), CodeFormat::kObject, &object, PassesOf(plan)));
  times->optimise_ms = optimised - instantiated;
  times->codegen_ms = NowMs() - optimised;
  return std::string(object.data(), object.size());
}

// The inputs of a kernel, and its key on disk.
struct KernelRequest {
  KernelPlan plan;
  Machine machine;
  std::string key;
  std::string template_dir;
  bool is_cached = false;
  double plan_ms = 0;
  const std::atomic<bool>* stop = &kGoOn;
  PlanOverrides overrides;  // for the log
};

// Loads the object on disk; an error where there is none. An object that fails to load counts as missing, unless memory
// is short.
absl::StatusOr<LoadedCode> LoadFromDisk(const KernelRequest& request, const std::vector<std::string>& symbols) {
  const std::optional<std::string> object = DiskCache::OfProcess().Find(request.key);
  if (!object.has_value()) return absl::NotFoundError("no kernel on disk");
  return LoadObject(*object, symbols, PrintSpec(request.plan.spec));
}

absl::StatusOr<std::shared_ptr<const Kernel>> MakeCompiledKernel(KernelRequest request) {
  const double start = NowMs();
  auto kernel = std::make_shared<Kernel>();
  QUERN_ASSIGN_OR_RETURN(KernelDescriptor descriptor, MakeKernelDescriptor(request.plan));
  const std::vector<std::string> symbols = EntryPointSymbols(descriptor);
  CompileTimes& times = kernel->times;
  times.plan_ms = request.plan_ms;
  const bool uses_disk = request.is_cached && !HasStageFiles();
  double generated = NowMs();
  absl::StatusOr<LoadedCode> code = uses_disk ? LoadFromDisk(request, symbols) : absl::NotFoundError("not asked for");
  kernel->from_disk = code.ok();
  if (!code.ok() && !absl::IsResourceExhausted(code.status())) {
    QUERN_ASSIGN_OR_RETURN(const std::string object, MakeObject(request.plan, descriptor, request.machine, request.key,
                                                                request.template_dir, *request.stop, &times));
    if (uses_disk) DiskCache::OfProcess().Store(request.key, object);
    generated = NowMs();
    code = LoadObject(object, symbols, PrintSpec(request.plan.spec));
  }
  QUERN_RETURN_IF_ERROR(code.status());
  SetDescriptor(std::move(descriptor), kernel.get());
  SetEntryPoints(code->addresses, kernel.get());
  kernel->code = std::move(code->owner);
  kernel->code_bytes = code->code_bytes;
  kernel->page_bytes = code->page_bytes;
  kernel->engine = Engine::kJit;
  kernel->plan = std::move(request.plan);
  times.jit_ms = NowMs() - generated;
  times.total_ms = request.plan_ms + NowMs() - start;
  if (!kernel->from_disk) TierPolicy::OfProcess().Learn(EstimateCosts(kernel->plan.spec), times.total_ms);
  LogCompiled(*kernel,
              !request.is_cached  ? CacheOutcome::kOff
              : kernel->from_disk ? CacheOutcome::kDisk
                                  : CacheOutcome::kMiss,
              request.overrides);
  return std::shared_ptr<const Kernel>(std::move(kernel));
}

// The part of the key that callers cannot choose.
const std::string& ProcessKey(const Machine& host) {
  const NoFork no_fork;  // the first call makes it
  static const auto* key = new std::string(std::string(BuildIdentity()) + " llvm=" LLVM_VERSION_STRING +
                                           " abi=" + std::to_string(kKernelAbiVersion) +
                                           " templates=" + std::to_string(EmbeddedTemplatesHash()) +
                                           (WantsSourceLines() ? " lines" : "") + "\n" + PrintMachine(host) + "\n");
  return *key;
}

// The size of a host aggregate's state is compiled into the code but is not in the spec, and it may differ between
// processes. One line for each.
std::string HostStates(const KernelSpec& spec) {
  std::string text;
  for (const AggregateSpec& aggregate : spec.aggregates) {
    const HostAggregate* host =
        aggregate.function == AggregateFunction::kHost ? FindHostAggregate(aggregate.host_name) : nullptr;
    if (host != nullptr)
      text += "host." + aggregate.host_name + " state_bytes=" + std::to_string(host->state_bytes) + "\n";
  }
  return text;
}

// Lines: the spec first, for human readers; then plan, versions, machine.
std::string KernelKey(const KernelPlan& plan, const Machine& host) {
  return PrintSpec(plan.spec) + "\n" + PlanJson(plan) + "\n" + HostStates(plan.spec) + ProcessKey(host);
}

// Everything on which the machine code depends. Kernels that differ only in tuning share their code on disk and in
// memory.
std::string CodeKey(const KernelPlan& plan, const Machine& host) {
  return PrintSpec(plan.spec) + "\n" + CodeParameters(plan) + "\n" + HostStates(plan.spec) + ProcessKey(host);
}

// The text of a spec and the overrides as one string, each preceded by its length, because a text may hold any byte and
// so any separator. `profile_number` is read before the profile, so that a kernel planned with an older profile never
// gets the name of a newer one.
std::string NameOf(std::string_view text, const PlanOverrides& overrides, uint64_t profile_number) {
  std::string name = profile_number == 0 ? "" : "profile " + std::to_string(profile_number) + " ";
  name += std::to_string(text.size()) + " ";
  name += text;
  for (const auto& [parameter, value] : overrides) {
    name += " " + std::to_string(parameter.size()) + " " + parameter + " " + std::to_string(value.size()) + " " + value;
  }
  return name;
}

// HostMachine without a copy: its list of features has two thousand characters.
const absl::StatusOr<Machine>& Host() {
  const NoFork no_fork;  // the first call makes it
  static const auto* host = new absl::StatusOr<Machine>(HostMachine());
  return *host;
}

// A folder of templates may change between two calls, so its kernels are not cached.
bool IsCached(const CompileOptions& options) { return options.use_cache && options.template_dir.empty(); }

std::string NameOf(const KernelSpec& spec, const PlanOverrides& overrides, uint64_t profile_number) {
  return NameOf(PrintSpec(spec), overrides, profile_number);
}

// The compiled kernel of a plan for this machine: from memory, from disk, or newly compiled.
absl::StatusOr<CompiledKernel> CompilePlanned(const KernelPlan& plan, const Machine& host,
                                              const CompileOptions& options, uint64_t profile_number, double plan_ms,
                                              const std::atomic<bool>& stop) {
  const std::string key = KernelKey(plan, host), code_key = CodeKey(plan, host);
  const bool is_cached = IsCached(options);
  const auto make = [&]() -> absl::StatusOr<std::shared_ptr<const Kernel>> {
    if (is_cached) {
      if (const auto same_code = KernelCache::OfProcess().FindByName(code_key)) return Replanned(*same_code, plan);
    }
    return MakeCompiledKernel(
        {plan, host, code_key, options.template_dir, is_cached, plan_ms, &stop, options.overrides});
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
  return CompilePlanned(plan, host, options, profile_number, NowMs() - start, kGoOn);
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
                           CompilePlanned(generic->plan, *Host(), options_, profile_number_, 0, stop));
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
    const absl::StatusOr<uint64_t> bytes = KeptBytesOfEnvironment();
    if (bytes.ok()) KeptPages::OfProcess().SetMost(*bytes);
    else WarnOnce(std::string(bytes.status().message()));
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

namespace {

// The entry points that an operator uses: the slot of the kernel's tier, or fixed ones.
template <class EntryPoints>
EntrySource<EntryPoints> SourceOf(const Kernel& kernel, const EntryPoints& entry_points,
                                  std::shared_ptr<const EntrySlot<EntryPoints>> KernelTier::* slot) {
  if (kernel.tier != nullptr) return EntrySource<EntryPoints>((*kernel.tier).*slot, kernel.counters);
  auto fixed = std::make_shared<EntrySlot<EntryPoints>>(entry_points, nullptr, kernel.engine == Engine::kJit);
  return EntrySource<EntryPoints>(std::move(fixed), kernel.counters);
}

}  // namespace

std::shared_ptr<HashJoin> MakeHashJoin(const std::shared_ptr<const Kernel>& kernel,
                                       std::shared_ptr<MemoryBudget> budget) {
  auto join = std::make_shared<HashJoin>(kernel->descriptor, SourceOf(*kernel, kernel->join, &KernelTier::join), kernel,
                                         std::move(budget), MakeJoinOptions(kernel->plan));
  if (auto observer = ObserverOf(kernel->plan)) join->Observe(std::move(observer));
  return join;
}

std::shared_ptr<HashAggregate> MakeHashAggregate(const std::shared_ptr<const Kernel>& kernel,
                                                 std::shared_ptr<MemoryBudget> budget, const GroupHints& hints) {
  AggregateOptions options = MakeAggregateOptions(kernel->plan);
  options.expected_groups = hints.expected_groups;
  options.ranges = hints.ranges;
  auto aggregate = std::make_shared<HashAggregate>(
      kernel->groups, SourceOf(*kernel, kernel->aggregate, &KernelTier::aggregate), kernel, std::move(budget), options);
  if (auto observer = ObserverOf(kernel->plan)) aggregate->Observe(std::move(observer));
  return aggregate;
}

std::shared_ptr<RowSort> MakeRowSort(const std::shared_ptr<const Kernel>& kernel,
                                     std::shared_ptr<MemoryBudget> budget) {
  auto sort = std::make_shared<RowSort>(kernel->rows, SourceOf(*kernel, kernel->sort, &KernelTier::sort),
                                        GenericSortKernel(), kernel, std::move(budget), MakeSortOptions(kernel->plan));
  if (auto observer = ObserverOf(kernel->plan)) sort->Observe(std::move(observer));
  return sort;
}

std::unique_ptr<RunMerger> MakeRunMerger(const std::shared_ptr<const Kernel>& kernel,
                                         std::shared_ptr<MemoryBudget> budget, uint32_t num_runs) {
  return std::make_unique<RunMerger>(kernel->rows, SourceOf(*kernel, kernel->sort, &KernelTier::sort), kernel,
                                     std::move(budget), num_runs);
}

std::shared_ptr<RowFilter> MakeRowFilter(const std::shared_ptr<const Kernel>& kernel) {
  return std::make_shared<RowFilter>(kernel->where, SourceOf(*kernel, kernel->filter, &KernelTier::filter), kernel);
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
