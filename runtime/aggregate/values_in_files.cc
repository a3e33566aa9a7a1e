// SPDX-License-Identifier: Apache-2.0
#include "runtime/aggregate/values_in_files.h"

#include <cstring>

#include "runtime/aggregate/group_states.h"
#include "runtime/base/status.h"
#include "runtime/blocks/blocks.h"

namespace quern {

absl::Status StatesOfRows::ForEach(const std::function<absl::Status(std::string_view)>& f) {
  rows_->Rewind();
  while (true) {
    BatchView batch;
    QUERN_ASSIGN_OR_RETURN(const bool more, rows_->Next(&batch));
    if (!more) return absl::OkStatus();
    for (uint32_t row = 0; row < batch.num_rows; ++row) {
      const blocks::Bytes bytes = blocks::ReadBytes<kVar32>(&batch.keys[column_], row, 0, 0);
      QUERN_RETURN_IF_ERROR(f({reinterpret_cast<const char*>(bytes.data), bytes.length}));
    }
  }
}

NoValues::NoValues(const AggregateDescriptor& descriptor, size_t aggregate) {
  SaveNoValues(descriptor, aggregate, &saved_);
}

QuernColumn NoValues::Column(uint64_t num_rows) {
  while (offsets_.size() <= num_rows) {
    bytes_ += saved_;
    offsets_.push_back(static_cast<int32_t>(bytes_.size()));
  }
  QuernColumn column = {};
  column.values = bytes_.data();
  column.offsets = offsets_.data();
  return column;
}

uint32_t CopyResult(const OutputBatch& of_group, size_t column, uint32_t n, QuernOutColumn* out, uint64_t out_row) {
  const QuernOutColumn& from = of_group.column(column);
  const uint64_t width = RowOf(of_group.type(column).id).width_bytes;
  const bool valid = from.validity == nullptr || (from.validity[0] & 1) != 0;
  for (uint64_t row = out_row; row < out_row + n; ++row) {
    std::memcpy(static_cast<uint8_t*>(out->values) + row * width, from.values, width);
    if (out->validity != nullptr) blocks::SetBitTo(out->validity, row, valid);
    out->null_count += !valid;
  }
  return n;
}

}  // namespace quern
