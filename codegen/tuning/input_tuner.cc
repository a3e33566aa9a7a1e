// SPDX-License-Identifier: Apache-2.0
// A processor prefetches what it sees to be read in order. How much prefetches of our own add depends on how well it
// sees that between the other loads of a loop, and on how far ahead it reads. So each distance is measured with loops
// of its kind, over columns that the caches cannot hold:
//
//     rows           filter i32 < 256 and i32 < 256          two columns, one after the other in each piece
//                    aggregate keys=i32 aggs=sum(i64)        two columns, and groups that are found in between
//     keyless_rows   aggregate aggs=sum(i64), four times     nothing but four columns
//
// All read the same buffer, each from where its last run ended, so that a run finds nothing in a cache that an earlier
// one left there. All distances take turns, and the best one meets the default (turns.h).
#include "codegen/tuning/input_tuner.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "codegen/base/text_words.h"
#include "codegen/compiler.h"
#include "codegen/inspect/capture.h"
#include "codegen/operators.h"
#include "codegen/tuning/job_data.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"

namespace quern {
namespace {

constexpr uint32_t kKeyedRows[] = {0, 512, 1024, 2048, 4096, 8192};
constexpr uint32_t kKeylessRows[] = {0, 128, 256, 512, 1024, 2048, 4096};
constexpr double kKeyedShare = 2. / 3;  // of the time: two of three kernels
constexpr double kRaceShare = 0.5;      // of the time of a distance; the rest is for the duel
constexpr size_t kLeastProofPairs = 3;
// Of the buffer. Several times an L3 cache, but no more than a machine with a large one can make at once; there, part
// of the columns comes from the cache.
constexpr uint64_t kCachesOfBuffer = 4;
constexpr uint64_t kLeastBytes = uint64_t{64} << 20, kMostBytes = uint64_t{128} << 20;
constexpr uint64_t kRunsOfBuffer = 4;  // that read all of it
constexpr uint64_t kPieceRows = thresholds::kPipelineRows;
// Each half of a 64-bit word is a number below 512: a key whose groups fit the L1 cache, and half of the rows pass each
// comparison. The words of a run add up to less than 2^62, below which additions are not checked one by one.
constexpr uint64_t kBitsOfWord = 0x000001ff000001ff;

struct LoopSpec {
  InputKind kind;
  const char* spec;
  size_t num_keys;     // of the columns of a batch; the others are payload
  uint32_t widths[4];  // of the columns, in bytes; 0: none
};
constexpr LoopSpec kLoops[] = {
    {InputKind::kKeyed, "filter i32 < 256 and i32 < 256", 2, {4, 4}},
    {InputKind::kKeyed, "aggregate keys=i32 aggs=sum(i64)", 1, {4, 8}},
    {InputKind::kKeyless, "aggregate aggs=sum(i64),sum(i64),sum(i64),sum(i64)", 0, {8, 8, 8, 8}},
};

double GeometricMeanOf(const tuning::Costs& first, const tuning::Costs& second) {
  tuning::Costs all = first;
  all.insert(all.end(), second.begin(), second.end());
  return tuning::GeometricMean(all);
}

// The memory of all columns.
class InputBuffer {
 public:
  static absl::StatusOr<InputBuffer> Make(uint64_t l3_bytes, uint64_t max_bytes) {
    InputBuffer buffer;
    buffer.bytes_ = std::clamp(l3_bytes * kCachesOfBuffer, kLeastBytes, kMostBytes);
    if (max_bytes != 0) buffer.bytes_ = std::clamp(max_bytes, uint64_t{1} << 20, buffer.bytes_);
    QUERN_RETURN_IF_ERROR(tuning::CheckMemory(buffer.bytes_));
    const uint64_t num_words = buffer.bytes_ / sizeof(uint64_t);
    buffer.words_ = std::make_unique_for_overwrite<uint64_t[]>(num_words);
    for (uint64_t i = 0; i < num_words; ++i) buffer.words_[i] = tuning::SplitMix(i) & kBitsOfWord;
    return buffer;
  }

