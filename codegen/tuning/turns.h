// SPDX-License-Identifier: Apache-2.0
// Compares choices that take turns: a race over all of them, and a duel of its winner against the default. Each choice
// is run in several ways, such as by the device and by the page cache, or with several pipelines, since a job does not
// know which it will meet.
#ifndef QUERN_CODEGEN_TUNING_TURNS_H_
#define QUERN_CODEGEN_TUNING_TURNS_H_

#include <cstddef>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"

namespace quern::tuning {

// What one run cost, by the ways in which it was run; each is above 0, and less is better.
using Costs = std::vector<double>;
// The median of each way. runs: at least one, all of the same ways.
Costs MediansOf(const std::vector<Costs>& runs);
// The geometric mean of the ratios to `base`.
double RelativeCost(const Costs& costs, const Costs& base);
double GeometricMean(const Costs& costs);

struct TurnClock {
  std::function<double()> now;  // seconds
  double end = 0;               // no run begins later
  std::function<bool()> stops;  // may be empty

  bool Stops() const { return stops && stops(); }
};
using RunChoice = std::function<absl::StatusOr<Costs>(size_t choice)>;

struct Race {
  std::vector<Costs> medians;  // by choice; empty without a whole round, in which case the race decides nothing
  size_t best = 0;             // the choice with the lowest RelativeCost
  size_t num_rounds = 0;
};
// Rounds of all choices until the time is over, at most five. *Errors*: those of `run`.
absl::StatusOr<Race> RunRace(size_t num_choices, double until, const TurnClock& clock, const RunChoice& run);

struct Duel {
  Costs medians[2];  // of choice 0, the default, and of its rival, 1; empty without a pair
  double ratio = 1;  // RelativeCost of the rival in a pair: the median
  double noise = 1;  // share by which two such medians of one choice may differ
  size_t num_pairs = 0;

  // Beyond the noise and by 3 % at least.
  bool RivalWins() const;
};
// Pairs of new runs of choices 0 and 1, either of which goes first by turns, until the time is over, at most 15; the
// first least_pairs whatever the time. *Errors*: those of `run`.
absl::StatusOr<Duel> RunDuel(size_t least_pairs, const TurnClock& clock, const RunChoice& run);

}  // namespace quern::tuning

#endif  // QUERN_CODEGEN_TUNING_TURNS_H_
