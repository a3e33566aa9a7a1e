// SPDX-License-Identifier: Apache-2.0
// Which states of a group can be brought up to date as one vector: one load, one step and one store for all of them.
#ifndef QUERN_CODEGEN_EMIT_STATE_VECTORS_H_
#define QUERN_CODEGEN_EMIT_STATE_VECTORS_H_

#include <cstdint>
#include <vector>

#include "runtime/abi/aggregate_abi.h"

namespace quern {

constexpr uint32_t kLaneBytes = 8, kMostLanes = 8;

enum class LaneStep : uint8_t { kNone, kAdd, kAddSigned, kAddUnsigned, kAddFloat, kMax, kOr, kXor };
enum class LaneValue : uint8_t { kConstant, kInteger, kNumber, kBits, kOrderedF64, kOrderedF32 };

// 64 bits of a group's tuple, and what a row does to them. kAddSigned and kAddUnsigned are checked sums.
struct StateLane {
  LaneStep step = LaneStep::kNone;
  LaneValue value = LaneValue::kConstant;
  uint64_t constant = 0;     // the value, or what a value is exclusive-ored with
  uint32_t accumulator = 0;  // whose first argument is the value
};

struct StateVector {
  uint32_t first_lane;           // of the tuple
  std::vector<StateLane> lanes;  // 1, 2, 4 or 8
};

// The vectors that hold all states and bits of a descriptor, none overlapping another; empty where a state has a step
// that is none of vectors (sums of 128 bits, first and last by row, moments), where rows do not take part in all
// aggregates (filters; nulls, where `tests_nulls`), or where there is too little to gain.
std::vector<StateVector> StateVectorsOf(const QuernAggregateDescriptor& descriptor, bool tests_nulls);

}  // namespace quern

#endif  // QUERN_CODEGEN_EMIT_STATE_VECTORS_H_
