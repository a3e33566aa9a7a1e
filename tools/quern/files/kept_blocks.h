// SPDX-License-Identifier: Apache-2.0
// Memory of a process that is to be small: of what is freed, a bounded number of bytes is kept for later requests.
#ifndef QUERN_TOOLS_FILES_KEPT_BLOCKS_H_
#define QUERN_TOOLS_FILES_KEPT_BLOCKS_H_

#include <arrow/memory_pool.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace quern::cli {

// Gives out blocks of the C library. Those of 64 KiB to 32 MiB have one of a few sizes, so that a block that was freed
// serves requests of other sizes, too. *Threads*: any.
class KeptBlocksPool final : public arrow::MemoryPool {
 public:
  // Keeps up to so many bytes from now on; 0 at first.
  void SetMost(uint64_t bytes) { most_bytes_ = bytes; }

  arrow::Status Allocate(int64_t size, int64_t alignment, uint8_t** out) override;
  arrow::Status Reallocate(int64_t old_size, int64_t new_size, int64_t alignment, uint8_t** pointer) override;
  void Free(uint8_t* block, int64_t size, int64_t alignment) override;
  void ReleaseUnused() override;
  int64_t bytes_allocated() const override { return stats_.bytes_allocated(); }
  int64_t max_memory() const override { return stats_.max_memory(); }
  int64_t total_bytes_allocated() const override { return stats_.total_bytes_allocated(); }
  int64_t num_allocations() const override { return stats_.num_allocations(); }
  std::string backend_name() const override { return "system"; }

 private:
  static constexpr uint32_t kNumSizes = 37;  // four for each power of two, from 64 KiB to 32 MiB
  uint8_t* TakeKept(uint32_t size_number);

  std::atomic<uint64_t> most_bytes_{0};
  arrow::internal::MemoryPoolStats stats_;
  std::mutex mutex_;  // guards what follows
  std::array<std::vector<uint8_t*>, kNumSizes> kept_;
  uint64_t kept_bytes_ = 0;
};

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FILES_KEPT_BLOCKS_H_
