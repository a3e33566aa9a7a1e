// SPDX-License-Identifier: Apache-2.0
// quern map: from a file to columns that are computed of its columns, by a kernel made for just these expressions.
//
//     $ quern map --select 'name, price * qty as total' --where 'qty > 1' orders.csv
//     name  total
//     bob    4.50
//     1 row
//
// The steps are those of every command that runs (run_command.h). Here: read the command line and the expressions
// (expression_text.h); find the columns by their names; read these and no others; find types and specs (map_request.h,
// row_map.h); run the kernels (map_run.h).
#include <arrow/api.h>

#include <optional>
#include <utility>

#include "runtime/base/status.h"
#include "tools/frontend/errors.h"
#include "tools/quern/commands/command.h"
#include "tools/quern/map/map_request.h"
#include "tools/quern/map/map_run.h"
#include "tools/quern/run/arguments.h"
#include "tools/quern/run/run_command.h"

namespace quern::cli {
namespace {

struct MapCommand {
  RunOptions options;
  MapRequest request;
  std::string input_path;
};

// The options of a map as they were given.
struct GivenOptions {
  std::vector<std::string> select;
  std::vector<std::string> where;
};

absl::Status ParseRequest(const GivenOptions& given, MapRequest* request) {
  if (given.select.empty())
    return CommandError("missing option: --select; accepted: --select LIST, as 'name, price * qty as total'");
  QUERN_RETURN_IF_ERROR(ParseLists("--select", given.select, ParseSelect, &request->select));
  QUERN_ASSIGN_OR_RETURN(request->where, ParseAllConditions("--where", given.where));
  return absl::OkStatus();
}

// Returns false if help was requested.
absl::StatusOr<bool> ParseCommand(const std::vector<std::string>& words, MapCommand* command) {
  GivenOptions given;
  Arguments arguments(
      "map",
      "Computes columns of the columns of a file, for each of its rows, in the order of the file.\n+ - * / % of "
      "integers are checked: an overflow and a division by 0 are errors. Functions: add, add_or_null,\nyear, coalesce "
      "and the others of docs/expressions.md.",
      "quern map --select 'l_orderkey, l_extendedprice * (1 - l_discount) as revenue, year(l_shipdate) as y' "
      "lineitem.parquet");
  arguments.Values("--select", &given.select, "LIST",
                   "result columns in order, as 'EXPRESSION [as NAME], COLUMN, *': arithmetic, comparisons, "
                   "is [not] null, between, in, and, or, not, case, cast(e as TYPE), e::TYPE, FUNCTION(e, ..)");
  arguments.Values("--where", &given.where, "CONDITION",
                   "only rows that a condition holds for, as --where of quern filter has it; several: where all hold");
  return ParseOneInput(words, &arguments, &command->options, &command->input_path,
                       [&] { return ParseRequest(given, &command->request); });
}

class MapOperator final : public FileOperator {
 public:
  explicit MapOperator(MapCommand* command) : command_(*command) {}

  absl::Status Read() override;
  KernelSpec spec() const override { return prepared_.map->expressions().spec; }
  std::vector<KernelSpec> input_specs() const override {
    if (prepared_.where == nullptr) return {};
    return prepared_.where->condition().specs();
  }
  uint64_t rows_in() const override { return static_cast<uint64_t>(prepared_.table->num_rows()); }
  absl::Status CompileConditions(const CompileOptions& options) override {
    return prepared_.where == nullptr ? absl::OkStatus() : prepared_.where->Compile(options);
  }
  absl::StatusOr<OperatorResult> Run(const CompiledKernel& compiled, const std::shared_ptr<MemoryBudget>& budget,
                                     Progress* progress) override {
    prepared_.map->Use(compiled.kernel);
    return RunPreparedMap(prepared_, command_.options.count, budget, command_.options.threads, progress);
  }
  void AddStats(JsonObject*) const override {}

 private:
  MapCommand& command_;
  PreparedMap prepared_;
};

absl::Status MapOperator::Read() {
  QUERN_ASSIGN_OR_RETURN(const TableInput input, TableInput::Open("INPUT", command_.input_path));
  QUERN_RETURN_IF_ERROR(ResolveRequest(input.what(), input.column_names(), &command_.request));
  if (command_.request.where.has_value()) QUERN_RETURN_IF_ERROR(ResolveNames(input, &*command_.request.where));
  QUERN_ASSIGN_OR_RETURN(const auto table, input.Read(ColumnsToRead(command_.request, input)));
  QUERN_ASSIGN_OR_RETURN(prepared_, PrepareMap(command_.request, input.what(), table));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> RunMap(const std::vector<std::string>& words) {
  MapCommand command;
  QUERN_ASSIGN_OR_RETURN(const bool go_on, ParseCommand(words, &command));
  if (!go_on) return kExitOk;
  MapOperator map(&command);
  return RunOnFiles("map", words, command.options, &map);
}

}  // namespace quern::cli
