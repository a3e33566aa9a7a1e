// SPDX-License-Identifier: Apache-2.0
// Fusing changes the numbers of steps, so those of overrides are the numbers that `quern dump plan` prints:
//
//     asked                                             runs
//     0  filter i32 >= 20 [$0]                          0  filter i32 >= 20 [$0]
//     1  map in=i64,i64 out=multiply($0,$1) [$2, $3]
//     2  aggregate keys=i64 aggs=sum(i64) [$1; $4]      1  aggregate keys=i64 in=i64,i64
//                                                            aggs=sum(multiply($0,$1)) [$1; $2, $3]
#include "codegen/plan/pipeline_plan.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "codegen/machine/profile.h"
#include "codegen/plan/plan_values.h"
#include "runtime/base/status.h"
#include "runtime/pipeline/fused_maps.h"

namespace quern {
namespace {

constexpr const char* kNames =
#define QUERN_PIPELINE_NUMBER(name, default_value, min, max, unit, meaning) #name ", "
#define QUERN_PIPELINE_CHOICE(name, Type, default_value, meaning) #name ", "
#include "codegen/plan/pipeline_parameters.def"
    "parameters of its steps, and K.NAME for those of step K";

// nullopt: the pipeline has no such parameter itself.
std::optional<absl::Status> SetOwn(std::string_view name, std::string_view value, PipelinePlan* plan) {
#define QUERN_PIPELINE_NUMBER(parameter, default_value, min, max, unit, meaning) \
  if (name == #parameter) return SetPlanNumber(name, value, min, max, unit, &plan->parameter);
#define QUERN_PIPELINE_CHOICE(parameter, Type, default_value, meaning) \
  if (name == #parameter) return SetPlanChoice(name, value, &plan->parameter);
#include "codegen/plan/pipeline_parameters.def"
  return std::nullopt;
}

// The kernel of a table probes it, too, and has parameters already.
bool IsProbe(const PipelineSpec& spec, size_t step) {
  return step < spec.steps.size() && Is<JoinSpec>(spec.steps[step].spec);
}

// An override of one step, or of all that have the parameter.
absl::Status SetOfSteps(const std::string& name, const std::string& value, PipelinePlan* plan) {
  std::string_view of_kernel = name;
  if (const std::optional<size_t> step = TakeNumber(&of_kernel); step.has_value()) {
    if (*step >= plan->overrides.size() || SpecOfStep(plan->spec, *step) == nullptr) {
      return InvalidArgument("step of plan parameter " + Show(name) + ": " + std::to_string(*step) +
                             "; accepted: the numbers that `quern dump plan` prints, below " +
                             std::to_string(plan->overrides.size() - (plan->spec.end.has_value() ? 0 : 1)));
    }
    if (IsProbe(plan->spec, *step)) {
      return InvalidArgument("plan parameter of a step that probes: " + Show(name) +
                             "; accepted: parameters of the kernel that builds its table");
    }
    plan->overrides[*step].emplace_back(of_kernel, value);
    return absl::OkStatus();
  }
  bool found = false;
  for (size_t i = 0; i < plan->overrides.size(); ++i) {
    const KernelSpec* const spec = SpecOfStep(plan->spec, i);
    if (spec == nullptr || IsProbe(plan->spec, i) || !HasParameter(*spec, name)) continue;
    plan->overrides[i].emplace_back(name, value);
    found = true;
  }
  if (found) return absl::OkStatus();
  return InvalidArgument("unknown plan parameter of a pipeline: " + Show(name) + "; accepted: " + kNames);
}

// Maps in front of an aggregation move into it.
void Fuse(PipelineSpec* spec, const std::vector<PipelineColumn>& last_columns) {
  auto* const aggregation = spec->end.has_value() ? std::get_if<AggregationSpec>(&*spec->end) : nullptr;
  if (aggregation == nullptr) return;
  std::vector<std::optional<ValueType>> types;
  for (const PipelineColumn& column : last_columns) types.push_back(ValueTypeOf(column));
  FuseLastMaps(types, &spec->steps, aggregation, &spec->end_columns);
}

}  // namespace

uint32_t ChoosePieceRows(const Profile* profile) {
  return profile != nullptr && profile->pieces.has_value() ? profile->pieces->rows
                                                           : static_cast<uint32_t>(thresholds::kPipelineRows);
}

absl::StatusOr<PipelinePlan> MakePipelinePlan(const PipelineSpec& spec, const PlanOverrides& overrides,
                                              const Profile* profile) {
  QUERN_ASSIGN_OR_RETURN(const std::vector<std::vector<PipelineColumn>> columns, ColumnsOfPipeline(spec));
  PipelinePlan plan{.asked = spec, .spec = spec, .piece_rows_origin = "default", .given = overrides, .overrides = {}};
  plan.piece_rows = ChoosePieceRows(profile);
  if (profile != nullptr && profile->pieces.has_value()) plan.piece_rows_origin = "profile";
  PlanOverrides of_steps;
  for (const auto& [name, value] : overrides) {
    if (name == "piece_rows") plan.piece_rows_origin = "given";
    const std::optional<absl::Status> own = SetOwn(name, value, &plan);
    if (own.has_value()) QUERN_RETURN_IF_ERROR(*own);
    else of_steps.emplace_back(name, value);
  }
  if (plan.fuse == Fusion::kAuto) Fuse(&plan.spec, columns.back());
  plan.overrides.resize(plan.spec.steps.size() + 1);
  for (const auto& [name, value] : of_steps) QUERN_RETURN_IF_ERROR(SetOfSteps(name, value, &plan));
  return plan;
}

std::string PrintPipelinePlan(const PipelinePlan& plan) {
  std::string text = "plan " + PrintPipeline(plan.spec) + "\n";
  if (plan.spec != plan.asked) text += "# fused from: " + PrintPipeline(plan.asked) + "\n";
#define QUERN_PIPELINE_NUMBER(name, default_value, min, max, unit, meaning) \
  text += PlanLine(#name, std::to_string(plan.name), meaning " (" unit "); " + plan.name##_origin);
#define QUERN_PIPELINE_CHOICE(name, Type, default_value, meaning) text += PlanChoiceLine(#name, plan.name, meaning);
#include "codegen/plan/pipeline_parameters.def"
  return text;
}

size_t StepsOfAllRows(const PipelineSpec& spec) {
  const auto takes_rows_away = [](const PipelineStepSpec& step) { return !Is<MapSpec>(step.spec); };
  const auto first = std::find_if(spec.steps.begin(), spec.steps.end(), takes_rows_away);
  return static_cast<size_t>(first - spec.steps.begin()) + 1;
}

const KernelSpec* SpecOfStep(const PipelineSpec& spec, size_t step) {
  if (step < spec.steps.size()) return &spec.steps[step].spec;
  return spec.end.has_value() ? &*spec.end : nullptr;
}

}  // namespace quern
