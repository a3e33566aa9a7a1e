// SPDX-License-Identifier: Apache-2.0
// A folder whose files are trusted: folder and files belong to the user of this process, and nobody else can write to
// them.
#ifndef QUERN_CODEGEN_BASE_PRIVATE_FOLDER_H_
#define QUERN_CODEGEN_BASE_PRIVATE_FOLDER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace quern {

// An open file or folder of the system. *Ownership*: the destructor closes it.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor();
  int get() const { return number_; }
  // Closes it now. *Errors*: errno, since some systems report only here that a file could not be written; else 0.
  int Close();

 private:
  int number_;
};

// The name of a file and its attributes.
struct FolderEntry {
  std::string name;
  uint64_t bytes = 0;
  int64_t changed_ns = 0;  // since the epoch
};

class PrivateFolder {
 public:
  // what: as messages name it, "kernel cache". *Errors*: NotFound if there is none; FailedPrecondition if it is not
  // private or cannot be opened.
  static absl::StatusOr<PrivateFolder> Open(const std::string& path, const std::string& what);
  // Creates the folder if it does not exist, and its parents, all accessible to the user only.
  static absl::StatusOr<PrivateFolder> OpenOrMake(const std::string& path, const std::string& what);

  // Reads the whole file. Sets its time to now if that is older than `touch_after_ns` (0: never). *Errors*: NotFound;
  // FailedPrecondition, with a short text, if it is not a file, has another owner, is writable by others, has more than
  // `max_bytes`, or cannot be read.
  absl::StatusOr<std::string> Read(const std::string& name, size_t max_bytes, int64_t touch_after_ns) const;

  // Writes a file, or replaces the one of that name: writes it as `temporary` first and renames it, so that no reader
  // sees part of it. *Errors*: FailedPrecondition; then nothing is left behind.
  absl::Status Replace(const std::string& name, const std::string& temporary, std::string_view content) const;

  // All entries except folders and special names such as ".", in no order. *Errors*: FailedPrecondition.
  absl::StatusOr<std::vector<FolderEntry>> Entries() const;
  // True if a file was removed.
  bool Remove(const std::string& name) const;

 private:
  PrivateFolder(std::string what, std::string path, Descriptor descriptor)
      : what_(std::move(what)), path_(std::move(path)), descriptor_(std::move(descriptor)) {}
  absl::Status CannotWrite(int number) const;

  std::string what_, path_;
  Descriptor descriptor_;
};

// Now, in nanoseconds since the epoch, by the clock of file times.
int64_t FileTimeNow();

}  // namespace quern

#endif  // QUERN_CODEGEN_BASE_PRIVATE_FOLDER_H_
