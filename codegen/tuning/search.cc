// SPDX-License-Identifier: Apache-2.0
// A race over settings, then a duel.
//
// A run of a setting takes about two milliseconds, and two runs of the same setting differ by some percent, because of
// a neighbour on the machine, a change of the clock rate, or a page fault. Measuring one setting after the other would
// blame all of that on the setting that was running. So the candidates take turns, and the median of its runs counts
// for each:
//
//     round 1   default  off   4    8    16   32   64   128  all
//     round 2   all  128  64   32   16   8    4    off  default        backwards, so that slow drift affects all alike
//     round 3   32   64   128  all  default                            two runs have shown that the others lose
//     ..
//
// A candidate leaves after two runs if the faster of them is 30 % behind the leader's median, and after three if its
// lower quartile is behind the leader's upper one. The default and the winner of the race before never leave, since the
// others are compared to them.
//
// The first race is over distances. The winning distance then races against variants with another hint, other stages,
// other rows of a group or of a batch, one change at a time. A variant whose median is 1 % below the other's lower
// quartile replaces it if it wins a duel as described below, with two standard errors.
//
// The fastest of twenty candidates was also lucky. So the winner has to win again, in new pairs of runs of default and
// winner, either of which goes first by turns. The median m of the pairs' ratios has a standard error of
// 1.2533 * 1.4826 * MAD / sqrt(pairs); the noise is three times that, but at least 1 %, and the winner is accepted if
// m < 1 - noise. Example: 15 pairs with ratios around 0.93 and a MAD of 0.02 have a noise of 2.9 %, so a gain of 7 % is
// accepted; around 0.98 the default stays. A pair in which a run was interrupted (25 % above its setting's lower
// quartile) is repeated, since the effect of a busy machine on a median of few runs is not the loop's noise.
//
// A run is not begun if it would end after the time limit, assuming that it takes as long as the longest so far.
#include "codegen/tuning/search.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>

#include "runtime/base/status.h"

namespace quern {
namespace {

constexpr double kHopeless = 1.3;     // times the leader's median: out after two runs
constexpr double kLeastNoise = 0.01;  // less than that is not worth an entry
constexpr double kStandardErrors = 3;
constexpr double kVariantErrors =
    2;  // between variants of a leader: a wrong choice costs no more than the difference that was missed
// The standard error of a median in units of the MAD, times the square root of the number of values: 1.2533 for the
// median, 1.4826 from MAD to standard deviation, both for a normal distribution.
constexpr double kMedianError = 1.2533 * 1.4826;
constexpr size_t kLeastPairs = 5;  // in a duel that counts
// A run above this many times the lower quartile of its setting's runs was interrupted. A pair with such a run does not
// count; up to three times as many pairs are run until there are enough.
constexpr double kInterrupted = 1.25;

// The values that an effort tries. Distances always include 0 (off) and the default; the others include the plan's
// value.
struct EffortRow {
  std::vector<uint16_t> distances, group_rows, batch_rows;
  std::vector<PrefetchHint> hints;
  uint32_t rounds;  // in a race at most
  size_t pairs;     // in a duel
  bool refines;     // repeats the distances with the other values that won
};

EffortRow RowOf(TuningEffort effort) {
  using Hint = PrefetchHint;
  switch (effort) {
    case TuningEffort::kEstimate: break;
    case TuningEffort::kMeasure:
      return {{4, 8, 16, 32, 64, 128, 256, kWholeBatch},
              {16, 256},
              {256, 2048},
              {Hint::kT0, Hint::kNta, Hint::kWrite},
              7,
              15,
              false};
    case TuningEffort::kPatient:
      return {{1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, kWholeBatch},
              {8, 16, 32, 128, 256, 1024},
              {128, 256, 512, 1024, 2048, 4096},
              {Hint::kT0, Hint::kT1, Hint::kT2, Hint::kNta, Hint::kWrite},
              21,
              41,
              true};
  }
  return {};
}

// Whether a loop has groups or batches: joins compare tuples in groups; builds and sorts take rows as they are stored.
bool HasGroups(PrefetchLoop loop) {
  return loop == PrefetchLoop::kProbeDense || loop == PrefetchLoop::kProbeOpen || loop == PrefetchLoop::kProbeUnchained;
}
bool HasBatches(PrefetchLoop loop) {
  return HasGroups(loop) || loop == PrefetchLoop::kUpdateDense || loop == PrefetchLoop::kUpdateOpen ||
         loop == PrefetchLoop::kUpdateDirectory;
}

// The quantile of sorted values: `share` of them lie below it.
double Quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - static_cast<double>(below));
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return Quantile(values, 0.5);
}

