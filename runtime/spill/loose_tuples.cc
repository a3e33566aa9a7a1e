// SPDX-License-Identifier: Apache-2.0
#include "runtime/spill/loose_tuples.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/rows/batch_view.h"

namespace quern {

LooseTuples::LooseTuples(uint32_t tuple_bytes, uint32_t num_parts, uint64_t bytes, std::shared_ptr<MemoryBudget> budget,
                         PartsOf parts_of, WritePart write)
    : tuple_bytes_(tuple_bytes),
      bytes_(std::max(bytes, LeastBytes(tuple_bytes))),
      num_parts_(num_parts),
      budget_(std::move(budget)),
      parts_of_(std::move(parts_of)),
      write_(std::move(write)) {}

uint64_t LooseTuples::LeastBytes(uint32_t tuple_bytes) {
  constexpr uint64_t kFewest = 64;
  return 2 * kFewest * tuple_bytes;
}

absl::Status LooseTuples::Add(uint8_t* const* tuples, uint32_t n) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (buffer_.data() == nullptr) {
    QUERN_ASSIGN_OR_RETURN(buffer_, HugeBuffer::Allocate(budget_, bytes_, false, Contents::kAnything));
  }
  const uint64_t most = bytes_ / 2 / tuple_bytes_;
  for (uint32_t i = 0; i < n; ++i) {
    if (num_tuples_ == most) QUERN_RETURN_IF_ERROR(Write());
    std::memcpy(buffer_.data() + num_tuples_++ * tuple_bytes_, tuples[i], tuple_bytes_);
  }
  return absl::OkStatus();
}

absl::Status LooseTuples::Write() {
  std::vector<uint64_t> parts(num_tuples_), begin(num_parts_ + 1);
  std::vector<uint8_t*> tuples(num_tuples_);
  for (uint64_t i = 0; i < num_tuples_; ++i) tuples[i] = buffer_.data() + i * tuple_bytes_;
  for (uint64_t i = 0; i < num_tuples_; i += kMaxBatchRows) {
    const auto n = static_cast<uint32_t>(std::min<uint64_t>(num_tuples_ - i, kMaxBatchRows));
    parts_of_(tuples.data() + i, n, parts.data() + i);
  }
  for (const uint64_t part : parts) ++begin[part + 1];
  for (uint32_t p = 0; p < num_parts_; ++p) begin[p + 1] += begin[p];
  uint8_t* const sorted = buffer_.data() + num_tuples_ * tuple_bytes_;
  std::vector<uint64_t> next(begin.begin(), begin.end() - 1);
  for (uint64_t i = 0; i < num_tuples_; ++i)
    std::memcpy(sorted + next[parts[i]]++ * tuple_bytes_, tuples[i], tuple_bytes_);
  for (uint32_t p = 0; p < num_parts_; ++p) {
    const uint64_t n = begin[p + 1] - begin[p];
    if (n == 0) continue;
    const iovec values = {sorted + begin[p] * tuple_bytes_, n * tuple_bytes_};
    QUERN_RETURN_IF_ERROR(write_(p, BlockPieces({&values, 1}, static_cast<uint32_t>(tuple_bytes_), n), n));
  }
  num_tuples_ = 0;
  return absl::OkStatus();
}

absl::Status LooseTuples::Finish() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (num_tuples_ != 0) QUERN_RETURN_IF_ERROR(Write());
  buffer_.Free();
  return absl::OkStatus();
}

}  // namespace quern
