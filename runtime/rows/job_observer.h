// SPDX-License-Identifier: Apache-2.0
// Somebody who looks on while an operator works: how many rows come, and what their keys are like. Operators have one
// only where they are asked to (HashJoin::Observe and its like); without, a batch costs one comparison more.
#ifndef QUERN_RUNTIME_ROWS_JOB_OBSERVER_H_
#define QUERN_RUNTIME_ROWS_JOB_OBSERVER_H_

#include <cstdint>
#include <string>

#include "runtime/rows/batch_view.h"

namespace quern {

// A job in numbers; no value of any row is among them.
struct JobSummary {
  uint64_t build_rows = 0;   // of a join; input rows of an aggregation or a sort
  uint64_t probe_rows = 0;   // of a join
  uint64_t keys = 0;         // different ones: of the build side, groups, or of what is sorted
  uint64_t num_hits = 0;     // of a join's probe rows, that found a tuple
  double zipf = 0;           // exponent by which probe rows, or the rows of an aggregation or a sort, choose their keys
  double key_bytes = 0;      // of a string among the keys, on average
  uint32_t threads = 1;      // that brought rows
  uint64_t table_bytes = 0;  // of a sort: of the rows that are stored
  uint64_t collided_rows = 0;  // of a sort
  uint64_t ns = 0;             // in calls of the operator, of all threads together
  std::string layout;          // of the table; how a sort's entries were sorted
};

// *Threads*: all calls but End may come from any number of threads at once.
class JobObserver {
 public:
  virtual ~JobObserver() = default;

  // Rows that a join keeps; and those that probe it.
  virtual void SeeBuild(const BatchView& batch) = 0;
  virtual void SeeProbe(const BatchView& batch) = 0;
  // Rows of a join's result.
  virtual void SeeMatches(uint64_t num_rows) = 0;
  // Rows of an aggregation or a sort.
  virtual void SeeInput(const BatchView& batch) = 0;

  // What the operator knows itself when it ends; the rest is filled in. `keys` of 0 are estimated.
  virtual void End(JobSummary job) = 0;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_ROWS_JOB_OBSERVER_H_
