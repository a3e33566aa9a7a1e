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
  CacheSizes caches;
  uint32_t l2_batch_rows = 512;         // rows at a time, at most, while the table is no larger
  uint32_t prefetch_input_rows = 2048;  // rows that a column of keys is prefetched of where it is read; 0: not
  bool huge_pages = true;
  GroupLayout layout = GroupLayout::kAuto;
  uint32_t load_percent = 60;   // of an open table or directory, before it grows
  uint32_t partition_bits = 6;  // parts that many groups of several threads are partitioned to, log2
  uint64_t local_groups =
      uint64_t{1}
      << 22;  // expected ones, from which on several threads partition rows where hardly any two share a group
  uint64_t compact_tuples = thresholds::kCompactTuples;  // of a thread, partitioned one by one: so many are brought
                                                         // together for the first time
  uint64_t expected_groups = 0;                          // the host's guess; 0: none
  std::vector<KeyRange> ranges;                          // the host's statistics, by key; may be empty
};

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_AGGREGATE_OPTIONS_H_
