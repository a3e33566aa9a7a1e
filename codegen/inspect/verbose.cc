// SPDX-License-Identifier: Apache-2.0
// One line for each kernel that is made, whichever caller requested it, and whether the caller waits or a compile
// thread makes it in the background:
//
//     quern,compile,engine=jit,cache=miss,ms=8.125,repro="quern dump plan 'join.inner keys=i64' --param batch_size=7"
//
// A kernel that is found in the memory of the process was made before and gives no line: quern_compile may be called a
// million times a second.
#include "codegen/inspect/verbose.h"

#include "codegen/base/environment.h"
#include "codegen/base/log.h"
#include "codegen/base/text_words.h"
#include "runtime/base/fork_safety.h"

namespace quern {
namespace {

// Puts a word in single quotes if a shell would split or expand it, with each of its own quotes as '\''.
std::string ShellWord(const std::string& word) {
  const std::string plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=,:+%@";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace

bool IsVerbose() {
  const NoFork no_fork;  // the first call reads it
  static const bool is_verbose = [] {
    const absl::StatusOr<bool> wanted = SwitchOfEnvironment(Variable::kVerbose);
    if (!wanted.ok()) WarnOnce(std::string(wanted.status().message()));
    return wanted.ok() && *wanted;
  }();
  return is_verbose;
}

std::string CommandLine(const std::vector<std::string>& words) {
  std::string text = "quern";
  for (const std::string& word : words) text += " " + ShellWord(word);
  return text;
}

void LogCompiled(const Kernel& kernel, CacheOutcome cache, const PlanOverrides& overrides) {
  if (!IsVerbose()) return;
  std::vector<std::string> words = {"dump", "plan", PrintSpec(kernel.plan.spec)};
  for (const auto& [name, value] : overrides) words.insert(words.end(), {"--param", name + "=" + value});
  const std::string engine = kernel.engine == Engine::kJit ? "jit" : "generic";
  Log(LogLevel::kInfo, "quern,compile,engine=" + engine + ",cache=" + CacheText(cache) +
                           ",ms=" + PrintFixed(kernel.times.total_ms, 3) + ",repro=\"" + CommandLine(words) + "\"");
}

}  // namespace quern
