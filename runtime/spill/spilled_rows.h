// SPDX-License-Identifier: Apache-2.0
// Rows that lie in a store, as columns: written batch by batch, to one sequence or to one for each partition, and read
// batch by batch in the order in which they were written.
//
//     RowWriter writer(context, types);            RowReader reader(context, types, std::move(rows));
//     writer.Append(batch)*                        while (more) more = reader.Next(&batch);
//     rows = writer.Finish();
//
// Columns come back in the form of OutputBatch: dictionaries decoded, strings and bitmaps from the start of their
// buffers.
#ifndef QUERN_RUNTIME_SPILL_SPILLED_ROWS_H_
#define QUERN_RUNTIME_SPILL_SPILLED_ROWS_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/memory.h"
#include "runtime/rows/batch_view.h"
#include "runtime/rows/output_batch.h"
#include "runtime/spec/column_type.h"
#include "runtime/spill/spill_context.h"
#include "runtime/spill/spill_store.h"
#include "runtime/spill/write_behind.h"

namespace quern {

// The type as which a column comes back: without a dictionary.
ColumnType SpilledType(const ColumnType& type);

// The bytes of a row of these columns, with a guess for strings.
uint64_t RowBytesOf(const std::vector<ColumnType>& types);
// A block has at least so many rows, however wide they are.
constexpr uint64_t kMinBlockRows = 16;

// The bytes of the strings in a batch.
uint64_t StringBytes(const OutputBatch& rows);
// How many rows may be added to it at a time, up to most_rows, so that its strings exceed most_bytes by little: as many
// as fit by the mean of its rows, which is trusted for as many again. At least 1.
uint64_t RowsThatFit(const OutputBatch& rows, uint64_t most_bytes, uint64_t most_rows);

// A sequence of blocks, whose space is given back when it is destroyed. *Threads*: one at a time.
class SpilledRows {
 public:
  SpilledRows() = default;
  SpilledRows(SpilledRows&& other) noexcept { *this = std::move(other); }
  SpilledRows& operator=(SpilledRows&& other) noexcept;
  ~SpilledRows() { Free(); }

  uint64_t num_rows() const { return num_rows_; }
  uint64_t num_bytes() const { return num_bytes_; }  // of the rows, as they are read
  bool empty() const { return blocks_.empty(); }
  const std::vector<SpilledBlock>& blocks() const { return blocks_; }
  // Adds a block behind the others.
  void Add(const std::shared_ptr<SpillContext>& context, const SpilledBlock& block);
  // Moves the blocks of another sequence behind these.
  void Take(SpilledRows&& other);
  // Leaves the first blocks, and returns the others.
  SpilledRows SplitOff(size_t num_blocks);
  void Free();

 private:
  friend class RowReader;
  friend class SharedRows;
  std::shared_ptr<SpillContext> context_;
  std::vector<SpilledBlock> blocks_;
  uint64_t num_rows_ = 0, num_bytes_ = 0;
};

// Rows [begin, end) of a sequence.
struct RowPart {
  uint64_t begin = 0, end = 0;
};

// A sequence that several readers read, a part each. The space of a block is given back when all of them have read it.
// *Threads*: any number at once.
class SharedRows {
 public:
  // bounds: the parts begin at 0 and at each of them; they ascend, up to the number of rows.
  SharedRows(SpilledRows rows, const std::vector<uint64_t>& bounds);
  SharedRows(const SharedRows&) = delete;
  SharedRows& operator=(const SharedRows&) = delete;
  ~SharedRows();

  const SpilledRows& rows() const { return rows_; }
  // A reader has read the block.
  void EndRead(size_t block);

 private:
  friend class RowReader;
  SpilledRows rows_;
  std::vector<std::atomic<uint32_t>> readers_left_;  // by block
};

// Writes one sequence. *Threads*: one; blocks are written behind on threads of the context.
class RowWriter {
 public:
  // types: of the columns, which may be dictionaries and have any collation; rowid is refused (write a u64).
  RowWriter(std::shared_ptr<SpillContext> context, std::vector<ColumnType> types);
  // One of several writers, which take turns with the buffers that BuffersOf has made.
  RowWriter(std::shared_ptr<SpillContext> context, std::vector<ColumnType> types,
            std::shared_ptr<BlockBuffers> buffers);
  ~RowWriter();
  // budget: that their memory counts in, the context's io_budget where it is null.
  static std::shared_ptr<BlockBuffers> BuffersOf(const SpillContext& context, const std::vector<ColumnType>& types,
                                                 std::shared_ptr<MemoryBudget> budget = nullptr);

  // Adds the selected rows of a batch whose columns are `batch.keys`. *Cost*: a copy of the values. *Errors*:
  // Unavailable (spill_store.h), of this block or of one before; ResourceExhausted beyond the memory set aside; the
  // rows are then lost.
  absl::Status Append(const BatchView& batch);
  // Adds all rows of a batch with these columns. Where it has many rows they are written from it, without a copy.
  absl::Status Append(const OutputBatch& rows);
  // Adds a block that was written with WriteBlock.
  void Add(const SpilledBlock& block) { written_.Add(context_, block); }
  BlockBuffers* buffers() { return buffers_.get(); }
  // No rows follow. Writes the last block behind, where that can be, for Finish to find it written.
  absl::Status End() { return Flush(/*is_last=*/true); }
  absl::StatusOr<SpilledRows> Finish();
  uint64_t num_rows() const { return num_rows_; }

