// SPDX-License-Identifier: Apache-2.0
// Memory for what the C library needs when a thread begins.
#ifndef QUERN_RUNTIME_BASE_THREAD_ROOM_H_
#define QUERN_RUNTIME_BASE_THREAD_ROOM_H_

#include <memory>

namespace quern {

// The C library allocates a thread's variables of a module when they are first used, and ends the process where memory
// for them is refused. The one who starts a thread takes room; the thread gives it back just before it needs it.
class ThreadRoom {
 public:
  // Null where the system has no memory. *Errors*: std::bad_alloc. *Cost*: a system call; the pages are not touched.
  static std::shared_ptr<ThreadRoom> Take();
  ThreadRoom(const ThreadRoom&) = delete;
  ThreadRoom& operator=(const ThreadRoom&) = delete;
  ~ThreadRoom() { GiveBack(); }

  // Allocates the calling thread's variables of all modules.
  void Enter();

 private:
  ThreadRoom() = default;
  void GiveBack();

  void* pages_ = nullptr;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_BASE_THREAD_ROOM_H_
