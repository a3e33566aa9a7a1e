// SPDX-License-Identifier: Apache-2.0
// Arrow batches of a port.
//
// A kernel identifies columns by position, a record batch by name and child number. The binding of a port maps one to
// the other and is checked once, against the schema; every array is then checked by itself (arrow_import.h). Example:
// spec `join.inner keys=i64 build=f64 probe=rowid`, build schema {price: g, id: l}, probe schema {order_id: l}:
//
//     BUILD   keys = {1}   payload = {0}        PROBE   keys = {0}   payload = {-1}
//     result schema        {probe_rowid: L, price: g}
//
// Arrays are moved in at every outcome: the callee owns the content of the struct from the call on, as the interface
// requires of consumers, so an error leaks nothing and frees nothing twice.
#include "hosts/c/port_arrow.h"

#include <string>
#include <utility>
#include <vector>

#include "hosts/c/arrow_fields.h"
#include "hosts/c/format_number.h"
#include "runtime/base/status.h"
#include "runtime/rows/arrow_import.h"

namespace quern::c_abi {
namespace {

BoundField FieldAt(const ArrowSchema& schema, int child) {
  if (child < 0) return {};  // a rowid
  const ArrowSchema& field = *schema.children[child];
  return {TextOf(field.name), ValueFormat(field)};
}

// States need no schema that describes them; at least their number must be right.
absl::Status CheckNumColumns(int64_t num_columns, const PortColumns& columns) {
  const size_t wanted = columns.types.keys.size() + columns.types.payload.size();
  if (num_columns == static_cast<int64_t>(wanted)) return absl::OkStatus();
  return InvalidArgument("wrong number of columns of " + std::string(columns.name) + ": " +
                         std::to_string(num_columns) + "; accepted: " + std::to_string(wanted));
}

ColumnBinding ByPosition(const BatchTypes& types) {
  ColumnBinding binding;
  for (size_t i = 0; i < types.keys.size(); ++i) binding.keys.push_back(static_cast<int>(i));
  for (size_t i = 0; i < types.payload.size(); ++i) binding.payload.push_back(static_cast<int>(types.keys.size() + i));
  return binding;
}

// States are taken by position, whatever their schema; one that comes with them can be checked.
absl::Status CheckStates(const ArrowSchema& schema, const PortColumns& columns) {
  QUERN_RETURN_IF_ERROR(CheckNumColumns(schema.n_children, columns));
  return CheckSchema(schema, ByPosition(columns.types), columns.types.keys, columns.types.payload, columns.name);
}

}  // namespace

absl::Status CheckBound(const PortColumns& columns) {
  if (columns.binding || columns.by_position) return absl::OkStatus();
  return absl::FailedPreconditionError("Arrow columns not bound: the port " + std::string(columns.name) +
                                       " has no binding; accepted: after quern_job_bind_arrow");
}

absl::Status BindPort(Job* job, quern_port port, const ArrowSchema& schema, const int32_t* keys,
                      const int32_t* payload) {
  PortColumns* const columns = job->FindPort(port);
  if (columns != nullptr && job->reads_format(port)) QUERN_RETURN_IF_ERROR(CheckFormatMetadata(schema, columns->name));
  if (port == QUERN_PORT_STATES && columns != nullptr) return CheckStates(schema, *columns);
  if (columns == nullptr || columns->by_position) return job->NoSuchPort(port, "a port of batches with a binding");
  if (columns->binding) {
    return absl::FailedPreconditionError("Arrow columns bound twice: the port " + std::string(columns->name) +
                                         " has a binding; accepted: a new job");
  }
  PortBinding binding;
  const BatchTypes& types = columns->types;
  QUERN_ASSIGN_OR_RETURN(binding.children.keys, ChildNumbers(keys, types.keys.size(), "keys"));
  QUERN_ASSIGN_OR_RETURN(binding.children.payload, ChildNumbers(payload, types.payload.size(), "payload"));
  QUERN_RETURN_IF_ERROR(CheckSchema(schema, binding.children, types.keys, types.payload, columns->name));
  for (const int child : binding.children.keys) binding.keys.push_back(FieldAt(schema, child));
  for (const int child : binding.children.payload) binding.payload.push_back(FieldAt(schema, child));
  columns->binding = std::move(binding);
  absl::Status status = job->CheckBindings();
  if (!status.ok()) columns->binding.reset();
  return status;
}

absl::Status ExportResultSchema(Job* job, quern_port port, ArrowSchema* schema) {
  for (const PortColumns& columns : job->ports) QUERN_RETURN_IF_ERROR(CheckBound(columns));
  QUERN_RETURN_IF_ERROR(job->BindDependentPorts());
  QUERN_ASSIGN_OR_RETURN(std::vector<ResultField> fields, job->ResultFields(port));
  for (ResultField& field : fields)
    if (field.is_row_id && job->has_narrow_row_ids) field.format = "I";
  return ExportFields(fields, job->writes_format(port) ? FormatMetadata() : "", schema);
}

absl::StatusOr<BatchView> ImportRows(const PortColumns& columns, ArrowArray* batch, const quern_arrow_rows* rows) {
  QUERN_RETURN_IF_ERROR(CheckBound(columns));
  const BatchTypes& types = columns.types;
  if (columns.by_position && batch->release != nullptr)
    QUERN_RETURN_IF_ERROR(CheckNumColumns(batch->n_children, columns));
  QUERN_ASSIGN_OR_RETURN(BatchView view,
                         ImportArrow(batch, columns.by_position ? ByPosition(types) : columns.binding->children,
                                     types.keys, types.payload));
  QUERN_RETURN_IF_ERROR(SelectArrowRows(rows, &view));
  return view;
}

absl::StatusOr<BatchView> BorrowKeys(const PortColumns& columns, const ArrowArray& batch,
                                     const quern_arrow_rows* rows) {
  QUERN_RETURN_IF_ERROR(CheckBound(columns));
  ArrowArray borrowed = batch;
  if (borrowed.release != nullptr) borrowed.release = [](ArrowArray* array) { array->release = nullptr; };
  const MovedInArray moved(&borrowed);
  const ColumnBinding keys = {columns.binding->children.keys, {}};
  QUERN_ASSIGN_OR_RETURN(BatchView view, ImportArrow(&borrowed, keys, columns.types.keys, {}));
  QUERN_RETURN_IF_ERROR(SelectArrowRows(rows, &view));
  return view;
}

}  // namespace quern::c_abi