// The share by which another median of as many such values may differ from this one.
double NoiseOf(const std::vector<double>& values, double standard_errors) {
  if (values.size() < 2) return 1;
  const double median = Median(values);
  std::vector<double> deviations;
  deviations.reserve(values.size());
  for (const double value : values) deviations.push_back(std::abs(value - median));
  const double error = kMedianError * Median(deviations) / std::sqrt(static_cast<double>(values.size()));
  return std::max(kLeastNoise, standard_errors * error / median);
}

class Search {
 public:
  Search(const TuningCell& cell, TuningJob* job, const SearchOptions& options)
      : job_(job), options_(options), row_(RowOf(options.effort)), begin_(options.clock()) {
    result_.cell = cell;
  }

  absl::StatusOr<CellResult> Run() {
    QUERN_RETURN_IF_ERROR(RunBaselines());
    if (options_.effort != TuningEffort::kEstimate) QUERN_RETURN_IF_ERROR(RunRaces());
    result_.table_bytes = job_->table_bytes();
    result_.seconds = options_.clock() - begin_;
    return std::move(result_);
  }

 private:
  using Settings = std::vector<PrefetchSetting>;

  CandidateResult& At(size_t place) { return result_.candidates[place]; }
  PrefetchLoop loop() const { return result_.cell.loop; }
  double Now() const { return options_.clock() - begin_; }
  // Seconds since the beginning.
  double Share(double share) const { return options_.seconds * share; }
  bool HasTime(double until) const { return Now() + longest_run_ <= until; }

  // One setting for all that make a loop do the same.
  PrefetchSetting Plain(PrefetchSetting setting) const {
    if (setting.stages >= NumStages(loop())) setting.stages = PrefetchSetting().stages;
    if (setting.distance != 0) return setting;
    PrefetchSetting off;
    off.hint = DefaultHint(loop());
    off.batch_rows = setting.batch_rows;
    return off;
  }

  // Adds the setting to the candidates if it is not among them, and returns its index.
  size_t Enter(const PrefetchSetting& setting) {
    for (size_t i = 0; i < result_.candidates.size(); ++i)
      if (Plain(At(i).setting) == Plain(setting)) return i;
    result_.candidates.emplace_back().setting = setting;
    samples_.emplace_back();
    return result_.candidates.size() - 1;
  }

  absl::StatusOr<double> Time(size_t place) {
    const double begin = Now();
    QUERN_ASSIGN_OR_RETURN(const double ns, job_->Run(At(place).setting));
    if (!std::isfinite(ns) || ns <= 0)
      return Internal("bad time of a run: " + std::to_string(ns) + "; accepted: more than 0 ns a row");
    longest_run_ = std::max(longest_run_, Now() - begin);
    return ns;
  }

  absl::StatusOr<double> RunOnce(size_t place) {
    QUERN_ASSIGN_OR_RETURN(const double ns, Time(place));
    std::vector<double>& samples = samples_[place];
    samples.insert(std::upper_bound(samples.begin(), samples.end(), ns), ns);
    CandidateResult& candidate = At(place);
    candidate.runs = static_cast<uint32_t>(samples.size());
    candidate.low_ns = Quantile(samples, 0.25);
    candidate.ns = Quantile(samples, 0.5);
    candidate.high_ns = Quantile(samples, 0.75);
    return ns;
  }

  // Runs the two settings that are always reported, after one run that pays for page faults and cold caches.
  absl::Status RunBaselines() {
    PrefetchSetting off;
    off.hint = DefaultHint(loop());
    result_.by_default = result_.best = Enter(job_->Default());
    result_.off = Enter(off);
    if (options_.effort == TuningEffort::kEstimate) return absl::OkStatus();
    QUERN_RETURN_IF_ERROR(Time(result_.by_default).status());
    QUERN_RETURN_IF_ERROR(RunOnce(result_.by_default).status());
    return result_.off == result_.by_default ? absl::OkStatus() : RunOnce(result_.off).status();
  }

