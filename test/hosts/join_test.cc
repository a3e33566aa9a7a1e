// SPDX-License-Identifier: Apache-2.0
// Joins over a host's own vectors: columns of Arrow's layouts, every kind of join, and the residual predicate. Each is
// probed by two outputs, and two more share the build rows that come out on their own.
//
//     build row   0   1   2   3     4        probe row   0   1   2   3     4
//     key         1   2   2   null  4        key         2   1   5   null  1        pairs  0|20  0|21  1|10  4|10
//     price      10  20  21  30    40
#include <gtest/gtest.h>

#include "test/hosts/jobs.h"

namespace quern_test {
namespace {

using Bytes = std::vector<uint8_t>;
using Indices = std::vector<int32_t>;

const quern_column kRowIds = {};

// How a join is run; each variant must give the same rows.
struct Variant {
  Engine engine = Engine::kJit;
  StringBytes bytes = StringBytes::kStay;
  uint64_t batch_rows = 0;
  const char* params = "";
};

const std::vector<Variant>& AnyLayout() {
  static const std::vector<Variant> variants = {
      {Engine::kJit, StringBytes::kStay, 0, ""},
      {Engine::kJit, StringBytes::kCopied, 1, "batch_size=2"},
      {Engine::kGeneric, StringBytes::kStay, 1, "test.hash=zero"},
      {Engine::kGeneric, StringBytes::kCopied, 3, "batch_size=1 prefetch=off"}};
  return variants;
}
const std::vector<Variant>& EveryLayout() {
  static const std::vector<Variant> variants = [] {
    std::vector<Variant> all = AnyLayout();
    all.push_back({Engine::kJit, StringBytes::kStay, 0, "layout=unchained"});
    all.push_back({Engine::kJit, StringBytes::kStay, 0, "layout=open"});
    all.push_back({Engine::kGeneric, StringBytes::kStay, 2, "layout=unchained batch_size=3"});
    all.push_back({Engine::kGeneric, StringBytes::kStay, 0, "layout=open batch_size=2"});
    return all;
  }();
  return variants;
}

quern::Join BuiltBy(const Variant& variant, const char* spec, const Table& build) {
  return Built(spec, {build}, variant.engine, variant.bytes, variant.params);
}

// All rows of one join, whose probe rows two outputs take in turns; then two others take what is left of the build
// side.
Lines RowsOfTwoProbers(const char* spec, const Variant& variant, const Table& build, const Table& probe,
                       std::string_view kinds) {
  quern::Join join = BuiltBy(variant, spec, build);
  Lines lines;
  const auto add = [&lines](const Lines& some) { lines.insert(lines.end(), some.begin(), some.end()); };
  for (uint32_t turn = 0; turn < 2; ++turn) {
    Table half = probe;
    half.selection.clear();
    const uint64_t num_rows = probe.selection.empty() ? probe.num_rows : probe.selection.size();
    for (uint32_t row = turn; row < num_rows; row += 2)
      half.selection.push_back(probe.selection.empty() ? row : probe.selection[row]);
    half.num_rows = 0;  // should no row be selected
    quern::Output output = Take(join.Probe(variant.batch_rows));
    add(Probed(&output, half, kinds, variant.batch_rows));
  }
  for (int i = 0; i < 2; ++i) add(RowsOf(join.Unmatched(), kinds));
  return Ordered(lines);
}

void ExpectRows(const char* spec, const Table& build, const Table& probe, std::string_view kinds, Lines expected,
                const std::vector<Variant>& variants = EveryLayout()) {
  for (const Variant& variant : variants) {
    SCOPED_TRACE(std::string(spec) + ", engine " + std::to_string(static_cast<int>(variant.engine)) + ", " +
                 variant.params);
    EXPECT_EQ(RowsOfTwoProbers(spec, variant, build, probe, kinds), Ordered(expected));
  }
}

// ---- columns ----

void ExpectColumns(const char* spec, const Table& build, const Table& probe, std::string_view kinds, Lines expected) {
  ExpectRows(spec, build, probe, kinds, std::move(expected), AnyLayout());
}

TEST(JoinColumns, ASelectionTakesRowsInItsOrderAndMoreThanOnce) {
  const std::vector<int64_t> build_key = {10, 20, 30, 20}, probe_key = {20, 5, 30};
  ExpectColumns("join.inner keys=i64 build=rowid probe=rowid", {{ColumnOf(build_key)}, {kRowIds}, 0, {3, 2}, 100},
                {{ColumnOf(probe_key)}, {kRowIds}, 0, {2, 0, 0}, 1000}, "rr", {"1000|103", "1000|103", "1002|102"});
}

TEST(JoinColumns, NullMatchesNullWhereTheSpecSaysSo) {
  const std::vector<int64_t> key = {1, 2};
  const Bytes valid = Bitmap({true, false});
  const Table table = {{WithValidity(ColumnOf(key), valid)}, {kRowIds}, 2};
  ExpectColumns("join.inner keys=i64:nullable:nullequal build=rowid probe=rowid", table, table, "rr", {"0|0", "1|1"});
}

const std::vector<std::string> kBuildWords = {"a", "a string above twelve bytes", "", "another long string, of build",
                                              "a"};
const std::vector<std::string> kProbeWords = {"another long string, of build", "a ", "none", ""};
const Lines kWordRows = {"another long string, of build|another long string, of build", "a |a", "a |a", "|"};

TEST(JoinColumns, OfStringsOfEveryLayout) {
  const StringVector<int32_t> build(kBuildWords), probe(kProbeWords);
  const StringVector<int64_t> large_build(kBuildWords), large_probe(kProbeWords);
  const ViewVector view_build(kBuildWords), view_probe(kProbeWords);
  ExpectColumns("join.inner keys=utf8(utf8mb4_bin) build=utf8 probe=utf8", {{build.column()}, {build.column()}, 5},
                {{probe.column()}, {probe.column()}, 4}, "ss", kWordRows);
  ExpectColumns("join.inner keys=large_utf8(utf8mb4_bin) build=large_utf8 probe=large_utf8",
                {{large_build.column()}, {large_build.column()}, 5},
                {{large_probe.column()}, {large_probe.column()}, 4}, "SS", kWordRows);
  ExpectColumns("join.inner keys=utf8_view(utf8mb4_bin) build=utf8_view probe=utf8_view",
                {{view_build.column()}, {view_build.column()}, 5}, {{view_probe.column()}, {view_probe.column()}, 4},
                "vv", kWordRows);
  const Bytes valid = Bitmap({false, true, true, true, true}, 2);
  ExpectColumns(
      "join.inner keys=utf8:nullable build=utf8:nullable,rowid probe=rowid",
      {{WithValidity(build.column(), valid, 2)}, {WithValidity(build.column(), valid, 2), kRowIds}, 0, {4, 3, 0}},
      {{probe.column()}, {kRowIds}, 4}, "rsr", {"0|another long string, of build|3"});
}

TEST(JoinColumns, NullsOfDictionaryAndIndicesAreOne) {
  const ViewVector words(kBuildWords);
  const Bytes value_valid = Bitmap({true, false, true, true, true}, 7),
              index_valid = Bitmap({true, true, false, true}, 4);
  const quern_column values = WithValidity(words.column(), value_valid, 7);
  const Bytes indices = {3, 1, 0, 0, 77};  // the last is outside the dictionary and takes no part
  const quern_column column = DictionaryColumn(WithValidity(ColumnOf(indices), index_valid, 4), values);
  const std::vector<int64_t> key = {1, 2, 3, 4, 5};
  ExpectColumns("join.inner keys=i64 build=dictionary(u8,utf8_view):nullable probe=rowid",
                {{ColumnOf(key)}, {column}, 0, {0, 1, 2, 3}}, {{ColumnOf(key)}, {kRowIds}, 5}, "rv",
                {"0|another long string, of build", "1|null", "2|null", "3|a"});
  ExpectColumns("join.inner keys=dictionary(u8,utf8_view):nullable build=rowid probe=rowid",
                {{column}, {kRowIds}, 0, {0, 1, 2, 3}}, {{column}, {kRowIds}, 0, {3, 2, 1, 0}}, "rr", {"0|0", "3|3"});
}

TEST(JoinColumns, MayLackPointersThatNoRowNeeds) {
  const std::vector<int64_t> key = {1, 2};
  const Bytes none_valid = Bitmap({false, false});
  const Indices no_offsets = {0, 0, 0};
  quern_column empty_strings = {};
  empty_strings.offsets = no_offsets.data();
  const ViewVector short_views({"ab", "cd"});
  quern_column inline_views = short_views.column();
  inline_views.buffers = nullptr;
  const Table build = {{ColumnOf(key)}, {WithValidity({}, none_valid), empty_strings, inline_views}, 2};
  ExpectColumns("join.inner keys=i64 build=f64:nullable,utf8,utf8_view probe=rowid", build,
                {{ColumnOf(key)}, {kRowIds}, 2}, "rdsv", {"0|null||ab", "1|null||cd"});
  ExpectColumns("join.inner keys=i64,utf8 build=f64 probe=utf8_view", {}, {}, "vd", {});
}

// ---- kinds ----

// The tables above. `build_rows`: which rows the build side has; none: all.
struct SmallTables {
  Table build(const std::vector<uint32_t>& build_rows = {}) const {
    return {{WithValidity(ColumnOf(build_key), fourth_null)}, {ColumnOf(price)}, 5, build_rows};
  }
  Table probe() const { return {{WithValidity(ColumnOf(probe_key), fourth_null)}, {kRowIds}, 5}; }

