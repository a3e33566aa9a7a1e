// SPDX-License-Identifier: Apache-2.0
// quern set: union, intersection or difference of the rows of two files, by a kernel made for just these columns.
//
//     $ quern set except --by id,name old.csv new.csv
//     id  name
//      7  ada
//     1 row
//
// The steps are those of every command that runs (run_command.h). Here: read the command line; find the columns by
// their names in both files; read these and no others; find types and spec (set_columns.h); run the kernel (set_run.h).
#include <arrow/api.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/status.h"
#include "tools/frontend/errors.h"
#include "tools/quern/commands/command.h"
#include "tools/quern/run/arguments.h"
#include "tools/quern/run/run_command.h"
#include "tools/quern/set/set_columns.h"
#include "tools/quern/set/set_run.h"
#include "tools/quern/stream/append_batches.h"

namespace quern::cli {
namespace {

using TablePointer = std::shared_ptr<arrow::Table>;

struct SetCommand {
  RunOptions options;
  SetRequest request;
  std::string paths[2];  // left, right
};

// The words of a set operation as they were given.
struct GivenWords {
  std::string kind;
  bool all = false;
  std::vector<std::string> by;
};

absl::StatusOr<SetKind> KindOf(const GivenWords& given) {
  if (given.kind == "union") {
    if (!given.all) return SetKind::kUnion;
    return CommandError(
        "option that union does not have: --all; accepted: --all of intersect and except; "
        "all rows of both files are the files one after the other");
  }
  if (given.kind == "intersect") return given.all ? SetKind::kIntersectAll : SetKind::kIntersect;
  if (given.kind == "except") return given.all ? SetKind::kExceptAll : SetKind::kExcept;
  return CommandError(UnknownWord("set operation", given.kind, {"union", "intersect", "except"}));
}

absl::Status ParseRequest(const GivenWords& given, SetCommand* command) {
  QUERN_ASSIGN_OR_RETURN(command->request.kind, KindOf(given));
  QUERN_RETURN_IF_ERROR(ParseLists("--by", given.by, ParseKeys, &command->request.keys));
  for (const int side : {0, 1}) QUERN_RETURN_IF_ERROR(FormatOfFile(kSetSideWords[side], command->paths[side]).status());
  return command->options.Check();
}

// Returns false if help was requested.
absl::StatusOr<bool> ParseCommand(const std::vector<std::string>& words, SetCommand* command) {
  GivenWords given;
  Arguments arguments("set",
                      "Rows of two files as sets: those in either, in both, or in the first one alone. Each comes out "
                      "once. Nulls are equal.",
                      "quern set except --by o_orderkey,o_orderstatus -o gone.parquet old.parquet new.parquet");
  arguments.Positional("KIND", &given.kind, "union, intersect or except");
  arguments.Positional("LEFT", &command->paths[0], ".parquet, .csv or .arrow file, or a quoted pattern");
  arguments.Positional("RIGHT", &command->paths[1], "the same; its columns are found by their names in LEFT");
  arguments.Flag("--all", &given.all,
                 "copies count: a row that LEFT has l times and RIGHT r times comes out min(l, r) times of intersect, "
                 "l - r times of except");
  arguments.Values("--by", &given.by, "COLUMNS",
                   "columns that are compared and come out; with 'collate NAME' (default: all of LEFT)");
  command->options.AddTo(&arguments);
  QUERN_ASSIGN_OR_RETURN(const bool go_on, arguments.Parse(words));
  if (!go_on) return false;
  QUERN_RETURN_IF_ERROR(ParseRequest(given, command));
  return true;
}

class SetOperator final : public FileOperator {
 public:
  explicit SetOperator(const SetCommand& command) : command_(command) {}

  absl::Status Read() override;
  bool can_stream() const override { return true; }
  absl::Status ReadSamples() override;
  ResultColumns result_columns() const override;
  absl::StatusOr<OperatorResult> Stream(const CompiledKernel& compiled, const StreamRun& run,
                                        ResultStream* results) override;
  KernelSpec spec() const override { return set_.spec; }
  uint64_t rows_in() const override { return RowsOfSide(0) + RowsOfSide(1); }
  absl::StatusOr<OperatorResult> Run(const CompiledKernel& compiled, const std::shared_ptr<MemoryBudget>& budget,
                                     Progress* progress) override;
  void AddStats(JsonObject* json) const override;
  const char* prefetch_class() const override { return result_.stats.prefetch_class; }

 private:
  uint64_t RowsOfSide(int side) const {
    return streamed_[side].stream ? streamed_[side].stream->num_rows()
                                  : static_cast<uint64_t>(set_.inputs[side].table->num_rows());
  }

