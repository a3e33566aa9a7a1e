// SPDX-License-Identifier: Apache-2.0
// The kernel cache folder. Each kernel is one file, named after a hash of its key (kernel_file.h). There is no index
// and no lock:
//
//     ~/.cache/quern/3f07c2a95be0d1f48a6c0d2b7e91c553.kernel     9,412 bytes, written when it was compiled
//     ~/.cache/quern/8d11....kernel                              another spec, plan, machine or version
//     ~/.cache/quern/5be1a0c97712f3d4.quern-tmp                  a file being written, under a random name
//
// Processes share the folder without coordination. Files get their name by a rename, so a reader that opens a name gets
// the whole file or none, and it keeps an open file even if another process replaces or removes it. Two writers of one
// kernel have produced the same bytes, and the second rename wins. A process that is killed while it writes leaves a
// temporary file; an hour later, the next collection removes it. Files that are damaged, foreign or have wrong
// permissions are not read, and the next process that compiles the kernel replaces them.
//
// The folder stays below 256 MiB, about 20,000 kernels. The time of a file is when it was written or, to the hour, last
// loaded, so that hits write a time at most once an hour. Kernels that have been unused for longest are removed first.
// They include all kernels of older versions and other machines: both are in the key, so those kernels are never looked
// up again. Listing the folder takes 2 us a file, so one Store in 64 does it; the first is chosen at random, for the
// sake of processes that compile one kernel and end.
#include "codegen/cache/disk_cache.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "codegen/base/environment.h"
#include "codegen/base/log.h"
#include "codegen/base/private_folder.h"
#include "codegen/cache/kernel_file.h"
#include "runtime/base/fork_safety.h"
#include "runtime/base/status.h"

namespace quern {
namespace {

constexpr const char* kWhat = "kernel cache";
constexpr int64_t kHourNs = int64_t{3600} * 1'000'000'000;
constexpr uint32_t kStoresPerCollection = 64;
constexpr std::string_view kSuffix = ".kernel";
constexpr std::string_view kTemporarySuffix = ".quern-tmp";

std::string FileNameOf(std::string_view key) { return KernelFileStem(key) + std::string(kSuffix); }

// Whether a name is this many hexadecimal digits and the suffix. No other file in the folder is ever touched.
bool IsNamed(std::string_view name, size_t digits, std::string_view suffix) {
  return name.size() == digits + suffix.size() && name.substr(digits) == suffix &&
         name.substr(0, digits).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}
bool IsKernel(std::string_view name) { return IsNamed(name, 32, kSuffix); }
bool IsTemporary(std::string_view name) { return IsNamed(name, 16, kTemporarySuffix); }

// Random enough for unique names. The process id is not: processes on other machines may share the folder.
uint64_t RandomNumber() {
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, GRND_NONBLOCK) == sizeof number) return number;
  return static_cast<uint64_t>(FileTimeNow()) * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(getpid());
}

std::string TemporaryName() {
  char name[40];
  std::snprintf(name, sizeof name, "%016llx%s", static_cast<unsigned long long>(RandomNumber()),
                kTemporarySuffix.data());
  return name;
}

absl::StatusOr<DiskCacheMode> ModeOfEnvironment() {
  const VariableRow row = ReadVariable(Variable::kCache);
  if (row.value == "off") return DiskCacheMode::kOff;
  if (row.value == "ro") return DiskCacheMode::kReadOnly;
  if (row.value == "rw") return DiskCacheMode::kReadWrite;
  return absl::FailedPreconditionError("bad value of " + row.name + ": " + Show(row.value) +
                                       "; accepted: " + row.accepted);
}

// An absolute path without a slash at the end.
absl::StatusOr<std::string> AbsoluteFolder(const std::string& path) {
  std::error_code error;
  std::string absolute = std::filesystem::absolute(path, error).string();
  if (error)
    return absl::FailedPreconditionError("bad value of QUERN_CACHE_DIR: " + ShowPath(path) + "; accepted: a folder");
  while (absolute.size() > 1 && absolute.back() == '/') absolute.pop_back();
  return absolute;
}

void WarnOf(const absl::Status& status) {
  if (!status.ok() && !absl::IsNotFound(status))
    WarnOnce("kernels are not kept on disk: " + std::string(status.message()));
}

StoredKernel ReadStored(const PrivateFolder& folder, const FolderEntry& entry) {
  StoredKernel stored;
  stored.name = entry.name;
  stored.file_bytes = entry.bytes;
  stored.used_ns = entry.changed_ns;
  const absl::StatusOr<std::string> bytes = folder.Read(entry.name, kMaxKernelFileBytes, 0);
  const absl::StatusOr<KernelFile> file = bytes.ok() ? DecodeKernelFile(*bytes) : bytes.status();
  if (!file.ok()) {
    stored.problem = std::string(file.status().message());
  } else if (entry.name != FileNameOf(file->key)) {
    stored.problem = "of another name";
  } else {
    stored.description = std::string(file->key);
    stored.object_bytes = file->object.size();
  }
  return stored;
}

uint64_t RemoveOldTemporaries(const PrivateFolder& folder, const std::vector<FolderEntry>& entries,
                              int64_t min_age_ns) {
  uint64_t removed = 0;
  const int64_t now = FileTimeNow();
  for (const FolderEntry& entry : entries) {
    if (IsTemporary(entry.name) && now - entry.changed_ns >= min_age_ns) removed += folder.Remove(entry.name);
  }
  return removed;
}

