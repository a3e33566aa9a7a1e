// SPDX-License-Identifier: Apache-2.0
// Memory for the bytes of strings that a kernel computes. Generated code cannot be handed an object, so that what runs
// a kernel makes the scratch current for its thread, as it does with RefusedCalls:
//
//     RunMap: StringScratch::Use -> kernel -> quern_rt_concat -> Allocate, from the thread's scratch
//                                          -> quern_rt_store_strings_var32 copies the bytes to the result
//            `-- the next call of the kernel begins with an empty scratch again
#ifndef QUERN_RUNTIME_BLOCKS_STRING_SCRATCH_H_
#define QUERN_RUNTIME_BLOCKS_STRING_SCRATCH_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/base/memory.h"

namespace quern {

// *Threads*: one at a time.
class StringScratch {
 public:
  void SetBudget(std::shared_ptr<MemoryBudget> budget) { budget_ = std::move(budget); }

  // Makes it the current one of this thread during its own life, and empties it. May be nested.
  class Use {
   public:
    explicit Use(StringScratch* scratch);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    StringScratch* const before_;
  };

  // Of the thread's current scratch, valid until the next Use of it. Null where memory is refused, which RefusedCalls
  // then knows. *Cost*: a request of memory for each 64 KiB or larger string, of which the first is kept.
  static uint8_t* Allocate(uint64_t bytes) noexcept;

  // A result column has no room for a string: offsets of 32 bits end at 2 GiB.
  static void NoteTooLarge() noexcept;
  bool is_too_large() const { return is_too_large_; }

 private:
  uint8_t* New(uint64_t bytes);

  std::shared_ptr<MemoryBudget> budget_;
  std::vector<HugeBuffer> buffers_;
  uint64_t used_bytes_ = 0;  // of the last buffer
  bool is_too_large_ = false;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_BLOCKS_STRING_SCRATCH_H_
