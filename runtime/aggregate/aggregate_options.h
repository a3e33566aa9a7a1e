// SPDX-License-Identifier: Apache-2.0
// What a plan and a host choose for an aggregation, beside its kernel.
#ifndef QUERN_RUNTIME_AGGREGATE_AGGREGATE_OPTIONS_H_
#define QUERN_RUNTIME_AGGREGATE_AGGREGATE_OPTIONS_H_

#include <cstdint>
#include <vector>

#include "runtime/base/thresholds.h"
#include "runtime/rows/prefetch.h"

namespace quern {

enum class GroupLayout : uint8_t { kAuto, kDense, kOpen, kDirectory };

// Smallest and largest value of a key, as the host knows them; of the key's type, signed where it is.
struct KeyRange {
  bool known = false;
  int64_t min = 0;
  int64_t max = 0;
};

struct AggregateOptions {
  PrefetchSchedules prefetch;  // looked at before each batch, by the table's bytes then
  PrefetchDistances distances;
  CacheSizes caches;
  uint32_t l2_batch_rows = 512;  // rows at a time, at most, while the table is no larger
  bool huge_pages = true;
  bool adapts = true;  // gates (adaptive_gate.h) close where what was chosen does not pay
  GroupLayout layout = GroupLayout::kAuto;
  uint32_t load_percent = 60;   // of an open table or directory, before it grows
  uint32_t partition_bits = 6;  // parts that many groups of several threads are partitioned to, log2
  uint64_t local_groups =
      uint64_t{1}
      << 22;  // expected ones, from which on several threads partition rows where hardly any two share a group
  // Tuples of a thread, partitioned one by one, at which they are brought together for the first time.
  uint64_t compact_tuples = thresholds::kCompactTuples;
  uint64_t expected_groups = 0;  // the host's guess; 0: none
  std::vector<KeyRange> ranges;  // the host's statistics, by key; may be empty

  // Of all loops that prefetch; all 0 where the plan says off.
  std::vector<uint32_t> EffectiveDistances() const { return quern::EffectiveDistances(prefetch, distances); }
};

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_AGGREGATE_OPTIONS_H_
