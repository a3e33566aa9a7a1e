// SPDX-License-Identifier: Apache-2.0
// The most useful cells come first. Each gets an even share of the budget that is left, so that a cell which ends early
// leaves its time to the others, and a budget that is too small still measures the useful cells well. Example, 60 s and
// 60 cells:
//
//     0 s    machine facts, 3 s (skipped if the starting profile has them)
//     3 s    probe_open packed 2^27: 57 s / 60 = 0.95 s for its table and its race; 0.8 s used
//     3.8 s  update_open packed 2^27: 56.2 s / 59
//     ..
//
// With several threads a third of the budget is reserved for a second pass: cells whose setting beat the default at one
// thread race again with all threads, and both entries are kept.
//
// A table that could not be built in time is not begun; smaller tables of the same loop give an estimate.
//
// An error in one cell does not end the tuning: a table without enough memory, or a layout that its keys do not get, is
// left out.
#include "codegen/tuning/tuner.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "codegen/plan/pipeline_plan.h"
#include "codegen/plan/scope.h"
#include "codegen/tuning/job.h"
#include "codegen/tuning/job_data.h"
#include "codegen/tuning/pipeline_job.h"
#include "codegen/tuning/replay.h"
#include "runtime/base/fork_safety.h"
#include "runtime/base/status.h"
#include "runtime/pipeline/pipeline_spec.h"

namespace quern {
namespace {

using tuning::NowSeconds;

constexpr double kFactsShare = 0.1;  // of the budget, at most 3 s
constexpr double kThreadsShare = 1. / 3;
constexpr double kSpillShare = 0.1, kMostSpillSeconds = 6, kLeastSpillSeconds = 1;
// Of pieces: for pipelines of the tuner's own, and for those that were given, however short the time.
constexpr double kPieceShare = 0.05, kMostPieceSeconds = 3, kLeastPieceSeconds = 0.5;
constexpr double kGivenPieceShare = 0.25, kMostGivenPieceSeconds = 10;
constexpr double kPieceDriftShare = 0.2;
// Of input columns.
constexpr double kInputShare = 0.05, kMostInputSeconds = 3, kLeastInputSeconds = 0.5;
constexpr double kInputDriftShare = 0.2;
constexpr size_t kMostReplayedPipelines = 4;
constexpr double kLeastCellSeconds = 0.1;  // a shorter race is inconclusive
constexpr double kMostCellSeconds = 3;     // enough for kPatient too
constexpr uint64_t kMostTableBytes = uint64_t{2} << 30;
constexpr double kGuessedSetUpPerByte = 2e-9;
constexpr uint32_t kSetUpClass = 24;
constexpr size_t kCheckedEntries = 8;

std::string ShowBytes(uint64_t bytes) {
  if (bytes >> 20 != 0) return std::to_string(bytes >> 20) + " MiB";
  return std::to_string(bytes >> 10) + " KiB";
}

std::string Doing(const TuningCell& cell) {
  std::string text = std::string(LoopText(cell.loop)) + " " + KeyClassText(cell.keys) + " " +
                     ShowBytes(uint64_t{1} << cell.size_class);
  if (cell.pipeline > 1) text += ", " + std::to_string(cell.pipeline) + " in a pipeline";
  return cell.threads > 1 ? text + ", " + std::to_string(cell.threads) + " threads" : text;
}

bool IsSkipped(const absl::Status& status) {
  return absl::IsUnimplemented(status) || absl::IsResourceExhausted(status);
}

absl::StatusOr<KernelSpec> ParseTunedSpec(const std::string& text) {
  QUERN_ASSIGN_OR_RETURN(KernelSpec spec, ParseSpec(text));
  if (!Is<FilterSpec, MapSpec>(spec)) return spec;
  return InvalidArgument("spec to tune: " + Show(text) +
                         "; accepted: joins, aggregations and sorts, which touch tables at random, and pipelines");
}

bool Probes(PrefetchLoop loop) {
  return loop == PrefetchLoop::kProbeDense || loop == PrefetchLoop::kProbeOpen || loop == PrefetchLoop::kProbeUnchained;
}

bool HasCell(const std::vector<CellJob>& jobs, const TuningCell& cell) {
  return std::any_of(jobs.begin(), jobs.end(), [&](const CellJob& job) { return job.cell == cell; });
}

// A cell whose loop the spec's kernel has, with the spec's keys.
void AddCell(const KernelSpec& spec, const TuningCell& cell, std::vector<CellJob>* jobs) {
  const bool applies = HasLoop(spec, cell.loop) && KeyClassOf(spec) == cell.keys;
  if (!applies || HasCell(*jobs, cell)) return;
  jobs->push_back({cell, {}});
  jobs->back().data.spec = PrintSpec(spec);
}

// The loops that a pipeline runs: its tables are probed by turns, and built elsewhere; a table at its end is built.
void AddCellsOfPipeline(const PipelineSpec& pipeline, const std::vector<TuningCell>& all, std::vector<CellJob>* jobs) {
  const uint32_t in_turn = std::min(NumProbedTables(pipeline), kMostTablesInTurn);
  for (TuningCell cell : all) {
    if (cell.pipeline != 1) continue;
    if (pipeline.end.has_value() && !Probes(cell.loop)) AddCell(*pipeline.end, cell, jobs);
    if (!Probes(cell.loop)) continue;
    cell.pipeline = in_turn;
    for (const PipelineStepSpec& step : pipeline.steps)
      if (Is<JoinSpec>(step.spec) && !step.is_reduction) AddCell(step.spec, cell, jobs);
  }
}

class Tuner {
 public:
  explicit Tuner(const TuningOptions& options) : options_(options), begin_(NowSeconds()) {
    result_.effort = options.effort;
  }

