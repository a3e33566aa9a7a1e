// SPDX-License-Identifier: Apache-2.0
// Pieces of a batch pass from step to step by calls: Run of a step makes its rows and calls Run of the next.
//
//     Append(batch of 65,536 rows)
//       piece 0, rows 0 .. 4095         filter: 4,021 rows ─> map: two columns ─> probe: 2,300 + 1,700 rows ─> sink,
//       twice piece 1, ..
//
// Columns of a piece lie in the batch, or in results of steps, and rows are selected by number. A filter thus copies
// nothing. A map computes the selected rows one after the other, and puts its results where the rows are, so that one
// selection serves all columns. A probe copies its payload, as it does for a host.
#include "runtime/pipeline/pipeline.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "runtime/base/messages.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/rows/output_batch.h"

namespace quern {
namespace {

// ---- types ----

std::string ShowType(const ColumnType& type) { return PrintType(type) + (type.nullable ? ":nullable" : ""); }

// Whether a column of the type may be read as one of `wanted`. A collation is the reader's. Row ids are u64.
bool Fits(ColumnType type, const ColumnType& wanted) {
  if (type.nullable && !wanted.nullable) return false;
  if (type.id == TypeId::kRowId) type.id = TypeId::kU64;
  type.nullable = wanted.nullable;
  type.collation = wanted.collation;
  return type == wanted;
}

absl::Status CheckColumns(const std::vector<uint32_t>& numbers, const std::vector<ColumnType>& wanted,
                          const std::vector<ColumnType>& types, const std::string& what) {
  if (numbers.size() != wanted.size())
    return Wrong("number of " + what, std::to_string(numbers.size()), std::to_string(wanted.size()));
  for (size_t i = 0; i < numbers.size(); ++i) {
    const std::string name = what + "[" + std::to_string(i) + "]";
    if (numbers[i] >= types.size()) {
      return Wrong(name, "column " + std::to_string(numbers[i]),
                   types.empty() ? "none" : "0 to " + std::to_string(types.size() - 1));
    }
    if (wanted[i].id != TypeId::kRowId && !Fits(types[numbers[i]], wanted[i]))
      return Wrong(name, "column " + std::to_string(numbers[i]) + " of " + ShowType(types[numbers[i]]),
                   ShowType(wanted[i]));
  }
  return absl::OkStatus();
}

std::vector<ColumnType> TypesOf(const std::vector<KeySpec>& keys) {
  std::vector<ColumnType> types;
  for (const KeySpec& key : keys) types.push_back(key.type);
  return types;
}

std::vector<ColumnType> ProbePayload(const JoinSpec& spec) {
  std::vector<ColumnType> types = spec.probe;
  for (const ResidualSpec& residual : spec.residual) types.push_back(residual.type);
  return types;
}

// Columns of any type: of a row id all that is checked is that the column is there.
absl::Status TakeTypes(const std::vector<uint32_t>& numbers, const std::vector<ColumnType>& types,
                       const std::string& what, std::vector<ColumnType>* taken) {
  ColumnType any;
  any.id = TypeId::kRowId;
  QUERN_RETURN_IF_ERROR(CheckColumns(numbers, std::vector<ColumnType>(numbers.size(), any), types, what));
  for (const uint32_t number : numbers) taken->push_back(types[number]);
  return absl::OkStatus();
}

// ---- rows ----

// Rows on their way: columns, and which of their rows.
struct Rows {
  std::vector<QuernColumn> columns;
  const uint32_t* selection = nullptr;  // null: rows 0 .. num_rows-1
  uint64_t num_rows = 0;
  uint64_t first_row_id = kCountedRowIds;
  uint64_t first_row = 0;             // what errors call row 0: its id or, behind a probe, its number in the results
  std::shared_ptr<const void> owner;  // of the columns, where a sink keeps them
  uint64_t num_present = 0;           // rows 0 .. num_present-1 of the columns may be read, selected or not

