// SPDX-License-Identifier: Apache-2.0
// Building tables over key words, and inserting them into open ones. The loops are those of look-ups
// (packed_key_look_up.cc), with stores.
#include "runtime/join/tables/packed_key_table.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/base/cpu.h"
#include "runtime/base/thresholds.h"
#include "runtime/blocks/blocks.h"
#include "runtime/join/tables/packed_key_slots.h"
#include "runtime/rows/prefetch_lines.h"

namespace quern {
namespace {

using blocks::Load;
using blocks::Store;

constexpr uint32_t kBlockRows = 256;      // of a build, where the setting has no batch_rows
constexpr uint32_t kMaxBlockRows = 1024;  // small enough for the L1 cache
constexpr uint32_t kLongestWalk = thresholds::kLongestOpenProbe;

// Calls f(words of a block, its first tuple, its number of rows) for each block of a span until f returns false.
template <class F>
bool ForEachBlock(const PrefetchSetting& setting, const TupleFormat& format, const TupleSpan& span, F&& f) {
  uint64_t words[kMaxBlockRows];
  const uint32_t max_rows =
      setting.batch_rows == 0 ? kBlockRows : std::min<uint32_t>(setting.batch_rows, kMaxBlockRows);
  for (uint64_t first = 0; first < span.num_tuples; first += max_rows) {
    const uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(max_rows, span.num_tuples - first));
    const uint8_t* tuples = span.tuples + first * format.tuple_bytes;
    LoadPackedKeys(tuples, n, format, words);
    if (!f(words, tuples, n)) return false;
  }
  return true;
}

// Makes copies of the common sizes register moves.
template <class F>
auto WithTupleBytes(uint32_t bytes, F&& f) {
  switch (bytes) {
    case 4: return f.template operator()<4>();
    case 8: return f.template operator()<8>();
    case 16: return f.template operator()<16>();
    case 24: return f.template operator()<24>();
    case 32: return f.template operator()<32>();
    default: return f.template operator()<0>();
  }
}

}  // namespace

void PackedKeyRange::Add(const PackedKeyRange& other) {
  ascends = ascends && other.ascends && (is_empty() || other.is_empty() || other.min > max);
  min = std::min(min, other.min);
  max = std::max(max, other.max);
}

void PackedKeyRange::Add(const uint64_t* words, uint32_t n, uint64_t sign_bit) {
  if (n == 0) return;
  const uint64_t first = words[0] ^ sign_bit;
  if (ascends) {
    bool falls = !is_empty() && first <= max;
    for (uint32_t i = 1; i < n; ++i) falls |= (words[i] ^ sign_bit) <= (words[i - 1] ^ sign_bit);
    ascends = !falls;
    if (ascends) {
      min = std::min(min, first);
      max = words[n - 1] ^ sign_bit;
      return;
    }
  }
  uint64_t low = min, high = max;
  for (uint32_t i = 0; i < n; ++i) {
    const uint64_t ordered = words[i] ^ sign_bit;
    low = std::min(low, ordered);
    high = std::max(high, ordered);
  }
  min = low;
  max = high;
}

// ---- dense ----------------------------------------------------------------------------------------------------

namespace {

// kStops: stop at a bit that is already set.
template <bool kStops, class Prefetch>
[[gnu::noinline]] Inserted Fill(const JoinTable& table, const TupleFormat& format, const TupleSpan& span,
                                uint64_t* bitmap) {
  const uint64_t base = table.base, sign_bit = table.sign_bit;
  const bool all = ForEachBlock(table.build, format, span, [&](const uint64_t* words, const uint8_t*, uint32_t n) {
    uint64_t twice = 0;
    const auto prefetch = [&](uint32_t i) { Prefetch::For(&bitmap[((words[i] ^ sign_bit) - base) / 64]); };
    const auto set = [&](uint32_t i) {
      const uint64_t number = (words[i] ^ sign_bit) - base;
      if constexpr (kStops) twice |= bitmap[number / 64] >> (number % 64);
      bitmap[number / 64] |= uint64_t{1} << (number % 64);
    };
    ForEachRow<Prefetch>(n, RowsAhead(table.build, n), prefetch, set);
    return (twice & 1) == 0;
  });
  return all ? Inserted::kAll : Inserted::kDuplicate;
}

}  // namespace

