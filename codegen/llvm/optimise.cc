// SPDX-License-Identifier: Apache-2.0
// Our pass list and code generation.
//
// The stock pipelines are made for code that people wrote. A kernel consists of blocks that were simplified when the
// library was built, so only what filling the holes made possible is left for run time: inlining, folding constants,
// breaking up the structs that blocks pass around, moving loads of column pointers out of loops. Everything else
// (vectorising, unrolling, inter-procedural analysis) is either written into the blocks or does not pay within 10 ms.
//
// Code generation is three quarters of a compilation. LLVM adds some 150 passes for it, in an order of its own. We keep
// that order and drop the passes that passes.def leaves out: loop-reduce alone, with the scalar evolution that it
// requires, would be a sixth of the total. docs/performance-kernels.md, "What passes cost and gain", has the figures of
// each row. The plan parameters `passes` and `codegen_level` choose LLVM's own lists instead, and `test.toggled_pass`
// toggles one row:
//
//     quern dump asm 'join.inner keys=i64,utf8' --param passes=o3 --param codegen_level=3
#include <chrono>
#include <memory>

#include "codegen/llvm/diagnostics.h"
#include "codegen/llvm/left_on_exception.h"
#include "codegen/llvm/module.h"
#include "codegen/llvm/passes.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/Pass.h"
#include "llvm/PassInfo.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/raw_ostream.h"
#include "runtime/base/status.h"

namespace quern {
namespace {

constexpr PassRow kRows[] = {
#define QUERN_PASS_KIND_module PassKind::kModule
#define QUERN_PASS_KIND_function PassKind::kFunction
#define QUERN_PASS_KIND_loop PassKind::kLoop
#define QUERN_IR_PASS(grain, pass, does) {QUERN_PASS_KIND_##grain, pass, does},
#define QUERN_MACHINE_PASS(passes, does) {PassKind::kMachine, passes, does},
#define QUERN_LEFT_OUT(passes, would) {PassKind::kLeftOut, passes, would},
#include "codegen/llvm/passes.def"
};

// The pass list of Optimise as text:
// "always-inline,globaldce,function(sroa<modify-cfg>,..,loop-mssa(loop-rotate,licm),..)".
std::string PassList(uint32_t toggled_pass) {
  std::string text;
  PassKind open = PassKind::kModule;
  const auto close_down_to = [&](PassKind kind) {
    for (; open > kind; open = static_cast<PassKind>(static_cast<uint8_t>(open) - 1)) text += ")";
  };
  for (uint32_t row = 0; row < std::size(kRows); ++row) {
    const PassKind kind = kRows[row].kind;
    if (kind > PassKind::kLoop || row + 1 == toggled_pass) continue;
    close_down_to(kind);
    if (!text.empty()) text += ",";
    for (; open < kind; open = static_cast<PassKind>(static_cast<uint8_t>(open) + 1)) {
      text += open == PassKind::kModule ? "function(" : "loop-mssa(";
    }
    text += kRows[row].passes;
  }
  close_down_to(PassKind::kModule);
  return text;
}

absl::Status AddPasses(const PassChoice& choice, llvm::PassBuilder* builder, llvm::ModulePassManager* passes) {
  if (choice.is_stock) {
    *passes = builder->buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3);
    return absl::OkStatus();
  }
  if (llvm::Error error = builder->parsePassPipeline(*passes, PassList(choice.toggled_pass))) {
    return Internal("bad pass list: " + llvm::toString(std::move(error)) + "; accepted: passes of LLVM 22.1");
  }
  return absl::OkStatus();
}

// Passes and what they know of a module.
struct Pipeline {
  explicit Pipeline(llvm::TargetMachine* target) : builder(target) {
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(components);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, components, modules);
  }

  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder;
  llvm::ModulePassManager passes;
};

// Receives the passes of code generation as LLVM adds them, and drops those that passes.def leaves out.
class FilteredPasses : public llvm::legacy::PassManager {
 public:
  explicit FilteredPasses(const PassChoice& choice) : choice_(choice) {}

  void add(llvm::Pass* pass) override {
    if (Drops(*pass)) delete pass;
    else llvm::legacy::PassManager::add(pass);
  }

 private:
  bool Drops(const llvm::Pass& pass) const {
    const llvm::PassInfo* info = choice_.is_stock ? nullptr : llvm::Pass::lookupPassInfo(pass.getPassID());
    if (info == nullptr) return false;
    const std::string name = "," + info->getPassArgument().str() + ",";
    for (uint32_t row = 0; row < std::size(kRows); ++row) {
      if (kRows[row].kind < PassKind::kMachine ||
          std::string_view(kRows[row].passes).find(name) == std::string_view::npos)
        continue;
      return (kRows[row].kind == PassKind::kLeftOut) != (row + 1 == choice_.toggled_pass);
    }
    return false;
  }

  const PassChoice choice_;
};

}  // namespace

std::span<const PassRow> PassRows() { return kRows; }

double NowMs() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

PassChoice PassesOf(const KernelPlan& plan) {
  return {.is_stock = plan.passes == PassPipeline::kO3,
          .codegen_level = plan.codegen_level,
          .toggled_pass = plan.test.toggled_pass};
}

absl::Status Optimise(llvm::Module* module, llvm::TargetMachine* target, const PassChoice& choice) {
  auto pipeline = std::make_unique<Pipeline>(target);
  const LeftOnException left_pipeline(&pipeline);
  QUERN_RETURN_IF_ERROR(AddPasses(choice, &pipeline->builder, &pipeline->passes));
  pipeline->passes.run(*module, pipeline->modules);
  for (const llvm::Function& function : *module) {
    const llvm::StringRef name = function.getName();
    if (name.starts_with("quern_hole_") || name.starts_with("quern_block_")) {
      return Internal("not inlined: " + name.str() + "; accepted: no hole and no block after optimisation");
    }
  }
  return absl::OkStatus();
}

absl::Status GenerateCode(llvm::Module* module, llvm::TargetMachine* target, CodeFormat format,
                          llvm::SmallVectorImpl<char>* out, const PassChoice& choice) {
  llvm::raw_svector_ostream stream(*out);
  auto passes = std::make_unique<FilteredPasses>(choice);
  const LeftOnException left_passes(&passes);
  target->setOptLevel(static_cast<llvm::CodeGenOptLevel>(choice.codegen_level));
  const auto type =
      format == CodeFormat::kObject ? llvm::CodeGenFileType::ObjectFile : llvm::CodeGenFileType::AssemblyFile;
  if (target->addPassesToEmitFile(*passes, stream, nullptr, type, /*DisableVerify=*/true)) {
    return Internal("cannot generate code: " + target->getTargetTriple().str() + "; accepted: x86-64, aarch64");
  }
  passes->run(*module);
  const std::string& errors = Diagnostics::ErrorsOf(module->getContext());
  if (!errors.empty()) return Internal("cannot generate code: " + errors + "; accepted: what the machine can do");
  return absl::OkStatus();
}

}  // namespace quern
