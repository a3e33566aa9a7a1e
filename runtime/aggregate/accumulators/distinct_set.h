// SPDX-License-Identifier: Apache-2.0
// The set of a group's distinct values: a state of 16 to 24 bytes that holds a single value itself, and an
// open-addressing table in an AccumulatorMemory from the second value on.
#ifndef QUERN_RUNTIME_AGGREGATE_ACCUMULATORS_DISTINCT_SET_H_
#define QUERN_RUNTIME_AGGREGATE_ACCUMULATORS_DISTINCT_SET_H_

#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "runtime/aggregate/accumulators/out_of_line_aggregates.h"
#include "runtime/base/status.h"
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
  uint32_t tag;  // top half of the hash, made odd: not 0
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
inline uint64_t HashOf(WordSlot slot) { return blocks::Mix(slot, blocks::quern_hash_secret); }
inline uint64_t HashOf(const WideSlot& slot) {
  const blocks::HashSecret& secret = blocks::quern_hash_secret;
  return blocks::Mix(
      blocks::FoldedMultiply(slot.low ^ secret[blocks::kMultiplier1], slot.high ^ secret[blocks::kMultiplier2]),
      secret);
}
inline uint64_t HashOf(const StringSlot& slot) { return uint64_t{slot.tag} << 32; }

// ---- candidates: values that may be new ---------------------------------------------------------------------------

struct WordCandidate {
  WordSlot value;

  uint64_t Hash() const { return HashOf(value); }
  bool Equals(WordSlot slot) const { return slot == value; }
  absl::Status Fill(WordSlot* slot, AccumulatorMemory*) const { return *slot = value, absl::OkStatus(); }
  void Drop(AccumulatorMemory*) const {}
};

struct WideCandidate {
  WideSlot value;

  uint64_t Hash() const { return HashOf(value); }
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
    return {s, static_cast<uint32_t>(hash >> 32) | 1, rule};
  }
  uint64_t Hash() const { return uint64_t{tag} << 32; }
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

  uint64_t Hash() const { return HashOf(from); }
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
  uint64_t has_zero : 8;    // words: 0 is one of the values
  union {
    Slot single;
    Slot* slots;
  };

  uint64_t size() const { return num_slots_taken + has_zero; }
  uint64_t num_slots() const { return log2_slots == 0 ? 1 : uint64_t{1} << log2_slots; }

  void Prefetch(uint64_t hash) const {
    if (log2_slots != 0) PrefetchLine<PrefetchHint::kT0>(slots + (hash >> (64 - log2_slots)));
  }

  // *Errors*: ResourceExhausted.
  template <class Candidate>
  absl::Status Insert(const Candidate& candidate, AccumulatorMemory* memory) {
    Slot* slot = Find(candidate);
    if (slot != nullptr && !IsEmpty(*slot)) return candidate.Drop(memory), absl::OkStatus();
    if (!HasRoomFor(num_slots_taken + 1, log2_slots)) {
      QUERN_RETURN_IF_ERROR(Reserve(num_slots_taken + 1, memory));
      slot = Find(candidate);
    }
    QUERN_RETURN_IF_ERROR(candidate.Fill(slot, memory));
    ++num_slots_taken;
    return absl::OkStatus();
  }

  // Makes room for so many values. Otherwise, values that arrive in the order of another table's slots, and so of their
  // hashes, would all collide in the first slots of a table that is too small.
  absl::Status Reserve(uint64_t num_values, AccumulatorMemory* memory) {
    uint64_t log2 = log2_slots;
    while (!HasRoomFor(num_values, log2)) log2 = log2 == 0 ? kFirstLog2 : log2 + 1;
    if (log2 == log2_slots) return absl::OkStatus();
    QUERN_ASSIGN_OR_RETURN(uint8_t* const piece, memory->Take(sizeof(Slot) << log2));
    std::memset(piece, 0, sizeof(Slot) << log2);
    DistinctSet larger = *this;
    larger.log2_slots = log2;
    larger.slots = reinterpret_cast<Slot*>(piece);
    ForEachSlot([&](const Slot& slot) { *larger.Find(Moved(slot, 0)) = slot; });  // all differ, and so do their bytes
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
    from->ForEachSlot([&](const Slot& slot) { status.Update(Insert(Moved(slot, rule), memory)); });
    QUERN_RETURN_IF_ERROR(status);
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

 private:
  static constexpr uint64_t kFirstLog2 = 2;

  static bool HasRoomFor(uint64_t num_values, uint64_t log2) {
    return log2 == 0 ? num_values <= 1 : num_values * 4 <= uint64_t{3} << log2;
  }

  // The slot that holds the value or would receive it; nullptr where there is no table and the single value differs.
  template <class Candidate>
  Slot* Find(const Candidate& candidate) {
    if (log2_slots == 0) return IsEmpty(single) || candidate.Equals(single) ? &single : nullptr;
    const uint64_t mask = num_slots() - 1;
    uint64_t i = candidate.Hash() >> (64 - log2_slots);
    while (!IsEmpty(slots[i]) && !candidate.Equals(slots[i])) i = (i + 1) & mask;
    return &slots[i];
  }

  void GiveBackTable(AccumulatorMemory* memory) {
    if (log2_slots != 0) memory->GiveBack(reinterpret_cast<uint8_t*>(slots), sizeof(Slot) << log2_slots);
  }
};
static_assert(sizeof(DistinctSet<WordSlot>) == 16 && sizeof(DistinctSet<StringSlot>) == 24);

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_ACCUMULATORS_DISTINCT_SET_H_
