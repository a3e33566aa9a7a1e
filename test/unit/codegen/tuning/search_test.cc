// SPDX-License-Identifier: Apache-2.0
// The search for a setting, on a simulated memory with a simulated clock: planted optima are found in spite of noise,
// luck is not mistaken for one, and time limits are kept.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "codegen/tuning/search.h"
#include "test/unit/runtime/aggregate/accumulators/accumulator_rows.h"
#include "test/unit/seed.h"

namespace quern {
namespace {

using Landscape = std::function<double(const PrefetchSetting&)>;

// A loop whose time is a function of the setting, times noise.
class SimulatedJob : public TuningJob {
 public:
  SimulatedJob(Landscape landscape, uint64_t seed) : landscape_(std::move(landscape)), random_(seed) {}

  absl::StatusOr<double> Run(const PrefetchSetting& setting) override {
    if (runs.size() == failing_run) return absl::ResourceExhaustedError("no memory for a run: 7; accepted: 6");
    runs.push_back(setting);
    now += run_seconds;
    const double spike = std::uniform_real_distribution(0.0, 1.0)(random_) < spikes ? 2 : 1;
    const double noise = 1 + deviation * std::normal_distribution()(random_);
    return landscape_(setting) * (1 + drift * now) * std::max(noise, 0.1) * spike;
  }
  PrefetchSetting Default() const override { return by_default; }
  uint64_t table_bytes() const override { return 12345678; }

  TuningClock clock() {
    return [this] { return now; };
  }

  double now = 0;  // seconds
  double run_seconds = 0.002;
  double deviation = 0;  // of the times of runs, as a share
  double spikes = 0;     // share of runs that take twice as long
  double drift = 0;      // the slowdown of runs per second
  size_t failing_run = std::numeric_limits<size_t>::max();
  PrefetchSetting by_default{.distance = 2};
  std::vector<PrefetchSetting> runs;

 private:
  Landscape landscape_;
  std::mt19937_64 random_;
};

// 10 ns at `best`, 10 % more for each doubling of the distance from it; 25 without prefetch, 24 for whole batches.
// There may be no best.
double Valley(uint16_t distance, uint16_t best) {
  if (distance == best) return 10;
  if (best == 0) return distance == 2 ? 13 : 12;
  if (distance == 0) return 25;
  if (distance == kWholeBatch || best == kWholeBatch) return 24;
  return 10 * (1 + 0.1 * std::abs(std::log2(double{1.0 * distance} / best)));
}

Landscape ValleyAt(uint16_t best) {
  return [best](const PrefetchSetting& setting) { return Valley(setting.distance, best); };
}

constexpr TuningCell kCell = {.loop = PrefetchLoop::kProbeUnchained, .keys = KeyClass::kString, .size_class = 24};

CellResult Find(SimulatedJob* job, TuningEffort effort = TuningEffort::kMeasure, double seconds = 1) {
  absl::StatusOr<CellResult> result =
      SearchCell(kCell, job, {.effort = effort, .seconds = seconds, .clock = job->clock()});
  EXPECT_TRUE(result.ok()) << result.status();
  if (result.ok()) return *std::move(result);
  CellResult none;
  none.candidates.resize(1);
  return none;
}

const CandidateResult& Best(const CellResult& result) { return result.candidates[result.best]; }

void MakeNoisy(SimulatedJob* job) {
  job->deviation = 0.03;
  job->spikes = 0.05;
  job->drift = 0.2;
}

TEST(TuningSearch, FindsAPlantedDistance) {
  for (const uint16_t planted : {uint16_t{0}, uint16_t{4}, uint16_t{16}, uint16_t{64}, uint16_t{256}, kWholeBatch}) {
    SimulatedJob job(ValleyAt(planted), 1);
    const CellResult result = Find(&job);
    EXPECT_EQ(Best(result).setting.distance, planted);
    EXPECT_TRUE(result.beats_default);
    EXPECT_EQ(Best(result).ns, 10);
    EXPECT_EQ(result.candidates[result.off].ns, Valley(0, planted));
    EXPECT_EQ(result.candidates[result.by_default].ns, Valley(2, planted));
    EXPECT_EQ(result.table_bytes, 12345678U);
    EXPECT_LE(result.seconds, 1);
  }
}

TEST(TuningSearch, FindsAPlantedDistanceInNoise) {
  std::mt19937_64 random = test::PrintedRandom();
  constexpr int kTrials = 100;
  int exact = 0, near = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const auto planted = static_cast<uint16_t>(8 << random() % 5);
    SimulatedJob job(ValleyAt(planted), random());
    MakeNoisy(&job);
    const CellResult result = Find(&job);
    exact += Best(result).setting.distance == planted ? 1 : 0;
    near += result.beats_default && Valley(Best(result).setting.distance, planted) < 11.001 ? 1 : 0;
  }
  EXPECT_GE(exact, kTrials * 85 / 100);
  EXPECT_GE(near, kTrials * 95 / 100);
}

// Other processes occupy the machine during a third of all runs.
TEST(TuningSearch, FindsAPlantedDistanceBesideOtherWork) {
  std::mt19937_64 random = test::PrintedRandom();
  constexpr int kTrials = 100;
  int near = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    SimulatedJob job(ValleyAt(32), random());
    job.deviation = 0.02;
    job.spikes = 0.33;
    const CellResult result = Find(&job);
    near += result.beats_default && Valley(Best(result).setting.distance, 32) < 11.001 ? 1 : 0;
  }
  EXPECT_GE(near, kTrials * 7 / 10);
}

