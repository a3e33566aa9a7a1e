// SPDX-License-Identifier: Apache-2.0
// Memory under a budget. Everything that grows with the data is allocated here, so that a host can bound a join.
#ifndef QUERN_RUNTIME_BASE_MEMORY_H_
#define QUERN_RUNTIME_BASE_MEMORY_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace quern {

class MemoryBudget;

// Another account of memory, most often a host's. *Threads*: its functions are called by any.
struct MemoryAccount {
  bool (*reserve)(void* host, uint64_t bytes) = nullptr;  // false: refused
  void (*release)(void* host, uint64_t bytes) = nullptr;
  void* host = nullptr;
  const MemoryBudget* budget = nullptr;  // to which the account belongs, for errors; null: a host's
};

// Counts bytes against a limit. *Threads*: any.
class MemoryBudget {
 public:
  // *Units*: bytes; 0 means no limit. account: every byte is also reserved there; without functions: nowhere.
  explicit MemoryBudget(uint64_t limit_bytes = 0, const MemoryAccount& account = {})
      : limit_(limit_bytes), account_(account) {}

  // Takes bytes, or returns ResourceExhausted with the request, the bytes in use and the limit.
  absl::Status Reserve(uint64_t bytes);
  void Release(uint64_t bytes);
  // Takes bytes even beyond the limit, for memory for which others must make room. Not for budgets with an account.
  void Take(uint64_t bytes);
  bool may_take() const { return account_.reserve == nullptr; }

  uint64_t used_bytes() const { return used_.load(std::memory_order_relaxed); }
  uint64_t peak_bytes() const { return peak_.load(std::memory_order_relaxed); }
  uint64_t limit_bytes() const { return limit_; }
  // Whether a host counts the bytes, too.
  bool has_host() const { return account_.reserve != nullptr && account_.budget == nullptr; }
  // Whether a request may be refused although the system has memory.
  bool has_limit() const { return limit_ != 0 || account_.reserve != nullptr; }

 private:
  // Of a request that the limit, or the account behind it, has refused.
  absl::Status Refusal(uint64_t bytes) const;

  const uint64_t limit_;
  const MemoryAccount account_;
  std::atomic<uint64_t> used_{0};
  std::atomic<uint64_t> peak_{0};
};

// A budget of `limit_bytes` (0: no limit of its own) whose bytes are all taken from another one, too.
std::shared_ptr<MemoryBudget> BudgetWithin(std::shared_ptr<MemoryBudget> other, uint64_t limit_bytes);

// What new memory contains. kAnything: possibly what was written to it before.
enum class Contents : uint8_t { kZeros, kAnything };

// Memory on huge pages if requested and above 2 MiB; smaller sizes come from the allocator. kZeros above 16 MiB takes
// pages straight from the system, which the user is the first to touch, so that "empty is 0" costs nothing. All others
// reuse pages and blocks of earlier buffers if there are any (kept_pages.h), kAnything also where pages are not
// adjacent: writing to them first costs half.
class HugeBuffer {
 public:
  HugeBuffer() = default;
  HugeBuffer(HugeBuffer&& other) noexcept { *this = std::move(other); }
  HugeBuffer& operator=(HugeBuffer&& other) noexcept;
  ~HugeBuffer() { Free(); }

  // *Errors*: ResourceExhausted over the budget or when the system has no memory.
  static absl::StatusOr<HugeBuffer> Allocate(std::shared_ptr<MemoryBudget> budget, uint64_t bytes, bool huge_pages,
                                             Contents contents = Contents::kZeros);

  // Lets its bytes stay reserved in the budget when it is freed, for a buffer that takes its place. Returns them.
  // releases_pages: some of its pages will be released before, so that they cannot be kept for others.
  uint64_t Disown(bool releases_pages);
  // Of a buffer with kAnything: puts pages that other buffers have released in place of its own whole pages among bytes
  // begin .. end-1, as many as there are; what these contain is lost. Worth it where nothing has been written to them,
  // so that they would be new pages. *Errors*: ResourceExhausted, after which the bytes are unusable.
  absl::Status TakeKeptPages(uint64_t begin, uint64_t end);
  // Charges its bytes to a budget in which they are reserved already. It was allocated without one.
  void Own(std::shared_ptr<MemoryBudget> budget) { budget_ = std::move(budget); }

