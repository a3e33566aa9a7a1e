// SPDX-License-Identifier: Apache-2.0
// What a device gives depends on two numbers: how large a block is, and how many are in flight. A network disk answers
// one request in half a millisecond, whatever its size, but takes many at once:
//
//     MB/s            depth 1       4      16
//       64 KiB            130     510    1900       2000 MB/s is all that the device has
//        1 MiB            900    1950    2000
//
// A reader that waits for each block of 64 KiB before it asks for the next gets 130 of 2000 MB/s. One that has 16 of
// them in flight gets all, and so does one that has 4 of 1 MiB.
//
// The file is nameless. It is filled first, as far as a quarter of the time allows, since blocks that were never
// written are read without the device. Then threads, one for each block in flight, read blocks at random places, and
// later write them. A measurement takes as long as all others; a combination that needs much longer, by the best
// bandwidth so far, is left out.
//
// O_DIRECT passes the page cache. The same is then measured through the cache, for blocks that are in it: so fast are
// files that the system's free memory holds. Where a file system refuses O_DIRECT, only the cache is measured.
#include "codegen/machine/device_facts.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <system_error>
#include <thread>
#include <utility>

#include "codegen/base/private_folder.h"
#include "runtime/base/status.h"
#include "runtime/blocks/blocks.h"
#include "runtime/spill/spill_store.h"

namespace quern {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kBlockBytes[] = {64 << 10, 256 << 10, kMiB, 4 * kMiB};
constexpr uint32_t kDepths[] = {1, 2, 4, 8, 16, 32}, kCachedDepths[] = {1, 2, 4};
constexpr uint64_t kLargestBlock = 4 * kMiB;
constexpr uint32_t kMostDepth = 32;
constexpr uint64_t kLeastFileBytes = 2 * kLargestBlock;
constexpr double kFillShare = 0.25;  // of the time
// Time for a measurement in flight when its slice ends.
constexpr double kSlicesShare = 0.6;
// A combination is left out whose first blocks alone take so many slices.
constexpr double kMostSlices = 4;

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string ErrorText(int error) { return std::generic_category().message(error); }

absl::Status Refused(const std::string& folder, const std::string& why) {
  return absl::FailedPreconditionError("cannot measure the file system: " + ShowPath(folder) + " (" + why +
                                       "); accepted: a folder that takes new files, with 32 MiB of free space");
}

absl::Status CallFailed(const char* call, const std::string& folder, int error) {
  return absl::UnavailableError("file system under measurement: " + std::string(call) + " of a file in " +
                                ShowPath(folder) + " failed (" + ErrorText(error) + "); accepted: a device that works");
}

// By statfs; *Source*: linux/magic.h.
std::string FileSystemName(int64_t type) {
  constexpr std::pair<int64_t, const char*> kNames[] = {
      {0xEF53, "ext4"},        {0x58465342, "xfs"},  {0x9123683E, "btrfs"},    {0x01021994, "tmpfs"},
      {0x794C7630, "overlay"}, {0x6969, "nfs"},      {0x2FC12FC1, "zfs"},      {0xF2F52010, "f2fs"},
      {0x65735546, "fuse"},    {0xFF534D42, "cifs"}, {0xCA451A4E, "bcachefs"}, {0x01021997, "9p"}};
  const auto* const found =
      std::find_if(std::begin(kNames), std::end(kNames), [&](const auto& name) { return name.first == type; });
  return found == std::end(kNames) ? "file system " + std::to_string(type) : found->second;
}

// A buffer for each thread, at multiples of a page as O_DIRECT wants them.
class Buffers {
 public:
  Buffers() : bytes_(mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (!ok()) return;
    // Bytes that no device makes smaller.
    auto* const words = static_cast<uint64_t*>(bytes_);
    for (uint64_t i = 0; i < kSize / sizeof(uint64_t); ++i) words[i] = blocks::Mix(i + 1, blocks::kPublicHash);
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  ~Buffers() {
    if (ok()) munmap(bytes_, kSize);
  }
  bool ok() const { return bytes_ != MAP_FAILED; }
  uint8_t* Of(uint32_t thread) { return static_cast<uint8_t*>(bytes_) + thread * kLargestBlock; }

 private:
  static constexpr uint64_t kSize = kMostDepth * kLargestBlock;
  void* const bytes_;
};

struct Speed {
  double mb_s = 0, us = 0;
};

class DeviceMeasurement {
 public:
  DeviceMeasurement(const std::string& folder, const DeviceFactsOptions& options)
      : options_(options), begin_(Now()), cached_(SystemFileCalls()->Open(folder.c_str())), direct_(OpenDirect()) {
    facts_.folder = folder;
  }

