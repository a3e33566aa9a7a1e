// SPDX-License-Identifier: Apache-2.0
// quern tune: measures which prefetch settings are best on this machine and writes them to a profile that all later
// kernels use (codegen/tuning/tuner.h). The measurements are a table on the terminal, and with --report and --csv a
// page and lines for other programs. --check measures a sample of a profile's entries again and reports those that no
// longer hold. --replay tunes only for the jobs that processes with QUERN_CAPTURE have recorded
// (codegen/inspect/capture.h).
//
// Ctrl-C ends the tuning, not the command: what has been measured until then is kept. A second one ends the command.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/base/environment.h"
#include "codegen/inspect/capture.h"
#include "codegen/machine/machine.h"
#include "codegen/machine/prefetch_choice.h"
#include "codegen/machine/profile.h"
#include "codegen/tier/compile_queue.h"
#include "codegen/tuning/tuner.h"
#include "runtime/base/status.h"
#include "tools/frontend/errors.h"
#include "tools/quern/commands/command.h"
#include "tools/quern/files/output_file.h"
#include "tools/quern/files/progress.h"
#include "tools/quern/run/arguments.h"
#include "tools/quern/run/run_options.h"
#include "tools/report/proof.h"
#include "tools/report/report.h"

namespace quern::cli {
namespace {

constexpr double kDefaultSeconds = 60, kDefaultCheckSeconds = 10, kDefaultProofSeconds = 120;
constexpr double kLeastSeconds = 0.1, kMostSeconds = 24 * 3600;
// Of the time of --prove.
constexpr double kSpillProofShare = 0.1, kPieceProofShare = 0.05, kInputProofShare = 0.05;
constexpr uint64_t kLeastBytes = uint64_t{1} << kSmallestSizeClass, kMostBytes = uint64_t{1} << kLargestSizeClass;

struct TuneCommand {
  std::vector<std::string> specs;
  std::optional<std::string> effort, budget, threads, max_size, profile, report, csv, replay, spill_folder;
  bool check = false, prove = false, spill = false;

