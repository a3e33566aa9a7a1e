// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/thread_room.h"

#include <link.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace quern {
namespace {

constexpr uint64_t kRoomBytes = uint64_t{8} << 20;  // of address space, as the allocator asks for more than it is asked

// Where a variable of a thread is: that of ELF's dynamic model.
struct ThreadLocal {
  unsigned long module, offset;
};
extern "C" void* __tls_get_addr(ThreadLocal*);

int AllocateOf(dl_phdr_info* info, size_t, void*) {
  if (info->dlpi_tls_modid == 0) return 0;
  ThreadLocal first = {info->dlpi_tls_modid, 0};
  __tls_get_addr(&first);
  return 0;
}

}  // namespace

std::shared_ptr<ThreadRoom> ThreadRoom::Take() {
  std::shared_ptr<ThreadRoom> room(new ThreadRoom);
  void* const pages = mmap(nullptr, kRoomBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return nullptr;
  room->pages_ = pages;
  return room;
}

void ThreadRoom::GiveBack() {
  if (void* const pages = std::exchange(pages_, nullptr); pages != nullptr) munmap(pages, kRoomBytes);
}

void ThreadRoom::Enter() {
  GiveBack();
  dl_iterate_phdr(&AllocateOf, nullptr);
}

}  // namespace quern
