// SPDX-License-Identifier: Apache-2.0
// A query over files: its tables are read, planned with their types, and run.
#ifndef QUERN_TOOLS_QUERY_FILE_QUERY_H_
#define QUERN_TOOLS_QUERY_FILE_QUERY_H_

#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/spill/spill_context.h"
#include "tools/quern/run/run_command.h"
#include "tools/quern/run/run_options.h"
#include "tools/query/query_plan.h"
#include "tools/query/query_run.h"
#include "tools/query/query_text.h"

namespace quern::cli {

// --table NAME=FILE
struct QueryTableFile {
  std::string name, path;
};

class FileQuery final : public FileJob {
 public:
  // path: of the query's text, for errors.
  FileQuery(query::QueryText text, std::string path, std::vector<QueryTableFile> files, const RunOptions& options)
      : text_(std::move(text)),
        path_(std::move(path)),
        files_(std::move(files)),
        count_(options.count),
        threads_(options.threads),
        spill_folder_(options.spills ? options.spill_folder : std::nullopt),
        given_(options.compile.overrides) {}

  // Reads the columns that the query mentions, and no others. *Errors*: also those of QueryPlan::Make, and of
  // parameters that no plan has.
  absl::Status Read() override;
  uint64_t rows_in() const override;
  absl::StatusOr<std::string> Explain(const RunOptions& options) const override;
  absl::Status Compile(const RunOptions& options, RunStats* stats) override;
  absl::StatusOr<OperatorResult> Run(const std::shared_ptr<MemoryBudget>& budget, Progress* progress) override;
  void AddStats(RunStats* stats) override;
  void AddFields(const RunStats& stats, JsonObject* json) const override;

 private:
  // Of a table, with the arrays that its batches are exported to.
  struct Rows;

  absl::Status ReadTable(const QueryTableFile& file);
  std::vector<query::TableRows> Tables() const;

  const query::QueryText text_;
  const std::string path_;
  const std::vector<QueryTableFile> files_;
  const bool count_;
  const uint32_t threads_;
  const std::optional<std::string> spill_folder_;  // none: nothing is spilled
  const PlanOverrides given_;                      // --param
  std::vector<query::QueryTable> tables_;
  std::vector<std::shared_ptr<Rows>> rows_;
  query::QueryPlan plan_;
  std::optional<query::PreparedQuery> prepared_;
  std::vector<query::PipelineStats> stats_;  // of the last run
  SpillStats spilled_;                       // likewise
};

}  // namespace quern::cli

#endif  // QUERN_TOOLS_QUERY_FILE_QUERY_H_
