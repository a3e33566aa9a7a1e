// SPDX-License-Identifier: Apache-2.0
// Checks that every operator makes, with the same messages:
//
//     batch without the spec's columns: 1 keys, 0 payload columns; accepted: 1 and 2
//     output batch of other columns: 3; accepted: 2
//     memory limit exceeded: result strings; accepted: a higher memory limit
#include "runtime/rows/batch_view.h"

#include <algorithm>
#include <string>

#include "runtime/base/status.h"
#include "runtime/rows/output_batch.h"

namespace quern {

// A loop that becomes vectors, unlike std::max_element.
uint64_t RowSpan(const uint32_t* selection, uint64_t num_rows) {
  if (selection == nullptr || num_rows == 0) return num_rows;
  uint32_t last = 0;
  for (uint64_t i = 0; i < num_rows; ++i) last = std::max(last, selection[i]);
  return uint64_t{last} + 1;
}

// Validity and bits of bool begin at bit_offset; everything else at an address.
QuernColumn ColumnFrom(uint64_t first_row, const ColumnType& type, QuernColumn column) {
  column.bit_offset += first_row;
  const Storage storage = type.is_dictionary ? RowOf(type.index).storage : RowOf(type.id).storage;
  const auto further = [&](const void* from, uint64_t row_bytes) {
    return static_cast<const uint8_t*>(from) + first_row * row_bytes;
  };
  switch (storage) {
    case kBit:
    case kRowId:
    case kNoStorage: break;
    case kVar32: column.offsets = further(column.offsets, sizeof(int32_t)); break;
    case kVar64: column.offsets = further(column.offsets, sizeof(int64_t)); break;
    case kFixed: column.values = further(column.values, type.width_bytes); break;
    case k8:
    case k16:
    case k32:
    case k64:
    case k128:
    case kF32:
    case kF64:
    case kView: column.values = further(column.values, StorageFieldBytes(storage)); break;
  }
  return column;
}

BatchView SliceOf(const BatchView& batch, const std::vector<ColumnType>& keys, const std::vector<ColumnType>& payload,
                  uint64_t first_row, uint64_t num_rows) {
  BatchView slice = batch;
  slice.num_rows = num_rows;
  if (batch.selection != nullptr) {
    slice.selection = batch.selection + first_row;
    return slice;
  }
  slice.num_following += batch.num_rows - first_row - num_rows;
  if (batch.first_row_id != kCountedRowIds) slice.first_row_id += first_row;
  for (size_t i = 0; i < keys.size(); ++i) slice.keys[i] = ColumnFrom(first_row, keys[i], slice.keys[i]);
  for (size_t i = 0; i < payload.size(); ++i) slice.payload[i] = ColumnFrom(first_row, payload[i], slice.payload[i]);
  return slice;
}

BatchView ViewOf(const OutputBatch& rows) {
  BatchView view;
  view.keys.reserve(rows.num_columns());
  for (size_t c = 0; c < rows.num_columns(); ++c) {
    const QuernOutColumn& from = rows.column(c);
    const Storage storage = RowOf(rows.type(c).id).storage;
    QuernColumn column = {};
    column.validity = from.validity;
    column.values = storage == kVar32 || storage == kVar64 ? from.bytes : from.values;
    column.offsets = from.offsets;
    column.buffers = storage == kView ? &from.bytes : nullptr;
    view.keys.push_back(column);
  }
  view.num_rows = rows.num_rows();
  return view;
}

absl::Status CheckBatch(const BatchView& batch, size_t num_keys, size_t num_payload, const char* payload_name) {
  if (batch.num_rows >= kNullRow) {
    return InvalidArgument("batch too large: " + std::to_string(batch.num_rows) + " rows; accepted: below 4294967295");
  }
  if (batch.num_rows == 0 || (batch.keys.size() >= num_keys && batch.payload.size() >= num_payload))
    return absl::OkStatus();
  return InvalidArgument("batch without the spec's columns: " + std::to_string(batch.keys.size()) + " keys, " +
                         std::to_string(batch.payload.size()) + " " + payload_name +
                         "; accepted: " + std::to_string(num_keys) + " and " + std::to_string(num_payload));
}

absl::Status CheckOutput(const OutputBatch& out, size_t num_columns, NoColumns no_columns) {
  const bool counts = out.num_columns() == 0 && no_columns == NoColumns::kCounts;
  if (out.num_columns() != num_columns && !counts) {
    return InvalidArgument("output batch of other columns: " + std::to_string(out.num_columns()) +
                           "; accepted: " + std::to_string(num_columns));
  }
  if (out.num_columns() == 0 || out.capacity() != 0) return absl::OkStatus();
  return InvalidArgument("output batch too small: 0 rows; accepted: 1 to 2147483647");
}

absl::Status StatusOfCode(int64_t code) {
  if (code == kQuernOutOfMemory)
    return absl::ResourceExhaustedError("memory limit exceeded: result strings; accepted: a higher memory limit");
  if (code == kQuernValueTooLarge) {
    return absl::ResourceExhaustedError(
        "value too large for an output column: above 2147483647 bytes; accepted: large_utf8, large_binary");
  }
  if (code == kQuernSecondMatch) {
    return absl::OutOfRangeError(
        "second match of a probe row: in a join of kind single; accepted: at most one build row a key");
  }
  if (code == kQuernHostFailed) return absl::AbortedError("host residual failed: a result other than 0; accepted: 0");
  return Internal("kernel failed: code " + std::to_string(code) + "; accepted: 0 or more");
}

}  // namespace quern
