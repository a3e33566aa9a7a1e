// SPDX-License-Identifier: Apache-2.0
// Aggregates whose state has no fixed size or belongs to a host: minima of strings, distinct values, quantiles. They
// are not part of a kernel; one call per batch updates them, and its cost is negligible beside the work.
//
// A state is `state_bytes` bytes in its group's row (zero: no values so far), a multiple of 8, aligned to 8; data that
// it points to lies in an AccumulatorMemory. Group rows are copied as bytes when tables grow or are partitioned, so a
// state must not point into itself, and only one copy of it is used afterwards.
#ifndef QUERN_RUNTIME_AGGREGATE_ACCUMULATORS_OUT_OF_LINE_AGGREGATES_H_
#define QUERN_RUNTIME_AGGREGATE_ACCUMULATORS_OUT_OF_LINE_AGGREGATES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/abi/kernel_abi.h"
#include "runtime/base/memory.h"
#include "runtime/spec/aggregate_spec.h"

namespace quern {

// Memory for many small pieces of one thread's states: pieces are powers of two from 16 bytes on, reused when given
// back, and freed together. Other states reuse the old piece of data that moved to a larger one. *Threads*: one.
class AccumulatorMemory {
 public:
  // host: the job's pointer for functions of the host, whose states have their memory there.
  explicit AccumulatorMemory(std::shared_ptr<MemoryBudget> budget, void* host = nullptr);

  void* host() const { return host_; }

  // Set by a state that was refused memory where it cannot go on.
  bool is_broken() const { return is_broken_; }
  void Break() { is_broken_ = true; }

  // A piece of at least `bytes` bytes, not zeroed. *Errors*: ResourceExhausted.
  absl::StatusOr<uint8_t*> Take(uint64_t bytes);
  // `bytes` as at Take.
  void GiveBack(uint8_t* piece, uint64_t bytes);
  static uint64_t PieceBytes(uint64_t bytes);

  // Steps of the thread's sets of values that took long: their sum since the last call.
  void CountSteps(uint64_t steps) { num_steps_ += steps; }
  uint64_t TakeSteps() { return std::exchange(num_steps_, 0); }

 private:
  Arena arena_;
  void* const host_;
  uint8_t* end_of_small_ = nullptr;  // rest of a piece of the arena from which small pieces are cut
  uint64_t small_bytes_ = 0;
  bool is_broken_ = false;
  uint64_t num_steps_ = 0;
  uint8_t* free_[64] = {};  // by log2 of their size: each piece holds the address of the next one
};

// Rows of one batch for one accumulator: those that pass its filter and have values for all arguments.
struct AccumulatorRows {
  const QuernColumn* columns;  // its arguments; dictionaries are not decoded
  const uint32_t* rows;        // of the batch
  uint64_t first_row_id;       // of the batch's row 0
  uint8_t* const* states;      // of each row's group; one state may occur many times
  uint32_t n;
  uint32_t prefetch_rows = 0;  // prefetch distance for states; 0: none
  uint32_t* num_added;         // Update adds how many rows it has added, the first ones, also where it fails
};

// The parts of one group's state, as SavePart wrote them, which may be read any number of times.
class SavedParts {
 public:
  virtual ~SavedParts() = default;
  // Calls f for each of them, until it fails. *Errors*: those of f, and of reading.
  virtual absl::Status ForEach(const std::function<absl::Status(std::string_view)>& f) = 0;
};

class OutOfLineAggregate {
 public:
  virtual ~OutOfLineAggregate() = default;

  virtual uint32_t state_bytes() const = 0;
  // *Errors*: ResourceExhausted, after which rows.num_added are in the states; a host's failure, after which the states
  // are unusable.
  virtual absl::Status Update(const AccumulatorRows& rows, AccumulatorMemory* memory) const = 0;
  // Adds from[i] to into[i]; may take over what from[i] points to (its memory lives as long as all states). *Errors*:
  // ResourceExhausted, after which each from[i] is zero, or still has what into[i] lacks, unless memory->is_broken();
  // a host's failure.
  virtual absl::Status Merge(uint8_t* const* into, uint8_t* const* from, uint32_t n,
                             AccumulatorMemory* memory) const = 0;
  // Writes n values of AggregateResultType to out, from out_row on (fixed width: in place; strings: appended, after
  // quern_rt_reserve_bytes has made room). A state without values is null where the column has a validity bitmap.
  // Returns how many fit: fewer than n only at the limit of 32-bit offsets. *Errors*: ResourceExhausted; OutOfRange for
  // a sum that does not fit. host: as of AccumulatorMemory.
  virtual absl::StatusOr<uint32_t> Finalise(const uint8_t* const* states, uint32_t n, QuernOutColumn* out,
                                            uint64_t out_row, void* host) const = 0;
  // Appends the state as bytes that mean the same in another process with the same format number
  // (format_number.h).
  virtual void Save(const uint8_t* state, std::string* bytes) const = 0;
  // Adds a saved state. *Errors*: InvalidArgument for bytes that Save does not write; ResourceExhausted, after which it
  // may be added again.
  virtual absl::Status MergeSaved(uint8_t* state, std::string_view bytes, AccumulatorMemory* memory) const = 0;

  // Whether a state of more values than fit in memory can be saved in parts, and its result computed from them. The
  // next three functions are for such aggregates.
  virtual bool has_parts() const { return false; }
  // What Save appends, roughly.
  virtual uint64_t SavedBytes(const uint8_t* /*state*/) const { return 0; }
  // Appends some of the values, about most_bytes, in the form of Save: those from *next on, which is 0 at first and
  // becomes the next one. Returns whether there are more.
  virtual bool SavePart(const uint8_t* /*state*/, uint64_t* /*next*/, uint64_t /*most_bytes*/,
                        std::string* /*bytes*/) const {
    return false;
  }
  // Writes the result of all values of the parts to row out_row, as Finalise does. *Cost*: the parts are read several
  // times. *Errors*: ResourceExhausted where the budget is too small whatever the number of values.
  virtual absl::Status FinaliseParts(SavedParts* /*parts*/, const std::shared_ptr<MemoryBudget>& /*budget*/,
                                     QuernOutColumn* /*out*/, uint64_t /*out_row*/) const {
    return absl::OkStatus();
  }
};

// Whether calls update an aggregate; the kernel's loop updates the others.
bool IsOutOfLine(const AggregateSpec& aggregate);

// *Errors*: NotFound for a host's function that is not registered.
absl::StatusOr<std::unique_ptr<OutOfLineAggregate>> MakeOutOfLineAggregate(const AggregateSpec& aggregate);

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_ACCUMULATORS_OUT_OF_LINE_AGGREGATES_H_
