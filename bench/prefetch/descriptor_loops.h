// SPDX-License-Identifier: Apache-2.0
// Loops from an article about prefetching: over an array of descriptors, each of which points to a payload elsewhere.
#ifndef QUERN_BENCH_PREFETCH_DESCRIPTOR_LOOPS_H_
#define QUERN_BENCH_PREFETCH_DESCRIPTOR_LOOPS_H_

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/base/memory.h"

namespace quern::bench {

enum class DescriptorLoop : uint8_t {
  kDescriptors,  // reads descriptors but no payload
  kPayload,      // reads a word of each payload
  kBranch,       // branches on that word
  kWork,         // computes with that word, for longer than a line takes
  kUpdate,       // writes a word of each payload
};
constexpr DescriptorLoop kDescriptorLoops[] = {DescriptorLoop::kDescriptors, DescriptorLoop::kPayload,
                                               DescriptorLoop::kBranch, DescriptorLoop::kWork, DescriptorLoop::kUpdate};
const char* LoopName(DescriptorLoop loop);  // "payload"

// The second and the third argument of __builtin_prefetch.
struct PrefetchKind {
  bool writes = false;
  int locality = 3;  // 0 to 3
};

// A payload takes one cache line.
struct alignas(64) Payload {
  uint64_t words[8];  // words 0 to 6 are read, 7 is written
};

struct Descriptor {
  uint64_t number;
  Payload* payload;
};

// Descriptors and as many payloads, on huge pages, in random order; no word is 0.
class DescriptorArray {
 public:
  static absl::StatusOr<DescriptorArray> Make(uint32_t rows);

  const Descriptor* descriptors() const { return reinterpret_cast<const Descriptor*>(descriptors_.data()); }
  uint32_t rows() const { return rows_; }
  uint64_t payload_bytes() const { return rows_ * sizeof(Payload); }

 private:
  HugeBuffer descriptors_, payloads_;
  uint32_t rows_ = 0;
};

// Runs a loop over n descriptors and prefetches each payload (with kDescriptors: each descriptor) `distance` rows
// before its use; with distance 0 it executes no prefetch instruction. Returns a sum that is the same for every `how`.
uint64_t RunDescriptorLoop(DescriptorLoop loop, PrefetchKind how, uint32_t distance, const Descriptor* descriptors,
                           uint32_t n);

}  // namespace quern::bench

#endif  // QUERN_BENCH_PREFETCH_DESCRIPTOR_LOOPS_H_
