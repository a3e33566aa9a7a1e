// SPDX-License-Identifier: Apache-2.0
// Tuples before the table is built: flat lists grow and stay within bounds, and partitioning loses no tuple and keeps
// their order in each partition.
#include "runtime/rows/tuple_store.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "runtime/blocks/blocks.h"

namespace quern {
namespace {

// Tuples that consist of a word and their number, in the store's order of arrival.
struct Filled {
  TupleFormat format;
  TupleStore store;
  std::vector<uint64_t> words, hashes;

  Filled(const TupleFormat& f, std::shared_ptr<MemoryBudget> budget) : format(f), store(f, std::move(budget), true) {}

  std::vector<uint8_t> MakeTuples(uint64_t n) {
    std::vector<uint8_t> tuples(n * format.tuple_bytes);
    for (uint64_t i = 0; i < n; ++i) {
      const uint64_t number = words.size();
      words.push_back(number * 2654435761u & (format.packed_bytes == 4 ? UINT32_MAX : UINT64_MAX));
      hashes.push_back(format.zero_hashes ? 0 : blocks::Mix(words.back(), blocks::quern_hash_secret));
      uint8_t* const tuple = tuples.data() + i * format.tuple_bytes;
      std::memcpy(tuple, &words.back(), format.packed_bytes == 4 ? 4 : 8);
      std::memcpy(tuple + format.tuple_bytes - 4, &number, 4);
    }
    return tuples;
  }
  absl::Status AddFlat(uint64_t n) {
    const std::vector<uint8_t> tuples = MakeTuples(n);
    for (uint64_t i = 0; i < n; ++i) {
      const auto span = store.FlatSpan(n);
      if (!span.ok()) return span.status();
      TupleSpan& to = **span;
      std::memcpy(to.tuples + to.num_tuples * format.tuple_bytes, tuples.data() + i * format.tuple_bytes,
                  format.tuple_bytes);
      if (to.hashes != nullptr) to.hashes[to.num_tuples] = hashes[hashes.size() - n + i];
      ++to.num_tuples;
    }
    return absl::OkStatus();
  }
  absl::Status Partition(uint32_t n) {
    const std::vector<uint8_t> tuples = MakeTuples(n);
    return store.Partition(tuples.data(), hashes.data() + hashes.size() - n, n);
  }
  uint32_t NumberOf(const TupleSpan& span, uint64_t i) const {
    return blocks::Load<uint32_t>(span.tuples + (i + 1) * format.tuple_bytes - 4);
  }
};

// Checks that all numbers occur once, in the partition of their hash, in ascending order.
void ExpectParts(const Filled& filled, uint32_t bits) {
  ASSERT_EQ(filled.store.parts().size(), size_t{1} << bits);
  std::vector<int> seen(filled.words.size(), 0);
  for (uint64_t part = 0; part < filled.store.parts().size(); ++part) {
    int64_t last = -1;
    for (const TupleSpan& span : filled.store.parts()[part]) {
      EXPECT_LE(span.num_tuples, span.capacity);
      EXPECT_EQ(span.hashes == nullptr, filled.format.packed_bytes != 0);
      for (uint64_t i = 0; i < span.num_tuples; ++i) {
        const uint32_t number = filled.NumberOf(span, i);
        ASSERT_LT(number, seen.size());
        ++seen[number];
        EXPECT_EQ(filled.hashes[number] >> (64 - bits), part);
        if (span.hashes != nullptr) {
          EXPECT_EQ(span.hashes[i], filled.hashes[number]);
        }
        EXPECT_GT(number, last);
        last = number;
      }
    }
  }
  for (const int n : seen) EXPECT_EQ(n, 1);
  EXPECT_EQ(filled.store.num_tuples(), filled.words.size());
}

TEST(TupleStore, FewRowsTakeLittleAndManyMore) {
  auto budget = std::make_shared<MemoryBudget>();
  TupleStore few({16, 8, false}, budget, true), many({16, 8, false}, budget, true);
  EXPECT_EQ((*few.FlatSpan(10))->capacity, 128u);
  EXPECT_LE(budget->used_bytes(), uint64_t{4} << 10);
  EXPECT_EQ((*many.FlatSpan(1000000))->capacity, 65536u);
  TupleSpan* span = *few.FlatSpan(10);
  EXPECT_EQ(few.flat().size(), 1u);  // there is still room
  span->num_tuples = span->capacity;
  EXPECT_EQ((*few.FlatSpan(10))->capacity, 256u);
  EXPECT_EQ(few.num_tuples(), 128u);
  few.Clear();
  many.Clear();
  EXPECT_EQ(budget->used_bytes(), 0u);
}

TEST(TupleStore, NoSpanOfWideTuplesIsLargerThan64MiB) {
  auto budget = std::make_shared<MemoryBudget>();
  TupleStore store({1 << 20, 0, false}, budget, false);
  EXPECT_EQ((*store.FlatSpan(1))->capacity, 1u);
  for (const uint64_t capacity : {2, 4, 8, 16, 32, 64, 64}) {
    TupleSpan* const span = *store.FlatSpan(1);
    span->num_tuples = span->capacity;
    EXPECT_EQ((*store.FlatSpan(1))->capacity, capacity);
  }
}

TEST(TupleStore, WordsAndHashesOfASpan) {
  for (const bool zero : {false, true}) {
    Filled filled({12, 4, zero}, nullptr);
    ASSERT_TRUE(filled.AddFlat(100).ok());
    const TupleSpan& span = filled.store.flat()[0];
    uint64_t words[60], hashes[60];
    LoadPackedKeys(span.tuples, 60, filled.format, words);
    for (uint32_t i = 0; i < 60; ++i) EXPECT_EQ(words[i], filled.words[i]);
    LoadHashes(span, 40, 60, filled.format, hashes);
    for (uint32_t i = 0; i < 60; ++i) EXPECT_EQ(hashes[i], filled.hashes[40 + i]);
  }
}

TEST(TupleStore, PartitioningLosesNothingAndKeepsTheOrder) {
  for (const TupleFormat& format : {TupleFormat{8, 4, false}, TupleFormat{16, 8, false}, TupleFormat{12, 0, false},
                                    TupleFormat{44, 0, false}, TupleFormat{16, 8, true}}) {
    for (const uint32_t bits : {1, 6, 10}) {
      Filled filled(format, nullptr);
      ASSERT_TRUE(filled.AddFlat(5000).ok());
      EXPECT_FALSE(filled.store.is_partitioned());
      ASSERT_TRUE(filled.store.Partition(bits).ok());
      EXPECT_TRUE(filled.store.is_partitioned());
      EXPECT_TRUE(filled.store.flat().empty());
      ExpectParts(filled, bits);
      for (int i = 0; i < 3; ++i) ASSERT_TRUE(filled.Partition(1000).ok());
      ExpectParts(filled, bits);
    }
  }
}

TEST(TupleStore, NothingCanBePartitionedToo) {
  TupleStore store({8, 8, false}, nullptr, false);
  ASSERT_TRUE(store.Partition(6).ok());
  EXPECT_TRUE(store.is_partitioned());
  EXPECT_EQ(store.num_tuples(), 0u);
}

TEST(TupleStore, OverTheBudgetIsAnErrorAndAllIsGivenBack) {
  auto budget = std::make_shared<MemoryBudget>(uint64_t{1} << 20);
  {
    Filled filled({16, 8, false}, budget);
    EXPECT_EQ(filled.AddFlat(200000).code(), absl::StatusCode::kResourceExhausted);
    EXPECT_GT(filled.store.num_tuples(), 1024u);
    EXPECT_EQ(filled.store.Partition(10).code(), absl::StatusCode::kResourceExhausted);
    EXPECT_LE(budget->peak_bytes(), budget->limit_bytes());
    filled.store.Clear();
    EXPECT_EQ(budget->used_bytes(), 0u);
    EXPECT_EQ(filled.store.num_tuples(), 0u);
  }
}

// ---- partitions whose tuples move elsewhere ----

// The tuples of a partition of one store or more, one after the other, with a span over them.
struct Moved {
  std::vector<uint8_t> bytes;
  TupleSpan span;