  const std::vector<int64_t> build_key = {1, 2, 2, 77, 4}, probe_key = {2, 1, 5, 77, 1};
  const std::vector<double> price = {10, 20, 21, 30, 40};
  const Bytes fourth_null = Bitmap({true, true, true, false, true});
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
    ExpectRows(spec, tables.build(), tables.probe(), "rd", lines);
  };
  expect("join.inner keys=i64:nullable build=f64 probe=rowid", with(false, false));
  expect("join.left keys=i64:nullable build=f64 probe=rowid", with(true, false));
  expect("join.right keys=i64:nullable build=f64 probe=rowid", with(false, true));
  expect("join.full keys=i64:nullable build=f64 probe=rowid", with(true, true));
  Lines equal_nulls = {"3|30", "2|null", "null|40"};
  equal_nulls.insert(equal_nulls.end(), pairs.begin(), pairs.end());
  // 64 bits and one for null are too many for the layouts of packed keys.
  ExpectRows("join.full keys=i64:nullable:nullequal build=f64 probe=rowid", tables.build(), tables.probe(), "rd",
             equal_nulls, AnyLayout());
}

TEST(JoinKinds, OfOneSideAlone) {
  const SmallTables tables;
  Table build = tables.build(), probe = tables.probe();
  build.payload.clear();
  probe.payload.clear();
  ExpectRows("join.semi keys=i64:nullable probe=rowid", build, tables.probe(), "r", {"0", "1", "4"});
  ExpectRows("join.anti keys=i64:nullable probe=rowid", build, tables.probe(), "r", {"2", "3"});
  ExpectRows("join.right_semi keys=i64:nullable build=f64", tables.build(), probe, "d", {"10", "20", "21"});
  ExpectRows("join.right_anti keys=i64:nullable build=f64", tables.build(), probe, "d", {"30", "40"});
}

TEST(JoinKinds, NotInKnowsNulls) {
  const SmallTables tables;
  const char* const spec = "join.anti_null_aware keys=i64:nullable probe=rowid";
  ExpectRows(spec, tables.build(), tables.probe(), "r", {});
  ExpectRows(spec, tables.build({0, 1, 2, 4}), tables.probe(), "r", {"2"});
  ExpectRows(spec, {}, tables.probe(), "r", {"0", "1", "2", "3", "4"});
}

TEST(JoinKinds, MarksAreUnknownWhereNullsAre) {
  const SmallTables tables;
  const char* const spec = "join.mark keys=i64:nullable probe=rowid";
  ExpectRows(spec, tables.build(), tables.probe(), "rb", {"0|true", "1|true", "2|null", "3|null", "4|true"});
  ExpectRows(spec, tables.build({0, 1}), tables.probe(), "rb", {"0|true", "1|true", "2|false", "3|null", "4|true"});
  ExpectRows(spec, {}, tables.probe(), "rb", {"0|false", "1|false", "2|false", "3|false", "4|false"});
}

TEST(JoinKinds, ASingleJoinKeepsEachProbeRowOnce) {
  const SmallTables tables;
  const char* const spec = "join.single keys=i64:nullable build=f64 probe=rowid";
  ExpectRows(spec, tables.build({0, 1, 3}), tables.probe(), "rd", {"0|20", "1|10", "2|null", "3|null", "4|10"});
  for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
    quern::Join join = Built(spec, {tables.build()}, engine);
    quern::Output probe = Take(join.Probe());
    Done(probe.Push(tables.probe().batch()));
    const quern::Status second = probe.Next().status();
    EXPECT_EQ(second.code(), QUERN_OUT_OF_RANGE);
    EXPECT_NE(second.text().find("single"), std::string::npos) << second.text();
    EXPECT_EQ(probe.Next().status().text(), "result after a failure: rows are lost; accepted: a new batch");
    Table one_match = tables.probe();
    one_match.selection = {1};
    EXPECT_EQ(Probed(&probe, one_match, "rd"), Lines{"1|10"}) << "a new batch helps";
  }
}

