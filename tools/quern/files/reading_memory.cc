// SPDX-License-Identifier: Apache-2.0
// Arrow's readers take their memory from a pool: what they read of a file, what they decompress and decode, and the
// columns that come out. This pool takes the same bytes from the budget of the run first. Under --memory-limit 16M:
//
//     read a column chunk       6 MiB     in use  6 MiB
//     decode it                 8 MiB     in use 14 MiB
//     free the chunk           -6 MiB     in use  8 MiB
//     read the next one        12 MiB     refused: the reader fails, and with it the run
//
// so that a file that does not fit is refused while it is read. What readers keep elsewhere is small and does not grow
// with the rows: the metadata of a file, the state of a decompressor.
//
// Where operators make room by spilling, what readers hold is counted whatever the limit is, but only up to a half of
// it: operators must have some memory, or they could not even write rows. A sort or a table keeps the batches that its
// strings lie in, which are then nobody else's: it has to write rows where they take more than a third of the budget.
//
// Two readers cannot take the pool. That of CSV files ends the process where memory is refused (table_io.cc). Of an
// Arrow IPC file of which some columns are read, the bodies of batches lie in memory of Arrow's default pool. It has
// room for all columns of the batch and receives those that are read. In both cases the file that they read counts,
// before it gives them bytes, what the default pool holds beside ours (CountedFile).
#include "tools/quern/files/reading_memory.h"

#include <arrow/io/interfaces.h>
#include <arrow/memory_pool.h>
#include <arrow/result.h>
#include <arrow/status.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "tools/quern/files/kept_blocks.h"

namespace quern::cli {
namespace {

class BudgetedPool final : public arrow::MemoryPool {
 public:
  void SetBudget(std::shared_ptr<MemoryBudget> budget, OverLimit over_limit) {
    budget_ = std::move(budget);
    is_refused_ = over_limit == OverLimit::kRefused;
    most_counted_ = budget_->limit_bytes() == 0 ? INT64_MAX : static_cast<int64_t>(budget_->limit_bytes() / 2);
    if (is_refused_) return;
    kept_blocks_.SetMost(std::min(budget_->limit_bytes() / kKeptShare, kMostKept));
    pool_ = &kept_blocks_;
  }

  arrow::Status Allocate(int64_t size, int64_t alignment, uint8_t** out) override {
    ARROW_RETURN_NOT_OK(Take(size));
    const arrow::Status allocated = pool_->Allocate(size, alignment, out);
    if (!allocated.ok()) GiveBack(size);
    return allocated;
  }
  arrow::Status Reallocate(int64_t old_size, int64_t new_size, int64_t alignment, uint8_t** pointer) override {
    if (new_size > old_size) ARROW_RETURN_NOT_OK(Take(new_size - old_size));
    const arrow::Status reallocated = pool_->Reallocate(old_size, new_size, alignment, pointer);
    if (reallocated.ok() && new_size < old_size) GiveBack(old_size - new_size);
    if (!reallocated.ok() && new_size > old_size) GiveBack(new_size - old_size);
    return reallocated;
  }
  void Free(uint8_t* buffer, int64_t size, int64_t alignment) override {
    pool_->Free(buffer, size, alignment);
    GiveBack(size);
  }
  // Bytes that are counted: those that it hands out itself, and those of HeldElsewhere.
  arrow::Status Take(int64_t bytes) {
    ARROW_RETURN_NOT_OK(Reserve(bytes));
    own_ += bytes;
    return arrow::Status::OK();
  }
  void GiveBack(int64_t bytes) {
    own_ -= bytes;
    Release(bytes);
  }
  uint64_t limit_bytes() const { return budget_->limit_bytes(); }
  // What the default pool holds beside this one's, which comes from there too.
  arrow::Status CountOther() {
    const std::lock_guard<std::mutex> lock(other_mutex_);
    const int64_t other = std::max<int64_t>(pool_->bytes_allocated() - own_.load(), 0);
    if (other > other_) ARROW_RETURN_NOT_OK(Reserve(other - other_));
    else Release(other_ - other);
    other_ = other;
    return arrow::Status::OK();
  }
  void ReleaseUnused() override { pool_->ReleaseUnused(); }
  int64_t bytes_allocated() const override { return pool_->bytes_allocated(); }
  int64_t max_memory() const override { return pool_->max_memory(); }
  int64_t total_bytes_allocated() const override { return pool_->total_bytes_allocated(); }
  int64_t num_allocations() const override { return pool_->num_allocations(); }
  std::string backend_name() const override { return pool_->backend_name(); }

