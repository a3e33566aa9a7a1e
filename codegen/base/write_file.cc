// SPDX-License-Identifier: Apache-2.0
// A file gets its name by a rename once all of it is written, so that a reader of the name finds the old file or all of
// the new one:
//
//     open(O_EXCL)    x.quern-tmp                    a name that nobody else uses
//     write ..        part of the content each       full disk, quota, limit of file sizes, broken disk
//     close           what the network reports late  NFS answers some writes only here
//     rename          x.quern-tmp to x
//
// Whatever fails on the way, the temporary file is removed and errno says why. Calls that a signal interrupted are made
// again. A write may take fewer bytes than it was given, and go on; one that takes none would be repeated without end.
//
// Nothing is flushed to the disk (fsync). A rename may reach the disk before the bytes do, so after a loss of power a
// file may be short or hold zeros: whoever reads it checks it, as every format of ours is checked when it is read.
#include "codegen/base/write_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "codegen/base/private_folder.h"

namespace quern {
namespace {

int OpenNew(int folder, const std::string& name, mode_t mode) {
  int file = -1;
  do file = openat(folder, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  while (file < 0 && errno == EINTR);
  return file;
}

int WriteNew(int folder, const std::string& name, std::string_view content, mode_t mode) {
  int number = OpenNew(folder, name, mode);
  if (number < 0 && errno == EEXIST && unlinkat(folder, name.c_str(), 0) == 0) number = OpenNew(folder, name, mode);
  if (number < 0) return errno;
  Descriptor file(number);
  const int write_error = WriteBytes(file.get(), content);
  const int close_error = file.Close();
  return write_error != 0 ? write_error : close_error;
}

}  // namespace

int WriteBytes(int file, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = write(file, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) return ENOSPC;
    content.remove_prefix(static_cast<size_t>(n));
  }
  return 0;
}

bool IsOverFileLimit(uint64_t bytes) {
  struct rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur;
}

int ReplaceFile(int folder, const std::string& name, const std::string& temporary, std::string_view content,
                mode_t mode) {
  if (IsOverFileLimit(content.size())) return EFBIG;
  int error = WriteNew(folder, temporary, content, mode);
  if (error == 0 && renameat(folder, temporary.c_str(), folder, name.c_str()) != 0) error = errno;
  if (error != 0) unlinkat(folder, temporary.c_str(), 0);
  return error;
}

}  // namespace quern