  uint64_t bytes() const { return bytes_; }
  const char* begin() const { return reinterpret_cast<const char*>(words_.get()); }

 private:
  uint64_t bytes_ = 0;
  std::unique_ptr<uint64_t[]> words_;
};

// A loop with a kernel for each distance.
class InputLoop {
 public:
  InputLoop(const LoopSpec& spec, const InputBuffer& buffer) : spec_(spec) {
    uint64_t row_bytes = 0;
    for (const uint32_t width : spec.widths) row_bytes += width;
    num_rows_ = buffer.bytes() / row_bytes / kPieceRows * kPieceRows;
    const uint64_t pieces_a_run = std::max<uint64_t>(num_rows_ / kPieceRows / kRunsOfBuffer, 1);
    run_rows_ = pieces_a_run * kPieceRows;
    const char* begin = buffer.begin();
    for (const uint32_t width : spec.widths) {
      if (width != 0) columns_.push_back(begin);
      begin += num_rows_ * width;
    }
  }

  InputKind kind() const { return spec_.kind; }

  absl::Status Compile(uint32_t rows) {
    CompileOptions options;
    options.engine = Engine::kJit;
    options.overrides = {{"prefetch_input_rows", std::to_string(rows)}};
    QUERN_ASSIGN_OR_RETURN(const CompiledKernel compiled, CompileText(spec_.spec, options));
    kernels_[rows] = compiled.kernel;
    return absl::OkStatus();
  }

  // Reads the next rows. Returns ns a row.
  absl::StatusOr<double> Run(uint32_t rows) {
    const std::shared_ptr<const Kernel>& kernel = kernels_.at(rows);
    if (first_ + run_rows_ > num_rows_) first_ = 0;
    const uint64_t begin = std::exchange(first_, first_ + run_rows_);
    if (Is<FilterSpec>(kernel->plan.spec)) {
      const std::shared_ptr<const RowFilter> filter = MakeRowFilter(kernel);
      return Time(begin, [&](const BatchView& piece) { return filter->Select(piece, passed_.data()).status(); });
    }
    const std::shared_ptr<HashAggregate> groups = MakeHashAggregate(kernel, budget_);
    return Time(begin, [&](const BatchView& piece) { return groups->Append(piece); });
  }

 private:
  // In pieces, as a pipeline sends them.
  template <class Take>
  absl::StatusOr<double> Time(uint64_t begin, Take&& take) const {
    const double start = tuning::NowSeconds();
    for (uint64_t done = 0; done < run_rows_; done += kPieceRows) {
      const BatchView piece = Piece(begin + done, run_rows_ - done);
      QUERN_RETURN_IF_ERROR(take(piece));
    }
    return std::max((tuning::NowSeconds() - start) * 1e9 / static_cast<double>(run_rows_), 1e-3);
  }

  // rows_left: of the run.
  BatchView Piece(uint64_t first, uint64_t rows_left) const {
    BatchView piece;
    piece.num_rows = kPieceRows;
    piece.num_following = rows_left - kPieceRows;
    for (size_t c = 0; c < columns_.size(); ++c) {
      QuernColumn column = {};
      column.values = columns_[c] + first * spec_.widths[c];
      (c < spec_.num_keys ? piece.keys : piece.payload).push_back(column);
    }
    return piece;
  }

  const LoopSpec& spec_;
  uint64_t num_rows_ = 0, run_rows_ = 0;
  uint64_t first_ = 0;  // of the next run
  std::vector<const char*> columns_;
  std::map<uint32_t, std::shared_ptr<const Kernel>> kernels_;  // by distance
  std::shared_ptr<MemoryBudget> budget_ = std::make_shared<MemoryBudget>();
  std::vector<uint32_t> passed_ = std::vector<uint32_t>(kPieceRows);
};

// All loops over one buffer.
class InputLoops {
 public:
  static absl::StatusOr<InputLoops> Make(const InputTuningOptions& options, const Machine& host) {
    if (options.progress) options.progress("input columns");
    InputLoops loops(options);
    QUERN_ASSIGN_OR_RETURN(loops.buffer_, InputBuffer::Make(host.l3_bytes, options.max_bytes));
    for (const LoopSpec& spec : kLoops) loops.loops_.emplace_back(spec, loops.buffer_);
    return loops;
  }

