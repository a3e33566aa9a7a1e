// SPDX-License-Identifier: Apache-2.0
// Names come before types: what the query mentions of a table is found in its text (wanted_names.h), so that only these
// columns are read. Types and nulls are those of what was read, as for every command:
//
//     --table orders=orders.parquet    read o_orderkey, o_orderdate    o_orderdate is date32, without nulls
#include "tools/quern/query/file_query.h"

#include <arrow/api.h>
#include <arrow/c/bridge.h>

#include <set>
#include <utility>

#include "codegen/machine/profile.h"
#include "runtime/base/counters.h"
#include "runtime/base/status.h"
#include "runtime/spill/spill_store.h"
#include "tools/frontend/errors.h"
#include "tools/quern/files/batches.h"
#include "tools/quern/files/input_columns.h"
#include "tools/quern/files/table_io.h"
#include "tools/query/key_columns.h"
#include "tools/query/query_parameters.h"
#include "tools/query/wanted_names.h"

namespace quern::cli {
namespace {

// The columns of a table that a query mentions, with the table's letters; at least one, by which rows are counted.
std::vector<std::string> ColumnsToRead(const query::QueryText& text, const std::string& table,
                                       const std::vector<std::string>& columns) {
  const query::WantedNames wanted = query::WantedOfTable(text, table);
  std::vector<std::string> names;
  for (const std::string& column : columns)
    if (wanted.Has(column)) names.push_back(column);
  if (names.empty() && !columns.empty()) names.push_back(columns.front());
  return names;
}

absl::StatusOr<std::shared_ptr<arrow::Schema>> SchemaOf(const query::QueryRows& rows) {
  arrow::FieldVector fields;
  for (const query::QueryColumn& column : rows.columns) {
    ArrowSchema schema = {};
    schema.format = column.format.c_str();
    schema.release = [](ArrowSchema* released) { released->release = nullptr; };
    QUERN_ASSIGN_OR_RETURN_ARROW(auto type, arrow::ImportType(&schema), "cannot make a type: " + column.format);
    fields.push_back(arrow::field(column.name, std::move(type), column.type->nullable));
  }
  return arrow::schema(std::move(fields));
}

absl::StatusOr<std::shared_ptr<arrow::Table>> TableOfRows(query::QueryRows rows) {
  QUERN_ASSIGN_OR_RETURN(const auto schema, SchemaOf(rows));
  std::vector<RecordBatchPointer> batches;
  for (ArrowArray& batch : rows.batches) {
    QUERN_ASSIGN_OR_RETURN_ARROW(RecordBatchPointer imported, arrow::ImportRecordBatch(&batch, schema),
                                 "cannot import a result batch: " + std::to_string(batch.length) + " rows");
    batches.push_back(std::move(imported));
  }
  return TableOf(schema, {std::move(batches)});
}

}  // namespace

struct FileQuery::Rows {
  std::vector<RecordBatchPointer> batches;
  std::vector<ArrowArray> arrays;
  query::TableRows rows;

