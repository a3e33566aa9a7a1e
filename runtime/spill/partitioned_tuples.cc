// SPDX-License-Identifier: Apache-2.0
// Blocks are written from where they lie, several of one partition together. Tuples without a block, of a thread whose
// memory is not enough for one of each partition, are collected from all threads and written when they are many.
#include "runtime/spill/partitioned_tuples.h"

#include <algorithm>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/spill/io_threads.h"

namespace quern {
namespace {

// A share of the memory that is set aside, for tuples without a block.
constexpr uint64_t kLooseShare = 8;
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
      buffers_(RowWriter::BuffersOf(*spill_, {type_})),
      parts_(num_parts),
      kept_(num_parts),
      loose_(tuple_bytes, num_parts, spill_->io_bytes() / kLooseShare, spill_->io_budget(), std::move(parts_of),
             [this](uint32_t part, const BlockPieces& block, uint64_t n) { return WritePart(part, block, n); }) {}

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
