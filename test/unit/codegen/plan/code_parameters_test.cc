// SPDX-License-Identifier: Apache-2.0
// The parameters of a plan that the machine code depends on. CodeParameters lists them; kernels that differ only in
// other parameters share their code. A missing one would run wrong code, a superfluous one would compile existing code
// again.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/plan/plan.h"
#include "test/unit/codegen/llvm/kernel_object.h"

namespace quern {
namespace {

// Numbers: both ends, and one between them; for test.toggled_pass a pass that can be left out.
struct ParameterRow {
  const char* name;
  std::vector<std::string> values;
};

template <class Choice>
std::vector<std::string> Words() {
  std::vector<std::string> words;
  for (const Choice choice : ChoicesOf<Choice>::kAll) words.emplace_back(WordOf(choice));
  return words;
}

std::vector<ParameterRow> Parameters() {
  return {
#define QUERN_PLAN_NUMBER(scope, name, default_value, min, max, unit, meaning) \
  {#name, {std::to_string(min), "4", std::to_string(max)}},
#define QUERN_PLAN_CHOICE(scope, name, Type, default_value, meaning) {#name, Words<Type>()},
#define QUERN_PLAN_SCHEDULE(scope, Loop, name, meaning) {#name, {"0", "3@1M,all/group=5/batch=7/stages=1/hint=nta"}},
#define QUERN_TEST_NUMBER(scope, name, default_value, min, max, unit, meaning) \
  {"test." #name, {"0", "4", std::to_string(max)}},
#define QUERN_TEST_CHOICE(scope, name, Type, default_value, meaning) {"test." #name, Words<Type>()},
#include "codegen/plan/plan_parameters.def"
  };
}

constexpr const char* kSpecs[] = {
    "join.inner keys=i64 build=f64",         "join.left keys=utf8:nullable,i32 build=utf8",
    "aggregate keys=utf8,i64 aggs=sum(i64)", "aggregate keys=i64 aggs=count_star,sum(i64),max(f64)",
    "sort keys=utf8,i64 payload=utf8",       "filter i64 >= 5",
};

KernelPlan PlanOf(const char* text, const PlanOverrides& overrides = {}) {
  const auto plan = MakePlan(*ParseSpec(text), *HostMachine(), overrides);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *plan;
}

// The values of a parameter, among those that plans of a spec may have, that CodeParameters includes, or does not.
std::vector<std::string> Values(const char* text, const ParameterRow& row, bool is_of_code) {
  std::vector<std::string> values;
  for (const std::string& value : row.values) {
    const auto plan = MakePlan(*ParseSpec(text), *HostMachine(), {{row.name, value}});
    if (plan.ok() && (CodeParameters(*plan) != CodeParameters(PlanOf(text))) == is_of_code) values.push_back(value);
  }
  return values;
}

TEST(CodeParameters, OthersDoNotChangeTheObject) {
  for (const char* text : kSpecs) {
    PlanOverrides first, last;
    for (const ParameterRow& row : Parameters()) {
      const std::vector<std::string> values = Values(text, row, false);
      if (values.empty() || !Values(text, row, true).empty()) continue;
      first.emplace_back(row.name, values.front());
      last.emplace_back(row.name, values.back());
    }
    EXPECT_GE(first.size(), std::string_view(text).substr(0, 6) == "filter" ? 1u : 5u) << text;
    const std::string by_default = test::MakeKernelObject(PlanOf(text)).bytes;
    EXPECT_FALSE(by_default.empty());
    for (const PlanOverrides& overrides : {first, last})
      EXPECT_EQ(test::MakeKernelObject(PlanOf(text, overrides)).bytes == by_default, true) << text;
  }
}

// Whether a value of the parameter changes the object of any spec.
bool ChangesAnObject(const ParameterRow& row) {
  for (const char* text : kSpecs)
    for (const std::string& value : Values(text, row, true))
      if (test::MakeKernelObject(PlanOf(text, {{row.name, value}})).bytes != test::MakeKernelObject(PlanOf(text)).bytes)
        return true;
  return false;
}

TEST(CodeParameters, EachOfThemChangesAnObject) {
  uint32_t num_said = 0;
  for (const ParameterRow& row : Parameters()) {
    const bool is_said = std::any_of(std::begin(kSpecs), std::end(kSpecs),
                                     [&](const char* text) { return !Values(text, row, true).empty(); });
    if (!is_said) continue;
    ++num_said;
    EXPECT_TRUE(ChangesAnObject(row)) << row.name;
  }
  EXPECT_EQ(num_said, 11u);
}

TEST(CodeParameters, AProfileChangesNoneOfThem) {
  const auto spec = ParseSpec(kSpecs[0]);
  Machine small, large;
  small.l2_bytes = 1 << 18;
  large.l3_bytes = uint64_t{1} << 30;
  const auto first = MakePlan(*spec, small, {}), second = MakePlan(*spec, large, {});
  EXPECT_FALSE(*first == *second);
  EXPECT_EQ(CodeParameters(*first), CodeParameters(*second));
}

}  // namespace
}  // namespace quern
