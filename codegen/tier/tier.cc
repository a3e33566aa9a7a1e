// SPDX-License-Identifier: Apache-2.0
// A tier passes through three stages, once:
//
//     counting ──> waiting ──> over          compiled, or failed for good
//         │  ^        └─ fork: the copy in the child counts again
//         │  └─ not due yet: more rows to count
//         └─ found in memory ──> over
//
// Example: `aggregate keys=i64 aggs=sum(i64)`, 4 ms to compile, 15 ns a row, with a spare CPU. Ten jobs of 30,000 rows
// run one after the other. The meter starts at 67,000 rows; then it is worth checking whether the kernel is on disk. In
// the third job the meter reaches zero, the kernel is not on disk, and the meter is set to the rest of 267,000 rows (4
// ms). The ninth job processes the last of them. It continues on the generic kernel while the compile thread works; the
// first batch that starts afterwards finds the compiled entry points in the slot. Compile of the tenth job finds the
// compiled kernel in the process's cache. The tier has left the table, and is destroyed with the last job that uses its
// generic kernel.
//
// Any number of threads count a meter down, and only the one that brings it to zero decides. All decisions therefore
// run on one thread at a time, except those of Expect: this is why `stage_` is changed by compare-and-swap.
#include "codegen/tier/tier.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <list>
#include <mutex>
#include <new>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "codegen/base/log.h"
#include "codegen/tier/compile_queue.h"
#include "codegen/tier/tier_policy.h"
#include "runtime/base/fork_safety.h"
#include "runtime/base/status.h"

namespace quern {
namespace {

class Tier final : public KernelTier, public CompileJob, public std::enable_shared_from_this<Tier> {
 public:
  Tier(std::unique_ptr<KernelMaker> maker, std::optional<uint64_t> compile_after_rows, bool swap_waits,
       const Kernel& generic)
      : maker_(std::move(maker)),
        costs_(EstimateCosts(generic.plan.spec)),
        given_rows_(compile_after_rows),
        swap_waits_(swap_waits),
        first_rows_(given_rows_.has_value() ? *given_rows_ : TierPolicy::OfProcess().RowsBeforeLooking(costs_)) {}

  // What a constructor cannot do: slots and meter refer back to this tier.
  void Open(const Kernel& generic);

  std::shared_ptr<const Kernel> Compiled() const override;
  CacheOutcome cache() const override;
  std::string Failure() const override;
  void Expect(uint64_t num_rows) override;

  void Run(const std::atomic<bool>& stop) override;
  void Forgotten() override;

 private:
  enum class Stage : uint8_t { kCounting, kWaiting, kOver };

  class Meter final : public RowMeter {
   public:
    Meter(std::weak_ptr<Tier> tier, uint64_t rows) : RowMeter(AsCount(rows)), tier_(std::move(tier)) {}
    void SetAgain(uint64_t rows) { Set(AsCount(rows)); }

   private:
    static int64_t AsCount(uint64_t rows) { return static_cast<int64_t>(std::min<uint64_t>(rows, INT64_MAX)); }
    // Whether to compile is no reason for a batch to fail: without memory it is decided after the next rows.
    void Due() override {
      const auto tier = tier_.lock();
      if (tier == nullptr) return;
      try {
        tier->RowsHaveCome();
      } catch (const std::bad_alloc&) {
        SetAgain(std::max<uint64_t>(tier->first_rows_, 1));
      }
    }
    const std::weak_ptr<Tier> tier_;
  };

  void RowsHaveCome();
  void Begin();
  void Publish(const CompiledKernel& compiled);
  void Fail(std::string_view problem);
  // Moves from one stage to another; false if another thread did so first.
  bool Advance(Stage from, Stage to) { return stage_.compare_exchange_strong(from, to); }
  void EndWaits() {
    stage_ = Stage::kOver;
    stage_.notify_all();
  }

