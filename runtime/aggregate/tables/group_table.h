// SPDX-License-Identifier: Apache-2.0
// Finds groups. A table finds the group of each row of a batch and creates it where there is none; it does not read or
// update the states.
//
//     single      no keys                        one tuple
//     dense       packed keys of a small range   an array of tuples; the position is computed (packed_key_groups.h)
//     open        packed keys                    open addressing, slots are tuples: a line a row (packed_key_groups.h)
//     sorted      packed keys in order           tuples in order of arrival, without a lookup (packed_key_groups.h)
//     directory   all others, wide tuples        tags and addresses; tuples in order of arrival (directory_groups.h)
#ifndef QUERN_RUNTIME_AGGREGATE_TABLES_GROUP_TABLE_H_
#define QUERN_RUNTIME_AGGREGATE_TABLES_GROUP_TABLE_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "runtime/abi/kernel_abi.h"
#include "runtime/aggregate/aggregate_descriptor.h"
#include "runtime/aggregate/aggregate_options.h"
#include "runtime/base/memory.h"
#include "runtime/rows/entry_slot.h"

namespace quern {

// Rows of one batch; row i is rows ? rows[i] : first + i. n is at most kMaxBatchRows.
struct KeyRows {
  const QuernColumn* keys;
  uint64_t first;
  const uint32_t* rows;
  uint32_t n;
};

// Groups of another table with the same descriptor. n is at most kMaxBatchRows.
struct GroupTuples {
  uint8_t* const* tuples;
  const uint64_t* hashes;  // one each, for keys that are not packed
  uint32_t n;
};

// What the tables of one aggregation share.
struct GroupContext {
  std::shared_ptr<const AggregateDescriptor> descriptor;
  AggregateEntrySource entry_points;
  std::shared_ptr<MemoryBudget> budget;
  AggregateOptions options;
  uint32_t common_bits =
      0;  // top bits that all hashes of a table have in common, since it is one of 2^common_bits partitions
  std::shared_ptr<CounterSet> counters = nullptr;
};

// What tables count (counters.def).
struct TableTally {
  uint64_t hits = 0;   // tag_hits
  uint64_t steps = 0;  // chain_steps
  uint64_t growths = 0;
};

class GroupTable {
 public:
  virtual ~GroupTable() = default;

  // Sets tuples[i] to the address of row i's group, valid until the next call. States of new groups are zero.
  // *Errors*: ResourceExhausted, after which the table may hold some of the batch's groups, and finds them again; all
  // earlier ones are as they were, unless the table is broken.
  virtual absl::Status Find(const KeyRows& rows, uint8_t** tuples) = 0;
  virtual absl::Status FindTuples(const GroupTuples& from, uint8_t** tuples) = 0;
  // Of a table that has one group for all rows: what Find writes for kMaxBatchRows of them, valid as long as the table.
  // Null of all others.
  virtual uint8_t* const* only_group() { return nullptr; }

  virtual uint64_t num_groups() const = 0;
  // Groups lie at some of the positions 0 .. num_positions()-1. Scan writes the addresses of those in [begin, end), in
  // order, and returns their number.
  virtual uint64_t num_positions() const = 0;
  virtual uint32_t Scan(uint64_t begin, uint64_t end, uint8_t** tuples) = 0;
  // The hashes of groups that Scan found.
  virtual void HashesOf(uint64_t begin, uint8_t* const* tuples, uint32_t n, uint64_t* hashes) const = 0;
  // Removes all groups and frees the memory, except for the bytes of long strings, because copies of the tuples point
  // to them.
  virtual void Release() = 0;

  virtual uint64_t bytes() const = 0;
  virtual uint64_t num_growths() const = 0;
  virtual PrefetchSetting prefetch() const = 0;  // by its present bytes; distance 0 where the plan does not prefetch
  // From the next batch on, at any size. No effect where the plan does not prefetch.
  virtual void SetPrefetch(PrefetchLoop loop, const PrefetchSetting& setting) = 0;
  // Whether Find prefetches both lines of a tuple of up to 64 bytes, and not the first alone, which has its key.
  virtual bool prefetches_both_lines() const { return false; }
  virtual const char* layout() const = 0;
  // Whether memory was refused in the midst of moving groups.
  virtual bool is_broken() const { return false; }
  // Whether the last Find prefetched the key columns, so that the caller need not.
  virtual bool has_prefetched_keys() const { return false; }

  // The counts since the last call.
  TableTally TakeTally() {
    TableTally tally = std::exchange(tally_, {});
    tally.growths = num_growths() - std::exchange(growths_taken_, num_growths());
    return tally;
  }

 protected:
  TableTally* tally() { return &tally_; }

 private:
  TableTally tally_;
  uint64_t growths_taken_ = 0;
};

// Estimates the number of groups in all input, if rows choose groups uniformly: n rows meet D (1 - e^(-n/D)) of D
// groups. 65,322 groups among 65,536 rows give 10 million; 1,000 groups among them give 1,000.
uint64_t ExpectedGroups(uint64_t rows, uint64_t groups);
// The inverse: how many of `groups` groups so many rows meet.
uint64_t GroupsMet(uint64_t rows, uint64_t groups);

// Makes the table for a descriptor; expected_groups: an estimate, 0 for none. *Errors*: none; memory is taken later.
std::unique_ptr<GroupTable> MakeGroupTable(const GroupContext& context, uint64_t expected_groups);

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_TABLES_GROUP_TABLE_H_
