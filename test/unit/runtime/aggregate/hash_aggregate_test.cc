// SPDX-License-Identifier: Apache-2.0
// The stages of an aggregation in the generic kernel over columns in memory: their order, inputs without rows, filters,
// selections, runs, row ids, dictionaries, saved states, shares of the groups, and memory limits at every point.
#include "runtime/aggregate/hash_aggregate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "test/unit/runtime/aggregate/group_rows.h"
#include "test/unit/seed.h"

namespace quern {
namespace {

using test::Aggregation;
using test::BoolColumn;
using test::DictionaryColumn;
using test::GroupsOf;
using test::Lines;
using test::Message;
using test::NumberColumn;
using test::Rows;
using test::StringColumn;
using test::WithNulls;

constexpr const char* kSums = "aggregate keys=i64 aggs=count_star,sum(i64)";

BatchView Pairs(const std::vector<int64_t>& keys, const std::vector<int64_t>& values) {
  return Rows(keys.size(), {NumberColumn(keys)}, {NumberColumn(values)});
}

// ---- order of the calls ----

TEST(HashAggregate, StepsOutOfOrderAreRefused) {
  auto aggregate = Aggregation(kSums);
  OutputBatch out(AggregateOutputTypes(aggregate->descriptor().spec()), 8, nullptr);
  GroupReader early(aggregate);
  EXPECT_EQ(Message(early.Next(&out).status()),
            "groups before finalise: they are not complete; accepted: finalise first");
  ASSERT_EQ(aggregate->Append(Pairs({1, 2}, {3, 4})), absl::OkStatus());
  Appender late(aggregate);
  ASSERT_EQ(aggregate->Finalise(), absl::OkStatus());
  const std::string after = "append after finalise: the groups are complete; accepted: a new aggregation";
  EXPECT_EQ(Message(aggregate->Append(Pairs({1}, {3}))), after);
  EXPECT_EQ(Message(aggregate->Append(Pairs({1}, {3}), RowKind::kStates)), after);
  EXPECT_EQ(Message(late.Append(Pairs({1}, {3}))), after);
  EXPECT_EQ(Message(late.Finish()), after);
  EXPECT_EQ(aggregate->Finalise(), absl::OkStatus());
  EXPECT_EQ(GroupsOf(aggregate), (Lines{"1|1|3", "2|1|4"}));
}

TEST(HashAggregate, AnAppenderIsDoneWhenItHasHandedItsGroupsOver) {
  auto aggregate = Aggregation(kSums);
  Appender appender(aggregate);
  ASSERT_EQ(appender.Append(Pairs({1}, {3})), absl::OkStatus());
  ASSERT_EQ(appender.Finish(), absl::OkStatus());
  EXPECT_EQ(Message(appender.Append(Pairs({1}, {3}))),
            "append after finish: the rows were handed over; accepted: a new appender");
  EXPECT_EQ(Message(appender.Append(Pairs({1}, {3}), RowKind::kStates)),
            "append after finish: the rows were handed over; accepted: a new appender");
  EXPECT_EQ(Message(appender.Finish()), "finish called twice: the rows were handed over; accepted: once");
}

TEST(HashAggregate, BatchesOfOtherColumnsAreRefused) {
  auto aggregate = Aggregation(kSums);
  BatchView batch = Pairs({1}, {2});
  batch.payload.clear();
  EXPECT_EQ(Message(aggregate->Append(batch)),
            "batch without the spec's columns: 1 keys, 0 aggregate columns; accepted: 1 and 1");
  EXPECT_EQ(Message(aggregate->Append(Pairs({1}, {2}), RowKind::kStates)),
            "batch without the spec's columns: 1 keys, 1 aggregate columns; accepted: 1 and 2");
  batch.num_rows = kNullRow;
  EXPECT_EQ(Message(aggregate->Append(batch)), "batch too large: 4294967295 rows; accepted: below 4294967295");
  ASSERT_EQ(aggregate->Append(Pairs({1}, {2})), absl::OkStatus());
  ASSERT_EQ(aggregate->Finalise(), absl::OkStatus());
  OutputBatch other({ColumnType{}}, 8, nullptr), no_rows(std::vector<ColumnType>(3), 0, nullptr);
  GroupReader reader(aggregate);
  EXPECT_EQ(Message(reader.Next(&other).status()), "output batch of other columns: 1; accepted: 3");
  EXPECT_EQ(Message(reader.Next(&no_rows).status()), "output batch too small: 0 rows; accepted: 1 to 2147483647");
  EXPECT_EQ(GroupsOf(aggregate), (Lines{"1|1|2"}));
}

TEST(HashAggregate, AfterAFailedAppendItRefusesToGoOn) {
  auto aggregate = Aggregation(kSums);
  const std::string error = "sum out of range: sum(i64); accepted: sums within 64 bits, or sum128";
  const std::string text =
      " after a failed append: rows are missing from the groups; accepted: a new aggregation; it failed with: " + error;
  EXPECT_EQ(Message(aggregate->Append(Pairs({1, 1}, {INT64_MAX, 1}))), error);
  EXPECT_EQ(Message(aggregate->Append(Pairs({1}, {1}))), "append" + text);
  EXPECT_EQ(Message(aggregate->Finalise()), "finalise" + text);
  EXPECT_EQ(Message(aggregate->Finalise()), "finalise" + text);
}

// ---- no rows ----

TEST(HashAggregate, WithoutRowsThereAreNoGroups) {
  EXPECT_EQ(GroupsOf(kSums, {}), Lines());
  EXPECT_EQ(GroupsOf(kSums, {BatchView(), Pairs({}, {})}), Lines());
  EXPECT_EQ(GroupsOf("aggregate keys=utf8", {}), Lines());
}

TEST(HashAggregate, WithoutKeysThereIsOneGroupAnyway) {
  const char* spec =
      "aggregate aggs=count_star,count(i64),sum(i64),avg(f64),min(utf8),first(i64),var_pop(f64),count_distinct(i64)";
  EXPECT_EQ(GroupsOf(spec, {}), (Lines{"0|0|null|null|null|null|null|0"}));
  EXPECT_EQ(GroupsOf(spec, {BatchView()}), (Lines{"0|0|null|null|null|null|null|0"}));
}

TEST(HashAggregate, WithoutOutputColumnsItCounts) {
  auto aggregate = Aggregation("aggregate keys=i64");
  ASSERT_EQ(aggregate->Append(Pairs({1, 2, 2, 100000, 3}, {0, 0, 0, 0, 0})), absl::OkStatus());
  ASSERT_EQ(aggregate->Finalise(), absl::OkStatus());
  OutputBatch out({}, 0, nullptr);
  GroupReader reader(aggregate);
  const auto more = reader.Next(&out);
  ASSERT_TRUE(more.ok()) << more.status();
  EXPECT_FALSE(*more);
  EXPECT_EQ(out.num_rows(), 4u);
  EXPECT_EQ(aggregate->stats().num_groups, 4u);
  EXPECT_EQ(aggregate->stats().input_rows, 5u);
}

// ---- which rows take part ----

TEST(HashAggregate, FiltersAndNullsAreLeftOut) {
  const auto keys = NumberColumn<int64_t>({1, 1, 1, 2, 2});
  const auto values = WithNulls(NumberColumn<int64_t>({10, 20, 40, 5, 6}), {true, false, true, false, true});
  const auto filter = WithNulls(BoolColumn({true, true, false, true, true}), {true, true, true, true, false});
  EXPECT_EQ(
      GroupsOf(
          "aggregate keys=i64 aggs=sum(i64:nullable):filter,count_star:filter,count(i64:nullable),max(i64:nullable)",
          {Rows(5, {keys}, {values, filter, filter, values, values})}),
      (Lines{"1|10|2|2|40", "2|null|1|1|6"}));
}

TEST(HashAggregate, OnlySelectedRowsTakePart) {
  const std::vector<uint32_t> selection = {4, 2, 2, 0};
  for (const char* key : {"i64", "dictionary(u8,utf8)"}) {
    BatchView batch = Pairs({1, 9, 2, 9, 1}, {10, 20, 40, 80, 160});
    const auto words = DictionaryColumn({0, 77, 1, 77, 0}, StringColumn(kVar32, {"1", "2"}));
    if (std::string(key) != "i64") batch.keys[0] = words->column;
    batch.selection = selection.data();
    batch.num_rows = selection.size();
    EXPECT_EQ(GroupsOf(std::string("aggregate keys=") + key + " aggs=count_star,sum(i64)", {batch}),
              (Lines{"1|2|170", "2|2|80"}))
        << key;
  }
}

// Sorted input is processed in runs, with the same results.
TEST(HashAggregate, RunsGiveWhatRowsGive) {
  const char* spec =
      "aggregate keys=i64 "
      "aggs=count_star,sum(i64:nullable),avg(i32),min(f64),max(i64:nullable),first(i64),bit_xor(i64),corr(f64,f64)";
  std::vector<int64_t> keys, values;
  std::vector<int32_t> small;
  std::vector<double> numbers;
  std::vector<bool> valid;
  for (int64_t i = 0; i < 3000; ++i) {
    keys.push_back(i / 37);
    values.push_back(i * 7919 % 1000 - 500);
    small.push_back(static_cast<int32_t>(values.back()));
    numbers.push_back(static_cast<double>(values.back()) / 8);
    valid.push_back(i % 5 != 0);
  }
  std::vector<uint32_t> order(keys.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto v = NumberColumn(values), n = NumberColumn(numbers);
  const auto nulls = WithNulls(v, valid);
  BatchView batch = Rows(3000, {NumberColumn(keys)}, {nulls, NumberColumn(small), n, nulls, v, v, n, n});
  const Lines sorted = GroupsOf(spec, {batch});
  EXPECT_EQ(sorted.size(), 82u);
  // One row of each group in turn: no runs. Update functions of f64 see the rows of a group in the same order as
  // before.
  std::sort(order.begin(), order.end(),
            [](uint32_t a, uint32_t b) { return std::pair(a % 37, a) < std::pair(b % 37, b); });
  batch.selection = order.data();
  EXPECT_EQ(GroupsOf(spec, {batch}), sorted);
}

// Rows of few groups are collected into runs, but not in blocks of 7 rows. The sums of these floats depend on their
// order.
TEST(HashAggregate, FewGroupsGiveWhatRowsGive) {
  const char* spec =
      " aggs=count_star,sum(f64):filter,avg(f64),var_pop(f64:nullable),first(i64),last(i64),any(i64),sum(dictionary(u8,"
      "f64)),"
      "string_agg(utf8,x'2c')";
  auto random = test::PrintedRandom();
  constexpr uint32_t kRows = 5000;
  std::vector<std::string> keys, texts;
  std::vector<int16_t> short_keys;
  std::vector<double> numbers;
  std::vector<int64_t> ids;
  std::vector<uint8_t> indices;
  std::vector<bool> valid, filter;
  std::vector<uint32_t> picked;
  for (uint32_t i = 0; i < kRows; ++i) {
    short_keys.push_back(static_cast<int16_t>(random() % 5 * 7000));
    keys.push_back(std::string(1, static_cast<char>('a' + short_keys.back() % 26)));
    numbers.push_back(std::ldexp(static_cast<double>(random() % 1000), static_cast<int>(random() % 100)));
    ids.push_back(i);
    indices.push_back(static_cast<uint8_t>(random() % 3));
    texts.push_back(std::to_string(i));
    valid.push_back(random() % 3 != 0);
    filter.push_back(random() % 2 != 0);
    if (random() % 8 != 0) picked.push_back(i);
  }
  const auto n = NumberColumn(numbers), r = NumberColumn(ids);
  const std::vector<test::ColumnPtr> payload = {n,
                                                BoolColumn(filter),
                                                n,
                                                WithNulls(n, valid),
                                                r,
                                                r,
                                                r,
                                                DictionaryColumn(indices, NumberColumn<double>({0.1, 1e30, -7})),
                                                StringColumn(kVar32, texts)};
  for (const bool has_texts : {false, true}) {
    BatchView batch = Rows(kRows, {has_texts ? StringColumn(kVar32, keys) : NumberColumn(short_keys)}, payload);
    const std::string text = std::string("aggregate keys=") + (has_texts ? "utf8" : "i16") + spec;
    for (const bool is_picked : {false, true}) {
      if (is_picked) batch.selection = picked.data();
      if (is_picked) batch.num_rows = picked.size();
      const Lines expected = GroupsOf(text, {batch}, {}, {.batch_rows = 7});
      EXPECT_EQ(expected.size(), 5u);
      EXPECT_EQ(GroupsOf(text, {batch}), expected);
    }
  }
}

TEST(HashAggregate, BatchesOfAnySizeGiveTheSame) {
  std::vector<int64_t> keys, values;
  for (int64_t i = 0; i < 10000; ++i) {
    keys.push_back(i * i % 1009 * 1000003);
    values.push_back(i);
  }
  const Lines expected = GroupsOf(kSums, {Pairs(keys, values)});
  for (const uint32_t batch_rows : {1u, 7u, 4096u}) {
    for (const GroupLayout layout : {GroupLayout::kAuto, GroupLayout::kOpen, GroupLayout::kDirectory}) {
      AggregateOptions options;
      options.layout = layout;
      EXPECT_EQ(GroupsOf(kSums, {Pairs(keys, values)}, options, {.batch_rows = batch_rows}), expected) << batch_rows;
    }
  }
}

TEST(HashAggregate, FirstAndLastGoByRowIds) {
  const char* spec = "aggregate aggs=first(i64),last(i64),first(decimal128),last(utf8),string_agg(utf8,x'2c')";
  const auto batch = [](int64_t a, int64_t b, uint64_t first_row_id) {
    const auto wide = NumberColumn<__int128>({a, b});
    const auto text = StringColumn(kVar32, {std::to_string(a), std::to_string(b)});
    const auto number = NumberColumn<int64_t>({a, b});
    BatchView rows = Rows(2, {}, {number, number, wide, text, text});
    rows.first_row_id = first_row_id;
    return rows;
  };
  EXPECT_EQ(GroupsOf(spec, {batch(1, 2, kCountedRowIds), batch(3, 4, kCountedRowIds)}), (Lines{"1|4|1|4|1,2,3,4"}));
  EXPECT_EQ(GroupsOf(spec, {batch(1, 2, 500), batch(3, 4, 0)}), (Lines{"3|2|3|2|3,4,1,2"}));
}

// ---- keys ----

TEST(HashAggregate, KeysOfEveryKindComeOutAsTheyWentIn) {
  const auto one_column = [](const char* key, const test::ColumnPtr& column, uint32_t n) {
    return GroupsOf(std::string("aggregate keys=") + key + " aggs=count_star", {Rows(n, {column})});
  };
  EXPECT_EQ(one_column("bool", BoolColumn({true, false, true}), 3), (Lines{"false|1", "true|2"}));
  EXPECT_EQ(one_column("i8", NumberColumn<int8_t>({-1, 127, -1}), 3), (Lines{"-1|2", "127|1"}));
  EXPECT_EQ(one_column("u64", NumberColumn<uint64_t>({UINT64_MAX, 0}), 2), (Lines{"0|1", "18446744073709551615|1"}));
  EXPECT_EQ(one_column("f32", NumberColumn<float>({-0.0f, 0.0f, 1.5f}), 3), (Lines{"0|2", "1.5|1"}));
  EXPECT_EQ(one_column("decimal128", NumberColumn<__int128>({-1, -1, 7}), 3), (Lines{"-1|2", "7|1"}));
  EXPECT_EQ(one_column("i16:nullable", WithNulls(NumberColumn<int16_t>({0, 0, -3}), {true, false, true}), 3),
            (Lines{"-3|1", "0|1", "null|1"}));
  EXPECT_EQ(one_column("utf8_view", StringColumn(kView, {"a", "a string of more than twelve", "a"}), 3),
            (Lines{"a string of more than twelve|1", "a|2"}));
}

TEST(HashAggregate, SeveralKeysInAWord) {
  const auto a = WithNulls(NumberColumn<int16_t>({-1, -1, 5, 5}), {true, true, true, false});
  const auto b = NumberColumn<uint8_t>({255, 255, 0, 0});
  const auto c = WithNulls(BoolColumn({true, true, false, true}), {true, false, true, true});
  EXPECT_EQ(GroupsOf("aggregate keys=i16:nullable,u8,bool:nullable aggs=count_star", {Rows(4, {a, b, c})}),
            (Lines{"-1|255|null|1", "-1|255|true|1", "5|0|false|1", "null|0|true|1"}));
}

TEST(HashAggregate, DictionariesOfDifferentOrders) {
  const auto first = DictionaryColumn({0, 1, 1}, StringColumn(kVar32, {"air", "rail"}));
  const auto second = WithNulls(DictionaryColumn({0, 1, 2, 9}, StringColumn(kVar32, {"rail", "ship", "air"})),
                                {true, true, true, false});
  for (const char* more : {"", ",utf8"}) {
    const auto text = StringColumn(kVar32, {"", "", "", ""});
    const std::string spec = std::string("aggregate keys=dictionary(u8,utf8):nullable") + more + " aggs=count_star";
    const auto batch = [&](uint64_t n, const test::ColumnPtr& key) {
      return *more == 0 ? Rows(n, {key}) : Rows(n, {key, text});
    };
    const std::string rest = *more == 0 ? "" : "|";
    EXPECT_EQ(GroupsOf(spec, {batch(3, first), batch(4, second)}),
              (Lines{"air" + rest + "|2", "null" + rest + "|1", "rail" + rest + "|3", "ship" + rest + "|1"}));
  }
}

TEST(HashAggregate, ArgumentsMayBeDictionaries) {
  const auto numbers =
      WithNulls(DictionaryColumn({0, 1, 1, 99}, NumberColumn<int64_t>({5, -7})), {true, true, true, false});
  EXPECT_EQ(
      GroupsOf(
          "aggregate "
          "aggs=sum(dictionary(u8,i64):nullable),min(dictionary(u8,i64):nullable),first(dictionary(u8,i64):nullable)",
          {Rows(4, {}, {numbers, numbers, numbers})}),
      (Lines{"-9|-7|5"}));
}

// A dictionary may lack values if all rows are null.
TEST(HashAggregate, NullsNeedNoDictionaryValues) {
  const auto nulls = WithNulls(DictionaryColumn({0, 0}, NumberColumn<int64_t>({})), {false, false});
  for (const char* function : {"sum", "min", "first", "var_pop"}) {
    EXPECT_EQ(
        GroupsOf(std::string("aggregate aggs=") + function + "(dictionary(u8,i64):nullable)", {Rows(2, {}, {nulls})}),
        (Lines{"null"}));
  }
}

// ---- states ----

BatchView StatesOf(const std::shared_ptr<HashAggregate>& from, OutputBatch* out) {
  GroupReader reader(from, GroupColumns::kStates);
  const auto more = reader.Next(out);
  EXPECT_TRUE(more.ok() && !*more) << more.status();
  BatchView batch;
  batch.num_rows = out->num_rows();
  for (size_t c = 0; c < out->num_columns(); ++c) {
    const QuernOutColumn& column = out->column(c);
    const bool is_text = column.offsets != nullptr;
    (c < from->descriptor().spec().keys.size() ? batch.keys : batch.payload)
        .push_back({column.validity, is_text ? column.bytes : column.values, column.offsets, nullptr, nullptr, 0});
  }
  return batch;
}

TEST(HashAggregate, StatesGoThroughAnotherAggregation) {
  const std::string spec =
      "aggregate keys=dictionary(u8,utf8):nullable,i32 "
      "aggs=count_star,sum(i64:nullable),avg(f64),min(i64:nullable),max(utf8),"
      "count_distinct(i64),any(i64:nullable),stddev_samp(f64),median(f64),bool_and(bool),first(i64),string_agg(utf8,x'"
      "2c')";
  const auto batch = [](int64_t from, uint64_t first_row_id) {
    std::vector<uint8_t> indices;
    std::vector<int32_t> second;
    std::vector<int64_t> numbers;
    std::vector<double> doubles;
    std::vector<std::string> texts;
    std::vector<bool> valid, bools;
    for (int64_t i = from; i < from + 200; ++i) {
      indices.push_back(static_cast<uint8_t>(i % 3));
      second.push_back(static_cast<int32_t>(i % 5));
      numbers.push_back(i % 7);
      doubles.push_back(static_cast<double>(i % 11));
      texts.push_back(std::to_string(i % 13));
      valid.push_back(i % 15 != 4 && i % 4 != 0);
      bools.push_back(i % 15 != 3);
    }
    const auto n = NumberColumn(numbers), d = NumberColumn(doubles);
    const auto t = StringColumn(kVar32, texts), seven = NumberColumn(std::vector<int64_t>(200, 7));
    const auto nulls = WithNulls(n, valid);
    const auto key =
        WithNulls(DictionaryColumn(indices, StringColumn(kVar32, {"x", "y", "z"})), std::vector<bool>(200, true));
    BatchView rows = Rows(200, {key, NumberColumn(second)},
                          {nulls, d, nulls, t, n, WithNulls(seven, valid), d, d, BoolColumn(bools), n, t});
    rows.first_row_id = first_row_id;
    return rows;
  };
  const BatchView one = batch(0, 0), two = batch(200, 200);
  auto first = Aggregation(spec), second = Aggregation(spec), both = Aggregation(spec);
  ASSERT_EQ(first->Append(one), absl::OkStatus());
  ASSERT_EQ(second->Append(two), absl::OkStatus());
  for (const auto& from : {first, second}) {
    ASSERT_EQ(from->Finalise(), absl::OkStatus());
    OutputBatch out(AggregateStateTypes(from->descriptor().spec()), 100, nullptr);
    ASSERT_EQ(both->Append(StatesOf(from, &out), RowKind::kStates), absl::OkStatus());
  }
  ASSERT_EQ(both->Finalise(), absl::OkStatus());
  EXPECT_EQ(GroupsOf(both), GroupsOf(spec, {one, two}));
}

TEST(HashAggregate, StatesWithoutKeysGoThroughToo) {
  const char* spec = "aggregate aggs=sum(i64),max(f64),avg(decimal128)";
  auto empty = Aggregation(spec), full = Aggregation(spec), both = Aggregation(spec);
  ASSERT_EQ(
      full->Append(
          Rows(2, {}, {NumberColumn<int64_t>({1, 2}), NumberColumn<double>({-1, -2}), NumberColumn<__int128>({1, 2})})),
      absl::OkStatus());
  for (const auto& from : {empty, full}) {
    ASSERT_EQ(from->Finalise(), absl::OkStatus());
    OutputBatch out(AggregateStateTypes(from->descriptor().spec()), 100, nullptr);
    ASSERT_EQ(both->Append(StatesOf(from, &out), RowKind::kStates), absl::OkStatus());
  }
  ASSERT_EQ(both->Finalise(), absl::OkStatus());
  EXPECT_EQ(GroupsOf(both), (Lines{"3|-1|2"}));  // 1.5 away from 0
}

TEST(HashAggregate, DamagedStatesAreRefused) {
  auto aggregate = Aggregation("aggregate keys=i64 aggs=sum(i64)");
  EXPECT_EQ(Message(aggregate->Append(Rows(1, {NumberColumn<int64_t>({1})}, {StringColumn(kVar32, {"12345678"})}),
                                      RowKind::kStates)),
            "saved state of sum(i64) is damaged: 8 bytes; accepted: bytes that this version wrote");
}

// ---- shares ----

TEST(HashAggregate, SharesHaveEveryGroupOnce) {
  std::vector<int64_t> keys, values(5000, 1);
  for (int64_t i = 0; i < 5000; ++i) keys.push_back(i % 1500 * 100003);
  for (const GroupLayout layout : {GroupLayout::kOpen, GroupLayout::kDirectory}) {
    AggregateOptions options;
    options.layout = layout;
    auto aggregate = Aggregation(kSums, options), other = Aggregation(kSums);
    for (const auto& each : {aggregate, other}) {
      ASSERT_EQ(each->Append(Pairs(keys, values)), absl::OkStatus());
      ASSERT_EQ(each->Finalise(), absl::OkStatus());
    }
    for (const uint32_t num_partitions : {2u, 3u, 7u}) {
      Lines all;
      for (uint32_t partition = 0; partition < num_partitions; ++partition) {
        const Lines share = test::ShareOf(aggregate, partition, num_partitions, 10);
        EXPECT_EQ(share, test::ShareOf(other, partition, num_partitions, 1000));
        EXPECT_GT(share.size(), 1500 / num_partitions / 2);
        all.insert(all.end(), share.begin(), share.end());
      }
      std::sort(all.begin(), all.end());
      EXPECT_EQ(all, GroupsOf(kSums, {Pairs(keys, values)}));
    }
  }
}

// Share 1 has the same keys in another aggregation, whatever the order of its dictionaries.
TEST(HashAggregate, SharesOfDictionaryKeysGoByTheValue) {
  const char* spec = "aggregate keys=dictionary(u8,utf8)";
  const auto values = StringColumn(kVar32, {"a", "b", "c", "d", "e", "f"});
  auto one = Aggregation(spec), two = Aggregation(spec);
  ASSERT_EQ(one->Append(Rows(6, {DictionaryColumn({0, 1, 2, 3, 4, 5}, values)})), absl::OkStatus());
  ASSERT_EQ(two->Append(Rows(6, {DictionaryColumn({5, 4, 3, 2, 1, 0}, values)})), absl::OkStatus());
  ASSERT_EQ(one->Finalise(), absl::OkStatus());
  ASSERT_EQ(two->Finalise(), absl::OkStatus());
  for (uint32_t share = 0; share < 4; ++share)
    EXPECT_EQ(test::ShareOf(one, share, 4, 10), test::ShareOf(two, share, 4, 10)) << share;
}

// As with joins and output batches, no budget means no limit.
TEST(HashAggregate, ABudgetMayBeAbsent) {
  for (const char* key : {"i64", "dictionary(u8,i64)"}) {
    auto aggregate = Aggregation(std::string("aggregate keys=") + key, {}, {}, nullptr);
    const auto values = NumberColumn<int64_t>({7, 8});
    ASSERT_EQ(aggregate->Append(Rows(2, {*key == 'i' ? values : DictionaryColumn({0, 1}, values)})), absl::OkStatus());
    ASSERT_EQ(aggregate->Finalise(), absl::OkStatus());
    EXPECT_EQ(GroupsOf(aggregate), (Lines{"7", "8"}));
  }
}

TEST(HashAggregate, ReadersShareTheGroups) {
  std::vector<int64_t> keys;
  for (int64_t i = 0; i < 200000; ++i) keys.push_back(i * 3);
  auto aggregate = Aggregation("aggregate keys=i64");
  ASSERT_EQ(aggregate->Append(Rows(keys.size(), {NumberColumn(keys)})), absl::OkStatus());
  ASSERT_EQ(aggregate->Finalise(), absl::OkStatus());
  OutputBatch out(AggregateOutputTypes(aggregate->descriptor().spec()), 100, nullptr);
  std::vector<int64_t> found;
  GroupReader one(aggregate), two(aggregate);
  bool more_one = true, more_two = true;
  const auto read = [&](GroupReader* reader, bool* more) {
    if (!*more) return;
    const auto next = reader->Next(&out);
    ASSERT_TRUE(next.ok());
    *more = *next;
    const auto* values = static_cast<const int64_t*>(out.column(0).values);
    found.insert(found.end(), values, values + out.num_rows());
  };
  while (more_one || more_two) {
    read(&one, &more_one);
    read(&two, &more_two);
  }
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, keys);
}

// ---- memory ----

// Every budget below the first sufficient one ends in an error message, and all bytes are returned.
void ExpectEveryLimitIsAnError(const std::string& spec, const BatchView& batch, const AggregateOptions& options,
                               uint64_t step) {
  bool fits = false;
  uint64_t num_refused = 0;
  for (uint64_t limit = 64; !fits; limit += step + limit / 16) {
    ASSERT_LT(limit, uint64_t{1} << 30) << spec;
    const auto budget = std::make_shared<MemoryBudget>(limit);
    {
      auto aggregate = Aggregation(spec, options, {}, budget);
      Appender other(aggregate);
      absl::Status status = aggregate->Append(batch);
      if (status.ok()) status = aggregate->Append(batch);
      if (status.ok()) status = other.Append(batch);
      if (status.ok()) status = other.Finish();
      if (status.ok()) status = aggregate->Finalise();
      OutputBatch out(AggregateOutputTypes(aggregate->descriptor().spec()), 64, budget);
      GroupReader reader(aggregate);
      for (bool more = status.ok(); more && status.ok();) {
        const auto next = reader.Next(&out);
        status = next.status();
        more = next.ok() && *next;
      }
      fits = status.ok();
      if (!fits) {
        ++num_refused;
        EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
        EXPECT_NE(Message(status).find("memory limit exceeded: "), std::string::npos) << status;
      }
    }
    EXPECT_EQ(budget->used_bytes(), 0u) << spec << " " << limit;
  }
  EXPECT_GT(num_refused, 3u);
}

TEST(HashAggregate, EveryLimitIsAnError) {
  std::vector<int64_t> keys;
  std::vector<std::string> texts;
  std::vector<uint8_t> indices;
  for (int64_t i = 0; i < 600; ++i) {
    keys.push_back(i * 100003);
    texts.push_back("a text that is longer than a field, number " + std::to_string(i));
    indices.push_back(static_cast<uint8_t>(i % 200));
  }
  const auto number = NumberColumn(keys), text = StringColumn(kVar32, texts);
  const auto dictionary = DictionaryColumn(indices, text);
  AggregateOptions deals;
  deals.local_groups = 1;
  deals.partition_bits = 2;
  for (const AggregateOptions& options : {AggregateOptions(), deals}) {
    ExpectEveryLimitIsAnError("aggregate keys=i64 aggs=sum(i64)", Rows(600, {number}, {number}), options, 200);
    AggregateOptions moves = options;
    moves.caches.l2_bytes = 10000;
    ExpectEveryLimitIsAnError("aggregate keys=i64 aggs=avg(i64),avg(i64),var_pop(i64)",
                              Rows(600, {number}, {number, number, number}), moves, 400);
    ExpectEveryLimitIsAnError("aggregate keys=utf8 aggs=sum(i64)", Rows(600, {text}, {number}), options, 400);
    ExpectEveryLimitIsAnError("aggregate keys=dictionary(u8,utf8) aggs=sum(i64)", Rows(600, {dictionary}, {number}),
                              options, 200);
    ExpectEveryLimitIsAnError("aggregate keys=i64 aggs=max(utf8),string_agg(utf8,x'2c'),count_distinct(utf8)",
                              Rows(600, {number}, {text, text, text}), options, 1000);
  }
}

// If finalising exceeds a limit, later calls report the same error.
TEST(HashAggregate, AMergeThatFailsFailsForAll) {
  auto aggregate = Aggregation(kSums);
  Appender other(aggregate);
  ASSERT_EQ(aggregate->Append(Pairs({1}, {INT64_MAX})), absl::OkStatus());
  ASSERT_EQ(other.Append(Pairs({1}, {1})), absl::OkStatus());
  ASSERT_EQ(other.Finish(), absl::OkStatus());
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(Message(aggregate->Finalise()), "sum out of range: sum(i64); accepted: sums within 64 bits, or sum128");
  OutputBatch out(AggregateOutputTypes(aggregate->descriptor().spec()), 8, nullptr);
  GroupReader reader(aggregate);
  EXPECT_EQ(Message(reader.Next(&out).status()),
            "groups before finalise: they are not complete; accepted: finalise first");
}

}  // namespace
}  // namespace quern