  const std::unique_ptr<KernelMaker> maker_;
  const KernelCosts costs_;
  const std::optional<uint64_t> given_rows_;
  const bool swap_waits_;
  const uint64_t first_rows_;
  std::atomic<bool> has_looked_{false};
  std::shared_ptr<Meter> meter_;
  std::atomic<Stage> stage_{Stage::kCounting};
  mutable ForkSafeMutex mutex_;  // for the members below
  std::shared_ptr<const Kernel> compiled_;
  CacheOutcome cache_ = CacheOutcome::kOff;
  std::string failure_;
};

void Tier::Open(const Kernel& generic) {
  // A meter at zero counts nothing, so 0 rows become one.
  meter_ = std::make_shared<Meter>(weak_from_this(), std::max<uint64_t>(first_rows_, 1));
  std::visit(
      [&]<class Spec>(const OperatorKernel<Spec>& of) {
        using EntryPoints = typename OperatorTraits<Spec>::EntryPoints;
        slot_ = Slot<Spec>{std::make_shared<EntrySlot<EntryPoints>>(of.entry_points, meter_)};
      },
      generic.of);
}

std::shared_ptr<const Kernel> Tier::Compiled() const {
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  return compiled_;
}

CacheOutcome Tier::cache() const {
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  return cache_;
}

std::string Tier::Failure() const {
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  return failure_;
}

void Tier::Expect(uint64_t num_rows) {
  const NoFork no_fork;  // a child would not go on from Stage::kWaiting
  if (given_rows_.has_value() || num_rows < TierPolicy::OfProcess().RowsBeforeLooking(costs_)) return;
  if (stage_.load(std::memory_order_relaxed) != Stage::kCounting) return;
  if (auto kernel = maker_->FindInMemory()) {
    if (Advance(Stage::kCounting, Stage::kWaiting)) Publish({std::move(kernel), CacheOutcome::kMemory, ""});
    return;
  }
  if (TierPolicy::OfProcess().Pays(costs_, num_rows, maker_->IsOnDisk())) Begin();
}

void Tier::RowsHaveCome() {
  const NoFork no_fork;  // as in Expect
  if (given_rows_.has_value()) return Begin();
  if (auto kernel = maker_->FindInMemory()) {
    if (Advance(Stage::kCounting, Stage::kWaiting)) Publish({std::move(kernel), CacheOutcome::kMemory, ""});
    return;
  }
  const uint64_t enough = TierPolicy::OfProcess().RowsBeforeCompiling(costs_);
  const bool waits_for_more = !has_looked_.exchange(true) && enough > first_rows_ && !maker_->IsOnDisk();
  if (!waits_for_more) return Begin();
  meter_->SetAgain(enough - first_rows_);
}

void Tier::Begin() {
  if (!Advance(Stage::kCounting, Stage::kWaiting)) return;
  Added added = Added::kEnding;
  try {
    added = CompileQueue::OfProcess().Add(shared_from_this());
  } catch (const std::bad_alloc&) {
    stage_ = Stage::kCounting;
    throw;
  }
  switch (added) {
    case Added::kWaiting: break;
    case Added::kNoThread:
      return Fail("no thread to compile on: the system started none; accepted: a higher limit of threads");
    case Added::kEnding: return EndWaits();
  }
  if (!swap_waits_ || CompileQueue::OfProcess().RunIfWaiting(*this)) return;
  const ForkAllowed while_waiting;
  for (Stage now = stage_; now != Stage::kOver; now = stage_) stage_.wait(now);
}

void Tier::Run(const std::atomic<bool>& stop) {
  absl::StatusOr<CompiledKernel> made = absl::CancelledError();
  try {
    made = maker_->Make(stop);
  } catch (const std::bad_alloc&) {
    made = OutOfMemory();
  } catch (const std::exception& thrown) {
    made = WithoutBadAlloc(
        [&] { return Internal("exception while compiling: " + std::string(thrown.what()) + "; accepted: none"); });
  }
  if (stop) return EndWaits();
  if (made.ok()) return Publish(*made);
  Fail({made.status().message().data(), made.status().message().size()});
}

void Tier::Publish(const CompiledKernel& compiled) {
  std::visit(
      [&]<class Spec>(const OperatorKernel<Spec>& of) {
        std::get<Slot<Spec>>(slot_).slot->Publish(of.entry_points, compiled.kernel);
      },
      compiled.kernel->of);
  {
    std::lock_guard<ForkSafeMutex> lock(mutex_);
    compiled_ = compiled.kernel;
    cache_ = compiled.cache;
  }
  EndWaits();
  TierTable::OfProcess().Drop(*this);
}

// May run on the compile thread, from which nothing may be thrown.
void Tier::Fail(std::string_view problem) {
  std::string warning;
  try {
    warning = "not compiled, running the generic kernel: " + std::string(problem);
  } catch (const std::bad_alloc&) {
    warning = "out of memory";  // so short that it takes no allocation
  }
  {
    std::lock_guard<ForkSafeMutex> lock(mutex_);
    failure_.swap(warning);
  }
  EndWaits();
  try {
    WarnOnce(Failure());
  } catch (const std::bad_alloc&) {  // the kernel still tells by its text
  }
}

// The next batch decides again as the last one did.
void Tier::Forgotten() {
  has_looked_ = true;
  stage_ = Stage::kCounting;
  meter_->SetAgain(1);
}

constexpr size_t kMaxNames = 1024;

}  // namespace

void AddTier(std::unique_ptr<KernelMaker> maker, std::optional<uint64_t> compile_after_rows, bool swap_waits,
             Kernel* generic) {
  const auto tier = std::make_shared<Tier>(std::move(maker), compile_after_rows, swap_waits, *generic);
  tier->Open(*generic);
  generic->tier = tier;
}

struct TierTable::State {
  struct Entry {
    std::shared_ptr<const Kernel> kernel;
    std::list<const std::string*>::iterator used;
  };
  ForkSafeMutex mutex;
  std::unordered_map<std::string, Entry> entries;
  std::list<const std::string*> order;  // keys of `entries`, most recently used first
};

TierTable& TierTable::OfProcess() {
  const NoFork no_fork;  // the first call makes it
  static TierTable* table = [] {
    auto* made = new TierTable;
    made->state_ = new State;
    return made;
  }();
  return *table;
}

std::shared_ptr<const Kernel> TierTable::Find(const std::string& name) {
  std::lock_guard<ForkSafeMutex> lock(state_->mutex);
  const auto at = state_->entries.find(name);
  if (at == state_->entries.end()) return nullptr;
  state_->order.splice(state_->order.begin(), state_->order, at->second.used);
  return at->second.kernel;
}

std::shared_ptr<const Kernel> TierTable::Keep(const std::string& name, const std::shared_ptr<const Kernel>& kernel) {
  std::shared_ptr<const Kernel> oldest;  // destroyed after the lock
  std::lock_guard<ForkSafeMutex> lock(state_->mutex);
  std::list<const std::string*> place(1);  // allocated first: an entry without a place would stay for ever
  const auto [at, inserted] = state_->entries.try_emplace(name);
  if (!inserted) return at->second.kernel;
  place.front() = &at->first;
  state_->order.splice(state_->order.begin(), place);
  at->second = {kernel, state_->order.begin()};
  if (state_->entries.size() > kMaxNames) {
    const auto victim = state_->entries.find(*state_->order.back());
    oldest = std::move(victim->second.kernel);
    state_->order.pop_back();
    state_->entries.erase(victim);
  }
  return kernel;
}

void TierTable::Drop(const KernelTier& tier) {
  std::shared_ptr<const Kernel> dropped;  // as above
  std::lock_guard<ForkSafeMutex> lock(state_->mutex);
  for (auto at = state_->entries.begin(); at != state_->entries.end();) {
    if (at->second.kernel->tier.get() != &tier) {
      ++at;
      continue;
    }
    dropped = std::move(at->second.kernel);
    state_->order.erase(at->second.used);
    at = state_->entries.erase(at);
  }
}

void TierTable::Clear() {
  std::unordered_map<std::string, State::Entry> cleared;  // as above
  std::lock_guard<ForkSafeMutex> lock(state_->mutex);
  state_->order.clear();
  cleared.swap(state_->entries);
}

size_t TierTable::size() {
  std::lock_guard<ForkSafeMutex> lock(state_->mutex);
  return state_->entries.size();
}

}  // namespace quern
