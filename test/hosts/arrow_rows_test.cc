// SPDX-License-Identifier: Apache-2.0
// Some rows of Arrow arrays: selections and row ids beside the array, in every call that takes one, through the C++
// wrapper; what is read of them and until when; refusals with their full text.
#include <gtest/gtest.h>

#include "test/hosts/aggregate_tables.h"
#include "test/hosts/arrow_results.h"
#include "test/hosts/sort_tables.h"

namespace quern_test {
namespace {

// A selection with a memory of its own, which a test may spoil.
struct Selection {
  explicit Selection(std::vector<uint32_t> numbers, uint64_t first_row_id = 0) : chosen(std::move(numbers)) {
    rows = {sizeof(rows), chosen.data(), chosen.size(), first_row_id};
  }
  void Spoil() { std::fill(chosen.begin(), chosen.end(), UINT32_MAX); }

  std::vector<uint32_t> chosen;
  quern_arrow_rows rows = {};
};

// Columns: {name: utf8, k: int64}. Arrays are declared before what they are moved into, since they must outlive it.
const TestSchema& Schema() {
  static const TestSchema schema({{"name", "u"}, {"k", "l"}});
  return schema;
}
constexpr int32_t kKey[] = {1}, kNames[] = {0, -1}, kName[] = {0};

TestArrayPtr Batch(const std::vector<int64_t>& keys) {
  std::vector<std::string> names;
  for (const int64_t key : keys) names.push_back("the name of number " + std::to_string(key));
  return StructArray(static_cast<int64_t>(keys.size()), Utf8Array(names), FixedArray<int64_t>(keys));
}

template <class Reader>
Lines ArrowLines(Reader* reader, std::string_view kinds) {
  Lines lines;
  for (bool more = true; more;) {
    ArrowArray result;
    auto answer = reader->NextArrow(&result);
    EXPECT_TRUE(answer.ok()) << answer.status().text();
    if (!answer.ok()) break;
    for (const std::string& line : TakeLines(&result, kinds)) lines.push_back(line);
    if constexpr (requires { answer->more; }) more = answer->more;
    else more = *answer;
  }
  return lines;
}

quern::Join BoundJoin() {
  auto kernel =
      quern::Kernel::Compile("join.inner keys=i64 build=utf8,rowid probe=utf8,rowid", quern::Engine::kGeneric);
  auto join = quern::Join::Create(*kernel);
  EXPECT_EQ(join->BindArrow({&Schema().schema, kKey, kNames}, {&Schema().schema, kKey, kNames}).text(), "");
  return *std::move(join);
}

TEST(ArrowRows, OfJoins) {
  auto build = Batch({5, 6, 7, 8}), more_build = Batch({7, 7, 9}), probe = Batch({8, 7, 6, 5, 9}), none = Batch({5});
  Selection first({1, 3}, 100), second({2, 0}, 1000), probed({0, 3, 4}, 10), nothing({}, 0);
  quern::Join join = BoundJoin();
  ASSERT_EQ(join.AppendArrow(&build->array, &first.rows).text(), "");
  first.Spoil();
  auto appender = quern::Appender::Create(join);
  ASSERT_EQ(appender->AppendArrow(&more_build->array, &second.rows).text(), "");
  ASSERT_EQ(appender->AppendArrow(&none->array, &nothing.rows).text(), "");
  second.Spoil();
  ASSERT_EQ(appender->Finish().text(), "");
  ASSERT_EQ(join.Finalise().text(), "");
  EXPECT_EQ(join.Stats().build_rows, 4u);
  auto prober = quern::Prober::Create(join);
  ASSERT_EQ(prober->InputArrow(&probe->array, &probed.rows).text(), "");
  Lines lines = ArrowLines(&*prober, "srsr");
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(lines, (Lines{"the name of number 8|10|the name of number 8|103",
                          "the name of number 9|14|the name of number 9|1002"}));
}

TEST(ArrowRows, OfAggregates) {
  quern::Aggregate aggregate = NewAggregate("aggregate keys=i64 aggs=count_star,first(utf8)");
  ASSERT_EQ(aggregate.BindArrow({&Schema().schema, kKey, kName}).text(), "");
  auto late = Batch({1, 2, 1}), early = Batch({2, 1, 2, 3});
  Selection of_late({0, 2}, 1000), of_early({0, 2, 3}, 0);
  ASSERT_EQ(aggregate.AppendArrow(&late->array, &of_late.rows).text(), "");
  EXPECT_EQ(late->times_released, 1) << "nothing is kept of it";
  auto appender = quern::AggregateAppender::Create(aggregate);
  ASSERT_EQ(appender->AppendArrow(&early->array, &of_early.rows).text(), "");
  ASSERT_EQ(appender->Finish().text(), "");
  ASSERT_EQ(aggregate.Finalise().text(), "");
  auto groups = quern::Groups::Create(aggregate);
  Lines lines = ArrowLines(&*groups, "lls");
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(lines, (Lines{"1|2|the name of number 1", "2|2|the name of number 2", "3|1|the name of number 3"}));
}

// Row ids say what comes first, whichever batch comes first.
TEST(ArrowRows, IdsOfAggregatesWithAnOrder) {
  const TestSchema schema({{"g", "i"}, {"s", "u"}});
  const int32_t key[] = {0}, payload[] = {1, 1};
  quern::Aggregate aggregate = NewAggregate("aggregate keys=i32 aggs=first(utf8),string_agg(utf8,x'2c')");
  ASSERT_EQ(aggregate.BindArrow({&schema.schema, key, payload}).text(), "");
  for (const int part : {2, 0, 1}) {
    auto batch = StructArray(3, FixedArray<int32_t>({4, 4, 4}),
                             Utf8Array({std::to_string(part) + "a", "not this", std::to_string(part) + "c"}));
    Selection rows({0, 2}, static_cast<uint64_t>(part) * 3);
    ASSERT_EQ(aggregate.AppendArrow(&batch->array, &rows.rows).text(), "");
  }
  ASSERT_EQ(aggregate.Finalise().text(), "");
  auto groups = quern::Groups::Create(aggregate);
  EXPECT_EQ(ArrowLines(&*groups, "iss"), (Lines{"4|0a|0a,0c,1a,1c,2a,2c"}));
}

TEST(ArrowRows, OfSorts) {
  auto late = Batch({3, 1, 2}), early = Batch({2, 9, 1}), two = Batch({2, 7});
  quern::Sort sort = NewSort("sort keys=i64:out payload=utf8,rowid stable");
  ASSERT_EQ(sort.BindArrow({&Schema().schema, kKey, kNames}).text(), "");
  Selection of_late({2, 1}, 10), of_early({0, 2}, 0);
  const quern_arrow_rows first_row = {sizeof(quern_arrow_rows), nullptr, 1, 5};
  ASSERT_EQ(sort.AppendArrow(&late->array, &of_late.rows).text(), "");
  auto appender = quern::SortAppender::Create(sort);
  ASSERT_EQ(appender->AppendArrow(&early->array, &of_early.rows).text(), "");
  ASSERT_EQ(appender->AppendArrow(&two->array, &first_row).text(), "");
  of_late.Spoil();
  of_early.Spoil();
  ASSERT_EQ(appender->Finish().text(), "");
  ASSERT_EQ(sort.Finalise().text(), "");
  auto sorted = quern::SortedRows::Create(sort);
  EXPECT_EQ(ArrowLines(&*sorted, "lsr"),
            (Lines{"1|the name of number 1|2", "1|the name of number 1|11", "2|the name of number 2|0",
                   "2|the name of number 2|5", "2|the name of number 2|12"}));
}

TEST(ArrowRows, OfMerges) {
  auto left = Batch({9, 1, 3, 0}), right = Batch({2, 4});
  Selection rising({3, 1, 2}, 20);
  auto kernel = quern::Kernel::Compile("sort keys=i64:out payload=utf8,rowid", quern::Engine::kGeneric);
  auto merge = quern::Merge::Create(*kernel, 2);
  ASSERT_EQ(merge->BindArrow({&Schema().schema, kKey, kNames}).text(), "");
  ASSERT_EQ(merge->InputArrow(0, &left->array, &rising.rows).text(), "");
  ASSERT_EQ(merge->InputArrow(1, &right->array).text(), "");
  ArrowArray result;
  auto step = merge->NextArrow(&result);
  ASSERT_TRUE(step.ok()) << step.status().text();
  EXPECT_EQ(step->state, QUERN_MERGE_NEEDS_INPUT);
  EXPECT_EQ(step->run, 0u);
  const Lines lines = TakeLines(&result, "lsr");
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], "0|the name of number 0|23");
  EXPECT_EQ(lines[1], "1|the name of number 1|21");
  EXPECT_EQ(lines[3], "3|the name of number 3|22");
}

