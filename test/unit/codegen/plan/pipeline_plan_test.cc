// SPDX-License-Identifier: Apache-2.0
// The plan of a pipeline: which maps become a part of the aggregation behind them, and whose parameters are whose.
#include "codegen/plan/pipeline_plan.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "codegen/machine/profile.h"
#include "runtime/pipeline/pipeline_spec.h"

namespace quern {
namespace {

absl::StatusOr<PipelinePlan> PlanOf(const std::string& text, const PlanOverrides& overrides = {}) {
  const absl::StatusOr<PipelineSpec> spec = ParsePipeline(text);
  if (!spec.ok()) return spec.status();
  return MakePipelinePlan(*spec, overrides);
}

// The steps that run, in which the columns of the source are left out; or the error. What runs is a pipeline itself.
std::string Runs(const std::string& text, const PlanOverrides& overrides = {}) {
  const absl::StatusOr<PipelinePlan> plan = PlanOf(text, overrides);
  if (!plan.ok()) return std::string(plan.status().message());
  EXPECT_EQ(PrintPipeline(plan->asked), text);
  const std::string printed = PrintPipeline(plan->spec);
  const absl::StatusOr<PipelineSpec> again = ParsePipeline(printed);
  EXPECT_TRUE(again.ok()) << again.status() << "\n" << printed;
  EXPECT_EQ(plan->overrides.size(), plan->spec.steps.size() + 1);
  return printed.substr(printed.find(" | ") + 3);
}

void ExpectUnfused(const std::string& text) {
  const absl::StatusOr<PipelinePlan> plan = PlanOf(text);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(PrintPipeline(plan->spec), text);
}

// ---- fusing ---------------------------------------------------------------------------------------------------------

TEST(PipelinePlan, MapsMoveIntoTheAggregation) {
  EXPECT_EQ(Runs("pipeline in=i64,f64,f64 | filter i64 > 5 [$0] | map in=f64,f64 out=multiply($0,$1) [$1, $2]"
                 " | aggregate keys=i64 aggs=sum(f64),count_star,max(f64) [$0; $3, $1]"),
            "filter i64 > 5 [$0] | aggregate keys=i64 in=f64,f64 aggs=sum(multiply($0,$1)),count_star,max($0)"
            " [$0; $1, $2]");
  // One result twice, and a result that nobody reads.
  EXPECT_EQ(Runs("pipeline in=f64 | map in=f64 out=negate($0),add($0,$0) [$0]"
                 " | aggregate aggs=sum(f64),min(f64) [; $1, $1]"),
            "aggregate in=f64 aggs=sum(negate($0)),min(negate($0)) [; $0]");
}

TEST(PipelinePlan, SeveralMapsInARow) {
  const std::string maps = " | map in=f64,f64 out=multiply($0,$1) [$0, $1] | map in=f64,f64 out=add($0,$1) [$2, $0]";
  EXPECT_EQ(Runs("pipeline in=f64,f64" + maps + " | aggregate aggs=sum(f64),max(f64) [; $3, $2]"),
            "aggregate in=f64,f64 aggs=sum(add(multiply($0,$1),$0)),max(multiply($0,$1)) [; $0, $1]");
  // A filter between them stops it, since it reads what is in front.
  EXPECT_EQ(Runs("pipeline in=f64,f64 | map in=f64,f64 out=multiply($0,$1) [$0, $1] | filter f64 > 1 [$2]"
                 " | map in=f64,f64 out=add($0,$1) [$2, $0] | aggregate aggs=sum(f64) [; $3]"),
            "map in=f64,f64 out=multiply($0,$1) [$0, $1] | filter f64 > 1 [$2] | aggregate in=f64,f64"
            " aggs=sum(add($0,$1)) [; $2, $0]");
  ExpectUnfused(
      "pipeline in=f64 | map in=f64 out=negate($0) [$0] | filter f64 > 1 [$0] | aggregate aggs=sum(f64) [; $1]");
}

// Fusing hides no error: of a result that nobody reads, or that is read for some rows.
TEST(PipelinePlan, ResultsThatMayFailStayUnlessAllRowsComputeThem) {
  EXPECT_EQ(Runs("pipeline in=i64 | map in=i64 out=add_checked($0,1:i64),bit_and($0,1:i64) [$0]"
                 " | aggregate aggs=sum(i64) [; $2]"),
            "map in=i64 out=add_checked($0,1:i64) [$0] | aggregate in=i64 aggs=sum(bit_and($0,1:i64)) [; $0]");
  const std::string quotients = "pipeline in=i64,i64 | map in=i64,i64 out=divide_checked($0,$1) [$0, $1] | ";
  ExpectUnfused(quotients + "aggregate aggs=count_star []");
  for (const char* taken : {"case_when(equal($0,0:i64),0:i64,$1)", "coalesce($0,$1)"}) {
    EXPECT_EQ(Runs(quotients + "map in=i64,i64 out=" + taken + " [$1, $2] | aggregate aggs=sum(i64) [; $3]"),
              "map in=i64,i64 out=divide_checked($0,$1) [$0, $1] | aggregate in=i64,i64 aggs=sum(" +
                  std::string(taken) + ") [; $1, $2]");
  }
  EXPECT_EQ(
      Runs(quotients + "map in=i64 out=case_when(equal($0,0:i64),0:i64,$0) [$2] | aggregate aggs=sum(i64) [; $3]"),
      "aggregate in=i64,i64 aggs=sum(case_when(equal(divide_checked($0,$1),0:i64),0:i64,divide_checked($0,$1)))"
      " [; $0, $1]");
  // Sums of decimals whose digits suffice cannot fail.
  EXPECT_EQ(Runs("pipeline in=decimal128(15,2) | map in=decimal128(15,2) out=add($0,$0),negate($0) [$0]"
                 " | aggregate aggs=sum(decimal128) [; $2]"),
            "aggregate in=decimal128(15,2) aggs=sum(negate($0)) [; $0]");
}

TEST(PipelinePlan, ResultsThatAreKeysStay) {
  EXPECT_EQ(Runs("pipeline in=i64,f64 | map in=f64,i64 out=negate($0),modulo_checked($1,10:i64),add($0,$0) [$1, $0]"
                 " | aggregate keys=i64 aggs=sum(f64),max(f64),min(i64) [$3; $2, $4, $3]"),
            "map in=f64,i64 out=modulo_checked($1,10:i64) [$1, $0] | aggregate keys=i64 in=f64,i64"
            " aggs=sum(negate($0)),max(add($0,$0)),min($1) [$2; $1, $2]");
  ExpectUnfused(
      "pipeline in=i64,f64 | map in=i64 out=modulo_checked($0,10:i64) [$0]"
      " | aggregate keys=i64 aggs=sum(f64),max(i64) [$2; $1, $2]");
  // The first map stays with its key; of the second one nothing is left.
  EXPECT_EQ(Runs("pipeline in=i64 | map in=i64 out=negate($0) [$0] | map in=i64 out=add($0,1:i64) [$1]"
                 " | aggregate keys=i64 aggs=sum(i64) [$1; $2]"),
            "map in=i64 out=negate($0) [$0] | aggregate keys=i64 in=i64 aggs=sum(add($0,1:i64)) [$1; $1]");
}

TEST(PipelinePlan, FiltersOfAggregates) {
  EXPECT_EQ(Runs("pipeline in=i64 | map in=i64 out=greater($0,3:i64),negate($0) [$0]"
                 " | aggregate aggs=sum(i64):filter,count_star:filter [; $2, $1, $1]"),
            "aggregate in=i64 aggs=sum(negate($0)):filter(greater($0,3:i64)),count_star:filter(greater($0,3:i64))"
            " [; $0]");
}

TEST(PipelinePlan, WhatIsNotFused) {
  for (const char* text : {
           "pipeline in=i64 | aggregate keys=i64 aggs=sum(i64) [$0; $0]",
           "pipeline in=i64 | map in=i64 out=negate($0) [$0] | sort keys=i64:out [$1]",
           "pipeline in=i64 | map in=i64 out=negate($0) [$0] | build join.inner keys=i64 [$1]",
           "pipeline in=i64 | map in=i64 out=negate($0) [$0] | emit [$1]",
           // Nothing reads the result.
           "pipeline in=i64 | map in=i64 out=negate($0) [$0] | aggregate aggs=sum(i64) [; $0]",
           // The aggregation has expressions already.
           "pipeline in=i64 | map in=i64 out=negate($0) [$0] | aggregate in=i64 aggs=sum(add($0,1:i64)) [; $1]",
           // A column is read as one with nulls.
           "pipeline in=i64 | map in=i64 out=negate($0) [$0] | aggregate aggs=sum(i64:nullable) [; $1]",
           // Another argument is a decimal of unknown digits.
           "pipeline in=i64,decimal128 | map in=i64 out=negate($0) [$0] | aggregate aggs=sum(i64),max(decimal128)"
           " [; $2, $1]",
           // A join behind the map.
           "pipeline in=i64 | map in=i64 out=negate($0) [$0] | probe join.inner keys=i64 probe=i64 [$0; $1]"
           " | aggregate aggs=sum(i64) [; $0]",
       }) {
    ExpectUnfused(text);
  }
}

TEST(PipelinePlan, DecimalsWithDigitsAreFused) {
  EXPECT_EQ(Runs("pipeline in=i64,decimal128(15,2) | map in=i64 out=negate($0) [$0]"
                 " | aggregate aggs=sum(i64),max(decimal128) [; $2, $1]"),
            "aggregate in=i64,decimal128(15,2) aggs=sum(negate($0)),max($1) [; $0, $1]");
  EXPECT_EQ(Runs("pipeline in=decimal128(15,2) | map in=decimal128(15,2) out=multiply($0,$0) [$0]"
                 " | aggregate aggs=sum(decimal128) [; $1]"),
            "aggregate in=decimal128(15,2) aggs=sum(multiply($0,$0)) [; $0]");
}

// The order of texts is the aggregation's, which is another one than that of the map's result.
TEST(PipelinePlan, TextsUnderCollations) {
  const std::string map = "map in=utf8 out=ascii_upper($0),octet_length($0) [$0]";
  EXPECT_EQ(Runs("pipeline in=utf8 | " + map + " | aggregate aggs=min(utf8(utf8mb4_bin)),sum(i64) [; $0, $2]"),
            "aggregate in=utf8(utf8mb4_bin),utf8 aggs=min($0),sum(octet_length($1)) [; $0, $0]");
  ExpectUnfused("pipeline in=utf8 | " + map + " | aggregate aggs=min(utf8(utf8mb4_bin)),sum(i64) [; $1, $2]");
}

TEST(PipelinePlan, FusingMayBeOff) {
  const std::string text = "pipeline in=i64 | map in=i64 out=negate($0) [$0] | aggregate aggs=sum(i64) [; $1]";
  EXPECT_EQ(Runs(text, {{"fuse", "off"}}), text.substr(text.find(" | ") + 3));
  EXPECT_EQ(Runs(text, {{"fuse", "auto"}}), "aggregate in=i64 aggs=sum(negate($0)) [; $0]");
  const absl::StatusOr<PipelinePlan> plan = PlanOf(text, {{"piece_rows", "7"}});
  ASSERT_TRUE(plan.ok());
  const std::string printed = PrintPipelinePlan(*plan);
  EXPECT_TRUE(
      printed.starts_with("plan pipeline in=i64 | aggregate in=i64 aggs=sum(negate($0)) [; $0]\n# fused from: " + text +
                          "\npiece_rows = 7 "))
      << printed;
}

// ---- parameters -----------------------------------------------------------------------------------------------------

const char kSteps[] =
    "pipeline in=i64 | filter i64 > 1 [$0] | probe join.inner keys=i64 build=i64 probe=i64 [$0; $0]"
    " | sort keys=i64 [$1]";

TEST(PipelinePlan, ParametersOfThePipeline) {
  const absl::StatusOr<PipelinePlan> plan = PlanOf(kSteps, {{"piece_rows", "65536"}, {"fuse", "off"}});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->piece_rows, 65536u);
  EXPECT_EQ(plan->fuse, Fusion::kOff);
  EXPECT_EQ(PlanOf(kSteps)->piece_rows, thresholds::kPipelineRows);
  for (const char* value : {"0", "65537", "", "x", "-1", "1x", "99999999999999999999"}) {
    const auto refused = PlanOf(kSteps, {{"piece_rows", value}});
    EXPECT_EQ(refused.status().message(),
              "bad value of plan parameter piece_rows: " + std::string(*value == 0 ? "\"\"" : value) +
                  "; accepted: 1 to 65536 rows");
  }
  EXPECT_EQ(PlanOf(kSteps, {{"fuse", "on"}}).status().message(),
            "bad value of plan parameter fuse: on; accepted: auto, off");
}

// What is given comes before the profile, and the profile before the default.
TEST(PipelinePlan, PieceRowsOfAProfile) {
  Profile profile;
  const auto line_of = [&profile](const PlanOverrides& overrides) {
    const absl::StatusOr<PipelinePlan> plan = MakePipelinePlan(*ParsePipeline(kSteps), overrides, &profile);
    if (!plan.ok()) return std::string(plan.status().message());
    const std::string printed = PrintPipelinePlan(*plan);
    const size_t begin = printed.find("piece_rows");
    return printed.substr(begin, printed.find('\n', begin) - begin);
  };
  const std::string meaning = "# that pass all steps before the next ones do (rows); ";
  EXPECT_EQ(line_of({}), "piece_rows = 16384                  " + meaning + "default");
  EXPECT_EQ(ChoosePieceRows(&profile), thresholds::kPipelineRows);
  profile.pieces = {.rows = 512};
  EXPECT_EQ(line_of({}), "piece_rows = 512                    " + meaning + "profile");
  EXPECT_EQ(line_of({{"piece_rows", "7"}}), "piece_rows = 7                      " + meaning + "given");
  EXPECT_EQ(ChoosePieceRows(&profile), 512u);
  EXPECT_EQ(ChoosePieceRows(nullptr), thresholds::kPipelineRows);
}

TEST(PipelinePlan, ParametersOfSteps) {
  const PlanOverrides huge_pages = {{"huge_pages", "off"}};
  // Of all steps that have it: a filter has none, and the table has its own.
  absl::StatusOr<PipelinePlan> plan = PlanOf(kSteps, huge_pages);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->overrides, (std::vector<PlanOverrides>{{}, {}, huge_pages}));
  plan = PlanOf(kSteps, {{"2.huge_pages", "off"}, {"0.batch_size", "64"}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->overrides, (std::vector<PlanOverrides>{{{"batch_size", "64"}}, {}, huge_pages}));
  // The later one wins in the kernel's plan, as it is written.
  plan = PlanOf(kSteps, {{"huge_pages", "off"}, {"2.huge_pages", "on"}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->overrides[2], (PlanOverrides{{"huge_pages", "off"}, {"huge_pages", "on"}}));
}

// Steps are numbered as they run.
TEST(PipelinePlan, NumbersAreThoseOfWhatRuns) {
  const std::string text = "pipeline in=i64 | map in=i64 out=negate($0) [$0] | aggregate aggs=sum(i64) [; $1]";
  absl::StatusOr<PipelinePlan> plan = PlanOf(text, {{"0.huge_pages", "off"}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->overrides, (std::vector<PlanOverrides>{{{"huge_pages", "off"}}}));
  EXPECT_EQ(PlanOf(text, {{"1.huge_pages", "off"}}).status().message(),
            "step of plan parameter 1.huge_pages: 1; accepted: the numbers that `quern dump plan` prints, below 1");
  plan = PlanOf(text, {{"1.huge_pages", "off"}, {"fuse", "off"}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->overrides[1], (PlanOverrides{{"huge_pages", "off"}}));
}

TEST(PipelinePlan, ErrorsOfParameters) {
  const auto error_of = [](const std::string& text, const std::string& name) {
    return std::string(PlanOf(text, {{name, "off"}}).status().message());
  };
  EXPECT_EQ(error_of(kSteps, "1.huge_pages"),
            "plan parameter of a step that probes: 1.huge_pages; accepted: parameters of the kernel that builds its "
            "table");
  EXPECT_EQ(error_of(kSteps, "3.huge_pages"),
            "step of plan parameter 3.huge_pages: 3; accepted: the numbers that `quern dump plan` prints, below 3");
  const std::string unknown = "; accepted: piece_rows, fuse, parameters of its steps, and K.NAME for those of step K";
  for (const char* name : {"nothing", "x.huge_pages", ".huge_pages", "-1.huge_pages", "1 .huge_pages"}) {
    const std::string shown = std::string(name).find(' ') == std::string::npos ? name : std::string(name);
    EXPECT_EQ(error_of(kSteps, name), "unknown plan parameter of a pipeline: " + shown + unknown) << name;
  }
  EXPECT_EQ(error_of("pipeline in=i64 | filter i64 > 1 [$0] | emit [$0]", "1.huge_pages"),
            "step of plan parameter 1.huge_pages: 1; accepted: the numbers that `quern dump plan` prints, below 1");
  EXPECT_EQ(error_of("pipeline in=i64 | filter i64 > 1 [$0] | emit [$0]", "huge_pages"),
            "unknown plan parameter of a pipeline: huge_pages" + unknown);
}

TEST(PipelinePlan, SpecsOfSteps) {
  const absl::StatusOr<PipelineSpec> spec = ParsePipeline(kSteps);
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(PrintSpec(*SpecOfStep(*spec, 1)), "join.inner keys=i64 build=i64 probe=i64");
  EXPECT_EQ(PrintSpec(*SpecOfStep(*spec, 2)), "sort keys=i64");
  EXPECT_EQ(SpecOfStep(*ParsePipeline("pipeline in=i64 | filter i64 > 1 [$0] | emit [$0]"), 1), nullptr);
}

}  // namespace
}  // namespace quern
