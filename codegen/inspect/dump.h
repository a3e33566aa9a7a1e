// SPDX-License-Identifier: Apache-2.0
// A look at any stage between spec and machine code.
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

// One stage of the way as text, the same from run to run, for any machine that LLVM knows:
// spec, plan, layout, template, ir, opt, asm, annotated_asm (with LLVM's comments, which name the loops), obj (a
// summary of sections and symbols), remarks. `profile`: null for the process's if `machine` is this one, and none
// otherwise. *Errors*: InvalidArgument with the accepted stages.
absl::StatusOr<std::string> Dump(std::string_view stage, const KernelSpec& spec, const Machine& machine,
                                 const CompileOptions& options, const Profile* profile = nullptr);

}  // namespace quern

#endif  // QUERN_CODEGEN_INSPECT_DUMP_H_
