// SPDX-License-Identifier: Apache-2.0
// Anyone who can write to the kernel cache folder can make the user run any code, and anyone who can write to a folder
// in which the user makes files can have them written elsewhere, through links. Such folders and their files are
// therefore checked before anything in them is used or made:
//
//     drwx------  ann  /home/ann/.cache/quern     accepted
//     drwxrwx---  ann  /srv/quern                 refused: her group could put kernels there
//     drwx------  bob  /tmp/quern                 refused: bob can, even where he has given her access
//     lrwxrwxrwx  bob  /tmp/quern -> /home/ann    refused: whoever made a link controls it (links above are followed),
//                                                 also as /tmp/quern/ and /tmp/quern/.
//     /tmp/quern/..                               refused: it names no folder, but the one above whatever quern is
//
// What is checked is what is used: folder and file are opened first and checked through their descriptors, and files
// are opened relative to the open folder, so that neither can be replaced in between. Files are read into memory, not
// mapped: a mapping changes with its file after the check, or ends in SIGBUS where the file is truncated. Opening never
// blocks, even if the name is a pipe.
//
// Kernels are not flushed to the disk (write_file.cc). After a loss of power the checksum of one may fail, and it is
// written again. Waiting for the disk would make every compilation slower by milliseconds to save one after a crash.
#include "codegen/base/private_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <memory>
#include <system_error>

#include "codegen/base/write_file.h"
#include "runtime/base/status.h"

