// SPDX-License-Identifier: Apache-2.0
// Maps as jobs: ROWS takes a batch at an output and gives its computed columns, row by row in the order of the batch.
// They keep nothing from one batch to the next. Any number of outputs may run at the same time.
//
// An Arrow array of a result has the formats of expressions: d:15,2 of a decimal; units and zones of times are those of
// the first column of the type that the expression reads, or microseconds where it reads none.
#include <algorithm>
#include <string>
#include <utility>

#include "hosts/c/job.h"
#include "runtime/base/messages.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/map/row_mapper.h"

namespace quern::c_abi {
namespace {

// The rows for which a first result has room.
constexpr uint64_t kFewRows = 256;

class MapOutput final : public JobOutput {
 public:
  MapOutput(std::shared_ptr<const RowMapper> mapper, const MapSpec& spec, const OutputOptions& options,
            const std::shared_ptr<MemoryBudget>& budget)
      : JobOutput(MapOutputTypes(spec), std::min(options.batch_rows, kFewRows), budget),
        spec_(spec),
        batch_rows_(options.batch_rows),
        budget_(budget),
        reader_(std::move(mapper), budget) {}

  absl::Status Push(BatchView batch, const BatchTypes& /*types*/) override {
    state.reset();
    if (batch.num_rows > rows->capacity() && rows->capacity() < batch_rows_) {
      const uint64_t wanted = std::min({batch_rows_, batch.num_rows, thresholds::kMorselRows});
      rows = std::make_unique<OutputBatch>(MapOutputTypes(spec_), wanted, budget_);
    }
    has_batch_ = false;
    QUERN_RETURN_IF_ERROR(reader_.SetInput(std::move(batch)));
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
  const MapSpec& spec_;  // the kernel has it
  const uint64_t batch_rows_;
  const std::shared_ptr<MemoryBudget> budget_;
  MapReader reader_;
  bool has_batch_ = false;
};

std::string DecimalFormat(const ValueType& type) {
  return "d:" + std::to_string(type.digits) + "," + std::to_string(type.scale);
}

// The first column of this type that an expression reads; null if it reads none.
const Expression* FirstColumn(const Expression& e, TypeId id) {
  if (e.kind == ExpressionKind::kColumn && e.type.id == id) return &e;
  for (const Expression& argument : e.arguments)
    if (const Expression* column = FirstColumn(argument, id); column != nullptr) return column;
  return nullptr;
}

std::string FormatOf(const Expression& e, const PortBinding& binding) {
  if (e.type.id == TypeId::kDecimal128) return DecimalFormat(e.type);
  if (const Expression* column = FirstColumn(e, e.type.id); column != nullptr)
    return binding.keys[column->column].format;
  const std::string accepted(RowOf(e.type.id).arrow);
  if (e.type.id == TypeId::kTimestamp) return "tsu:";
  if (e.type.id == TypeId::kDuration) return "tDu";
  return accepted.substr(0, accepted.find('|'));
}

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
    const PortBinding& binding = *ports.front().binding;
    for (size_t i = 0; i < spec_.columns.size(); ++i) {
      const ValueType& type = spec_.columns[i];
      if (type.id != TypeId::kDecimal128 || binding.keys[i].format == DecimalFormat(type)) continue;
      return Wrong("format of map input column " + std::to_string(i), binding.keys[i].format, DecimalFormat(type));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<ResultField>> ResultFields(quern_port port) const override {
    if (port != QUERN_PORT_ROWS) return NoSuchPort(port, "QUERN_PORT_ROWS");
    std::vector<ResultField> fields;
    for (const Expression& result : spec_.results) {
      const bool is_column = result.kind == ExpressionKind::kColumn;
      const PortBinding& binding = *ports.front().binding;
      fields.push_back({is_column ? binding.keys[result.column].name : PrintExpression(result),
                        FormatOf(result, binding), result.type.nullable});
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
