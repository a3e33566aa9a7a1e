// SPDX-License-Identifier: Apache-2.0
// Files whose bytes go to the device and come from it, and what the device can do.
#ifndef QUERN_BENCH_SPILL_UNCACHED_FILES_H_
#define QUERN_BENCH_SPILL_UNCACHED_FILES_H_

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/spill/spill_store.h"

namespace quern::bench {

// The calls of the system, but the page cache keeps no more than kMostCachedBytes of what was written, and nothing of
// what was read: files behave as if they were much larger than memory. *Threads*: any.
class UncachedFiles final : public FileCalls {
 public:
  ssize_t Write(int file, const iovec* pieces, int num_pieces, off_t offset) override;
  ssize_t Read(int file, void* bytes, size_t num_bytes, off_t offset) override;
  int Close(int file) override;

 private:
  static constexpr uint64_t kMostCachedBytes = uint64_t{32} << 20;
  struct Range {
    int file;
    off_t offset;
    off_t num_bytes;
  };
  std::mutex mutex_;
  std::deque<Range> written_;  // on their way to the device, the oldest first
  uint64_t written_bytes_ = 0;
};

struct DeviceSpeed {
  double write_bytes_per_s = 0, read_bytes_per_s = 0;
};

// Sequential writes, then reads, of 1 MiB each on four threads, past the page cache (O_DIRECT). *Errors*: Unavailable
// where a file system has no such access, or where a call fails.
absl::StatusOr<DeviceSpeed> MeasureDevice(const std::string& folder, uint64_t num_bytes);

}  // namespace quern::bench

#endif  // QUERN_BENCH_SPILL_UNCACHED_FILES_H_
