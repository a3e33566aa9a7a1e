// SPDX-License-Identifier: Apache-2.0
// Columns of random values of any plain type, for benches that run any spec that they are given.
#ifndef QUERN_BENCH_COMMON_ANY_COLUMNS_H_
#define QUERN_BENCH_COMMON_ANY_COLUMNS_H_

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "runtime/abi/kernel_abi.h"
#include "runtime/spec/column_type.h"
#include "runtime/spec/spec.h"

namespace quern::bench {

// A column of `num_rows` random values, drawn uniformly from `distinct` ones: i64 far apart, i32 and dates close
// together, f64 multiples of one half, texts of 13 bytes. Two columns with the same number and type have the same
// values, so that one can be joined with the other.
class AnyColumn {
 public:
  AnyColumn(const ColumnType& type, uint64_t num_rows, uint64_t distinct, uint64_t number)
      : width_(WidthOf(type)), is_text_(IsVariable(RowOf(type.id).storage)) {
    uint64_t state = number * 0x9e3779b97f4a7c15u + 1;
    const auto next = [&] {
      state = state * 6364136223846793005u + 1442695040888963407u;
      return (state >> 33) % distinct;
    };
    if (is_text_) {
      bytes_.resize(num_rows * kTextBytes);
      offsets_.resize(num_rows + 1);
      for (uint64_t i = 0; i < num_rows; ++i) WriteText(i, next());
    } else {
      bytes_.resize(num_rows * width_);
      for (uint64_t i = 0; i < num_rows; ++i) WriteValue(type, i, next());
    }
  }

  // The column, beginning at `row`.
  QuernColumn From(uint64_t row) const {
    QuernColumn column = {};
    column.values = is_text_ ? bytes_.data() : bytes_.data() + row * width_;
    if (is_text_) column.offsets = offsets_.data() + row;
    return column;
  }

 private:
  static constexpr uint64_t kTextBytes = 13;
  static uint64_t WidthOf(const ColumnType& type) {
    return type.id == TypeId::kI32 || type.id == TypeId::kDate32 ? sizeof(int32_t) : sizeof(int64_t);
  }

  void WriteText(uint64_t row, uint64_t value) {
    char text[32];
    std::snprintf(text, sizeof text, "w%012llu", static_cast<unsigned long long>(value * 7919 % 1'000'000'000'000));
    std::memcpy(bytes_.data() + row * kTextBytes, text, kTextBytes);
    offsets_[row + 1] = static_cast<int32_t>((row + 1) * kTextBytes);
  }

  void WriteValue(const ColumnType& type, uint64_t row, uint64_t value) {
    if (type.id == TypeId::kF64) return Write(row, static_cast<double>(value) * 0.5);
    if (width_ == sizeof(int32_t)) return Write(row, static_cast<int32_t>(value));
    Write(row, static_cast<int64_t>(value * 0x9e3779b97f4a7c15u >> 8));
  }
  template <class T>
  void Write(uint64_t row, T value) {
    std::memcpy(bytes_.data() + row * width_, &value, sizeof value);
  }

  uint64_t width_;
  bool is_text_;
  std::vector<uint8_t> bytes_;
  std::vector<int32_t> offsets_;
};

// Columns of one table. A row id has no column.
class AnyTable {
 public:
  AnyTable(const std::vector<ColumnType>& types, uint64_t num_rows, uint64_t distinct) {
    for (const ColumnType& type : types) {
      if (type.id != TypeId::kRowId)
        columns_.push_back(std::make_unique<AnyColumn>(type, num_rows, distinct, columns_.size() + 1));
      else columns_.push_back(nullptr);
    }
  }
  std::vector<QuernColumn> From(uint64_t row) const {
    std::vector<QuernColumn> views;
    for (const auto& column : columns_) views.push_back(column == nullptr ? QuernColumn{} : column->From(row));
    return views;
  }

 private:
  std::vector<std::unique_ptr<AnyColumn>> columns_;
};

}  // namespace quern::bench

#endif  // QUERN_BENCH_COMMON_ANY_COLUMNS_H_
