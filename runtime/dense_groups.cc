// SPDX-License-Identifier: Apache-2.0
// An example: keys i32 from 10 to 12 and i16:nullable from -1 to 0 make 3 x (2 + 1) cells, null being the second key's digit 0:
//
//     cell   0        1        2       3        4       ..
//     keys   10,null  11,null  12,null 10,-1    11,-1   ..
//
// Nothing is compared and nothing hashed: a key outside the ranges has a digit that is too large, which one test for the whole batch finds.
// The cell number is the key, so the tuples hold none until somebody asks for them (WriteWords).
#include "runtime/dense_groups.h"

#include <algorithm>
#include <cstring>

#include "runtime/blocks.h"
#include "runtime/prefetch_ask.h"
#include "runtime/status.h"

namespace quern {

uint64_t WordDigit::num_values() const {
  const uint64_t for_null = null_bit < 64 ? 1 : 0;
  if (is_empty()) return for_null;
  return max - min >= UINT64_MAX - 1 ? UINT64_MAX : max - min + 1 + for_null;
}

WordRanges::WordRanges(const QuernJoinShape& group) {
  for (uint32_t k = 0; k < group.num_keys; ++k) {
    const QuernField& key = group.keys[k];
    const uint32_t bits = key.storage == kBit ? 1
                                              : 8 * (key.storage == k8                           ? 1
                                                     : key.storage == k16                        ? 2
                                                     : key.storage == k32 || key.storage == kF32 ? 4
                                                                                                 : 8);
    const bool is_ordered = key.is_signed && key.storage != kF32 && key.storage != kF64 && key.storage != kBit;
    WordDigit digit;
    digit.shift = key.word_shift;
    digit.mask = bits == 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1;
    digit.sign_bit = is_ordered ? uint64_t{1} << (bits - 1) : 0;
    if (key.nullable && key.null_equal) digit.null_bit = key.word_null_bit;
    digits.push_back(digit);
  }
}

void WordRanges::Add(const uint64_t* words, uint32_t n) {
  for (WordDigit& digit : digits) {
    uint64_t min = digit.min, max = digit.max;
    for (uint32_t i = 0; i < n; ++i) {
      const uint64_t value = ((words[i] >> digit.shift) & digit.mask) ^ digit.sign_bit;
      const bool is_null = digit.null_bit < 64 && (words[i] >> digit.null_bit & 1) != 0;
      min = std::min(min, is_null ? UINT64_MAX : value);
      max = std::max(max, is_null ? 0 : value);
    }
    digit.min = min;
    digit.max = max;
  }
}

void WordRanges::Add(size_t key, uint64_t min, uint64_t max) {
  digits[key].min = std::min(digits[key].min, min);
  digits[key].max = std::max(digits[key].max, max);
}

uint64_t WordRanges::num_cells() const {
  uint64_t cells = 1;
  for (const WordDigit& digit : digits)
    if (__builtin_mul_overflow(cells, digit.num_values(), &cells)) return UINT64_MAX;
  return cells;
}

absl::Status DenseGroups::Begin(const QuernJoinShape& group, const WordRanges& ranges, bool huge_pages,
                                const std::shared_ptr<MemoryBudget>& budget) {
  const uint64_t num_cells = std::max<uint64_t>(ranges.num_cells(), 1);
  QUERN_ASSIGN_OR_RETURN(HugeBuffer memory, HugeBuffer::Allocate(budget, (num_cells + 1) * (group.tuple_bytes + 1), huge_pages));
  memory_ = std::move(memory);
  tuples_ = memory_.data();
  taken_ = tuples_ + (num_cells + 1) * group.tuple_bytes;
  num_cells_ = num_cells;
  tuple_bytes_ = group.tuple_bytes;
  word_bytes_ = group.word_bytes;
  ranges_ = ranges;
  places_.clear();
  uint64_t stride = 1;
  for (const WordDigit& digit : ranges_.digits) {
    const uint64_t first = digit.null_bit < 64 ? 1 : 0;
    places_.push_back({digit.shift, digit.mask, digit.sign_bit, digit.is_empty() ? 0 : digit.min, digit.num_values() - first, stride,
                       digit.null_bit, first});
    stride *= digit.num_values();
  }
  return absl::OkStatus();
}

namespace {

// Numbers the cells of words; words outside the ranges get `nowhere`. Answers whether there were any.
template <class Place>
inline __attribute__((always_inline)) bool PlaceAll(const uint64_t* words, uint32_t n, const Place* places, size_t num_places,
                                                    uint64_t nowhere, uint64_t* cells) {
  uint64_t any_outside = 0;
  for (size_t k = 0; k < num_places; ++k) {
    const Place p = places[k];
    const uint64_t null_shift = p.first == 0 ? 0 : p.null_bit, is_nullable = p.first;
    for (uint32_t i = 0; i < n; ++i) {
      const uint64_t digit = (((words[i] >> p.shift) & p.mask) ^ p.sign_bit) - p.min;
      const bool is_null = ((words[i] >> null_shift) & is_nullable) != 0, is_outside = !is_null & (digit >= p.size);
      const uint64_t cell = (k == 0 ? 0 : cells[i]) + (is_null ? 0 : digit + p.first) * p.stride;
      any_outside |= is_outside;
      cells[i] = cell;
    }
  }
  if (any_outside == 0) return true;
  for (uint32_t i = 0; i < n; ++i) cells[i] = std::min(cells[i], nowhere);
  return false;
}

}  // namespace

// As HashWords: the same loop for the vectors that the machine has.
bool DenseGroups::PlaceOf(const uint64_t* words, uint32_t n, uint64_t* cells) const {
#if defined(__x86_64__)
  struct Loops {
    __attribute__((target("avx2"))) static bool Avx2(const uint64_t* w, uint32_t n, const Place* p, size_t k, uint64_t nowhere,
                                                     uint64_t* c) {
      return PlaceAll(w, n, p, k, nowhere, c);
    }
    __attribute__((target("avx512f,avx512dq,avx512vl"))) static bool Avx512(const uint64_t* w, uint32_t n, const Place* p, size_t k,
                                                                            uint64_t nowhere, uint64_t* c) {
      return PlaceAll(w, n, p, k, nowhere, c);
    }
  };
  static const int width = __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") ? 8
                           : __builtin_cpu_supports("avx2")                                         ? 4
                                                                                                    : 2;
  if (width == 8) return Loops::Avx512(words, n, places_.data(), places_.size(), num_cells_, cells);
  if (width == 4) return Loops::Avx2(words, n, places_.data(), places_.size(), num_cells_, cells);
#endif
  return PlaceAll(words, n, places_.data(), places_.size(), num_cells_, cells);
}

// One key that is never null: its word is the key, and a word outside goes to the cell behind the last until the batch is repeated.
bool DenseGroups::FindOneKey(const uint64_t* words, uint32_t n, uint8_t** tuples) {
  const Place p = places_[0];
  uint8_t *const base = tuples_, *const taken = taken_;
  const uint64_t bytes = tuple_bytes_;
  uint64_t num_outside = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const uint64_t digit = (words[i] ^ p.sign_bit) - p.min;
    const bool is_outside = digit >= p.size;
    const uint64_t cell = is_outside ? p.size : digit;
    num_outside += is_outside;
    tuples[i] = base + cell * bytes;
    taken[cell] = 1;
  }
  return num_outside == 0;
}

