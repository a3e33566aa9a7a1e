// SPDX-License-Identifier: Apache-2.0
// The functions below take the place of glibc's in the whole process: the dynamic linker finds a name in the program
// first, so that calls of libquern.so and of the C++ library come here. A request is a call that takes memory (malloc
// and its family, so operator new too; mmap, mremap, mprotect) or a thread. While none is to be refused, they do what
// glibc does:
//
//     StartRefusing(3, kOnce)    malloc, mmap, malloc     the third returns null; the fourth and later ones succeed
//
// Calls within glibc are not seen: the stacks of threads, for example, hence pthread_create.
#include "test/refusals/refusing_allocator.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <dlfcn.h>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>

#define QUERN_TEST_EXPORT __attribute__((visibility("default")))

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): glibc's names
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* block, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* block);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace quern_test {
namespace {

std::atomic<bool> counts{false}, goes_on{false};
std::atomic<uint64_t> num_requests{0}, refused{0};
std::atomic<int64_t> held_blocks{0}, held_mapped_bytes{0};

bool IsRefused() {
  if (!counts.load(std::memory_order_relaxed)) return false;
  const uint64_t number = num_requests.fetch_add(1, std::memory_order_relaxed) + 1;
  const uint64_t n = refused.load(std::memory_order_relaxed);
  return n != 0 && (number == n || (goes_on.load(std::memory_order_relaxed) && number > n));
}

void* Refuse() {
  errno = ENOMEM;
  return nullptr;
}

void* Held(void* block) {
  if (block != nullptr) held_blocks.fetch_add(1, std::memory_order_relaxed);
  return block;
}

}  // namespace

void StartRefusing(uint64_t n, Refusing refusing) {
  num_requests = 0;
  refused = n;
  goes_on = refusing == Refusing::kFromThenOn;
  counts = true;
}

uint64_t StopRefusing() {
  counts = false;
  return num_requests;
}

int64_t HeldBlocks() { return held_blocks; }
int64_t HeldMappedBytes() { return held_mapped_bytes; }

}  // namespace quern_test

using quern_test::Held;
using quern_test::IsRefused;
using quern_test::Refuse;

extern "C" {

QUERN_TEST_EXPORT void* malloc(size_t bytes) { return IsRefused() ? Refuse() : Held(__libc_malloc(bytes)); }

QUERN_TEST_EXPORT void* calloc(size_t count, size_t bytes) {
  return IsRefused() ? Refuse() : Held(__libc_calloc(count, bytes));
}

QUERN_TEST_EXPORT void* realloc(void* block, size_t bytes) {
  if (IsRefused()) return Refuse();
  void* const moved = __libc_realloc(block, bytes);
  return block == nullptr ? Held(moved) : moved;
}

QUERN_TEST_EXPORT void* memalign(size_t alignment, size_t bytes) {
  return IsRefused() ? Refuse() : Held(__libc_memalign(alignment, bytes));
}

QUERN_TEST_EXPORT void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }

QUERN_TEST_EXPORT int posix_memalign(void** block, size_t alignment, size_t bytes) {
  void* const made = memalign(alignment, bytes);
  if (made == nullptr) return ENOMEM;
  *block = made;
  return 0;
}

QUERN_TEST_EXPORT void free(void* block) {
  if (block != nullptr) quern_test::held_blocks.fetch_sub(1, std::memory_order_relaxed);
  __libc_free(block);
}

QUERN_TEST_EXPORT void* mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) {
  if (IsRefused()) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  void* const mapping = reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, protection, flags, file, offset));
  if (mapping != MAP_FAILED && (flags & MAP_FIXED) == 0) quern_test::held_mapped_bytes += static_cast<int64_t>(bytes);
  return mapping;
}

QUERN_TEST_EXPORT void* mmap64(void* at, size_t bytes, int protection, int flags, int file, off_t offset) {
  return mmap(at, bytes, protection, flags, file, offset);
}

QUERN_TEST_EXPORT int munmap(void* at, size_t bytes) {
  const auto result = static_cast<int>(syscall(SYS_munmap, at, bytes));
  if (result == 0) quern_test::held_mapped_bytes -= static_cast<int64_t>(bytes);
  return result;
}

// With MREMAP_FIXED, as the library calls it, over a mapping of the same size, which goes.
QUERN_TEST_EXPORT void* mremap(void* at, size_t bytes, size_t new_bytes, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  void* const to = (flags & MREMAP_FIXED) != 0 ? va_arg(arguments, void*) : nullptr;
  va_end(arguments);
  if (IsRefused()) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  void* const moved = reinterpret_cast<void*>(syscall(SYS_mremap, at, bytes, new_bytes, flags, to));
  if (moved != MAP_FAILED) {
    const size_t gone = to != nullptr ? bytes + new_bytes : bytes;
    quern_test::held_mapped_bytes += static_cast<int64_t>(new_bytes) - static_cast<int64_t>(gone);
  }
  return moved;
}

QUERN_TEST_EXPORT int mprotect(void* at, size_t bytes, int protection) {
  if (IsRefused()) {
    errno = ENOMEM;
    return -1;
  }
  return static_cast<int>(syscall(SYS_mprotect, at, bytes, protection));
}

QUERN_TEST_EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                                     void* argument) {
  static const auto create = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  return IsRefused() ? EAGAIN : create(thread, attributes, run, argument);
}

}  // extern "C"
