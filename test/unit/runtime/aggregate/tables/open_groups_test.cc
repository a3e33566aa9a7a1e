// SPDX-License-Identifier: Apache-2.0
// Open addressing: each packed key has one slot, however many batches contain it, however full the table is and
// wherever its hash points.
#include "runtime/aggregate/tables/open_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/blocks/blocks.h"
#include "runtime/rows/tuple_store.h"
#include "test/unit/runtime/aggregate/group_rows.h"

namespace quern {
namespace {

QuernRowLayout Slots(uint32_t packed_bytes, uint32_t tuple_bytes, bool zero_hashes = false) {
  QuernRowLayout group = {};
  group.packed_bytes = packed_bytes;
  group.tuple_bytes = tuple_bytes;
  group.zero_hashes = zero_hashes;
  return group;
}

uint64_t WordAt(const uint8_t* tuple, uint32_t packed_bytes) {
  return packed_bytes == 4 ? blocks::Load<uint32_t>(tuple) : blocks::Load<uint64_t>(tuple);
}

std::vector<uint8_t*> Find(OpenGroups* groups, const std::vector<uint64_t>& words,
                           const PrefetchSetting& setting = {}) {
  std::vector<uint8_t*> tuples(words.size());
  groups->Find(words.data(), static_cast<uint32_t>(words.size()), setting, tuples.data());
  return tuples;
}

std::vector<uint64_t> Scanned(const OpenGroups& groups, uint32_t packed_bytes) {
  std::vector<uint64_t> words;
  uint8_t* tuples[8];
  for (uint64_t begin = 0; begin < groups.num_positions(); begin += 7) {
    const uint32_t n = groups.Scan(begin, std::min(begin + 7, groups.num_positions()), begin % 2 * 4096, tuples);
    for (uint32_t i = 0; i < n; ++i) words.push_back(WordAt(tuples[i], packed_bytes));
  }
  std::sort(words.begin(), words.end());
  return words;
}

// Keys whose hash points to the last of 2^bits slots.
std::vector<uint64_t> WordsOfTheLastSlot(uint32_t bits, size_t n) {
  std::vector<uint64_t> words;
  for (uint64_t word = 1; words.size() < n; ++word) {
    uint64_t hash = 0;
    HashPackedKeys(&word, 1, false, &hash);
    if (hash >> (64 - bits) == (uint64_t{1} << bits) - 1) words.push_back(word);
  }
  return words;
}

TEST(OpenGroups, TheWordZeroHasASlotOfItsOwn) {
  for (const uint32_t packed_bytes : {4u, 8u}) {
    OpenGroups groups;
    ASSERT_EQ(groups.Begin(Slots(packed_bytes, 16), 4, 0, false, nullptr), absl::OkStatus());
    EXPECT_EQ(groups.num_groups(), 0u);
    const auto tuples = Find(&groups, {5, 0, 5, 0, 0});
    EXPECT_EQ(tuples[1], tuples[3]);
    EXPECT_EQ(tuples[1], tuples[4]);
    EXPECT_NE(tuples[0], tuples[1]);
    EXPECT_EQ(groups.num_groups(), 2u);
    EXPECT_EQ(Find(&groups, {0})[0], tuples[1]);
    EXPECT_EQ(groups.num_groups(), 2u);
    EXPECT_EQ(Scanned(groups, packed_bytes), (std::vector<uint64_t>{0, 5}));
  }
}

TEST(OpenGroups, WithoutAZeroThereIsNoneInTheScan) {
  OpenGroups groups;
  ASSERT_EQ(groups.Begin(Slots(8, 8), 4, 0, false, nullptr), absl::OkStatus());
  Find(&groups, {3, 1, 2, 1});
  EXPECT_EQ(Scanned(groups, 8), (std::vector<uint64_t>{1, 2, 3}));
}

// The walk continues from the last slot to the first.
TEST(OpenGroups, AWalkGoesOnAtTheBeginning) {
  const std::vector<uint64_t> words = WordsOfTheLastSlot(4, 5);
  OpenGroups groups;
  ASSERT_EQ(groups.Begin(Slots(8, 8), 4, 0, false, nullptr), absl::OkStatus());
  const auto made = Find(&groups, words);
  EXPECT_EQ(made[1] + 4 * 8 - 8, made[4]);  // slots 0 1 2 3
  EXPECT_EQ(made[0], made[1] + 15 * 8);
  EXPECT_EQ(Find(&groups, words), made);
  EXPECT_EQ(groups.num_groups(), 5u);
  ASSERT_EQ(groups.Grow(1, false, nullptr), absl::OkStatus());
  const auto moved = Find(&groups, words);
  EXPECT_EQ(groups.num_groups(), 5u);
  EXPECT_EQ(std::unordered_set<uint8_t*>(moved.begin(), moved.end()).size(), 5u);
}

// Random keys in batches with repetitions, with growths in between; states must stay with their keys.
void ExpectGroupsStay(uint32_t packed_bytes, uint32_t tuple_bytes, bool zero_hashes, uint32_t common_bits) {
  SCOPED_TRACE(std::to_string(packed_bytes) + " " + std::to_string(tuple_bytes) + (zero_hashes ? " zero" : ""));
  std::mt19937_64 random(tuple_bytes * 8 + packed_bytes);
  const uint32_t state_at = tuple_bytes - 4;
  const bool has_state = tuple_bytes > packed_bytes;
  OpenGroups groups;
  ASSERT_EQ(groups.Begin(Slots(packed_bytes, tuple_bytes, zero_hashes), 7, common_bits, false, nullptr),
            absl::OkStatus());
  std::unordered_map<uint64_t, uint32_t> rows;
  for (uint32_t round = 0; round < 30; ++round) {
    std::vector<uint64_t> words(40);
    for (uint64_t& word : words)
      word = random() % 7 == 0 ? random() % 4 : random() % 500 * (packed_bytes == 4 ? 0x10001u : 0x100000001u);
    while ((groups.num_groups() + words.size()) * 2 > groups.num_slots())
      ASSERT_EQ(groups.Grow(1 + round % 2, false, nullptr), absl::OkStatus());
    const auto tuples = Find(&groups, words, {.distance = static_cast<uint16_t>(round % 3 * 5)});
    for (size_t i = 0; i < words.size(); ++i) {
      ASSERT_EQ(WordAt(tuples[i], packed_bytes), words[i]);
      if (has_state) blocks::Store(tuples[i] + state_at, blocks::Load<uint32_t>(tuples[i] + state_at) + 1);
      ++rows[words[i]];
    }
    ASSERT_EQ(groups.num_groups(), rows.size());
  }
  uint64_t num_found = 0;
  std::vector<uint8_t*> tuples(groups.num_positions());
  tuples.resize(groups.Scan(0, groups.num_positions(), 4096, tuples.data()));
  for (const uint8_t* tuple : tuples) {
    const uint64_t word = WordAt(tuple, packed_bytes);
    ASSERT_EQ(rows.count(word), 1u) << word;
    if (has_state) {
      EXPECT_EQ(blocks::Load<uint32_t>(tuple + state_at), rows[word]) << word;
    }
    ++num_found;
  }
  EXPECT_EQ(num_found, rows.size());
}

TEST(OpenGroups, GrowthKeepsEveryGroupInSlotsOfAnySize) {
  for (const uint32_t tuple_bytes : {8u, 16u, 24u, 32u, 40u, 48u, 56u, 64u, 72u, 128u})
    ExpectGroupsStay(8, tuple_bytes, false, 0);
}

TEST(OpenGroups, WordsMayHaveFourBytes) {
  for (const uint32_t tuple_bytes : {8u, 16u, 24u, 32u, 64u, 80u}) ExpectGroupsStay(4, tuple_bytes, false, 0);
}

TEST(OpenGroups, AllHashesMayBeZero) {
  ExpectGroupsStay(8, 16, true, 0);
  ExpectGroupsStay(4, 24, true, 0);
}

TEST(OpenGroups, BitsThatAllHashesShareMayBeLeftOut) { ExpectGroupsStay(8, 16, false, 6); }

// From 1 MiB on keys begin at pairs of slots. Small batches go row by row, large ones eight rows at a time where the
// machine can: both must agree.
void ExpectPairsAgree(uint32_t packed_bytes, uint32_t tuple_bytes, uint16_t distance) {
  SCOPED_TRACE(std::to_string(packed_bytes) + " " + std::to_string(tuple_bytes) + " " + std::to_string(distance));
  uint32_t bits = 0;
  while ((uint64_t{tuple_bytes} << bits) < (uint64_t{1} << 19)) ++bits;
  OpenGroups groups;
  ASSERT_EQ(groups.Begin(Slots(packed_bytes, tuple_bytes), bits, 0, false, nullptr), absl::OkStatus());
  std::vector<uint64_t> words = WordsOfTheLastSlot(bits, 9);
  words.push_back(0);
  for (uint64_t i = 1; words.size() < groups.num_slots() * 55 / 100; ++i)
    words.push_back(packed_bytes == 4 ? i << 12 | 5 : i << 40 | 5);
  const auto find = [&](size_t batch_rows) {
    std::vector<uint8_t*> tuples(words.size());
    for (size_t first = 0; first < words.size(); first += batch_rows) {
      const auto n = static_cast<uint32_t>(std::min(batch_rows, words.size() - first));
      groups.Find(words.data() + first, n, {.distance = distance}, tuples.data() + first);
    }
    return tuples;
  };
  for (uint32_t growth = 0; growth < 3; ++growth) {
    const auto by_eight = find(growth == 0 ? 1003 : 1024);
    EXPECT_EQ(groups.num_groups(), words.size());
    EXPECT_EQ(find(7), by_eight);
    for (size_t i = 0; i < words.size(); ++i) ASSERT_EQ(WordAt(by_eight[i], packed_bytes), words[i]);
    ASSERT_EQ(groups.Grow(1, false, nullptr), absl::OkStatus());
  }
  std::sort(words.begin(), words.end());
  EXPECT_EQ(Scanned(groups, packed_bytes), words);
}

TEST(OpenGroups, LargeTablesBeginAtPairsOfSlots) {
  for (const uint16_t distance : {0, 16}) {
    for (const uint32_t tuple_bytes : {16u, 32u, 64u}) ExpectPairsAgree(8, tuple_bytes, distance);
    for (const uint32_t tuple_bytes : {8u, 24u, 32u}) ExpectPairsAgree(4, tuple_bytes, distance);
  }
}

// Keys of one partition of 64 fill a table evenly: no slot is far from where its hash points.
TEST(OpenGroups, SharedBitsDoNotCrowdTheTable) {
  std::vector<uint64_t> words;
  for (uint64_t word = 1; words.size() < 64; ++word) {
    uint64_t hash = 0;
    HashPackedKeys(&word, 1, false, &hash);
    if (hash >> 58 == 5) words.push_back(word);
  }
  OpenGroups groups;
  ASSERT_EQ(groups.Begin(Slots(8, 8), 8, 6, false, nullptr), absl::OkStatus());
  Find(&groups, words);
  uint8_t* tuples[256];
  EXPECT_LT(groups.Scan(0, 128, 0, tuples), 50u);
  EXPECT_GT(groups.Scan(0, 128, 0, tuples), 14u);
}

TEST(OpenGroups, AGrowthThatDoesNotFitLeavesTheTableAsItWas) {
  const auto budget = std::make_shared<MemoryBudget>(1000);
  OpenGroups groups;
  ASSERT_EQ(groups.Begin(Slots(8, 16), 5, 0, false, budget), absl::OkStatus());
  const auto made = Find(&groups, {1, 2, 3, 0});
  EXPECT_EQ(groups.Grow(1, false, budget).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Find(&groups, {1, 2, 3, 0}), made);
  EXPECT_EQ(groups.num_groups(), 4u);
  groups.Free();
  EXPECT_EQ(budget->used_bytes(), 0u);
}

}  // namespace
}  // namespace quern
