// SPDX-License-Identifier: Apache-2.0
// The directory: keys of any kind find their tuple again, after growths, after their batch is freed, and among keys
// with the same tag.
#include "runtime/aggregate/tables/directory_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/aggregate/group_keys.h"
#include "runtime/blocks/blocks.h"
#include "test/unit/runtime/aggregate/group_rows.h"

namespace quern {
namespace {

using test::ColumnPtr;
using test::Lines;
using test::StringColumn;

struct Table {
  GroupContext context;
  DirectoryGroups groups;

  explicit Table(const std::string& spec, const AggregateOptions& options = {}, const test::Tuning& tuning = {})
      : context(test::ContextOf(spec, options, tuning)), groups(context, 0) {}

  std::vector<uint8_t*> Find(const std::vector<ColumnPtr>& keys, uint32_t n) {
    return test::FindGroups(&groups, keys, n);
  }
  std::vector<uint8_t*> Scanned() {
    std::vector<uint8_t*> tuples(groups.num_positions() + 1);
    uint32_t n = 0;
    for (uint64_t begin = 0; begin < groups.num_positions(); begin += 100)
      n += groups.Scan(begin, std::min(begin + 100, groups.num_positions()), tuples.data() + n);
    tuples.resize(n);
    return tuples;
  }
  // Key 0 of all groups, in order of arrival.
  Lines Keys() {
    const KeyDictionaries none(context.descriptor->spec(), context.budget);
    const std::vector<uint8_t*> tuples = Scanned();
    OutputBatch out(AggregateOutputTypes(context.descriptor->spec()), tuples.size() + 1, nullptr);
    EXPECT_EQ(out.Reset(), absl::OkStatus());
    const auto n =
        WriteKey(*context.descriptor, none, 0, tuples.data(), static_cast<uint32_t>(tuples.size()), out.columns(), 0);
    EXPECT_TRUE(n.ok()) << n.status();
    Lines lines;
    for (size_t i = 0; i < tuples.size(); ++i) lines.push_back(test::CellOf(out.column(0), out.type(0), i));
    return lines;
  }
};

std::string LongText(size_t length, char c) { return std::string(length, c); }

TEST(DirectoryGroups, RowsOfOneKeyHaveOneTuple) {
  Table table("aggregate keys=utf8 aggs=count_star");
  const auto column = StringColumn(kVar32, {"a", "b", "a", "", "b", ""});
  const auto tuples = table.Find({column}, 6);
  EXPECT_EQ(tuples[0], tuples[2]);
  EXPECT_EQ(tuples[1], tuples[4]);
  EXPECT_EQ(tuples[3], tuples[5]);
  EXPECT_EQ(table.groups.num_groups(), 3u);
  EXPECT_EQ(table.Find({column}, 6), tuples);
  EXPECT_EQ(table.Keys(), (Lines{"a", "b", ""}));
}

// A batch may contain a new key many times, before and after others with the same tag.
TEST(DirectoryGroups, ANewKeyMayComeManyTimesInABatch) {
  Table table("aggregate keys=utf8 aggs=count_star");
  std::vector<std::string> values;
  for (int i = 0; i < 1000; ++i) values.push_back("key number " + std::to_string(i % 100));
  const auto tuples = table.Find({StringColumn(kVar32, values)}, 1000);
  EXPECT_EQ(table.groups.num_groups(), 100u);
  for (size_t i = 100; i < 1000; ++i) EXPECT_EQ(tuples[i], tuples[i - 100]) << i;
}

TEST(DirectoryGroups, StringsOfAnyLengthOutliveTheirBatch) {
  for (const char* spec : {"aggregate keys=utf8", "aggregate keys=large_utf8", "aggregate keys=utf8_view"}) {
    Table table(spec);
    const Storage storage = table.context.descriptor->group()->keys[0].storage;
    Lines expected;
    for (size_t length = 0; length <= 200; ++length) {
      expected.push_back(LongText(length, static_cast<char>('a' + length % 26)));
      table.Find({StringColumn(storage, {expected.back(), expected.back(), expected.front()})}, 3);
    }
    EXPECT_EQ(table.Keys(), expected) << spec;
    EXPECT_EQ(table.groups.num_groups(), 201u);
    for (const std::string& value : expected) table.Find({StringColumn(storage, {value})}, 1);
    EXPECT_EQ(table.groups.num_groups(), 201u) << spec;
  }
}

TEST(DirectoryGroups, NullsAreOneGroup) {
  Table table("aggregate keys=utf8:nullable");
  const auto column = test::WithNulls(StringColumn(kVar32, {"", "x", "", "a long string that is null here", ""}),
                                      {true, true, false, false, true});
  const auto tuples = table.Find({column}, 5);
  EXPECT_EQ(tuples[2], tuples[3]);
  EXPECT_EQ(tuples[0], tuples[4]);
  EXPECT_EQ(table.groups.num_groups(), 3u);
  EXPECT_EQ(table.Keys(), (Lines{"", "x", "null"}));
}

TEST(DirectoryGroups, EachOfSeveralKeysMayBeNull) {
  Table table("aggregate keys=i64:nullable,i64:nullable");
  const auto a =
      test::WithNulls(test::NumberColumn<int64_t>({1, 1, 1, 1, 1, 0}), {true, false, true, false, true, true});
  const auto b =
      test::WithNulls(test::NumberColumn<int64_t>({1, 1, 1, 1, 1, 0}), {true, true, false, false, true, true});
  const auto tuples = table.Find({a, b}, 6);
  EXPECT_EQ(table.groups.num_groups(), 5u);
  EXPECT_EQ(tuples[0], tuples[4]);
}

TEST(DirectoryGroups, FloatsAreNormalised) {
  Table table("aggregate keys=f64,f64");
  const double nan = __builtin_nan(""), other_nan = -__builtin_nan("7");
  const auto a = test::NumberColumn<double>({0.0, -0.0, nan, other_nan, 1.0});
  EXPECT_EQ(std::set<uint8_t*>({table.Find({a, a}, 5)[0], table.Find({a, a}, 5)[1]}).size(), 1u);
  EXPECT_EQ(table.groups.num_groups(), 3u);
  EXPECT_EQ(table.Keys(), (Lines{"0", "nan", "1"}));
}

// Neighbouring rows whose strings fit their tuples are found in one pass over directory and tuples, selected rows in
// two.
struct Words {
  std::vector<std::string> texts;
  std::vector<uint32_t> numbers;
  std::vector<uint32_t> rows;

