// SPDX-License-Identifier: Apache-2.0
// quern join: from two files to their joined rows, by a kernel made for just this kind of join, these keys and columns.
//
//     $ quern join --on id=order --select id,qty probe.csv build.csv
//     id  qty
//      7   12
//     1 row
//
// The steps are those of every command that runs (run_command.h). Here: read the command line; find the columns by
// their names; read these and no others; find types and spec (join_columns.h); run the kernel (join_run.h). run_ms of
// --stats is build_ms + probe_ms.
#include <arrow/api.h>

#include <optional>
#include <utility>

#include "runtime/base/status.h"
#include "tools/frontend/errors.h"
#include "tools/quern/commands/command.h"
#include "tools/quern/files/row_map.h"
#include "tools/quern/join/join_columns.h"
#include "tools/quern/join/join_run.h"
#include "tools/quern/map/computed_select.h"
#include "tools/quern/run/arguments.h"
#include "tools/quern/run/run_command.h"
#include "tools/quern/stream/append_batches.h"

namespace quern::cli {
namespace {

struct JoinCommand {
  RunOptions options;
  JoinRequest request;
  std::optional<ComputedSelect> select;  // none: columns alone
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

absl::Status ParseRequest(const GivenOptions& given, JoinRequest* request, std::optional<ComputedSelect>* computed) {
  if (given.type.has_value()) {
    QUERN_ASSIGN_OR_RETURN(request->kind, KindByName(*given.type));
  }
  if (given.on.empty()) return CommandError("missing option: --on; accepted: --on L=R[,L=R...]");
  QUERN_RETURN_IF_ERROR(ParseLists("--on", given.on, ParseKeyPairs, &request->keys));
  QUERN_RETURN_IF_ERROR(ParseLists("--residual", given.residual, ParseComparisons, &request->residual));
  QUERN_RETURN_IF_ERROR(ParseLists("--null-equal", given.null_equal, ParseNames, &request->null_equal));
  if (given.select.has_value() && IsComputed(*given.select)) {
    QUERN_ASSIGN_OR_RETURN(*computed, ComputedSelect::Parse(*given.select));
    const auto mentioned = (*computed)->Mentioned();
    if (mentioned.has_value()) request->select.emplace();
    for (const std::string& name : mentioned.value_or(std::vector<std::string>()))
      request->select->push_back({.whole = name, .side = "", .name = name});
  } else if (given.select.has_value()) {
    QUERN_ASSIGN_OR_RETURN(request->select, ParseNames("--select", *given.select));
  }
  return absl::OkStatus();
}

// Returns false if help was requested.
absl::StatusOr<bool> ParseCommand(const std::vector<std::string>& words, JoinCommand* command) {
  GivenOptions given;
  Arguments arguments(
      "join", "Joins two files: their rows whose keys are equal, in pairs or as --type says.",
      "quern join --on o_custkey=c_custkey --select o_orderkey,c_name -o out.parquet orders.parquet customer.parquet");
  arguments.Positional("PROBE", &command->probe_path,
                       ".parquet, .csv or .arrow file, or a quoted pattern; best the larger one");
  arguments.Positional("BUILD", &command->build_path, "the same; its rows are kept in memory as a table");
  arguments.Values(
      "--on", &given.on, "L=R[,L=R...]",
      "keys: column or expression L of PROBE = R of BUILD; L alone: of that name in both; with 'collate NAME'");
  arguments.Value("--type", &given.type, "TYPE",
                  "inner (default), left, right, full, semi, anti, right_semi, right_anti, anti_null_aware, mark or "
                  "single; PROBE is left");
  arguments.Values("--residual", &given.residual, "L<R[,L<R...]",
                   "pairs match only where column or expression L of PROBE < R of BUILD too; with < <= > >= != or =");
  arguments.Values("--null-equal", &given.null_equal, "COLS", "keys whose nulls match nulls");
  arguments.Value("--select", &given.select, "COLS",
                  "result columns in order; probe.X or build.X where both have X; mark of a mark join; or columns and "
                  "expressions, as 'name, price * qty as total' (default: all columns that come out)");
  command->options.AddTo(&arguments);
  QUERN_ASSIGN_OR_RETURN(const bool go_on, arguments.Parse(words));
  if (!go_on) return false;
  QUERN_RETURN_IF_ERROR(ParseRequest(given, &command->request, &command->select));
  QUERN_RETURN_IF_ERROR(FormatOfFile("PROBE", command->probe_path).status());
  QUERN_RETURN_IF_ERROR(FormatOfFile("BUILD", command->build_path).status());
  QUERN_RETURN_IF_ERROR(command->options.Check());
  return true;
}

class JoinOperator final : public FileOperator {
 public:
  explicit JoinOperator(const JoinCommand& command) : command_(command) {}

  absl::Status Read() override;
  bool can_stream() const override { return !command_.select.has_value(); }
  absl::Status ReadSamples() override;
  ResultColumns result_columns() const override { return {join_.kernel_schema, join_.order}; }
  absl::StatusOr<OperatorResult> Stream(const CompiledKernel& compiled, const StreamRun& run,
                                        ResultStream* results) override;
  std::string result_text() const override { return command_.select.has_value() ? command_.select->Print() : ""; }
  KernelSpec spec() const override { return join_.spec; }
  std::vector<KernelSpec> input_specs() const override;
  absl::Status CompileConditions(const CompileOptions& options) override;
  uint64_t rows_in() const override;
  absl::StatusOr<OperatorResult> Run(const CompiledKernel& compiled, const std::shared_ptr<MemoryBudget>& budget,
                                     Progress* progress) override;
  void AddStats(JsonObject* json) const override;
  const char* prefetch_class() const override { return result_.stats.prefetch_class; }

