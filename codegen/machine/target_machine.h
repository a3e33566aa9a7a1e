// SPDX-License-Identifier: Apache-2.0
// LLVM's view of a machine. Internal to codegen, since it exposes LLVM's types.
#ifndef QUERN_CODEGEN_MACHINE_TARGET_MACHINE_H_
#define QUERN_CODEGEN_MACHINE_TARGET_MACHINE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "codegen/machine/machine.h"
#include "llvm/Target/TargetMachine.h"

namespace quern {

// Position-independent code, one text section. *Errors*: InvalidArgument for a CPU that LLVM does not know.
absl::StatusOr<std::unique_ptr<llvm::TargetMachine>> MakeTargetMachine(const Machine& machine);

}  // namespace quern

#endif  // QUERN_CODEGEN_MACHINE_TARGET_MACHINE_H_
