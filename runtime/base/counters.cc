// SPDX-License-Identifier: Apache-2.0
// Each thread counts in a block of its own by plain additions; reading a counter sums the blocks. When a thread's part
// of a job is done, its block goes, and its numbers are added to the sets that it belonged to:
//
//     two probing threads of 3,000 rows each, one done     set: gone 3,000 + block 1,024 so far = 4,024 rows
//
// One in eight of the calls below 64 us is timed, and one in 64 of those below 8 us. Take a filter of 20,000 rows that
// takes 10 us: calls 1, 9, 17 .. are timed, and after 12 calls `ns` is 8 * (time of call 1) + 4 * (time of call 9).
#include "runtime/base/counters.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "runtime/base/thread_local.h"

namespace quern {
namespace {

constexpr uint64_t kShortCallNs = 64000, kShortestCallNs = 8000;
constexpr uint64_t kCallsSkipped = 7, kMostCallsSkipped = 63;

void AddAll(const Counters& from, Counters* to) {
#define QUERN_COUNTER(id, name, meaning) to->name += from.name;
#include "runtime/base/counters.def"
}

}  // namespace

const char* TierText(const Counters& counters) {
  if (counters.generic_batches == 0) return counters.compiled_batches == 0 ? "none" : "compiled";
  return counters.compiled_batches == 0 ? "generic" : "both";
}

// ---- blocks ----

CounterBlock::CounterBlock(std::shared_ptr<CounterSet> set) : set_(std::move(set)) {
  CounterSet* s = set_.get();
  const NoFork no_fork;  // once for all sets
  try {
    for (; s != nullptr; s = s->parent_.get()) s->Enter(this);
  } catch (...) {  // the destructor of what was never made does not run
    for (CounterSet* entered = set_.get(); entered != s; entered = entered->parent_.get()) entered->Leave(this);
    throw;
  }
}

CounterBlock::~CounterBlock() {
  const NoFork no_fork;
  for (CounterSet* s = set_.get(); s != nullptr; s = s->parent_.get()) s->Leave(this);
}

void CounterBlock::AddTo(Counters* counters) const {
  const auto value = [&](Counter counter) {
    return values_[static_cast<size_t>(counter)].load(std::memory_order_relaxed);
  };
#define QUERN_COUNTER(id, name, meaning) counters->name += value(Counter::id);
#include "runtime/base/counters.def"
  counters->ns += calls_skipped_.load(std::memory_order_relaxed) * call_ns_.load(std::memory_order_relaxed);
}

void CallTimer::End() {
  const auto taken = std::chrono::steady_clock::now() - begin_;
  const auto ns = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(taken).count());
  CounterBlock& b = *block_;
  // Each skipped call counts as much as the timed call before it.
  const uint64_t skipped_ns =
      b.calls_skipped_.load(std::memory_order_relaxed) * b.call_ns_.load(std::memory_order_relaxed);
  b.calls_skipped_.store(0, std::memory_order_relaxed);
  b.call_ns_.store(ns, std::memory_order_relaxed);
  b.Add(Counter::kNs, skipped_ns + ns);
  b.calls_to_skip_.store(ns < kShortestCallNs ? kMostCallsSkipped
                         : ns < kShortCallNs  ? kCallsSkipped
                                              : 0,
                         std::memory_order_relaxed);
}

// ---- sets ----

void CounterSet::Enter(const CounterBlock* block) {
  const std::lock_guard<ForkSafeMutex> lock(mutex_);
  blocks_.push_back(block);
}

void CounterSet::Leave(const CounterBlock* block) {
  const std::lock_guard<ForkSafeMutex> lock(mutex_);
  block->AddTo(&gone_);
  blocks_.erase(std::find(blocks_.begin(), blocks_.end(), block));
}

Counters CounterSet::Sum() const {
  Counters sum;
  {
    const std::lock_guard<ForkSafeMutex> lock(mutex_);
    AddAll(gone_, &sum);
    for (const CounterBlock* block : blocks_) block->AddTo(&sum);
  }
  sum.rows = sum.generic_rows + sum.compiled_rows;
  sum.batches = sum.generic_batches + sum.compiled_batches;
  return sum;
}

// ---- threads ----

namespace {

// Operators' numbers are never reused, so that a block which a thread remembers for an operator that is gone is never
// mistaken for another operator's.
std::atomic<uint64_t> next_id{1};

struct Remembered {
  uint64_t id = 0;
  CounterBlock* block = nullptr;
};
constexpr uint64_t kRemembered = 8;
QUERN_THREAD_LOCAL Remembered remembered[kRemembered];

}  // namespace

// A finished thread and a later one may have the same id: the later one then continues to count in the same block.
struct ThreadCounters::Blocks {
  ForkSafeMutex mutex;
  std::map<std::thread::id, std::unique_ptr<CounterBlock>> by_thread;
};

ThreadCounters::ThreadCounters(std::shared_ptr<CounterSet> set)
    : id_(next_id.fetch_add(1, std::memory_order_relaxed)), set_(std::move(set)), blocks_(std::make_unique<Blocks>()) {}

ThreadCounters::~ThreadCounters() = default;

CounterBlock* ThreadCounters::OfThread() const {
  const Remembered& last = remembered[id_ % kRemembered];
  return last.id == id_ ? last.block : Find();
}

CounterBlock* ThreadCounters::Find() const {
  const std::lock_guard<ForkSafeMutex> lock(blocks_->mutex);
  std::unique_ptr<CounterBlock>& block = blocks_->by_thread[std::this_thread::get_id()];
  if (block == nullptr) block = std::make_unique<CounterBlock>(set_);
  remembered[id_ % kRemembered] = {id_, block.get()};
  return block.get();
}

}  // namespace quern
