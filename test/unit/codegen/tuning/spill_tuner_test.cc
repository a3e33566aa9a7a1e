// SPDX-License-Identifier: Apache-2.0
// The search for how rows are spilled, on a simulated device with a simulated clock; and one real run.
#include "codegen/tuning/spill_tuner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <random>
#include <string>

#include "test/unit/seed.h"

namespace quern {
namespace {

using Device = std::function<SpillSpeed(const SpillChoice&)>;

struct Simulation {
  explicit Simulation(Device simulated, double deviation_of_runs = 0, uint64_t trial = 0)
      : device(std::move(simulated)), deviation(deviation_of_runs), random(test::SeedOfTest() + trial) {}

  absl::StatusOr<SpillTuning> Search(double seconds) {
    SpillSearch search;
    search.now = [this] { return now; };
    search.end = seconds;
    search.run = [this](const SpillChoice& choice) -> absl::StatusOr<SpillSpeed> {
      now += 0.01;
      ++num_runs;
      if (num_runs == failing_run) return absl::UnavailableError("device is gone: 1; accepted: 0");
      const double noise = std::exp(deviation * std::normal_distribution()(random));
      SpillSpeed speed = device(choice);
      speed.device_mb_s *= noise;
      speed.cache_mb_s *= noise;
      return speed;
    };
    return SearchSpilling(search);
  }

  Device device;
  double deviation;
  std::mt19937_64 random;
  double now = 0;
  int num_runs = 0, failing_run = -1;
};

// Best at blocks of 1 MiB, 8 read ahead, 4 written behind, by threads, compressed; each step away costs 20 %.
SpillSpeed Valley(const SpillChoice& choice) {
  const auto steps = [](double value, double best) { return std::abs(std::log2(value) - std::log2(best)); };
  const double away = steps(choice.block_bytes, 1 << 20) + steps(choice.read_ahead, 8) +
                      steps(choice.write_behind + 1, 5) + (choice.reads_by_ring ? 1 : 0) + (choice.compresses ? 0 : 1);
  return {1000 * std::pow(0.8, away), 3000 * std::pow(0.9, away)};
}

TEST(SpillTuner, FindsThePlantedOptimum) {
  for (const double deviation : {0.0, 0.02}) {
    const absl::StatusOr<SpillTuning> tuning = Simulation(Valley, deviation).Search(6);
    ASSERT_TRUE(tuning.ok());
    EXPECT_TRUE(tuning->beats_default);
    EXPECT_EQ(tuning->found.choice, (SpillChoice{1 << 20, 8, 4, 8, false, true}));
    EXPECT_GT(tuning->found.speed.device_mb_s, tuning->found.default_speed.device_mb_s);
  }
}

TEST(SpillTuner, LuckDoesNotBeatTheDefault) {
  const auto flat = [](const SpillChoice&) { return SpillSpeed{500, 2000}; };
  int num_beaten = 0;
  for (uint64_t trial = 0; trial < 100; ++trial) {
    const absl::StatusOr<SpillTuning> tuning = Simulation(flat, 0.05, trial).Search(6);
    ASSERT_TRUE(tuning.ok());
    EXPECT_GT(tuning->found.default_speed.device_mb_s, 0);
    if (tuning->beats_default) {
      ++num_beaten;
    } else {
      EXPECT_EQ(tuning->found.choice, SpillChoice());
    }
  }
  EXPECT_LE(num_beaten, 5);
}

// A choice that helps the device and harms the cache as much is no gain.
TEST(SpillTuner, BothWaysCount) {
  const absl::StatusOr<SpillTuning> tuning = Simulation([](const SpillChoice& choice) {
                                               const double factor = choice.block_bytes / 262144.0;
                                               return SpillSpeed{500 * factor, 2000 / factor};
                                             }).Search(6);
  ASSERT_TRUE(tuning.ok());
  EXPECT_FALSE(tuning->beats_default);
}

TEST(SpillTuner, WithoutTimeTheDefaultStays) {
  const absl::StatusOr<SpillTuning> tuning = Simulation(Valley).Search(0.02);
  ASSERT_TRUE(tuning.ok());
  EXPECT_FALSE(tuning->beats_default);
  EXPECT_EQ(tuning->found.default_speed.device_mb_s, 0);
  EXPECT_EQ(PrintSpillTuning(*tuning), "spilled rows: no time to compare with the default\n");
}

TEST(SpillTuner, AnErrorEndsIt) {
  Simulation simulation(Valley);
  simulation.failing_run = 20;
  EXPECT_TRUE(absl::IsUnavailable(simulation.Search(6).status()));
}

TEST(SpillTuner, RunsWriteAndReadRows) {
  const std::string folder = testing::TempDir() + "quern-spill-tuner";
  std::filesystem::create_directory(folder);
  for (const bool by_ring : {false, true}) {
    const absl::StatusOr<SpillSpeed> speed = MeasureSpilling(folder, {65536, 3, 2, 2, by_ring}, 1 << 20);
    ASSERT_TRUE(speed.ok()) << speed.status();
    EXPECT_GT(speed->device_mb_s, 0);
    EXPECT_GT(speed->cache_mb_s, 0);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove(folder);
  EXPECT_TRUE(absl::IsUnavailable(MeasureSpilling(folder, {}, 1 << 20).status()));
}

}  // namespace
}  // namespace quern