  const SetCommand& command_;
  PreparedSet set_;
  StreamedInput streamed_[2];  // left, right
  SetResult result_;
};

// Both inputs, and the columns that are compared.
struct OpenInputs {
  TableInput left, right;
  std::vector<KeyText> keys;
  std::vector<std::string> names;  // of the keys
};

absl::StatusOr<OpenInputs> Open(const SetCommand& command) {
  QUERN_ASSIGN_OR_RETURN(TableInput left, TableInput::Open(kSetSideWords[0], command.paths[0]));
  QUERN_ASSIGN_OR_RETURN(TableInput right, TableInput::Open(kSetSideWords[1], command.paths[1]));
  QUERN_ASSIGN_OR_RETURN(std::vector<KeyText> keys, ResolveSetKeys(command.request, left, right));
  std::vector<std::string> names;
  std::transform(keys.begin(), keys.end(), std::back_inserter(names), [](const KeyText& key) { return key.name; });
  return OpenInputs{std::move(left), std::move(right), std::move(keys), std::move(names)};
}

absl::Status SetOperator::ReadSamples() {
  QUERN_ASSIGN_OR_RETURN(const OpenInputs inputs, Open(command_));
  QUERN_ASSIGN_OR_RETURN(streamed_[0].stream, TableStream::Open(inputs.left, inputs.names));
  QUERN_ASSIGN_OR_RETURN(streamed_[1].stream, TableStream::Open(inputs.right, inputs.names));
  // A side of a piece, beside the sample of the other one: types are those of both samples.
  const auto prepare = [kind = command_.request.kind, keys = inputs.keys](const auto& left, const auto& right) {
    return PrepareSet(kind, keys, left, right);
  };
  const auto left = streamed_[0].stream->sample(), right = streamed_[1].stream->sample();
  QUERN_ASSIGN_OR_RETURN(set_, prepare(left, right));
  for (const int side : {0, 1}) {
    streamed_[side].input = set_.inputs[side];
    streamed_[side].prepare = [=](const TablePointer& piece) -> absl::StatusOr<TablePointer> {
      QUERN_ASSIGN_OR_RETURN(const PreparedSet set, side == 0 ? prepare(piece, right) : prepare(left, piece));
      return set.inputs[side].table;
    };
  }
  return absl::OkStatus();
}

ResultColumns SetOperator::result_columns() const {
  std::vector<int> order(static_cast<size_t>(set_.schema->num_fields()));
  std::iota(order.begin(), order.end(), 0);
  return {set_.schema, std::move(order)};
}

absl::StatusOr<OperatorResult> SetOperator::Stream(const CompiledKernel& compiled, const StreamRun& run,
                                                   ResultStream* results) {
  QUERN_ASSIGN_OR_RETURN(result_, StreamSet(set_, streamed_, compiled, command_.options.count, run, results));
  return result_.result;
}

absl::Status SetOperator::Read() {
  QUERN_ASSIGN_OR_RETURN(const OpenInputs inputs, Open(command_));
  QUERN_ASSIGN_OR_RETURN(const auto left_table, inputs.left.Read(inputs.names));
  QUERN_ASSIGN_OR_RETURN(const auto right_table, inputs.right.Read(inputs.names));
  QUERN_ASSIGN_OR_RETURN(set_, PrepareSet(command_.request.kind, inputs.keys, left_table, right_table));
  return absl::OkStatus();
}

absl::StatusOr<OperatorResult> SetOperator::Run(const CompiledKernel& compiled,
                                                const std::shared_ptr<MemoryBudget>& budget, Progress* progress) {
  const RunOptions& options = command_.options;
  result_ = {};  // that of an earlier run, before this one takes memory
  QUERN_ASSIGN_OR_RETURN(result_, RunPreparedSet(set_, compiled, options.count, budget, options.threads, progress));
  return result_.result;
}

void SetOperator::AddStats(JsonObject* json) const {
  json->Count("left_rows", RowsOfSide(0));
  json->Count("groups", result_.stats.num_groups);
  json->Text("layout", result_.stats.layout).Count("prefetch_distance", result_.stats.prefetch_distance);
}

}  // namespace

absl::StatusOr<int> RunSet(const std::vector<std::string>& words) {
  SetCommand command;
  QUERN_ASSIGN_OR_RETURN(const bool go_on, ParseCommand(words, &command));
  if (!go_on) return kExitOk;
  SetOperator set(command);
  return RunOnFiles("set", words, command.options, &set);
}

}  // namespace quern::cli