TEST(TuningSearch, FindsWhatElseALoopHas) {
  const auto landscape = [](const PrefetchSetting& setting) {
    double ns = Valley(setting.distance, 64);
    if (setting.distance == 0) return ns;
    if (setting.hint == PrefetchHint::kNta) ns *= 0.9;
    if (setting.stages == 2) ns *= 0.9;
    if (setting.group_rows == 16) ns *= 0.9;
    if (setting.batch_rows == 2048) ns *= 0.9;
    return ns;
  };
  const PrefetchSetting planted = {
      .distance = 64, .group_rows = 16, .batch_rows = 2048, .stages = 2, .hint = PrefetchHint::kNta};
  for (const TuningEffort effort : {TuningEffort::kMeasure, TuningEffort::kPatient}) {
    SimulatedJob job(landscape, 1);
    const CellResult result = Find(&job, effort, 10);
    EXPECT_EQ(Best(result).setting, planted);
    EXPECT_NEAR(Best(result).ns, 6.561, 1e-9);
  }
}

TEST(TuningSearch, PatienceFindsADistanceBetween) {
  SimulatedJob quick(ValleyAt(24), 1), patient(ValleyAt(24), 1);
  const CellResult between = Find(&quick);
  EXPECT_TRUE(Best(between).setting.distance == 16 || Best(between).setting.distance == 32);
  EXPECT_EQ(Best(Find(&patient, TuningEffort::kPatient, 10)).setting.distance, 24);
}

// A job with nothing to tune is not run with settings that its loop lacks.
TEST(TuningSearch, TriesOnlyWhatALoopHas) {
  SimulatedJob job(ValleyAt(64), 1);
  TuningCell cell = kCell;
  cell.loop = PrefetchLoop::kBuildOpen;
  const absl::StatusOr<CellResult> result =
      SearchCell(cell, &job, {.effort = TuningEffort::kPatient, .clock = job.clock()});
  ASSERT_TRUE(result.ok()) << result.status();
  for (const CandidateResult& candidate : result->candidates) {
    EXPECT_EQ(candidate.setting.group_rows, 0);
    EXPECT_EQ(candidate.setting.batch_rows, 0);
    EXPECT_EQ(candidate.setting.stages, 3);
    EXPECT_GE(candidate.runs, 1U);
  }
}

