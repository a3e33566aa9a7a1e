// SPDX-License-Identifier: Apache-2.0
// Which update functions can add up eight rows at a time (lane_totals.h), and how.
#ifndef QUERN_RUNTIME_BLOCKS_LANE_STEPS_H_
#define QUERN_RUNTIME_BLOCKS_LANE_STEPS_H_

#include "runtime/abi/aggregate_abi.h"

namespace quern::blocks {

constexpr bool IsLaneExtreme(Step step) {
  return step == kUpdateMin || step == kUpdateMax || step == kUpdateMinWide || step == kUpdateMaxWide;
}
constexpr bool IsLaneSum(Step step) {
  return step == kUpdateSum || step == kUpdateSum128 || step == kUpdateSumDecimal || step == kUpdateAvgSmall ||
         step == kUpdateAvg || step == kUpdateAvgDecimal;
}
constexpr bool IsLaneBits(Step step) { return step == kUpdateBitAnd || step == kUpdateBitOr || step == kUpdateBitXor; }
// Whether lanes can do an update function.
constexpr bool HasLaneTotal(Step step) {
  return step == kUpdateRows || IsLaneExtreme(step) || IsLaneSum(step) || IsLaneBits(step);
}

}  // namespace quern::blocks

#endif  // QUERN_RUNTIME_BLOCKS_LANE_STEPS_H_