  absl::Status Compile(InputKind kind, uint32_t rows) {
    for (InputLoop& loop : loops_)
      if (loop.kind() == kind) QUERN_RETURN_IF_ERROR(loop.Compile(rows));
    return absl::OkStatus();
  }

  // By kernel of the kind.
  absl::StatusOr<tuning::Costs> Run(InputKind kind, uint32_t rows) {
    if (options_.progress) options_.progress("input columns, " + std::to_string(rows) + " rows ahead");
    tuning::Costs costs;
    for (InputLoop& loop : loops_) {
      if (loop.kind() != kind) continue;
      QUERN_ASSIGN_OR_RETURN(const double ns, loop.Run(rows));
      costs.push_back(ns);
    }
    return costs;
  }

 private:
  explicit InputLoops(const InputTuningOptions& options) : options_(options) {}

  const InputTuningOptions& options_;
  InputBuffer buffer_;
  std::vector<InputLoop> loops_;
};

tuning::TurnClock ClockOf(const InputTuningOptions& options) {
  return {tuning::NowSeconds, tuning::NowSeconds() + options.seconds,
          [stop = options.stop] { return stop != nullptr && stop->load(std::memory_order_relaxed); }};
}

std::vector<uint32_t> CandidatesOf(InputKind kind) {
  return kind == InputKind::kKeyed ? std::vector<uint32_t>(std::begin(kKeyedRows), std::end(kKeyedRows))
                                   : std::vector<uint32_t>(std::begin(kKeylessRows), std::end(kKeylessRows));
}

absl::StatusOr<InputSearch> SearchOne(InputKind kind, uint32_t by_default, const tuning::TurnClock& clock,
                                      const RunInput& run) {
  const std::vector<uint32_t> candidates = CandidatesOf(kind);
  InputSearch search;
  search.rows = by_default;
  const double until = clock.now() + kRaceShare * (clock.end - clock.now());
  QUERN_ASSIGN_OR_RETURN(const tuning::Race race, tuning::RunRace(candidates.size(), until, clock, [&](size_t choice) {
                           return run(kind, candidates[choice]);
                         }));
  for (size_t i = 0; i < race.medians.size(); ++i)
    search.candidates.push_back({candidates[i], tuning::GeometricMean(race.medians[i]), race.num_rounds});
  const uint32_t rows[] = {by_default, race.medians.empty() ? by_default : candidates[race.best]};
  QUERN_ASSIGN_OR_RETURN(const tuning::Duel duel,
                         tuning::RunDuel(0, clock, [&](size_t choice) { return run(kind, rows[choice]); }));
  search.noise = duel.noise;
  search.costs = search.default_costs = duel.medians[0];
  search.beats_default = rows[1] != rows[0] && duel.RivalWins();
  if (!search.beats_default) return search;
  search.rows = rows[1];
  search.costs = duel.medians[1];
  return search;
}

std::string DistanceText(uint32_t rows, double ns) {
  return (rows == 0 ? "none" : std::to_string(rows) + " rows ahead") + ", " + PrintFixed(ns, 2) + " ns";
}

std::string PrintSearch(const std::string& name, const InputSearch& search) {
  std::string text;
  for (const InputCandidate& candidate : search.candidates)
    text += name + "  " + DistanceText(candidate.rows, candidate.ns) + " a row\n";
  if (search.default_costs.empty()) return text + name + ": no comparison with the default\n";
  const double default_ns = tuning::GeometricMean(search.default_costs);
  if (!search.beats_default)
    return text + name + ": the default stays, " + DistanceText(search.rows, default_ns) + " a row\n";
  return text + name + ": " + DistanceText(search.rows, tuning::GeometricMean(search.costs)) + " a row; by default " +
         PrintFixed(default_ns, 2) + "\n";
}

}  // namespace

ProfileInput InputTuning::Found() const {
  ProfileInput found;
  found.rows = {keyed.rows, keyless.rows};
  found.noise = std::max(keyed.noise, keyless.noise);
  if (keyed.costs.empty() || keyless.costs.empty()) return found;
  found.ns = GeometricMeanOf(keyed.costs, keyless.costs);
  found.default_ns = GeometricMeanOf(keyed.default_costs, keyless.default_costs);
  return found;
}

absl::StatusOr<InputTuning> SearchInput(const InputRows& defaults, const tuning::TurnClock& clock,
                                        const RunInput& run) {
  tuning::TurnClock of_keyed = clock;
  of_keyed.end = clock.now() + kKeyedShare * (clock.end - clock.now());
  InputTuning tuning;
  QUERN_ASSIGN_OR_RETURN(tuning.keyed, SearchOne(InputKind::kKeyed, defaults.rows, of_keyed, run));
  QUERN_ASSIGN_OR_RETURN(tuning.keyless, SearchOne(InputKind::kKeyless, defaults.keyless_rows, clock, run));
  return tuning;
}

absl::StatusOr<InputTuning> TuneInput(const InputTuningOptions& options) {
  const tuning::TurnClock clock = ClockOf(options);
  QUERN_ASSIGN_OR_RETURN(const Machine host, HostMachine());
  const InputRows defaults = DefaultInputRows(host);
  QUERN_ASSIGN_OR_RETURN(InputLoops loops, InputLoops::Make(options, host));
  for (const InputKind kind : {InputKind::kKeyed, InputKind::kKeyless}) {
    std::vector<uint32_t> all = CandidatesOf(kind);
    all.push_back(kind == InputKind::kKeyed ? defaults.rows : defaults.keyless_rows);
    for (const uint32_t rows : all) QUERN_RETURN_IF_ERROR(loops.Compile(kind, rows));
  }
  return SearchInput(defaults, clock, [&](InputKind kind, uint32_t rows) { return loops.Run(kind, rows); });
}

absl::StatusOr<InputProof> ProveInput(const InputTuningOptions& options, const InputRows& rows) {
  const CapturePause pause;
  const tuning::TurnClock clock = ClockOf(options);
  QUERN_ASSIGN_OR_RETURN(const Machine host, HostMachine());
  QUERN_ASSIGN_OR_RETURN(InputLoops loops, InputLoops::Make(options, host));
  const InputRows choices[] = {DefaultInputRows(host), rows};
  for (const InputRows& choice : choices) {
    QUERN_RETURN_IF_ERROR(loops.Compile(InputKind::kKeyed, choice.rows));
    QUERN_RETURN_IF_ERROR(loops.Compile(InputKind::kKeyless, choice.keyless_rows));
  }
  const auto run = [&](size_t choice) -> absl::StatusOr<tuning::Costs> {
    QUERN_ASSIGN_OR_RETURN(tuning::Costs costs, loops.Run(InputKind::kKeyed, choices[choice].rows));
    QUERN_ASSIGN_OR_RETURN(const tuning::Costs keyless, loops.Run(InputKind::kKeyless, choices[choice].keyless_rows));
    costs.insert(costs.end(), keyless.begin(), keyless.end());
    return costs;
  };
  QUERN_ASSIGN_OR_RETURN(const tuning::Duel duel, tuning::RunDuel(kLeastProofPairs, clock, run));
  return InputProof{tuning::GeometricMean(duel.medians[0]), tuning::GeometricMean(duel.medians[1]), duel.noise,
                    duel.num_pairs};
}

std::string PrintInputTuning(const InputTuning& tuning) {
  return PrintSearch("input", tuning.keyed) + PrintSearch("input without keys", tuning.keyless);
}

}  // namespace quern
