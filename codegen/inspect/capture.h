// SPDX-License-Identifier: Apache-2.0
// Capture: with QUERN_CAPTURE=DIR a process records what a tuner needs to replay its jobs (never the data): specs,
// sizes, and the distribution of keys. `quern tune --replay DIR` tunes for exactly these jobs.
#ifndef QUERN_CODEGEN_INSPECT_CAPTURE_H_
#define QUERN_CODEGEN_INSPECT_CAPTURE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/plan/plan.h"
#include "runtime/rows/job_observer.h"

namespace quern {

// A kind of job, and how often it ran.
struct CapturedJob {
  std::string spec;      // canonical; of a kernel, or of a pipeline
  PlanOverrides params;  // parameters of the host's plan that differ from the default, without prefetch settings
  std::string layout;    // of the table; for a sort, how its prefixes were sorted; "pipeline"
  uint64_t jobs = 0;
  uint32_t threads = 1;
  // Means over the jobs:
  double build_rows = 0;    // or input rows of an aggregation, a sort, or a pipeline
  double probe_rows = 0;    // of joins
  double keys = 0;          // distinct keys: of the build side, groups, or sorted rows
  double hits_percent = 0;  // of probe rows that match
  double zipf = 0;          // Zipf exponent of the keys of probe, input rows; 0: uniform
  double key_bytes = 0;     // of a string among the keys
  double table_bytes = 0;
  double collided_rows = 0;  // of sorts
  double ns = 0;             // in calls of the operator, summed over threads

  double total_ns() const { return ns * static_cast<double>(jobs); }
};

// Jobs by kind. Jobs are of one kind, kept as means, if they have the same spec, parameters, layout and number of
// threads, sizes with the same power of two, hit rates in the same quarter and skews in the same half.
class CaptureLog {
 public:
  static constexpr size_t kMostKinds = 4096;

  // Returns false if there was no room: at most kMostKinds kinds are kept.
  bool Add(const CapturedJob& job);
  const std::vector<CapturedJob>& jobs() const { return jobs_; }

  std::string Print() const;
  // Returns all jobs or an error. *Errors*: InvalidArgument "NAME:LINE: ..." with the bad word and what is accepted.
  static absl::StatusOr<CaptureLog> Parse(std::string_view text, std::string_view name);

 private:
  std::vector<CapturedJob> jobs_;
  std::map<std::string, size_t> places_;
};

// The observer of a job with this plan; null if the process does not capture. *Cost* if null: one load.
std::unique_ptr<JobObserver> ObserverOf(const KernelPlan& plan);

// Whether jobs that begin now are captured. *Cost*: one load, after the first call.
bool IsCapturing();
// Adds a job that has ended. *Threads*: any.
void AddToCapture(const CapturedJob& job);

// While one exists, jobs that begin are not captured: for the jobs of a tuner.
class CapturePause {
 public:
  CapturePause();
  ~CapturePause();
  CapturePause(const CapturePause&) = delete;
  CapturePause& operator=(const CapturePause&) = delete;
};

// All captures of a folder, merged by kind, longest total time first. *Errors*: FailedPrecondition if there are none;
// as Parse.
absl::StatusOr<std::vector<CapturedJob>> ReadCaptures(const std::string& folder);

}  // namespace quern

#endif  // QUERN_CODEGEN_INSPECT_CAPTURE_H_
