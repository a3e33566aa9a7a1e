// SPDX-License-Identifier: Apache-2.0
// The best of ninety cells was also lucky, so its gain is measured again: the cell and distance 0 take turns in runs of
// their own. Example of the output for a loop whose best cell had 4.31 ns and whose distance 0 had 10.20 ns:
//
//     payload: 4.40 ns at distance 64, read 3, against 10.17 without: 2.31 times as fast; within 5 % from 32 to 256;
//     16 rows cost 1.42 times that; noise 3 %
//
// The noise is the median spread between columns that execute the same instruction.
#include "bench/prefetch/prefetch_sweep.h"

#include <algorithm>
#include <cstdio>

#include "bench/common/text_table.h"
#include "runtime/base/status.h"
#include "runtime/rows/prefetch.h"

namespace quern::bench {
namespace {

constexpr double kPlateau = 1.05;    // times the best: counts as equally good
constexpr double kNothing = 1.02;    // times as fast: counts as no gain
constexpr uint32_t kFixedRows = 16;  // the distance that engines hard-code

}  // namespace

std::string DistanceText(uint32_t distance) { return distance == kWholeBatch ? "all" : std::to_string(distance); }

absl::Status PrefetchSweep::Measure(int turns, const Run& run) {
  times_.assign(ways_.size() * distances_.size(), 1e9);
  const auto take = [&](size_t way, uint32_t distance, double* best) -> absl::Status {
    QUERN_ASSIGN_OR_RETURN(const double ns, run(way, distance));
    *best = std::min(*best, ns);
    return absl::OkStatus();
  };
  for (int turn = 0; turn < turns; ++turn)
    for (size_t row = 0; row < distances_.size(); ++row)
      for (size_t way = 0; way < ways_.size(); ++way)
        QUERN_RETURN_IF_ERROR(take(way, distances_[row], &Time(row, way)));
  FindBest();
  none_ns_ = best_ns_ = 1e9;
  for (int turn = 0; turn < 4 * turns; ++turn) {
    QUERN_RETURN_IF_ERROR(take(best_way_, 0, &none_ns_));
    QUERN_RETURN_IF_ERROR(take(best_way_, best_distance(), &best_ns_));
  }
  return absl::OkStatus();
}

void PrefetchSweep::FindBest() {
  const auto best = static_cast<size_t>(std::min_element(times_.begin(), times_.end()) - times_.begin());
  best_row_ = best / ways_.size();
  best_way_ = best % ways_.size();
}

void PrefetchSweep::Print(const std::string& first, const Section& section) const {
  for (size_t row = 0; row < distances_.size(); ++row) {
    std::vector<std::string> cells = {first, DistanceText(distances_[row])};
    for (size_t way = 0; way < ways_.size(); ++way)
      cells.push_back(Fixed(Time(row, way)) + (row == best_row_ && way == best_way_ ? "*" : " "));
    section.Row(cells);
  }
}

double PrefetchSweep::NoiseOf(size_t twins) const {
  std::vector<double> spreads;
  for (size_t row = 0; row < distances_.size(); ++row) {
    const auto begin = times_.begin() + static_cast<ptrdiff_t>(row * ways_.size() + (row == 0 ? 0 : twins));
    const auto end = times_.begin() + static_cast<ptrdiff_t>((row + 1) * ways_.size());
    if (begin != end) spreads.push_back(*std::max_element(begin, end) / *std::min_element(begin, end) - 1);
  }
  std::nth_element(spreads.begin(), spreads.begin() + static_cast<ptrdiff_t>(spreads.size() / 2), spreads.end());
  return spreads[spreads.size() / 2];
}

void PrefetchSweep::PrintReading(const std::string& loop, size_t twins) const {
  const double gain = none_ns_ / best_ns_;
  std::string text = "\n" + loop + ": ";
  if (best_row_ == 0 || gain < kNothing) {
    text += "prefetching gains nothing over " + Fixed(none_ns_) + " ns; the worst setting costs " +
            Fixed(*std::max_element(times_.begin(), times_.end()) / std::min(none_ns_, Time(best_row_, best_way_))) +
            " times as much";
  } else {
    size_t from = best_row_, to = best_row_;
    const double good = Time(best_row_, best_way_) * kPlateau;
    while (from > 1 && Time(from - 1, best_way_) <= good) --from;
    while (to + 1 < distances_.size() && Time(to + 1, best_way_) <= good) ++to;
    text += Fixed(best_ns_) + " ns at distance " + DistanceText(best_distance()) + ", " + ways_[best_way_] +
            ", against " + Fixed(none_ns_) + " without: " + Fixed(gain) + " times as fast; within 5 % from " +
            DistanceText(distances_[from]) + " to " + DistanceText(distances_[to]);
    const auto fixed = std::find(distances_.begin(), distances_.end(), kFixedRows);
    if (fixed != distances_.end())
      text += "; " + std::to_string(kFixedRows) + " rows cost " +
              Fixed(Time(static_cast<size_t>(fixed - distances_.begin()), best_way_) / Time(best_row_, best_way_)) +
              " times that";
  }
  text += "; noise " + Fixed(NoiseOf(twins) * 100, 0) + " %";
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

}  // namespace quern::bench