// Columns have a bitmap where nulls may come: by the spec, by the kind, or by a mark that may be unknown.
TEST(JoinKinds, DecideWhichColumnsMayBeNull) {
  const SmallTables tables;
  const auto bitmaps = [&](const char* spec) {
    quern::Join join = Built(spec, {tables.build({0, 1})}, Engine::kGeneric);
    quern::Output probed = Take(join.Probe());
    Table probe = tables.probe();
    probe.selection = {0};
    Done(probed.Push(probe.batch()));
    const quern_result& result = *Take(probed.Next());
    std::string text;
    for (size_t i = 0; i < result.num_columns; ++i) text += result.columns[i].validity == nullptr ? '-' : '?';
    return text;
  };
  EXPECT_EQ(bitmaps("join.inner keys=i64 build=f64 probe=rowid"), "--");
  EXPECT_EQ(bitmaps("join.left keys=i64 build=f64 probe=rowid"), "-?");
  EXPECT_EQ(bitmaps("join.single keys=i64 build=f64 probe=rowid"), "-?");
  EXPECT_EQ(bitmaps("join.right keys=i64 build=f64 probe=rowid"), "?-");
  EXPECT_EQ(bitmaps("join.full keys=i64 build=f64 probe=rowid"), "??");
  EXPECT_EQ(bitmaps("join.mark keys=i64 probe=rowid"), "--");
  EXPECT_EQ(bitmaps("join.mark keys=i64:nullable probe=rowid"), "-?");
}

