// SPDX-License-Identifier: Apache-2.0
// The plan: its text parses to the same plan, its parameters stay within their bounds, and the runtime gets the plan's
// values.
#include "codegen/plan/plan.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quern {
namespace {

enum Scope : uint8_t { kJoin, kAggregate, kSort, kFilter, kBoth, kStored, kAll };

struct NumberRow {
  Scope scope;
  const char* name;
  uint64_t min, max;
};
constexpr NumberRow kNumbers[] = {
#define QUERN_PLAN_NUMBER(scope, name, default_value, min, max, unit, meaning) {scope, #name, min, max},
#define QUERN_PLAN_CHOICE(scope, name, default_value, accepted, meaning)
#include "codegen/plan/plan_parameters.def"
};

struct ChoiceRow {
  Scope scope;
  const char* name;
  std::string_view accepted;
};
constexpr ChoiceRow kChoices[] = {
#define QUERN_PLAN_NUMBER(scope, name, default_value, min, max, unit, meaning)
#define QUERN_PLAN_CHOICE(scope, name, default_value, accepted, meaning) {scope, #name, accepted},
#include "codegen/plan/plan_parameters.def"
};

// A spec of each operator, whose plans have the parameters of its scope.
struct OperatorRow {
  Scope scope;
  const char* spec;
};
constexpr OperatorRow kOperators[] = {
    {kJoin, "join.inner keys=i64 build=f64"},
    {kAggregate, "aggregate keys=i64 aggs=count_star"},
    {kSort, "sort keys=i64:desc,utf8 payload=rowid limit=10"},
    {kFilter, "filter i64 >= 5 and utf8(utf8mb4_bin) like '%#''%'"},
};

bool IsIn(Scope scope, Scope of_operator) {
  const bool joins_or_aggregates = of_operator == kJoin || of_operator == kAggregate;
  return scope == of_operator || scope == kAll || (scope == kBoth && joins_or_aggregates) ||
         (scope == kStored && of_operator != kFilter);
}

template <class Row, size_t kRows>
std::vector<Row> RowsOf(const Row (&rows)[kRows], Scope scope) {
  std::vector<Row> of_scope;
  for (const Row& row : rows)
    if (IsIn(row.scope, scope)) of_scope.push_back(row);
  return of_scope;
}

std::vector<std::string> Words(std::string_view accepted) {
  std::vector<std::string> words;
  for (size_t bar; !accepted.empty(); accepted.remove_prefix(std::min(bar + 1, accepted.size()))) {
    bar = std::min(accepted.find('|'), accepted.size());
    words.emplace_back(accepted.substr(0, bar));
  }
  return words;
}

absl::StatusOr<KernelPlan> Plan(const PlanOverrides& overrides, const char* spec = kOperators[0].spec) {
  return MakePlan(*ParseSpec(spec), Machine{}, overrides);
}

std::string Error(const PlanOverrides& overrides, const char* spec = kOperators[0].spec) {
  return std::string(Plan(overrides, spec).status().message());
}

// A plan's text without its comments: a plan that was parsed does not contain where its schedules come from.
std::string Values(const std::string& plan) {
  std::istringstream lines(plan);
  std::string text;
  for (std::string line; std::getline(lines, line);) text += line.substr(0, line.find('#')) + "\n";
  return text;
}

void ExpectParsesBack(const KernelPlan& plan) {
  const auto parsed = ParsePlan(PrintPlan(plan));
  ASSERT_TRUE(parsed.ok()) << parsed.status() << "\n" << PrintPlan(plan);
  EXPECT_EQ(*parsed, plan) << PrintPlan(plan);
  EXPECT_EQ(Values(PrintPlan(*parsed)), Values(PrintPlan(plan)));
}

void ExpectBounds(const NumberRow& row, const char* spec) {
  for (const uint64_t value : {row.min, row.max}) {
    const auto plan = Plan({{row.name, std::to_string(value)}}, spec);
    ASSERT_TRUE(plan.ok()) << plan.status();
    ExpectParsesBack(*plan);
  }
  std::vector<std::string> wrong = {
      "", "-1", "+1", "1 ", " 1", "0x1", "1.5", "x", "18446744073709551616", std::to_string(row.max + 1)};
  if (row.min > 0) wrong.push_back(std::to_string(row.min - 1));
  const std::string text = "bad value of plan parameter " + std::string(row.name) + ": ";
  for (const std::string& value : wrong)
    EXPECT_NE(Error({{row.name, value}}, spec).find(text), std::string::npos) << value;
}

TEST(Plan, NumbersKeepToTheirBounds) {
  for (const OperatorRow& op : kOperators)
    for (const NumberRow& row : RowsOf(kNumbers, op.scope)) ExpectBounds(row, op.spec);
}

void ExpectWords(const ChoiceRow& row, const char* spec) {
  for (const std::string& word : Words(row.accepted)) {
    const auto plan = Plan({{row.name, word}}, spec);
    ASSERT_TRUE(plan.ok()) << plan.status();
    ExpectParsesBack(*plan);
  }
  const std::string text = "bad value of plan parameter " + std::string(row.name) + ": ";
  for (const std::string& word :
       {std::string(row.accepted) + "|", std::string("|"), std::string(""), std::string("nothing")})
    EXPECT_NE(Error({{row.name, word}}, spec).find(text), std::string::npos) << word;
}

TEST(Plan, ChoicesAreTheirWordsAndNothingElse) {
  for (const OperatorRow& op : kOperators)
    for (const ChoiceRow& row : RowsOf(kChoices, op.scope)) ExpectWords(row, op.spec);
}

TEST(Plan, ParametersOfAnotherOperatorAreUnknown) {
  EXPECT_EQ(Error({{"group_layout", "open"}}).rfind("unknown plan parameter: group_layout; accepted: layout, ", 0), 0u);
  EXPECT_EQ(Error({{"prefetch_group", "8"}}, kOperators[1].spec),
            "unknown plan parameter: prefetch_group; accepted: group_layout, group_load_percent, local_groups, "
            "partition_bits, "
            "inline_group_bytes, hash, batch_size, batch_size_l2, prefetch, prefetch_update_dense, "
            "prefetch_update_open, prefetch_update_directory, states, prefetch_input_rows, huge_pages, passes, "
            "codegen_level, toggled_pass");
  EXPECT_EQ(Error({{"hash", "zero"}}, kOperators[2].spec),
            "unknown plan parameter: hash; accepted: sort_method, prefix_words, dictionary_rows, top_rows, batch_size, "
            "prefetch, prefetch_gather, "
            "prefetch_collision, huge_pages, "
            "passes, codegen_level, toggled_pass");
  for (const char* name : {"prefetch", "hash", "huge_pages", "partition_bits"})
    EXPECT_EQ(
        Error({{name, "1"}}, kOperators[3].spec),
        "unknown plan parameter: " + std::string(name) + "; accepted: batch_size, passes, codegen_level, toggled_pass");
  EXPECT_EQ(Error({{"prefix_words", "3"}}).rfind("unknown plan parameter: prefix_words; accepted: layout, ", 0), 0u);
}

TEST(Plan, ErrorsNameWhatIsAccepted) {
  EXPECT_EQ(Error({{"batch_size", "0"}}), "bad value of plan parameter batch_size: 0; accepted: 1 to 4096 rows");
  EXPECT_EQ(Error({{"hash", "crc"}}), "bad value of plan parameter hash: crc; accepted: mix64, zero");
  EXPECT_EQ(Error({{"batch", "1"}}),
            "unknown plan parameter: batch; accepted: layout, open_load_percent, partition_bits, inline_key_bytes, "
            "hash, batch_size, prefetch, "
            "prefetch_group, pipeline, prefetch_build_dense, prefetch_build_open, prefetch_build_unchained, "
            "prefetch_probe_dense, "
            "prefetch_probe_open, "
            "prefetch_probe_unchained, huge_pages, passes, codegen_level, "
            "toggled_pass");
}

TEST(Plan, ErrorsOfSortsNameWhatIsAccepted) {
  const auto error = [](const char* name, const char* value) { return Error({{name, value}}, kOperators[2].spec); };
  EXPECT_EQ(error("sort_method", "merge"),
            "bad value of plan parameter sort_method: merge; accepted: radix, comparison");
  EXPECT_EQ(error("prefix_words", "5"), "bad value of plan parameter prefix_words: 5; accepted: 1 to 4 words");
  EXPECT_EQ(error("top_rows", "1073741825"),
            "bad value of plan parameter top_rows: 1073741825; accepted: 0 to 1073741824 rows");
}

TEST(Plan, TheLastOfANameCounts) {
  EXPECT_EQ(Plan({{"batch_size", "7"}, {"hash", "zero"}, {"batch_size", "9"}})->batch_size, 9u);
}

TEST(Plan, AGroupIsNoLongerThanItsBatch) {
  EXPECT_EQ(Plan({{"batch_size", "7"}})->prefetch_group, 7u);
  EXPECT_EQ(Plan({{"batch_size", "7"}, {"prefetch_group", "4096"}})->prefetch_group, 7u);
  EXPECT_EQ(Plan({{"prefetch_group", "1"}})->prefetch_group, 1u);
}

TEST(Plan, TheRuntimeIsToldWhatThePlanSays) {
  const auto plan = Plan(
      {{"batch_size", "8"}, {"prefetch_group", "3"}, {"prefetch", "off"}, {"hash", "zero"}, {"huge_pages", "off"}});
  const auto descriptor = MakePlannedDescriptor(*plan);
  EXPECT_EQ(descriptor->get()->batch_rows, 8u);
  EXPECT_EQ(descriptor->get()->group_rows, 3u);
  EXPECT_FALSE(descriptor->get()->prefetches);
  EXPECT_TRUE(descriptor->get()->zero_hashes);
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
                          {"hash", "zero"},
                          {"huge_pages", "off"},
                          {"group_layout", "directory"},
                          {"group_load_percent", "33"},
                          {"local_groups", "7"},
                          {"partition_bits", "3"}},
                         kOperators[1].spec);
  const auto descriptor = MakePlannedGroups(*plan);
  ASSERT_TRUE(descriptor.ok()) << descriptor.status();
  EXPECT_EQ((*descriptor)->group()->batch_rows, 8u);
  EXPECT_FALSE((*descriptor)->group()->prefetches);
  EXPECT_TRUE((*descriptor)->group()->zero_hashes);
  const AggregateOptions options = MakeAggregateOptions(*plan);
  EXPECT_EQ(options.layout, GroupLayout::kDirectory);
  EXPECT_EQ(options.load_percent, 33u);
  EXPECT_EQ(options.local_groups, 7u);
  EXPECT_EQ(options.partition_bits, 3u);
  EXPECT_FALSE(options.huge_pages);
  EXPECT_EQ(MakeAggregateOptions(*Plan({{"group_layout", "dense"}}, kOperators[1].spec)).layout, GroupLayout::kDense);
  EXPECT_EQ(MakeAggregateOptions(*Plan({{"group_layout", "open"}}, kOperators[1].spec)).layout, GroupLayout::kOpen);
  EXPECT_EQ(MakeAggregateOptions(*Plan({}, kOperators[1].spec)).layout, GroupLayout::kAuto);
}

