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

// Bytes of strings that outlive the batch, charged to the job's memory budget.
class StringBytes {
 public:
  explicit StringBytes(std::shared_ptr<MemoryBudget> budget) : budget_(std::move(budget)) {}
  StringBytes(const StringBytes&) = delete;
  StringBytes& operator=(const StringBytes&) = delete;
  ~StringBytes() { budget_->Release(num_bytes_); }

  // *Errors*: ResourceExhausted.
  absl::StatusOr<uint8_t*> Allocate(uint64_t num_bytes) {
    QUERN_RETURN_IF_ERROR(budget_->Reserve(num_bytes));
    num_bytes_ += num_bytes;
    blocks_.push_back(std::make_unique_for_overwrite<uint8_t[]>(num_bytes));
    return blocks_.back().get();
  }

 private:
  std::shared_ptr<MemoryBudget> budget_;
  uint64_t num_bytes_ = 0;
  std::vector<std::unique_ptr<uint8_t[]>> blocks_;
};

// *Threads*: one. Addresses do not change.
class ColumnMemory {
 public:
  explicit ColumnMemory(std::shared_ptr<MemoryBudget> budget) : budget_(std::move(budget)) {}

  // Zeroed bitmaps, offsets, values or views, for as long as the batch is read.
  uint8_t* NewArray(uint64_t num_bytes) { return scratch()->arrays.emplace_back(num_bytes).data(); }
  std::vector<const uint8_t*>& NewBuffers(uint64_t n, const uint8_t* value) {
    return scratch()->buffers.emplace_back(n, value);
  }
  const QuernColumn* NewDictionary(const QuernColumn& values) { return &scratch()->dictionaries.emplace_back(values); }
  // Bytes of strings, for as long as stored rows point to them. *Errors*: ResourceExhausted.
  absl::StatusOr<uint8_t*> NewStrings(uint64_t num_bytes) {
    if (strings_ == nullptr) strings_ = std::make_shared<StringBytes>(budget_);
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
  std::shared_ptr<Scratch> scratch_;
  std::shared_ptr<StringBytes> strings_;
};

}  // namespace quern::c_abi

#endif  // QUERN_HOSTS_C_COLUMN_MEMORY_H_
