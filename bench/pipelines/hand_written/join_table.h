// SPDX-License-Identifier: Apache-2.0
// A set of keys and a hash table, for loops that are staged by hand.
//
// 64-bit keys in a narrow range make exact structures; how narrow is seen from the keys. For keys 7, 9, 12:
//
//     KeyFilter    bits 1 0 1 0 0 1 from key 7 on: exact. Otherwise 16 bits a key, set at a hash: may say yes wrongly
//     JoinTable    cells 1 0 2 0 0 3 from key 7 on: the tuple's number plus 1. Otherwise slots of an open table
//
// A probe goes over a batch twice: it computes and prefetches all places, and then reads them.
#ifndef QUERN_BENCH_PIPELINES_HAND_WRITTEN_JOIN_TABLE_H_
#define QUERN_BENCH_PIPELINES_HAND_WRITTEN_JOIN_TABLE_H_

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <type_traits>
#include <vector>

#include "bench/pipelines/hand_written/batches.h"

namespace quern::bench {

constexpr uint64_t kBitsPerKey = 64, kCellsPerKey = 8;  // widest range of exact structures (guess)
constexpr uint64_t kHashedBitsPerKey = 16;

struct KeyPair {
  int64_t first, second;
  bool operator==(const KeyPair&) const = default;
};

inline uint64_t Hash(int64_t key) {
  uint64_t x = static_cast<uint64_t>(key) * 0x9e3779b97f4a7c15u;
  return (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
}
inline uint64_t Hash(const KeyPair& key) {
  return Hash(static_cast<int64_t>(Hash(key.first) ^ (static_cast<uint64_t>(key.second) * 0xbf58476d1ce4e5b9u)));
}

// Zeros. An array that fills a page of 2 MiB comes from the system, which clears the pages.
template <class T>
class ZeroedArray {
 public:
  void Reset(size_t size) {
    constexpr size_t kHugePage = size_t{2} << 20;
    const size_t bytes = std::max<size_t>(size, 1) * sizeof(T);
    const size_t mapped = bytes < kHugePage ? 0 : bytes + kHugePage;  // holds whole pages wherever it begins
    void* data = mapped == 0 ? calloc(1, bytes)
                             : mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == nullptr || data == MAP_FAILED) abort();
    if (mapped != 0) madvise(data, mapped, MADV_HUGEPAGE);
    data_ = {static_cast<T*>(data), Free{mapped}};
  }
  T& operator[](size_t i) { return data_.get()[i]; }
  const T& operator[](size_t i) const { return data_.get()[i]; }

 private:
  struct Free {
    size_t mapped = 0;
    void operator()(T* data) const {
      if (mapped == 0) free(data);
      else munmap(data, mapped);
    }
  };
  std::unique_ptr<T, Free> data_;
};

// The least key and the number of values up to the greatest one; 0: too many to count.
struct KeyRange {
  int64_t least = 0;
  uint64_t width = 0;

  KeyRange(const int64_t* keys, size_t n) {
    if (n == 0) return;
    int64_t greatest = keys[0];
    least = keys[0];
    for (size_t i = 1; i < n; ++i) {
      least = std::min(least, keys[i]);
      greatest = std::max(greatest, keys[i]);
    }
    width = static_cast<uint64_t>(greatest) - static_cast<uint64_t>(least) + 1;
  }
  uint64_t PlaceOf(int64_t key) const { return static_cast<uint64_t>(key) - static_cast<uint64_t>(least); }
};

class KeyFilter {
 public:
  KeyFilter(const int64_t* keys, size_t n) : range_(keys, n) {
    is_exact_ = n == 0 || (range_.width != 0 && range_.width <= kBitsPerKey * n);
    num_bits_ = is_exact_ ? range_.width : std::bit_ceil(kHashedBitsPerKey * n);
    shift_ = is_exact_ ? 0 : 64 - static_cast<unsigned>(std::countr_zero(num_bits_));
    words_.Reset(num_bits_ / 64 + 1);
    for (size_t i = 0; i < n; ++i) {
      const uint64_t bit = is_exact_ ? range_.PlaceOf(keys[i]) : Hash(keys[i]) >> shift_;
      words_[bit / 64] |= uint64_t{1} << (bit % 64);
    }
  }

  // Whether Keep keeps the rows of these keys alone, and no others.
  bool is_exact() const { return is_exact_; }

  // Leaves those of rows[0 .. n) whose key column[row] may be among the keys. Returns how many.
  uint32_t Keep(const int64_t* column, uint32_t* rows, uint32_t n) const {
    return is_exact_ ? KeepBits(rows, n, [&](uint32_t row) { return range_.PlaceOf(column[row]); })
                     : KeepBits(rows, n, [&](uint32_t row) { return Hash(column[row]) >> shift_; });
  }

 private:
  template <class BitOf>
  uint32_t KeepBits(uint32_t* rows, uint32_t n, BitOf&& bit_of) const {
    uint32_t num_kept = 0;
    for (uint32_t j = 0; j < n; ++j) {
      const uint32_t row = rows[j];
      const uint64_t bit = bit_of(row), inside = bit < num_bits_ ? bit : num_bits_;  // the bit behind them is 0
      rows[num_kept] = row;
      num_kept += static_cast<uint32_t>(words_[inside / 64] >> (inside % 64)) & 1;
    }
    return num_kept;
  }

