// SPDX-License-Identifier: Apache-2.0
// What the loops share: batches of rows, threads, and decimals as 64-bit numbers where a batch allows it.
//
// A batch of decimals is copied to 64-bit numbers, and the bits that the largest one needs are counted on the way. With
// them a loop decides whether it may multiply and add up in 64 bits: 1,024 prices of 24 bits times discounts of 4 bits
// have a sum below 2^(24 + 4 + 10). Where it may not, it takes 128 bits, and an overflow of those is an error.
#ifndef QUERN_BENCH_PIPELINES_HAND_WRITTEN_BATCHES_H_
#define QUERN_BENCH_PIPELINES_HAND_WRITTEN_BATCHES_H_

#include <stdint.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <thread>
#include <vector>

#include "bench/pipelines/hand_written/arrow_tables.h"

namespace quern::bench {

constexpr uint32_t kBatchRows = 1024;
constexpr unsigned kBatchBits = 10;               // 2^10 rows
constexpr size_t kMorselRows = size_t{64} << 10;  // what a thread takes at once (guess)
constexpr unsigned kSafeBits = 62;                // of a sum in 64 bits

// Calls work(thread, first row, number of rows) for batches of `num_rows` rows on `num_threads` threads, one of which
// is the caller's. The batches of a morsel come one after the other.
template <class Work>
void ForEachBatch(size_t num_rows, unsigned num_threads, Work&& work) {
  std::atomic<size_t> next = 0;
  const auto run = [&](unsigned thread) {
    for (size_t begin; (begin = next.fetch_add(kMorselRows)) < num_rows;) {
      const size_t end = std::min(begin + kMorselRows, num_rows);
      for (size_t first = begin; first < end; first += kBatchRows)
        work(thread, first, static_cast<uint32_t>(std::min<size_t>(kBatchRows, end - first)));
    }
  };
  std::vector<std::thread> others;
  for (unsigned thread = 1; thread < num_threads; ++thread) others.emplace_back(run, thread);
  run(0);
  for (std::thread& other : others) other.join();
}

// One vector of those that the threads have made.
template <class T>
std::vector<T> Concatenated(const std::vector<std::vector<T>>& parts) {
  size_t size = 0;
  for (const auto& part : parts) size += part.size();
  std::vector<T> all;
  all.reserve(size);
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// Writes the numbers i of 0 .. n-1 with condition(i) to `rows`, without a branch. Returns how many.
template <class Condition>
uint32_t Select(uint32_t n, uint32_t* rows, Condition&& condition) {
  uint32_t num_rows = 0;
  for (uint32_t i = 0; i < n; ++i) {
    rows[num_rows] = i;
    num_rows += condition(i) ? 1 : 0;
  }
  return num_rows;
}

// The b with all |values| of n numbers <= 2^b.
inline unsigned BitsOf(uint32_t n, const int64_t* numbers) {
  uint64_t magnitudes = 0;
  for (uint32_t i = 0; i < n; ++i) magnitudes |= static_cast<uint64_t>(numbers[i] ^ (numbers[i] >> 63));
  return static_cast<unsigned>(std::bit_width(magnitudes));
}

// Copies number(0), .., number(n - 1) to `to`, and returns their bits.
template <class NumberOf>
unsigned Gather(uint32_t n, int64_t* to, NumberOf&& number) {
  for (uint32_t i = 0; i < n; ++i) to[i] = number(i);
  return BitsOf(n, to);
}

// Bits of 100 - x and 100 + x, if x has `bits`.
constexpr unsigned BitsWithHundred(unsigned bits) { return std::max(7u, bits) + 1; }

// A sum in 128 bits that remembers an overflow.
struct Sum {
  __int128 value = 0;
  bool overflow = false;

  void Add(__int128 term) { overflow |= __builtin_add_overflow(value, term, &value); }
  void Subtract(__int128 term) { overflow |= __builtin_sub_overflow(value, term, &value); }
  // value += x * y
  void AddProduct(__int128 x, __int128 y) {
    __int128 product = 0;
    overflow |= __builtin_mul_overflow(x, y, &product);
    Add(product);
  }
  void Merge(const Sum& other) {
    Add(other.value);
    overflow |= other.overflow;
  }
};

constexpr const char* kOverflow = "sum out of range: above 128 bits; accepted: sums of 128 bits";

}  // namespace quern::bench

#endif  // QUERN_BENCH_PIPELINES_HAND_WRITTEN_BATCHES_H_
