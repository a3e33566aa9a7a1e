// SPDX-License-Identifier: Apache-2.0
// The C ABI of filters: a batch in; the numbers of the rows that pass, their bits or their count out. Nothing is kept
// between two calls, so one handle serves all threads:
//
//     quern_kernel -> Kernel (machine code) <- quern_filter <- any threads
//
// Example, `filter utf8 = 'R' and i64 >= 3` over four rows A 7, R 2, R 3, R 9:
//
//     select   rows 2, 3      bitmap  0b1100      count  2
//
// Arrays are only read, since a host goes on with them: it takes the columns it wants of the rows that passed. The
// import, which moves arrays in, is given a copy of the struct whose release callback does nothing.
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "codegen/compiler.h"
#include "codegen/operators.h"
#include "hosts/c/arrow_fields.h"
#include "hosts/c/handles.h"
#include "hosts/c/host_batch.h"
#include "hosts/c/quern.h"
#include "runtime/abi/arrow_abi.h"
#include "runtime/base/status.h"
#include "runtime/filter/row_filter.h"
#include "runtime/rows/arrow_import.h"
#include "runtime/spec/filter_spec.h"

struct quern_filter {
  explicit quern_filter(const quern::CompiledKernel& compiled)
      : kernel(compiled.kernel),
        cache(compiled.cache),
        filter(quern::MakeRowFilter(kernel)),
        columns(quern::ColumnsOf(kernel->plan.spec.where)) {}

  std::shared_ptr<const quern::Kernel> kernel;
  quern::CacheOutcome cache;
  std::shared_ptr<const quern::RowFilter> filter;
  std::vector<quern::ColumnType> columns;
  std::optional<quern::ColumnBinding> binding;
};

namespace quern::c_abi {
namespace {

absl::Status CreateFilter(quern_kernel* kernel, quern_filter** filter) {
  if (filter == nullptr) return MissingArgument("filter");
  *filter = nullptr;
  if (kernel == nullptr) return MissingArgument("kernel");
  QUERN_RETURN_IF_ERROR(CheckOperator(*kernel, Operator::kFilter, "a filter"));
  *filter = new quern_filter(kernel->compiled);
  return absl::OkStatus();
}

absl::Status BindArrow(quern_filter* filter, const ArrowSchema* schema, const int32_t* columns) {
  if (filter == nullptr) return MissingArgument("filter");
  if (schema == nullptr) return MissingArgument("input");
  if (filter->binding) {
    return absl::FailedPreconditionError("Arrow columns bound twice: the filter has a binding; accepted: a new filter");
  }
  ColumnBinding binding;
  QUERN_ASSIGN_OR_RETURN(binding.keys, ChildNumbers(columns, filter->columns.size(), "columns"));
  QUERN_RETURN_IF_ERROR(CheckSchema(*schema, binding, filter->columns, {}, "input"));
  filter->binding = std::move(binding);
  return absl::OkStatus();
}

// ---- batches ----

absl::StatusOr<HostBatchView> ViewOf(const quern_filter& filter, const quern_batch* batch) {
  if (batch == nullptr) return MissingArgument("batch");
  return ViewOfHostBatch(*batch, filter.columns, {}, "input", {std::make_shared<MemoryBudget>()});
}

absl::StatusOr<HostBatchView> ViewOf(const quern_filter& filter, const ArrowArray* batch) {
  if (batch == nullptr) return MissingArgument("batch");
  if (!filter.binding) {
    return absl::FailedPreconditionError(
        "Arrow columns not bound: the filter has no binding; accepted: after quern_filter_bind_arrow");
  }
  ArrowArray borrowed = *batch;
  if (borrowed.release != nullptr) borrowed.release = [](ArrowArray* array) { array->release = nullptr; };
  HostBatchView view;
  QUERN_ASSIGN_OR_RETURN(view.batch, ImportArrow(&borrowed, *filter.binding, filter.columns, {}));
  return view;
}

// ---- results ----

// Stores the number of rows where the caller wants it (null: nowhere), 0 after a failure. It runs after the work, since
// the number may be a member of the batch itself, which is then the selection of the next operation.
absl::Status Answer(const absl::StatusOr<uint64_t>& passed, uint64_t* num_rows) {
  if (num_rows != nullptr) *num_rows = passed.value_or(0);
  return passed.status();
}

template <class Batch>
absl::StatusOr<uint64_t> Select(const quern_filter* filter, const Batch* batch, uint32_t* rows,
                                const uint64_t* num_rows) {
  if (num_rows == nullptr) return MissingArgument("num_rows");
  if (filter == nullptr) return MissingArgument("filter");
  QUERN_ASSIGN_OR_RETURN(const HostBatchView view, ViewOf(*filter, batch));
  if (rows == nullptr && view.batch.num_rows != 0) return MissingArgument("rows");
  return filter->filter->Select(view.batch, rows);
}

template <class Batch>
absl::StatusOr<uint64_t> Bitmap(const quern_filter* filter, const Batch* batch, uint8_t* bitmap) {
  if (filter == nullptr) return MissingArgument("filter");
  QUERN_ASSIGN_OR_RETURN(const HostBatchView view, ViewOf(*filter, batch));
  if (bitmap == nullptr && view.batch.num_rows != 0) return MissingArgument("bitmap");
  return filter->filter->Mask(view.batch, bitmap);
}

template <class Batch>
absl::StatusOr<uint64_t> Count(const quern_filter* filter, const Batch* batch, const uint64_t* num_rows) {
  if (num_rows == nullptr) return MissingArgument("num_rows");
  if (filter == nullptr) return MissingArgument("filter");
  QUERN_ASSIGN_OR_RETURN(const HostBatchView view, ViewOf(*filter, batch));
  return filter->filter->Count(view.batch);
}

}  // namespace
}  // namespace quern::c_abi

