// SPDX-License-Identifier: Apache-2.0
// The commands of the CLI as functions. To add one: write command_NAME.cc with its function, and give it a row in
// commands.def.
#ifndef QUERN_TOOLS_COMMANDS_COMMAND_H_
#define QUERN_TOOLS_COMMANDS_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace quern::cli {

// Takes the words after the command's name; returns the exit status, or an error that main prints.
using CommandFunction = absl::StatusOr<int>(const std::vector<std::string>& words);

#define QUERN_COMMAND(name, Function, summary) CommandFunction Function;
#include "tools/quern/commands/commands.def"

}  // namespace quern::cli

#endif  // QUERN_TOOLS_COMMANDS_COMMAND_H_
