// SPDX-License-Identifier: Apache-2.0
// With QUERN_CAPTURE=DIR each operator that a process makes gets an observer (runtime/rows/job_observer.h), which
// reports its job when the operator is destroyed. Kinds of jobs are counted in memory and written to a file of the
// process,
//
//     DIR/4711-18c2f0a1b3d4e5f6.capture          process id, and the start of capturing in nanoseconds since 1970
//
// when the first job ends, when any job ends 2 s or more after the file was last written, and when the process exits. A
// killed process loses the jobs since the last write: those of 2 s, or of a burst before a pause. The file is written
// whole under another name and renamed, so that a reader finds the old or the new file, never a part.
//
// A forked process starts a file of its own, without its parent's jobs. If the folder cannot be written, one warning is
// logged, and jobs run as usual.
#include "codegen/inspect/capture.h"
#include "ir-templates/generic/generic_join.h"
#include "runtime/observe/key_sampler.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <utility>

#include "codegen/base/environment.h"
#include "codegen/base/log.h"
#include "codegen/base/private_folder.h"
#include "codegen/base/process_end.h"
#include "codegen/base/write_file.h"
#include "codegen/machine/machine.h"
#include "runtime/base/fork_safety.h"
#include "runtime/base/status.h"

namespace quern {
namespace {

constexpr const char* kSuffix = ".capture";
constexpr int64_t kWriteAfterNs = 2'000'000'000;
constexpr size_t kMaxFileBytes = size_t{64} << 20;

std::string ErrorText(int number) { return std::generic_category().message(number); }

int64_t SteadyNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// The captures of this process. Never destroyed.
class Capture {
 public:
  static Capture& OfProcess() {
    const NoFork no_fork;  // the first call makes it
    static auto* capture = new Capture;
    return *capture;
  }

  bool is_on() const { return is_on_; }

  void Add(const CapturedJob& job) {
    bool had_room = true, writes = false;
    {
      const std::lock_guard<ForkSafeMutex> lock(mutex_);
      had_room = log_.Add(job);
      has_news_ = true;
      writes = SteadyNs() - written_ns_ >= kWriteAfterNs;
    }
    if (!had_room)
      WarnOnce("kinds of jobs that are not captured: those after the first " + std::to_string(CaptureLog::kMostKinds));
    if (writes) Write();
  }

  void Write() {
    const std::lock_guard<ForkSafeMutex> lock(write_mutex_);
    std::string text;
    {
      const std::lock_guard<ForkSafeMutex> log_lock(mutex_);
      if (!has_news_) return;
      text = log_.Print();
      has_news_ = false;
      written_ns_ = SteadyNs();
    }
    const int error = ReplaceFile(AT_FDCWD, path_, path_ + ".quern-tmp", text, S_IRUSR | S_IWUSR);
    if (error != 0) Warn(ErrorText(error));
  }

 private:
  Capture() {
    const VariableRow row = ReadVariable(Variable::kCapture);
    if (!row.from_environment) return;
    std::error_code error;
    folder_ = std::filesystem::absolute(row.value, error).string();
    if (!error) std::filesystem::create_directories(folder_, error);
    if (error) {
      Warn(error.message());
      return;
    }
    is_on_ = true;
    NameFile();
    AtProcessEnd([] { OfProcess().Write(); });
    CallInForkedChild(ForkReset::kCapture, [] { OfProcess().InChild(); });
  }

  void NameFile() {
    char name[64];
    std::snprintf(name, sizeof name, "/%d-%llx%s", static_cast<int>(getpid()),
                  static_cast<unsigned long long>(FileTimeNow()), kSuffix);
    path_.reserve(folder_.size() + sizeof name);  // in the parent: a child that is forked should not allocate
    path_.assign(folder_).append(name);
  }
  void Warn(const std::string& problem) const {
    WarnOnce("jobs are not captured: " + ShowPath(folder_) + " (" + problem +
             "); accepted: a folder that takes new files");
  }

  void InChild() {
    log_ = CaptureLog();
    has_news_ = false;
    written_ns_ = -kWriteAfterNs;
    NameFile();
  }

