// SPDX-License-Identifier: Apache-2.0
#include "runtime/rows/row_order.h"

#include "runtime/base/cpu.h"

namespace quern {
namespace {

// Without branches, which compilers turn into vector code.
inline __attribute__((always_inline)) bool AscendAll(const uint32_t* rows, uint64_t n) {
  uint32_t descends = 0;
  for (uint64_t i = 1; i < n; ++i) descends |= static_cast<uint32_t>(rows[i] <= rows[i - 1]);
  return descends == 0;
}

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))) bool AscendWide(const uint32_t* rows, uint64_t n) {
  return AscendAll(rows, n);
}
#endif

}  // namespace

bool Ascend(const uint32_t* rows, uint64_t n) {
#if defined(__x86_64__)
  if (HasAvx512()) return AscendWide(rows, n);
#endif
  return AscendAll(rows, n);
}

}  // namespace quern