Inserted FillBitmap(const JoinTable& table, const TupleFormat& format, const TupleSpan& span, Duplicates duplicates,
                    uint64_t* bitmap) {
  const auto fill = [&]<class Prefetch>() {
    if (duplicates == Duplicates::kStop) return Fill<true, Prefetch>(table, format, span, bitmap);
    return Fill<false, Prefetch>(table, format, span, bitmap);
  };
  return table.range > kPrefetchedBits ? WithPrefetch(table.build, fill) : fill.operator()<NoPrefetch>();
}

namespace {

QUERN_INLINE void RankAll(const JoinTable& table, uint64_t tuple_bytes, uint32_t n, uint64_t* words) {
  const uint64_t base = table.base, sign_bit = table.sign_bit;
  const uint64_t* const bitmap = table.bitmap;
  const uint32_t* const ranks = table.ranks;
  for (uint32_t i = 0; i < n; ++i) {
    const uint64_t number = (words[i] ^ sign_bit) - base, below = (uint64_t{1} << number % 64) - 1;
    const auto in_word = static_cast<uint32_t>(std::popcount(bitmap[number / 64] & below));
    words[i] = uint64_t{ranks[number / 64] + in_word} * tuple_bytes;
  }
}

#if defined(__x86_64__)
__attribute__((target("popcnt"))) void RankAllByInstruction(const JoinTable& table, uint64_t tuple_bytes, uint32_t n,
                                                            uint64_t* words) {
  RankAll(table, tuple_bytes, n, words);
}
#endif

}  // namespace

void ToRankedPlaces(const JoinTable& table, uint64_t tuple_bytes, uint32_t n, uint64_t* words) {
#if defined(__x86_64__)
  if (HasAvx2()) return RankAllByInstruction(table, tuple_bytes, n, words);
#endif
  RankAll(table, tuple_bytes, n, words);
}

namespace {

// Turns words into bytes from the first tuple to their places.
using ToPlaces = void (*)(const JoinTable& table, uint64_t tuple_bytes, uint32_t n, uint64_t* words);

void ToDensePlaces(const JoinTable& table, uint64_t tuple_bytes, uint32_t n, uint64_t* words) {
  const uint64_t base = table.base, sign_bit = table.sign_bit;  // copies, which stores cannot change
  for (uint32_t i = 0; i < n; ++i) words[i] = ((words[i] ^ sign_bit) - base) * tuple_bytes;
}

void PlaceAll(const JoinTable& table, const TupleFormat& format, const TupleSpan& span, ToPlaces to_places) {
  const auto place = [&]<uint32_t kBytes, class Prefetch>() {
    const uint64_t bytes = kBytes != 0 ? kBytes : format.tuple_bytes;
    uint8_t* const places = table.tuples;
    ForEachBlock(table.build, format, span, [&](uint64_t* words, const uint8_t* tuple, uint32_t n) {
      to_places(table, bytes, n, words);
      const auto prefetch = [&](uint32_t i) {
        Prefetch::For(places + words[i]);
        Prefetch::For(places + words[i] + bytes - 1);
      };
      ForEachRow<Prefetch>(n, RowsAhead(table.build, n), prefetch,
                           [&](uint32_t i) { std::memcpy(places + words[i], tuple + i * bytes, bytes); });
      return true;
    });
  };
  WithPrefetch(table.build, [&]<class Prefetch>() {
    WithTupleBytes(format.tuple_bytes, [&]<uint32_t kBytes>() { place.template operator()<kBytes, Prefetch>(); });
  });
}

}  // namespace

// A word of the bitmap is written as often as it gets a bit, and never read: what it has is in a register.
void CopyInOrder(const JoinTable& table, const TupleFormat& format, const TupleSpan& span, uint64_t* bitmap,
                 uint8_t* to) {
  const uint64_t base = table.base, sign_bit = table.sign_bit;
  ForEachBlock(table.build, format, span, [&](const uint64_t* words, const uint8_t* tuples, uint32_t n) {
    uint64_t at = ((words[0] ^ sign_bit) - base) / 64, bits = bitmap[at];
    for (uint32_t i = 0; i < n; ++i) {
      const uint64_t number = (words[i] ^ sign_bit) - base, bit = uint64_t{1} << number % 64;
      bits = number / 64 == at ? bits | bit : bit;
      at = number / 64;
      bitmap[at] = bits;
    }
    std::memcpy(to, tuples, uint64_t{n} * format.tuple_bytes);
    to += uint64_t{n} * format.tuple_bytes;
    return true;
  });
}

