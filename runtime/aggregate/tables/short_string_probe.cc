// SPDX-License-Identifier: Apache-2.0
// Probing the directory and comparing keys are two passes over a batch (directory_groups.cc), so that lines arrive
// before they are used. Where directory and tuples are in a cache, a third of a row's time goes to work between the
// passes: lists of candidates, a second read of the column for each, tests for every kind of key. There, one pass is
// enough, in which the processor itself has several rows in flight:
//
//     entry      of the slot, or of the next one where the tag differs: by arithmetic, since this is not predictable
//     compare    the length, and 32 bytes of string and tuple under a mask of the length; the number
//
// Strings in one column need no test of where they end: all but the last ones are followed by bytes of the next ones.
#include "runtime/aggregate/tables/short_string_probe.h"

#include <algorithm>
#include <type_traits>

#include "runtime/base/cpu.h"
#include "runtime/blocks/blocks.h"
#include "runtime/rows/prefetch_lines.h"

namespace quern {
namespace {

// Stands for the tuple of an empty entry: a length that no string has.
constexpr uint32_t kNobodyBytes = 256;
struct Nobody {
  alignas(64) uint8_t bytes[kNobodyBytes];
  constexpr Nobody() : bytes() {
    for (uint8_t& byte : bytes) byte = 0xff;
  }
};
constexpr Nobody kNobody;

struct Strings {
  const uint8_t* offsets;  // of the batch's first row
  const uint8_t* bytes;
  const uint8_t* numbers;
  uint64_t number_offset;  // in a tuple, whose string lies at its beginning
  uint32_t held_bytes;
  ShortStringProbe::NullBit string_null, number_null;
};

struct NoNumber {};

QUERN_INLINE bool IsNull(const ShortStringProbe::NullBit& bit, const uint8_t* tuple) {
  return (tuple[bit.offset] & bit.mask) != 0;
}

QUERN_INLINE bool IsString(const uint8_t* string, uint32_t length, uint32_t held_bytes, const uint8_t* tuple) {
  typedef uint64_t U64x4 __attribute__((vector_size(32)));
  const uint8_t* const mask = blocks::ShortMask(std::min(length, held_bytes));
  const U64x4 difference = (blocks::Load<U64x4>(string) ^ blocks::Load<U64x4>(tuple + 4)) & blocks::Load<U64x4>(mask);
  const bool is_equal = (difference[0] | difference[1] | difference[2] | difference[3]) == 0;
  return (static_cast<int>(is_equal) & static_cast<int>(blocks::Load<uint32_t>(tuple) == length) &
          static_cast<int>(length <= held_bytes)) != 0;
}

template <class Number, bool kNullable, uint32_t kRowsAhead>
QUERN_INLINE uint32_t FindRows(const DirectoryView& directory, const Strings& strings, const uint64_t* hashes,
                               uint32_t n, uint8_t** tuples, uint32_t* others) {
  const Strings s = strings;
  const uint64_t* const entries = directory.entries;
  const uint64_t mask = directory.mask, shift = directory.shift - directory.common_bits;
  uint64_t num_others = 0;
  for (uint64_t i = 0; i < n; ++i) {
    PrefetchIf(kRowsAhead, &entries[(hashes[i + kRowsAhead] >> shift) & mask]);
    const uint64_t hash = hashes[i], slot = hash >> shift;
    const uint64_t is_other = ((entries[slot & mask] ^ hash) & kTagMask) != 0;
    const uint64_t found = entries[(slot + is_other) & mask];
    const uint8_t* const tuple = found == 0 ? kNobody.bytes : reinterpret_cast<const uint8_t*>(found >> kTagBits);
    tuples[i] = const_cast<uint8_t*>(tuple);
    others[num_others] = static_cast<uint32_t>(i);
    const int32_t begin = blocks::LoadAt<int32_t>(s.offsets, i);
    const uint32_t length = static_cast<uint32_t>(blocks::LoadAt<int32_t>(s.offsets, i + 1) - begin);
    int is_group = IsString(s.bytes + begin, length, s.held_bytes, tuple);
    if constexpr (!std::is_same_v<Number, NoNumber>)
      is_group &= blocks::LoadAt<Number>(s.numbers, i) == blocks::Load<Number>(tuple + s.number_offset);
    if constexpr (kNullable)
      is_group &= static_cast<int>(!IsNull(s.string_null, tuple)) & static_cast<int>(!IsNull(s.number_null, tuple));
    num_others += is_group ^ 1;
  }
  return static_cast<uint32_t>(num_others);
}

template <class Number, bool kNullable, uint32_t kRowsAhead>
struct Loops {
  static uint32_t Portable(const DirectoryView& directory, const Strings& strings, const uint64_t* hashes, uint32_t n,
                           uint8_t** tuples, uint32_t* others) {
    return FindRows<Number, kNullable, kRowsAhead>(directory, strings, hashes, n, tuples, others);
  }
#if defined(__x86_64__)
  __attribute__((target("avx2,bmi,bmi2"))) static uint32_t Avx2(const DirectoryView& directory, const Strings& strings,
                                                                const uint64_t* hashes, uint32_t n, uint8_t** tuples,
                                                                uint32_t* others) {
    return FindRows<Number, kNullable, kRowsAhead>(directory, strings, hashes, n, tuples, others);
  }
#endif
};

// Calls f.operator()<Number, kNullable>().
template <class F>
uint32_t WithNumber(uint32_t number_bytes, bool nullable, F&& f) {
  if (number_bytes == 0)
    return nullable ? f.template operator()<NoNumber, true>() : f.template operator()<NoNumber, false>();
  if (number_bytes == 4)
    return nullable ? f.template operator()<uint32_t, true>() : f.template operator()<uint32_t, false>();
  return nullable ? f.template operator()<uint64_t, true>() : f.template operator()<uint64_t, false>();
}

// Calls f.operator()<kRowsAhead>(), a power of two within the setting's distance: the loop has no register left for a
// distance, and loading it costs two instructions a row.
template <class F>
uint32_t WithRowsAhead(const PrefetchSetting& setting, F&& f) {
  static_assert(ShortStringProbe::kHashesBehind == 16);
  if (setting.distance == 0) return f.template operator()<0>();
  if (setting.distance < 8) return f.template operator()<4>();
  return setting.distance < 16 ? f.template operator()<8>() : f.template operator()<16>();
}

// Rows whose strings are followed by so much of the column that kShortBytes bytes can be read from their start.
uint32_t RowsBeforeLast(const uint8_t* offsets, uint32_t n) {
  const int64_t end = blocks::LoadAt<int32_t>(offsets, n);
  while (n > 0 && end - blocks::LoadAt<int32_t>(offsets, n - 1) < blocks::kShortBytes) --n;
  return n;
}

}  // namespace

ShortStringProbe::ShortStringProbe(const QuernRowLayout& group, bool adapts)
    : serves_(group.packed_bytes == 0), gate_(Gate::kShortStrings, adapts) {
  uint32_t num_strings = 0, num_numbers = 0;
  for (uint32_t k = 0; k < group.num_keys && serves_; ++k) {
    const QuernField& key = group.keys[k];
    const bool is_string = key.storage == kVar32;
    const uint32_t number_bytes = key.storage == k32 ? 4 : key.storage == k64 ? 8 : 0;
    const uint32_t end = key.tuple_offset + (is_string ? 4 + blocks::kShortBytes : number_bytes);
    serves_ = (is_string ? key.rule == 0 && key.tuple_offset == 0 : number_bytes != 0) &&
              key.index_storage == kNoStorage && end <= std::min(group.tuple_bytes, kNobodyBytes) &&
              key.null_offset < kNobodyBytes;
    nullable_ |= key.null_mask != 0;
    if (is_string) {
      ++num_strings;
      string_key_ = k;
      string_null_ = {key.null_offset, key.null_mask};
      held_bytes_ = std::min(blocks::InlineBytes(key.width_bytes), blocks::kShortBytes);
    } else {
      ++num_numbers;
      number_key_ = k;
      number_null_ = {key.null_offset, key.null_mask};
      number_bytes_ = number_bytes;
      number_offset_ = key.tuple_offset;
    }
  }
  serves_ &= num_strings == 1 && num_numbers <= 1;
}

bool ShortStringProbe::Takes(const KeyRows& rows) {
  if (!serves_ || rows.rows != nullptr) return false;
  const bool has_nulls =
      rows.keys[string_key_].validity != nullptr || (number_bytes_ != 0 && rows.keys[number_key_].validity != nullptr);
  if (nullable_ && has_nulls) return false;
  return gate_.TakeTurn();
}

uint32_t ShortStringProbe::Find(const DirectoryView& directory, const PrefetchSetting& setting, const KeyRows& rows,
                                uint64_t* hashes, uint8_t** tuples, uint32_t* others) {
  const QuernColumn& column = rows.keys[string_key_];
  Strings strings = {};
  strings.offsets = static_cast<const uint8_t*>(column.offsets) + rows.first * sizeof(int32_t);
  strings.bytes = static_cast<const uint8_t*>(column.values);
  if (number_bytes_ != 0)
    strings.numbers = static_cast<const uint8_t*>(rows.keys[number_key_].values) + rows.first * number_bytes_;
  strings.number_offset = number_offset_;
  strings.held_bytes = held_bytes_;
  strings.string_null = string_null_;
  strings.number_null = number_null_;
  const uint32_t n = RowsBeforeLast(strings.offsets, rows.n);
  std::fill_n(hashes + rows.n, kHashesBehind, 0);
  uint32_t num_others = WithNumber(number_bytes_, nullable_, [&]<class Number, bool kNullable>() {
    return WithRowsAhead(setting, [&]<uint32_t kRowsAhead>() {
#if defined(__x86_64__)
      if (HasAvx2()) return Loops<Number, kNullable, kRowsAhead>::Avx2(directory, strings, hashes, n, tuples, others);
#endif
      return Loops<Number, kNullable, kRowsAhead>::Portable(directory, strings, hashes, n, tuples, others);
    });
  });
  for (uint32_t i = n; i < rows.n; ++i) others[num_others++] = i;
  gate_.Count(rows.n, rows.n - num_others);
  return num_others;
}

}  // namespace quern
