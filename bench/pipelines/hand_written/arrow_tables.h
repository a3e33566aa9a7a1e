// SPDX-License-Identifier: Apache-2.0
// Tables of the Arrow C data interface as arrays of C++, and results as such tables.
#ifndef QUERN_BENCH_PIPELINES_HAND_WRITTEN_ARROW_TABLES_H_
#define QUERN_BENCH_PIPELINES_HAND_WRITTEN_ARROW_TABLES_H_

#include <stddef.h>
#include <stdint.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/abi/arrow_abi.h"

namespace quern::bench {

// Values of an utf8 column.
struct Texts {
  const int32_t* offsets;
  const char* bytes;

  std::string_view operator[](size_t row) const {
    return {bytes + offsets[row], static_cast<size_t>(offsets[row + 1] - offsets[row])};
  }
};

// A table of one batch; extern "C" callers fill an array of these.
struct ArrowTable {
  const char* name;
  const ArrowSchema* schema;
  const ArrowArray* array;
};

// Finds columns by name, and checks that they have the expected type and no nulls. A column that fails the check is a
// null pointer; error() then says why, and no column may be read.
class TableReader {
 public:
  explicit TableReader(std::span<const ArrowTable> tables) : tables_(tables) {}

  size_t NumRows(std::string_view table);
  const int64_t* Int64(std::string_view table, std::string_view column) { return Fixed<int64_t>(table, column, "l"); }
  const int32_t* Int32(std::string_view table, std::string_view column) { return Fixed<int32_t>(table, column, "i"); }
  const int32_t* Date(std::string_view table, std::string_view column) { return Fixed<int32_t>(table, column, "tdD"); }
  // Decimals of 64 bits, two digits of which are behind the point.
  const int64_t* Money(std::string_view table, std::string_view column) {
    return Fixed<int64_t>(table, column, "d:15,2,64");
  }
  Texts Text(std::string_view table, std::string_view column);

  // Empty if all columns so far were found.
  const std::string& error() const { return error_; }

 private:
  template <class T>
  const T* Fixed(std::string_view table, std::string_view column, std::string_view format) {
    size_t first = 0;
    const ArrowArray* array = Find(table, column, format, &first);
    return array == nullptr ? nullptr : static_cast<const T*>(array->buffers[1]) + first;
  }
  const ArrowTable* FindTable(std::string_view table);
  const ArrowArray* Find(std::string_view table, std::string_view column, std::string_view format, size_t* first);

  std::span<const ArrowTable> tables_;
  std::string error_;
};

// A result, which is put together column by column.
class ResultTable {
 public:
  void Add(const char* name, const std::vector<std::string>& texts);
  void Add(const char* name, const std::vector<int64_t>& numbers);
  void Add(const char* name, const std::vector<double>& numbers);
  void AddInt32(const char* name, const char* format, const std::vector<int32_t>& numbers);
  void AddNulls(const char* name, size_t num_rows);
  // decimal128(38, scale)
  void Add(const char* name, const std::vector<__int128>& decimals, int scale);

  // Moves the columns into `array` and `schema`, whose release functions free them.
  void Export(ArrowArray* array, ArrowSchema* schema) &&;

  struct Column {
    std::string name, format;
    std::vector<int32_t> offsets;  // of texts
    std::vector<char> bytes;
  };

 private:
  void AddBytes(const char* name, std::string format, const void* bytes, size_t num_bytes, size_t num_rows);

  std::vector<Column> columns_;
  size_t num_rows_ = 0;
};

}  // namespace quern::bench

#endif  // QUERN_BENCH_PIPELINES_HAND_WRITTEN_ARROW_TABLES_H_
