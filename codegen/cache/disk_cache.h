// SPDX-License-Identifier: Apache-2.0
// Kernels on disk, for the next process: one file each, the object as LLVM made it and beside it what it is.
#ifndef QUERN_CODEGEN_CACHE_DISK_CACHE_H_
#define QUERN_CODEGEN_CACHE_DISK_CACHE_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace quern {

enum class DiskCacheMode : uint8_t { kOff, kReadOnly, kReadWrite };

// Where and how: QUERN_CACHE and QUERN_CACHE_DIR, else the XDG cache folder.
struct DiskCachePlace {
  DiskCacheMode mode = DiskCacheMode::kReadWrite;
  std::string directory;                     // absolute; empty where mode is off and the user has none
  uint64_t max_bytes = uint64_t{256} << 20;  // of files; Store sees to it now and then
};
// *Errors*: FailedPrecondition for a bad value; and where no folder can be found for the user (no home) and it is not
// off.
absl::StatusOr<DiskCachePlace> DiskCachePlaceOfEnvironment();

// One file of the cache.
struct StoredKernel {
  std::string name;         // of the file
  std::string description;  // the key: canonical spec, plan, machine, versions. Empty where there is a problem
  uint64_t file_bytes = 0;
  uint64_t object_bytes = 0;
  int64_t used_ns = 0;  // since the epoch, when it was last written or, within an hour, loaded
  std::string problem;  // why it would not be loaded; empty: it would
};

// What is in a folder.
struct DiskCacheContent {
  std::vector<StoredKernel> kernels;  // most recently used first
  uint64_t temporary_files = 0;       // being written, or left by processes that died
  uint64_t temporary_bytes = 0;
};

// *Threads*: any; any number of processes may share a folder.
class DiskCache {
 public:
  explicit DiskCache(DiskCachePlace place);

  // The one that Compile uses, of the environment as it is at the first call. A bad environment, or a folder that
  // others could write to, is one warning, and nothing is cached.
  static DiskCache& OfProcess();

  // The object of a key; nothing where there is none that is whole, of this key and of this version. *Cost*: one open,
  // one read, a checksum; no part of LLVM is started. *Errors*: none: whatever is wrong with a file or a folder is as
  // if it were not there.
  std::optional<std::string> Find(std::string_view key) const;
  // Whether there is a file for a key, whatever is in it. *Cost*: one question to the system.
  bool Has(std::string_view key) const;

  // Keeps an object: written beside its place and renamed, so that no reader sees a part of it, and a process that dies
  // leaves no more than a file with a temporary name, which Collect removes. Does nothing in any mode but kReadWrite; a
  // full disk or a folder that does not take it is one warning. Once in 64 times, what is beyond max_bytes is
  // collected.
  void Store(std::string_view key, std::string_view object);

  // For `quern cache`, in any mode. *Cost*: every file is read. *Errors*: FailedPrecondition for a folder that is not
  // safe; NotFound never: no folder is an empty cache.
  absl::StatusOr<DiskCacheContent> Read() const;
  // Removes kernels, least recently used first, until they take at most so many bytes, and temporary files that are an
  // hour old. Answers how many files went. *Errors*: as Read.
  absl::StatusOr<uint64_t> Collect(uint64_t max_bytes);
  // Removes all kernels and temporary files; nothing that has another kind of name. *Errors*: as Read.
  absl::StatusOr<uint64_t> Clear();

  const DiskCachePlace& place() const { return place_; }

 private:
  const DiskCachePlace place_;
  std::atomic<uint32_t> until_collection_;  // stores
};

}  // namespace quern

#endif  // QUERN_CODEGEN_CACHE_DISK_CACHE_H_
