// SPDX-License-Identifier: Apache-2.0
// Memory for the bytes of strings that a kernel computes. Generated code cannot be handed an object, so that what runs
// a kernel makes the scratch current for its thread, as it does with RefusedCalls:
//
//     RunMap: StringScratch::Use -> kernel -> for each few rows   quern_rt_empty_strings
//                                               quern_rt_concat -> Allocate, from the thread's scratch
//                                               quern_rt_store_strings copies the bytes to the result
#ifndef QUERN_RUNTIME_BLOCKS_STRING_SCRATCH_H_
#define QUERN_RUNTIME_BLOCKS_STRING_SCRATCH_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/memory.h"

namespace quern {

// *Threads*: one at a time.
class StringScratch {
 public:
  void SetBudget(std::shared_ptr<MemoryBudget> budget) { budget_ = std::move(budget); }

  // Makes it the current one of this thread during its own life, and empties it before and after. May be nested.
  class Use {
   public:
    explicit Use(StringScratch* scratch);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    StringScratch *const scratch_, *const before_;
  };

  // Of the thread's current scratch, valid until it is emptied. Null where memory is refused, which status() then
  // tells. *Cost*: a request of memory for each 64 KiB or larger string; what was emptied is used again.
  static uint8_t* Allocate(uint64_t bytes) noexcept;
  // Empties the thread's current scratch: no string of earlier rows is read any more.
  static void Empty() noexcept;
  absl::Status status() const;

  // A result column has no room for a string: offsets of 32 bits end at 2 GiB.
  static void NoteTooLarge() noexcept;
  bool is_too_large() const { return is_too_large_; }

 private:
  uint8_t* New(uint64_t bytes);
  // Keeps one buffer, if it has up to so many bytes.
  void Keep(uint64_t most_bytes) noexcept;

  std::shared_ptr<MemoryBudget> budget_;
  std::vector<HugeBuffer> buffers_;
  uint64_t used_bytes_ = 0;  // of the last buffer
  absl::Status refused_;     // the first request that was refused
  bool is_refused_ = false;  // likewise, where there was no memory for its text
  bool is_too_large_ = false;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_BLOCKS_STRING_SCRATCH_H_