  absl::StatusOr<DeviceFacts> Run() {
    if (cached_.get() < 0) return Refused(facts_.folder, ErrorText(open_error_));
    if (!buffers_.ok()) return OutOfMemory();
    facts_.passes_cache = direct_.get() >= 0;
    QUERN_RETURN_IF_ERROR(Fill());
    const double slices =
        2 * static_cast<double>(std::size(kBlockBytes)) *
        static_cast<double>((facts_.passes_cache ? std::size(kDepths) : 0) + std::size(kCachedDepths));
    slice_ = std::max(options_.seconds - (Now() - begin_), options_.seconds / 4) * kSlicesShare / slices;
    if (facts_.passes_cache) QUERN_RETURN_IF_ERROR(MeasureAll(kDepths, std::size(kDepths), false));
    Warm();
    QUERN_RETURN_IF_ERROR(MeasureAll(kCachedDepths, std::size(kCachedDepths), true));
    facts_.seconds = Now() - begin_;
    return std::move(facts_);
  }

 private:
  // The same file, past the page cache.
  int OpenDirect() {
    open_error_ = errno;
    if (cached_.get() < 0) return -1;
    const std::string path = "/proc/self/fd/" + std::to_string(cached_.get());
    return open(path.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC);
  }

  absl::Status Say(const std::string& doing) const {
    if (options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed))
      return absl::CancelledError("measuring the file system: stopped; accepted: leave to go on");
    if (options_.progress) options_.progress(doing);
    return absl::OkStatus();
  }

  // Writes the file from its beginning.
  absl::Status Fill() {
    struct statfs about;
    if (fstatfs(cached_.get(), &about) != 0) return Refused(facts_.folder, ErrorText(errno));
    facts_.file_system = FileSystemName(about.f_type);
    const uint64_t free_bytes = static_cast<uint64_t>(about.f_bavail) * static_cast<uint64_t>(about.f_bsize);
    const uint64_t most = std::min(options_.max_bytes, free_bytes / 4) / kLargestBlock * kLargestBlock;
    if (most < kLeastFileBytes) return Refused(facts_.folder, std::to_string(free_bytes) + " bytes are free");
    QUERN_RETURN_IF_ERROR(Say("writing a file in " + ShowPath(facts_.folder)));
    const double end = begin_ + options_.seconds * kFillShare;
    const int file = facts_.passes_cache ? direct_.get() : cached_.get();
    uint64_t& bytes = facts_.file_bytes;
    while (bytes < most && (bytes < kLeastFileBytes || Now() < end)) {
      const ssize_t n = pwrite(file, buffers_.Of(0), kLargestBlock, static_cast<off_t>(bytes));
      if (n < 0 && errno == EINTR) continue;
      if (n != static_cast<ssize_t>(kLargestBlock)) {
        if (bytes >= kLeastFileBytes) break;
        return CallFailed("a write", facts_.folder, n < 0 ? errno : ENOSPC);
      }
      bytes += kLargestBlock;
    }
    return absl::OkStatus();
  }

  // Reads the file into the page cache. What does not come is found by the measurement.
  void Warm() {
    for (uint64_t at = 0; at < facts_.file_bytes; at += kLargestBlock)
      if (pread(cached_.get(), buffers_.Of(0), kLargestBlock, static_cast<off_t>(at)) <= 0) return;
  }

