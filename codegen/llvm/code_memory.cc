// SPDX-License-Identifier: Apache-2.0
// Memory for code, in slabs of pages. A kernel is small, 0.1 to 20 KiB with its constants, and a process may load and
// free ten thousand of them. One mapping for each would hit the system's limit of 65,530 and fragment the address
// space. So addresses are reserved in slabs of 2 MiB, 512 pages each. A kernel gets the first long enough run of free
// pages in the oldest slab that has one. Young slabs therefore become empty; all empty ones but one are returned to the
// system.
//
//     slab   | A A | B | free | C C C | free, never used ..     A, B, C: kernels of 2, 1 and 3 pages
//     maps     r-x------ ---p   r-x---   ---p                   4 mappings, however many kernels lie side by side
//
// A page is in one of three states, and never writable and executable at once:
//
//     free, reserved   ---   touching it faults; it takes no memory (MADV_DONTNEED)
//     being written    rw-   under the lock, during one copy: the code was linked elsewhere, for its final address
//     committed        r-x   constants share the pages: a separate area would cost most kernels a second page
//
// Kernels get whole pages because placing one on a page of another would make that page writable while the other runs.
//
// Neighbours with the same permissions merge into one mapping only if the system tracks their memory in the same place
// (anon_vma) and has charged all of it (VM_ACCOUNT). So a new slab is first made writable as a whole and its first page
// touched; everything cut out of it later inherits both. The memory is anonymous because perf looks up symbols of its
// map file only for such addresses.
//
// A fork copies this memory like any other, while nobody writes code (fork_safety.h).
#include "codegen/llvm/code_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <string>

namespace quern {

enum class PageState : uint8_t { kFree, kReserved, kCommitted };

struct CodeSlab {
  char* base = nullptr;
  std::vector<PageState> pages;
  uint64_t free_pages = 0;

