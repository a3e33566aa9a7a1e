// SPDX-License-Identifier: Apache-2.0
// Aggregations of a host's own vectors: groups, keys of several types, states between two aggregations, shares and
// hints; and what aggregations alone refuse. (What they share with other jobs: contract_test.cc.)
#include <gtest/gtest.h>

#include "test/hosts/jobs.h"

namespace quern_test {
namespace {

constexpr const char* kSpec = "aggregate keys=i64 aggs=count_star,sum(i64),max(f64)";

// The same groups by every engine, in results of every size.
void ExpectGroups(const std::string& spec, const std::vector<Table>& tables, std::string_view kinds, Lines expected) {
  for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
    for (const uint64_t batch_rows : {0, 1, 2}) {
      SCOPED_TRACE(spec + ", engine " + std::to_string(static_cast<int>(engine)) + ", batch_rows " +
                   std::to_string(batch_rows));
      quern::Aggregate aggregate = Aggregated(spec, tables, engine);
      EXPECT_EQ(RowsOf(aggregate.Groups(BatchRows(batch_rows)), kinds), Ordered(expected));
    }
  }
}

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

TEST(Aggregates, TellWhatTheyHave) {
  const Items items;
  quern::Aggregate aggregate = New<quern::Aggregate>(kSpec);
  EXPECT_EQ(aggregate.Stats().num_rows, 0u);
  quern::Input rows = Take(aggregate.Rows());
  EXPECT_EQ(rows.NumGroups(), 0u);
  Done(rows.Append(items.table.batch()));
  EXPECT_EQ(rows.NumGroups(), 3u) << "so far";
  EXPECT_STREQ(aggregate.Stats().layout, "");
  Done(rows.Finish());
  EXPECT_EQ(rows.NumGroups(), 0u);
  Done(aggregate.Finalise());
  const quern_job_stats stats = aggregate.Stats();
  EXPECT_STRNE(stats.layout, "");
  EXPECT_EQ(stats.input_rows, 6u);
  EXPECT_EQ(stats.num_rows, 3u);
  EXPECT_GT(stats.table_bytes, 0u);
  EXPECT_GE(stats.peak_bytes, stats.table_bytes);
}

// ---- states ----

// A third aggregation of the states of these.
Lines OfStates(const std::string& spec, std::vector<quern::Aggregate> parts, size_t num_keys, std::string_view kinds,
               const std::vector<Table>& rows = {}, Engine engine = Engine::kJit) {
  quern::Aggregate all = New<quern::Aggregate>(spec, engine);
  quern::Input states = Take(all.States());
  uint64_t batch_rows = 0;
  for (quern::Aggregate& part : parts) MoveStates(part.GroupStates(BatchRows(batch_rows++)), num_keys, &states);
  Done(states.Finish());
  Feed(all.Rows(), rows);
  Done(all.Finalise());
  return RowsOf(all.Groups(), kinds);
}

std::vector<quern::Aggregate> Parts(const std::string& spec, const std::vector<Table>& tables,
                                    Engine engine = Engine::kJit) {
  std::vector<quern::Aggregate> parts;
  for (const Table& table : tables) parts.push_back(Aggregated(spec, {table}, engine));
  return parts;
}

TEST(States, OfTwoAggregationsMakeAThird) {
  const Items items;
  Table first = items.table, second = items.table;
  first.selection = {0, 1, 2};
  second.selection = {3, 4, 5};
  for (const Engine engine : {Engine::kJit, Engine::kGeneric})
    EXPECT_EQ(OfStates(kSpec, Parts(kSpec, {first, second}, engine), 1, "llld", {}, engine), items.groups);
  EXPECT_EQ(OfStates(kSpec, Parts(kSpec, {items.table}), 1, "llld", {items.table}),
            (Lines{"101|6|20|30", "102|4|18|20", "103|2|6|40"}))
      << "with rows";
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
  quern::Aggregate aggregate = Aggregated(spec, {table});
  const Lines once = RowsOf(aggregate.Groups(), "ldssdl");
  EXPECT_EQ(once, (Lines{"3|19|short|short,a text of more than twelve bytes,c,d,e,f|3|5"}));
  EXPECT_EQ(OfStates(spec, Parts(spec, {table}), 0, "ldssdl"), once);
}

TEST(States, OfDictionaryKeysHaveThemDecoded) {
  const StringVector<int32_t> regions({"ASIA", "a region of more than twelve bytes"});
  const quern_column values = regions.column();
  const std::vector<int32_t> index = {0, 1, 0, 1};
  const std::vector<uint8_t> valid = Bitmap({true, true, true, false});
  const Table table = {{WithValidity(DictionaryColumn(ColumnOf(index), values), valid)}, {}, 4};
  const std::string spec = "aggregate keys=dictionary(i32,utf8):nullable aggs=count_star";
  EXPECT_EQ(OfStates(spec, Parts(spec, {table}), 1, "sl", {table}),
            (Lines{"ASIA|4", "a region of more than twelve bytes|2", "null|2"}));
}

// Views come out behind one data buffer, and go in again.
TEST(States, OfKeysThatAreViews) {
  const ViewVector views({"short", "a view of more than twelve bytes", "another view of more than twelve bytes"});
  const Table table = {{views.column()}, {}, 3};
  const std::string spec = "aggregate keys=utf8_view aggs=count_star";
  EXPECT_EQ(OfStates(spec, Parts(spec, {table, table}), 1, "vl"),
            (Lines{"a view of more than twelve bytes|2", "another view of more than twelve bytes|2", "short|2"}));
}

TEST(States, ThatAreDamaged) {
  const Items items;
  quern::Aggregate aggregate = New<quern::Aggregate>("aggregate keys=i64 aggs=sum(i64)");
  quern::Input input = Take(aggregate.States());
  const StringVector<int32_t> states({"abc", "abc", "abc"});
  const Table damaged = {{ColumnOf(items.order)}, {states.column()}, 3};
  const std::string error = "saved state of sum(i64) is damaged: 3 bytes; accepted: bytes that this version wrote";
  EXPECT_EQ(input.Append(damaged.batch()).text(), error);
  EXPECT_EQ(input.Append(damaged.batch()).text(),
            "append after a failed append: rows are missing from the groups; accepted: a new aggregation; it failed "
            "with: " +
                error);
}

// ---- shares ----

// 1000 keys, of which each comes three times.
struct ManyKeys {
  explicit ManyKeys(int64_t step) {
    for (int64_t i = 0; i < 3000; ++i) key.push_back(i * step % 1000);
  }
  Table table() const { return {{ColumnOf(key)}, {}, key.size()}; }
  std::vector<int64_t> key;
};
constexpr const char* kCount = "aggregate keys=i64 aggs=count_star";

quern_output_options Share(uint32_t partition, uint32_t num_partitions, uint64_t batch_rows = 0) {
  quern_output_options options = BatchRows(batch_rows);
  options.partition = partition;
  options.num_partitions = num_partitions;
  return options;
}

TEST(Shares, CoverEachGroupOnce) {
  const ManyKeys keys(1);
  quern::Aggregate whole = Aggregated(kCount, {keys.table()}), divided = Aggregated(kCount, {keys.table()});
  Lines all;
  for (uint32_t partition = 0; partition < 7; ++partition) {
    const Lines some = RowsOf(divided.Groups(Share(partition, 7, 10)), "ll");
    EXPECT_GT(some.size(), 70u) << "a seventh of 1000 is 143";
    EXPECT_LT(some.size(), 280u);
    all.insert(all.end(), some.begin(), some.end());
  }
  EXPECT_EQ(Ordered(all), RowsOf(whole.Groups(), "ll"));
}

TEST(Shares, OfAKeyAreTheSameInEveryAggregation) {
  const ManyKeys keys(1), others(7);
  quern::Aggregate first = Aggregated(kCount, {keys.table()});
  quern::Aggregate second = Aggregated(kCount, {others.table(), others.table()}, Engine::kGeneric);
  for (uint32_t partition = 0; partition < 4; ++partition) {
    quern::Aggregate share = New<quern::Aggregate>(kCount);
    quern::Input states = Take(share.States());
    for (quern::Aggregate* from : {&first, &second}) MoveStates(from->GroupStates(Share(partition, 4)), 1, &states);
    Done(states.Finish());
    Done(share.Finalise());
    const Lines groups = RowsOf(share.Groups(), "ll");
    EXPECT_GT(groups.size(), 100u);
    for (const std::string& line : groups) EXPECT_EQ(line.substr(line.find('|')), "|9") << "3 and 2 times 3";
  }
}

TEST(Shares, ThatThereAreNot) {
  quern::Aggregate aggregate = Aggregated(kCount, {});
  EXPECT_EQ(aggregate.Groups(Share(4, 4)).status().text(), "partition out of range: 4; accepted: 0 to 3");
  EXPECT_EQ(aggregate.Groups(Share(1, 0)).status().text(), "partition out of range: 1; accepted: 0 to 0");
}

// ---- hints ----

TEST(Hints, ChangeNoResult) {
  const ManyKeys keys(1);
  quern::Aggregate without = Aggregated(kCount, {keys.table()});
  const Lines expected = RowsOf(without.Groups(), "ll");
  ASSERT_EQ(expected.size(), 1000u);
  const auto with = [&](uint64_t groups, int64_t min, int64_t max) {
    const quern_key_range range = {0, min, max};
    quern_job_options options = {};
    options.expected_groups = groups;
    options.key_ranges = &range;
    options.num_key_ranges = 1;
    quern::Aggregate aggregate = New<quern::Aggregate>(kCount, Engine::kJit, options);
    Feed(aggregate.Rows(), {keys.table()});
    Done(aggregate.Finalise());
    return RowsOf(aggregate.Groups(), "ll");
  };
  EXPECT_EQ(with(1000, 0, 999), expected);
  EXPECT_EQ(with(1, 0, 10), expected) << "wrong ones";
  EXPECT_EQ(with(1 << 20, INT64_MIN, INT64_MAX), expected);
  EXPECT_EQ(with(0, 999, 0), expected) << "and none at all";
}

TEST(Hints, OfKeysThatThereAreNot) {
  const quern_key_range range = {1, 0, 9};
  quern_job_options options = {};
  options.num_key_ranges = 1;
  EXPECT_EQ(quern::Aggregate::Create(KernelOf(kCount), options).status().text(),
            "null argument: key_ranges; accepted: a pointer");
  options.key_ranges = &range;
  EXPECT_EQ(quern::Aggregate::Create(KernelOf(kCount), options).status().text(),
            "key number out of range: 1; accepted: 0 to 0");
  EXPECT_EQ(quern::Aggregate::Create(KernelOf("aggregate aggs=count_star"), options).status().text(),
            "key number out of range: 1; accepted: none, since the spec has no keys");
}

// ---- data without a result ----

// Where it shows, while adding or reading, is the runtime's choice.
TEST(Aggregates, RefuseSumsThatDoNotFit) {
  const std::vector<int64_t> key = {7, 7}, large = {INT64_MAX, 1};
  const Table table = {{ColumnOf(key)}, {ColumnOf(large)}, 2};
  for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
    quern::Aggregate aggregate = New<quern::Aggregate>("aggregate keys=i64 aggs=sum(i64)", engine);
    quern::Input rows = Take(aggregate.Rows());
    quern::Status status = rows.Append(table.batch());
    if (status.ok()) status = rows.Finish();
    if (status.ok()) status = aggregate.Finalise();
    if (status.ok()) status = Take(aggregate.Groups()).Next().status();
    EXPECT_EQ(status.code(), QUERN_OUT_OF_RANGE);
    EXPECT_EQ(status.text(), "sum out of range: sum(i64); accepted: sums within 64 bits, or sum128");
  }
}

}  // namespace
}  // namespace quern_test