  absl::Status RunRaces() {
    Settings distances = {At(result_.off).setting};
    for (const uint16_t distance : row_.distances) distances.push_back(With(At(result_.off).setting, distance));
    QUERN_ASSIGN_OR_RETURN(size_t best, Race(result_.by_default, distances, Share(0.45)));
    std::vector<Settings (Search::*)(PrefetchSetting) const> sweeps = {&Search::Stages, &Search::Hints, &Search::Groups,
                                                                       &Search::Batches};
    if (row_.refines) sweeps.push_back(&Search::NearDistances);
    for (size_t i = 0; i < sweeps.size(); ++i) {
      const Settings variants = (this->*sweeps[i])(At(best).setting);
      if (variants.empty()) continue;
      const double now = Now();
      QUERN_ASSIGN_OR_RETURN(const size_t rival,
                             Race(best, variants, now + (Share(0.8) - now) / static_cast<double>(sweeps.size() - i)));
      if (rival == best) continue;
      QUERN_ASSIGN_OR_RETURN(const std::vector<double> ratios, Pairs(best, rival, Share(0.8)));
      if (IsBelow(ratios, NoiseOf(ratios, kVariantErrors))) best = rival;
    }
    return Duel(best);
  }

  PrefetchSetting With(PrefetchSetting setting, uint16_t distance) const {
    setting.distance = distance;
    return setting;
  }

  Settings Stages(PrefetchSetting setting) const {
    Settings variants;
    for (uint32_t stages = 1; stages < NumStages(loop()) && setting.distance != 0; ++stages) {
      setting.stages = static_cast<uint8_t>(stages);
      variants.push_back(setting);
    }
    return variants;
  }
  Settings Hints(PrefetchSetting setting) const {
    Settings variants;
    for (const PrefetchHint hint : row_.hints) {
      setting.hint = hint;
      if (setting.distance != 0) variants.push_back(setting);
    }
    return variants;
  }
  Settings Groups(PrefetchSetting setting) const {
    Settings variants;
    for (const uint16_t rows : row_.group_rows) {
      setting.group_rows = rows;
      if (setting.distance != 0 && HasGroups(loop())) variants.push_back(setting);
    }
    return variants;
  }
  Settings Batches(PrefetchSetting setting) const {
    Settings variants;
    for (const uint16_t rows : row_.batch_rows) {
      setting.batch_rows = rows;
      if (HasBatches(loop())) variants.push_back(setting);
    }
    return variants;
  }
  Settings NearDistances(PrefetchSetting setting) const {
    Settings variants;
    if (setting.distance == 0 || setting.distance == kWholeBatch) return variants;
    for (const uint32_t distance :
         {setting.distance / 2u, setting.distance * 3u / 4, setting.distance * 3u / 2, setting.distance * 2u})
      if (distance != 0 && distance <= kMaxPrefetchDistance)
        variants.push_back(With(setting, static_cast<uint16_t>(distance)));
    return variants;
  }

  // The index of the fastest of `first`, the default and `others`. `first` wins unless another is clearly faster; if it
  // is the default, the fastest wins, since the last duel decides.
  absl::StatusOr<size_t> Race(size_t first, const Settings& others, double until) {
    std::vector<size_t> places = {first};
    for (const PrefetchSetting& setting : others) {
      if (!HasTime(until)) break;
      const size_t place = Enter(setting);
      if (std::find(places.begin(), places.end(), place) != places.end()) continue;
      if (At(place).runs == 0) QUERN_RETURN_IF_ERROR(RunOnce(place).status());
      At(place).dropped = false;
      places.push_back(place);
    }
    if (std::find(places.begin(), places.end(), result_.by_default) == places.end())
      places.push_back(result_.by_default);
    for (uint32_t round = 1; round < row_.rounds && HasRivals(places); ++round) {
      std::reverse(places.begin(), places.end());
      for (const size_t place : places) {
        if (!HasTime(until)) return Winner(first, places);
        QUERN_RETURN_IF_ERROR(RunOnce(place).status());
      }
      DropLosers(first, &places);
    }
    return Winner(first, places);
  }

