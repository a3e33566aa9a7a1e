// SPDX-License-Identifier: Apache-2.0
// quern dump: one stage of the way from a spec to machine code, as text (compiler.h has the stages). Nothing is run, so
// the CPU it is made for need not be this one:
//
//     $ quern dump asm "join.inner keys=i64" --machine=aarch64:neoverse-n1
//
// A spec contains blanks. Quoted it is one word; unquoted it arrives as several, which are put together again.
#include <cstdio>
#include <memory>
#include <optional>

#include "codegen/base/environment.h"
#include "codegen/compiler.h"
#include "codegen/machine/profile.h"
#include "runtime/base/status.h"
#include "tools/frontend/errors.h"
#include "tools/quern/commands/command.h"
#include "tools/quern/files/output_file.h"
#include "tools/quern/run/arguments.h"
#include "tools/quern/run/run_options.h"
#include "tools/report/mca.h"

namespace quern::cli {
namespace {

struct DumpCommand {
  std::string stage;
  std::vector<std::string> spec_words;
  std::optional<std::string> machine;
  std::optional<std::string> template_dir;
  std::optional<std::string> output;
  std::vector<std::string> params;
  std::optional<std::string> profile;

  std::string SpecText() const {
    std::string text;
    for (const std::string& word : spec_words) text += (text.empty() ? "" : " ") + word;
    return text;
  }
};

absl::StatusOr<bool> ParseCommand(const std::vector<std::string>& words, DumpCommand* command) {
  Arguments arguments("dump", "Prints one stage of a kernel. The output is the same from run to run, byte for byte.",
                      "quern dump asm \"join.inner keys=i64,utf8(utf8mb4_bin):nullable build=f64\" --machine znver4");
  arguments.Positional(
      "STAGE", &command->stage,
      "spec, plan, layout, template, ir, opt, asm, annotated_asm, obj, remarks or mca (needs llvm-mca)");
  arguments.PositionalRest(
      "SPEC", &command->spec_words,
      "a kernel spec, as \"join.inner keys=i64 build=f64\" or \"aggregate keys=i64 aggs=sum(f64)\", or a pipeline");
  arguments.Value("--machine", &command->machine, "CPU",
                  "native or a CPU name, as znver4, x86-64-v3, aarch64:neoverse-n1 (default: QUERN_MACHINE)");
  arguments.Values("--param", &command->params, "NAME=VALUE",
                   "set a tuning parameter of the plan; may be given several times");
  arguments.Value(
      "--profile", &command->profile, "FILE",
      "go by this tuning profile, or off (default: QUERN_PROFILE, else this machine's; none for another CPU)");
  arguments.Value("--template-dir", &command->template_dir, "DIR",
                  "take template bitcode from DIR in place of the embedded one");
  arguments.Value("-o,--output", &command->output, "FILE", "write to FILE");
  return arguments.Parse(words);
}

absl::StatusOr<Machine> ChooseMachine(const DumpCommand& command) {
  if (command.machine.has_value()) return MachineByName(*command.machine);
  const VariableRow variable = ReadVariable(Variable::kMachine);
  absl::StatusOr<Machine> machine = MachineByName(variable.value);
  if (!machine.ok() && variable.from_environment) {
    return DataError("bad value of " + variable.name + ": " + std::string(machine.status().message()));
  }
  return machine;
}

absl::Status WriteFile(const std::string& path, const std::string& text) {
  QUERN_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  QUERN_RETURN_IF_ERROR(file.WriteText(text));
  return file.Commit();
}

}  // namespace

absl::StatusOr<int> RunDump(const std::vector<std::string>& words) {
  DumpCommand command;
  QUERN_ASSIGN_OR_RETURN(const bool go_on, ParseCommand(words, &command));
  if (!go_on) return kExitOk;
  CompileOptions options;
  options.template_dir = command.template_dir.value_or("");
  QUERN_ASSIGN_OR_RETURN(options.overrides, ParseParams(command.params));
  QUERN_ASSIGN_OR_RETURN(const Machine machine, ChooseMachine(command));
  if (command.profile.has_value()) QUERN_RETURN_IF_ERROR(UseProfile(*command.profile, !machine.is_host));
  const std::shared_ptr<const Profile> given = command.profile.has_value() ? ProfileOfProcess() : nullptr;
  QUERN_ASSIGN_OR_RETURN(const std::string text,
                         DumpText(command.stage, command.SpecText(), machine, options, given.get()));
  if (command.output.has_value()) {
    QUERN_RETURN_IF_ERROR(WriteFile(*command.output, text));
  } else {
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  return kExitOk;
}

}  // namespace quern::cli
