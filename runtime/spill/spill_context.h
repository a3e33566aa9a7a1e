// SPDX-License-Identifier: Apache-2.0
// What the operators of one job need to spill: the store, memory that is set aside for reading and writing, sizes, and
// counts.
#ifndef QUERN_RUNTIME_SPILL_SPILL_CONTEXT_H_
#define QUERN_RUNTIME_SPILL_SPILL_CONTEXT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/memory.h"
#include "runtime/spill/block_codec.h"
#include "runtime/spill/spill_store.h"

namespace quern {

class IoThreads;

// How rows are written and read. Zeros: by the memory limit.
struct SpillSettings {
  uint32_t num_partitions = 0;  // into which rows are divided by their keys at one level: a power of two, 2 to 256
  uint64_t block_bytes = 0;     // of a block, roughly
  uint32_t read_depth = 0;      // blocks that are read ahead of the one in use, where memory allows it
  uint64_t io_bytes = 0;        // of memory that is set aside
  // That readers, writers and results may take beyond the limit, where others have taken what was free: for callers
  // that keep so much of their memory out of the budget. Not in a budget that another one accounts for.
  uint64_t overdraft_bytes = 0;
  uint64_t max_block_bytes = 256 << 10;  // of a block where block_bytes is 0, and the memory limit allows it
  uint32_t write_depth = 2;  // blocks of all writers that are written behind, where memory allows it; 0: none
  uint32_t num_threads = 2;  // that write behind, and read ahead where io_uring does not; at least 1
  bool uses_ring = true;     // blocks are read ahead by io_uring, where the store and the kernel allow it
  BlockCodec codec = BlockCodec::kNone;
};

// What a job has spilled so far.
struct SpillStats {
  uint64_t written_bytes = 0, read_bytes = 0;  // of the store: compressed ones
  uint64_t row_bytes = 0;                      // that were written, as they were before they were compressed
  uint64_t written_blocks = 0, read_blocks = 0;
  uint64_t written_rows = 0;
  uint64_t max_level = 0;    // how often rows were divided again: 1 where each was written at most once
  uint64_t late_blocks = 0;  // for which a reader waited, though they were read ahead
};

// *Threads*: any number at once.
class SpillContext {
 public:
  // budget: the job's.
  SpillContext(std::shared_ptr<SpillStore> store, std::shared_ptr<MemoryBudget> budget,
               const SpillSettings& settings = {});
  // For one of several operators of a job: sets memory aside of its own, in its own budget. It writes to the store of
  // `whole`, which counts what it writes. share_bytes: of the budget, what it keeps at most once it has written rows.
  SpillContext(const std::shared_ptr<SpillContext>& whole, std::shared_ptr<MemoryBudget> budget, uint64_t share_bytes);
  SpillContext(const SpillContext&) = delete;
  SpillContext& operator=(const SpillContext&) = delete;
  ~SpillContext();

  // Sets memory aside in the job's budget, so that rows can be written when that is exhausted. Operators call it before
  // they take memory of their own; only the first call does anything. *Errors*: ResourceExhausted.
  absl::Status SetMemoryAside();

  // Sets so much aside in all, where rows have been written and more than was set aside is needed to read them.
  // *Errors*: ResourceExhausted; what was set aside before stays so.
  absl::Status SetMoreAside(uint64_t bytes);

  // Gives back what SetMoreAside has set aside, and is not in use, when rows have been read for which it was.
  void SetLessAside();

  // Gives back what is set aside and not in use: for an operator whose rows have come, and that has written none.
  void EndSettingAside();

  // The job's budget.
  const std::shared_ptr<MemoryBudget>& budget() const { return budget_; }
  // For buffers of reading and writing: takes what was set aside first, then from the job's budget.
  const std::shared_ptr<MemoryBudget>& io_budget() const { return io_budget_; }
  SpillStore* store() const { return store_.get(); }

  // Whether so many bytes more may be taken from the job's budget now: for an operator that must know whether it can
  // finish in memory.
  bool HasRoom(uint64_t bytes) const;
  // The same for an operator that has written rows, and leaves to others what is beyond its share.
  bool HasRoomInShare(uint64_t bytes) const;
  // Several operators have this context, and its budget, one after the other.
  void ShareWithOthers() { is_shared_ = true; }
  // Of the budget, what an operator that has written rows keeps beside what it reads.
  uint64_t most_kept_bytes() const;

  uint32_t num_partitions() const { return settings_.num_partitions; }
  uint64_t block_bytes() const { return settings_.block_bytes; }
  uint64_t io_bytes() const { return settings_.io_bytes; }  // that are set aside
  uint32_t read_depth() const { return settings_.read_depth; }
  uint32_t write_depth() const { return settings_.write_depth; }
  BlockCodec codec() const { return settings_.codec; }
  // What a reader of a sequence takes, roughly: blocks that are read ahead, and the one in use.
  uint64_t reader_bytes() const;
  // How many sequences of rows can be read at once with the memory set aside; at least 2.
  uint32_t max_readers() const;

  // Whether one more block may be written behind; if so, EndWrite follows when it is written.
  bool BeginWrite();
  void EndWrite() { num_writes_.fetch_sub(1, std::memory_order_relaxed); }
  // Whether enough of the memory set aside is free for a block that is written behind.
  bool HasIoRoom() const;

  // Of an operator's own context: zeros, as `whole` counts.
  SpillStats stats() const;
  // row_bytes: before they were compressed.
  void CountWritten(uint64_t bytes, uint64_t row_bytes, uint64_t rows);
  void CountRead(uint64_t bytes);
  void CountLate();
  void CountLevel(uint64_t level);

  // A ring for one reader, which gives it back; null where blocks are read by threads.
  std::unique_ptr<ReadRing> TakeRing();
  void GiveBack(std::unique_ptr<ReadRing> ring);

  // Threads that read blocks ahead and write behind; started by the first call. Null where the system has none.
  IoThreads* io_threads();

 private:
  struct Aside;
  SpillContext(std::shared_ptr<SpillContext> whole, std::shared_ptr<SpillStore> store,
               std::shared_ptr<MemoryBudget> budget, const SpillSettings& settings, uint64_t share_bytes);

  const std::shared_ptr<SpillContext> whole_;  // null: this is it
  const std::shared_ptr<SpillStore> store_;
  const std::shared_ptr<MemoryBudget> budget_;
  const SpillSettings given_;
  const uint64_t share_bytes_;  // of the budget; 0: all
  bool is_shared_ = false;
  SpillSettings settings_;
  std::shared_ptr<Aside> aside_;
  std::shared_ptr<MemoryBudget> io_budget_;
  std::mutex mutex_;
  std::unique_ptr<IoThreads> io_threads_;
  bool tried_threads_ = false;
  bool has_rings_;
  std::vector<std::unique_ptr<ReadRing>> rings_;  // idle ones
  std::atomic<uint32_t> num_writes_{0};
  std::atomic<uint64_t> written_bytes_{0}, read_bytes_{0}, row_bytes_{0}, written_blocks_{0}, read_blocks_{0},
      written_rows_{0}, max_level_{0}, late_blocks_{0};
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SPILL_SPILL_CONTEXT_H_
