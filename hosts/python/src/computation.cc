// SPDX-License-Identifier: Apache-2.0
// A map's job keeps nothing between batches, so each batch has an output of its own, on whatever thread. For rows 3 and
// 7 of a batch of 65,536 the kernel reads these two alone, and the results have two rows.
#include "computation.h"

#include <numeric>
#include <stdexcept>
#include <utility>

#include "errors.h"
#include "results.h"

namespace quern::python {

Computation::Computation(const KernelHandle& kernel, const std::vector<Field>& fields, std::vector<uint32_t> columns)
    : columns_(std::move(columns)), job_(nullptr, quern_job_destroy) {
  quern_error error;
  quern_job* job = nullptr;
  Check(quern_job_create(kernel.get(), nullptr, &job, &error), error);
  job_.reset(job);
  std::vector<Field> children;
  for (const uint32_t column : columns_) children.push_back(fields.at(column));
  std::vector<int32_t> places(columns_.size());
  std::iota(places.begin(), places.end(), 0);
  ArrowSchema schema = {};
  ExportSchema(children, &schema);
  const quern_status status = quern_job_bind_arrow(job, QUERN_PORT_ROWS, &schema, places.data(), nullptr, &error);
  schema.release(&schema);
  Check(status, error);
  Check(quern_job_result_schema(job, QUERN_PORT_ROWS, &schema, &error), error);
  ResultShape all;
  for (int64_t i = 0; i < schema.n_children; ++i) {
    all.order.push_back(static_cast<uint32_t>(i));
    all.names.emplace_back();
  }
  fields_ = all.Fields(&schema);
}

std::vector<Column> Computation::Results(const Batch& batch, uint64_t first_row, const uint32_t* rows,
                                         uint64_t n) const {
  Batch input{batch.num_rows, {}};
  for (const uint32_t column : columns_) input.columns.push_back(batch.columns[column]);
  quern_error error;
  quern_output* made = nullptr;
  Check(quern_output_create(job_.get(), QUERN_PORT_ROWS, nullptr, &made, &error), error);
  const std::unique_ptr<quern_output, void (*)(quern_output*)> output(made, quern_output_destroy);
  ArrowArray array = {};
  ExportBatch(input, &array);
  const quern_arrow_rows selected = {sizeof(selected), rows, n, first_row};
  Check(quern_output_push_arrow(made, &array, &selected, &error), error);
  const quern_result* result = nullptr;
  array = {};
  Check(quern_output_next_arrow(made, &array, &result, &error), error);
  Batch results = ImportBatch(&array, fields_.size());
  if (results.num_rows != static_cast<int64_t>(n))
    throw std::invalid_argument("computed strings of 2 GiB and more in " + std::to_string(n) +
                                " rows; accepted: fewer, or large ones, as x::large_utf8");
  return std::move(results.columns);
}

}  // namespace quern::python
