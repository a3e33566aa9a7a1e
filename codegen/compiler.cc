// SPDX-License-Identifier: Apache-2.0
// The whole way, stage after stage: spec -> plan -> instantiate -> optimise -> generate code -> load -> kernel. Read this file first; each
// stage has a file of its own.
//
// The key of a kernel is computed here and nowhere else: canonical spec, plan, engine, and what the process cannot change (machine,
// templates, LLVM) once in front. Two callers who write the same spec in another order of fields share one kernel.
#include "codegen/compiler.h"

#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "codegen/diagnostics.h"
#include "codegen/disk_cache.h"
#include "codegen/jit.h"
#include "codegen/kernel_cache.h"
#include "codegen/module.h"
#include "codegen/stage_files.h"
#include "codegen/template_library.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/MemoryBuffer.h"
#include "runtime/generic_aggregate.h"
#include "runtime/generic_filter.h"
#include "runtime/generic_join.h"
#include "runtime/generic_sort.h"
#include "runtime/status.h"

namespace quern {
namespace {

void SetShape(KernelShape shape, Kernel* kernel) {
  kernel->shape = std::move(shape.join);
  kernel->groups = std::move(shape.aggregate);
  kernel->rows = std::move(shape.sort);
  kernel->where = std::move(shape.filter);
}

// Addresses in the order of EntryPointSymbols.
void SetEntryPoints(const std::vector<void*>& addresses, Kernel* kernel) {
  size_t i = 0;
  if (kernel->shape != nullptr) {
    const NeededEntryPoints needed = EntryPointsOf(*kernel->shape->get());
#define QUERN_JOIN_ENTRY(field, result, parameters) \
  if (needed.field) kernel->join.field = reinterpret_cast<result(*) parameters>(addresses[i++]);
#include "runtime/join_entry_points.def"
  } else if (kernel->groups != nullptr) {
    const NeededAggregateEntryPoints needed = EntryPointsOf(*kernel->groups->get());
#define QUERN_AGGREGATE_ENTRY(field, result, parameters) \
  if (needed.field) kernel->aggregate.field = reinterpret_cast<result(*) parameters>(addresses[i++]);
#include "runtime/aggregate_entry_points.def"
  } else if (kernel->where != nullptr) {
    kernel->filter.mask = reinterpret_cast<void (*)(QuernFilterArgs*)>(addresses[i++]);
  } else {
    const NeededSortEntryPoints needed = EntryPointsOf(*kernel->rows->get());
#define QUERN_SORT_ENTRY(field, result, parameters) \
  if (needed.field) kernel->sort.field = reinterpret_cast<result(*) parameters>(addresses[i++]);
#include "runtime/sort_entry_points.def"
  }
}

absl::StatusOr<std::shared_ptr<const Kernel>> MakeGenericKernel(KernelPlan plan) {
  auto kernel = std::make_shared<Kernel>();
  QUERN_ASSIGN_OR_RETURN(KernelShape shape, MakeKernelShape(plan));
  SetShape(std::move(shape), kernel.get());
  switch (plan.spec.op) {
    case Operator::kJoin: kernel->join = GenericJoinKernel(); break;
    case Operator::kAggregate: kernel->aggregate = GenericAggregateKernel(); break;
    case Operator::kSort: kernel->sort = GenericSortKernel(); break;
    case Operator::kFilter: kernel->filter = GenericFilterKernel(); break;
  }
  kernel->plan = std::move(plan);
  kernel->engine = Engine::kGeneric;
  return std::shared_ptr<const Kernel>(std::move(kernel));
}

// The host's target machine for the time of one compilation. Making one costs a tenth of a compilation (a hundred CPU features are parsed),
// so they are kept, one for each thread that compiles at the same time; none serves two threads at once.
class TargetLease {
 public:
  static absl::StatusOr<TargetLease> Take(const Machine& host) {
    {
      std::lock_guard<std::mutex> lock(Mutex());
      if (!Idle().empty()) {
        TargetLease lease(std::move(Idle().back()));
        Idle().pop_back();
        return lease;
      }
    }
    QUERN_ASSIGN_OR_RETURN(auto target, MakeTargetMachine(host));
    return TargetLease(std::move(target));
  }
  TargetLease(TargetLease&&) = default;
  TargetLease& operator=(TargetLease&&) = delete;
  ~TargetLease() {
    if (target_ == nullptr) return;
    std::lock_guard<std::mutex> lock(Mutex());
    Idle().push_back(std::move(target_));
  }
  llvm::TargetMachine* get() const { return target_.get(); }

