// SPDX-License-Identifier: Apache-2.0
// Aggregations of Arrow arrays: who owns what, schemas out, states between two aggregations, and refusals with their
// full text.
#include <gtest/gtest.h>

#include "test/hosts/aggregate_tables.h"
#include "test/hosts/arrow_results.h"

namespace quern_test {
namespace {

// Input: {price: float64, region: dictionary of utf8, nullable, ok: bool, quantity: int64}.
constexpr const char* kSpec = "aggregate keys=dictionary(i32,utf8):nullable aggs=count_star,sum(i64),max(f64):filter";
constexpr int32_t kKeys[] = {1}, kPayload[] = {3, 0, 2};

const TestSchema& InputSchema() {
  static const TestSchema schema({{"price", "g"}, {"region", "i", "u", true}, {"ok", "b"}, {"quantity", "l"}});
  return schema;
}

TestArrayPtr Bools(uint8_t bits, int64_t length) {
  auto array = std::make_unique<TestArray>(length);
  array->AddPointer(nullptr).AddBuffer(std::vector<uint8_t>{bits});
  return array;
}

TestArrayPtr InputBatch() {
  return StructArray(
      4, FixedArray<double>({10, 20, 30, 40}),
      WithNulls(DictionaryArray({0, 1, 0, 1}, Utf8Array({"ASIA", "a region of some length"})), {0x07}, 1),
      Bools(0x0b, 4), FixedArray<int64_t>({1, 2, 4, 8}));
}
const Lines& InputGroups() {
  static const Lines lines = {"ASIA|2|5|10", "a region of some length|1|2|20", "null|1|8|40"};
  return lines;
}

quern::Aggregate BoundAggregate() {
  quern::Aggregate aggregate = NewAggregate(kSpec);
  EXPECT_EQ(aggregate.BindArrow({&InputSchema().schema, kKeys, kPayload}).text(), "");
  return aggregate;
}

Lines ArrowGroupsOf(const quern::Aggregate& aggregate, std::string_view kinds, uint64_t batch_rows = 0) {
  auto groups = quern::Groups::Create(aggregate, {.batch_rows = batch_rows});
  EXPECT_TRUE(groups.ok()) << groups.status().text();
  Lines lines;
  for (bool more = true; more;) {
    ArrowArray result;
    auto answer = groups->NextArrow(&result);
    EXPECT_TRUE(answer.ok()) << answer.status().text();
    if (!answer.ok()) break;
    for (const std::string& line : TakeLines(&result, kinds)) lines.push_back(line);
    more = *answer;
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

TEST(ArrowAggregates, ReleaseWhatTheyTake) {
  auto batch = InputBatch();
  quern::Aggregate aggregate = BoundAggregate();
  ASSERT_EQ(aggregate.AppendArrow(&batch->array).text(), "");
  EXPECT_EQ(batch->array.release, nullptr) << "moved in";
  EXPECT_EQ(batch->times_released, 1) << "nothing is kept of it";
  ASSERT_EQ(aggregate.Finalise().text(), "");
  EXPECT_EQ(ArrowGroupsOf(aggregate, "slld", 2), InputGroups());
}

TEST(ArrowAggregates, OutliveTheirHandles) {
  auto batch = InputBatch();
  ArrowArray result;
  {
    quern::Aggregate aggregate = BoundAggregate();
    auto appender = quern::AggregateAppender::Create(aggregate);
    ASSERT_EQ(appender->AppendArrow(&batch->array).text(), "");
    ASSERT_EQ(appender->Finish().text(), "");
    ASSERT_EQ(aggregate.FinaliseShared().text(), "");
    auto groups = quern::Groups::Create(aggregate);
    ASSERT_TRUE(groups->NextArrow(&result).ok());
  }
  Lines lines = TakeLines(&result, "slld");
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(lines, InputGroups());
}

TEST(ArrowAggregates, HandStatesToAnother) {
  auto first = InputBatch(), second = InputBatch();
  quern::Aggregate from = BoundAggregate(), into = NewAggregate(kSpec);
  ASSERT_EQ(from.AppendArrow(&first->array).text(), "");
  ASSERT_EQ(from.AppendArrow(&second->array).text(), "");
  ASSERT_EQ(from.Finalise().text(), "");
  auto groups = quern::Groups::Create(from, {.columns = quern::GroupColumns::kStates, .batch_rows = 2});
  auto appender = quern::AggregateAppender::Create(into);
  for (bool more = true; more;) {
    ArrowArray states;
    auto answer = groups->NextArrow(&states);
    ASSERT_TRUE(answer.ok()) << answer.status().text();
    more = *answer;
    ASSERT_EQ((more ? into.AppendStatesArrow(&states) : appender->AppendStatesArrow(&states)).text(), "");
    EXPECT_EQ(states.release, nullptr);
  }
  ASSERT_EQ(appender->Finish().text(), "");
  ASSERT_EQ(into.Finalise().text(), "");
  EXPECT_EQ(ArrowGroupsOf(into, "slld"), (Lines{"ASIA|4|10|10", "a region of some length|2|4|20", "null|2|16|40"}));
}

TEST(ArrowAggregates, SayWhatTheirResultsAre) {
  ArrowSchema schema;
  ASSERT_EQ(BoundAggregate().ResultSchema(&schema).text(), "");
  EXPECT_EQ(TakeFields(&schema), "region:u? count_star:l sum(i64):l max(f64):filter:g?");
  ASSERT_EQ(BoundAggregate().ResultSchema(&schema, quern::GroupColumns::kStates).text(), "");
  EXPECT_EQ(TakeFields(&schema), "region:u? count_star:z sum(i64):z max(f64):filter:z");
}

// The result's fields of an aggregate of one column without keys.
std::string FieldOf(const char* aggregate, const TestField& argument) {
  quern::Aggregate bound = NewAggregate("aggregate keys=i64 aggs=" + std::string(aggregate));
  const TestSchema schema({{"k", "l"}, argument});
  const int32_t key[] = {0}, payload[] = {1, 1};
  EXPECT_EQ(bound.BindArrow({&schema.schema, key, payload}).text(), "");
  ArrowSchema result;
  EXPECT_EQ(bound.ResultSchema(&result).text(), "");
  return TakeFields(&result);
}

TEST(ArrowAggregates, TakeUnitsFromTheArguments) {
  EXPECT_EQ(FieldOf("min(timestamp)", {"t", "tsu:UTC"}), "k:l min(timestamp):tsu:UTC");
  EXPECT_EQ(FieldOf("any(dictionary(i8,time32))", {"t", "c", "ttm"}), "k:l any(dictionary(i8,time32)):ttm");
  EXPECT_EQ(FieldOf("max(decimal128)", {"d", "d:12,2"}), "k:l max(decimal128):d:12,2");
  EXPECT_EQ(FieldOf("sum(decimal128)", {"d", "d:12,2"}), "k:l sum(decimal128):d:38,2");
  EXPECT_EQ(FieldOf("avg(decimal128)", {"d", "d:12,-3,128"}), "k:l avg(decimal128):d:38,-3");
  EXPECT_EQ(FieldOf("sum128(i32)", {"i", "i"}), "k:l sum128(i32):d:38,0");
  EXPECT_EQ(FieldOf("sum(u8)", {"i", "C"}), "k:l sum(u8):L");
  EXPECT_EQ(FieldOf("avg(i32)", {"i", "i"}), "k:l avg(i32):g");
  EXPECT_EQ(FieldOf("bool_and(bool)", {"b", "b"}), "k:l bool_and(bool):b");
  EXPECT_EQ(FieldOf("corr(f32,f32)", {"f", "f"}), "k:l corr(f32,f32):g?");
  EXPECT_EQ(FieldOf("max(fixed_binary(7))", {"b", "w:7"}), "k:l max(fixed_binary(7)):w:7");
  EXPECT_EQ(FieldOf("string_agg(large_utf8,x'2c')", {"s", "U"}), "k:l string_agg(large_utf8,x'2c'):U");
}

// ---- refusals ----

TEST(ArrowAggregateErrors, BeforeTheColumnsAreBound) {
  const std::string text =
      "Arrow columns not bound: the aggregation has no binding; accepted: after quern_aggregate_bind_arrow";
  quern::Aggregate aggregate = NewAggregate(kSpec);
  ArrowSchema schema;
  EXPECT_EQ(ErrorOf(QUERN_FAILED_PRECONDITION, quern_aggregate_result_schema, aggregate.handle(), QUERN_GROUP_RESULTS,
                    &schema),
            text);
  EXPECT_EQ(RefusalOf(QUERN_FAILED_PRECONDITION, quern_aggregate_append_arrow, aggregate.handle(), InputBatch()), text);
  auto appender = quern::AggregateAppender::Create(aggregate);
  EXPECT_EQ(
      RefusalOf(QUERN_FAILED_PRECONDITION, quern_aggregate_appender_append_arrow, appender->handle(), InputBatch()),
      text);
}

TEST(ArrowAggregateErrors, WrongOrder) {
  quern::Aggregate aggregate = BoundAggregate();
  const quern::Status twice = aggregate.BindArrow({&InputSchema().schema, kKeys, kPayload});
  EXPECT_EQ(twice.text(), "Arrow columns bound twice: the aggregation has a binding; accepted: a new aggregation");
  EXPECT_EQ(twice.code(), QUERN_FAILED_PRECONDITION);
  ASSERT_EQ(aggregate.Finalise().text(), "");
  const std::string late = "append after finalise: the groups are complete; accepted: a new aggregation";
  EXPECT_EQ(RefusalOf(QUERN_FAILED_PRECONDITION, quern_aggregate_append_arrow, aggregate.handle(), InputBatch()), late);
  EXPECT_EQ(RefusalOf(QUERN_FAILED_PRECONDITION, quern_aggregate_append_states_arrow, aggregate.handle(), InputBatch()),
            late);
}

TEST(ArrowAggregateErrors, NullArguments) {
  quern::Aggregate unbound = NewAggregate(kSpec);
  quern_aggregate* const aggregate = unbound.handle();
  quern_aggregate* const no_aggregate = nullptr;
  const int32_t* const no_numbers = nullptr;
  const ArrowSchema *input = &InputSchema().schema, *no_schema = nullptr;
  ArrowArray* const no_array = nullptr;
  ArrowArray result;
  ArrowSchema schema;
  bool more = false;
  const auto invalid = [](auto... call) { return ErrorOf(QUERN_INVALID_ARGUMENT, call...); };
  EXPECT_EQ(invalid(quern_aggregate_bind_arrow, no_aggregate, input, kKeys, kPayload),
            "null argument: aggregate; accepted: a pointer");
  EXPECT_EQ(invalid(quern_aggregate_bind_arrow, aggregate, no_schema, kKeys, kPayload),
            "null argument: input; accepted: a pointer");
  EXPECT_EQ(invalid(quern_aggregate_bind_arrow, aggregate, input, no_numbers, kPayload),
            "null argument: keys; accepted: a pointer");
  EXPECT_EQ(invalid(quern_aggregate_bind_arrow, aggregate, input, kKeys, no_numbers),
            "null argument: payload; accepted: a pointer");
  EXPECT_EQ(invalid(quern_aggregate_result_schema, no_aggregate, QUERN_GROUP_RESULTS, &schema),
            "null argument: aggregate; accepted: a pointer");
  EXPECT_EQ(invalid(quern_aggregate_result_schema, aggregate, QUERN_GROUP_RESULTS, static_cast<ArrowSchema*>(nullptr)),
            "null argument: schema; accepted: a pointer");
  EXPECT_EQ(invalid(quern_aggregate_append_arrow, aggregate, no_array), "null argument: batch; accepted: a pointer");
  EXPECT_EQ(RefusalOf(QUERN_INVALID_ARGUMENT, quern_aggregate_append_arrow, no_aggregate, InputBatch()),
            "null argument: aggregate; accepted: a pointer");
  EXPECT_EQ(RefusalOf(QUERN_INVALID_ARGUMENT, quern_aggregate_append_states_arrow, no_aggregate, InputBatch()),
            "null argument: aggregate; accepted: a pointer");
  quern_aggregate_appender* const no_appender = nullptr;
  EXPECT_EQ(RefusalOf(QUERN_INVALID_ARGUMENT, quern_aggregate_appender_append_arrow, no_appender, InputBatch()),
            "null argument: appender; accepted: a pointer");
  EXPECT_EQ(RefusalOf(QUERN_INVALID_ARGUMENT, quern_aggregate_appender_append_states_arrow, no_appender, InputBatch()),
            "null argument: appender; accepted: a pointer");
  quern_groups* const no_groups = nullptr;
  EXPECT_EQ(invalid(quern_groups_next_arrow, no_groups, &result, &more), "null argument: groups; accepted: a pointer");
  EXPECT_EQ(invalid(quern_groups_next_arrow, no_groups, no_array, &more), "null argument: result; accepted: a pointer");
  EXPECT_EQ(invalid(quern_groups_next_arrow, no_groups, &result, static_cast<bool*>(nullptr)),
            "null argument: more; accepted: a pointer");
}

TEST(ArrowAggregateErrors, SchemasThatDisagreeWithTheSpec) {
  const auto bind = [](const ArrowSchema& input, const int32_t* keys, const int32_t* payload) {
    quern::Aggregate unbound = NewAggregate(kSpec);
    return ErrorOf(QUERN_INVALID_ARGUMENT, quern_aggregate_bind_arrow, unbound.handle(), &input, keys, payload);
  };
  const TestSchema plain({{"price", "g"}, {"region", "u"}, {"ok", "b"}, {"quantity", "l"}});
  const TestSchema narrow({{"price", "g"}, {"region", "i", "u"}, {"ok", "b"}, {"quantity", "i"}});
  EXPECT_EQ(bind(plain.schema, kKeys, kPayload),
            "wrong type for input keys[0]: field \"region\" is utf8; accepted: dictionary(i32,utf8)");
  EXPECT_EQ(bind(narrow.schema, kKeys, kPayload),
            "wrong type for input payload[0]: field \"quantity\" is i32; accepted: i64");
  const int32_t four[] = {4}, no_filter[] = {3, 0, 0};
  EXPECT_EQ(bind(InputSchema().schema, four, kPayload), "field out of range for keys[0]: 4; accepted: 0 to 3");
  EXPECT_EQ(bind(InputSchema().schema, kKeys, no_filter),
            "wrong type for input payload[2]: field \"price\" is f64; accepted: bool");
  ArrowSchema list = InputSchema().schema;
  list.format = "+l";
  EXPECT_EQ(bind(list, kKeys, kPayload), "not a struct schema on the input side: +l; accepted: +s");
}

TEST(ArrowAggregateErrors, BatchesThatAreIllFormed) {
  quern::Aggregate aggregate = BoundAggregate();
  auto batch = InputBatch();
  batch->children[3]->array.length = 2;
  EXPECT_EQ(RefusalOf(QUERN_INVALID_ARGUMENT, quern_aggregate_append_arrow, aggregate.handle(), std::move(batch)),
            "too few rows of column payload[0]: 2; accepted: 4 or more");
  ArrowArray released = {};
  const std::string text = "released array: no release callback; accepted: a struct array that is alive";
  EXPECT_EQ(ErrorOf(QUERN_INVALID_ARGUMENT, quern_aggregate_append_arrow, aggregate.handle(), &released), text);
  EXPECT_EQ(ErrorOf(QUERN_INVALID_ARGUMENT, quern_aggregate_append_states_arrow, aggregate.handle(), &released), text);
  auto good = InputBatch();
  EXPECT_EQ(aggregate.AppendArrow(&good->array).text(), "") << "a batch that was refused changes nothing";
}

TEST(ArrowAggregateErrors, StatesOfAnotherSpec) {
  quern::Aggregate aggregate = NewAggregate("aggregate keys=i64 aggs=count_star");
  const auto refusal = [&](TestArrayPtr batch) {
    return RefusalOf(QUERN_INVALID_ARGUMENT, quern_aggregate_append_states_arrow, aggregate.handle(), std::move(batch));
  };
  EXPECT_EQ(refusal(StructArray(1, FixedArray<int64_t>({1}))), "wrong number of columns of states: 1; accepted: 2");
  EXPECT_EQ(refusal(StructArray(1, FixedArray<int64_t>({1}), FixedArray<int64_t>({1}))),
            "wrong number of buffers of column payload[0]: 2; accepted: 3");
}

}  // namespace
}  // namespace quern_test
