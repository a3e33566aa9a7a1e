// SPDX-License-Identifier: Apache-2.0
// The environment variables of environment_variables.def, read in one place.
#ifndef QUERN_TOOLS_QUERN_ENVIRONMENT_H_
#define QUERN_TOOLS_QUERN_ENVIRONMENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace quern::cli {

enum class Variable : uint8_t {
#define QUERN_ENVIRONMENT_VARIABLE(Id, name, default_text, accepted, meaning) Id,
#include "tools/quern/environment_variables.def"
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

// The values as their users need them. *Errors*: FailedPrecondition that names the variable and what is accepted.
absl::StatusOr<uint32_t> ThreadsOfEnvironment();
absl::StatusOr<bool> VerboseOfEnvironment();

constexpr uint32_t kMaxThreads = 1024;

}  // namespace quern::cli

#endif  // QUERN_TOOLS_QUERN_ENVIRONMENT_H_
