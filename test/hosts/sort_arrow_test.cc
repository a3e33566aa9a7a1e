// SPDX-License-Identifier: Apache-2.0
// Sorts of Arrow arrays: who owns what and for how long, schemas out, and refusals with their full text. (Merges:
// merge_test.cc.)
#include <gtest/gtest.h>

#include "test/hosts/arrow_results.h"
#include "test/hosts/sort_tables.h"

namespace quern_test {
namespace {

// Input: {price: float64, region: dictionary of utf8, nullable, quantity: int64}.
constexpr const char* kSpec =
    "sort keys=dictionary(i32,utf8):nullable:out,i64:desc payload=rowid,f64 window=row_number";
constexpr int32_t kKeys[] = {1, 2}, kPayload[] = {-1, 0};

const TestSchema& InputSchema() {
  static const TestSchema schema({{"price", "g"}, {"region", "i", "u", true}, {"quantity", "l"}});
  return schema;
}

TestArrayPtr InputBatch() {
  return StructArray(
      4, FixedArray<double>({10, 20, 30, 40}),
      WithNulls(DictionaryArray({1, 0, 1, 0}, Utf8Array({"ASIA", "a region of some length"})), {0x07}, 1),
      FixedArray<int64_t>({1, 2, 4, 8}));
}
const Lines& InputRows() {
  static const Lines lines = {"ASIA|1|20|1", "a region of some length|2|30|2", "a region of some length|0|10|3",
                              "null|3|40|4"};
  return lines;
}

quern::Sort BoundSort(const std::string& spec = kSpec) {
  quern::Sort sort = NewSort(spec);
  EXPECT_EQ(sort.BindArrow({&InputSchema().schema, kKeys, kPayload}).text(), "");
  return sort;
}

Lines ArrowRowsOf(const quern::Sort& sort, std::string_view kinds, uint64_t batch_rows = 0) {
  auto sorted = quern::SortedRows::Create(sort, batch_rows);
  EXPECT_TRUE(sorted.ok()) << sorted.status().text();
  Lines lines;
  for (bool more = true; more;) {
    ArrowArray result;
    auto place = sorted->NextArrow(&result);
    EXPECT_TRUE(place.ok()) << place.status().text();
    if (!place.ok()) break;
    if (result.length != 0) {
      EXPECT_EQ(place->position, lines.size());
    }
    for (const std::string& line : TakeLines(&result, kinds)) lines.push_back(line);
    more = place->more;
  }
  return lines;
}

TEST(ArrowSorts, KeepArraysWithStrings) {
  auto batch = InputBatch();
  {
    quern::Sort sort = BoundSort();
    ASSERT_EQ(sort.AppendArrow(&batch->array).text(), "");
    EXPECT_EQ(batch->array.release, nullptr) << "moved in";
    EXPECT_EQ(batch->times_released, 0) << "rows point to its strings";
    ASSERT_EQ(sort.Finalise().text(), "");
    EXPECT_EQ(ArrowRowsOf(sort, "srdr", 3), InputRows());
    auto sorted = quern::SortedRows::Create(sort);
    sort = NewSort(kSpec);
    EXPECT_EQ(batch->times_released, 0) << "the reader keeps the sort";
  }
  EXPECT_EQ(batch->times_released, 1);
}

TEST(ArrowSorts, ReleaseArraysWithoutStrings) {
  const TestSchema schema({{"k", "l"}, {"v", "g"}});
  const int32_t key[] = {0}, payload[] = {1};
  quern::Sort sort = NewSort("sort keys=i64:out payload=f64");
  ASSERT_EQ(sort.BindArrow({&schema.schema, key, payload}).text(), "");
  auto batch = StructArray(3, FixedArray<int64_t>({3, 1, 2}), FixedArray<double>({30, 10, 20}));
  ASSERT_EQ(sort.AppendArrow(&batch->array).text(), "");
  EXPECT_EQ(batch->times_released, 1) << "nothing is kept of it";
  ASSERT_EQ(sort.Finalise().text(), "");
  EXPECT_EQ(ArrowRowsOf(sort, "ld"), (Lines{"1|10", "2|20", "3|30"}));
}

TEST(ArrowSorts, CopyTheFewStringsUnderALimit) {
  auto batch = InputBatch();
  quern::Sort sort = BoundSort("sort keys=dictionary(i32,utf8):nullable:out,i64:desc payload=rowid,f64 limit=2");
  ASSERT_EQ(sort.AppendArrow(&batch->array).text(), "");
  EXPECT_EQ(batch->times_released, 1) << "nothing is kept of it";
  ASSERT_EQ(sort.Finalise().text(), "");
  EXPECT_EQ(ArrowRowsOf(sort, "srd"), (Lines{"ASIA|1|20", "a region of some length|2|30"}));
}

TEST(ArrowSorts, OutliveTheirHandles) {
  auto batch = InputBatch();
  ArrowArray result;
  {
    quern::Sort sort = BoundSort();
    auto appender = quern::SortAppender::Create(sort);
    ASSERT_EQ(appender->AppendArrow(&batch->array).text(), "");
    ASSERT_EQ(appender->Finish().text(), "");
    ASSERT_EQ(sort.FinaliseShared().text(), "");
    auto sorted = quern::SortedRows::Create(sort);
    ASSERT_TRUE(sorted->NextArrow(&result).ok());
  }
  EXPECT_EQ(batch->times_released, 1);
  EXPECT_EQ(TakeLines(&result, "srdr"), InputRows());
}

TEST(ArrowSorts, CountRowIdsOnFromBatchToBatch) {
  const TestSchema schema(std::vector<TestField>{{"k", "i"}});
  const int32_t key[] = {0}, payload[] = {-1};
  quern::Sort sort = NewSort("sort keys=i32 payload=rowid stable");
  ASSERT_EQ(sort.BindArrow({&schema.schema, key, payload}).text(), "");
  for (int i = 0; i < 2; ++i) {
    auto batch = StructArray(3, FixedArray<int32_t>({2, 1, 2}));
    ASSERT_EQ(sort.AppendArrow(&batch->array).text(), "");
  }
  ASSERT_EQ(sort.Finalise().text(), "");
  EXPECT_EQ(ArrowRowsOf(sort, "r"), (Lines{"1", "4", "0", "2", "3", "5"}));
}

TEST(ArrowSorts, SayWhatTheirResultsAre) {
  ArrowSchema schema;
  ASSERT_EQ(BoundSort().ResultSchema(&schema).text(), "");
  EXPECT_EQ(TakeFields(&schema), "region:u? rowid:L price:g row_number:L");
  const TestSchema units({{"t", "tsu:UTC"}, {"d", "d:12,2"}});
  const int32_t keys[] = {0, 1}, payload[] = {0};
  quern::Sort sort =
      NewSort("sort keys=timestamp,decimal128:out payload=timestamp:nullable partition=1 window=dense_rank,rank");
  ASSERT_EQ(sort.BindArrow({&units.schema, keys, payload}).text(), "");
  ASSERT_EQ(sort.ResultSchema(&schema).text(), "");
  EXPECT_EQ(TakeFields(&schema), "d:d:12,2 t:tsu:UTC? dense_rank:L rank:L");
}

// ---- refusals ----

TEST(ArrowSortErrors, BeforeTheColumnsAreBound) {
  const std::string text = "Arrow columns not bound: the sort has no binding; accepted: after quern_sort_bind_arrow";
  quern::Sort sort = NewSort(kSpec);
  ArrowSchema schema;
  EXPECT_EQ(ErrorOf(QUERN_FAILED_PRECONDITION, quern_sort_result_schema, sort.handle(), &schema), text);
  EXPECT_EQ(RefusalOf(QUERN_FAILED_PRECONDITION, quern_sort_append_arrow, sort.handle(), InputBatch()), text);
  auto appender = quern::SortAppender::Create(sort);
  EXPECT_EQ(RefusalOf(QUERN_FAILED_PRECONDITION, quern_sort_appender_append_arrow, appender->handle(), InputBatch()),
            text);
}

TEST(ArrowSortErrors, WrongOrder) {
  quern::Sort sort = BoundSort();
  const quern::Status twice = sort.BindArrow({&InputSchema().schema, kKeys, kPayload});
  EXPECT_EQ(twice.text(), "Arrow columns bound twice: the sort has a binding; accepted: a new sort");
  EXPECT_EQ(twice.code(), QUERN_FAILED_PRECONDITION);
  auto appender = quern::SortAppender::Create(sort);
  ASSERT_EQ(appender->Finish().text(), "");
  EXPECT_EQ(RefusalOf(QUERN_FAILED_PRECONDITION, quern_sort_appender_append_arrow, appender->handle(), InputBatch()),
            "append after finish: the rows were handed over; accepted: a new appender");
  ASSERT_EQ(sort.Finalise().text(), "");
  EXPECT_EQ(RefusalOf(QUERN_FAILED_PRECONDITION, quern_sort_append_arrow, sort.handle(), InputBatch()),
            "append after finalise: the rows are sorted; accepted: a new sort");
}

TEST(ArrowSortErrors, NullArguments) {
  quern::Sort unbound = NewSort(kSpec);
  quern_sort* const sort = unbound.handle();
  quern_sort* const no_sort = nullptr;
  const int32_t* const no_numbers = nullptr;
  const ArrowSchema *input = &InputSchema().schema, *no_schema = nullptr;
  ArrowArray* const no_array = nullptr;
  ArrowArray result;
  ArrowSchema schema;
  uint64_t position = 0;
  bool more = false;
  const auto invalid = [](auto... call) { return ErrorOf(QUERN_INVALID_ARGUMENT, call...); };
  EXPECT_EQ(invalid(quern_sort_bind_arrow, no_sort, input, kKeys, kPayload),
            "null argument: sort; accepted: a pointer");
  EXPECT_EQ(invalid(quern_sort_bind_arrow, sort, no_schema, kKeys, kPayload),
            "null argument: input; accepted: a pointer");
  EXPECT_EQ(invalid(quern_sort_bind_arrow, sort, input, no_numbers, kPayload),
            "null argument: keys; accepted: a pointer");
  EXPECT_EQ(invalid(quern_sort_bind_arrow, sort, input, kKeys, no_numbers),
            "null argument: payload; accepted: a pointer");
  EXPECT_EQ(invalid(quern_sort_result_schema, no_sort, &schema), "null argument: sort; accepted: a pointer");
  EXPECT_EQ(invalid(quern_sort_result_schema, sort, static_cast<ArrowSchema*>(nullptr)),
            "null argument: schema; accepted: a pointer");
  EXPECT_EQ(invalid(quern_sort_append_arrow, sort, no_array), "null argument: batch; accepted: a pointer");
  EXPECT_EQ(RefusalOf(QUERN_INVALID_ARGUMENT, quern_sort_append_arrow, no_sort, InputBatch()),
            "null argument: sort; accepted: a pointer");
  EXPECT_EQ(RefusalOf(QUERN_INVALID_ARGUMENT, quern_sort_appender_append_arrow,
                      static_cast<quern_sort_appender*>(nullptr), InputBatch()),
            "null argument: appender; accepted: a pointer");
  quern_sorted* const no_sorted = nullptr;
  EXPECT_EQ(invalid(quern_sorted_next_arrow, no_sorted, &result, &position, &more),
            "null argument: sorted; accepted: a pointer");
  EXPECT_EQ(invalid(quern_sorted_next_arrow, no_sorted, no_array, &position, &more),
            "null argument: result; accepted: a pointer");
  EXPECT_EQ(invalid(quern_sorted_next_arrow, no_sorted, &result, &position, static_cast<bool*>(nullptr)),
            "null argument: more; accepted: a pointer");
}

TEST(ArrowSortErrors, SchemasThatDisagreeWithTheSpec) {
  const auto bind = [](const ArrowSchema& input, const int32_t* keys, const int32_t* payload) {
    quern::Sort unbound = NewSort(kSpec);
    return ErrorOf(QUERN_INVALID_ARGUMENT, quern_sort_bind_arrow, unbound.handle(), &input, keys, payload);
  };
  const TestSchema plain({{"price", "g"}, {"region", "u"}, {"quantity", "l"}});
  const TestSchema narrow({{"price", "f"}, {"region", "i", "u"}, {"quantity", "l"}});
  EXPECT_EQ(bind(plain.schema, kKeys, kPayload),
            "wrong type for input keys[0]: field \"region\" is utf8; accepted: dictionary(i32,utf8)");
  EXPECT_EQ(bind(narrow.schema, kKeys, kPayload),
            "wrong type for input payload[1]: field \"price\" is f32; accepted: f64");
  const int32_t three[] = {3, 2};
  EXPECT_EQ(bind(InputSchema().schema, three, kPayload), "field out of range for keys[0]: 3; accepted: 0 to 2");
  ArrowSchema list = InputSchema().schema;
  list.format = "+l";
  EXPECT_EQ(bind(list, kKeys, kPayload), "not a struct schema on the input side: +l; accepted: +s");
}

TEST(ArrowSortErrors, BatchesThatAreIllFormed) {
  auto batch = InputBatch(), good = InputBatch();
  quern::Sort sort = BoundSort();
  batch->children[0]->array.length = 2;
  EXPECT_EQ(RefusalOf(QUERN_INVALID_ARGUMENT, quern_sort_append_arrow, sort.handle(), std::move(batch)),
            "too few rows of column payload[1]: 2; accepted: 4 or more");
  ArrowArray released = {};
  EXPECT_EQ(ErrorOf(QUERN_INVALID_ARGUMENT, quern_sort_append_arrow, sort.handle(), &released),
            "released array: no release callback; accepted: a struct array that is alive");
  EXPECT_EQ(sort.AppendArrow(&good->array).text(), "") << "a batch that was refused changes nothing";
}

}  // namespace
}  // namespace quern_test
