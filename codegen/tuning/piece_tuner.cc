// SPDX-License-Identifier: Apache-2.0
// Short pieces pay for what happens once a piece, long ones leave the cache between two steps. Where the best lies
// depends on the caches and, less, on the pipeline. A profile has one size, so the tuner measures a pipeline that
// computes much, and one that waits for a table:
//
//     pieces      filter, map, sums    filter, probe, map, sums      geometric mean
//     1,024                  5.3 ns                     10.4 ns              7.4 ns
//     ..
//     4,096                  5.0 ns                      9.8 ns              7.0 ns
//     16,384                 4.8 ns                     10.3 ns              7.0 ns      the default
//
// All sizes take turns, and the best one meets the default (turns.h).
#include "codegen/tuning/piece_tuner.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "codegen/base/text_words.h"
#include "codegen/inspect/capture.h"
#include "codegen/tuning/job_data.h"
#include "codegen/tuning/pipeline_job.h"
#include "runtime/base/status.h"

namespace quern {
namespace {

constexpr uint32_t kSizes[] = {1024, 2048, 4096, 8192, 16384, 32768};
constexpr double kRaceShare = 0.5;  // of the time; the rest is for the duel
constexpr double kRowsPerSecond = uint64_t{1} << 20;
constexpr uint64_t kLeastRows = uint64_t{1} << 16;  // several of the largest pieces
constexpr size_t kLeastProofPairs = 3;

#define QUERN_AMOUNTS(discount, tax) \
  "multiply($0,subtract(1:f64," discount ")),multiply(multiply($0,subtract(1:f64," discount ")),add(1:f64," tax "))"
constexpr const char* kOwnPipelines[] = {
    "pipeline in=i32,i32,f64,f64,f64 | filter i32 < 90 [$0]"
    " | map in=f64,f64,f64 out=" QUERN_AMOUNTS("$1", "$2") " [$2, $3, $4]"
    " | aggregate keys=i32 aggs=sum(f64),sum(f64),sum(f64),count_star [$1; $2, $5, $6]",
    "pipeline in=i32,i32,i64,f64,f64 | filter i32 < 90 [$0]"
    " | probe join.inner keys=i64 build=f64 probe=i32,f64,f64 [$2; $1, $3, $4]"
    " | map in=f64,f64,f64 out=" QUERN_AMOUNTS("$1", "$2") " [$1, $2, $3]"
    " | aggregate keys=i32 aggs=sum(f64),sum(f64),count_star [$0; $4, $5]",
};
#undef QUERN_AMOUNTS

// Whether a pipeline is only not one that generated rows can go through.
bool IsLeftOut(const absl::Status& status) {
  return absl::IsUnimplemented(status) || absl::IsResourceExhausted(status) || absl::IsOutOfRange(status);
}

// The pipelines that can run, with their rows.
class Pipelines {
 public:
  static absl::StatusOr<Pipelines> Make(const PieceTuningOptions& options) {
    std::vector<GivenPipeline> pipelines = options.pipelines;
    if (pipelines.empty())
      for (const char* spec : kOwnPipelines) pipelines.push_back({spec});
    const double seconds_each = options.seconds / static_cast<double>(pipelines.size());
    const uint64_t rows_in_time = std::max(static_cast<uint64_t>(seconds_each * kRowsPerSecond), kLeastRows);
    Pipelines made;
    for (const auto& [spec, params, given_rows] : pipelines) {
      if (options.progress) options.progress("rows for " + spec);
      uint64_t num_rows = std::min(rows_in_time, options.num_rows);
      if (given_rows != 0) num_rows = std::min(num_rows, given_rows);
      absl::StatusOr<std::unique_ptr<tuning::PipelineJob>> job =
          tuning::PipelineJob::Make(spec, params, num_rows, options.max_bytes);
      if (!job.ok() && !options.skips_errors && !IsLeftOut(job.status())) return job.status();
      made.measured_.push_back({spec, !options.pipelines.empty(), job.ok() ? (*job)->share_of_rows_out() : 0,
                                job.ok() ? "" : std::string(job.status().message())});
      if (job.ok()) made.jobs_.push_back(*std::move(job));
    }
    return made;
  }

  absl::StatusOr<tuning::Costs> Run(uint32_t rows) const {
    tuning::Costs costs;
    for (const auto& job : jobs_) {
      QUERN_ASSIGN_OR_RETURN(const double ns, job->Run(rows));
      costs.push_back(ns);
    }
    return costs;
  }

  bool empty() const { return jobs_.empty(); }
  const std::vector<MeasuredPipeline>& measured() const { return measured_; }

