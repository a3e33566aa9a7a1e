// SPDX-License-Identifier: Apache-2.0
// The view of `dump mca`: the report of llvm-mca, a program of LLVM, on a kernel's loops.
#ifndef QUERN_TOOLS_REPORT_MCA_H_
#define QUERN_TOOLS_REPORT_MCA_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/inspect/dump.h"
#include "codegen/machine/machine.h"

namespace quern {

// One loop of a kernel's assembly without the loops inside it.
struct AssemblyLoop {
  std::string name;  // "quern_join_compare.BB4_1": function and the assembly's label of the header
  int depth = 1;     // 1: in no other loop
  std::vector<std::string> instructions;
};

// The loops of assembly that was printed with LLVM's comments, in its order.
std::vector<AssemblyLoop> FindLoops(std::string_view assembly);

// The path of llvm-mca from PATH: that of LLVM 22 if there is one; otherwise empty.
std::string FindLlvmMca();

// A table of the loops, then the report of llvm-mca on each. `triple`: the machine's target triple. *Errors*:
// FailedPrecondition if llvm-mca is missing or fails.
absl::StatusOr<std::string> McaView(std::string_view assembly, const Machine& machine, const std::string& triple);

// Dump (codegen/inspect/dump.h) of the text of a spec, or of all kernels of a pipeline's (pipeline_compiler.h), with
// one more stage, `mca`: llvm-mca's view of a kernel's loops. *Errors*: InvalidArgument for the text, or with the
// accepted stages; those of McaView.
absl::StatusOr<std::string> DumpText(std::string_view stage, std::string_view text, const Machine& machine,
                                     const CompileOptions& options, const Profile* profile = nullptr);

}  // namespace quern

#endif  // QUERN_TOOLS_REPORT_MCA_H_
