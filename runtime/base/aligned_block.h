// SPDX-License-Identifier: Apache-2.0
// Blocks at multiples of 64 bytes. glibc keeps lists of free blocks by thread for malloc, but not for aligned_alloc,
// which takes five times as long: a job of ten rows has about ten such blocks (build/bin/small_jobs: 2.3 us a sort
// instead of 3.1).
#ifndef QUERN_RUNTIME_BASE_ALIGNED_BLOCK_H_
#define QUERN_RUNTIME_BASE_ALIGNED_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace quern {

constexpr uint64_t kBlockAlignment = 64;

// Null where the system has no memory. *Cost*: one malloc; 64 bytes more than requested. *Ownership*: FreeAligned.
inline uint8_t* AllocateAligned(uint64_t bytes) {
  if (bytes > SIZE_MAX - kBlockAlignment) return nullptr;
  auto* const block = static_cast<uint8_t*>(std::malloc(bytes + kBlockAlignment));
  if (block == nullptr) return nullptr;
  // Blocks of malloc begin at multiples of 8 or more, so there are 8 to 64 bytes before the next multiple of 64.
  static_assert(sizeof(block) <= 8);
  uint8_t* const aligned = block + (kBlockAlignment - reinterpret_cast<uintptr_t>(block) % kBlockAlignment);
  std::memcpy(aligned - sizeof(block), &block, sizeof(block));
  return aligned;
}

// A null pointer is left alone.
inline void FreeAligned(void* aligned) {
  if (aligned == nullptr) return;
  uint8_t* block = nullptr;
  std::memcpy(&block, static_cast<uint8_t*>(aligned) - sizeof(block), sizeof(block));
  std::free(block);
}

// A base of objects that contain whole cache lines: `new` takes them from AllocateAligned.
struct OnOwnLines {
  static void* operator new(size_t bytes, std::align_val_t /*alignment*/) {
    if (void* const block = AllocateAligned(bytes)) return block;
    throw std::bad_alloc();
  }
  static void operator delete(void* block, std::align_val_t /*alignment*/) { FreeAligned(block); }
};

}  // namespace quern

#endif  // QUERN_RUNTIME_BASE_ALIGNED_BLOCK_H_