 private:
  std::vector<std::unique_ptr<tuning::PipelineJob>> jobs_;
  std::vector<MeasuredPipeline> measured_;
};

tuning::TurnClock ClockOf(const PieceTuningOptions& options) {
  return {tuning::NowSeconds, tuning::NowSeconds() + options.seconds,
          [stop = options.stop] { return stop != nullptr && stop->load(std::memory_order_relaxed); }};
}

RunPieces RunOf(const PieceTuningOptions& options, const Pipelines& pipelines) {
  return [&options, &pipelines](uint32_t rows) {
    if (options.progress) options.progress("pieces of " + std::to_string(rows) + " rows");
    return pipelines.Run(rows);
  };
}

std::string SizeText(uint32_t rows, double ns) { return std::to_string(rows) + " rows, " + PrintFixed(ns, 2) + " ns"; }

}  // namespace

absl::StatusOr<PieceTuning> SearchPieces(const tuning::TurnClock& clock, const RunPieces& run) {
  PieceTuning tuning;
  const double until = clock.now() + kRaceShare * (clock.end - clock.now());
  QUERN_ASSIGN_OR_RETURN(const tuning::Race race, tuning::RunRace(std::size(kSizes), until, clock,
                                                                  [&](size_t choice) { return run(kSizes[choice]); }));
  for (size_t i = 0; i < race.medians.size(); ++i)
    tuning.candidates.push_back({kSizes[i], tuning::GeometricMean(race.medians[i]), race.num_rounds});
  ProfilePieces& found = tuning.found;
  const uint32_t sizes[] = {found.rows, race.medians.empty() ? found.rows : kSizes[race.best]};
  QUERN_ASSIGN_OR_RETURN(const tuning::Duel duel,
                         tuning::RunDuel(0, clock, [&](size_t choice) { return run(sizes[choice]); }));
  found.noise = duel.noise;
  if (duel.num_pairs == 0) return tuning;
  found.default_ns = found.ns = tuning::GeometricMean(duel.medians[0]);
  tuning.beats_default = sizes[1] != sizes[0] && duel.RivalWins();
  if (!tuning.beats_default) return tuning;
  found.rows = sizes[1];
  found.ns = tuning::GeometricMean(duel.medians[1]);
  return tuning;
}

absl::StatusOr<PieceTuning> TunePieces(const PieceTuningOptions& options) {
  const tuning::TurnClock clock = ClockOf(options);
  QUERN_ASSIGN_OR_RETURN(const Pipelines pipelines, Pipelines::Make(options));
  PieceTuning tuning;
  if (!pipelines.empty()) {
    QUERN_ASSIGN_OR_RETURN(tuning, SearchPieces(clock, RunOf(options, pipelines)));
  }
  tuning.pipelines = pipelines.measured();
  return tuning;
}

absl::StatusOr<PieceProof> ProvePieces(const PieceTuningOptions& options, uint32_t rows) {
  const CapturePause pause;
  const tuning::TurnClock clock = ClockOf(options);
  QUERN_ASSIGN_OR_RETURN(const Pipelines pipelines, Pipelines::Make(options));
  if (pipelines.empty()) return absl::UnimplementedError(pipelines.measured().front().why_not);
  const uint32_t sizes[] = {ProfilePieces().rows, rows};
  const RunPieces run = RunOf(options, pipelines);
  QUERN_ASSIGN_OR_RETURN(const tuning::Duel duel,
                         tuning::RunDuel(kLeastProofPairs, clock, [&](size_t choice) { return run(sizes[choice]); }));
  return PieceProof{tuning::GeometricMean(duel.medians[0]), tuning::GeometricMean(duel.medians[1]), duel.noise,
                    duel.num_pairs};
}

std::string PrintPieceTuning(const PieceTuning& tuning) {
  std::string text;
  for (const MeasuredPipeline& pipeline : tuning.pipelines) {
    if (!pipeline.is_given) continue;
    if (pipeline.why_not.empty())
      text += "pieces  " + PrintFixed(pipeline.share_of_rows_out * 100, 0) + " % of the rows reach the end of " +
              pipeline.spec + "\n";
    else text += "pieces  not measured: " + pipeline.why_not + ": " + pipeline.spec + "\n";
  }
  for (const PieceCandidate& candidate : tuning.candidates)
    text += "pieces  " + SizeText(candidate.rows, candidate.ns) + " a row\n";
  const ProfilePieces& found = tuning.found;
  if (found.default_ns == 0) return text + "pieces: no comparison with the default\n";
  if (!tuning.beats_default)
    return text + "pieces: the default stays, " + SizeText(found.rows, found.default_ns) + " a row\n";
  return text + "pieces: " + SizeText(found.rows, found.ns) + " a row; by default " + PrintFixed(found.default_ns, 2) +
         "\n";
}

}  // namespace quern
