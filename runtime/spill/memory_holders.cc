// SPDX-License-Identifier: Apache-2.0
// Of three threads under one limit, where C is refused memory and has no rows of its own:
//
//     A    waits for its next batch    C spills its rows
//     B    is within a batch           is asked, and spills its rows before its next block
//     C    tries again, up to 2,000 times
#include "runtime/spill/memory_holders.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "runtime/base/status.h"

namespace quern {

void MemoryHolders::Add(MemoryHolder* holder) {
  const std::lock_guard<std::mutex> lock(mutex_);
  holders_.push_back(holder);
}

void MemoryHolders::Remove(MemoryHolder* holder) {
  const std::lock_guard<std::mutex> lock(mutex_);
  holders_.erase(std::remove(holders_.begin(), holders_.end(), holder), holders_.end());
}

absl::StatusOr<bool> MemoryHolders::SpillOthers(const MemoryHolder* own) {
  bool any_at_work = false, any_other = false;
  {
    const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    if (lock.owns_lock()) {
      for (MemoryHolder* holder : holders_) {
        if (holder == own) continue;
        bool is_at_work = false;
        QUERN_RETURN_IF_ERROR(holder->SpillOrAsk(&is_at_work));
        any_other |= !is_at_work;
        any_at_work |= is_at_work;
      }
    } else {  // another thread does the same
      any_at_work = true;
    }
  }
  if (any_at_work) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return any_at_work || any_other;
}

}  // namespace quern
