// SPDX-License-Identifier: Apache-2.0
// An observer of a running operator: it sees how many rows arrive and how their keys are distributed. An operator has
// an observer only on request (HashJoin::Observe and its like); without one, a batch costs one more comparison.
#ifndef QUERN_RUNTIME_ROWS_JOB_OBSERVER_H_
#define QUERN_RUNTIME_ROWS_JOB_OBSERVER_H_

#include <cstdint>
#include <new>
#include <string>
#include <utility>

#include "runtime/rows/batch_view.h"

namespace quern {

// The figures of a job. They include no value of any row.
struct JobSummary {
  uint64_t build_rows = 0;  // of a join; for an aggregation or a sort, its input rows
  uint64_t probe_rows = 0;  // of a join
  uint64_t keys = 0;        // distinct keys: of the build side, of the groups, or of the sorted rows
  uint64_t num_hits = 0;    // probe rows of a join that found a tuple
  double zipf = 0;       // exponent of the key distribution of probe rows, or of the input of an aggregation or a sort
  double key_bytes = 0;  // average length of a string among the keys
  uint32_t threads = 1;  // threads that added rows
  uint64_t table_bytes = 0;    // for a sort: of its stored rows
  uint64_t collided_rows = 0;  // of a sort
  uint64_t ns = 0;             // spent in calls of the operator, summed over all threads
  std::string layout;          // of the table; for a sort, the method by which prefixes were sorted
};

// *Threads*: all calls but End may come from any number of threads at once.
class JobObserver {
 public:
  virtual ~JobObserver() = default;

  // Build rows and probe rows of a join.
  virtual void SeeBuild(const BatchView& batch) = 0;
  virtual void SeeProbe(const BatchView& batch) = 0;
  // Result rows of a join.
  virtual void SeeMatches(uint64_t num_rows) = 0;
  // Input rows of an aggregation or a sort.
  virtual void SeeInput(const BatchView& batch) = 0;

  // Called by the destructor of an operator: `fill` writes what it knows into the summary. A job is left out where
  // memory is refused.
  template <class Fill>
  void EndJob(const Fill& fill) {
    try {
      JobSummary job;
      fill(&job);
      End(std::move(job));
    } catch (const std::bad_alloc&) {
      return;
    }
  }

 protected:
  // Receives what the operator knows when it ends; the observer fills in the rest. `keys` is estimated where it is 0.
  virtual void End(JobSummary job) = 0;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_ROWS_JOB_OBSERVER_H_
