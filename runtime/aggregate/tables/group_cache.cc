// SPDX-License-Identifier: Apache-2.0
// TPC-H's first query groups by two strings of one letter each, into four groups. Hashing both, probing the directory
// and comparing both takes 11 ns a row, although one word can identify the group:
//
//     keys      "N", "O"
//     word      01+1 4e 00 00 | 01+1 4f 00 00      the length plus one in a byte, then the bytes, padded with zeros
//     entry     [word * golden ratio >> 54]        the word, and the address of its group
//
// The first batch decides how many bytes of the word each key has: as many as its longest string needs, and strings
// share the rest. A batch with longer strings changes the division and empties the cache; rows of a batch that fits no
// division, or has nulls, are looked up without the cache. The word holds the keys' own bytes, so a collation may put
// two words into one group, but no word belongs to two groups.
//
// Up to eight words, the first that were learnt, are also kept in an array: as long as there are no more, eight rows at
// a time are compared with each, which takes a quarter of the time of eight lookups in the cache.
//
// Where more than one row in eight is not found, or most strings are longer, the gate closes permanently
// (adaptive_gates.def).
#include "runtime/aggregate/tables/group_cache.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "runtime/aggregate/tables/short_key_packing.h"
#include "runtime/base/cpu.h"
#include "runtime/blocks/blocks.h"
#include "runtime/rows/row_order.h"

namespace quern {
namespace {

constexpr uint32_t kWordBytes = 8;
constexpr uint32_t kRowsPerGap = 4;  // at least, for words of rows that are not looked up
constexpr uint32_t kMostRefusals = 4;

// Bytes that a key of fixed width needs; 0: the key cannot be packed.
uint32_t FixedBytes(const QuernField& key) {
  switch (key.storage) {
    case kBit:
    case k8: return 1;
    case k16: return 2;
    case k32:
    case kF32: return 4;
    default: return 0;
  }
}

// Whether the rows are in order with few gaps; the span is then first .. first + n - 1.
bool FindSpan(const KeyRows& rows, KeyRows* span) {
  if (!Ascend(rows.rows, rows.n)) return false;
  const uint32_t n = rows.rows[rows.n - 1] - rows.rows[0] + 1;
  *span = {rows.keys, rows.rows[0], nullptr, n};
  return n - rows.n <= rows.n / kRowsPerGap;
}

#if defined(__x86_64__)
#define QUERN_AVX512 __attribute__((target("avx512f,avx512vl")))
#endif

// Keeps only the words of the rows themselves. They come in order, so a word never moves towards the end.
void CloseGaps(const KeyRows& rows, uint64_t* words) {
  constexpr uint32_t kAtOnce = 8;
  const uint32_t* const picked = rows.rows;
  uint32_t i = 0;
  for (; i + kAtOnce <= rows.n; i += kAtOnce) {
    uint64_t together[kAtOnce];
    const uint64_t* from = words + (picked[i] - picked[0]);
    if (__builtin_expect(picked[i + kAtOnce - 1] - picked[i] == kAtOnce - 1, 1)) {
      std::memcpy(together, from, sizeof(together));
    } else {
      for (uint32_t k = 0; k < kAtOnce; ++k) together[k] = words[picked[i + k] - picked[0]];
    }
    std::memcpy(words + i, together, sizeof(together));
  }
  for (; i < rows.n; ++i) words[i] = words[picked[i] - picked[0]];
}

}  // namespace

GroupCache::GroupCache(const QuernRowLayout& group, bool adapts)
    : group_(group), serves_(!group.zero_hashes), gate_(Gate::kGroupCache, adapts) {
  uint32_t fewest = 0;
  bool has_strings = false;
  for (uint32_t k = 0; k < group.num_keys && serves_; ++k) {
    const bool is_string = blocks::IsVariableStorage(group.keys[k].storage);
    const uint32_t bytes = is_string ? 1 : FixedBytes(group.keys[k]);
    serves_ = bytes != 0;
    has_strings |= is_string;
    bytes_.push_back(bytes);
    fewest += bytes;
  }
  serves_ &= has_strings && fewest < kWordBytes;
}

// Divides the word again, by the minimum number of bytes of each key.
bool GroupCache::Fits(const std::vector<uint32_t>& bytes) {
  uint32_t needed = 0, num_strings = 0;
  for (size_t k = 0; k < bytes.size(); ++k) {
    needed += bytes[k];
    num_strings += blocks::IsVariableStorage(group_.keys[k].storage);
  }
  if (needed > kWordBytes) return false;
  bytes_ = bytes;
  const uint32_t more = (kWordBytes - needed) / num_strings;
  for (size_t k = 0; k < bytes.size(); ++k) bytes_[k] += blocks::IsVariableStorage(group_.keys[k].storage) ? more : 0;
  return true;
}

// Packs the word of each row; twice where a string is longer than its part.
bool GroupCache::PackKeys(const KeyRows& rows) {
  for (uint32_t k = 0; k < group_.num_keys; ++k)
    if (group_.keys[k].nullable && rows.keys[k].validity != nullptr) return false;
  for (bool again = false;; again = true) {
    std::fill_n(words_.begin(), rows.n, 0);
    std::vector<uint32_t> needed = bytes_;
    bool fits = true;
    for (uint32_t k = 0, shift = 0; k < group_.num_keys; shift += 8 * bytes_[k], ++k) {
      const uint32_t longest = AddShortKeys(group_.keys[k].storage, rows.keys[k], rows,
                                            {shift, uses_vectors_, group_.prefetch_string_bytes}, words_.data());
      fits &= longest < bytes_[k] || !blocks::IsVariableStorage(group_.keys[k].storage);
      if (blocks::IsVariableStorage(group_.keys[k].storage))
        needed[k] = longest >= kWordBytes ? kWordBytes + 1 : longest + 1;
    }
    if (fits) return true;
    if (again || !Fits(needed)) return false;
    Forget();
  }
}

bool GroupCache::Look(const KeyRows& rows, uint8_t** tuples, uint32_t* others, uint32_t* num_others) {
  if (!serves_ || !gate_.is_open()) return false;
  if (words_.empty()) words_.resize(kMaxBatchRows + kMaxBatchRows / kRowsPerGap);
  if (entries_.empty()) entries_.resize(size_t{1} << kNumEntriesLog2);
  KeyRows span = rows;
  const bool has_gaps = rows.rows != nullptr && FindSpan(rows, &span);
  if (!PackKeys(has_gaps ? span : rows)) {
    if (++refusals_ >= kMostRefusals) gate_.Close();
    return false;
  }
  if (has_gaps) CloseGaps(rows, words_.data());
  refusals_ = 0;
  const uint32_t n = LookUp(rows.n, tuples, others);
  *num_others = n;
  gate_.Count(rows.n, rows.n - n);  // the first rows of all groups are misses: a window is long
  return true;
}

// Looks up the rows' groups by words_; returns how many are not known.
uint32_t GroupCache::LookUp(uint32_t n, uint8_t** tuples, uint32_t* others) const {
#if defined(__x86_64__)
  if (uses_vectors_ && HasAvx512() && num_words_known_ <= kRegisterCache) return LookAmongFew(n, tuples, others);
#endif
  const Entry* const entries = entries_.data();
  const uint64_t* const words = words_.data();
  uint32_t num_others = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const Entry& entry = entries[words[i] * kMultiplier >> (64 - kNumEntriesLog2)];
    tuples[i] = entry.tuple;
    others[num_others] = i;
    num_others += entry.word != words[i];
  }
  return num_others;
}

