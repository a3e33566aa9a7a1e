// SPDX-License-Identifier: Apache-2.0
// The side of a row is no column of its batch, and kernels read columns. So each batch gets one or two more, in which
// all rows have the same value. Batches of three rows of the left side and two of the right side, as except_all and as
// intersect_all have them:
//
//     left      keys   payload[0]             keys   payload[0]   payload[1]
//               a      1                      a      1            0
//               b      1                      b      1            0
//               b      1                      b      1            0
//
//     right     b      -1                     b      0            1
//               c      -1                     c      0            1
//
// One byte, which is or-ed or summed up, costs half of what two filtered counts cost (agg_bench
// --benchmark_filter=sets), so only intersect_all has those: it needs both counts. All batches share one array a side,
// with a value for each row up to the largest row number so far: rows of a selection may lie anywhere in their vectors.
#include "runtime/aggregate/set_operation.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/blocks/blocks.h"

namespace quern {
namespace {

constexpr uint64_t kFewestRows = 1024;

// What a batch has beside its keys: `num_columns` columns of bytes or bits, the first one of its own side's values, the
// second one of the other side's.
struct SideValues {
  uint32_t num_columns;
  uint32_t bits;     // of a value
  uint8_t bytes[2];  // of the arrays of the left side and of the right side
};

constexpr uint8_t kLeftBit = 1, kRightBit = 2;

SideValues ValuesOf(SetKind kind) {
  switch (kind) {
    case SetKind::kUnion: break;
    case SetKind::kIntersect:
    case SetKind::kExcept: return {1, 8, {kLeftBit, kRightBit}};
    case SetKind::kExceptAll: return {1, 8, {1, static_cast<uint8_t>(-1)}};
    case SetKind::kIntersectAll: return {2, 1, {0xff, 0}};
  }
  return {};
}

uint64_t StateOf(const AggregateDescriptor& descriptor, const uint8_t* tuple, uint32_t number) {
  return blocks::Load<uint64_t>(tuple + descriptor.get()->accumulators[number].state_offset);
}

uint64_t Intersect(const AggregateDescriptor& descriptor, const uint8_t* tuple) {
  return StateOf(descriptor, tuple, 0) == (kLeftBit | kRightBit) ? 1 : 0;
}

uint64_t Except(const AggregateDescriptor& descriptor, const uint8_t* tuple) {
  return StateOf(descriptor, tuple, 0) == kLeftBit ? 1 : 0;
}

uint64_t IntersectAll(const AggregateDescriptor& descriptor, const uint8_t* tuple) {
  return std::min(StateOf(descriptor, tuple, 0), StateOf(descriptor, tuple, 1));
}

uint64_t ExceptAll(const AggregateDescriptor& descriptor, const uint8_t* tuple) {
  const auto difference = static_cast<int64_t>(StateOf(descriptor, tuple, 0));
  return static_cast<uint64_t>(std::max<int64_t>(difference, 0));
}

}  // namespace

SideColumns::SideColumns(const SetSpec& spec, std::shared_ptr<MemoryBudget> budget)
    : kind_(spec.kind), budget_(std::move(budget)) {}

absl::StatusOr<BatchView> SideColumns::With(const BatchView& batch, SetSide side) {
  BatchView with = batch;
  const uint32_t num_columns = ValuesOf(kind_).num_columns;
  if (num_columns == 0) return with;
  const uint64_t num_rows = RowSpan(batch.selection, batch.num_rows);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (num_rows > num_rows_) QUERN_RETURN_IF_ERROR(Grow(num_rows));
  const size_t own = side == SetSide::kLeft ? 0 : 1;
  with.payload.assign(num_columns, QuernColumn{});
  for (size_t i = 0; i < num_columns; ++i) with.payload[i].values = values_[i == 0 ? own : 1 - own];
  return with;
}

absl::Status SideColumns::Grow(uint64_t num_rows) {
  const uint64_t rows = std::max({num_rows, 2 * num_rows_, kFewestRows});
  const SideValues values = ValuesOf(kind_);
  const uint64_t bytes = (rows * values.bits + 7) / 8 + 8;  // kernels read words of 8 bytes
  QUERN_ASSIGN_OR_RETURN(HugeBuffer buffer,
                         HugeBuffer::Allocate(budget_, 2 * bytes, /*huge_pages=*/false, Contents::kAnything));
  for (size_t side = 0; side < 2; ++side) std::memset(buffer.data() + side * bytes, values.bytes[side], bytes);
  buffers_.push_back(std::move(buffer));
  for (size_t side = 0; side < 2; ++side) values_[side] = buffers_.back().data() + side * bytes;
  num_rows_ = rows;
  return absl::OkStatus();
}

GroupReader::CopiesOf CopiesOf(SetKind kind) {
  switch (kind) {
    case SetKind::kUnion: return nullptr;
    case SetKind::kIntersect: return Intersect;
    case SetKind::kExcept: return Except;
    case SetKind::kIntersectAll: return IntersectAll;
    case SetKind::kExceptAll: return ExceptAll;
  }
  return nullptr;
}

}  // namespace quern
