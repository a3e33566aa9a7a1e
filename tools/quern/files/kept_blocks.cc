// SPDX-License-Identifier: Apache-2.0
// Sizes are 64, 80, 96, 112, 128, 160 KiB and so on: a block is at most a quarter larger than what it was asked for,
// and those pages of it are not resident that nobody has written to.
#include "tools/quern/files/kept_blocks.h"

#include <arrow/status.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace quern::cli {
namespace {

constexpr uint64_t kLeastBytes = 64 << 10, kMostBytes = 32 << 20;
constexpr int64_t kAlignment = 64;
constexpr uint32_t kNoSize = UINT32_MAX;
constexpr uint32_t kSizesOfPower = 4;

uint64_t BytesOfSize(uint32_t number) {
  return kLeastBytes / kSizesOfPower * (kSizesOfPower + number % kSizesOfPower) << number / kSizesOfPower;
}

// The number of the smallest size of so many bytes; kNoSize for blocks of any size.
uint32_t SizeOf(int64_t size, int64_t alignment) {
  const auto bytes = static_cast<uint64_t>(size);
  if (alignment > kAlignment || bytes <= kLeastBytes / 2 || bytes > kMostBytes) return kNoSize;
  if (bytes <= kLeastBytes) return 0;
  const auto power = static_cast<uint32_t>(std::bit_width((bytes - 1) / kLeastBytes)) - 1;
  const uint64_t step = (kLeastBytes / kSizesOfPower) << power;
  return power * kSizesOfPower + static_cast<uint32_t>((bytes - 1) / step - kSizesOfPower) + 1;
}

}  // namespace

uint8_t* KeptBlocksPool::TakeKept(uint32_t size_number) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<uint8_t*>& blocks = kept_[size_number];
  if (blocks.empty()) return nullptr;
  uint8_t* const block = blocks.back();
  blocks.pop_back();
  kept_bytes_ -= BytesOfSize(size_number);
  return block;
}

arrow::Status KeptBlocksPool::Allocate(int64_t size, int64_t alignment, uint8_t** out) {
  const uint32_t number = SizeOf(size, alignment);
  uint8_t* block = number == kNoSize ? nullptr : TakeKept(number);
  if (block == nullptr) {
    const int64_t bytes = number == kNoSize ? size : static_cast<int64_t>(BytesOfSize(number));
    ARROW_RETURN_NOT_OK(arrow::system_memory_pool()->Allocate(bytes, alignment, &block));
  }
  stats_.DidAllocateBytes(size);
  *out = block;
  return arrow::Status::OK();
}

arrow::Status KeptBlocksPool::Reallocate(int64_t old_size, int64_t new_size, int64_t alignment, uint8_t** pointer) {
  const uint32_t number = SizeOf(old_size, alignment);
  if (number != SizeOf(new_size, alignment)) {
    uint8_t* block = nullptr;
    ARROW_RETURN_NOT_OK(Allocate(new_size, alignment, &block));
    std::memcpy(block, *pointer, static_cast<size_t>(std::min(old_size, new_size)));
    Free(*pointer, old_size, alignment);
    *pointer = block;
    return arrow::Status::OK();
  }
  if (number == kNoSize)
    ARROW_RETURN_NOT_OK(arrow::system_memory_pool()->Reallocate(old_size, new_size, alignment, pointer));
  stats_.DidReallocateBytes(old_size, new_size);
  return arrow::Status::OK();
}

void KeptBlocksPool::Free(uint8_t* block, int64_t size, int64_t alignment) {
  const uint32_t number = SizeOf(size, alignment);
  stats_.DidFreeBytes(size);
  int64_t bytes = size;
  if (number != kNoSize) {
    bytes = static_cast<int64_t>(BytesOfSize(number));
    const std::lock_guard<std::mutex> lock(mutex_);
    if (kept_bytes_ + BytesOfSize(number) <= most_bytes_) {
      kept_[number].push_back(block);
      kept_bytes_ += BytesOfSize(number);
      return;
    }
  }
  arrow::system_memory_pool()->Free(block, bytes, alignment);
}

void KeptBlocksPool::ReleaseUnused() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (uint32_t number = 0; number < kNumSizes; ++number) {
    for (uint8_t* const block : kept_[number])
      arrow::system_memory_pool()->Free(block, static_cast<int64_t>(BytesOfSize(number)), kAlignment);
    kept_[number].clear();
  }
  kept_bytes_ = 0;
}

}  // namespace quern::cli