  absl::StatusOr<TuningResult> Run() {
    for (const std::string& spec : options_.specs) QUERN_RETURN_IF_ERROR(CheckTunedSpec(spec));
    if (options_.spill_alone) return TuneSpillingAlone();
    QUERN_RETURN_IF_ERROR(FindFacts());
    QUERN_RETURN_IF_ERROR(TuneSpill(std::min(kMostSpillSeconds, options_.budget_seconds * kSpillShare)));
    QUERN_RETURN_IF_ERROR(TunePipelines());
    QUERN_RETURN_IF_ERROR(TuneInputColumns());
    QUERN_ASSIGN_OR_RETURN(const std::vector<CellJob> jobs, Jobs());
    untuned_.machine = result_.facts.signature;
    if (!result_.facts.memory.empty()) untuned_.facts = result_.facts;
    const bool checks_threads = options_.threads > 1;
    size_t next = 0;
    QUERN_RETURN_IF_ERROR(TuneAll(jobs, options_.budget_seconds * (checks_threads ? 1 - kThreadsShare : 1), &next));
    if (checks_threads) {
      size_t next_with_threads = 0;
      QUERN_RETURN_IF_ERROR(TuneAll(WithThreads(), options_.budget_seconds, &next_with_threads));
      QUERN_RETURN_IF_ERROR(TuneAll(jobs, options_.budget_seconds, &next));  // the rest, if there is time left
    }
    result_.seconds = Now();
    CountReplayed();
    MakeProfile();
    return std::move(result_);
  }

 private:
  double Now() const { return NowSeconds() - begin_; }
  bool Stops() {
    if (options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed)) result_.stopped = true;
    return result_.stopped;
  }
  void Say(const std::string& doing) const {
    if (options_.progress) options_.progress({std::min(Now() / options_.budget_seconds, 1.0), doing});
  }

  uint64_t MostTableBytes() const {
    return options_.max_bytes != 0 ? options_.max_bytes : std::min(kMostTableBytes, tuning::FreeMemoryBytes() / 2);
  }

  // Whether the starting profile has facts of this machine, up to about the largest table.
  bool Knows(const MachineSignature& here) const {
    if (options_.start == nullptr || !options_.start->facts ||
        !SignatureDifference(here, options_.start->machine).empty())
      return false;
    uint64_t largest = 0;
    for (const MemoryFact& fact : options_.start->facts->memory) largest = std::max(largest, fact.bytes);
    return largest >= MostTableBytes() / 4;
  }

  absl::Status FindFacts() {
    const MachineSignature here = HostSignature();
    const bool knows = Knows(here);
    if (knows) result_.facts = *options_.start->facts;
    result_.facts.signature = here;
    if (knows || options_.effort == TuningEffort::kEstimate) return absl::OkStatus();
    MachineFactsOptions measure;
    measure.seconds = std::min(3.0, options_.budget_seconds * kFactsShare);
    measure.max_bytes = options_.max_bytes;
    measure.progress = [this](const std::string& doing) { Say(doing); };
    measure.stop = options_.stop;
    absl::StatusOr<MachineFacts> facts = MeasureMachine(measure);
    if (absl::IsCancelled(facts.status()) && Stops()) return absl::OkStatus();  // before the first cell
    QUERN_RETURN_IF_ERROR(facts.status());
    result_.facts = *std::move(facts);
    return absl::OkStatus();
  }

