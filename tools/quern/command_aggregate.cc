// SPDX-License-Identifier: Apache-2.0
// quern aggregate: from a file to its groups, by a kernel made for just these keys and functions.
//
//     $ quern aggregate --by name --agg 'count(*), sum(qty), avg(qty) filter (where ok) as good' orders.csv
//     name  count(*)  sum(qty)  good
//     ada          2        17   7.5
//     bob          1         3  NULL
//     2 rows
//
// The steps are those of every command that runs (run_options.h): read the command line; open the result file; find the columns by their
// names; read these and no others; evaluate the conditions of --filter, find types and spec (aggregate_columns.h); compile a kernel; run it
// (aggregate_run.h); write or print. read_ms of --stats ends with columns of the spec's types and with conditions as bools in memory,
// run_ms with result columns in memory or with their number. peak_bytes and --memory-limit count input columns, groups and results.
#include <arrow/api.h>

#include <optional>
#include <utility>

#include "runtime/status.h"
#include "tools/quern/aggregate_columns.h"
#include "tools/quern/aggregate_run.h"
#include "tools/quern/aggregate_text.h"
#include "tools/quern/arguments.h"
#include "tools/quern/command.h"
#include "tools/quern/errors.h"
#include "tools/quern/run_options.h"

namespace quern::cli {
namespace {

struct AggregateCommand {
  RunOptions options;
  AggregateRequest request;
  std::string input_path;
};

// The options of an aggregation as they were given.
struct GivenOptions {
  std::vector<std::string> by;
  std::vector<std::string> agg;
  std::vector<std::string> filter;
};

absl::Status ParseRequest(const GivenOptions& given, AggregateRequest* request) {
  if (given.by.empty() && given.agg.empty()) return CommandError("missing option: --agg; accepted: --agg LIST, as 'count(*), sum(x)'");
  for (const std::string& text : given.by) {
    QUERN_ASSIGN_OR_RETURN(const auto keys, ParseKeys("--by", text));
    request->keys.insert(request->keys.end(), keys.begin(), keys.end());
  }
  for (const std::string& text : given.agg) {
    QUERN_ASSIGN_OR_RETURN(const auto aggregates, ParseAggregates("--agg", text));
    request->aggregates.insert(request->aggregates.end(), aggregates.begin(), aggregates.end());
  }
  for (const std::string& text : given.filter) {
    QUERN_ASSIGN_OR_RETURN(ConditionText filter, ParseCondition("--filter", text));
    request->filters.push_back(std::move(filter));
  }
  return absl::OkStatus();
}

// Answers false where help was asked for.
absl::StatusOr<bool> ParseCommand(const std::vector<std::string>& words, AggregateCommand* command) {
  GivenOptions given;
  Arguments arguments(
      "aggregate", "Aggregates the rows of a file by groups whose keys are equal; nulls are a group.\nFunctions: " + FunctionsText() + ".",
      "quern aggregate --by l_returnflag,l_linestatus --agg 'count(*), sum(l_quantity), avg(l_discount) as discount'"
      " --filter 'l_shipdate<=1998-09-02' lineitem.parquet");
  arguments.Positional("INPUT", &command->input_path, ".parquet, .csv or .arrow file, or a quoted pattern");
  arguments.Values("--by", &given.by, "KEYS", "columns that make a group; with 'collate NAME' (default: all rows are one group)");
  arguments.Values("--agg", &given.agg, "LIST",
                   "as 'count(*), min(s collate NAME), quantile(x, 0.9) filter (where b) as q' (default: none, the different keys)");
  arguments.Values("--filter", &given.filter, "CONDITION",
                   "only rows where a bool column is true, or COLUMN<CONSTANT with < <= > >= != or =; several: where all hold");
  command->options.AddTo(&arguments);
  QUERN_ASSIGN_OR_RETURN(const bool go_on, arguments.Parse(words));
  if (!go_on) return false;
  QUERN_RETURN_IF_ERROR(ParseRequest(given, &command->request));
  QUERN_RETURN_IF_ERROR(FormatOfFile("INPUT", command->input_path).status());
  QUERN_RETURN_IF_ERROR(command->options.Check());
  return true;
}

absl::StatusOr<PreparedAggregate> ReadInput(const AggregateCommand& command, Progress* progress) {
  progress->Begin("read", 0);
  QUERN_ASSIGN_OR_RETURN(const TableInput input, TableInput::Open("INPUT", command.input_path));
  QUERN_RETURN_IF_ERROR(CheckRequest(command.request, input));
  QUERN_ASSIGN_OR_RETURN(const auto table, input.Read(ColumnsToRead(command.request, input)));
  return PrepareAggregate(command.request, input, table);
}

// The fields that aggregate adds to --stats.
JsonObject AggregateStatsJson(const RunStats& stats, const AggregateResult& result) {
  JsonObject json = StatsJson(stats);
  json.Count("groups", result.stats.num_groups);
  json.Text("layout", result.stats.layout).Count("prefetch_distance", result.stats.prefetch_distance);
  return json;
}

absl::StatusOr<int> Run(const AggregateCommand& command, const std::vector<std::string>& words) {
  const RunOptions& options = command.options;
  QUERN_RETURN_IF_ERROR(StartArrow(options.threads));
  std::optional<OutputFile> file;
  QUERN_RETURN_IF_ERROR(CreateOutput(options, &file));
  std::optional<Progress> progress(std::in_place, !options.quiet);
  RunStats stats;
  Stopwatch watch;
  QUERN_ASSIGN_OR_RETURN(const PreparedAggregate prepared, ReadInput(command, &*progress));
  stats.read_ms = watch.Lap();
  if (options.explain) {
    progress.reset();
    QUERN_RETURN_IF_ERROR(ExplainSpec(prepared.spec, options));
    return kExitOk;
  }
  QUERN_ASSIGN_OR_RETURN(const auto budget, BudgetBesideInputs(options));
  QUERN_ASSIGN_OR_RETURN(const CompiledKernel compiled, CompileForRun(prepared.spec, options, &stats));
  QUERN_ASSIGN_OR_RETURN(const AggregateResult result,
                         RunPreparedAggregate(prepared, compiled, options.count, budget, options.threads, &*progress));
  progress->Begin("write", 0);
  watch.Lap();
  QUERN_RETURN_IF_ERROR(Deliver(result.table, result.num_rows, options, &file, &progress));
  stats.write_ms = watch.Lap();
  stats.run_ms = result.run_ms;
  stats.rows_in = static_cast<uint64_t>(prepared.input.table->num_rows());
  stats.rows_out = result.num_rows;
  stats.peak_bytes = budget->peak_bytes();
  stats.threads = result.threads;
  ReportRun(options, stats, AggregateStatsJson(stats, result), words);
  return kExitOk;
}

}  // namespace

absl::StatusOr<int> RunAggregate(const std::vector<std::string>& words) {
  AggregateCommand command;
  QUERN_ASSIGN_OR_RETURN(const bool go_on, ParseCommand(words, &command));
  if (!go_on) return kExitOk;
  std::vector<std::string> command_line = {"aggregate"};
  command_line.insert(command_line.end(), words.begin(), words.end());
  return Run(command, command_line);
}

}  // namespace quern::cli
