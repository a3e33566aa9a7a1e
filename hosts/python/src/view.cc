// SPDX-License-Identifier: Apache-2.0
// The view between a source and a kernel. For
//
//     quern.aggregate(t, by="k", aggs="count(*) filter (where x > 5)", where="day < 1998-09-02")       t: k, x, day
//
// the view makes column 3 from column 1 (the test x > 5), selects rows by a test of column 2, and passes columns 0 and
// 3 on. A thread processes a whole morsel of 65,536 rows at once: casts and tests first, then the condition. The rows
// that satisfy it stay in place: their numbers go to the kernel with the columns. They are gathered only where they are
// the result, of a filter and a map, or stand beside computed columns, as in an aggregation of expressions.
#include "view.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "column_making.h"
#include "errors.h"

namespace quern::python {

Test::Test(const KernelHandle& kernel, const std::vector<Field>& fields, const std::vector<uint32_t>& columns)
    : filter_(nullptr, quern_job_destroy) {
  std::vector<int32_t> places;
  std::vector<Field> children;
  for (const uint32_t column : columns) {
    const auto found = std::find(children_.begin(), children_.end(), column);
    places.push_back(static_cast<int32_t>(found - children_.begin()));
    if (found != children_.end()) continue;
    children_.push_back(column);
    children.push_back(fields.at(column));
  }
  quern_error error;
  quern_job* filter = nullptr;
  Check(quern_job_create(kernel.get(), nullptr, &filter, &error), error);
  filter_.reset(filter);
  ArrowSchema schema = {};
  ExportSchema(children, &schema);
  const quern_status status = quern_job_bind_arrow(filter, QUERN_PORT_ROWS, &schema, places.data(), nullptr, &error);
  schema.release(&schema);
  Check(status, error);
}

uint64_t Test::Answer(const Batch& batch, uint32_t* rows, uint8_t* bitmap) const {
  Batch input{batch.num_rows, {}};
  for (const uint32_t child : children_) input.columns.push_back(batch.columns[child]);
  ArrowArray array = {};
  ExportBatch(input, &array);
  uint64_t num_rows = 0;
  quern_error error;
  const quern_status status = quern_job_filter_arrow(filter_.get(), &array, nullptr, rows, bitmap, &num_rows, &error);
  array.release(&array);
  Check(status, error);
  return num_rows;
}

uint64_t Test::Select(const Batch& batch, uint32_t* rows) const { return Answer(batch, rows, nullptr); }

std::vector<uint8_t> Test::Bits(const Batch& batch) const {
  std::vector<uint8_t> bits(static_cast<size_t>(batch.num_rows + 7) / 8);
  Answer(batch, nullptr, bits.data());
  return bits;
}

uint32_t View::AddCast(uint32_t column, const std::string& format) {
  Field field = fields_.at(column);
  field.format = format;
  field.dictionary.clear();
  fields_.push_back(std::move(field));
  steps_.emplace_back(Cast{column, format});
  return static_cast<uint32_t>(fields_.size() - 1);
}

uint32_t View::AddTest(const KernelHandle& kernel, const std::vector<uint32_t>& columns) {
  steps_.emplace_back(std::in_place_type<Test>, kernel, fields_, columns);
  fields_.push_back({"", "b", "", false, false});
  return static_cast<uint32_t>(fields_.size() - 1);
}

uint32_t View::SetComputation(const KernelHandle& kernel, std::vector<uint32_t> columns) {
  computation_ = std::make_unique<Computation>(kernel, fields_, std::move(columns));
  const auto first = static_cast<uint32_t>(fields_.size());
  fields_.insert(fields_.end(), computation_->fields().begin(), computation_->fields().end());
  return first;
}

void View::SetWhere(const KernelHandle& kernel, const std::vector<uint32_t>& columns) {
  where_ = std::make_unique<Test>(kernel, fields_, columns);
}

void View::SetOutput(std::vector<uint32_t> columns) {
  output_fields_.clear();
  for (const uint32_t column : columns) output_fields_.push_back(fields_.at(column));
  output_ = std::move(columns);
}

Taken View::Take(Batch batch, uint64_t first_row, RowRoom* room) const {
  for (const auto& step : steps_) {
    const Cast* const cast = std::get_if<Cast>(&step);
    if (cast != nullptr)
      batch.columns.push_back(CastColumn(batch.columns[cast->column], fields_[cast->column], cast->format));
    else batch.columns.push_back(BitColumn(std::get<Test>(step).Bits(batch), batch.num_rows));
  }
  Taken taken{{batch.num_rows, {}}, nullptr, static_cast<uint64_t>(batch.num_rows)};
  if (where_ != nullptr) {
    taken.rows = room->For(batch.num_rows);
    taken.num_rows = where_->Select(batch, room->For(batch.num_rows));
    if (taken.num_rows == static_cast<uint64_t>(batch.num_rows)) taken.rows = nullptr;
  }
  if (computation_ != nullptr) return WithResults(std::move(batch), first_row, std::move(taken));
  for (const uint32_t column : output_) taken.batch.columns.push_back(batch.columns[column]);
  return taken;
}

// Results have the rows alone that come out, and so have the other columns beside them.
Taken View::WithResults(Batch batch, uint64_t first_row, Taken taken) const {
  taken.batch.num_rows = static_cast<int64_t>(taken.num_rows);
  if (taken.num_rows == 0) return taken;
  const size_t first = batch.columns.size();
  for (Column& column : computation_->Results(batch, first_row, taken.rows, taken.num_rows))
    batch.columns.push_back(std::move(column));
  for (const uint32_t column : output_) {
    const bool is_whole = column >= first || taken.rows == nullptr;
    taken.batch.columns.push_back(
        is_whole ? batch.columns[column]
                 : GatherColumn(batch.columns[column], fields_[column], taken.rows, taken.num_rows));
  }
  taken.rows = nullptr;
  return taken;
}

Batch View::Gather(Batch batch, uint64_t first_row, RowRoom* room) const {
  Taken taken = Take(std::move(batch), first_row, room);
  if (taken.rows == nullptr || taken.batch.columns.empty()) return std::move(taken.batch);
  Batch gathered{static_cast<int64_t>(taken.num_rows), {}};
  for (size_t i = 0; i < output_.size(); ++i) {
    gathered.columns.push_back(GatherColumn(taken.batch.columns[i], output_fields_[i], taken.rows, taken.num_rows));
  }
  return gathered;
}

}  // namespace quern::python