  // A folder to which nothing can be spilled keeps no loop from being tuned.
  absl::Status TuneSpill(double seconds) {
    if (options_.spill_folder.empty() || seconds < kLeastSpillSeconds || Stops()) return absl::OkStatus();
    SpillTuningOptions spill;
    spill.folder = options_.spill_folder;
    spill.seconds = seconds;
    spill.progress = [this](const std::string& doing) { Say(doing); };
    spill.stop = options_.stop;
    absl::StatusOr<SpillTuning> tuned = TuneSpilling(spill);
    if (absl::IsUnavailable(tuned.status()) && !options_.spill_alone) return absl::OkStatus();
    QUERN_RETURN_IF_ERROR(tuned.status());
    result_.spill = *std::move(tuned);
    return absl::OkStatus();
  }

  // Of the pipelines that were given, and of the captured ones that go by a profile's pieces, those that took longest.
  std::vector<GivenPipeline> PipelinesToTune() const {
    std::vector<GivenPipeline> pipelines;
    for (const std::string& spec : options_.specs)
      if (IsPipelineText(spec)) pipelines.push_back({spec});
    for (const CapturedJob& job : options_.replay) {
      if (pipelines.size() == kMostReplayedPipelines) break;
      const bool has_pieces = std::any_of(job.params.begin(), job.params.end(),
                                          [](const auto& param) { return param.first == "piece_rows"; });
      const bool is_there = std::any_of(pipelines.begin(), pipelines.end(),
                                        [&](const GivenPipeline& pipeline) { return pipeline.spec == job.spec; });
      if (IsPipelineText(job.spec) && !has_pieces && !is_there && job.build_rows >= 1)
        pipelines.push_back({job.spec, job.params, static_cast<uint64_t>(job.build_rows)});
    }
    return pipelines;
  }

  // The pieces of these; without any specs or jobs, of the tuner's own.
  absl::Status TunePipelines() {
    PieceTuningOptions pieces;
    pieces.pipelines = PipelinesToTune();
    pieces.skips_errors = !options_.replay.empty();  // such as functions of the host that are not here
    if (!pieces.pipelines.empty()) {
      pieces.seconds = std::min(kMostGivenPieceSeconds, options_.budget_seconds * kGivenPieceShare);
    } else {
      pieces.seconds = std::min(kMostPieceSeconds, options_.budget_seconds * kPieceShare);
      if (pieces.seconds < kLeastPieceSeconds || !options_.specs.empty() || !options_.replay.empty())
        return absl::OkStatus();
    }
    if (options_.effort == TuningEffort::kEstimate || Stops()) return absl::OkStatus();
    pieces.max_bytes = MostTableBytes();
    pieces.progress = [this](const std::string& doing) { Say(doing); };
    pieces.stop = options_.stop;
    QUERN_ASSIGN_OR_RETURN(result_.pieces, TunePieces(pieces));
    return absl::OkStatus();
  }

  // Whoever names kernels or jobs wants these tuned.
  absl::Status TuneInputColumns() {
    InputTuningOptions input;
    input.seconds = std::min(kMostInputSeconds, options_.budget_seconds * kInputShare);
    const bool is_asked = options_.specs.empty() && options_.replay.empty();
    if (!is_asked || input.seconds < kLeastInputSeconds) return absl::OkStatus();
    if (options_.effort == TuningEffort::kEstimate || Stops()) return absl::OkStatus();
    input.max_bytes = MostTableBytes();
    input.progress = [this](const std::string& doing) { Say(doing); };
    input.stop = options_.stop;
    absl::StatusOr<InputTuning> tuned = TuneInput(input);
    if (IsSkipped(tuned.status())) return absl::OkStatus();
    QUERN_RETURN_IF_ERROR(tuned.status());
    result_.input = *std::move(tuned);
    return absl::OkStatus();
  }

  absl::StatusOr<TuningResult> TuneSpillingAlone() {
    const MachineSignature here = HostSignature();
    if (options_.start != nullptr && options_.start->facts && Knows(here)) result_.facts = *options_.start->facts;
    result_.facts.signature = here;
    QUERN_RETURN_IF_ERROR(TuneSpill(std::max(options_.budget_seconds, kLeastSpillSeconds)));
    result_.seconds = Now();
    MakeProfile();
    return std::move(result_);
  }