  // Strings of all lengths from 0, and numbers that are independent of the strings.
  Words(uint32_t n, uint32_t num_distinct) {
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t word = i * 7919 % num_distinct;
      const std::string digits = std::to_string(word);
      texts.push_back(word % 41 == 0
                          ? ""
                          : (digits + LongText(word % 41, 'x')).substr(0, std::max<size_t>(digits.size(), word % 41)));
      numbers.push_back(word % 3);
      rows.push_back(i);
    }
  }
};

void CheckBothPasses(const std::string& spec, const std::vector<ColumnPtr>& keys, const std::vector<uint32_t>& rows) {
  Table table(spec);
  std::vector<QuernColumn> columns;
  for (const ColumnPtr& key : keys) columns.push_back(key->column);
  const uint32_t n = static_cast<uint32_t>(rows.size());
  std::vector<uint8_t*> neighbours(n), picked(n);
  for (int round = 0; round < 3; ++round) {  // the first one makes the groups
    for (uint32_t first = 0; first < n; first += 1000) {
      const uint32_t num_rows = std::min(1000u, n - first);
      ASSERT_EQ(table.groups.Find({columns.data(), first, nullptr, num_rows}, neighbours.data() + first),
                absl::OkStatus());
      ASSERT_EQ(table.groups.Find({columns.data(), 0, rows.data() + first, num_rows}, picked.data() + first),
                absl::OkStatus());
    }
    ASSERT_EQ(neighbours, picked) << spec;
  }
  Table other(spec);
  for (uint32_t first = 0; first < n; first += 1000)
    ASSERT_EQ(other.groups.Find({columns.data(), 0, rows.data() + first, std::min(1000u, n - first)}, picked.data()),
              absl::OkStatus());
  EXPECT_EQ(table.groups.num_groups(), other.groups.num_groups()) << spec;
}

TEST(DirectoryGroups, NeighboursAreFoundAsPickedRowsAre) {
  for (uint32_t num_distinct : {5u, 300u, 4000u}) {
    const Words words(20'000, num_distinct);
    const ColumnPtr texts = StringColumn(kVar32, words.texts), numbers = test::NumberColumn<uint32_t>(words.numbers);
    const ColumnPtr wide =
        test::NumberColumn<int64_t>(std::vector<int64_t>(words.numbers.begin(), words.numbers.end()));
    CheckBothPasses("aggregate keys=utf8 aggs=sum(i64)", {texts}, words.rows);
    CheckBothPasses("aggregate keys=utf8:nullable aggs=sum(i64)", {texts}, words.rows);
    CheckBothPasses("aggregate keys=u32,utf8 aggs=sum(i64)", {numbers, texts}, words.rows);
    CheckBothPasses("aggregate keys=utf8,i64 aggs=sum(i64)", {texts, wide}, words.rows);
    CheckBothPasses("aggregate keys=utf8:nullable,i64:nullable aggs=sum(i64)", {texts, wide}, words.rows);
    CheckBothPasses("aggregate keys=u32,utf8,i64 aggs=sum(i64)", {numbers, texts, wide}, words.rows);
    CheckBothPasses("aggregate keys=utf8,utf8 aggs=sum(i64)", {texts, texts}, words.rows);
  }
}

// The tuples of null and of the empty string differ in one bit, also for batches without nulls.
TEST(DirectoryGroups, AnEmptyStringIsNotTheNullOfAnotherBatch) {
  Table table("aggregate keys=utf8:nullable,i64:nullable aggs=sum(i64)");
  const std::vector<std::string> texts(64, "");
  const auto text_nulls = test::WithNulls(StringColumn(kVar32, texts), std::vector<bool>(64, false));
  const auto zeros = test::NumberColumn<int64_t>(std::vector<int64_t>(64, 0));
  const auto zero_nulls =
      test::WithNulls(test::NumberColumn<int64_t>(std::vector<int64_t>(64, 0)), std::vector<bool>(64, false));
  const auto both_null = table.Find({text_nulls, zero_nulls}, 64), text_null = table.Find({text_nulls, zeros}, 64);
  const auto number_null = table.Find({StringColumn(kVar32, texts), zero_nulls}, 64);
  for (int round = 0; round < 2; ++round) {
    const auto neither = table.Find({StringColumn(kVar32, texts), zeros}, 64);
    EXPECT_EQ(std::set<uint8_t*>({both_null[0], text_null[0], number_null[0], neither[0]}).size(), 4u);
    EXPECT_EQ(neither, std::vector<uint8_t*>(64, neither[0]));
  }
  EXPECT_EQ(table.groups.num_groups(), 4u);
}

// A tag is the last 16 bits of the hash: if all hashes are equal, every entry is a candidate.
TEST(DirectoryGroups, KeysWithTheSameHashAreToldApart) {
  Table table("aggregate keys=utf8", {}, {.zero_hashes = true});
  std::vector<std::string> values;
  for (int i = 0; i < 300; ++i) values.push_back("key " + std::to_string(i * i % 101));
  const auto tuples = table.Find({StringColumn(kVar32, values)}, 300);
  const std::set<std::string> distinct(values.begin(), values.end());
  EXPECT_EQ(table.groups.num_groups(), distinct.size());
  EXPECT_EQ(std::set<uint8_t*>(tuples.begin(), tuples.end()).size(), distinct.size());
  const Lines keys = table.Keys();
  EXPECT_EQ(std::set<std::string>(keys.begin(), keys.end()), distinct);
}

// Keys of 128 bits whose hashes share the last 16 bits and the first 6, but no more.
TEST(DirectoryGroups, KeysWithTheSameTagAreToldApart) {
  Table probe("aggregate keys=decimal128");
  std::vector<__int128> values;
  const QuernColumn* column = nullptr;
  for (__int128 value = 1; values.size() < 20; ++value) {
    const ColumnPtr one = test::NumberColumn<__int128>({value});
    column = &one->column;
    uint64_t hash = 0;
    probe.context.entry_points.Now().hash(probe.context.descriptor->group(), column, 0, nullptr, 1, &hash);
    if ((hash & 0xfff) == 0x123) values.push_back(value);
  }
  Table table("aggregate keys=decimal128");
  values.insert(values.end(), values.begin(), values.end());
  const auto tuples = table.Find({test::NumberColumn(values)}, 40);
  EXPECT_EQ(table.groups.num_groups(), 20u);
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(tuples[i], tuples[i + 20]);
}

TEST(DirectoryGroups, GrowthMovesNoTuple) {
  for (const uint32_t load : {10u, 50u, 75u}) {
    AggregateOptions options;
    options.load_percent = load;
    options.huge_pages = false;
    Table table("aggregate keys=i64,i64 aggs=count_star", options);
    std::vector<uint8_t*> all;
    for (int64_t batch = 0; batch < 50; ++batch) {
      std::vector<int64_t> keys(997);
      for (size_t i = 0; i < keys.size(); ++i) keys[i] = (batch * 500 + static_cast<int64_t>(i)) * 1000003;
      const auto column = test::NumberColumn(keys);
      const auto tuples = table.Find({column, column}, 997);
      for (size_t i = 0; i < (batch == 0 ? 0u : 497u); ++i) ASSERT_EQ(tuples[i], all[all.size() - 497 + i]);
      all.insert(all.end(), tuples.begin() + (batch == 0 ? 0 : 497), tuples.end());
    }
    EXPECT_EQ(table.groups.num_groups(), all.size());
    const auto scanned = table.Scanned();
    EXPECT_EQ(std::set<uint8_t*>(scanned.begin(), scanned.end()), std::set<uint8_t*>(all.begin(), all.end()));
    EXPECT_GE(table.groups.num_growths(), 4u);
  }
}

TEST(DirectoryGroups, PadSpaceGivesTheFirstRowsSpacesBack) {
  Table table("aggregate keys=utf8(utf8mb4_bin)");
  const auto tuples =
      table.Find({StringColumn(kVar32, {"a  ", "a", "", "   ", "a  b ", "a  b", "twelve bytes and more   "})}, 7);
  EXPECT_EQ(tuples[0], tuples[1]);
  EXPECT_EQ(tuples[2], tuples[3]);
  EXPECT_EQ(table.Keys(), (Lines{"a  ", "", "a  b ", "twelve bytes and more   "}));
}

TEST(DirectoryGroups, GroupsOfAnotherTableBringKeyAndHash) {
  const char* spec = "aggregate keys=utf8(utf8mb4_bin):nullable,i32:nullable aggs=sum(i64:nullable)";
  auto from = std::make_unique<Table>(spec);
  const auto texts =
      test::WithNulls(StringColumn(kVar32, {"short ", "a string that is longer than a field", "x", "short"}),
                      {true, true, false, true});
  const auto numbers = test::WithNulls(test::NumberColumn<int32_t>({1, 2, 3, 4}), {true, false, true, true});
  const auto made = from->Find({texts, numbers}, 4);
  for (uint8_t* tuple : made)
    tuple[from->context.descriptor->get()->accumulators[0].seen_offset] |= 0xfc;  // bits that do not belong to the keys
  Table into(spec);
  const auto own = into.Find({texts, numbers}, 1);
  std::vector<uint8_t*> tuples = from->Scanned(), found(4);
  uint64_t hashes[4];
  from->groups.HashesOf(0, tuples.data(), 4, hashes);
  ASSERT_EQ(into.groups.FindTuples({tuples.data(), hashes, 4}, found.data()), absl::OkStatus());
  EXPECT_EQ(found[0], own[0]);
  from.reset();
  EXPECT_EQ(into.groups.num_groups(), 4u);
  EXPECT_EQ(into.Keys(), (Lines{"short ", "a string that is longer than a field", "null", "short"}));
  const QuernAccumulator& a = into.context.descriptor->get()->accumulators[0];
  for (const uint8_t* tuple : into.Scanned()) EXPECT_EQ(tuple[a.seen_offset] & a.seen_mask, 0);
  EXPECT_EQ(into.Find({texts, numbers}, 4), found);
}

TEST(DirectoryGroups, WordsBehindADirectory) {
  for (const char* key : {"i64", "i32:nullable", "u16"}) {
    AggregateOptions options;
    options.layout = GroupLayout::kDirectory;
    Table table(std::string("aggregate keys=") + key + " aggs=count_star", options);
    EXPECT_STREQ(MakeGroupTable(table.context, 0)->layout(), "directory");
    std::vector<int64_t> keys;
    for (int i = 0; i < 600; ++i) keys.push_back(i % 200);
    ColumnPtr column = std::string(key) == "u16"   ? test::NumberColumn(std::vector<uint16_t>(keys.begin(), keys.end()))
                       : std::string(key) == "i64" ? test::NumberColumn(keys)
                                                   : test::NumberColumn(std::vector<int32_t>(keys.begin(), keys.end()));
    const auto tuples = table.Find({column}, 600);
    EXPECT_EQ(table.groups.num_groups(), 200u);
    for (size_t i = 200; i < 600; ++i) EXPECT_EQ(tuples[i], tuples[i - 200]);
    std::vector<uint8_t*> scanned = table.Scanned(), found(200);
    Table into(std::string("aggregate keys=") + key + " aggs=count_star", options);
    ASSERT_EQ(into.groups.FindTuples({scanned.data(), nullptr, 200}, found.data()), absl::OkStatus());
    Lines ours = table.Keys(), theirs = into.Keys();
    std::sort(ours.begin(), ours.end());
    std::sort(theirs.begin(), theirs.end());
    EXPECT_EQ(theirs, ours);
  }
}

// Positions at the end of one span and the beginning of the next, read in ranges that cross them.
TEST(DirectoryGroups, HashesAreThoseOfTheScannedTuples) {
  Table table("aggregate keys=i64,i64");
  for (int64_t batch = 0; batch < 20; ++batch) {
    std::vector<int64_t> keys(700);
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = batch * 700 + static_cast<int64_t>(i);
    const auto column = test::NumberColumn(keys);
    table.Find({column, column}, 700);
  }
  uint8_t* tuples[333];
  uint64_t hashes[333];
  for (uint64_t begin = 0; begin < table.groups.num_positions(); begin += 333) {
    const uint32_t n = table.groups.Scan(begin, begin + 333, tuples);
    table.groups.HashesOf(begin, tuples, n, hashes);
    for (uint32_t i = 0; i < n; ++i) {
      const uint64_t key = blocks::Load<uint64_t>(tuples[i]);
      const blocks::HashSecret& secret = blocks::quern_hash_secret;
      ASSERT_EQ(hashes[i], blocks::Combine(blocks::Mix(key, secret), key, secret));
    }
  }
  EXPECT_EQ(table.groups.Scan(table.groups.num_positions(), table.groups.num_positions() + 9, tuples), 0u);
}

TEST(DirectoryGroups, AfterReleaseTheTableBeginsAgain) {
  Table table("aggregate keys=utf8");
  table.Find({StringColumn(kVar32, {"a", "b"})}, 2);
  table.groups.Release();
  EXPECT_EQ(table.groups.num_groups(), 0u);
  EXPECT_EQ(table.groups.num_positions(), 0u);
  EXPECT_EQ(table.context.budget->used_bytes(), 0u);
  table.Find({StringColumn(kVar32, {"b", "c"})}, 2);
  EXPECT_EQ(table.Keys(), (Lines{"b", "c"}));
}

TEST(DirectoryGroups, EveryLimitIsAnError) {
  const auto column = StringColumn(kVar32, {"a string that is longer than a field", "b", LongText(5000, 'c')});
  bool fits = false;
  for (uint64_t limit = 1; !fits; limit += 512) {
    ASSERT_LT(limit, uint64_t{1} << 20);
    GroupContext context = test::ContextOf("aggregate keys=utf8");
    context.budget = std::make_shared<MemoryBudget>(limit);
    {
      DirectoryGroups groups(context, 0);
      uint8_t* tuples[3];
      const absl::Status status = groups.Find({&column->column, 0, nullptr, 3}, tuples);
      fits = status.ok();
      if (!fits) {
        EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
      }
    }
    EXPECT_EQ(context.budget->used_bytes(), 0u);
  }
}

}  // namespace
}  // namespace quern
