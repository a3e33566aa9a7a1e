// SPDX-License-Identifier: Apache-2.0
// Arrow input and output of joins in the C ABI: struct arrays by the Arrow C data interface.
//
// A kernel identifies columns by position, a record batch by name and child number. The binding maps one to the other
// and is checked once against the schemas; every array is then checked by itself (runtime/rows/arrow_import.h).
// Example: spec `join.inner keys=i64 build=f64 probe=rowid`, build schema {price: g, id: l}, probe schema {order_id:
// l}:
//
//     build_keys = {1}   build_payload = {0}    probe_keys = {0}   probe_payload = {-1}
//     result schema      {probe_rowid: L, price: g}
//
// Arrays are moved in at every outcome: the callee owns the content of the struct from the call on, as the interface
// requires of consumers, so an error leaks nothing and frees nothing twice.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hosts/c/arrow_fields.h"
#include "hosts/c/handles.h"
#include "hosts/c/quern.h"
#include "runtime/abi/arrow_abi.h"
#include "runtime/rows/arrow_import.h"

namespace quern::c_abi {
namespace {

// The fields of the result that come from one side; a column may be null where the result's types allow it. The schema
// has been checked: every child that the binding names exists.
void AddResultFields(const ArrowSchema& schema, const ColumnBinding& binding, const std::vector<ColumnType>& payload,
                     const char* side, const std::vector<ColumnType>& result_types, std::vector<ResultField>* fields) {
  for (size_t i = 0; i < payload.size(); ++i) {
    const bool nullable = result_types[fields->size()].nullable;
    const std::string rowid = std::string(side) + "_rowid";
    fields->push_back(ResultFieldOf(schema, payload[i], binding.payload[i], rowid, nullable));
  }
}

std::vector<ResultField> ResultFields(const KernelSpec& spec, const ArrowBinding& binding, const ArrowSchema& build,
                                      const ArrowSchema& probe) {
  const std::vector<ColumnType> types = JoinOutputTypes(spec);
  std::vector<ResultField> fields;
  AddResultFields(probe, binding.probe, spec.probe, "probe", types, &fields);
  if (types.size() > spec.probe.size() + spec.build.size())
    fields.push_back({"mark", "b", types[fields.size()].nullable});
  AddResultFields(build, binding.build, spec.build, "build", types, &fields);
  return fields;
}

absl::Status CheckUnit(const ArrowSchema& build, int build_child, const ArrowSchema& probe, int probe_child,
                       const char* part, size_t i) {
  const std::string build_format = ValueFormat(*build.children[build_child]);
  const std::string probe_format = ValueFormat(*probe.children[probe_child]);
  if (UnitOf(build_format) == UnitOf(probe_format)) return absl::OkStatus();
  return InvalidArgument(std::string(part) + " of different units: " + part + "[" + std::to_string(i) + "] is " +
                         build_format + " on the build side, " + probe_format +
                         " on the probe side; accepted: the same unit or scale");
}

// Keys and columns of the residual predicate are compared as numbers, so their units must be the same on both sides.
absl::Status CheckUnits(const KernelSpec& spec, const ArrowSchema& build, const ArrowSchema& probe,
                        const ArrowBinding& binding) {
  for (size_t i = 0; i < spec.keys.size(); ++i) {
    QUERN_RETURN_IF_ERROR(CheckUnit(build, binding.build.keys[i], probe, binding.probe.keys[i], "keys", i));
  }
  for (size_t i = 0; i < spec.residual.size(); ++i) {
    const int build_child = binding.build.payload[spec.build.size() + i],
              probe_child = binding.probe.payload[spec.probe.size() + i];
    QUERN_RETURN_IF_ERROR(CheckUnit(build, build_child, probe, probe_child, "residual", i));
  }
  return absl::OkStatus();
}

struct SideOfBinding {
  const ArrowSchema* schema;
  const int32_t* keys;
  const int32_t* payload;
};

absl::Status BindArrow(quern_join* join, const SideOfBinding& build, const SideOfBinding& probe) {
  if (join == nullptr) return MissingArgument("join");
  if (build.schema == nullptr) return MissingArgument("build");
  if (probe.schema == nullptr) return MissingArgument("probe");
  JoinState& state = *join->state;
  if (state.binding)
    return absl::FailedPreconditionError("Arrow columns bound twice: the join has a binding; accepted: a new join");
  const size_t num_keys = state.build.keys.size();
  ArrowBinding binding;
  QUERN_ASSIGN_OR_RETURN(binding.build.keys, ChildNumbers(build.keys, num_keys, "build_keys"));
  QUERN_ASSIGN_OR_RETURN(binding.build.payload,
                         ChildNumbers(build.payload, state.build.payload.size(), "build_payload"));
  QUERN_ASSIGN_OR_RETURN(binding.probe.keys, ChildNumbers(probe.keys, num_keys, "probe_keys"));
  QUERN_ASSIGN_OR_RETURN(binding.probe.payload,
                         ChildNumbers(probe.payload, state.probe.payload.size(), "probe_payload"));
  QUERN_RETURN_IF_ERROR(CheckSchema(*build.schema, binding.build, state.build.keys, state.build.payload, "build"));
  QUERN_RETURN_IF_ERROR(CheckSchema(*probe.schema, binding.probe, state.probe.keys, state.probe.payload, "probe"));
  QUERN_RETURN_IF_ERROR(CheckUnits(state.spec(), *build.schema, *probe.schema, binding));
  binding.result = ResultFields(state.spec(), binding, *build.schema, *probe.schema);
  state.binding = std::move(binding);
  return absl::OkStatus();
}

absl::Status CheckBound(const JoinState& state) {
  if (state.binding) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "Arrow columns not bound: the join has no binding; accepted: after quern_join_bind_arrow");
}

absl::Status ResultSchema(const quern_join* join, ArrowSchema* schema) {
  if (schema == nullptr) return MissingArgument("schema");
  *schema = {};
  if (join == nullptr) return MissingArgument("join");
  QUERN_RETURN_IF_ERROR(CheckBound(*join->state));
  return ExportFields(join->state->binding->result, schema);
}

// ---- batches ----

template <class Handle>
absl::Status AppendArrow(Handle* handle, ArrowArray* batch, const quern_arrow_rows* rows) {
  if (batch == nullptr) return MissingArgument("batch");
  const MovedInArray moved(batch);
  QUERN_ASSIGN_OR_RETURN(const SinkInput input, OpenInput(handle));
  const JoinState& state = *handle->state;
  QUERN_RETURN_IF_ERROR(CheckBound(state));
  QUERN_ASSIGN_OR_RETURN(BatchView view,
                         ImportArrow(batch, state.binding->build, state.build.keys, state.build.payload));
  QUERN_RETURN_IF_ERROR(SelectArrowRows(rows, &view));
  const std::shared_ptr<const void> needed_for_this_call = view.owner;
  if (!state.keeps_strings) view.owner = nullptr;
  return input.Append(view);
}

absl::Status InputArrow(quern_prober* prober, ArrowArray* batch, const quern_arrow_rows* rows) {
  if (batch == nullptr) return MissingArgument("batch");
  const MovedInArray moved(batch);
  if (prober == nullptr) return MissingArgument("prober");
  const JoinState& state = *prober->state;
  QUERN_RETURN_IF_ERROR(CheckBound(state));
  QUERN_ASSIGN_OR_RETURN(BatchView view,
                         ImportArrow(batch, state.binding->probe, state.probe.keys, state.probe.payload));
  QUERN_RETURN_IF_ERROR(SelectArrowRows(rows, &view));
  return StartProbe(prober, std::move(view));
}

absl::Status NextArrow(quern_prober* prober, ArrowArray* result, bool* more) {
  if (result == nullptr) return MissingArgument("result");
  *result = {};
  if (more == nullptr) return MissingArgument("more");
  *more = false;
  if (prober == nullptr) return MissingArgument("prober");
  QUERN_RETURN_IF_ERROR(CheckBound(*prober->state));
  QUERN_ASSIGN_OR_RETURN(*more, NextRows(prober));
  prober->output.ExportArrow(result);
  return absl::OkStatus();
}

}  // namespace
}  // namespace quern::c_abi

