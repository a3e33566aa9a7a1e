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

#include "runtime/base/status.h"
#include "tools/frontend/errors.h"
#include "tools/quern/commands/command.h"
#include "tools/quern/run/arguments.h"
#include "tools/quern/run/run_command.h"
#include "tools/quern/set/set_columns.h"
#include "tools/quern/set/set_run.h"

namespace quern::cli {
namespace {

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
  KernelSpec spec() const override { return set_.spec; }
  uint64_t rows_in() const override {
    return static_cast<uint64_t>(set_.inputs[0].table->num_rows() + set_.inputs[1].table->num_rows());
  }
  absl::StatusOr<OperatorResult> Run(const CompiledKernel& compiled, const std::shared_ptr<MemoryBudget>& budget,
                                     Progress* progress) override;
  void AddStats(JsonObject* json) const override;
  const char* prefetch_class() const override { return result_.stats.prefetch_class; }

 private:
  const SetCommand& command_;
  PreparedSet set_;
  SetResult result_;
};

absl::Status SetOperator::Read() {
  QUERN_ASSIGN_OR_RETURN(const TableInput left, TableInput::Open(kSetSideWords[0], command_.paths[0]));
  QUERN_ASSIGN_OR_RETURN(const TableInput right, TableInput::Open(kSetSideWords[1], command_.paths[1]));
  QUERN_ASSIGN_OR_RETURN(const std::vector<KeyText> keys, ResolveSetKeys(command_.request, left, right));
  std::vector<std::string> names;
  std::transform(keys.begin(), keys.end(), std::back_inserter(names), [](const KeyText& key) { return key.name; });
  QUERN_ASSIGN_OR_RETURN(const auto left_table, left.Read(names));
  QUERN_ASSIGN_OR_RETURN(const auto right_table, right.Read(names));
  QUERN_ASSIGN_OR_RETURN(set_, PrepareSet(command_.request.kind, keys, left_table, right_table));
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
  json->Count("left_rows", static_cast<uint64_t>(set_.inputs[0].table->num_rows()));
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
