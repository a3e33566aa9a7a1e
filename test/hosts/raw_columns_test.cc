// SPDX-License-Identifier: Apache-2.0
// Batches of a host's own vectors: every kind of column with validity, bit offsets, selection, dictionaries, and copies
// of strings.
#include <gtest/gtest.h>

#include <memory>

#include "test/hosts/host_tables.h"

namespace quern_test {
namespace {

using Bytes = std::vector<uint8_t>;
using Indices = std::vector<int32_t>;

const quern_column kRowIds = {};

TEST(RawColumns, FixedWidthKeysAndPayload) {
  const std::vector<int64_t> build_key = {10, 20, 30, 20}, probe_key = {20, 5, 30};
  const std::vector<double> price = {1, 2, 3, 4};
  const std::vector<int32_t> amount = {7, 8, 9};
  ExpectRows("join.inner keys=i64 build=f64 probe=i32", {{ColumnOf(build_key)}, {ColumnOf(price)}, 4},
             {{ColumnOf(probe_key)}, {ColumnOf(amount)}, 3}, "id", {"7|2", "7|4", "9|3"});
}

TEST(RawColumns, SelectionTakesRowsInItsOrderAndMoreThanOnce) {
  const std::vector<int64_t> build_key = {10, 20, 30, 20}, probe_key = {20, 5, 30};
  ExpectRows("join.inner keys=i64 build=rowid probe=rowid", {{ColumnOf(build_key)}, {kRowIds}, 0, {3, 2}, 100},
             {{ColumnOf(probe_key)}, {kRowIds}, 0, {2, 0, 0}, 1000}, "rr", {"1000|103", "1000|103", "1002|102"});
}

TEST(RawColumns, ValidityStartsAtBitOffset) {
  const std::vector<int64_t> build_key = {1, 2, 3}, probe_key = {1, 2, 3};
  const std::vector<double> price = {10, 20, 30};
  const Bytes key_valid = Bitmap({true, false, true}, 5), price_valid = Bitmap({false, true, true}, 13);
  ExpectRows("join.inner keys=i64:nullable build=f64:nullable probe=rowid",
             {{WithValidity(ColumnOf(build_key), key_valid, 5)}, {WithValidity(ColumnOf(price), price_valid, 13)}, 3},
             {{ColumnOf(probe_key)}, {kRowIds}, 3}, "rd", {"0|null", "2|30"});
}

TEST(RawColumns, NullMatchesNullWhereTheSpecSaysSo) {
  const std::vector<int64_t> key = {1, 2};
  const Bytes valid = Bitmap({true, false});
  const Table table = {{WithValidity(ColumnOf(key), valid)}, {kRowIds}, 2};
  ExpectRows("join.inner keys=i64:nullable:nullequal build=rowid probe=rowid", table, table, "rr", {"0|0", "1|1"});
}

TEST(RawColumns, BoolsAreBitmapsFromBitOffset) {
  const Bytes build_key = Bitmap({true, false}, 3), probe_key = Bitmap({false, false, true}, 6),
              payload = Bitmap({false, true}, 9);
  quern_column build = ColumnOf(build_key), probe = ColumnOf(probe_key), flag = ColumnOf(payload);
  build.bit_offset = 3;
  probe.bit_offset = 6;
  flag.bit_offset = 9;
  ExpectRows("join.inner keys=bool build=bool probe=rowid", {{build}, {flag}, 2}, {{probe}, {kRowIds}, 3}, "rb",
             {"0|true", "1|true", "2|false"});
}

const std::vector<std::string> kBuildWords = {"a", "a string above twelve bytes", "", "another long string, of build",
                                              "a"};
const std::vector<std::string> kProbeWords = {"another long string, of build", "a ", "none", ""};
const Lines kWordRows = {"another long string, of build|another long string, of build", "a |a", "a |a", "|"};

TEST(RawColumns, Strings) {
  const StringVector<int32_t> build(kBuildWords), probe(kProbeWords);
  ExpectRows("join.inner keys=utf8(utf8mb4_bin) build=utf8 probe=utf8", {{build.column()}, {build.column()}, 5},
             {{probe.column()}, {probe.column()}, 4}, "ss", kWordRows);
}

TEST(RawColumns, LargeStrings) {
  const StringVector<int64_t> build(kBuildWords), probe(kProbeWords);
  ExpectRows("join.inner keys=large_utf8(utf8mb4_bin) build=large_utf8 probe=large_utf8",
             {{build.column()}, {build.column()}, 5}, {{probe.column()}, {probe.column()}, 4}, "SS", kWordRows);
}

TEST(RawColumns, Views) {
  const ViewVector build(kBuildWords), probe(kProbeWords);
  ExpectRows("join.inner keys=utf8_view(utf8mb4_bin) build=utf8_view probe=utf8_view",
             {{build.column()}, {build.column()}, 5}, {{probe.column()}, {probe.column()}, 4}, "vv", kWordRows);
}

TEST(RawColumns, StringsOfASelectionWithNulls) {
  const StringVector<int32_t> build(kBuildWords), probe(kProbeWords);
  const Bytes valid = Bitmap({false, true, true, true, true}, 2);
  ExpectRows(
      "join.inner keys=utf8:nullable build=utf8:nullable,rowid probe=rowid",
      {{WithValidity(build.column(), valid, 2)}, {WithValidity(build.column(), valid, 2), kRowIds}, 0, {4, 3, 0}},
      {{probe.column()}, {kRowIds}, 4}, "rsr", {"0|another long string, of build|3"});
}

TEST(RawColumns, DictionariesComeOutDecoded) {
  const StringVector<int32_t> words(kBuildWords);
  const quern_column values = words.column();
  const Indices build = {3, 0, 2}, probe = {0, 3, 1};
  ExpectRows("join.inner keys=dictionary(i32,utf8) build=dictionary(i32,utf8) probe=rowid",
             {{DictionaryColumn(ColumnOf(build), values)}, {DictionaryColumn(ColumnOf(build), values)}, 3},
             {{DictionaryColumn(ColumnOf(probe), values)}, {kRowIds}, 3}, "rs",
             {"0|a", "1|another long string, of build"});
}

TEST(RawColumns, NullsOfDictionaryAndIndicesAreOne) {
  const ViewVector words(kBuildWords);
  const Bytes value_valid = Bitmap({true, false, true, true, true}, 7),
              index_valid = Bitmap({true, true, false, true}, 4);
  const quern_column values = WithValidity(words.column(), value_valid, 7);
  const std::vector<uint8_t> indices = {3, 1, 0, 0, 77};  // the last is outside the dictionary and takes no part
  const quern_column column = DictionaryColumn(WithValidity(ColumnOf(indices), index_valid, 4), values);
  const std::vector<int64_t> key = {1, 2, 3, 4, 5};
  ExpectRows("join.inner keys=i64 build=dictionary(u8,utf8_view):nullable probe=rowid",
             {{ColumnOf(key)}, {column}, 0, {0, 1, 2, 3}}, {{ColumnOf(key)}, {kRowIds}, 5}, "rv",
             {"0|another long string, of build", "1|null", "2|null", "3|a"});
  ExpectRows("join.inner keys=dictionary(u8,utf8_view):nullable build=rowid probe=rowid",
             {{column}, {kRowIds}, 0, {0, 1, 2, 3}}, {{column}, {kRowIds}, 0, {3, 2, 1, 0}}, "rr", {"0|0", "3|3"});
}

TEST(RawColumns, PointersMayBeMissingWhereNoRowNeedsThem) {
  const std::vector<int64_t> key = {1, 2};
  const Bytes none_valid = Bitmap({false, false});
  quern_column absent = {};
  const std::vector<int32_t> no_offsets = {0, 0, 0};
  quern_column empty_strings = {};
  empty_strings.offsets = no_offsets.data();
  const ViewVector short_views({"ab", "cd"});
  quern_column inline_views = short_views.column();
  inline_views.buffers = nullptr;
  const Table build = {{ColumnOf(key)}, {WithValidity(absent, none_valid), empty_strings, inline_views}, 2};
  ExpectRows("join.inner keys=i64 build=f64:nullable,utf8,utf8_view probe=rowid", build,
             {{ColumnOf(key)}, {kRowIds}, 2}, "rdsv", {"0|null||ab", "1|null||cd"});
}

TEST(RawColumns, EmptyBatchesNeedNoColumns) {
  ExpectRows("join.inner keys=i64,utf8 build=f64 probe=utf8_view", {}, {}, "vd", {});
}

// A host that reuses its vectors: what it appended with copy_bytes is overwritten and freed before the probe.
class CopiedBytes : public testing::TestWithParam<quern::Engine> {
 protected:
  // Appends, lets `forget` destroy the host's memory, probes with kProbeWords and one key column of strings.
  static Lines Rows(const char* spec, const Table& build, std::string_view kinds, void (*forget)(void*),
                    void* vectors) {
    auto kernel = quern::Kernel::Compile(spec, GetParam());
    EXPECT_TRUE(kernel.ok()) << kernel.status().text();
    auto join = quern::Join::Create(*kernel);
    EXPECT_TRUE(join->Append(build.batch(), quern::StringBytes::kCopied).ok());
    forget(vectors);
    EXPECT_TRUE(join->Finalise().ok());
    auto prober = quern::Prober::Create(*join);
    const StringVector<int32_t> probe(kProbeWords);
    const Indices rows = {0, 1, 2, 3};
    const quern_column words = probe.column();
    const bool is_dictionary = std::string_view(spec).find("keys=dictionary") != std::string_view::npos;
    const ViewVector views(kProbeWords);
    const bool is_view = std::string_view(spec).find("keys=utf8_view") != std::string_view::npos;
    const quern_column key = is_dictionary ? DictionaryColumn(ColumnOf(rows), words) : is_view ? views.column() : words;
    EXPECT_TRUE(prober->Input(Table{{key}, {kRowIds}, 4}.batch()).ok());
    return ScanUnmatched(&*prober, kinds);
  }
};

TEST_P(CopiedBytes, OfStrings) {
  auto vectors = std::make_unique<StringVector<int32_t>>(kBuildWords);
  const auto forget = [](void* strings) {
    auto* vector = static_cast<StringVector<int32_t>*>(strings);
    std::fill(vector->bytes.begin(), vector->bytes.end(), 'x');
    delete vector;
  };
  const Table build = {{vectors->column()}, {vectors->column(), kRowIds}, 0, {3, 1, 3}};
  EXPECT_EQ(Rows("join.inner keys=utf8 build=utf8,rowid probe=rowid", build, "rsr", forget, vectors.release()),
            (Lines{"0|another long string, of build|3", "0|another long string, of build|3"}));
}

TEST_P(CopiedBytes, OfViews) {
  auto vectors = std::make_unique<ViewVector>(kBuildWords);
  const auto forget = [](void* views) {
    auto* vector = static_cast<ViewVector*>(views);
    for (std::string& bytes : vector->bytes) std::fill(bytes.begin(), bytes.end(), 'x');
    delete vector;
  };
  const Table build = {{vectors->column()}, {vectors->column(), kRowIds}, 5};
  EXPECT_EQ(
      Rows("join.inner keys=utf8_view build=utf8_view,rowid probe=rowid", build, "rvr", forget, vectors.release()),
      (Lines{"0|another long string, of build|3", "3||2"}));
}

TEST_P(CopiedBytes, OfDictionaries) {
  struct Vectors {
    StringVector<int32_t> words{kBuildWords};
    quern_column values = words.column();
    Indices indices = {3, 3, 1, 2};
  };
  auto vectors = std::make_unique<Vectors>();
  const auto forget = [](void* all) {
    auto* dictionary = static_cast<Vectors*>(all);
    std::fill(dictionary->words.bytes.begin(), dictionary->words.bytes.end(), 'x');
    delete dictionary;
  };
  const quern_column column = DictionaryColumn(ColumnOf(vectors->indices), vectors->values);
  const Table build = {{column}, {column, kRowIds}, 4};
  EXPECT_EQ(Rows("join.inner keys=dictionary(i32,utf8) build=dictionary(i32,utf8),rowid probe=rowid", build, "rsr",
                 forget, vectors.release()),
            (Lines{"0|another long string, of build|0", "0|another long string, of build|1", "3||3"}));
}

INSTANTIATE_TEST_SUITE_P(Engines, CopiedBytes, testing::Values(quern::Engine::kJit, quern::Engine::kGeneric));

}  // namespace
}  // namespace quern_test