  absl::StatusOr<std::vector<CellJob>> Jobs() const {
    if (!options_.replay.empty()) return CellsToReplay(options_.replay, MostTableBytes());
    // With few loops there is time for all sizes.
    const bool all_sizes = !options_.specs.empty() && options_.effort == TuningEffort::kMeasure;
    const TuningEffort effort = all_sizes ? TuningEffort::kPatient : options_.effort;
    const std::vector<TuningCell> cells = CellsToTune(effort, result_.facts, MostTableBytes());
    std::vector<CellJob> jobs;
    for (const std::string& spec : options_.specs) {
      QUERN_ASSIGN_OR_RETURN(const std::vector<CellJob> of_spec, CellsOfSpec(spec, cells));
      for (const CellJob& job : of_spec)
        if (!HasCell(jobs, job.cell)) jobs.push_back(job);
    }
    if (!options_.specs.empty()) return jobs;
    for (const TuningCell& cell : cells) jobs.push_back({cell, {}});
    return jobs;
  }

  // Tunes jobs from jobs[*next] on, until `until` seconds after the beginning.
  absl::Status TuneAll(const std::vector<CellJob>& jobs, double until, size_t* next) {
    for (size_t& i = *next; i < jobs.size(); ++i) {
      const double left = until - Now();
      if (Stops() || left < kLeastCellSeconds) return absl::OkStatus();
      if (SetUpSeconds(jobs[i].cell) + kLeastCellSeconds > left) continue;
      double weight_left = 0;
      for (size_t k = i; k < jobs.size(); ++k) weight_left += jobs[k].weight;
      const double share = left * jobs[i].weight / weight_left;
      const absl::Status status = TuneOne(
          jobs[i], std::min(std::clamp(share, kLeastCellSeconds, kMostCellSeconds + SetUpSeconds(jobs[i].cell)), left));
      // Some jobs of a host cannot run here, such as those that call the host's own functions.
      if (!status.ok() && !IsSkipped(status) && options_.replay.empty()) return status;
    }
    return absl::OkStatus();
  }

  // An estimate of the time to make a cell's table and rows: from the time per byte of others of the loop, or a guess.
  double SetUpSeconds(const TuningCell& cell) const {
    const double per_byte = set_up_per_byte_[static_cast<size_t>(cell.loop)];
    const double bytes = static_cast<double>(uint64_t{cell.pipeline} * cell.threads << cell.size_class);
    return bytes * (per_byte != 0 ? per_byte : kGuessedSetUpPerByte);
  }
  void SawSetUp(const TuningCell& cell, double seconds) {
    // For small tables, the pool and the compiler take the time.
    if (cell.size_class < kSetUpClass) return;
    double& per_byte = set_up_per_byte_[static_cast<size_t>(cell.loop)];
    per_byte =
        std::max(per_byte, seconds / static_cast<double>(uint64_t{cell.pipeline} * cell.threads << cell.size_class));
  }

  absl::Status TuneOne(const CellJob& cell_job, double seconds) {
    Say(Doing(cell_job.cell));
    if (Stops()) return absl::OkStatus();  // the progress callback may have set `stop`
    const double start = NowSeconds();
    TuningData data = cell_job.data;
    data.facts = &untuned_;
    QUERN_ASSIGN_OR_RETURN(const std::unique_ptr<TuningJob> job, MakeTuningJob(cell_job.cell, data));
    SawSetUp(cell_job.cell, NowSeconds() - start);
    TuningCell cell = cell_job.cell;
    cell.size_class = SizeClassOf(job->table_bytes());  // as built: some tables only come in powers of two
    if (std::any_of(result_.cells.begin(), result_.cells.end(),
                    [&](const CellResult& result) { return result.cell == cell; }))
      return absl::OkStatus();
    SearchOptions search;
    search.effort = options_.effort;
    search.seconds = std::max(seconds - (NowSeconds() - start), kLeastCellSeconds);
    QUERN_ASSIGN_OR_RETURN(CellResult found, SearchCell(cell, job.get(), search));
    result_.cells.push_back(std::move(found));
    measured_.push_back(cell_job);
    return absl::OkStatus();
  }

