// SPDX-License-Identifier: Apache-2.0
// The set of a group's distinct values: a state of 16 to 24 bytes that holds a single value itself, and an
// open-addressing table in an AccumulatorMemory from the second value on.
//
// A new value that lies more than thresholds::kLongestDistinctWalk slots behind its first one means that the values'
// hashes are not spread: whoever knows the secret of the process made them meet. The values then move to a table that
// hashes with numbers of its own, which lie behind its slots. The walk is known from two slot numbers, and only new
// values are asked for it: a value that is found has been new, and no walk becomes longer.
#ifndef QUERN_RUNTIME_AGGREGATE_ACCUMULATORS_DISTINCT_SET_H_
#define QUERN_RUNTIME_AGGREGATE_ACCUMULATORS_DISTINCT_SET_H_

#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "runtime/aggregate/accumulators/out_of_line_aggregates.h"
#include "runtime/base/hash_secret.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/blocks/blocks.h"

namespace quern {

// ---- slots: the elements of a table; all zero: empty --------------------------------------------------------------

// A value of up to 8 bytes is its own slot; the value 0, which marks an empty slot, is a flag of the set.
using WordSlot = uint64_t;

// Values of 16 bytes likewise.
struct WideSlot {
  uint64_t low;
  uint64_t high;
};

// Strings: up to 8 bytes lie in the slot, longer ones in a piece of memory.
struct StringSlot {
  uint32_t tag;  // top half of the hash, made odd: not 0; with the secret that the table uses
  uint32_t length;
  union {
    uint8_t own[8];
    uint8_t* piece;
  };

  blocks::Bytes bytes() const { return {length > sizeof(own) ? piece : own, length}; }
};
static_assert(sizeof(WideSlot) == 16 && sizeof(StringSlot) == 16);

inline bool IsEmpty(WordSlot slot) { return slot == 0; }
inline bool IsEmpty(const WideSlot& slot) { return (slot.low | slot.high) == 0; }
inline bool IsEmpty(const StringSlot& slot) { return slot.tag == 0; }

// A table uses the top bits.
inline uint64_t HashOf(WordSlot slot, const blocks::HashSecret& secret) { return blocks::Mix(slot, secret); }
inline uint64_t HashOf(const WideSlot& slot, const blocks::HashSecret& secret) {
  return blocks::Mix(
      blocks::FoldedMultiply(slot.low ^ secret[blocks::kMultiplier1], slot.high ^ secret[blocks::kMultiplier2]),
      secret);
}
inline uint64_t HashOf(const StringSlot& slot, const blocks::HashSecret&) { return uint64_t{slot.tag} << 32; }

inline uint32_t TagOfHash(uint64_t hash) { return static_cast<uint32_t>(hash >> 32) | 1; }
inline uint32_t TagOf(blocks::Bytes s, CollationRule rule, const blocks::HashSecret& secret) {
  return TagOfHash((rule & kWeighsEquality) != 0 ? blocks::HashCollated(s, rule, secret)
                                                 : blocks::HashBytes(s.data, s.length, secret));
}

// The slot of the same value in a table with that secret.
inline WordSlot WithSecret(WordSlot slot, CollationRule, const blocks::HashSecret&) { return slot; }
inline WideSlot WithSecret(const WideSlot& slot, CollationRule, const blocks::HashSecret&) { return slot; }
inline StringSlot WithSecret(StringSlot slot, CollationRule rule, const blocks::HashSecret& secret) {
  slot.tag = TagOf(slot.bytes(), rule, secret);
  return slot;
}

// ---- candidates: values that may be new; strings have a tag, made with the secret that Hash is then given ----------

struct WordCandidate {
  WordSlot value;

  uint64_t Hash(const blocks::HashSecret& secret) const { return HashOf(value, secret); }
  CollationRule rule_of_strings() const { return 0; }
  WordCandidate WithSecret(const blocks::HashSecret&) const { return *this; }
  bool Equals(WordSlot slot) const { return slot == value; }
  absl::Status Fill(WordSlot* slot, AccumulatorMemory*) const { return *slot = value, absl::OkStatus(); }
  void Drop(AccumulatorMemory*) const {}
};

struct WideCandidate {
  WideSlot value;

