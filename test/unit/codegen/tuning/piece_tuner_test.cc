// SPDX-License-Identifier: Apache-2.0
// The search for the size of pieces, on simulated pipelines with a simulated clock; and real pipelines over rows that
// are made to go through them. No expectation depends on speed.
#include "codegen/tuning/piece_tuner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "codegen/tuning/pipeline_job.h"
#include "runtime/base/thresholds.h"
#include "test/unit/seed.h"

namespace quern {
namespace {

using tuning::Costs;

// ---- turns
// ------------------------------------------------------------------------------------------------------------

TEST(Turns, MediansAndRatios) {
  EXPECT_EQ(tuning::MediansOf({{1, 9}, {3, 5}, {2, 7}}), (Costs{2, 7}));
  EXPECT_NEAR(tuning::RelativeCost({2, 8}, {1, 1}), 4, 1e-12);
  EXPECT_NEAR(tuning::RelativeCost({1, 8}, {2, 4}), 1, 1e-12);
}

TEST(Turns, ChoicesOfARaceTakeTurns) {
  double now = 0;
  std::vector<size_t> order;
  const tuning::TurnClock clock = {[&] { return now; }, 100, {}};
  const auto race = tuning::RunRace(3, 5.5, clock, [&](size_t choice) -> absl::StatusOr<Costs> {
    now += 1;
    order.push_back(choice);
    return Costs{3.0 - static_cast<double>(choice)};
  });
  ASSERT_TRUE(race.ok());
  EXPECT_EQ(order, (std::vector<size_t>{0, 1, 2}));  // a second round would end too late
  EXPECT_EQ(race->best, 2u);
  EXPECT_EQ(race->num_rounds, 1u);
}

TEST(Turns, PairsOfADuelThatMustBeRun) {
  std::vector<size_t> order;
  const tuning::TurnClock clock = {[] { return 1.0; }, 0, {}};
  const auto run = [&](size_t choice) -> absl::StatusOr<Costs> {
    order.push_back(choice);
    return Costs{choice == 0 ? 2.0 : 1.0};
  };
  EXPECT_EQ(tuning::RunDuel(0, clock, run)->num_pairs, 0u);
  const auto duel = tuning::RunDuel(3, clock, run);
  ASSERT_TRUE(duel.ok());
  EXPECT_EQ(order, (std::vector<size_t>{1, 0, 0, 1, 1, 0}));
  EXPECT_EQ(duel->ratio, 0.5);
  EXPECT_EQ(duel->noise, 0);
  EXPECT_TRUE(duel->RivalWins());
}

// ---- the search
// -------------------------------------------------------------------------------------------------------

struct Simulation {
  std::function<Costs(uint32_t rows)> pipelines;
  double deviation = 0;
  uint64_t trial = 0;
  double now = 0;
  int num_runs = 0, failing_run = -1;

