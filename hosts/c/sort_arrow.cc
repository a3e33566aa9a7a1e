// SPDX-License-Identifier: Apache-2.0
// Arrow input and output of sorts and merges: struct arrays by the Arrow C data interface. (For ownership, bindings and
// checks see quern_arrow.cc.)
//
// Example: spec `sort keys=decimal128:desc:out,dictionary(i32,utf8) payload=rowid,f64 window=rank`, input schema {tax:
// g, price: d:12,2, name: i -> u}:
//
//     keys = {1, 2}    payload = {-1, 0}
//     result schema    {price: d:12,2, rowid: L, tax: g, rank: L}    without the name, whose key is not flagged `out`
//
// An array stays alive as long as rows point to the bytes of its strings. A sort copies fixed-width values, so without
// strings it releases the array at once; a merge keeps the array until its run requests the next one.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "hosts/c/arrow_fields.h"
#include "hosts/c/quern.h"
#include "hosts/c/sort_handles.h"
#include "runtime/abi/arrow_abi.h"
#include "runtime/base/status.h"
#include "runtime/rows/arrow_import.h"
#include "runtime/spec/spec_text.h"

namespace quern::c_abi {
namespace {

// ---- bindings ----

// The schema has been checked: every child that the binding names exists.
std::vector<ResultField> ResultFields(const KernelSpec& spec, const ArrowSchema& schema, const ColumnBinding& binding) {
  const std::vector<ColumnType> types = SortOutputTypes(spec);
  std::vector<ResultField> fields;
  const auto add = [&](const ColumnType& type, int child) {
    fields.push_back(ResultFieldOf(schema, type, child, "rowid", types[fields.size()].nullable));
  };
  for (size_t i = 0; i < spec.keys.size(); ++i) {
    if (spec.keys[i].out) add(spec.keys[i].type, binding.keys[i]);
  }
  for (size_t i = 0; i < spec.payload.size(); ++i) add(spec.payload[i], binding.payload[i]);
  for (const WindowFunction function : spec.window) fields.push_back({PrintItem(function), "L", false});
  return fields;
}

struct ChildLists {
  const int32_t* keys;
  const int32_t* payload;
};

// what: "sort" or "merge", for errors.
absl::Status Bind(const KernelSpec& spec, const ArrowSchema* schema, const ChildLists& children, const char* what,
                  RowInput* input) {
  if (schema == nullptr) return MissingArgument("input");
  if (input->binding) {
    const std::string name = what;
    return absl::FailedPreconditionError("Arrow columns bound twice: the " + name + " has a binding; accepted: a new " +
                                         name);
  }
  const BatchTypes& types = input->types;
  SortBinding binding;
  QUERN_ASSIGN_OR_RETURN(binding.input.keys, ChildNumbers(children.keys, types.keys.size(), "keys"));
  QUERN_ASSIGN_OR_RETURN(binding.input.payload, ChildNumbers(children.payload, types.payload.size(), "payload"));
  QUERN_RETURN_IF_ERROR(CheckSchema(*schema, binding.input, types.keys, types.payload, "input"));
  binding.result = ResultFields(spec, *schema, binding.input);
  input->binding = std::move(binding);
  return absl::OkStatus();
}

absl::Status CheckBound(const RowInput& input, const char* what) {
  if (input.binding) return absl::OkStatus();
  const std::string name = what;
  return absl::FailedPreconditionError("Arrow columns not bound: the " + name +
                                       " has no binding; accepted: after quern_" + name + "_bind_arrow");
}

absl::StatusOr<BatchView> ImportRows(ArrowArray* batch, const RowInput& input, const char* what) {
  QUERN_RETURN_IF_ERROR(CheckBound(input, what));
  return ImportArrow(batch, input.binding->input, input.types.keys, input.types.payload);
}

// ---- sorts ----

absl::Status BindSort(quern_sort* sort, const ArrowSchema* schema, const ChildLists& children) {
  if (sort == nullptr) return MissingArgument("sort");
  return Bind(sort->state->spec(), schema, children, "sort", &sort->state->input);
}

absl::Status SortSchema(const quern_sort* sort, ArrowSchema* schema) {
  if (schema == nullptr) return MissingArgument("schema");
  *schema = {};
  if (sort == nullptr) return MissingArgument("sort");
  const RowInput& input = sort->state->input;
  QUERN_RETURN_IF_ERROR(CheckBound(input, "sort"));
  return ExportFields(input.binding->result, schema);
}

template <class Handle>
absl::Status AppendArrow(Handle* handle, ArrowArray* batch, const quern_arrow_rows* rows) {
  if (batch == nullptr) return MissingArgument("batch");
  const MovedInArray moved(batch);
  QUERN_ASSIGN_OR_RETURN(const SinkInput input, OpenInput(handle));
  QUERN_ASSIGN_OR_RETURN(BatchView view, ImportRows(batch, handle->state->input, "sort"));
  QUERN_RETURN_IF_ERROR(SelectArrowRows(rows, &view));
  const std::shared_ptr<const void> needed_for_this_call = view.owner;
  if (!handle->state->keeps_strings) view.owner = nullptr;
  return input.Append(view);
}

absl::Status NextArrow(quern_sorted* sorted, ArrowArray* result, uint64_t* position, bool* more) {
  if (result == nullptr) return MissingArgument("result");
  *result = {};
  if (position != nullptr) *position = 0;
  if (more == nullptr) return MissingArgument("more");
  *more = false;
  if (sorted == nullptr) return MissingArgument("sorted");
  QUERN_ASSIGN_OR_RETURN(*more, ReadNext(sorted));
  if (position != nullptr) *position = sorted->reader.position();
  sorted->output.ExportArrow(result);
  return absl::OkStatus();
}

// ---- merges ----

absl::Status BindMerge(quern_merge* merge, const ArrowSchema* schema, const ChildLists& children) {
  if (merge == nullptr) return MissingArgument("merge");
  return Bind(merge->kernel->plan.spec, schema, children, "merge", &merge->input);
}

absl::Status MergeSchema(const quern_merge* merge, ArrowSchema* schema) {
  if (schema == nullptr) return MissingArgument("schema");
  *schema = {};
  if (merge == nullptr) return MissingArgument("merge");
  QUERN_RETURN_IF_ERROR(CheckBound(merge->input, "merge"));
  return ExportFields(merge->input.binding->result, schema);
}

absl::Status InputArrow(quern_merge* merge, uint32_t run, ArrowArray* batch, const quern_arrow_rows* rows) {
  if (batch == nullptr) return MissingArgument("batch");
  const MovedInArray moved(batch);
  if (merge == nullptr) return MissingArgument("merge");
  QUERN_ASSIGN_OR_RETURN(BatchView view, ImportRows(batch, merge->input, "merge"));
  QUERN_RETURN_IF_ERROR(SelectArrowRows(rows, &view));
  return StartRun(merge, run, view);
}

absl::Status NextArrow(quern_merge* merge, ArrowArray* result, const MergeAnswer& answer) {
  if (result == nullptr) return MissingArgument("result");
  *result = {};
  QUERN_RETURN_IF_ERROR(NextMerged(merge, answer));
  merge->output.ExportArrow(result);
  return absl::OkStatus();
}

}  // namespace
}  // namespace quern::c_abi

