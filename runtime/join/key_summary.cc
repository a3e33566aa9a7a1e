// SPDX-License-Identifier: Apache-2.0
// Reads keys back from a table. In packed-key tables a position gives the word, whether or not there are tuples; bits
// of the word give the key:
//
//     dense, base 100            bit 7 is set           word 107
//     open, sentinel 99          slot holds 8           word 8 + 99 = 107
//     keys=i32,bool              word 0x1_0000_006b     keys[0] 107, keys[1] true
//
// One ordered key has its range from the build side already. Where a table does not compare keys while it is built
// (unchained), nobody knows how many are different: there are at most as many as tuples, and as values in the range.
#include "runtime/join/key_summary.h"

#include <algorithm>
#include <bit>

#include "runtime/base/status.h"
#include "runtime/blocks/blocks.h"
#include "runtime/rows/row_layout.h"

namespace quern {
namespace {

using blocks::Load;
using blocks::uint128_t;

constexpr uint64_t kStopRows = uint64_t{1} << 20;  // between two looks at the stop flag: about a millisecond

bool IsOrdered(const QuernField& key) {
  return key.storage == kBit || key.storage == k8 || key.storage == k16 || key.storage == k32 || key.storage == k64 ||
         key.storage == k128;
}

uint32_t ValueBits(const QuernField& key) { return key.storage == kBit ? 1 : 8 * StorageFieldBytes(key.storage); }

// The lowest bits of a value as a number of 128 bits.
uint128_t Extended(const QuernField& key, uint128_t value) {
  const uint32_t unused = 128 - ValueBits(key);
  const uint128_t shifted = value << unused;
  return key.is_signed ? static_cast<uint128_t>(static_cast<__int128>(shifted) >> unused) : shifted >> unused;
}

// Numbers that are ordered as unsigned ones: the sign is flipped.
class Range {
 public:
  explicit Range(const QuernField& key) : key_(key), flip_(uint128_t{key.is_signed} << 127) {}

  void Add(uint128_t value) {
    const uint128_t number = Extended(key_, value) ^ flip_;
    min_ = std::min(min_, number);
    max_ = std::max(max_, number);
  }
  void AddNull() { has_null_ = true; }

  void WriteTo(KeySummary* summary) const {
    summary->has_null = has_null_;
    summary->has_range = min_ <= max_ && IsOrdered(key_);
    if (!summary->has_range) return;
    summary->min = min_ ^ flip_;
    summary->max = max_ ^ flip_;
  }

