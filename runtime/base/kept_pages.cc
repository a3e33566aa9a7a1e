// SPDX-License-Identifier: Apache-2.0
// The system zeroes every page that is new to a process: at 10 GB/s for one core and 15 for two, where writing to
// existing pages reaches 24 (Zen 4, 2 virtual cores). A sort of 10 M i64 takes 160 MB, and zeroing it 1.6 of its 8 ns a
// row. If the virtual machine has not used the page before either, its host creates it too: 0.4 GB/s. So pages that
// large buffers release are kept. The next buffer that does not need zeros reuses them; or its user zeroes them, and
// they become part of a buffer that grows (a core zeroes its own pages at 20 GB/s):
//
//     sort 1   16 MiB | 16 MiB | 160 MiB          from the system
//              released, adjacent:                |========== 192 MiB ==========|
//     sort 2   16 MiB | 16 MiB | 160 MiB          from kept pages, the smallest range that suffices
//
// The system may reclaim kept pages (MADV_FREE: 0.4 us for 1 MiB): it takes them first when memory is short, and a page
// that it took is a new one when it is touched again.
//
// The allocator gives blocks of 128 KiB and more back to the system when they are freed, and takes new pages for the
// next one. So some of the last ones are kept, too, for requests of just their size: the same query asks for the same
// sizes again. TPC-H 10 spent 15 % of its time on new pages.
#include "runtime/base/kept_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <new>
#include <utility>

#include "runtime/base/aligned_block.h"
#include "runtime/base/bytes.h"

namespace quern {
namespace {

void* AddressOf(uint64_t at) { return reinterpret_cast<void*>(at); }

// A sanitizer sees no use of a block that is kept after it was freed.
#if defined(QUERN_SANITIZED)
constexpr bool kKeepsBlocks = false;
#else
constexpr bool kKeepsBlocks = true;
#endif

}  // namespace

// Never destroyed: buffers may outlive static objects.
KeptPages& KeptPages::OfProcess() {
  const NoFork no_fork;  // the first call makes it
  static auto* const pages = new KeptPages(DefaultBytes());
  return *pages;
}

uint64_t KeptPages::DefaultBytes() {
  const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
  const uint64_t memory =
      pages > 0 && page_bytes > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes) : 0;
  return std::min(uint64_t{1} << 30, memory / 16);
}

void KeptPages::SetMost(uint64_t most_bytes) {
  const std::lock_guard<ForkSafeMutex> lock(mutex_);
  most_bytes_ = most_bytes;
  if (bytes_ > most_bytes) UnmapAll();
  while (block_bytes_ > most_bytes) FreeOldestBlock();
}

uint8_t* KeptPages::Take(uint64_t bytes) {
  const std::lock_guard<ForkSafeMutex> lock(mutex_);
  auto best = ranges_.end();
  for (auto range = ranges_.begin(); range != ranges_.end(); ++range)
    if (range->second >= bytes && (best == ranges_.end() || range->second < best->second)) best = range;
  if (best == ranges_.end()) return nullptr;
  const uint64_t begin = best->first;
  TakeFront(best, bytes);
  return static_cast<uint8_t*>(AddressOf(begin));
}

uint64_t KeptPages::MoveTo(uint8_t* to, uint64_t bytes) {
  const std::lock_guard<ForkSafeMutex> lock(mutex_);
  uint64_t moved = 0;
  // Page by page: adjacent pages may come from several mappings, and one call moves only one mapping.
  while (moved < bytes && !ranges_.empty()) {
    const uint64_t begin = ranges_.begin()->first;
    void* const at = to + moved;
    if (mremap(AddressOf(begin), kPageBytes, kPageBytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) != at) {
      // The previous contents may be gone by then.
      static_cast<void>(
          mmap(at, kPageBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0));
      break;
    }
    TakeFront(ranges_.begin(), kPageBytes);
    moved += kPageBytes;
  }
  return moved;
}

void KeptPages::Give(uint8_t* pages, uint64_t bytes) {
  if (!Keep(pages, bytes)) munmap(pages, bytes);
}

