// SPDX-License-Identifier: Apache-2.0
// A descriptor resembles a sort-key prefix, a match of a join or the header of a packet: a small record in an array of
// small records, which the processor prefetches by itself. It holds the address of a larger record, which the processor
// cannot predict. The loops use the same templates as those of the operators (runtime/rows/prefetch_lines.h), so the
// measured gain is one that operators can have.
//
//     descriptors   [0 |*][1 |*][2 |*][3 |*] ..         16 bytes each, one after the other
//                        \   \    \_________
//     payloads      [..1..][..3..][..0..][..2..] ..     a line each, in random order
//
// Rows 0 .. n-1 at distance 64: the payload of row 64 is prefetched when row 0's is used. 64 rows of 1 ns take less
// time than a line, so the loop with little to do needs a larger distance than the loop that computes for 100 ns a row,
// for which 2 rows are plenty.
#include "bench/prefetch/descriptor_loops.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "bench/common/random_bits.h"
#include "runtime/base/status.h"
#include "runtime/blocks/blocks.h"
#include "runtime/rows/prefetch_lines.h"

namespace quern::bench {
namespace {

constexpr uint32_t kWorkSteps = 48;  // each depends on the one before: about 10 cycles

template <bool kWrites, int kLocality>
struct PrefetchLike {
  static constexpr bool kPrefetches = true;
  static inline __attribute__((always_inline)) void For(const void* address) {
    if constexpr (kWrites) {
#if defined(__x86_64__)
      PrefetchLine<PrefetchHint::kWrite>(address);  // prefetchw has no locality
#else
      __builtin_prefetch(address, 1, kLocality);
#endif
    } else {
      constexpr PrefetchHint kHints[] = {PrefetchHint::kNta, PrefetchHint::kT2, PrefetchHint::kT1, PrefetchHint::kT0};
      PrefetchLine<kHints[kLocality]>(address);
    }
  }
};

// The work for a row in each loop. `sum` prevents the compiler from removing it.
inline __attribute__((always_inline)) void Branch(const Payload& payload, uint64_t* sum) {
  if ((payload.words[0] & 1) == 0) return;
  asm volatile("" : "+r"(*sum));  // forces a branch, which is predicted before the line arrives
  *sum += payload.words[0];
}

inline __attribute__((always_inline)) uint64_t Work(const Payload& payload) {
  uint64_t x = payload.words[0];
  for (uint32_t step = 0; step < kWorkSteps; ++step) x = RandomBits(x + payload.words[step % 7]);
  return x;
}

template <class Prefetch>
__attribute__((noinline)) uint64_t Run(DescriptorLoop loop, uint32_t distance, const Descriptor* all, uint32_t n) {
  uint64_t sum = 0;
  const uint32_t ahead = std::min(distance, n);
  const auto prefetch_payload = [&](uint32_t i) { Prefetch::For(all[i].payload); };
  switch (loop) {
    case DescriptorLoop::kDescriptors:
      ForEachRow<Prefetch>(
          n, ahead, [&](uint32_t i) { Prefetch::For(&all[i]); }, [&](uint32_t i) { sum += all[i].number; });
      break;
    case DescriptorLoop::kPayload:
      ForEachRow<Prefetch>(n, ahead, prefetch_payload, [&](uint32_t i) { sum += all[i].payload->words[0]; });
      break;
    case DescriptorLoop::kBranch:
      ForEachRow<Prefetch>(n, ahead, prefetch_payload, [&](uint32_t i) { Branch(*all[i].payload, &sum); });
      break;
    case DescriptorLoop::kWork:
      ForEachRow<Prefetch>(n, ahead, prefetch_payload, [&](uint32_t i) { sum += Work(*all[i].payload); });
      break;
    case DescriptorLoop::kUpdate:
      ForEachRow<Prefetch>(n, ahead, prefetch_payload, [&](uint32_t i) {
        all[i].payload->words[7] += all[i].number;
        sum += all[i].number;
      });
      break;
  }
  return sum;
}

}  // namespace

const char* LoopName(DescriptorLoop loop) {
  switch (loop) {
    case DescriptorLoop::kDescriptors: return "descriptors";
    case DescriptorLoop::kPayload: return "payload";
    case DescriptorLoop::kBranch: return "branch";
    case DescriptorLoop::kWork: return "work";
    case DescriptorLoop::kUpdate: return "update";
  }
  return "";
}

absl::StatusOr<DescriptorArray> DescriptorArray::Make(uint32_t rows) {
  DescriptorArray array;
  array.rows_ = rows;
  const auto budget = std::make_shared<MemoryBudget>();
  QUERN_ASSIGN_OR_RETURN(array.descriptors_,
                         HugeBuffer::Allocate(budget, std::max<uint64_t>(rows, 1) * sizeof(Descriptor), true));
  QUERN_ASSIGN_OR_RETURN(array.payloads_, HugeBuffer::Allocate(budget, (uint64_t{rows} + 1) * sizeof(Payload), true));
  std::vector<uint32_t> order(rows);
  std::iota(order.begin(), order.end(), 0U);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(rows));  // the same in every run
  auto* const descriptors = reinterpret_cast<Descriptor*>(array.descriptors_.data());
  auto* const payloads =
      reinterpret_cast<Payload*>((reinterpret_cast<uintptr_t>(array.payloads_.data()) + 63) / 64 * 64);
  for (uint32_t i = 0; i < rows; ++i) {
    descriptors[i] = {uint64_t{i} + 1, &payloads[order[i]]};
    for (uint64_t word = 0; word < 8; ++word)
      payloads[i].words[word] = RandomBits(uint64_t{i} * 8 + word + 1) | uint64_t{1} << 63;
  }
  return array;
}

uint64_t RunDescriptorLoop(DescriptorLoop loop, PrefetchKind how, uint32_t distance, const Descriptor* descriptors,
                           uint32_t n) {
  if (distance == 0) return Run<NoPrefetch>(loop, 0, descriptors, n);
  using Loop = uint64_t (*)(DescriptorLoop, uint32_t, const Descriptor*, uint32_t);
  constexpr Loop kReads[] = {Run<PrefetchLike<false, 0>>, Run<PrefetchLike<false, 1>>, Run<PrefetchLike<false, 2>>,
                             Run<PrefetchLike<false, 3>>};
  constexpr Loop kWrites[] = {Run<PrefetchLike<true, 0>>, Run<PrefetchLike<true, 1>>, Run<PrefetchLike<true, 2>>,
                              Run<PrefetchLike<true, 3>>};
  return (how.writes ? kWrites : kReads)[how.locality & 3](loop, distance, descriptors, n);
}

}  // namespace quern::bench
