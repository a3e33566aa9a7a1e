// SPDX-License-Identifier: Apache-2.0
// Never slower: a kernel that starts as the generic one and is compiled beside it once that pays.
//
//     Compile(kBackground) ──> Kernel with a KernelTier: generic entry points in a slot (runtime/entry_slot.h), a meter of rows
//                                  rows of its jobs ──> meter ──> when enough have come: CompileQueue
//     compile thread (ours, or one that the host lends) ──> KernelCache (memory, disk, compiler) ──> Publish into the slot
#ifndef QUERN_CODEGEN_TIER_H_
#define QUERN_CODEGEN_TIER_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "codegen/compiler.h"
#include "runtime/entry_slot.h"

namespace quern {

// The two kernels of one spec and plan, shared by all jobs of the process that run it. *Threads*: any.
class KernelTier {
 public:
  virtual ~KernelTier() = default;

  // The compiled kernel where it is there already; else null.
  virtual std::shared_ptr<const Kernel> Compiled() const = 0;
  // Why there will be none; empty otherwise.
  virtual std::string Failure() const = 0;

  // The slots of the kernel's operator; the others' are null.
  std::shared_ptr<const EntrySlot<QuernJoinEntryPoints>> join;
  std::shared_ptr<const EntrySlot<QuernAggregateEntryPoints>> aggregate;
  std::shared_ptr<const EntrySlot<QuernSortEntryPoints>> sort;
  std::shared_ptr<const EntrySlot<QuernFilterEntryPoints>> filter;
};

}  // namespace quern

#endif  // QUERN_CODEGEN_TIER_H_