 private:
  absl::Status Flush(bool is_last = false);
  absl::Status Drain(bool waits);

  std::shared_ptr<SpillContext> context_;
  std::vector<ColumnType> types_;
  const std::shared_ptr<BlockBuffers> buffers_;
  const uint64_t block_rows_;
  std::unique_ptr<OutputBatch> rows_;  // null until there are any
  WriteBehind behind_;
  SpilledRows written_;
  uint64_t num_rows_ = 0;
};

// Writes a sequence for each partition. *Threads*: any number append at once.
class PartitionedWriter {
 public:
  // budget: as of RowWriter::BuffersOf.
  PartitionedWriter(std::shared_ptr<SpillContext> context, std::vector<ColumnType> types, uint32_t num_partitions,
                    std::shared_ptr<MemoryBudget> budget = nullptr);
  ~PartitionedWriter();

  // partitions: of the batch's rows (of its selection's, in their order), each below num_partitions. *Errors*: as
  // RowWriter::Append.
  absl::Status Append(const BatchView& batch, const uint32_t* partitions);
  // Writes rows of one partition as a block of their own, now.
  absl::Status Write(uint32_t partition, const BlockPieces& block, uint64_t num_rows);
  // No thread appends any more. One sequence for each partition, some of them without rows.
  absl::StatusOr<std::vector<SpilledRows>> Finish();

 private:
  struct Partition;
  const std::shared_ptr<SpillContext> context_;
  std::vector<std::unique_ptr<Partition>> partitions_;
};

// Reads a sequence. *Threads*: one at a time; blocks are read ahead by io_uring, or on threads of the context.
class RowReader {
 public:
  enum class After : uint8_t { kFree, kKeep };
  // budget: that the memory of blocks counts in, the context's io_budget where it is null. after: kFree gives a block's
  // space back as soon as it was read; kKeep leaves `rows` to be read again (Rewind).
  RowReader(std::shared_ptr<SpillContext> context, std::vector<ColumnType> types, SpilledRows rows,
            After after = After::kFree, std::shared_ptr<MemoryBudget> budget = nullptr);
  // Reads rows that other readers read, too; they are kept.
  RowReader(std::shared_ptr<SpillContext> context, std::vector<ColumnType> types, std::shared_ptr<SpilledRows> shared,
            std::shared_ptr<MemoryBudget> budget = nullptr);
  // Reads a part of rows, which are kept.
  RowReader(std::shared_ptr<SpillContext> context, std::vector<ColumnType> types, std::shared_ptr<SpilledRows> rows,
            const RowPart& part, std::shared_ptr<MemoryBudget> budget = nullptr);
  // Reads one of the parts of shared rows.
  RowReader(std::shared_ptr<SpillContext> context, std::vector<ColumnType> types,
            const std::shared_ptr<SharedRows>& shared, const RowPart& part,
            std::shared_ptr<MemoryBudget> budget = nullptr);
  ~RowReader();

  // Asks for the first blocks, so that those of several readers come at once. Next does it where nobody has.
  absl::Status Begin() { return ReadAhead(); }
  // Sets `batch` to the rows of the next block, its columns in `keys`; false, and no rows, behind the last one. The
  // columns are valid as long as batch->owner. first_row_id is 0. *Errors*: Unavailable; DataLoss for a block that is
  // not what was written; ResourceExhausted.
  absl::StatusOr<bool> Next(BatchView* batch);
  // Begins again with the first block; only with kKeep.
  void Rewind();
  const SpilledRows& rows() const { return *rows_; }

 private:
  struct Pending;
  RowReader(std::shared_ptr<SpillContext> context, std::vector<ColumnType> types, std::shared_ptr<SpilledRows> rows,
            After after, std::shared_ptr<SharedRows> shared, std::shared_ptr<MemoryBudget> budget);
  void SetPart(const RowPart& part);
  void CutToPart(BatchView* batch);
  absl::Status ReadAhead();
  void Ask(const std::shared_ptr<Pending>& pending);
  absl::Status Wait(Pending* pending);
  absl::StatusOr<std::shared_ptr<Pending>> Request(const SpilledBlock& block);
  absl::Status Decode(const std::shared_ptr<Pending>& read, BatchView* batch) const;

  std::shared_ptr<SpillContext> context_;
  std::vector<ColumnType> types_;
  const std::shared_ptr<SpilledRows> rows_;
  const After after_;
  const std::shared_ptr<SharedRows> shared_;  // of which rows_ are; else null
  std::shared_ptr<MemoryBudget> budget_;
  size_t end_block_ = SIZE_MAX;      // of the part; SIZE_MAX: all rows
  uint64_t skipped_rows_ = 0;        // of the part's first block
  uint64_t rows_left_ = UINT64_MAX;  // of the part
  size_t next_block_ = 0;            // to request
  size_t num_freed_ = 0;
  bool has_ring_ = true;  // until none could be taken
  std::unique_ptr<ReadRing> ring_;
  std::deque<std::shared_ptr<Pending>> ahead_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SPILL_SPILLED_ROWS_H_
