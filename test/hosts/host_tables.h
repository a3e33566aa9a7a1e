// SPDX-License-Identifier: Apache-2.0
// A host's vectors for tests, and results as text: one line a row, columns separated by '|', "null" where there is no
// value.
#ifndef QUERN_TEST_HOSTS_HOST_TABLES_H_
#define QUERN_TEST_HOSTS_HOST_TABLES_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "hosts/c/quern.h"

namespace quern_test {

using Lines = std::vector<std::string>;

// The bits as a bitmap that starts at bit `offset`; the bits before it are the opposite of the first, so that a reader
// of them is noticed.
inline std::vector<uint8_t> Bitmap(const std::vector<bool>& bits, uint64_t offset = 0) {
  std::vector<uint8_t> bitmap((bits.size() + offset + 7) / 8 + 1, 0);
  for (uint64_t i = 0; i < offset + bits.size(); ++i) {
    const bool bit = i < offset ? bits.empty() || !bits[0] : bits[i - offset];
    if (bit) bitmap[i / 8] = static_cast<uint8_t>(bitmap[i / 8] | 1 << (i % 8));
  }
  return bitmap;
}

template <class T>
quern_column ColumnOf(const std::vector<T>& values) {
  quern_column column = {};
  column.values = values.data();
  return column;
}

inline quern_column WithValidity(quern_column column, const std::vector<uint8_t>& bitmap, uint64_t bit_offset = 0) {
  column.validity = bitmap.data();
  column.bit_offset = bit_offset;
  return column;
}

inline quern_column DictionaryColumn(quern_column indices, const quern_column& values) {
  indices.dictionary = &values;
  return indices;
}

// Strings as bytes and offsets (int32_t or int64_t).
template <class Offset>
struct StringVector {
  explicit StringVector(const std::vector<std::string>& values) {
    for (const std::string& value : values) {
      bytes += value;
      offsets.push_back(static_cast<Offset>(bytes.size()));
    }
  }

  quern_column column() const {
    quern_column column = {};
    column.values = bytes.data();
    column.offsets = offsets.data();
    return column;
  }

  std::string bytes;
  std::vector<Offset> offsets = {0};
};

// Strings as 16-byte views; those above 12 bytes lie in two buffers by turns.
struct ViewVector {
  explicit ViewVector(const std::vector<std::string>& values) : views(values.size() * 16) {
    uint32_t turn = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const auto length = static_cast<uint32_t>(values[i].size());
      std::memcpy(&views[i * 16], &length, 4);
      if (length <= 12) {
        std::memcpy(&views[i * 16 + 4], values[i].data(), length);
        continue;
      }
      turn ^= 1;
      const auto offset = static_cast<uint32_t>(bytes[turn].size());
      std::memcpy(&views[i * 16 + 4], values[i].data(), 4);
      std::memcpy(&views[i * 16 + 8], &turn, 4);
      std::memcpy(&views[i * 16 + 12], &offset, 4);
      bytes[turn] += values[i];
    }
    for (size_t i = 0; i < 2; ++i) buffers[i] = reinterpret_cast<const uint8_t*>(bytes[i].data());
  }
  ViewVector(const ViewVector&) = delete;
  ViewVector& operator=(const ViewVector&) = delete;

  quern_column column() const {
    quern_column column = {};
    column.values = views.data();
    column.buffers = buffers;
    return column;
  }

  std::vector<uint8_t> views;
  std::string bytes[2];
  const uint8_t* buffers[2];
};

// A value as PostgreSQL stores it, with a header of one byte, or of four.
inline std::string Varlena(const std::string& value, bool is_long) {
  if (!is_long) return static_cast<char>((value.size() + 1) << 1 | 1) + value;
  const auto header = static_cast<uint32_t>((value.size() + 4) << 2);
  return std::string(reinterpret_cast<const char*>(&header), 4) + value;
}

// One batch with the columns that it points to.
struct Table {
  std::vector<quern_column> keys;
  std::vector<quern_column> payload;
  uint64_t num_rows = 0;
  std::vector<uint32_t> selection = {};
  uint64_t first_row_id = 0;

