// SPDX-License-Identifier: Apache-2.0
// Arrow cannot select rows of views. Their 16 bytes are selected as fixed-width values instead:
//
//     views   | 3 ada | 41 .. buffer 0, 17 | 3 bob |      bits 0 1 1    ->    | 41 .. buffer 0, 17 | 3 bob |
//
// The buffers that they point to are the input's.
#include "tools/quern/files/select_rows.h"

#include <arrow/api.h>
#include <arrow/compute/api.h>
#include <arrow/util/byte_size.h>

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/base/status.h"
#include "tools/quern/files/table_io.h"

namespace quern::cli {
namespace {

using ArrayPointer = std::shared_ptr<arrow::Array>;

constexpr int32_t kViewBytes = 16;

bool IsView(const arrow::DataType& type) {
  return type.id() == arrow::Type::STRING_VIEW || type.id() == arrow::Type::BINARY_VIEW;
}

arrow::Result<ArrayPointer> TakeViews(const arrow::Array& column, const ArrayPointer& passes) {
  const arrow::ArrayData& views = *column.data();
  const auto plain = arrow::ArrayData::Make(arrow::fixed_size_binary(kViewBytes), views.length,
                                            {views.buffers[0], views.buffers[1]}, views.null_count, views.offset);
  ARROW_ASSIGN_OR_RAISE(const arrow::Datum taken, arrow::compute::Filter(plain, passes));
  arrow::BufferVector buffers = views.buffers;
  std::copy_n(taken.array()->buffers.begin(), 2, buffers.begin());
  return arrow::MakeArray(
      arrow::ArrayData::Make(column.type(), taken.length(), std::move(buffers), taken.null_count()));
}

}  // namespace

arrow::Result<ArrayPointer> SelectRows(const ArrayPointer& column, const ArrayPointer& passes) {
  if (IsView(*column->type())) return TakeViews(*column, passes);
  ARROW_ASSIGN_OR_RAISE(const arrow::Datum taken, arrow::compute::Filter(column, passes));
  return taken.make_array();
}

absl::StatusOr<RecordBatchPointer> SelectRows(const RecordBatchPointer& batch, const ArrayPointer& passes,
                                              const std::vector<int>& columns) {
  const int64_t num_rows = static_cast<const arrow::BooleanArray&>(*passes).true_count();
  arrow::FieldVector fields = batch->schema()->fields();
  arrow::ArrayVector rows;
  for (int i = 0; i < batch->num_columns(); ++i) {
    if (std::find(columns.begin(), columns.end(), i) == columns.end()) {
      fields[static_cast<size_t>(i)] = arrow::field(batch->column_name(i), arrow::null());
      rows.push_back(std::make_shared<arrow::NullArray>(num_rows));
      continue;
    }
    QUERN_ASSIGN_OR_RETURN_ARROW(ArrayPointer column, SelectRows(batch->column(i), passes),
                                 "cannot take rows of column " + batch->column_name(i));
    rows.push_back(std::move(column));
  }
  return arrow::RecordBatch::Make(arrow::schema(std::move(fields)), num_rows, std::move(rows));
}

uint64_t BytesOf(const arrow::Array& column) {
  if (IsView(*column.type())) return static_cast<uint64_t>(column.length()) * kViewBytes;
  return static_cast<uint64_t>(arrow::util::TotalBufferSize(column));
}

}  // namespace quern::cli
