// SPDX-License-Identifier: Apache-2.0
// quern aggregate: from a file to its groups, by a kernel made for just these keys and functions.
//
//     $ quern aggregate --by name --agg 'count(*), sum(qty), avg(qty) filter (where ok) as good' orders.csv
//     name  count(*)  sum(qty)  good
//     ada          2        17   7.5
//     bob          1         3  NULL
//     2 rows
//
// The steps are those of every command that runs (run_command.h). Here: read the command line; find the columns by
// their names; read these and no others; find types, conditions and spec (aggregate_columns.h); run the kernels
// (aggregate_run.h). run_ms of --stats includes the conditions.
#include <arrow/api.h>

#include <numeric>
#include <utility>

#include "runtime/base/status.h"
#include "tools/frontend/aggregate_text.h"
#include "tools/frontend/computed_key.h"
#include "tools/frontend/errors.h"
#include "tools/quern/aggregate/aggregate_columns.h"
#include "tools/quern/aggregate/aggregate_run.h"
#include "tools/quern/commands/command.h"
#include "tools/quern/files/row_map.h"
#include "tools/quern/run/arguments.h"
#include "tools/quern/run/run_command.h"
#include "tools/quern/stream/append_batches.h"

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
  if (given.by.empty() && given.agg.empty())
    return CommandError("missing option: --agg; accepted: --agg LIST, as 'count(*), sum(x)'");
  QUERN_RETURN_IF_ERROR(ParseLists("--by", given.by, ParseComputedKeys, &request->keys));
  QUERN_RETURN_IF_ERROR(ParseLists("--agg", given.agg, ParseAggregates, &request->aggregates));
  QUERN_ASSIGN_OR_RETURN(request->where, ParseAllConditions("--filter", given.filter));
  return absl::OkStatus();
}

// Returns false if help was requested.
absl::StatusOr<bool> ParseCommand(const std::vector<std::string>& words, AggregateCommand* command) {
  GivenOptions given;
  Arguments arguments(
      "aggregate",
      "Aggregates the rows of a file by groups whose keys are equal; nulls are a group.\nFunctions: " +
          FunctionsText() + ".",
      "quern aggregate --by l_returnflag,l_linestatus --agg 'count(*), sum(l_quantity), avg(l_discount) as discount'"
      " --filter 'l_shipdate<=1998-09-02' lineitem.parquet");
  arguments.Values("--by", &given.by, "KEYS",
                   "columns or expressions that make a group; with 'collate NAME' (default: all rows are one group)");
  arguments.Values("--agg", &given.agg, "LIST",
                   "as 'count(*), sum(x * (1 - y)), min(s collate NAME), quantile(x, 0.9) filter (where b) as q' "
                   "(default: none, the different keys)");
  arguments.Values("--filter", &given.filter, "CONDITION",
                   "only rows that a condition holds for, as --where of quern filter has it; several: where all hold");
  return ParseOneInput(words, &arguments, &command->options, &command->input_path,
                       [&] { return ParseRequest(given, &command->request); });
}

class AggregateOperator final : public FileOperator {
 public:
  explicit AggregateOperator(AggregateCommand* command) : command_(*command) {}

  absl::Status Read() override;
  bool can_stream() const override { return true; }
  absl::Status ReadSamples() override;
  ResultColumns result_columns() const override;
  absl::StatusOr<OperatorResult> Stream(const CompiledKernel& compiled, const StreamRun& run,
                                        ResultStream* results) override;
  KernelSpec spec() const override { return prepared_.spec; }
  std::vector<KernelSpec> input_specs() const override { return InputSpecs(prepared_.input); }
  absl::Status CompileConditions(const CompileOptions& options) override {
    return cli::CompileConditions(options, prepared_.input);
  }
  uint64_t rows_in() const override {
    return streamed_.stream ? streamed_.stream->num_rows() : static_cast<uint64_t>(prepared_.input.table->num_rows());
  }
  absl::StatusOr<OperatorResult> Run(const CompiledKernel& compiled, const std::shared_ptr<MemoryBudget>& budget,
                                     Progress* progress) override;
  void AddStats(JsonObject* json) const override;
  const char* prefetch_class() const override { return result_.stats.prefetch_class; }

 private:
  AggregateCommand& command_;
  PreparedAggregate prepared_;
  StreamedInput streamed_;
  AggregateResult result_;
};

absl::Status AggregateOperator::Read() {
  QUERN_ASSIGN_OR_RETURN(const TableInput input, TableInput::Open("INPUT", command_.input_path));
  QUERN_RETURN_IF_ERROR(ResolveRequest(input, &command_.request));
  QUERN_ASSIGN_OR_RETURN(const auto table, input.Read(ColumnsToRead(command_.request, input)));
  QUERN_ASSIGN_OR_RETURN(prepared_, PrepareAggregate(command_.request, input, table));
  return absl::OkStatus();
}

absl::Status AggregateOperator::ReadSamples() {
  QUERN_ASSIGN_OR_RETURN(const TableInput input, TableInput::Open("INPUT", command_.input_path));
  QUERN_RETURN_IF_ERROR(ResolveRequest(input, &command_.request));
  QUERN_ASSIGN_OR_RETURN(streamed_.stream, TableStream::Open(input, ColumnsToRead(command_.request, input)));
  const auto prepare = [this, input](const std::shared_ptr<arrow::Table>& table) {
    return PrepareAggregate(command_.request, input, table);
  };
  QUERN_ASSIGN_OR_RETURN(prepared_, prepare(streamed_.stream->sample()));
  streamed_.input = prepared_.input;
  streamed_.prepare = [prepare](const std::shared_ptr<arrow::Table>& table) { return TableOfInput(prepare(table)); };
  return absl::OkStatus();
}

ResultColumns AggregateOperator::result_columns() const {
  std::vector<int> order(static_cast<size_t>(prepared_.schema->num_fields()));
  std::iota(order.begin(), order.end(), 0);
  return {prepared_.schema, std::move(order)};
}

absl::StatusOr<OperatorResult> AggregateOperator::Stream(const CompiledKernel& compiled, const StreamRun& run,
                                                         ResultStream* results) {
  QUERN_ASSIGN_OR_RETURN(result_,
                         StreamAggregate(prepared_, streamed_, compiled, command_.options.count, run, results));
  return result_.result;
}

absl::StatusOr<OperatorResult> AggregateOperator::Run(const CompiledKernel& compiled,
                                                      const std::shared_ptr<MemoryBudget>& budget, Progress* progress) {
  const RunOptions& options = command_.options;
  result_ = {};  // that of an earlier run, before this one takes memory
  QUERN_ASSIGN_OR_RETURN(result_,
                         RunPreparedAggregate(prepared_, compiled, options.count, budget, options.threads, progress));
  return result_.result;
}

void AggregateOperator::AddStats(JsonObject* json) const {
  json->Count("groups", result_.stats.num_groups);
  json->Text("layout", result_.stats.layout).Count("prefetch_distance", result_.stats.prefetch_distance);
}

}  // namespace

absl::StatusOr<int> RunAggregate(const std::vector<std::string>& words) {
  AggregateCommand command;
  QUERN_ASSIGN_OR_RETURN(const bool go_on, ParseCommand(words, &command));
  if (!go_on) return kExitOk;
  AggregateOperator aggregate(&command);
  return RunOnFiles("aggregate", words, command.options, &aggregate);
}

}  // namespace quern::cli
