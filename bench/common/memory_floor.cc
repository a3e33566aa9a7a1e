// SPDX-License-Identifier: Apache-2.0
// A table in DRAM cannot be probed faster than its cache lines arrive. That rate depends on the machine, its pages and
// its neighbours, so each bench that quotes it measures it in the same run, with a loop that only loads random lines.
//
//     10 M keys of 8 bytes at 40 % load     200 MB, 3.1 M lines     9.8 ns a line
//     a probe with one line a row           12 ns                   1.2 times the floor
#include "bench/common/memory_floor.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>

#include "bench/common/random_bits.h"
#include "bench/common/timing.h"
#include "runtime/base/memory.h"

namespace quern::bench {
namespace {

template <int kDistance>
void Try(const uint64_t* table, uint64_t lines, uint64_t loads, MemoryFloor* best) {
  // A multiplication alone would step through memory with a constant stride.
  const auto line = [&](uint64_t i) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(RandomBits(i + 1)) * lines) >> 64);
  };
  uint64_t sum = 0;
  const double start = Now();
  for (uint64_t i = 0; i < loads; ++i) {
    if (kDistance > 0) __builtin_prefetch(&table[line(i + kDistance) * 8]);
    sum += table[line(i) * 8];
  }
  benchmark::DoNotOptimize(sum);
  const double line_ns = (Now() - start) / static_cast<double>(loads) * 1e9;
  if (line_ns < best->line_ns) *best = {line_ns, kDistance};
}

}  // namespace

MemoryFloor MeasureFloor(uint64_t bytes, uint64_t loads) {
  auto memory = HugeBuffer::Allocate(std::make_shared<MemoryBudget>(), std::max<uint64_t>(bytes, 4096), true);
  if (!memory.ok()) return {};
  uint64_t* table = reinterpret_cast<uint64_t*>(memory->data());
  for (uint64_t i = 0; i < memory->bytes() / 8; ++i) table[i] = i * 0x9e3779b97f4a7c15u >> 7;
  const uint64_t lines = memory->bytes() / 64;
  MemoryFloor best;
  for (int round = 0; round < 3; ++round) {
    Try<0>(table, lines, loads, &best);
    Try<8>(table, lines, loads, &best);
    Try<16>(table, lines, loads, &best);
    Try<32>(table, lines, loads, &best);
    Try<64>(table, lines, loads, &best);
    Try<128>(table, lines, loads, &best);
  }
  return best;
}

}  // namespace quern::bench
