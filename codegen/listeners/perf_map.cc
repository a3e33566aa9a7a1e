// SPDX-License-Identifier: Apache-2.0
// The oldest interface, and the one that most profilers support: a text file with a line for each function, with its
// address and length in hexadecimal.
//
//     7f3a004010a0 1c4 quern_join_compare [join.inner keys=i64]
//
// It has no times: unloaded functions stay in it, and where other code has reused their address, perf may show either
// name. In a process that evicts kernels, use jitdump. An existing file is appended to, since another JIT of the same
// process may write to it.
#include <cinttypes>
#include <cstdio>
#include <mutex>
#include <utility>

#include "codegen/listeners/announcement_file.h"
#include "codegen/listeners/code_listener.h"
#include "runtime/base/fork_safety.h"

namespace quern {
namespace {

class PerfMap : public CodeListener {
 public:
  explicit PerfMap(std::string folder) : file_(std::move(folder), "perf-", ".map") {}

  std::shared_ptr<const void> Announce(const CodeLoaded&, const std::vector<NamedFunction>& functions) override {
    std::string lines;
    for (const NamedFunction& function : functions) {
      char range[40];
      std::snprintf(range, sizeof range, "%" PRIx64 " %" PRIx64 " ", function.address, function.bytes);
      lines += range + function.name + "\n";
    }
    std::lock_guard<ForkSafeMutex> lock(mutex_);
    if (file_.Open(/*truncate=*/false) != AnnouncementFile::Opened::kFailed) file_.Append(lines);
    return nullptr;
  }

 private:
  ForkSafeMutex mutex_;
  AnnouncementFile file_;
};

}  // namespace

std::unique_ptr<CodeListener> MakePerfMap(std::string folder) { return std::make_unique<PerfMap>(std::move(folder)); }

}  // namespace quern
