// SPDX-License-Identifier: Apache-2.0
// A finished table: where the tuples lie, and how a key finds its own. One of six layouts, of which the last serves
// every key and data:
//
//     bitmap       [0 1 1 0 1 ..]              bit (key - base): whether the key is there. No tuples; keys unique, or
//     one match is enough dense        [   |t1|t2|  |t4| ..]       tuple (key - base), and the bitmap tells which are
//     there. Unique keys csr   [0 2 3 3 5 ..]              entry (key - base): where the key's tuples end; they begin
//     where those of key - 1 end open         [  |t|t|  |  |t|..]         the tuple itself is the slot, linear probing,
//     word 0 is an empty slot. Unique keys counting  [  |k,2|  |k,1|..]          as open, with the number of the key's
//     rows in place of a tuple unchained    directory + tuples          kernel_abi.h; duplicates, wide tuples, keys of
//     any type
//
// All but unchained are packed-key tables (packed_key_table.h). A null tuple, whose null bits are all set, stands for
// the build side of a probe row that comes out on its own.
#ifndef QUERN_RUNTIME_JOIN_JOIN_TABLE_H_
#define QUERN_RUNTIME_JOIN_JOIN_TABLE_H_

#include <cstdint>

#include "runtime/abi/kernel_abi.h"
#include "runtime/rows/prefetch.h"

namespace quern {

enum class Layout : uint8_t { kUnchained, kBitmap, kDense, kCsr, kOpen, kCounting };
const char* LayoutText(Layout layout);
// Those of prefetch_loops.def that build and probe it.
PrefetchLoop BuildLoopOf(Layout layout);
PrefetchLoop ProbeLoopOf(Layout layout);

struct JoinTable {
  Layout layout = Layout::kUnchained;
  bool zero_hashes = false;
  uint32_t tuple_bytes = 0;
  uint32_t packed_bytes = 0;  // 0: keys are no words
  PrefetchSetting probe;      // of look-ups; distance 0 where the plan does not prefetch
  PrefetchSetting build;      // of building
  uint64_t num_tuples = 0;
  uint8_t* tuples = nullptr;
  uint64_t null_tuple = 0;  // byte offset

  // unchained
  const uint64_t* directory = nullptr;  // directory[-1] exists and is 0
  uint32_t shift = 0;                   // slot of hash h: h >> shift

  // dense: key w is number (w ^ sign_bit) - base, if that is below range
  uint64_t base = 0;
  uint64_t sign_bit = 0;
  uint64_t range = 0;
  const uint64_t* bitmap = nullptr;
  const uint32_t* runs = nullptr;  // tuple numbers; runs[-1] exists and is 0

  // open: slots hold w - sentinel in their first word, sentinel being no key of the table
  uint64_t sentinel = 0;
  uint64_t num_slots = 0;
  uint64_t line_mask = 0;    // slots of a cache line, less 1: a walk goes round them first
  uint64_t region_mask = 0;  // then from line to line, round 2^k neighbouring slots
  uint32_t slot_bytes = 0;
  uint32_t max_walk = 0;  // steps from where a key's walk begins, of all keys
};

// The rows that a drain looks at, by number: positions of a table in which tuples may lie.
uint64_t NumPositions(const JoinTable& table);
bool HasTuple(const JoinTable& table, uint64_t position);

}  // namespace quern

#endif  // QUERN_RUNTIME_JOIN_JOIN_TABLE_H_
