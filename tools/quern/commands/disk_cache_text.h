// SPDX-License-Identifier: Apache-2.0
// What `quern cache` and `quern doctor` print about the kernels on disk.
#ifndef QUERN_TOOLS_COMMANDS_DISK_CACHE_TEXT_H_
#define QUERN_TOOLS_COMMANDS_DISK_CACHE_TEXT_H_

#include <cstdint>
#include <string>

#include "codegen/cache/disk_cache.h"

namespace quern::cli {

// The value of QUERN_CACHE.
inline const char* ModeText(DiskCacheMode mode) {
  switch (mode) {
    case DiskCacheMode::kOff: return "off";
    case DiskCacheMode::kReadOnly: return "ro";
    case DiskCacheMode::kReadWrite: return "rw";
  }
  return "off";
}

struct DiskCacheTotals {
  uint64_t kernels = 0;   // that would be loaded
  uint64_t problems = 0;  // files that would not
  uint64_t bytes = 0;     // of both
};

inline DiskCacheTotals TotalsOf(const DiskCacheContent& content) {
  DiskCacheTotals totals;
  for (const StoredKernel& kernel : content.kernels) {
    ++(kernel.problem.empty() ? totals.kernels : totals.problems);
    totals.bytes += kernel.file_bytes;
  }
  return totals;
}

}  // namespace quern::cli

#endif  // QUERN_TOOLS_COMMANDS_DISK_CACHE_TEXT_H_
