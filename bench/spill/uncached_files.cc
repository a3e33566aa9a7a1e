// SPDX-License-Identifier: Apache-2.0
// Writing stays behind by 32 MiB, as it does in a cache that is full of other files:
//
//     write 0, 1, 2 ..       each is started on its way to the device at once (sync_file_range)
//     32 MiB later           waits until write 0 is there, and drops its pages from the cache (POSIX_FADV_DONTNEED)
//     read                   from the device, except for the last writes; its pages are dropped
//
// The device itself is measured with O_DIRECT. Both are kinder to a device than a program that forces each write, and
// neither is flattered by the cache.
#include "bench/spill/uncached_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <system_error>
#include <vector>

#include "bench/common/random_bits.h"
#include "bench/common/timing.h"
#include "runtime/base/status.h"

namespace quern::bench {
namespace {

constexpr uint64_t kBlockBytes = uint64_t{1} << 20;
constexpr unsigned kThreads = 4;
constexpr size_t kAlignment = 4096;

absl::Status Failed(const char* what, const std::string& folder, int error) {
  return absl::UnavailableError(std::string(what) + " past the page cache in " + ShowPath(folder) + ": " +
                                std::error_code(error, std::generic_category()).message() +
                                "; accepted: a folder on a device");
}

// Calls one(block, bytes) for all blocks on four threads.
template <class One>
absl::Status ForBlocks(uint64_t num_blocks, const One& one) {
  std::atomic<uint64_t> next{0};
  return OnThreads(kThreads, [&]() -> absl::Status {
    const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(kAlignment, kBlockBytes), &std::free);
    if (memory == nullptr) return absl::ResourceExhaustedError("no memory for a block");
    auto* const words = static_cast<uint64_t*>(memory.get());
    for (uint64_t i = 0; i < kBlockBytes / sizeof(uint64_t); ++i) words[i] = RandomBits(i);
    for (uint64_t block; (block = next.fetch_add(1)) < num_blocks;) QUERN_RETURN_IF_ERROR(one(block, memory.get()));
    return absl::OkStatus();
  });
}

// The file of a measurement.
class DirectFile {
 public:
  explicit DirectFile(const std::string& folder)
      : file_(open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | O_DIRECT, 0600)), error_(errno) {}
  DirectFile(const DirectFile&) = delete;
  DirectFile& operator=(const DirectFile&) = delete;
  ~DirectFile() {
    if (file_ >= 0) close(file_);
  }
  int get() const { return file_; }
  int error() const { return error_; }

 private:
  const int file_, error_;
};

}  // namespace

ssize_t UncachedFiles::Write(int file, const iovec* pieces, int num_pieces, off_t offset) {
  const ssize_t n = FileCalls::Write(file, pieces, num_pieces, offset);
  if (n <= 0) return n;
  sync_file_range(file, offset, n, SYNC_FILE_RANGE_WRITE);
  std::vector<Range> oldest;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    written_.push_back({file, offset, n});
    written_bytes_ += static_cast<uint64_t>(n);
    while (written_bytes_ > kMostCachedBytes) {
      written_bytes_ -= static_cast<uint64_t>(written_.front().num_bytes);
      oldest.push_back(written_.front());
      written_.pop_front();
    }
  }
  for (const Range& range : oldest) {
    sync_file_range(range.file, range.offset, range.num_bytes,
                    SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
    posix_fadvise(range.file, range.offset, range.num_bytes, POSIX_FADV_DONTNEED);
  }
  return n;
}

ssize_t UncachedFiles::Read(int file, void* bytes, size_t num_bytes, off_t offset) {
  const ssize_t n = FileCalls::Read(file, bytes, num_bytes, offset);
  if (n > 0) posix_fadvise(file, offset, n, POSIX_FADV_DONTNEED);
  return n;
}

int UncachedFiles::Close(int file) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(written_, [&](const Range& range) {
    if (range.file == file) written_bytes_ -= static_cast<uint64_t>(range.num_bytes);
    return range.file == file;
  });
  return FileCalls::Close(file);
}

absl::StatusOr<DeviceSpeed> MeasureDevice(const std::string& folder, uint64_t num_bytes) {
  const DirectFile file(folder);
  if (file.get() < 0) return Failed("no file", folder, file.error());
  const uint64_t num_blocks = std::max<uint64_t>(num_bytes / kBlockBytes, 1);
  const auto bytes_per_s = [&](double start) {
    return static_cast<double>(num_blocks * kBlockBytes) / (Now() - start);
  };
  DeviceSpeed speed;
  double start = Now();
  QUERN_RETURN_IF_ERROR(ForBlocks(num_blocks, [&](uint64_t block, const void* bytes) {
    const ssize_t n = pwrite(file.get(), bytes, kBlockBytes, static_cast<off_t>(block * kBlockBytes));
    return n == static_cast<ssize_t>(kBlockBytes) ? absl::OkStatus() : Failed("no write", folder, n < 0 ? errno : EIO);
  }));
  speed.write_bytes_per_s = bytes_per_s(start);
  start = Now();
  QUERN_RETURN_IF_ERROR(ForBlocks(num_blocks, [&](uint64_t block, void* bytes) {
    const ssize_t n = pread(file.get(), bytes, kBlockBytes, static_cast<off_t>(block * kBlockBytes));
    return n == static_cast<ssize_t>(kBlockBytes) ? absl::OkStatus() : Failed("no read", folder, n < 0 ? errno : EIO);
  }));
  speed.read_bytes_per_s = bytes_per_s(start);
  return speed;
}

}  // namespace quern::bench