namespace c_abi = quern::c_abi;

extern "C" {

quern_status quern_filter_create(quern_kernel* kernel, quern_filter** filter, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::CreateFilter(kernel, filter); });
}

void quern_filter_destroy(quern_filter* filter) { delete filter; }

quern_status quern_filter_bind_arrow(quern_filter* filter, const ArrowSchema* input, const int32_t* columns,
                                     quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::BindArrow(filter, input, columns); });
}

quern_status quern_filter_select(const quern_filter* filter, const quern_batch* batch, uint32_t* rows,
                                 uint64_t* num_rows, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::Answer(c_abi::Select(filter, batch, rows, num_rows), num_rows); });
}

quern_status quern_filter_select_arrow(const quern_filter* filter, const ArrowArray* batch, uint32_t* rows,
                                       uint64_t* num_rows, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::Answer(c_abi::Select(filter, batch, rows, num_rows), num_rows); });
}

quern_status quern_filter_bitmap(const quern_filter* filter, const quern_batch* batch, uint8_t* bitmap,
                                 uint64_t* num_rows, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::Answer(c_abi::Bitmap(filter, batch, bitmap), num_rows); });
}

quern_status quern_filter_bitmap_arrow(const quern_filter* filter, const ArrowArray* batch, uint8_t* bitmap,
                                       uint64_t* num_rows, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::Answer(c_abi::Bitmap(filter, batch, bitmap), num_rows); });
}

quern_status quern_filter_count(const quern_filter* filter, const quern_batch* batch, uint64_t* num_rows,
                                quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::Answer(c_abi::Count(filter, batch, num_rows), num_rows); });
}

quern_status quern_filter_count_arrow(const quern_filter* filter, const ArrowArray* batch, uint64_t* num_rows,
                                      quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::Answer(c_abi::Count(filter, batch, num_rows), num_rows); });
}

void quern_filter_get_counters(const quern_filter* filter, quern_counters* counters) {
  c_abi::GetCounters(filter, counters, [&] {
    c_abi::CopyCounters(filter->filter->counters(), "off", *filter->kernel, filter->cache, counters);
  });
}

}  // extern "C"
