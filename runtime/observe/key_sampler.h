// SPDX-License-Identifier: Apache-2.0
// The observer of a captured job: counts its rows and estimates how their keys are distributed. It keeps hashes of
// keys, and no values of rows.
#ifndef QUERN_RUNTIME_OBSERVE_KEY_SAMPLER_H_
#define QUERN_RUNTIME_OBSERVE_KEY_SAMPLER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/abi/join_abi.h"
#include "runtime/observe/key_sample.h"
#include "runtime/rows/job_observer.h"
#include "runtime/rows/row_layout.h"
#include "runtime/spec/spec.h"

namespace quern {

class KeySampler final : public JobObserver {
 public:
  using Done = std::function<void(const JobSummary& job)>;

  // Observes an operator with the keys of this spec; calls `done` with the job's summary when it ends. *Cost*: 16 KiB,
  // and up to 512 KiB of samples. `kernel`: entry points that support any keys, the generic join's, which compute the
  // hashes.
  KeySampler(const KernelSpec& spec, const QuernJoinEntryPoints& kernel, Done done);

  // Rows of a join's build side, and of its probe side. *Cost*: 1 to 4 ns a row of a build side, some hundred ns a
  // batch. *Threads*: any.
  void SeeBuild(const BatchView& batch) override;
  void SeeProbe(const BatchView& batch) override;
  // Rows of a join's result.
  void SeeMatches(uint64_t num_rows) override { matches_.fetch_add(num_rows, std::memory_order_relaxed); }
  // Rows of an aggregation or a sort.
  void SeeInput(const BatchView& batch) override;

  // `job` has the numbers that the operator knows when it ends; the others are filled in. `keys` of 0 are estimated.
  void End(JobSummary job) override;

 private:
  struct Scratch;
  uint32_t HashRows(const BatchView& batch, const uint32_t* rows, uint32_t n, Scratch* scratch) const;
  void CountKeys(const BatchView& batch);
  void SampleKeys(const BatchView& batch, RowSample* sample);
  void CountThread();

  QuernRowLayout layout_ = {};
  RowLayout rows_{&layout_};  // the keys alone
  const QuernJoinEntryPoints kernel_;
  const Done done_;
  DistinctCounter distinct_;
  std::atomic<uint64_t> build_rows_{0}, probe_rows_{0}, matches_{0};
  std::mutex mutex_;  // for the members below
  RowSample build_, probe_;
  uint64_t string_bytes_ = 0, num_strings_ = 0;
  std::vector<std::thread::id> threads_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_OBSERVE_KEY_SAMPLER_H_
