// SPDX-License-Identifier: Apache-2.0
// What a plan and a host choose for an aggregation, apart from its kernel.
#ifndef QUERN_RUNTIME_AGGREGATE_AGGREGATE_OPTIONS_H_
#define QUERN_RUNTIME_AGGREGATE_AGGREGATE_OPTIONS_H_

#include <cstdint>
#include <vector>

#include "runtime/base/thresholds.h"
#include "runtime/map/map_run.h"
#include "runtime/rows/prefetch.h"

namespace quern {

enum class GroupLayout : uint8_t { kAuto, kDense, kOpen, kDirectory };

// The smallest and largest value of a key, as far as the host knows them; signed where the key's type is.
struct KeyRange {
  bool known = false;
  int64_t min = 0;
  int64_t max = 0;
};

struct AggregateOptions {
  PrefetchSchedules prefetch;  // an entry is chosen before each batch, by the table's bytes at that time
  PrefetchDistances distances;
  CacheSizes caches;
  uint32_t l2_batch_rows = 512;  // the most rows in a block, as long as the table is no larger than the L2 cache
  bool huge_pages = true;
  bool adapts = true;  // gates (adaptive_gate.h) close where an optimisation does not pay
  GroupLayout layout = GroupLayout::kAuto;
  uint32_t load_percent = 60;   // of an open table or directory; beyond, it grows
  uint32_t partition_bits = 6;  // log2 of the partitions into which several threads divide many groups
  uint64_t local_groups =
      uint64_t{1}
      << 22;  // several threads partition rows from so many expected groups on, where rows rarely share a group
  // Compact a thread's partitions for the first time when they hold so many tuples of single rows.
  uint64_t compact_tuples = thresholds::kCompactTuples;
  uint64_t expected_groups = 0;  // the host's estimate; 0: none
  std::vector<KeyRange> ranges;  // the host's statistics, by key; may be empty
  GenericMaps generic_maps;      // of specs with expressions
  void* host = nullptr;          // the job's pointer for functions of the host (host_aggregates.h)

  // Distances of all prefetch loops; all 0 where the plan turns prefetching off.
  std::vector<uint32_t> EffectiveDistances() const { return quern::EffectiveDistances(prefetch, distances); }
};

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_AGGREGATE_OPTIONS_H_
