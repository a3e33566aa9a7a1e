// SPDX-License-Identifier: Apache-2.0
// Every kind of join over a host's own vectors: which rows come out, which columns may be null, the residual predicate,
// and the build rows that come out on their own, shared by two probers.
//
//     build row   0   1   2   3     4        probe row   0   1   2   3     4
//     key         1   2   2   null  4        key         2   1   5   null  1        pairs  0|20  0|21  1|10  4|10
//     price      10  20  21  30    40
#include <gtest/gtest.h>

#include "test/hosts/host_tables.h"

namespace quern_test {
namespace {

const quern_column kRowIds = {};

// All rows of one join that two probers share, row by row in turns; then both take what is left of the build side.
Lines RowsOfTwoProbers(const char* spec, const Variant& variant, const Table& build, const Table& probe,
                       std::string_view kinds) {
  auto kernel = quern::Kernel::Compile(spec, variant.engine, variant.params);
  EXPECT_TRUE(kernel.ok()) << kernel.status().text();
  if (!kernel.ok()) return {};
  auto join = quern::Join::Create(*kernel);
  EXPECT_EQ(join->Append(build.batch(), variant.bytes).text(), "");
  EXPECT_EQ(join->Finalise().text(), "");
  std::vector<quern::Prober> probers;
  Lines lines;
  const auto read_all = [&](quern::Prober* prober, uint64_t batch_rows) {
    for (const std::string& line : ScanUnmatched(prober, kinds, batch_rows)) lines.push_back(line);
  };
  for (uint32_t turn = 0; turn < 2; ++turn) {
    Table half = probe;
    for (uint32_t row = turn; row < probe.num_rows; row += 2) half.selection.push_back(row);
    half.num_rows = 0;  // should no row be selected
    probers.push_back(*quern::Prober::Create(*join, variant.batch_rows));
    EXPECT_EQ(probers.back().Input(half.batch()).text(), "");
    read_all(&probers.back(), variant.batch_rows);
  }
  for (quern::Prober& prober : probers) {
    EXPECT_EQ(prober.InputUnmatched().text(), "");
    read_all(&prober, 0);
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

// The kinds must not care for the layout of the table either.
std::vector<Variant> VariantsAndLayouts() {
  using quern::Engine;
  using quern::StringBytes;
  std::vector<Variant> variants = AllVariants();
  variants.push_back({Engine::kJit, StringBytes::kStay, 0, "layout=unchained"});
  variants.push_back({Engine::kJit, StringBytes::kStay, 0, "layout=open"});
  variants.push_back({Engine::kGeneric, StringBytes::kStay, 2, "layout=unchained batch_size=3"});
  variants.push_back({Engine::kGeneric, StringBytes::kStay, 0, "layout=open batch_size=2"});
  return variants;
}

void ExpectKindRows(const char* spec, const Table& build, const Table& probe, std::string_view kinds, Lines expected,
                    const std::vector<Variant>& variants = VariantsAndLayouts()) {
  std::sort(expected.begin(), expected.end());
  for (const Variant& variant : variants) {
    SCOPED_TRACE(std::string(spec) + ", engine " + std::to_string(static_cast<int>(variant.engine)) + ", " +
                 variant.params);
    EXPECT_EQ(RowsOfTwoProbers(spec, variant, build, probe, kinds), expected);
  }
}

// The tables above. `build_rows`: which rows the build side has; none: all.
struct SmallTables {
  Table build(const std::vector<uint32_t>& build_rows = {}) const {
    return {{WithValidity(ColumnOf(build_key), fourth_null)}, {ColumnOf(price)}, 5, build_rows};
  }
  Table probe() const { return {{WithValidity(ColumnOf(probe_key), fourth_null)}, {kRowIds}, 5}; }

  const std::vector<int64_t> build_key = {1, 2, 2, 77, 4}, probe_key = {2, 1, 5, 77, 1};
  const std::vector<double> price = {10, 20, 21, 30, 40};
  const std::vector<uint8_t> fourth_null = Bitmap({true, true, true, false, true});
};

TEST(JoinKinds, ThatPairRows) {
  const SmallTables tables;
  const Lines pairs = {"0|20", "0|21", "1|10", "4|10"}, alone_left = {"2|null", "3|null"},
              alone_right = {"null|30", "null|40"};
  const auto with = [&](bool left, bool right) {
    Lines lines = pairs;
    if (left) lines.insert(lines.end(), alone_left.begin(), alone_left.end());
    if (right) lines.insert(lines.end(), alone_right.begin(), alone_right.end());
    return lines;
  };
  const auto expect = [&](const char* spec, const Lines& lines) {
    ExpectKindRows(spec, tables.build(), tables.probe(), "rd", lines);
  };
  expect("join.inner keys=i64:nullable build=f64 probe=rowid", with(false, false));
  expect("join.left keys=i64:nullable build=f64 probe=rowid", with(true, false));
  expect("join.right keys=i64:nullable build=f64 probe=rowid", with(false, true));
  expect("join.full keys=i64:nullable build=f64 probe=rowid", with(true, true));
  Lines equal_nulls = {"3|30", "2|null", "null|40"};
  equal_nulls.insert(equal_nulls.end(), pairs.begin(), pairs.end());
  // 64 bits and one for null are too many for the layouts of packed keys.
  ExpectKindRows("join.full keys=i64:nullable:nullequal build=f64 probe=rowid", tables.build(), tables.probe(), "rd",
                 equal_nulls, AllVariants());
}

TEST(JoinKinds, OfProbeRowsAlone) {
  const SmallTables tables;
  Table build = tables.build();
  build.payload.clear();
  ExpectKindRows("join.semi keys=i64:nullable probe=rowid", build, tables.probe(), "r", {"0", "1", "4"});
  ExpectKindRows("join.anti keys=i64:nullable probe=rowid", build, tables.probe(), "r", {"2", "3"});
}

TEST(JoinKinds, OfBuildRowsAlone) {
  const SmallTables tables;
  Table probe = tables.probe();
  probe.payload.clear();
  ExpectKindRows("join.right_semi keys=i64:nullable build=f64", tables.build(), probe, "d", {"10", "20", "21"});
  ExpectKindRows("join.right_anti keys=i64:nullable build=f64", tables.build(), probe, "d", {"30", "40"});
}

TEST(JoinKinds, NotInKnowsNulls) {
  const SmallTables tables;
  const char* const spec = "join.anti_null_aware keys=i64:nullable probe=rowid";
  ExpectKindRows(spec, tables.build(), tables.probe(), "r", {});
  ExpectKindRows(spec, tables.build({0, 1, 2, 4}), tables.probe(), "r", {"2"});
  ExpectKindRows(spec, {}, tables.probe(), "r", {"0", "1", "2", "3", "4"});
}

TEST(JoinKinds, MarksAreUnknownWhereNullsAre) {
  const SmallTables tables;
  const char* const spec = "join.mark keys=i64:nullable probe=rowid";
  ExpectKindRows(spec, tables.build(), tables.probe(), "rb", {"0|true", "1|true", "2|null", "3|null", "4|true"});
  ExpectKindRows(spec, tables.build({0, 1}), tables.probe(), "rb", {"0|true", "1|true", "2|false", "3|null", "4|true"});
  ExpectKindRows(spec, {}, tables.probe(), "rb", {"0|false", "1|false", "2|false", "3|false", "4|false"});
}

TEST(JoinKinds, ASingleJoinKeepsEachProbeRowOnce) {
  const SmallTables tables;
  ExpectKindRows("join.single keys=i64:nullable build=f64 probe=rowid", tables.build({0, 1, 3}), tables.probe(), "rd",
                 {"0|20", "1|10", "2|null", "3|null", "4|10"});
}

TEST(JoinKinds, TheSecondMatchOfASingleJoinIsAnError) {
  const SmallTables tables;
  for (const quern::Engine engine : {quern::Engine::kJit, quern::Engine::kGeneric}) {
    auto kernel = quern::Kernel::Compile("join.single keys=i64:nullable build=f64 probe=rowid", engine);
    ASSERT_TRUE(kernel.ok()) << kernel.status().text();
    auto join = quern::Join::Create(*kernel);
    ASSERT_TRUE(join->Append(tables.build().batch()).ok());
    ASSERT_TRUE(join->Finalise().ok());
    auto prober = quern::Prober::Create(*join);
    ASSERT_TRUE(prober->Input(tables.probe().batch()).ok());
    auto rows = prober->Next();
    ASSERT_FALSE(rows.ok());
    EXPECT_EQ(rows.status().code(), QUERN_FAILED_PRECONDITION);
    EXPECT_NE(rows.status().text().find("single"), std::string::npos) << rows.status().text();
    EXPECT_EQ(prober->Next().status().text(),
              "result after a failure: rows of this input are lost; accepted: a new input");
    Table one_match = tables.probe();
    one_match.selection = {1};
    ASSERT_TRUE(prober->Input(one_match.batch()).ok());
    EXPECT_EQ(ScanUnmatched(&*prober, "rd"), Lines{"1|10"}) << "a new input helps";
  }
}

// Columns have a bitmap where nulls may come: by the spec, by the kind, or by a mark that may be unknown.
TEST(JoinKinds, DecideWhichColumnsMayBeNull) {
  const SmallTables tables;
  const auto bitmaps = [&](const char* spec) {
    auto kernel = quern::Kernel::Compile(spec, quern::Engine::kGeneric);
    EXPECT_TRUE(kernel.ok()) << kernel.status().text();
    auto join = quern::Join::Create(*kernel);
    EXPECT_TRUE(join->Append(tables.build({0, 1}).batch()).ok());
    EXPECT_TRUE(join->Finalise().ok());
    auto prober = quern::Prober::Create(*join);
    Table probe = tables.probe();
    probe.selection = {0};
    EXPECT_TRUE(prober->Input(probe.batch()).ok());
    std::string answer;
    auto rows = prober->Next();
    EXPECT_TRUE(rows.ok()) << rows.status().text();
    for (size_t i = 0; i < rows->result.num_columns; ++i)
      answer += rows->result.columns[i].validity == nullptr ? '-' : '?';
    return answer;
  };
  EXPECT_EQ(bitmaps("join.inner keys=i64 build=f64 probe=rowid"), "--");
  EXPECT_EQ(bitmaps("join.left keys=i64 build=f64 probe=rowid"), "-?");
  EXPECT_EQ(bitmaps("join.single keys=i64 build=f64 probe=rowid"), "-?");
  EXPECT_EQ(bitmaps("join.right keys=i64 build=f64 probe=rowid"), "?-");
  EXPECT_EQ(bitmaps("join.full keys=i64 build=f64 probe=rowid"), "??");
  EXPECT_EQ(bitmaps("join.mark keys=i64 probe=rowid"), "--");
  EXPECT_EQ(bitmaps("join.mark keys=i64:nullable probe=rowid"), "-?");
}

// Probe row 0 is below build row 1 alone; row 1 below none. Build row 2 has no value.
struct ResidualTables {
  Table side(const std::vector<int64_t>& key, const std::vector<int64_t>& bound, bool payload) const {
    Table table = {{ColumnOf(key)}, {}, key.size()};
    if (payload) table.payload.push_back(kRowIds);
    table.payload.push_back(WithValidity(ColumnOf(bound), third_null));
    return table;
  }
  Table build(bool payload = true) const { return side(build_key, build_bound, payload); }
  Table probe(bool payload = true) const { return side(probe_key, probe_bound, payload); }

  const std::vector<int64_t> build_key = {1, 1, 1}, build_bound = {5, 10, 99}, probe_key = {1, 1},
                             probe_bound = {7, 20};
  const std::vector<uint8_t> third_null = Bitmap({true, true, false});
};

TEST(Residual, ColumnsComeAfterThePayload) {
  const ResidualTables tables;
  ExpectKindRows("join.inner keys=i64 build=rowid probe=rowid residual=i64:nullable:lt", tables.build(), tables.probe(),
                 "rr", {"0|1"});
  ExpectKindRows("join.inner keys=i64 build=rowid probe=rowid residual=i64:nullable:ge", tables.build(), tables.probe(),
                 "rr", {"0|0", "1|0", "1|1"});
  ExpectKindRows("join.full keys=i64 build=rowid probe=rowid residual=i64:nullable:lt", tables.build(), tables.probe(),
                 "rr", {"0|1", "1|null", "null|0", "null|2"});
}

TEST(Residual, ColumnsAreThereWhereASideHasNoPayload) {
  const ResidualTables tables;
  ExpectKindRows("join.semi keys=i64 probe=rowid residual=i64:nullable:lt", tables.build(false), tables.probe(), "r",
                 {"0"});
  ExpectKindRows("join.anti keys=i64 probe=rowid residual=i64:nullable:lt", tables.build(false), tables.probe(), "r",
                 {"1"});
  ExpectKindRows("join.right_semi keys=i64 build=rowid residual=i64:nullable:lt", tables.build(), tables.probe(false),
                 "r", {"1"});
  ExpectKindRows("join.right_anti keys=i64 build=rowid residual=i64:nullable:lt", tables.build(), tables.probe(false),
                 "r", {"0", "2"});
}

TEST(Residual, OfTwoComparisonsHoldsWhereBothDo) {
  const std::vector<int64_t> key = {1, 1}, low = {0, 10}, value = {5, 15};
  const std::vector<double> high = {9, 12};
  const Table build = {{ColumnOf(key)}, {kRowIds, ColumnOf(low), ColumnOf(high)}, 2};
  const std::vector<double> price = {5, 11};
  const Table probe = {{ColumnOf(key)}, {kRowIds, ColumnOf(value), ColumnOf(price)}, 2};
  // 5 > 0 and 5 <= 9; 15 > 10 and 11 <= 12; 15 > 0 but 11 > 9.
  ExpectKindRows("join.inner keys=i64 build=rowid probe=rowid residual=i64:gt,f64:le", build, probe, "rr",
                 {"0|0", "1|1"});
}

TEST(Residual, ColumnsThatAreMissing) {
  auto kernel = quern::Kernel::Compile("join.semi keys=i64 probe=rowid residual=i64:lt", quern::Engine::kGeneric);
  ASSERT_TRUE(kernel.ok()) << kernel.status().text();
  auto join = quern::Join::Create(*kernel);
  const std::vector<int64_t> key = {1};
  quern_batch batch = Table{{ColumnOf(key)}, {}, 1}.batch();
  batch.keys = nullptr;
  const quern_column key_column = ColumnOf(key), absent = {};
  batch.keys = &key_column;
  batch.payload = nullptr;
  EXPECT_EQ(join->Append(batch).text(), "batch without columns: build payload; accepted: 1 columns");
  batch.payload = &absent;
  EXPECT_EQ(join->Append(batch).text(),
            "column without values: build payload 0 (i64); accepted: a pointer, unless no row needs it");
}

TEST(ScanUnmatched, GivesNothingForOtherKindsAndASecondTime) {
  const SmallTables tables;
  for (const char* spec :
       {"join.left keys=i64:nullable build=f64 probe=rowid", "join.right keys=i64:nullable build=f64 probe=rowid"}) {
    auto kernel = quern::Kernel::Compile(spec);
    ASSERT_TRUE(kernel.ok()) << kernel.status().text();
    auto join = quern::Join::Create(*kernel);
    ASSERT_TRUE(join->Append(tables.build().batch()).ok());
    ASSERT_TRUE(join->Finalise().ok());
    auto prober = quern::Prober::Create(*join, 1);
    ASSERT_TRUE(prober->InputUnmatched().ok());
    const size_t all = std::string_view(spec).find("right") == std::string_view::npos ? 0 : 5;
    EXPECT_EQ(ScanUnmatched(&*prober, "rd").size(), all) << "nothing was probed";
    ASSERT_TRUE(prober->InputUnmatched().ok());
    EXPECT_EQ(ScanUnmatched(&*prober, "rd").size(), 0u);
  }
}

TEST(ScanUnmatched, OfNoPayloadCounts) {
  const SmallTables tables;
  auto kernel = quern::Kernel::Compile("join.right_anti keys=i64:nullable");
  ASSERT_TRUE(kernel.ok()) << kernel.status().text();
  auto join = quern::Join::Create(*kernel);
  ASSERT_TRUE(join->Append(tables.build().batch()).ok());
  ASSERT_TRUE(join->Finalise().ok());
  auto prober = quern::Prober::Create(*join, 1);
  ASSERT_TRUE(prober->Input(tables.probe().batch()).ok());
  auto rows = prober->Next();
  ASSERT_TRUE(rows.ok()) << rows.status().text();
  EXPECT_EQ(rows->result.num_rows, 0u);
  ASSERT_TRUE(prober->InputUnmatched().ok());
  rows = prober->Next();
  ASSERT_TRUE(rows.ok()) << rows.status().text();
  EXPECT_EQ(rows->result.num_rows, 2u);
  EXPECT_FALSE(rows->more);
}

}  // namespace
}  // namespace quern_test