namespace quern {
namespace {

constexpr char kOfYours[] = "a folder of yours that nobody else can write to";

std::string ErrorText(int number) { return std::generic_category().message(number); }

absl::Status Refused(const std::string& what, const std::string& path, const std::string& detail,
                     const std::string& accepted = kOfYours) {
  return absl::FailedPreconditionError(what + ": " + path + (detail.empty() ? "" : " (" + detail + ")") +
                                       "; accepted: " + accepted);
}

absl::Status CannotOpen(const std::string& what, const std::string& path, int number) {
  if (number == ENOENT) return absl::NotFoundError("no folder: " + path + "; accepted: " + kOfYours);
  // With O_DIRECTORY and O_NOFOLLOW, a link is not a folder.
  if (number == ENOTDIR || number == ELOOP) return Refused(what + " is not a folder", path, "");
  return Refused("cannot open " + what, path, ErrorText(number));
}

std::string ModeText(mode_t mode) {
  char text[16];
  std::snprintf(text, sizeof text, "mode %04o", static_cast<unsigned>(mode & 07777));
  return text;
}

bool OthersCanWrite(const struct stat& about) { return (about.st_mode & (S_IWGRP | S_IWOTH)) != 0; }

absl::Status CheckFolder(const std::string& what, const std::string& path, const struct stat& about) {
  if (about.st_uid != geteuid())
    return Refused(what + " of another user", path, "user " + std::to_string(about.st_uid));
  if (OthersCanWrite(about)) {
    return Refused(what + " that others can write to", path, ModeText(about.st_mode),
                   kOfYours + (", as after chmod go-w " + path));
  }
  return absl::OkStatus();
}

// Without slashes and dots at the end: through "folder/" and "folder/.", a link would be followed.
std::string WithoutEnd(std::string path) {
  while (path.size() > 1 && (path.ends_with('/') || path.ends_with("/."))) path.pop_back();
  return path;
}

bool EndsAbove(const std::string& path) { return path == ".." || path.ends_with("/.."); }

// True if the folder exists afterwards, whoever made it.
bool MakeFolder(const std::string& path) {
  constexpr mode_t kForTheUser = 0700;
  if (mkdir(path.c_str(), kForTheUser) == 0 || errno == EEXIST) return true;
  const size_t slash = path.rfind('/');
  if (errno != ENOENT || slash == 0 || slash == std::string::npos) return false;
  return MakeFolder(path.substr(0, slash)) && (mkdir(path.c_str(), kForTheUser) == 0 || errno == EEXIST);
}

int64_t Nanoseconds(const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

// Reads up to `bytes` bytes, fewer if the file ends earlier. *Errors*: errno, else 0.
int ReadBytes(int file, size_t bytes, std::string* content) {
  content->resize(bytes);
  size_t done = 0;
  while (done < bytes) {
    const ssize_t n = read(file, content->data() + done, bytes - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  content->resize(done);
  return 0;
}

}  // namespace

Descriptor::~Descriptor() { Close(); }

int Descriptor::Close() {
  const int number = std::exchange(number_, -1);
  if (number < 0 || close(number) == 0 || errno == EINTR) return 0;  // after EINTR it is closed too
  return errno;
}

int64_t FileTimeNow() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return Nanoseconds(now);
}

absl::StatusOr<PrivateFolder> PrivateFolder::Open(const std::string& given, const std::string& what) {
  const std::string path = WithoutEnd(given);
  if (EndsAbove(path)) return Refused(what + " that is named from below", path, "");
  Descriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (folder.get() < 0) return CannotOpen(what, path, errno);
  struct stat about;
  if (fstat(folder.get(), &about) != 0) return CannotOpen(what, path, errno);
  QUERN_RETURN_IF_ERROR(CheckFolder(what, path, about));
  return PrivateFolder(what, path, std::move(folder));
}

absl::StatusOr<PrivateFolder> PrivateFolder::OpenOrMake(const std::string& given, const std::string& what) {
  const std::string path = WithoutEnd(given);
  absl::StatusOr<PrivateFolder> folder = Open(path, what);
  if (!absl::IsNotFound(folder.status())) return folder;
  if (!MakeFolder(path)) return Refused("cannot make " + what, path, ErrorText(errno), "a folder that takes new files");
  return Open(path, what);
}

absl::Status PrivateFolder::CannotWrite(int number) const {
  return Refused("cannot write to " + what_, path_, ErrorText(number), "a folder that takes new files");
}

absl::StatusOr<std::string> PrivateFolder::Read(const std::string& name, size_t max_bytes,
                                                int64_t touch_after_ns) const {
  const Descriptor file(
      openat(descriptor_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (file.get() < 0) {
    if (errno == ENOENT) return absl::NotFoundError("no file");
    return absl::FailedPreconditionError(errno == ELOOP ? "a link" : ErrorText(errno));
  }
  struct stat about;
  if (fstat(file.get(), &about) != 0) return absl::FailedPreconditionError(ErrorText(errno));
  if (!S_ISREG(about.st_mode)) return absl::FailedPreconditionError("not a file");
  if (about.st_uid != geteuid()) return absl::FailedPreconditionError("of user " + std::to_string(about.st_uid));
  if (OthersCanWrite(about)) return absl::FailedPreconditionError("others can write to it, " + ModeText(about.st_mode));
  if (static_cast<uint64_t>(about.st_size) > max_bytes) return absl::FailedPreconditionError("too large");
  std::string content;
  if (const int error = ReadBytes(file.get(), static_cast<size_t>(about.st_size), &content)) {
    return absl::FailedPreconditionError(ErrorText(error));
  }
  if (touch_after_ns > 0 && FileTimeNow() - Nanoseconds(about.st_mtim) > touch_after_ns) futimens(file.get(), nullptr);
  return content;
}

absl::Status PrivateFolder::Replace(const std::string& name, const std::string& temporary,
                                    std::string_view content) const {
  const int error = ReplaceFile(descriptor_.get(), name, temporary, content, S_IRUSR | S_IWUSR);
  // ENOENT: the user has cleared the folder meanwhile.
  return error == 0 || error == ENOENT ? absl::OkStatus() : CannotWrite(error);
}

absl::StatusOr<std::vector<FolderEntry>> PrivateFolder::Entries() const {
  // A separate descriptor: reading moves the position, which a duplicate would share.
  const int again = openat(descriptor_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(again < 0 ? nullptr : fdopendir(again), closedir);
  if (listing == nullptr) {
    const int error = errno;
    if (again >= 0) close(again);
    return Refused("cannot list " + what_, path_, ErrorText(error));
  }
  std::vector<FolderEntry> entries;
  while (const dirent* entry = readdir(listing.get())) {
    struct stat about;
    if (fstatat(descriptor_.get(), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0 || S_ISDIR(about.st_mode)) continue;
    entries.push_back({entry->d_name, static_cast<uint64_t>(about.st_size), Nanoseconds(about.st_mtim)});
  }
  return entries;
}

bool PrivateFolder::Remove(const std::string& name) const { return unlinkat(descriptor_.get(), name.c_str(), 0) == 0; }

}  // namespace quern
