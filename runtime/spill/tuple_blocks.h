// SPDX-License-Identifier: Apache-2.0
// Rows of one thread as tuples of one size, divided into partitions, in blocks of memory. Where memory ends, full
// blocks are written, those of the last partitions first, and the others stay: as hybrid hash joins keep partitions in
// memory (DeWitt and others, Implementation Techniques for Main Memory Database Systems, SIGMOD 1984), so do *hybrid*
// aggregations and sorts.
#ifndef QUERN_RUNTIME_SPILL_TUPLE_BLOCKS_H_
#define QUERN_RUNTIME_SPILL_TUPLE_BLOCKS_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/memory.h"
#include "runtime/rows/tuple_store.h"
#include "runtime/spill/block_format.h"

namespace quern {

// The blocks of one partition: which tuples each has, and their memory.
struct PartBlocks {
  TupleList spans;
  std::vector<HugeBuffer> memory;  // of each

  uint64_t num_tuples() const;
  uint64_t bytes() const;
  // Moves the blocks of another list behind these. *Errors*: throws std::bad_alloc, and changes nothing.
  void Take(PartBlocks* other);
  void Clear();
};

// Where the tuples of blocks go. *Threads*: any.
class BlockSink {
 public:
  virtual ~BlockSink() = default;
  // Writes tuples of one partition.
  virtual absl::Status WritePart(uint32_t part, const BlockPieces& block, uint64_t num_tuples) = 0;
  // Writes tuples at any addresses, with memory that is set aside.
  virtual absl::Status WriteTuples(uint8_t* const* tuples, uint32_t n) = 0;
  // Calls `write`, which throws nothing, on another thread soon; false, and nothing is done, where none is free.
  virtual bool CallBehind(const std::function<void()>& write) = 0;
};

// Calls `write` with the last blocks of a partition, as many as free `bytes` bytes of memory, and adds their memory to
// `idle`, or gives it back where that is null. Returns how many bytes that were. *Errors*: those of `write`.
using WriteTogether = absl::FunctionRef<absl::Status(const BlockPieces& block, uint64_t num_tuples)>;
absl::StatusOr<uint64_t> WriteLastBlocks(uint64_t bytes, uint32_t tuple_bytes, WriteTogether write, PartBlocks* blocks,
                                         std::vector<HugeBuffer>* idle);

// How much of the memory of blocks is given back at a time, for others that need some.
uint64_t BytesToFree(uint64_t block_bytes);

// *Threads*: one.
class TupleBlocks {
 public:
  // num_parts: a power of two. shift: of a hash, so that its lowest bits number its partition; 0 where hashes are
  // numbers of partitions. write_bytes: of a block that is written, roughly. sink: not owned.
  TupleBlocks(uint32_t tuple_bytes, uint32_t num_parts, uint32_t shift, uint64_t write_bytes, uint64_t prefetch_bytes,
              std::shared_ptr<MemoryBudget> budget, BlockSink* sink);
  TupleBlocks(const TupleBlocks&) = delete;
  TupleBlocks& operator=(const TupleBlocks&) = delete;
  ~TupleBlocks();  // waits for blocks that are being written
  // The bytes of a block in memory.
  static uint64_t BlockBytes(uint64_t write_bytes, uint32_t tuple_bytes);

  // Adds tuples to their partitions. Where a block is refused memory, it gets that of a written one. *Cost*: a copy.
  // *Errors*: those of the sink, after which tuples are lost.
  absl::Status Add(uint8_t* const* tuples, const uint64_t* hashes, uint32_t n);

  // Writes blocks until so many bytes are given back, or there are no more. *Errors*: as of Add.
  absl::Status Free(uint64_t bytes);

  uint64_t bytes() const { return bytes_; }
  uint64_t num_tuples();
  uint64_t num_tuples_of(uint64_t part);
  uint32_t num_parts() const { return mask_ + 1; }
  // Whether blocks were written.
  bool has_written() const { return has_written_; }
  // For a caller that takes tuples away from the front of a partition.
  TupleList* mutable_spans(uint64_t part);
  // Frees the memory of a partition.
  void FreePart(uint64_t part);
  // Moves all blocks out, when those that are being written have been. *Errors*: as of Add.
  absl::StatusOr<std::vector<PartBlocks>> Take();

 private:
  // Of each partition, the block that is being filled: no other state is touched for a tuple.
  struct Open {
    uint8_t* next = nullptr;
    const uint8_t* end = nullptr;
  };
  // Blocks that another thread writes, or has written.
  struct Behind {
    std::mutex mutex;
    std::condition_variable changed;
    uint32_t num_pending = 0;
    std::vector<HugeBuffer> written;  // their memory
    absl::Status status;              // the first one that is not OK
  };
  void CloseSpan(uint64_t part);
  absl::Status OpenBlock(uint64_t part);
  absl::StatusOr<HugeBuffer> TakeMemory();
  bool TakeFull(uint32_t* part, PartBlocks* full);
  absl::StatusOr<uint64_t> Write(uint64_t part, uint64_t bytes, PartBlocks* blocks, std::vector<HugeBuffer>* idle);
  absl::StatusOr<uint64_t> WriteFull(std::vector<HugeBuffer>* idle);
  void WriteFullBehind();
  absl::Status TakeWritten(bool waits);

  const uint32_t tuple_bytes_;
  const uint32_t shift_, mask_;  // of a hash, to its partition
  const uint64_t block_bytes_, write_bytes_;
  const uint64_t prefetch_bytes_;
  const std::shared_ptr<MemoryBudget> budget_;
  BlockSink* const sink_;
  std::vector<Open> open_;
  std::vector<PartBlocks> parts_;
  Behind behind_;
  std::vector<HugeBuffer> idle_;    // of written blocks
  std::atomic<uint64_t> bytes_{0};  // of all blocks, idle ones too; FreePart is called by several threads
  bool has_written_ = false;
  uint32_t num_unasked_ = 0;  // tuples that go without a block
};

// Blocks of all threads, which stay in memory until they are read, or are written after all. *Threads*: any.
class KeptBlocks {
 public:
  explicit KeptBlocks(uint32_t num_parts);

  // Takes the blocks of a thread, which adds no more. Returns how many tuples they have.
  absl::StatusOr<uint64_t> Keep(TupleBlocks* blocks);
  // Calls `write` with blocks of a partition, up to write_bytes together, until so many bytes are free, or there are no
  // more. Shared blocks stay. Returns how many bytes are free. *Errors*: those of `write`.
  absl::StatusOr<uint64_t> Free(uint32_t part, uint64_t bytes, uint64_t write_bytes, uint32_t tuple_bytes,
                                WriteTogether write);
  // Of the blocks that nobody has taken.
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  uint64_t num_tuples_of(uint32_t part) const;
  // The blocks of a partition, or null; Take leaves none here.
  std::shared_ptr<PartBlocks> Take(uint32_t part);
  std::shared_ptr<PartBlocks> Share(uint32_t part) const;

 private:
  struct Part {
    mutable std::mutex mutex;  // guards what follows
    std::shared_ptr<PartBlocks> blocks;
  };
  std::vector<Part> parts_;
  std::atomic<uint64_t> bytes_{0};
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SPILL_TUPLE_BLOCKS_H_