namespace c_abi = quern::c_abi;

extern "C" {

quern_status quern_join_bind_arrow(quern_join* join, const ArrowSchema* build, const int32_t* build_keys,
                                   const int32_t* build_payload, const ArrowSchema* probe, const int32_t* probe_keys,
                                   const int32_t* probe_payload, quern_error* error) {
  return c_abi::Boundary(error, [&] {
    return c_abi::BindArrow(join, {build, build_keys, build_payload}, {probe, probe_keys, probe_payload});
  });
}

quern_status quern_join_result_schema(const quern_join* join, ArrowSchema* schema, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::ResultSchema(join, schema); });
}

quern_status quern_join_append_arrow(quern_join* join, ArrowArray* batch, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::AppendArrow(join, batch, nullptr); });
}

quern_status quern_join_append_arrow_rows(quern_join* join, ArrowArray* batch, const quern_arrow_rows* rows,
                                          quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::AppendArrow(join, batch, rows); });
}

quern_status quern_appender_append_arrow(quern_appender* appender, ArrowArray* batch, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::AppendArrow(appender, batch, nullptr); });
}

quern_status quern_appender_append_arrow_rows(quern_appender* appender, ArrowArray* batch, const quern_arrow_rows* rows,
                                              quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::AppendArrow(appender, batch, rows); });
}

quern_status quern_prober_input_arrow(quern_prober* prober, ArrowArray* batch, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::InputArrow(prober, batch, nullptr); });
}

quern_status quern_prober_input_arrow_rows(quern_prober* prober, ArrowArray* batch, const quern_arrow_rows* rows,
                                           quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::InputArrow(prober, batch, rows); });
}

quern_status quern_prober_next_arrow(quern_prober* prober, ArrowArray* result, bool* more, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::NextArrow(prober, result, more); });
}

}  // extern "C"
