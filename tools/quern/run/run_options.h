// SPDX-License-Identifier: Apache-2.0
// The options that are common to all commands that run a kernel over files.
#ifndef QUERN_TOOLS_RUN_RUN_OPTIONS_H_
#define QUERN_TOOLS_RUN_RUN_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "codegen/compiler.h"
#include "runtime/base/status.h"
#include "tools/quern/files/table_io.h"
#include "tools/quern/run/arguments.h"

namespace quern::cli {

constexpr uint32_t kMaxThreads = 1024;

struct RunOptions {
  std::optional<std::string> output;
  bool count = false;
  std::optional<std::string> threads_text;
  std::optional<std::string> repeat_text;
  std::optional<std::string> engine_text;
  std::optional<std::string> memory_limit_text;
  std::optional<std::string> spill_folder;
  std::vector<std::string> param_texts;
  std::optional<std::string> profile_path;
  bool explain = false;
  bool stats = false;
  bool quiet = false;

  // Values of the texts above and of the environment, set by Check.
  FileFormat output_format = FileFormat::kParquet;
  uint32_t threads = 1;
  uint32_t repeat = 1;
  uint64_t memory_limit_bytes = 0;  // 0: none
  bool spills = false;              // rows beyond the limit go to files in spill_folder
  bool verbose = false;
  CompileOptions compile;

  void AddTo(Arguments* arguments);
  // Turns texts into values. *Errors*: those of the command or the environment.
  absl::Status Check();
};

// Parses the words of a command that reads INPUT: adds the argument and the common options to the command's own,
// parses, lets the command read its own (parse_request, which returns a Status), and checks the rest. Returns false if
// help was requested.
template <class ParseRequest>
absl::StatusOr<bool> ParseOneInput(const std::vector<std::string>& words, Arguments* arguments, RunOptions* options,
                                   std::string* input_path, const ParseRequest& parse_request) {
  arguments->Positional("INPUT", input_path, ".parquet, .csv or .arrow file, or a quoted pattern");
  options->AddTo(arguments);
  QUERN_ASSIGN_OR_RETURN(const bool go_on, arguments->Parse(words));
  if (!go_on) return false;
  QUERN_RETURN_IF_ERROR(parse_request());
  QUERN_RETURN_IF_ERROR(FormatOfFile("INPUT", *input_path).status());
  QUERN_RETURN_IF_ERROR(options->Check());
  return true;
}

// --profile FILE, of any command: the settings of plans from now on; "off": none. A profile of another machine is used,
// with a warning. *Errors*: those of the file.
absl::Status UseProfile(const std::string& path, bool quiet);

// --param, for commands that do not run a kernel.
absl::StatusOr<PlanOverrides> ParseParams(const std::vector<std::string>& texts);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_RUN_RUN_OPTIONS_H_