 private:
  const QuernField& key_;
  const uint128_t flip_;
  uint128_t min_ = ~uint128_t{0}, max_ = 0;
  bool has_null_ = false;
};

// Calls f(position) for positions 0 .. n-1, unless the job is to stop.
template <class F>
absl::Status ForEachPosition(uint64_t n, const StopFlag* stop_flag, F&& f) {
  for (uint64_t first = 0; first < n; first += kStopRows) {
    if (stop_flag != nullptr) QUERN_RETURN_IF_ERROR(stop_flag->Check());
    const uint64_t end = std::min(n, first + kStopRows);
    for (uint64_t i = first; i < end; ++i) f(i);
  }
  return absl::OkStatus();
}

// Calls f(word) for each key of a packed-key table, and for each tuple of an unchained one.
template <class Word, class F>
absl::Status ForEachWord(const JoinTable& table, const StopFlag* stop_flag, F&& f) {
  switch (table.layout) {
    case Layout::kBitmap:
    case Layout::kDense:
    case Layout::kRanked:
      return ForEachPosition((table.range + 63) / 64, stop_flag, [&](uint64_t i) {
        for (uint64_t bits = table.bitmap[i]; bits != 0; bits &= bits - 1)
          f((table.base + i * 64 + static_cast<uint64_t>(std::countr_zero(bits))) ^ table.sign_bit);
      });
    case Layout::kCsr:
      return ForEachPosition(table.range, stop_flag, [&](uint64_t i) {
        if (table.runs[i] != table.runs[static_cast<int64_t>(i) - 1]) f((table.base + i) ^ table.sign_bit);
      });
    case Layout::kOpen:
    case Layout::kCounting:
      return ForEachPosition(table.num_slots, stop_flag, [&](uint64_t i) {
        const Word kept = Load<Word>(table.tuples + i * table.slot_bytes);
        if (kept != 0) f(static_cast<Word>(kept + static_cast<Word>(table.sentinel)));
      });
    case Layout::kUnchained:
      return ForEachPosition(table.num_tuples, stop_flag,
                             [&](uint64_t i) { f(Load<Word>(table.tuples + i * table.tuple_bytes)); });
  }
  return absl::OkStatus();
}

absl::Status AddWords(const JoinTable& table, const QuernField& key, const StopFlag* stop_flag, Range* range) {
  const bool may_be_null = key.nullable && key.null_equal;
  const auto add = [&](uint64_t word) {
    if (may_be_null && (word >> key.packed_null_bit & 1) != 0) range->AddNull();
    else range->Add(word >> key.packed_shift);
  };
  return table.packed_bytes == 4 ? ForEachWord<uint32_t>(table, stop_flag, add)
                                 : ForEachWord<uint64_t>(table, stop_flag, add);
}

absl::Status AddFields(const JoinTable& table, const QuernField& key, const StopFlag* stop_flag, Range* range) {
  const uint32_t bytes = IsOrdered(key) ? std::max(ValueBits(key) / 8, 1u) : 0;
  return ForEachPosition(table.num_tuples, stop_flag, [&](uint64_t i) {
    const uint8_t* const tuple = table.tuples + i * table.tuple_bytes;
    if ((tuple[key.null_offset] & key.null_mask) != 0) return range->AddNull();
    uint128_t value = 0;
    __builtin_memcpy(&value, tuple + key.tuple_offset, bytes);
    range->Add(value);
  });
}

// The different keys of a table that knows them.
absl::StatusOr<uint64_t> CountKeys(const JoinTable& table, const StopFlag* stop_flag) {
  uint64_t num_keys = 0;
  if (table.layout == Layout::kOpen || table.layout == Layout::kCounting) return table.num_slots_taken;
  if (table.layout == Layout::kCsr) {
    QUERN_RETURN_IF_ERROR(ForEachPosition(table.range, stop_flag, [&](uint64_t i) {
      num_keys += table.runs[i] != table.runs[static_cast<int64_t>(i) - 1];
    }));
    return num_keys;
  }
  QUERN_RETURN_IF_ERROR(ForEachPosition((table.range + 63) / 64, stop_flag, [&](uint64_t i) {
    num_keys += static_cast<uint64_t>(std::popcount(table.bitmap[i]));
  }));
  return num_keys;
}

}  // namespace

absl::StatusOr<KeySummary> SummariseKey(const JoinTable& table, const QuernRowLayout& rows,
                                        const PackedKeyRange& packed, uint32_t key, const StopFlag* stop_flag) {
  const QuernField& field = rows.keys[key];
  const bool may_be_null = field.nullable && field.null_equal, is_packed = rows.packed_bytes != 0;
  Range range(field);
  if (is_packed && rows.num_keys == 1 && !may_be_null) {
    if (!packed.is_empty()) range.Add(packed.min ^ table.sign_bit);
    if (!packed.is_empty()) range.Add(packed.max ^ table.sign_bit);
  } else if (IsOrdered(field) || may_be_null) {
    QUERN_RETURN_IF_ERROR(is_packed ? AddWords(table, field, stop_flag, &range)
                                    : AddFields(table, field, stop_flag, &range));
  }
  KeySummary summary;
  range.WriteTo(&summary);
  if (table.layout != Layout::kUnchained) {
    QUERN_ASSIGN_OR_RETURN(summary.num_keys, CountKeys(table, stop_flag));
    summary.num_keys_is_exact = true;
    return summary;
  }
  summary.num_keys = table.num_tuples;
  const uint128_t others = summary.max - summary.min;  // values of the range, less 1
  if (rows.num_keys == 1 && summary.has_range && others < summary.num_keys)
    summary.num_keys = std::min(summary.num_keys, static_cast<uint64_t>(others) + 1 + (summary.has_null ? 1 : 0));
  summary.num_keys_is_exact = summary.num_keys <= 1;
  return summary;
}

KeySummary SummariseRange(const QuernRowLayout& rows, const PackedKeyRange& packed, uint64_t sign_bit, uint32_t key) {
  const QuernField& field = rows.keys[key];
  const bool may_be_null = field.nullable && field.null_equal;
  Range range(field);
  if (rows.packed_bytes != 0 && rows.num_keys == 1 && !may_be_null && !packed.is_empty()) {
    range.Add(packed.min ^ sign_bit);
    range.Add(packed.max ^ sign_bit);
  }
  if (may_be_null) range.AddNull();
  KeySummary summary;
  range.WriteTo(&summary);
  return summary;
}

}  // namespace quern