bool KeptPages::Keep(uint8_t* pages, uint64_t bytes) {
  const std::lock_guard<ForkSafeMutex> lock(mutex_);
  if (bytes > most_bytes_ - bytes_) return false;
#if defined(MADV_FREE)
  if (madvise(pages, bytes, MADV_FREE) != 0) return false;
#else
  return false;
#endif
  auto range = ranges_.end();
  try {
    range = ranges_.emplace(reinterpret_cast<uint64_t>(pages), bytes).first;
  } catch (const std::bad_alloc&) {  // buffers are released by destructors, from which nothing may be thrown
    return false;
  }
  bytes_ += bytes;
  const auto after = std::next(range);
  if (after != ranges_.end() && range->first + range->second == after->first) {
    range->second += after->second;
    ranges_.erase(after);
  }
  if (range == ranges_.begin()) return true;
  const auto before = std::prev(range);
  if (before->first + before->second != range->first) return true;
  before->second += range->second;
  ranges_.erase(range);
  return true;
}

// Called with the mutex held. The node of the map stays, so that nothing is allocated: pages must not be lost.
void KeptPages::TakeFront(std::map<uint64_t, uint64_t>::iterator range, uint64_t bytes) {
  auto node = ranges_.extract(range);
  bytes_ -= bytes;
  if (node.mapped() == bytes) return;
  node.key() += bytes;
  node.mapped() -= bytes;
  ranges_.insert(std::move(node));
}

uint8_t* KeptPages::TakeBlock(uint64_t bytes) {
  const std::lock_guard<ForkSafeMutex> lock(mutex_);
  for (uint32_t i = num_blocks_; i-- > 0;) {
    if (blocks_[i].bytes != bytes) continue;
    uint8_t* const block = blocks_[i].data;
    RemoveBlock(i);
    return block;
  }
  return nullptr;
}

void KeptPages::GiveBlock(uint8_t* block, uint64_t bytes) {
  const std::lock_guard<ForkSafeMutex> lock(mutex_);
  const uint64_t most = kKeepsBlocks ? std::min(most_bytes_, thresholds::kKeptBlocksBytes) : 0;
  if (bytes > most) return FreeAligned(block);
  while (num_blocks_ == thresholds::kKeptBlocks || block_bytes_ + bytes > most) FreeOldestBlock();
  blocks_[num_blocks_++] = {block, bytes};
  block_bytes_ += bytes;
}

// Called with the mutex held, as FreeOldestBlock.
void KeptPages::RemoveBlock(uint32_t number) {
  block_bytes_ -= blocks_[number].bytes;
  std::copy(blocks_.begin() + number + 1, blocks_.begin() + num_blocks_, blocks_.begin() + number);
  --num_blocks_;
}

void KeptPages::FreeOldestBlock() {
  FreeAligned(blocks_.front().data);
  RemoveBlock(0);
}

uint64_t KeptPages::Clear() {
  const std::lock_guard<ForkSafeMutex> lock(mutex_);
  const uint64_t bytes = bytes_ + block_bytes_;
  UnmapAll();
  while (num_blocks_ != 0) FreeOldestBlock();
  return bytes;
}

// Called with the mutex held.
void KeptPages::UnmapAll() {
  for (const auto& [begin, length] : ranges_) munmap(AddressOf(begin), length);
  ranges_.clear();
  bytes_ = 0;
}

uint64_t KeptPages::bytes() const {
  const std::lock_guard<ForkSafeMutex> lock(mutex_);
  return bytes_;
}

uint8_t* AllocateBlock(uint64_t bytes) {
  const bool may_be_kept = bytes >= thresholds::kKeptBlockBytes && bytes <= thresholds::kKeptBlocksBytes;
  uint8_t* const kept = may_be_kept ? KeptPages::OfProcess().TakeBlock(bytes) : nullptr;
  return kept != nullptr ? kept : AllocateAligned(bytes);
}

void FreeBlock(uint8_t* block, uint64_t bytes) {
  if (block == nullptr) return;
  if (bytes >= thresholds::kKeptBlockBytes) KeptPages::OfProcess().GiveBlock(block, bytes);
  else FreeAligned(block);
}

}  // namespace quern
