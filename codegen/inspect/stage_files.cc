// SPDX-License-Identifier: Apache-2.0
// Writes the stages of every compilation to files, and reads edited ones back:
//
//     $ QUERN_DUMP=ir,asm:/tmp/k quern filter --engine jit --where 'qty<5' --count orders.csv
//     $ ls /tmp/k
//     filter_i64_5-1c2f0a3b9d8e7f60.ll  filter_i64_5-1c2f0a3b9d8e7f60.s
//     $ $EDITOR /tmp/k/*.ll
//     $ QUERN_OVERRIDE=/tmp/k quern filter --engine jit --where 'qty<5' --count orders.csv
//     quern,override,file="/tmp/k/filter_i64_5-1c2f0a3b9d8e7f60.ll"
//
// A file name is the spec with unusual characters replaced by "_", cut to 60 characters, and the hash of the kernel's
// whole key: spec, plan, machine, templates, LLVM. So two kernels of a process never share a file, and the same kernel
// of two processes does; this is why a file is written under a temporary name and renamed. Both folders must be the
// user's own (private_folder.h): in one of somebody else's, a link of the right name would have any file of the user's
// overwritten, and an edited kernel would run. A change of templates or
// parameters changes the name, and an edited file of the old name would silently do nothing. Such a file is one
// warning.
//
// An edited file is text that a person wrote. It is parsed without the upgrade of debug information (which ends the
// process if a module is wrong). It gets the machine's attributes and the linkage that instantiate gives, loses
// functions that nobody calls any more, and passes the same checks: only allow-listed symbols, no hole left, valid IR.
// Any failure is a warning, and the kernel is compiled as if there were no file. Holes can be edited, since their calls
// are inlined later.
#include "codegen/inspect/stage_files.h"

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "codegen/base/environment.h"
#include "codegen/base/log.h"
#include "codegen/base/private_folder.h"
#include "codegen/kernel/kernel.h"
#include "codegen/llvm/module.h"
#include "codegen/plan/plan_thresholds.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/ModuleSummaryIndex.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/xxhash.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "runtime/base/fork_safety.h"
#include "runtime/base/status.h"

