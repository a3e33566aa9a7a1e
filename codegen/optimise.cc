// SPDX-License-Identifier: Apache-2.0
// Our own pass list and code generation.
//
// The stock O2 pipeline is made for code that people wrote; a kernel is made of blocks that were simplified when the library was built.
// What is left to do at run time is what became possible by filling the holes: inline, fold the constants, break up the structs that blocks
// passed around, move loads of column pointers out of loops. Everything else (vectorising, unrolling, inter-procedural analysis) is either
// written into the blocks already or does not pay in 10 ms.
#include <chrono>

#include "codegen/diagnostics.h"
#include "codegen/module.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/raw_ostream.h"
#include "runtime/status.h"

namespace quern {
namespace {

// Order matters: inlining first (everything feeds on it), then one round of cleaning, then loops, then a second, cheap round.
constexpr const char* kPasses =
    "always-inline,globaldce,"
    "function(sroa<modify-cfg>,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint;max-iterations=1>,"
    "loop-mssa(loop-rotate,licm),early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint;max-iterations=1>)";

}  // namespace

double NowMs() { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

absl::Status Optimise(llvm::Module* module, llvm::TargetMachine* target) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(target);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::ModulePassManager passes;
  if (llvm::Error error = builder.parsePassPipeline(passes, kPasses)) {
    return Internal("bad pass list: " + llvm::toString(std::move(error)) + "; accepted: passes of LLVM 22.1");
  }
  passes.run(*module, modules);
  for (const llvm::Function& function : *module) {
    const llvm::StringRef name = function.getName();
    if (name.starts_with("quern_hole_") || name.starts_with("quern_block_")) {
      return Internal("not inlined: " + name.str() + "; accepted: no hole and no block after optimisation");
    }
  }
  return absl::OkStatus();
}

absl::Status GenerateCode(llvm::Module* module, llvm::TargetMachine* target, CodeFormat format, llvm::SmallVectorImpl<char>* out) {
  llvm::raw_svector_ostream stream(*out);
  llvm::legacy::PassManager passes;
  const auto type = format == CodeFormat::kObject ? llvm::CodeGenFileType::ObjectFile : llvm::CodeGenFileType::AssemblyFile;
  if (target->addPassesToEmitFile(passes, stream, nullptr, type, /*DisableVerify=*/true)) {
    return Internal("cannot generate code: " + target->getTargetTriple().str() + "; accepted: x86-64, aarch64");
  }
  passes.run(*module);
  const std::string& errors = Diagnostics::ErrorsOf(module->getContext());
  if (!errors.empty()) return Internal("cannot generate code: " + errors + "; accepted: what the machine can do");
  return absl::OkStatus();
}

}  // namespace quern
