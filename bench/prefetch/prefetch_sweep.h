// SPDX-License-Identifier: Apache-2.0
// Every way to ask x every distance of a loop, in turns, as a table with the best one marked.
#ifndef QUERN_BENCH_PREFETCH_PREFETCH_SWEEP_H_
#define QUERN_BENCH_PREFETCH_PREFETCH_SWEEP_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/common/sections.h"

namespace quern::bench {

class PrefetchSweep {
 public:
  // Nanoseconds a row of one run.
  using Run = std::function<absl::StatusOr<double>(size_t way, uint32_t distance)>;

  // ways: names of columns. distances: the first is 0.
  PrefetchSweep(std::vector<std::string> ways, std::vector<uint32_t> distances)
      : ways_(std::move(ways)), distances_(std::move(distances)) {}

  // All of them so many times by turns, then the best one and none against each other, four times as often.
  absl::Status Measure(int turns, const Run& run);

  // A row for each distance: `first`, the distance, ns by way, `*` behind the best.
  void Print(const std::string& first, const Section& section) const;
  // What the figures say, in a line of its own. twins: ways from this one on are one instruction; as many as there are
  // ways: none are.
  void PrintReading(const std::string& loop, size_t twins) const;

  uint32_t best_distance() const { return distances_[best_row_]; }

 private:
  double& Time(size_t row, size_t way) { return times_[row * ways_.size() + way]; }
  double Time(size_t row, size_t way) const { return times_[row * ways_.size() + way]; }
  void FindBest();
  double NoiseOf(size_t twins) const;

  std::vector<std::string> ways_;
  std::vector<uint32_t> distances_;
  std::vector<double> times_;  // ns a row, the best of the turns
  size_t best_row_ = 0, best_way_ = 0;
  double none_ns_ = 0, best_ns_ = 0;  // of the runs against each other
};

// "64", "all" for kWholeBatch.
std::string DistanceText(uint32_t distance);

}  // namespace quern::bench

#endif  // QUERN_BENCH_PREFETCH_PREFETCH_SWEEP_H_
