// SPDX-License-Identifier: Apache-2.0
// A finished table: where the tuples lie, and how a key finds its own. There are seven layouts; the last one serves all
// keys and data:
//
//     bitmap       [0 1 1 0 1 ..]              bit (key - base): whether the key is there. No tuples; the keys are
//                                              unique, or one match is enough
//     dense        [   |t1|t2|  |t4| ..]       tuple (key - base); the bitmap shows which are there. Unique keys
//     ranked       [0 1 1 0 1 ..] [t1|t2|t4]   tuples in the order of the keys, at (number of keys below): the bitmap
//     has
//                                              a count for each word (the rank of a bit vector). Unique keys that leave
//                                              gaps
//     csr          [0 2 3 3 5 ..]              entry (key - base): where the key's tuples end; they begin where those
//                                              of key - 1 end
//     open         [  |t|t|  |  |t|..]         the tuple itself is the slot, linear probing; word 0 marks an empty
//                                              slot. Unique keys
//     counting     [  |k,2|  |k,1|..]          as open, with the number of the key's rows in place of a tuple
//     unchained    directory + tuples          join_abi.h; duplicates, wide tuples, keys of any type
//
// All but unchained are packed-key tables (packed_key_table.h). Beside the last four layouts there may be a
// bitmap of keys, the key filter (key_filter.h). A null tuple, with all its null bits set, stands for
// the build side of a probe row that is output on its own.
#ifndef QUERN_RUNTIME_JOIN_JOIN_TABLE_H_
#define QUERN_RUNTIME_JOIN_JOIN_TABLE_H_

#include <cstdint>

#include "runtime/abi/join_abi.h"
#include "runtime/rows/prefetch.h"

namespace quern {

enum class Layout : uint8_t { kUnchained, kBitmap, kDense, kRanked, kCsr, kOpen, kCounting };
// Whether a bitmap says exactly which keys the table has.
constexpr bool IsBitmap(Layout layout) {
  return layout == Layout::kBitmap || layout == Layout::kDense || layout == Layout::kRanked;
}
const char* LayoutText(Layout layout);
// The loops of prefetch_loops.def that build and probe a layout.
PrefetchLoop BuildLoopOf(Layout layout);
PrefetchLoop ProbeLoopOf(Layout layout);

class CrowdedSlots;

struct JoinTable {
  Layout layout = Layout::kUnchained;
  bool zero_hashes = false;
  uint32_t tuple_bytes = 0;
  uint32_t packed_bytes = 0;  // 0: the keys are not packed
  PrefetchSetting probe;      // for look-ups; distance 0 where the plan does not prefetch
  PrefetchSetting build;      // for building
  uint64_t num_tuples = 0;
  uint8_t* tuples = nullptr;
  uint64_t null_tuple = 0;  // byte offset

  // unchained
  const uint64_t* directory = nullptr;    // directory[-1] exists and is 0
  uint32_t shift = 0;                     // slot of hash h: h >> shift
  const CrowdedSlots* crowded = nullptr;  // where a slot is crowded

  // dense, and where there is a key filter: key w has the number (w ^ sign_bit) - base, where that is below range
  uint64_t base = 0;
  uint64_t sign_bit = 0;
  uint64_t range = 0;
  const uint64_t* bitmap = nullptr;  // csr, open, counting, unchained: the key filter; null where there is none
  uint32_t filter_key = 0;           // which of unpacked keys it tests (key_filter.h)
  const uint32_t* ranks = nullptr;   // ranked: how many keys are below each word of the bitmap
  const uint32_t* runs = nullptr;    // tuple numbers; runs[-1] exists and is 0

  // open: the first word of a slot holds w - sentinel; the sentinel is no key of the table
  uint64_t sentinel = 0;
  uint64_t num_slots = 0;
  uint64_t num_slots_taken = 0;  // as many as there are different keys; ranked: places with a tuple
  uint64_t line_mask = 0;        // slots of a cache line, less 1: a walk first visits the slots of its line
  uint64_t region_mask = 0;      // then it goes from line to line, within 2^k neighbouring slots
  uint32_t slot_bytes = 0;
  uint32_t max_walk = 0;  // length of the longest walk of any key, in slots from its start

  // Whether a bitmap of the keys lies beside the table.
  bool has_key_filter() const { return bitmap != nullptr && !IsBitmap(layout); }
};

// The positions of a table in which tuples may lie; the scan of unmatched build rows visits them by number.
uint64_t NumPositions(const JoinTable& table);
bool HasTuple(const JoinTable& table, uint64_t position);

}  // namespace quern

#endif  // QUERN_RUNTIME_JOIN_JOIN_TABLE_H_