#if defined(__x86_64__)
// Compares eight rows at a time with each known word.
QUERN_AVX512 uint32_t GroupCache::LookAmongFew(uint32_t n, uint8_t** tuples, uint32_t* others) const {
  __m512i words[kRegisterCache], groups[kRegisterCache];
  for (uint32_t k = 0; k < kRegisterCache; ++k) {
    words[k] = _mm512_set1_epi64(static_cast<int64_t>(few_[k].word));
    groups[k] = _mm512_set1_epi64(static_cast<int64_t>(reinterpret_cast<uint64_t>(few_[k].tuple)));
  }
  uint32_t num_others = 0;
  for (uint32_t i = 0; i < n; i += 8) {
    const auto there = static_cast<__mmask8>(n - i < 8 ? (1u << (n - i)) - 1 : 0xff);
    const __m512i word = _mm512_maskz_loadu_epi64(there, &words_[i]);
    __m512i group = _mm512_setzero_si512();
    for (uint32_t k = 0; k < kRegisterCache; ++k)
      group = _mm512_mask_mov_epi64(group, _mm512_cmpeq_epi64_mask(word, words[k]), groups[k]);
    _mm512_mask_storeu_epi64(tuples + i, there, group);
    for (uint32_t unknown = _mm512_mask_testn_epi64_mask(there, group, group); unknown != 0; unknown &= unknown - 1)
      others[num_others++] = i + static_cast<uint32_t>(__builtin_ctz(unknown));
  }
  return num_others;
}
#endif

void GroupCache::Learn(const uint32_t* others, uint32_t num_others, uint8_t* const* found) {
  for (uint32_t o = 0; o < num_others; ++o) {
    const Entry learnt = {words_[others[o]], found[o]};
    Entry* const entry = EntryOf(learnt.word);
    // Two words may share one entry, and replace each other repeatedly.
    if (entry->word != learnt.word && num_words_known_++ < kRegisterCache) few_[num_words_known_ - 1] = learnt;
    *entry = learnt;
  }
}

void GroupCache::Forget() {
  std::fill(entries_.begin(), entries_.end(), Entry{0, nullptr});
  num_words_known_ = 0;
  for (Entry& entry : few_) entry = {0, nullptr};
}

}  // namespace quern