TEST(TuningSearch, FlatLandscapeKeepsTheDefault) {
  std::mt19937_64 random = test::PrintedRandom();
  constexpr int kTrials = 200;
  int beaten = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    SimulatedJob job([](const PrefetchSetting&) { return 10; }, random());
    MakeNoisy(&job);
    const CellResult result = Find(&job);
    beaten += result.beats_default ? 1 : 0;
    EXPECT_EQ(result.Entry().is_default, !result.beats_default);
    EXPECT_EQ(result.best == result.by_default, !result.beats_default);
    EXPECT_GE(result.noise, 0.01);
  }
  EXPECT_LE(beaten, kTrials / 20);
}

// Nor is a hint, a group or a batch adopted with the distance if it changes nothing.
TEST(TuningSearch, WhatChangesNothingIsNotTaken) {
  std::mt19937_64 random = test::PrintedRandom();
  constexpr int kTrials = 50;
  for (const TuningEffort effort : {TuningEffort::kMeasure, TuningEffort::kPatient}) {
    int plain = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      SimulatedJob job(ValleyAt(64), random());
      MakeNoisy(&job);
      plain += Best(Find(&job, effort, 4)).setting == PrefetchSetting{.distance = 64} ? 1 : 0;
    }
    EXPECT_GE(plain, kTrials * 8 / 10);
  }
}

TEST(TuningSearch, LessThanAPercentIsNotTaken) {
  SimulatedJob job([](const PrefetchSetting& setting) { return setting.distance == 64 ? 9.92 : 10; }, 1);
  const CellResult result = Find(&job);
  EXPECT_FALSE(result.beats_default);
  EXPECT_EQ(Best(result).setting, job.by_default);
  EXPECT_EQ(result.noise, 0.01);
}

// A machine that gets slower and slower would favour the settings that are measured first.
TEST(TuningSearch, DriftFavoursNobody) {
  for (const double drift : {0.5, 2.0}) {
    SimulatedJob job([](const PrefetchSetting&) { return 10; }, 1);
    job.drift = drift;
    EXPECT_FALSE(Find(&job).beats_default);
  }
}

TEST(TuningSearch, CandidatesTakeTurns) {
  SimulatedJob job([](const PrefetchSetting& setting) { return setting.distance == 0 ? 10 : 10.1; }, 1);
  Find(&job);
  size_t longest = 0, row = 0;
  for (size_t i = 1; i < job.runs.size(); ++i) {
    row = job.runs[i] == job.runs[i - 1] ? row + 1 : 0;
    longest = std::max(longest, row);
  }
  EXPECT_LE(longest, 1U);  // two in a row where a round reverses the order of the one before it
}

TEST(TuningSearch, LosersLeaveEarly) {
  SimulatedJob job(ValleyAt(64), 1);
  const CellResult result = Find(&job);
  for (const CandidateResult& candidate : result.candidates) {
    if (candidate.setting.hint != PrefetchHint::kT0 || candidate.setting.distance == 64 ||
        candidate.setting == job.by_default)
      continue;
    EXPECT_TRUE(candidate.dropped) << candidate.setting.distance;
    EXPECT_LE(candidate.runs, 3U) << candidate.setting.distance;
  }
  EXPECT_FALSE(Best(result).dropped);
  EXPECT_GE(Best(result).runs, 15U);
}

TEST(TuningSearch, QuartilesLieAroundTheMedian) {
  std::mt19937_64 random = test::PrintedRandom();
  SimulatedJob job(ValleyAt(64), random());
  MakeNoisy(&job);
  for (const CandidateResult& candidate : Find(&job).candidates) {
    EXPECT_LE(candidate.low_ns, candidate.ns);
    EXPECT_LE(candidate.ns, candidate.high_ns);
    EXPECT_GE(candidate.runs, 1U);
  }
}

TEST(TuningSearch, KeepsToItsTime) {
  std::mt19937_64 random = test::PrintedRandom();
  for (const double seconds : {0.006, 0.01, 0.05, 0.2}) {
    for (const TuningEffort effort : {TuningEffort::kMeasure, TuningEffort::kPatient}) {
      SimulatedJob job(ValleyAt(64), random());
      MakeNoisy(&job);
      EXPECT_LE(Find(&job, effort, seconds).seconds, seconds + 1e-9);
    }
  }
}

