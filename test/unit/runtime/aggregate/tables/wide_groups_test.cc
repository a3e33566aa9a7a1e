// SPDX-License-Identifier: Apache-2.0
// Groups of packed keys with wide tuples: few of them lie in slots, many behind a directory, and the states are the
// same before and after they move.
#include "runtime/aggregate/tables/wide_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "test/unit/runtime/aggregate/group_rows.h"

namespace quern {
namespace {

using test::Lines;
using test::NumberColumn;

constexpr const char* kAggregates =
    " aggs=count_star,sum(i64),min(i64),max(i64),avg(i64),first(i64),last(i64),var_pop(i64),string_agg(utf8,x'2c')";

// A cache that holds some 100 groups.
AggregateOptions SmallCache() {
  AggregateOptions options;
  options.caches.l2_bytes = 100 * 160;
  return options;
}

// Batches of 300 rows with keys from `key`, a function of the row's number.
template <class Key>
std::vector<BatchView> BatchesOf(int num_batches, const Key& key) {
  std::vector<BatchView> batches;
  for (int b = 0; b < num_batches; ++b) {
    std::vector<int64_t> keys, values;
    std::vector<std::string> texts;
    for (int i = b * 300; i < (b + 1) * 300; ++i) {
      keys.push_back(key(i));
      values.push_back(i * int64_t{7919} % 1000);
      texts.push_back(std::to_string(i));
    }
    const auto v = NumberColumn(values);
    batches.push_back(test::Rows(300, {NumberColumn(keys)}, {v, v, v, v, v, v, v, test::StringColumn(kVar32, texts)}));
  }
  return batches;
}

struct Found {
  std::string layout;
  Lines groups;
};

Found GroupsOf(const std::vector<BatchView>& batches, const AggregateOptions& options) {
  const auto aggregate = test::Aggregation(std::string("aggregate keys=i64") + kAggregates, options);
  for (const BatchView& batch : batches) EXPECT_EQ(aggregate->Append(batch), absl::OkStatus());
  EXPECT_EQ(aggregate->Finalise(), absl::OkStatus());
  Found found;
  found.groups = test::GroupsOf(aggregate);
  found.layout = aggregate->stats().layout;
  return found;
}

template <class Key>
void ExpectLayouts(int num_batches, const Key& key, const char* large_cache, const char* small_cache) {
  const std::vector<BatchView> batches = BatchesOf(num_batches, key);
  AggregateOptions directory;
  directory.layout = GroupLayout::kDirectory;
  const Lines expected = GroupsOf(batches, directory).groups;
  const Found large = GroupsOf(batches, {}), small = GroupsOf(batches, SmallCache());
  EXPECT_EQ(large.groups, expected);
  EXPECT_EQ(small.groups, expected);
  EXPECT_EQ(large.layout, large_cache);
  EXPECT_EQ(small.layout, small_cache);
}

TEST(WideGroups, SparseKeysMoveFromAnOpenTable) {
  ExpectLayouts(6, [](int i) { return i * int64_t{1000003} % 700 * 1000000007; }, "open", "directory");
}

TEST(WideGroups, DenseKeysMoveFromAnArray) {
  ExpectLayouts(6, [](int i) { return i * int64_t{1000003} % 700; }, "dense", "directory");
}

TEST(WideGroups, KeysInOrderAreAListOfAnyLength) {
  ExpectLayouts(6, [](int i) { return i / 3 * int64_t{1000000007}; }, "sorted", "sorted");
}

TEST(WideGroups, KeysThatAreInOrderNoMoreMove) {
  ExpectLayouts(7, [](int i) { return (i < 1500 ? i / 3 : i % 7) * int64_t{1000000007}; }, "open", "directory");
}

TEST(WideGroups, FewGroupsStay) {
  ExpectLayouts(3, [](int i) { return i % 50 * int64_t{1000000007}; }, "open", "open");
}

TEST(WideGroups, ManyThatAreExpectedBeginBehindADirectory) {
  AggregateOptions options = SmallCache();
  options.expected_groups = 10000;
  const auto batches = BatchesOf(1, [](int i) { return i % 5; });
  EXPECT_EQ(GroupsOf(batches, options).layout, "directory");
}

TEST(WideGroups, GroupsOfAnotherTable) {
  const std::string spec = std::string("aggregate keys=i32:nullable") + kAggregates;
  const GroupContext context = test::ContextOf(spec, SmallCache());
  WideGroups from(context, 0), into(context, 0);
  std::vector<int32_t> keys;
  std::vector<bool> valid;
  for (int i = 0; i < 400; ++i) {
    keys.push_back(i * 1000003);
    valid.push_back(i != 17);
  }
  const std::vector<uint8_t*> tuples = test::FindGroups(&from, {test::WithNulls(NumberColumn(keys), valid)}, 400);
  std::vector<uint8_t*> found(400), again(400);
  uint64_t hashes[400];
  from.HashesOf(0, tuples.data(), 400, hashes);
  for (int round = 0; round < 2; ++round) {  // they move before the second
    ASSERT_EQ(into.FindTuples({tuples.data(), hashes, 400}, found.data()), absl::OkStatus());
    EXPECT_EQ(into.num_groups(), 400u);
  }
  EXPECT_STREQ(into.layout(), "directory");
  const uint32_t n = into.Scan(0, into.num_positions(), again.data());
  ASSERT_EQ(n, 400u);
  std::sort(again.begin(), again.end());
  std::sort(found.begin(), found.end());
  EXPECT_EQ(again, found);
  const TableTally tally = into.TakeTally();
  EXPECT_GE(tally.hits, 400u);
  EXPECT_LT(tally.hits, 410u);
  EXPECT_GT(tally.growths, 0u);
  into.Release();
  EXPECT_EQ(into.num_groups(), 0u);
}

}  // namespace
}  // namespace quern
