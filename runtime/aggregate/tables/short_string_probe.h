// SPDX-License-Identifier: Apache-2.0
// The first step through a directory of groups (directory_groups.h) where a key is a string that mostly fits its tuple.
#ifndef QUERN_RUNTIME_AGGREGATE_TABLES_SHORT_STRING_PROBE_H_
#define QUERN_RUNTIME_AGGREGATE_TABLES_SHORT_STRING_PROBE_H_

#include <cstdint>

#include "runtime/aggregate/tables/group_table.h"
#include "runtime/base/adaptive_gate.h"

namespace quern {

// Entries by hash: the address of a tuple above the hash's tag bits; 0: none. Of most rows whose group is not in its
// slot it is in the next.
struct DirectoryView {
  const uint64_t* entries;
  uint64_t mask;  // number of entries, a power of two, less one
  uint32_t common_bits;
  uint32_t shift;

  uint64_t SlotOf(uint64_t hash) const { return (hash << common_bits) >> shift; }
};

// For one string of 32-bit offsets that is compared by its bytes, alone or beside one number of 4 or 8 bytes.
// *Threads*: one.
class ShortStringProbe {
 public:
  static constexpr uint32_t kHashesBehind = 16;  // room behind a batch's hashes

  struct NullBit {
    uint32_t offset = 0;  // byte of the tuple
    uint8_t mask = 0;     // 0: not nullable
  };

  explicit ShortStringProbe(const QuernJoinDescriptor& group, bool adapts = true);

  // Whether these rows are worth a Find: neighbours, none of them null, of which enough were found lately.
  bool Takes(const KeyRows& rows);

  // tuples[i] = the group of row i, but for the rows that are listed in `others` (room for rows.n), whose groups are
  // not there, or are to be looked for in other ways: long strings, the batch's last ones, several entries from their
  // slot. Answers how many. hashes: of the rows. setting: of the directory; entries are prefetched kHashesBehind rows
  // ahead at most. *Cost*: 3 to 4 ns a row, with directory and tuples in the L2 cache.
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