// Indispensable runs are made however long they take, and a default that was not beaten in time stays.
TEST(TuningSearch, SlowRunsLeaveTheDefault) {
  SimulatedJob job(ValleyAt(64), 1);
  job.run_seconds = 10;
  const CellResult result = Find(&job);
  EXPECT_EQ(job.runs.size(), 3U);
  EXPECT_EQ(result.candidates.size(), 2U);
  EXPECT_FALSE(result.beats_default);
  EXPECT_EQ(Best(result).setting, job.by_default);
}

TEST(TuningSearch, TheSameRunsFindTheSame) {
  std::mt19937_64 random = test::PrintedRandom();
  const uint64_t seed = random();
  SimulatedJob job(ValleyAt(32), seed), again(ValleyAt(32), seed);
  MakeNoisy(&job);
  MakeNoisy(&again);
  const CellResult one = Find(&job), other = Find(&again);
  EXPECT_EQ(job.runs, again.runs);
  ASSERT_EQ(one.candidates.size(), other.candidates.size());
  for (size_t i = 0; i < one.candidates.size(); ++i) {
    EXPECT_EQ(one.candidates[i].ns, other.candidates[i].ns);
    EXPECT_EQ(one.candidates[i].dropped, other.candidates[i].dropped);
  }
  EXPECT_EQ(one.best, other.best);
  EXPECT_EQ(one.noise, other.noise);
}

TEST(TuningSearch, OffMayBeTheDefault) {
  SimulatedJob job(ValleyAt(16), 1);
  job.by_default.distance = 0;
  job.by_default.stages = 1;  // stages of nothing
  const CellResult result = Find(&job);
  EXPECT_EQ(result.off, result.by_default);
  EXPECT_EQ(Best(result).setting.distance, 16);
}

TEST(TuningSearch, EntrySaysWhatWasMeasured) {
  SimulatedJob job(ValleyAt(16), 1);
  const ProfileEntry entry = Find(&job).Entry();
  EXPECT_EQ(entry.cell, kCell);
  EXPECT_EQ(entry.setting, PrefetchSetting{.distance = 16});
  EXPECT_FALSE(entry.is_default);
  EXPECT_EQ(entry.ns, 10);
  EXPECT_EQ(entry.default_ns, 13);
  EXPECT_EQ(entry.off_ns, 25);
  EXPECT_EQ(entry.noise, 0.01);
}

TEST(TuningSearch, EstimateRunsNothing) {
  SimulatedJob job(ValleyAt(16), 1);
  const CellResult result = Find(&job, TuningEffort::kEstimate);
  EXPECT_TRUE(job.runs.empty());
  EXPECT_EQ(Best(result).setting, job.by_default);
  EXPECT_TRUE(result.Entry().is_default);
}

// An error in any run ends the search.
TEST(TuningSearch, AnErrorOfTheJobIsTheSearchs) {
  SimulatedJob whole(ValleyAt(64), 1);
  Find(&whole);
  for (size_t run = 0; run < whole.runs.size(); ++run) {
    SimulatedJob job(ValleyAt(64), 1);
    job.failing_run = run;
    const absl::StatusOr<CellResult> result = SearchCell(kCell, &job, {.clock = job.clock()});
    EXPECT_EQ(result.status(), absl::ResourceExhaustedError("no memory for a run: 7; accepted: 6")) << run;
  }
}

TEST(TuningSearch, BadTimesAreErrors) {
  for (const auto& [ns, text] :
       {std::pair(0.0, "0.000000"), std::pair(-1.0, "-1.000000"), std::pair(HUGE_VAL, "inf")}) {
    SimulatedJob job([ns = ns](const PrefetchSetting&) { return ns; }, 1);
    const absl::StatusOr<CellResult> result = SearchCell(kCell, &job, {.clock = job.clock()});
    EXPECT_EQ(result.status(),
              absl::InternalError(std::string("bad time of a run: ") + text + "; accepted: more than 0 ns a row"));
  }
}

TEST(TuningSearch, SteadyClockGoesOn) {
  const TuningClock clock = SteadyClock();
  const double before = clock();
  EXPECT_LE(before, clock());
}

}  // namespace
}  // namespace quern
