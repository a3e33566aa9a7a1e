// SPDX-License-Identifier: Apache-2.0
// A spec says nothing of values, so they are made to let rows through:
//
//     filter i32 < 90 [$0]            $0: 41 .. 140, numbers around the filter's constants        half of the rows pass
//     probe .. keys=i64 [$1; ..]      the table has the keys 0 .. n-1; $1: 0 .. 1.5 n              two of three match
//     map .. [$2, $3]                 $2, $3: 1 .. 100, so that few results are too large, and nothing is divided by 0
//
// A column's way is followed from the source through filters, reductions and the payload of probes. Keys that a map
// computes are what they are. Of several keys of a join the widest distinguishes rows; the others are 0.
#include "codegen/tuning/pipeline_job.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "codegen/compiler.h"
#include "codegen/machine/profile.h"
#include "codegen/operators.h"
#include "codegen/pipeline_compiler.h"
#include "codegen/tuning/job_makers.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"

namespace quern {

uint32_t NumProbedTables(const PipelineSpec& spec) {
  return static_cast<uint32_t>(std::count_if(spec.steps.begin(), spec.steps.end(), [](const PipelineStepSpec& step) {
    return Is<JoinSpec>(step.spec) && !step.is_reduction;
  }));
}

namespace tuning {
namespace {

constexpr uint64_t kTableRows = uint64_t{1} << 18;
constexpr uint64_t kBytesOfTableRow = 64;
constexpr uint32_t kTextBytes = 16;
constexpr uint64_t kSomeNumbers = 100;
constexpr uint32_t kBitsOfFloat = 24;  // whole numbers up to 2^24

// What a column of the source is made of.
struct SourceColumn {
  Values values = Values::kNumber;
  uint64_t first = 1, last = kSomeNumbers;
  std::optional<__int128> least, most;  // constants of filters
};

// The number of different keys that the table of a join can have.
uint64_t MostKeys(const JoinSpec& spec) {
  const ColumnType& type = spec.keys[CarrierOf(spec.keys)].type;
  const TypeRow& row = RowOf(type.id);
  if (type.id == TypeId::kFixedBinary || IsVariable(row.storage)) return UINT64_MAX;
  const uint32_t bits = row.storage == kBit       ? 1
                        : type.id == TypeId::kF32 ? kBitsOfFloat
                        : row.width_bytes >= 8    ? 63
                                                  : row.width_bytes * 8 - 1;
  return uint64_t{1} << bits;
}

uint64_t TableRows(const JoinSpec& spec, uint64_t most) { return std::min(most, MostKeys(spec)); }

// Follows columns from the source through the steps.
class SourceColumns {
 public:
  SourceColumns(const PipelineSpec& spec, uint64_t most_table_rows)
      : most_table_rows_(most_table_rows), made_(spec.source.size()) {
    for (uint32_t c = 0; c < spec.source.size(); ++c) origins_.emplace_back(c);
  }

  void Pass(const PipelineStepSpec& step, size_t num_columns_behind) {
    if (const auto* filter = std::get_if<FilterSpec>(&step.spec)) {
      size_t next = 0;
      SeeConstants(filter->where, step.columns.keys, &next);
    } else if (const auto* join = std::get_if<JoinSpec>(&step.spec)) {
      SeeKeys(*join, step.columns.keys);
      if (!step.is_reduction) {
        std::vector<std::optional<uint32_t>> behind;
        for (size_t p = 0; p < join->probe.size(); ++p) behind.push_back(origins_[step.columns.payload[p]]);
        origins_ = std::move(behind);
      }
    }
    origins_.resize(num_columns_behind);
  }

  std::vector<SourceColumn> Take(const std::vector<PipelineColumn>& source) {
    for (size_t c = 0; c < made_.size(); ++c)
      if (made_[c].least.has_value()) SpreadAroundConstants(source[c].type, &made_[c]);
    return std::move(made_);
  }

 private:
  SourceColumn* Of(uint32_t column) { return origins_[column].has_value() ? &made_[*origins_[column]] : nullptr; }