  // More than the highest row number.
  uint64_t RowSpan() const {
    return selection == nullptr || num_rows == 0 ? num_rows
                                                 : uint64_t{*std::max_element(selection, selection + num_rows)} + 1;
  }
};

void Bind(const std::vector<uint32_t>& numbers, const std::vector<QuernColumn>& columns,
          std::vector<QuernColumn>* bound) {
  bound->resize(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) (*bound)[i] = columns[numbers[i]];
}

void BindRows(const StepColumns& by, const Rows& rows, BatchView* batch) {
  Bind(by.keys, rows.columns, &batch->keys);
  Bind(by.payload, rows.columns, &batch->payload);
  batch->selection = rows.selection;
  batch->num_rows = rows.num_rows;
  batch->first_row_id = rows.first_row_id;
  batch->owner = rows.owner;
}

QuernColumn AsColumn(const QuernOutColumn& column) {
  QuernColumn as = {};
  as.validity = column.validity;
  as.values = column.values;
  as.offsets = column.offsets;
  return as;
}

}  // namespace

// ---- making one ----

absl::StatusOr<std::shared_ptr<const Pipeline>> Pipeline::Make(std::vector<ColumnType> source,
                                                               std::vector<PipelineStep> steps, PipelineSink sink) {
  auto made = std::shared_ptr<Pipeline>(new Pipeline());
  made->types_.push_back(std::move(source));
  made->steps_ = std::move(steps);
  made->sink_ = std::move(sink);
  QUERN_RETURN_IF_ERROR(made->Check());
  return std::shared_ptr<const Pipeline>(std::move(made));
}

absl::Status Pipeline::Check() {
  for (size_t i = 0; i < steps_.size(); ++i) QUERN_RETURN_IF_ERROR(CheckStep(i));
  const std::vector<ColumnType>& types = types_.back();
  if (sink_.takes_all_types) {
    QUERN_RETURN_IF_ERROR(TakeTypes(sink_.columns.keys, types, "keys of the sink", &sink_.keys));
    return TakeTypes(sink_.columns.payload, types, "payload of the sink", &sink_.payload);
  }
  QUERN_RETURN_IF_ERROR(CheckColumns(sink_.columns.keys, sink_.keys, types, "keys of the sink"));
  return CheckColumns(sink_.columns.payload, sink_.payload, types, "payload of the sink");
}

// Also adds the types behind the step.
absl::Status Pipeline::CheckStep(size_t i) {
  const PipelineStep& step = steps_[i];
  const std::string of = " of step " + std::to_string(i);
  std::vector<ColumnType> types = types_.back();
  if (const auto* filter = std::get_if<std::shared_ptr<const RowFilter>>(&step.op)) {
    QUERN_RETURN_IF_ERROR(CheckColumns(step.columns.keys, (*filter)->descriptor().columns(), types, "columns" + of));
  } else if (const auto* mapper = std::get_if<std::shared_ptr<const RowMapper>>(&step.op)) {
    const MapDescriptor& map = (*mapper)->descriptor();
    QUERN_RETURN_IF_ERROR(CheckColumns(step.columns.keys, map.columns(), types, "columns" + of));
    types.insert(types.end(), map.results().begin(), map.results().end());
  } else {
    const JoinSpec& join = std::get<std::shared_ptr<const HashJoin>>(step.op)->descriptor().spec();
    QUERN_RETURN_IF_ERROR(CheckColumns(step.columns.keys, TypesOf(join.keys), types, "keys" + of));
    QUERN_RETURN_IF_ERROR(CheckColumns(step.columns.payload, ProbePayload(join), types, "payload" + of));
    types = JoinOutputTypes(join);
  }
  types_.push_back(std::move(types));
  return absl::OkStatus();
}

// ---- steps of one thread ----

class PipelineInput::Step {
 public:
  explicit Step(const StepColumns& columns) : columns_(columns) {}
  virtual ~Step() = default;
  virtual absl::Status Run(Rows* rows) = 0;
  virtual void BeginPiece(bool /*is_again*/) {}

  Step* next = nullptr;  // null: this is the sink

 protected:
  const StepColumns& columns_;  // the pipeline has it
  BatchView batch_;             // used again and again
};

class PipelineInput::FilterStep final : public Step {
 public:
  FilterStep(const StepColumns& columns, std::shared_ptr<const RowFilter> filter)
      : Step(columns), filter_(std::move(filter)) {}

  absl::Status Run(Rows* rows) override {
    BindRows(columns_, *rows, &batch_);
    if (selected_.size() < rows->num_rows) selected_.resize(rows->num_rows);
    QUERN_ASSIGN_OR_RETURN(const uint64_t passed, filter_->Select(batch_, selected_.data()));
    if (passed == 0) return absl::OkStatus();
    const bool passes_all = passed == rows->num_rows && rows->selection == nullptr;
    if (!passes_all) rows->selection = selected_.data();
    rows->num_rows = passed;
    return next->Run(rows);
  }

 private:
  const std::shared_ptr<const RowFilter> filter_;
  std::vector<uint32_t> selected_;
};

class PipelineInput::MapStep final : public Step {
 public:
  MapStep(const StepColumns& columns, std::shared_ptr<const RowMapper> mapper, std::shared_ptr<MemoryBudget> budget)
      : Step(columns),
        types_(mapper->descriptor().results()),
        budget_(std::move(budget)),
        reader_(std::move(mapper), budget_) {}

