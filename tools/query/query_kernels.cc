// SPDX-License-Identifier: Apache-2.0
// Each kernel is told about how many rows will come, so that one that few rows reach is not compiled. Of a table the
// rows are known, of groups and sorted rows they are not. A join's kernel has the rows of both sides. With the two
// tables of query_text.h, a million orders and six million items, and two threads:
//
//     join         500,000 + 3,000,000
//     aggregate              3,000,000
//     sort         unknown
//
// A join's kernel also knows how many tables take turns with its own, if the profile has settings for that: tables that
// one pipeline probes push each other's lines out of the cache. The settings change no row.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "codegen/machine/profile.h"
#include "codegen/plan/pipeline_plan.h"
#include "codegen/tier/tier.h"
#include "runtime/base/shared_work.h"
#include "runtime/base/status.h"
#include "runtime/spec/spec.h"
#include "tools/query/query_run.h"
#include "tools/query/row_sources.h"

namespace quern::query {

std::vector<uint32_t> TablesInTurn(const QueryPlan& plan, const Profile* profile) {
  std::vector<uint32_t> in_turn(plan.pipelines.size(), 1);
  const auto is_of_turns = [](const ProfileEntry& entry) { return entry.cell.pipeline > 1; };
  if (profile == nullptr || std::none_of(profile->entries.begin(), profile->entries.end(), is_of_turns)) return in_turn;
  for (const PlannedPipeline& planned : plan.pipelines) {
    const auto is_probe = [](const PlannedStep& step) { return std::holds_alternative<JoinSpec>(step.spec); };
    const auto num_probes = std::count_if(planned.steps.begin(), planned.steps.end(), is_probe);
    for (const PlannedStep& step : planned.steps)
      if (is_probe(step)) in_turn[step.table] = std::min(static_cast<uint32_t>(num_probes), kMostTablesInTurn);
  }
  return in_turn;
}

std::vector<std::vector<uint64_t>> ExpectedRows(const QueryPlan& plan, const std::vector<TableRows>& tables,
                                                uint32_t threads) {
  std::vector<std::vector<uint64_t>> expected(plan.pipelines.size());
  for (size_t p = 0; p < plan.pipelines.size(); ++p) {
    const PlannedPipeline& planned = plan.pipelines[p];
    uint64_t num_rows = planned.reads_table ? tables[planned.source].num_rows : 0;
    num_rows /= Readers(num_rows, std::max(threads, 1u));
    expected[p].assign(planned.steps.size() + 1, num_rows);
    for (const PlannedStep& step : planned.steps)
      if (std::holds_alternative<JoinSpec>(step.spec)) expected[step.table].back() += num_rows;
  }
  return expected;
}

absl::StatusOr<PreparedQuery> PreparedQuery::Make(QueryPlan plan, const std::vector<TableRows>& tables,
                                                  const CompileOptions& compile, uint32_t threads) {
  PreparedQuery query;
  query.plan_ = std::move(plan);
  const std::shared_ptr<const Profile> profile = ProfileOfProcess();
  if (query.plan_.piece_rows == 0) query.plan_.piece_rows = ChoosePieceRows(profile.get());
  const std::vector<uint32_t> in_turn = TablesInTurn(query.plan_, profile.get());
  const std::vector<std::vector<uint64_t>> expected = ExpectedRows(query.plan_, tables, threads);
  // A join's kernel is that of its build side, where it comes first.
  struct Request {
    const KernelSpec* spec;
    const PlanOverrides* overrides;
    uint64_t expected_rows;
    uint32_t in_turn;
    CompiledKernel* kernel;
  };
  std::vector<Request> requests;
  query.kernels_.resize(query.plan_.pipelines.size());
  for (size_t p = 0; p < query.plan_.pipelines.size(); ++p) {
    const PlannedPipeline& planned = query.plan_.pipelines[p];
    query.kernels_[p].resize(planned.steps.size() + 1);
    for (size_t s = 0; s < planned.steps.size(); ++s)
      if (!std::holds_alternative<JoinSpec>(planned.steps[s].spec))
        requests.push_back(
            {&planned.steps[s].spec, &planned.steps[s].overrides, expected[p][s], 1, &query.kernels_[p][s]});
    if (planned.spec.has_value())
      requests.push_back(
          {&*planned.spec, &planned.overrides, expected[p].back(), in_turn[p], &query.kernels_[p].back()});
  }
  QUERN_RETURN_IF_ERROR(RunMorsels(threads, requests.size(), [&](uint32_t, uint64_t i) -> absl::Status {
    CompileOptions options = compile;
    options.overrides = {};
    if (requests[i].in_turn > 1) options.overrides = {{"pipeline", std::to_string(requests[i].in_turn)}};
    options.overrides.insert(options.overrides.end(), requests[i].overrides->begin(), requests[i].overrides->end());
    options.expected_rows = requests[i].expected_rows;
    QUERN_ASSIGN_OR_RETURN(*requests[i].kernel, Compile(*requests[i].spec, options));
    return absl::OkStatus();
  }));
  for (size_t p = 0; p < query.plan_.pipelines.size(); ++p) {
    const PlannedPipeline& planned = query.plan_.pipelines[p];
    for (size_t s = 0; s < planned.steps.size(); ++s)
      if (std::holds_alternative<JoinSpec>(planned.steps[s].spec))
        query.kernels_[p][s] = query.kernels_[planned.steps[s].table].back();
  }
  return query;
}

std::vector<StepCounters> PreparedQuery::counters() const {
  std::vector<StepCounters> counted;
  for (size_t p = 0; p < plan_.pipelines.size(); ++p) {
    const PlannedPipeline& planned = plan_.pipelines[p];
    for (size_t s = 0; s <= planned.steps.size(); ++s) {
      const bool is_end = s == planned.steps.size();
      if (is_end ? !planned.spec.has_value() : std::holds_alternative<JoinSpec>(planned.steps[s].spec)) continue;
      const KernelSpec& spec = is_end ? *planned.spec : planned.steps[s].spec;
      counted.push_back({p, s, PrintSpec(spec), kernels_[p][s].kernel->counters->Sum()});
    }
  }
  return counted;
}

Engine PreparedQuery::engine() const {
  for (const std::vector<CompiledKernel>& of_pipeline : kernels_) {
    for (const CompiledKernel& compiled : of_pipeline) {
      const Kernel* const kernel = compiled.kernel.get();
      if (kernel == nullptr) continue;
      if (kernel->engine != Engine::kGeneric) return kernel->engine;
      if (kernel->tier != nullptr && kernel->tier->Compiled() != nullptr) return Engine::kJit;
    }
  }
  return Engine::kGeneric;
}

}  // namespace quern::query
