// SPDX-License-Identifier: Apache-2.0
// quern sort: from a file to its rows in order, by a kernel made for just these keys and columns.
//
//     $ quern sort --by 'price desc, name' --limit 2 --select name,price orders.csv
//     name  price
//     ada     8.5
//     bob    2.25
//     2 rows
//
// The steps are those of every command that runs (run_command.h). Here: read the command line; find the columns by
// their names; read these and no others; find types, condition and spec (sort_request.h); run the kernels (sort_run.h).
// run_ms of --stats includes the condition.
#include <arrow/api.h>

#include <optional>
#include <utility>

#include "runtime/base/status.h"
#include "tools/frontend/errors.h"
#include "tools/frontend/sort_text.h"
#include "tools/quern/commands/command.h"
#include "tools/quern/files/row_map.h"
#include "tools/quern/map/computed_select.h"
#include "tools/quern/run/arguments.h"
#include "tools/quern/run/run_command.h"
#include "tools/quern/sort/sort_request.h"
#include "tools/quern/sort/sort_run.h"
#include "tools/quern/stream/append_batches.h"

namespace quern::cli {
namespace {

struct SortCommand {
  RunOptions options;
  SortRequest request;
  std::optional<ComputedSelect> select;  // none: columns alone
  std::string input_path;
};

// The options of a sort as they were given.
struct GivenOptions {
  std::vector<std::string> by;
  std::vector<std::string> partition_by;
  std::vector<std::string> window;
  std::vector<std::string> filter;
  std::optional<std::string> limit;
  std::optional<std::string> select;
};

absl::Status ParsePartition(const GivenOptions& given, SortRequest* request) {
  std::vector<KeyText> columns;
  QUERN_RETURN_IF_ERROR(ParseLists("--partition-by", given.partition_by, ParseKeys, &columns));
  if (!columns.empty() && request->windows.empty()) {
    return CommandError("--partition-by without --window: " + given.partition_by.front() +
                        "; accepted: with --window LIST, as row_number, rank, dense_rank");
  }
  for (KeyText& column : columns) request->keys.push_back({.column = std::move(column)});
  request->num_partition_keys = static_cast<uint32_t>(columns.size());
  return absl::OkStatus();
}

absl::Status ParseRequest(const GivenOptions& given, SortRequest* request, std::optional<ComputedSelect>* computed) {
  if (given.by.empty()) return CommandError("missing option: --by; accepted: --by KEYS, as 'day desc, name'");
  QUERN_RETURN_IF_ERROR(ParseLists("--window", given.window, ParseWindows, &request->windows));
  QUERN_RETURN_IF_ERROR(ParsePartition(given, request));
  QUERN_RETURN_IF_ERROR(ParseLists("--by", given.by, ParseSortKeys, &request->keys));
  QUERN_ASSIGN_OR_RETURN(request->where, ParseAllConditions("--filter", given.filter));
  if (given.limit.has_value()) {
    QUERN_ASSIGN_OR_RETURN(request->limit, ParseNumber("--limit", *given.limit, 1, INT64_MAX));
  }
  std::vector<std::string> windows;
  for (const WindowText& window : request->windows) windows.push_back(window.name);
  if (given.select.has_value() && IsComputed(*given.select)) {
    QUERN_ASSIGN_OR_RETURN(*computed, ComputedSelect::Parse(*given.select));
    request->select = (*computed)->Mentioned(windows);
  } else if (given.select.has_value()) {
    QUERN_ASSIGN_OR_RETURN(request->select, ParsePlainNames("--select", *given.select));
  }
  return absl::OkStatus();
}

// Returns false if help was requested.
absl::StatusOr<bool> ParseCommand(const std::vector<std::string>& words, SortCommand* command) {
  GivenOptions given;
  Arguments arguments(
      "sort",
      "Puts the rows of a file in order. NaN is greater than all numbers; nulls come last, whatever the direction.",
      "quern sort --by 'l_shipdate desc, l_extendedprice' --limit 10 --select l_orderkey,l_shipdate lineitem.parquet");
  arguments.Values(
      "--by", &given.by, "KEYS",
      "columns or expressions in the order of their weight, as 'a desc, s collate NAME nulls first, x * y' (default: "
      "asc, nulls last)");
  arguments.Value("--limit", &given.limit, "N", "only the first N rows");
  arguments.Flag("--stable", &command->request.stable,
                 "rows whose keys are equal stay in the order of the file (default: any order)");
  arguments.Value("--select", &given.select, "COLS",
                  "result columns and expressions in order, as 'name, price * qty as total' (default: all columns)");
  arguments.Values("--filter", &given.filter, "CONDITION",
                   "only rows that a condition holds for, as --where of quern filter has it; several: where all hold");
  arguments.Values("--window", &given.window, "LIST",
                   "further result columns: row_number, rank, dense_rank, each with 'as NAME' where wanted");
  arguments.Values("--partition-by", &given.partition_by, "COLS",
                   "columns to sort by first; --window counts anew where they change");
  return ParseOneInput(words, &arguments, &command->options, &command->input_path,
                       [&] { return ParseRequest(given, &command->request, &command->select); });
}

class SortOperator final : public FileOperator {
 public:
  explicit SortOperator(SortCommand* command) : command_(*command) {}

