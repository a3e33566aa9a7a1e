// SPDX-License-Identifier: Apache-2.0
// Starts the running program once more, say as `compile_bench --first 'join.inner keys=i64'`, and reads its standard
// output, "12.345", through a pipe. No shell is involved, because a spec may contain quotes.
#include "bench/compile/fresh_process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "runtime/base/status.h"

namespace quern::bench {
namespace {

[[noreturn]] void Become(const std::vector<std::string>& words,
                         const std::vector<std::pair<std::string, std::string>>& variables, int output) {
  dup2(output, STDOUT_FILENO);
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  std::vector<std::string> all = {"/proc/self/exe"};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  for (std::string& word : all) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv("/proc/self/exe", arguments.data());
  _exit(127);
}

std::string ReadAll(int input) {
  std::string text;
  char part[256];
  for (ssize_t n = 0; (n = read(input, part, sizeof part)) > 0;) text.append(part, static_cast<size_t>(n));
  return text;
}

}  // namespace

absl::StatusOr<std::vector<double>> AskFreshProcess(const std::vector<std::string>& words,
                                                    const std::vector<std::pair<std::string, std::string>>& variables,
                                                    size_t num_numbers) {
  int ends[2];
  if (pipe(ends) != 0) return Internal("no pipe: to a process of this program; accepted: a system that provides one");
  const pid_t child = fork();
  if (child == 0) Become(words, variables, ends[1]);
  close(ends[1]);
  const std::string text = ReadAll(ends[0]);
  close(ends[0]);
  int status = 0;
  const bool has_ended_well =
      child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  std::vector<double> numbers;
  const char* at = text.c_str();
  while (has_ended_well) {
    char* end = nullptr;
    const double number = std::strtod(at, &end);
    if (end == at) break;
    numbers.push_back(number);
    at = end;
  }
  if (numbers.size() == num_numbers) return numbers;
  return Internal("no answer from a process: " + Show(words.front()) + " printed " + Show(text) +
                  "; accepted: " + std::to_string(num_numbers) + " numbers and status 0");
}

}  // namespace quern::bench