  // Tunes the cells that beat the default at one thread again, with all threads.
  std::vector<CellJob> WithThreads() const {
    std::vector<CellJob> with_threads;
    for (size_t i = 0; i < result_.cells.size(); ++i) {
      if (!result_.cells[i].beats_default) continue;
      CellJob job = measured_[i];
      job.cell = result_.cells[i].cell;
      job.cell.threads = options_.threads;
      with_threads.push_back(std::move(job));
    }
    return with_threads;
  }

  bool HasMeasuredPieces(const std::string& spec) const {
    if (!result_.pieces.has_value() || result_.pieces->found.default_ns == 0) return false;
    const std::vector<MeasuredPipeline>& pipelines = result_.pieces->pipelines;
    return std::any_of(pipelines.begin(), pipelines.end(), [&](const MeasuredPipeline& pipeline) {
      return pipeline.spec == spec && pipeline.why_not.empty();
    });
  }

  // Counts the jobs of which a loop was measured, in its own cell or in one shared with a more expensive job, or the
  // pieces.
  void CountReplayed() {
    double all_ns = 0, replayed_ns = 0;
    for (const CapturedJob& job : options_.replay) {
      const std::vector<CellJob> cells = CellsToReplay({job}, UINT64_MAX);
      const auto is_measured = [&](const CellJob& cell) {
        return std::any_of(measured_.begin(), measured_.end(),
                           [&](const CellJob& measured) { return measured.cell == cell.cell; });
      };
      const bool is_replayed = std::any_of(cells.begin(), cells.end(), is_measured) || HasMeasuredPieces(job.spec);
      result_.replayed += is_replayed ? 1 : 0;
      all_ns += job.total_ns();
      replayed_ns += is_replayed ? job.total_ns() : 0;
    }
    if (all_ns > 0) result_.replayed_share = replayed_ns / all_ns;
  }

  void MakeProfile() {
    Profile& profile = result_.profile;
    const bool same =
        options_.start != nullptr && SignatureDifference(result_.facts.signature, options_.start->machine).empty();
    if (same) profile = *options_.start;
    profile.path.clear();
    profile.machine = result_.facts.signature;
    if (!result_.facts.memory.empty()) profile.facts = result_.facts;
    std::vector<ProfileEntry> entries;
    for (const CellResult& cell : result_.cells) entries.push_back(cell.Entry());
    profile.Put(entries);
    // Without a comparison, what was known stays.
    if (result_.spill && result_.spill->found.default_speed.device_mb_s != 0) profile.spill = result_.spill->found;
    if (result_.pieces && result_.pieces->found.default_ns != 0) profile.pieces = result_.pieces->found;
    if (result_.input && result_.input->Found().default_ns != 0) profile.input = result_.input->Found();
  }

  const TuningOptions& options_;
  const double begin_;
  std::array<double, kNumPrefetchLoops> set_up_per_byte_ = {};
  Profile untuned_;  // the machine's facts, and no entries
  TuningResult result_;
  std::vector<CellJob> measured_;  // the jobs of the result's cells
};

// Makes its holder the only tuner of the process while it lives.
class OnlyTuning {
 public:
  OnlyTuning() : is_only_(!running.exchange(true)) {
    CallInForkedChild(ForkReset::kTuning, [] { running = false; });
  }
  OnlyTuning(const OnlyTuning&) = delete;
  OnlyTuning& operator=(const OnlyTuning&) = delete;
  ~OnlyTuning() {
    if (is_only_) running = false;
  }
  bool is_only() const { return is_only_; }