  Moved(const std::vector<const TupleStore*>& stores, uint64_t part, uint32_t tuple_bytes) {
    for (const TupleStore* store : stores)
      for (const TupleSpan& from : store->parts()[part])
        bytes.insert(bytes.end(), from.tuples, from.tuples + from.num_tuples * tuple_bytes);
    span.tuples = bytes.data();
    span.num_tuples = span.capacity = bytes.size() / tuple_bytes;
  }
};

std::vector<uint8_t> TuplesOf(const TupleStore& store, uint64_t part, uint32_t tuple_bytes) {
  return Moved({&store}, part, tuple_bytes).bytes;
}

TEST(TupleStore, APartitionMovesAndTheOthersStay) {
  for (const TupleFormat& format :
       {TupleFormat{16, 8, false}, TupleFormat{44, 0, false}, TupleFormat{4, 4, false}, TupleFormat{16, 8, true},
        TupleFormat{.tuple_bytes = 24, .part_groups = 2}, TupleFormat{.tuple_bytes = 24, .part_groups = 64}}) {
    SCOPED_TRACE(std::to_string(format.tuple_bytes) + " bytes, groups: " + std::to_string(format.part_groups));
    auto budget = std::make_shared<MemoryBudget>();
    {
      Filled filled(format, budget);
      ASSERT_TRUE(filled.AddFlat(60000).ok());
      ASSERT_TRUE(filled.store.Partition(2).ok());
      const uint64_t bytes = filled.store.part_bytes();
      EXPECT_EQ(filled.store.DisownParts(), bytes);
      std::vector<Moved> moved;
      for (uint64_t part = 0; part < 4; ++part)
        moved.emplace_back(std::vector<const TupleStore*>{&filled.store}, part, format.tuple_bytes);
      for (uint64_t part = 0; part < 4; ++part) {
        filled.store.ReplacePart(part, moved[part].span);
        EXPECT_EQ(filled.store.num_tuples(), 60000u);
        for (uint64_t other = 0; other < 4; ++other)
          EXPECT_TRUE(TuplesOf(filled.store, other, format.tuple_bytes) == moved[other].bytes) << part << " " << other;
        if (moved[part].span.num_tuples != 0) {
          EXPECT_EQ(filled.store.parts()[part].size(), 1u);
          EXPECT_EQ(filled.store.parts()[part][0].tuples, moved[part].span.tuples);
        }
      }
      filled.store.Clear();
      EXPECT_EQ(budget->used_bytes(), bytes) << "they stay reserved";
      budget->Release(bytes);
    }
    EXPECT_EQ(budget->used_bytes(), 0u);
  }
}

TEST(TupleStore, APartitionOfTwoStoresMovesToOneOfThem) {
  const TupleFormat format{24, 0, false};
  Filled first(format, nullptr), second(format, nullptr);
  ASSERT_TRUE(first.AddFlat(20000).ok());
  ASSERT_TRUE(second.AddFlat(3000).ok());
  for (Filled* filled : {&first, &second}) ASSERT_TRUE(filled->store.Partition(1).ok());
  const std::vector<uint8_t> other_first = TuplesOf(first.store, 1, 24), other_second = TuplesOf(second.store, 1, 24);
  const Moved moved({&first.store, &second.store}, 0, 24);
  first.store.ReplacePart(0, moved.span);
  second.store.ReplacePart(0, TupleSpan());
  EXPECT_TRUE(TuplesOf(first.store, 0, 24) == moved.bytes);
  EXPECT_TRUE(second.store.parts()[0].empty());
  EXPECT_TRUE(TuplesOf(first.store, 1, 24) == other_first);
  EXPECT_TRUE(TuplesOf(second.store, 1, 24) == other_second);
  EXPECT_EQ(first.store.num_tuples() + second.store.num_tuples(), 23000u);
}

TEST(TupleStore, AnEmptyPartitionMovesNowhere) {
  TupleStore store({8, 8, false}, nullptr, false);
  ASSERT_TRUE(store.Partition(1).ok());
  store.ReplacePart(0, TupleSpan());
  EXPECT_TRUE(store.parts()[0].empty());
  EXPECT_EQ(store.num_tuples(), 0u);
}

}  // namespace
}  // namespace quern
