// SPDX-License-Identifier: Apache-2.0
// Measures every kind of prefetch at every distance in turns, and prints a table in which the best one is marked.
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
  // Nanoseconds a row in one run.
  using Run = std::function<absl::StatusOr<double>(size_t way, uint32_t distance)>;

  // ways: the names of the columns. distances: the first is 0.
  PrefetchSweep(std::vector<std::string> ways, std::vector<uint32_t> distances)
      : ways_(std::move(ways)), distances_(std::move(distances)) {}

  // Measures all cells in that many turns, then the best one against distance 0, four times as often.
  absl::Status Measure(int turns, const Run& run);

  // Prints a row for each distance: `first`, the distance, and ns for each way; `*` marks the best.
  void Print(const std::string& first, const Section& section) const;
  // Prints one line that interprets the figures. twins: the ways from this index on execute one and the same
  // instruction; the number of ways means that none do.
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
  double none_ns_ = 0, best_ns_ = 0;  // from the runs against each other
};

// "64", or "all" for kWholeBatch.
std::string DistanceText(uint32_t distance);

}  // namespace quern::bench

#endif  // QUERN_BENCH_PREFETCH_PREFETCH_SWEEP_H_
