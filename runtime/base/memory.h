// SPDX-License-Identifier: Apache-2.0
// Memory under a budget. All that grows with the data is taken from here, so that a host can bound a join.
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

// Counts bytes against a limit. *Threads*: any.
class MemoryBudget {
 public:
  // *Units*: bytes; 0 means no limit.
  explicit MemoryBudget(uint64_t limit_bytes = 0) : limit_(limit_bytes) {}

  // Takes bytes or answers ResourceExhausted, naming what was asked, what is in use and the limit.
  absl::Status Reserve(uint64_t bytes);
  void Release(uint64_t bytes);

  uint64_t used_bytes() const { return used_.load(std::memory_order_relaxed); }
  uint64_t peak_bytes() const { return peak_.load(std::memory_order_relaxed); }
  uint64_t limit_bytes() const { return limit_; }

 private:
  const uint64_t limit_;
  std::atomic<uint64_t> used_{0};
  std::atomic<uint64_t> peak_{0};
};

// What new memory is to have in it. kAnything: what was written to it before, perhaps.
enum class Contents : uint8_t { kZeros, kAnything };

// Memory on huge pages where asked and above 2 MiB; less from the allocator. Of zeros it is pages straight from the
// system, never touched before their user does, so that "empty is 0" costs nothing; with anything in it, pages that
// were used before, where there are any: they are kept for that (kept_pages.h), and writing to them first costs half.
class HugeBuffer {
 public:
  HugeBuffer() = default;
  HugeBuffer(HugeBuffer&& other) noexcept { *this = std::move(other); }
  HugeBuffer& operator=(HugeBuffer&& other) noexcept;
  ~HugeBuffer() { Free(); }

  // *Errors*: ResourceExhausted over the budget or when the system has no memory.
  static absl::StatusOr<HugeBuffer> Allocate(std::shared_ptr<MemoryBudget> budget, uint64_t bytes, bool huge_pages,
                                             Contents contents = Contents::kZeros);

  uint8_t* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }
  void Free();

 private:
  std::shared_ptr<MemoryBudget> budget_;
  uint8_t* data_ = nullptr;
  uint64_t bytes_ = 0;
  uint64_t mapping_bytes_ = 0;  // 0: from the allocator
  bool keeps_pages_ = false;
};

// Zeroed memory that grows where it is: addresses are reserved first and pages taken as it grows, so that what is there
// neither moves nor is copied.
class GrowingBuffer {
 public:
  GrowingBuffer() = default;
  GrowingBuffer(GrowingBuffer&& other) noexcept { *this = std::move(other); }
  GrowingBuffer& operator=(GrowingBuffer&& other) noexcept;
  ~GrowingBuffer() { Free(); }

  // *Errors*: ResourceExhausted where the system gives no addresses.
  static absl::StatusOr<GrowingBuffer> Reserve(std::shared_ptr<MemoryBudget> budget, uint64_t most_bytes,
                                               bool huge_pages);
  // To `bytes` bytes. *Errors*: ResourceExhausted over the budget or beyond what was reserved, which changes nothing.
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

// Gives out pieces of large buffers, front to back, and frees all at once. What grows piece by piece (tuples in order
// of arrival) lies on huge pages this way, at one system call for many pieces. *Threads*: one.
class Arena {
 public:
  Arena(std::shared_ptr<MemoryBudget> budget, bool huge_pages, Contents contents = Contents::kZeros)
      : budget_(std::move(budget)), huge_pages_(huge_pages), contents_(contents) {}

  // Aligned to 64 bytes, valid until the arena goes. *Errors*: ResourceExhausted.
  absl::StatusOr<uint8_t*> Allocate(uint64_t bytes);
  uint64_t bytes() const { return bytes_; }
  void Clear();

 private:
  std::shared_ptr<MemoryBudget> budget_;
  bool huge_pages_;
  Contents contents_;
  std::vector<HugeBuffer> buffers_;
  uint64_t used_bytes_ = 0;  // of the last one
  uint64_t bytes_ = 0;       // of all
};

}  // namespace quern

#endif  // QUERN_RUNTIME_BASE_MEMORY_H_
