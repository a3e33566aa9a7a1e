// SPDX-License-Identifier: Apache-2.0
// Memory for machine code: whole pages from a few slabs, never writable and executable at once.
#ifndef QUERN_CODEGEN_LLVM_CODE_MEMORY_H_
#define QUERN_CODEGEN_LLVM_CODE_MEMORY_H_

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/fork_safety.h"

namespace quern {

class CodeMemory;
struct CodeSlab;

// The pages of one kernel. *Ownership*: owns the pages; the destructor frees them. *Threads*: one at a time, but any
// thread may run the code.
class CodePages {
 public:
  CodePages() = default;
  CodePages(CodePages&& other) noexcept { *this = std::move(other); }
  CodePages& operator=(CodePages&& other) noexcept;
  ~CodePages() { Free(); }

  // The address of the code, aligned to a page.
  uint64_t address() const { return reinterpret_cast<uint64_t>(base_); }
  uint64_t bytes() const { return bytes_; }  // a multiple of the page size

  // Copies the code to `address` and makes it executable. Call it once. *Errors*: ResourceExhausted if the system has
  // no memory or no mappings left, FailedPrecondition if it forbids new code.
  absl::Status Commit(std::string_view code);

  void Free();

 private:
  friend class CodeMemory;
  CodePages(CodeMemory* memory, CodeSlab* slab, char* base, uint64_t bytes)
      : memory_(memory), slab_(slab), base_(base), bytes_(bytes) {}

  CodeMemory* memory_ = nullptr;
  CodeSlab* slab_ = nullptr;
  char* base_ = nullptr;
  uint64_t bytes_ = 0;
};

struct CodeMemoryStats {
  uint64_t kernels = 0;         // kernels that have pages
  uint64_t used_bytes = 0;      // in pages of kernels
  uint64_t reserved_bytes = 0;  // in slabs: addresses, not memory
  uint64_t mappings = 0;        // lines in /proc/self/maps while nothing is being written
};

// *Threads*: any.
class CodeMemory {
 public:
  // `limit_bytes` bounds the size of all slabs; only tests set it.
  explicit CodeMemory(uint64_t slab_bytes = uint64_t{2} << 20, uint64_t limit_bytes = UINT64_MAX);
  CodeMemory(const CodeMemory&) = delete;
  CodeMemory& operator=(const CodeMemory&) = delete;
  // All pages must have been freed.
  ~CodeMemory();

  // The memory of all kernels. Never destroyed: a host may keep a kernel in a static variable.
  static CodeMemory& OfProcess();

  // Reserves whole pages for this many bytes. They cannot be accessed before they are committed. *Cost*: one pass over
  // the pages of a slab. *Errors*: ResourceExhausted.
  absl::StatusOr<CodePages> Reserve(uint64_t bytes);

  CodeMemoryStats Stats();

 private:
  friend class CodePages;

  // Callers of the functions below hold the lock.
  absl::StatusOr<CodeSlab*> AddSlab(uint64_t bytes);
  void DropSlab(CodeSlab* slab);
  absl::Status Write(const CodePages& pages, std::string_view code);
  void TakeBack(const CodePages& pages);

  const uint64_t slab_bytes_;
  const uint64_t limit_bytes_;
  ForkSafeMutex mutex_;
  std::vector<std::unique_ptr<CodeSlab>> slabs_;  // oldest first
  uint64_t reserved_bytes_ = 0;
  uint64_t kernels_ = 0;
};

}  // namespace quern

#endif  // QUERN_CODEGEN_LLVM_CODE_MEMORY_H_