  void SeeKeys(const JoinSpec& join, const std::vector<uint32_t>& keys) {
    const size_t carrier = CarrierOf(join.keys);
    for (size_t k = 0; k < keys.size(); ++k) {
      SourceColumn* const column = Of(keys[k]);
      if (column == nullptr || (k != carrier && column->first == 0)) continue;
      const uint64_t rows = TableRows(join, most_table_rows_);
      *column = k == carrier ? SourceColumn{Values::kNumber, 0, rows + rows / 2 - 1, {}, {}}
                             : SourceColumn{Values::kZero, 0, 0, {}, {}};
    }
  }

  // next: the number of the next column that the condition mentions.
  void SeeConstants(const Predicate& condition, const std::vector<uint32_t>& columns, size_t* next) {
    for (const Predicate& child : condition.children) SeeConstants(child, columns, next);
    if (!condition.children.empty()) return;
    SourceColumn* const column = Of(columns[(*next)++]);
    if (condition.kind == PredicateKind::kCompareColumns) ++*next;
    const LiteralForm form = FormOf(condition.column.id);
    const bool has_numbers = form == LiteralForm::kInteger || form == LiteralForm::kReal;
    if (column == nullptr || column->first == 0 || !has_numbers) return;
    for (const Literal& literal : condition.values) {
      constexpr double kMostReal = 1e15;
      const __int128 number = form == LiteralForm::kInteger
                                  ? literal.number
                                  : static_cast<__int128>(std::clamp(literal.real, -kMostReal, kMostReal));
      column->least = std::min(column->least.value_or(number), number);
      column->most = std::max(column->most.value_or(number), number);
    }
  }

  static void SpreadAroundConstants(const ColumnType& type, SourceColumn* column) {
    const __int128 half = std::max<__int128>(kSomeNumbers / 2, (*column->most - *column->least) / 2);
    __int128 highest = INT64_MAX;
    if (FormOf(type.id) == LiteralForm::kInteger) highest = std::min(highest, RangeOf(type.id).max);
    column->first = static_cast<uint64_t>(std::clamp<__int128>(*column->least - half + 1, 1, highest));
    column->last = static_cast<uint64_t>(
        std::clamp<__int128>(*column->most + half, static_cast<__int128>(column->first), highest));
  }

  const uint64_t most_table_rows_;
  std::vector<SourceColumn> made_;
  std::vector<std::optional<uint32_t>> origins_;  // of the columns in front of the next step: columns of the source
};

// Rows that have come to the end; null: they are emitted.
class CountingEnd final : public PipelineEnd {
 public:
  explicit CountingEnd(Sink* sink) : sink_(sink) {}
  absl::Status Append(const BatchView& batch) override {
    num_rows_ += batch.num_rows;
    return sink_ == nullptr ? absl::OkStatus() : sink_->Append(batch);
  }
  uint64_t num_rows() const { return num_rows_; }

