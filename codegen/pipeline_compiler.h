// SPDX-License-Identifier: Apache-2.0
// Turns the spec of a pipeline into the kernels of its steps and its end.
#ifndef QUERN_CODEGEN_PIPELINE_COMPILER_H_
#define QUERN_CODEGEN_PIPELINE_COMPILER_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/kernel/kernel.h"
#include "codegen/plan/pipeline_plan.h"
#include "runtime/pipeline/pipeline_spec.h"

namespace quern {

struct CompiledPipeline {
  std::shared_ptr<const PipelinePlan> plan;
  // Of the steps of plan->spec, then of its end. A step that probes has none, since a table is probed by the kernel
  // that has built it, nor has an end that emits rows. Where none would have one, the last step has its join's.
  std::vector<CompiledKernel> kernels;
};

// Requests each kernel as Compile does; those of equal steps are the same, whichever pipeline they are in.
// `expected_rows` is expected of the steps up to the first one that takes rows away. *Cost*: parsing, some microseconds
// a step, and that of Compile for each kernel. *Threads*: any. *Errors*: those of ParsePipeline, MakePipelinePlan and
// Compile.
absl::StatusOr<CompiledPipeline> CompilePipeline(std::string_view text, const CompileOptions& options = {});

// The stage of every kernel in turn, each behind a line with its number and its step; of `spec` the pipeline's text,
// and in front of `plan` the pipeline's own. profile: that of the pipeline's own plan, or null. dump: of one kernel, as
// Dump (codegen/inspect/dump.h). *Errors*: those of MakePipelinePlan and `dump`.
using DumpKernel = std::function<absl::StatusOr<std::string>(const KernelSpec& spec, const PlanOverrides& overrides)>;
absl::StatusOr<std::string> DumpPipeline(std::string_view stage, const PipelineSpec& spec,
                                         const PlanOverrides& overrides, const Profile* profile,
                                         const DumpKernel& dump);

}  // namespace quern

#endif  // QUERN_CODEGEN_PIPELINE_COMPILER_H_
