// SPDX-License-Identifier: Apache-2.0
// All functions that generated code may call, and the one constant that it may read, quern_hash_secret. It sees no
// other symbol of the process: an undefined symbol that is not in these tables is an error before any code runs.
#ifndef QUERN_RUNTIME_BLOCKS_RUNTIME_CALLS_H_
#define QUERN_RUNTIME_BLOCKS_RUNTIME_CALLS_H_

#include <cstdint>
#include <span>

#include "runtime/abi/kernel_abi.h"

// Makes room for `more` bytes beyond column->num_bytes; contents stay, `bytes` may move. 32 bytes beyond bytes_capacity
// are writable, so that short copies may overshoot. Returns 0 or kQuernOutOfMemory, which leaves the column unchanged.
// *Cost*: amortised one copy of each byte, since capacity grows by at least half.
// NOLINTNEXTLINE(readability-redundant-declaration): also in blocks.h, for templates
extern "C" int32_t quern_rt_reserve_bytes(QuernOutColumn* column, uint64_t more);

namespace quern {

struct RuntimeCall {
  const char* name;
  void* address;
};

std::span<const RuntimeCall> AllRuntimeCalls();
// Data, in the same form.
std::span<const RuntimeCall> AllRuntimeConstants();

}  // namespace quern

#endif  // QUERN_RUNTIME_BLOCKS_RUNTIME_CALLS_H_