  absl::StatusOr<PieceTuning> Search(double seconds) {
    std::mt19937_64 random(test::SeedOfTest() + trial);
    const tuning::TurnClock clock = {[this] { return now; }, seconds, {}};
    return SearchPieces(clock, [&](uint32_t rows) -> absl::StatusOr<Costs> {
      now += 0.01;
      if (++num_runs == failing_run) return absl::ResourceExhaustedError("memory: none; accepted: more");
      Costs costs = pipelines(rows);
      for (double& cost : costs) cost *= std::exp(deviation * std::normal_distribution()(random));
      return costs;
    });
  }
};

// Best at 8,192; each step away costs one pipeline 10 %, and the other 20 %.
Costs Valley(uint32_t rows) {
  const double away = std::abs(std::log2(rows / 8192.0));
  return {5 * std::pow(1.1, away), 20 * std::pow(1.2, away)};
}

TEST(PieceTuner, FindsThePlantedOptimum) {
  for (const double deviation : {0.0, 0.02}) {
    const absl::StatusOr<PieceTuning> tuning = Simulation{Valley, deviation}.Search(3);
    ASSERT_TRUE(tuning.ok());
    EXPECT_TRUE(tuning->beats_default);
    EXPECT_EQ(tuning->found.rows, 8192u);
    EXPECT_LT(tuning->found.ns, tuning->found.default_ns);
    EXPECT_EQ(tuning->candidates.size(), 6u);
  }
}

TEST(PieceTuner, LuckDoesNotBeatTheDefault) {
  int num_beaten = 0;
  for (uint64_t trial = 0; trial < 100; ++trial) {
    const absl::StatusOr<PieceTuning> tuning = Simulation{[](uint32_t) { return Costs{5, 10}; }, 0.05, trial}.Search(3);
    ASSERT_TRUE(tuning.ok());
    EXPECT_GT(tuning->found.default_ns, 0);
    if (tuning->beats_default) {
      ++num_beaten;
    } else {
      EXPECT_EQ(tuning->found.rows, thresholds::kPipelineRows);
    }
  }
  EXPECT_LE(num_beaten, 5);
}

// A size that helps one pipeline and harms the other as much is no gain.
TEST(PieceTuner, AllPipelinesCount) {
  const absl::StatusOr<PieceTuning> tuning =
      Simulation{[](uint32_t rows) { return Costs{5 * rows / 4096.0, 5 * 4096.0 / rows}; }}.Search(3);
  ASSERT_TRUE(tuning.ok());
  EXPECT_FALSE(tuning->beats_default);
}

TEST(PieceTuner, WithoutTimeTheDefaultStays) {
  const absl::StatusOr<PieceTuning> tuning = Simulation{Valley}.Search(0.02);
  ASSERT_TRUE(tuning.ok());
  EXPECT_FALSE(tuning->beats_default);
  const absl::StatusOr<PieceTuning> none = Simulation{Valley}.Search(0);
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->found.default_ns, 0);
  EXPECT_EQ(PrintPieceTuning(*none), "pieces: no comparison with the default\n");
}

TEST(PieceTuner, AnErrorEndsIt) {
  EXPECT_TRUE(absl::IsResourceExhausted(Simulation{.pipelines = Valley, .failing_run = 7}.Search(3).status()));
}

// ---- real pipelines
// ---------------------------------------------------------------------------------------------------

constexpr uint64_t kRows = 20000;

// The share of the rows that reach the end, which is the same in pieces of any size; or the error.
std::string RowsOut(const std::string& spec) {
  const auto job = tuning::PipelineJob::Make(spec, {}, kRows, 1 << 20);
  if (!job.ok()) return std::string(job.status().message());
  std::string text = std::to_string(std::lround((*job)->share_of_rows_out() * 20) * 5) + " %";
  for (const uint32_t piece_rows : {100, 65536}) {
    const double before = (*job)->share_of_rows_out();
    const absl::StatusOr<double> ns = (*job)->Run(piece_rows);
    EXPECT_TRUE(ns.ok()) << ns.status();
    EXPECT_GT(*ns, 0);
    EXPECT_EQ((*job)->share_of_rows_out(), before);
  }
  return text;
}

TEST(PipelineJob, RowsGoThrough) {
  EXPECT_EQ(RowsOut("pipeline in=i32 | filter i32 < 90 [$0] | emit [$0]"), "50 %");
  EXPECT_EQ(RowsOut("pipeline in=date32,f64 | filter date32 >= 8766 and date32 < 9131 [$0, $0] | emit [$0, $1]"),
            "50 %");
  EXPECT_EQ(RowsOut("pipeline in=i64,decimal128(15,2) | probe join.inner keys=i64 build=utf8_view probe=decimal128 "
                    "[$0; $1] | emit [$0, $1]"),
            "65 %");
  // The key reaches the second table by way of the first one's payload.
  EXPECT_EQ(RowsOut("pipeline in=i64,i64 | probe join.inner keys=i64 probe=i64 [$0; $1]"
                    " | probe join.semi keys=i64 probe=i64 [$0; $0] | emit [$0]"),
            "45 %");
}

// Rows without a match may pass a reduction that takes few away.
TEST(PipelineJob, ReductionsTakeRowsAway) {
  const auto job = tuning::PipelineJob::Make(
      "pipeline in=i64,utf8 | reduce join.inner keys=i64 [$0] | sort keys=utf8 payload=i64 [$1; $0]", {}, kRows,
      1 << 20);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_NEAR((*job)->share_of_rows_out(), 0.67, 0.02);
}

// The table of narrow keys has no key twice, and of several keys the widest tells rows apart.
TEST(PipelineJob, KeysOfAllWidths) {
  EXPECT_EQ(RowsOut("pipeline in=i8 | probe join.inner keys=i8 probe=i8 [$0; $0] | emit [$0]"), "65 %");
  EXPECT_EQ(RowsOut("pipeline in=i16,i64 | probe join.inner keys=i16,i64 [$0, $1] | emit []"), "65 %");
  EXPECT_EQ(RowsOut("pipeline in=utf8 | probe join.anti keys=utf8 probe=utf8 [$0; $0] | emit [$0]"), "35 %");
}

TEST(PipelineJob, EndsOfAllKinds) {
  EXPECT_EQ(RowsOut("pipeline in=i64,f64 | map in=f64 out=multiply($0,$0) [$1] | build join.inner keys=i64 build=f64 "
                    "[$0; $2]"),
            "100 %");
  EXPECT_EQ(RowsOut("pipeline in=i64,i64 | map in=i64,i64 out=divide_checked($0,$1) [$0, $1]"
                    " | aggregate keys=i64 aggs=sum(i64) [$0; $2]"),
            "100 %");
  EXPECT_EQ(RowsOut("pipeline in=utf8 | sort keys=utf8 [$0]"), "100 %");
}

TEST(PipelineJob, WhatCannotRun) {
  EXPECT_EQ(RowsOut("pipeline in=dictionary(i32,utf8) | sort keys=dictionary(i32,utf8) [$0]"),
            "column of a tuning job: dictionary(i32,utf8); accepted: all types but dictionaries");
  EXPECT_EQ(RowsOut("pipeline in=i64 | sort keys=i32 [$0]"), "keys of the end[0]: column 0 of i64; accepted: i32");
}

TEST(PieceTuner, MeasuresRealPipelines) {
  PieceTuningOptions options;
  options.seconds = 0.05;
  options.num_rows = kRows;
  options.max_bytes = 1 << 20;
  const absl::StatusOr<PieceTuning> own = TunePieces(options);
  ASSERT_TRUE(own.ok()) << own.status();
  ASSERT_EQ(own->pipelines.size(), 2u);
  EXPECT_NEAR(own->pipelines[0].share_of_rows_out, 0.5, 0.03);
  EXPECT_NEAR(own->pipelines[1].share_of_rows_out, 0.33, 0.03);

  options.pipelines = {{"pipeline in=dictionary(i32,utf8) | sort keys=dictionary(i32,utf8) [$0]"}};
  const absl::StatusOr<PieceTuning> none = TunePieces(options);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(none->found.default_ns, 0);
  EXPECT_EQ(
      PrintPieceTuning(*none),
      "pieces  not measured: column of a tuning job: dictionary(i32,utf8); accepted: all types but dictionaries: " +
          options.pipelines[0].spec + "\npieces: no comparison with the default\n");
  EXPECT_TRUE(absl::IsUnimplemented(ProvePieces(options, 1024).status()));
  options.pipelines = {{"pipeline in=i64 | nonsense"}};
  EXPECT_TRUE(absl::IsInvalidArgument(TunePieces(options).status()));
}

TEST(PieceTuner, ProvesASize) {
  PieceTuningOptions options;
  options.seconds = 0;
  options.num_rows = kRows;
  options.max_bytes = 1 << 20;
  const absl::StatusOr<PieceProof> proof = ProvePieces(options, 1024);
  ASSERT_TRUE(proof.ok()) << proof.status();
  EXPECT_EQ(proof->num_pairs, 3u);
  EXPECT_GT(proof->default_ns, 0);
  EXPECT_GT(proof->chosen_ns, 0);
}

TEST(PieceTuner, PrintsWhatItFound) {
  PieceTuning tuning;
  tuning.found = {8192, 5, 5.5, 0.01};
  tuning.candidates = {{8192, 5.01, 3}};
  tuning.pipelines = {{"pipeline in=i64 | sort keys=i64 [$0]", true, 1, ""}, {"pipeline of the tuner", false, 1, ""}};
  tuning.beats_default = true;
  const std::string head =
      "pieces  100 % of the rows reach the end of pipeline in=i64 | sort keys=i64 [$0]\n"
      "pieces  8192 rows, 5.01 ns a row\n";
  EXPECT_EQ(PrintPieceTuning(tuning), head + "pieces: 8192 rows, 5.00 ns a row; by default 5.50\n");
  tuning.beats_default = false;
  tuning.found = {4096, 5.5, 5.5, 0.01};
  EXPECT_EQ(PrintPieceTuning(tuning), head + "pieces: the default stays, 4096 rows, 5.50 ns a row\n");
}

}  // namespace
}  // namespace quern
