// SPDX-License-Identifier: Apache-2.0
// The sort template, compiled natively and linked with the simplest holes that make a sort of it: one u64 key, which is
// also the tuple. Sorting by comparison must give the order by key and address, for any number of tuples, in arrays of
// exactly that size.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "ir-templates/holes.h"
#include "test/templates/guarded_buffer.h"

extern "C" {
#define QUERN_SORT_ENTRY(field, result, parameters) result quern_sort_##field parameters;
#include "runtime/abi/sort_entry_points.def"
}

namespace quern::test {
namespace {

uint64_t KeyOf(const uint8_t* tuple) { return *reinterpret_cast<const uint64_t*>(tuple); }

std::vector<uint8_t*> Addresses(std::vector<uint64_t>* keys) {
  std::vector<uint8_t*> tuples;
  for (uint64_t& key : *keys) tuples.push_back(reinterpret_cast<uint8_t*>(&key));
  return tuples;
}

// Tuples lie in order of arrival, so the addresses of equal ones must ascend.
void ExpectSorted(std::vector<uint64_t> keys) {
  const std::vector<uint8_t*> tuples = Addresses(&keys);
  std::vector<uint8_t*> expected = tuples;
  std::sort(expected.begin(), expected.end(),
            [](const uint8_t* a, const uint8_t* b) { return std::pair(KeyOf(a), a) < std::pair(KeyOf(b), b); });
  const GuardedBuffer sorted = GuardedBuffer::Of(tuples, Guard::kBehind);
  const QuernSortDescriptor descriptor = {};
  const GuardedBuffer scratch(tuples.size() * sizeof(uint8_t*), Guard::kBehind);
  quern_sort_sort(&descriptor, sorted.as<uint8_t*>(), tuples.size(), scratch.as<uint8_t*>());
  EXPECT_EQ(std::vector<uint8_t*>(sorted.as<uint8_t*>(), sorted.as<uint8_t*>() + tuples.size()), expected)
      << tuples.size();
}

std::vector<uint64_t> RandomKeys(uint64_t n, uint64_t distinct) {
  std::mt19937_64 random(n);
  std::vector<uint64_t> keys(n);
  for (uint64_t& key : keys) key = random() % distinct;
  return keys;
}

TEST(SortTemplate, SortsAnyNumberOfTuples) {
  for (uint64_t n = 0; n <= 300; ++n) ExpectSorted(RandomKeys(n, 1000));
  for (const uint64_t n : {511, 512, 513, 4095, 4097, 10000, 40000}) ExpectSorted(RandomKeys(n, n));
}

TEST(SortTemplate, IsStable) {
  for (uint64_t n = 0; n <= 300; n += 7) ExpectSorted(RandomKeys(n, 3));
  ExpectSorted(RandomKeys(10000, 50));
  ExpectSorted(std::vector<uint64_t>(1000, 5));
}

TEST(SortTemplate, SortsWhatIsSortedOrReversed) {
  std::vector<uint64_t> keys(777);
  for (uint64_t i = 0; i < keys.size(); ++i) keys[i] = i / 2;
  ExpectSorted(keys);
  std::reverse(keys.begin(), keys.end());
  ExpectSorted(keys);
}

TEST(SortTemplate, OtherStagesAreTheirHoles) {
  uint64_t key = 7, other = 9, lead = 0;
  uint64_t* const words[] = {&lead};
  uint32_t incomplete = 0;
  QuernColumn column = {};
  column.values = &key;
  quern_sort_encode(nullptr, &column, 0, nullptr, 1, words, &incomplete);
  EXPECT_EQ(lead, 7u);
  column.values = &other;
  quern_sort_encode_leading(nullptr, &column, 0, nullptr, 1, &lead);
  EXPECT_EQ(lead, 9u);
  EXPECT_LT(
      quern_sort_compare(nullptr, reinterpret_cast<const uint8_t*>(&key), reinterpret_cast<const uint8_t*>(&other)), 0);
}

TEST(SortTemplate, TuplesComeOutBehindTheRowsThatAreThere) {
  const uint64_t tuples[] = {7, 9};
  const uint64_t addresses[] = {reinterpret_cast<uint64_t>(&tuples[1]), reinterpret_cast<uint64_t>(&tuples[0])};
  uint64_t values[3] = {5, 0, 0};
  QuernOutColumn column = {};
  column.values = values;
  QuernOutputArgs args = {};
  args.columns = &column;
  args.num_rows = 1;
  ASSERT_EQ(quern_sort_reserve_output(&args, addresses, 2), 2);
  quern_sort_emit(&args, addresses, 2);
  EXPECT_EQ(values[0], 5u);
  EXPECT_EQ(values[1], 9u);
  EXPECT_EQ(values[2], 7u);
}

}  // namespace
}  // namespace quern::test

extern "C" {

void quern_hole_encode_leading_rows(const QuernSortDescriptor*, const QuernColumn* keys, uint64_t first,
                                    const uint32_t* rows, uint32_t n, uint64_t* lead) {
  for (uint32_t i = 0; i < n; ++i) lead[i] = static_cast<const uint64_t*>(keys[0].values)[rows ? rows[i] : first + i];
}
void quern_hole_encode_rows(const QuernSortDescriptor* descriptor, const QuernColumn* keys, uint64_t first,
                            const uint32_t* rows, uint32_t n, uint64_t* const* words, uint32_t*) {
  quern_hole_encode_leading_rows(descriptor, keys, first, rows, n, words[0]);
}
int32_t quern_hole_compare_tuples(const QuernSortDescriptor*, const uint8_t* a, const uint8_t* b) {
  const uint64_t x = *reinterpret_cast<const uint64_t*>(a), y = *reinterpret_cast<const uint64_t*>(b);
  return static_cast<int32_t>(x > y) - static_cast<int32_t>(x < y);
}
int64_t quern_hole_reserve_fields(QuernOutputArgs*, const uint64_t*, uint32_t n) { return n; }
void quern_hole_emit_fields(QuernOutputArgs* args, const uint64_t* tuples, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i)
    static_cast<uint64_t*>(args->columns[0].values)[args->num_rows + i] = *reinterpret_cast<const uint64_t*>(tuples[i]);
}

}  // extern "C"
