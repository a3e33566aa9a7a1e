// SPDX-License-Identifier: Apache-2.0
// For example, keys i32 from 10 to 12 and i16:nullable from -1 to 0 make 3 x (2 + 1) cells, with null as digit 0 of the
// second key:
//
//     cell   0        1        2       3        4       ..
//     keys   10,null  11,null  12,null 10,-1    11,-1   ..
//
// Nothing is hashed: a key outside the ranges has a digit that is too large, which one test for the whole batch
// detects. A cell belongs to a group if it holds the group's word, which the first row writes. Empty cells hold the
// word 0, so a flag records whether 0 occurred.
#include "runtime/aggregate/tables/dense_groups.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/cpu.h"
#include "runtime/base/status.h"
#include "runtime/blocks/blocks.h"
#include "runtime/rows/packed_key_lanes.h"
#include "runtime/rows/prefetch_lines.h"

namespace quern {
namespace {

using blocks::Load;
using blocks::Store;

}  // namespace

uint64_t PackedKeyDigit::num_values() const {
  const uint64_t for_null = null_bit < 64 ? 1 : 0;
  if (is_empty()) return for_null;
  return max - min >= UINT64_MAX - 1 ? UINT64_MAX : max - min + 1 + for_null;
}

PackedKeyRanges::PackedKeyRanges(const QuernRowLayout& group) {
  for (uint32_t k = 0; k < group.num_keys; ++k) {
    const QuernField& key = group.keys[k];
    const uint32_t bits = key.storage == kBit ? 1
                                              : 8 * (key.storage == k8                           ? 1
                                                     : key.storage == k16                        ? 2
                                                     : key.storage == k32 || key.storage == kF32 ? 4
                                                                                                 : 8);
    const bool is_ordered = key.is_signed && key.storage != kF32 && key.storage != kF64 && key.storage != kBit;
    PackedKeyDigit digit;
    digit.shift = key.packed_shift;
    digit.mask = bits == 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1;
    digit.sign_bit = is_ordered ? uint64_t{1} << (bits - 1) : 0;
    if (key.nullable && key.null_equal) digit.null_bit = key.packed_null_bit;
    digits.push_back(digit);
  }
}

void PackedKeyRanges::Add(const uint64_t* words, uint32_t n) {
  for (PackedKeyDigit& digit : digits) {
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

void PackedKeyRanges::Add(size_t key, uint64_t min, uint64_t max) {
  digits[key].min = std::min(digits[key].min, min);
  digits[key].max = std::max(digits[key].max, max);
}

uint64_t PackedKeyRanges::num_cells() const {
  uint64_t cells = 1;
  for (const PackedKeyDigit& digit : digits)
    if (__builtin_mul_overflow(cells, digit.num_values(), &cells)) return UINT64_MAX;
  return cells;
}

absl::Status DenseGroups::Begin(const QuernRowLayout& group, const PackedKeyRanges& ranges, bool huge_pages,
                                const std::shared_ptr<MemoryBudget>& budget) {
  const uint64_t num_cells = std::max<uint64_t>(ranges.num_cells(), 1);
  QUERN_ASSIGN_OR_RETURN(HugeBuffer memory,
                         HugeBuffer::Allocate(budget, (num_cells + 1) * (group.tuple_bytes + 1), huge_pages));
  memory_ = std::move(memory);
  tuples_ = memory_.data();
  num_cells_ = num_cells;
  tuple_bytes_ = group.tuple_bytes;
  packed_bytes_ = group.packed_bytes;
  ranges_ = ranges;
  places_.clear();
  uint64_t stride = 1;
  for (const PackedKeyDigit& digit : ranges_.digits) {
    const uint64_t first = digit.null_bit < 64 ? 1 : 0;
    places_.push_back({digit.shift, digit.mask, digit.sign_bit, digit.is_empty() ? 0 : digit.min,
                       digit.num_values() - first, stride, digit.null_bit, first});
    stride *= digit.num_values();
  }
  const uint64_t zero = 0;
  uint64_t zero_cell = 0;
  zero_cell_ = PlaceOf(&zero, 1, &zero_cell) ? zero_cell : num_cells;
  has_zero_ = false;
  num_groups_ = 0;
  return absl::OkStatus();
}

namespace {

// Computes the cells of words; words outside the ranges get `nowhere`. Returns whether there were any.
template <class Place>
inline __attribute__((always_inline)) bool PlaceAll(const uint64_t* words, uint32_t n, const Place* places,
                                                    size_t num_places, uint64_t nowhere, uint64_t* cells) {
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

// Like HashPackedKeys: the same loop for the vectors that the machine has.
bool DenseGroups::PlaceOf(const uint64_t* words, uint32_t n, uint64_t* cells) const {
#if defined(__x86_64__)
  struct Loops {
    __attribute__((target("avx2"))) static bool Avx2(const uint64_t* w, uint32_t n, const Place* p, size_t k,
                                                     uint64_t nowhere, uint64_t* c) {
      return PlaceAll(w, n, p, k, nowhere, c);
    }
    __attribute__((target("avx512f,avx512dq,avx512vl"))) static bool Avx512(const uint64_t* w, uint32_t n,
                                                                            const Place* p, size_t k, uint64_t nowhere,
                                                                            uint64_t* c) {
      return PlaceAll(w, n, p, k, nowhere, c);
    }
  };
  static const int width = HasAvx512() ? 8 : HasAvx2() ? 4 : 2;
  if (width == 8) return Loops::Avx512(words, n, places_.data(), places_.size(), num_cells_, cells);
  if (width == 4) return Loops::Avx2(words, n, places_.data(), places_.size(), num_cells_, cells);
#endif
  return PlaceAll(words, n, places_.data(), places_.size(), num_cells_, cells);
}

namespace {

// An array, and what to prefetch.
struct Cells {
  uint8_t* tuples;
  uint64_t tuple_bytes;
  uint64_t sign_bit, min, size;  // of one key that is never null
  uint32_t packed_keys_ahead;    // prefetch distance for the words; 0: none, they are in the cache
};

// One key that is never null: its word is the key. Writes the tuples; returns whether all words lie within the range.
bool PlaceByRow(const Cells& c, const uint64_t* words, uint32_t n, uint8_t** tuples) {
  bool any_outside = false;
  for (uint32_t i = 0; i < n; ++i) {
    const uint64_t digit = (words[i] ^ c.sign_bit) - c.min;
    any_outside |= digit >= c.size;
    tuples[i] = c.tuples + std::min(digit, c.size) * c.tuple_bytes;
  }
  return !any_outside;
}

// Writes the rows' words to their tuples; returns how many of those were empty. The word 0 is never counted as new.
template <class Word, class Prefetch>
uint64_t TakeByRow(const PrefetchSetting& setting, const uint64_t* words, uint32_t n, uint8_t* const* tuples) {
  uint64_t num_new = 0;
  const auto prefetch = [=](uint32_t i) { Prefetch::For(tuples[i]); };
  ForEachRow<Prefetch>(n, RowsAhead(setting, n), prefetch, [&](uint32_t i) {
    const Word word = static_cast<Word>(words[i]);
    num_new += (Load<Word>(tuples[i]) == 0) & (word != 0);
    Store(tuples[i], word);
  });
  return num_new;
}

#if defined(__x86_64__)
template <class Prefetch>
QUERN_AVX512 bool PlaceByEight(const Cells& cells, const uint64_t* words, uint32_t n, uint8_t** tuples) {
  const Cells c = cells;  // a copy, so that the compiler need not assume that stores change it
  const __m512i first = AllEight(c.tuples), bytes = AllEight(c.tuple_bytes), sign_bit = AllEight(c.sign_bit);
  const __m512i min = AllEight(c.min), size = AllEight(c.size);
  const uint32_t whole = n / 8 * 8;
  uint32_t outside = 0;
  for (uint32_t i = 0; i < whole; i += 8) {
    Prefetch::For(words + i + c.packed_keys_ahead);
    const __m512i digit = _mm512_sub_epi64(_mm512_xor_si512(_mm512_loadu_si512(words + i), sign_bit), min);
    outside |= _mm512_cmpge_epu64_mask(digit, size);
    const __m512i cell = _mm512_min_epu64(digit, size);
    _mm512_storeu_si512(tuples + i, _mm512_add_epi64(first, _mm512_mullo_epi64(cell, bytes)));
  }
  return PlaceByRow(c, words + whole, n - whole, tuples + whole) && outside == 0;
}

// Usually all eight groups exist, and nothing is written.
template <class Word, class Prefetch>
QUERN_AVX512 uint64_t TakeByEight(const PrefetchSetting& setting, const uint64_t* words, uint32_t n,
                                  uint8_t* const* tuples) {
  const uint32_t whole = n / 8 * 8, ahead = RowsAhead(setting, whole);
  uint64_t num_new = 0;
  if constexpr (Prefetch::kPrefetches)
    for (uint32_t i = 0; i < ahead; ++i) Prefetch::For(tuples[i]);
  for (uint32_t i = 0; i < whole; i += 8) {
    if constexpr (Prefetch::kPrefetches) {
      if (i + ahead < whole)
        for (uint32_t k = 0; k < 8; ++k) Prefetch::For(tuples[std::min(i + k + ahead, whole - 1)]);
    }
    if (_mm512_cmpneq_epi64_mask(WordsIn<Word>(tuples + i, 0), WordsOfRows<Word>(words + i)) != 0)
      num_new += TakeByRow<Word, NoPrefetch>({}, words + i, 8, tuples + i);
  }
  return num_new + TakeByRow<Word, NoPrefetch>({}, words + whole, n - whole, tuples + whole);
}
#endif

template <class Word>
uint64_t TakeAll(const PrefetchSetting& setting, const uint64_t* words, uint32_t n, uint8_t* const* tuples) {
  return WithPrefetch(setting, [&]<class Prefetch>() {
#if defined(__x86_64__)
    if (HasAvx512()) return TakeByEight<Word, Prefetch>(setting, words, n, tuples);
#endif
    return TakeByRow<Word, Prefetch>(setting, words, n, tuples);
  });
}

}  // namespace

bool DenseGroups::PlaceRows(const uint64_t* words, uint32_t n, uint32_t packed_keys_ahead, uint8_t** tuples) const {
  if (places_.size() != 1 || places_[0].first != 0) {
    uint64_t cells[kMaxBatchRows];
    if (!PlaceOf(words, n, cells)) return false;
    for (uint32_t i = 0; i < n; ++i) tuples[i] = tuples_ + cells[i] * tuple_bytes_;
    return true;
  }
  const Cells cells = {tuples_, tuple_bytes_, places_[0].sign_bit, places_[0].min, places_[0].size, packed_keys_ahead};
#if defined(__x86_64__)
  if (HasAvx512())
    return WithPrefetch<kInputHint>(packed_keys_ahead,
                                    [&]<class Prefetch>() { return PlaceByEight<Prefetch>(cells, words, n, tuples); });
#endif
  return PlaceByRow(cells, words, n, tuples);
}

bool DenseGroups::Find(const uint64_t* words, uint32_t n, const PrefetchSetting& setting, uint8_t** tuples,
                       uint32_t packed_keys_ahead) {
  if (!PlaceRows(words, n, packed_keys_ahead, tuples)) return false;
  num_groups_ +=
      packed_bytes_ == 4 ? TakeAll<uint32_t>(setting, words, n, tuples) : TakeAll<uint64_t>(setting, words, n, tuples);
  if (zero_cell_ == num_cells_ || has_zero_) return true;
  for (uint32_t i = 0; i < n; ++i) has_zero_ |= words[i] == 0;
  return true;
}

uint32_t DenseGroups::Scan(uint64_t begin, uint64_t end, uint64_t ahead_bytes, uint8_t** tuples) const {
  uint32_t n = 0;
  const auto scan = [&]<class Word, class Prefetch>() {
    const uint64_t zero_cell = has_zero_ ? zero_cell_ : num_cells_;
    uint8_t* tuple = tuples_ + begin * tuple_bytes_;
    for (uint64_t cell = begin; cell < std::min(end, num_cells_); ++cell, tuple += tuple_bytes_) {
      Prefetch::For(tuple + ahead_bytes);
      tuples[n] = tuple;
      n += (Load<Word>(tuple) != 0) | (cell == zero_cell);
    }
  };
  WithPrefetch(ahead_bytes, [&]<class Prefetch>() {
    if (packed_bytes_ == 4) scan.template operator()<uint32_t, Prefetch>();
    else scan.template operator()<uint64_t, Prefetch>();
  });
  return n;
}

}  // namespace quern
