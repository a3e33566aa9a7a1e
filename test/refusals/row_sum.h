// SPDX-License-Identifier: Apache-2.0
// The sum of a job's results, which weighs each row that came out by its values and, where rows have an order, by its
// position:
//
//     rows (1, "a"), (2, "b")      sum = hash(1, "a") + hash(2, "b"), for a sort 1 * hash(1, "a") + 2 * hash(2, "b")
//
// so that a row which is lost, doubled or wrong changes it.
#ifndef QUERN_TEST_REFUSALS_ROW_SUM_H_
#define QUERN_TEST_REFUSALS_ROW_SUM_H_

#include <atomic>
#include <cstdint>
#include <string_view>

#include "hosts/c/quern.h"
#include "test/hosts/arrow_arrays.h"
#include "test/hosts/host_tables.h"

namespace quern_test {

inline uint64_t Mixed(uint64_t hash, const void* bytes, size_t size) {
  for (size_t i = 0; i < size; ++i) hash = (hash ^ static_cast<const uint8_t*>(bytes)[i]) * 0x100000001b3u;
  return hash ^ (hash >> 29);
}

inline uint64_t HashOfRow(const quern_result& result, std::string_view kinds, uint64_t row) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < result.num_columns; ++i) {
    const quern_column& column = result.columns[i];
    hash = Mixed(hash, &kinds[i], 1);
    if (column.validity != nullptr && !BitAt(column.validity, row)) continue;
    if (kinds[i] == 't') {
      const auto* offsets = static_cast<const int32_t*>(column.offsets);
      hash = Mixed(hash, static_cast<const char*>(column.values) + offsets[row],
                   static_cast<size_t>(offsets[row + 1] - offsets[row]));
    } else {
      hash = Mixed(hash, static_cast<const char*>(column.values) + row * 8, 8);
    }
  }
  return hash;
}

// The sum of a job's rows. *Threads*: any.
struct Sum {
  const char* kinds;
  bool is_ordered;
  std::atomic<uint64_t> sum{0}, num_rows{0};

  void Add(const quern_result& result) {
    for (uint64_t row = 0; row < result.num_rows; ++row) {
      const uint64_t position = ++num_rows;
      sum += HashOfRow(result, kinds, row) * (is_ordered ? position : 1);
    }
  }
};

inline bool TakeResult(void* sum, const quern_result* result) {
  static_cast<Sum*>(sum)->Add(*result);
  return true;
}

inline void AddArray(ArrowArray* array, Sum* sum) {
  if (array->release == nullptr) return;
  sum->num_rows += static_cast<uint64_t>(array->length);
  sum->sum += static_cast<uint64_t>(array->length) * 31;
  array->release(array);
}

}  // namespace quern_test

#endif  // QUERN_TEST_REFUSALS_ROW_SUM_H_