  uint64_t Hash(const blocks::HashSecret& secret) const { return HashOf(value, secret); }
  CollationRule rule_of_strings() const { return 0; }
  WideCandidate WithSecret(const blocks::HashSecret&) const { return *this; }
  bool Equals(const WideSlot& slot) const { return slot.low == value.low && slot.high == value.high; }
  absl::Status Fill(WideSlot* slot, AccumulatorMemory*) const { return *slot = value, absl::OkStatus(); }
  void Drop(AccumulatorMemory*) const {}
};

struct StringCandidate {
  blocks::Bytes bytes;  // spaces trimmed
  uint32_t tag;
  CollationRule rule;

  static StringCandidate Of(blocks::Bytes s, CollationRule rule, blocks::HashMemo* cache) {
    const uint64_t hash = (rule & kWeighsEquality) != 0
                              ? cache->Hash(s, rule)
                              : blocks::HashBytes(s.data, s.length, blocks::quern_hash_secret);
    return {s, TagOfHash(hash), rule};
  }
  uint64_t Hash(const blocks::HashSecret&) const { return uint64_t{tag} << 32; }
  CollationRule rule_of_strings() const { return rule; }
  StringCandidate WithSecret(const blocks::HashSecret& secret) const {
    return {bytes, TagOf(bytes, rule, secret), rule};
  }
  bool Equals(const StringSlot& slot) const {
    if (slot.tag != tag) return false;
    if ((rule & kWeighsEquality) != 0) return blocks::EqualCollated(slot.bytes(), bytes, rule);
    return slot.length == bytes.length && blocks::EqualBytes(slot.bytes().data, bytes.data, bytes.length);
  }
  absl::Status Fill(StringSlot* slot, AccumulatorMemory* memory) const {
    StringSlot filled = {tag, bytes.length, {}};
    if (bytes.length > sizeof(filled.own)) {
      QUERN_ASSIGN_OR_RETURN(filled.piece, memory->Take(bytes.length));
    }
    if (bytes.length > 0)
      std::memcpy(bytes.length > sizeof(filled.own) ? filled.piece : filled.own, bytes.data, bytes.length);
    *slot = filled;
    return absl::OkStatus();
  }
  void Drop(AccumulatorMemory*) const {}
};

// A string of another set, whose piece this set takes over.
struct MovedString {
  StringSlot from;
  CollationRule rule;

  uint64_t Hash(const blocks::HashSecret& secret) const { return HashOf(from, secret); }
  CollationRule rule_of_strings() const { return rule; }
  MovedString WithSecret(const blocks::HashSecret& secret) const {
    return {quern::WithSecret(from, rule, secret), rule};
  }
  bool Equals(const StringSlot& slot) const { return StringCandidate{from.bytes(), from.tag, rule}.Equals(slot); }
  absl::Status Fill(StringSlot* slot, AccumulatorMemory*) const { return *slot = from, absl::OkStatus(); }
  void Drop(AccumulatorMemory* memory) const {
    if (from.length > sizeof(from.own)) memory->GiveBack(from.piece, from.length);
  }
};

inline WordCandidate Moved(WordSlot slot, CollationRule) { return {slot}; }
inline WideCandidate Moved(const WideSlot& slot, CollationRule) { return {slot}; }
inline MovedString Moved(const StringSlot& slot, CollationRule rule) { return {slot, rule}; }

// ---- the set ------------------------------------------------------------------------------------------------------

// Linear probing from the hash's top bits, with at most 3 of 4 slots taken. All zero: the empty set.
template <class Slot>
struct DistinctSet {
  uint64_t num_slots_taken : 48;
  uint64_t log2_slots : 8;  // 0: no table yet, the only value is `single`
  uint64_t has_zero : 7;    // words: 0 is one of the values
  uint64_t has_secret : 1;  // the table hashes with numbers of its own, which lie behind its slots
  union {
    Slot single;
    Slot* slots;
  };

  uint64_t size() const { return num_slots_taken + has_zero; }
  uint64_t num_slots() const { return log2_slots == 0 ? 1 : uint64_t{1} << log2_slots; }

  void Prefetch(uint64_t hash) const {
    if (log2_slots != 0) PrefetchLine<PrefetchHint::kT0>(slots + (hash >> (64 - log2_slots)));
  }

  // The candidate's tag: made with the secret of the process, by which a value is looked for first even where the table
  // has numbers of its own: what is found there is the value. *Errors*: ResourceExhausted.
  template <class Candidate>
  __attribute__((always_inline)) inline absl::Status Insert(const Candidate& candidate, AccumulatorMemory* memory) {
    const Place place = Find(candidate, blocks::quern_hash_secret);
    if (place.holds_value) return candidate.Drop(memory), absl::OkStatus();
    if constexpr (requires { *place.slot = candidate.value; }) {  // no piece to take
      if (place.walk <= kShortWalk && has_secret == 0 && HasRoomFor(num_slots_taken + 1, log2_slots)) {
        *place.slot = candidate.value;
        ++num_slots_taken;
        return absl::OkStatus();
      }
    }
    return InsertNew(candidate, place.slot, place.walk, memory);
  }