TEST(ArrowRows, SliceBehindAnOffset) {
  quern::Sort sort = NewSort("sort keys=i64:out");
  ASSERT_EQ(sort.BindArrow({&Schema().schema, kKey, {}}).text(), "");
  auto batch = Batch({1, 2, 3, 4});
  batch->array.offset = 2;
  batch->array.length = 2;
  Selection rows({1});
  ASSERT_EQ(sort.AppendArrow(&batch->array, &rows.rows).text(), "");
  ASSERT_EQ(sort.Finalise().text(), "");
  auto sorted = quern::SortedRows::Create(sort);
  EXPECT_EQ(ArrowLines(&*sorted, "l"), (Lines{"4"}));
}

// What a filter writes is what the others take.
TEST(ArrowRows, OfAFilter) {
  auto kernel = quern::Kernel::Compile("filter i64 >= 3", quern::Engine::kGeneric);
  auto filter = quern::Filter::Create(*kernel);
  ASSERT_EQ(filter->BindArrow(&Schema().schema, kKey).text(), "");
  auto batch = Batch({4, 1, 3});
  Selection rows({0, 0, 0});
  auto passed = filter->SelectArrow(batch->array, rows.chosen.data());
  ASSERT_TRUE(passed.ok()) << passed.status().text();
  rows.rows.num_rows = *passed;
  quern::Aggregate aggregate = NewAggregate("aggregate aggs=sum(i64)");
  ASSERT_EQ(aggregate.BindArrow({&Schema().schema, {}, kKey}).text(), "");
  ASSERT_EQ(aggregate.AppendArrow(&batch->array, &rows.rows).text(), "");
  ASSERT_EQ(aggregate.Finalise().text(), "");
  auto groups = quern::Groups::Create(aggregate);
  EXPECT_EQ(ArrowLines(&*groups, "l"), (Lines{"7"}));
}

