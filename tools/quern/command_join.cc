// SPDX-License-Identifier: Apache-2.0
// quern join: from two files to their joined rows, by a kernel made for just this kind of join, these keys and columns.
//
//     $ quern join --on id=order --select id,qty probe.csv build.csv
//     id  qty
//      7   12
//     1 row
//
// The steps, in order: read the command line; open the result file, so that a folder that does not take it is found before any work;
// find the columns by their names; read these columns and no others; find types and spec (join_columns.h); compile a kernel; run it
// (join_run.h); write or print. The times of --stats follow these steps: read_ms ends with columns of the spec's types in memory, run_ms =
// build_ms + probe_ms with result columns in memory. peak_bytes and --memory-limit count input columns, the join's table and results.
#include <arrow/api.h>

#include <optional>
#include <utility>

#include "runtime/status.h"
#include "tools/quern/arguments.h"
#include "tools/quern/command.h"
#include "tools/quern/errors.h"
#include "tools/quern/join_columns.h"
#include "tools/quern/join_run.h"
#include "tools/quern/run_options.h"

namespace quern::cli {
namespace {

struct JoinCommand {
  RunOptions options;
  JoinRequest request;
  std::string probe_path;
  std::string build_path;
};

// The options of a join as they were given.
struct GivenOptions {
  std::vector<std::string> on;
  std::vector<std::string> residual;
  std::vector<std::string> null_equal;
  std::optional<std::string> type;
  std::optional<std::string> select;
};

absl::StatusOr<JoinKind> KindByName(const std::string& type) {
  std::vector<std::string> accepted;
  for (const JoinKindRow& row : AllJoinKinds()) {
    if (row.text == type) return row.id;
    accepted.emplace_back(row.text);
  }
  return CommandError(UnknownWord("join type", type, accepted));
}

absl::Status ParseRequest(const GivenOptions& given, JoinRequest* request) {
  if (given.type.has_value()) {
    QUERN_ASSIGN_OR_RETURN(request->kind, KindByName(*given.type));
  }
  if (given.on.empty()) return CommandError("missing option: --on; accepted: --on L=R[,L=R...]");
  for (const std::string& text : given.on) {
    QUERN_ASSIGN_OR_RETURN(const auto pairs, ParseKeyPairs("--on", text));
    request->keys.insert(request->keys.end(), pairs.begin(), pairs.end());
  }
  for (const std::string& text : given.residual) {
    QUERN_ASSIGN_OR_RETURN(const auto comparisons, ParseComparisons("--residual", text));
    request->residual.insert(request->residual.end(), comparisons.begin(), comparisons.end());
  }
  for (const std::string& text : given.null_equal) {
    QUERN_ASSIGN_OR_RETURN(const auto names, ParseNames("--null-equal", text));
    request->null_equal.insert(request->null_equal.end(), names.begin(), names.end());
  }
  if (given.select.has_value()) {
    QUERN_ASSIGN_OR_RETURN(request->select, ParseNames("--select", *given.select));
  }
  return absl::OkStatus();
}

// Answers false where help was asked for.
absl::StatusOr<bool> ParseCommand(const std::vector<std::string>& words, JoinCommand* command) {
  GivenOptions given;
  Arguments arguments("join", "Joins two files: their rows whose keys are equal, in pairs or as --type says.",
                      "quern join --on o_custkey=c_custkey --select o_orderkey,c_name -o out.parquet orders.parquet customer.parquet");
  arguments.Positional("PROBE", &command->probe_path, ".parquet, .csv or .arrow file, or a quoted pattern; best the larger one");
  arguments.Positional("BUILD", &command->build_path, "the same; its rows are kept in memory as a table");
  arguments.Values("--on", &given.on, "L=R[,L=R...]",
                   "keys: column L of PROBE = column R of BUILD; L alone: of that name in both; with 'collate NAME'");
  arguments.Value("--type", &given.type, "TYPE",
                  "inner (default), left, right, full, semi, anti, right_semi, right_anti, anti_null_aware, mark or single; PROBE is left");
  arguments.Values("--residual", &given.residual, "L<R[,L<R...]",
                   "pairs match only where column L of PROBE < column R of BUILD too; with < <= > >= != or =");
  arguments.Values("--null-equal", &given.null_equal, "COLS", "keys whose nulls match nulls");
  arguments.Value("--select", &given.select, "COLS",
                  "result columns in order; probe.X or build.X where both have X; mark of a mark join (default: all that come out)");
  command->options.AddTo(&arguments);
  QUERN_ASSIGN_OR_RETURN(const bool go_on, arguments.Parse(words));
  if (!go_on) return false;
  QUERN_RETURN_IF_ERROR(ParseRequest(given, &command->request));
  QUERN_RETURN_IF_ERROR(FormatOfFile("PROBE", command->probe_path).status());
  QUERN_RETURN_IF_ERROR(FormatOfFile("BUILD", command->build_path).status());
  QUERN_RETURN_IF_ERROR(command->options.Check());
  return true;
}

absl::StatusOr<PreparedJoin> ReadInputs(const JoinCommand& command, Progress* progress) {
  progress->Begin("read", 0);
  QUERN_ASSIGN_OR_RETURN(const TableInput probe, TableInput::Open("PROBE", command.probe_path));
  QUERN_ASSIGN_OR_RETURN(const TableInput build, TableInput::Open("BUILD", command.build_path));
  QUERN_ASSIGN_OR_RETURN(const JoinColumns columns, ResolveColumns(command.request, probe, build, command.options.count));
  QUERN_ASSIGN_OR_RETURN(const auto probe_table, probe.Read(ColumnsToRead(columns, kProbe)));
  QUERN_ASSIGN_OR_RETURN(const auto build_table, build.Read(ColumnsToRead(columns, kBuild)));
  return PrepareJoin(columns, probe_table, build_table);
}

// The fields that join adds to --stats.
JsonObject JoinStatsJson(const RunStats& stats, const PreparedJoin& join, const JoinResult& result) {
  JsonObject json = StatsJson(stats);
  json.Count("build_rows", static_cast<uint64_t>(join.inputs[kBuild].table->num_rows()));
  json.Milliseconds("build_ms", result.build_ms).Milliseconds("probe_ms", result.probe_ms);
  json.Text("layout", result.stats.layout).Count("prefetch_distance", result.stats.prefetch_distance);
  return json;
}

absl::StatusOr<int> Run(const JoinCommand& command, const std::vector<std::string>& words) {
  const RunOptions& options = command.options;
  QUERN_RETURN_IF_ERROR(StartArrow(options.threads));
  std::optional<OutputFile> file;
  QUERN_RETURN_IF_ERROR(CreateOutput(options, &file));
  std::optional<Progress> progress(std::in_place, !options.quiet);
  RunStats stats;
  Stopwatch watch;
  QUERN_ASSIGN_OR_RETURN(const PreparedJoin join, ReadInputs(command, &*progress));
  stats.read_ms = watch.Lap();
  if (options.explain) {
    progress.reset();
    QUERN_RETURN_IF_ERROR(ExplainSpec(join.spec, options));
    return kExitOk;
  }
  QUERN_ASSIGN_OR_RETURN(const auto budget, BudgetBesideInputs(options));
  QUERN_ASSIGN_OR_RETURN(const CompiledKernel compiled, CompileForRun(join.spec, options, &stats));
  QUERN_ASSIGN_OR_RETURN(const JoinResult result, RunPreparedJoin(join, compiled, budget, options.threads, &*progress));
  progress->Begin("write", 0);
  watch.Lap();
  QUERN_RETURN_IF_ERROR(Deliver(result.table, result.num_rows, options, &file, &progress));
  stats.write_ms = watch.Lap();
  stats.run_ms = result.build_ms + result.probe_ms;
  stats.rows_in = static_cast<uint64_t>(join.inputs[kProbe].table->num_rows() + join.inputs[kBuild].table->num_rows());
  stats.rows_out = result.num_rows;
  stats.peak_bytes = budget->peak_bytes();
  stats.threads = result.threads;
  ReportRun(options, stats, JoinStatsJson(stats, join, result), words);
  return kExitOk;
}

}  // namespace

absl::StatusOr<int> RunJoin(const std::vector<std::string>& words) {
  JoinCommand command;
  QUERN_ASSIGN_OR_RETURN(const bool go_on, ParseCommand(words, &command));
  if (!go_on) return kExitOk;
  std::vector<std::string> command_line = {"join"};
  command_line.insert(command_line.end(), words.begin(), words.end());
  return Run(command, command_line);
}

}  // namespace quern::cli
