// SPDX-License-Identifier: Apache-2.0
// The environment variables of environment_variables.def, read in one place.
#ifndef QUERN_CODEGEN_BASE_ENVIRONMENT_H_
#define QUERN_CODEGEN_BASE_ENVIRONMENT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace quern {

enum class Variable : uint8_t {
#define QUERN_ENVIRONMENT_VARIABLE(Id, name, default_text, accepted, meaning) Id,
#include "codegen/base/environment_variables.def"
};

struct VariableRow {
  Variable id;
  std::string name;
  std::string value;
  bool from_environment;  // else the default
  std::string accepted;
  std::string meaning;
};

// All rows with their present values; a variable that is set to "" counts as not set.
std::vector<VariableRow> ReadEnvironment();
VariableRow ReadVariable(Variable id);

// What QUERN_DUMP asks for: "ir,asm:/tmp/k". Nothing where it is not set.
struct StageDump {
  std::vector<std::string> stages;
  std::string folder;  // absolute; need not be there

  bool Leaves(std::string_view stage) const;
};
// *Errors*: FailedPrecondition that names the stages.
absl::StatusOr<StageDump> StageDumpOfEnvironment();

// The user's folder for settings, as the XDG base directory specification has it; "" where there is none.
std::string UserConfigFolder();

// A variable that names a folder that is there: its absolute path, "" where it is not set. *Errors*:
// FailedPrecondition.
absl::StatusOr<std::string> FolderOfEnvironment(Variable id);

// QUERN_KEPT_MEMORY in bytes. *Errors*: FailedPrecondition.
absl::StatusOr<uint64_t> KeptBytesOfEnvironment();

// The value of a variable that is 0 or 1. *Errors*: FailedPrecondition that names the variable and what is accepted.
absl::StatusOr<bool> SwitchOfEnvironment(Variable id);

}  // namespace quern

#endif  // QUERN_CODEGEN_BASE_ENVIRONMENT_H_