// The tuples of numbered cells, which are taken now. A cell has two lines, its tuple's and that of its byte.
template <class Ask>
void DenseGroups::Take(const uint64_t* cells, uint32_t n, uint32_t ahead, uint8_t** tuples) {
  uint8_t *const base = tuples_, *const taken = taken_;
  const uint64_t bytes = tuple_bytes_;
  const auto ask = [=](uint32_t i) {
    Ask::For(base + cells[i] * bytes);
    Ask::For(taken + cells[i]);
  };
  ForEachRow<Ask>(n, ahead, ask, [=](uint32_t i) {
    tuples[i] = base + cells[i] * bytes;
    taken[cells[i]] = 1;
  });
}

bool DenseGroups::Find(const uint64_t* words, uint32_t n, const PrefetchSetting& setting, uint8_t** tuples) {
  if (places_.size() == 1 && places_[0].first == 0 && setting.distance == 0) return FindOneKey(words, n, tuples);
  uint64_t cells[kMaxBatchRows];
  if (!PlaceOf(words, n, cells)) return false;
  WithAsk(setting, [&]<class Ask>() { Take<Ask>(cells, n, RowsAhead(setting, n), tuples); });
  return true;
}

uint64_t DenseGroups::num_groups() const {
  uint64_t n = 0;
  for (uint64_t cell = 0; cell < num_cells_; ++cell) n += taken_[cell];
  return n;
}

uint64_t DenseGroups::WordOf(uint64_t cell) const {
  uint64_t word = 0;
  for (const Place& p : places_) {
    const uint64_t num_values = p.size + p.first, digit = cell % num_values;
    cell /= num_values;
    if (p.first == 1 && digit == 0) word |= uint64_t{1} << p.null_bit;
    else word |= ((digit - p.first + p.min) ^ p.sign_bit) << p.shift;
  }
  return word;
}

void DenseGroups::WriteWords() {
  for (uint64_t cell = 0; cell < num_cells_; ++cell) {
    if (taken_[cell] == 0) continue;
    const uint64_t word = WordOf(cell);
    uint8_t* tuple = tuples_ + cell * tuple_bytes_;
    if (word_bytes_ == 4) blocks::Store(tuple, static_cast<uint32_t>(word));
    else blocks::Store(tuple, word);
  }
}

uint32_t DenseGroups::Scan(uint64_t begin, uint64_t end, uint8_t** tuples) const {
  uint32_t n = 0;
  for (uint64_t cell = begin; cell < std::min(end, num_cells_); ++cell) {
    tuples[n] = tuples_ + cell * tuple_bytes_;
    n += taken_[cell];
  }
  return n;
}

}  // namespace quern
