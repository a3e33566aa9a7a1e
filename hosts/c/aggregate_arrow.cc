// SPDX-License-Identifier: Apache-2.0
// Arrow input and output of aggregations: struct arrays by the Arrow C data interface. (For ownership, bindings and
// checks see quern_arrow.cc.)
//
// Example: spec `aggregate keys=dictionary(i32,utf8) aggs=sum(decimal128),count(i64):filter`, input schema {qty: l, ok:
// b, price: d:12,2, region: i -> u}:
//
//     keys = {3}    payload = {2, 0, 1}          the argument of the sum, that of count, its filter
//     results       {region: u, sum(decimal128): d:38,2, count(i64):filter: l}
//     states        {region: u, sum(decimal128): z, count(i64):filter: z}
//
// What a format specifies beyond the type comes from the arguments, since the spec does not have it: a minimum of
// timestamps has the unit and zone of its column; a sum of decimals has their scale and as many digits as 128 bits
// hold. States are taken by position and their types are those of the spec, so they need no binding.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "hosts/c/aggregate_handles.h"
#include "hosts/c/arrow_fields.h"
#include "hosts/c/quern.h"
#include "runtime/abi/arrow_abi.h"
#include "runtime/base/status.h"
#include "runtime/rows/arrow_import.h"
#include "runtime/spec/aggregate_spec.h"
#include "runtime/spec/spec_text.h"

namespace quern::c_abi {
namespace {

// ---- formats of results ----

std::string DecimalFormat(const std::string& scale) { return "d:38," + (scale.empty() ? "0" : scale); }

// The format of a type whose unit, scale and zone are unknown: the first of those that column_types.def lists.
std::string FirstFormat(const ColumnType& type) {
  if (type.id == TypeId::kDecimal128) return DecimalFormat("");
  if (type.id == TypeId::kTimestamp) return "tss:";
  const std::string_view formats = RowOf(type.id).arrow;
  return std::string(formats.substr(0, formats.find('|')));
}

// argument: the format of the aggregate's first column; empty if it has none.
std::string FormatOfResult(const AggregateSpec& aggregate, const ColumnType& result, const std::string& argument) {
  switch (RowOf(aggregate.function).result) {
    case ResultRule::kSame: return argument;
    case ResultRule::kSumOf:
    case ResultRule::kAverageOf:
    case ResultRule::kDecimal:
      return result.id == TypeId::kDecimal128 ? DecimalFormat(UnitOf(argument)) : FirstFormat(result);
    case ResultRule::kCount:
    case ResultRule::kDouble:
    case ResultRule::kOfHost: return FirstFormat(result);
  }
  return "";
}

// The schema has been checked: every child that the binding names exists.
std::vector<ResultField> ResultFields(const KernelSpec& spec, const ArrowSchema& schema, const ColumnBinding& binding) {
  const std::vector<ColumnType> types = AggregateOutputTypes(spec);
  std::vector<ResultField> fields;
  for (const int child : binding.keys) {
    const ColumnType& type = types[fields.size()];
    fields.push_back(ResultFieldOf(schema, type, child, "", type.nullable));
  }
  size_t column = 0;
  for (const AggregateSpec& aggregate : spec.aggregates) {
    const ColumnType& type = types[fields.size()];
    const std::string argument =
        aggregate.arguments.empty() ? "" : ValueFormat(*schema.children[binding.payload[column]]);
    fields.push_back({PrintItem(aggregate), FormatOfResult(aggregate, type, argument), type.nullable});
    column += aggregate.arguments.size() + (aggregate.filtered ? 1 : 0);
  }
  return fields;
}

// The same names with states in place of results.
std::vector<ResultField> StateFields(std::vector<ResultField> fields, size_t num_keys) {
  for (size_t i = num_keys; i < fields.size(); ++i) {
    fields[i].format = "z";
    fields[i].nullable = false;
  }
  return fields;
}

// ---- bindings ----

absl::Status BindArrow(quern_aggregate* aggregate, const ArrowSchema* input, const int32_t* keys,
                       const int32_t* payload) {
  if (aggregate == nullptr) return MissingArgument("aggregate");
  if (input == nullptr) return MissingArgument("input");
  AggregateState& state = *aggregate->state;
  if (state.binding) {
    return absl::FailedPreconditionError(
        "Arrow columns bound twice: the aggregation has a binding; accepted: a new aggregation");
  }
  GroupBinding binding;
  QUERN_ASSIGN_OR_RETURN(binding.input.keys, ChildNumbers(keys, state.input.keys.size(), "keys"));
  QUERN_ASSIGN_OR_RETURN(binding.input.payload, ChildNumbers(payload, state.input.payload.size(), "payload"));
  QUERN_RETURN_IF_ERROR(CheckSchema(*input, binding.input, state.input.keys, state.input.payload, "input"));
  binding.results = ResultFields(state.spec(), *input, binding.input);
  binding.states = StateFields(binding.results, state.input.keys.size());
  state.binding = std::move(binding);
  return absl::OkStatus();
}

absl::Status CheckBound(const AggregateState& state) {
  if (state.binding) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "Arrow columns not bound: the aggregation has no binding; accepted: after quern_aggregate_bind_arrow");
}

absl::Status ResultSchema(const quern_aggregate* aggregate, const quern_group_columns& columns, ArrowSchema* schema) {
  if (schema == nullptr) return MissingArgument("schema");
  *schema = {};
  if (aggregate == nullptr) return MissingArgument("aggregate");
  QUERN_ASSIGN_OR_RETURN(const GroupColumns wanted, GroupColumnsOf(columns));
  QUERN_RETURN_IF_ERROR(CheckBound(*aggregate->state));
  const GroupBinding& binding = *aggregate->state->binding;
  return ExportFields(wanted == GroupColumns::kResults ? binding.results : binding.states, schema);
}

// ---- batches ----

// States have no schema that describes them; at least their number must be right.
absl::Status CheckNumStates(const ArrowArray& batch, const AggregateState& state) {
  const size_t wanted = state.states.keys.size() + state.states.payload.size();
  if (batch.release == nullptr || batch.n_children == static_cast<int64_t>(wanted)) return absl::OkStatus();
  return InvalidArgument("wrong number of columns of states: " + std::to_string(batch.n_children) +
                         "; accepted: " + std::to_string(wanted));
}

absl::StatusOr<BatchView> ImportRows(ArrowArray* batch, const AggregateState& state, RowKind kind) {
  const BatchTypes& types = state.types(kind);
  if (kind == RowKind::kInput) {
    QUERN_RETURN_IF_ERROR(CheckBound(state));
    return ImportArrow(batch, state.binding->input, types.keys, types.payload);
  }
  QUERN_RETURN_IF_ERROR(CheckNumStates(*batch, state));
  return ImportArrow(batch, state.states_by_position, types.keys, types.payload);
}

template <class Handle>
absl::Status AppendArrow(Handle* handle, ArrowArray* batch, const quern_arrow_rows* rows, RowKind kind) {
  if (batch == nullptr) return MissingArgument("batch");
  const MovedInArray moved(batch);
  QUERN_ASSIGN_OR_RETURN(const SinkInput input, OpenInput(handle));
  QUERN_ASSIGN_OR_RETURN(BatchView view, ImportRows(batch, *handle->state, kind));
  QUERN_RETURN_IF_ERROR(SelectArrowRows(rows, &view));
  return input.Append(view, kind);
}

absl::Status NextArrow(quern_groups* groups, ArrowArray* result, bool* more) {
  if (result == nullptr) return MissingArgument("result");
  *result = {};
  if (more == nullptr) return MissingArgument("more");
  *more = false;
  if (groups == nullptr) return MissingArgument("groups");
  QUERN_ASSIGN_OR_RETURN(*more, ReadNext(groups));
  groups->output.ExportArrow(result);
  return absl::OkStatus();
}

}  // namespace
}  // namespace quern::c_abi

