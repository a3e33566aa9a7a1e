// SPDX-License-Identifier: Apache-2.0
// Blocks that are written while the next ones fill.
#ifndef QUERN_RUNTIME_SPILL_WRITE_BEHIND_H_
#define QUERN_RUNTIME_SPILL_WRITE_BEHIND_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/adaptive_gate.h"
#include "runtime/base/memory.h"
#include "runtime/rows/output_batch.h"
#include "runtime/spec/column_type.h"
#include "runtime/spill/block_format.h"
#include "runtime/spill/spill_context.h"
#include "runtime/spill/spill_store.h"

namespace quern {

struct SpilledBlock {
  StoredBlock stored;
  uint64_t checksum = 0;  // of the stored bytes
  uint64_t num_rows = 0;
  uint64_t num_bytes = 0;  // of the rows
  bool is_compressed() const { return stored.bytes != num_bytes; }
};

// Whether strings of more than most_bytes have made a batch's buffers so large that they are to be freed, not used
// again.
bool HasOutgrown(const OutputBatch& rows, uint64_t most_bytes);

// Batches of the same columns, which writers fill and give back once they are written, and what is known of compressing
// them. *Threads*: any number at once.
class BlockBuffers {
 public:
  BlockBuffers(std::vector<ColumnType> types, uint64_t num_rows, std::shared_ptr<MemoryBudget> budget);

  // One without rows, whose buffers were reset. *Errors*: ResourceExhausted.
  absl::StatusOr<std::unique_ptr<OutputBatch>> Take();
  // keeps: for the next one that is taken, or frees its memory.
  void GiveBack(std::unique_ptr<OutputBatch> rows, bool keeps);

  // Whether to try to compress the next block, and what came of it.
  bool TriesCompression();
  void CountCompression(bool is_smaller);

 private:
  const std::vector<ColumnType> types_;
  const uint64_t num_rows_;
  const std::shared_ptr<MemoryBudget> budget_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<OutputBatch>> idle_;
  AdaptiveGate compression_gate_;
};

// Writes a block, compressed where the context says so. buffers: of such blocks. *Errors*: those of the store.
absl::StatusOr<SpilledBlock> WriteBlock(SpillContext* context, BlockBuffers* buffers, const BlockPieces& block,
                                        uint64_t num_rows);

// The blocks of one sequence that are being written, in their order. *Threads*: one, besides those that write.
class WriteBehind {
 public:
  explicit WriteBehind(SpillContext* context) : context_(context) {}
  WriteBehind(const WriteBehind&) = delete;
  WriteBehind& operator=(const WriteBehind&) = delete;
  // All blocks were drained.
  ~WriteBehind() = default;

  // Writes the rows, now. buffers: of such rows.
  void WriteNow(BlockBuffers* buffers, const OutputBatch& rows);
  // Lets a thread of the context write *rows, and puts an empty batch of `buffers` in its place, or null where is_last
  // is set. False, and nothing is done, where as many blocks as the context allows are being written already, or memory
  // is short.
  bool WriteLater(const std::shared_ptr<BlockBuffers>& buffers, bool is_last, std::unique_ptr<OutputBatch>* rows);

  // Passes each block that is written, in order, to add(block); `waits`: until all are. *Errors*: the first one of a
  // write; blocks behind it are passed on all the same.
  template <class Add>
  absl::Status Drain(bool waits, const Add& add) {
    while (IsNextDone(waits)) {
      const absl::StatusOr<SpilledBlock> block = TakeNext();
      if (block.ok()) add(*block);
      else if (status_.ok()) status_ = block.status();
    }
    return status_;
  }

 private:
  struct Block;
  bool IsNextDone(bool waits) const;
  absl::StatusOr<SpilledBlock> TakeNext();

  SpillContext* const context_;
  std::deque<std::shared_ptr<Block>> blocks_;
  absl::Status status_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SPILL_WRITE_BEHIND_H_