void PlaceDense(const JoinTable& table, const TupleFormat& format, const TupleSpan& span) {
  PlaceAll(table, format, span, ToDensePlaces);
}

uint64_t SumRanks(const uint64_t* bitmap, uint64_t num_words, uint32_t* ranks) {
  uint64_t n = 0;
  for (uint64_t i = 0; i < num_words; ++i) {
    ranks[i] = static_cast<uint32_t>(n);
    n += static_cast<uint64_t>(std::popcount(bitmap[i]));
  }
  return n;
}

void PlaceRanked(const JoinTable& table, const TupleFormat& format, const TupleSpan& span) {
  PlaceAll(table, format, span, ToRankedPlaces);
}

namespace {

// Adds one and returns what was there. The addition locks the line, which costs some twenty cycles even where no other
// thread has it, so that a single thread does without.
template <RunsOf kOf>
QUERN_INLINE uint32_t TakeNext(uint32_t* run) {
  if constexpr (kOf == RunsOf::kThreads) return __atomic_fetch_add(run, 1, __ATOMIC_RELAXED);
  else return (*run)++;
}

// Counts the rows of each run in a block whose words are run numbers.
template <RunsOf kOf, class Prefetch>
void CountBlock(const PrefetchSetting& setting, const uint64_t* numbers, uint32_t n, uint32_t* runs) {
  ForEachRow<Prefetch>(
      n, RowsAhead(setting, n), [&](uint32_t i) { Prefetch::For(&runs[numbers[i]]); },
      [&](uint32_t i) { TakeNext<kOf>(&runs[numbers[i]]); });
}

// Prefetches two dependent lines: the current end of a run, and the place to which it points. Where other threads place
// tuples, too, a place may be taken by then: only the prefetch is in vain.
template <RunsOf kOf, uint32_t kBytes, class Prefetch>
void PlaceBlock(const PrefetchSetting& setting, const uint64_t* numbers, uint32_t n, uint32_t* runs,
                const uint8_t* tuple, uint64_t tuple_bytes, uint8_t* tuples) {
  const uint64_t bytes = kBytes != 0 ? kBytes : tuple_bytes;
  const bool prefetches_places = setting.stages >= 2;
  const uint32_t runs_ahead = prefetches_places ? RowsAheadTwice(setting, n) : RowsAhead(setting, n);
  const uint32_t places_ahead = prefetches_places ? RowsAhead(setting, n) : n;
  const auto prefetch_run = [&](uint32_t i) { Prefetch::For(&runs[numbers[i]]); };
  const auto prefetch_place = [&](uint32_t i) {
    Prefetch::For(tuples + __atomic_load_n(&runs[numbers[i]], __ATOMIC_RELAXED) * bytes);
  };
  if constexpr (Prefetch::kPrefetches) {
    for (uint32_t i = 0; i < runs_ahead; ++i) prefetch_run(i);
    for (uint32_t i = 0; i < places_ahead && prefetches_places; ++i) prefetch_place(i);
  }
  uint32_t i = 0;
  const auto place = [&] { std::memcpy(tuples + TakeNext<kOf>(&runs[numbers[i]]) * bytes, tuple + i * bytes, bytes); };
  for (; Prefetch::kPrefetches && i + std::min(runs_ahead, places_ahead) < n; ++i) {
    if (i + runs_ahead < n) prefetch_run(i + runs_ahead);
    if (i + places_ahead < n) prefetch_place(i + places_ahead);
    place();
  }
  for (; i < n; ++i) place();
}

void ToNumbers(const JoinTable& table, uint64_t* words, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) words[i] = (words[i] ^ table.sign_bit) - table.base;
}

}  // namespace

