// SPDX-License-Identifier: Apache-2.0
// Aggregations as jobs:
//
//     ROWS, STATES ─> HashAggregate (a sink) ─ all work done ─> ROWS or STATES
//
// Nothing of a batch is kept. Both kinds of input take the same path; a spec `aggregate keys=utf8
// aggs=sum(i64),count_star` accepts
//
//     ROWS      key utf8    payload i64               "a", 5   "b", 1   "a", 2
//     STATES    key utf8    payload binary, binary    the output of an aggregation of the first two rows:
//                                                     "a", {5}, {1}   "b", {1}, {1}
//
// What a format of the result says beyond the type comes from the arguments, since the spec does not have it. Example:
// spec `aggregate keys=dictionary(i32,utf8) aggs=sum(decimal128),count(i64):filter`, with columns {qty: l, ok: b,
// price: d:12,2, region: i -> u}:
//
//     results   {region: u, sum(decimal128): d:38,2, count(i64):filter: l}
//     states    {region: u, sum(decimal128): z, count(i64):filter: z}
#include <algorithm>
#include <string>
#include <string_view>

#include "hosts/c/arrow_fields.h"
#include "hosts/c/jobs/group_job.h"
#include "hosts/c/jobs/value_formats.h"
#include "runtime/base/status.h"
#include "runtime/spec/aggregate_spec.h"
#include "runtime/spec/expression_units.h"
#include "runtime/spec/spec_text.h"

namespace quern::c_abi {
namespace {

// ---- the job ----

constexpr const char* kPorts = "QUERN_PORT_ROWS or QUERN_PORT_STATES";

class AggregateJob final : public GroupJob {
 public:
  AggregateJob(const AggregationSpec& spec, const CompiledKernel& compiled, const quern_job_options& options,
               const GroupHints& hints)
      : GroupJob(compiled, options, hints, "aggregation"), spec_(spec) {
    groups()->SetHost(options.host);
    PortColumns input = {QUERN_PORT_ROWS, "input", {}};
    for (const KeySpec& key : spec_.keys) input.types.keys.push_back(key.type);
    input.types.payload = AggregateInputTypes(spec_);
    ports.reserve(2);
    ports.push_back(std::move(input));
    ports.push_back(StatesPort(spec_));
  }

  absl::StatusOr<std::unique_ptr<JobInput>> NewInput(quern_port port, const InputOptions& /*options*/) override {
    if (FindPort(port) == nullptr) return NoSuchPort(port, kPorts);
    return NewSinkInput(port == QUERN_PORT_ROWS ? RowKind::kInput : RowKind::kStates);
  }

  absl::StatusOr<std::unique_ptr<JobOutput>> NewOutput(quern_port port, const OutputOptions& options) override {
    if (FindPort(port) == nullptr) return NoSuchPort(port, kPorts);
    QUERN_RETURN_IF_ERROR(CheckDone());
    const bool results = port == QUERN_PORT_ROWS;
    return std::make_unique<GroupOutput>(groups(), results ? GroupColumns::kResults : GroupColumns::kStates,
                                         results ? AggregateOutputTypes(spec_) : AggregateStateTypes(spec_), options,
                                         budget);
  }

  absl::Status CheckBindings() const override;
  bool HasPartitions(quern_port port) const override { return port == QUERN_PORT_ROWS; }
  absl::StatusOr<std::vector<ResultField>> ResultFields(quern_port port) const override;

 private:
  const AggregationSpec& spec_;  // of the kernel
};

absl::Status AggregateJob::CheckBindings() const {
  if (spec_.columns.empty() || !ports.front().binding.has_value()) return absl::OkStatus();
  const std::vector<std::string> formats = FormatsOf(ports.front().binding->payload);
  QUERN_RETURN_IF_ERROR(CheckValueFormats(spec_.columns, formats, "aggregate"));
  for (const AggregateSpec& aggregate : spec_.aggregates) {
    for (const Expression& argument : aggregate.expressions) QUERN_RETURN_IF_ERROR(CheckUnits(argument, formats));
    if (aggregate.filter.has_value()) QUERN_RETURN_IF_ERROR(CheckUnits(*aggregate.filter, formats));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ResultField>> AggregateJob::ResultFields(quern_port port) const {
  if (FindPort(port) == nullptr) return NoSuchPort(port, kPorts);
  const PortBinding& binding = *FindPort(QUERN_PORT_ROWS)->binding;
  const std::vector<ColumnType> types = AggregateOutputTypes(spec_);
  std::vector<ResultField> fields;
  for (const BoundField& key : binding.keys) {
    const ColumnType& type = types[fields.size()];
    fields.push_back(FieldOf(key, type, "", type.nullable));
  }
  const std::vector<std::string> formats = FormatsOf(binding.payload);
  size_t column = 0;
  for (const AggregateSpec& aggregate : spec_.aggregates) {
    const ColumnType& type = types[fields.size()];
    std::string argument;
    if (!aggregate.expressions.empty()) argument = FormatOf(aggregate.expressions[0], formats);
    else if (!aggregate.arguments.empty()) argument = formats[column];
    fields.push_back(port == QUERN_PORT_STATES
                         ? ResultField{PrintItem(aggregate), "z", false}
                         : ResultField{PrintItem(aggregate), FormatOfResult(aggregate, type, argument), type.nullable});
    column += aggregate.arguments.size() + (aggregate.filtered ? 1 : 0);
  }
  return fields;
}

}  // namespace

NewJobResult NewJob(const AggregationSpec& spec, const CompiledKernel& compiled, const quern_job_options& options) {
  QUERN_ASSIGN_OR_RETURN(const GroupHints hints, HintsOf(options, spec.keys.size()));
  return std::make_shared<AggregateJob>(spec, compiled, options, hints);
}

}  // namespace quern::c_abi
