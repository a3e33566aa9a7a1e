// SPDX-License-Identifier: Apache-2.0
// A table of 1,000 strings lies in the caches, and what a row costs there is work, not waiting: hashing the string,
// testing the tag, listing the candidate, reading the string again to compare it, in passes over the batch that hide
// lines which are there at once. Most of that is for strings of any length. Of a key of up to 16 bytes all is in one
// register, which is hashed by two multiplications and compared at once:
//
//     row      "afcd1d7b39a820e2"   -> bucket 1203
//     bucket   | key 0 (16 bytes) | key 1 (16 bytes) | tuple 0 | tuple 1 | others |
//
// Two keys a bucket, and two to four times as many buckets as tuples: three keys in a hundred find no room. A row with
// such a key, or with one of two tuples, asks the table; any other one that is not found has no match.
//
// A string of fewer than 16 bytes has its length in the last one, so that "a" and "a\0" differ. A string of 16 bytes
// whose last is below 16 could be taken for such a one, so that it is not cached, and neither is one of more bytes: a
// row with such a key asks the table, if that has any. All keys of a fixed_binary have one length, and are cached.
//
// The hash needs no secret: keys that were made to meet in a bucket find no room, and the gate closes.
#include "runtime/join/tables/short_key_cache.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "runtime/base/cpu.h"
#include "runtime/base/prefetch_line.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/blocks/blocks.h"

namespace quern {
namespace {

constexpr uint64_t kMultipliers[2] = {0x9e3779b97f4a7c15u, 0xc2b2ae3d27d4eb4fu};

template <class Key>
QUERN_INLINE Key LoadKey(blocks::Bytes s) {
  const uint32_t length = std::min<uint32_t>(s.length, ShortKeyCache::kMostBytes);
  const uint8_t* const mask = blocks::ShortMask(length);
  const uint8_t* const data = length == 0 ? mask : s.data;  // an empty string may point anywhere
  if (__builtin_expect(static_cast<int>(blocks::MayReadShort(data)), 1))
    return blocks::Load<Key>(data) & blocks::Load<Key>(mask);
  Key key = {};
  __builtin_memcpy(&key, data, length);
  return key;
}

template <class F>
auto WithStorage(Storage storage, F&& f) {
  if (storage == kVar32) return f.template operator()<kVar32>();
  if (storage == kVar64) return f.template operator()<kVar64>();
  return storage == kView ? f.template operator()<kView>() : f.template operator()<kFixed>();
}

}  // namespace

struct ShortKeyCache::Loops {
  QUERN_INLINE static Key WithLength(const Key& key, uint64_t length) {
    return length < kMostBytes ? Key{key[0], key[1] | length << 56} : key;
  }
  template <Storage kStorage>
  QUERN_INLINE static bool IsUncached(const Key& key, uint64_t length) {
    return kStorage != kFixed && length >= kMostBytes && (length > kMostBytes || key[1] >> 56 < kMostBytes);
  }

  // Where a key is, as processors of a level find it: its bucket, and bit w where place w of that has the key.
  struct Baseline {
    QUERN_INLINE static uint64_t NumberOf(const Key& key, uint32_t shift) {
      return (key[0] * kMultipliers[0] + key[1] * kMultipliers[1]) >> shift;
    }
    QUERN_INLINE static uint32_t PlacesOf(const Bucket& bucket, const Key& key) {
      const Key first = bucket.keys[0] ^ key, second = bucket.keys[1] ^ key;
      return static_cast<uint32_t>((first[0] | first[1]) == 0) | static_cast<uint32_t>((second[0] | second[1]) == 0)
                                                                     << 1;
    }
  };
#if defined(__x86_64__)
#define QUERN_SHORT_KEYS __attribute__((target("avx2,bmi,bmi2,sse4.2")))
  struct Avx2 {
    // By the four words that are equal, two bits each: 1 for the lower two, 2 for the upper two.
    static constexpr uint32_t kPlaces = 1u << 6 | 1u << 14 | 1u << 22 | 2u << 24 | 2u << 26 | 2u << 28 | 1u << 30;
    QUERN_SHORT_KEYS __attribute__((always_inline)) static uint64_t NumberOf(const Key& key, uint32_t shift) {
      return _mm_crc32_u64(_mm_crc32_u64(0, key[0]), key[1]) >> (shift - 32);
    }
    QUERN_SHORT_KEYS __attribute__((always_inline)) static uint32_t PlacesOf(const Bucket& bucket, const Key& key) {
      const __m256i both = _mm256_broadcastsi128_si256(__builtin_bit_cast(__m128i, key)),
                    keys = _mm256_load_si256(reinterpret_cast<const __m256i*>(bucket.keys));
      const int equal = _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(keys, both)));
      return kPlaces >> (2 * equal) & 3;
    }
  };
