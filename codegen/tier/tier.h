// SPDX-License-Identifier: Apache-2.0
// Never slower: a kernel that starts as the generic one and is compiled beside it once that pays.
//
//     Compile(kBackground) ──> Kernel with a KernelTier: generic entry points in a slot (runtime/rows/entry_slot.h), a
//     meter of rows
//                                  rows of its jobs ──> meter ──> when enough have come: CompileQueue
//     compile thread (ours, or one that the host lends) ──> KernelCache (memory, disk, compiler) ──> Publish into the
//     slot
#ifndef QUERN_CODEGEN_TIER_TIER_H_
#define QUERN_CODEGEN_TIER_TIER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "codegen/kernel/kernel.h"
#include "runtime/rows/entry_slot.h"

namespace quern {

// The two kernels of one spec and plan, shared by all jobs of the process that run it. *Threads*: any.
class KernelTier {
 public:
  virtual ~KernelTier() = default;

  // The compiled kernel where it is there already; else null.
  virtual std::shared_ptr<const Kernel> Compiled() const = 0;
  // Where it came from; kOff while there is none.
  virtual CacheOutcome cache() const = 0;
  // Why there will be none; empty otherwise.
  virtual std::string Failure() const = 0;

  // Tells that about so many rows are to come, on one thread (of a job by several: the rows of one): where that pays,
  // compiling begins at once. May be called again for each job.
  virtual void Expect(uint64_t num_rows) = 0;

  // The slots of the kernel's operator; the others' are null.
  std::shared_ptr<const EntrySlot<QuernJoinEntryPoints>> join;
  std::shared_ptr<const EntrySlot<QuernAggregateEntryPoints>> aggregate;
  std::shared_ptr<const EntrySlot<QuernSortEntryPoints>> sort;
  std::shared_ptr<const EntrySlot<QuernFilterEntryPoints>> filter;
};

// How a tier comes by its compiled kernel. *Threads*: any.
class KernelMaker {
 public:
  virtual ~KernelMaker() = default;
  // The kernel if the process has it. *Cost*: one hash and one lock.
  virtual std::shared_ptr<const Kernel> FindInMemory() = 0;
  // Whether it seems to be on disk. *Cost*: 10 us.
  virtual bool IsOnDisk() = 0;
  // Finds or compiles it. *Errors*: Cancelled, soon after `stop` has become true.
  virtual absl::StatusOr<CompiledKernel> Make(const std::atomic<bool>& stop) = 0;
};

// Gives a generic kernel its tier. With compile_after_rows the maker is asked after so many rows and not before;
// otherwise when it pays (tier_policy.h). swap_waits: whoever counts the last of these rows waits for the outcome.
void AddTier(std::unique_ptr<KernelMaker> maker, std::optional<uint64_t> compile_after_rows, bool swap_waits,
             Kernel* generic);

// The process's generic kernels that have a tier and are not compiled yet, by name, so that the rows of many small jobs
// add up. The names that were used least recently go first. *Threads*: any.
class TierTable {
 public:
  static TierTable& OfProcess();

  // Null where there is none.
  std::shared_ptr<const Kernel> Find(const std::string& name);
  // Keeps a kernel under a name; answers the one that another thread has put there before, if so.
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
