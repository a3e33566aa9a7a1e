// SPDX-License-Identifier: Apache-2.0
// The current entry points of a kernel: those of the generic kernel until a compiled one is ready.
//
//     EntrySlot (one per kernel)   now ──> generic entry points     .. Publish(compiled, code) ..     now ──> compiled
//         ^ shared by all operators that run the kernel                                            entry points
//     EntrySource (one per operator): ForBatch(n, counters) at each batch boundary: counts n rows and returns the
//                                     entry points to which `now` points
//
// Both kernels do the same to the same state (tuples, groups, key words of a sort), bit for bit, so an operator may
// switch between them at any batch boundary. Where nothing is ever published, the source costs a pointer and one load.
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
struct QuernMapEntryPoints;

namespace quern {

// Counts the rows that operators process with a kernel that is not compiled yet. *Threads*: any.
class RowMeter {
 public:
  virtual ~RowMeter() = default;

  // *Cost*: one atomic subtraction; none once the number of rows for which the meter was set has been counted.
  void Count(uint64_t num_rows) {
    if (left_.load(std::memory_order_relaxed) <= 0) return;
    const auto rows = static_cast<int64_t>(num_rows);
    const int64_t before = left_.fetch_sub(rows, std::memory_order_relaxed);
    if (before > 0 && before <= rows) Due();
  }

 protected:
  explicit RowMeter(int64_t rows) : left_(rows) {}
  // All rows have been counted. Called once each time the meter is set, by the thread that counted the last row,
  // between two of its batches.
  virtual void Due() = 0;
  // Restarts the count. *Threads*: any; preferably called by Due.
  void Set(int64_t rows) { left_.store(rows, std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> left_;
};

template <class EntryPoints>
class EntrySlot {
 public:
  // first_is_compiled: for a kernel that was compiled from the start.
  explicit EntrySlot(const EntryPoints& first, std::shared_ptr<RowMeter> meter = nullptr,
                     bool first_is_compiled = false)
      : first_(first), first_is_compiled_(first_is_compiled), meter_(std::move(meter)) {}
  EntrySlot(const EntrySlot&) = delete;
  EntrySlot& operator=(const EntrySlot&) = delete;

  const EntryPoints& Now() const { return *now_.load(std::memory_order_acquire); }
  bool published() const { return now_.load(std::memory_order_acquire) == &compiled_; }
  bool IsCompiled(const EntryPoints& now) const { return first_is_compiled_ || &now == &compiled_; }
  RowMeter* meter() const { return meter_.get(); }

  // Replaces what Now returns, once. *Ownership*: `code` keeps the machine code alive; the slot keeps `code`.
  // *Threads*: one, while others read.
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

// An operator's access to its kernel.
template <class EntryPoints>
class EntrySource {
 public:
  // Entry points that never change.
  // NOLINTNEXTLINE(google-explicit-constructor): a struct of entry points is a source of them
  EntrySource(const EntryPoints& fixed) : slot_(std::make_shared<EntrySlot<EntryPoints>>(fixed)) {}
  // counters: those of the kernel; may be null.
  explicit EntrySource(std::shared_ptr<const EntrySlot<EntryPoints>> slot,
                       std::shared_ptr<CounterSet> counters = nullptr)
      : slot_(std::move(slot)), counters_(std::move(counters)) {}

  // The entry points for the next `num_rows` rows. The reference may be kept for those rows; it stays valid as long as
  // any source of the slot exists.
  const EntryPoints& ForBatch(uint64_t num_rows, CounterBlock* counters) const {
    if (RowMeter* meter = slot_->meter(); meter != nullptr && !slot_->published()) meter->Count(num_rows);
    const EntryPoints& now = slot_->Now();
    counters->CountBatch(num_rows, slot_->IsCompiled(now));
    return now;
  }
  // As ForBatch, for rows that are looked at before they are input: they count towards compiling alone.
  const EntryPoints& ForLook(uint64_t num_rows) const {
    if (RowMeter* meter = slot_->meter(); meter != nullptr && !slot_->published()) meter->Count(num_rows);
    return slot_->Now();
  }
  // As ForBatch, for work that is not counted in input rows.
  const EntryPoints& Now() const { return slot_->Now(); }

  // A counter set for one job.
  std::shared_ptr<CounterSet> NewCounters() const { return std::make_shared<CounterSet>(counters_); }

 private:
  std::shared_ptr<const EntrySlot<EntryPoints>> slot_;
  std::shared_ptr<CounterSet> counters_;
};

using JoinEntrySource = EntrySource<QuernJoinEntryPoints>;
using AggregateEntrySource = EntrySource<QuernAggregateEntryPoints>;
using SortEntrySource = EntrySource<QuernSortEntryPoints>;
using FilterEntrySource = EntrySource<QuernFilterEntryPoints>;
using MapEntrySource = EntrySource<QuernMapEntryPoints>;

}  // namespace quern

#endif  // QUERN_RUNTIME_ROWS_ENTRY_SLOT_H_
