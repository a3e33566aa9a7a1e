// SPDX-License-Identifier: Apache-2.0
// The probe of a directory (directory_groups.cc) that makes groups: every row that is still looking reads the rest of
// its entry's line.
#ifndef QUERN_RUNTIME_AGGREGATE_TABLES_DIRECTORY_PROBE_H_
#define QUERN_RUNTIME_AGGREGATE_TABLES_DIRECTORY_PROBE_H_

#include <cstdint>

#include "runtime/abi/kernel_abi.h"
#include "runtime/aggregate/tables/short_string_probe.h"
#include "runtime/rows/prefetch.h"

namespace quern {

// 2^k entries, at least one line of them, aligned to 64 bytes: address << kTagBits | tag; 0: none.
struct DirectoryEntries {
  uint64_t* entries = nullptr;
  uint64_t num_entries = 0;
};

// Where the next new groups go: a tuple and a hash each, stored consecutively, with room for as many as there are rows.
struct NewTuples {
  uint8_t* tuples = nullptr;
  uint64_t* hashes = nullptr;
  uint64_t tuple_bytes = 0;
};

// The progress of a batch.
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

// Probes each row of `batch.rows` from its slot to the end of the slot's line. At the first empty entry, the row's
// group is made; at the first entry with the row's tag, the row becomes a candidate. Such rows are listed in `made` or
// `candidates`; tuples[row] is set, and `added` receives new groups. A candidate's slot is the next one, where it goes
// on if its key differs. Rows that found neither stay in `rows`, at the next line.
// *Cost*: 3 ns a row whose line is in the cache. *Threads*: one for a directory.
void ProbeLines(const DirectoryEntries& directory, const NewTuples& added, const PrefetchSetting& setting,
                DirectoryRows* batch, uint8_t** tuples);

// The same for machines without vectors of eight entries.
void ProbeLinesByEntry(const DirectoryEntries& directory, const NewTuples& added, const PrefetchSetting& setting,
                       DirectoryRows* batch, uint8_t** tuples);

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_TABLES_DIRECTORY_PROBE_H_
