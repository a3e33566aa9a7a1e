// SPDX-License-Identifier: Apache-2.0
// Maps as jobs: ROWS takes a batch at an output and gives its computed columns, row by row in the order of the batch.
// They keep nothing from one batch to the next. Any number of outputs may run at the same time.
//
// An Arrow array of a result has the formats of expressions: d:15,2 of a decimal; units and zones of times are those of
// the first column that the expression passes on, or microseconds where it passes on none.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "hosts/c/arrow_fields.h"
#include "hosts/c/job.h"
#include "hosts/c/jobs/growing_output.h"
#include "runtime/base/messages.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/map/row_mapper.h"

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
  MapReader reader_;
  bool has_batch_ = false;
};

std::string DecimalFormat(const ValueType& type) {
  return "d:" + std::to_string(type.digits) + "," + std::to_string(type.scale);
}

// The columns whose unit, and zone, an expression of the same type has: those that it passes on, not those that it only
// compares. Example: $2 and $3 of case_when(less($0,$1),$2,$3), none of cast($0,timestamp) where $0 is an i64.
void AddSources(const Expression& e, TypeId id, std::vector<const Expression*>* sources) {
  if (e.type.id != id) return;
  if (e.kind == ExpressionKind::kColumn) sources->push_back(&e);
  for (const Expression& argument : e.arguments) AddSources(argument, id, sources);
}

std::string FormatOf(const Expression& e, const PortBinding& binding) {
  if (e.type.id == TypeId::kDecimal128) return DecimalFormat(e.type);
  std::vector<const Expression*> sources;
  AddSources(e, e.type.id, &sources);
  if (!sources.empty()) return binding.keys[sources.front()->column].format;
  const std::string accepted(RowOf(e.type.id).arrow);
  if (e.type.id == TypeId::kTimestamp) return "tsu:";
  if (e.type.id == TypeId::kDuration) return "tDu";
  return accepted.substr(0, accepted.find('|'));
}

// Seconds beside milliseconds would be compared, or come out, as if they were of one unit.
absl::Status CheckUnits(const Expression& e, const PortBinding& binding) {
  for (const TypeId id : {TypeId::kTime32, TypeId::kTime64, TypeId::kTimestamp, TypeId::kDuration}) {
    std::vector<const Expression*> sources;
    for (const Expression& argument : e.arguments) AddSources(argument, id, &sources);
    for (const Expression* source : sources) {
      const std::string &first = binding.keys[sources.front()->column].format,
                        &other = binding.keys[source->column].format;
      if (UnitOf(first) == UnitOf(other)) continue;
      return Wrong("units in " + PrintExpression(e),
                   "$" + std::to_string(sources.front()->column) + " is " + first + ", $" +
                       std::to_string(source->column) + " is " + other,
                   "columns of one unit");
    }
  }
  for (const Expression& argument : e.arguments) QUERN_RETURN_IF_ERROR(CheckUnits(argument, binding));
  return absl::OkStatus();
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
      if (type.id != TypeId::kDecimal128) continue;
      const std::string &format = binding.keys[i].format, wanted = DecimalFormat(type);
      if (format == wanted || format == wanted + ",128") continue;
      return Wrong("format of map input column " + std::to_string(i), format, wanted);
    }
    for (const Expression& result : spec_.results) QUERN_RETURN_IF_ERROR(CheckUnits(result, binding));
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