#endif

  // Of the level that this processor has.
#if defined(__x86_64__)
  QUERN_SHORT_KEYS static uint64_t NumberOfAvx2(const Key& key, uint32_t shift) { return Avx2::NumberOf(key, shift); }
#endif
  static uint64_t NumberOf(const Key& key, uint32_t shift) {
#if defined(__x86_64__)
    if (HasAvx2()) return NumberOfAvx2(key, shift);
#endif
    return Baseline::NumberOf(key, shift);
  }

  // Adds row number i to one of the lists, or to none.
  struct Lists {
    uint32_t* found;
    uint64_t* tuples;
    uint32_t* others;
    uint32_t uncached_mask;  // 1 where rows with such keys ask the table, else 0
    uint32_t num_found = 0, num_others = 0;

    QUERN_INLINE void Add(const Bucket& bucket, uint32_t places, bool is_uncached, uint32_t i) {
      const auto uncached = static_cast<uint32_t>(is_uncached),
                 is_found = static_cast<uint32_t>(places != 0) & (uncached ^ 1);
      found[num_found] = i;
      tuples[num_found] = bucket.tuples[places >> 1];
      others[num_others] = i;
      num_found += is_found;
      num_others += (static_cast<uint32_t>(bucket.has_others) | (uncached & uncached_mask)) & (is_found ^ 1);
    }
  };

  // LookUp: rows begin .. n-1. LookUpEven: the first n of strings of one length, which follow one another from `bytes`
  // on; behind each, kMostBytes bytes may be read. ahead: bytes, of which the line is prefetched; 0: none. kIsFull:
  // they have kMostBytes.
#define QUERN_LOOK_UP(Level, target)                                                                                 \
  template <Storage kStorage, bool kPlacesRows>                                                                      \
  target static void LookUp##Level(const Bucket* buckets, uint32_t shift, const QuernColumn& keys, uint32_t width,   \
                                   uint64_t first, const uint32_t* rows, uint32_t begin, uint32_t n, Lists* lists) { \
    const QuernColumn column = keys; /* a copy, which writing lists cannot alias */                                  \
    Lists out = *lists;                                                                                              \
    for (uint32_t i = begin; i < n; ++i) {                                                                           \
      const uint32_t row = kPlacesRows ? rows[i] : static_cast<uint32_t>(first) + i;                                 \
      const blocks::Bytes s = blocks::ReadBytes<kStorage>(&column, row, 0, width);                                   \
      const Key key = WithLength(LoadKey<Key>(s), s.length);                                                         \
      const Bucket& bucket = buckets[Level::NumberOf(key, shift)];                                                   \
      out.Add(bucket, Level::PlacesOf(bucket, key), IsUncached<kStorage>(key, s.length), i);                         \
    }                                                                                                                \
    *lists = out;                                                                                                    \
  }                                                                                                                  \
  template <bool kIsFull>                                                                                            \
  target static void LookUpEven##Level(const Bucket* buckets, uint32_t shift, const uint8_t* bytes, uint32_t length, \
                                       uint32_t ahead, uint32_t n, Lists* lists) {                                   \
    const uint32_t step = kIsFull ? kMostBytes : length;                                                             \
    const Key mask = blocks::Load<Key>(blocks::ShortMask(length)), last = WithLength(Key{}, length);                 \
    Lists out = *lists;                                                                                              \
    for (uint32_t i = 0; i < n; ++i, bytes += step) {                                                                \
      PrefetchIf(ahead, bytes + ahead);                                                                              \
      const Key key = kIsFull ? blocks::Load<Key>(bytes) : (blocks::Load<Key>(bytes) & mask) | last;                 \
      const Bucket& bucket = buckets[Level::NumberOf(key, shift)];                                                   \
      out.Add(bucket, Level::PlacesOf(bucket, key), kIsFull && IsUncached<kVar32>(key, kMostBytes), i);              \
    }                                                                                                                \
    *lists = out;                                                                                                    \
  }
  QUERN_LOOK_UP(Baseline, )
