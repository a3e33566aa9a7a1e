// SPDX-License-Identifier: Apache-2.0
// Large pages that buffers have given back, for the next ones of the process.
#ifndef QUERN_RUNTIME_BASE_KEPT_PAGES_H_
#define QUERN_RUNTIME_BASE_KEPT_PAGES_H_

#include <cstdint>
#include <map>
#include <mutex>

namespace quern {

// *Threads*: any. *Units*: bytes, multiples of kPageBytes, of mappings on large pages.
class KeptPages {
 public:
  static constexpr uint64_t kPageBytes = uint64_t{2} << 20;

  // Keeps up to most_bytes.
  explicit KeptPages(uint64_t most_bytes) : most_bytes_(most_bytes) {}
  ~KeptPages() { Clear(); }

  // The process's, of DefaultBytes() until somebody says otherwise.
  static KeptPages& OfProcess();
  // 1 GiB, or a sixteenth of the machine's memory where that is less.
  static uint64_t DefaultBytes();

  // From now on; unmaps all that is kept where that is more.
  void SetMost(uint64_t most_bytes);

  // `bytes` side by side, with anything in them, or nullptr where none are kept.
  uint8_t* Take(uint64_t bytes);
  // Moves what is kept to `to`, a multiple of kPageBytes of the caller's mapping, from its beginning on; answers how
  // many bytes, at most `bytes`, are there now, with anything in them. *Cost*: a system call a page; nothing is copied.
  uint64_t MoveTo(uint8_t* to, uint64_t bytes);
  // Keeps them, or unmaps them where that would be too many.
  void Give(uint8_t* pages, uint64_t bytes);
  // Unmaps all that is kept.
  void Clear();
  uint64_t bytes() const;

 private:
  void UnmapAll();

  mutable std::mutex mutex_;
  uint64_t most_bytes_;
  std::map<uint64_t, uint64_t> ranges_;  // bytes by address; none touches another
  uint64_t bytes_ = 0;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_BASE_KEPT_PAGES_H_
