// SPDX-License-Identifier: Apache-2.0
// Where packed keys lie in tables: what building and looking up share.
#ifndef QUERN_RUNTIME_JOIN_TABLES_PACKED_KEY_SLOTS_H_
#define QUERN_RUNTIME_JOIN_TABLES_PACKED_KEY_SLOTS_H_

#include <cstdint>

#include "runtime/join/tables/packed_key_table.h"

namespace quern {

constexpr uint64_t kLineBytes = 64;

inline uint64_t SlotOf(uint64_t hash, uint64_t num_slots) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(hash) * num_slots) >> 64);
}

// The slots that a walk visits: first the slots of its cache line, in a circle, and only then the next line of the
// region. A line of 8 slots of which 40 % are taken is full once in 300, so hardly any walk touches a second line.
// Passed by value, so that compilers see that a loop's stores do not change it.
struct Walk {
  uint64_t line_mask;
  uint64_t region_mask;

  uint64_t NextSlot(uint64_t slot, uint32_t step) const {
    const uint64_t next = (slot & ~line_mask) | ((slot + 1) & line_mask);
    if ((step & line_mask) != 0) return next;
    return (next & ~region_mask) | ((next + line_mask + 1) & region_mask);
  }
};

// Turns the words of n keys of a ranked table into bytes from the first tuple to theirs.
void ToRankedPlaces(const JoinTable& table, uint64_t tuple_bytes, uint32_t n, uint64_t* words);

}  // namespace quern

#endif  // QUERN_RUNTIME_JOIN_TABLES_PACKED_KEY_SLOTS_H_