#if defined(__x86_64__)
  QUERN_LOOK_UP(Avx2, QUERN_SHORT_KEYS)
#endif
#undef QUERN_LOOK_UP

  // How many strings from row `first` on have the length of the first one, or 0, so that their bytes lie as LookUpEven
  // needs it.
  static uint32_t NumEven(const QuernColumn& column, uint64_t first, uint32_t n, uint32_t* length) {
    const auto offset = [&](uint64_t i) { return blocks::LoadAt<uint32_t>(column.offsets, first + i); };
    const uint32_t begin = offset(0), step = offset(1) - begin;
    if (step == 0 || step > kMostBytes) return 0;
    uint32_t differs = 0;
    for (uint32_t i = 1; i <= n; ++i) differs |= offset(i) ^ (begin + i * step);
    *length = step;
    const uint32_t num_last = (kMostBytes - 1) / step;  // from which on fewer than kMostBytes bytes follow
    return differs != 0 || n <= num_last ? 0 : n - num_last;
  }
};

bool ShortKeyCache::Serves(const QuernJoinDescriptor& descriptor, const JoinTable& table) {
  const QuernRowLayout& layout = descriptor.rows;
  if (table.layout != Layout::kUnchained || table.packed_bytes != 0 || table.crowded != nullptr) return false;
  if (layout.num_keys != 1 || table.num_tuples > thresholds::kShortKeyTuples || table.num_tuples == 0) return false;
  if (descriptor.stops_at_matched || descriptor.asks_host || layout.zero_hashes) return false;
  const QuernField& key = layout.keys[0];
  if (key.index_storage != kNoStorage || key.null_equal) return false;
  if (key.storage == kFixed) return key.width_bytes <= kMostBytes;
  const bool is_string = key.storage == kVar32 || key.storage == kVar64 || key.storage == kView;
  return is_string && key.rule == 0;
}

ShortKeyCache::ShortKeyCache(const QuernJoinDescriptor& descriptor, const JoinTable& table,
                             std::shared_ptr<MemoryBudget> budget, bool adapts)
    : layout_(descriptor.rows),
      field_(descriptor.rows.keys[0]),
      tuple_bytes_(descriptor.rows.tuple_bytes),
      table_(table),
      budget_(std::move(budget)),
      now_{AdaptiveGate(Gate::kShortKeys, adapts)},
      before_piece_(now_) {}

void ShortKeyCache::BeginPiece(bool is_again) {
  if (is_again) now_ = before_piece_;
  else before_piece_ = now_;
}

// The first rows go the table's way, as few rows would not pay for the memory.
bool ShortKeyCache::Takes(uint32_t n) {
  now_.num_rows += n;
  if (now_.num_rows < thresholds::kShortKeyRows * table_.num_tuples) return false;
  return now_.gate.TakeTurn() && (memory_.data() != nullptr || MakeBuckets());
}

// False where memory is refused, or scarce, and for a while.
bool ShortKeyCache::MakeBuckets() {
  const uint64_t num_buckets = std::max<uint64_t>(2, std::bit_ceil(2 * table_.num_tuples));
  if (!TakeMemory(num_buckets * sizeof(Bucket))) {
    now_.gate.Close();
    before_piece_.gate.Close();
    return false;
  }
  shift_ = static_cast<uint32_t>(64 - std::countr_zero(num_buckets));
  const uint64_t of_first = Loops::NumberOf(fillers_[0], shift_);
  while (Loops::NumberOf(fillers_[1], shift_) == of_first) ++fillers_[1][0];
  for (uint64_t b = 0; b < num_buckets; ++b) {
    const Key& filler = fillers_[b == of_first ? 1 : 0];
    reinterpret_cast<Bucket*>(memory_.data())[b] = {{filler, filler}, {}, 0, 0};
  }
  for (uint64_t tuple = 0; tuple != table_.num_tuples * tuple_bytes_; tuple += tuple_bytes_) {
    const uint8_t* const field = table_.tuples + tuple + field_.tuple_offset;
    const blocks::Bytes s = field_.storage == kFixed ? blocks::Bytes{field, field_.width_bytes}
                                                     : blocks::BytesOf(field, field_.width_bytes);
    const Key key = Loops::WithLength(LoadKey<Key>(s), s.length);
    const bool is_uncached =
        WithStorage(field_.storage, [&]<Storage kStorage>() { return Loops::IsUncached<kStorage>(key, s.length); });
    if (is_uncached) has_uncached_ = true;
    else Put(key, tuple);
  }
  return true;
}

