// SPDX-License-Identifier: Apache-2.0
// Somebody who looks on while an operator works: how many rows come, and what their keys are like. Operators have one only where they are
// asked to (HashJoin::Observe and its like); without, a batch costs one comparison more.
#ifndef QUERN_RUNTIME_JOB_OBSERVER_H_
#define QUERN_RUNTIME_JOB_OBSERVER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/batch_view.h"
#include "runtime/join_shape.h"
#include "runtime/key_sample.h"
#include "runtime/spec.h"

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
  uint64_t tied_rows = 0;    // of a sort
  uint64_t ns = 0;           // in calls of the operator, of all threads together
  std::string layout;        // of the table; how a sort's entries were sorted
};

class JobObserver {
 public:
  using Done = std::function<void(const JobSummary& job)>;

  // Looks on at an operator with the keys of this spec; `done` hears of the job when it ends. *Cost*: 16 KiB, and up to 512 KiB of samples.
  JobObserver(const KernelSpec& spec, Done done);

  // Rows that a join keeps; and those that ask for it. *Cost*: 1 to 4 ns a row of a build side, some hundred ns a batch. *Threads*: any.
  void SeeBuild(const BatchView& batch);
  void SeeProbe(const BatchView& batch);
  // Rows of a join's result.
  void SeeMatches(uint64_t num_rows) { matches_.fetch_add(num_rows, std::memory_order_relaxed); }
  // Rows of an aggregation or a sort.
  void SeeInput(const BatchView& batch);

  // What the operator knows itself when it ends; the rest is filled in. `keys` of 0 are estimated.
  void End(JobSummary job);

 private:
  struct Scratch;
  uint32_t HashRows(const BatchView& batch, const uint32_t* rows, uint32_t n, Scratch* scratch) const;
  void CountKeys(const BatchView& batch);
  void SampleKeys(const BatchView& batch, RowSample* sample);
  void CountThread();

  const JoinShape shape_;  // of a join with these keys
  const Done done_;
  DistinctCounter distinct_;
  std::atomic<uint64_t> build_rows_{0}, probe_rows_{0}, matches_{0};
  std::mutex mutex_;  // of what follows
  RowSample build_, probe_;
  uint64_t string_bytes_ = 0, num_strings_ = 0;
  std::vector<std::thread::id> threads_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_JOB_OBSERVER_H_
