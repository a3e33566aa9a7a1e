// SPDX-License-Identifier: Apache-2.0
// The plan of a pipeline: which steps share a loop, how many rows pass together, and the parameters of each step's
// kernel. Each step that is left is a kernel of its own, with a plan of its own (plan.h).
#ifndef QUERN_CODEGEN_PLAN_PIPELINE_PLAN_H_
#define QUERN_CODEGEN_PLAN_PIPELINE_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/machine/piece_choice.h"
#include "codegen/plan/plan.h"
#include "codegen/plan/plan_choices.h"
#include "runtime/base/thresholds.h"
#include "runtime/pipeline/pipeline_spec.h"

namespace quern {

struct PipelinePlan {
  PipelineSpec asked;  // what the host wrote
  PipelineSpec spec;   // what runs: the same columns reach the same end
#define QUERN_PIPELINE_NUMBER(name, default_value, min, max, unit, meaning) uint32_t name = default_value;
#define QUERN_PIPELINE_CHOICE(name, Type, default_value, meaning) Type name = Type::default_value;
#include "codegen/plan/pipeline_parameters.def"
  std::string piece_rows_origin;         // for people: "given", "profile", "default"
  PlanOverrides given;                   // all that the host gave
  std::vector<PlanOverrides> overrides;  // of the steps of `spec`, then of its end
};

// The rows of a piece where no one has given a number: those of the profile, which may be null, or the default.
uint32_t ChoosePieceRows(const Profile* profile);

// overrides: the pipeline's own; NAME=VALUE of kernels, for each step and end that has the parameter; K.NAME=VALUE, for
// step number K of `spec` alone, where the end comes last. profile: of the machine, or null. *Errors*: InvalidArgument
// for a parameter or a step that is not there.
absl::StatusOr<PipelinePlan> MakePipelinePlan(const PipelineSpec& spec, const PlanOverrides& overrides,
                                              const Profile* profile = nullptr);

// The lines of the pipeline's own: "pipeline ..", and "name = value  # meaning".
std::string PrintPipelinePlan(const PipelinePlan& plan);

// How many kernels see all rows of the source: those of the steps up to the first one that takes rows away or adds
// some, or all, and the end's.
size_t StepsOfAllRows(const PipelineSpec& spec);

// The spec of a step's kernel; the end's is spec.steps.size(). Null for rows that are emitted.
const KernelSpec* SpecOfStep(const PipelineSpec& spec, size_t step);

}  // namespace quern

#endif  // QUERN_CODEGEN_PLAN_PIPELINE_PLAN_H_
