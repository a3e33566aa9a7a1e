// SPDX-License-Identifier: Apache-2.0
// The tuple of a group as lanes of 64 bits. For keys=i64 aggs=count_star,sum(i64),max(f64), the four lanes of its 32
// bytes and what a row with the values v and f does to them:
//
//     lane      0      1         2           3
//     tuple     word   count     sum         max
//     row       0      1         v           ordered(f)
//     update    -      add       add, check  greater of the two
//
// Lane 0 takes part unchanged, since four lanes make a vector and three do not. Lanes that no aggregate of the loop
// updates (the key, states of out-of-line aggregates) are written back as they were read. No vector is longer than the
// tuple.
//
// Nine lanes make a vector of eight and one of one; three lanes of a tuple of three make one of two and one of one.
// Vectors do not overlap: a load of bytes that two stores wrote just before waits until both have reached the cache.
#include "codegen/emit/state_vectors.h"

#include <algorithm>
#include <bit>

#include "runtime/blocks/accumulators.h"

namespace quern {
namespace {

// Two states are as fast one by one.
constexpr uint32_t kFewestLanes = 3;

LaneValue OrderedValue(const QuernArgument& argument) {
  if (argument.storage == kF64) return LaneValue::kOrderedF64;
  if (argument.storage == kF32) return LaneValue::kOrderedF32;
  return argument.storage == kBit ? LaneValue::kBits : LaneValue::kInteger;
}

// The lanes of a tuple while they are filled.
class Lanes {
 public:
  explicit Lanes(uint32_t tuple_bytes) : lanes_(tuple_bytes / kLaneBytes) {}

  void Set(uint32_t offset, StateLane lane) { lanes_[offset / kLaneBytes] = lane; }

  // Returns whether vectors can do the accumulator's update function.
  bool Add(uint32_t k, const QuernAccumulator& a) {
    const QuernArgument& argument = a.arguments[0];
    const auto set = [&](uint32_t offset, LaneStep step, LaneValue value, uint64_t constant) {
      Set(a.state_offset + offset, {step, value, constant, k});
    };
    const uint64_t turned = blocks::TurnedBits(a.step, a.negated);
    switch (a.step) {
      case kUpdateRows: set(0, LaneStep::kAdd, LaneValue::kConstant, 1); return true;
      case kUpdateSum:
        set(0, argument.is_signed ? LaneStep::kAddSigned : LaneStep::kAddUnsigned, LaneValue::kInteger, 0);
        return true;
      case kUpdateSumFloat: set(0, LaneStep::kAddFloat, LaneValue::kNumber, 0); return true;
      case kUpdateAvgSmall:
        set(0, LaneStep::kAdd, LaneValue::kInteger, 0);
        set(kLaneBytes, LaneStep::kAdd, LaneValue::kConstant, 1);
        return true;
      case kUpdateAvgFloat:
        set(0, LaneStep::kAddFloat, LaneValue::kNumber, 0);
        set(kLaneBytes, LaneStep::kAdd, LaneValue::kConstant, 1);
        return true;
      case kUpdateMin:
      case kUpdateMax: {
        const LaneValue value = OrderedValue(argument);
        const bool is_signed = (value == LaneValue::kInteger || value == LaneValue::kBits) && argument.is_signed;
        set(0, LaneStep::kMax, value, turned ^ (is_signed ? uint64_t{1} << 63 : 0));
        return true;
      }
      case kUpdateBitAnd:
      case kUpdateBitOr: set(0, LaneStep::kOr, LaneValue::kBits, turned); return true;
      case kUpdateBitXor: set(0, LaneStep::kXor, LaneValue::kBits, turned); return true;
      case kUpdateOutOfLine: return true;
      case kUpdateSum128:
      case kUpdateSumDecimal:
      case kUpdateAvg:
      case kUpdateAvgDecimal:
      case kUpdateMinWide:
      case kUpdateMaxWide:
      case kUpdateAny:
      case kUpdateAnyWide:
      case kUpdateFirst:
      case kUpdateLast:
      case kUpdateFirstWide:
      case kUpdateLastWide:
      case kUpdateMoments:
      case kUpdateComoments:
      case kUpdateCorrelation: return false;
    }
    return false;
  }

  // Adds a seen bit that every row sets.
  void AddSeen(const QuernAccumulator& a) {
    StateLane& lane = lanes_[a.seen_offset / kLaneBytes];
    lane.step = LaneStep::kOr;
    lane.constant |= uint64_t{a.seen_mask} << (a.seen_offset % kLaneBytes * 8);
  }

  std::vector<StateVector> Cut() const {
    std::vector<StateVector> vectors;
    const uint32_t total = static_cast<uint32_t>(lanes_.size());
    uint32_t at = 0, end = total;
    while (at < total && lanes_[at].step == LaneStep::kNone) ++at;
    while (end > at && lanes_[end - 1].step == LaneStep::kNone) --end;
    if (end - at < kFewestLanes) return {};
    for (uint32_t previous_end = 0; at < end; at = previous_end) {
      uint32_t n = std::min(kMostLanes, std::bit_ceil(end - at));
      if (previous_end + n > total) n = std::bit_floor(end - at);
      const uint32_t first = std::max(previous_end, std::min(at, total - n));
      previous_end = first + n;
      vectors.push_back({first, {lanes_.begin() + first, lanes_.begin() + previous_end}});
    }
    return vectors;
  }

 private:
  std::vector<StateLane> lanes_;
};

bool AlwaysTakes(const QuernAccumulator& a, bool tests_nulls) {
  if (a.filtered) return false;
  for (uint32_t i = 0; i < a.num_arguments; ++i)
    if (tests_nulls && a.arguments[i].nullable) return false;
  return true;
}

}  // namespace

std::vector<StateVector> StateVectorsOf(const QuernAggregateDescriptor& descriptor, bool tests_nulls) {
  Lanes lanes(descriptor.group.tuple_bytes);
  for (uint32_t k = 0; k < descriptor.num_accumulators; ++k) {
    const QuernAccumulator& a = descriptor.accumulators[k];
    if (a.step != kUpdateOutOfLine && !AlwaysTakes(a, tests_nulls)) return {};
    if (!lanes.Add(k, a)) return {};
    if (a.step != kUpdateOutOfLine && a.seen_mask != 0) lanes.AddSeen(a);
  }
  return lanes.Cut();
}

}  // namespace quern
