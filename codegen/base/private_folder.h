// SPDX-License-Identifier: Apache-2.0
// A folder whose files are trusted: it belongs to the user of this process, nobody else can write to it, and so it is
// with its files.
#ifndef QUERN_CODEGEN_BASE_PRIVATE_FOLDER_H_
#define QUERN_CODEGEN_BASE_PRIVATE_FOLDER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace quern {

// An open file or folder of the system. *Ownership*: closed with it.
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
  // Closes it now. *Errors*: errno's number, since some systems tell only here that a file could not be written; 0
  // where all is well.
  int Close();

 private:
  int number_;
};

// A file's name and what the system says of it.
struct FolderEntry {
  std::string name;
  uint64_t bytes = 0;
  int64_t changed_ns = 0;  // since the epoch
};

class PrivateFolder {
 public:
  // *Errors*: NotFound where there is none; FailedPrecondition for one that is not private or cannot be opened.
  static absl::StatusOr<PrivateFolder> Open(const std::string& path);
  // Makes it where there is none, with the folders above it, all for the user alone.
  static absl::StatusOr<PrivateFolder> OpenOrMake(const std::string& path);

  // The whole content, whose time is set to now where `touch_after_ns` have passed since it was set (0: never set).
  // *Errors*: NotFound; FailedPrecondition in a few words for what is not a file, has another owner, can be written by
  // others, has more than `max_bytes` or cannot be read.
  absl::StatusOr<std::string> Read(const std::string& name, size_t max_bytes, int64_t touch_after_ns) const;

  // Puts a file in the place of what has the name, if anything has: under the name `temporary` first, then renamed, so
  // that no reader sees a part of it. *Errors*: FailedPrecondition; then nothing is left.
  absl::Status Replace(const std::string& name, const std::string& temporary, std::string_view content) const;

  // All that is in it but folders and "." files' like; in no order. *Errors*: FailedPrecondition.
  absl::StatusOr<std::vector<FolderEntry>> Entries() const;
  // True where there is one less now.
  bool Remove(const std::string& name) const;

 private:
  PrivateFolder(std::string path, Descriptor descriptor) : path_(std::move(path)), descriptor_(std::move(descriptor)) {}
  absl::Status WriteNew(const std::string& name, std::string_view content) const;

  std::string path_;
  Descriptor descriptor_;
};

// Nanoseconds since the epoch, as files have them.
int64_t FileTimeNow();

}  // namespace quern

#endif  // QUERN_CODEGEN_BASE_PRIVATE_FOLDER_H_
