// SPDX-License-Identifier: Apache-2.0
// Which states of a group can be updated as one vector: with one load, one operation and one store for all of them.
#ifndef QUERN_CODEGEN_EMIT_STATE_VECTORS_H_
#define QUERN_CODEGEN_EMIT_STATE_VECTORS_H_

#include <cstdint>
#include <vector>

#include "runtime/abi/aggregate_abi.h"

namespace quern {

constexpr uint32_t kLaneBytes = 8, kMostLanes = 8;

enum class LaneStep : uint8_t { kNone, kAdd, kAddSigned, kAddUnsigned, kAddFloat, kMax, kOr, kXor };
enum class LaneValue : uint8_t { kConstant, kInteger, kNumber, kBits, kOrderedF64, kOrderedF32 };

// 64 bits of a group's tuple, and what a row does to them. kAddSigned and kAddUnsigned check for overflow.
struct StateLane {
  LaneStep step = LaneStep::kNone;
  LaneValue value = LaneValue::kConstant;
  uint64_t constant = 0;     // the value, or the bits that a value is xored with
  uint32_t accumulator = 0;  // the accumulator whose first argument is the value
};

struct StateVector {
  uint32_t first_lane;           // of the tuple
  std::vector<StateLane> lanes;  // 1, 2, 4 or 8
};

// Vectors that hold all states and seen bits of a descriptor; they do not overlap. Empty where vectors cannot do some
// update function (sums of 128 bits, first and last by row, moments), where some rows take no part in some aggregates
// (filters; nulls, if `tests_nulls`), or where the gain would be too small.
std::vector<StateVector> StateVectorsOf(const QuernAggregateDescriptor& descriptor, bool tests_nulls);

}  // namespace quern

#endif  // QUERN_CODEGEN_EMIT_STATE_VECTORS_H_
