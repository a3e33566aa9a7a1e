// SPDX-License-Identifier: Apache-2.0
#include "runtime/rows/string_bytes.h"

#include "runtime/blocks/blocks.h"
#include "runtime/blocks/storage_dispatch.h"

namespace quern {
namespace {

template <class Offset>
uint64_t BytesBetween(const QuernColumn& column, uint64_t first, const uint32_t* rows, uint32_t n) {
  const auto* const offsets = static_cast<const Offset*>(column.offsets);
  if (rows == nullptr) return static_cast<uint64_t>(offsets[first + n] - offsets[first]);
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < n; ++i) bytes += static_cast<uint64_t>(offsets[uint64_t{rows[i]} + 1] - offsets[rows[i]]);
  return bytes;
}

uint64_t BytesOfViews(const QuernColumn& column, uint64_t first, const uint32_t* rows, uint32_t n) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t row = blocks::RowAt(rows, first, i);
    if (blocks::IsValid(&column, row)) bytes += blocks::ViewReader::Read(&column, row).length;
  }
  return bytes;
}

uint64_t BytesInDictionary(const ColumnType& type, const QuernColumn& column, uint64_t first, const uint32_t* rows,
                           uint32_t n) {
  ColumnType value = type;
  value.is_dictionary = false;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t row = blocks::RowAt(rows, first, i);
    if (!blocks::IsValid(&column, row)) continue;
    const uint32_t value_row = TranslateRow(RowOf(type.index).storage, &column, row);
    bytes += StringBytesOf(value, *column.dictionary, value_row, nullptr, 1);
  }
  return bytes;
}

}  // namespace

uint64_t StringBytesOf(const ColumnType& type, const QuernColumn& column, uint64_t first, const uint32_t* rows,
                       uint32_t n) {
  const Storage storage = RowOf(type.id).storage;
  if (n == 0 || !IsVariable(storage)) return 0;
  if (type.is_dictionary) return BytesInDictionary(type, column, first, rows, n);
  if (storage == kView) return BytesOfViews(column, first, rows, n);
  return storage == kVar32 ? BytesBetween<int32_t>(column, first, rows, n)
                           : BytesBetween<int64_t>(column, first, rows, n);
}

}  // namespace quern
