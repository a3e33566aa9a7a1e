// SPDX-License-Identifier: Apache-2.0
// Maps as jobs: ROWS takes a batch at an output and gives its computed columns, row by row in the order of the batch.
// They keep nothing from one batch to the next. Any number of outputs may run at the same time.
//
// An Arrow array of a result has the formats of expressions (expression_units.h). Errors name a row by its id.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "hosts/c/arrow_fields.h"
#include "hosts/c/job.h"
#include "hosts/c/jobs/growing_output.h"
#include "hosts/c/jobs/value_formats.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/map/row_mapper.h"
#include "runtime/spec/expression_units.h"

namespace quern::c_abi {
namespace {

class MapOutput final : public GrowingOutput {
 public:
  MapOutput(std::shared_ptr<const RowMapper> mapper, const MapSpec& spec, const OutputOptions& options,
            const std::shared_ptr<MemoryBudget>& budget)
      : GrowingOutput(MapOutputTypes(spec), options.batch_rows, budget), reader_(std::move(mapper), budget) {}

  absl::Status Push(BatchView batch, const BatchTypes& /*types*/) override {
    state.reset();
    FitRows(std::min(batch.num_rows, thresholds::kMorselRows));
    has_batch_ = false;
    const uint64_t first_row = batch.first_row_id == kCountedRowIds ? rows_seen_ : batch.first_row_id;
    rows_seen_ += batch.num_rows;
    QUERN_RETURN_IF_ERROR(reader_.SetInput(std::move(batch), first_row));
    has_batch_ = true;
    state = QUERN_RESULT_MORE;
    return absl::OkStatus();
  }

  absl::StatusOr<quern_result_state> Fill(quern_result* /*result*/) override {
    if (!has_batch_) {
      QUERN_RETURN_IF_ERROR(rows->Reset());
      rows->set_num_rows(0);
      return QUERN_RESULT_NEEDS_INPUT;
    }
    QUERN_ASSIGN_OR_RETURN(has_batch_, reader_.Next(rows.get()));
    return has_batch_ ? QUERN_RESULT_MORE : QUERN_RESULT_NEEDS_INPUT;
  }

 private:
  MapReader reader_;
  bool has_batch_ = false;
  uint64_t rows_seen_ = 0;  // of the batches so far: the next one's first row id where it has none of its own
};

class MapJob final : public Job {
 public:
  MapJob(const MapSpec& spec, const CompiledKernel& compiled, const quern_job_options& options)
      : Job(compiled, options, "map"), spec_(spec), mapper_(MakeRowMapper(kernel)) {
    ports.push_back({QUERN_PORT_ROWS, "input", {MapInputTypes(spec_), {}}});
  }

  absl::StatusOr<std::unique_ptr<JobOutput>> NewOutput(quern_port port, const OutputOptions& options) override {
    if (port != QUERN_PORT_ROWS) return NoSuchPort(port, "QUERN_PORT_ROWS for outputs");
    return std::make_unique<MapOutput>(mapper_, spec_, options, budget);
  }

  Kept kept(quern_port /*port*/) const override { return Kept::kNothing; }
  Counters counters() const override { return mapper_->counters(); }
  const RowMapper* mapper() const override { return mapper_.get(); }
  bool TakesBatches(quern_port port) const override { return port == QUERN_PORT_ROWS; }

  absl::Status CheckBindings() const override {
    if (!ports.front().binding.has_value()) return absl::OkStatus();
    const std::vector<std::string> formats = FormatsOf(ports.front().binding->keys);
    QUERN_RETURN_IF_ERROR(CheckValueFormats(spec_.columns, formats, "map input"));
    for (const Expression& result : spec_.results) QUERN_RETURN_IF_ERROR(CheckUnits(result, formats));
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<ResultField>> ResultFields(quern_port port) const override {
    if (port != QUERN_PORT_ROWS) return NoSuchPort(port, "QUERN_PORT_ROWS");
    const PortBinding& binding = *ports.front().binding;
    const std::vector<std::string> formats = FormatsOf(binding.keys);
    std::vector<ResultField> fields;
    for (const Expression& result : spec_.results) {
      const bool is_column = result.kind == ExpressionKind::kColumn;
      fields.push_back({is_column ? binding.keys[result.column].name : PrintExpression(result),
                        FormatOf(result, formats), result.type.nullable});
    }
    return fields;
  }

 private:
  const MapSpec& spec_;
  const std::shared_ptr<const RowMapper> mapper_;
};

}  // namespace

NewJobResult NewJob(const MapSpec& spec, const CompiledKernel& compiled, const quern_job_options& options) {
  return std::make_shared<MapJob>(spec, compiled, options);
}

}  // namespace quern::c_abi
