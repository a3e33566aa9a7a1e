// SPDX-License-Identifier: Apache-2.0
// Kernels on disk, for later processes: one file each, with the object that LLVM generated and its key.
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

// Folder and mode of the cache: QUERN_CACHE and QUERN_CACHE_DIR, else the XDG cache folder.
struct DiskCachePlace {
  DiskCacheMode mode = DiskCacheMode::kReadWrite;
  std::string directory;                     // absolute; empty if mode is off and the user has no cache folder
  uint64_t max_bytes = uint64_t{256} << 20;  // of files; Store enforces it from time to time
};
// *Errors*: FailedPrecondition for a bad value, or if the mode is not off and the user has no home folder.
absl::StatusOr<DiskCachePlace> DiskCachePlaceOfEnvironment();

// A file of the cache.
struct StoredKernel {
  std::string name;         // of the file
  std::string description;  // the key: canonical spec, plan, machine, versions; empty if there is a problem
  uint64_t file_bytes = 0;
  uint64_t object_bytes = 0;
  int64_t used_ns = 0;  // since the epoch; last written or, to the hour, loaded
  std::string problem;  // why it cannot be loaded; empty if it can
};

// The content of a folder.
struct DiskCacheContent {
  std::vector<StoredKernel> kernels;  // most recently used first
  uint64_t temporary_files = 0;       // being written, or left by processes that died
  uint64_t temporary_bytes = 0;
};

// *Threads*: any; any number of processes may share a folder.
class DiskCache {
 public:
  explicit DiskCache(DiskCachePlace place);

  // The cache that Compile uses, by the environment at the first call. A bad environment, or a folder that others can
  // write to, logs one warning, and nothing is cached.
  static DiskCache& OfProcess();

  // The object of a key; nullopt unless there is an intact file of this key and version. *Cost*: one open, one read,
  // one checksum; no part of LLVM is initialised. *Errors*: none: a bad file or folder counts as missing.
  std::optional<std::string> Find(std::string_view key) const;
  // Whether there is a file for a key, intact or not. *Cost*: one system call.
  bool Has(std::string_view key) const;

  // Stores an object: writes a temporary file and renames it, so that no reader sees part of it, and a process that
  // dies leaves at most a temporary file, which Collect removes. Does nothing unless the mode is kReadWrite. A full
  // disk or an unwritable folder logs one warning. One call in 64 collects what exceeds max_bytes.
  void Store(std::string_view key, std::string_view object);

  // For `quern cache`, in any mode. *Cost*: reads every file. *Errors*: FailedPrecondition for an unsafe folder; never
  // NotFound, since a missing folder is an empty cache.
  absl::StatusOr<DiskCacheContent> Read() const;
  // Removes kernels, least recently used first, until the rest take at most `max_bytes`, and temporary files older than
  // an hour. Returns the number of removed files. *Errors*: as Read.
  absl::StatusOr<uint64_t> Collect(uint64_t max_bytes);
  // Removes all kernels and temporary files, and no file with another kind of name. *Errors*: as Read.
  absl::StatusOr<uint64_t> Clear();

  const DiskCachePlace& place() const { return place_; }

 private:
  const DiskCachePlace place_;
  std::atomic<uint32_t> until_collection_;  // in stores
};

}  // namespace quern

#endif  // QUERN_CODEGEN_CACHE_DISK_CACHE_H_
