// SPDX-License-Identifier: Apache-2.0
// The quern command: the first word chooses a row of commands.def, the rest is the command's own.
//
//     quern join --on id=order_id customers.parquet orders.parquet       reads two files, runs a kernel made for their
//     keys quern aggregate --by segment --agg 'count(*)' customers.parquet    one file, a kernel made for its groups
//     quern sort --by 'segment, name desc' customers.parquet             one file, a kernel made for its order
//     quern set intersect --by id customers.parquet orders.parquet       reads two files, keeps the rows in both
//     quern dump asm "join.inner keys=i64 build=f64 probe=i32"           prints the code of such a kernel
//     quern doctor                                                       checks whether this machine can run it
//     quern env                                                          prints the environment's settings
//
// Each command is one file, command_NAME.cc, that parses its words (arguments.h) and does its job. Beside them is what
// they share: options and steps of all commands that run a kernel (run_options.h, run_command.h), files and tables
// (table_io.h, table_print.h), --stats (stats_json.h), the progress bar (progress.h), environment variables
// (environment.h). Errors come back as statuses and are printed here, once. Exit status: 0; 1 for an error in data or
// environment; 2 for an error in the command.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "tools/frontend/errors.h"
#include "tools/quern/commands/command.h"
#include "tools/quern/files/table_io.h"
#include "tools/quern/run/version.h"

namespace quern::cli {
namespace {

struct CommandRow {
  const char* name;
  CommandFunction* function;
  const char* summary;
};

constexpr CommandRow kCommands[] = {
#define QUERN_COMMAND(name, Function, summary) {#name, &Function, summary},
#include "tools/quern/commands/commands.def"
};

void PrintHelp() {
  std::printf(
      "Quern grinds query kernels: native code made for one query and one machine.\n\nUsage: quern COMMAND [OPTIONS] "
      "...\n\nCommands:\n");
  for (const CommandRow& row : kCommands) std::printf("  %-10s %s\n", row.name, row.summary);
  std::printf(
      "\n  quern COMMAND --help   the options of a command\n  quern --version        the versions of Quern, LLVM and "
      "Arrow\n\n"
      "Examples:\n  quern join --on o_custkey=c_custkey --select o_orderkey,c_name orders.parquet customer.parquet\n"
      "  quern aggregate --by l_returnflag,l_linestatus --agg 'count(*), sum(l_quantity)' lineitem.parquet\n"
      "  quern sort --by 'o_totalprice desc' --limit 10 orders.parquet\n"
      "  quern filter --where \"o_comment like '%%pending%%deposits%%'\" --count orders.parquet\n"
      "  quern set except --by o_orderkey,o_orderstatus old.parquet new.parquet\n");
}

absl::StatusOr<int> RunCommand(const std::vector<std::string>& words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h") {
    PrintHelp();
    return kExitOk;
  }
  if (words[0] == "--version") {
    std::printf("quern %s (LLVM %s, Arrow %s)\n", kVersion, kLlvmVersion, ArrowVersion().c_str());
    return kExitOk;
  }
  std::vector<std::string> names;
  for (const CommandRow& row : kCommands) {
    if (words[0] == row.name) return row.function({words.begin() + 1, words.end()});
    names.emplace_back(row.name);
  }
  if (words[0][0] == '-') return CommandError(UnknownWord("option", words[0], {"--help", "--version"}));
  return CommandError(UnknownWord("command", words[0], names));
}

// The last word on output: a full disk behind stdout must not end in status 0.
int FlushOutput(int exit_status) {
  errno = 0;  // an earlier write that failed has left none
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_status;
  const std::string reason = errno == 0 ? "" : std::string("; ") + std::strerror(errno);
  return ReportError(
      DataError("cannot write: standard output" + reason + "; accepted: a file or terminal that takes it"));
}

// Where memory ran out, threads of Arrow's readers may still run, and exit() would destroy what they use or wait for
// them without end. By now files are closed and the error is reported.
[[noreturn]] void EndAtOnce(int exit_status) {
  std::fflush(nullptr);
  _exit(exit_status);
}

}  // namespace

int Main(int argc, char** argv) {
  try {
    const absl::StatusOr<int> exit_status = RunCommand({argv + 1, argv + argc});
    if (exit_status.ok()) return FlushOutput(*exit_status);
    const int reported = ReportError(exit_status.status());
    if (absl::IsResourceExhausted(exit_status.status())) EndAtOnce(reported);
    return reported;
  } catch (const std::bad_alloc&) {  // the only one that standard containers throw here
    return ReportError(
        DataError("out of memory: the system gives no more; accepted: smaller input, fewer columns by --select"));
  }
}

}  // namespace quern::cli

int main(int argc, char** argv) { return quern::cli::Main(argc, argv); }
