// SPDX-License-Identifier: Apache-2.0
// The entry points of a kernel as they are at the moment: those of the generic kernel until a compiled one is there.
//
//     EntrySlot (one per kernel)   now ──> generic entry points          .. Publish(compiled, code) ..   now ──>
//     compiled entry points
//         ^ shared by all operators that run the kernel
//     EntrySource (one per operator): ForBatch(n, counters) at each batch boundary: counts n rows, answers what `now`
//     points to
//
// Both kernels do the same to the same state (tuples, groups, words of a sort), to the bit, so that an operator may go
// on with the other one at any batch boundary. Where nothing is ever published the source is a pointer and one load.
#ifndef QUERN_RUNTIME_ROWS_ENTRY_SLOT_H_
#define QUERN_RUNTIME_ROWS_ENTRY_SLOT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "runtime/base/counters.h"

struct QuernJoinEntryPoints;
struct QuernAggregateEntryPoints;
struct QuernSortEntryPoints;
struct QuernFilterEntryPoints;

namespace quern {

// Hears of rows as operators process them with a kernel that is not compiled yet. *Threads*: any.
class RowMeter {
 public:
  virtual ~RowMeter() = default;

  // *Cost*: one atomic subtraction, and only until so many rows have come as the meter was set to.
  void Count(uint64_t num_rows) {
    if (left_.load(std::memory_order_relaxed) <= 0) return;
    const auto rows = static_cast<int64_t>(num_rows);
    const int64_t before = left_.fetch_sub(rows, std::memory_order_relaxed);
    if (before > 0 && before <= rows) Due();
  }

 protected:
  explicit RowMeter(int64_t rows) : left_(rows) {}
  // All rows have come. Called once each time that the meter is set, by the thread that counted the last of them,
  // between two of its batches.
  virtual void Due() = 0;
  // Counts again. *Threads*: any; by Due best.
  void Set(int64_t rows) { left_.store(rows, std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> left_;
};

template <class EntryPoints>
class EntrySlot {
 public:
  // first_is_compiled: of a kernel that was compiled from the start.
  explicit EntrySlot(const EntryPoints& first, std::shared_ptr<RowMeter> meter = nullptr,
                     bool first_is_compiled = false)
      : first_(first), first_is_compiled_(first_is_compiled), meter_(std::move(meter)) {}
  EntrySlot(const EntrySlot&) = delete;
  EntrySlot& operator=(const EntrySlot&) = delete;

  const EntryPoints& Now() const { return *now_.load(std::memory_order_acquire); }
  bool published() const { return now_.load(std::memory_order_acquire) == &compiled_; }
  bool IsCompiled(const EntryPoints& now) const { return first_is_compiled_ || &now == &compiled_; }
  RowMeter* meter() const { return meter_.get(); }

  // Replaces what Now answers, once. *Ownership*: `code` keeps the machine code alive; the slot keeps it. *Threads*:
  // one, while others read.
  void Publish(const EntryPoints& compiled, std::shared_ptr<const void> code) {
    compiled_ = compiled;
    code_ = std::move(code);
    now_.store(&compiled_, std::memory_order_release);
  }

 private:
  const EntryPoints first_;
  const bool first_is_compiled_;
  EntryPoints compiled_ = {};
  std::shared_ptr<const void> code_;
  std::shared_ptr<RowMeter> meter_;
  std::atomic<const EntryPoints*> now_{&first_};
};

// What an operator holds of its kernel.
template <class EntryPoints>
class EntrySource {
 public:
  // Entry points that stay as they are. NOLINTNEXTLINE(google-explicit-constructor): a struct of entry points is a
  // source of them
  EntrySource(const EntryPoints& fixed) : slot_(std::make_shared<EntrySlot<EntryPoints>>(fixed)) {}
  // counters: of the kernel; may be null.
  explicit EntrySource(std::shared_ptr<const EntrySlot<EntryPoints>> slot,
                       std::shared_ptr<CounterSet> counters = nullptr)
      : slot_(std::move(slot)), counters_(std::move(counters)) {}

  // The entry points for the next `num_rows` rows. The reference may be kept for them, and lives as long as any source
  // of the slot.
  const EntryPoints& ForBatch(uint64_t num_rows, CounterBlock* counters) const {
    if (RowMeter* meter = slot_->meter(); meter != nullptr && !slot_->published()) meter->Count(num_rows);
    const EntryPoints& now = slot_->Now();
    counters->CountBatch(num_rows, slot_->IsCompiled(now));
    return now;
  }
  // The same for work that is not counted in rows of the input.
  const EntryPoints& Now() const { return slot_->Now(); }

  // A set for what one job counts.
  std::shared_ptr<CounterSet> NewCounters() const { return std::make_shared<CounterSet>(counters_); }

 private:
  std::shared_ptr<const EntrySlot<EntryPoints>> slot_;
  std::shared_ptr<CounterSet> counters_;
};

using JoinEntrySource = EntrySource<QuernJoinEntryPoints>;
using AggregateEntrySource = EntrySource<QuernAggregateEntryPoints>;
using SortEntrySource = EntrySource<QuernSortEntryPoints>;
using FilterEntrySource = EntrySource<QuernFilterEntryPoints>;

}  // namespace quern

#endif  // QUERN_RUNTIME_ROWS_ENTRY_SLOT_H_
