// SPDX-License-Identifier: Apache-2.0
// Selected rows leave gaps, which get the number of no group:
//
//     selected   3  4  6  7  9           first 3
//     groups     A  B  B  A  A
//     numbers    0  1  -  1  0  -  0     of rows 3 .. 9; `-` is kNoLaneGroup
//
// A gap costs as much as a row. Where there are many, rows are better read one by one.
#include "runtime/aggregate/lane_segments.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/thresholds.h"
#include "runtime/rows/row_order.h"

namespace quern {
namespace {

using blocks::kLanes;

constexpr uint8_t kZeros[kMaxBatchRows + kLanes] = {};

}  // namespace

// The place of the i-th row of the block.
uint32_t LaneSegments::Place(const KeyRows& rows, uint32_t i) const {
  return rows.rows == nullptr ? i : rows.rows[i] - rows.rows[0];
}

bool LaneSegments::IsDense(const KeyRows& rows) const {
  if (rows.n < kLanes) return false;
  if (rows.rows == nullptr) return true;
  const uint64_t span = uint64_t{rows.rows[rows.n - 1]} - rows.rows[0] + 1;  // meaningless where they do not ascend
  if (span > std::min<uint64_t>(kMostRows, thresholds::kLaneSpanPercent * rows.n / 100)) return false;
  return Ascend(rows.rows, rows.n);
}

void LaneSegments::Spread(const KeyRows& rows, const uint8_t* numbers) {
  const uint32_t span = Place(rows, rows.n - 1) + 1;
  args_.first = rows.rows == nullptr ? rows.first : rows.rows[0];
  if (span == rows.n) {
    args_.numbers = numbers;
    return;
  }
  std::memset(spread_, kNoLaneGroup, span);
  const uint32_t* const picked = rows.rows;
  const uint32_t n = rows.n, first = picked[0];
  uint8_t* const spread = spread_;
  uint32_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    if (__builtin_expect(picked[i + kLanes - 1] - picked[i] == kLanes - 1, 1)) {
      std::memcpy(spread + (picked[i] - first), numbers + i, kLanes);
    } else {
      for (uint32_t k = i; k < i + kLanes; ++k) spread[picked[k] - first] = numbers[k];
    }
  }
  for (; i < n; ++i) spread[picked[i] - first] = numbers[i];
  args_.numbers = spread_;
}

bool LaneSegments::SetRuns(const KeyRows& rows, const GroupRuns& runs) {
  if (!IsDense(rows) || Place(rows, runs.ends[0] - 1) + 1 < kLanes) return false;
  Spread(rows, kZeros);
  for (uint32_t r = 0; r < runs.n; ++r) ends_[r] = Place(rows, runs.ends[r] - 1) + 1;
  args_.tuples = runs.tuples;
  args_.ends = ends_;
  args_.num_segments = runs.n;
  args_.num_groups = 1;
  return true;
}

bool LaneSegments::SetGroups(const KeyRows& rows, uint8_t* const* tuples, uint32_t most, RunSplitter* splitter) {
  if (!IsDense(rows) || !splitter->Number(tuples, rows.n, most, numbers_)) return false;
  Spread(rows, numbers_);
  ends_[0] = Place(rows, rows.n - 1) + 1;
  args_.tuples = splitter->groups();
  args_.ends = ends_;
  args_.num_segments = 1;
  args_.num_groups = splitter->num_groups();
  return true;
}

}  // namespace quern
