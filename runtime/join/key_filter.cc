// SPDX-License-Identifier: Apache-2.0
#include "runtime/join/key_filter.h"

#include <algorithm>

#include "runtime/base/cpu.h"
#include "runtime/blocks/blocks.h"

namespace quern {
namespace {

using blocks::Load;

// Calls f with a value of the type that holds the key.
template <class F>
auto WithWord(const QuernField& key, F&& f) {
  return key.storage == k32 ? f(uint32_t{}) : f(uint64_t{});
}

template <class F>
void ForEachKey(const QuernRowLayout& layout, const QuernField& key, const TupleSpan& span, F&& f) {
  WithWord(key, [&](auto word) {
    const uint8_t* at = span.tuples + key.tuple_offset;
    for (uint64_t i = 0; i < span.num_tuples; ++i, at += layout.tuple_bytes) f(uint64_t{Load<decltype(word)>(at)});
  });
}

}  // namespace

uint32_t FilterKeyOf(const QuernRowLayout& layout) {
  if (layout.packed_bytes != 0) return 0;
  for (uint32_t k = 0; k < layout.num_keys; ++k)
    if (HasWords(layout.keys[k])) return k;
  return kNoFilterKey;
}

uint64_t FilterSignBit(const QuernRowLayout& layout, uint32_t key) {
  if (layout.packed_bytes != 0) return layout.packed_sign_bit;
  if (!layout.keys[key].is_signed) return 0;
  return layout.keys[key].storage == k32 ? uint64_t{1} << 31 : uint64_t{1} << 63;
}

PackedKeyRange RangeOfKey(const QuernRowLayout& layout, uint32_t key, const TupleList& spans, uint64_t limit) {
  constexpr uint64_t kBlockTuples = 4096;
  const uint64_t sign_bit = FilterSignBit(layout, key);
  PackedKeyRange range;
  for (const TupleSpan& span : spans) {
    for (uint64_t first = 0; first < span.num_tuples; first += kBlockTuples) {
      TupleSpan block;
      block.tuples = span.tuples + first * layout.tuple_bytes;
      block.num_tuples = std::min(kBlockTuples, span.num_tuples - first);
      uint64_t low = range.min, high = range.max;
      ForEachKey(layout, layout.keys[key], block, [&](uint64_t word) {
        low = std::min(low, word ^ sign_bit);
        high = std::max(high, word ^ sign_bit);
      });
      range.min = low;
      range.max = high;
      if (high - low >= limit) return range;
    }
  }
  return range;
}

void FillKeyFilter(const JoinTable& table, const QuernRowLayout& layout, const TupleList& spans, uint64_t* bitmap) {
  const uint64_t base = table.base, sign_bit = table.sign_bit;
  for (const TupleSpan& span : spans) {
    ForEachKey(layout, layout.keys[table.filter_key], span, [&](uint64_t word) {
      const uint64_t number = (word ^ sign_bit) - base;
      bitmap[number / 64] |= uint64_t{1} << (number % 64);
    });
  }
}

void LoadFilterKeys(const QuernRowLayout& layout, uint32_t key, const QuernColumn* keys, const uint32_t* rows,
                    uint32_t n, uint64_t* words) {
  WithWord(layout.keys[key], [&](auto word) {
    using Word = decltype(word);
    const auto* const values = static_cast<const uint8_t*>(keys[key].values);
    for (uint32_t i = 0; i < n; ++i) words[i] = Load<Word>(values + uint64_t{rows[i]} * sizeof(Word));
  });
}

namespace {

// The places of the words whose bits are set; returns how many.
template <class Reader>
uint32_t FindPlaces(const JoinTable& table, Reader words, uint32_t n, uint32_t* places) {
  const uint64_t base = table.base, sign_bit = table.sign_bit, range = table.range;
  const uint64_t* const bitmap = table.bitmap;
  uint32_t num_found = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const uint64_t number = (words.At(i) ^ sign_bit) - base;
    const bool inside = number < range;
    const uint64_t place = inside ? number : 0, bit = bitmap[place / 64] >> (place % 64);
    places[num_found] = i;
    num_found += static_cast<uint32_t>(bit & static_cast<uint64_t>(inside));
  }
  return num_found;
}

#if defined(__x86_64__)
template <class Reader>
QUERN_AVX512 uint32_t FindPlacesWide(const JoinTable& table, Reader words, uint32_t n, uint32_t* places) {
  const BitmapLanes bitmap(table.bitmap, table.base, table.sign_bit, table.range);
  uint32_t num_found = 0;
  for (uint32_t i = 0; i < n; i += kBitmapLanes)
    num_found += StoreKept(SixteenFrom(i), bitmap.Find(words.NumbersOf(bitmap, i, n)), places + num_found);
  return num_found;
}
#endif

template <class Reader>
uint32_t FindPlacesOf(const JoinTable& table, Reader words, uint32_t n, uint32_t* places) {
#if defined(__x86_64__)
  if (HasAvx512() && table.range <= kPrefetchedBits) return FindPlacesWide(table, words, n, places);
#endif
  return FindPlaces(table, words, n, places);
}

}  // namespace

// Numbers and words are moved when all places are known, so that rows that go cost nothing more. No row moves up, so
// that numbers and words may take the place of those that came in.
uint32_t KeepKeysOf(const JoinTable& table, const uint32_t* numbers, uint32_t first, uint32_t n, const KeyWords& words,
                    uint32_t* kept, uint64_t* kept_words) {
  uint32_t places[kMaxBatchRows];
  const uint32_t num_kept = WithReader(words, [&](const auto& reader) {
    const uint32_t num_found = FindPlacesOf(table, reader, n, places);
    if (kept_words != nullptr)
      for (uint32_t k = 0; k < num_found; ++k) kept_words[k] = reader.At(places[k]);
    return num_found;
  });
  if (numbers == nullptr)
    for (uint32_t k = 0; k < num_kept; ++k) kept[k] = first + places[k];
  else
    for (uint32_t k = 0; k < num_kept; ++k) kept[k] = numbers[places[k]];
  return num_kept;
}

}  // namespace quern
