// SPDX-License-Identifier: Apache-2.0
// The memory of what is made to read one batch of a host's vectors. Internal.
#ifndef QUERN_HOSTS_C_COLUMN_MEMORY_H_
#define QUERN_HOSTS_C_COLUMN_MEMORY_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/abi/kernel_abi.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"

namespace quern::c_abi {

// Memory for strings of a batch alone, which lives as long as `owner` is set to. *Errors*: ResourceExhausted.
absl::StatusOr<uint8_t*> OwnStrings(const std::shared_ptr<MemoryBudget>& budget, uint64_t num_bytes,
                                    std::shared_ptr<const void>* owner, bool huge_pages = false);

// Large pages of which the batches of an input take memory for their strings, one after the other: tables find strings
// at random, so that in small pages each one is a miss of the TLB, too. A page is freed with the last batch that has
// strings in it. *Threads*: one; batches may be freed by others.
class StringPages {
 public:
  explicit StringPages(bool huge_pages) : huge_pages_(huge_pages) {}

  // *owner*: set to what the strings live as long as. *Errors*: ResourceExhausted.
  absl::StatusOr<uint8_t*> Allocate(const std::shared_ptr<MemoryBudget>& budget, uint64_t num_bytes,
                                    std::shared_ptr<const void>* owner);

 private:
  bool huge_pages_;
  std::shared_ptr<HugeBuffer> last_;
  uint64_t used_bytes_ = 0;  // of the last one
  uint64_t all_bytes_ = 0;
};

// Bytes of strings that outlive the batch, charged to the job's memory budget.
class StringBytes {
 public:
  // pages: null, or lives as long as this is allocated from.
  StringBytes(std::shared_ptr<MemoryBudget> budget, StringPages* pages) : budget_(std::move(budget)), pages_(pages) {}
  StringBytes(const StringBytes&) = delete;
  StringBytes& operator=(const StringBytes&) = delete;

  // *Errors*: ResourceExhausted.
  absl::StatusOr<uint8_t*> Allocate(uint64_t num_bytes) {
    std::shared_ptr<const void>* const owner = &owners_.emplace_back();
    return pages_ != nullptr ? pages_->Allocate(budget_, num_bytes, owner) : OwnStrings(budget_, num_bytes, owner);
  }

 private:
  std::shared_ptr<MemoryBudget> budget_;
  StringPages* pages_;
  std::vector<std::shared_ptr<const void>> owners_;
};

// *Threads*: one. Addresses do not change.
class ColumnMemory {
 public:
  ColumnMemory(std::shared_ptr<MemoryBudget> budget, StringPages* pages) : budget_(std::move(budget)), pages_(pages) {}

  // Zeroed bitmaps, offsets, values or views, for as long as the batch is read.
  uint8_t* NewArray(uint64_t num_bytes) { return scratch()->arrays.emplace_back(num_bytes).data(); }
  std::vector<const uint8_t*>& NewBuffers(uint64_t n, const uint8_t* value) {
    return scratch()->buffers.emplace_back(n, value);
  }
  const QuernColumn* NewDictionary(const QuernColumn& values) { return &scratch()->dictionaries.emplace_back(values); }
  // Bytes of strings, for as long as stored rows point to them. *Errors*: ResourceExhausted.
  absl::StatusOr<uint8_t*> NewStrings(uint64_t num_bytes) {
    if (strings_ == nullptr) strings_ = std::make_shared<StringBytes>(budget_, pages_);
    return strings_->Allocate(num_bytes);
  }

  // Null where nothing was made.
  std::shared_ptr<const void> scratch_owner() const { return scratch_; }
  std::shared_ptr<const void> strings_owner() const { return strings_; }

 private:
  struct Scratch {  // deques, because elements must not move
    std::deque<QuernColumn> dictionaries;
    std::deque<std::vector<uint8_t>> arrays;
    std::deque<std::vector<const uint8_t*>> buffers;
  };
  Scratch* scratch() {
    if (scratch_ == nullptr) scratch_ = std::make_shared<Scratch>();
    return scratch_.get();
  }

  std::shared_ptr<MemoryBudget> budget_;
  StringPages* pages_;
  std::shared_ptr<Scratch> scratch_;
  std::shared_ptr<StringBytes> strings_;
};

}  // namespace quern::c_abi

#endif  // QUERN_HOSTS_C_COLUMN_MEMORY_H_
