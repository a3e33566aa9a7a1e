// SPDX-License-Identifier: Apache-2.0
// The parameters that a query is given: its own, and those of the plans of its kernels.
//
//     piece_rows=1024       the query's own: the rows that pass all steps of a pipeline before the next ones do
//     fuse=off              likewise: no expression moves into the loop of an aggregation
//     batch_size=512        of each kernel that has the parameter
//     2.batch_size=512      of each kernel of pipeline 2 that has it
//     2.1.batch_size=512    of the kernel of its step 1: steps are counted from 0 behind the scan, and the end comes
//     last
//
// A step that probes has the kernel of the pipeline that builds its table.
#ifndef QUERN_TOOLS_QUERY_QUERY_PARAMETERS_H_
#define QUERN_TOOLS_QUERY_QUERY_PARAMETERS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/machine/profile.h"
#include "codegen/plan/plan.h"
#include "codegen/plan/plan_choices.h"
#include "tools/query/query_plan.h"

namespace quern::query {

// For QueryPlan::Make. *Errors*: InvalidArgument for a word that is no choice.
absl::StatusOr<Fusion> FusionOf(const PlanOverrides& given);

// Sets the plan's `piece_rows`, given or of the profile, which may be null, and the `overrides` of its kernels.
// *Errors*: InvalidArgument for a parameter, a pipeline or a step that is not there; a kernel's values are checked when
// it is compiled.
absl::Status SetParameters(const PlanOverrides& given, const Profile* profile, QueryPlan* plan);

}  // namespace quern::query

#endif  // QUERN_TOOLS_QUERY_QUERY_PARAMETERS_H_