  absl::Status Run(Rows* rows) override {
    BindRows(columns_, *rows, &batch_);
    first_row_ = rows->first_row;
    const OutputBatch* results = nullptr;
    // Most rows are selected: computing all of them costs less than gathering these. Where a row fails that is not
    // selected, or one that is, the selected ones tell.
    const bool computes_all = rows->selection != nullptr && rows->num_present != 0 &&
                              thresholds::kComputedShare * rows->num_rows >= rows->num_present;
    if (rows->selection == nullptr || (computes_all && Compute(nullptr, rows->num_present).ok())) {
      if (rows->selection == nullptr) QUERN_RETURN_IF_ERROR(Compute(nullptr, rows->num_rows));
      results = results_.get();
    } else {
      QUERN_RETURN_IF_ERROR(Compute(rows->selection, rows->num_rows));
      QUERN_RETURN_IF_ERROR(Fit(rows->RowSpan(), &spread_));
      QUERN_RETURN_IF_ERROR(spread_->Reset());
      for (size_t c = 0; c < types_.size(); ++c) Spread(c, *rows);
      results = spread_.get();
    }
    for (size_t c = 0; c < types_.size(); ++c) rows->columns.push_back(AsColumn(results->column(c)));
    return next->Run(rows);
  }

 private:
  absl::Status Compute(const uint32_t* selection, uint64_t num_rows) {
    QUERN_RETURN_IF_ERROR(Fit(num_rows, &results_));
    batch_.selection = selection;
    batch_.num_rows = num_rows;
    QUERN_RETURN_IF_ERROR(reader_.SetInput(batch_, first_row_));
    return reader_.Next(results_.get()).status();
  }

  absl::Status Fit(uint64_t num_rows, std::unique_ptr<OutputBatch>* out) {
    if (*out != nullptr && (*out)->capacity() >= num_rows) return absl::OkStatus();
    *out = std::make_unique<OutputBatch>(types_, std::max<uint64_t>(num_rows, 8), budget_);
    return absl::OkStatus();
  }

  // Puts result i where the i-th selected row is.
  void Spread(size_t c, const Rows& rows) {
    const QuernOutColumn &from = results_->column(c), &to = spread_->column(c);
    switch (RowOf(types_[c].id).width_bytes) {
      case 1: SpreadValues<uint8_t>(from.values, to.values, rows); break;
      case 2: SpreadValues<uint16_t>(from.values, to.values, rows); break;
      case 4: SpreadValues<uint32_t>(from.values, to.values, rows); break;
      case 8: SpreadValues<uint64_t>(from.values, to.values, rows); break;
      case 16: SpreadValues<unsigned __int128>(from.values, to.values, rows); break;
      default: SpreadBits(static_cast<const uint8_t*>(from.values), static_cast<uint8_t*>(to.values), rows); break;
    }
    if (types_[c].nullable) SpreadBits(from.validity, to.validity, rows);
  }

  template <class T>
  static void SpreadValues(const void* from, void* to, const Rows& rows) {
    for (uint64_t i = 0; i < rows.num_rows; ++i) {
      T value;
      std::memcpy(&value, static_cast<const uint8_t*>(from) + i * sizeof(T), sizeof(T));
      std::memcpy(static_cast<uint8_t*>(to) + uint64_t{rows.selection[i]} * sizeof(T), &value, sizeof(T));
    }
  }

  // Into bits that are 0.
  static void SpreadBits(const uint8_t* from, uint8_t* to, const Rows& rows) {
    for (uint64_t i = 0; i < rows.num_rows; ++i) {
      const uint32_t row = rows.selection[i];
      const uint32_t bit = from[i / 8] >> i % 8 & 1;
      to[row / 8] = static_cast<uint8_t>(to[row / 8] | bit << row % 8);
    }
  }

  const std::vector<ColumnType> types_;
  const std::shared_ptr<MemoryBudget> budget_;
  MapReader reader_;
  uint64_t first_row_ = 0;
  std::unique_ptr<OutputBatch> results_, spread_;
};

class PipelineInput::ProbeStep final : public Step {
 public:
  // keeps_strings: the sink may point to strings of the results, which then stay as long as it wants.
  ProbeStep(const PipelineStep& step, const std::shared_ptr<const HashJoin>& join, std::shared_ptr<MemoryBudget> budget,
            uint64_t piece_rows, bool keeps_strings)
      : Step(step.columns),
        types_(JoinOutputTypes(join->descriptor().spec())),
        budget_(std::move(budget)),
        piece_rows_(piece_rows),
        prober_(join, step.host_context) {
    for (const ColumnType& type : types_) keeps_results_ |= keeps_strings && IsVariable(RowOf(type.id).storage);
    view_bytes_.resize(types_.size());
  }

