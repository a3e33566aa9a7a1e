// SPDX-License-Identifier: Apache-2.0
// The line of a profile about input columns: it reads back as it was written, wrong ones are named, profiles keep it,
// and plans go by it.
#include "codegen/machine/input_choice.h"

#include <gtest/gtest.h>

#include <string>

#include "codegen/machine/machine.h"
#include "codegen/machine/profile.h"
#include "codegen/plan/plan.h"

namespace quern {
namespace {

constexpr const char* kLine = "input rows=1024 keyless_rows=0 ns=1.1 default_ns=1.3 noise=0.012";

std::string Error(const std::string& rest) { return std::string(ParseInputLine(rest).status().message()); }

TEST(InputChoice, ALineReadsBackAsItWasWritten) {
  EXPECT_EQ(PrintInputLine({{1024, 0}, 1.1, 1.3, 0.012}), kLine);
  const absl::StatusOr<ProfileInput> parsed = ParseInputLine(std::string(kLine).substr(6));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->rows, (InputRows{1024, 0}));
  EXPECT_EQ(PrintInputLine(*parsed), kLine);
}

TEST(InputChoice, WrongFieldsAreNamed) {
  const std::string form = "; accepted: input rows=N keyless_rows=N ns=N default_ns=N noise=N";
  EXPECT_EQ(Error(""), "bad field of an input line: \"\"" + form);
  EXPECT_EQ(Error("keyless_rows=1"), "bad field of an input line: keyless_rows=1" + form);
  for (const char* rows : {"65537", "x", "-1", ""}) {
    const std::string wrong = std::string(rows) + "; accepted: 0 to 65536";
    EXPECT_EQ(Error("rows=" + std::string(rows)), "bad field of an input line: rows=" + wrong);
    EXPECT_EQ(Error("rows=1 keyless_rows=" + std::string(rows)), "bad field of an input line: keyless_rows=" + wrong);
  }
  EXPECT_EQ(Error("rows=1 keyless_rows=1 ns=-1"), "bad field of an input line: ns=-1; accepted: a number of 0 or more");
  EXPECT_EQ(Error("rows=1 keyless_rows=1 ns=1 noise=1"), "bad field of an input line: noise=1" + form);
  EXPECT_EQ(Error(std::string(kLine).substr(6) + " more=1"), "bad field of an input line: more=1" + form);
}

Profile WithInput(InputRows rows) {
  Profile profile;
  profile.machine = HostSignature();
  profile.input = {rows, 1.1, 1.3, 0.012};
  return profile;
}

TEST(InputChoice, AProfileKeepsTheLine) {
  Profile profile = WithInput({1024, 0});
  profile.pieces = {8192, 5.1, 5.6, 0.012};
  const absl::StatusOr<Profile> parsed = Profile::Parse(profile.Print(), "p");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->Print(), profile.Print());
  EXPECT_NE(profile.Print().find("noise=0.012\n" + std::string(kLine) + "\nend 0\n"), std::string::npos);
  std::string twice = profile.Print();
  twice.insert(twice.find("input"), std::string(kLine) + "\n");
  EXPECT_EQ(Profile::Parse(twice, "p").status().message().find("p:5: input line of a profile twice: "), 0u);
  std::string bad = profile.Print();
  bad.replace(bad.find("rows=1024"), 9, "rows=x");
  EXPECT_EQ(Profile::Parse(bad, "p").status().message(),
            "p:4: bad field of an input line: rows=x; accepted: 0 to 65536");
}

TEST(InputChoice, ProfilesAreMergedAndCompared) {
  const Profile profile = WithInput({1024, 0});
  Profile without = profile;
  without.input.reset();
  EXPECT_EQ(MergeProfiles(profile, without)->input->rows.rows, 1024u);
  EXPECT_EQ(MergeProfiles(without, profile)->input->rows.rows, 1024u);
  EXPECT_EQ(MergeProfiles(profile, WithInput({512, 0}))->input->rows.rows, 512u);
  EXPECT_EQ(DiffProfiles(without, profile), "~ input: not measured -> rows=1024 keyless_rows=0\n");
  EXPECT_EQ(DiffProfiles(profile, WithInput({1024, 128})),
            "~ input: rows=1024 keyless_rows=0 -> rows=1024 keyless_rows=128\n");
  EXPECT_EQ(DiffProfiles(profile, profile), "");
}