 private:
  arrow::Status Reserve(int64_t bytes) {
    if (!is_refused_) {
      const int64_t before = taken_.fetch_add(bytes);
      budget_->Take(static_cast<uint64_t>(Counted(before + bytes) - Counted(before)));
      return arrow::Status::OK();
    }
    const absl::Status taken = budget_->Reserve(static_cast<uint64_t>(bytes));
    return taken.ok() ? arrow::Status::OK() : arrow::Status::OutOfMemory(std::string(taken.message()));
  }
  void Release(int64_t bytes) {
    if (!is_refused_) {
      const int64_t before = taken_.fetch_sub(bytes);
      bytes = Counted(before) - Counted(before - bytes);
    }
    budget_->Release(static_cast<uint64_t>(bytes));
  }
  int64_t Counted(int64_t bytes) const { return std::min(bytes, most_counted_); }

  // Arrow's own allocator keeps what is freed, as much again as the readers hold. The C library gives it back to the
  // system at once, and the faults of new pages took half of the time of a sort from file to file.
  static constexpr uint64_t kKeptShare = 8, kMostKept = 32 << 20;
  KeptBlocksPool kept_blocks_;
  arrow::MemoryPool* pool_ = arrow::default_memory_pool();
  std::shared_ptr<MemoryBudget> budget_ = std::make_shared<MemoryBudget>();
  bool is_refused_ = true;
  int64_t most_counted_ = INT64_MAX;
  std::atomic<int64_t> taken_{0};  // unless they are refused: bytes of both kinds below, counted or not
  std::atomic<int64_t> own_{0};    // bytes that are taken and not given back
  std::mutex other_mutex_;
  int64_t other_ = 0;
};

BudgetedPool& Pool() {
  static BudgetedPool* const pool = new BudgetedPool;  // columns may outlive all other statics
  return *pool;
}

std::atomic<int64_t> kept_bytes{0};  // of batches that operators keep

// Of the budget. With a fourth, a sort of 20 M numbers took 1.2 s for 1.0.
constexpr uint64_t kKeptBatchesShare = 3;

// *Errors*: more bytes than all pieces together may have.
arrow::Status CheckPiece(int64_t bytes) {
  const uint64_t limit = PiecesLimit();
  if (limit == 0 || bytes <= static_cast<int64_t>(limit)) return arrow::Status::OK();
  return arrow::Status::OutOfMemory("memory limit exceeded: ", bytes, " bytes requested");
}

// Of a piece of a file: its parts are in memory at once, so none of them may be larger than all pieces together.
class PiecePoolOfProcess final : public arrow::MemoryPool {
 public:
  arrow::Status Allocate(int64_t size, int64_t alignment, uint8_t** out) override {
    ARROW_RETURN_NOT_OK(CheckPiece(size));
    return Pool().Allocate(size, alignment, out);
  }
  arrow::Status Reallocate(int64_t old_size, int64_t new_size, int64_t alignment, uint8_t** pointer) override {
    ARROW_RETURN_NOT_OK(CheckPiece(new_size));
    return Pool().Reallocate(old_size, new_size, alignment, pointer);
  }
  void Free(uint8_t* buffer, int64_t size, int64_t alignment) override { Pool().Free(buffer, size, alignment); }
  void ReleaseUnused() override { Pool().ReleaseUnused(); }
  int64_t bytes_allocated() const override { return Pool().bytes_allocated(); }
  int64_t max_memory() const override { return Pool().max_memory(); }
  int64_t total_bytes_allocated() const override { return Pool().total_bytes_allocated(); }
  int64_t num_allocations() const override { return Pool().num_allocations(); }
  std::string backend_name() const override { return Pool().backend_name(); }
};

// Calls a function before it reads into memory that is not of the file's pool.
class WatchedFile final : public arrow::io::RandomAccessFile {
 public:
  using BeforeRead = std::function<arrow::Status(int64_t bytes)>;
  WatchedFile(std::shared_ptr<arrow::io::RandomAccessFile> file, BeforeRead before_read)
      : file_(std::move(file)), before_read_(std::move(before_read)) {}

