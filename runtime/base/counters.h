// SPDX-License-Identifier: Apache-2.0
// Counters of operators. They are updated once per batch and never per row, so that they need not be enabled
// beforehand.
//
//     CounterSet of a kernel <- CounterSet of a job <- CounterBlock of a thread: plain additions to one or two cache
//                                                      lines of its own
//
// Sums may be read at any time; the numbers of a batch in progress may be missing.
#ifndef QUERN_RUNTIME_BASE_COUNTERS_H_
#define QUERN_RUNTIME_BASE_COUNTERS_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/base/aligned_block.h"
#include "runtime/base/fork_safety.h"

namespace quern {

enum class Counter : uint8_t {
#define QUERN_COUNTER(id, name, meaning) id,
#include "runtime/base/counters.def"
};
inline constexpr size_t kNumCounters = 0
#define QUERN_COUNTER(id, name, meaning) +1
#include "runtime/base/counters.def"
    ;

struct Counters {
#define QUERN_COUNTER(id, name, meaning) uint64_t name = 0;
#include "runtime/base/counters.def"
};

// Which of the two kernels processed a job's batches: "generic", "compiled", "both", or "none" where there were none.
const char* TierText(const Counters& counters);

class CounterSet;

// One thread's numbers. *Threads*: one writes, any read.
class alignas(64) CounterBlock : public OnOwnLines {
 public:
  explicit CounterBlock(std::shared_ptr<CounterSet> set);
  ~CounterBlock();
  CounterBlock(const CounterBlock&) = delete;
  CounterBlock& operator=(const CounterBlock&) = delete;

  void Add(Counter counter, uint64_t n) { Raise(&values_[static_cast<size_t>(counter)], n); }
  uint64_t Now(Counter counter) const { return values_[static_cast<size_t>(counter)].load(std::memory_order_relaxed); }
  void CountBatch(uint64_t num_rows, bool is_compiled) {
    Add(is_compiled ? Counter::kCompiledRows : Counter::kGenericRows, num_rows);
    Add(is_compiled ? Counter::kCompiledBatches : Counter::kGenericBatches, 1);
  }

 private:
  friend class CounterSet;
  friend class CallTimer;
  using Value = std::atomic<uint64_t>;
  // A plain addition, since no other thread writes.
  static void Raise(Value* value, uint64_t n) {
    value->store(value->load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  void AddTo(Counters* counters) const;

  std::array<Value, kNumCounters> values_ = {};
  // Untimed calls (CallTimer): how many remain before the next timed one, how many have been skipped, and how long each
  // is assumed to take.
  Value calls_to_skip_ = 0, calls_skipped_ = 0, call_ns_ = 0;
  std::shared_ptr<CounterSet> set_;
};

// Adds the time until its end to a block's `ns`. Reading the clock twice takes 50 ns, as much as a filter takes for a
// batch of 1000 rows. After a short call, the next calls are not timed and count as much as it. *Cost*: 1 or 2 ns for a
// short call.
class CallTimer {
 public:
  explicit CallTimer(CounterBlock* block) : block_(block) {
    const uint64_t left = block->calls_to_skip_.load(std::memory_order_relaxed);
    is_timed_ = left == 0;
    if (is_timed_) {
      begin_ = std::chrono::steady_clock::now();
    } else {
      block->calls_to_skip_.store(left - 1, std::memory_order_relaxed);
      CounterBlock::Raise(&block->calls_skipped_, 1);
    }
  }
  ~CallTimer() {
    if (is_timed_) End();
  }
  CallTimer(const CallTimer&) = delete;
  CallTimer& operator=(const CallTimer&) = delete;

 private:
  void End();

  CounterBlock* const block_;
  bool is_timed_;
  std::chrono::steady_clock::time_point begin_;
};

// The numbers of all threads of a job, or of all jobs of a kernel: the sum of its blocks, including those that are
// gone. *Threads*: any.
class CounterSet {
 public:
  // parent: a set that also counts everything that this set counts.
  explicit CounterSet(std::shared_ptr<CounterSet> parent = nullptr) : parent_(std::move(parent)) {}

  Counters Sum() const;

 private:
  friend class CounterBlock;
  void Enter(const CounterBlock* block);
  void Leave(const CounterBlock* block);

  const std::shared_ptr<CounterSet> parent_;
  mutable ForkSafeMutex mutex_;
  std::vector<const CounterBlock*> blocks_;
  Counters gone_;
};

// For operators that any thread may call at any time: finds the calling thread's block of an operator. *Cost*: one
// thread-local look-up, unless the thread alternates between more than eight operators.
class ThreadCounters {
 public:
  explicit ThreadCounters(std::shared_ptr<CounterSet> set);
  ~ThreadCounters();
  ThreadCounters(const ThreadCounters&) = delete;
  ThreadCounters& operator=(const ThreadCounters&) = delete;

  CounterBlock* OfThread() const;

 private:
  struct Blocks;
  CounterBlock* Find() const;

  const uint64_t id_;
  std::shared_ptr<CounterSet> set_;
  std::unique_ptr<Blocks> blocks_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_BASE_COUNTERS_H_