  void BeginPiece(bool is_again) override { prober_.BeginPiece(is_again); }

  absl::Status Run(Rows* rows) override {
    BindRows(columns_, *rows, &batch_);
    QUERN_RETURN_IF_ERROR(prober_.SetInput(batch_));
    for (bool more = true; more;) {
      if (out_ == nullptr || keeps_results_) out_ = std::make_shared<OutputBatch>(types_, piece_rows_, budget_);
      QUERN_ASSIGN_OR_RETURN(more, prober_.Next(out_.get()));
      if (out_->num_rows() == 0) continue;
      found_.columns.resize(types_.size());
      for (size_t c = 0; c < types_.size(); ++c) found_.columns[c] = ColumnOf(c);
      found_.selection = nullptr;
      found_.num_rows = found_.num_present = out_->num_rows();
      found_.owner = keeps_results_ ? out_ : nullptr;
      QUERN_RETURN_IF_ERROR(next->Run(&found_));
    }
    return absl::OkStatus();
  }

 private:
  QuernColumn ColumnOf(size_t c) {
    const QuernOutColumn& from = out_->column(c);
    QuernColumn column = AsColumn(from);
    const Storage storage = RowOf(types_[c].id).storage;
    view_bytes_[c] = from.bytes;
    if (storage == kView) column.buffers = &view_bytes_[c];
    else if (IsVariable(storage)) column.values = from.bytes;
    return column;
  }

  const std::vector<ColumnType> types_;
  const std::shared_ptr<MemoryBudget> budget_;
  const uint64_t piece_rows_;
  bool keeps_results_ = false;
  JoinProber prober_;
  std::shared_ptr<OutputBatch> out_;
  Rows found_;
  std::vector<const uint8_t*> view_bytes_;
};

class PipelineInput::SinkStep final : public Step {
 public:
  SinkStep(const StepColumns& columns, PipelineEnd* end) : Step(columns), end_(end) {}

  absl::Status Run(Rows* rows) override {
    BindRows(columns_, *rows, &batch_);
    return end_->Append(batch_);
  }

 private:
  PipelineEnd* const end_;
};

PipelineInput::PipelineInput(std::shared_ptr<const Pipeline> pipeline, const std::shared_ptr<MemoryBudget>& budget,
                             PipelineEnd* end, uint64_t piece_rows)
    : pipeline_(std::move(pipeline)), end_(end), piece_rows_(piece_rows) {
  for (const PipelineStep& step : pipeline_->steps()) {
    if (const auto* filter = std::get_if<std::shared_ptr<const RowFilter>>(&step.op))
      steps_.push_back(std::make_unique<FilterStep>(step.columns, *filter));
    else if (const auto* mapper = std::get_if<std::shared_ptr<const RowMapper>>(&step.op))
      steps_.push_back(std::make_unique<MapStep>(step.columns, *mapper, budget));
    else
      steps_.push_back(std::make_unique<ProbeStep>(step, std::get<std::shared_ptr<const HashJoin>>(step.op), budget,
                                                   piece_rows, pipeline_->sink().keeps_strings));
  }
  steps_.push_back(std::make_unique<SinkStep>(pipeline_->sink().columns, end));
  for (size_t i = 0; i + 1 < steps_.size(); ++i) steps_[i]->next = steps_[i + 1].get();
}

PipelineInput::~PipelineInput() = default;

absl::Status PipelineInput::Append(const BatchView& batch, uint64_t* taken_rows) {
  *taken_rows = 0;
  QUERN_RETURN_IF_ERROR(CheckBatch(batch, pipeline_->source().size(), 0));
  for (uint64_t at = 0; at < batch.num_rows; at += piece_rows_) {
    const uint64_t num_rows = std::min(piece_rows_, batch.num_rows - at);
    BatchView piece = SliceOf(batch, pipeline_->source(), {}, at, num_rows);
    Rows rows;
    rows.columns = std::move(piece.keys);
    rows.selection = piece.selection;
    rows.num_rows = num_rows;
    rows.num_present = piece.selection == nullptr ? num_rows : 0;
    rows.first_row_id = piece.first_row_id;
    if (piece.first_row_id != kCountedRowIds) rows.first_row = piece.first_row_id;
    else if (piece.selection == nullptr) rows.first_row = at;  // a selection has the numbers of the batch
    rows.owner = batch.owner;
    for (const std::unique_ptr<Step>& step : steps_) step->BeginPiece(is_again_);
    end_->BeginPiece();
    is_again_ = true;
    QUERN_RETURN_IF_ERROR(steps_.front()->Run(&rows));
    is_again_ = false;
    end_->EndPiece();
    *taken_rows += num_rows;
  }
  return absl::OkStatus();
}

}  // namespace quern
