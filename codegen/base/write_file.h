// SPDX-License-Identifier: Apache-2.0
// Files that are written completely or not at all. All that Quern writes goes through these functions.
#ifndef QUERN_CODEGEN_BASE_WRITE_FILE_H_
#define QUERN_CODEGEN_BASE_WRITE_FILE_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace quern {

// Writes all of `content` at the position of an open file. *Errors*: errno, else 0; then part of it may be written. It
// is ENOSPC where the system takes no further byte without saying why.
int WriteBytes(int file, std::string_view content);

// True if a file of so many bytes is above the limit of the process (RLIMIT_FSIZE). A write beyond it ends the process
// with SIGXFSZ, a signal that a library should not catch; so ask first, and fail with EFBIG.
bool IsOverFileLimit(uint64_t bytes);

// Writes a file of this mode (less the umask), or replaces the one of that name. `temporary`: a name in the same folder
// that no other writer uses at the same time; one that a killed process left is replaced. Both names are relative to
// the open folder `folder`, or AT_FDCWD. *Errors*: errno, else 0; then the file of that name is the old one, and the
// temporary is gone. *Threads*: any.
int ReplaceFile(int folder, const std::string& name, const std::string& temporary, std::string_view content,
                mode_t mode);

}  // namespace quern

#endif  // QUERN_CODEGEN_BASE_WRITE_FILE_H_
