// SPDX-License-Identifier: Apache-2.0
// Every prefetch distance is the plan's: what a plan says arrives, and prefetch=off leaves none.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "codegen/plan/plan.h"

namespace quern {
namespace {

constexpr const char* kSpecs[] = {"join.inner keys=i64 build=f64",
                                  "join.left keys=i64,utf8 build=f64",
                                  "aggregate keys=i64 aggs=count_star",
                                  "aggregate keys=utf8,i32 aggs=count_distinct(i64)",
                                  "sort keys=i64:desc,utf8 payload=rowid limit=10",
                                  "filter utf8 = 'a string longer than eight'"};

KernelPlan Plan(const std::string& spec, const PlanOverrides& overrides) {
  return *MakePlan(*ParseSpec(spec), Machine{}, overrides);
}

// Of all that a plan tells the runtime.
std::vector<uint32_t> DistancesOf(const KernelPlan& plan) {
  std::vector<uint32_t> all;
  const auto add_layout = [&](const QuernRowLayout& layout) {
    all.push_back(layout.prefetches ? 1 : 0);
    all.push_back(layout.prefetch_string_bytes);
  };
  const auto add = [&](const std::vector<uint32_t>& distances) {
    all.insert(all.end(), distances.begin(), distances.end());
  };
  std::visit(Overloaded{[&](const JoinSpec&) {
                          add_layout(*MakePlannedDescriptor(plan)->rows());
                          add(MakeJoinOptions(plan).EffectiveDistances());
                        },
                        [&](const AggregationSpec&) {
                          add_layout(*(*MakePlannedGroups(plan))->group());
                          add(MakeAggregateOptions(plan).EffectiveDistances());
                        },
                        [&](const SetSpec&) { add(MakeAggregateOptions(plan).EffectiveDistances()); },
                        [&](const SortSpec&) {
                          const auto descriptor = MakePlannedSort(plan);
                          add_layout(descriptor->get()->rows);
                          add(MakeSortOptions(plan).EffectiveDistances());
                          all.push_back(descriptor->get()->prefetch_merge_rows);
                          all.push_back(MakeSortOptions(plan).prefetches ? 1 : 0);
                        },
                        [&](const FilterSpec&) { all.push_back(MakePlannedFilter(plan)->get()->prefetches ? 1 : 0); },
                        [](const MapSpec&) {}},
             plan.spec);
  return all;
}

uint32_t Largest(const std::vector<uint32_t>& distances) {
  return *std::max_element(distances.begin(), distances.end());
}

TEST(PlanPrefetch, OffLeavesNoDistance) {
  for (const char* spec : kSpecs) {
    EXPECT_NE(Largest(DistancesOf(Plan(spec, {}))), 0u) << spec;
    EXPECT_EQ(Largest(DistancesOf(Plan(spec, {{"prefetch", "off"}}))), 0u) << spec;
  }
}

// Whatever was given beside it; and the plan shows it.
TEST(PlanPrefetch, OffIsStrongerThanDistances) {
  const KernelPlan join =
      Plan(kSpecs[0], {{"prefetch_probe_open", "64"}, {"prefetch", "off"}, {"prefetch_string_bytes", "8192"}});
  EXPECT_EQ(Largest(DistancesOf(join)), 0u);
  EXPECT_NE(PrintPlan(join).find("prefetch_probe_open = 0 "), std::string::npos) << PrintPlan(join);
  EXPECT_NE(PrintPlan(join).find("prefetch_string_bytes = 0 "), std::string::npos) << PrintPlan(join);
  const KernelPlan groups = Plan(kSpecs[2], {{"prefetch", "off"}, {"prefetch_input_rows", "100"}});
  EXPECT_EQ(groups.prefetch_input_rows, 0u);
}

TEST(PlanPrefetch, DefaultsAreTheRuntimes) {
  const KernelPlan sort = Plan(kSpecs[4], {}), groups = Plan(kSpecs[2], {});
  EXPECT_EQ(MakeSortOptions(sort).distances, PrefetchDistances());
  EXPECT_EQ(MakeAggregateOptions(groups).distances, PrefetchDistances());
  EXPECT_EQ(MakeJoinOptions(Plan(kSpecs[0], {})).distances, PrefetchDistances());
}

TEST(PlanPrefetch, TheRuntimeIsToldOfEachDistance) {
#define QUERN_PREFETCH_DISTANCE(name, scope, default_value, max, unit, meaning)                                   \
  for (const char* spec : kSpecs) {                                                                               \
    const auto plan = MakePlan(*ParseSpec(spec), Machine{}, {{"prefetch_" #name, "3"}});                          \
    if (!plan.ok()) continue;                                                                                     \
    const PrefetchDistances distances = Is<JoinSpec>(plan->spec)          ? MakeJoinOptions(*plan).distances      \
                                        : Is<AggregationSpec>(plan->spec) ? MakeAggregateOptions(*plan).distances \
                                                                          : MakeSortOptions(*plan).distances;     \
    EXPECT_EQ(distances.name, 3u) << spec;                                                                        \
  }
#include "runtime/rows/prefetch_distances.def"
}

// A distance is data of a job: code is compiled anew for the columns of an update alone.
TEST(PlanPrefetch, DistancesAreNoPartOfTheCode) {
  for (const char* name : {"prefetch_string_bytes", "prefetch_partition_bytes", "prefetch_scan_bytes",
                           "prefetch_rebuild_rows", "prefetch_state_rows"})
    EXPECT_EQ(CodeParameters(Plan(kSpecs[3], {{name, "1"}})), CodeParameters(Plan(kSpecs[3], {}))) << name;
  EXPECT_NE(CodeParameters(Plan(kSpecs[3], {{"prefetch_input_rows", "1"}})), CodeParameters(Plan(kSpecs[3], {})));
}

}  // namespace
}  // namespace quern
