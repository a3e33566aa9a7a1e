// SPDX-License-Identifier: Apache-2.0
// Aggregate functions that a host adds: host.NAME in a spec. Kernels only reserve space for their states; the runtime
// calls them, once per batch.
#ifndef QUERN_RUNTIME_SPEC_HOST_AGGREGATES_H_
#define QUERN_RUNTIME_SPEC_HOST_AGGREGATES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "runtime/abi/kernel_abi.h"
#include "runtime/spec/column_type.h"

namespace quern {

// A state is `state_bytes` bytes, all zero for no rows, aligned to 8; it may be moved and copied as bytes, and must not
// own anything. Callbacks receive `user`, then the pointer that the host gave to the job. They return 0 for success;
// any other value ends the aggregation with an error that names the function. *Threads*: called from every thread that
// aggregates; each call has states of its own.
struct HostAggregate {
  uint32_t state_bytes = 0;  // 1 to 4096
  ColumnType result;         // of fixed width, not bool; always nullable
  void* user = nullptr;
  // Adds row rows[i] of the columns to states[i], i < n. Rows with null arguments and rows that a filter rejects are
  // not among them.
  int (*update)(void* user, void* host, const QuernColumn* columns, uint32_t num_columns, const uint32_t* rows,
                void* const* states, uint64_t n) = nullptr;
  // Adds from[i] to into[i].
  int (*merge)(void* user, void* host, void* const* into, const void* const* from, uint64_t n) = nullptr;
  // Writes n adjacent values of the result type; for a missing value, clears bit i of `validity` (all set before).
  int (*finalise)(void* user, void* host, const void* const* states, uint64_t n, void* values,
                  uint8_t* validity) = nullptr;
};

// Registers a function for the rest of the process. *Errors*: InvalidArgument for a bad name, size, type or missing
// callback; AlreadyExists for a name that is taken. *Threads*: any.
absl::Status RegisterHostAggregate(std::string_view name, const HostAggregate& aggregate);
// nullptr if there is none.
const HostAggregate* FindHostAggregate(std::string_view name);

}  // namespace quern

#endif  // QUERN_RUNTIME_SPEC_HOST_AGGREGATES_H_
