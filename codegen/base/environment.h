// SPDX-License-Identifier: Apache-2.0
// The environment variables of environment_variables.def, read in one place.
#ifndef QUERN_CODEGEN_BASE_ENVIRONMENT_H_
#define QUERN_CODEGEN_BASE_ENVIRONMENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace quern {

enum class Variable : uint8_t {
#define QUERN_ENVIRONMENT_VARIABLE(Id, name, default_text, privileged, accepted, meaning) Id,
#include "codegen/base/environment_variables.def"
};

struct VariableRow {
  Variable id;
  std::string name;
  std::string value;
  bool from_environment;  // false: it is the default
  std::string accepted;
  std::string meaning;
};

// Whether this program has more rights than the user who started it (set-user-ID, set-group-ID, capabilities): its
// environment is that user's, and must not decide which files it reads or writes, or which code it loads.
bool IsPrivileged();

// For tests: while one exists, IsPrivileged is true.
class PretendPrivileged {
 public:
  PretendPrivileged();
  ~PretendPrivileged();
  PretendPrivileged(const PretendPrivileged&) = delete;
  PretendPrivileged& operator=(const PretendPrivileged&) = delete;
};

// All rows with their present values; a variable that is set to "" counts as unset. In a privileged program, a variable
// that is not read there has the value of the table's column `privileged`.
std::vector<VariableRow> ReadEnvironment();
VariableRow ReadVariable(Variable id);

// The value of QUERN_DUMP, such as "ir,asm:/tmp/k"; empty if it is unset.
struct StageDump {
  std::vector<std::string> stages;
  std::string folder;  // absolute; need not exist

  bool Leaves(std::string_view stage) const;
};
// *Errors*: FailedPrecondition that names the stages.
absl::StatusOr<StageDump> StageDumpOfEnvironment();

// The user's folder for settings by the XDG base directory specification; "" where there is none, and in a privileged
// program.
std::string UserConfigFolder();

// The absolute path of the existing folder that a variable names; "" if it is unset. *Errors*: FailedPrecondition.
absl::StatusOr<std::string> FolderOfEnvironment(Variable id);

// QUERN_KEPT_MEMORY in bytes; std::nullopt: it is unset. *Errors*: FailedPrecondition.
absl::StatusOr<std::optional<uint64_t>> KeptBytesOfEnvironment();

// QUERN_HASH_SEED; std::nullopt: random. *Errors*: FailedPrecondition.
absl::StatusOr<std::optional<uint64_t>> HashSeedOfEnvironment();

// The value of a variable that is 0 or 1. *Errors*: FailedPrecondition that names the variable and what is accepted.
absl::StatusOr<bool> SwitchOfEnvironment(Variable id);

}  // namespace quern

#endif  // QUERN_CODEGEN_BASE_ENVIRONMENT_H_
