// SPDX-License-Identifier: Apache-2.0
// Candidates take turns, so that what else happens on the machine falls on all alike; the best median wins:
//
//     round 1   64K  128K  256K  512K  1M
//     round 2   1M  512K  256K  128K  64K       backwards, so that slow drift does, too
//
// The winner of a race was also lucky. So it meets the default in pairs of new runs, and replaces it only beyond the
// noise of these pairs.
#include "codegen/tuning/turns.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/base/status.h"

namespace quern::tuning {
namespace {

constexpr size_t kMostRounds = 5, kLeastPairs = 3, kMostPairs = 15;
constexpr double kLeastGain = 0.03;
// Three standard errors of the median, from the median absolute deviation.
constexpr double kNoiseOfDeviation = 3 * 1.858;

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

Costs MediansOf(const std::vector<Costs>& runs) {
  Costs medians;
  for (size_t way = 0; way < runs.front().size(); ++way) {
    std::vector<double> of_way;
    for (const Costs& run : runs) of_way.push_back(run[way]);
    medians.push_back(Median(std::move(of_way)));
  }
  return medians;
}

double RelativeCost(const Costs& costs, const Costs& base) {
  double sum = 0;
  for (size_t way = 0; way < costs.size(); ++way) sum += std::log(costs[way] / base[way]);
  return std::exp(sum / static_cast<double>(costs.size()));
}

double GeometricMean(const Costs& costs) { return RelativeCost(costs, Costs(costs.size(), 1)); }

absl::StatusOr<Race> RunRace(size_t num_choices, double until, const TurnClock& clock, const RunChoice& run) {
  std::vector<std::vector<Costs>> runs(num_choices);
  Race race;
  for (double round_seconds = 0; race.num_rounds < kMostRounds; ++race.num_rounds) {
    const double start = clock.now();
    if (start + round_seconds >= until || clock.Stops()) break;
    for (size_t i = 0; i < num_choices; ++i) {
      const size_t choice = race.num_rounds % 2 == 0 ? i : num_choices - 1 - i;
      if (clock.now() >= clock.end || clock.Stops()) return Race{};
      QUERN_ASSIGN_OR_RETURN(Costs costs, run(choice));
      runs[choice].push_back(std::move(costs));
    }
    round_seconds = clock.now() - start;
  }
  if (race.num_rounds == 0) return Race{};
  for (size_t i = 0; i < num_choices; ++i) {
    race.medians.push_back(MediansOf(runs[i]));
    if (RelativeCost(race.medians[i], race.medians[race.best]) < 1) race.best = i;
  }
  return race;
}

bool Duel::RivalWins() const { return num_pairs >= kLeastPairs && ratio < 1 - std::max(noise, kLeastGain); }

absl::StatusOr<Duel> RunDuel(size_t least_pairs, const TurnClock& clock, const RunChoice& run) {
  std::vector<Costs> runs[2];
  std::vector<double> ratios;
  while (ratios.size() < kMostPairs && (ratios.size() < least_pairs || clock.now() < clock.end)) {
    if (clock.Stops() && (least_pairs == 0 || !ratios.empty())) break;
    const size_t first = ratios.size() % 2 == 0 ? 1 : 0;
    for (const size_t choice : {first, 1 - first}) {
      QUERN_ASSIGN_OR_RETURN(Costs costs, run(choice));
      runs[choice].push_back(std::move(costs));
    }
    ratios.push_back(RelativeCost(runs[1].back(), runs[0].back()));
  }
  Duel duel;
  duel.num_pairs = ratios.size();
  if (ratios.empty()) return duel;
  for (const size_t choice : {0, 1}) duel.medians[choice] = MediansOf(runs[choice]);
  duel.ratio = Median(ratios);
  std::vector<double> deviations;
  for (const double ratio : ratios) deviations.push_back(std::abs(ratio - duel.ratio));
  duel.noise = kNoiseOfDeviation * Median(deviations) / std::sqrt(static_cast<double>(ratios.size()));
  return duel;
}

}  // namespace quern::tuning
