// SPDX-License-Identifier: Apache-2.0
// Joins over numbers that unit tests own, and their results by the definition of a join.
#ifndef QUERN_TEST_UNIT_RUNTIME_JOIN_NUMBER_JOIN_H_
#define QUERN_TEST_UNIT_RUNTIME_JOIN_NUMBER_JOIN_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/join/hash_join.h"
#include "runtime/rows/output_batch.h"

namespace quern::test {

using Pairs = std::vector<std::pair<int64_t, int64_t>>;  // probe payload, build payload; sorted

inline QuernColumn Column(const std::vector<int64_t>& values, const uint8_t* validity = nullptr) {
  QuernColumn column = {};
  column.values = values.data();
  column.validity = validity;
  return column;
}

// All rows, with one key column and one payload column.
inline BatchView Batch(const std::vector<int64_t>& keys, const std::vector<int64_t>& payload,
                       const uint8_t* key_validity = nullptr) {
  BatchView batch;
  batch.keys.push_back(Column(keys, key_validity));
  batch.payload.push_back(Column(payload));
  batch.num_rows = keys.size();
  return batch;
}

// Result rows of an output batch with two columns of 64 bits.
inline void AddRows(const OutputBatch& out, Pairs* pairs) {
  const auto *probe = static_cast<const int64_t*>(out.column(0).values),
             *build = static_cast<const int64_t*>(out.column(1).values);
  for (uint64_t i = 0; i < out.num_rows(); ++i) pairs->emplace_back(probe[i], build[i]);
}

// Probes a finalised join with one batch, in output batches of `capacity` rows.
inline Pairs Probe(const std::shared_ptr<HashJoin>& join, const BatchView& batch, uint64_t capacity) {
  std::vector<ColumnType> types = join->descriptor().spec().probe;
  const auto& build = join->descriptor().spec().build;
  types.insert(types.end(), build.begin(), build.end());
  OutputBatch out(types, capacity, nullptr);
  JoinProber prober(join);
  EXPECT_TRUE(prober.SetInput(batch).ok());
  Pairs pairs;
  for (bool more = true; more;) {
    const absl::StatusOr<bool> next = prober.Next(&out);
    EXPECT_TRUE(next.ok()) << next.status();
    if (!next.ok()) break;
    EXPECT_LE(out.num_rows(), capacity);
    AddRows(out, &pairs);
    more = *next;
  }
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

// The result of a join of keys whose payload is the row number.
inline Pairs NestedLoops(const std::vector<int64_t>& build, const std::vector<int64_t>& probe) {
  Pairs pairs;
  for (size_t p = 0; p < probe.size(); ++p)
    for (size_t b = 0; b < build.size(); ++b)
      if (probe[p] == build[b]) pairs.emplace_back(p, b);
  return pairs;
}

// 0, 1, 2, ..
inline std::vector<int64_t> RowNumbers(size_t n) {
  std::vector<int64_t> numbers(n);
  for (size_t i = 0; i < n; ++i) numbers[i] = static_cast<int64_t>(i);
  return numbers;
}

// n keys among `distinct` ones, the same for the same seed.
inline std::vector<int64_t> SomeKeys(size_t n, uint64_t distinct, uint64_t seed) {
  std::vector<int64_t> keys(n);
  for (int64_t& key : keys) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    key = static_cast<int64_t>((seed >> 33) % distinct);
  }
  return keys;
}

}  // namespace quern::test

#endif  // QUERN_TEST_UNIT_RUNTIME_JOIN_NUMBER_JOIN_H_