namespace c_abi = quern::c_abi;
using quern::RowKind;

extern "C" {

quern_status quern_aggregate_bind_arrow(quern_aggregate* aggregate, const ArrowSchema* input, const int32_t* keys,
                                        const int32_t* payload, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::BindArrow(aggregate, input, keys, payload); });
}

quern_status quern_aggregate_result_schema(const quern_aggregate* aggregate, quern_group_columns columns,
                                           ArrowSchema* schema, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::ResultSchema(aggregate, columns, schema); });
}

quern_status quern_aggregate_append_arrow(quern_aggregate* aggregate, ArrowArray* batch, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::AppendArrow(aggregate, batch, nullptr, RowKind::kInput); });
}

quern_status quern_aggregate_append_arrow_rows(quern_aggregate* aggregate, ArrowArray* batch,
                                               const quern_arrow_rows* rows, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::AppendArrow(aggregate, batch, rows, RowKind::kInput); });
}

quern_status quern_aggregate_append_states_arrow(quern_aggregate* aggregate, ArrowArray* batch, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::AppendArrow(aggregate, batch, nullptr, RowKind::kStates); });
}

quern_status quern_aggregate_appender_append_arrow(quern_aggregate_appender* appender, ArrowArray* batch,
                                                   quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::AppendArrow(appender, batch, nullptr, RowKind::kInput); });
}

quern_status quern_aggregate_appender_append_arrow_rows(quern_aggregate_appender* appender, ArrowArray* batch,
                                                        const quern_arrow_rows* rows, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::AppendArrow(appender, batch, rows, RowKind::kInput); });
}

quern_status quern_aggregate_appender_append_states_arrow(quern_aggregate_appender* appender, ArrowArray* batch,
                                                          quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::AppendArrow(appender, batch, nullptr, RowKind::kStates); });
}

quern_status quern_groups_next_arrow(quern_groups* groups, ArrowArray* result, bool* more, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::NextArrow(groups, result, more); });
}

}  // extern "C"
