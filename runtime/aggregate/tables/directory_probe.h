// SPDX-License-Identifier: Apache-2.0
// The step of a directory (directory_groups.cc) that makes groups: every row that is looking reads the rest of its
// entry's line.
#ifndef QUERN_RUNTIME_AGGREGATE_TABLES_DIRECTORY_PROBE_H_
#define QUERN_RUNTIME_AGGREGATE_TABLES_DIRECTORY_PROBE_H_

#include <cstdint>

#include "runtime/abi/kernel_abi.h"
#include "runtime/aggregate/tables/short_string_probe.h"
#include "runtime/rows/prefetch.h"

namespace quern {

// 2^k entries, at least one line of them, at a multiple of 64 bytes: address << kTagBits | tag; 0: none.
struct DirectoryEntries {
  uint64_t* entries = nullptr;
  uint64_t num_entries = 0;
};

// Where the next new groups go: a tuple and a hash each, side by side, with room for as many as there are rows.
struct NewTuples {
  uint8_t* tuples = nullptr;
  uint64_t* hashes = nullptr;
  uint64_t tuple_bytes = 0;
};

// A batch on its way.
struct DirectoryRows {
  uint32_t n = 0;               // rows that are looking
  uint32_t num_made = 0;        // rows that have made their group
  uint32_t num_candidates = 0;  // rows that have found their tag
  uint32_t rows[kMaxBatchRows];
  uint32_t made[kMaxBatchRows];
  uint32_t candidates[kMaxBatchRows];
  uint64_t hashes[kMaxBatchRows + ShortStringProbe::kHashesBehind];
  uint64_t slots[kMaxBatchRows];
};

// Each of `batch.rows` goes from its slot to the end of the slot's line. At the first entry that is empty its group is
// made there, and at the first that has its tag it becomes a candidate: `made` or `candidates`, with tuples[row] and,
// of new groups, `added`. A candidate's slot is the one behind, where it goes on if its key is another. Rows that found
// neither are left in `rows`, at the next line.
// *Cost*: 3 ns a row whose line is there. *Threads*: one for a directory.
void ProbeLines(const DirectoryEntries& directory, const NewTuples& added, const PrefetchSetting& setting,
                DirectoryRows* batch, uint8_t** tuples);

// The same for machines without vectors of eight entries.
void ProbeLinesByEntry(const DirectoryEntries& directory, const NewTuples& added, const PrefetchSetting& setting,
                       DirectoryRows* batch, uint8_t** tuples);

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_TABLES_DIRECTORY_PROBE_H_
