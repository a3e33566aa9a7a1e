// SPDX-License-Identifier: Apache-2.0
// Large pages that buffers have released, kept for later buffers of the process.
#ifndef QUERN_RUNTIME_BASE_KEPT_PAGES_H_
#define QUERN_RUNTIME_BASE_KEPT_PAGES_H_

#include <cstdint>
#include <map>

#include "runtime/base/fork_safety.h"

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
  // Unmaps all kept pages; returns how many bytes they had.
  uint64_t Clear();
  uint64_t bytes() const;

 private:
  // False, and nothing is changed, where the pages cannot be kept.
  bool Keep(uint8_t* pages, uint64_t bytes);
  void TakeFront(std::map<uint64_t, uint64_t>::iterator range, uint64_t bytes);
  void UnmapAll();

  mutable ForkSafeMutex mutex_;
  uint64_t most_bytes_;
  std::map<uint64_t, uint64_t> ranges_;  // sizes by address; no two ranges are adjacent
  uint64_t bytes_ = 0;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_BASE_KEPT_PAGES_H_
