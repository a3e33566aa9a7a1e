// SPDX-License-Identifier: Apache-2.0
#include "codegen/pipeline_compiler.h"

#include <algorithm>
#include <utility>

#include "codegen/compiler.h"
#include "codegen/machine/profile.h"
#include "runtime/base/status.h"

namespace quern {
namespace {

// What begins a comment in the text of a stage.
const char* CommentOf(std::string_view stage) {
  return stage == "ir" || stage == "opt" || stage == "template" ? "; " : "# ";
}

bool HasKernel(const CompiledPipeline& compiled) {
  return std::any_of(compiled.kernels.begin(), compiled.kernels.end(),
                     [](const CompiledKernel& kernel) { return kernel.kernel != nullptr; });
}

}  // namespace

absl::StatusOr<CompiledPipeline> CompilePipeline(std::string_view text, const CompileOptions& options) {
  QUERN_ASSIGN_OR_RETURN(const PipelineSpec spec, ParsePipeline(text));
  QUERN_ASSIGN_OR_RETURN(PipelinePlan plan, MakePipelinePlan(spec, options.overrides, ProfileOfProcess().get()));
  CompiledPipeline compiled;
  CompileOptions of_step = options;
  const size_t num_steps = plan.spec.steps.size();
  for (size_t i = 0; i <= num_steps; ++i) {
    const KernelSpec* const kernel_spec = SpecOfStep(plan.spec, i);
    const bool probes = i < num_steps && Is<JoinSpec>(*kernel_spec);
    compiled.kernels.emplace_back();
    if (kernel_spec != nullptr && !probes) {
      of_step.overrides = plan.overrides[i];
      of_step.expected_rows = i < StepsOfAllRows(plan.spec) ? options.expected_rows : 0;
      QUERN_ASSIGN_OR_RETURN(compiled.kernels.back(), Compile(*kernel_spec, of_step));
    }
  }
  if (!plan.spec.end.has_value() && Is<JoinSpec>(plan.spec.steps.back().spec) && !HasKernel(compiled)) {
    of_step.overrides = {};
    QUERN_ASSIGN_OR_RETURN(compiled.kernels[num_steps - 1], Compile(plan.spec.steps.back().spec, of_step));
  }
  compiled.plan = std::make_shared<const PipelinePlan>(std::move(plan));
  return compiled;
}

absl::StatusOr<std::string> DumpPipeline(std::string_view stage, const PipelineSpec& spec,
                                         const PlanOverrides& overrides, const Profile* profile,
                                         const DumpKernel& dump) {
  QUERN_ASSIGN_OR_RETURN(const PipelinePlan plan, MakePipelinePlan(spec, overrides, profile));
  if (stage == "spec") return PrintPipeline(spec) + "\n";
  std::string text;
  if (stage == "plan") text += PrintPipelinePlan(plan);
  for (size_t i = 0; i <= plan.spec.steps.size(); ++i) {
    text += (text.empty() ? "" : "\n") + std::string(CommentOf(stage)) + std::to_string(i) + ": " +
            PrintPipelineStep(plan.spec, i) + "\n";
    const KernelSpec* const kernel_spec = SpecOfStep(plan.spec, i);
    if (kernel_spec == nullptr) continue;
    QUERN_ASSIGN_OR_RETURN(const std::string of_kernel, dump(*kernel_spec, plan.overrides[i]));
    text += of_kernel;
  }
  return text;
}

}  // namespace quern
