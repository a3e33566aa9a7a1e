// SPDX-License-Identifier: Apache-2.0
// Columns of strings in any layout, and of other values, made of rows (expression_rows.h); and strings read back.
#ifndef QUERN_TEST_UNIT_RUNTIME_MAP_STRING_COLUMNS_H_
#define QUERN_TEST_UNIT_RUNTIME_MAP_STRING_COLUMNS_H_

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "runtime/abi/kernel_abi.h"
#include "runtime/spec/expression.h"
#include "test/unit/runtime/map/string_rows.h"

namespace quern::test {

// The buffers of a column of strings, in any layout.
struct StringColumn {
  std::vector<uint8_t> validity;
  std::string bytes;
  std::vector<int32_t> offsets, indices;
  std::vector<int64_t> large_offsets;
  std::vector<uint32_t> views;
  const uint8_t* buffers[1] = {};
  std::unique_ptr<StringColumn> dictionary;
  QuernColumn column = {};
};

inline void SetView(const std::string& text, size_t offset, std::vector<uint32_t>* views) {
  uint32_t view[4] = {static_cast<uint32_t>(text.size())};
  if (text.size() <= 12) {
    std::memcpy(view + 1, text.data(), text.size());
  } else {
    std::memcpy(view + 1, text.data(), 4);
    view[3] = static_cast<uint32_t>(offset);
  }
  views->insert(views->end(), view, view + 4);
}

inline void Lay(const std::vector<std::string>& texts, TypeId id, StringColumn* to) {
  to->offsets = {0};
  to->large_offsets = {0};
  for (const std::string& text : texts) {
    SetView(text, to->bytes.size(), &to->views);
    to->bytes += text;
    to->offsets.push_back(static_cast<int32_t>(to->bytes.size()));
    to->large_offsets.push_back(static_cast<int64_t>(to->bytes.size()));
  }
  const Storage storage = RowOf(id).storage;
  to->buffers[0] = reinterpret_cast<const uint8_t*>(to->bytes.data());
  to->column.values = storage == kView ? static_cast<const void*>(to->views.data()) : to->bytes.data();
  to->column.buffers = to->buffers;
  if (storage == kVar32) to->column.offsets = to->offsets.data();
  if (storage == kVar64) to->column.offsets = to->large_offsets.data();
}

inline bool BitOf(const void* bits, uint64_t i) {
  return (static_cast<const uint8_t*>(bits)[i / 8] >> (i % 8) & 1) != 0;
}

// Values of a fixed width; bits from bit_offset on.
inline void LayValues(TypeId id, const std::vector<Row>& rows, size_t c, uint64_t bit_offset, StringColumn* to) {
  const size_t width = RowOf(id).width_bytes;
  to->bytes.assign(id == TypeId::kBool ? (bit_offset + rows.size() + 7) / 8 : rows.size() * width, 0);
  for (size_t r = 0; r < rows.size(); ++r) {
    const RowValue& value = rows[r][c];
    const auto narrow = static_cast<float>(value.real);
    const void* const from = id == TypeId::kF64   ? static_cast<const void*>(&value.real)
                             : id == TypeId::kF32 ? static_cast<const void*>(&narrow)
                                                  : &value.number;
    const uint64_t bit = bit_offset + r;
    if (id != TypeId::kBool) std::memcpy(to->bytes.data() + r * width, from, width);
    else if (value.number != 0) to->bytes[bit / 8] = static_cast<char>(to->bytes[bit / 8] | 1 << bit % 8);
  }
  to->column.values = to->bytes.data();
  to->column.bit_offset = bit_offset;
}

inline std::unique_ptr<StringColumn> MakeColumnOf(const ValueType& type, const std::vector<Row>& rows, size_t c,
                                                  uint64_t bit_offset) {
  auto made = std::make_unique<StringColumn>();
  std::vector<std::string> texts;
  for (const Row& row : rows) texts.push_back(row[c].bytes);
  if (!IsStringType(type.id)) {
    LayValues(type.id, rows, c, bit_offset, made.get());
  } else if (type.is_dictionary) {
    made->dictionary = std::make_unique<StringColumn>();
    for (size_t r = rows.size(); r > 0; --r) made->indices.push_back(static_cast<int32_t>(r - 1));
    Lay({texts.rbegin(), texts.rend()}, type.id, made->dictionary.get());
    made->column.values = made->indices.data();
    made->column.dictionary = &made->dictionary->column;
  } else {
    Lay(texts, type.id, made.get());
  }
  if (!type.nullable) return made;
  made->validity.resize((bit_offset + rows.size() + 7) / 8);
  for (size_t r = 0; r < rows.size(); ++r) {
    const uint64_t bit = bit_offset + r;
    if (rows[r][c].valid) made->validity[bit / 8] = static_cast<uint8_t>(made->validity[bit / 8] | 1 << bit % 8);
  }
  made->column.validity = made->validity.data();
  made->column.bit_offset = bit_offset;
  return made;
}

// The string of a result column's row.
inline std::string StringAt(const QuernOutColumn& column, Storage storage, uint64_t row) {
  const char* const bytes = reinterpret_cast<const char*>(column.bytes);
  if (storage == kView) {
    uint32_t view[4];
    std::memcpy(view, static_cast<const uint8_t*>(column.values) + row * 16, sizeof(view));
    if (view[0] <= 12) return {reinterpret_cast<const char*>(view + 1), view[0]};
    return {bytes + view[3], view[0]};
  }
  const auto at = [&](uint64_t i) {
    return storage == kVar32 ? static_cast<const int32_t*>(column.offsets)[i]
                             : static_cast<const int64_t*>(column.offsets)[i];
  };
  return {bytes + at(row), static_cast<size_t>(at(row + 1) - at(row))};
}

}  // namespace quern::test

#endif  // QUERN_TEST_UNIT_RUNTIME_MAP_STRING_COLUMNS_H_
