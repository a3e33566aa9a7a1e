// SPDX-License-Identifier: Apache-2.0
// Stores keys that are not packed in tuples that outlive their batch.
#ifndef QUERN_RUNTIME_AGGREGATE_TABLES_STORED_KEYS_H_
#define QUERN_RUNTIME_AGGREGATE_TABLES_STORED_KEYS_H_

#include "absl/status/status.h"
#include "runtime/aggregate/tables/group_table.h"
#include "runtime/base/bytes.h"
#include "runtime/base/memory.h"

namespace quern {

// Writes the keys of n rows of a batch, their nulls, and the number of spaces that PAD SPACE cut off into neighbouring
// tuples; clears all other bits. Long strings stay in the batch (KeyBytes).
void StoreKeys(const GroupContext& context, const QuernColumn* keys, const uint32_t* rows, uint32_t n, uint8_t* tuples);

// Hashes of n tuples by their keys, with any secret: equal keys have equal hashes. *Cost*: 5 to 20 ns a tuple.
void HashStoredKeys(const QuernRowLayout& group, uint8_t* const* tuples, uint32_t n, const blocks::HashSecret& secret,
                    uint64_t* hashes);

// The bytes of string keys that do not fit their tuples. *Threads*: one.
class KeyBytes {
 public:
  explicit KeyBytes(const GroupContext& context);

  // Copies these bytes of n neighbouring tuples, which point to a batch, and points the tuples to the copies. *Errors*:
  // ResourceExhausted.
  absl::Status Keep(uint8_t* tuples, uint32_t n);

 private:
  absl::StatusOr<uint8_t*> Take(uint32_t bytes);

  std::shared_ptr<const AggregateDescriptor> descriptor_;
  Arena arena_;
  uint8_t* end_ = nullptr;  // of what is in use of the arena's last piece
  uint64_t left_bytes_ = 0;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_TABLES_STORED_KEYS_H_
