// SPDX-License-Identifier: Apache-2.0
// The C ABI's Arrow side: who owns what and when, schemas in and out, and the refusal of ill-formed input with its full
// text.
#include "test/hosts/arrow_arrays.h"

#include <gtest/gtest.h>

#include "test/hosts/arrow_results.h"
#include "test/hosts/host_tables.h"

namespace quern_test {
namespace {

// Arrays are declared before the join that they are moved into, since they must outlive it.
//
// Build side: {id: int64, region: dictionary of utf8, nullable, price: float64}; probe side: {region, id}.
constexpr const char* kSpec = "join.inner keys=i64 build=f64,dictionary(i32,utf8):nullable,rowid probe=utf8,rowid";
constexpr int32_t kBuildKeys[] = {0}, kBuildPayload[] = {2, 1, -1}, kProbeKeys[] = {1}, kProbePayload[] = {0, -1};

const TestSchema& BuildSchema() {
  static const TestSchema schema({{"id", "l"}, {"region", "i", "u", true}, {"price", "g", nullptr, true}});
  return schema;
}
const TestSchema& ProbeSchema() {
  static const TestSchema schema({{"region", "u"}, {"id", "l"}});
  return schema;
}

TestArrayPtr Regions(const std::vector<int32_t>& indices) {
  return DictionaryArray(indices, Utf8Array({"ASIA", "EUROPE"}));
}

TestArrayPtr BuildBatch() {
  return StructArray(3, FixedArray<int64_t>({1, 2, 3}), Regions({1, 0, 1}), FixedArray<double>({10, 20, 30}));
}
TestArrayPtr ProbeBatch() { return StructArray(4, Utf8Array({"w", "x", "y", "z"}), FixedArray<int64_t>({3, 9, 1, 3})); }

struct ArrowJoin {
  explicit ArrowJoin(bool bind = true, const char* spec = kSpec) {
    auto compiled = quern::Kernel::Compile(spec, quern::Engine::kGeneric);
    EXPECT_TRUE(compiled.ok()) << compiled.status().text();
    auto created = quern::Join::Create(*compiled);
    join = std::make_unique<quern::Join>(*std::move(created));
    if (bind) {
      EXPECT_EQ(Bind().text(), "");
    }
  }
  quern::Status Bind() {
    return join->BindArrow({&BuildSchema().schema, kBuildKeys, kBuildPayload},
                           {&ProbeSchema().schema, kProbeKeys, kProbePayload});
  }

