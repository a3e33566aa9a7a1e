// SPDX-License-Identifier: Apache-2.0
// perf's own format for JIT code: the bytes themselves and their source lines, each with a time, so that code that
// reuses an address is kept apart. `perf inject --jit` makes small ELF files from it, which perf annotate and perf
// report then read like any library. The format is described in tools/perf/Documentation/jitdump-specification.txt of
// the Linux source, version 1.
//
//     header      "JiTD", version, machine, process, time
//     per function:
//       DEBUG     (only with source lines) address, line and file of each entry     before the code that it belongs to
//       LOAD      name and bytes of the code
//
// perf finds the file because the process maps its first page as executable, which leaves an event in the recording.
// Nothing reads the page.
#include <elf.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <mutex>
#include <utility>

#include "codegen/listeners/announcement_file.h"
#include "codegen/listeners/code_listener.h"
#include "runtime/base/fork_safety.h"

namespace quern {
namespace {

constexpr uint32_t kMagic = 0x4A695444;  // "JiTD" as a number, which gives the byte order
constexpr uint32_t kVersion = 1;
enum class Record : uint32_t { kCodeLoad = 0, kDebugInfo = 2 };
#if defined(__aarch64__)
constexpr uint32_t kElfMachine = EM_AARCH64;
#else
constexpr uint32_t kElfMachine = EM_X86_64;
#endif

// The clock of `perf record -k mono`.
uint64_t Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
}

class Bytes {
 public:
  Bytes& U32(uint32_t value) { return Raw(&value, sizeof value); }
  Bytes& U64(uint64_t value) { return Raw(&value, sizeof value); }
  Bytes& Text(const std::string& text) { return Raw(text.c_str(), text.size() + 1); }
  Bytes& Raw(const void* data, size_t size) {
    bytes_.append(static_cast<const char*>(data), size);
    return *this;
  }
  const std::string& get() const { return bytes_; }

 private:
  std::string bytes_;
};

void AppendRecord(Record id, const Bytes& body, std::string* out) {
  constexpr size_t kPrefixBytes = 16;
  Bytes prefix;
  prefix.U32(static_cast<uint32_t>(id)).U32(static_cast<uint32_t>(kPrefixBytes + body.get().size())).U64(Now());
  *out += prefix.get() + body.get();
}

Bytes Header() {
  constexpr uint32_t kHeaderBytes = 40;
  Bytes header;
  header.U32(kMagic)
      .U32(kVersion)
      .U32(kHeaderBytes)
      .U32(kElfMachine)
      .U32(/*padding*/ 0)
      .U32(static_cast<uint32_t>(getpid()));
  header.U64(Now()).U64(/*flags*/ 0);
  return header;
}

Bytes DebugInfo(const NamedFunction& function) {
  Bytes body;
  body.U64(function.address).U64(function.lines.size());
  for (const SourceLine& line : function.lines)
    body.U64(line.address).U32(line.line).U32(/*discriminator*/ 0).Text(line.file);
  return body;
}

Bytes CodeLoad(const NamedFunction& function, uint64_t index) {
  Bytes body;
  body.U32(static_cast<uint32_t>(getpid())).U32(static_cast<uint32_t>(syscall(SYS_gettid)));
  body.U64(function.address).U64(function.address).U64(function.bytes).U64(index).Text(function.name);
  body.Raw(reinterpret_cast<const void*>(function.address), function.bytes);
  return body;
}

class JitDump : public CodeListener {
 public:
  explicit JitDump(std::string folder) : file_(std::move(folder), "jit-", ".dump") {}

  bool WantsLines() const override { return true; }

  std::shared_ptr<const void> Announce(const CodeLoaded&, const std::vector<NamedFunction>& functions) override {
    std::lock_guard<ForkSafeMutex> lock(mutex_);
    const AnnouncementFile::Opened opened = file_.Open(/*truncate=*/true);
    if (opened == AnnouncementFile::Opened::kFailed) return nullptr;
    if (opened == AnnouncementFile::Opened::kNow) Begin();
    std::string records;
    for (const NamedFunction& function : functions) {
      if (!function.lines.empty()) AppendRecord(Record::kDebugInfo, DebugInfo(function), &records);
      AppendRecord(Record::kCodeLoad, CodeLoad(function, next_index_++), &records);
    }
    file_.Append(records);
    return nullptr;
  }

 private:
  void Begin() {
    file_.Append(Header().get());
    if (file_.descriptor() < 0) return;
    const size_t page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    // Mapped until the process ends: unmapping makes no event, and perf may attach later.
    void* marker = mmap(nullptr, page_bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, file_.descriptor(), 0);
    if (marker == MAP_FAILED) file_.Fail(std::string("cannot be mapped executable: ") + std::strerror(errno));
  }

  ForkSafeMutex mutex_;
  AnnouncementFile file_;
  uint64_t next_index_ = 0;
};

}  // namespace

std::unique_ptr<CodeListener> MakeJitDump(std::string folder) { return std::make_unique<JitDump>(std::move(folder)); }

}  // namespace quern