  quern_batch batch() const {
    quern_batch batch = {};
    batch.keys = keys.data();
    batch.payload = payload.data();
    batch.selection = selection.empty() ? nullptr : selection.data();
    batch.num_rows = selection.empty() ? num_rows : selection.size();
    batch.first_row_id = first_row_id;
    return batch;
  }
};

template <class T>
T ElementAt(const void* array, uint64_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(array) + i * sizeof(T), sizeof(T));
  return value;
}

inline bool BitAt(const void* bitmap, uint64_t i) {
  return (static_cast<const uint8_t*>(bitmap)[i / 8] >> (i % 8)) & 1;
}

template <class Offset>
std::string StringAt(const quern_column& column, uint64_t row) {
  const auto begin = ElementAt<Offset>(column.offsets, row), end = ElementAt<Offset>(column.offsets, row + 1);
  return {static_cast<const char*>(column.values) + begin, static_cast<size_t>(end - begin)};
}

inline std::string ViewAt(const quern_column& column, uint64_t row) {
  const char* view = static_cast<const char*>(column.values) + row * 16;
  const auto length = ElementAt<uint32_t>(view, 0);
  if (length <= 12) return {view + 4, length};
  EXPECT_EQ(ElementAt<uint32_t>(view, 2), 0u) << "results have one data buffer";
  const std::string value(reinterpret_cast<const char*>(column.buffers[0]) + ElementAt<uint32_t>(view, 3), length);
  EXPECT_EQ(std::string(view + 4, 4), value.substr(0, 4));
  return value;
}

// The bytes of a fixed-width value in hexadecimal, the first one first.
inline std::string HexAt(const quern_column& column, size_t width, uint64_t row) {
  std::string text;
  for (size_t i = 0; i < width; ++i) {
    const uint8_t byte = static_cast<const uint8_t*>(column.values)[row * width + i];
    for (const int digit : {byte >> 4, byte & 15}) text += "0123456789abcdef"[digit];
  }
  return text;
}

// What a result column holds: 'i' int32, 'l' int64, 'r' uint64, 'd' double, 'b' bool, 's' utf8 or binary, 'S'
// large_utf8, 'v' utf8_view; '1' to '9' and 'x' (16): so many bytes, as hexadecimal digits.
inline std::string ValueText(const quern_column& column, char kind, uint64_t row) {
  if (column.validity != nullptr && !BitAt(column.validity, row)) return "null";
  switch (kind) {
    case 'i': return std::to_string(ElementAt<int32_t>(column.values, row));
    case 'l': return std::to_string(ElementAt<int64_t>(column.values, row));
    case 'r': return std::to_string(ElementAt<uint64_t>(column.values, row));
    case 'd': return std::to_string(static_cast<int64_t>(ElementAt<double>(column.values, row)));
    case 'b': return BitAt(column.values, row) ? "true" : "false";
    case 's': return StringAt<int32_t>(column, row);
    case 'S': return StringAt<int64_t>(column, row);
    case 'v': return ViewAt(column, row);
    case 'x': return HexAt(column, 16, row);
  }
  if (kind >= '1' && kind <= '9') return HexAt(column, static_cast<size_t>(kind - '0'), row);
  return "unknown kind";
}

inline void AddLines(const quern_result& result, std::string_view kinds, Lines* lines) {
  ASSERT_EQ(result.num_columns, kinds.size());
  for (uint64_t row = 0; row < result.num_rows; ++row) {
    std::string line;
    for (size_t i = 0; i < kinds.size(); ++i) line += (i == 0 ? "" : "|") + ValueText(result.columns[i], kinds[i], row);
    lines->push_back(line);
  }
}

// Calls a function of the ABI, expects it to fail with `code`, and answers the text.
template <class Function, class... Arguments>
std::string ErrorOf(quern_status code, Function function, Arguments... arguments) {
  quern_error error = {};
  const quern_status status = function(arguments..., &error);
  EXPECT_EQ(status, code) << error.text;
  EXPECT_EQ(error.status, code);
  EXPECT_EQ(function(arguments..., nullptr), code) << "the same without an error object";
  return error.text;
}

}  // namespace quern_test

#endif  // QUERN_TEST_HOSTS_HOST_TABLES_H_
