// SPDX-License-Identifier: Apache-2.0
// Which lanes of a tuple belong to which vectors.
#include "codegen/emit/state_vectors.h"

#include <gtest/gtest.h>

#include <string>

#include "test/unit/runtime/aggregate/group_rows.h"

namespace quern {
namespace {

// First lane and number of lanes of each vector: "1+8 9+1"; lanes without an update function follow in parentheses.
std::string Cut(const std::string& spec, bool tests_nulls = true) {
  std::string text;
  for (const StateVector& vector : StateVectorsOf(*test::ShapeOf(spec)->get(), tests_nulls)) {
    text += (text.empty() ? "" : " ") + std::to_string(vector.first_lane) + "+" + std::to_string(vector.lanes.size());
    for (size_t i = 0; i < vector.lanes.size(); ++i)
      if (vector.lanes[i].step == LaneStep::kNone) text += "(" + std::to_string(vector.first_lane + i) + ")";
  }
  return text;
}

TEST(StateVectors, AreCutFromTheTuple) {
  EXPECT_EQ(Cut("aggregate keys=i64 aggs=count_star,sum(i64),max(f64)"), "0+4(0)");
  EXPECT_EQ(Cut("aggregate aggs=count_star,count(i64),max(f64)"), "0+4") << "bits in the last lane";
  EXPECT_EQ(Cut("aggregate keys=i64 aggs=count_star,sum(i64),sum(f64),min(i64),max(i64),min(f64),max(f64),avg(f64)"),
            "1+8 9+1");
  EXPECT_EQ(Cut("aggregate keys=i64,utf8 aggs=count_star,sum(i64),max(f64),sum(i64),min(f64)"), "0+8(0)(1)(2)");
}

TEST(StateVectors, AreNoneWhereRowsDoNotAllTakePart) {
  EXPECT_EQ(Cut("aggregate keys=i64 aggs=count_star,sum(i64:nullable),max(f64)", true), "");
  EXPECT_EQ(Cut("aggregate keys=i64 aggs=count_star,sum(i64:nullable),max(f64)", false), "1+4");
  EXPECT_EQ(Cut("aggregate keys=i64 aggs=count_star,sum(i64):filter,max(f64)", false), "");
}

TEST(StateVectors, AreNoneOfTwoLanesOrOfOtherSteps) {
  EXPECT_EQ(Cut("aggregate keys=i64 aggs=count_star,sum(i64)"), "");
  for (const char* other : {"sum128(i64)", "avg(i64)", "sum(decimal128)", "min(decimal128)", "any(i64)", "first(i64)",
                            "last(f32)", "var_pop(i64)", "corr(f64,f64)"})
    EXPECT_EQ(Cut(std::string("aggregate keys=i64 aggs=count_star,max(f64),sum(i64),") + other), "") << other;
}

TEST(StateVectors, LeaveCalledStatesAsTheyAre) {
  EXPECT_EQ(Cut("aggregate keys=i64 aggs=count_star,count_distinct(i64),sum(i64),max(f64)").substr(0, 9), "0+8(0)(2)");
}

TEST(StateVectors, SayWhatARowDoesToALane) {
  const auto descriptor = test::ShapeOf("aggregate keys=i32 aggs=min(i64:nullable),sum(u32),max(f32)");
  const auto vectors = StateVectorsOf(*descriptor->get(), false);
  ASSERT_EQ(vectors.size(), 1u);
  const std::vector<StateLane>& lanes = vectors[0].lanes;
  ASSERT_EQ(lanes.size(), 4u);
  EXPECT_EQ(lanes[0].step, LaneStep::kOr) << "the bit of a value that was seen, behind the key's 4 bytes";
  EXPECT_EQ(lanes[0].constant, uint64_t{1} << 32);
  EXPECT_EQ(lanes[1].step, LaneStep::kMax);
  EXPECT_EQ(lanes[1].constant, (uint64_t{1} << 63) - 1) << "the sign bit turned, then all";
  EXPECT_EQ(lanes[2].step, LaneStep::kAddUnsigned);
  EXPECT_EQ(lanes[3].value, LaneValue::kOrderedF32);
  EXPECT_EQ(lanes[3].accumulator, 2u);
}

}  // namespace
}  // namespace quern
