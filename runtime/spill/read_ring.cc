// SPDX-License-Identifier: Apache-2.0
// io_uring by its three system calls. The process and the kernel share two queues in memory: one of entries that ask,
// one of entries that answer. Each has a head and a tail, which only grow; an entry's place is its number modulo the
// length of the queue:
//
//     asks      head: the kernel's     tail: ours        [ read 64 KiB at 0 | read 64 KiB at 64 KiB | .. ]
//     answers   head: ours             tail: the kernel's        [ 65536, of the first | .. ]
//
// Who adds an entry writes it before the tail, and who takes one reads it before it moves the head; the other side
// orders its accesses likewise (acquire and release).
//
// What the page cache has is copied when it is asked for, on the thread that asks: no other thread has to wake up for
// it, which takes longer than the copy where all cores are busy. What the device has to bring comes meanwhile.
//
// A kernel may refuse any of it: io_uring is newer than 5.6 in what is used here, containers forbid it (seccomp), and
// so do administrators (kernel.io_uring_disabled). Readers then use threads.
#include "runtime/spill/read_ring.h"

#include <linux/io_uring.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

namespace quern {
namespace {

constexpr uint32_t kMaxReads = 256;

int SetUp(uint32_t num_entries, io_uring_params* params) {
  return static_cast<int>(syscall(__NR_io_uring_setup, num_entries, params));
}

int Enter(int ring, uint32_t num_asked, uint32_t num_awaited, uint32_t flags) {
  return static_cast<int>(syscall(__NR_io_uring_enter, ring, num_asked, num_awaited, flags, nullptr, 0));
}

uint32_t LoadAcquire(const uint32_t* value) { return __atomic_load_n(value, __ATOMIC_ACQUIRE); }
void StoreRelease(uint32_t* value, uint32_t number) { __atomic_store_n(value, number, __ATOMIC_RELEASE); }

template <class T>
T* At(void* base, uint64_t offset) {
  return reinterpret_cast<T*>(static_cast<uint8_t*>(base) + offset);
}

}  // namespace

std::unique_ptr<ReadRing> ReadRing::Make(uint32_t num_reads) {
  io_uring_params params;
  std::memset(&params, 0, sizeof(params));
  std::unique_ptr<ReadRing> ring(new ReadRing);
  ring->ring_ = SetUp(std::bit_ceil(std::clamp(num_reads, 1u, kMaxReads)), &params);
  if (ring->ring_ < 0) return nullptr;
  // Both queues in one mapping (5.4), no lost answers (5.5), reads without a vector (5.6, with RW_CUR_POS).
  constexpr uint32_t kNeeded = IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_RW_CUR_POS;
  if ((params.features & kNeeded) != kNeeded || !ring->Map(&params)) return nullptr;
  return ring;
}

bool ReadRing::Map(const void* params) {
  const auto& given = *static_cast<const io_uring_params*>(params);
  num_entries_ = given.sq_entries;
  queues_bytes_ = std::max<size_t>(given.sq_off.array + given.sq_entries * sizeof(uint32_t),
                                   given.cq_off.cqes + given.cq_entries * sizeof(io_uring_cqe));
  entries_bytes_ = given.sq_entries * sizeof(io_uring_sqe);
  const auto map = [this](size_t bytes, off_t offset) {
    void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring_, offset);
    return mapped == MAP_FAILED ? nullptr : mapped;
  };
  queues_ = map(queues_bytes_, IORING_OFF_SQ_RING);
  entries_ = map(entries_bytes_, IORING_OFF_SQES);
  if (queues_ == nullptr || entries_ == nullptr) return false;
  ask_head_ = At<uint32_t>(queues_, given.sq_off.head);
  ask_tail_ = At<uint32_t>(queues_, given.sq_off.tail);
  ask_places_ = At<uint32_t>(queues_, given.sq_off.array);
  ask_mask_ = *At<uint32_t>(queues_, given.sq_off.ring_mask);
  done_head_ = At<uint32_t>(queues_, given.cq_off.head);
  done_tail_ = At<uint32_t>(queues_, given.cq_off.tail);
  done_mask_ = *At<uint32_t>(queues_, given.cq_off.ring_mask);
  done_ = At<io_uring_cqe>(queues_, given.cq_off.cqes);
  return true;
}

ReadRing::~ReadRing() {
  if (queues_ != nullptr) munmap(queues_, queues_bytes_);
  if (entries_ != nullptr) munmap(entries_, entries_bytes_);
  if (ring_ >= 0) close(ring_);
}

bool ReadRing::Ask(int file, void* bytes, uint32_t num_bytes, off_t offset, RingRead* read) {
  if (num_asked_ == num_entries_) return false;
  const uint32_t tail = *ask_tail_;
  const uint32_t place = tail & ask_mask_;
  auto& entry = static_cast<io_uring_sqe*>(entries_)[place];
  std::memset(&entry, 0, sizeof(entry));
  entry.opcode = IORING_OP_READ;
  entry.fd = file;
  entry.addr = reinterpret_cast<uint64_t>(bytes);
  entry.len = num_bytes;
  entry.off = static_cast<uint64_t>(offset);
  entry.user_data = reinterpret_cast<uint64_t>(read);
  ask_places_[place] = place;
  *read = {};
  StoreRelease(ask_tail_, tail + 1);
  Enter(ring_, 1, 0, 0);
  if (LoadAcquire(ask_head_) != tail + 1) {
    // The kernel has not taken the entry, and looks at the queue only in a call.
    StoreRelease(ask_tail_, tail);
    return false;
  }
  ++num_asked_;
  return true;
}

void ReadRing::Reap() {
  uint32_t head = *done_head_;
  for (const uint32_t tail = LoadAcquire(done_tail_); head != tail; ++head) {
    const auto& answer = static_cast<const io_uring_cqe*>(done_)[head & done_mask_];
    auto* const read = reinterpret_cast<RingRead*>(answer.user_data);
    read->result = answer.res;
    read->is_done = true;
    --num_asked_;
  }
  StoreRelease(done_head_, head);
}

bool ReadRing::IsDone(const RingRead& read) {
  if (!read.is_done) Reap();
  return read.is_done;
}

// The bytes belong to the kernel until the answer has come, so that no error of the call ends the waiting.
void ReadRing::Wait(const RingRead& read) {
  while (!IsDone(read))
    if (Enter(ring_, 0, 1, IORING_ENTER_GETEVENTS) < 0 && errno != EINTR) sched_yield();
}

}  // namespace quern