 private:
  const JoinCommand& command_;
  uint64_t RowsOf(JoinSide side) const;

  PreparedJoin join_;
  StreamedInput streamed_[2];  // by JoinSide
  JoinResult result_;
};

absl::Status JoinOperator::Read() {
  QUERN_ASSIGN_OR_RETURN(const TableInput probe, TableInput::Open("PROBE", command_.probe_path));
  QUERN_ASSIGN_OR_RETURN(const TableInput build, TableInput::Open("BUILD", command_.build_path));
  QUERN_ASSIGN_OR_RETURN(const JoinColumns columns,
                         ResolveColumns(command_.request, probe, build, command_.options.count));
  QUERN_ASSIGN_OR_RETURN(const auto probe_table, probe.Read(ColumnsToRead(columns, kProbe)));
  QUERN_ASSIGN_OR_RETURN(const auto build_table, build.Read(ColumnsToRead(columns, kBuild)));
  QUERN_ASSIGN_OR_RETURN(join_, PrepareJoin(columns, probe_table, build_table));
  return absl::OkStatus();
}

std::vector<KernelSpec> JoinOperator::input_specs() const {
  std::vector<KernelSpec> specs;
  for (const KernelInput& input : join_.inputs)
    for (KernelSpec& spec : InputSpecs(input)) specs.push_back(std::move(spec));
  return specs;
}

absl::Status JoinOperator::CompileConditions(const CompileOptions& options) {
  for (const KernelInput& input : join_.inputs) QUERN_RETURN_IF_ERROR(cli::CompileConditions(options, input));
  return absl::OkStatus();
}

uint64_t JoinOperator::RowsOf(JoinSide side) const {
  return streamed_[side].stream ? streamed_[side].stream->num_rows()
                                : static_cast<uint64_t>(join_.inputs[side].table->num_rows());
}

uint64_t JoinOperator::rows_in() const { return RowsOf(kProbe) + RowsOf(kBuild); }

absl::Status JoinOperator::ReadSamples() {
  QUERN_ASSIGN_OR_RETURN(const TableInput probe, TableInput::Open("PROBE", command_.probe_path));
  QUERN_ASSIGN_OR_RETURN(const TableInput build, TableInput::Open("BUILD", command_.build_path));
  QUERN_ASSIGN_OR_RETURN(const JoinColumns columns,
                         ResolveColumns(command_.request, probe, build, command_.options.count));
  QUERN_ASSIGN_OR_RETURN(streamed_[kProbe].stream, TableStream::Open(probe, ColumnsToRead(columns, kProbe)));
  QUERN_ASSIGN_OR_RETURN(streamed_[kBuild].stream, TableStream::Open(build, ColumnsToRead(columns, kBuild)));
  const std::shared_ptr<arrow::Table> samples[2] = {streamed_[kProbe].stream->sample(),
                                                    streamed_[kBuild].stream->sample()};
  QUERN_ASSIGN_OR_RETURN(join_, PrepareJoin(columns, samples[kProbe], samples[kBuild]));
  using Table = std::shared_ptr<arrow::Table>;
  streamed_[kProbe].prepare = [columns, build = samples[kBuild]](const Table& table) -> absl::StatusOr<Table> {
    QUERN_ASSIGN_OR_RETURN(const PreparedJoin prepared, PrepareJoin(columns, table, build));
    return prepared.inputs[kProbe].table;
  };
  streamed_[kBuild].prepare = [columns, probe = samples[kProbe]](const Table& table) -> absl::StatusOr<Table> {
    QUERN_ASSIGN_OR_RETURN(const PreparedJoin prepared, PrepareJoin(columns, probe, table));
    return prepared.inputs[kBuild].table;
  };
  for (const JoinSide side : {kProbe, kBuild}) streamed_[side].input = join_.inputs[side];
  return absl::OkStatus();
}

absl::StatusOr<OperatorResult> JoinOperator::Stream(const CompiledKernel& compiled, const StreamRun& run,
                                                    ResultStream* results) {
  QUERN_ASSIGN_OR_RETURN(result_, StreamJoin(join_, streamed_, compiled, run, results));
  return result_.result;
}

absl::StatusOr<OperatorResult> JoinOperator::Run(const CompiledKernel& compiled,
                                                 const std::shared_ptr<MemoryBudget>& budget, Progress* progress) {
  result_ = {};  // that of an earlier run, before this one takes memory
  QUERN_ASSIGN_OR_RETURN(result_, RunPreparedJoin(join_, compiled, budget, command_.options.threads, progress));
  if (!command_.select.has_value()) return result_.result;
  return command_.select->Apply(std::exchange(result_.result, {}), command_.options, budget, progress);
}

void JoinOperator::AddStats(JsonObject* json) const {
  json->Count("build_rows", RowsOf(kBuild));
  json->Milliseconds("build_ms", result_.build_ms).Milliseconds("probe_ms", result_.probe_ms);
  json->Text("layout", result_.stats.layout).Count("prefetch_distance", result_.stats.prefetch_distance);
  json->Json("prefetch_adapted", result_.prefetch_adapted ? "true" : "false");
}

}  // namespace

absl::StatusOr<int> RunJoin(const std::vector<std::string>& words) {
  JoinCommand command;
  QUERN_ASSIGN_OR_RETURN(const bool go_on, ParseCommand(words, &command));
  if (!go_on) return kExitOk;
  JoinOperator join(command);
  return RunOnFiles("join", words, command.options, &join);
}

}  // namespace quern::cli
