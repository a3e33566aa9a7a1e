// SPDX-License-Identifier: Apache-2.0
// What a join's table tells of its keys: their range and number, and which rows of a batch may have a match. Each is
// compared with the rows themselves, on tables of every layout and both engines.
#include <gtest/gtest.h>

#include <iterator>
#include <random>
#include <set>

#include "test/hosts/arrow_arrays.h"
#include "test/hosts/jobs.h"
#include "test/unit/seed.h"

namespace quern_test {
namespace {

using Bytes = std::vector<uint8_t>;
using Rows = std::vector<uint32_t>;
using Keys = std::vector<int64_t>;

const quern_column kRowIds = {};
constexpr uint32_t kRows = 2000;

struct Variant {
  Engine engine;
  const char* params;
};
// Keys that do not fit one machine word have one layout.
std::vector<Variant> VariantsOf(const std::string& spec) {
  std::vector<Variant> variants = {{Engine::kJit, ""}, {Engine::kGeneric, ""}, {Engine::kGeneric, "test.hash=zero"}};
  if (!quern::Kernel::Compile(spec, Engine::kGeneric, "layout=open").ok()) return variants;
  variants.push_back({Engine::kJit, "layout=unchained"});
  variants.push_back({Engine::kGeneric, "layout=open batch_size=7"});
  variants.push_back({Engine::kJit, "layout=dense batch_size=100"});
  return variants;
}

// ---- summaries ----

// Summaries as text: "rows nulls | keys | null | range".
std::string TextOf(const quern_key_summary& summary) {
  std::string text = std::to_string(summary.num_rows) + " " + std::to_string(summary.num_null_rows) + " | ";
  text += (summary.num_keys_is_exact ? "" : "<= ") + std::to_string(summary.num_keys) + " | ";
  text += summary.has_null ? "null | " : "- | ";
  if (!summary.has_range) return text + "-";
  EXPECT_EQ(summary.min_high, summary.min < 0 ? -1 : 0);
  EXPECT_EQ(summary.max_high, summary.max < 0 ? -1 : 0);
  return text + std::to_string(summary.min) + " .. " + std::to_string(summary.max);
}
std::string Summary(const quern::Join& join, uint32_t key = 0) { return TextOf(Take(join.SummariseKey(key))); }

// Expects one text of packed-key tables, and the other of those that do not know their keys' number.
void ExpectSummary(const char* spec, const Table& build, const std::string& exact, const std::string& bound) {
  for (const Variant& variant : VariantsOf(spec)) {
    SCOPED_TRACE(std::string(spec) + ", " + variant.params);
    const quern::Join join = Built(spec, {build}, variant.engine, StringBytes::kStay, variant.params);
    EXPECT_EQ(Summary(join), std::string(join.Stats().layout) == "unchained" ? bound : exact);
  }
}

TEST(KeySummary, OfEachLayout) {
  const Keys unique = {-3, 5, 1}, twice = {-3, 5, 1, 5}, sparse = {-1000000007, 5, 1000000000007},
             sparse_twice = {-1000000007, 5, 1000000000007, 5};
  const auto rows = [](const Keys& keys) { return Table{{ColumnOf(keys)}, {kRowIds}, keys.size()}; };
  const auto keys_of = [](const Keys& keys) { return Table{{ColumnOf(keys)}, {}, keys.size()}; };
  ExpectSummary("join.semi keys=i64", keys_of(twice), "4 0 | 3 | - | -3 .. 5", "4 0 | <= 4 | - | -3 .. 5");
  ExpectSummary("join.inner keys=i64 build=rowid", rows(unique), "3 0 | 3 | - | -3 .. 5", "3 0 | <= 3 | - | -3 .. 5");
  ExpectSummary("join.inner keys=i64 build=rowid", rows(twice), "4 0 | 3 | - | -3 .. 5", "4 0 | <= 4 | - | -3 .. 5");
  ExpectSummary("join.right keys=i64 build=rowid", rows(sparse), "3 0 | 3 | - | -1000000007 .. 1000000000007",
                "3 0 | <= 3 | - | -1000000007 .. 1000000000007");
  ExpectSummary("join.inner keys=i64", keys_of(sparse_twice), "4 0 | 3 | - | -1000000007 .. 1000000000007",
                "4 0 | <= 4 | - | -1000000007 .. 1000000000007");
  const Keys many(100, 7);
  ExpectSummary("join.inner keys=i64 build=rowid", rows(many), "100 0 | 1 | - | 7 .. 7", "100 0 | 1 | - | 7 .. 7");
}

TEST(KeySummary, OfNothing) {
  ExpectSummary("join.inner keys=i64 build=rowid", {}, "0 0 | 0 | - | -", "0 0 | 0 | - | -");
  const Keys key = {5, 6};
  const Bytes none = Bitmap({false, false});
  const Table nulls = {{WithValidity(ColumnOf(key), none)}, {kRowIds}, 2};
  ExpectSummary("join.inner keys=i64:nullable build=rowid", nulls, "", "2 2 | 0 | - | -");
  ExpectSummary("join.right keys=i64:nullable build=rowid", nulls, "", "2 2 | 0 | - | -");
  ExpectSummary("join.inner keys=i64:nullable:nullequal build=rowid", nulls, "", "2 0 | <= 2 | null | -");
  ExpectSummary("join.inner keys=utf8 build=rowid", {}, "", "0 0 | 0 | - | -");
}

TEST(KeySummary, KnowsNulls) {
  const std::vector<int32_t> key = {5, -7, 77, 5};
  const Bytes valid = Bitmap({true, true, false, true});
  const Table build = {{WithValidity(ColumnOf(key), valid)}, {kRowIds}, 4};
  ExpectSummary("join.inner keys=i32:nullable build=rowid", build, "4 1 | 2 | - | -7 .. 5", "4 1 | <= 3 | - | -7 .. 5");
  ExpectSummary("join.inner keys=i32:nullable:nullequal build=rowid", build, "4 0 | 3 | null | -7 .. 5",
                "4 0 | <= 4 | null | -7 .. 5");
}

// One row with the smallest value of a type, one with the largest, and one in between.
template <class T>
void ExpectRange(const char* type, const char* range) {
  const std::vector<T> key = {3, std::numeric_limits<T>::max(), std::numeric_limits<T>::min()};
  const std::string spec = "join.inner keys=" + std::string(type) + " build=rowid",
                    wide = "join.inner keys=utf8," + std::string(type) + " build=rowid";
  const StringVector<int32_t> words({"a", "b", "c"});
  const Table table = {{ColumnOf(key)}, {kRowIds}, 3}, with_words = {{words.column(), ColumnOf(key)}, {kRowIds}, 3};
  for (const Variant& variant : VariantsOf(spec)) {
    SCOPED_TRACE(spec + ", " + variant.params);
    const quern::Join join = Built(spec, {table}, variant.engine, StringBytes::kStay, variant.params);
    EXPECT_NE(Summary(join).find(range), std::string::npos) << Summary(join);
  }
  for (const Variant& variant : VariantsOf(wide)) {
    const quern::Join beside = Built(wide, {with_words}, variant.engine, StringBytes::kStay, variant.params);
    EXPECT_EQ(Summary(beside, 1), "3 0 | <= 3 | - | " + std::string(range));
    EXPECT_EQ(Summary(beside, 0), "3 0 | <= 3 | - | -") << "strings have no range";
  }
}

TEST(KeySummary, HasTheRangeOfEachType) {
  ExpectRange<int8_t>("i8", "-128 .. 127");
  ExpectRange<uint8_t>("u8", "0 .. 255");
  ExpectRange<int16_t>("i16", "-32768 .. 32767");
  ExpectRange<uint16_t>("u16", "0 .. 65535");
  ExpectRange<int32_t>("date32", "-2147483648 .. 2147483647");
  ExpectRange<uint32_t>("u32", "0 .. 4294967295");
  ExpectRange<int64_t>("timestamp", "-9223372036854775808 .. 9223372036854775807");
}

TEST(KeySummary, OfU64AndDecimalsHasAllBits) {
  const std::vector<uint64_t> key = {7, UINT64_MAX - 1};
  const quern::Join join = Built("join.inner keys=u64", {{{ColumnOf(key)}, {}, 2}});
  quern_key_summary summary = Take(join.SummariseKey(0));
  EXPECT_EQ(summary.min, 7);
  EXPECT_EQ(static_cast<uint64_t>(summary.max), UINT64_MAX - 1);
  EXPECT_EQ(summary.max_high, 0);
  const std::vector<int64_t> halves = {5, -2, 9, 3};  // -2 * 2^64 + 5, 3 * 2^64 + 9
  const quern::Join decimals = Built("join.inner keys=decimal128", {{{ColumnOf(halves)}, {}, 2}});
  summary = Take(decimals.SummariseKey(0));
  EXPECT_TRUE(summary.has_range);
  EXPECT_EQ(std::vector<int64_t>({summary.min, summary.min_high, summary.max, summary.max_high}), halves);
}

TEST(KeySummary, OfEachKeyOfAWord) {
  const std::vector<int16_t> first = {-5, 4, 4};
  const std::vector<uint8_t> second = {9, 200, 77}, flag = Bitmap({true, false, true});
  const Bytes valid = Bitmap({true, true, false});
  const Table build = {{ColumnOf(first), WithValidity(ColumnOf(second), valid), ColumnOf(flag)}, {kRowIds}, 3};
  const char* const spec = "join.inner keys=i16,u8:nullable:nullequal,bool build=rowid";
  for (const Variant& variant : VariantsOf(spec)) {
    const quern::Join join = Built(spec, {build}, variant.engine, StringBytes::kStay, variant.params);
    const bool exact = std::string(join.Stats().layout) != "unchained";
    const std::string before = exact ? "3 0 | 3 | " : "3 0 | <= 3 | ";
    EXPECT_EQ(Summary(join, 0), before + "- | -5 .. 4") << variant.params;
    EXPECT_EQ(Summary(join, 1), before + "null | 9 .. 200") << variant.params;
    EXPECT_EQ(Summary(join, 2), before + "- | 0 .. 1") << variant.params;
  }
}

TEST(KeySummary, OfRandomKeysIsThatOfTheirRows) {
  std::mt19937_64 random = quern::test::PrintedRandom();
  for (const int64_t range : {50, 3000, 100000000}) {
    Keys key;
    for (uint32_t i = 0; i < kRows; ++i) key.push_back(static_cast<int64_t>(random() % range) - range / 2);
    const std::set<int64_t> values(key.begin(), key.end());
    const std::string ends = " | - | " + std::to_string(*values.begin()) + " .. " + std::to_string(*values.rbegin());
    const std::string exact = "2000 0 | " + std::to_string(values.size()) + ends;
    const int64_t width = *values.rbegin() - *values.begin() + 1;
    const std::string bound = "2000 0 | <= " + std::to_string(std::min<int64_t>(kRows, width)) + ends;
    for (const char* spec : {"join.semi keys=i64", "join.inner keys=i64", "join.right_semi keys=i64"})
      ExpectSummary(spec, {{ColumnOf(key)}, {}, kRows}, exact, bound);
  }
}

// ---- members ----

Rows SelectedBy(const quern::Join& join, const Table& probe) {
  const quern_batch batch = probe.batch();
  Rows rows(batch.num_rows + 1, 12345);
  const uint64_t n = Take(join.SelectMayMatch(batch, rows.data()));
  EXPECT_EQ(rows[n], 12345u) << "nothing is written behind the last row";
  rows.resize(n);
  return rows;
}

// The same rows, by the bitmap and the count.
void ExpectOneAnswer(const quern::Join& join, const Table& probe, const Rows& rows) {
  const quern_batch batch = probe.batch();
  Bytes bitmap((batch.num_rows + 7) / 8 + 1, 0xff);
  EXPECT_EQ(Take(join.BitmapMayMatch(batch, bitmap.data())), rows.size());
  EXPECT_EQ(Take(join.CountMayMatch(batch)), rows.size());
  Rows of_bitmap;
  for (uint32_t i = 0; i < (batch.num_rows + 7) / 8 * 8; ++i) {
    if (BitAt(bitmap.data(), i)) of_bitmap.push_back(probe.selection.empty() ? i : probe.selection.at(i));
  }
  EXPECT_EQ(of_bitmap, rows);
  EXPECT_EQ(bitmap.back(), 0xff);
}

// Numbers of the rows that have a match, by a semi join, in the order of the batch.
Rows Matching(const std::string& keys, const Table& build, const Table& probe) {
  quern::Join join = Built("join.semi keys=" + keys + " probe=rowid", {build}, Engine::kGeneric);
  Table with_rowid = probe;
  with_rowid.payload = {kRowIds};
  quern::Output output = Take(join.Probe());
  Done(output.Push(with_rowid.batch()));
  Rows rows;
  for (const std::string& row : InOrder(&output, "r")) rows.push_back(static_cast<uint32_t>(std::stoul(row)));
  return rows;
}

std::set<std::string> layouts;

// keys: their part of the spec, without duplicates of build rows if `unique`.
void ExpectMembers(const std::string& keys, Table build, const Table& probe) {
  const Rows matching = Matching(keys, build, probe);
  build.payload = {kRowIds};
  for (const char* kind : {"join.inner keys=", "join.semi keys=", "join.full keys=", "join.anti keys="}) {
    for (const bool payload : {false, true}) {
      if (payload && (kind[5] == 's' || kind[5] == 'a')) continue;
      const std::string spec = kind + keys + (payload ? " build=rowid" : "");
      for (const Variant& variant : VariantsOf(spec)) {
        SCOPED_TRACE(spec + ", " + variant.params);
        const quern::Join join = Built(spec, {build}, variant.engine, StringBytes::kStay, variant.params);
        const std::string layout = join.Stats().layout;
        layouts.insert(layout);
        const Rows rows = SelectedBy(join, probe);
        ExpectOneAnswer(join, probe, rows);
        const bool knows_keys = layout != "unchained";
        if (knows_keys) {
          EXPECT_EQ(rows, matching) << layout;
        } else {
          EXPECT_TRUE(std::includes(rows.begin(), rows.end(), matching.begin(), matching.end()));
          const bool passes_all = std::string(variant.params) == "test.hash=zero";
          if (!passes_all && build.num_rows > 100) {
            EXPECT_LT(rows.size(), matching.size() + probe.num_rows / 20) << "1 row in 20 is 50 times too many";
          }
        }
      }
    }
  }
}

Keys RandomKeys(std::mt19937_64* random, uint64_t range, bool unique) {
  Keys keys;
  std::set<int64_t> seen;
  while (keys.size() < kRows) {
    const auto key = static_cast<int64_t>((*random)() % range) - static_cast<int64_t>(range / 3);
    if (unique && !seen.insert(key).second) continue;
    keys.push_back(key);
  }
  return keys;
}

TEST(Members, AreTheRowsWithAMatch) {
  std::mt19937_64 random = quern::test::PrintedRandom();
  for (const uint64_t range : {uint64_t{4000}, uint64_t{1} << 40}) {
    for (const bool unique : {false, true}) {
      const Keys build = RandomKeys(&random, range, unique);
      Keys probe = RandomKeys(&random, range, false);
      for (size_t i = 0; i < probe.size(); i += 3) probe[i] = build[random() % kRows];
      ExpectMembers("i64", {{ColumnOf(build)}, {}, kRows}, {{ColumnOf(probe)}, {}, kRows});
    }
  }
  const std::vector<int64_t> few = {1, 5, 5}, some = {5, 2, 1, INT64_MIN, INT64_MAX};
  ExpectMembers("i64", {{ColumnOf(few)}, {}, 3}, {{ColumnOf(some)}, {}, 5});
  std::vector<int64_t> gaps(kRows);
  for (size_t i = 0; i < kRows; ++i) gaps[i] = static_cast<int64_t>(i * 100);
  const Keys others = RandomKeys(&random, 100 * kRows, false);
  ExpectMembers("i64", {{ColumnOf(gaps)}, {}, kRows}, {{ColumnOf(others)}, {}, kRows});
  EXPECT_EQ(layouts, (std::set<std::string>{"bitmap", "dense", "ranked", "csr", "open", "counting", "unchained"}));
}

TEST(Members, WithNulls) {
  std::mt19937_64 random = quern::test::PrintedRandom();
  std::vector<int32_t> build, probe;
  std::vector<bool> build_valid, probe_valid;
  for (uint32_t i = 0; i < kRows; ++i) {
    build.push_back(static_cast<int32_t>(random() % 5000));
    probe.push_back(static_cast<int32_t>(random() % 5000));
    build_valid.push_back(random() % 10 != 0);
    probe_valid.push_back(random() % 10 != 0);
  }
  const Bytes of_build = Bitmap(build_valid, 3), of_probe = Bitmap(probe_valid, 5);
  const Table build_rows = {{WithValidity(ColumnOf(build), of_build, 3)}, {}, kRows},
              probe_rows = {{WithValidity(ColumnOf(probe), of_probe, 5)}, {}, kRows};
  ExpectMembers("i32:nullable", build_rows, probe_rows);
  ExpectMembers("i32:nullable:nullequal", build_rows, probe_rows);
  ExpectMembers("i32:nullable", {}, probe_rows);
  // Rows of a selection: in its order, more than once, nulls among them.
  Table selected = probe_rows;
  for (uint32_t i = 0; i < 300; ++i) selected.selection.push_back(i * 7 % 100);
  const quern::Join join = Built("join.semi keys=i32:nullable", {build_rows}, Engine::kJit);
  Rows expected;
  for (const uint32_t row : selected.selection) {
    const bool is_key = [&] {
      for (uint32_t i = 0; i < kRows; ++i)
        if (build_valid[i] && build[i] == probe[row]) return true;
      return false;
    }();
    if (probe_valid[row] && is_key) expected.push_back(row);
  }
  ASSERT_EQ(std::string(join.Stats().layout), "bitmap");
  EXPECT_EQ(SelectedBy(join, selected), expected);
  ExpectOneAnswer(join, selected, expected);
}

TEST(Members, OfStringsFloatsAndDictionaries) {
  const std::vector<std::string> build_words = {"Berlin", "a word of more than twelve bytes", "", "M\u00fcnchen"};
  const std::vector<std::string> probe_words = {"BERLIN ", "Bremen", "", "a word of more than twelve bytes", "MUNCHEN"};
  const StringVector<int32_t> build(build_words), probe(probe_words);
  for (const char* keys : {"utf8", "utf8(utf8mb4_bin)", "utf8(utf8mb4_general_ci)", "utf8(utf8mb4_0900_ai_ci)"})
    ExpectMembers(keys, {{build.column()}, {}, 4}, {{probe.column()}, {}, 5});
  const ViewVector build_views(build_words), probe_views(probe_words);
  const std::vector<int64_t> build_numbers = {1, 2, 3, 4}, probe_numbers = {1, 2, 3, 2, 4};
  ExpectMembers("utf8_view(utf8mb4_general_ci),i64", {{build_views.column(), ColumnOf(build_numbers)}, {}, 4},
                {{probe_views.column(), ColumnOf(probe_numbers)}, {}, 5});
  // The same values under other indices.
  const std::vector<int32_t> build_indices = {3, 0, 1, 1}, probe_indices = {4, 4, 0, 2, 1, 3};
  const quern_column build_values = build.column(), probe_values = probe.column();
  ExpectMembers("dictionary(i32,utf8(utf8mb4_general_ci))",
                {{DictionaryColumn(ColumnOf(build_indices), build_values)}, {}, 4},
                {{DictionaryColumn(ColumnOf(probe_indices), probe_values)}, {}, 6});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> build_doubles = {0.0, nan, 1.5}, probe_doubles = {-0.0, -nan, 1.25, 1.5};
  ExpectMembers("f64", {{ColumnOf(build_doubles)}, {}, 3}, {{ColumnOf(probe_doubles)}, {}, 4});
  const std::vector<int64_t> build_decimals = {1, 0, -1, -1}, probe_decimals = {-1, -1, 1, 1};
  ExpectMembers("decimal128", {{ColumnOf(build_decimals)}, {}, 2}, {{ColumnOf(probe_decimals)}, {}, 2});
}

TEST(Members, SelectTheRowsOfAProbe) {
  const Keys build = {1, 2, 2, 9}, probe = {2, 3, 1, 2};
  quern::Join join = Built("join.inner keys=i64 build=rowid probe=rowid", {{{ColumnOf(build)}, {kRowIds}, 4}});
  quern_batch batch = Table{{ColumnOf(probe)}, {}, 4}.batch();
  const quern_column key = ColumnOf(probe);
  batch.keys = &key;
  batch.payload = nullptr;
  Rows rows(4);
  Done(quern::internal::Call(quern_job_may_match, static_cast<const quern_job*>(join.handle()),
                             static_cast<const quern_batch*>(&batch), rows.data(), static_cast<uint8_t*>(nullptr),
                             &batch.num_rows));
  ASSERT_EQ(batch.num_rows, 3u);
  batch.selection = rows.data();
  batch.payload = &kRowIds;
  quern::Output output = Take(join.Probe());
  Done(output.Push(batch));
  EXPECT_EQ(RowsOf(&output, "rr"), (Lines{"0|1", "0|2", "2|0", "3|1", "3|2"}));
}

TEST(Members, OfArrowArraysThatRemainTheHosts) {
  const Keys build = {1, 2, 9};
  quern::Join join = Built("join.semi keys=i64 probe=i64", {{{ColumnOf(build)}, {}, 3}});
  const TestSchema schema({{"payload", "l"}, {"key", "l"}});
  const int32_t key[] = {1}, payload[] = {0};
  auto batch = StructArray(4, FixedArray<int64_t>({0, 0, 0, 0}), FixedArray<int64_t>({9, 3, 2, 9}));
  const quern::Status unbound = join.CountMayMatchArrow(batch->array).status();
  EXPECT_EQ(unbound.code(), QUERN_FAILED_PRECONDITION);
  EXPECT_EQ(unbound.text(),
            "Arrow columns not bound: the port probe has no binding; accepted: after quern_job_bind_arrow");
  Done(join.BindArrow(QUERN_PORT_PROBE, {&schema.schema, key, payload}));
  Rows rows(4);
  ASSERT_EQ(Take(join.SelectMayMatchArrow(batch->array, rows.data())), 3u);
  EXPECT_EQ(rows, (Rows{0, 2, 3, 0}));
  uint8_t bits = 0;
  EXPECT_EQ(Take(join.BitmapMayMatchArrow(batch->array, &bits)), 3u);
  EXPECT_EQ(bits, 0x0d);
  quern_arrow_rows some = {};
  some.struct_size = sizeof(some);
  some.num_rows = 2;
  EXPECT_EQ(Take(join.CountMayMatchArrow(batch->array, &some)), 1u);
  batch->children[1]->array.length = 2;
  EXPECT_EQ(join.CountMayMatchArrow(batch->array).status().code(), QUERN_INVALID_ARGUMENT);
  EXPECT_EQ(batch->times_released, 0);
}

// ---- wrong calls ----

TEST(JoinKeyErrors, BeforeAllWorkIsDone) {
  quern::Join join = New<quern::Join>("join.inner keys=i64");
  const Keys key = {1};
  const Table table = {{ColumnOf(key)}, {}, 1};
  EXPECT_EQ(join.SummariseKey(0).status().text(),
            "key summary before finalise: the table is not built; accepted: finalise first");
  EXPECT_EQ(join.SummariseKey(0).status().code(), QUERN_FAILED_PRECONDITION);
  EXPECT_EQ(join.CountMayMatch(table.batch()).status().text(),
            "look-up before finalise: the table is not built; accepted: finalise first");
  EXPECT_EQ(join.CountMayMatch(table.batch()).status().code(), QUERN_FAILED_PRECONDITION);
  Done(join.Finalise());
  EXPECT_EQ(Take(join.CountMayMatch(table.batch())), 0u);
  join.Cancel();
  EXPECT_EQ(join.SummariseKey(0).status().code(), QUERN_CANCELLED);
  EXPECT_EQ(join.CountMayMatch(table.batch()).status().code(), QUERN_CANCELLED);
}

TEST(JoinKeyErrors, OfArguments) {
  quern::Join join = Built("join.inner keys=i64", {});
  EXPECT_EQ(join.SummariseKey(1).status().text(), "key number out of range: 1; accepted: 0 to 0");
  quern_batch no_keys = {};
  no_keys.num_rows = 1;
  EXPECT_EQ(join.CountMayMatch(no_keys).status().text(), "batch without columns: probe key; accepted: 1 columns");
  const quern::Sort sort = New<quern::Sort>("sort keys=i64:out");
  quern_key_summary summary = {};
  summary.struct_size = sizeof(summary);
  const quern_job *of_sort = sort.handle(), *of_join = join.handle(), *none = nullptr;
  EXPECT_EQ(ErrorOf(QUERN_INVALID_ARGUMENT, quern_job_summarise_key, of_sort, 0u, &summary),
            "wrong job for the keys of a join: sort; accepted: a job of a kernel `join.KIND ..`");
  EXPECT_EQ(ErrorOf(QUERN_INVALID_ARGUMENT, quern_job_summarise_key, none, 0u, &summary),
            "null argument: job; accepted: a pointer");
  quern_key_summary* const no_summary = nullptr;
  EXPECT_EQ(ErrorOf(QUERN_INVALID_ARGUMENT, quern_job_summarise_key, of_join, 0u, no_summary),
            "null argument: summary; accepted: a pointer");
  const Keys key = {1};
  const Table table = {{ColumnOf(key)}, {}, 1};
  const quern_batch batch = table.batch(), *no_batch = nullptr;
  uint32_t row = 0, *const rows = &row, *const no_rows = nullptr;
  uint8_t bits = 0, *const bitmap = &bits, *const no_bitmap = nullptr;
  uint64_t n = 9, *const no_place = nullptr;
  const auto invalid = [](auto... call) { return ErrorOf(QUERN_INVALID_ARGUMENT, quern_job_may_match, call...); };
  EXPECT_EQ(invalid(of_join, &batch, rows, bitmap, &n),
            "both rows and bitmap; accepted: one of them, or neither to count");
  EXPECT_EQ(n, 0u);
  EXPECT_EQ(invalid(of_join, no_batch, no_rows, no_bitmap, &n), "null argument: batch; accepted: a pointer");
  EXPECT_EQ(invalid(none, &batch, no_rows, no_bitmap, &n), "null argument: job; accepted: a pointer");
  EXPECT_EQ(invalid(of_join, &batch, no_rows, no_bitmap, no_place), "null argument: num_rows; accepted: a pointer");
}

TEST(JoinKeyErrors, ASmallerSummaryGetsItsMembersAlone) {
  const Keys key = {1, 5};
  const quern::Join join = Built("join.inner keys=i64", {{{ColumnOf(key)}, {}, 2}});
  quern_key_summary summary = {};
  summary.struct_size = offsetof(quern_key_summary, min);
  summary.min = -77;
  ASSERT_EQ(quern_job_summarise_key(join.handle(), 0, &summary, nullptr), QUERN_OK);
  EXPECT_EQ(summary.num_keys, 2u);
  EXPECT_EQ(summary.min, -77);
}

}  // namespace
}  // namespace quern_test
