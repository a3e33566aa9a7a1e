// SPDX-License-Identifier: Apache-2.0
// Which rows of a batch may have their key in a table: what a probe knows before it touches a tuple.
#ifndef QUERN_RUNTIME_JOIN_MEMBERSHIP_H_
#define QUERN_RUNTIME_JOIN_MEMBERSHIP_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/base/stop_flag.h"
#include "runtime/join/join_table.h"
#include "runtime/rows/batch_view.h"
#include "runtime/rows/entry_slot.h"
#include "runtime/rows/prefetch.h"

namespace quern {

// Where to write the rows that pass. Both null: they are only counted.
struct MemberAnswer {
  uint32_t* rows = nullptr;   // their numbers, in the order of the batch; room for all rows
  uint8_t* bitmap = nullptr;  // or bit i % 8 of byte i / 8 for row i, or row i of the selection; others become 0
};

// Finds the rows whose key a tuple of the table may have, and returns how many they are. A row that is not among them
// has no match; nor has a row with a null key that matches nothing. In packed-key tables, the others have one; in an
// unchained table, unless packed keys have a filter, some rows pass by their tag. batch.payload is not read. counters:
// of a job whose input the rows are; null where they are only looked at. *Cost*: that of hashing, and a random line of
// the table a row. *Threads*: any number at once. *Errors*: Cancelled.
absl::StatusOr<uint64_t> FindMembers(const JoinTable& table, const QuernJoinDescriptor& descriptor,
                                     const JoinEntrySource& entry_points, const StopFlag* stop_flag,
                                     const BatchView& batch, const MemberAnswer& answer,
                                     const PrefetchDistances& distances, CounterBlock* counters = nullptr);

// The same without a table: all rows but those with a null key that matches nothing.
absl::StatusOr<uint64_t> FindRowsWithKeys(const QuernJoinDescriptor& descriptor, const JoinEntrySource& entry_points,
                                          const StopFlag* stop_flag, const BatchView& batch,
                                          const MemberAnswer& answer);

}  // namespace quern

#endif  // QUERN_RUNTIME_JOIN_MEMBERSHIP_H_
