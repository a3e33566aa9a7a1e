// SPDX-License-Identifier: Apache-2.0
// quern filter: from a file to its rows that a condition holds for, by a kernel made for just this condition.
//
//     $ quern filter --where "name like 'b%' and price < 5" --select name,price orders.csv
//     name  price
//     bob    2.25
//     1 row
//
// The steps are those of every command that runs (run_command.h). Here: read the command line and the condition
// (where_text.h); find the columns by their names; read these and no others; find types, constants and spec
// (filter_request.h, row_condition.h); run the kernel (filter_run.h).
#include <arrow/api.h>

#include <optional>
#include <utility>

#include "runtime/base/status.h"
#include "tools/frontend/condition_text.h"
#include "tools/frontend/errors.h"
#include "tools/quern/commands/command.h"
#include "tools/quern/filter/filter_request.h"
#include "tools/quern/filter/filter_run.h"
#include "tools/quern/map/computed_select.h"
#include "tools/quern/run/arguments.h"
#include "tools/quern/run/run_command.h"

namespace quern::cli {
namespace {

struct FilterCommand {
  RunOptions options;
  FilterRequest request;
  std::optional<ComputedSelect> select;  // none: columns alone
  std::string input_path;
};

// The options of a filter as they were given.
struct GivenOptions {
  std::optional<std::string> where;
  std::optional<std::string> select;
};

absl::Status ParseRequest(const GivenOptions& given, FilterRequest* request, std::optional<ComputedSelect>* computed) {
  if (!given.where.has_value()) {
    return CommandError("missing option: --where; accepted: --where CONDITION, as \"name = 'ada' and qty > 5\"");
  }
  QUERN_ASSIGN_OR_RETURN(request->where, ParseCondition("--where", *given.where));
  if (given.select.has_value() && IsComputed(*given.select)) {
    QUERN_ASSIGN_OR_RETURN(*computed, ComputedSelect::Parse(*given.select));
    request->select = (*computed)->Mentioned();
    request->may_repeat = true;
  } else if (given.select.has_value()) {
    QUERN_ASSIGN_OR_RETURN(request->select, ParsePlainNames("--select", *given.select));
  }
  return absl::OkStatus();
}

// Returns false if help was requested.
absl::StatusOr<bool> ParseCommand(const std::vector<std::string>& words, FilterCommand* command) {
  GivenOptions given;
  Arguments arguments(
      "filter",
      "Gives the rows of a file that a condition holds for, in the order of the file. A comparison with a null holds "
      "for\n"
      "no row, and neither does its opposite.",
      "quern filter --where \"l_shipmode = 'AIR' and l_shipdate >= date '1998-01-01'\" --select l_orderkey,l_comment "
      "lineitem.parquet");
  arguments.Value("--where", &given.where, "CONDITION",
                  "COLUMN [collate NAME] with < <= > >= != = and a constant or a column, [not] in (..), [not] between "
                  ".. and .., [not] "
                  "like '..' [escape 'c'], is [not] null, or a bool column; with not, and, or and parentheses; or an "
                  "expression as those of quern map, as price * qty > 100");
  arguments.Value("--select", &given.select, "COLS",
                  "result columns and expressions in order, as 'name, price * qty as total' (default: all columns)");
  return ParseOneInput(words, &arguments, &command->options, &command->input_path,
                       [&] { return ParseRequest(given, &command->request, &command->select); });
}

class FilterOperator final : public FileOperator {
 public:
  explicit FilterOperator(FilterCommand* command) : command_(*command) {}

  absl::Status Read() override;
  KernelSpec spec() const override { return prepared_.where->condition().specs().back(); }
  std::vector<KernelSpec> input_specs() const override {
    std::vector<KernelSpec> specs = prepared_.where->condition().specs();
    specs.pop_back();
    return specs;
  }
  absl::Status CompileConditions(const CompileOptions& options) override {
    const bool is_computed = prepared_.where->condition().expressions != nullptr;
    return is_computed ? prepared_.where->Compile(options) : absl::OkStatus();
  }
  std::string result_text() const override { return command_.select.has_value() ? command_.select->Print() : ""; }
  uint64_t rows_in() const override { return static_cast<uint64_t>(prepared_.input.table->num_rows()); }
  absl::StatusOr<OperatorResult> Run(const CompiledKernel& compiled, const std::shared_ptr<MemoryBudget>& budget,
                                     Progress* progress) override {
    const RunOptions& options = command_.options;
    QUERN_ASSIGN_OR_RETURN(OperatorResult result,
                           RunPreparedFilter(prepared_, compiled, options.count, budget, options.threads, progress));
    if (!command_.select.has_value()) return result;
    return command_.select->Apply(std::move(result), options, budget, progress);
  }
  void AddStats(JsonObject*) const override {}

 private:
  FilterCommand& command_;
  PreparedFilter prepared_;
};

absl::Status FilterOperator::Read() {
  QUERN_ASSIGN_OR_RETURN(const TableInput input, TableInput::Open("INPUT", command_.input_path));
  QUERN_ASSIGN_OR_RETURN(const auto selected, ResolveColumns(input, command_.options.count, &command_.request));
  QUERN_ASSIGN_OR_RETURN(const auto table, input.Read(ColumnsToRead(command_.request, selected)));
  QUERN_ASSIGN_OR_RETURN(prepared_, PrepareFilter(command_.request, selected, input, table));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> RunFilter(const std::vector<std::string>& words) {
  FilterCommand command;
  QUERN_ASSIGN_OR_RETURN(const bool go_on, ParseCommand(words, &command));
  if (!go_on) return kExitOk;
  FilterOperator filter(&command);
  return RunOnFiles("filter", words, command.options, &filter);
}

}  // namespace quern::cli