  bool is_on_ = false;
  std::string folder_, path_;
  ForkSafeMutex write_mutex_;  // locked before mutex_
  ForkSafeMutex mutex_;
  CaptureLog log_;
  bool has_news_ = false;
  int64_t written_ns_ = -kWriteAfterNs;
};

std::atomic<uint32_t> num_pauses{0};

// 0: unknown yet; 1: no; 2: yes.
std::atomic<int> captures{0};

// The parameters of a plan that differ from the default; not prefetch settings, since these are tuned.
PlanOverrides GivenParams(const KernelPlan& plan) {
  PlanOverrides params;
  const absl::StatusOr<Machine> host = HostMachine();
  const absl::StatusOr<KernelPlan> standard = MakePlan(plan.spec, host.ok() ? *host : Machine{}, {});
  if (!standard.ok()) return params;
  const PlanOverrides given = ParametersOf(plan), by_default = ParametersOf(*standard);
  for (size_t i = 0; i < given.size(); ++i)
    if (given[i] != by_default[i]) params.push_back(given[i]);
  return params;
}

CapturedJob MakeCapturedJob(const KernelPlan& plan, const JobSummary& job) {
  CapturedJob captured;
  captured.spec = PrintSpec(plan.spec);
  captured.params = GivenParams(plan);
  captured.layout = job.layout.empty() ? "none" : job.layout;
  captured.jobs = 1;
  captured.threads = job.threads;
  captured.build_rows = static_cast<double>(job.build_rows);
  captured.probe_rows = static_cast<double>(job.probe_rows);
  captured.keys = static_cast<double>(job.keys);
  captured.hits_percent =
      job.probe_rows == 0 ? 0 : 100 * static_cast<double>(job.num_hits) / static_cast<double>(job.probe_rows);
  captured.zipf = job.zipf;
  captured.key_bytes = job.key_bytes;
  captured.table_bytes = static_cast<double>(job.table_bytes);
  captured.collided_rows = static_cast<double>(job.collided_rows);
  captured.ns = static_cast<double>(job.ns);
  return captured;
}

absl::Status BadFolder(const char* what, const std::string& folder, const std::string& why) {
  return absl::FailedPreconditionError(std::string(what) + ": " + ShowPath(folder) +
                                       (why.empty() ? "" : " (" + why + ")") +
                                       "; accepted: a folder that processes with QUERN_CAPTURE have filled");
}

absl::StatusOr<std::string> ReadText(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat about;
  if (file.get() < 0 || fstat(file.get(), &about) != 0) return BadFolder("cannot read capture", path, ErrorText(errno));
  if (!S_ISREG(about.st_mode)) return BadFolder("cannot read capture", path, "not a file");
  std::string text;
  char block[4096];
  for (ssize_t n = 1; n != 0;) {
    n = read(file.get(), block, sizeof block);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return BadFolder("cannot read capture", path, ErrorText(errno));
    text.append(block, static_cast<size_t>(n));
    if (text.size() > kMaxFileBytes) return BadFolder("cannot read capture", path, "more than 64 MiB");
  }
  return text;
}

}  // namespace

bool IsCapturing() {
  int is = captures.load(std::memory_order_acquire);
  if (is == 0) captures.store(is = Capture::OfProcess().is_on() ? 2 : 1, std::memory_order_release);
  return is == 2 && num_pauses.load(std::memory_order_relaxed) == 0;
}

void AddToCapture(const CapturedJob& job) { Capture::OfProcess().Add(job); }

std::unique_ptr<JobObserver> ObserverOf(const KernelPlan& plan) {
  if (!IsCapturing()) return nullptr;
  return std::make_unique<KeySampler>(plan.spec, GenericJoinKernel(), [plan](const JobSummary& job) {
    Capture::OfProcess().Add(MakeCapturedJob(plan, job));
  });
}

CapturePause::CapturePause() { ++num_pauses; }
CapturePause::~CapturePause() { --num_pauses; }

absl::StatusOr<std::vector<CapturedJob>> ReadCaptures(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> paths;
  std::filesystem::directory_iterator file(folder, error);
  for (; !error && file != std::filesystem::directory_iterator(); file.increment(error))
    if (file->path().extension() == kSuffix) paths.push_back(file->path().string());
  if (error) return BadFolder("cannot read folder of captures", folder, error.message());
  std::sort(paths.begin(), paths.end());
  CaptureLog all;
  for (const std::string& path : paths) {
    QUERN_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
    QUERN_ASSIGN_OR_RETURN(const CaptureLog log, CaptureLog::Parse(text, path));
    for (const CapturedJob& job : log.jobs()) all.Add(job);
  }
  if (all.jobs().empty()) return BadFolder("no captured jobs", folder, "");
  std::vector<CapturedJob> jobs = all.jobs();
  std::sort(jobs.begin(), jobs.end(), [](const CapturedJob& a, const CapturedJob& b) {
    return std::pair(b.total_ns(), std::string_view(a.spec)) < std::pair(a.total_ns(), std::string_view(b.spec));
  });
  return jobs;
}

}  // namespace quern
