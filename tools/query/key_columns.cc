// SPDX-License-Identifier: Apache-2.0
// A bit for each number between the smallest and the largest: the first bit that is set twice ends the look.
#include "tools/query/key_columns.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "runtime/base/thresholds.h"

namespace quern::query {
namespace {

// The numbers of one array, for f(pointer, count). Returns false for an array without such numbers.
template <class Number, class F>
bool ForEachArray(const TableRows& rows, uint32_t child, const F& f) {
  for (const ArrowArray* const batch : rows.batches) {
    if (batch->n_children <= static_cast<int64_t>(child)) return false;
    const ArrowArray& array = *batch->children[child];
    const bool fits = batch->offset >= 0 && array.offset >= 0 && array.length >= batch->offset + batch->length;
    if (!fits || array.n_buffers != 2 || array.dictionary != nullptr || array.null_count > 0) return false;
    // An unknown number of nulls is none without a bitmap.
    if (array.null_count < 0 && array.buffers[0] != nullptr) return false;
    if (batch->length == 0) continue;
    if (array.buffers[1] == nullptr) return false;
    const auto* const numbers = static_cast<const Number*>(array.buffers[1]) + array.offset + batch->offset;
    if (!f(numbers, static_cast<uint64_t>(batch->length))) return false;
  }
  return true;
}

template <class Number>
bool IsKey(const TableRows& rows, uint32_t child) {
  Number min = std::numeric_limits<Number>::max(), max = std::numeric_limits<Number>::min();
  const bool found = ForEachArray<Number>(rows, child, [&](const Number* numbers, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      min = std::min(min, numbers[i]);
      max = std::max(max, numbers[i]);
    }
    return true;
  });
  if (!found || rows.num_rows == 0) return false;
  const uint64_t range = static_cast<uint64_t>(max) - static_cast<uint64_t>(min);
  if (range / thresholds::kKeyRangeOfRows >= rows.num_rows) return false;
  std::vector<uint64_t> seen(range / 64 + 1);
  return ForEachArray<Number>(rows, child, [&](const Number* numbers, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t place = static_cast<uint64_t>(numbers[i]) - static_cast<uint64_t>(min);
      uint64_t& word = seen[place / 64];
      const uint64_t bit = uint64_t{1} << place % 64;
      if ((word & bit) != 0) return false;
      word |= bit;
    }
    return true;
  });
}

}  // namespace

bool IsKeyColumn(const TableRows& rows, uint32_t child, const QueryColumn& column) {
  if (!column.type.has_value() || column.type->is_dictionary) return false;
  switch (column.type->id) {
    case TypeId::kI32: return IsKey<int32_t>(rows, child);
    case TypeId::kI64: return IsKey<int64_t>(rows, child);
    case TypeId::kU32: return IsKey<uint32_t>(rows, child);
    case TypeId::kU64: return IsKey<uint64_t>(rows, child);
    default: return false;
  }
}

}  // namespace quern::query