  std::unique_ptr<quern::Join> join;
};

TEST(Arrow, JoinsAndOutlivesItsHandles) {
  auto build = BuildBatch(), probe = ProbeBatch();
  std::vector<ArrowArray> results;
  {
    ArrowJoin arrow;
    ASSERT_EQ(arrow.join->AppendArrow(&build->array).text(), "");
    EXPECT_EQ(build->array.release, nullptr) << "moved in";
    EXPECT_EQ(build->times_released, 0) << "the table points to its strings";
    ASSERT_EQ(arrow.join->Finalise().text(), "");
    auto prober = quern::Prober::Create(*arrow.join, 2);
    ASSERT_EQ(prober->InputArrow(&probe->array).text(), "");
    for (bool more = true; more;) {
      auto answer = prober->NextArrow(&results.emplace_back());
      ASSERT_TRUE(answer.ok()) << answer.status().text();
      more = *answer;
    }
  }
  EXPECT_EQ(build->times_released, 1);
  EXPECT_EQ(probe->times_released, 1);
  Lines lines;
  for (ArrowArray& result : results) {
    for (const std::string& line : TakeLines(&result, "srdsr")) lines.push_back(line);
  }
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(lines, (Lines{"w|0|30|EUROPE|2", "y|2|10|EUROPE|0", "z|3|30|EUROPE|2"}));
}

TEST(Arrow, RowIdsGoOnFromBatchToBatch) {
  auto first = BuildBatch(), second = BuildBatch(), probe = ProbeBatch(), before = ProbeBatch();
  ArrowJoin arrow;
  ASSERT_EQ(arrow.join->AppendArrow(&first->array).text(), "");
  ASSERT_EQ(arrow.join->AppendArrow(&second->array).text(), "");
  ASSERT_EQ(arrow.join->Finalise().text(), "");
  auto prober = quern::Prober::Create(*arrow.join);
  ArrowArray result;
  ASSERT_EQ(prober->InputArrow(&before->array).text(), "");
  ASSERT_EQ(prober->InputArrow(&probe->array).text(), "");
  ASSERT_TRUE(prober->NextArrow(&result).ok());
  Lines lines = TakeLines(&result, "srdsr");
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(lines, (Lines{"w|4|30|EUROPE|2", "w|4|30|EUROPE|5", "y|6|10|EUROPE|0", "y|6|10|EUROPE|3", "z|7|30|EUROPE|2",
                          "z|7|30|EUROPE|5"}));
}

TEST(Arrow, BuildBatchesWithoutStringsAreReleasedAtOnce) {
  auto build = BuildBatch(), probe = ProbeBatch();
  ArrowJoin arrow(false, "join.inner keys=i64 build=f64 probe=rowid");
  const int32_t key[] = {0}, price[] = {2}, probe_key[] = {1}, rowid[] = {-1};
  ASSERT_EQ(
      arrow.join->BindArrow({&BuildSchema().schema, key, price}, {&ProbeSchema().schema, probe_key, rowid}).text(), "");
  ASSERT_EQ(arrow.join->AppendArrow(&build->array).text(), "");
  EXPECT_EQ(build->times_released, 1);
  ASSERT_EQ(arrow.join->Finalise().text(), "");
  auto prober = quern::Prober::Create(*arrow.join);
  ASSERT_EQ(prober->InputArrow(&probe->array).text(), "");
  ArrowArray result;
  ASSERT_TRUE(prober->NextArrow(&result).ok());
  EXPECT_EQ(TakeLines(&result, "rd"), (Lines{"0|30", "2|10", "3|30"}));
}

TEST(Arrow, OneSideMayComeAsTheHostsVectors) {
  auto probe = ProbeBatch();
  ArrowJoin arrow(false, "join.inner keys=i64 build=rowid probe=rowid");
  const int32_t key[] = {1}, rowid[] = {-1};
  const std::vector<int64_t> numbers = {3, 1};
  ASSERT_EQ(arrow.join->Append(Table{{ColumnOf(numbers)}, {quern_column{}}, 2}.batch()).text(), "");
  ASSERT_EQ(arrow.join->Finalise().text(), "");
  ASSERT_EQ(arrow.join->BindArrow({&ProbeSchema().schema, key, rowid}, {&ProbeSchema().schema, key, rowid}).text(), "");
  auto prober = quern::Prober::Create(*arrow.join);
  ASSERT_EQ(prober->InputArrow(&probe->array).text(), "");
  EXPECT_EQ(ScanUnmatched(&*prober, "rr"), (Lines{"0|0", "2|1", "3|0"}));
}

TEST(Arrow, CountingGivesAnArrayWithoutChildren) {
  auto build = BuildBatch(), probe = ProbeBatch();
  ArrowJoin arrow(false, "join.inner keys=i64");
  const int32_t build_key[] = {0}, probe_key[] = {1};
  ASSERT_EQ(
      arrow.join->BindArrow({&BuildSchema().schema, build_key, {}}, {&ProbeSchema().schema, probe_key, {}}).text(), "");
  ASSERT_EQ(arrow.join->AppendArrow(&build->array).text(), "");
  ASSERT_EQ(arrow.join->Finalise().text(), "");
  auto prober = quern::Prober::Create(*arrow.join);
  ASSERT_EQ(prober->InputArrow(&probe->array).text(), "");
  ArrowArray result;
  auto more = prober->NextArrow(&result);
  ASSERT_TRUE(more.ok());
  EXPECT_FALSE(*more);
  EXPECT_EQ(result.length, 3);
  EXPECT_EQ(result.n_children, 0);
  result.release(&result);
}

TEST(ArrowSchemas, OfResultsNameTheInputsColumns) {
  ArrowSchema schema, region;
  {
    ArrowJoin arrow;
    ASSERT_EQ(arrow.join->ResultSchema(&schema).text(), "");
  }
  EXPECT_STREQ(schema.format, "+s");
  std::string text;
  ASSERT_EQ(schema.n_children, 5);
  for (int64_t i = 0; i < schema.n_children; ++i) {
    const ArrowSchema& child = *schema.children[i];
    text += std::string(child.name) + ":" + child.format + (child.flags == kArrowNullable ? "? " : " ");
    EXPECT_EQ(child.dictionary, nullptr);
  }
  EXPECT_EQ(text, "region:u probe_rowid:L price:g region:u? build_rowid:L ");
  region = *schema.children[3];  // moved out, and released after its parent
  schema.children[3]->release = nullptr;
  schema.release(&schema);
  EXPECT_EQ(schema.release, nullptr);
  EXPECT_STREQ(region.name, "region");
  EXPECT_STREQ(region.format, "u");
  region.release(&region);
  EXPECT_EQ(region.release, nullptr);
}

// "name:format", with a '?' where the field is nullable.
std::string ResultFields(const char* spec, const int32_t* build_payload, const int32_t* probe_payload) {
  ArrowJoin arrow(false, spec);
  const ArrowSchema &build = BuildSchema().schema, &probe = ProbeSchema().schema;
  quern_error error = {};
  EXPECT_EQ(quern_join_bind_arrow(arrow.join->handle(), &build, kBuildKeys, build_payload, &probe, kProbeKeys,
                                  probe_payload, &error),
            QUERN_OK)
      << error.text;
  ArrowSchema schema;
  EXPECT_EQ(arrow.join->ResultSchema(&schema).text(), "");
  return TakeFields(&schema);
}

TEST(ArrowSchemas, SayWhichColumnsAKindMakesNullable) {
  const int32_t build[] = {2, -1}, probe[] = {0, -1}, none[] = {0};
  EXPECT_EQ(ResultFields("join.inner keys=i64 build=f64,rowid probe=utf8,rowid", build, probe),
            "region:u probe_rowid:L price:g build_rowid:L");
  EXPECT_EQ(ResultFields("join.left keys=i64 build=f64,rowid probe=utf8,rowid", build, probe),
            "region:u probe_rowid:L price:g? build_rowid:L?");
  EXPECT_EQ(ResultFields("join.right keys=i64 build=f64,rowid probe=utf8,rowid", build, probe),
            "region:u? probe_rowid:L? price:g build_rowid:L");
  EXPECT_EQ(ResultFields("join.full keys=i64 build=f64,rowid probe=utf8,rowid", build, probe),
            "region:u? probe_rowid:L? price:g? build_rowid:L?");
  EXPECT_EQ(ResultFields("join.semi keys=i64 probe=utf8,rowid", none, probe), "region:u probe_rowid:L");
  EXPECT_EQ(ResultFields("join.right_anti keys=i64 build=f64,rowid", build, none), "price:g build_rowid:L");
  EXPECT_EQ(ResultFields("join.mark keys=i64 probe=utf8,rowid", none, probe), "region:u probe_rowid:L mark:b");
  EXPECT_EQ(ResultFields("join.mark keys=i64:nullable probe=utf8,rowid", none, probe),
            "region:u probe_rowid:L mark:b?");
}

TEST(Arrow, FullJoinsComeOutWithNullsOnBothSides) {
  auto build = BuildBatch(), probe = ProbeBatch();
  ArrowJoin arrow(false, "join.full keys=i64 build=f64 probe=utf8");
  const int32_t price[] = {2}, region[] = {0};
  ASSERT_EQ(
      arrow.join->BindArrow({&BuildSchema().schema, kBuildKeys, price}, {&ProbeSchema().schema, kProbeKeys, region})
          .text(),
      "");
  ASSERT_EQ(arrow.join->AppendArrow(&build->array).text(), "");
  ASSERT_EQ(arrow.join->FinaliseShared().text(), "");
  auto prober = quern::Prober::Create(*arrow.join);
  ASSERT_EQ(prober->InputArrow(&probe->array).text(), "");
  ArrowArray result;
  ASSERT_TRUE(prober->NextArrow(&result).ok());
  Lines lines = TakeLines(&result, "sd");
  ASSERT_EQ(prober->InputUnmatched().text(), "");
  ASSERT_TRUE(prober->NextArrow(&result).ok());
  for (const std::string& line : TakeLines(&result, "sd")) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(lines, (Lines{"null|20", "w|30", "x|null", "y|10", "z|30"}));
}

TEST(Arrow, ResidualColumnsAreBoundAfterThePayload) {
  const TestSchema schema({{"id", "l"}, {"day", "tdD"}, {"name", "u"}});
  const auto batch = [](const std::vector<int32_t>& days) {
    return StructArray(2, FixedArray<int64_t>({1, 2}), FixedArray<int32_t>(days), Utf8Array({"one", "two"}));
  };
  auto build = batch({10, 20}), probe = batch({11, 20});
  ArrowJoin arrow(false, "join.left keys=i64 build=utf8,rowid probe=utf8 residual=date32:gt");
  const int32_t id[] = {0}, build_payload[] = {2, -1, 1}, probe_payload[] = {2, 1};
  ASSERT_EQ(arrow.join->BindArrow({&schema.schema, id, build_payload}, {&schema.schema, id, probe_payload}).text(), "");
  ASSERT_EQ(arrow.join->AppendArrow(&build->array).text(), "");
  ASSERT_EQ(arrow.join->Finalise().text(), "");
  auto prober = quern::Prober::Create(*arrow.join);
  ASSERT_EQ(prober->InputArrow(&probe->array).text(), "");
  ArrowArray result;
  ASSERT_TRUE(prober->NextArrow(&result).ok());
  Lines lines = TakeLines(&result, "ssr");
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(lines, (Lines{"one|one|0", "two|null|null"}));
}

TEST(ArrowErrors, ResidualColumns) {
  const auto bind = [](const TestField& build, const TestField& probe, int32_t child) {
    ArrowJoin unbound(false, "join.semi keys=i64 residual=timestamp:lt");
    const TestSchema build_schema({{"id", "l"}, build}), probe_schema({{"id", "l"}, probe});
    const int32_t key[] = {0}, column[] = {child};
    return unbound.join->BindArrow({&build_schema.schema, key, column}, {&probe_schema.schema, key, column}).text();
  };
  EXPECT_EQ(bind({"t", "tsu:"}, {"t", "tsu:UTC"}, 1), "");
  EXPECT_EQ(bind({"t", "tsu:"}, {"t", "tsm:"}, 1),
            "residual of different units: residual[0] is tsu: on the build side, tsm: on the probe side; accepted: the "
            "same unit or scale");
  EXPECT_EQ(bind({"t", "l"}, {"t", "tsm:"}, 1),
            "wrong type for build payload[0]: field \"t\" is i64; accepted: timestamp");
  EXPECT_EQ(bind({"t", "tsu:"}, {"t", "tsu:"}, 2), "field out of range for payload[0]: 2; accepted: 0 to 1");
  ArrowJoin unbound(false, "join.semi keys=i64 residual=timestamp:lt");
  const int32_t key[] = {0};
  EXPECT_EQ(unbound.join->BindArrow({&BuildSchema().schema, key, {}}, {&BuildSchema().schema, key, key}).text(),
            "null argument: build_payload; accepted: a pointer");
}

TEST(ArrowErrors, BeforeTheColumnsAreBound) {
  const std::string text = "Arrow columns not bound: the join has no binding; accepted: after quern_join_bind_arrow";
  ArrowJoin arrow(false);
  ArrowSchema schema;
  EXPECT_EQ(ErrorOf(QUERN_FAILED_PRECONDITION, quern_join_result_schema, arrow.join->handle(), &schema), text);
  EXPECT_EQ(RefusalOf(QUERN_FAILED_PRECONDITION, quern_join_append_arrow, arrow.join->handle(), BuildBatch()), text);
  auto appender = quern::Appender::Create(*arrow.join);
  EXPECT_EQ(RefusalOf(QUERN_FAILED_PRECONDITION, quern_appender_append_arrow, appender->handle(), BuildBatch()), text);
  ASSERT_EQ(arrow.join->Finalise().text(), "");
  quern_prober* prober = nullptr;
  ASSERT_EQ(quern_prober_create(arrow.join->handle(), 0, &prober, nullptr), QUERN_OK);
  EXPECT_EQ(RefusalOf(QUERN_FAILED_PRECONDITION, quern_prober_input_arrow, prober, ProbeBatch()), text);
  ArrowArray result;
  bool more = false;
  EXPECT_EQ(ErrorOf(QUERN_FAILED_PRECONDITION, quern_prober_next_arrow, prober, &result, &more), text);
  EXPECT_EQ(result.release, nullptr);
  quern_prober_destroy(prober);
}

TEST(ArrowErrors, WrongOrder) {
  ArrowJoin arrow;
  EXPECT_EQ(arrow.Bind().text(), "Arrow columns bound twice: the join has a binding; accepted: a new join");
  EXPECT_EQ(arrow.Bind().code(), QUERN_FAILED_PRECONDITION);
  auto appender = quern::Appender::Create(*arrow.join);
  ASSERT_EQ(appender->Finish().text(), "");
  EXPECT_EQ(RefusalOf(QUERN_FAILED_PRECONDITION, quern_appender_append_arrow, appender->handle(), BuildBatch()),
            "append after finish: the rows were handed over; accepted: a new appender");
  ASSERT_EQ(arrow.join->Finalise().text(), "");
  EXPECT_EQ(RefusalOf(QUERN_FAILED_PRECONDITION, quern_join_append_arrow, arrow.join->handle(), BuildBatch()),
            "append after finalise: the table is built; accepted: a new join");
}

TEST(ArrowErrors, NullArguments) {
  ArrowJoin arrow;
  quern_join* const join = arrow.join->handle();
  quern_join* const no_join = nullptr;
  quern_prober* const no_prober = nullptr;
  ArrowArray* const no_array = nullptr;
  ArrowArray result;
  bool more = false;
  ASSERT_EQ(arrow.join->Finalise().text(), "");
  auto prober = quern::Prober::Create(*arrow.join);
  const auto invalid = [](auto... call) { return ErrorOf(QUERN_INVALID_ARGUMENT, call...); };
  const auto bind = [&](const ArrowSchema* build, const int32_t* build_keys, const int32_t* build_payload,
                        const ArrowSchema* probe, const int32_t* probe_keys, const int32_t* probe_payload) {
    ArrowJoin unbound(false);
    return ErrorOf(QUERN_INVALID_ARGUMENT, quern_join_bind_arrow, unbound.join->handle(), build, build_keys,
                   build_payload, probe, probe_keys, probe_payload);
  };
  const ArrowSchema *build = &BuildSchema().schema, *probe = &ProbeSchema().schema;
  EXPECT_EQ(bind(nullptr, kBuildKeys, kBuildPayload, probe, kProbeKeys, kProbePayload),
            "null argument: build; accepted: a pointer");
  EXPECT_EQ(bind(build, nullptr, kBuildPayload, probe, kProbeKeys, kProbePayload),
            "null argument: build_keys; accepted: a pointer");
  EXPECT_EQ(bind(build, kBuildKeys, nullptr, probe, kProbeKeys, kProbePayload),
            "null argument: build_payload; accepted: a pointer");
  EXPECT_EQ(bind(build, kBuildKeys, kBuildPayload, nullptr, kProbeKeys, kProbePayload),
            "null argument: probe; accepted: a pointer");
  EXPECT_EQ(bind(build, kBuildKeys, kBuildPayload, probe, nullptr, kProbePayload),
            "null argument: probe_keys; accepted: a pointer");
  EXPECT_EQ(bind(build, kBuildKeys, kBuildPayload, probe, kProbeKeys, nullptr),
            "null argument: probe_payload; accepted: a pointer");
  EXPECT_EQ(invalid(quern_join_bind_arrow, no_join, build, kBuildKeys, kBuildPayload, probe, kProbeKeys, kProbePayload),
            "null argument: join; accepted: a pointer");
  EXPECT_EQ(invalid(quern_join_result_schema, join, static_cast<ArrowSchema*>(nullptr)),
            "null argument: schema; accepted: a pointer");
  EXPECT_EQ(invalid(quern_join_append_arrow, join, no_array), "null argument: batch; accepted: a pointer");
  EXPECT_EQ(RefusalOf(QUERN_INVALID_ARGUMENT, quern_join_append_arrow, no_join, BuildBatch()),
            "null argument: join; accepted: a pointer");
  quern_appender* const no_appender = nullptr;
  EXPECT_EQ(RefusalOf(QUERN_INVALID_ARGUMENT, quern_appender_append_arrow, no_appender, BuildBatch()),
            "null argument: appender; accepted: a pointer");
  EXPECT_EQ(RefusalOf(QUERN_INVALID_ARGUMENT, quern_prober_input_arrow, no_prober, ProbeBatch()),
            "null argument: prober; accepted: a pointer");
  EXPECT_EQ(invalid(quern_prober_next_arrow, no_prober, &result, &more), "null argument: prober; accepted: a pointer");
}

TEST(ArrowErrors, SchemasThatDisagreeWithTheSpec) {
  const auto bind_build = [](const ArrowSchema& build, const int32_t* keys, const int32_t* payload) {
    ArrowJoin unbound(false);
    return ErrorOf(QUERN_INVALID_ARGUMENT, quern_join_bind_arrow, unbound.join->handle(), &build, keys, payload,
                   &ProbeSchema().schema, kProbeKeys, kProbePayload);
  };
  const TestSchema narrow({{"id", "i"}, {"region", "i", "u"}, {"price", "g"}}),
      plain({{"id", "l"}, {"region", "u"}, {"price", "g"}}),
      interval({{"id", "tin"}, {"region", "i", "u"}, {"price", "g"}});
  EXPECT_EQ(bind_build(narrow.schema, kBuildKeys, kBuildPayload),
            "wrong type for build keys[0]: field \"id\" is i32; accepted: i64");
  EXPECT_EQ(bind_build(plain.schema, kBuildKeys, kBuildPayload),
            "wrong type for build payload[1]: field \"region\" is utf8; accepted: dictionary(i32,utf8)");
  EXPECT_EQ(bind_build(interval.schema, kBuildKeys, kBuildPayload),
            "wrong type for build keys[0]: field \"id\" is of unsupported format tin; accepted: i64");
  const int32_t three[] = {3}, rowid_of_a_column[] = {2, 1, 0};
  EXPECT_EQ(bind_build(BuildSchema().schema, three, kBuildPayload),
            "field out of range for keys[0]: 3; accepted: 0 to 2");
  EXPECT_EQ(bind_build(BuildSchema().schema, kBuildKeys, rowid_of_a_column),
            "field out of range for payload[2]: 0; accepted: -1 for a rowid");
  ArrowSchema list = BuildSchema().schema;
  list.format = "+l";
  EXPECT_EQ(bind_build(list, kBuildKeys, kBuildPayload), "not a struct schema on the build side: +l; accepted: +s");
}

TEST(ArrowErrors, KeysOfDifferentUnits) {
  const auto bind = [](const char* type, const TestField& build, const TestField& probe) {
    ArrowJoin unbound(false, ("join.inner keys=" + std::string(type)).c_str());
    const TestSchema build_schema({build}), probe_schema({probe});
    const int32_t key[] = {0};
    return unbound.join->BindArrow({&build_schema.schema, key, {}}, {&probe_schema.schema, key, {}}).text();
  };
  EXPECT_EQ(bind("decimal128", {"d", "d:10,2"}, {"d", "d:38,2,128"}), "");
  EXPECT_EQ(bind("decimal128", {"d", "d:10,2"}, {"d", "d:10,4"}),
            "keys of different units: keys[0] is d:10,2 on the build side, d:10,4 on the probe side; accepted: the "
            "same unit or scale");
  EXPECT_EQ(bind("timestamp", {"t", "tsu:"}, {"t", "tsu:UTC"}), "");
  EXPECT_EQ(bind("timestamp", {"t", "tsu:"}, {"t", "tsm:"}),
            "keys of different units: keys[0] is tsu: on the build side, tsm: on the probe side; accepted: the same "
            "unit or scale");
  EXPECT_EQ(bind("duration", {"t", "tDs"}, {"t", "tDs"}), "");
  EXPECT_EQ(bind("duration", {"t", "tDs"}, {"t", "tDn"}),
            "keys of different units: keys[0] is tDs on the build side, tDn on the probe side; accepted: the same unit "
            "or scale");
  EXPECT_EQ(bind("dictionary(i8,time32)", {"t", "c", "tts"}, {"t", "c", "ttm"}),
            "keys of different units: keys[0] is tts on the build side, ttm on the probe side; accepted: the same unit "
            "or scale");
}

std::string AppendRefusal(TestArrayPtr batch) {
  auto good = BuildBatch();
  ArrowJoin arrow;
  const std::string text =
      RefusalOf(QUERN_INVALID_ARGUMENT, quern_join_append_arrow, arrow.join->handle(), std::move(batch));
  EXPECT_EQ(arrow.join->AppendArrow(&good->array).text(), "") << "a batch that was refused changes nothing";
  return text;
}

std::string ProbeRefusal(TestArrayPtr batch) {
  ArrowJoin arrow;
  EXPECT_EQ(arrow.join->Finalise().text(), "");
  quern_prober* prober = nullptr;
  EXPECT_EQ(quern_prober_create(arrow.join->handle(), 0, &prober, nullptr), QUERN_OK);
  std::string text = RefusalOf(QUERN_INVALID_ARGUMENT, quern_prober_input_arrow, prober, std::move(batch));
  quern_prober_destroy(prober);
  return text;
}

TEST(IllFormedArrays, Lengths) {
  auto batch = BuildBatch();
  batch->array.length = -1;
  EXPECT_EQ(AppendRefusal(std::move(batch)), "number of rows out of range: -1; accepted: below 4294967295");
  batch = BuildBatch();
  batch->children[0]->array.length = -5;
  EXPECT_EQ(AppendRefusal(std::move(batch)), "negative length of column keys[0]: -5; accepted: 0 or more");
  batch = BuildBatch();
  batch->children[2]->array.length = 2;
  EXPECT_EQ(AppendRefusal(std::move(batch)), "too few rows of column payload[0]: 2; accepted: 3 or more");
}

TEST(IllFormedArrays, NumbersOfBuffersAndChildren) {
  auto batch = BuildBatch();
  batch->children[0]->array.n_buffers = 3;
  EXPECT_EQ(AppendRefusal(std::move(batch)), "wrong number of buffers of column keys[0]: 3; accepted: 2");
  batch = BuildBatch();
  batch->array.n_children = 2;
  EXPECT_EQ(AppendRefusal(std::move(batch)), "field out of range for payload[0]: 2; accepted: 0 to 1");
  batch = BuildBatch();
  batch->children[0]->pointers()[1] = nullptr;
  EXPECT_EQ(AppendRefusal(std::move(batch)),
            "missing buffer of column keys[0]: values; accepted: no null pointer where there are 3 rows");
}

TEST(IllFormedArrays, NullCounts) {
  auto batch = StructArray(3, FixedArray<int64_t>({1, 2, 3}), WithNulls(Regions({1, 0, 1}), {0x05}, 2),
                           FixedArray<double>({1, 2, 3}));
  EXPECT_EQ(AppendRefusal(std::move(batch)),
            "wrong null count of column payload[1]: 2; accepted: -1 or 1, as its bitmap says");
  batch = StructArray(3, WithNulls(FixedArray<int64_t>({1, 2, 3}), {0x06}, 1), Regions({1, 0, 1}),
                      FixedArray<double>({1, 2, 3}));
  EXPECT_EQ(AppendRefusal(std::move(batch)),
            "null at row 0 of column keys[0]: i64; accepted: no nulls, or a spec with i64:nullable");
}

TEST(IllFormedArrays, Offsets) {
  auto falling = Utf8Array({"w", "x", "y", "z"});
  const std::vector<int32_t> offsets = {0, 2, 1, 3, 4};
  falling->pointers()[1] = offsets.data();
  EXPECT_EQ(ProbeRefusal(StructArray(4, std::move(falling), FixedArray<int64_t>({3, 9, 1, 3}))),
            "offsets fall at row 1 of column payload[0]: 2 to 1; accepted: non-decreasing");
}

TEST(IllFormedArrays, DictionaryIndices) {
  EXPECT_EQ(
      AppendRefusal(StructArray(3, FixedArray<int64_t>({1, 2, 3}), Regions({1, 2, 0}), FixedArray<double>({1, 2, 3}))),
      "index outside the dictionary at row 1 of column payload[1]: 2; accepted: 0 or more, below 2");
  EXPECT_EQ(AppendRefusal(StructArray(3, FixedArray<int64_t>({1, 2, 3}), FixedArray<int32_t>({1, 0, 0}),
                                      FixedArray<double>({1, 2, 3}))),
            "missing dictionary of column payload[1]: none; accepted: dictionary(i32,utf8)");
}

TEST(IllFormedArrays, ReleasedOnes) {
  ArrowJoin arrow;
  ArrowArray released = {};
  EXPECT_EQ(ErrorOf(QUERN_INVALID_ARGUMENT, quern_join_append_arrow, arrow.join->handle(), &released),
            "released array: no release callback; accepted: a struct array that is alive");
}

}  // namespace
}  // namespace quern_test
