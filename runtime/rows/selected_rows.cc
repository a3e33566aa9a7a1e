// SPDX-License-Identifier: Apache-2.0
#include "runtime/rows/selected_rows.h"

#include "runtime/base/prefetch_line.h"

namespace quern {
namespace {

uint32_t RowBytes(Storage storage, uint32_t width_bytes) {
  switch (storage) {
    case kBit:
    case kRowId: return 0;
    case kFixed: return width_bytes;
    case kVar32: return sizeof(uint32_t);
    case kVar64: return sizeof(uint64_t);
    default: return StorageFieldBytes(storage);
  }
}

}  // namespace

uint32_t ColumnRowBytes(const QuernField& field) {
  return field.index_storage != kNoStorage ? RowBytes(field.index_storage, 0)
                                           : RowBytes(field.storage, field.width_bytes);
}

uint32_t ColumnRowBytes(const ColumnType& type) {
  return RowBytes(RowOf(type.is_dictionary ? type.index : type.id).storage, type.width_bytes);
}

void SelectedRows::Prefetch(const QuernColumn& column, uint32_t row_bytes) const {
  constexpr uint64_t kLineBytes = 64;
  if (row_bytes == 0 || !prefetches()) return;
  const auto* const lines = static_cast<const uint8_t*>(column.offsets != nullptr ? column.offsets : column.values);
  WithPrefetch(is_sparse_ ? 1 : 0, [&]<class Prefetch>() {
    for (uint32_t i = 0; i < n_; ++i) Prefetch::For(lines + uint64_t{rows_[i]} * row_bytes);
  });
  WithPrefetch(is_sparse_ ? 0 : input_rows_, [&]<class Prefetch>() {
    const uint64_t end = (uint64_t{rows_[n_ - 1]} + input_rows_) * row_bytes;  // none where rows do not ascend
    for (uint64_t at = (uint64_t{rows_[0]} + input_rows_) * row_bytes; at < end; at += kLineBytes)
      Prefetch::For(lines + at);
  });
}

}  // namespace quern