namespace c_abi = quern::c_abi;

extern "C" {

quern_status quern_sort_bind_arrow(quern_sort* sort, const ArrowSchema* input, const int32_t* keys,
                                   const int32_t* payload, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::BindSort(sort, input, {keys, payload}); });
}

quern_status quern_sort_result_schema(const quern_sort* sort, ArrowSchema* schema, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::SortSchema(sort, schema); });
}

quern_status quern_sort_append_arrow(quern_sort* sort, ArrowArray* batch, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::AppendArrow(sort, batch, nullptr); });
}

quern_status quern_sort_append_arrow_rows(quern_sort* sort, ArrowArray* batch, const quern_arrow_rows* rows,
                                          quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::AppendArrow(sort, batch, rows); });
}

quern_status quern_sort_appender_append_arrow(quern_sort_appender* appender, ArrowArray* batch, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::AppendArrow(appender, batch, nullptr); });
}

quern_status quern_sort_appender_append_arrow_rows(quern_sort_appender* appender, ArrowArray* batch,
                                                   const quern_arrow_rows* rows, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::AppendArrow(appender, batch, rows); });
}

quern_status quern_sorted_next_arrow(quern_sorted* sorted, ArrowArray* result, uint64_t* position, bool* more,
                                     quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::NextArrow(sorted, result, position, more); });
}

quern_status quern_merge_bind_arrow(quern_merge* merge, const ArrowSchema* input, const int32_t* keys,
                                    const int32_t* payload, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::BindMerge(merge, input, {keys, payload}); });
}

quern_status quern_merge_result_schema(const quern_merge* merge, ArrowSchema* schema, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::MergeSchema(merge, schema); });
}

quern_status quern_merge_input_arrow(quern_merge* merge, uint32_t run, ArrowArray* batch, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::InputArrow(merge, run, batch, nullptr); });
}

quern_status quern_merge_input_arrow_rows(quern_merge* merge, uint32_t run, ArrowArray* batch,
                                          const quern_arrow_rows* rows, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::InputArrow(merge, run, batch, rows); });
}

quern_status quern_merge_next_arrow(quern_merge* merge, ArrowArray* result, quern_merge_state* state, uint32_t* run,
                                    quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::NextArrow(merge, result, {state, run}); });
}

}  // extern "C"
