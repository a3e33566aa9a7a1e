// SPDX-License-Identifier: Apache-2.0
#include "tools/query/query_parameters.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/plan/pipeline_plan.h"
#include "codegen/plan/plan_values.h"
#include "runtime/base/status.h"

namespace quern::query {
namespace {

constexpr std::string_view kPieceRows = "piece_rows", kFuse = "fuse";

// A kernel of the plan, and what it is given.
struct KernelOverrides {
  const KernelSpec* spec;
  PlanOverrides* overrides;
};

// Where a name begins with numbers, as "2.1.": the pipeline, and the step.
struct Place {
  std::optional<size_t> pipeline, step;
  std::string name;
};

Place PlaceOf(std::string_view name) {
  Place place;
  place.pipeline = TakeNumber(&name);
  if (place.pipeline.has_value()) place.step = TakeNumber(&name);
  place.name = name;
  return place;
}

// nullopt: a step that probes, or rows that are the result.
std::optional<KernelOverrides> KernelAt(PlannedPipeline* pipeline, size_t step) {
  if (step == pipeline->steps.size()) {
    if (!pipeline->spec.has_value()) return std::nullopt;
    return KernelOverrides{&*pipeline->spec, &pipeline->overrides};
  }
  PlannedStep& planned = pipeline->steps[step];
  if (std::holds_alternative<JoinSpec>(planned.spec)) return std::nullopt;
  return KernelOverrides{&planned.spec, &planned.overrides};
}

absl::Status WrongPlace(const std::string& what, const std::string& name, const std::string& accepted) {
  return InvalidArgument(what + " of plan parameter " + Show(name) + "; accepted: " + accepted);
}

absl::Status SetOfKernels(const std::string& name, const std::string& value, QueryPlan* plan) {
  const Place place = PlaceOf(name);
  if (place.pipeline.has_value() && *place.pipeline >= plan->pipelines.size()) {
    return WrongPlace("pipeline", name,
                      "0 to " + std::to_string(plan->pipelines.size() - 1) + ", as --explain numbers them");
  }
  if (place.step.has_value()) {
    PlannedPipeline& pipeline = plan->pipelines[*place.pipeline];
    if (*place.step > pipeline.steps.size())
      return WrongPlace("step", name, "0 to " + std::to_string(pipeline.steps.size()) + ", the end");
    const std::optional<KernelOverrides> kernel = KernelAt(&pipeline, *place.step);
    if (!kernel.has_value() && *place.step < pipeline.steps.size()) {
      return WrongPlace("probing step", name,
                        "pipeline " + std::to_string(pipeline.steps[*place.step].table) + ", which builds its table");
    }
    if (!kernel.has_value()) return WrongPlace("step without a kernel", name, "steps, and ends that collect rows");
    if (!HasParameter(*kernel->spec, place.name))
      return WrongPlace("unknown name", name, "those that `quern dump plan` prints for the step's spec");
    kernel->overrides->emplace_back(place.name, value);
    return absl::OkStatus();
  }
  bool found = false;
  for (size_t p = 0; p < plan->pipelines.size(); ++p) {
    if (place.pipeline.has_value() && p != *place.pipeline) continue;
    for (size_t s = 0; s <= plan->pipelines[p].steps.size(); ++s) {
      const std::optional<KernelOverrides> kernel = KernelAt(&plan->pipelines[p], s);
      if (!kernel.has_value() || !HasParameter(*kernel->spec, place.name)) continue;
      kernel->overrides->emplace_back(place.name, value);
      found = true;
    }
  }
  if (found) return absl::OkStatus();
  return InvalidArgument("unknown plan parameter of a query: " + Show(name) +
                         "; accepted: piece_rows, fuse, parameters of its kernels, and P.NAME or P.S.NAME for those of "
                         "pipeline P and its step S");
}

}  // namespace

absl::StatusOr<Fusion> FusionOf(const PlanOverrides& given) {
  Fusion fusion = Fusion::kAuto;
  for (const auto& [name, value] : given)
    if (name == kFuse) QUERN_RETURN_IF_ERROR(SetPlanChoice(name, value, &fusion));
  return fusion;
}

absl::Status SetParameters(const PlanOverrides& given, const Profile* profile, QueryPlan* plan) {
  plan->piece_rows = ChoosePieceRows(profile);
  plan->piece_rows_origin = profile != nullptr && profile->pieces.has_value() ? "profile" : "default";
  for (const auto& [name, value] : given) {
    if (name == kFuse) continue;
    if (name == kPieceRows) {
      QUERN_RETURN_IF_ERROR(SetPlanNumber(name, value, 1, kMostPieceRows, "rows", &plan->piece_rows));
      plan->piece_rows_origin = "given";
    } else {
      QUERN_RETURN_IF_ERROR(SetOfKernels(name, value, plan));
    }
  }
  return absl::OkStatus();
}

}  // namespace quern::query
