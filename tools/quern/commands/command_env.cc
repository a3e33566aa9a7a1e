// SPDX-License-Identifier: Apache-2.0
// quern env: every environment variable that this build honours, as a table of name, value, origin and meaning
// (environment.h). A value that is not set and has no default is "-".
#include <algorithm>
#include <cstdio>

#include "codegen/base/environment.h"
#include "runtime/base/status.h"
#include "tools/frontend/errors.h"
#include "tools/quern/commands/command.h"
#include "tools/quern/run/arguments.h"

namespace quern::cli {

absl::StatusOr<int> RunEnv(const std::vector<std::string>& words) {
  Arguments arguments(
      "env", "Prints every environment variable that is honoured: its value, where that came from, what it does.",
      "QUERN_THREADS=4 quern env");
  QUERN_ASSIGN_OR_RETURN(const bool go_on, arguments.Parse(words));
  if (!go_on) return kExitOk;
  const std::vector<VariableRow> rows = ReadEnvironment();
  size_t name_width = 0;
  size_t value_width = 1;
  for (const VariableRow& row : rows) {
    name_width = std::max(name_width, row.name.size());
    value_width = std::max(value_width, OneLine(row.value).size());
  }
  for (const VariableRow& row : rows) {
    const std::string value = row.value.empty() ? "-" : OneLine(row.value);
    std::printf("%-*s  %-*s  %-11s  %s (%s)\n", static_cast<int>(name_width), row.name.c_str(),
                static_cast<int>(value_width), value.c_str(), row.from_environment ? "environment" : "default",
                row.meaning.c_str(), row.accepted.c_str());
  }
  return kExitOk;
}

}  // namespace quern::cli