bool ShortKeyCache::TakeMemory(uint64_t bytes) {
  const uint64_t limit = budget_ == nullptr ? 0 : budget_->limit_bytes();
  if (limit != 0 && bytes > limit / thresholds::kShortKeyLimitShare) return false;
  absl::StatusOr<HugeBuffer> memory = HugeBuffer::Allocate(budget_, bytes, false);
  if (!memory.ok()) return false;
  memory_ = *std::move(memory);
  return true;
}

void ShortKeyCache::Put(const Key& key, uint64_t tuple) {
  const uint64_t number = Loops::NumberOf(key, shift_);
  Bucket& bucket = reinterpret_cast<Bucket*>(memory_.data())[number];
  if (Loops::Baseline::PlacesOf(bucket, key) !=
      0) {  // a second tuple of the key: from now on the table is asked for all
    const Key& filler = fillers_[Loops::NumberOf(fillers_[0], shift_) == number ? 1 : 0];
    bucket = {{filler, filler}, {}, 1, 2};
  } else if (bucket.num_taken == 2) {
    bucket.has_others = 1;
  } else {
    bucket.keys[bucket.num_taken] = key;
    bucket.tuples[bucket.num_taken++] = tuple;
  }
}

uint32_t ShortKeyCache::Look(const QuernColumn* keys, uint64_t first, const uint32_t* rows, uint32_t n, uint32_t* found,
                             uint64_t* tuples, uint32_t* others, uint32_t* num_others) {
  Loops::Lists lists = {found, tuples, others, has_uncached_ ? 1u : 0u};
  uint32_t num_even = 0, length = 0;
  if (rows == nullptr && field_.storage == kVar32) num_even = Loops::NumEven(keys[0], first, n, &length);
  if (num_even != 0) {
    const uint8_t* const bytes =
        static_cast<const uint8_t*>(keys[0].values) + blocks::LoadAt<int32_t>(keys[0].offsets, first);
    const uint32_t ahead = layout_.prefetch_string_bytes;
    const auto look = [&]<bool kIsFull>() {
#if defined(__x86_64__)
      if (HasAvx2()) return Loops::LookUpEvenAvx2<kIsFull>(buckets(), shift_, bytes, length, ahead, num_even, &lists);
#endif
      Loops::LookUpEvenBaseline<kIsFull>(buckets(), shift_, bytes, length, ahead, num_even, &lists);
    };
    if (length == kMostBytes) look.template operator()<true>();
    else look.template operator()<false>();
  }
  WithStorage(field_.storage, [&]<Storage kStorage>() {
    const auto look = [&]<bool kPlacesRows>() {
#if defined(__x86_64__)
      if (HasAvx2())
        return Loops::LookUpAvx2<kStorage, kPlacesRows>(buckets(), shift_, keys[0], field_.width_bytes, first, rows,
                                                        num_even, n, &lists);
#endif
      Loops::LookUpBaseline<kStorage, kPlacesRows>(buckets(), shift_, keys[0], field_.width_bytes, first, rows,
                                                   num_even, n, &lists);
    };
    if (rows != nullptr) look.template operator()<true>();
    else look.template operator()<false>();
  });
  *num_others = lists.num_others;
  return lists.num_found;
}

bool ShortKeyCache::Ask(const QuernColumn* keys, const uint32_t* rows, const uint64_t* hashes, uint32_t n,
                        uint64_t* tuples) const {
  return WithStorage(field_.storage, [&]<Storage kStorage>() {
    for (uint32_t i = 0; i < n; ++i) {
      const uint64_t* const entry = table_.directory + (hashes[i] >> table_.shift);
      const uint64_t end = entry[0] >> kTagBits;
      tuples[i] = kNoTuple;
      for (uint64_t tuple = entry[-1] >> kTagBits; tuple != end; tuple += tuple_bytes_) {
        const uint8_t* const field = table_.tuples + tuple + field_.tuple_offset;
        if (!blocks::EqualField<kStorage>(&keys[0], rows[i], field, 0, field_.width_bytes)) continue;
        if (tuples[i] != kNoTuple) return false;
        tuples[i] = tuple;
      }
    }
    return true;
  });
}

}  // namespace quern
