// SPDX-License-Identifier: Apache-2.0
// Groups of packed keys that arrive in order: a list, until a key is smaller than the largest one.
#include "runtime/aggregate/tables/sorted_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "runtime/blocks/blocks.h"
#include "test/unit/runtime/aggregate/group_rows.h"

namespace quern {
namespace {

struct Sorted {
  GroupContext context;
  SortedGroups groups;
  std::map<uint64_t, uint8_t*> tuple_of;

  explicit Sorted(const char* spec, std::shared_ptr<MemoryBudget> budget = test::NoLimit())
      : context(test::ContextOf(spec)) {
    groups.Begin(*context.descriptor->group(), true, std::move(budget));
  }

  void Add(const std::vector<uint64_t>& words) {
    const auto n = static_cast<uint32_t>(words.size());
    std::vector<uint8_t*> tuples(n);
    ASSERT_TRUE(groups.IsInOrder(words.data(), n));
    ASSERT_EQ(groups.Find(words.data(), n, tuples.data()), absl::OkStatus());
    for (uint32_t i = 0; i < n; ++i)
      EXPECT_EQ(tuple_of.emplace(words[i], tuples[i]).first->second, tuples[i]) << words[i];
    std::set<uint8_t*> different;
    for (const auto& [word, tuple] : tuple_of) different.insert(tuple);
    EXPECT_EQ(different.size(), tuple_of.size());
    EXPECT_EQ(groups.num_groups(), tuple_of.size());
  }
  std::vector<uint8_t*> Scanned(uint64_t at_a_time) const {
    std::vector<uint8_t*> tuples;
    std::vector<uint8_t*> some(at_a_time);
    for (uint64_t begin = 0; begin < groups.num_groups(); begin += at_a_time) {
      const uint32_t n = groups.Scan(begin, std::min(begin + at_a_time, groups.num_groups()), some.data());
      tuples.insert(tuples.end(), some.begin(), some.begin() + n);
    }
    return tuples;
  }
};

TEST(SortedGroups, ARowIsOfTheGroupBeforeItOrOfANewOne) {
  for (const char* spec :
       {"aggregate keys=i64 aggs=count_star", "aggregate keys=u32 aggs=count_star,sum(i64)", "aggregate keys=i64"}) {
    Sorted sorted(spec);
    sorted.Add({3, 3, 3, 5, 5, 6});
    sorted.Add({6});
    sorted.Add({6, 9, 9});
    sorted.Add({10, 11, 12, 13});
    const std::vector<uint8_t*> tuples = sorted.Scanned(3);
    ASSERT_EQ(tuples.size(), sorted.tuple_of.size());
    size_t i = 0;
    for (const auto& [word, tuple] : sorted.tuple_of) {
      EXPECT_EQ(tuples[i++], tuple);
      const bool is_short = sorted.context.descriptor->group()->packed_bytes == 4;
      EXPECT_EQ(is_short ? blocks::Load<uint32_t>(tuple) : blocks::Load<uint64_t>(tuple), word);
    }
  }
}

TEST(SortedGroups, OrderIsThatOfTheKeys) {
  Sorted sorted("aggregate keys=i64");
  sorted.Add({static_cast<uint64_t>(INT64_MIN), static_cast<uint64_t>(-1), 0, 1});
  const uint64_t before[] = {0}, after[] = {1}, falls[] = {2, 1};
  EXPECT_FALSE(sorted.groups.IsInOrder(before, 1));
  EXPECT_TRUE(sorted.groups.IsInOrder(after, 1));
  EXPECT_FALSE(sorted.groups.IsInOrder(falls, 2));
}

TEST(SortedGroups, ManySpansAreOneList) {
  Sorted sorted("aggregate keys=i64 aggs=count_star");
  std::vector<uint64_t> words(1000);
  for (uint64_t word = 0; word < 100000;) {
    for (uint64_t& w : words) w = word += 1 + word % 3;
    sorted.Add(words);
  }
  EXPECT_EQ(sorted.Scanned(777).size(), sorted.tuple_of.size());
}

TEST(SortedGroups, GroupsThatLieElsewhereComeFirst) {
  Sorted sorted("aggregate keys=i64 aggs=count_star");
  std::vector<uint64_t> words = {7, 2, 9, 4};
  std::vector<uint64_t> tuples(words.size() * 2);
  std::vector<uint8_t*> from;
  for (size_t i = 0; i < words.size(); ++i) {
    tuples[2 * i] = words[i];
    tuples[2 * i + 1] = 100 + words[i];
    from.push_back(reinterpret_cast<uint8_t*>(&tuples[2 * i]));
  }
  ASSERT_EQ(sorted.context.descriptor->group()->tuple_bytes, 16u);
  ASSERT_EQ(sorted.groups.Copy(from.data(), words.data(), 4), absl::OkStatus());
  const uint64_t next[] = {9, 10}, smaller[] = {8};
  EXPECT_FALSE(sorted.groups.IsInOrder(smaller, 1));
  uint8_t* found[2];
  ASSERT_TRUE(sorted.groups.IsInOrder(next, 2));
  ASSERT_EQ(sorted.groups.Find(next, 2, found), absl::OkStatus());
  EXPECT_EQ(blocks::Load<uint64_t>(found[0] + 8), 109u);
  EXPECT_EQ(blocks::Load<uint64_t>(found[1] + 8), 0u);
  EXPECT_EQ(sorted.groups.num_groups(), 5u);
}

TEST(SortedGroups, NoMemoryMakesNoGroup) {
  const auto budget = std::make_shared<MemoryBudget>(20000);
  {
    Sorted sorted("aggregate keys=i64 aggs=count_star", budget);
    std::vector<uint64_t> words(1000);
    for (size_t i = 0; i < words.size(); ++i) words[i] = i;
    sorted.Add(words);
    for (uint64_t& word : words) word += 1000;
    uint8_t* tuples[1000];
    EXPECT_EQ(sorted.groups.Find(words.data(), 1000, tuples).code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(sorted.groups.num_groups(), 1000u);
  }
  EXPECT_EQ(budget->used_bytes(), 0u);
}

}  // namespace
}  // namespace quern