 private:
  static inline std::atomic<bool> running{false};
  const bool is_only_;
};

// The entries with the largest gain, since drift costs most there.
std::vector<ProfileEntry> Sample(const Profile& profile) {
  std::vector<ProfileEntry> entries;
  for (const ProfileEntry& entry : profile.entries)
    if (!entry.is_default && entry.ns > 0) entries.push_back(entry);
  std::sort(entries.begin(), entries.end(),
            [](const ProfileEntry& a, const ProfileEntry& b) { return a.default_ns / a.ns > b.default_ns / b.ns; });
  entries.resize(std::min(entries.size(), kCheckedEntries));
  return entries;
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Runs the setting and the default by turns; the first run of each is a warm-up.
absl::StatusOr<DriftRow> CheckEntry(const ProfileEntry& entry, const Profile& untuned, double seconds) {
  constexpr size_t kLeastRuns = 4;
  TuningData data;
  data.facts = &untuned;
  const double end = NowSeconds() + seconds;
  QUERN_ASSIGN_OR_RETURN(const std::unique_ptr<TuningJob> job, MakeTuningJob(entry.cell, data));
  const PrefetchSetting by_default = job->Default();
  std::vector<double> tuned_ns, default_ns;
  for (size_t run = 0; run < kLeastRuns || NowSeconds() < end; ++run) {
    QUERN_ASSIGN_OR_RETURN(const double tuned, job->Run(entry.setting));
    QUERN_ASSIGN_OR_RETURN(const double untuned, job->Run(by_default));
    if (run == 0) continue;
    tuned_ns.push_back(tuned);
    default_ns.push_back(untuned);
  }
  DriftRow row = {entry, Median(tuned_ns), Median(default_ns), false};
  row.drifted = row.ns > row.default_ns * (1 + entry.noise);
  return row;
}

// found: a choice of the profile. proof: of its measuring again, or why it was skipped.
template <class Proof, class Found, class Row>
absl::Status CheckChoice(const absl::StatusOr<Proof>& proof, const Found& found, Row* row) {
  if (IsSkipped(proof.status())) return absl::OkStatus();
  QUERN_RETURN_IF_ERROR(proof.status());
  *row = {found, proof->chosen_ns, proof->default_ns,
          proof->chosen_ns > proof->default_ns * (1 + std::max(found.noise, proof->noise))};
  return absl::OkStatus();
}

absl::Status CheckPieces(const ProfilePieces& pieces, double seconds, DriftReport* report) {
  PieceTuningOptions options;
  options.seconds = seconds;
  return CheckChoice(ProvePieces(options, pieces.rows), pieces, &report->pieces);
}

absl::Status CheckInput(const ProfileInput& input, double seconds, DriftReport* report) {
  InputTuningOptions options;
  options.seconds = seconds;
  return CheckChoice(ProveInput(options, input.rows), input, &report->input);
}

}  // namespace

absl::Status CheckTunedSpec(const std::string& spec) {
  return IsPipelineText(spec) ? ParsePipeline(spec).status() : ParseTunedSpec(spec).status();
}

absl::StatusOr<std::vector<CellJob>> CellsOfSpec(const std::string& text, const std::vector<TuningCell>& all) {
  std::vector<CellJob> jobs;
  if (IsPipelineText(text)) {
    QUERN_ASSIGN_OR_RETURN(const PipelineSpec asked, ParsePipeline(text));
    QUERN_ASSIGN_OR_RETURN(const PipelinePlan plan, MakePipelinePlan(asked, {}));
    AddCellsOfPipeline(plan.spec, all, &jobs);
    return jobs;
  }
  QUERN_ASSIGN_OR_RETURN(const KernelSpec spec, ParseTunedSpec(text));
  for (const TuningCell& cell : all) AddCell(spec, cell, &jobs);
  return jobs;
}

absl::StatusOr<TuningResult> Tune(const TuningOptions& options) {
  const OnlyTuning only;
  if (!only.is_only())
    return absl::FailedPreconditionError(
        "tuning beside another one: two would measure each other; accepted: one at a time in a process");
  const CapturePause pause;
  return Tuner(options).Run();
}

absl::StatusOr<DriftReport> CheckProfile(const Profile& profile, double budget_seconds) {
  const CapturePause pause;
  DriftReport report;
  report.machine_difference = SignatureDifference(HostSignature(), profile.machine);
  const std::vector<ProfileEntry> sample = Sample(profile);
  Profile untuned = profile;
  untuned.entries.clear();
  const bool has_pieces = profile.pieces.has_value() && profile.pieces->rows != ProfilePieces().rows;
  QUERN_ASSIGN_OR_RETURN(const Machine host, HostMachine());
  const bool has_input = profile.input.has_value() && profile.input->rows != DefaultInputRows(host);
  const double other_share = (has_pieces ? kPieceDriftShare : 0) + (has_input ? kInputDriftShare : 0);
  const double seconds = budget_seconds * (1 - other_share);
  for (const ProfileEntry& entry : sample) {
    absl::StatusOr<DriftRow> row = CheckEntry(entry, untuned, seconds / static_cast<double>(sample.size()));
    if (row.ok()) report.rows.push_back(*row);
    else if (!IsSkipped(row.status())) return row.status();
  }
  if (has_pieces) QUERN_RETURN_IF_ERROR(CheckPieces(*profile.pieces, budget_seconds * kPieceDriftShare, &report));
  if (has_input) QUERN_RETURN_IF_ERROR(CheckInput(*profile.input, budget_seconds * kInputDriftShare, &report));
  return report;
}

}  // namespace quern
