// SPDX-License-Identifier: Apache-2.0
// The search for the distances of input columns, on simulated kernels with a simulated clock; and real kernels over
// small columns. No expectation depends on speed.
#include "codegen/tuning/input_tuner.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "test/unit/seed.h"

namespace quern {
namespace {

using tuning::Costs;

constexpr InputRows kDefaults = {2048, 256};

struct Simulation {
  std::function<Costs(InputKind kind, uint32_t rows)> kernels;
  double deviation = 0;
  uint64_t trial = 0;
  double now = 0;
  int num_runs = 0, failing_run = -1;
  std::set<uint32_t> tried[2] = {};  // by kind

  absl::StatusOr<InputTuning> Search(double seconds, const InputRows& defaults = kDefaults) {
    std::mt19937_64 random(test::SeedOfTest() + trial);
    const tuning::TurnClock clock = {[this] { return now; }, seconds, {}};
    return SearchInput(defaults, clock, [&](InputKind kind, uint32_t rows) -> absl::StatusOr<Costs> {
      now += 0.01;
      if (++num_runs == failing_run) return absl::ResourceExhaustedError("memory: none; accepted: more");
      tried[static_cast<size_t>(kind)].insert(rows);
      Costs costs = kernels(kind, rows);
      for (double& cost : costs) cost *= std::exp(deviation * std::normal_distribution()(random));
      return costs;
    });
  }
};

// Best at 512, and at 1,024 without keys; each step away costs 10 %, and so does no prefetch at all a lot.
Costs Valley(InputKind kind, uint32_t rows) {
  const double best = kind == InputKind::kKeyed ? 512 : 1024;
  const double slower = std::pow(1.1, std::abs(std::log2(std::max(rows, 1u) / best)));
  return kind == InputKind::kKeyed ? Costs{1 * slower, 2 * slower} : Costs{3 * slower};
}

TEST(InputTuner, FindsThePlantedOptimum) {
  for (const double deviation : {0.0, 0.02}) {
    Simulation simulation{Valley, deviation};
    const absl::StatusOr<InputTuning> tuning = simulation.Search(6);
    ASSERT_TRUE(tuning.ok());
    EXPECT_TRUE(tuning->keyed.beats_default);
    EXPECT_TRUE(tuning->keyless.beats_default);
    const ProfileInput found = tuning->Found();
    EXPECT_EQ(found.rows, (InputRows{512, 1024}));
    EXPECT_LT(found.ns, found.default_ns);
    EXPECT_EQ(simulation.tried[0], (std::set<uint32_t>{0, 512, 1024, 2048, 4096, 8192}));
    EXPECT_EQ(simulation.tried[1], (std::set<uint32_t>{0, 128, 256, 512, 1024, 2048, 4096}));
    EXPECT_EQ(tuning->keyed.candidates.size(), 6u);
    EXPECT_EQ(tuning->keyless.candidates.size(), 7u);
  }
}

// Each distance is decided by itself.
TEST(InputTuner, OneDistanceMayKeepItsDefault) {
  const auto kernels = [](InputKind kind, uint32_t rows) {
    return kind == InputKind::kKeyed ? Costs{1, 2} : Valley(kind, rows);
  };
  const absl::StatusOr<InputTuning> tuning = Simulation{kernels}.Search(6);
  ASSERT_TRUE(tuning.ok());
  EXPECT_FALSE(tuning->keyed.beats_default);
  EXPECT_TRUE(tuning->keyless.beats_default);
  EXPECT_EQ(tuning->Found().rows, (InputRows{2048, 1024}));
}

TEST(InputTuner, NoPrefetchMayBeBest) {
  const auto kernels = [](InputKind kind, uint32_t rows) {
    const double cost = rows == 0 ? 1 : 1.2;
    return kind == InputKind::kKeyed ? Costs{cost, cost} : Costs{cost};
  };
  const absl::StatusOr<InputTuning> tuning = Simulation{kernels}.Search(6);
  ASSERT_TRUE(tuning.ok());
  EXPECT_EQ(tuning->Found().rows, (InputRows{0, 0}));
}

TEST(InputTuner, LuckDoesNotBeatTheDefault) {
  int num_beaten = 0;
  for (uint64_t trial = 0; trial < 100; ++trial) {
    const auto kernels = [](InputKind kind, uint32_t) { return kind == InputKind::kKeyed ? Costs{1, 2} : Costs{3}; };
    const absl::StatusOr<InputTuning> tuning = Simulation{kernels, 0.05, trial}.Search(6);
    ASSERT_TRUE(tuning.ok());
    EXPECT_GT(tuning->Found().default_ns, 0);
    for (const InputSearch* search : {&tuning->keyed, &tuning->keyless}) {
      if (search->beats_default) ++num_beaten;
      else EXPECT_EQ(search->rows, search == &tuning->keyed ? kDefaults.rows : kDefaults.keyless_rows);
    }
  }
  EXPECT_LE(num_beaten, 10);
}

// A gain of 2 % is none.
TEST(InputTuner, LittleDoesNotBeatTheDefault) {
  const auto kernels = [](InputKind kind, uint32_t rows) {
    const double cost = rows == 512 ? 0.98 : 1;
    return kind == InputKind::kKeyed ? Costs{cost, cost} : Costs{cost};
  };
  const absl::StatusOr<InputTuning> tuning = Simulation{kernels}.Search(6);
  ASSERT_TRUE(tuning.ok());
  EXPECT_EQ(tuning->Found().rows, kDefaults);
}

// A distance that helps one kernel and harms the other as much is no gain.
TEST(InputTuner, AllKernelsCount) {
  const auto kernels = [](InputKind kind, uint32_t rows) {
    const double ratio = (rows + 1) / 2048.0;
    return kind == InputKind::kKeyed ? Costs{ratio, 1 / ratio} : Costs{1};
  };
  const absl::StatusOr<InputTuning> tuning = Simulation{kernels}.Search(6);
  ASSERT_TRUE(tuning.ok());
  EXPECT_FALSE(tuning->keyed.beats_default);
}

TEST(InputTuner, WithoutTimeTheDefaultStays) {
  for (const double seconds : {0.0, 0.02, 0.1}) {
    const absl::StatusOr<InputTuning> tuning = Simulation{Valley}.Search(seconds);
    ASSERT_TRUE(tuning.ok());
    EXPECT_EQ(tuning->Found().rows, kDefaults);
  }
  const absl::StatusOr<InputTuning> none = Simulation{Valley}.Search(0);
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->Found().default_ns, 0);
  EXPECT_EQ(PrintInputTuning(*none),
            "input: no comparison with the default\ninput without keys: no comparison with the default\n");
}

TEST(InputTuner, AnErrorEndsIt) {
  for (const int run : {7, 100})
    EXPECT_TRUE(absl::IsResourceExhausted(Simulation{.kernels = Valley, .failing_run = run}.Search(6).status()));
}

// ---- real kernels -------------------------------------------------------------------------------------------------

InputTuningOptions Short(double seconds) {
  InputTuningOptions options;
  options.seconds = seconds;
  options.max_bytes = uint64_t{1} << 20;
  return options;
}

TEST(InputTuner, MeasuresRealKernels) {
  InputTuningOptions options = Short(60);  // ends when all turns are taken
  std::set<std::string> said;
  options.progress = [&](const std::string& doing) { said.insert(doing); };
  const absl::StatusOr<InputTuning> tuning = TuneInput(options);
  ASSERT_TRUE(tuning.ok()) << tuning.status();
  EXPECT_EQ(tuning->keyed.default_costs.size(), 2u);
  EXPECT_EQ(tuning->keyless.default_costs.size(), 1u);
  EXPECT_GT(tuning->Found().default_ns, 0);
  EXPECT_GT(tuning->Found().ns, 0);
  EXPECT_EQ(said.count("input columns, 0 rows ahead"), 1u);
  EXPECT_EQ(said.count("input columns, 8192 rows ahead"), 1u);
}

TEST(InputTuner, StopsEarly) {
  const std::atomic<bool> stop{true};
  InputTuningOptions options = Short(60);
  options.stop = &stop;
  const absl::StatusOr<InputTuning> tuning = TuneInput(options);
  ASSERT_TRUE(tuning.ok()) << tuning.status();
  EXPECT_EQ(tuning->Found().default_ns, 0);
}

TEST(InputTuner, ProvesDistances) {
  const absl::StatusOr<InputProof> proof = ProveInput(Short(0), {512, 0});
  ASSERT_TRUE(proof.ok()) << proof.status();
  EXPECT_EQ(proof->num_pairs, 3u);
  EXPECT_GT(proof->default_ns, 0);
  EXPECT_GT(proof->chosen_ns, 0);
}

TEST(InputTuner, PrintsWhatItFound) {
  InputTuning tuning;
  tuning.keyed = {512, {1, 4}, {1, 9}, 0.01, true, {{0, 3.5, 3}, {512, 2.01, 3}}};
  tuning.keyless = {256, {3}, {3}, 0.02, false, {{128, 3.1, 5}}};
  EXPECT_EQ(PrintInputTuning(tuning),
            "input  none, 3.50 ns a row\n"
            "input  512 rows ahead, 2.01 ns a row\n"
            "input: 512 rows ahead, 2.00 ns a row; by default 3.00\n"
            "input without keys  128 rows ahead, 3.10 ns a row\n"
            "input without keys: the default stays, 256 rows ahead, 3.00 ns a row\n");
  const ProfileInput found = tuning.Found();
  EXPECT_EQ(found.rows, (InputRows{512, 256}));
  EXPECT_NEAR(found.ns, std::cbrt(12), 1e-12);
  EXPECT_NEAR(found.default_ns, 3, 1e-12);
  EXPECT_EQ(found.noise, 0.02);
}

}  // namespace
}  // namespace quern
