// SPDX-License-Identifier: Apache-2.0
// Threads of one operator that share its memory: one that finds none lets the rows of the others go.
#ifndef QUERN_RUNTIME_SPILL_MEMORY_HOLDERS_H_
#define QUERN_RUNTIME_SPILL_MEMORY_HOLDERS_H_

#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace quern {

// The rows of one thread, which other threads can spill.
class MemoryHolder {
 public:
  virtual ~MemoryHolder() = default;
  // Spills the rows if their thread is not at work; else asks it to do so soon. *Threads*: any other.
  virtual absl::Status SpillOrAsk(bool* is_at_work) = 0;
};

// *Threads*: any.
class MemoryHolders {
 public:
  void Add(MemoryHolder* holder);
  // Waits while other threads spill the holder's rows.
  void Remove(MemoryHolder* holder);
  // For a thread that has nothing to spill, where memory is refused: lets the others' rows go. Waits a millisecond for
  // those that are at work, which look up between blocks of rows. Returns whether there may be memory now.
  absl::StatusOr<bool> SpillOthers(const MemoryHolder* own);

 private:
  std::mutex mutex_;
  std::vector<MemoryHolder*> holders_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SPILL_MEMORY_HOLDERS_H_