void CountRuns(const JoinTable& table, const TupleFormat& format, const TupleSpan& span, RunsOf of, uint32_t* runs) {
  WithPrefetch(table.build, [&]<class Prefetch>() {
    ForEachBlock(table.build, format, span, [&](uint64_t* words, const uint8_t*, uint32_t n) {
      ToNumbers(table, words, n);
      if (of == RunsOf::kThreads) CountBlock<RunsOf::kThreads, Prefetch>(table.build, words, n, runs);
      else CountBlock<RunsOf::kThread, Prefetch>(table.build, words, n, runs);
      return true;
    });
  });
}

void SumRuns(uint64_t range, uint32_t* runs) {
  uint32_t begin = 0;
  for (uint64_t i = 0; i < range; ++i) {
    const uint32_t n = runs[i];
    runs[i] = begin;
    begin += n;
  }
}

void PlaceRuns(const JoinTable& table, const TupleFormat& format, const TupleSpan& span, RunsOf of, uint32_t* runs,
               uint8_t* tuples) {
  if (tuples == nullptr) return CountRuns(table, format, span, of, runs);
  const auto place = [&]<uint32_t kBytes, class Prefetch>() {
    ForEachBlock(table.build, format, span, [&](uint64_t* words, const uint8_t* tuple, uint32_t n) {
      ToNumbers(table, words, n);
      const auto block = [&]<RunsOf kOf>() {
        PlaceBlock<kOf, kBytes, Prefetch>(table.build, words, n, runs, tuple, format.tuple_bytes, tuples);
      };
      if (of == RunsOf::kThreads) block.template operator()<RunsOf::kThreads>();
      else block.template operator()<RunsOf::kThread>();
      return true;
    });
  };
  WithPrefetch(table.build, [&]<class Prefetch>() {
    WithTupleBytes(format.tuple_bytes, [&]<uint32_t kBytes>() { place.template operator()<kBytes, Prefetch>(); });
  });
}

// ---- open: building ----------------------------------------------------------------------------------------------

