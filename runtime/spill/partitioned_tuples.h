// SPDX-License-Identifier: Apache-2.0
// The rows of an operator as tuples of one size, divided into partitions: those that memory has room for are kept, the
// others written; a reader takes both, partition by partition.
#ifndef QUERN_RUNTIME_SPILL_PARTITIONED_TUPLES_H_
#define QUERN_RUNTIME_SPILL_PARTITIONED_TUPLES_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/memory.h"
#include "runtime/spec/column_type.h"
#include "runtime/spill/loose_tuples.h"
#include "runtime/spill/spill_context.h"
#include "runtime/spill/spilled_rows.h"
#include "runtime/spill/tuple_blocks.h"

namespace quern {

// The type of tuples that are written: one column of fixed_binary.
ColumnType TupleType(uint32_t tuple_bytes);

// Lets a thread of the context call `write`, which throws nothing; false, and nothing is done, where none is free.
bool CallBehind(SpillContext* context, const std::function<void()>& write);

// *Threads*: any.
class PartitionedTuples final : public BlockSink {
 public:
  using PartsOf = LooseTuples::PartsOf;
  // level: how often tuples that are written have been divided.
  PartitionedTuples(std::shared_ptr<SpillContext> spill, uint32_t tuple_bytes, uint32_t num_parts, uint64_t level,
                    PartsOf parts_of);

  uint32_t num_parts() const { return static_cast<uint32_t>(parts_.size()); }
  uint32_t tuple_bytes() const { return type_.width_bytes; }
  // Blocks for a thread, which adds tuples with the numbers of their partitions.
  std::unique_ptr<TupleBlocks> NewBlocks(std::shared_ptr<MemoryBudget> budget);
  // What those take when each partition has a block.
  uint64_t least_bytes() const;
  // Whether tuples were written.
  bool has_written() const { return has_written_.load(std::memory_order_acquire); }

  absl::Status WritePart(uint32_t part, const BlockPieces& block, uint64_t num_tuples) override;
  absl::Status WriteTuples(uint8_t* const* tuples, uint32_t n) override { return loose_.Add(tuples, n); }
  bool CallBehind(const std::function<void()>& write) override { return quern::CallBehind(spill_.get(), write); }

  // Keeps the blocks of a thread, which adds no more.
  absl::Status Keep(TupleBlocks* blocks) { return kept_.Keep(blocks).status(); }
  // Completes what was written; nothing is added or kept any more.
  absl::Status Finish() { return loose_.Finish(); }

  // Of the blocks that are kept now, and that no reader has taken.
  uint64_t kept_bytes() const { return kept_.bytes(); }
  // Writes kept blocks, those of the last partitions first, until so many bytes are free, or there are no more.
  absl::Status FreeKept(uint64_t bytes);
  // The same for one partition; returns how many bytes are free.
  absl::StatusOr<uint64_t> FreeKeptOf(uint32_t part, uint64_t bytes);

  uint64_t num_tuples_of(uint32_t part) const;
  // The tuples of a partition, which are gone from here.
  struct Taken {
    uint64_t num_tuples = 0;
    std::shared_ptr<PartBlocks> kept;    // null: none
    std::unique_ptr<RowReader> written;  // the same
  };
  Taken Take(uint32_t part);

 private:
  struct Part {
    mutable std::mutex mutex;  // guards what follows
    SpilledRows written;
  };
  void BeginWriting();

  const std::shared_ptr<SpillContext> spill_;
  const ColumnType type_;
  const uint64_t level_;
  const std::shared_ptr<BlockBuffers> buffers_;
  std::vector<Part> parts_;
  std::atomic<bool> has_written_{false};
  KeptBlocks kept_;
  LooseTuples loose_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SPILL_PARTITIONED_TUPLES_H_