  // Makes room for so many values. Otherwise, values that arrive in the order of another table's slots, and so of their
  // hashes, would all collide in the first slots of a table that is too small.
  absl::Status Reserve(uint64_t num_values, AccumulatorMemory* memory) {
    uint64_t log2 = log2_slots;
    while (!HasRoomFor(num_values, log2)) log2 = log2 == 0 ? kFirstLog2 : log2 + 1;
    if (log2 == log2_slots) return absl::OkStatus();
    if (has_secret != 0) return MoveToTable(log2, secret(), 0, memory);
    QUERN_ASSIGN_OR_RETURN(Slot* const table, TakeTable(log2, 0, memory));
    DistinctSet larger = *this;
    larger.log2_slots = log2;
    larger.slots = table;
    ForEachSlot([&](const Slot& slot) { larger.Put(slot, blocks::quern_hash_secret); });
    GiveBackTable(memory);
    *this = larger;
    return absl::OkStatus();
  }

  // Takes over the contents of `from` and leaves it empty. rule: of the values of both.
  absl::Status Merge(DistinctSet* from, CollationRule rule, AccumulatorMemory* memory) {
    if (from->num_slots_taken > num_slots_taken) std::swap(*this, *from);
    has_zero |= from->has_zero;
    QUERN_RETURN_IF_ERROR(Reserve(num_slots_taken + from->num_slots_taken, memory));
    absl::Status status;
    from->ForEachSlot([&](const Slot& slot) {
      const auto moved = Moved(slot, rule);
      status.Update(Insert(from->has_secret != 0 ? moved.WithSecret(blocks::quern_hash_secret) : moved, memory));
    });
    if (!status.ok()) {
      memory->Break();  // both have what was moved until then
      return status;
    }
    from->GiveBackTable(memory);
    std::memset(static_cast<void*>(from), 0, sizeof(*from));
    return absl::OkStatus();
  }

  // Calls f(slot) for all values except 0.
  template <class F>
  void ForEachSlot(F&& f) const {
    const Slot* const first = log2_slots == 0 ? &single : slots;
    for (uint64_t i = 0; i < num_slots(); ++i)
      if (!IsEmpty(first[i])) f(first[i]);
  }
  // The same from slot number `begin` on, while f(slot) returns true; returns the number of the slot behind, or
  // num_slots().
  template <class F>
  uint64_t ForEachSlotFrom(uint64_t begin, F&& f) const {
    const Slot* const first = log2_slots == 0 ? &single : slots;
    for (uint64_t i = begin; i < num_slots(); ++i)
      if (!IsEmpty(first[i]) && !f(first[i])) return i + 1;
    return num_slots();
  }

 private:
  static constexpr uint64_t kFirstLog2 = 2;
  // Slots; a longer walk is counted. One new value in 3,000 has one, and one in 150 where 3 of 4 slots are taken (a
  // simulation of 2^24 slots; the longest walk had 199).
  static constexpr uint64_t kShortWalk = 64;

  // Where a value is, or would be.
  struct Place {
    Slot* slot;  // nullptr where there is no table and the single value differs
    bool holds_value;
    uint64_t walk;  // slots behind the value's first one
  };

  static bool HasRoomFor(uint64_t num_values, uint64_t log2) {
    return log2 == 0 ? num_values <= 1 : num_values * 4 <= uint64_t{3} << log2;
  }

  // For a value that is not where the secret of the process leads. A call, since the loop of values that are there is
  // faster without it.
  template <class Candidate>
  __attribute__((noinline)) absl::Status InsertNew(const Candidate& candidate, Slot* slot, uint64_t walk,
                                                   AccumulatorMemory* memory) {
    if (has_secret != 0) return InsertWithSecret(candidate, memory);
    return Add(candidate, blocks::quern_hash_secret, {slot, false, walk}, memory);
  }
  template <class Candidate>
  __attribute__((noinline, cold)) absl::Status InsertWithSecret(const Candidate& candidate, AccumulatorMemory* memory) {
    const TableSecret own = secret();
    const Candidate retagged = candidate.WithSecret(own.numbers);
    const Place place = Find(retagged, own.numbers);
    if (place.holds_value) return candidate.Drop(memory), absl::OkStatus();
    return Add(retagged, own.numbers, place, memory);
  }

