// SPDX-License-Identifier: Apache-2.0
// Moves the tuples of an unchained table to their places (layout: join_abi.h).
#ifndef QUERN_RUNTIME_JOIN_TABLES_UNCHAINED_TABLE_H_
#define QUERN_RUNTIME_JOIN_TABLES_UNCHAINED_TABLE_H_

#include <cstdint>
#include <vector>

#include "runtime/join/join_table.h"
#include "runtime/rows/prefetch.h"
#include "runtime/rows/tuple_store.h"

namespace quern {

// A range of slots and the table to which it belongs. Ranges that do not overlap may be built at the same time.
struct UnchainedBuild {
  TupleFormat format;
  uint64_t* directory = nullptr;  // directory[-1] exists and is 0
  uint32_t shift = 0;             // slot of hash h: h >> shift
  uint64_t first_slot = 0;
  uint64_t end_slot = 0;
  uint64_t first_byte = 0;                   // where the tuples of the first slot begin
  PrefetchSetting prefetch;                  // stages: 1 the directory, 2 also the tuples; batch_rows: up to 1024
  uint8_t* target = nullptr;                 // the table's tuples
  std::vector<uint64_t>* crowded = nullptr;  // where there is one, SumSlots adds slots that may be crowded
};

// The patterns that TagOf looks up.
const uint16_t* DirectoryTags();

// Adds each tuple's bytes and tag to its slot's entry. *Cost*: one random line a tuple, prefetched for writing.
void CountTuples(const UnchainedBuild& build, const TupleSpan& span);

// Replaces the bytes of each slot by the offset at which its tuples begin, and lists slots that may be crowded
// (crowded_slots.h). *Cost*: one sequential pass over the slots.
void SumSlots(const UnchainedBuild& build);

// Copies each tuple to the next place of its slot; afterwards each entry holds the end of its slot's tuples. *Cost*:
// two dependent random lines a tuple, each prefetched.
void ScatterTuples(const UnchainedBuild& build, const TupleSpan& span);

// For probes of keys that are not packed, where the setting differs from the one compiled into the kernel's check_tags:
// prefetch the directory entries of rows [begin, end) of the hash batch, and the first and the last tuple of each
// candidate.
void PrefetchEntries(const JoinTable& table, const QuernProbeScratch& scratch, uint32_t begin, uint32_t end);
void PrefetchTuples(const JoinTable& table, const QuernProbeScratch& scratch);

}  // namespace quern

#endif  // QUERN_RUNTIME_JOIN_TABLES_UNCHAINED_TABLE_H_
