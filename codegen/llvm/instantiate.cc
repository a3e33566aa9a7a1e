// SPDX-License-Identifier: Apache-2.0
// From template to kernel module: define holes, link blocks, set the machine's attributes, make functions internal.
//
// Two details matter for speed:
//
// * Clang puts target-cpu, target-features and tune-cpu on every function of a template, and these override the target
//   of the JIT: a machine with AVX-512 would run SSE code. All are replaced by the machine's.
// * Blocks are loaded lazily and linked only if called: of about a hundred, a one-key join materialises five.
#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <string>

#include "codegen/emit/emitter.h"
#include "codegen/listeners/code_listener.h"
#include "codegen/llvm/diagnostics.h"
#include "codegen/llvm/left_on_exception.h"
#include "codegen/llvm/module.h"
#include "codegen/llvm/template_library.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "runtime/base/status.h"
#include "runtime/blocks/runtime_calls.h"

namespace quern {
namespace {

absl::StatusOr<std::unique_ptr<llvm::Module>> Parse(std::string_view name, const Machine& machine,
                                                    const std::string& template_dir, bool lazily,
                                                    llvm::LLVMContext* context) {
  std::string storage;
  QUERN_ASSIGN_OR_RETURN(std::string_view bitcode, FindTemplate(name, machine.arch, template_dir, &storage));
  const llvm::StringRef bytes(bitcode.data(), bitcode.size());
  const std::string identifier = "quern/" + std::string(name);
  llvm::Expected<std::unique_ptr<llvm::Module>> module = [&]() -> llvm::Expected<std::unique_ptr<llvm::Module>> {
    if (lazily && storage.empty())
      return llvm::getLazyBitcodeModule(llvm::MemoryBufferRef(bytes, identifier), *context);
    return llvm::parseBitcodeFile(llvm::MemoryBufferRef(bytes, identifier), *context);
  }();
  if (!module)
    return Internal("bad template: " + std::string(name) + ": " + llvm::toString(module.takeError()) +
                    "; accepted: LLVM 22.1 bitcode");
  return std::move(*module);
}

void AimAtMachine(llvm::Function* function, const llvm::TargetMachine& target) {
  for (const char* name : {"target-cpu", "target-features", "tune-cpu"}) function->removeFnAttr(name);
  function->addFnAttr("target-cpu", target.getTargetCPU());
  if (!target.getTargetFeatureString().empty()) function->addFnAttr("target-features", target.getTargetFeatureString());
  function->addFnAttr("frame-pointer", "all");
}

bool IsIn(std::span<const RuntimeCall> symbols, llvm::StringRef name) {
  return std::any_of(symbols.begin(), symbols.end(), [&](const RuntimeCall& symbol) { return name == symbol.name; });
}

bool IsEntryPoint(const llvm::Function& function) {
  bool is_one = false;
  ForEachOperator([&]<class Spec>(std::type_identity<Spec>) {
    is_one |= function.getName().starts_with("quern_" + std::string(OperatorTraits<Spec>::kTemplate) + "_");
  });
  return is_one;
}

// Slow paths that exist once in a kernel and are called (runtime/base/bytes.h).
bool IsOutlined(const llvm::Function& function) { return function.getName().starts_with("quern_outlined_"); }

// The next two functions handle source lines, where templates have them. Bodies of holes have none: a block that is
// inlined into one keeps its own lines, at the line of the template that calls the hole.
void ForgetLinesOfHoles(llvm::Module* module) {
  for (llvm::Function& function : *module)
    if (function.isDeclaration()) function.setSubprogram(nullptr);
}

// Debuggers show frames under the same names as profilers. Symbols keep theirs, so that breakpoints find them.
void NameFramesAfter(const std::string& spec, llvm::Module* module) {
  constexpr unsigned kNameOperand = 2;  // of a DISubprogram
  for (llvm::Function& function : *module) {
    llvm::DISubprogram* subprogram = function.getSubprogram();
    if (subprogram == nullptr || function.isDeclaration() || !(IsEntryPoint(function) || IsOutlined(function)))
      continue;
    const std::string name = FrameName(function.getName().str(), spec);
    subprogram->replaceOperandWith(kNameOperand, llvm::MDString::get(module->getContext(), name));
  }
}

// Removes entry points that the kernel does not need, and holes that only they call, to save compile time.
void RemoveUnneeded(const std::vector<std::string>& needed, llvm::Module* module) {
  for (llvm::Function& function : llvm::make_early_inc_range(*module)) {
    if (IsEntryPoint(function) && !llvm::is_contained(needed, function.getName().str())) function.eraseFromParent();
  }
  for (llvm::Function& function : llvm::make_early_inc_range(*module)) {
    if (function.isDeclaration() && !function.isIntrinsic() && function.use_empty()) function.eraseFromParent();
  }
}

absl::Status LinkBlocks(llvm::Module* module, std::unique_ptr<llvm::Module> blocks) {
  if (llvm::Linker::linkModules(*module, std::move(blocks), llvm::Linker::Flags::LinkOnlyNeeded)) {
    return Internal("blocks do not link: " + Diagnostics::ErrorsOf(module->getContext()) +
                    "; accepted: blocks made with the template");
  }
  return absl::OkStatus();
}

// The modules of the blocks that a kernel may call, two at most.
std::vector<const char*> BlockModules(const AnyOperatorKernel& kernel) {
  return std::visit(
      []<class Spec>(const OperatorKernel<Spec>& of) { return OperatorTraits<Spec>::BlockModules(*of.descriptor); },
      kernel);
}

}  // namespace

absl::StatusOr<std::unique_ptr<llvm::Module>> LoadTemplate(const KernelSpec& spec, const Machine& machine,
                                                           const std::string& template_dir,
                                                           llvm::LLVMContext* context) {
  return Parse(TemplateName(spec), machine, template_dir, /*lazily=*/false, context);
}

absl::StatusOr<std::unique_ptr<llvm::Module>> Instantiate(const KernelPlan& plan, const AnyOperatorKernel& kernel,
                                                          const Machine& machine, llvm::TargetMachine* target,
                                                          const std::string& template_dir, llvm::LLVMContext* context,
                                                          CompileTimes* times) {
  const double start = NowMs();
  QUERN_ASSIGN_OR_RETURN(std::unique_ptr<llvm::Module> module, LoadTemplate(plan.spec, machine, template_dir, context));
  const std::vector<const char*> block_names = BlockModules(kernel);
  std::array<std::unique_ptr<llvm::Module>, 2> blocks;
  const LeftOnException left_module(&module), left_first(&blocks[0]), left_second(&blocks[1]);
  for (size_t i = 0; i < block_names.size(); ++i) {
    QUERN_ASSIGN_OR_RETURN(blocks[i], Parse(block_names[i], machine, template_dir, /*lazily=*/true, context));
  }
  const double loaded = NowMs();
  module->setModuleIdentifier(PrintSpec(plan.spec));
  module->setSourceFileName("ir-templates/" + std::string(TemplateName(plan.spec)) + ".cc");
  module->setDataLayout(target->createDataLayout());
  module->setTargetTriple(target->getTargetTriple());
  std::vector<const llvm::Module*> block_modules;
  for (const std::unique_ptr<llvm::Module>& of : blocks) {
    if (of == nullptr) continue;
    of->setDataLayout(module->getDataLayout());
    of->setTargetTriple(module->getTargetTriple());
    block_modules.push_back(of.get());
  }
  RemoveUnneeded(EntryPointSymbols(kernel), module.get());
  ForgetLinesOfHoles(module.get());
  Emitter emitter(module.get(), std::move(block_modules));
  std::visit([&](const auto& of) { EmitHoles(plan, *of.descriptor->get(), &emitter); }, kernel);
  if (!emitter.errors().empty()) return Internal("template and emitters disagree: " + emitter.errors());
  const double emitted = NowMs();
  for (std::unique_ptr<llvm::Module>& of : blocks)
    if (of != nullptr) QUERN_RETURN_IF_ERROR(LinkBlocks(module.get(), std::move(of)));
  FinaliseModule(module.get(), *target);
  NameFramesAfter(PrintSpec(plan.spec), module.get());
  QUERN_RETURN_IF_ERROR(CheckInstantiated(*module, *target));
  times->load_ms = loaded - start;
  times->emit_ms = emitted - loaded;
  times->link_ms = NowMs() - emitted;
  return module;
}

void FinaliseModule(llvm::Module* module, const llvm::TargetMachine& target) {
  for (llvm::GlobalVariable& constant : module->globals()) {
    if (constant.isDeclaration()) continue;
    constant.setLinkage(llvm::GlobalValue::PrivateLinkage);
    constant.setComdat(nullptr);
  }
  for (llvm::Function& function : *module) {
    AimAtMachine(&function, target);
    if (function.isDeclaration()) continue;
    if (IsEntryPoint(function)) continue;
    function.setLinkage(llvm::GlobalValue::InternalLinkage);
    function.setComdat(nullptr);
    if (IsOutlined(function)) continue;
    function.removeFnAttr(llvm::Attribute::NoInline);
    function.addFnAttr(llvm::Attribute::AlwaysInline);
  }
}

absl::Status CheckInstantiated(const llvm::Module& module, const llvm::TargetMachine& target) {
  for (const llvm::Function& function : module) {
    const std::string name = function.getName().str();
    if (function.isIntrinsic()) continue;
    if (function.isDeclaration()) {
      const bool allowed = IsIn(AllRuntimeCalls(), name);
      if (name.rfind("quern_hole_", 0) == 0) return Internal("unfilled hole: " + name + "; accepted: none");
      if (!allowed) return Internal("undefined symbol: " + name + "; accepted: the calls of runtime_calls.h");
      continue;
    }
    if (!IsEntryPoint(function) && function.use_empty()) return Internal("unused body: " + name + "; accepted: none");
    const std::string cpu = function.getFnAttribute("target-cpu").getValueAsString().str();
    if (cpu != target.getTargetCPU())
      return Internal("function for another CPU: " + name + " for " + cpu +
                      "; accepted: " + target.getTargetCPU().str());
    const std::string features = function.getFnAttribute("target-features").getValueAsString().str();
    if (features != target.getTargetFeatureString())
      return Internal("function with other CPU features: " + name + "; accepted: the machine's");
  }
  for (const llvm::GlobalVariable& variable : module.globals()) {
    if (variable.isDeclaration() && !IsIn(AllRuntimeConstants(), variable.getName()))
      return Internal("undefined symbol: " + variable.getName().str() + "; accepted: the calls of runtime_calls.h");
  }
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (llvm::verifyModule(module, &stream))
    return Internal("module does not verify: " + problem + "; accepted: valid IR");
  return absl::OkStatus();
}

}  // namespace quern
