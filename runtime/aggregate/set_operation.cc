// SPDX-License-Identifier: Apache-2.0
// The side of a row is no column of its batch, and kernels read columns. So each batch gets two more, in which all rows
// have the same bit. A batch of three rows of the left side, and one of the right side:
//
//     keys      payload[0]   payload[1]            keys      payload[0]   payload[1]
//     a         1            0                     b         0            1
//     b         1            0                     c         0            1
//     b         1            0
//
// They are the filter columns of two counts. All batches share one array of ones and one of zeros, a bit for each row
// up to the largest row number so far: rows of a selection may lie anywhere in their vectors.
#include "runtime/aggregate/set_operation.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/status.h"

namespace quern {
namespace {

constexpr uint64_t kFewestRows = 65536;

struct SideCounts {
  uint64_t left, right;
};

SideCounts CountsOf(const AggregateDescriptor& descriptor, const uint8_t* tuple) {
  const QuernAccumulator* const accumulators = descriptor.get()->accumulators;
  SideCounts counts;
  std::memcpy(&counts.left, tuple + accumulators[0].state_offset, sizeof counts.left);
  std::memcpy(&counts.right, tuple + accumulators[1].state_offset, sizeof counts.right);
  return counts;
}

uint64_t Intersect(const AggregateDescriptor& descriptor, const uint8_t* tuple) {
  const SideCounts counts = CountsOf(descriptor, tuple);
  return counts.left != 0 && counts.right != 0 ? 1 : 0;
}

uint64_t Except(const AggregateDescriptor& descriptor, const uint8_t* tuple) {
  const SideCounts counts = CountsOf(descriptor, tuple);
  return counts.left != 0 && counts.right == 0 ? 1 : 0;
}

uint64_t IntersectAll(const AggregateDescriptor& descriptor, const uint8_t* tuple) {
  const SideCounts counts = CountsOf(descriptor, tuple);
  return std::min(counts.left, counts.right);
}

uint64_t ExceptAll(const AggregateDescriptor& descriptor, const uint8_t* tuple) {
  const SideCounts counts = CountsOf(descriptor, tuple);
  return counts.left - std::min(counts.left, counts.right);
}

}  // namespace

SideColumns::SideColumns(const SetSpec& spec, std::shared_ptr<MemoryBudget> budget)
    : counts_(spec.kind != SetKind::kUnion), budget_(std::move(budget)) {}

absl::StatusOr<BatchView> SideColumns::With(const BatchView& batch, SetSide side) {
  BatchView with = batch;
  if (!counts_) return with;
  uint64_t num_rows = batch.num_rows;
  if (batch.selection != nullptr && num_rows != 0)
    num_rows = uint64_t{*std::max_element(batch.selection, batch.selection + num_rows)} + 1;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (num_rows > num_rows_) QUERN_RETURN_IF_ERROR(Grow(num_rows));
  QuernColumn ones = {}, zeros = {};
  ones.values = ones_;
  zeros.values = zeros_;
  with.payload = side == SetSide::kLeft ? std::vector{ones, zeros} : std::vector{zeros, ones};
  return with;
}

absl::Status SideColumns::Grow(uint64_t num_rows) {
  const uint64_t rows = std::max({num_rows, 2 * num_rows_, kFewestRows});
  const uint64_t bytes = (rows + 7) / 8 + 8;  // kernels read words of 8 bytes
  QUERN_ASSIGN_OR_RETURN(HugeBuffer buffer, HugeBuffer::Allocate(budget_, 2 * bytes, /*huge_pages=*/false));
  std::memset(buffer.data(), 0xff, bytes);
  ones_ = buffer.data();
  zeros_ = buffer.data() + bytes;
  num_rows_ = rows;
  buffers_.push_back(std::move(buffer));
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
