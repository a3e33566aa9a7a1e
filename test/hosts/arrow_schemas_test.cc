// SPDX-License-Identifier: Apache-2.0
// Arrow schemas of jobs: the names, formats and nulls of what comes out, schemas that do not fit the spec, and arrays
// that are ill-formed, each with the full text of its refusal.
#include <gtest/gtest.h>

#include "test/hosts/arrow_results.h"
#include "test/hosts/operators.h"

namespace quern_test {
namespace {

// Build side or input: {id: int64, region: dictionary of utf8, nullable, price: float64}; probe side: {region, id}.
const TestSchema& Input() {
  static const TestSchema schema({{"id", "l"}, {"region", "i", "u", true}, {"price", "g", nullptr, true}});
  return schema;
}
const TestSchema& Probe() {
  static const TestSchema schema({{"region", "u"}, {"id", "l"}});
  return schema;
}
constexpr int32_t kId[] = {0}, kProbeId[] = {1};

// ---- results ----

// "name:format", with a '?' where the field is nullable.
std::string FieldsOf(const quern::Job& job, quern_port port) {
  ArrowSchema schema;
  Done(job.ResultSchema(port, &schema));
  return TakeFields(&schema);
}

std::string JoinFields(const char* spec, const int32_t* build_payload, const int32_t* probe_payload) {
  quern::Join join = New<quern::Join>(spec, Engine::kGeneric);
  const std::span<const int32_t> build(build_payload, 1), probe(probe_payload, 1);  // only the pointers are read
  Done(join.BindArrow(QUERN_PORT_BUILD, {&Input().schema, kId, build}));
  Done(join.BindArrow(QUERN_PORT_PROBE, {&Probe().schema, kProbeId, probe}));
  const std::string fields = FieldsOf(join, QUERN_PORT_PROBE);
  EXPECT_EQ(FieldsOf(join, QUERN_PORT_UNMATCHED), fields);
  return fields;
}

TEST(ArrowSchemas, OfJoinsSayWhatMayBeNull) {
  const int32_t build[] = {2, -1}, probe[] = {0, -1}, none[] = {0}, region[] = {1};
  EXPECT_EQ(JoinFields("join.inner keys=i64 build=f64,rowid probe=utf8,rowid", build, probe),
            "region:u probe_rowid:L price:g build_rowid:L");
  EXPECT_EQ(JoinFields("join.left keys=i64 build=f64,rowid probe=utf8,rowid", build, probe),
            "region:u probe_rowid:L price:g? build_rowid:L?");
  EXPECT_EQ(JoinFields("join.right keys=i64 build=f64,rowid probe=utf8,rowid", build, probe),
            "region:u? probe_rowid:L? price:g build_rowid:L");
  EXPECT_EQ(JoinFields("join.full keys=i64 build=f64,rowid probe=utf8,rowid", build, probe),
            "region:u? probe_rowid:L? price:g? build_rowid:L?");
  EXPECT_EQ(JoinFields("join.semi keys=i64 probe=utf8,rowid", none, probe), "region:u probe_rowid:L");
  EXPECT_EQ(JoinFields("join.right_anti keys=i64 build=f64,rowid", build, none), "price:g build_rowid:L");
  EXPECT_EQ(JoinFields("join.mark keys=i64 probe=utf8,rowid", none, probe), "region:u probe_rowid:L mark:b");
  EXPECT_EQ(JoinFields("join.mark keys=i64:nullable probe=utf8,rowid", none, probe), "region:u probe_rowid:L mark:b?");
  EXPECT_EQ(JoinFields("join.inner keys=i64 build=dictionary(i32,utf8):nullable probe=utf8", region, probe),
            "region:u region:u?")
      << "dictionaries come out decoded";
}

TEST(ArrowSchemas, OutliveTheirJobAndTheirParent) {
  ArrowSchema schema;
  {
    quern::Job sort = NewJob(kSort);
    Done(sort.BindArrow(QUERN_PORT_ROWS, {&Input().schema, kId, kId}));
    Done(sort.ResultSchema(QUERN_PORT_ROWS, &schema));
  }
  EXPECT_STREQ(schema.format, "+s");
  ASSERT_EQ(schema.n_children, 2);
  ArrowSchema id = *schema.children[1];  // moved out, and released after its parent
  schema.children[1]->release = nullptr;
  schema.release(&schema);
  EXPECT_EQ(schema.release, nullptr);
  EXPECT_STREQ(id.name, "id");
  EXPECT_STREQ(id.format, "l");
  EXPECT_EQ(id.dictionary, nullptr);
  id.release(&id);
  EXPECT_EQ(id.release, nullptr);
}

// The result's fields of an aggregate of one column.
std::string AggregateFields(const char* aggregate, const TestField& argument) {
  quern::Aggregate job = New<quern::Aggregate>("aggregate keys=i64 aggs=" + std::string(aggregate), Engine::kGeneric);
  const TestSchema schema({{"k", "l"}, argument});
  const int32_t payload[] = {1, 1};
  Done(job.BindArrow(QUERN_PORT_ROWS, {&schema.schema, kId, payload}));
  return FieldsOf(job, QUERN_PORT_ROWS);
}

// The same of an aggregate of expressions, or the error.
std::string FieldsOfExpression(const std::string& in, const std::string& aggregate, const TestField& column) {
  quern::Aggregate job = New<quern::Aggregate>("aggregate keys=i64 in=" + in + " aggs=" + aggregate, Engine::kGeneric);
  const TestSchema schema({{"k", "l"}, column});
  const int32_t payload[] = {1};
  const quern::Status bound = job.BindArrow(QUERN_PORT_ROWS, {&schema.schema, kId, payload});
  return bound.ok() ? FieldsOf(job, QUERN_PORT_ROWS) : bound.text();
}

TEST(ArrowSchemas, OfExpressionsTakeDigitsFromTheirTypes) {
  EXPECT_EQ(FieldsOfExpression("decimal128(12,2)", "sum(multiply($0,$0)),max($0)", {"d", "d:12,2"}),
            "k:l sum(multiply($0,$0)):d:38,4 max($0):d:12,2");
  EXPECT_EQ(FieldsOfExpression("timestamp", "max(least($0,5:timestamp))", {"t", "tsm:UTC"}),
            "k:l max(least($0,5:timestamp)):tsm:UTC");
  EXPECT_EQ(FieldsOfExpression("i64", "avg(add($0,1:i64)):filter(less($0,9:i64))", {"i", "l"}),
            "k:l avg(add($0,1:i64)):filter(less($0,9:i64)):g?");
  EXPECT_EQ(FieldsOfExpression("decimal128(12,2)", "sum($0)", {"d", "d:12,3"}),
            "format of aggregate column 0: d:12,3; accepted: d:12,2");
}

TEST(ArrowSchemas, OfAggregationsTakeUnitsFromTheArguments) {
  EXPECT_EQ(AggregateFields("min(timestamp)", {"t", "tsu:UTC"}), "k:l min(timestamp):tsu:UTC");
  EXPECT_EQ(AggregateFields("any(dictionary(i8,time32))", {"t", "c", "ttm"}), "k:l any(dictionary(i8,time32)):ttm");
  EXPECT_EQ(AggregateFields("max(decimal128)", {"d", "d:12,2"}), "k:l max(decimal128):d:12,2");
  EXPECT_EQ(AggregateFields("sum(decimal128)", {"d", "d:12,2"}), "k:l sum(decimal128):d:38,2");
  EXPECT_EQ(AggregateFields("avg(decimal128)", {"d", "d:12,-3,128"}), "k:l avg(decimal128):d:38,-3");
  EXPECT_EQ(AggregateFields("sum128(i32)", {"i", "i"}), "k:l sum128(i32):d:38,0");
  EXPECT_EQ(AggregateFields("sum(u8)", {"i", "C"}), "k:l sum(u8):L");
  EXPECT_EQ(AggregateFields("avg(i32)", {"i", "i"}), "k:l avg(i32):g");
  EXPECT_EQ(AggregateFields("bool_and(bool)", {"b", "b"}), "k:l bool_and(bool):b");
  EXPECT_EQ(AggregateFields("corr(f32,f32)", {"f", "f"}), "k:l corr(f32,f32):g?");
  EXPECT_EQ(AggregateFields("max(fixed_binary(7))", {"b", "w:7"}), "k:l max(fixed_binary(7)):w:7");
  EXPECT_EQ(AggregateFields("string_agg(large_utf8,x'2c')", {"s", "U"}), "k:l string_agg(large_utf8,x'2c'):U");
}

TEST(ArrowSchemas, OfGroupsAndTheirStates) {
  const TestSchema schema({{"price", "g"}, {"region", "i", "u", true}, {"ok", "b"}, {"quantity", "l"}});
  const int32_t keys[] = {1}, payload[] = {3, 0, 2};
  quern::Aggregate job = New<quern::Aggregate>(
      "aggregate keys=dictionary(i32,utf8):nullable aggs=count_star,sum(i64),max(f64):filter", Engine::kGeneric);
  Done(job.BindArrow(QUERN_PORT_ROWS, {&schema.schema, keys, payload}));
  EXPECT_EQ(FieldsOf(job, QUERN_PORT_ROWS), "region:u? count_star:l sum(i64):l max(f64):filter:g?");
  EXPECT_EQ(FieldsOf(job, QUERN_PORT_STATES), "region:u? count_star:z sum(i64):z max(f64):filter:z");
}

TEST(ArrowSchemas, OfSortsAndMerges) {
  const TestSchema schema({{"t", "tsu:UTC"}, {"d", "d:12,2"}});
  const int32_t keys[] = {0, 1}, payload[] = {0, -1};
  const std::string spec = "sort keys=timestamp,decimal128:out payload=timestamp:nullable,rowid";
  quern::Job sort = NewJob(kSort, {}, (spec + " partition=1 window=dense_rank,rank").c_str()),
             merge = NewJob(kMerge, {}, spec.c_str());
  for (quern::Job* job : {&sort, &merge}) Done(job->BindArrow(QUERN_PORT_ROWS, {&schema.schema, keys, payload}));
  EXPECT_EQ(FieldsOf(sort, QUERN_PORT_ROWS), "d:d:12,2 t:tsu:UTC? rowid:L dense_rank:L rank:L");
  EXPECT_EQ(FieldsOf(merge, QUERN_PORT_ROWS), "d:d:12,2 t:tsu:UTC? rowid:L");
  ArrowSchema none;
  EXPECT_EQ(sort.ResultSchema(QUERN_PORT_THRESHOLD, &none).text(),
            "port that the sort does not have here: QUERN_PORT_THRESHOLD; accepted: QUERN_PORT_ROWS");
  EXPECT_EQ(New<quern::Filter>("filter bool", Engine::kGeneric).ResultSchema(QUERN_PORT_ROWS, &none).code(),
            QUERN_FAILED_PRECONDITION);
}

// ---- refusals ----

TEST(ArrowSchemaErrors, FieldsOfAnotherType) {
  const auto bind = [](const ArrowSchema& schema, const int32_t* keys, const int32_t* payload) {
    quern::Job sort = NewJob(kSort, {}, "sort keys=i64 payload=f64,dictionary(i32,utf8):nullable,rowid");
    return ErrorOf(QUERN_INVALID_ARGUMENT, quern_job_bind_arrow, sort.handle(), QUERN_PORT_ROWS, &schema, keys,
                   payload);
  };
  const int32_t payload[] = {2, 1, -1}, three[] = {3}, rowid_of_a_column[] = {2, 1, 0};
  const TestSchema narrow({{"id", "i"}, {"region", "i", "u"}, {"price", "g"}}),
      plain({{"id", "l"}, {"region", "u"}, {"price", "g"}}),
      interval({{"id", "tin"}, {"region", "i", "u"}, {"price", "g"}});
  EXPECT_EQ(bind(narrow.schema, kId, payload), "wrong type for input keys[0]: field \"id\" is i32; accepted: i64");
  EXPECT_EQ(bind(plain.schema, kId, payload),
            "wrong type for input payload[1]: field \"region\" is utf8; accepted: dictionary(i32,utf8)");
  EXPECT_EQ(bind(interval.schema, kId, payload),
            "wrong type for input keys[0]: field \"id\" is of unsupported format tin; accepted: i64");
  EXPECT_EQ(bind(Input().schema, three, payload), "field out of range for keys[0]: 3; accepted: 0 to 2");
  EXPECT_EQ(bind(Input().schema, kId, rowid_of_a_column),
            "field out of range for payload[2]: 0; accepted: -1 for a rowid");
  ArrowSchema list = Input().schema;
  list.format = "+l";
  EXPECT_EQ(bind(list, kId, payload), "not a struct schema on the input side: +l; accepted: +s");
}

TEST(ArrowSchemaErrors, FieldsOfAggregates) {
  quern::Job job = NewJob(kAggregation, {}, "aggregate keys=i64 aggs=sum(i64):filter");
  const int32_t payload[] = {0, 2};
  EXPECT_EQ(job.BindArrow(QUERN_PORT_ROWS, {&Input().schema, kId, payload}).text(),
            "wrong type for input payload[1]: field \"price\" is f64; accepted: bool");
}

// Binds both sides of a join to a key and, where there is a residual predicate, to a second column.
std::string BindBoth(const std::string& spec, const TestField& build, const TestField& probe) {
  quern::Join join = New<quern::Join>(spec, Engine::kGeneric);
  const TestSchema build_schema({{"id", "l"}, build}), probe_schema({{"id", "l"}, probe});
  const bool has_residual = spec.find("residual") != std::string::npos;
  const int32_t first[] = {has_residual ? 0 : 1}, second[] = {1};
  Done(join.BindArrow(QUERN_PORT_BUILD, {&build_schema.schema, first, second}));
  const quern::Status status = join.BindArrow(QUERN_PORT_PROBE, {&probe_schema.schema, first, second});
  if (!status.ok()) {
    Done(join.BindArrow(QUERN_PORT_PROBE, {&build_schema.schema, first, second}));  // nothing was bound
  }
  return status.text();
}

TEST(ArrowSchemaErrors, KeysAndResidualsOfDifferentUnits) {
  const auto differ = [](const std::string& part, const std::string& build, const std::string& probe) {
    return part + " of different units: " + part + "[0] is " + build + " on the build side, " + probe +
           " on the probe side; accepted: the same unit or scale";
  };
  const std::string keys = "join.inner keys=", residual = "join.semi keys=i64 residual=timestamp:lt";
  EXPECT_EQ(BindBoth(keys + "decimal128", {"d", "d:10,2"}, {"d", "d:38,2,128"}), "");
  EXPECT_EQ(BindBoth(keys + "decimal128", {"d", "d:10,2"}, {"d", "d:10,4"}), differ("keys", "d:10,2", "d:10,4"));
  EXPECT_EQ(BindBoth(keys + "timestamp", {"t", "tsu:"}, {"t", "tsu:UTC"}), "");
  EXPECT_EQ(BindBoth(keys + "timestamp", {"t", "tsu:"}, {"t", "tsm:"}), differ("keys", "tsu:", "tsm:"));
  EXPECT_EQ(BindBoth(keys + "duration", {"t", "tDs"}, {"t", "tDs"}), "");
  EXPECT_EQ(BindBoth(keys + "duration", {"t", "tDs"}, {"t", "tDn"}), differ("keys", "tDs", "tDn"));
  EXPECT_EQ(BindBoth(keys + "dictionary(i8,time32)", {"t", "c", "tts"}, {"t", "c", "ttm"}),
            differ("keys", "tts", "ttm"));
  EXPECT_EQ(BindBoth(residual, {"t", "tsu:"}, {"t", "tsu:UTC"}), "");
  EXPECT_EQ(BindBoth(residual, {"t", "tsu:"}, {"t", "tsm:"}), differ("residual", "tsu:", "tsm:"));
}

TEST(ArrowSchemas, HaveResidualColumnsAfterThePayload) {
  const TestSchema schema({{"id", "l"}, {"day", "tdD"}, {"name", "u"}});
  const auto batch = [](const std::vector<int32_t>& days) {
    return StructArray(2, FixedArray<int64_t>({1, 2}), FixedArray<int32_t>(days), Utf8Array({"one", "two"}));
  };
  auto build = batch({10, 20}), probe = batch({11, 20});
  quern::Join join = New<quern::Join>("join.left keys=i64 build=utf8,rowid probe=utf8 residual=date32:gt");
  const int32_t build_payload[] = {2, -1, 1}, probe_payload[] = {2, 1};
  Done(join.BindArrow(QUERN_PORT_BUILD, {&schema.schema, kId, build_payload}));
  Done(join.BindArrow(QUERN_PORT_PROBE, {&schema.schema, kId, probe_payload}));
  quern::Input input = Take(join.Build());
  Done(input.AppendArrow(&build->array));
  Done(input.Finish());
  Done(join.Finalise());
  quern::Output probed = Take(join.Probe());
  Done(probed.PushArrow(&probe->array));
  EXPECT_EQ(Ordered(ArrowLines(&probed, "ssr")), (Lines{"one|one|0", "two|null|null"}));
}

// ---- ill-formed arrays ----

TestArrayPtr Regions(const std::vector<int32_t>& indices) {
  return DictionaryArray(indices, Utf8Array({"ASIA", "EUROPE"}));
}
TestArrayPtr Good() {
  return StructArray(3, FixedArray<int64_t>({1, 2, 3}), Regions({1, 0, 1}), FixedArray<double>({10, 20, 30}));
}

std::string Refusal(TestArrayPtr batch) {
  const int32_t payload[] = {2, 1};
  quern::Sort sort = New<quern::Sort>("sort keys=i64 payload=f64,dictionary(i32,utf8):nullable", Engine::kGeneric);
  Done(sort.BindArrow(QUERN_PORT_ROWS, {&Input().schema, kId, payload}));
  quern::Input rows = Take(sort.Rows());
  return RefusalOf(std::move(batch), [&](ArrowArray* array) { return rows.AppendArrow(array); }).text();
}

TEST(IllFormedArrays, LengthsAndBuffers) {
  auto batch = Good();
  batch->array.length = -1;
  EXPECT_EQ(Refusal(std::move(batch)), "number of rows out of range: -1; accepted: below 4294967295");
  batch = Good();
  batch->children[0]->array.length = -5;
  EXPECT_EQ(Refusal(std::move(batch)), "negative length of column keys[0]: -5; accepted: 0 or more");
  batch = Good();
  batch->children[0]->array.n_buffers = 3;
  EXPECT_EQ(Refusal(std::move(batch)), "wrong number of buffers of column keys[0]: 3; accepted: 2");
  batch = Good();
  batch->array.n_children = 2;
  EXPECT_EQ(Refusal(std::move(batch)), "field out of range for payload[0]: 2; accepted: 0 to 1");
  batch = Good();
  batch->children[0]->pointers()[1] = nullptr;
  EXPECT_EQ(Refusal(std::move(batch)),
            "missing buffer of column keys[0]: values; accepted: no null pointer where there are 3 rows");
}

TEST(IllFormedArrays, NullsAndDictionaries) {
  const auto with = [](TestArrayPtr ids, TestArrayPtr regions) {
    return Refusal(StructArray(3, std::move(ids), std::move(regions), FixedArray<double>({1, 2, 3})));
  };
  const auto ids = [] { return FixedArray<int64_t>({1, 2, 3}); };
  EXPECT_EQ(with(ids(), WithNulls(Regions({1, 0, 1}), {0x05}, 2)),
            "wrong null count of column payload[1]: 2; accepted: -1 or 1, as its bitmap says");
  EXPECT_EQ(with(WithNulls(ids(), {0x06}, 1), Regions({1, 0, 1})),
            "null at row 0 of column keys[0]: i64; accepted: no nulls, or a spec with i64:nullable");
  EXPECT_EQ(with(ids(), Regions({1, 2, 0})),
            "index outside the dictionary at row 1 of column payload[1]: 2; accepted: 0 or more, below 2");
  EXPECT_EQ(with(ids(), FixedArray<int32_t>({1, 0, 0})),
            "missing dictionary of column payload[1]: none; accepted: dictionary(i32,utf8)");
}

TEST(IllFormedArrays, OffsetsOfProbes) {
  quern::Join join = New<quern::Join>("join.anti keys=i64 probe=utf8", Engine::kGeneric);
  Done(join.Finalise());
  const int32_t region[] = {0};
  Done(join.BindArrow(QUERN_PORT_PROBE, {&Probe().schema, kProbeId, region}));
  quern::Output probe = Take(join.Probe());
  auto batch = StructArray(4, Utf8Array({"w", "x", "y", "z"}), FixedArray<int64_t>({1, 2, 3, 4}));
  const std::vector<int32_t> offsets = {0, 2, 1, 3, 4};
  batch->children[0]->pointers()[1] = offsets.data();
  EXPECT_EQ(RefusalOf(std::move(batch), [&](ArrowArray* array) { return probe.PushArrow(array); }).text(),
            "offsets fall at row 1 of column payload[0]: 2 to 1; accepted: non-decreasing");
}

}  // namespace
}  // namespace quern_test
