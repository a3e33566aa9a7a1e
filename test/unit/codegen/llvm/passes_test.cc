// SPDX-License-Identifier: Apache-2.0
// The lists of passes: every row can be inverted, LLVM's own lists can be selected, and compiled code grows linearly
// with the keys, measured in instructions, which do not depend on other load on the machine.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "codegen/compiler.h"
#include "codegen/llvm/diagnostics.h"
#include "codegen/llvm/module.h"
#include "codegen/llvm/passes.h"

namespace quern {
namespace {

constexpr const char* kSpec = "join.inner keys=i64,utf8(utf8mb4_bin) build=f64 probe=i64";

CompileOptions With(const PlanOverrides& overrides) {
  CompileOptions options;
  options.engine = Engine::kJit;
  options.use_cache = false;
  options.overrides = overrides;
  return options;
}

// Instructions and functions of an optimised module.
struct Counted {
  unsigned instructions = 0, outlined = 0;
};

Counted CountOptimised(const std::string& text, const PlanOverrides& overrides = {}) {
  const auto spec = ParseSpec(text);
  const auto machine = MachineByName("x86-64-v4");
  const auto plan = MakePlan(*spec, *machine, overrides);
  EXPECT_TRUE(plan.ok()) << plan.status();
  const auto kernel = DescribeKernel(*plan);
  const auto target = MakeTargetMachine(*machine);
  llvm::LLVMContext context;
  context.setDiagnosticHandler(std::make_unique<Diagnostics>());
  CompileTimes times;
  const auto module = Instantiate(*plan, *kernel, *machine, target->get(), "", &context, &times);
  EXPECT_TRUE(module.ok()) << module.status();
  if (!module.ok()) return {};
  EXPECT_TRUE(Optimise(module->get(), target->get(), PassesOf(*plan)).ok());
  Counted counted;
  for (const llvm::Function& function : **module) {
    counted.instructions += function.getInstructionCount();
    counted.outlined += !function.isDeclaration() && function.getName().starts_with("quern_outlined_");
  }
  return counted;
}

std::string Keys(int num_keys, const std::string& flag = "") {
  std::string keys;
  for (int k = 0; k < num_keys; ++k) {
    constexpr const char* kTypes[] = {"i64", "utf8", "i32", "f64"};
    keys += (k == 0 ? "" : ",") + std::string(kTypes[k % 4]) + flag;
  }
  return keys;
}

TEST(Passes, InstructionsGrowLinearlyWithTheKeys) {
  const std::vector<std::pair<std::string, std::string>> kSpecs = {{"join.inner keys=", " build=i64 probe=i64"},
                                                                   {"aggregate keys=", " aggs=count_star,sum(i64)"},
                                                                   {"sort keys=", " payload=i64"}};
  for (const auto& [begin, end] : kSpecs) {
    const std::string flag = begin == "sort keys=" ? ":out" : "";
    const unsigned four = CountOptimised(begin + Keys(4, flag) + end).instructions;
    const unsigned eight = CountOptimised(begin + Keys(8, flag) + end).instructions;
    const unsigned sixteen = CountOptimised(begin + Keys(16, flag) + end).instructions;
    EXPECT_LE(eight, four * 2) << begin;
    EXPECT_LE(sixteen, eight * 2) << begin;
    EXPECT_NEAR(sixteen - eight, 2 * (eight - four), 0.1 * sixteen) << begin;
  }
}

TEST(Passes, PathsThatFewStringsTakeAreThereOnce) {
  EXPECT_EQ(CountOptimised("join.inner keys=i64,i64").outlined, 0u);
  EXPECT_EQ(CountOptimised("join.inner keys=utf8").outlined, 1u);
  EXPECT_EQ(CountOptimised("join.inner keys=utf8,utf8_view,large_utf8,binary").outlined, 1u);
  // A further key takes less than a hundred instructions in all its stages.
  const unsigned two = CountOptimised("join.inner keys=utf8,utf8").instructions,
                 three = CountOptimised("join.inner keys=utf8,utf8,utf8").instructions;
  EXPECT_LT(three - two, 100u);
}

TEST(Passes, EachRowCanBeTurnedRound) {
  ASSERT_LE(PassRows().size(), 99u);  // the range of `test.toggled_pass`
  for (uint32_t row = 1; row <= PassRows().size(); ++row) {
    const auto compiled = CompileText(kSpec, With({{"test.toggled_pass", std::to_string(row)}}));
    if (row == 1) {
      EXPECT_EQ(compiled.status().message().substr(0, 13), "not inlined: ");  // always-inline
    } else {
      EXPECT_TRUE(compiled.ok()) << PassRows()[row - 1].passes << ": " << compiled.status();
    }
  }
}

TEST(Passes, LlvmsOwnListsCanBeAskedFor) {
  for (const char* passes : {"own", "o3"}) {
    for (const char* level : {"0", "1", "2", "3"}) {
      const auto compiled = CompileText(kSpec, With({{"passes", passes}, {"codegen_level", level}}));
      ASSERT_TRUE(compiled.ok()) << passes << " " << level << ": " << compiled.status();
      EXPECT_GT((*compiled).kernel->code_bytes, 0u);
    }
  }
  EXPECT_NE(CountOptimised(kSpec, {{"passes", "o3"}}).instructions, CountOptimised(kSpec).instructions);
}

}  // namespace
}  // namespace quern
