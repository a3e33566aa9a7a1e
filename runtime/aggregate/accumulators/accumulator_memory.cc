// SPDX-License-Identifier: Apache-2.0
// Pieces of memory for states that grow: sets of distinct values, lists of strings, copies of minima. A thread may hold
// millions of them, most of them tiny and a few huge, so the 16-byte header and the lock of a general allocator would
// both matter.
//
// Pieces are powers of two. A list that doubles from 16 to 64 bytes takes three pieces and gives back the first two,
// which the next group's list reuses. Free pieces are kept in a stack per size, and each piece holds the address of the
// one below it:
//
//     Take(20)  -> a piece of 32        free_[5]: nothing      32 bytes are cut off the current chunk of 4096
//     GiveBack  -> the piece is free    free_[5]: * -> nullptr
//     Take(30)  -> the same piece       free_[5]: nothing
//
// Small pieces are cut off chunks of 4096 bytes, front to back; a rest that is too short for the next piece, 48 bytes
// for example, becomes free pieces of 32 and 16. Larger pieces come directly from the arena. Nothing is returned to the
// system before the end, so the memory in use is at most twice the sum of the largest sizes of all states.
#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "runtime/aggregate/accumulators/out_of_line_aggregates.h"
#include "runtime/base/status.h"
#include "runtime/blocks/blocks.h"

namespace quern {
namespace {

constexpr uint64_t kSmallestPieceBytes = 16;
constexpr uint64_t kLargestSmallPieceBytes = 1024;
constexpr uint64_t kChunkBytes = 4096;
constexpr uint64_t kLargestPieceBytes = uint64_t{1} << 47;  // the address space

}  // namespace

AccumulatorMemory::AccumulatorMemory(std::shared_ptr<MemoryBudget> budget, void* host)
    : arena_(std::move(budget), true), host_(host) {}

uint64_t AccumulatorMemory::PieceBytes(uint64_t bytes) {
  return std::bit_ceil(std::clamp(bytes, kSmallestPieceBytes, uint64_t{1} << 63));
}

absl::StatusOr<uint8_t*> AccumulatorMemory::Take(uint64_t bytes) {
  if (bytes > kLargestPieceBytes) {
    return absl::ResourceExhaustedError("out of memory: " + std::to_string(bytes) +
                                        " bytes requested; accepted: what the system has free");
  }
  const uint64_t piece_bytes = PieceBytes(bytes);
  uint8_t*& free = free_[std::countr_zero(piece_bytes)];
  if (free != nullptr) return std::exchange(free, blocks::Load<uint8_t*>(free));
  if (piece_bytes > kLargestSmallPieceBytes) return arena_.Allocate(piece_bytes);
  if (small_bytes_ < piece_bytes) {
    QUERN_ASSIGN_OR_RETURN(uint8_t* const chunk, arena_.Allocate(kChunkBytes));
    while (small_bytes_ > 0) {
      const uint64_t part = std::bit_floor(small_bytes_);
      GiveBack(end_of_small_ - small_bytes_, part);
      small_bytes_ -= part;
    }
    end_of_small_ = chunk + kChunkBytes;
    small_bytes_ = kChunkBytes;
  }
  uint8_t* const piece = end_of_small_ - small_bytes_;
  small_bytes_ -= piece_bytes;
  return piece;
}

void AccumulatorMemory::GiveBack(uint8_t* piece, uint64_t bytes) {
  uint8_t*& free = free_[std::countr_zero(PieceBytes(bytes))];
  blocks::Store(piece, free);
  free = piece;
}

}  // namespace quern
