// SPDX-License-Identifier: Apache-2.0
// Reading the environment. One row of environment_variables.def gives the name, the default and the two texts; `quern env` prints all
// rows, a command asks for the one it needs:
//
//     $ QUERN_THREADS=4 quern env
//     QUERN_THREADS  4       environment  threads of a run; --threads wins
//     QUERN_MACHINE  native  default      CPU that dump makes code for; --machine wins
//
// A bad value is an error of the environment (exit status 1), and only of the commands that read the variable.
#include "codegen/environment.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "runtime/status.h"

namespace quern {
namespace {

std::string CoresText() { return std::to_string(std::clamp(std::thread::hardware_concurrency(), 1u, 1024u)); }

// What a variable that is not set counts as, where the table does not say.
std::string FoundDefault(Variable id) { return id == Variable::kThreads ? CoresText() : ""; }

VariableRow MakeRow(Variable id, const char* name, const std::string& default_text, const char* accepted, const char* meaning) {
  const char* value = std::getenv(name);
  const bool is_set = value != nullptr && *value != '\0';
  return {id, name, is_set ? value : default_text.empty() ? FoundDefault(id) : default_text, is_set, accepted, meaning};
}

}  // namespace

std::vector<VariableRow> ReadEnvironment() {
  return {
#define QUERN_ENVIRONMENT_VARIABLE(Id, name, default_text, accepted, meaning) MakeRow(Variable::Id, #name, default_text, accepted, meaning),
#include "codegen/environment_variables.def"
  };
}

VariableRow ReadVariable(Variable id) { return ReadEnvironment()[static_cast<size_t>(id)]; }

absl::StatusOr<bool> SwitchOfEnvironment(Variable id) {
  const VariableRow row = ReadVariable(id);
  if (row.value == "0" || row.value == "1") return row.value == "1";
  return absl::FailedPreconditionError("bad value of " + row.name + ": " + Show(row.value) + "; accepted: " + row.accepted);
}

}  // namespace quern
