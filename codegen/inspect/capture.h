// SPDX-License-Identifier: Apache-2.0
// Capture: with QUERN_CAPTURE=DIR the jobs of a process leave what a tuner needs to play them again (never the data):
// spec, sizes, and how their keys are distributed. `quern tune --replay DIR` tunes for exactly these.
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

// A kind of job, and how often it was met.
struct CapturedJob {
  std::string spec;      // canonical
  PlanOverrides params;  // what the host's plan has that is not the default, without prefetch settings
  std::string layout;    // of the table; how a sort's entries were sorted
  uint64_t jobs = 0;
  uint32_t threads = 1;
  // Of a job, on average.
  double build_rows = 0;    // or input rows of an aggregation or a sort
  double probe_rows = 0;    // of joins
  double keys = 0;          // different ones: of the build side, groups, or of what is sorted
  double hits_percent = 0;  // of probe rows that match
  double zipf =
      0;  // exponent by which probe rows, or the rows of an aggregation or a sort, choose their keys; 0: all alike
  double key_bytes = 0;  // of a string among the keys
  double table_bytes = 0;
  double collided_rows = 0;  // of sorts
  double ns = 0;             // in calls of the operator, of all threads together

  double total_ns() const { return ns * static_cast<double>(jobs); }
};

// Jobs by kind: those of the same spec, parameters, layout and threads, whose sizes have the same power of two, hit
// rates the same quarter and skews the same half, are one kind, with means.
class CaptureLog {
 public:
  static constexpr size_t kMostKinds = 4096;

  // Answers whether there was room: kinds beyond kMostKinds are not kept.
  bool Add(const CapturedJob& job);
  const std::vector<CapturedJob>& jobs() const { return jobs_; }

  std::string Print() const;
  // All or nothing. *Errors*: InvalidArgument "NAME:LINE: ..." that names the word and what is accepted.
  static absl::StatusOr<CaptureLog> Parse(std::string_view text, std::string_view name);

 private:
  std::vector<CapturedJob> jobs_;
  std::map<std::string, size_t> places_;
};

// Who looks on at a job of this plan; null where the process does not capture. *Cost* then: one load.
std::unique_ptr<JobObserver> ObserverOf(const KernelPlan& plan);

// As long as one is there, jobs that begin are nobody's: a tuner's own.
class CapturePause {
 public:
  CapturePause();
  ~CapturePause();
  CapturePause(const CapturePause&) = delete;
  CapturePause& operator=(const CapturePause&) = delete;
};

// All captures of a folder, alike ones together, those first that took longest. *Errors*: FailedPrecondition where
// there are none; as Parse.
absl::StatusOr<std::vector<CapturedJob>> ReadCaptures(const std::string& folder);

}  // namespace quern

#endif  // QUERN_CODEGEN_INSPECT_CAPTURE_H_
