// SPDX-License-Identifier: Apache-2.0
// A budget is one counter. Each allocation first adds its size and fails if the sum would exceed the limit, so that a
// join under `--memory-limit 1G` ends with a message instead of being killed. With 1000 bytes in use and a limit of
// 1000000, a request for 123456789 is refused and changes nothing.
//
// Tables are probed at random, so their pages should be large: 1 GiB takes 262144 translations in pages of 4 KiB, and
// 512 in pages of 2 MiB, which fit the second-level TLB of current cores (1024 to 3072 entries). The system uses large
// pages only for ranges that begin at multiples of 2 MiB, and mmap guarantees only multiples of 4 KiB. So 2 MiB more
// are mapped than requested, and the excess is unmapped again:
//
//     mapped    |..................................................|
//     2 MiB         ^           ^           ^           ^
//     kept          |==========================|
#include "runtime/base/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "runtime/base/aligned_block.h"
#include "runtime/base/kept_pages.h"
#include "runtime/base/thresholds.h"

namespace quern {
namespace {

// Mappings begin at a multiple of the system's page size, which is at least kSmallestPageBytes, and have a multiple of
// kPageBytes, which every page size divides.
constexpr uint64_t kSmallestPageBytes = 4096;
#if defined(__aarch64__)
constexpr uint64_t kPageBytes = 65536;
#else
constexpr uint64_t kPageBytes = 4096;
#endif
constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;
constexpr uint64_t kAddressSpaceBytes = uint64_t{1} << 47;  // x86-64 and AArch64 with 4-level page tables

uint64_t RoundUp(uint64_t n, uint64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// `bytes` (whole pages) at a multiple of `alignment`, or nullptr.
uint8_t* MapAligned(uint64_t bytes, uint64_t alignment, int protection = PROT_READ | PROT_WRITE, int flags = 0) {
  const uint64_t slack = alignment - kSmallestPageBytes;
  void* mapping = mmap(nullptr, bytes + slack, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  uint8_t* const begin = static_cast<uint8_t*>(mapping);
  const uint64_t head = RoundUp(reinterpret_cast<uint64_t>(begin), alignment) - reinterpret_cast<uint64_t>(begin);
  if (head > 0) munmap(begin, head);
  if (slack > head) munmap(begin + head + bytes, slack - head);
  return begin + head;
}

// New large pages, the first ones of which are kept ones, from wherever they lie: as many as there are. The contents of
// the first `*kept` bytes are arbitrary. nullptr: no memory.
uint8_t* MapWithKeptPages(uint64_t bytes, uint64_t* kept) {
  uint8_t* const data = MapAligned(bytes, kHugePageBytes, PROT_NONE, MAP_NORESERVE);
  if (data == nullptr) return nullptr;
  *kept = KeptPages::OfProcess().MoveTo(data, bytes);
  if (*kept == bytes || mprotect(data + *kept, bytes - *kept, PROT_READ | PROT_WRITE) == 0) return data;
  munmap(data, bytes);
  return nullptr;
}

// Below this size, a mapping's system calls and page faults cost more than zeroing memory of the allocator: a join of
// 1,000 rows took 70 us in mappings alone, and one of 50,000 rows 28 ns a row instead of 7. From this size on pages are
// large, and one fault creates 2 MiB of them.
constexpr uint64_t kSmallestMappingBytes = thresholds::kLargePageBytes;

uint8_t* AllocateSmall(uint64_t bytes, Contents contents) {
  const uint64_t rounded = RoundUp(bytes, kBlockAlignment);
  uint8_t* const data = AllocateBlock(rounded);
  if (data != nullptr && contents == Contents::kZeros) std::memset(data, 0, rounded);
  return data;
}

// Makes sure that no user relies on zeros, nor on equal bytes. Returns false, and writes nothing, where touching all of
// it would be too expensive.
[[maybe_unused]] bool FillWithAnything(uint8_t* data, uint64_t bytes) {
  constexpr uint64_t kMostBytes = uint64_t{64} << 20;
  if (bytes > kMostBytes) return false;
  uint64_t anything = 0;
  for (uint64_t i = 0; i + sizeof(anything) <= bytes; i += sizeof(anything)) {
    anything += 0x9e3779b97f4a7c15;
    std::memcpy(data + i, &anything, sizeof(anything));
  }
  return true;
}

absl::Status LimitExceeded(uint64_t bytes, uint64_t used, uint64_t limit) {
  return absl::ResourceExhaustedError("memory limit exceeded: " + std::to_string(bytes) + " bytes requested, " +
                                      std::to_string(used) + " in use; limit " + std::to_string(limit));
}

absl::Status OutOfMemory(uint64_t bytes) {
  return absl::ResourceExhaustedError("out of memory: " + std::to_string(bytes) +
                                      " bytes requested; accepted: what the system has free");
}

absl::Status RefusedByHost(uint64_t bytes, uint64_t used) {
  return absl::ResourceExhaustedError("memory refused by the host: " + std::to_string(bytes) + " bytes requested, " +
                                      std::to_string(used) + " in use; accepted: what its account allows");
}

}  // namespace

absl::Status MemoryBudget::Refusal(uint64_t bytes) const {
  const uint64_t used = used_bytes();
  if (limit_ != 0 && bytes > limit_ - std::min(used, limit_)) return LimitExceeded(bytes, used, limit_);
  if (account_.budget != nullptr) return account_.budget->Refusal(bytes);
  // Another thread may have freed memory since.
  return account_.reserve == nullptr ? LimitExceeded(bytes, used, limit_) : RefusedByHost(bytes, used);
}

absl::Status MemoryBudget::Reserve(uint64_t bytes) {
  const uint64_t limit = limit_ == 0 ? UINT64_MAX : limit_;
  uint64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (used > limit || bytes > limit - used) {
      return LimitExceeded(bytes, used, limit);
    }
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  if (account_.reserve != nullptr && !account_.reserve(account_.host, bytes)) {
    used_.fetch_sub(bytes, std::memory_order_relaxed);
    if (account_.budget != nullptr) return account_.budget->Refusal(bytes);
    return RefusedByHost(bytes, used);
  }
  const uint64_t now = used + bytes;
  uint64_t peak = peak_.load(std::memory_order_relaxed);
  while (peak < now && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
  return absl::OkStatus();
}

void MemoryBudget::Take(uint64_t bytes) {
  const uint64_t now = used_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  uint64_t peak = peak_.load(std::memory_order_relaxed);
  while (peak < now && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

void MemoryBudget::Release(uint64_t bytes) {
  used_.fetch_sub(bytes, std::memory_order_relaxed);
  if (account_.release != nullptr) account_.release(account_.host, bytes);
}

std::shared_ptr<MemoryBudget> BudgetWithin(std::shared_ptr<MemoryBudget> other, uint64_t limit_bytes) {
  const MemoryAccount account = {
      [](void* of, uint64_t bytes) { return static_cast<MemoryBudget*>(of)->Reserve(bytes).ok(); },
      [](void* of, uint64_t bytes) { static_cast<MemoryBudget*>(of)->Release(bytes); }, other.get(), other.get()};
  auto* const within = new MemoryBudget(limit_bytes, account);
  return std::shared_ptr<MemoryBudget>(within, [other = std::move(other)](const MemoryBudget* made) { delete made; });
}

absl::StatusOr<HugeBuffer> HugeBuffer::Allocate(std::shared_ptr<MemoryBudget> budget, uint64_t bytes, bool huge_pages,
                                                Contents contents) {
  HugeBuffer buffer;
  if (bytes == 0) return buffer;
  if (budget) {
    if (absl::Status status = budget->Reserve(bytes); !status.ok()) return status;
  }
  const bool huge = huge_pages && bytes >= kHugePageBytes;
  const bool mapped = bytes >= kSmallestMappingBytes;
  const bool is_zeroed = contents == Contents::kZeros;
  const bool keeps_pages = huge && (!is_zeroed || bytes <= thresholds::kZeroedPagesBytes);
  const uint64_t page_bytes = keeps_pages ? kHugePageBytes : kPageBytes;
  const uint64_t mapping_bytes = mapped && bytes < kAddressSpaceBytes ? RoundUp(bytes, page_bytes) : 0;
  uint8_t* data = nullptr;
  bool is_new = true;
  uint64_t first_zero = 0;
  if (!mapped) {
    data = AllocateSmall(bytes, contents);
    first_zero = bytes;
  } else if (mapping_bytes != 0) {
    if (keeps_pages) data = KeptPages::OfProcess().Take(mapping_bytes);
    is_new = data == nullptr;
    first_zero = is_new ? 0 : bytes;
    if (!is_new && is_zeroed) std::memset(data, 0, bytes);
    if (is_new && keeps_pages && !is_zeroed) data = MapWithKeptPages(mapping_bytes, &first_zero);
    else if (is_new) data = MapAligned(mapping_bytes, huge ? kHugePageBytes : kSmallestPageBytes);
  }
  if (data == nullptr) {
    if (budget) budget->Release(bytes);
    return OutOfMemory(bytes);
  }
  // Only a request: where the system has switched large pages off, small ones work too.
  if (huge && is_new) madvise(data, mapping_bytes, MADV_HUGEPAGE);
#if !defined(NDEBUG)
  if (contents == Contents::kAnything && FillWithAnything(data, bytes)) first_zero = bytes;
#endif
  buffer.budget_ = std::move(budget);
  buffer.data_ = data;
  buffer.bytes_ = bytes;
  buffer.mapping_bytes_ = mapping_bytes;
  buffer.keeps_pages_ = keeps_pages;
  buffer.first_zero_ = std::min(first_zero, bytes);
  return buffer;
}

void PopulatePages(uint8_t* data, uint64_t bytes) {
#if defined(MADV_POPULATE_WRITE)
  if (bytes >= kHugePageBytes) return;
  const uint64_t begin = RoundUp(reinterpret_cast<uintptr_t>(data), kPageBytes);
  const uint64_t end = (reinterpret_cast<uintptr_t>(data) + bytes) / kPageBytes * kPageBytes;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE);  // only a request
#endif
}

void ReleasePages(uint8_t* data, uint64_t bytes) {
  const uint64_t begin = RoundUp(reinterpret_cast<uintptr_t>(data), kPageBytes);
  const uint64_t end = (reinterpret_cast<uintptr_t>(data) + bytes) / kPageBytes * kPageBytes;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

HugeBuffer& HugeBuffer::operator=(HugeBuffer&& other) noexcept {
  if (this == &other) return *this;
  Free();
  budget_ = std::move(other.budget_);
  data_ = std::exchange(other.data_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  mapping_bytes_ = std::exchange(other.mapping_bytes_, 0);
  keeps_pages_ = other.keeps_pages_;
  first_zero_ = other.first_zero_;
  return *this;
}

uint64_t HugeBuffer::Disown(bool releases_pages) {
  keeps_pages_ = keeps_pages_ && !releases_pages;
  if (budget_ == nullptr) return 0;
  budget_.reset();
  return bytes_;
}

absl::Status HugeBuffer::TakeKeptPages(uint64_t begin, uint64_t end) {
  begin = RoundUp(begin, kHugePageBytes);
  end = end / kHugePageBytes * kHugePageBytes;
  if (!keeps_pages_ || begin >= end) return absl::OkStatus();
  begin += KeptPages::OfProcess().MoveTo(data_ + begin, end - begin);
  // A page that could not be moved leaves a place without one.
  if (begin == end || mprotect(data_ + begin, kHugePageBytes, PROT_READ | PROT_WRITE) == 0) return absl::OkStatus();
  return OutOfMemory(kHugePageBytes);
}

void HugeBuffer::Free() {
  if (mapping_bytes_ == 0) FreeBlock(data_, RoundUp(bytes_, kBlockAlignment));
  else if (keeps_pages_) KeptPages::OfProcess().Give(data_, mapping_bytes_);
  else munmap(data_, mapping_bytes_);
  if (budget_) budget_->Release(bytes_);
  budget_.reset();
  data_ = nullptr;
  bytes_ = mapping_bytes_ = 0;
}

absl::StatusOr<GrowingBuffer> GrowingBuffer::Reserve(std::shared_ptr<MemoryBudget> budget, uint64_t most_bytes,
                                                     bool huge_pages) {
  GrowingBuffer buffer;
  const uint64_t bytes = RoundUp(most_bytes, kHugePageBytes);
  buffer.data_ = bytes < kAddressSpaceBytes ? MapAligned(bytes, kHugePageBytes, PROT_NONE, MAP_NORESERVE) : nullptr;
  if (buffer.data_ == nullptr) {
    return absl::ResourceExhaustedError("out of addresses: " + std::to_string(most_bytes) +
                                        " bytes requested; accepted: what the system gives");
  }
  buffer.budget_ = std::move(budget);
  buffer.most_bytes_ = bytes;
  buffer.huge_pages_ = huge_pages;
  return buffer;
}

absl::Status GrowingBuffer::Grow(uint64_t bytes) {
  if (bytes <= bytes_) return absl::OkStatus();
  if (bytes > most_bytes_) {
    return absl::ResourceExhaustedError("out of addresses: " + std::to_string(bytes) +
                                        " bytes requested; accepted: " + std::to_string(most_bytes_));
  }
  if (budget_) {
    if (absl::Status status = budget_->Reserve(bytes - bytes_); !status.ok()) return status;
  }
  // Whole large pages from the beginning: a table of 1 MiB in small pages needs more translations than the first-level
  // TLB holds.
  const uint64_t unit = huge_pages_ ? kHugePageBytes : kPageBytes, begin = RoundUp(bytes_, unit),
                 end = RoundUp(bytes, unit);
  const uint64_t kept = huge_pages_ ? KeptPages::OfProcess().MoveTo(data_ + begin, end - begin) : 0,
                 fresh = begin + kept;
  std::memset(data_ + begin, 0, kept);
  if (end > fresh && mprotect(data_ + fresh, end - fresh, PROT_READ | PROT_WRITE) != 0) {
    if (budget_) budget_->Release(bytes - bytes_);
    return OutOfMemory(bytes);
  }
  if (huge_pages_ && end > fresh) madvise(data_ + fresh, end - fresh, MADV_HUGEPAGE);
#if defined(MADV_POPULATE_WRITE)
  // Pages that are read before they are written would fault twice. Only a request: before Linux 5.14 they fault one by
  // one.
  if (end > fresh) madvise(data_ + fresh, end - fresh, MADV_POPULATE_WRITE);
#endif
  bytes_ = bytes;
  return absl::OkStatus();
}

GrowingBuffer& GrowingBuffer::operator=(GrowingBuffer&& other) noexcept {
  if (this == &other) return *this;
  Free();
  budget_ = std::move(other.budget_);
  data_ = std::exchange(other.data_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  most_bytes_ = std::exchange(other.most_bytes_, 0);
  huge_pages_ = other.huge_pages_;
  return *this;
}

void GrowingBuffer::Free() {
  if (data_ != nullptr) {
    const uint64_t kept = huge_pages_ ? RoundUp(bytes_, kHugePageBytes) : 0;
    if (kept < most_bytes_) munmap(data_ + kept, most_bytes_ - kept);
    if (kept > 0) KeptPages::OfProcess().Give(data_, kept);
  }
  if (budget_) budget_->Release(bytes_);
  budget_.reset();
  data_ = nullptr;
  bytes_ = most_bytes_ = 0;
}

void Arena::Clear() {
  buffers_.clear();
  used_bytes_ = bytes_ = 0;
}

void Arena::FreeBefore(const uint8_t* piece) {
  const auto has_piece = [piece](const HugeBuffer& buffer) {
    return piece >= buffer.data() && piece < buffer.data() + buffer.bytes();
  };
  const auto buffer = std::find_if(buffers_.begin(), buffers_.end(), has_piece);
  for (auto before = buffers_.begin(); before != buffer; ++before) bytes_ -= before->bytes();
  buffers_.erase(buffers_.begin(), buffer);
}

uint64_t Arena::Disown(bool releases_pages) {
  uint64_t bytes = 0;
  for (HugeBuffer& buffer : buffers_) bytes += buffer.Disown(releases_pages);
  return bytes;
}

absl::StatusOr<uint8_t*> Arena::Allocate(uint64_t bytes) {
  // Each buffer is as large as all earlier ones together, so that a small user takes little memory and a large one few
  // buffers.
  constexpr uint64_t kFirstBytes = uint64_t{4} << 10;
  bytes = RoundUp(bytes, 64);
  if (buffers_.empty() || buffers_.back().bytes() - used_bytes_ < bytes) {
    // A piece that takes most of a large page gets one, even where this allocates two.
    const uint64_t least =
        contents_ == Contents::kAnything && bytes >= kHugePageBytes / 2 ? kHugePageBytes : kFirstBytes;
    const uint64_t grown = std::clamp(bytes_, least, most_bytes_);
    absl::StatusOr<HugeBuffer> buffer = HugeBuffer::Allocate(budget_, std::max(bytes, grown), huge_pages_, contents_);
    // Near the end of a budget, what is needed alone.
    if (!buffer.ok() && grown > std::max(bytes, kFirstBytes))
      buffer = HugeBuffer::Allocate(budget_, std::max(bytes, kFirstBytes), huge_pages_, contents_);
    if (!buffer.ok()) return buffer.status();
    buffers_.push_back(*std::move(buffer));
    bytes_ += buffers_.back().bytes();
    used_bytes_ = 0;
  }
  uint8_t* const piece = buffers_.back().data() + used_bytes_;
  used_bytes_ += bytes;
  return piece;
}

}  // namespace quern