// ---- plans --------------------------------------------------------------------------------------------------------

KernelPlan PlanOf(const std::string& spec, const Profile* profile, const PlanOverrides& overrides = {},
                  const std::string& cpu = "") {
  Machine machine;
  machine.cpu = cpu;
  return *MakePlan(*ParseSpec(spec), machine, overrides, profile);
}

constexpr const char* kKeyed[] = {"filter i64 > 1", "join.inner keys=i64 build=i64", "aggregate keys=i64 aggs=sum(i64)",
                                  "set.union keys=i64"};
constexpr const char* kKeyless = "aggregate aggs=sum(i64)";

TEST(InputChoice, DefaultsGoByTheMachine) {
  for (const char* spec : kKeyed) EXPECT_EQ(PlanOf(spec, nullptr, {}, "znver5").prefetch_input_rows, 2048u) << spec;
  EXPECT_EQ(PlanOf(kKeyless, nullptr).prefetch_input_rows, 2048u);
  EXPECT_EQ(PlanOf(kKeyless, nullptr, {}, "znver4").prefetch_input_rows, 0u);
  EXPECT_EQ(PlanOf(kKeyless, nullptr, {}, "znver5").prefetch_input_rows, 256u);
  const Profile not_measured;
  EXPECT_EQ(PlanOf(kKeyless, &not_measured, {}, "znver5").prefetch_input_rows, 256u);
}

// What is given comes before the profile, and the profile before the default.
TEST(InputChoice, PlansGoByTheProfile) {
  const Profile profile = WithInput({1024, 128});
  const PlanOverrides given = {{"prefetch_input_rows", "7"}};
  for (const char* spec : kKeyed) {
    EXPECT_EQ(PlanOf(spec, &profile, {}, "znver5").prefetch_input_rows, 1024u) << spec;
    EXPECT_EQ(PlanOf(spec, &profile, given).prefetch_input_rows, 7u) << spec;
    EXPECT_EQ(PlanOf(spec, &profile, {{"prefetch", "off"}}).prefetch_input_rows, 0u) << spec;
  }
  EXPECT_EQ(PlanOf(kKeyless, &profile, {}, "znver5").prefetch_input_rows, 128u);
  EXPECT_EQ(PlanOf(kKeyless, &profile, given, "znver5").prefetch_input_rows, 7u);
}

// Kernels whose distances differ are different kernels, to the cache of the process; to that on disk only where the
// distance is compiled in, which it is not in joins. Operators without the parameter stay the same.
TEST(InputChoice, KernelsOfDifferentDistancesAreNotShared) {
  const Profile profile = WithInput({1024, 128});
  for (const std::string spec : {kKeyed[0], kKeyed[1], kKeyed[2], kKeyed[3], kKeyless}) {
    const KernelPlan with = PlanOf(spec, &profile), without = PlanOf(spec, nullptr);
    EXPECT_NE(PlanJson(with), PlanJson(without)) << spec;
    EXPECT_EQ(CodeParameters(with) == CodeParameters(without), spec.starts_with("join")) << spec;
  }
  for (const char* spec : {"sort keys=i64", "map in=i64 out=negate($0)"}) {
    EXPECT_EQ(PlanJson(PlanOf(spec, &profile)), PlanJson(PlanOf(spec, nullptr))) << spec;
    EXPECT_EQ(CodeParameters(PlanOf(spec, &profile)), CodeParameters(PlanOf(spec, nullptr))) << spec;
  }
}

// A profile accepts what a parameter accepts.
TEST(InputChoice, TheGreatestDistanceIsThatOfTheParameter) {
  EXPECT_EQ(PlanOf(kKeyless, nullptr, {{"prefetch_input_rows", std::to_string(kMostInputRows)}}).prefetch_input_rows,
            kMostInputRows);
  EXPECT_FALSE(
      MakePlan(*ParseSpec(kKeyless), Machine{}, {{"prefetch_input_rows", std::to_string(kMostInputRows + 1)}}).ok());
}

}  // namespace
}  // namespace quern
