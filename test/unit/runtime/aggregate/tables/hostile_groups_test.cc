// SPDX-License-Identifier: Apache-2.0
// Keys that all meet in one place of a table of groups cost a bounded number of steps a row: the table makes its hashes
// anew. Keys that are spread never make it do so.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/aggregate/tables/directory_groups.h"
#include "runtime/aggregate/tables/open_groups.h"
#include "runtime/aggregate/tables/packed_key_groups.h"
#include "runtime/base/thresholds.h"
#include "test/unit/hostile_keys.h"
#include "test/unit/runtime/aggregate/group_rows.h"

namespace quern {
namespace {

using test::ColumnPtr;
using test::HostileKeys;
using Keys = std::vector<int64_t>;

constexpr uint32_t kBatch = 1000;

struct Found {
  std::vector<uint64_t> group_of_row;  // in the order in which groups were met first
  uint64_t num_groups = 0;
  TableTally tally;
};

// Looks up all rows twice, batch by batch. A row's group is told by a number in the tuple's state.
Found Find(GroupTable* table, const GroupContext& context, const std::vector<Keys>& keys) {
  Found found;
  const uint64_t num_rows = keys[0].size(), state = context.descriptor->get()->states_offset;
  for (int turn = 0; turn < 2; ++turn) {
    for (uint64_t first = 0; first < num_rows; first += kBatch) {
      const auto n = static_cast<uint32_t>(std::min<uint64_t>(kBatch, num_rows - first));
      std::vector<QuernColumn> columns(keys.size());
      for (size_t k = 0; k < keys.size(); ++k) columns[k].values = keys[k].data();
      std::vector<uint8_t*> tuples(n);
      EXPECT_EQ(table->Find({columns.data(), first, nullptr, n}, tuples.data()), absl::OkStatus());
      for (uint32_t i = 0; i < n; ++i) {
        auto number = blocks::Load<uint64_t>(tuples[i] + state);
        if (number == 0) blocks::Store(tuples[i] + state, number = ++found.num_groups);
        if (turn == 0) found.group_of_row.push_back(number);
        else EXPECT_EQ(number, found.group_of_row[first + i]);
      }
    }
  }
  found.tally = table->TakeTally();
  return found;
}

std::vector<uint64_t> Expected(const std::vector<Keys>& keys) {
  std::map<Keys, uint64_t> numbers;
  std::vector<uint64_t> group_of_row;
  for (size_t row = 0; row < keys[0].size(); ++row) {
    Keys key;
    for (const Keys& column : keys) key.push_back(column[row]);
    group_of_row.push_back(numbers.emplace(key, numbers.size() + 1).first->second);
  }
  return group_of_row;
}

// Each key twice, in another order the second time.
Keys Twice(Keys keys) {
  Keys again = keys;
  std::reverse(again.begin(), again.end());
  keys.insert(keys.end(), again.begin(), again.end());
  return keys;
}

// Steps of a table whose keys are spread, and of the batches before the table notices that they are not.
uint64_t MostSteps(uint64_t num_rows) { return 4 * num_rows + uint64_t{4} * kBatch * thresholds::kLongestGroupProbe; }

constexpr const char* kOneKey = "aggregate keys=i64 aggs=count_star";
constexpr const char* kTwoKeys = "aggregate keys=i64,i64 aggs=count_star";

TEST(HostileGroups, OpenTable) {
  for (const GroupLayout layout : {GroupLayout::kAuto, GroupLayout::kOpen}) {
    AggregateOptions options;
    options.layout = layout;
    GroupContext context = test::ContextOf(kOneKey, options);
    PackedKeyGroups table(context, 0);
    const std::vector<Keys> keys = {Twice(HostileKeys(30'000))};
    const Found found = Find(&table, context, keys);
    EXPECT_EQ(found.group_of_row, Expected(keys));
    EXPECT_EQ(table.num_groups(), 30'000u);
    EXPECT_LE(found.tally.steps, MostSteps(4 * 30'000));
    EXPECT_LE(found.tally.hits, uint64_t{4} * 30'000 - found.num_groups);
  }
}

// In order of their numbers, which begin as a list.
TEST(HostileGroups, ListThatBecomesAnOpenTable) {
  Keys keys = HostileKeys(30'000);
  std::sort(keys.begin(), keys.end());
  GroupContext context = test::ContextOf(kOneKey);
  PackedKeyGroups table(context, 0);
  const Found found = Find(&table, context, {keys});
  EXPECT_EQ(found.group_of_row, Expected({keys}));
  EXPECT_LE(found.tally.steps, MostSteps(2 * keys.size()));
  EXPECT_STREQ(table.layout(), "open");
}

// The groups of one table, in its order, are all keys of another, as where one aggregation feeds a second one.
TEST(HostileGroups, KeysInTheOrderOfTheirHashes) {
  Keys keys(100'000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int64_t>(test::WordWithHash(i << 47 | 12345));
  GroupContext context = test::ContextOf(kOneKey);
  PackedKeyGroups table(context, 0);
  const Found found = Find(&table, context, {keys});
  EXPECT_EQ(found.num_groups, keys.size());
  EXPECT_LE(found.tally.steps, MostSteps(2 * keys.size()));
}

// In a partition all hashes have the same first bits; a table with a secret of its own must not expect that.
TEST(HostileGroups, PartitionOfATable) {
  const Keys keys = HostileKeys(30'000);
  for (const char* spec : {kOneKey, kTwoKeys}) {
    GroupContext context = test::ContextOf(spec);
    context.common_bits = 6;
    std::vector<Keys> columns = {keys};
    if (spec == kTwoKeys) {
      columns.emplace_back();
      for (size_t i = 0; i < keys.size(); ++i)
        columns[1].push_back(test::SecondWithHash(keys[i], test::HostileHash(i)));
    }
    const std::unique_ptr<GroupTable> table = MakeGroupTable(context, 0);
    const Found found = Find(table.get(), context, columns);
    EXPECT_EQ(found.group_of_row, Expected(columns));
    EXPECT_LE(found.tally.steps, MostSteps(2 * keys.size()));
  }
}

// Keys of two columns can even have the same hash, bit for bit.
TEST(HostileGroups, DirectoryOfEqualHashes) {
  for (const bool all_equal : {false, true}) {
    std::vector<Keys> keys(2);
    for (int64_t i = 0; i < 20'000; ++i) {
      keys[0].push_back(i % 10'000);
      keys[1].push_back(
          test::SecondWithHash(i % 10'000, test::HostileHash(all_equal ? 0 : static_cast<uint64_t>(i % 10'000))));
    }
    GroupContext context = test::ContextOf(kTwoKeys);
    DirectoryGroups table(context, 0);
    const Found found = Find(&table, context, keys);
    EXPECT_EQ(found.group_of_row, Expected(keys));
    EXPECT_EQ(table.num_groups(), 10'000u);
    EXPECT_LE(found.tally.steps, MostSteps(2 * keys[0].size()));
  }
}

TEST(HostileGroups, DirectoryOfPackedKeys) {
  AggregateOptions options;
  options.layout = GroupLayout::kDirectory;
  GroupContext context = test::ContextOf(kOneKey, options);
  DirectoryGroups table(context, 0);
  const std::vector<Keys> keys = {Twice(HostileKeys(30'000))};
  const Found found = Find(&table, context, keys);
  EXPECT_EQ(found.group_of_row, Expected(keys));
  EXPECT_LE(found.tally.steps, MostSteps(4 * 30'000));
}

// Groups are partitioned by the hashes of the process, whatever a table places them by.
TEST(HostileGroups, HashesOfGroupsStayThoseOfTheProcess) {
  std::vector<Keys> keys(2);
  for (int64_t i = 0; i < 3'000; ++i) {
    keys[0].push_back(i);
    keys[1].push_back(test::SecondWithHash(i, test::HostileHash(static_cast<uint64_t>(i))));
  }
  for (const char* spec : {kOneKey, kTwoKeys}) {
    const bool has_two = spec == kTwoKeys;
    GroupContext context = test::ContextOf(spec);
    const std::unique_ptr<GroupTable> table = MakeGroupTable(context, 0);
    Find(table.get(), context, has_two ? keys : std::vector<Keys>{HostileKeys(3'000)});
    std::vector<uint64_t> all;
    for (uint64_t begin = 0; begin < table->num_positions(); begin += kBatch) {
      uint8_t* tuples[kBatch];
      uint64_t hashes[kBatch];
      const uint32_t n = table->Scan(begin, std::min<uint64_t>(begin + kBatch, table->num_positions()), tuples);
      table->HashesOf(begin, tuples, n, hashes);
      all.insert(all.end(), hashes, hashes + n);
    }
    std::sort(all.begin(), all.end());
    ASSERT_EQ(all.size(), 3'000u);
    for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], test::HostileHash(i));
  }
}

TEST(HostileGroups, StringsAndNullsOfEqualTags) {
  // Two keys, the second of which makes the hash what it should be: a string, or none, and a number.
  GroupContext context = test::ContextOf("aggregate keys=utf8:nullable,i64 aggs=count_star");
  DirectoryGroups table(context, 0);
  const blocks::HashSecret& secret = blocks::quern_hash_secret;
  std::map<std::pair<std::string, int64_t>, uint8_t*> tuple_of;
  for (int turn = 0; turn < 2; ++turn) {
    for (uint64_t first = 0; first < 8'000; first += kBatch) {
      std::vector<std::string> texts;
      std::vector<bool> valid;
      std::vector<int64_t> numbers;
      for (uint64_t i = first; i < first + kBatch; ++i) {
        texts.push_back(i % 7 == 0 ? std::string(i % 50, 'x') + std::to_string(i) : std::to_string(i));
        valid.push_back(i % 1000 != 0);
        const auto* const bytes = reinterpret_cast<const uint8_t*>(texts.back().data());
        const uint64_t hash = valid.back() ? blocks::HashBytes(bytes, texts.back().size(), secret) : blocks::kNullInput;
        numbers.push_back(
            static_cast<int64_t>(test::WordWithHash(test::HostileHash(i)) - hash * secret[blocks::kCombine]));
      }
      const ColumnPtr strings = test::WithNulls(test::StringColumn(kVar32, texts), valid);
      QuernColumn columns[2] = {strings->column, {}};
      columns[1].values = numbers.data();
      std::vector<uint8_t*> tuples(kBatch);
      ASSERT_EQ(table.Find({columns, 0, nullptr, kBatch}, tuples.data()), absl::OkStatus());
      for (uint32_t i = 0; i < kBatch; ++i) {
        const auto [at, is_new] = tuple_of.emplace(std::pair(valid[i] ? texts[i] : "null", numbers[i]), tuples[i]);
        EXPECT_EQ(is_new, turn == 0);
        EXPECT_EQ(at->second, tuples[i]);
      }
    }
  }
  EXPECT_EQ(table.num_groups(), tuple_of.size());
  EXPECT_LE(table.TakeTally().steps, MostSteps(2 * 8'000));
}

TEST(HostileGroups, KeysThatAreSpreadAreNotHashedAnew) {
  for (const char* spec : {kOneKey, kTwoKeys}) {
    Keys keys(200'000);
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int64_t>(i * 0x9e3779b97f4a7c15u);
    AggregateOptions options;
    options.load_percent = 75;
    GroupContext context = test::ContextOf(spec, options);
    const std::unique_ptr<GroupTable> table = MakeGroupTable(context, 0);
    const std::vector<Keys> columns(spec == kTwoKeys ? 2 : 1, keys);
    const Found found = Find(table.get(), context, columns);
    // A table that grows by at least twice, from 16 slots to 512 Ki.
    EXPECT_LE(found.tally.growths, 15u);
    EXPECT_LE(found.tally.steps, 10 * keys.size());
  }
}

}  // namespace
}  // namespace quern
