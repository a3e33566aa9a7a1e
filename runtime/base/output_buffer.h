// SPDX-License-Identifier: Apache-2.0
// One buffer of one output column.
#ifndef QUERN_RUNTIME_BASE_OUTPUT_BUFFER_H_
#define QUERN_RUNTIME_BASE_OUTPUT_BUFFER_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "runtime/base/memory.h"

namespace quern {

// Bytes at a multiple of 64, charged to a budget (which may be null) until they are freed.
class OutputBuffer {
 public:
  OutputBuffer() = default;
  OutputBuffer(const OutputBuffer&) = delete;
  OutputBuffer& operator=(const OutputBuffer&) = delete;
  ~OutputBuffer() { Free(); }

  // Makes room for at least `capacity_bytes`, with 64 writable bytes beyond them, rounded up to a multiple of 64. Frees
  // the previous contents. *Errors*: ResourceExhausted.
  absl::Status Allocate(std::shared_ptr<MemoryBudget> budget, uint64_t capacity_bytes);

  // The same, but keeps the first `used_bytes`. On error the old buffer stays unchanged.
  absl::Status Grow(uint64_t capacity_bytes, uint64_t used_bytes);
  void Free();

  uint8_t* data() const { return data_; }
  uint64_t capacity_bytes() const { return capacity_bytes_; }

 private:
  std::shared_ptr<MemoryBudget> budget_;
  uint8_t* data_ = nullptr;
  uint64_t capacity_bytes_ = 0;
  uint64_t charged_bytes_ = 0;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_BASE_OUTPUT_BUFFER_H_
