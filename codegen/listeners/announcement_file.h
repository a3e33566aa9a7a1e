// SPDX-License-Identifier: Apache-2.0
// A file that a process leaves for a profiler, one per process id. Internal to codegen.
#ifndef QUERN_CODEGEN_LISTENERS_ANNOUNCEMENT_FILE_H_
#define QUERN_CODEGEN_LISTENERS_ANNOUNCEMENT_FILE_H_

#include <string>
#include <string_view>

namespace quern {

// *Threads*: one at a time; its owner locks. *Errors*: none; what goes wrong is one warning, and the file is left alone
// from then on.
class AnnouncementFile {
 public:
  // FOLDER/PREFIX-PID SUFFIX: "perf-" and ".map" give /tmp/perf-4711.map.
  AnnouncementFile(std::string folder, std::string prefix, std::string suffix);
  ~AnnouncementFile();
  AnnouncementFile(const AnnouncementFile&) = delete;
  AnnouncementFile& operator=(const AnnouncementFile&) = delete;

  enum class Opened { kAlready, kNow, kFailed };
  // Opens the file of this process: also the one of a child that was forked, whose number is another.
  Opened Open(bool truncate);
  // All of the bytes or none, at the end of the file.
  void Append(std::string_view bytes);
  // Says what went wrong, with errno, and gives up.
  void Fail(const std::string& what);
  int descriptor() const { return descriptor_; }

 private:
  const std::string folder_, prefix_, suffix_;
  std::string path_;
  int descriptor_ = -1;
  int process_ = 0;  // whose file is open; 0: none was
};

}  // namespace quern

#endif  // QUERN_CODEGEN_LISTENERS_ANNOUNCEMENT_FILE_H_