  // Whether the race is still open. The default does not count, since it only serves for comparison.
  bool HasRivals(const std::vector<size_t>& places) {
    const size_t leader = Leader(places);
    return std::any_of(places.begin(), places.end(),
                       [&](size_t place) { return place != leader && place != result_.by_default; });
  }

  size_t Leader(const std::vector<size_t>& places) {
    return *std::min_element(places.begin(), places.end(), [&](size_t a, size_t b) { return At(a).ns < At(b).ns; });
  }

  void DropLosers(size_t first, std::vector<size_t>* places) {
    const CandidateResult& leader = At(Leader(*places));
    std::erase_if(*places, [&](size_t place) {
      CandidateResult& candidate = At(place);
      if (place == first || place == result_.by_default || candidate.runs < 2) return false;
      const bool is_behind = candidate.runs >= 3 && leader.runs >= 3 && candidate.low_ns > leader.high_ns;
      const bool loses = is_behind || samples_[place].front() > kHopeless * leader.ns;
      candidate.dropped |= loses;
      return loses;
    });
  }

  size_t Winner(size_t first, const std::vector<size_t>& places) {
    const size_t leader = Leader(places);
    const bool is_clear = first == result_.by_default || At(leader).ns < (1 - kLeastNoise) * At(first).low_ns;
    return At(leader).runs >= 2 && is_clear ? leader : first;
  }

  // The ratio of a candidate's time to a rival's, from pairs of new runs.
  absl::StatusOr<std::vector<double>> Pairs(size_t rival, size_t one, double until) {
    std::vector<double> ratios;
    for (size_t tried = 0; ratios.size() < row_.pairs && tried < 3 * row_.pairs && HasTime(until - longest_run_);
         ++tried) {
      const size_t first = tried % 2 == 0 ? rival : one;
      QUERN_ASSIGN_OR_RETURN(const double before, RunOnce(first));
      QUERN_ASSIGN_OR_RETURN(const double after, RunOnce(first == rival ? one : rival));
      const double of_rival = first == rival ? before : after, of_one = first == rival ? after : before;
      if (IsWhole(rival, of_rival) && IsWhole(one, of_one)) ratios.push_back(of_one / of_rival);
    }
    return ratios;
  }

  bool IsWhole(size_t place, double ns) { return ns <= kInterrupted * At(place).low_ns; }

  static bool IsBelow(const std::vector<double>& ratios, double noise) {
    return ratios.size() >= kLeastPairs && Median(ratios) < 1 - noise;
  }

  // The duel against the default. A winner must also be faster by the median of all of its runs.
  absl::Status Duel(size_t best) {
    const size_t rival = result_.by_default;
    std::vector<double> runs = samples_[rival];
    std::erase_if(runs, [&](double ns) { return !IsWhole(rival, ns); });
    result_.noise = NoiseOf(runs, kStandardErrors);
    if (best == rival) return absl::OkStatus();
    QUERN_ASSIGN_OR_RETURN(const std::vector<double> ratios, Pairs(rival, best, Share(1)));
    if (ratios.size() >= kLeastPairs) result_.noise = NoiseOf(ratios, kStandardErrors);
    result_.beats_default = IsBelow(ratios, result_.noise) && At(best).ns < At(rival).ns;
    if (result_.beats_default) result_.best = best;
    return absl::OkStatus();
  }

  TuningJob* job_;
  const SearchOptions& options_;
  const EffortRow row_;
  const double begin_;
  double longest_run_ = 0;  // seconds
  CellResult result_;
  std::vector<std::vector<double>> samples_;  // of each candidate, sorted
};

}  // namespace

TuningClock SteadyClock() {
  return [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); };
}

ProfileEntry CellResult::Entry() const {
  ProfileEntry entry;
  entry.cell = cell;
  entry.setting = candidates[best].setting;
  entry.is_default = !beats_default;
  entry.ns = candidates[best].ns;
  entry.default_ns = candidates[by_default].ns;
  entry.off_ns = candidates[off].ns;
  entry.noise = noise;
  return entry;
}

absl::StatusOr<CellResult> SearchCell(const TuningCell& cell, TuningJob* job, const SearchOptions& options) {
  return Search(cell, job, options).Run();
}

}  // namespace quern
