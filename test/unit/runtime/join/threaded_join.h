// SPDX-License-Identifier: Apache-2.0
// A join whose threads do each step together:
//
//     8 threads append their batches       each spills its own rows, and those of others
//     -- all are here: one prepares, all work --
//     8 threads probe their batches        rows of written partitions are written
//     -- all are here --
//     8 threads read the unmatched rows    each takes parts, divides them, or leaves them to others
#ifndef QUERN_TEST_UNIT_RUNTIME_JOIN_THREADED_JOIN_H_
#define QUERN_TEST_UNIT_RUNTIME_JOIN_THREADED_JOIN_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "ir-templates/generic/generic_join.h"
#include "runtime/base/status.h"
#include "runtime/join/hash_join.h"
#include "runtime/rows/output_batch.h"
#include "runtime/spec/spec.h"
#include "runtime/spill/spill_context.h"

namespace quern::test {

// The rows of a side.
struct SideRows {
  size_t num_rows;
  std::function<BatchView(size_t begin, size_t n)> batch;
};

struct ThreadedSettings {
  uint32_t num_threads = 1;
  size_t batch_rows = 100;
  uint64_t result_rows = 64;
  std::shared_ptr<MemoryBudget> result_budget = nullptr;  // of results
  bool repeats_refused = false;                           // rows of an append that are refused memory come again
};

class ThreadedJoin {
 public:
  // add: is given each result, one at a time.
  ThreadedJoin(const std::string& spec, const std::shared_ptr<MemoryBudget>& budget,
               const std::shared_ptr<SpillContext>& spill, SideRows build, SideRows probe, ThreadedSettings settings,
               std::function<void(const OutputBatch&)> add)
      : build_(std::move(build)),
        probe_(std::move(probe)),
        settings_(std::move(settings)),
        add_(std::move(add)),
        join_(std::make_shared<HashJoin>(std::make_shared<JoinDescriptor>(*ParseSpecOf<JoinSpec>(spec)),
                                         GenericJoinKernel(), nullptr, budget, JoinOptions())) {
    join_->SetSpill(spill);
    join_->SetGeneric(GenericJoinKernel());
  }

  // The first error of a thread.
  absl::Status Run() {
    Each([this](uint32_t thread) { return Append(thread); });
    Each([this](uint32_t /*thread*/) { return join_->Finalise(); });
    Each([this](uint32_t thread) { return Probe(thread); });
    Each([this](uint32_t /*thread*/) { return ReadUnmatched(); });
    return status_;
  }
  bool has_spilled() const { return join_->has_spilled(); }

 private:
  void Each(const std::function<absl::Status(uint32_t)>& run) {
    if (!status_.ok()) return;
    const auto run_one = [&](uint32_t thread) {
      const absl::Status status = run(thread);
      const std::lock_guard<std::mutex> lock(mutex_);
      status_.Update(status);
    };
    std::vector<std::thread> threads;
    for (uint32_t t = 1; t < settings_.num_threads; ++t) threads.emplace_back(run_one, t);
    run_one(0);
    for (std::thread& thread : threads) thread.join();
  }

  // run(begin, n): for each batch of a thread.
  absl::Status ForBatches(const SideRows& side, uint32_t thread,
                          const std::function<absl::Status(size_t, size_t)>& run) const {
    const size_t batch_rows = settings_.batch_rows, step = settings_.num_threads * batch_rows;
    for (size_t begin = thread * batch_rows; begin < side.num_rows; begin += step)
      QUERN_RETURN_IF_ERROR(run(begin, std::min(batch_rows, side.num_rows - begin)));
    return absl::OkStatus();
  }

  absl::Status Append(uint32_t thread) {
    Appender appender(join_);
    QUERN_RETURN_IF_ERROR(ForBatches(build_, thread, [&](size_t begin, size_t n) -> absl::Status {
      for (size_t next = begin; next < begin + n;) {
        uint64_t taken = 0;
        const absl::Status status = appender.Append(build_.batch(next, begin + n - next), RowKind::kInput, &taken);
        if (!status.ok() && !(settings_.repeats_refused && absl::IsResourceExhausted(status))) return status;
        next += taken;
      }
      return absl::OkStatus();
    }));
    return appender.Finish();
  }

  absl::Status Probe(uint32_t thread) {
    OutputBatch out(JoinOutputTypes(join_->descriptor().spec()), settings_.result_rows, settings_.result_budget);
    JoinProber prober(join_);
    return ForBatches(probe_, thread, [&](size_t begin, size_t n) -> absl::Status {
      QUERN_RETURN_IF_ERROR(prober.SetInput(probe_.batch(begin, n)));
      return ReadAll(&prober, &out);
    });
  }

  absl::Status ReadUnmatched() {
    OutputBatch out(JoinOutputTypes(join_->descriptor().spec()), settings_.result_rows, settings_.result_budget);
    JoinProber prober(join_);
    QUERN_RETURN_IF_ERROR(prober.SetUnmatched());
    return ReadAll(&prober, &out);
  }

  absl::Status ReadAll(JoinProber* prober, OutputBatch* out) {
    for (;;) {
      QUERN_ASSIGN_OR_RETURN(const bool more, prober->Next(out));
      const std::lock_guard<std::mutex> lock(mutex_);
      add_(*out);
      if (!more) return absl::OkStatus();
    }
  }

  const SideRows build_, probe_;
  const ThreadedSettings settings_;
  const std::function<void(const OutputBatch&)> add_;  // under the mutex
  const std::shared_ptr<HashJoin> join_;
  std::mutex mutex_;
  absl::Status status_;  // under the mutex
};

}  // namespace quern::test

#endif  // QUERN_TEST_UNIT_RUNTIME_JOIN_THREADED_JOIN_H_