  // The first of `count` free pages in a row; pages.size() where there are none.
  size_t FindRun(size_t count) const {
    size_t run = 0;
    for (size_t i = 0; i < pages.size(); ++i) {
      run = pages[i] == PageState::kFree ? run + 1 : 0;
      if (run == count) return i + 1 - count;
    }
    return pages.size();
  }
};

namespace {

uint64_t PageBytes() {
  static const auto bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

uint64_t RoundToPages(uint64_t bytes) {
  return (std::max<uint64_t>(bytes, 1) + PageBytes() - 1) / PageBytes() * PageBytes();
}

absl::Status OutOfCodeMemory(uint64_t bytes) {
  return absl::ResourceExhaustedError("out of code memory: " + std::to_string(bytes) +
                                      " bytes; accepted: what the system has free");
}

// Why mprotect failed. ENOMEM: splitting a mapping would exceed the system's limit of mappings.
absl::Status CannotProtect(uint64_t bytes, int error) {
  if (error == ENOMEM) return OutOfCodeMemory(bytes);
  return absl::FailedPreconditionError(
      std::string("cannot make memory executable: ") + std::strerror(error) +
      "; accepted: a process that may (SELinux: execmem, systemd: MemoryDenyWriteExecute=no)");
}

}  // namespace

CodePages& CodePages::operator=(CodePages&& other) noexcept {
  if (this == &other) return *this;
  Free();
  memory_ = std::exchange(other.memory_, nullptr);
  slab_ = std::exchange(other.slab_, nullptr);
  base_ = std::exchange(other.base_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

absl::Status CodePages::Commit(std::string_view code) {
  std::lock_guard<ForkSafeMutex> lock(memory_->mutex_);
  return memory_->Write(*this, code);
}

void CodePages::Free() {
  if (memory_ == nullptr) return;
  {
    std::lock_guard<ForkSafeMutex> lock(memory_->mutex_);
    memory_->TakeBack(*this);
  }
  memory_ = nullptr;
  base_ = nullptr;
  bytes_ = 0;
}

CodeMemory::CodeMemory(uint64_t slab_bytes, uint64_t limit_bytes)
    : slab_bytes_(RoundToPages(slab_bytes)), limit_bytes_(limit_bytes) {}

CodeMemory::~CodeMemory() {
  for (const auto& slab : slabs_) munmap(slab->base, slab->pages.size() * PageBytes());
}

CodeMemory& CodeMemory::OfProcess() {
  const NoFork no_fork;  // the first call makes it
  static auto* const memory = new CodeMemory;
  return *memory;
}

absl::StatusOr<CodePages> CodeMemory::Reserve(uint64_t bytes) {
  if (bytes > std::min<uint64_t>(limit_bytes_, INT64_MAX)) return OutOfCodeMemory(bytes);  // else rounding could wrap
  const uint64_t whole = RoundToPages(bytes);
  const size_t count = whole / PageBytes();
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  CodeSlab* slab = nullptr;
  size_t first = 0;
  for (const auto& candidate : slabs_) {
    if (candidate->free_pages < count) continue;
    first = candidate->FindRun(count);
    if (first == candidate->pages.size()) continue;
    slab = candidate.get();
    break;
  }
  if (slab == nullptr) {
    absl::StatusOr<CodeSlab*> added = AddSlab(std::max(whole, slab_bytes_));
    if (!added.ok()) return OutOfCodeMemory(bytes);
    slab = *added;
    first = 0;
  }
  std::fill_n(slab->pages.begin() + static_cast<int64_t>(first), count, PageState::kReserved);
  slab->free_pages -= count;
  ++kernels_;
  return CodePages(this, slab, slab->base + first * PageBytes(), whole);
}

absl::StatusOr<CodeSlab*> CodeMemory::AddSlab(uint64_t bytes) {
  if (bytes > limit_bytes_ - reserved_bytes_) return OutOfCodeMemory(bytes);
  // Just below the last slab, where the system usually places it anyway, so that slabs stay close to each other.
  char* near = slabs_.empty() ? nullptr : slabs_.back()->base - bytes;
  void* base = mmap(near, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return OutOfCodeMemory(bytes);
  // A huge page would take 2 MiB for a first kernel of 4 KiB.
  madvise(base, bytes, MADV_NOHUGEPAGE);
  *static_cast<volatile char*>(base) = 0;
  if (mprotect(base, bytes, PROT_NONE) != 0) {
    munmap(base, bytes);
    return OutOfCodeMemory(bytes);
  }
  madvise(base, PageBytes(), MADV_DONTNEED);
  auto slab = std::make_unique<CodeSlab>();
  slab->base = static_cast<char*>(base);
  slab->pages.assign(bytes / PageBytes(), PageState::kFree);
  slab->free_pages = slab->pages.size();
  reserved_bytes_ += bytes;
  slabs_.push_back(std::move(slab));
  return slabs_.back().get();
}

void CodeMemory::DropSlab(CodeSlab* slab) {
  const uint64_t bytes = slab->pages.size() * PageBytes();
  munmap(slab->base, bytes);
  reserved_bytes_ -= bytes;
  slabs_.erase(std::find_if(slabs_.begin(), slabs_.end(), [&](const auto& other) { return other.get() == slab; }));
}

absl::Status CodeMemory::Write(const CodePages& pages, std::string_view code) {
  if (code.size() > pages.bytes_) return OutOfCodeMemory(code.size());
  if (mprotect(pages.base_, pages.bytes_, PROT_READ | PROT_WRITE) != 0) return CannotProtect(pages.bytes_, errno);
  std::memcpy(pages.base_, code.data(), code.size());
  if (mprotect(pages.base_, pages.bytes_, PROT_READ | PROT_EXEC) != 0) {
    const int error = errno;
    mprotect(pages.base_, pages.bytes_, PROT_NONE);
    madvise(pages.base_, pages.bytes_, MADV_DONTNEED);
    return CannotProtect(pages.bytes_, error);
  }
  // Does nothing on x86-64, where instruction caches are coherent.
  __builtin___clear_cache(pages.base_, pages.base_ + pages.bytes_);
  const auto first = pages.slab_->pages.begin() + (pages.base_ - pages.slab_->base) / static_cast<int64_t>(PageBytes());
  std::fill_n(first, pages.bytes_ / PageBytes(), PageState::kCommitted);
  return absl::OkStatus();
}

void CodeMemory::TakeBack(const CodePages& pages) {
  CodeSlab* slab = pages.slab_;
  const size_t count = pages.bytes_ / PageBytes();
  const auto first = slab->pages.begin() + (pages.base_ - slab->base) / static_cast<int64_t>(PageBytes());
  if (*first == PageState::kCommitted) {
    // Fails if the process has as many mappings as the system allows. The pages then stay executable, filled with
    // zeros, until they are reused.
    mprotect(pages.base_, pages.bytes_, PROT_NONE);
    madvise(pages.base_, pages.bytes_, MADV_DONTNEED);
  }
  std::fill_n(first, count, PageState::kFree);
  slab->free_pages += count;
  --kernels_;
  if (slab->free_pages < slab->pages.size()) return;
  // One empty slab of the usual size is kept for the next kernel.
  const bool spare = std::any_of(slabs_.begin(), slabs_.end(), [&](const auto& other) {
    return other.get() != slab && other->free_pages == other->pages.size();
  });
  if (spare || slab->pages.size() * PageBytes() > slab_bytes_) DropSlab(slab);
}

CodeMemoryStats CodeMemory::Stats() {
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  CodeMemoryStats stats = {.kernels = kernels_, .reserved_bytes = reserved_bytes_};
  for (const auto& slab : slabs_) {
    stats.used_bytes += (slab->pages.size() - slab->free_pages) * PageBytes();
    ++stats.mappings;
    for (size_t i = 1; i < slab->pages.size(); ++i) {
      const bool differs = (slab->pages[i] == PageState::kCommitted) != (slab->pages[i - 1] == PageState::kCommitted);
      stats.mappings += differs ? 1 : 0;
    }
  }
  return stats;
}

}  // namespace quern