  KeyRange range_;
  bool is_exact_;
  uint64_t num_bits_;
  unsigned shift_;
  ZeroedArray<uint64_t> words_;
};

// A row that was probed and a tuple that it met.
struct Match {
  uint32_t row, tuple;
};

// Finds tuples 0 .. n-1 by their keys, which may stand several times.
template <class Key>
class JoinTable {
 public:
  JoinTable(const Key* keys, size_t n) {
    if constexpr (std::is_same_v<Key, int64_t>) {
      if (MakeCells(keys, n)) return;
    }
    MakeSlots(keys, n);
  }

  // Whether no key stands twice.
  bool is_unique() const { return is_unique_; }

  // Writes the pairs of key(0), .., key(n - 1) to `matches`, n up to kBatchRows, and returns how many. Their `row` is
  // row(i).
  template <class KeyOf, class RowOf>
  uint32_t Probe(uint32_t n, std::vector<Match>* matches, KeyOf&& key, RowOf&& row) const {
    matches->resize(std::max<size_t>(matches->size(), n));
    if constexpr (std::is_same_v<Key, int64_t>) {
      if (width_ != 0) return ProbeCells(n, matches->data(), key, row);
    }
    return ProbeSlots(n, matches, key, row);
  }

 private:
  struct Slot {
    Key key;
    uint32_t tuple;  // plus 1
  };

  bool MakeCells(const Key* keys, size_t n) {
    const KeyRange range(keys, n);
    if (range.width == 0 || range.width > kCellsPerKey * n) return false;
    cells_.Reset(range.width);
    for (size_t i = 0; i < n; ++i) {
      uint32_t& cell = cells_[range.PlaceOf(keys[i])];
      if (cell != 0) return false;
      cell = static_cast<uint32_t>(i + 1);
    }
    least_ = range.least;
    width_ = range.width;
    return true;
  }

  void MakeSlots(const Key* keys, size_t n) {
    const uint64_t num_slots = std::bit_ceil(std::max<uint64_t>(2 * n, 2));
    shift_ = 64 - static_cast<unsigned>(std::countr_zero(num_slots));
    mask_ = num_slots - 1;
    slots_.Reset(num_slots);
    for (size_t i = 0; i < n; ++i) {
      uint64_t place = Hash(keys[i]) >> shift_;
      for (; slots_[place].tuple != 0; place = (place + 1) & mask_)
        if (slots_[place].key == keys[i]) is_unique_ = false;
      slots_[place] = {keys[i], static_cast<uint32_t>(i + 1)};
    }
  }

  template <class KeyOf, class RowOf>
  uint32_t ProbeCells(uint32_t n, Match* matches, KeyOf& key, RowOf& row) const {
    static constexpr uint32_t kNone = 0;
    const uint32_t* cells[kBatchRows];
    for (uint32_t i = 0; i < n; ++i) {
      const uint64_t place = static_cast<uint64_t>(key(i)) - static_cast<uint64_t>(least_);
      cells[i] = place < width_ ? &cells_[place] : &kNone;
      __builtin_prefetch(cells[i]);
    }
    uint32_t num_matches = 0;
    for (uint32_t i = 0; i < n; ++i) {
      matches[num_matches] = {row(i), *cells[i] - 1};
      num_matches += *cells[i] != 0 ? 1 : 0;
    }
    return num_matches;
  }

  template <class KeyOf, class RowOf>
  uint32_t ProbeSlots(uint32_t n, std::vector<Match>* matches, KeyOf& key, RowOf& row) const {
    uint64_t places[kBatchRows];
    for (uint32_t i = 0; i < n; ++i) {
      places[i] = Hash(key(i)) >> shift_;
      __builtin_prefetch(&slots_[places[i]]);
    }
    uint32_t num_matches = 0;
    for (uint32_t i = 0; i < n; ++i) {
      const Key wanted = key(i);
      for (uint64_t place = places[i]; slots_[place].tuple != 0; place = (place + 1) & mask_) {
        if (!(slots_[place].key == wanted)) continue;
        if (num_matches == matches->size()) matches->resize(2 * matches->size());
        (*matches)[num_matches++] = {row(i), slots_[place].tuple - 1};
        if (is_unique_) break;
      }
    }
    return num_matches;
  }

  bool is_unique_ = true;
  int64_t least_ = 0;
  uint64_t width_ = 0;  // of cells_; 0: slots_ are used
  ZeroedArray<uint32_t> cells_;
  unsigned shift_ = 0;
  uint64_t mask_ = 0;
  ZeroedArray<Slot> slots_;
};

// Leaves those of rows[0 .. n) whose key column[row] has a tuple in the table, whose filter is `filter`. Returns how
// many.
inline uint32_t KeepMatching(const KeyFilter& filter, const JoinTable<int64_t>& table, const int64_t* column,
                             uint32_t* rows, uint32_t n, std::vector<Match>* matches) {
  n = filter.Keep(column, rows, n);
  if (filter.is_exact()) return n;
  const uint32_t num_matches =
      table.Probe(n, matches, [&](uint32_t i) { return column[rows[i]]; }, [&](uint32_t i) { return rows[i]; });
  uint32_t num_kept = 0;
  for (uint32_t m = 0; m < num_matches; ++m)
    if (num_kept == 0 || rows[num_kept - 1] != (*matches)[m].row) rows[num_kept++] = (*matches)[m].row;
  return num_kept;
}

}  // namespace quern::bench

#endif  // QUERN_BENCH_PIPELINES_HAND_WRITTEN_JOIN_TABLE_H_