  // Values of the texts above.
  TuningOptions options;
  std::string path;  // of the profile
};

absl::StatusOr<bool> ParseCommand(const std::vector<std::string>& words, TuneCommand* command) {
  Arguments arguments(
      "tune",
      "Measures which prefetch settings are best on this machine and keeps them in a profile. Nothing else should run "
      "meanwhile. Ctrl-C ends it and keeps what has been measured.",
      "quern tune --budget 60s --report tuning.html");
  arguments.OptionalRest("SPEC", &command->specs,
                         "tune the loops that these kernels run, each in quotes; of a pipeline also how many rows pass "
                         "together (default: every loop, two pipelines and input columns)");
  arguments.Value("--effort", &command->effort, "EFFORT",
                  "estimate: print what the formula says, measure nothing; measure (default); patient: more sizes and "
                  "more settings");
  arguments.Value("--budget", &command->budget, "TIME",
                  "how long it may take, as 60s, 5m or 500ms (default: 60s; of --check 10s, of --prove 120s)");
  arguments.Value("--threads", &command->threads, "N",
                  "check what holds at one thread with so many (default: 2 where there are as many)");
  arguments.Value("--max-size", &command->max_size, "SIZE",
                  "largest table, 32K to 2G (default: 2G or half of the memory that is free)");
  arguments.Value("--profile", &command->profile, "FILE",
                  "the profile to begin with and to write (default: this machine's)");
  arguments.Value("--report", &command->report, "FILE.html", "write a page with a curve for each loop and table size");
  arguments.Value("--replay", &command->replay, "DIR",
                  "tune for the jobs that processes with QUERN_CAPTURE=DIR have run, at their sizes");
  arguments.Value("--csv", &command->csv, "FILE",
                  "write a line for each setting that was tried; of --prove for each job");
  arguments.Flag("--spill", &command->spill, "tune only how rows are spilled: blocks, read-ahead, writing behind");
  arguments.Value("--spill-dir", &command->spill_folder, "DIR",
                  "where rows are written and read for that; off: nowhere (default: QUERN_SPILL_DIR, else /var/tmp)");
  arguments.Flag("--check", &command->check,
                 "measure a sample of the profile again; exit status 1 where settings do not hold any more");
  arguments.Flag("--prove", &command->prove,
                 "what the profile is worth over a grid of sizes, keys, hit rates, skew and duplicates: beside no "
                 "prefetch, 16 rows, and the best");
  return arguments.Parse(words);
}

absl::StatusOr<double> ParseSeconds(const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [unit_begin, error] = std::from_chars(text.data(), end, number);
  const std::string unit(unit_begin, end);
  const double factor = unit == "ms" ? 1e-3 : unit == "m" ? 60 : unit.empty() || unit == "s" ? 1 : 0;
  const double seconds = number * factor;
  if (error != std::errc() || !(seconds >= kLeastSeconds && seconds <= kMostSeconds))
    return CommandError("bad value of --budget: " + Show(text) + "; accepted: 100ms to 24 hours, as 60s, 5m or 500ms");
  return seconds;
}

absl::StatusOr<TuningEffort> ParseEffort(const std::string& text) {
  if (text == "estimate") return TuningEffort::kEstimate;
  if (text == "measure") return TuningEffort::kMeasure;
  if (text == "patient") return TuningEffort::kPatient;
  return CommandError("bad value of --effort: " + Show(text) + "; accepted: estimate, measure or patient");
}

// Checks for options that exclude each other.
absl::Status CheckTasks(const TuneCommand& command) {
  const auto not_both = [](const char* first, const char* second) {
    return CommandError(std::string("what to do: ") + first + " and " + second + "; accepted: one of them");
  };
  if (command.check && command.prove) return not_both("--check", "--prove");
  if (command.spill && command.check) return not_both("--check", "--spill");
  if (command.spill && command.replay) return not_both("--spill", "--replay");
  if (command.spill && !command.specs.empty()) return not_both("SPEC", "--spill");
  if (!command.replay) return absl::OkStatus();
  if (command.check || command.prove) return not_both(command.check ? "--check" : "--prove", "--replay");
  if (!command.specs.empty()) return not_both("SPEC", "--replay");
  if (command.options.effort == TuningEffort::kEstimate) return not_both("--effort estimate", "--replay");
  return absl::OkStatus();
}

absl::Status CheckCommand(TuneCommand* command) {
  TuningOptions& options = command->options;
  if (command->effort) {
    QUERN_ASSIGN_OR_RETURN(options.effort, ParseEffort(*command->effort));
  }
  QUERN_RETURN_IF_ERROR(CheckTasks(*command));
  options.budget_seconds = command->check   ? kDefaultCheckSeconds
                           : command->prove ? kDefaultProofSeconds
                                            : kDefaultSeconds;
  if (command->budget) {
    QUERN_ASSIGN_OR_RETURN(options.budget_seconds, ParseSeconds(*command->budget));
  }
  options.threads = std::min(NumUsableCpus(), 2u);
  if (command->threads) {
    QUERN_ASSIGN_OR_RETURN(const uint64_t threads, ParseNumber("--threads", *command->threads, 1, kMaxThreads));
    options.threads = static_cast<uint32_t>(threads);
  }
  if (command->max_size) {
    QUERN_ASSIGN_OR_RETURN(options.max_bytes, ParseBytes("--max-size", *command->max_size));
    if (options.max_bytes < kLeastBytes || options.max_bytes > kMostBytes)
      return CommandError("bad size of --max-size: " + Show(*command->max_size) + "; accepted: 32K to 2G");
  }
  for (const std::string& text : command->specs) QUERN_RETURN_IF_ERROR(CheckTunedSpec(text));
  options.specs = command->specs;
  if (!command->spill_folder) command->spill_folder = ReadVariable(Variable::kSpillDir).value;
  if (command->spill && *command->spill_folder == "off")
    return CommandError("folder of --spill: off; accepted: a folder, in --spill-dir or QUERN_SPILL_DIR");
  // Whoever names kernels or jobs wants these tuned.
  if (options.specs.empty() && !command->replay && *command->spill_folder != "off")
    options.spill_folder = *command->spill_folder;
  options.spill_alone = command->spill;
  return absl::OkStatus();
}

// ---- files ----

absl::StatusOr<std::string> PlaceOfProfile(const TuneCommand& command) {
  if (command.profile) return *command.profile;
  absl::StatusOr<std::string> home = ProfileHome(HostSignature());
  QUERN_RETURN_IF_ERROR(AsDataError(home.status()));
  return home;
}

// The profile so far; none if there is no file yet.
absl::StatusOr<std::optional<Profile>> ReadStart(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::optional<Profile>();
  absl::StatusOr<Profile> profile = ReadProfile(path);
  QUERN_RETURN_IF_ERROR(AsDataError(profile.status()));
  return std::optional<Profile>(*std::move(profile));
}

absl::Status WriteText(const std::optional<std::string>& path, const std::string& text) {
  if (!path) return absl::OkStatus();
  QUERN_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(*path));
  QUERN_RETURN_IF_ERROR(file.WriteText(text));
  return file.Commit();
}

// ---- tuning ----

std::atomic<bool> stop_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void AskToStop(int signal) {
  stop_requested = true;
  std::signal(signal, SIG_DFL);
}

// The threads that are checked are those of the jobs, unless others are requested.
absl::Status ReadReplay(TuneCommand* command) {
  if (!command->replay) return absl::OkStatus();
  absl::StatusOr<std::vector<CapturedJob>> jobs = ReadCaptures(*command->replay);
  QUERN_RETURN_IF_ERROR(AsDataError(jobs.status()));
  uint32_t threads = 1;
  for (const CapturedJob& job : *jobs) threads = std::max(threads, job.threads);
  if (!command->threads) command->options.threads = std::min(threads, NumUsableCpus());
  command->options.replay = *std::move(jobs);
  return absl::OkStatus();
}

// The settings of plans without any measurement.
void PrintEstimates(const Machine& host, const Profile* start) {
  const bool knows = start != nullptr && start->facts.has_value();
  const MemoryModel model = knows ? ModelOf(*start->facts, host) : BelievedModel(host);
  for (size_t i = 0; i < kNumPrefetchLoops; ++i) {
    const auto loop = static_cast<PrefetchLoop>(i);
    const std::string schedule = PrintSchedule(EstimateSchedule(loop, KeyClass::kPacked, model), DefaultHint(loop));
    std::printf("%-16s  %s\n", LoopText(loop), schedule.c_str());
  }
  std::printf("estimated from %s; nothing was measured and nothing written\n",
              knows ? "the memory of this machine as it was measured" : "the sizes of this machine's caches");
}

// Calls run(options) under a progress bar of the budget; Ctrl-C stops it.
template <class Options, class Run>
auto UnderProgress(Options options, Run&& run) {
  Progress progress(/*wanted=*/true);
  const auto budget = static_cast<uint64_t>(std::lround(options.budget_seconds));
  options.progress = [&progress, budget](const TuningProgress& at) {
    progress.Begin(at.doing, budget, "s");
    progress.Add(static_cast<uint64_t>(at.share * static_cast<double>(budget)));
  };
  options.stop = &stop_requested;
  std::signal(SIGINT, AskToStop);
  auto result = run(options);
  std::signal(SIGINT, SIG_DFL);
  return result;
}

absl::StatusOr<int> TuneAndKeep(TuneCommand* command, const std::optional<Profile>& start) {
  if (start) command->options.start = &*start;
  absl::StatusOr<TuningResult> result = UnderProgress(command->options, Tune);
  QUERN_RETURN_IF_ERROR(result.status());
  QUERN_RETURN_IF_ERROR(AsDataError(WriteProfile(result->profile, command->path)));
  QUERN_RETURN_IF_ERROR(WriteText(command->report, HtmlReport(*result)));
  QUERN_RETURN_IF_ERROR(WriteText(command->csv, CsvReport(*result)));
  if (!command->options.spill_alone) std::fputs(TerminalReport(*result).c_str(), stdout);
  if (result->spill) std::fputs(PrintSpillTuning(*result->spill).c_str(), stdout);
  if (result->pieces) std::fputs(PrintPieceTuning(*result->pieces).c_str(), stdout);
  if (result->input) std::fputs(PrintInputTuning(*result->input).c_str(), stdout);
  if (command->replay) {
    std::printf("replayed %zu of %zu kinds of jobs, which took %.0f %% of the time that was captured\n",
                result->replayed, command->options.replay.size(), result->replayed_share * 100);
  }
  std::printf("%swritten: %s\n", result->stopped ? "stopped; what had been measured is " : "", command->path.c_str());
  return kExitOk;
}

// ---- proving ----

// Rows that are spilled by default and with the profile's choice, in turns.
absl::Status ProveSpill(const TuneCommand& command, const Profile& profile) {
  if (!profile.spill || command.options.spill_folder.empty()) return absl::OkStatus();
  const auto prove = [&](const ProofOptions& watched) {
    SpillTuningOptions spill;
    spill.folder = command.options.spill_folder;
    spill.seconds = watched.budget_seconds;
    spill.stop = watched.stop;
    return ProveSpilling(spill, profile.spill->choice);
  };
  ProofOptions options;
  options.budget_seconds = command.options.budget_seconds * (command.spill ? 1 : kSpillProofShare);
  QUERN_ASSIGN_OR_RETURN(const SpillProof proof, UnderProgress(std::move(options), prove));
  const auto print = [](const char* what, const SpillSpeed& speed, const SpillChoice& choice) {
    std::printf("%-22s %9.0f MB/s on the device %9.0f in the page cache   %s\n", what, speed.device_mb_s,
                speed.cache_mb_s, PrintSpillChoice(choice).c_str());
  };
  print("spilled rows, default", proof.by_default, SpillChoice());
  print("spilled rows, tuned", proof.chosen, profile.spill->choice);
  std::printf("medians of %zu pairs, written and read again, in %s\n", proof.num_pairs,
              command.options.spill_folder.c_str());
  return absl::OkStatus();
}

// Proves a choice in a share of the time. prove: takes the tuner's options.
template <class TunerOptions, class ProveChoice>
auto Prove(const TuneCommand& command, double share, const ProveChoice& prove) {
  ProofOptions options;
  options.budget_seconds = command.options.budget_seconds * share;
  options.max_bytes = command.options.max_bytes;
  return UnderProgress(std::move(options), [&](const ProofOptions& watched) {
    TunerOptions of_tuner;
    of_tuner.seconds = watched.budget_seconds;
    of_tuner.max_bytes = watched.max_bytes;
    of_tuner.stop = watched.stop;
    return prove(of_tuner);
  });
}

// Pieces of the default and of the profile's size, in turns.
absl::Status ProvePieceRows(const TuneCommand& command, const Profile& profile) {
  if (!profile.pieces) return absl::OkStatus();
  const auto prove = [&](const PieceTuningOptions& options) { return ProvePieces(options, profile.pieces->rows); };
  QUERN_ASSIGN_OR_RETURN(const PieceProof proof, Prove<PieceTuningOptions>(command, kPieceProofShare, prove));
  const auto print = [](const char* what, double ns, uint32_t rows) {
    std::printf("%-22s %9.2f ns a row   rows=%u\n", what, ns, rows);
  };
  print("pieces, default", proof.default_ns, ProfilePieces().rows);
  print("pieces, tuned", proof.chosen_ns, profile.pieces->rows);
  std::printf("medians of %zu pairs, through two pipelines\n", proof.num_pairs);
  return absl::OkStatus();
}

// Distances of input columns, by default and the profile's, in turns.
absl::Status ProveInputRows(const TuneCommand& command, const Profile& profile) {
  if (!profile.input) return absl::OkStatus();
  const auto prove = [&](const InputTuningOptions& options) { return ProveInput(options, profile.input->rows); };
  QUERN_ASSIGN_OR_RETURN(const InputProof proof, Prove<InputTuningOptions>(command, kInputProofShare, prove));
  QUERN_ASSIGN_OR_RETURN(const Machine host, HostMachine());
  const auto print = [](const char* what, double ns, const InputRows& rows) {
    std::printf("%-22s %9.2f ns a row   %s\n", what, ns, PrintInputRows(rows).c_str());
  };
  print("input, default", proof.default_ns, DefaultInputRows(host));
  print("input, tuned", proof.chosen_ns, profile.input->rows);
  std::printf("medians of %zu pairs, through three kernels\n", proof.num_pairs);
  return absl::OkStatus();
}

absl::StatusOr<int> ProveProfile(const TuneCommand& command, const std::optional<Profile>& profile) {
  if (!profile)
    return DataError("no profile to prove: " + command.path + "; accepted: one that quern tune has written");
  ProofOptions options;
  if (command.spill) {
    QUERN_RETURN_IF_ERROR(ProveSpill(command, *profile));
    return kExitOk;
  }
  const double other_share = (profile->spill ? kSpillProofShare : 0) + (profile->pieces ? kPieceProofShare : 0) +
                             (profile->input ? kInputProofShare : 0);
  options.budget_seconds = command.options.budget_seconds * (1 - other_share);
  options.max_bytes = command.options.max_bytes;
  const auto prove = [&](const ProofOptions& watched) { return Prove(*profile, watched); };
  QUERN_ASSIGN_OR_RETURN(const std::vector<ProofResult> results, UnderProgress(std::move(options), prove));
  std::fputs(ProofTable(results, profile->machine).c_str(), stdout);
  QUERN_RETURN_IF_ERROR(WriteText(command.csv, ProofCsv(results)));
  QUERN_RETURN_IF_ERROR(ProveSpill(command, *profile));
  QUERN_RETURN_IF_ERROR(ProvePieceRows(command, *profile));
  QUERN_RETURN_IF_ERROR(ProveInputRows(command, *profile));
  return kExitOk;
}

// ---- checking ----

absl::StatusOr<int> Check(const TuneCommand& command, const std::optional<Profile>& profile) {
  if (!profile)
    return DataError("no profile to check: " + command.path + "; accepted: one that quern tune has written");
  QUERN_ASSIGN_OR_RETURN(const DriftReport report, CheckProfile(*profile, command.options.budget_seconds));
  if (!report.machine_difference.empty()) ReportWarning("profile of another machine: " + report.machine_difference);
  size_t measured = 0, drifted = 0;
  const auto print = [&](const std::string& what, const auto& before, const auto& now) {
    ++measured;
    drifted += now.drifted ? 1 : 0;
    std::printf("%-50s  was %7.2f ns, by default %7.2f   is %7.2f ns, by default %7.2f   %s\n", what.c_str(), before.ns,
                before.default_ns, now.ns, now.default_ns, now.drifted ? "drifted" : "holds");
  };
  for (const DriftRow& row : report.rows) print(PrintCell(row.entry.cell), row.entry, row);
  if (report.pieces)
    print("pieces rows=" + std::to_string(report.pieces->pieces.rows), report.pieces->pieces, *report.pieces);
  if (report.input) print("input " + PrintInputRows(report.input->input.rows), report.input->input, *report.input);
  std::printf("%zu of %zu entries that were measured again hold: %s\n", measured - drifted, measured,
              command.path.c_str());
  return drifted == 0 ? kExitOk : kExitData;
}

}  // namespace

absl::StatusOr<int> RunTune(const std::vector<std::string>& words) {
  TuneCommand command;
  QUERN_ASSIGN_OR_RETURN(const bool go_on, ParseCommand(words, &command));
  if (!go_on) return kExitOk;
  QUERN_RETURN_IF_ERROR(CheckCommand(&command));
  QUERN_RETURN_IF_ERROR(ReadReplay(&command));
  QUERN_ASSIGN_OR_RETURN(const Machine host, HostMachine());
  const bool estimates = command.options.effort == TuningEffort::kEstimate && !command.check && !command.prove;
  absl::StatusOr<std::string> path = PlaceOfProfile(command);
  if (!path.ok() && !estimates) return path.status();
  std::optional<Profile> start;
  if (path.ok()) {
    command.path = *path;
    QUERN_ASSIGN_OR_RETURN(start, ReadStart(command.path));
  }
  if (estimates) {
    PrintEstimates(host, start ? &*start : nullptr);
    return kExitOk;
  }
  if (command.prove) return ProveProfile(command, start);
  return command.check ? Check(command, start) : TuneAndKeep(&command, start);
}

}  // namespace quern::cli
