// SPDX-License-Identifier: Apache-2.0
// Prints any stage between spec and machine code.
#ifndef QUERN_CODEGEN_INSPECT_DUMP_H_
#define QUERN_CODEGEN_INSPECT_DUMP_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "codegen/kernel/kernel.h"
#include "codegen/machine/machine.h"
#include "codegen/machine/profile.h"
#include "runtime/spec/spec.h"

namespace quern {

// One stage as text, the same from run to run, for any machine that LLVM supports: spec, plan, layout, template, ir,
// opt, asm, annotated_asm (with LLVM's comments, which name the loops), obj (a summary of sections and symbols),
// remarks. `profile`: if null, the process's profile for this machine, and none for others. *Errors*: InvalidArgument
// with the accepted stages.
absl::StatusOr<std::string> Dump(std::string_view stage, const KernelSpec& spec, const Machine& machine,
                                 const CompileOptions& options, const Profile* profile = nullptr);

}  // namespace quern

#endif  // QUERN_CODEGEN_INSPECT_DUMP_H_
