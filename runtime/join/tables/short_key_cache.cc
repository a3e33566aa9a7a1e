// SPDX-License-Identifier: Apache-2.0
// A table of 1,000 strings lies in the caches, and what a row costs there is work, not waiting: hashing the string,
// testing the tag, listing the candidate, reading the string again to compare it, in passes over the batch that hide
// lines which are there at once. Most of that is for strings of any length. Of a key of up to 16 bytes all is in one
// register, which is hashed by two multiplications and compared at once:
//
//     row      "afcd1d7b39a820e2"   -> bucket 1203
//     bucket   | key 0 (16 bytes) | key 1 (16 bytes) | tuple 0, length 0 | tuple 1, length 1 | others |
//
// Two keys a bucket, and two to four times as many buckets as tuples: one key in a hundred finds no room. A row with
// such a key, with one of two tuples, or with a long string asks the table; any other one that is not found has no
// match.
//
// The hash needs no secret: keys that were made to meet in a bucket find no room, and the gate closes.
#include "runtime/join/tables/short_key_cache.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "runtime/base/cpu.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/blocks/blocks.h"

namespace quern {
namespace {

constexpr uint32_t kLengthBits = 5;
constexpr uint64_t kLengthMask = (uint64_t{1} << kLengthBits) - 1;
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
  QUERN_INLINE static uint64_t HashOf(const Key& key) { return key[0] * kMultipliers[0] + key[1] * kMultipliers[1]; }

  // Not 0 where the key, or the length, differs.
  QUERN_INLINE static uint64_t Difference(const Bucket& bucket, int which, const Key& key, uint64_t tag) {
    const Key difference = bucket.keys[which] ^ key;
    return difference[0] | difference[1] | ((bucket.words[which] & kLengthMask) ^ tag);
  }

  // Adds row number i, with this key, to one of the lists, or to none.
  struct Lists {
    uint32_t* found;
    uint64_t* tuples;
    uint32_t* others;
    uint64_t long_mask;  // all ones where long strings ask the table, else 0
    uint32_t num_found = 0, num_others = 0;

    QUERN_INLINE void Add(const Bucket* buckets, uint32_t shift, const Key& key, uint64_t length, uint32_t i) {
      const Bucket& bucket = buckets[HashOf(key) >> shift];
      const uint64_t tag = length + 1;
      const bool is_first = Difference(bucket, 0, key, tag) == 0, is_second = Difference(bucket, 1, key, tag) == 0;
      found[num_found] = i;
      tuples[num_found] = bucket.words[is_first ? 0 : 1] >> kLengthBits;
      others[num_others] = i;
      const auto is_found = static_cast<uint32_t>(static_cast<int>(is_first) | static_cast<int>(is_second));
      const uint64_t asks = bucket.has_others | (long_mask & static_cast<uint64_t>(length > kMostBytes));
      num_found += is_found;
      num_others += static_cast<uint32_t>(asks) & (is_found ^ 1);
    }
  };

  template <Storage kStorage, bool kHasRows>
  QUERN_INLINE static void LookUp(const Bucket* buckets, uint32_t shift, const QuernColumn& keys, uint32_t width,
                                  uint64_t first, const uint32_t* rows, uint32_t begin, uint32_t n, Lists* lists) {
    const QuernColumn column = keys;  // a copy, which writing lists cannot alias
    Lists out = *lists;
    for (uint32_t i = begin; i < n; ++i) {
      const uint32_t row = kHasRows ? rows[i] : static_cast<uint32_t>(first) + i;
      const blocks::Bytes s = blocks::ReadBytes<kStorage>(&column, row, 0, width);
      out.Add(buckets, shift, LoadKey<Key>(s), s.length, i);
    }
    *lists = out;
  }

