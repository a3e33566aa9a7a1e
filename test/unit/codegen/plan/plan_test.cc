// SPDX-License-Identifier: Apache-2.0
// The plan: its text parses to the same plan, its parameters stay within their bounds, and the runtime gets the plan's
// values.
#include "codegen/plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/plan/plan_parameters.h"

namespace quern {
namespace {

struct NumberRow {
  Scope scope;
  const char* name;
  uint64_t min, max;
  bool is_for_tests;
};
constexpr NumberRow kNumbers[] = {
#define QUERN_PLAN_NUMBER(scope, name, default_value, min, max, unit, meaning) {Scope::scope, #name, min, max, false},
#define QUERN_TEST_NUMBER(scope, name, default_value, min, max, unit, meaning) \
  {Scope::scope, "test." #name, min, max, true},
#include "codegen/plan/plan_parameters.def"
};

struct ChoiceRow {
  Scope scope;
  const char* name;
  std::string accepted;
  bool is_for_tests;
};
const ChoiceRow kChoices[] = {
#define QUERN_PLAN_CHOICE(scope, name, Type, default_value, meaning) {Scope::scope, #name, ChoiceWords<Type>(), false},
#define QUERN_TEST_CHOICE(scope, name, Type, default_value, meaning) \
  {Scope::scope, "test." #name, ChoiceWords<Type>(), true},
#include "codegen/plan/plan_parameters.def"
};

// A spec of each operator.
constexpr const char* kSpecs[] = {
    "join.inner keys=i64 build=f64",
    "aggregate keys=i64 aggs=count_star",
    "sort keys=i64:desc,utf8 payload=rowid limit=10",
    "filter i64 >= 5 and utf8(utf8mb4_bin) like '%#''%'",
};

template <class Row, size_t kRows>
std::vector<Row> RowsOf(const Row (&rows)[kRows], const char* spec) {
  std::vector<Row> of_spec;
  for (const Row& row : rows)
    if (IsIn(row.scope, *ParseSpec(spec))) of_spec.push_back(row);
  return of_spec;
}

std::vector<std::string> Words(const std::string& accepted) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin < accepted.size();) {
    const size_t end = std::min(accepted.find(", ", begin), accepted.size());
    words.push_back(accepted.substr(begin, end - begin));
    begin = end + 2;
  }
  return words;
}

absl::StatusOr<KernelPlan> Plan(const PlanOverrides& overrides, const char* spec = kSpecs[0]) {
  return MakePlan(*ParseSpec(spec), Machine{}, overrides);
}

std::string Error(const PlanOverrides& overrides, const char* spec = kSpecs[0]) {
  return std::string(Plan(overrides, spec).status().message());
}

// The lines "name = value  # meaning" of a plan's text as overrides; what the machine says, and what follows it, are
// none.
PlanOverrides OverridesOf(const std::string& text) {
  std::istringstream lines(text.substr(text.find('\n') + 1));
  PlanOverrides overrides;
  for (std::string line, name, equals, value; std::getline(lines, line);) {
    std::istringstream(line) >> name >> equals >> value;
    if (name == "l2_bytes") break;
    overrides.emplace_back(name, value);
  }
  return overrides;
}

void ExpectMadeAgain(const KernelPlan& plan) {
  const std::string text = PrintPlan(plan);
  EXPECT_EQ(text.substr(0, text.find('\n')), "plan " + PrintSpec(plan.spec));
  const auto again = MakePlan(plan.spec, Machine{}, OverridesOf(text));
  ASSERT_TRUE(again.ok()) << again.status() << "\n" << text;
  EXPECT_EQ(*again, plan) << text;
}

void ExpectBounds(const NumberRow& row, const char* spec) {
  for (const uint64_t value : {row.min, row.max}) {
    const auto plan = Plan({{row.name, std::to_string(value)}}, spec);
    ASSERT_TRUE(plan.ok()) << plan.status();
    ExpectMadeAgain(*plan);
  }
  std::vector<std::string> wrong = {
      "", "-1", "+1", "1 ", " 1", "0x1", "1.5", "x", "18446744073709551616", std::to_string(row.max + 1)};
  if (row.min > 0) wrong.push_back(std::to_string(row.min - 1));
  const std::string text = "bad value of plan parameter " + std::string(row.name) + ": ";
  for (const std::string& value : wrong)
    EXPECT_NE(Error({{row.name, value}}, spec).find(text), std::string::npos) << value;
}

TEST(Plan, NumbersKeepToTheirBounds) {
  for (const char* spec : kSpecs)
    for (const NumberRow& row : RowsOf(kNumbers, spec)) ExpectBounds(row, spec);
}

void ExpectWords(const ChoiceRow& row, const char* spec) {
  for (const std::string& word : Words(row.accepted)) {
    const auto plan = Plan({{row.name, word}}, spec);
    ASSERT_TRUE(plan.ok()) << plan.status();
    ExpectMadeAgain(*plan);
  }
  const std::string text = "bad value of plan parameter " + std::string(row.name) + ": ";
  for (const std::string& word :
       {row.accepted, row.accepted.substr(1), std::string(","), std::string(""), std::string("nothing")})
    EXPECT_NE(Error({{row.name, word}}, spec).find(text), std::string::npos) << word;
}

TEST(Plan, ChoicesAreTheirWordsAndNothingElse) {
  for (const char* spec : kSpecs)
    for (const ChoiceRow& row : RowsOf(kChoices, spec)) ExpectWords(row, spec);
}

TEST(Plan, ParametersOfAnotherOperatorAreUnknown) {
  EXPECT_EQ(Error({{"group_layout", "open"}}).rfind("unknown plan parameter: group_layout; accepted: layout, ", 0), 0u);
  EXPECT_EQ(Error({{"prefetch_group", "8"}}, kSpecs[1]),
            "unknown plan parameter: prefetch_group; accepted: group_layout, group_load_percent, local_groups, "
            "partition_bits, "
            "inline_group_bytes, batch_size, batch_size_l2, prefetch, prefetch_update_dense, "
            "prefetch_update_open, prefetch_update_directory, prefetch_input_rows, "
            "prefetch_sparse_rows, prefetch_string_bytes, "
            "prefetch_partition_bytes, prefetch_scan_bytes, prefetch_rebuild_rows, prefetch_state_rows, adapt, "
            "states, runs, "
            "huge_pages, spill_block_bytes, spill_read_ahead, spill_write_behind, spill_threads, spill_reads, "
            "spill_codec, passes, codegen_level");
  EXPECT_EQ(Error({{"test.hash", "zero"}}, kSpecs[2]),
            "unknown plan parameter: test.hash; accepted: prefix_words, bucket_bytes, dictionary_rows, top_rows, "
            "batch_size, prefetch, prefetch_gather, prefetch_collision, prefetch_string_bytes, prefetch_word_rows, "
            "prefetch_dictionary_rows, prefetch_merge_rows, huge_pages, spill_block_bytes, "
            "spill_read_ahead, spill_write_behind, spill_threads, spill_reads, spill_codec, spill_sort, passes, "
            "codegen_level");
  for (const char* name : {"hash", "test.hash", "huge_pages", "partition_bits"})
    EXPECT_EQ(Error({{name, "1"}}, kSpecs[3]), "unknown plan parameter: " + std::string(name) +
                                                   "; accepted: batch_size, prefetch, "
                                                   "prefetch_input_rows, passes, codegen_level");
  EXPECT_EQ(Error({{"prefix_words", "3"}}).rfind("unknown plan parameter: prefix_words; accepted: layout, ", 0), 0u);
}

TEST(Plan, ErrorsNameWhatIsAccepted) {
  EXPECT_EQ(Error({{"batch_size", "0"}}), "bad value of plan parameter batch_size: 0; accepted: 1 to 4096 rows");
  EXPECT_EQ(Error({{"test.hash", "crc"}}), "bad value of plan parameter test.hash: crc; accepted: mix64, zero");
  EXPECT_EQ(Error({{"batch", "1"}}),
            "unknown plan parameter: batch; accepted: layout, key_filter, open_load_percent, partition_bits, "
            "inline_key_bytes, "
            "batch_size, prefetch, "
            "prefetch_group, pipeline, prefetch_build_dense, prefetch_build_open, prefetch_build_unchained, "
            "prefetch_probe_dense, "
            "prefetch_probe_open, "
            "prefetch_probe_unchained, prefetch_input_rows, prefetch_sparse_rows, prefetch_string_bytes, "
            "prefetch_partition_bytes, adapt, "
            "huge_pages, "
            "spill_block_bytes, "
            "spill_read_ahead, spill_write_behind, spill_threads, spill_reads, "
            "spill_codec, passes, codegen_level");
}

TEST(Plan, ErrorsOfSortsNameWhatIsAccepted) {
  const auto error = [](const char* name, const char* value) { return Error({{name, value}}, kSpecs[2]); };
  EXPECT_EQ(error("test.sort_method", "merge"),
            "bad value of plan parameter test.sort_method: merge; accepted: radix, comparison");
  EXPECT_EQ(error("prefix_words", "5"), "bad value of plan parameter prefix_words: 5; accepted: 1 to 4 words");
  EXPECT_EQ(error("top_rows", "1073741825"),
            "bad value of plan parameter top_rows: 1073741825; accepted: 0 to 1073741824 rows");
}

TEST(Plan, TheLastOfANameCounts) {
  EXPECT_EQ(Plan({{"batch_size", "7"}, {"test.hash", "zero"}, {"batch_size", "9"}})->batch_size, 9u);
}

TEST(Plan, AGroupIsNoLongerThanItsBatch) {
  EXPECT_EQ(Plan({{"batch_size", "7"}})->prefetch_group, 7u);
  EXPECT_EQ(Plan({{"batch_size", "7"}, {"prefetch_group", "4096"}})->prefetch_group, 7u);
  EXPECT_EQ(Plan({{"prefetch_group", "1"}})->prefetch_group, 1u);
}

TEST(Plan, TheRuntimeIsToldWhatThePlanSays) {
  const auto plan = Plan({{"batch_size", "8"},
                          {"prefetch_group", "3"},
                          {"prefetch", "off"},
                          {"test.hash", "zero"},
                          {"huge_pages", "off"}});
  const auto descriptor = MakePlannedDescriptor(*plan);
  EXPECT_EQ(descriptor->get()->batch_rows, 8u);
  EXPECT_EQ(descriptor->get()->group_rows, 3u);
  EXPECT_FALSE(descriptor->rows()->prefetches);
  EXPECT_TRUE(descriptor->rows()->zero_hashes);
  EXPECT_FALSE(MakeJoinOptions(*plan).huge_pages);
  EXPECT_EQ(MakeJoinOptions(*plan).layout, LayoutChoice::kAuto);
  const JoinOptions options = MakeJoinOptions(
      *Plan({{"layout", "open"}, {"open_load_percent", "55"}, {"partition_bits", "0"}, {"huge_pages", "on"}}));
  EXPECT_EQ(options.layout, LayoutChoice::kOpen);
  EXPECT_EQ(options.open_load_percent, 55u);
  EXPECT_EQ(options.partition_bits, 0u);
  EXPECT_EQ(MakeJoinOptions(*Plan({{"layout", "dense"}})).layout, LayoutChoice::kDense);
  EXPECT_EQ(MakeJoinOptions(*Plan({{"layout", "unchained"}})).layout, LayoutChoice::kUnchained);
  const PrefetchSchedules schedules = MakeJoinOptions(*Plan({{"prefetch_probe_open", "1@1M,2@32M,3"}})).prefetch;
  EXPECT_EQ(schedules.For(PrefetchLoop::kProbeOpen, 1 << 20).distance, 1u);
  EXPECT_EQ(schedules.For(PrefetchLoop::kProbeOpen, (1 << 20) + 1).distance, 2u);
  EXPECT_EQ(schedules.For(PrefetchLoop::kProbeOpen, 32 << 20).distance, 2u);
  EXPECT_EQ(schedules.For(PrefetchLoop::kProbeOpen, (32 << 20) + 1).distance, 3u);
}

TEST(Plan, TheRuntimeIsToldWhatAnAggregationsPlanSays) {
  const auto plan = Plan({{"batch_size", "8"},
                          {"prefetch", "off"},
                          {"test.hash", "zero"},
                          {"huge_pages", "off"},
                          {"group_layout", "directory"},
                          {"group_load_percent", "33"},
                          {"local_groups", "7"},
                          {"partition_bits", "3"}},
                         kSpecs[1]);
  const auto descriptor = MakePlannedGroups(*plan);
  ASSERT_TRUE(descriptor.ok()) << descriptor.status();
  EXPECT_EQ((*descriptor)->get()->batch_rows, 8u);
  EXPECT_FALSE((*descriptor)->group()->prefetches);
  EXPECT_TRUE((*descriptor)->group()->zero_hashes);
  const AggregateOptions options = MakeAggregateOptions(*plan);
  EXPECT_EQ(options.layout, GroupLayout::kDirectory);
  EXPECT_EQ(options.load_percent, 33u);
  EXPECT_EQ(options.local_groups, 7u);
  EXPECT_EQ(options.partition_bits, 3u);
  EXPECT_FALSE(options.huge_pages);
  EXPECT_EQ(MakeAggregateOptions(*Plan({{"group_layout", "dense"}}, kSpecs[1])).layout, GroupLayout::kDense);
  EXPECT_EQ(MakeAggregateOptions(*Plan({{"group_layout", "open"}}, kSpecs[1])).layout, GroupLayout::kOpen);
  EXPECT_EQ(MakeAggregateOptions(*Plan({}, kSpecs[1])).layout, GroupLayout::kAuto);
}

TEST(Plan, TheRuntimeIsToldWhatASortsPlanSays) {
  const char* const spec = kSpecs[2];
  const auto plan = Plan({{"batch_size", "8"},
                          {"test.sort_method", "comparison"},
                          {"prefix_words", "4"},
                          {"dictionary_rows", "9"},
                          {"top_rows", "0"},
                          {"huge_pages", "off"}},
                         spec);
  const auto descriptor = MakePlannedSort(*plan);
  EXPECT_EQ(descriptor->get()->batch_rows, 8u);
  EXPECT_EQ(descriptor->method(), SortMethod::kComparison);
  EXPECT_EQ(KernelSpec(descriptor->spec()), plan->spec);
  const SortOptions options = MakeSortOptions(*plan);
  EXPECT_EQ(options.bucket_bytes, Machine{}.l2_bytes / 4);
  EXPECT_EQ(MakeSortOptions(*Plan({{"bucket_bytes", "65536"}}, spec)).bucket_bytes, 65536u);
  EXPECT_EQ(MakeSortOptions(*Plan({{"bucket_bytes", "1"}}, spec)).bucket_bytes, 4096u);
  EXPECT_FALSE(options.huge_pages);
  EXPECT_EQ(options.prefix_words, 4u);
  EXPECT_EQ(options.dictionary_rows, 9u);
  EXPECT_EQ(options.top_rows, 0u);
  EXPECT_TRUE(options.prefetches);
  EXPECT_FALSE(MakeSortOptions(*Plan({{"prefetch", "off"}}, spec)).prefetches);
}

// In whole words of a mask.
TEST(Plan, TheRuntimeIsToldWhatAFiltersPlanSays) {
  for (const auto& [asked, rows] :
       {std::pair("1", 64u), std::pair("64", 64u), std::pair("65", 128u), std::pair("4096", 4096u)})
    EXPECT_EQ(MakePlannedFilter(*Plan({{"batch_size", asked}}, kSpecs[3]))->get()->batch_rows, rows) << asked;
}

TEST(Plan, ASortsDefaultsAreTheRuntimes) {
  const auto plan = Plan({}, kSpecs[2]);
  EXPECT_EQ(MakePlannedSort(*plan)->method(), SortMethod::kRadix);
  EXPECT_EQ(MakeSortOptions(*plan).prefix_words, SortOptions().prefix_words);
  EXPECT_EQ(MakeSortOptions(*plan).top_rows, SortOptions().top_rows);
  EXPECT_EQ(MakeSortOptions(*plan).dictionary_rows, SortOptions().dictionary_rows);
  EXPECT_TRUE(MakeSortOptions(*plan).huge_pages);
}

TEST(Plan, LayoutsOfWordsAreForKeysThatAreWords) {
  for (const char* layout : {"dense", "open"}) {
    EXPECT_EQ(Error({{"group_layout", layout}}, "aggregate keys=utf8"),
              "layout for keys that fit one machine word: " + std::string(layout) + "; accepted: auto, directory");
    EXPECT_TRUE(Plan({{"group_layout", layout}}, "aggregate keys=dictionary(i8,utf8)").ok()) << layout;
  }
}

TEST(Plan, JsonHasEveryParameterOfUsers) {
  for (const char* spec : kSpecs) {
    const std::string json = PlanJson(*Plan({}, spec));
    for (const NumberRow& row : kNumbers) {
      const bool is_ours = IsIn(row.scope, *ParseSpec(spec)) && !row.is_for_tests;
      EXPECT_EQ(json.find("\"" + std::string(row.name) + "\":") != std::string::npos, is_ours)
          << row.name << " " << json;
    }
    for (const ChoiceRow& row : RowsOf(kChoices, spec))
      EXPECT_EQ(json.find("\"" + std::string(row.name) + "\":\"") != std::string::npos, !row.is_for_tests) << json;
    EXPECT_NE(json.find("\"l2_bytes\":1048576,\"l3_bytes\":33554432}"), std::string::npos) << json;
  }
}

TEST(Plan, WhatTestsSetIsPrintedWhereItIsSet) {
  for (const char* spec : kSpecs) {
    const KernelPlan standard = *Plan({}, spec), toggled = *Plan({{"test.toggled_pass", "3"}}, spec);
    EXPECT_EQ(PrintPlan(standard).find("test."), std::string::npos);
    EXPECT_NE(PrintPlan(toggled).find("\ntest.toggled_pass = 3 "), std::string::npos);
    EXPECT_NE(PlanJson(toggled).find(",\"test.toggled_pass\":3,"), std::string::npos);
    EXPECT_EQ(CodeParameters(standard).find("test."), std::string::npos);
    EXPECT_NE(CodeParameters(toggled), CodeParameters(standard));
  }
}

TEST(Plan, ASpecThatNoTextExpressesIsRefused) { EXPECT_FALSE(MakePlan(KernelSpec{}, Machine{}, {}).ok()); }

}  // namespace
}  // namespace quern
