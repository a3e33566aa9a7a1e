// SPDX-License-Identifier: Apache-2.0
// Reads of files that the kernel does while their caller goes on: io_uring.
#ifndef QUERN_RUNTIME_SPILL_READ_RING_H_
#define QUERN_RUNTIME_SPILL_READ_RING_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace quern {

// A read that was asked for. It stays where it is until it is done.
struct RingRead {
  bool is_done = false;
  int64_t result = 0;  // as of pread, with -errno for an error
};

// *Threads*: one at a time.
class ReadRing {
 public:
  // Null where the kernel has no io_uring, or does not allow it to this process. *Cost*: two system calls, and some
  // pages of the kernel's memory.
  static std::unique_ptr<ReadRing> Make(uint32_t num_reads);
  ReadRing(const ReadRing&) = delete;
  ReadRing& operator=(const ReadRing&) = delete;
  // All reads are done.
  ~ReadRing();

  // False, and nothing is asked for, where as many reads as the ring takes are under way, or the kernel takes none now.
  bool Ask(int file, void* bytes, uint32_t num_bytes, off_t offset, RingRead* read);
  // Whether it is done by now. *Cost*: no system call.
  bool IsDone(const RingRead& read);
  void Wait(const RingRead& read);

 private:
  ReadRing() = default;
  bool Map(const void* params);
  void Reap();

  int ring_ = -1;
  void *queues_ = nullptr, *entries_ = nullptr;
  size_t queues_bytes_ = 0, entries_bytes_ = 0;
  uint32_t num_entries_ = 0, num_asked_ = 0;
  // Within the queues.
  uint32_t *ask_head_ = nullptr, *ask_tail_ = nullptr, *ask_places_ = nullptr, *done_head_ = nullptr,
           *done_tail_ = nullptr;
  uint32_t ask_mask_ = 0, done_mask_ = 0;
  const void* done_ = nullptr;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SPILL_READ_RING_H_