  // secret: the one that the table and the candidate's tag use.
  template <class Candidate>
  __attribute__((always_inline)) inline absl::Status Add(const Candidate& candidate, const blocks::HashSecret& secret,
                                                         Place place, AccumulatorMemory* memory) {
    if (!HasRoomFor(num_slots_taken + 1, log2_slots)) {
      QUERN_RETURN_IF_ERROR(Reserve(num_slots_taken + 1, memory));
      place = Find(candidate, secret);
    }
    QUERN_RETURN_IF_ERROR(candidate.Fill(place.slot, memory));
    ++num_slots_taken;
    return place.walk > kShortWalk ? EndLongWalk(place.walk, candidate.rule_of_strings(), memory) : absl::OkStatus();
  }

  __attribute__((noinline, cold)) absl::Status EndLongWalk(uint64_t walk, CollationRule rule,
                                                           AccumulatorMemory* memory) {
    memory->CountSteps(walk);
    if (walk <= thresholds::kLongestDistinctWalk || has_secret != 0) return absl::OkStatus();
    return MoveToTable(log2_slots, DrawTableSecret(), rule, memory);
  }

  template <class Candidate>
  __attribute__((always_inline)) inline Place Find(const Candidate& candidate, const blocks::HashSecret& secret) {
    if (log2_slots == 0) {
      if (IsEmpty(single)) return {&single, false, 0};
      return candidate.Equals(single) ? Place{&single, true, 0} : Place{nullptr, false, 0};
    }
    const uint64_t mask = num_slots() - 1, first = candidate.Hash(secret) >> (64 - log2_slots);
    for (uint64_t i = first;; i = (i + 1) & mask) {
      if (IsEmpty(slots[i])) return {&slots[i], false, (i - first) & mask};
      if (candidate.Equals(slots[i])) return {&slots[i], true, 0};
    }
  }

  // Puts a slot of another table, whose values all differ.
  void Put(const Slot& slot, const blocks::HashSecret& secret) {
    uint64_t i = HashOf(slot, secret) >> (64 - log2_slots);
    while (!IsEmpty(slots[i])) i = (i + 1) & (num_slots() - 1);
    slots[i] = slot;
  }

  static uint64_t TableBytes(uint64_t log2, uint64_t has_secret) {
    return (sizeof(Slot) << log2) + has_secret * sizeof(TableSecret);
  }
  // An empty table.
  static absl::StatusOr<Slot*> TakeTable(uint64_t log2, uint64_t has_secret, AccumulatorMemory* memory) {
    QUERN_ASSIGN_OR_RETURN(uint8_t* const piece, memory->Take(TableBytes(log2, has_secret)));
    std::memset(piece, 0, TableBytes(log2, has_secret));
    return reinterpret_cast<Slot*>(piece);
  }

  // Moves the values to a table of 2^log2 slots with numbers of its own. rule: of strings, for new numbers.
  __attribute__((noinline, cold)) absl::Status MoveToTable(uint64_t log2, const TableSecret& numbers,
                                                           CollationRule rule, AccumulatorMemory* memory) {
    const TableSecret own = numbers;  // a copy, so that the loop need not load it again after each store
    QUERN_ASSIGN_OR_RETURN(Slot* const table, TakeTable(log2, 1, memory));
    DistinctSet other = *this;
    other.has_secret = 1;
    other.log2_slots = log2;
    other.slots = table;
    std::memcpy(table + other.num_slots(), &own, sizeof(own));
    ForEachSlot([&](const Slot& slot) {
      other.Put(has_secret != 0 ? slot : WithSecret(slot, rule, own.numbers), own.numbers);
    });
    GiveBackTable(memory);
    *this = other;
    return absl::OkStatus();
  }

  TableSecret secret() const { return blocks::Load<TableSecret>(slots + num_slots()); }
  void GiveBackTable(AccumulatorMemory* memory) {
    if (log2_slots != 0) memory->GiveBack(reinterpret_cast<uint8_t*>(slots), TableBytes(log2_slots, has_secret));
  }
};
static_assert(sizeof(DistinctSet<WordSlot>) == 16 && sizeof(DistinctSet<StringSlot>) == 24);

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_ACCUMULATORS_DISTINCT_SET_H_
