// SPDX-License-Identifier: Apache-2.0
// Every kind of join over every layout, against two nested loops: with and without nulls, with duplicates, with a
// residual predicate, with columns of both sides, of one and of none, with output batches of 1, 3 and 1024 rows, by
// three probers that also share the scan of unmatched build rows.
//
// A result row is (probe row, build row, mark); -1 is a null, -2 a column that the kind does not have. For build keys 7
// 7 - and probe keys 7 9 -, where - is null:
//
//     left          (0,0) (0,1) (1,-1) (2,-1)        mark   (0, true) (1, null) (2, null)
//     right_anti    (2)                              anti   (1) (2)          anti_null_aware   nothing
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "test/unit/runtime/join/kind_cases.h"

namespace quern::test {
namespace {

const std::vector<Data>& AllData() {
  static const std::vector<Data> all = {
      MakeData("dense", 200, 1, 1),           MakeData("dense twice", 50, 3, 1),
      MakeData("sparse", 150, 1, 7990001),    MakeData("sparse twice", 61, 3, 7990001),
      MakeData("gaps", 150, 1, 900),          MakeData("gaps twice", 61, 3, 2000),
      {"no build rows", {}, {1, 2, 3, 4, 5}}, {"one build row", {5}, {1, 5, 5, 9, 5, -5}},
      {"no probe rows", {4, 4, 5}, {}}};
  return all;
}

// Runs one case with all data, layouts and output sizes in turn; returns the resulting layouts.
std::set<std::string> RunCase(const Case& of) {
  constexpr uint64_t kCapacities[] = {1024, 3, 1};
  size_t turn = 0;
  std::set<std::string> layouts;
  for (Data data : AllData()) {
    if (of.form.nullable) data = {data.name, WithNulls(data.build, 7), WithNulls(data.probe, 5)};
    const Side build(data.build, of.form), probe(data.probe, of.form);
    const Expectation expected = NestedLoops(of, data, build, probe);
    for (const LayoutChoice layout :
         {LayoutChoice::kAuto, LayoutChoice::kUnchained, LayoutChoice::kDense, LayoutChoice::kOpen}) {
      const uint64_t capacity = kCapacities[turn++ % 3];
      Runner runner(of, layout, capacity);
      const absl::Status status = runner.Run(build, probe);
      layouts.insert(runner.layout());
      SCOPED_TRACE(of.Spec() + ", " + data.name + ", " + runner.layout() + ", output batches of " +
                   std::to_string(capacity));
      if (expected.has_second_match) {
        EXPECT_EQ(status,
                  absl::OutOfRangeError(
                      "second match of a probe row: in a join of kind single; accepted: at most one build row a key"));
      } else {
        EXPECT_TRUE(status.ok()) << status;
        EXPECT_EQ(runner.rows(), expected.rows);
      }
    }
  }
  return layouts;
}

class JoinKinds : public testing::TestWithParam<JoinKind> {};

TEST_P(JoinKinds, GiveTheRowsOfNestedLoopsOverEveryLayout) {
  const JoinKindRow& kind = RowOf(GetParam());
  std::set<std::string> layouts;
  for (const KeyForm& form : kForms) {
    for (const bool residual : {false, true}) {
      for (const bool probe_rows : {true, false}) {
        for (const bool build_rows : {true, false}) {
          const Case of = {kind, form, residual, probe_rows, build_rows};
          if (!IsAllowed(of)) continue;
          const std::string spec = of.Spec();
          ASSERT_TRUE(ParseSpec(spec).ok()) << spec << ": " << ParseSpec(spec).status();
          layouts.merge(RunCase(of));
        }
      }
    }
  }
  std::set<std::string> expected = {"bitmap", "open", "unchained"};  // semi, anti: one bit, of one match, is enough
  if (kind.pairs) expected = {"bitmap", "dense", "ranked", "csr", "open", "counting", "unchained"};
  if (!kind.pairs && kind.id != JoinKind::kAntiNullAware)
    expected.insert({"dense", "ranked", "csr"});  // with a residual predicate
  if (kind.flags_matched_rows()) expected = {"dense", "ranked", "csr", "open", "unchained"};
  EXPECT_EQ(layouts, expected);
}

INSTANTIATE_TEST_SUITE_P(All, JoinKinds, testing::ValuesIn([] {
                           std::vector<JoinKind> kinds;
                           for (const JoinKindRow& row : AllJoinKinds()) kinds.push_back(row.id);
                           return kinds;
                         }()),
                         [](const auto& of) { return std::string(RowOf(of.param).text); });

}  // namespace
}  // namespace quern::test
