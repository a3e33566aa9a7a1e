// SPDX-License-Identifier: Apache-2.0
// The table of calls that generated code makes: room for strings, the blocks of out_of_line_blocks.def (once per batch
// and column), functions of floats and strings (once for eight rows), and functions such as memcpy that a compiler may
// substitute for a loop or a comparison.
//
// Room for strings: a column with 1000 of 4096 bytes in use that needs 5000 more gets max(1000 + 5000, 1.5 * 4096) =
// 6144 bytes; the 1000 are copied, and its pointer changes. So a kernel must not keep `bytes` across the call.
#include "runtime/blocks/runtime_calls.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "runtime/base/output_buffer.h"
#include "runtime/blocks/block_signatures.h"
#include "runtime/blocks/encode.h"
#include "runtime/blocks/filter_blocks.h"
#include "runtime/blocks/real_functions.h"
#include "runtime/blocks/string_functions.h"
#include "runtime/collation/collate.h"

extern "C" int32_t quern_rt_reserve_bytes(QuernOutColumn* column, uint64_t more) {
  constexpr uint64_t kMaxBytes = uint64_t{1} << 47;  // more than any address space; the sums below cannot overflow
  if (more > kMaxBytes) return kQuernOutOfMemory;
  const uint64_t needed = column->num_bytes + more;
  if (needed <= column->bytes_capacity) return 0;
  auto* buffer = static_cast<quern::OutputBuffer*>(column->owner);
  const uint64_t capacity = std::max(needed, column->bytes_capacity + column->bytes_capacity / 2);
  try {
    if (!buffer->Grow(capacity, column->num_bytes).ok()) return kQuernOutOfMemory;
  } catch (const std::bad_alloc&) {  // from the error's text; it must not unwind through generated code
    return kQuernOutOfMemory;
  }
  column->bytes = buffer->data();
  column->bytes_capacity = buffer->capacity_bytes();
  return 0;
}

namespace quern {

std::span<const RuntimeCall> AllRuntimeCalls() {
  static const RuntimeCall kCalls[] = {
      {"quern_rt_reserve_bytes", reinterpret_cast<void*>(&quern_rt_reserve_bytes)},
#define QUERN_CALL(name) {#name, reinterpret_cast<void*>(&name)},
#define QUERN_CALLED_HASH(text, kStorage) QUERN_CALL(quern_rt_hash_##text)
#define QUERN_CALLED_PACK(text, kStorage) QUERN_CALL(quern_rt_pack_##text)
#define QUERN_CALLED_COLUMN(text, kStorage) \
  QUERN_CALL(quern_rt_store_##text) QUERN_CALL(quern_rt_emit_probe_##text) QUERN_CALL(quern_rt_emit_field_##text)
#define QUERN_CALLED_STRING(text, kStorage) \
  QUERN_CALL(quern_rt_reserve_probe_##text) QUERN_CALL(quern_rt_reserve_field_##text)
#define QUERN_CALLED_ENCODE(text, kStorage, kPart) QUERN_CALL(quern_rt_encode_##text)
#define QUERN_CALLED_BYTES(text, kStorage) QUERN_CALL(quern_rt_encode_##text)
#include "runtime/blocks/out_of_line_blocks.def"
      QUERN_CALL(quern_rt_encode_nulls) QUERN_CALL(quern_rt_order_string) QUERN_CALL(quern_rt_filter_leaf)
          QUERN_CALL(quern_rt_filter_compare) QUERN_CALL(quern_rt_filter_parts) QUERN_CALL(quern_rt_equal_collated)
              QUERN_CALL(quern_rt_ln) QUERN_CALL(quern_rt_log10) QUERN_CALL(quern_rt_exp) QUERN_CALL(quern_rt_power)
                  QUERN_CALL(quern_rt_empty_strings) QUERN_CALL(quern_rt_load_strings)
                      QUERN_CALL(quern_rt_store_strings)
#define QUERN_STRING_FUNCTION(name) QUERN_CALL(quern_rt_##name)
#include "runtime/blocks/string_functions.def"
                          {"memcpy", reinterpret_cast<void*>(&memcpy)},
      {"memmove", reinterpret_cast<void*>(&memmove)},
      {"memset", reinterpret_cast<void*>(&memset)},
      {"memcmp", reinterpret_cast<void*>(&memcmp)},
      {"bcmp",
       reinterpret_cast<void*>(&bcmp)},  // NOLINT(bugprone-unsafe-functions): LLVM turns memcmp(..) == 0 into it
  };
  return kCalls;
}

std::span<const RuntimeCall> AllRuntimeConstants() {
  static const RuntimeCall kConstants[] = {
      {"quern_hash_secret", const_cast<void*>(static_cast<const void*>(&blocks::quern_hash_secret))}};
  return kConstants;
}

}  // namespace quern