  absl::Status Read() override;
  bool can_stream() const override { return !command_.select.has_value(); }
  absl::Status ReadSamples() override;
  ResultColumns result_columns() const override { return {prepared_.kernel_schema, prepared_.order}; }
  absl::StatusOr<OperatorResult> Stream(const CompiledKernel& compiled, const StreamRun& run,
                                        ResultStream* results) override;
  std::string result_text() const override { return command_.select.has_value() ? command_.select->Print() : ""; }
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
  SortCommand& command_;
  PreparedSort prepared_;
  StreamedInput streamed_;
  SortResult result_;
};

absl::Status SortOperator::Read() {
  QUERN_ASSIGN_OR_RETURN(const TableInput input, TableInput::Open("INPUT", command_.input_path));
  QUERN_ASSIGN_OR_RETURN(const auto selected, SelectColumns(input, command_.options.count, &command_.request));
  QUERN_ASSIGN_OR_RETURN(const auto table, input.Read(ColumnsToRead(command_.request, selected)));
  QUERN_ASSIGN_OR_RETURN(prepared_, PrepareSort(command_.request, selected, input, table));
  return absl::OkStatus();
}

absl::Status SortOperator::ReadSamples() {
  QUERN_ASSIGN_OR_RETURN(const TableInput input, TableInput::Open("INPUT", command_.input_path));
  QUERN_ASSIGN_OR_RETURN(const auto selected, SelectColumns(input, command_.options.count, &command_.request));
  QUERN_ASSIGN_OR_RETURN(streamed_.stream, TableStream::Open(input, ColumnsToRead(command_.request, selected)));
  const auto prepare = [this, selected, input](const std::shared_ptr<arrow::Table>& table) {
    return PrepareSort(command_.request, selected, input, table);
  };
  QUERN_ASSIGN_OR_RETURN(prepared_, prepare(streamed_.stream->sample()));
  streamed_.input = prepared_.input;
  streamed_.prepare = [prepare](const std::shared_ptr<arrow::Table>& table) { return TableOfInput(prepare(table)); };
  return absl::OkStatus();
}

absl::StatusOr<OperatorResult> SortOperator::Stream(const CompiledKernel& compiled, const StreamRun& run,
                                                    ResultStream* results) {
  QUERN_ASSIGN_OR_RETURN(result_, StreamSort(prepared_, streamed_, compiled, command_.options.count, run, results));
  return result_.result;
}

absl::StatusOr<OperatorResult> SortOperator::Run(const CompiledKernel& compiled,
                                                 const std::shared_ptr<MemoryBudget>& budget, Progress* progress) {
  const RunOptions& options = command_.options;
  result_ = {};  // that of an earlier run, before this one takes memory
  QUERN_ASSIGN_OR_RETURN(result_,
                         RunPreparedSort(prepared_, compiled, options.count, budget, options.threads, progress));
  if (!command_.select.has_value()) return result_.result;
  return command_.select->Apply(std::exchange(result_.result, {}), options, budget, progress);
}

void SortOperator::AddStats(JsonObject* json) const {
  json->Text("method", result_.stats.method)
      .Count("entry_bytes", result_.stats.entry_bytes)
      .Count("key_bits", result_.stats.key_bits);
  json->Count("collided_rows", result_.stats.collided_rows).Count("dropped_rows", result_.stats.dropped_rows);
}

}  // namespace

absl::StatusOr<int> RunSort(const std::vector<std::string>& words) {
  SortCommand command;
  QUERN_ASSIGN_OR_RETURN(const bool go_on, ParseCommand(words, &command));
  if (!go_on) return kExitOk;
  SortOperator sort(&command);
  return RunOnFiles("sort", words, command.options, &sort);
}

}  // namespace quern::cli