TEST(Plan, TheRuntimeIsToldWhatASortsPlanSays) {
  const char* const spec = kOperators[2].spec;
  const auto plan = Plan({{"batch_size", "8"},
                          {"sort_method", "comparison"},
                          {"prefix_words", "4"},
                          {"dictionary_rows", "9"},
                          {"top_rows", "0"},
                          {"huge_pages", "off"}},
                         spec);
  const auto descriptor = MakePlannedSort(*plan);
  EXPECT_EQ(descriptor->get()->batch_rows, 8u);
  EXPECT_EQ(descriptor->method(), SortMethod::kComparison);
  EXPECT_EQ(descriptor->spec(), plan->spec);
  const SortOptions options = MakeSortOptions(*plan);
  EXPECT_EQ(options.bucket_bytes, Machine{}.l2_bytes / 4);
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
    EXPECT_EQ(MakePlannedFilter(*Plan({{"batch_size", asked}}, kOperators[3].spec))->get()->batch_rows, rows) << asked;
}

TEST(Plan, ASortsDefaultsAreTheRuntimes) {
  const auto plan = Plan({}, kOperators[2].spec);
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

TEST(Plan, JsonHasEveryParameter) {
  for (const OperatorRow& op : kOperators) {
    const std::string json = PlanJson(*Plan({}, op.spec));
    for (const NumberRow& row : kNumbers) {
      const bool is_ours = IsIn(row.scope, op.scope);
      EXPECT_EQ(json.find("\"" + std::string(row.name) + "\":") != std::string::npos, is_ours)
          << row.name << " " << json;
    }
    for (const ChoiceRow& row : RowsOf(kChoices, op.scope))
      EXPECT_NE(json.find("\"" + std::string(row.name) + "\":\""), std::string::npos) << json;
    EXPECT_NE(json.find("\"l2_bytes\":1048576,\"l3_bytes\":33554432}"), std::string::npos) << json;
  }
}

TEST(Plan, TextThatIsNoPlanIsRefused) {
  const auto error = [](const char* text) { return std::string(ParsePlan(text).status().message()); };
  EXPECT_EQ(error(""), "bad plan: \"\"; accepted: plan SPEC, then NAME = VALUE lines");
  EXPECT_EQ(error("plan join.inner keys=i64\nbatch_size 7\n"),
            "bad line of a plan: batch_size 7; accepted: NAME = VALUE  # comment");
  EXPECT_EQ(error("plan join.inner keys=i64\nbatch_size = 0\n"),
            "bad value of plan parameter batch_size: 0; accepted: 1 to 4096 rows");
  EXPECT_TRUE(ParsePlan("plan join.inner keys=i64\n\n  # a remark\nbatch_size = 7  # rows\n").ok());
}

TEST(Plan, ASpecThatNoTextExpressesIsRefused) { EXPECT_FALSE(MakePlan(KernelSpec{}, Machine{}, {}).ok()); }

}  // namespace
}  // namespace quern
