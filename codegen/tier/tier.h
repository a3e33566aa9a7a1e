// SPDX-License-Identifier: Apache-2.0
// Never slower: a kernel that starts as the generic one and is compiled in the background once that pays.
//
//     Compile(kBackground)  ──> a Kernel with a KernelTier: generic entry points in a slot (runtime/rows/entry_slot.h),
//                               and a meter of rows
//     rows of its jobs      ──> the meter ──> at zero: CompileQueue
//     compile thread        ──> KernelCache (memory, disk, compiler) ──> publishes into the slot
//     (ours or the host's)
#ifndef QUERN_CODEGEN_TIER_TIER_H_
#define QUERN_CODEGEN_TIER_TIER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "codegen/kernel/kernel.h"
#include "runtime/rows/entry_slot.h"

namespace quern {

// The two kernels of one spec and plan, shared by all jobs of the process that run them. *Threads*: any.
class KernelTier {
 public:
  virtual ~KernelTier() = default;

  // The compiled kernel if it exists already; else null.
  virtual std::shared_ptr<const Kernel> Compiled() const = 0;
  // Where the compiled kernel came from; kOff while there is none.
  virtual CacheOutcome cache() const = 0;
  // Why there will be no compiled kernel; empty otherwise.
  virtual std::string Failure() const = 0;

  // Announces about how many rows will follow on one thread (if several threads run the job: the rows of one).
  // Compiling starts at once if that pays. May be called again for each job.
  virtual void Expect(uint64_t num_rows) = 0;

  // The current entry points of a kernel whose spec is a Spec.
  template <class Spec>
  std::shared_ptr<const EntrySlot<typename OperatorTraits<Spec>::EntryPoints>> slot() const {
    return std::get<Slot<Spec>>(slot_).slot;
  }

 protected:
  template <class Spec>
  struct Slot {
    std::shared_ptr<EntrySlot<typename OperatorTraits<Spec>::EntryPoints>> slot;
  };
  OverOperators<Slot> slot_;
};

// How a tier obtains its compiled kernel. *Threads*: any.
class KernelMaker {
 public:
  virtual ~KernelMaker() = default;
  // The kernel if the process has it. *Cost*: one hash and one lock.
  virtual std::shared_ptr<const Kernel> FindInMemory() = 0;
  // Whether it seems to be on disk. *Cost*: 10 us.
  virtual bool IsOnDisk() = 0;
  // Finds or compiles the kernel. *Errors*: Cancelled, soon after `stop` becomes true.
  virtual absl::StatusOr<CompiledKernel> Make(const std::atomic<bool>& stop) = 0;
};

// Gives a generic kernel its tier. With compile_after_rows the maker is called after exactly that many rows; otherwise
// when it pays (tier_policy.h). swap_waits: the thread that counts the last of these rows waits for the result.
void AddTier(std::unique_ptr<KernelMaker> maker, std::optional<uint64_t> compile_after_rows, bool swap_waits,
             Kernel* generic);

// The generic kernels of the process that have a tier and are not compiled yet, by name, so that the rows of many small
// jobs add up. The least recently used names are dropped first. *Threads*: any.
class TierTable {
 public:
  static TierTable& OfProcess();

  // Null if there is none.
  std::shared_ptr<const Kernel> Find(const std::string& name);
  // Keeps a kernel under a name. Returns the kernel that another thread has stored there before, if any.
  std::shared_ptr<const Kernel> Keep(const std::string& name, const std::shared_ptr<const Kernel>& kernel);
  // Removes all names of a tier's kernel.
  void Drop(const KernelTier& tier);
  void Clear();
  size_t size();

 private:
  TierTable() = default;
  struct State;
  State* state_ = nullptr;
};

}  // namespace quern

#endif  // QUERN_CODEGEN_TIER_TIER_H_
