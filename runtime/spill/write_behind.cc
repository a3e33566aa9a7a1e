// SPDX-License-Identifier: Apache-2.0
// While a thread of the context writes a block, the writer fills the next one:
//
//     writer         fills block 0 | fills block 1 | fills block 2 | writes block 2 itself | fills block 3 ..
//     I/O thread 0                 | writes block 0 ...............................|
//     I/O thread 1                                 | writes block 1 ................ |
//
// As many blocks are written behind as the context allows (SpillContext::write_depth), over all writers of a job. A
// writer that finds them taken writes its block itself: it would have to wait otherwise, and so no thread ever waits
// for another one before the end. Blocks that are written behind take memory of their own, and so this is done only
// while a part of the memory set aside is free.
//
// An error is found when the writer looks at the blocks that it has handed over, which is at its next block or at the
// end. From then on it returns the same error.
#include "runtime/spill/write_behind.h"

#include <utility>

#include "runtime/base/status.h"
#include "runtime/rows/tuple_store.h"
#include "runtime/spill/block_codec.h"
#include "runtime/spill/block_format.h"
#include "runtime/spill/io_threads.h"

namespace quern {
namespace {

// The compressed bytes of a block; 0 where it is to be stored as it is, as where there is no memory for them.
uint64_t CompressedBytes(const SpillContext& context, const BlockPieces& block, BlockBuffers* buffers,
                         OutputBuffer* compressed) {
  if (context.codec() == BlockCodec::kNone || !buffers->TriesCompression()) return 0;
  const absl::StatusOr<uint64_t> compressed_bytes = CompressBlock(block, context.io_budget(), compressed);
  if (!compressed_bytes.ok()) return 0;
  buffers->CountCompression(*compressed_bytes != 0);
  return *compressed_bytes;
}

}  // namespace

absl::StatusOr<SpilledBlock> WriteBlock(SpillContext* context, BlockBuffers* buffers, const BlockPieces& block,
                                        uint64_t num_rows) {
  SpilledBlock written;
  written.num_rows = num_rows;
  written.num_bytes = block.num_bytes();
  OutputBuffer compressed;
  if (const uint64_t compressed_bytes = CompressedBytes(*context, block, buffers, &compressed); compressed_bytes != 0) {
    written.checksum = ChecksumOf(compressed.data(), compressed_bytes);
    const iovec piece = {compressed.data(), compressed_bytes};
    QUERN_ASSIGN_OR_RETURN(written.stored, context->store()->Write({&piece, 1}));
  } else {
    written.checksum = block.Checksum();
    QUERN_ASSIGN_OR_RETURN(written.stored, context->store()->Write(block.pieces()));
  }
  context->CountWritten(written.stored.bytes, written.num_bytes, written.num_rows);
  return written;
}

// ---- buffers --------------------------------------------------------------------------------------------------------

// Buffers grow to twice their size, and so may have twice the bytes of their strings.
bool HasOutgrown(const OutputBatch& rows, uint64_t most_bytes) {
  uint64_t capacity_bytes = 0;
  for (size_t c = 0; c < rows.num_columns(); ++c) capacity_bytes += rows.column(c).bytes_capacity;
  return capacity_bytes > 2 * most_bytes;
}

BlockBuffers::BlockBuffers(std::vector<ColumnType> types, uint64_t num_rows, std::shared_ptr<MemoryBudget> budget)
    : types_(std::move(types)),
      num_rows_(num_rows),
      budget_(std::move(budget)),
      compression_gate_(Gate::kCompressedBlocks, /*adapts=*/true) {}

absl::StatusOr<std::unique_ptr<OutputBatch>> BlockBuffers::Take() {
  std::unique_ptr<OutputBatch> rows;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!idle_.empty()) {
      rows = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (rows == nullptr) rows = std::make_unique<OutputBatch>(types_, num_rows_, budget_);
  QUERN_RETURN_IF_ERROR(rows->Reset());
  return rows;
}

void BlockBuffers::GiveBack(std::unique_ptr<OutputBatch> rows, bool keeps) {
  if (!keeps) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  WithoutBadAlloc([&] {
    ReserveOne(&idle_);
    return absl::OkStatus();
  }).IgnoreError();
  if (idle_.size() < idle_.capacity()) idle_.push_back(std::move(rows));
}

bool BlockBuffers::TriesCompression() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return compression_gate_.TakeTurn();
}

void BlockBuffers::CountCompression(bool is_smaller) {
  const std::lock_guard<std::mutex> lock(mutex_);
  compression_gate_.Count(1, is_smaller ? 1 : 0);
}

// ---- blocks ---------------------------------------------------------------------------------------------------------

// The writer and the thread that writes each hold it; the writer outlives the writing.
struct WriteBehind::Block {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_done = false;
  absl::StatusOr<SpilledBlock> written = absl::UnknownError("not written");

  void Write(SpillContext* context, std::shared_ptr<BlockBuffers> buffers, std::unique_ptr<OutputBatch> rows) {
    // Nobody catches what the thread throws.
    absl::StatusOr<SpilledBlock> result = SpilledBlock();
    const absl::Status status = WithoutBadAlloc([&] {
      result = WriteBlock(context, buffers.get(), BlockPieces(*rows), rows->num_rows());
      return result.status();
    });
    if (!status.ok()) result = status;
    const bool keeps = context->HasIoRoom() && !HasOutgrown(*rows, context->block_bytes());
    buffers->GiveBack(std::move(rows), keeps);
    buffers.reset();
    context->EndWrite();
    const std::lock_guard<std::mutex> lock(mutex);
    written = std::move(result);
    is_done = true;
    changed.notify_all();
  }
};

void WriteBehind::WriteNow(BlockBuffers* buffers, const OutputBatch& rows) {
  absl::StatusOr<SpilledBlock> written = WriteBlock(context_, buffers, BlockPieces(rows), rows.num_rows());
  if (!written.ok()) {
    if (status_.ok()) status_ = written.status();
    return;
  }
  blocks_.push_back(std::make_shared<Block>());
  blocks_.back()->written = std::move(written);
  blocks_.back()->is_done = true;
}

bool WriteBehind::WriteLater(const std::shared_ptr<BlockBuffers>& buffers, bool is_last,
                             std::unique_ptr<OutputBatch>* rows) {
  if (!context_->BeginWrite()) return false;
  IoThreads* const threads = context_->HasIoRoom() ? context_->io_threads() : nullptr;
  absl::StatusOr<std::unique_ptr<OutputBatch>> next = std::unique_ptr<OutputBatch>();
  if (threads != nullptr && !is_last) next = buffers->Take();
  if (threads == nullptr || !next.ok()) {
    context_->EndWrite();
    return false;
  }
  blocks_.push_back(std::make_shared<Block>());
  // std::function copies what it holds, and so the batch goes through a shared pointer.
  auto full = std::make_shared<std::unique_ptr<OutputBatch>>(std::exchange(*rows, *std::move(next)));
  threads->Ask([context = context_, block = blocks_.back(), buffers, full = std::move(full)]() mutable {
    block->Write(context, std::move(buffers), std::move(*full));
  });
  return true;
}

bool WriteBehind::IsNextDone(bool waits) const {
  if (blocks_.empty()) return false;
  Block& block = *blocks_.front();
  std::unique_lock<std::mutex> lock(block.mutex);
  if (waits) block.changed.wait(lock, [&] { return block.is_done; });
  return block.is_done;
}

absl::StatusOr<SpilledBlock> WriteBehind::TakeNext() {
  const std::shared_ptr<Block> block = std::move(blocks_.front());
  blocks_.pop_front();
  return block->written;
}

}  // namespace quern