// ---- residual predicates ----

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
  const Bytes third_null = Bitmap({true, true, false});
};

TEST(Residual, ColumnsComeAfterThePayload) {
  const ResidualTables tables;
  const Table build = tables.build(), probe = tables.probe();
  ExpectRows("join.inner keys=i64 build=rowid probe=rowid residual=i64:nullable:lt", build, probe, "rr", {"0|1"});
  ExpectRows("join.inner keys=i64 build=rowid probe=rowid residual=i64:nullable:ge", build, probe, "rr",
             {"0|0", "1|0", "1|1"});
  ExpectRows("join.full keys=i64 build=rowid probe=rowid residual=i64:nullable:lt", build, probe, "rr",
             {"0|1", "1|null", "null|0", "null|2"});
  ExpectRows("join.semi keys=i64 probe=rowid residual=i64:nullable:lt", tables.build(false), probe, "r", {"0"});
  ExpectRows("join.anti keys=i64 probe=rowid residual=i64:nullable:lt", tables.build(false), probe, "r", {"1"});
  ExpectRows("join.right_semi keys=i64 build=rowid residual=i64:nullable:lt", build, tables.probe(false), "r", {"1"});
  ExpectRows("join.right_anti keys=i64 build=rowid residual=i64:nullable:lt", build, tables.probe(false), "r",
             {"0", "2"});
}

TEST(Residual, OfTwoComparisonsHoldsWhereBothDo) {
  const std::vector<int64_t> key = {1, 1}, low = {0, 10}, value = {5, 15};
  const std::vector<double> high = {9, 12};
  const Table build = {{ColumnOf(key)}, {kRowIds, ColumnOf(low), ColumnOf(high)}, 2};
  const std::vector<double> price = {5, 11};
  const Table probe = {{ColumnOf(key)}, {kRowIds, ColumnOf(value), ColumnOf(price)}, 2};
  // 5 > 0 and 5 <= 9; 15 > 10 and 11 <= 12; 15 > 0 but 11 > 9.
  ExpectRows("join.inner keys=i64 build=rowid probe=rowid residual=i64:gt,f64:le", build, probe, "rr", {"0|0", "1|1"});
}

TEST(Residual, ColumnsThatAreMissing) {
  quern::Join join = New<quern::Join>("join.semi keys=i64 probe=rowid residual=i64:lt", Engine::kGeneric);
  quern::Input build = Take(join.Build());
  const std::vector<int64_t> key = {1};
  const Table table = {{ColumnOf(key)}, {quern_column{}}, 1};
  quern_batch batch = table.batch();
  EXPECT_EQ(build.Append(batch).text(),
            "column without values: build payload 0 (i64); accepted: a pointer, unless no row needs it");
  batch.payload = nullptr;
  EXPECT_EQ(build.Append(batch).text(), "batch without columns: build payload; accepted: 1 columns");
}

}  // namespace
}  // namespace quern_test
