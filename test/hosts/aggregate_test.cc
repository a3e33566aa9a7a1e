// SPDX-License-Identifier: Apache-2.0
// Aggregations of a host's own vectors: groups, keys of several types, states between two aggregations, shares, hints
// and handles.
#include <gtest/gtest.h>

#include <cstring>

#include "test/hosts/aggregate_tables.h"

namespace quern_test {
namespace {

constexpr const char* kSpec = "aggregate keys=i64 aggs=count_star,sum(i64),max(f64)";

// Six items of three orders.
struct Items {
  const std::vector<int64_t> order = {101, 102, 101, 103, 102, 101}, quantity = {5, 7, 1, 3, 2, 4};
  const std::vector<double> price = {10, 20, 30, 40, 5, 12};
  const Table table = {{ColumnOf(order)}, {ColumnOf(quantity), ColumnOf(price)}, 6};
  const Lines groups = {"101|3|10|30", "102|2|9|20", "103|1|3|40"};
};

TEST(Aggregates, GroupRowsByAKey) {
  const Items items;
  ExpectGroups(kSpec, {items.table}, "llld", items.groups);
  ExpectGroups(kSpec, {items.table, items.table}, "llld", {"101|6|20|30", "102|4|18|20", "103|2|6|40"});
  Table selected = items.table;
  selected.selection = {5, 3, 0};
  ExpectGroups(kSpec, {selected}, "llld", {"101|2|9|12", "103|1|3|40"});
}

TEST(Aggregates, TakeNullsOfAKeyAsOneGroup) {
  const StringVector<int32_t> region(
      {"ASIA", "", "a region of more than twelve bytes", "", "ASIA  ", "a region of more than twelve bytes"});
  const std::vector<int64_t> value = {1, 2, 4, 8, 16, 32};
  const std::vector<uint8_t> has_region = Bitmap({true, false, true, false, true, true}, 3);
  const Table table = {{WithValidity(region.column(), has_region, 3)}, {ColumnOf(value)}, 6};
  ExpectGroups("aggregate keys=utf8:nullable aggs=sum(i64)", {table}, "sl",
               {"ASIA|1", "ASIA  |16", "a region of more than twelve bytes|36", "null|10"});
  ExpectGroups("aggregate keys=utf8(utf8mb4_bin):nullable aggs=sum(i64)", {table}, "sl",
               {"ASIA|17", "a region of more than twelve bytes|36", "null|10"});
}

TEST(Aggregates, DecodeKeysOfDictionaries) {
  const StringVector<int32_t> first({"ASIA", "EUROPE"}), second({"EUROPE", "AFRICA", "ASIA"});
  const quern_column first_values = first.column(), second_values = second.column();
  const std::vector<uint8_t> first_index = {0, 1, 0}, second_index = {0, 1, 2};
  const std::vector<int64_t> value = {1, 2, 4};
  const Table one = {{DictionaryColumn(ColumnOf(first_index), first_values)}, {ColumnOf(value)}, 3};
  const Table two = {{DictionaryColumn(ColumnOf(second_index), second_values)}, {ColumnOf(value)}, 3};
  ExpectGroups("aggregate keys=dictionary(u8,utf8) aggs=sum(i64)", {one, two}, "sl",
               {"AFRICA|2", "ASIA|9", "EUROPE|3"});
}

TEST(Aggregates, WithoutKeysAreOneGroup) {
  const Items items;
  const Table table = {{}, {ColumnOf(items.quantity), ColumnOf(items.price)}, 6}, nothing = {{}, {{}, {}}, 0};
  const std::string spec = "aggregate aggs=count_star,sum(i64),max(f64)";
  ExpectGroups(spec, {table}, "lld", {"6|22|40"});
  ExpectGroups(spec, {nothing}, "lld", {"0|null|null"});
  ExpectGroups(spec, {}, "lld", {"0|null|null"});
}

TEST(Aggregates, WithoutFunctionsAreTheDistinctKeys) {
  const Items items;
  ExpectGroups("aggregate keys=i64", {{{ColumnOf(items.order)}, {}, 6}}, "l", {"101", "102", "103"});
  ExpectGroups("aggregate keys=i64", {}, "l", {});
}

TEST(Aggregates, SkipNullsAndWhatAFilterLeavesOut) {
  const Items items;
  const std::vector<uint8_t> valid = Bitmap({true, true, false, true, false, true}, 2),
                             passes = Bitmap({true, false, true, true, true, false});
  const Table table = {{ColumnOf(items.order)},
                       {WithValidity(ColumnOf(items.quantity), valid, 2), ColumnOf(items.quantity), ColumnOf(passes)},
                       6};
  ExpectGroups("aggregate keys=i64 aggs=sum(i64:nullable),sum(i64):filter,count_star", {table}, "llll",
               {"101|9|6|3", "102|7|2|2", "103|3|3|1"});
}

TEST(Aggregates, GoByRowIds) {
  const Items items;
  const StringVector<int32_t> words({"a", "b", "c", "d", "e", "f"});
  Table early = {{ColumnOf(items.order)}, {words.column(), ColumnOf(items.quantity)}, 6}, late = early;
  late.first_row_id = 100;
  late.selection = {3, 4};
  ExpectGroups("aggregate keys=i64 aggs=string_agg(utf8,x'2b'),last(i64)", {late, early}, "lsl",
               {"101|a+c+f|4", "102|b+e+e|2", "103|d+d|3"});
}

TEST(Aggregates, KeepNothingOfABatch) {
  std::vector<int64_t> value = {1, 2, 4};
  StringVector<int32_t> key({"a key of more than twelve bytes", "b", "a key of more than twelve bytes"});
  quern::Aggregate aggregate = NewAggregate("aggregate keys=utf8 aggs=sum(i64),min(utf8)");
  ASSERT_EQ(aggregate.Append(Table{{key.column()}, {ColumnOf(value), key.column()}, 3}.batch()).text(), "");
  std::fill(key.bytes.begin(), key.bytes.end(), 'x');
  std::fill(value.begin(), value.end(), 77);
  ASSERT_EQ(aggregate.Finalise().text(), "");
  EXPECT_EQ(GroupsOf(aggregate, "sls"),
            (Lines{"a key of more than twelve bytes|5|a key of more than twelve bytes", "b|2|b"}));
}

TEST(Aggregates, GiveNoGroupsAfterTheLast) {
  const Items items;
  const quern::Aggregate aggregate = Aggregated(kSpec, {items.table});
  auto groups = quern::Groups::Create(aggregate);
  EXPECT_EQ(ScanUnmatched(&*groups, "llld"), items.groups);
  auto rows = groups->Next();
  ASSERT_TRUE(rows.ok()) << rows.status().text();
  EXPECT_EQ(rows->result.num_rows, 0u);
  EXPECT_EQ(rows->result.num_columns, 4u);
  EXPECT_FALSE(rows->more);
}

TEST(Aggregates, TellWhatTheyHave) {
  const Items items;
  quern::Aggregate aggregate = NewAggregate(kSpec);
  EXPECT_EQ(aggregate.Stats().num_groups, 0u);
  ASSERT_EQ(aggregate.Append(items.table.batch()).text(), "");
  EXPECT_EQ(aggregate.Layout(), "");
  EXPECT_EQ(aggregate.Stats().num_groups, 3u) << "so far";
  ASSERT_EQ(aggregate.Finalise().text(), "");
  EXPECT_NE(aggregate.Layout(), "");
  const quern_aggregate_stats stats = aggregate.Stats();
  EXPECT_EQ(stats.input_rows, 6u);
  EXPECT_EQ(stats.num_groups, 3u);
  EXPECT_GT(stats.table_bytes, 0u);
  EXPECT_GE(stats.peak_bytes, stats.table_bytes);
  EXPECT_EQ(quern_aggregate_layout(nullptr), nullptr);
}

TEST(AggregateKernels, SayWhatTheyAre) {
  auto kernel = quern::Kernel::Compile("aggregate  aggs=count_star keys=i64", quern::Engine::kGeneric);
  ASSERT_TRUE(kernel.ok()) << kernel.status().text();
  EXPECT_EQ(kernel->Text("spec"), "aggregate keys=i64 aggs=count_star");
  EXPECT_EQ(kernel->Text("engine"), "generic");
  EXPECT_EQ(kernel->Text("plan").substr(0, 39), "plan aggregate keys=i64 aggs=count_star");
  EXPECT_NE(kernel->Text("layout").find("count_star"), std::string_view::npos);
}

// ---- states ----

TEST(States, OfTwoAggregationsMakeAThird) {
  const Items items;
  Table first = items.table, second = items.table;
  first.selection = {0, 1, 2};
  second.selection = {3, 4, 5};
  for (const quern::Engine engine : {quern::Engine::kJit, quern::Engine::kGeneric}) {
    quern::Aggregate both = NewAggregate(kSpec, engine);
    MoveStates(Aggregated(kSpec, {first}, engine), 1, &both);
    MoveStates(Aggregated(kSpec, {second}, engine), 1, &both, {.batch_rows = 1});
    ASSERT_EQ(both.Finalise().text(), "");
    EXPECT_EQ(GroupsOf(both, "llld"), items.groups);
  }
}

TEST(States, MixWithRows) {
  const Items items;
  quern::Aggregate both = NewAggregate(kSpec);
  ASSERT_EQ(both.Append(items.table.batch()).text(), "");
  MoveStates(Aggregated(kSpec, {items.table}), 1, &both);
  ASSERT_EQ(both.Finalise().text(), "");
  EXPECT_EQ(GroupsOf(both, "llld"), (Lines{"101|6|20|30", "102|4|18|20", "103|2|6|40"}));
}

TEST(States, OfEveryWayToKeepThem) {
  const Items items;
  const StringVector<int32_t> names({"short", "a text of more than twelve bytes", "c", "d", "e", "f"});
  const Table table = {{},
                       {ColumnOf(items.order), ColumnOf(items.price), names.column(), names.column(),
                        ColumnOf(items.quantity), ColumnOf(items.quantity)},
                       6};
  const std::string spec =
      "aggregate aggs=count_distinct(i64),avg(f64),max(utf8),string_agg(utf8,x'2c'),median(i64),first(i64)";
  const Lines once = GroupsOf(Aggregated(spec, {table}), "ldssdl");
  EXPECT_EQ(once, (Lines{"3|19|short|short,a text of more than twelve bytes,c,d,e,f|3|5"}));
  quern::Aggregate again = NewAggregate(spec);
  MoveStates(Aggregated(spec, {table}), 0, &again);
  ASSERT_EQ(again.Finalise().text(), "");
  EXPECT_EQ(GroupsOf(again, "ldssdl"), once);
}

TEST(States, OfDictionaryKeysHaveThemDecoded) {
  const StringVector<int32_t> regions({"ASIA", "a region of more than twelve bytes"});
  const quern_column values = regions.column();
  const std::vector<int32_t> index = {0, 1, 0, 1};
  const std::vector<uint8_t> valid = Bitmap({true, true, true, false});
  const Table table = {{WithValidity(DictionaryColumn(ColumnOf(index), values), valid)}, {}, 4};
  const std::string spec = "aggregate keys=dictionary(i32,utf8):nullable aggs=count_star";
  quern::Aggregate both = NewAggregate(spec);
  ASSERT_EQ(both.Append(table.batch()).text(), "");
  MoveStates(Aggregated(spec, {table}), 1, &both);
  ASSERT_EQ(both.Finalise().text(), "");
  EXPECT_EQ(GroupsOf(both, "sl"), (Lines{"ASIA|4", "a region of more than twelve bytes|2", "null|2"}));
}

// ---- shares ----

// 1000 keys, of which each comes often enough.
struct ManyKeys {
  explicit ManyKeys(int64_t step) {
    for (int64_t i = 0; i < 3000; ++i) key.push_back(i * step % 1000);
  }
  Table table() const { return {{ColumnOf(key)}, {}, key.size()}; }
  std::vector<int64_t> key;
};

TEST(Shares, CoverEachGroupOnce) {
  const ManyKeys keys(1);
  const quern::Aggregate whole = Aggregated("aggregate keys=i64 aggs=count_star", {keys.table()});
  const quern::Aggregate aggregate = Aggregated("aggregate keys=i64 aggs=count_star", {keys.table()});
  Lines all;
  for (uint32_t partition = 0; partition < 7; ++partition) {
    const Lines some = GroupsOf(aggregate, "ll", {.partition = partition, .num_partitions = 7, .batch_rows = 10});
    EXPECT_GT(some.size(), 70u) << "a seventh of 1000 is 143";
    EXPECT_LT(some.size(), 280u);
    all.insert(all.end(), some.begin(), some.end());
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, GroupsOf(whole, "ll"));
}

TEST(Shares, OfAKeyAreTheSameInEveryAggregation) {
  const ManyKeys keys(1), others(7);
  const quern::Aggregate first = Aggregated("aggregate keys=i64 aggs=count_star", {keys.table()});
  const quern::Aggregate second =
      Aggregated("aggregate keys=i64 aggs=count_star", {others.table(), others.table()}, quern::Engine::kGeneric);
  for (uint32_t partition = 0; partition < 4; ++partition) {
    quern::Aggregate share = NewAggregate("aggregate keys=i64 aggs=count_star");
    MoveStates(first, 1, &share, {.partition = partition, .num_partitions = 4});
    MoveStates(second, 1, &share, {.partition = partition, .num_partitions = 4});
    ASSERT_EQ(share.Finalise().text(), "");
    for (const std::string& line : GroupsOf(share, "ll"))
      EXPECT_EQ(line.substr(line.find('|')), "|9") << "3 and 2 times 3";
  }
}

// ---- hints ----

TEST(Hints, ChangeNoResult) {
  const ManyKeys keys(1);
  const Lines expected = GroupsOf(Aggregated("aggregate keys=i64 aggs=count_star", {keys.table()}), "ll");
  ASSERT_EQ(expected.size(), 1000u);
  const auto with = [&](uint64_t groups, int64_t min, int64_t max) {
    quern::Aggregate aggregate = NewAggregate("aggregate keys=i64 aggs=count_star");
    EXPECT_EQ(aggregate.HintGroups(groups).text(), "");
    EXPECT_EQ(aggregate.HintRange(0, min, max).text(), "");
    EXPECT_EQ(aggregate.Append(keys.table().batch()).text(), "");
    EXPECT_EQ(aggregate.Finalise().text(), "");
    return GroupsOf(aggregate, "ll");
  };
  EXPECT_EQ(with(1000, 0, 999), expected);
  EXPECT_EQ(with(1, 0, 10), expected) << "wrong ones";
  EXPECT_EQ(with(1 << 20, INT64_MIN, INT64_MAX), expected);
  EXPECT_EQ(with(0, 999, 0), expected) << "and none at all";
}

// ---- handles ----

TEST(AggregateHandles, MayGoInAnyOrder) {
  const Items items;
  const quern_batch batch = items.table.batch();
  quern_kernel* kernel = nullptr;
  quern_aggregate* aggregate = nullptr;
  ASSERT_EQ(quern_compile(kSpec, QUERN_ENGINE_AUTO, "", &kernel, nullptr), QUERN_OK);
  ASSERT_EQ(quern_aggregate_create(kernel, 0, &aggregate, nullptr), QUERN_OK);
  quern_kernel_destroy(kernel);
  quern_cache_clear();  // now only the aggregation keeps the code
  quern_aggregate_appender* appender = nullptr;
  ASSERT_EQ(quern_aggregate_appender_create(aggregate, &appender, nullptr), QUERN_OK);
  ASSERT_EQ(quern_aggregate_appender_append(appender, &batch, nullptr), QUERN_OK);
  ASSERT_EQ(quern_aggregate_appender_finish(appender, nullptr), QUERN_OK);
  ASSERT_EQ(quern_aggregate_finalise(aggregate, nullptr), QUERN_OK);
  quern_groups *first = nullptr, *second = nullptr;
  ASSERT_EQ(quern_groups_create(aggregate, QUERN_GROUP_RESULTS, 2, &first, nullptr), QUERN_OK);
  ASSERT_EQ(quern_groups_create(aggregate, QUERN_GROUP_RESULTS, 2, &second, nullptr), QUERN_OK);
  quern_aggregate_destroy(aggregate);
  quern_groups_destroy(first);
  quern_aggregate_appender_destroy(appender);
  Lines lines;
  for (bool more = true; more;) {
    quern_result result;
    ASSERT_EQ(quern_groups_next(second, &result, &more, nullptr), QUERN_OK);
    AddLines(result, "llld", &lines);
  }
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(lines, items.groups);
  quern_groups_destroy(second);
}

TEST(AggregateHandles, ThatAreNullAreNothing) {
  quern_aggregate_destroy(nullptr);
  quern_aggregate_appender_destroy(nullptr);
  quern_groups_destroy(nullptr);
  quern_aggregate_stats stats;
  std::memset(&stats, 0xff, sizeof(stats));
  quern_aggregate_get_stats(nullptr, &stats);
  EXPECT_EQ(stats.input_rows, 0u);
  quern_aggregate_get_stats(nullptr, nullptr);
}

TEST(CppWrapper, MovesTheHandlesOfAggregations) {
  quern::Aggregate aggregate = NewAggregate(kSpec);
  quern::Aggregate moved = std::move(aggregate);
  EXPECT_EQ(moved.Layout(), "");
  static_assert(!std::is_copy_constructible_v<quern::Aggregate> &&
                !std::is_copy_constructible_v<quern::AggregateAppender> &&
                !std::is_copy_constructible_v<quern::Groups>);
}

}  // namespace
}  // namespace quern_test
