// SPDX-License-Identifier: Apache-2.0
// Tuples that no block has room for, of threads whose memory is not enough for a block of each partition.
#ifndef QUERN_RUNTIME_SPILL_LOOSE_TUPLES_H_
#define QUERN_RUNTIME_SPILL_LOOSE_TUPLES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "absl/status/status.h"
#include "runtime/base/memory.h"
#include "runtime/spill/block_format.h"

namespace quern {

// Collects them from all threads, in one buffer, and writes them by partition when they are many. *Threads*: any.
class LooseTuples {
 public:
  // Numbers the partitions of n tuples at any addresses, up to kMaxBatchRows.
  using PartsOf = std::function<void(uint8_t* const* tuples, uint32_t n, uint64_t* parts)>;
  using WritePart = std::function<absl::Status(uint32_t part, const BlockPieces& block, uint64_t num_tuples)>;
  // bytes: of the buffer, taken from the budget when the first tuple comes.
  LooseTuples(uint32_t tuple_bytes, uint32_t num_parts, uint64_t bytes, std::shared_ptr<MemoryBudget> budget,
              PartsOf parts_of, WritePart write);
  // The least that the buffer takes.
  static uint64_t LeastBytes(uint32_t tuple_bytes);

  // *Errors*: those of WritePart; ResourceExhausted where the buffer is refused.
  absl::Status Add(uint8_t* const* tuples, uint32_t n);
  // Writes what is left, and frees the buffer.
  absl::Status Finish();

 private:
  absl::Status Write();

  const uint64_t tuple_bytes_, bytes_;
  const uint32_t num_parts_;
  const std::shared_ptr<MemoryBudget> budget_;
  const PartsOf parts_of_;
  const WritePart write_;
  std::mutex mutex_;   // guards what follows
  HugeBuffer buffer_;  // half of it for those that come, half of it for the same by partition
  uint64_t num_tuples_ = 0;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SPILL_LOOSE_TUPLES_H_