 private:
  Sink* const sink_;
  uint64_t num_rows_ = 0;
};

}  // namespace

absl::Status PipelineJob::MakeSource(const PipelineSpec& spec) {
  QUERN_ASSIGN_OR_RETURN(const std::vector<std::vector<PipelineColumn>> columns, ColumnsOfPipeline(spec));
  SourceColumns ways(spec, most_table_rows_);
  for (size_t i = 0; i < spec.steps.size(); ++i) ways.Pass(spec.steps[i], columns[i + 1].size());
  const std::vector<SourceColumn> made = ways.Take(spec.source);
  std::vector<uint64_t> numbers(num_rows_);
  for (size_t c = 0; c < made.size(); ++c) {
    QUERN_ASSIGN_OR_RETURN(NumberColumn column, NumberColumn::Make(spec.source[c].type, made[c].values, kTextBytes, 0));
    QUERN_RETURN_IF_ERROR(column.CheckRows(num_rows_));
    QUERN_RETURN_IF_ERROR(CheckMemory(num_rows_ * column.RowBytes()));
    const uint64_t range = made[c].last - made[c].first + 1;
    for (uint64_t row = 0; row < num_rows_; ++row) numbers[row] = made[c].first + SplitMix(row + c * num_rows_) % range;
    column.Fill(numbers);
    source_.push_back(std::move(column));
  }
  return absl::OkStatus();
}

absl::Status PipelineJob::MakePipeline(const CompiledPipeline& compiled) {
  const PipelineSpec& spec = compiled.plan->spec;
  CompileOptions of_table;
  of_table.engine = Engine::kJit;
  of_table.overrides = {{"pipeline", std::to_string(std::clamp(NumProbedTables(spec), 1u, kMostTablesInTurn))}};
  std::vector<PipelineStep> steps;
  for (size_t i = 0; i < spec.steps.size(); ++i) {
    const PipelineStepSpec& of = spec.steps[i];
    PipelineStep step{.op = {}, .columns = of.columns, .is_reduction = of.is_reduction};
    if (const auto* join = std::get_if<JoinSpec>(&of.spec)) {
      const uint64_t rows = TableRows(*join, most_table_rows_);
      QUERN_RETURN_IF_ERROR(CheckMemory(rows * kBytesOfTableRow * 2));
      QUERN_ASSIGN_OR_RETURN(const CompiledKernel kernel, Compile(of.spec, of_table));
      QUERN_ASSIGN_OR_RETURN(step.op, MakeNumberedTable(kernel.kernel, rows));
    } else if (Is<FilterSpec>(of.spec)) {
      step.op = std::shared_ptr<const RowFilter>(MakeRowFilter(compiled.kernels[i].kernel));
    } else {
      step.op = MakeRowMapper(compiled.kernels[i].kernel);
    }
    steps.push_back(std::move(step));
  }
  PipelineSink sink{.keys = {}, .payload = {}, .values = {}, .columns = spec.end_columns, .takes_all_types = true};
  if (spec.end.has_value()) {
    sink = SinkOf(*spec.end, spec.end_columns);
    end_ = compiled.kernels.back().kernel;
  }
  QUERN_ASSIGN_OR_RETURN(pipeline_, Pipeline::Make(spec.source, std::move(steps), std::move(sink)));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<PipelineJob>> PipelineJob::Make(const std::string& spec, const PlanOverrides& params,
                                                               uint64_t num_rows, uint64_t max_bytes) {
  CompileOptions options;
  options.overrides = params;
  options.engine = Engine::kJit;
  QUERN_ASSIGN_OR_RETURN(const CompiledPipeline compiled, CompilePipeline(spec, options));
  std::unique_ptr<PipelineJob> job(new PipelineJob());
  job->num_rows_ = std::max<uint64_t>(num_rows, 1);
  job->most_table_rows_ =
      max_bytes == 0 ? kTableRows : std::clamp<uint64_t>(max_bytes / kBytesOfTableRow, 1, kTableRows);
  QUERN_RETURN_IF_ERROR(job->MakeSource(compiled.plan->spec));
  QUERN_RETURN_IF_ERROR(job->MakePipeline(compiled));
  QUERN_RETURN_IF_ERROR(job->Run(compiled.plan->piece_rows).status());  // pays for first touches
  return job;
}

std::shared_ptr<Sink> PipelineJob::NewEnd() const {
  if (end_ == nullptr) return nullptr;
  if (Is<JoinSpec>(end_->plan.spec)) return MakeHashJoin(end_, budget_);
  if (Is<SortSpec>(end_->plan.spec)) return MakeRowSort(end_, budget_);
  return MakeHashAggregate(end_, budget_);
}

absl::StatusOr<double> PipelineJob::Run(uint32_t piece_rows) {
  const std::shared_ptr<Sink> sink = NewEnd();
  CountingEnd end(sink.get());
  PipelineInput input(pipeline_, budget_, &end, piece_rows, /*grows=*/false);
  const double start = NowSeconds();
  for (uint64_t first = 0; first < num_rows_; first += thresholds::kMorselRows) {
    BatchView batch;
    batch.num_rows = std::min<uint64_t>(thresholds::kMorselRows, num_rows_ - first);
    for (const NumberColumn& column : source_) batch.keys.push_back(column.From(first));
    uint64_t taken_rows = 0;
    QUERN_RETURN_IF_ERROR(input.Append(batch, &taken_rows));
  }
  const double rows = static_cast<double>(num_rows_);
  const double ns = (NowSeconds() - start) * 1e9 / rows;
  share_of_rows_out_ = static_cast<double>(end.num_rows()) / rows;
  return std::max(ns, 1e-3);
}

}  // namespace tuning
}  // namespace quern