  absl::Status MeasureAll(const uint32_t* depths, size_t num_depths, bool cached) {
    for (const uint64_t block_bytes : kBlockBytes) {
      for (size_t d = 0; d < num_depths; ++d) {
        DeviceFact fact = {block_bytes, depths[d], cached, 0, 0, 0, 0};
        QUERN_RETURN_IF_ERROR(Say(std::to_string(block_bytes >> 10) + " KiB, " + std::to_string(fact.depth) +
                                  (cached ? " at a time in the page cache" : " at a time")));
        QUERN_ASSIGN_OR_RETURN(const Speed read, Measure(fact, /*writes=*/false));
        QUERN_ASSIGN_OR_RETURN(const Speed written, Measure(fact, /*writes=*/true));
        fact.read_mb_s = read.mb_s, fact.read_us = read.us;
        fact.write_mb_s = written.mb_s, fact.write_us = written.us;
        if (read.mb_s != 0) facts_.facts.push_back(fact);
      }
    }
    return absl::OkStatus();
  }

  // All zeros for a combination that would take too long.
  absl::StatusOr<Speed> Measure(const DeviceFact& fact, bool writes) {
    double& best = best_mb_s_[writes ? 1 : 0];
    const double first_blocks = static_cast<double>(fact.depth * fact.block_bytes);
    if (best != 0 && first_blocks / (best * 1e6) > kMostSlices * slice_) return Speed{};
    std::vector<std::thread> threads;
    std::vector<Worker> workers(fact.depth);
    const double start = Now();
    int error = 0;
    for (uint32_t t = 0; t < fact.depth; ++t) {
      workers[t] = {fact.cached ? cached_.get() : direct_.get(), buffers_.Of(t), fact.block_bytes, writes, t, 0, 0, 0};
      try {
        threads.emplace_back([this, &worker = workers[t], end = start + slice_] { Work(end, &worker); });
      } catch (const std::system_error&) {
        error = EAGAIN;
      }
    }
    for (std::thread& thread : threads) thread.join();
    const double seconds = Now() - start;
    uint64_t num_blocks = 0;
    double in_calls = 0;
    for (const Worker& worker : workers) {
      num_blocks += worker.num_blocks;
      in_calls += worker.seconds;
      if (worker.error != 0) error = worker.error;
    }
    if (error != 0) return CallFailed(writes ? "a write" : "a read", facts_.folder, error);
    const Speed speed = {static_cast<double>(num_blocks * fact.block_bytes) / seconds / 1e6,
                         in_calls / static_cast<double>(num_blocks) * 1e6};
    best = std::max(best, speed.mb_s);
    return speed;
  }

  // What one thread does, and what it finds.
  struct Worker {
    int file = -1;
    uint8_t* buffer = nullptr;
    uint64_t block_bytes = 0;
    bool writes = false;
    uint64_t number = 0;
    uint64_t num_blocks = 0;
    double seconds = 0;  // in calls
    int error = 0;
  };
  void Work(double end, Worker* worker) const {
    const uint64_t places = facts_.file_bytes / worker->block_bytes;
    for (double now = Now(); worker->num_blocks == 0 || now < end;) {
      const uint64_t place =
          blocks::Mix(worker->num_blocks * kMostDepth + worker->number + 1, blocks::kPublicHash) % places;
      const auto offset = static_cast<off_t>(place * worker->block_bytes);
      const ssize_t n = worker->writes ? pwrite(worker->file, worker->buffer, worker->block_bytes, offset)
                                       : pread(worker->file, worker->buffer, worker->block_bytes, offset);
      if (n < 0 && errno == EINTR) continue;
      if (n != static_cast<ssize_t>(worker->block_bytes)) {
        worker->error = n < 0 ? errno : EIO;
        return;
      }
      const double then = std::exchange(now, Now());
      worker->seconds += now - then;
      ++worker->num_blocks;
    }
  }

  const DeviceFactsOptions& options_;
  const double begin_;
  int open_error_ = 0;
  const Descriptor cached_, direct_;
  Buffers buffers_;
  double slice_ = 0;  // seconds of a measurement
  double best_mb_s_[2] = {0, 0};
  DeviceFacts facts_;
};

}  // namespace

absl::StatusOr<DeviceFacts> MeasureDevice(const std::string& folder, const DeviceFactsOptions& options) {
  return DeviceMeasurement(folder, options).Run();
}

}  // namespace quern