  ~Rows() {
    for (ArrowArray& array : arrays) array.release(&array);
  }
};

absl::Status FileQuery::ReadTable(const QueryTableFile& file) {
  QUERN_ASSIGN_OR_RETURN(const TableInput input, TableInput::Open(file.name, file.path));
  QUERN_ASSIGN_OR_RETURN(const auto table, input.Read(ColumnsToRead(text_, file.name, input.column_names())));
  ArrowSchema schema;
  QUERN_RETURN_IF_ARROW_ERROR(arrow::ExportSchema(*table->schema(), &schema), "cannot export a schema: " + file.path);
  query::QueryTable described{file.name, query::ColumnsOf(schema)};
  schema.release(&schema);
  for (size_t c = 0; c < described.columns.size(); ++c)
    if (described.columns[c].type.has_value())
      described.columns[c].type->nullable = HasNulls(*table->column(static_cast<int>(c)));
  // Behind those that were read, the names of the others, for errors.
  for (const std::string& name : input.column_names())
    if (table->schema()->GetFieldIndex(name) < 0) described.columns.push_back({name, "", std::nullopt});
  auto rows = std::make_shared<Rows>();
  QUERN_ASSIGN_OR_RETURN(rows->batches, CutIntoBatches(table));
  for (const RecordBatchPointer& batch : rows->batches) {
    ArrowArray array;
    QUERN_RETURN_IF_ARROW_ERROR(arrow::ExportRecordBatch(*batch, &array), "cannot export a batch: " + file.path);
    rows->arrays.push_back(array);
  }
  for (const ArrowArray& array : rows->arrays) rows->rows.batches.push_back(&array);
  rows->rows.num_rows = static_cast<uint64_t>(table->num_rows());
  described.num_rows = rows->rows.num_rows;
  described.is_key = [rows, columns = described.columns](size_t column) {
    return query::IsKeyColumn(rows->rows, static_cast<uint32_t>(column), columns[column]);
  };
  tables_.push_back(std::move(described));
  rows_.push_back(std::move(rows));
  return absl::OkStatus();
}

absl::Status FileQuery::Read() {
  for (const QueryTableFile& file : files_) QUERN_RETURN_IF_ERROR(ReadTable(file));
  const absl::StatusOr<Fusion> fusion = query::FusionOf(given_);
  if (!fusion.ok()) return CommandError(std::string(fusion.status().message()));
  absl::StatusOr<query::QueryPlan> plan = query::QueryPlan::Make(text_, tables_, *fusion);
  if (!plan.ok()) return CommandError(path_ + ": " + std::string(plan.status().message()));
  plan_ = *std::move(plan);
  const absl::Status set = query::SetParameters(given_, ProfileOfProcess().get(), &plan_);
  return set.ok() ? set : CommandError(std::string(set.message()));
}

// A table that several pipelines read is read from its file once.
uint64_t FileQuery::rows_in() const {
  std::set<size_t> read;
  for (const query::PlannedPipeline& pipeline : plan_.pipelines)
    if (pipeline.reads_table) read.insert(pipeline.source);
  uint64_t num_rows = 0;
  for (const size_t table : read) num_rows += rows_[table]->rows.num_rows;
  return num_rows;
}

std::vector<query::TableRows> FileQuery::Tables() const {
  std::vector<query::TableRows> tables;
  for (const auto& rows : rows_) tables.push_back(rows->rows);
  return tables;
}

absl::StatusOr<std::string> FileQuery::Explain(const RunOptions&) const { return plan_.Explain(tables_); }

absl::Status FileQuery::Compile(const RunOptions& options, RunStats* stats) {
  Stopwatch watch;
  QUERN_ASSIGN_OR_RETURN(prepared_, query::PreparedQuery::Make(plan_, Tables(), options.compile, threads_));
  stats->compile_ms = watch.Lap();
  stats->spec = path_;
  stats->plan_json = "{}";
  stats->cache = "";
  return absl::OkStatus();
}

absl::StatusOr<OperatorResult> FileQuery::Run(const std::shared_ptr<MemoryBudget>& budget, Progress* progress) {
  Stopwatch watch;
  progress->Begin("run", 0);
  std::shared_ptr<SpillContext> spill;
  if (spill_folder_.has_value()) {
    spill = std::make_shared<SpillContext>(std::make_unique<TemporaryFiles>(*spill_folder_, 0), budget);
    progress->ShowSpilled([spill] { return spill->stats().written_bytes; });
  }
  const query::RunQueryOptions options{threads_, budget, nullptr, spill};
  absl::StatusOr<query::QueryRows> rows = prepared_->Run(Tables(), options, &stats_);
  QUERN_RETURN_IF_ERROR(AsDataError(rows.status()));
  if (spill != nullptr) spilled_ = spill->stats();
  OperatorResult result;
  result.num_rows = rows->num_rows;
  result.threads = threads_;
  if (!count_) {
    QUERN_ASSIGN_OR_RETURN(result.table, TableOfRows(*std::move(rows)));
  }
  result.run_ms = watch.Lap();
  return result;
}

void FileQuery::AddStats(RunStats* stats) { stats->engine = prepared_->engine() == Engine::kJit ? "jit" : "generic"; }

void FileQuery::AddFields(const RunStats&, JsonObject* json) const {
  std::vector<std::string> steps(stats_.size());
  for (const query::StepCounters& counted : prepared_->counters()) {
    JsonObject one;
    one.Count("step", counted.step).Text("spec", counted.spec);
#define QUERN_COUNTER(id, name, meaning) one.Count(#name, counted.counters.name);
#include "runtime/base/counters.def"
    std::string& of_pipeline = steps[counted.pipeline];
    of_pipeline += (of_pipeline.empty() ? "" : ", ") + one.Text("tier", TierText(counted.counters)).Finish();
  }
  std::string pipelines;
  for (size_t i = 0; i < stats_.size(); ++i) {
    JsonObject one;
    one.Text("relation", plan_.pipelines[i].relation)
        .Count("rows_in", stats_[i].rows_in)
        .Count("rows_out", stats_[i].rows_out)
        .Milliseconds("ms", stats_[i].milliseconds)
        .Json("steps", "[" + steps[i] + "]");
    pipelines += (pipelines.empty() ? "" : ", ") + one.Finish();
  }
  if (spill_folder_.has_value()) AddSpillStats(spilled_, json);
  json->Json("pipelines", "[" + pipelines + "]");
}

}  // namespace quern::cli