 private:
  using Targets = std::vector<std::unique_ptr<llvm::TargetMachine>>;
  explicit TargetLease(std::unique_ptr<llvm::TargetMachine> target) : target_(std::move(target)) {}
  static std::mutex& Mutex() {
    static auto* mutex = new std::mutex;
    return *mutex;
  }
  static Targets& Idle() {
    static auto* idle = new Targets;
    return *idle;
  }
  std::unique_ptr<llvm::TargetMachine> target_;
};

// The stages that need LLVM's code generator: a shape in, the bytes of an object file out. Fills all of `times` but plan and jit.
absl::StatusOr<std::string> MakeObject(const KernelPlan& plan, const KernelShape& shape, const Machine& machine, const std::string& key,
                                       const std::string& template_dir, CompileTimes* times) {
  llvm::LLVMContext context;
  context.setDiagnosticHandler(std::make_unique<Diagnostics>());
  context.setDiscardValueNames(!HasStageFiles());  // for people; dumps keep them
  QUERN_ASSIGN_OR_RETURN(TargetLease target, TargetLease::Take(machine));
  QUERN_ASSIGN_OR_RETURN(auto module, Instantiate(plan, shape, machine, target.get(), template_dir, &context, times));
  if (HasStageFiles()) {
    DumpInstantiated(plan, key, *module);
    module = OverrideModule(plan, key, *target.get(), std::move(module));
  }
  const double instantiated = NowMs();
  QUERN_RETURN_IF_ERROR(Optimise(module.get(), target.get()));
  if (HasStageFiles()) DumpOptimised(plan, key, *module, target.get());
  const double optimised = NowMs();
  llvm::SmallVector<char, 0> object;
  QUERN_RETURN_IF_ERROR(GenerateCode(module.get(), target.get(), CodeFormat::kObject, &object));
  times->optimise_ms = optimised - instantiated;
  times->codegen_ms = NowMs() - optimised;
  return std::string(object.data(), object.size());
}

// What a kernel is made of, and by which key it is kept on disk.
struct KernelRequest {
  KernelPlan plan;
  Machine machine;
  std::string key;
  std::string template_dir;
  bool uses_disk = false;
  double plan_ms = 0;
};

absl::StatusOr<std::shared_ptr<const Kernel>> MakeCompiledKernel(KernelRequest request) {
  const double start = NowMs();
  auto kernel = std::make_shared<Kernel>();
  QUERN_ASSIGN_OR_RETURN(KernelShape shape, MakeKernelShape(request.plan));
  CompileTimes& times = kernel->times;
  times.plan_ms = request.plan_ms;
  std::string object;
  const bool uses_disk = request.uses_disk && !HasStageFiles();
  if (uses_disk) {
    if (std::optional<std::string> found = DiskCache::OfProcess().Find(request.key)) {
      object = *std::move(found);
      kernel->from_disk = true;
    }
  }
  if (!kernel->from_disk) {
    QUERN_ASSIGN_OR_RETURN(object, MakeObject(request.plan, shape, request.machine, request.key, request.template_dir, &times));
    if (uses_disk) DiskCache::OfProcess().Store(request.key, object);
  }
  const double generated = NowMs();
  QUERN_ASSIGN_OR_RETURN(LoadedCode code, LoadObject(llvm::MemoryBuffer::getMemBufferCopy(object, "kernel"), EntryPointSymbols(shape),
                                                     PrintSpec(request.plan.spec)));
  SetShape(std::move(shape), kernel.get());
  SetEntryPoints(code.addresses, kernel.get());
  kernel->code = std::move(code.owner);
  kernel->code_bytes = code.code_bytes;
  kernel->engine = Engine::kJit;
  kernel->plan = std::move(request.plan);
  times.jit_ms = NowMs() - generated;
  times.total_ms = request.plan_ms + NowMs() - start;
  return std::shared_ptr<const Kernel>(std::move(kernel));
}

// What no caller can choose.
const std::string& ProcessKey(const Machine& host) {
  static const auto* key = new std::string(PrintMachine(host) + " llvm=" LLVM_VERSION_STRING " abi=" + std::to_string(kKernelAbiVersion) +
                                           " templates=" + std::to_string(EmbeddedTemplatesHash()) + "\n");
  return *key;
}

std::string KernelKey(const KernelPlan& plan, const Machine& host) {
  return ProcessKey(host) + PrintSpec(plan.spec) + "\n" + PlanJson(plan);
}

// A spec's text and the overrides as one string, each with its length in front: a text may hold any byte, also one that would separate.
std::string NameOf(std::string_view text, const PlanOverrides& overrides) {
  std::string name = std::to_string(text.size()) + " ";
  name += text;
  for (const auto& [parameter, value] : overrides) {
    name += " " + std::to_string(parameter.size()) + " " + parameter + " " + std::to_string(value.size()) + " " + value;
  }
  return name;
}

absl::StatusOr<CompiledKernel> CompileForHost(const KernelSpec& spec, const CompileOptions& options) {
  const double start = NowMs();
  QUERN_ASSIGN_OR_RETURN(const Machine host, HostMachine());
  QUERN_ASSIGN_OR_RETURN(KernelPlan plan, MakePlan(spec, host, options.overrides));
  const double plan_ms = NowMs() - start;
  const std::string key = KernelKey(plan, host);
  // A folder of templates may change between two calls.
  const bool is_cached = options.use_cache && options.template_dir.empty();
  const auto make = [&] { return MakeCompiledKernel({plan, host, key, options.template_dir, is_cached, plan_ms}); };
  if (is_cached) {
    QUERN_ASSIGN_OR_RETURN(CompiledKernel found, KernelCache::OfProcess().FindOrMake(key, make));
    if (found.cache == CacheOutcome::kMiss && found.kernel->from_disk) found.cache = CacheOutcome::kDisk;
    return found;
  }
  QUERN_ASSIGN_OR_RETURN(auto kernel, make());
  return CompiledKernel{std::move(kernel), CacheOutcome::kOff, ""};
}

}  // namespace

absl::StatusOr<CompiledKernel> Compile(const KernelSpec& spec, const CompileOptions& options) {
  std::string warning;
  if (options.engine != Engine::kGeneric) {
    absl::StatusOr<CompiledKernel> compiled = CompileForHost(spec, options);
    const bool callers_mistake = compiled.status().code() == absl::StatusCode::kInvalidArgument;
    if (compiled.ok() || options.engine == Engine::kJit || callers_mistake) return compiled;
    warning = "not compiled, running the generic kernel: " + std::string(compiled.status().message());
  }
  absl::StatusOr<Machine> host = HostMachine();
  QUERN_ASSIGN_OR_RETURN(KernelPlan plan, MakePlan(spec, host.ok() ? *host : Machine{}, options.overrides));
  QUERN_ASSIGN_OR_RETURN(auto kernel, MakeGenericKernel(std::move(plan)));
  return CompiledKernel{std::move(kernel), CacheOutcome::kOff, std::move(warning)};
}

std::shared_ptr<HashJoin> MakeHashJoin(const std::shared_ptr<const Kernel>& kernel, std::shared_ptr<MemoryBudget> budget) {
  return std::make_shared<HashJoin>(kernel->shape, kernel->join, kernel, std::move(budget), MakeJoinOptions(kernel->plan));
}

std::shared_ptr<HashAggregate> MakeHashAggregate(const std::shared_ptr<const Kernel>& kernel, std::shared_ptr<MemoryBudget> budget,
                                                 const GroupHints& hints) {
  AggregateOptions options = MakeAggregateOptions(kernel->plan);
  options.expected_groups = hints.expected_groups;
  options.ranges = hints.ranges;
  return std::make_shared<HashAggregate>(kernel->groups, kernel->aggregate, kernel, std::move(budget), options);
}

std::shared_ptr<RowSort> MakeRowSort(const std::shared_ptr<const Kernel>& kernel, std::shared_ptr<MemoryBudget> budget) {
  return std::make_shared<RowSort>(kernel->rows, kernel->sort, kernel, std::move(budget), MakeSortOptions(kernel->plan));
}

std::shared_ptr<RowFilter> MakeRowFilter(const std::shared_ptr<const Kernel>& kernel) {
  return std::make_shared<RowFilter>(kernel->where, kernel->filter, kernel);
}

absl::StatusOr<CompiledKernel> CompileText(std::string_view text, const CompileOptions& options) {
  const bool cached = options.use_cache && options.engine != Engine::kGeneric && options.template_dir.empty();
  const std::string name = cached ? NameOf(text, options.overrides) : "";
  if (cached) {
    if (auto kernel = KernelCache::OfProcess().FindByName(name)) return CompiledKernel{std::move(kernel), CacheOutcome::kMemory, ""};
  }
  QUERN_ASSIGN_OR_RETURN(const KernelSpec spec, ParseSpec(text));
  QUERN_ASSIGN_OR_RETURN(CompiledKernel compiled, Compile(spec, options));
  if (cached && compiled.kernel->engine == Engine::kJit) {
    QUERN_ASSIGN_OR_RETURN(const Machine host, HostMachine());
    KernelCache::OfProcess().AddName(name, KernelKey(compiled.kernel->plan, host));
  }
  return compiled;
}

void SetKernelCacheLimit(uint64_t code_bytes) { KernelCache::OfProcess().SetLimit(code_bytes); }
KernelCacheStats GetKernelCacheStats() { return KernelCache::OfProcess().Stats(); }
void ClearKernelCache() { KernelCache::OfProcess().Clear(); }

}  // namespace quern
