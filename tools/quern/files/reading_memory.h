// SPDX-License-Identifier: Apache-2.0
// The memory of Arrow's readers and casts, under the budget of the run.
#ifndef QUERN_TOOLS_FILES_READING_MEMORY_H_
#define QUERN_TOOLS_FILES_READING_MEMORY_H_

#include <arrow/io/type_fwd.h>
#include <arrow/type_fwd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "runtime/base/memory.h"

namespace quern::cli {

// What happens to memory that the budget has no room for. kTaken: it is counted all the same, up to a half of the
// limit, for readers that hold little at a time, beside operators that make room by spilling.
enum class OverLimit : uint8_t { kRefused, kTaken };

// From now on all that ReadingPool hands out is taken from this budget. Must be called before the first file is opened,
// once in a process.
void SetReadingBudget(std::shared_ptr<MemoryBudget> budget, OverLimit over_limit = OverLimit::kRefused);

// The limit of that budget; 0: none.
uint64_t ReadingLimit();

// Takes from the budget what Arrow holds beside the pool, and gives back what it no longer holds. *Errors*: OutOfMemory
// with the budget's message. *Threads*: any.
arrow::Status CountOtherMemory();

// A file for a reader that takes its memory from Arrow's default pool: what that pool holds is counted before the file
// gives it further bytes.
std::shared_ptr<arrow::io::RandomAccessFile> CountedFile(std::shared_ptr<arrow::io::RandomAccessFile> file);

// Bytes that Arrow holds beside the pool for a piece of a file, while this lives.
class HeldElsewhere {
 public:
  explicit HeldElsewhere(int64_t bytes);
  ~HeldElsewhere();
  HeldElsewhere(const HeldElsewhere&) = delete;
  HeldElsewhere& operator=(const HeldElsewhere&) = delete;

 private:
  const int64_t bytes_;
};

// A batch of which an operator may keep the strings, in the reader's memory, for as long as it holds this: the owner of
// the batch. *Threads*: one, but for its end.
class KeptBatch {
 public:
  // bytes: that it keeps.
  KeptBatch(std::shared_ptr<const void> owner, int64_t bytes) : owner_(std::move(owner)), bytes_(bytes) {}
  ~KeptBatch();
  KeptBatch(const KeptBatch&) = delete;
  KeptBatch& operator=(const KeptBatch&) = delete;

  // Counts it from now on: the operator has it. Once at most.
  void Count();

 private:
  const std::shared_ptr<const void> owner_;
  const int64_t bytes_;
  bool is_counted_ = false;
};

// *Errors*: ResourceExhausted where operators keep batches of more than a third of the budget: they are to write rows.
absl::Status CheckKeptBatches();

// What all pieces of files that are in memory at one time may take, where memory over the limit is taken: three
// quarters of the limit, of which the budget counts a half. 0: there is no limit.
uint64_t PiecesLimit();

// The same as ReadingPool, but a request for more than PiecesLimit is refused, whatever a file claims to hold.
arrow::MemoryPool* PiecePool();

// A file for a reader of pieces that takes memory for them from Arrow's default pool: it refuses to read where a piece
// would have more than PiecesLimit. piece_bytes: what was read for the piece so far.
std::shared_ptr<arrow::io::RandomAccessFile> PieceFile(std::shared_ptr<arrow::io::RandomAccessFile> file,
                                                       std::shared_ptr<std::atomic<int64_t>> piece_bytes);

// Refuses memory beyond the budget with the budget's message; without a budget, none. It lives until the process ends,
// as columns may. *Threads*: any.
arrow::MemoryPool* ReadingPool();

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FILES_READING_MEMORY_H_