  arrow::Status Close() override { return file_->Close(); }
  bool closed() const override { return file_->closed(); }
  arrow::Result<int64_t> Tell() const override { return file_->Tell(); }
  arrow::Status Seek(int64_t position) override { return file_->Seek(position); }
  arrow::Result<int64_t> GetSize() override { return file_->GetSize(); }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t bytes) override {
    ARROW_RETURN_NOT_OK(before_read_(bytes));
    return file_->Read(bytes);
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(int64_t position, int64_t bytes) override {
    return file_->ReadAt(position, bytes);
  }
  arrow::Result<int64_t> Read(int64_t bytes, void* out) override {
    ARROW_RETURN_NOT_OK(before_read_(bytes));
    return file_->Read(bytes, out);
  }
  arrow::Result<int64_t> ReadAt(int64_t position, int64_t bytes, void* out) override {
    ARROW_RETURN_NOT_OK(before_read_(bytes));
    return file_->ReadAt(position, bytes, out);
  }

 private:
  std::shared_ptr<arrow::io::RandomAccessFile> file_;
  BeforeRead before_read_;
};

}  // namespace

arrow::Status CountOtherMemory() { return Pool().CountOther(); }

std::shared_ptr<arrow::io::RandomAccessFile> CountedFile(std::shared_ptr<arrow::io::RandomAccessFile> file) {
  return std::make_shared<WatchedFile>(std::move(file), [](int64_t) { return CountOtherMemory(); });
}

std::shared_ptr<arrow::io::RandomAccessFile> PieceFile(std::shared_ptr<arrow::io::RandomAccessFile> file,
                                                       std::shared_ptr<std::atomic<int64_t>> piece_bytes) {
  return std::make_shared<WatchedFile>(std::move(file), [piece_bytes = std::move(piece_bytes)](int64_t bytes) {
    return CheckPiece(piece_bytes->fetch_add(bytes) + bytes);
  });
}

void SetReadingBudget(std::shared_ptr<MemoryBudget> budget, OverLimit over_limit) {
  Pool().SetBudget(std::move(budget), over_limit);
}

HeldElsewhere::HeldElsewhere(int64_t bytes) : bytes_(Pool().Take(bytes).ok() ? bytes : 0) {}
HeldElsewhere::~HeldElsewhere() { Pool().GiveBack(bytes_); }

KeptBatch::~KeptBatch() {
  if (is_counted_) kept_bytes -= bytes_;
}

void KeptBatch::Count() {
  is_counted_ = true;
  kept_bytes += bytes_;
}

absl::Status CheckKeptBatches() {
  const auto most = static_cast<int64_t>(ReadingLimit() / kKeptBatchesShare);
  const int64_t kept = kept_bytes;
  if (most == 0 || kept <= most) return absl::OkStatus();
  return absl::ResourceExhaustedError("memory limit exceeded: " + std::to_string(kept) +
                                      " bytes of batches are kept; accepted: " + std::to_string(most));
}

uint64_t PiecesLimit() { return Pool().limit_bytes() / 4 * 3; }

arrow::MemoryPool* PiecePool() {
  static PiecePoolOfProcess* const pool = new PiecePoolOfProcess;
  return pool;
}

uint64_t ReadingLimit() { return Pool().limit_bytes(); }

arrow::MemoryPool* ReadingPool() { return &Pool(); }

}  // namespace quern::cli
