// SPDX-License-Identifier: Apache-2.0
// The whole way from a plan to a kernel, without caches of the process and without tiers (compiler.h has both).
#ifndef QUERN_CODEGEN_COMPILE_KERNEL_H_
#define QUERN_CODEGEN_COMPILE_KERNEL_H_

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "codegen/kernel/kernel.h"
#include "codegen/machine/machine.h"
#include "codegen/plan/plan.h"

namespace quern {

// The inputs of a compiled kernel.
struct KernelRequest {
  KernelPlan plan;
  Machine machine;
  std::string code_key;                     // on disk
  std::string template_dir;                 // as CompileOptions
  bool is_cached = false;                   // uses the disk
  double plan_ms = 0;                       // what planning took
  const std::atomic<bool>* stop = nullptr;  // looked at between two stages; null: never stopped
  PlanOverrides overrides;                  // for the log
};

// Loads the kernel from disk, or compiles it and stores it there.
// *Errors*: Cancelled after `stop`; ResourceExhausted; Internal where an invariant of the generator is broken.
absl::StatusOr<std::shared_ptr<const Kernel>> CompileKernel(KernelRequest request);

// The kernel that needs no compilation. *Errors*: as DescribeKernel.
absl::StatusOr<std::shared_ptr<Kernel>> MakeGenericKernel(KernelPlan plan);

// The same code under another plan that leads to the same code. *Errors*: as DescribeKernel.
absl::StatusOr<std::shared_ptr<const Kernel>> Replanned(const Kernel& same_code, const KernelPlan& plan);

}  // namespace quern

#endif  // QUERN_CODEGEN_COMPILE_KERNEL_H_
