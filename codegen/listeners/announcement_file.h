// SPDX-License-Identifier: Apache-2.0
// A file that a process writes for a profiler, one for each process id. Internal to codegen.
#ifndef QUERN_CODEGEN_LISTENERS_ANNOUNCEMENT_FILE_H_
#define QUERN_CODEGEN_LISTENERS_ANNOUNCEMENT_FILE_H_

#include <string>
#include <string_view>

namespace quern {

// *Threads*: one at a time; the owner locks. *Errors*: none; the first failure is one warning, and ends all writing.
class AnnouncementFile {
 public:
  // FOLDER/PREFIX-PID SUFFIX: "perf-" and ".map" give /tmp/perf-4711.map.
  AnnouncementFile(std::string folder, std::string prefix, std::string suffix);
  ~AnnouncementFile();
  AnnouncementFile(const AnnouncementFile&) = delete;
  AnnouncementFile& operator=(const AnnouncementFile&) = delete;

  enum class Opened { kAlready, kNow, kFailed };
  // Opens the file of this process; after a fork, the child's file, which has another process id.
  Opened Open(bool truncate);
  // Appends all of the bytes or none.
  void Append(std::string_view bytes);
  // Warns of `what` with the text of errno, and stops writing.
  void Fail(const std::string& what);
  int descriptor() const { return descriptor_; }

 private:
  const std::string folder_, prefix_, suffix_;
  std::string path_;
  int descriptor_ = -1;
  int process_ = 0;  // process id of the open file; 0: none is open
};

}  // namespace quern

#endif  // QUERN_CODEGEN_LISTENERS_ANNOUNCEMENT_FILE_H_
