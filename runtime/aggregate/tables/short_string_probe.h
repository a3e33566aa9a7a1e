// SPDX-License-Identifier: Apache-2.0
// The first probe of a directory of groups (directory_groups.h) where a key is a string that mostly fits its tuple.
#ifndef QUERN_RUNTIME_AGGREGATE_TABLES_SHORT_STRING_PROBE_H_
#define QUERN_RUNTIME_AGGREGATE_TABLES_SHORT_STRING_PROBE_H_

#include <cstdint>

#include "runtime/aggregate/tables/group_table.h"
#include "runtime/base/adaptive_gate.h"

namespace quern {

// Entries by hash: the address of a tuple above the hash's tag bits; 0: none. Most rows whose group is not in their
// slot find it in the next one.
struct DirectoryView {
  const uint64_t* entries;
  uint64_t mask;  // number of entries, a power of two, less one
  uint32_t common_bits;
  uint32_t shift;

  uint64_t SlotOf(uint64_t hash) const { return (hash << common_bits) >> shift; }
};

// Handles one string with 32-bit offsets that is compared by its bytes, alone or with one number of 4 or 8 bytes.
// *Threads*: one.
class ShortStringProbe {
 public:
  static constexpr uint32_t kHashesBehind = 16;  // spare elements behind a batch's hashes

  struct NullBit {
    uint32_t offset = 0;  // byte of the tuple
    uint8_t mask = 0;     // 0: not nullable
  };

  explicit ShortStringProbe(const QuernRowLayout& group, bool adapts = true);

  // Whether Find pays for these rows: neighbours without nulls, of which enough were found recently.
  bool Takes(const KeyRows& rows);

  // Sets tuples[i] to the group of row i except for the rows listed in `others` (room for rows.n). Their groups do not
  // exist yet or need another lookup: long strings, the batch's last strings, entries far from their slot. Returns the
  // number of such rows. hashes: of the rows. setting: of the directory; entries are prefetched at most kHashesBehind
  // rows ahead. *Cost*: 3 to 4 ns a row, with directory and tuples in the L2 cache.
  uint32_t Find(const DirectoryView& directory, const PrefetchSetting& setting, const KeyRows& rows, uint64_t* hashes,
                uint8_t** tuples, uint32_t* others);

 private:
  bool serves_;
  uint32_t string_key_ = 0, number_key_ = 0;
  NullBit string_null_, number_null_;
  uint32_t held_bytes_ = 0;    // of the string, in a tuple
  uint32_t number_bytes_ = 0;  // 0: there is none
  uint32_t number_offset_ = 0;
  bool nullable_ = false;
  AdaptiveGate gate_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_TABLES_SHORT_STRING_PROBE_H_