  // The first n of strings of one length, which follow one another from `bytes` on; behind each, kMostBytes bytes may
  // be read.
  QUERN_INLINE static void LookUpEven(const Bucket* buckets, uint32_t shift, const uint8_t* bytes, uint32_t length,
                                      uint32_t n, Lists* lists) {
    const Key mask = blocks::Load<Key>(blocks::ShortMask(length));
    Lists out = *lists;
    for (uint32_t i = 0; i < n; ++i, bytes += length)
      out.Add(buckets, shift, blocks::Load<Key>(bytes) & mask, length, i);
    *lists = out;
  }

#define QUERN_LOOK_UP(suffix, target)                                                                                 \
  template <Storage kStorage, bool kHasRows>                                                                          \
  target static void LookUp##suffix(const Bucket* buckets, uint32_t shift, const QuernColumn& keys, uint32_t width,   \
                                    uint64_t first, const uint32_t* rows, uint32_t begin, uint32_t n, Lists* lists) { \
    LookUp<kStorage, kHasRows>(buckets, shift, keys, width, first, rows, begin, n, lists);                            \
  }                                                                                                                   \
  target static void LookUpEven##suffix(const Bucket* buckets, uint32_t shift, const uint8_t* bytes, uint32_t length, \
                                        uint32_t n, Lists* lists) {                                                   \
    LookUpEven(buckets, shift, bytes, length, n, lists);                                                              \
  }
  QUERN_LOOK_UP(Baseline, )
#if defined(__x86_64__)
  QUERN_LOOK_UP(Avx2, __attribute__((target("avx2,bmi,bmi2"))))
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
    : field_(descriptor.rows.keys[0]),
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
  for (uint64_t tuple = 0; tuple != table_.num_tuples * tuple_bytes_; tuple += tuple_bytes_) {
    const uint8_t* const field = table_.tuples + tuple + field_.tuple_offset;
    const blocks::Bytes s = field_.storage == kFixed ? blocks::Bytes{field, field_.width_bytes}
                                                     : blocks::BytesOf(field, field_.width_bytes);
    if (s.length > kMostBytes) has_long_ = true;
    else Put(LoadKey<Key>(s), tuple << kLengthBits | (s.length + 1));
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

void ShortKeyCache::Put(const Key& key, uint64_t word) {
  Bucket& bucket = reinterpret_cast<Bucket*>(memory_.data())[Loops::HashOf(key) >> shift_];
  // Its length plus 1 is 0, which no string has: any other one is that of strings that are probed, which may be long.
  constexpr uint64_t kTaken = uint64_t{1} << kLengthBits;
  for (int which = 0; which < 2; ++which) {
    if (Loops::Difference(bucket, which, key, word & kLengthMask) == 0) {  // a second tuple of the key
      bucket.words[0] = bucket.words[1] = kTaken;
      bucket.has_others = 1;
      return;
    }
    if (bucket.words[which] != 0) continue;
    bucket.keys[which] = key;
    bucket.words[which] = word;
    return;
  }
  bucket.has_others = 1;
}

uint32_t ShortKeyCache::Look(const QuernColumn* keys, uint64_t first, const uint32_t* rows, uint32_t n, uint32_t* found,
                             uint64_t* tuples, uint32_t* others, uint32_t* num_others) {
  Loops::Lists lists = {found, tuples, others, has_long_ ? UINT64_MAX : 0};
  uint32_t num_even = 0, length = 0;
  if (rows == nullptr && field_.storage == kVar32) num_even = Loops::NumEven(keys[0], first, n, &length);
  if (num_even != 0) {
    const uint8_t* const bytes =
        static_cast<const uint8_t*>(keys[0].values) + blocks::LoadAt<int32_t>(keys[0].offsets, first);
#if defined(__x86_64__)
    if (HasAvx2()) Loops::LookUpEvenAvx2(buckets(), shift_, bytes, length, num_even, &lists);
    else
#endif
      Loops::LookUpEvenBaseline(buckets(), shift_, bytes, length, num_even, &lists);
  }
  WithStorage(field_.storage, [&]<Storage kStorage>() {
    const auto look = [&]<bool kHasRows>() {
#if defined(__x86_64__)
      if (HasAvx2())
        return Loops::LookUpAvx2<kStorage, kHasRows>(buckets(), shift_, keys[0], field_.width_bytes, first, rows,
                                                     num_even, n, &lists);
#endif
      Loops::LookUpBaseline<kStorage, kHasRows>(buckets(), shift_, keys[0], field_.width_bytes, first, rows, num_even,
                                                n, &lists);
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