namespace quern {
namespace {

namespace fs = std::filesystem;

struct StageFiles {
  StageDump dump;
  fs::path override_folder;  // empty: QUERN_OVERRIDE is unset
};

template <class Value>
Value ValueOrWarning(absl::StatusOr<Value> value) {
  if (value.ok()) return *std::move(value);
  WarnOnce(std::string(value.status().message()));
  return Value();
}

// An edited file is code, so nobody else may be able to write to its folder.
std::string OverrideFolder() {
  std::string folder = ValueOrWarning(FolderOfEnvironment(Variable::kOverride));
  if (folder.empty()) return folder;
  const absl::Status status = PrivateFolder::Open(folder, "folder of QUERN_OVERRIDE").status();
  if (status.ok()) return folder;
  WarnOnce("edited kernels are not used: " + std::string(status.message()));
  return "";
}

// Never destroyed: a compile thread may use it while the process ends.
const StageFiles& FilesOfProcess() {
  const NoFork no_fork;  // the first call makes it
  static const StageFiles* files = [] {
    return new StageFiles{ValueOrWarning(StageDumpOfEnvironment()), OverrideFolder()};
  }();
  return *files;
}

// ---- names ----

// "join.inner_keys_i64_build_f64" for "join.inner keys=i64 build=f64".
std::string LegibleName(const KernelSpec& spec) {
  constexpr size_t kMaxLength = 60;
  std::string name;
  for (const char c : PrintSpec(spec)) {
    const bool is_kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.';
    if (is_kept) name += c;
    else if (!name.empty() && name.back() != '_') name += '_';
    if (name.size() == kMaxLength) break;
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  return name;
}

std::string FileName(const KernelPlan& plan, std::string_view key) {
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016llx",
                static_cast<unsigned long long>(llvm::xxh3_64bits(llvm::StringRef(key.data(), key.size()))));
  return LegibleName(plan.spec) + "-" + hash;
}

// ---- writing ----

// True for an edited file that is read: the module compiled from it must not overwrite it.
bool IsOverride(const fs::path& path) {
  const fs::path& folder = FilesOfProcess().override_folder;
  std::error_code ignored;
  return !folder.empty() && fs::equivalent(folder, path.parent_path(), ignored) && fs::exists(path, ignored);
}

void WriteStage(const std::string& name, const std::string& text) {
  static std::atomic<uint64_t> writes{0};  // threads may write the same kernel
  const std::string temporary = name + "." + std::to_string(getpid()) + "." + std::to_string(++writes) + ".tmp";
  const absl::StatusOr<PrivateFolder> folder =
      PrivateFolder::OpenOrMake(FilesOfProcess().dump.folder, "folder of QUERN_DUMP");
  const absl::Status status = folder.ok() ? folder->Replace(name, temporary, text) : folder.status();
  if (!status.ok()) WarnOnce("stages are not written: " + std::string(status.message()));
}

// ---- reading ----

void EraseUncalled(llvm::Module* module) {
  bool erased = true;
  while (erased) {
    erased = false;
    for (llvm::Function& function : llvm::make_early_inc_range(*module)) {
      if (!function.use_empty() || (!function.isDeclaration() && !function.hasLocalLinkage())) continue;
      function.eraseFromParent();
      erased = true;
    }
  }
}

absl::Status CheckEntryPoints(const KernelPlan& plan, const llvm::Module& module) {
  QUERN_ASSIGN_OR_RETURN(const AnyOperatorKernel kernel, DescribeKernel(plan));
  for (const std::string& symbol : EntryPointSymbols(kernel)) {
    const llvm::Function* function = module.getFunction(symbol);
    if (function == nullptr || function->isDeclaration() || !function->hasExternalLinkage()) {
      return InvalidArgument("no such function: " + symbol + "; accepted: a module that defines it");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<llvm::Module>> ReadModule(const fs::path& path, const KernelPlan& plan,
                                                         const llvm::TargetMachine& target, const llvm::Module& made) {
  llvm::SMDiagnostic problem;
  const std::string& layout = made.getDataLayoutStr();
  const auto keep_layout = [&](llvm::StringRef, llvm::StringRef) { return std::optional<std::string>(layout); };
  std::unique_ptr<llvm::Module> module = llvm::parseAssemblyFileWithIndexNoUpgradeDebugInfo(
                                             path.string(), problem, made.getContext(), nullptr, keep_layout)
                                             .Mod;
  if (module == nullptr) {
    const std::string line = problem.getLineNo() > 0 ? "line " + std::to_string(problem.getLineNo()) + ": " : "";
    return InvalidArgument(line + problem.getMessage().str() + "; accepted: LLVM 22.1 assembly");
  }
  if (!module->getTargetTriple().empty() && module->getTargetTriple() != made.getTargetTriple()) {
    return InvalidArgument("module for another machine: " + module->getTargetTriple().str() +
                           "; accepted: " + made.getTargetTriple().str());
  }
  module->setModuleIdentifier(made.getModuleIdentifier());
  module->setTargetTriple(made.getTargetTriple());
  FinaliseModule(module.get(), target);
  EraseUncalled(module.get());
  QUERN_RETURN_IF_ERROR(CheckEntryPoints(plan, *module));
  QUERN_RETURN_IF_ERROR(CheckInstantiated(*module, target));
  return module;
}

// Warns of an edited file for the same spec under another key, because its author expects it to be used.
void WarnOfStaleFile(const fs::path& folder, const KernelPlan& plan, const std::string& name) {
  const std::string front = LegibleName(plan.spec) + "-";
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string found = entry->path().filename().string();
    const bool is_of_spec =
        found.size() == name.size() && found.rfind(front, 0) == 0 && entry->path().extension() == ".ll";
    if (is_of_spec)
      WarnOnce("override is of another plan, machine or build: " + entry->path().string() + "; accepted: " + name);
  }
}

}  // namespace

bool HasStageFiles() {
  const StageFiles& files = FilesOfProcess();
  return !files.dump.stages.empty() || !files.override_folder.empty();
}

std::unique_ptr<llvm::Module> OverrideModule(const KernelPlan& plan, std::string_view key,
                                             const llvm::TargetMachine& target, std::unique_ptr<llvm::Module> module) {
  const fs::path& folder = FilesOfProcess().override_folder;
  if (folder.empty()) return module;
  const std::string name = FileName(plan, key) + ".ll";
  const fs::path path = folder / name;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    WarnOfStaleFile(folder, plan, name);
    return module;
  }
  absl::StatusOr<std::unique_ptr<llvm::Module>> edited = ReadModule(path, plan, target, *module);
  if (!edited.ok()) {
    WarnOnce("override not used: " + path.string() + ": " + std::string(edited.status().message()));
    return module;
  }
  Log(LogLevel::kInfo, "quern,override,file=\"" + path.string() + "\"");
  return *std::move(edited);
}

void DumpInstantiated(const KernelPlan& plan, std::string_view key, const llvm::Module& module) {
  const StageDump& dump = FilesOfProcess().dump;
  const std::string name = FileName(plan, key);
  if (dump.Leaves("plan")) WriteStage(name + ".plan", PrintPlan(plan) + PrintThresholds(plan.spec));
  if (dump.Leaves("layout")) {
    if (const absl::StatusOr<AnyOperatorKernel> kernel = DescribeKernel(plan); kernel.ok())
      WriteStage(name + ".layout", PrintLayout(*kernel));
  }
  if (dump.Leaves("ir") && !IsOverride(fs::path(dump.folder) / (name + ".ll")))
    WriteStage(name + ".ll", PrintModule(module));
}

// Code generation changes its module, so assembly is made from a copy.
void DumpOptimised(const KernelPlan& plan, std::string_view key, const llvm::Module& module,
                   llvm::TargetMachine* target) {
  const StageDump& dump = FilesOfProcess().dump;
  const std::string name = FileName(plan, key);
  if (dump.Leaves("opt")) WriteStage(name + ".opt.ll", PrintModule(module));
  if (!dump.Leaves("asm")) return;
  llvm::SmallVector<char, 0> text;
  if (GenerateCode(llvm::CloneModule(module).get(), target, CodeFormat::kAssembly, &text, PassesOf(plan)).ok()) {
    WriteStage(name + ".s", std::string(text.data(), text.size()));
  }
}

}  // namespace quern
