// SPDX-License-Identifier: Apache-2.0
// Large pages and blocks that buffers have released, kept for later buffers of the process.
#ifndef QUERN_RUNTIME_BASE_KEPT_PAGES_H_
#define QUERN_RUNTIME_BASE_KEPT_PAGES_H_

#include <array>
#include <cstdint>
#include <map>

#include "runtime/base/fork_safety.h"
#include "runtime/base/thresholds.h"

namespace quern {

// *Threads*: any. *Units*: bytes, multiples of kPageBytes, of mappings on large pages.
class KeptPages {
 public:
  static constexpr uint64_t kPageBytes = uint64_t{2} << 20;

  // Keeps up to most_bytes.
  explicit KeptPages(uint64_t most_bytes) : most_bytes_(most_bytes) {}
  ~KeptPages() { Clear(); }

  // The process's pages: up to DefaultBytes() until SetMost changes it.
  static KeptPages& OfProcess();
  // 1 GiB, or a sixteenth of the machine's memory where that is less.
  static uint64_t DefaultBytes();

  // Changes the limit; unmaps all kept pages if they exceed it.
  void SetMost(uint64_t most_bytes);

  // `bytes` adjacent bytes with arbitrary contents, or nullptr where none are kept.
  uint8_t* Take(uint64_t bytes);
  // Moves kept pages to `to`, a multiple of kPageBytes in the caller's mapping; returns how many bytes, at most
  // `bytes`, are there now, with arbitrary contents. *Cost*: a system call for each page; nothing is copied.
  uint64_t MoveTo(uint8_t* to, uint64_t bytes);
  // Keeps the pages, or unmaps them if that would exceed the limit or nothing can be allocated.
  void Give(uint8_t* pages, uint64_t bytes);

  // Blocks of AllocateAligned, which buffers below a page take: as many and as large as thresholds.def says, and no
  // more bytes than pages may have. One that is given takes the place of the oldest ones.
  // A block of just so many bytes with arbitrary contents, or nullptr.
  uint8_t* TakeBlock(uint64_t bytes);
  // Keeps it or frees it.
  void GiveBlock(uint8_t* block, uint64_t bytes);

  // Unmaps all kept pages and frees all blocks; returns how many bytes they had.
  uint64_t Clear();
  uint64_t bytes() const;  // of pages

 private:
  struct Block {
    uint8_t* data;
    uint64_t bytes;
  };
  // False, and nothing is changed, where the pages cannot be kept.
  bool Keep(uint8_t* pages, uint64_t bytes);
  void TakeFront(std::map<uint64_t, uint64_t>::iterator range, uint64_t bytes);
  void UnmapAll();
  void RemoveBlock(uint32_t number);
  void FreeOldestBlock();

  mutable ForkSafeMutex mutex_;
  uint64_t most_bytes_;
  std::map<uint64_t, uint64_t> ranges_;  // sizes by address; no two ranges are adjacent
  uint64_t bytes_ = 0;
  std::array<Block, thresholds::kKeptBlocks> blocks_;  // the oldest first
  uint32_t num_blocks_ = 0;
  uint64_t block_bytes_ = 0;
};

// Blocks of any size that the process keeps, those that are large enough. Null where the system has no memory.
// *Ownership*: FreeBlock, with the same size; a null pointer is left alone.
uint8_t* AllocateBlock(uint64_t bytes);
void FreeBlock(uint8_t* block, uint64_t bytes);

}  // namespace quern

#endif  // QUERN_RUNTIME_BASE_KEPT_PAGES_H_