// The refusal of a batch {1, 2} with these rows.
std::string RefusalWith(const quern_arrow_rows& rows) {
  const quern::Join join = BoundJoin();
  const auto append = [&rows](quern_join* into, ArrowArray* batch, quern_error* error) {
    return quern_join_append_arrow_rows(into, batch, &rows, error);
  };
  return RefusalOf(QUERN_INVALID_ARGUMENT, append, join.handle(), Batch({1, 2}));
}

TEST(ArrowRows, Refusals) {
  EXPECT_EQ(RefusalWith(Selection({1, 0, 2, 7}).rows),
            "selection of a row that is not there: selection[2] is 2; accepted: 0 to 1");
  EXPECT_EQ(RefusalWith({3, nullptr, 0, 0}), "struct_size too small: 3; accepted: 32 or more");
  const uint32_t row = 0;
  EXPECT_EQ(RefusalWith({sizeof(quern_arrow_rows), &row, UINT64_MAX, 0}),
            "batch too large: 18446744073709551615 rows; accepted: below 4294967295");
  EXPECT_EQ(RefusalWith({sizeof(quern_arrow_rows), nullptr, 3, 0}),
            "more rows than the array has: 3; accepted: 0 to 2, or a selection");
  const auto append = [](quern_sort* into, ArrowArray* batch, quern_error* error) {
    const Selection rows({0});
    return quern_sort_append_arrow_rows(into, batch, &rows.rows, error);
  };
  const quern::Sort sort = NewSort("sort keys=i64:out");
  EXPECT_EQ(RefusalOf(QUERN_FAILED_PRECONDITION, append, sort.handle(), Batch({1})),
            "Arrow columns not bound: the sort has no binding; accepted: after quern_sort_bind_arrow");
  quern::Sort bound = NewSort("sort keys=i64:out");
  ASSERT_EQ(bound.BindArrow({&Schema().schema, kKey, {}}).text(), "");
  EXPECT_EQ(RefusalOf(QUERN_INVALID_ARGUMENT, append, bound.handle(), Batch({})),
            "selection of a row that is not there: selection[0] is 0; accepted: no row, as the array has none");
  EXPECT_EQ(RefusalOf(QUERN_INVALID_ARGUMENT, append, static_cast<quern_sort*>(nullptr), Batch({1})),
            "null argument: sort; accepted: a pointer");
}

// A refused selection has added nothing: the operator goes on.
TEST(ArrowRows, GoOnAfterARefusal) {
  quern::Sort sort = NewSort("sort keys=i64:out");
  ASSERT_EQ(sort.BindArrow({&Schema().schema, kKey, {}}).text(), "");
  auto refused = Batch({1, 2}), taken = Batch({3});
  Selection rows({2});
  EXPECT_FALSE(sort.AppendArrow(&refused->array, &rows.rows).ok());
  EXPECT_EQ(refused->times_released, 1);
  ASSERT_EQ(sort.AppendArrow(&taken->array).text(), "");
  ASSERT_EQ(sort.Finalise().text(), "");
  auto sorted = quern::SortedRows::Create(sort);
  EXPECT_EQ(ArrowLines(&*sorted, "l"), (Lines{"3"}));
}

}  // namespace
}  // namespace quern_test
