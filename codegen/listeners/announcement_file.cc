// SPDX-License-Identifier: Apache-2.0
// Profilers find files by the process id, mostly in /tmp, a folder in which anybody can place a link or a file of that
// name beforehand. So links are not followed, anything but a plain file of this user is refused, and nobody else may
// read what is written: names of frames contain specs, and the spec of a filter contains constants of a query.
//
// perf reads while the process writes. Each call appends with one write(2), and a write that did not fit on the disk is
// truncated again, so that a reader finds whole lines and whole records.
#include "codegen/listeners/announcement_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "codegen/base/log.h"
#include "codegen/base/write_file.h"

namespace quern {

AnnouncementFile::AnnouncementFile(std::string folder, std::string prefix, std::string suffix)
    : folder_(std::move(folder)), prefix_(std::move(prefix)), suffix_(std::move(suffix)) {}

AnnouncementFile::~AnnouncementFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

AnnouncementFile::Opened AnnouncementFile::Open(bool truncate) {
  if (process_ == getpid()) return descriptor_ >= 0 ? Opened::kAlready : Opened::kFailed;
  if (descriptor_ >= 0) close(descriptor_);
  process_ = getpid();
  path_ = folder_ + "/" + prefix_ + std::to_string(process_) + suffix_;
  // Non-blocking, because opening a pipe of that name would wait for a reader.
  descriptor_ =
      open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, S_IRUSR | S_IWUSR);
  struct stat status;
  if (descriptor_ < 0 || fstat(descriptor_, &status) != 0) {
    Fail(std::strerror(errno));
  } else if (!S_ISREG(status.st_mode) || status.st_uid != geteuid()) {
    Fail("not a plain file of this user");
  } else if (truncate && ftruncate(descriptor_, 0) != 0) {
    Fail(std::strerror(errno));
  }
  return descriptor_ >= 0 ? Opened::kNow : Opened::kFailed;
}

void AnnouncementFile::Append(std::string_view bytes) {
  if (descriptor_ < 0) return;
  const off_t before = lseek(descriptor_, 0, SEEK_END);
  if (before >= 0 && IsOverFileLimit(static_cast<uint64_t>(before) + bytes.size())) return Fail(std::strerror(EFBIG));
  ssize_t written = 0;
  do written = write(descriptor_, bytes.data(), bytes.size());
  while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(bytes.size())) return;
  const std::string problem = std::strerror(written < 0 ? errno : ENOSPC);
  if (written > 0 && before >= 0 && ftruncate(descriptor_, before) != 0)
    return Fail(problem + ", and what was written stays");
  Fail(problem);
}

void AnnouncementFile::Fail(const std::string& what) {
  WarnOnce("cannot tell profilers of kernels: " + path_ + ": " + what +
           "; accepted: a file of this user's that can be written");
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = -1;
}

}  // namespace quern