namespace {

// Rows of a block that have no slot yet, and the slot that each visits next.
struct Pending {
  uint64_t slots[kMaxBlockRows];
  uint32_t rows[kMaxBlockRows];
  uint32_t n = 0;
};

struct InsertOutcome {
  uint32_t longest_walk = 0;
  uint64_t num_inserted = 0;
  bool met_duplicate = false;
};

// Moves each pending row one slot on: a row that finds its slot empty takes it; a row that meets another key stays
// pending. A row that may not write writes to a place that nobody reads, so that no branch depends on what was found.
// kBytes: size of a tuple; 0: known at run time. A slot's size is the next power of two. kCounts: a slot is a word and
// a number.
template <class Word, uint32_t kBytes, bool kCounts, class Prefetch>
void UpdateAll(const JoinTable& table, const TupleFormat& format, const uint64_t* words, const uint8_t* tuples,
               uint32_t step, Pending* pending, InsertOutcome* outcome) {
  const uint64_t slot_bytes = kCounts ? 2 * sizeof(Word) : std::has_single_bit(kBytes) ? kBytes : table.slot_bytes;
  const uint64_t tuple_bytes = kBytes != 0 ? kBytes : format.tuple_bytes;
  const Word sentinel = static_cast<Word>(table.sentinel);
  alignas(64) uint8_t nowhere[64];
  uint8_t* const slots = table.tuples;
  const Walk walk = {table.line_mask, table.region_mask};
  const uint32_t n = pending->n;
  uint64_t num_inserted = 0;
  uint32_t left = 0;
  bool met_duplicate = false;
  const auto prefetch = [&](uint32_t i) { Prefetch::For(slots + pending->slots[i] * slot_bytes); };
  ForEachRow<Prefetch>(n, RowsAhead(table.build, n), prefetch, [&](uint32_t i) {
    const uint32_t row = pending->rows[i];
    const uint64_t at = pending->slots[i];
    uint8_t* slot = slots + at * slot_bytes;
    const Word key = static_cast<Word>(static_cast<Word>(words[row]) - sentinel), found = Load<Word>(slot);
    const bool is_empty = found == 0, is_equal = found == key;
    if constexpr (kCounts) {
      const Word count = Load<Word>(slot + sizeof(Word));
      uint8_t* to = (is_empty | is_equal) ? slot : nowhere;
      Store(to, key);
      Store(to + sizeof(Word), static_cast<Word>(count + 1));
    } else {
      uint8_t* to = is_empty ? slot : nowhere;
      std::memcpy(to, tuples + row * tuple_bytes, tuple_bytes);
      Store(to, key);
    }
    num_inserted += is_empty;
    met_duplicate |= is_equal;
    pending->rows[left] = row;
    pending->slots[left] = walk.NextSlot(at, step);
    left += !(is_empty | is_equal);
  });
  asm volatile(""
               :
               : "r"(nowhere)
               : "memory");  // otherwise compilers see that nobody reads it, and branch round the store
  pending->n = left;
  outcome->num_inserted += num_inserted;
  outcome->met_duplicate |= met_duplicate;
}

// All settings share the rounds after the first.
template <class Word, uint32_t kBytes, bool kCounts>
[[gnu::noinline]] void StepOn(const JoinTable& table, const TupleFormat& format, const uint64_t* words,
                              const uint8_t* tuples, uint32_t step, Pending* pending, InsertOutcome* outcome) {
  UpdateAll<Word, kBytes, kCounts, NoPrefetch>(table, format, words, tuples, step, pending, outcome);
}

// Only the first round prefetches: a walk stays in its first line as long as that has slots.
template <class Word, uint32_t kBytes, bool kCounts, class Prefetch>
[[gnu::noinline]] Inserted Insert(const JoinTable& table, const TupleFormat& format, const TupleSpan& span,
                                  Duplicates duplicates, InsertOutcome* outcome) {
  const uint64_t slot_bytes = table.slot_bytes;
  const uint8_t* const slots = table.tuples;
  Inserted result = Inserted::kAll;
  ForEachBlock(table.build, format, span, [&](const uint64_t* words, const uint8_t* tuples, uint32_t n) {
    Pending pending;
    const bool prefetches_all = Prefetch::kPrefetches && RowsAhead(table.build, n) == n;
    HashPackedKeys(words, n, table.zero_hashes, pending.slots);
    for (uint32_t i = 0; i < n; ++i) {
      pending.rows[i] = i;
      pending.slots[i] = SlotOf(pending.slots[i], table.num_slots);
      if (prefetches_all) Prefetch::For(slots + pending.slots[i] * slot_bytes);
    }
    pending.n = n;
    if (prefetches_all)
      UpdateAll<Word, kBytes, kCounts, NoPrefetch>(table, format, words, tuples, 1, &pending, outcome);
    else UpdateAll<Word, kBytes, kCounts, Prefetch>(table, format, words, tuples, 1, &pending, outcome);
    for (uint32_t walk = 1; pending.n > 0; ++walk) {
      if (walk > kLongestWalk) {
        result = Inserted::kTooFar;
        return false;
      }
      outcome->longest_walk = std::max(outcome->longest_walk, walk);
      StepOn<Word, kBytes, kCounts>(table, format, words, tuples, walk + 1, &pending, outcome);
    }
    if (!outcome->met_duplicate || duplicates != Duplicates::kStop) return true;
    result = Inserted::kDuplicate;
    return false;
  });
  return result;
}

}  // namespace

Inserted InsertOpen(const JoinTable& table, const TupleFormat& format, const TupleSpan& span, Duplicates duplicates,
                    uint32_t* max_walk, uint64_t* num_inserted) {
  InsertOutcome outcome;
  const auto insert = [&]<class Word, class Prefetch>() {
    if (table.layout == Layout::kCounting)
      return Insert<Word, 0, true, Prefetch>(table, format, span, duplicates, &outcome);
    return WithTupleBytes(format.tuple_bytes, [&]<uint32_t kBytes>() {
      return Insert<Word, kBytes, false, Prefetch>(table, format, span, duplicates, &outcome);
    });
  };
  const Inserted result = WithPrefetch(table.build, [&]<class Prefetch>() {
    return table.packed_bytes == 4 ? insert.template operator()<uint32_t, Prefetch>()
                                   : insert.template operator()<uint64_t, Prefetch>();
  });
  *max_walk = std::max(*max_walk, outcome.longest_walk);
  *num_inserted += outcome.num_inserted;
  return result;
}

}  // namespace quern
