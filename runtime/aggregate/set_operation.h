// SPDX-License-Identifier: Apache-2.0
// Set operations on groups: both sides are grouped together, in any order and by any threads, and each group knows of
// its rows l of the left side and r of the right side what the kind asks (GroupsOf): both, which of them are not 0, or
// l - r. This says how often the group comes out.
//
//     left  a b b c     right  b c c d      groups  a: 1, 0    b: 2, 1    c: 1, 2    d: 0, 1
//
//     union a b c d     intersect b c       except a       intersect_all b c       except_all a b
//
// Neither side has to be complete before the other one begins, unlike in a semi or an anti join.
#ifndef QUERN_RUNTIME_AGGREGATE_SET_OPERATION_H_
#define QUERN_RUNTIME_AGGREGATE_SET_OPERATION_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/aggregate/hash_aggregate.h"
#include "runtime/base/memory.h"
#include "runtime/rows/batch_view.h"
#include "runtime/spec/set_spec.h"

namespace quern {

inline constexpr SinkTexts kSetTexts = {"rows", "the rows are complete", "rows are missing from the groups",
                                        "a new set operation"};

enum class SetSide : uint8_t { kLeft, kRight };

// Adds to batches the columns by which the groups know their side. *Threads*: any.
class SideColumns {
 public:
  SideColumns(const SetSpec& spec, std::shared_ptr<MemoryBudget> budget);

  // The batch with its side's columns, which live as long as this. `batch` has only keys. *Cost*: with a selection, a
  // pass over its row numbers. *Errors*: ResourceExhausted: the columns have two bytes, of intersect_all two bits, for
  // each row up to the last one that is selected.
  absl::StatusOr<BatchView> With(const BatchView& batch, SetSide side);

 private:
  absl::Status Grow(uint64_t num_rows);

  const SetKind kind_;
  const std::shared_ptr<MemoryBudget> budget_;
  std::mutex mutex_;  // for the members below
  uint64_t num_rows_ = 0;
  std::vector<HugeBuffer> buffers_;  // each as long as all before it together; batches may use the earlier ones
  const uint8_t* values_[2] = {};    // of either side
};

// How often each group of GroupsOf(spec) comes out.
GroupReader::CopiesOf CopiesOf(SetKind kind);

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_SET_OPERATION_H_
