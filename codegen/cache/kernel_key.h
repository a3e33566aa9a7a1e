// SPDX-License-Identifier: Apache-2.0
// The names under which kernels are found in memory and on disk.
#ifndef QUERN_CODEGEN_CACHE_KERNEL_KEY_H_
#define QUERN_CODEGEN_CACHE_KERNEL_KEY_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "codegen/machine/machine.h"
#include "codegen/plan/plan.h"
#include "runtime/spec/spec.h"

namespace quern {

// Everything on which a kernel depends. Lines: the spec first, for human readers; then plan, versions, machine. Two
// callers that write one spec with its fields in different orders share one kernel.
std::string KernelKey(const KernelPlan& plan, const Machine& host);

// Everything on which the machine code depends. Kernels that differ only in tuning share their code on disk and in
// memory.
std::string CodeKey(const KernelPlan& plan, const Machine& host);

// What a caller asked for, before there is a plan: the text of a spec and the overrides. `profile_number` is read
// before the profile, so that a kernel planned with an older profile never gets the name of a newer one.
std::string NameOf(std::string_view text, const PlanOverrides& overrides, uint64_t profile_number);
std::string NameOf(const KernelSpec& spec, const PlanOverrides& overrides, uint64_t profile_number);

}  // namespace quern

#endif  // QUERN_CODEGEN_CACHE_KERNEL_KEY_H_
