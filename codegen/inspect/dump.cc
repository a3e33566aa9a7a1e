// SPDX-License-Identifier: Apache-2.0
// Texts of every stage. Each depends only on spec, machine and parameters: it contains no address, time, path or random
// name. Dumps can therefore be compared byte by byte, across time and across machines.
#include "codegen/inspect/dump.h"

#include <algorithm>
#include <string>
#include <vector>

#include "codegen/llvm/diagnostics.h"
#include "codegen/llvm/module.h"
#include "codegen/plan/plan_thresholds.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/raw_ostream.h"
#include "runtime/base/status.h"

namespace quern {
namespace {

constexpr const char* kStages = "spec, plan, layout, template, ir, opt, asm, annotated_asm, obj, remarks";

// Collects optimisation remarks as "<function>: <pass>: <what>", in the order in which the passes emit them.
class Remarks : public Diagnostics {
 public:
  explicit Remarks(std::string* text) : text_(text) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    const auto* remark = llvm::dyn_cast<llvm::DiagnosticInfoOptimizationBase>(&info);
    // Counts of opcodes for every basic block, which say less than the assembly does.
    if (remark != nullptr && remark->getRemarkName() != "InstructionMix") {
      *text_ +=
          remark->getFunction().getName().str() + ": " + remark->getPassName().str() + ": " + remark->getMsg() + "\n";
    }
    return Diagnostics::handleDiagnostics(info);
  }
  bool isAnalysisRemarkEnabled(llvm::StringRef pass) const override {
    return pass == "prologepilog" || pass == "asm-printer";
  }
  bool isMissedOptRemarkEnabled(llvm::StringRef) const override { return true; }
  bool isPassedOptRemarkEnabled(llvm::StringRef pass) const override { return pass != "inline"; }
  bool isAnyRemarkEnabled() const override { return true; }

 private:
  std::string* text_;
};

// Sections with their sizes, then defined and undefined symbols, both by name.
absl::StatusOr<std::string> DescribeObject(const llvm::SmallVectorImpl<char>& bytes) {
  auto file = llvm::object::ObjectFile::createObjectFile(
      llvm::MemoryBufferRef(llvm::StringRef(bytes.data(), bytes.size()), "kernel"));
  if (!file) return Internal("bad object: " + llvm::toString(file.takeError()) + "; accepted: ELF");
  std::string text = "object " + std::to_string(bytes.size()) + " bytes\n";
  for (const auto& section : (*file)->sections()) {
    auto name = section.getName();
    if (!name || name->empty()) continue;
    text += "section " + name->str() + " " + std::to_string(section.getSize()) + " bytes\n";
  }
  std::vector<std::string> symbols;
  for (const auto& symbol : (*file)->symbols()) {
    auto name = symbol.getName();
    auto flags = symbol.getFlags();
    if (!name || !flags || name->empty() || !name->starts_with("quern_")) {
      if (name && flags && (*flags & llvm::object::SymbolRef::SF_Undefined) && !name->empty())
        symbols.push_back("undefined " + name->str());
      continue;
    }
    if (*flags & llvm::object::SymbolRef::SF_Undefined) symbols.push_back("undefined " + name->str());
    else
      symbols.push_back("defined " + name->str() + " " + std::to_string(llvm::object::ELFSymbolRef(symbol).getSize()) +
                        " bytes");
  }
  std::sort(symbols.begin(), symbols.end());
  for (const std::string& symbol : symbols) text += symbol + "\n";
  return text;
}

absl::StatusOr<std::string> DumpModule(std::string_view stage, const KernelPlan& plan, const Machine& machine,
                                       const CompileOptions& options) {
  llvm::LLVMContext context;
  std::string remarks;
  context.setDiagnosticHandler(std::make_unique<Diagnostics>());
  if (stage == "remarks") context.setDiagnosticHandler(std::make_unique<Remarks>(&remarks), /*RespectFilters=*/true);
  if (stage == "template") {
    QUERN_ASSIGN_OR_RETURN(auto module, LoadTemplate(plan.spec, machine, options.template_dir, &context));
    module->setModuleIdentifier(TemplateName(plan.spec));
    return PrintModule(*module);
  }
  CompileTimes times;
  QUERN_ASSIGN_OR_RETURN(const AnyOperatorKernel kernel, DescribeKernel(plan));
  QUERN_ASSIGN_OR_RETURN(auto target, MakeTargetMachine(machine));
  QUERN_ASSIGN_OR_RETURN(auto module,
                         Instantiate(plan, kernel, machine, target.get(), options.template_dir, &context, &times));
  if (stage == "ir") return PrintModule(*module);
  QUERN_RETURN_IF_ERROR(Optimise(module.get(), target.get(), PassesOf(plan)));
  if (stage == "opt") return PrintModule(*module);
  llvm::SmallVector<char, 0> code;
  target->Options.MCOptions.AsmVerbose = stage == "annotated_asm";
  const CodeFormat format = stage == "asm" || stage == "annotated_asm" ? CodeFormat::kAssembly : CodeFormat::kObject;
  QUERN_RETURN_IF_ERROR(GenerateCode(module.get(), target.get(), format, &code, PassesOf(plan)));
  if (format == CodeFormat::kAssembly) return std::string(code.data(), code.size());
  if (stage == "remarks") return remarks;
  return DescribeObject(code);
}

bool IsStage(std::string_view stage) {
  const bool is_one_word = !stage.empty() && stage.find_first_of(", ") == std::string_view::npos;
  return is_one_word && (", " + std::string(kStages) + ",").find(", " + std::string(stage) + ",") != std::string::npos;
}

}  // namespace

std::string PrintModule(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return text;
}

absl::StatusOr<std::string> Dump(std::string_view stage, const KernelSpec& spec, const Machine& machine,
                                 const CompileOptions& options, const Profile* profile) {
  if (!IsStage(stage)) return InvalidArgument("unknown stage: " + Show(stage) + "; accepted: " + kStages);
  const std::shared_ptr<const Profile> of_process =
      profile == nullptr && machine.is_host ? ProfileOfProcess() : nullptr;
  QUERN_ASSIGN_OR_RETURN(KernelPlan plan,
                         MakePlan(spec, machine, options.overrides, profile == nullptr ? of_process.get() : profile));
  if (stage == "spec") return PrintSpec(spec) + "\n";
  if (stage == "plan") return PrintPlan(plan) + PrintThresholds(plan.spec);
  if (stage == "layout") {
    QUERN_ASSIGN_OR_RETURN(const AnyOperatorKernel kernel, DescribeKernel(plan));
    return PrintLayout(kernel);
  }
  return DumpModule(stage, plan, machine, options);
}

}  // namespace quern
