// SPDX-License-Identifier: Apache-2.0
// Blocks are written from where they lie, several of one partition together. Tuples without a block, of a thread whose
// memory is not enough for one of each partition, are collected from all threads and written when they are many.
#include "runtime/spill/partitioned_tuples.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/spill/io_threads.h"

namespace quern {
namespace {

// A share of the memory that is set aside, for tuples without a block: half of it for those that come, half of it for
// the same by partition.
constexpr uint64_t kSingleShare = 8;
constexpr uint64_t kFewestSingle = 64;
// Behind the end of a block that is filled: the lines of many blocks do not come by themselves.
constexpr uint64_t kPrefetchBytes = 256;

}  // namespace

ColumnType TupleType(uint32_t tuple_bytes) {
  ColumnType type;
  type.id = TypeId::kFixedBinary;
  type.width_bytes = tuple_bytes;
  return type;
}

bool CallBehind(SpillContext* context, const std::function<void()>& write) {
  if (!context->BeginWrite()) return false;
  IoThreads* const threads = context->io_threads();
  if (threads != nullptr) {
    threads->Ask([context, write] {
      context->EndWrite();  // first: when `write` has returned, the context may be gone
      write();
    });
  } else {
    context->EndWrite();
  }
  return threads != nullptr;
}

PartitionedTuples::PartitionedTuples(std::shared_ptr<SpillContext> spill, uint32_t tuple_bytes, uint32_t num_parts,
                                     uint64_t level, PartsOf parts_of)
    : spill_(std::move(spill)),
      type_(TupleType(tuple_bytes)),
      level_(level),
      parts_of_(std::move(parts_of)),
      buffers_(RowWriter::BuffersOf(*spill_, {type_})),
      parts_(num_parts),
      kept_(num_parts) {}

std::unique_ptr<TupleBlocks> PartitionedTuples::NewBlocks(std::shared_ptr<MemoryBudget> budget) {
  return std::make_unique<TupleBlocks>(tuple_bytes(), num_parts(), /*shift=*/0, spill_->block_bytes(), kPrefetchBytes,
                                       std::move(budget), this);
}

uint64_t PartitionedTuples::least_bytes() const {
  return num_parts() * TupleBlocks::BlockBytes(spill_->block_bytes(), tuple_bytes());
}

// ---- writing --------------------------------------------------------------------------------------------------------

void PartitionedTuples::BeginWriting() {
  if (!has_written_.exchange(true, std::memory_order_acq_rel)) spill_->CountLevel(level_);
}

absl::Status PartitionedTuples::WritePart(uint32_t part, const BlockPieces& block, uint64_t num_tuples) {
  BeginWriting();
  QUERN_ASSIGN_OR_RETURN(const SpilledBlock written, WriteBlock(spill_.get(), buffers_.get(), block, num_tuples));
  const std::lock_guard<std::mutex> lock(parts_[part].mutex);
  parts_[part].written.Add(spill_, written);
  return absl::OkStatus();
}

absl::Status PartitionedTuples::WriteTuples(uint8_t* const* tuples, uint32_t n) {
  const std::lock_guard<std::mutex> lock(single_mutex_);
  if (single_.data() == nullptr) {
    const uint64_t bytes = std::max(spill_->io_bytes() / kSingleShare, 2 * kFewestSingle * tuple_bytes());
    QUERN_ASSIGN_OR_RETURN(single_, HugeBuffer::Allocate(spill_->io_budget(), bytes, false, Contents::kAnything));
  }
  const uint64_t most = single_.bytes() / 2 / tuple_bytes();
  for (uint32_t i = 0; i < n; ++i) {
    if (num_single_ == most) QUERN_RETURN_IF_ERROR(WriteSingle());
    std::memcpy(single_.data() + num_single_++ * tuple_bytes(), tuples[i], tuple_bytes());
  }
  return absl::OkStatus();
}

// Writes the tuples without a block, by partition.
absl::Status PartitionedTuples::WriteSingle() {
  const uint64_t bytes = tuple_bytes();
  std::vector<uint64_t> parts(num_single_), begin(num_parts() + 1);
  std::vector<uint8_t*> tuples(num_single_);
  for (uint64_t i = 0; i < num_single_; ++i) tuples[i] = single_.data() + i * bytes;
  for (uint64_t i = 0; i < num_single_; i += kMaxBatchRows) {
    const auto n = static_cast<uint32_t>(std::min<uint64_t>(num_single_ - i, kMaxBatchRows));
    parts_of_(tuples.data() + i, n, parts.data() + i);
  }
  for (const uint64_t part : parts) ++begin[part + 1];
  for (uint32_t p = 0; p < num_parts(); ++p) begin[p + 1] += begin[p];
  uint8_t* const sorted = single_.data() + num_single_ * bytes;
  std::vector<uint64_t> next(begin.begin(), begin.end() - 1);
  for (uint64_t i = 0; i < num_single_; ++i) std::memcpy(sorted + next[parts[i]]++ * bytes, tuples[i], bytes);
  for (uint32_t p = 0; p < num_parts(); ++p) {
    const uint64_t n = begin[p + 1] - begin[p];
    if (n == 0) continue;
    const iovec values = {sorted + begin[p] * bytes, n * bytes};
    QUERN_RETURN_IF_ERROR(WritePart(p, BlockPieces({&values, 1}, tuple_bytes(), n), n));
  }
  num_single_ = 0;
  return absl::OkStatus();
}

absl::Status PartitionedTuples::Finish() {
  const std::lock_guard<std::mutex> lock(single_mutex_);
  if (num_single_ != 0) QUERN_RETURN_IF_ERROR(WriteSingle());
  single_.Free();
  return absl::OkStatus();
}

// ---- what is kept ---------------------------------------------------------------------------------------------------

absl::Status PartitionedTuples::FreeKept(uint64_t bytes) {
  uint64_t freed = 0;
  for (uint32_t p = num_parts(); p-- > 0 && freed < bytes;) {
    QUERN_ASSIGN_OR_RETURN(const uint64_t some, FreeKeptOf(p, bytes - freed));
    freed += some;
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> PartitionedTuples::FreeKeptOf(uint32_t part, uint64_t bytes) {
  const auto write = [&](const BlockPieces& block, uint64_t num_tuples) { return WritePart(part, block, num_tuples); };
  return kept_.Free(part, bytes, spill_->block_bytes(), tuple_bytes(), write);
}

// ---- reading --------------------------------------------------------------------------------------------------------

uint64_t PartitionedTuples::num_tuples_of(uint32_t part) const {
  const uint64_t num_kept = kept_.num_tuples_of(part);
  const std::lock_guard<std::mutex> lock(parts_[part].mutex);
  return num_kept + parts_[part].written.num_rows();
}

// What is just being written has left the blocks when these can be taken.
PartitionedTuples::Taken PartitionedTuples::Take(uint32_t part) {
  Taken taken;
  taken.kept = kept_.Take(part);
  if (taken.kept != nullptr) taken.num_tuples = taken.kept->num_tuples();
  const std::lock_guard<std::mutex> lock(parts_[part].mutex);
  SpilledRows& written = parts_[part].written;
  taken.num_tuples += written.num_rows();
  if (!written.empty())
    taken.written = std::make_unique<RowReader>(spill_, std::vector<ColumnType>{type_}, std::move(written));
  return taken;
}

}  // namespace quern