uint64_t RemoveKernels(const PrivateFolder& folder, std::vector<FolderEntry> entries, uint64_t max_bytes) {
  std::erase_if(entries, [](const FolderEntry& entry) { return !IsKernel(entry.name); });
  std::sort(entries.begin(), entries.end(),
            [](const FolderEntry& a, const FolderEntry& b) { return a.changed_ns < b.changed_ns; });
  uint64_t bytes = 0;
  for (const FolderEntry& entry : entries) bytes += entry.bytes;
  uint64_t removed = 0;
  for (const FolderEntry& entry : entries) {
    if (bytes <= max_bytes) break;
    bytes -= entry.bytes;
    removed += folder.Remove(entry.name);
  }
  return removed;
}

absl::StatusOr<uint64_t> RemoveFrom(const std::string& directory, uint64_t max_bytes, int64_t min_age_ns) {
  const absl::StatusOr<PrivateFolder> folder = PrivateFolder::Open(directory, kWhat);
  if (absl::IsNotFound(folder.status())) return 0;
  QUERN_RETURN_IF_ERROR(folder.status());
  QUERN_ASSIGN_OR_RETURN(const std::vector<FolderEntry> entries, folder->Entries());
  return RemoveOldTemporaries(*folder, entries, min_age_ns) + RemoveKernels(*folder, entries, max_bytes);
}

}  // namespace

absl::StatusOr<DiskCachePlace> DiskCachePlaceOfEnvironment() {
  DiskCachePlace place;
  QUERN_ASSIGN_OR_RETURN(place.mode, ModeOfEnvironment());
  const std::string directory = ReadVariable(Variable::kCacheDir).value;
  if (!directory.empty()) {
    QUERN_ASSIGN_OR_RETURN(place.directory, AbsoluteFolder(directory));
  } else if (place.mode != DiskCacheMode::kOff) {
    return absl::FailedPreconditionError(
        "no folder for kernels: HOME is not set; accepted: QUERN_CACHE_DIR=FOLDER, or QUERN_CACHE=off");
  }
  return place;
}

DiskCache::DiskCache(DiskCachePlace place)
    : place_(std::move(place)), until_collection_(static_cast<uint32_t>(RandomNumber() % kStoresPerCollection)) {}

DiskCache& DiskCache::OfProcess() {
  const NoFork no_fork;  // the first call makes it
  static auto* cache = [] {
    const DiskCachePlace nowhere = {DiskCacheMode::kOff, ""};
    const absl::StatusOr<DiskCachePlace> place = DiskCachePlaceOfEnvironment();
    WarnOf(place.status());
    return new DiskCache(place.ok() ? *place : nowhere);
  }();
  return *cache;
}

std::optional<std::string> DiskCache::Find(std::string_view key) const {
  if (place_.mode == DiskCacheMode::kOff) return std::nullopt;
  const absl::StatusOr<PrivateFolder> folder = PrivateFolder::Open(place_.directory, kWhat);
  if (!folder.ok()) {
    WarnOf(folder.status());
    return std::nullopt;
  }
  const bool is_writable = place_.mode == DiskCacheMode::kReadWrite;
  absl::StatusOr<std::string> bytes = folder->Read(FileNameOf(key), kMaxKernelFileBytes, is_writable ? kHourNs : 0);
  if (!bytes.ok()) return std::nullopt;
  const absl::StatusOr<KernelFile> file = DecodeKernelFile(*bytes);
  if (!file.ok() || file->key != key) return std::nullopt;
  return std::string(file->object);
}

bool DiskCache::Has(std::string_view key) const {
  return place_.mode != DiskCacheMode::kOff && access((place_.directory + "/" + FileNameOf(key)).c_str(), R_OK) == 0;
}

void DiskCache::Store(std::string_view key, std::string_view object) {
  if (place_.mode != DiskCacheMode::kReadWrite) return;
  const std::string content = EncodeKernelFile(key, object);
  if (content.size() > kMaxKernelFileBytes) return;
  const absl::StatusOr<PrivateFolder> folder = PrivateFolder::OpenOrMake(place_.directory, kWhat);
  const absl::Status status =
      folder.ok() ? folder->Replace(FileNameOf(key), TemporaryName(), content) : folder.status();
  if (!status.ok()) return WarnOf(status);
  // The number wraps below 0 once in each collection; threads that meet there collect twice.
  if (until_collection_.fetch_sub(1, std::memory_order_relaxed) != 0) return;
  until_collection_.store(kStoresPerCollection - 1, std::memory_order_relaxed);
  (void)Collect(place_.max_bytes);
}

absl::StatusOr<DiskCacheContent> DiskCache::Read() const {
  DiskCacheContent content;
  const absl::StatusOr<PrivateFolder> folder = PrivateFolder::Open(place_.directory, kWhat);
  if (absl::IsNotFound(folder.status())) return content;
  QUERN_RETURN_IF_ERROR(folder.status());
  QUERN_ASSIGN_OR_RETURN(const std::vector<FolderEntry> entries, folder->Entries());
  for (const FolderEntry& entry : entries) {
    if (IsKernel(entry.name)) content.kernels.push_back(ReadStored(*folder, entry));
    if (!IsTemporary(entry.name)) continue;
    ++content.temporary_files;
    content.temporary_bytes += entry.bytes;
  }
  std::sort(content.kernels.begin(), content.kernels.end(), [](const StoredKernel& a, const StoredKernel& b) {
    return std::pair(-a.used_ns, a.name) < std::pair(-b.used_ns, b.name);
  });
  return content;
}

absl::StatusOr<uint64_t> DiskCache::Collect(uint64_t max_bytes) {
  return RemoveFrom(place_.directory, max_bytes, kHourNs);
}
absl::StatusOr<uint64_t> DiskCache::Clear() { return RemoveFrom(place_.directory, 0, INT64_MIN / 2); }

}  // namespace quern