  uint8_t* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }
  // Of a buffer with kAnything as it was allocated: bytes from here on are 0.
  uint64_t first_zero() const { return first_zero_; }
  void Free();

 private:
  std::shared_ptr<MemoryBudget> budget_;
  uint8_t* data_ = nullptr;
  uint64_t bytes_ = 0;
  uint64_t mapping_bytes_ = 0;  // 0: memory of the allocator
  uint64_t first_zero_ = 0;
  bool keeps_pages_ = false;
};

// Asks the system for the small pages of memory that is written next, all at once: one by one, as they are written,
// they cost four times as much. What they contain stays. Nothing is done for 2 MiB and more, whose pages are large, or
// left to the threads that write them.
void PopulatePages(uint8_t* data, uint64_t bytes);

// Gives the whole pages of memory back to the system, which has others for it when it is written again. What it
// contains is lost.
void ReleasePages(uint8_t* data, uint64_t bytes);

// Zeroed memory that grows in place: addresses are reserved first and pages added as it grows, so that its contents are
// never moved or copied.
class GrowingBuffer {
 public:
  GrowingBuffer() = default;
  GrowingBuffer(GrowingBuffer&& other) noexcept { *this = std::move(other); }
  GrowingBuffer& operator=(GrowingBuffer&& other) noexcept;
  ~GrowingBuffer() { Free(); }

  // *Errors*: ResourceExhausted where the system has no addresses.
  static absl::StatusOr<GrowingBuffer> Reserve(std::shared_ptr<MemoryBudget> budget, uint64_t most_bytes,
                                               bool huge_pages);
  // Grows to `bytes` bytes. *Errors*: ResourceExhausted over the budget or beyond the reservation; then nothing
  // changes.
  absl::Status Grow(uint64_t bytes);

  uint8_t* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t most_bytes() const { return most_bytes_; }
  void Free();

 private:
  std::shared_ptr<MemoryBudget> budget_;
  uint8_t* data_ = nullptr;
  uint64_t bytes_ = 0;
  uint64_t most_bytes_ = 0;  // whole pages
  bool huge_pages_ = false;
};

// Allocates pieces of large buffers, front to back, and frees all of them at once. Data that grow piece by piece
// (tuples in order of arrival) so lie on huge pages, at one system call for many pieces. *Threads*: one.
class Arena {
 public:
  static constexpr uint64_t kMostBytes = uint64_t{16} << 20;

  // most_bytes: of a buffer that holds several pieces.
  Arena(std::shared_ptr<MemoryBudget> budget, bool huge_pages, Contents contents = Contents::kZeros,
        uint64_t most_bytes = kMostBytes)
      : budget_(std::move(budget)), huge_pages_(huge_pages), contents_(contents), most_bytes_(most_bytes) {}

  // Aligned to 64 bytes, valid as long as the arena. *Errors*: ResourceExhausted.
  absl::StatusOr<uint8_t*> Allocate(uint64_t bytes);
  uint64_t bytes() const { return bytes_; }
  void Clear();
  // Gives back the buffers that were filled before the one with this piece.
  void FreeBefore(const uint8_t* piece);
  uint64_t Disown(bool releases_pages);  // HugeBuffer::Disown of all

 private:
  std::shared_ptr<MemoryBudget> budget_;
  bool huge_pages_;
  Contents contents_;
  uint64_t most_bytes_;
  std::vector<HugeBuffer> buffers_;
  uint64_t used_bytes_ = 0;  // of the last buffer
  uint64_t bytes_ = 0;       // of all buffers
};

}  // namespace quern

#endif  // QUERN_RUNTIME_BASE_MEMORY_H_
