// SPDX-License-Identifier: Apache-2.0
// The proof of a profile. For each job of the grid, all distances take turns for some rounds, and the fastest is the
// exhaustive best. Then tuned, none, 16 rows and that best take turns again. Only these runs count, since the fastest
// of ten was lucky in the runs that chose it.
//
//     probe of 2^20 rows, 100 % hits     first rounds: 0 4 8 16 32 64 128 256 all -> 32
//                                        then:         tuned 64, off 0, fixed 16, best 32
//
// Regret is how much slower tuned is than the best. Equal settings are one contender: they share their runs, and their
// regret is 0.
#include "tools/report/proof.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <utility>

#include "codegen/inspect/capture.h"
#include "codegen/tuning/job.h"
#include "codegen/tuning/job_data.h"
#include "runtime/base/status.h"

namespace quern {
namespace {

using tuning::NowSeconds;

constexpr uint16_t kDistances[] = {0, 4, 8, 16, 32, 64, 128, 256, kWholeBatch};
constexpr uint32_t kLog2Rows[] = {10, 13, 16, 18, 20, 22, 24, 27};
constexpr uint32_t kHits[] = {0, 10, 100};
constexpr double kSkews[] = {0, 0.75, 1.25};
constexpr size_t kChoosingRounds = 3, kLeastRounds = 5, kMostRounds = 15;

constexpr double kMedianRegret = 0.03, kWorstRegret = 0.08, kGainOverFixed = 0.10, kLeastOfOff = 0.98;

struct JobKind {
  const char* text;
  PrefetchLoop loop;
  KeyClass keys;
  bool probes;            // hit rates and skew apply
  uint32_t rows_per_key;  // the values 1 and this are tried
};
constexpr JobKind kJobs[] = {
    {"join i64, open", PrefetchLoop::kProbeOpen, KeyClass::kPacked, true, 1},
    {"join i64, dense", PrefetchLoop::kProbeDense, KeyClass::kPacked, true, 4},
    {"join i64, unchained", PrefetchLoop::kProbeUnchained, KeyClass::kPacked, true, 4},
    {"join i64,i64", PrefetchLoop::kProbeUnchained, KeyClass::kFixed, true, 4},
    {"join utf8", PrefetchLoop::kProbeUnchained, KeyClass::kString, true, 4},
    {"build i64, open", PrefetchLoop::kBuildOpen, KeyClass::kPacked, false, 1},
    {"build utf8", PrefetchLoop::kBuildUnchained, KeyClass::kString, false, 1},
    {"aggregate i64", PrefetchLoop::kUpdateOpen, KeyClass::kPacked, false, 1},
    {"aggregate utf8", PrefetchLoop::kUpdateDirectory, KeyClass::kString, false, 1},
    {"sort i64 with columns", PrefetchLoop::kGather, KeyClass::kFixed, false, 1},
};

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Settings that take turns, without duplicates.
class Race {
 public:
  size_t Add(const PrefetchSetting& setting) {
    const auto place = static_cast<size_t>(std::find(settings_.begin(), settings_.end(), setting) - settings_.begin());
    if (place == settings_.size()) settings_.push_back(setting);
    runs_.resize(settings_.size());
    return place;
  }
  // Runs forwards and backwards by turns, so that changes of the machine affect all alike.
  absl::Status Round(TuningJob* job) {
    for (size_t i = 0; i < settings_.size(); ++i) {
      const size_t place = forwards_ ? i : settings_.size() - 1 - i;
      QUERN_ASSIGN_OR_RETURN(const double ns, job->Run(settings_[place]));
      runs_[place].push_back(ns);
    }
    forwards_ = !forwards_;
    return absl::OkStatus();
  }
  double Ns(size_t place) const { return Median(runs_[place]); }
  size_t Best() const {
    size_t best = 0;
    for (size_t i = 1; i < settings_.size(); ++i)
      if (Ns(i) < Ns(best)) best = i;
    return best;
  }
  const PrefetchSetting& setting(size_t place) const { return settings_[place]; }

 private:
  std::vector<PrefetchSetting> settings_;
  std::vector<std::vector<double>> runs_;
  bool forwards_ = true;
};

PrefetchSetting AtDistance(PrefetchLoop loop, uint16_t distance) {
  PrefetchSetting setting;
  setting.distance = distance;
  setting.hint = DefaultHint(loop);
  return setting;
}

absl::StatusOr<ProofResult> ProveCell(const ProofCell& cell, const Profile& profile, const Profile& untuned,
                                      TuningJob* job, double seconds) {
  ProofResult result;
  result.cell = cell;
  result.table_bytes = job->table_bytes();
  const TuningCell looked_up = {cell.loop, cell.keys, 1, SizeClassOf(result.table_bytes), 1};
  result.tuned = profile.Find(looked_up, job->Default()).setting;
  const double end = NowSeconds() + seconds;
  QUERN_RETURN_IF_ERROR(
      job->Run(untuned.Find(looked_up, job->Default()).setting).status());  // touches all memory for the first time
  Race choosing;
  choosing.Add(result.tuned);
  for (const uint16_t distance : kDistances) choosing.Add(AtDistance(cell.loop, distance));
  for (size_t round = 0; round < kChoosingRounds; ++round) QUERN_RETURN_IF_ERROR(choosing.Round(job));
  result.best = choosing.setting(choosing.Best());
  Race last;
  const size_t tuned = last.Add(result.tuned), off = last.Add(AtDistance(cell.loop, 0)),
               fixed = last.Add(AtDistance(cell.loop, 16));
  const size_t best = last.Add(result.best);
  for (size_t round = 0; round < kMostRounds && (round < kLeastRounds || NowSeconds() < end); ++round)
    QUERN_RETURN_IF_ERROR(last.Round(job));
  result.tuned_ns = last.Ns(tuned);
  result.off_ns = last.Ns(off);
  result.fixed16_ns = last.Ns(fixed);
  result.best_ns = std::min(last.Ns(best), last.Ns(tuned));
  return result;
}

bool IsLeftOut(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsUnimplemented(status);
}

std::string NameOf(const ProofCell& cell) { return cell.job + " 2^" + std::to_string(cell.log2_rows); }

double Regret(const ProofResult& r) { return r.tuned_ns / r.best_ns - 1; }

// "  1.4 %".
std::string Percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%7.1f %%", share * 100);
  return text;
}

std::string Target(const char* what, double measured, double wanted, bool is_met) {
  char text[160];
  std::snprintf(text, sizeof text, "%-72s %7.1f %%, wanted %5.1f %%: %s\n", what, measured * 100, wanted * 100,
                is_met ? "met" : "missed");
  return text;
}

}  // namespace

std::vector<ProofCell> ProofGrid() {
  std::vector<ProofCell> grid;
  for (const JobKind& job : kJobs) {
    for (const uint32_t log2_rows : kLog2Rows) {
      for (const uint32_t hits : kHits) {
        for (const double zipf : kSkews) {
          for (const uint32_t rows_per_key : {1u, 4u}) {
            const bool is_plain = hits == 100 && zipf == 0;
            if ((!job.probes && !is_plain) || rows_per_key > job.rows_per_key) continue;
            grid.push_back({job.text, job.loop, job.keys, log2_rows, hits, zipf, rows_per_key});
          }
        }
      }
    }
  }
  std::vector<ProofCell> spread;
  for (uint64_t i = 0; i < grid.size(); ++i) spread.push_back(grid[tuning::Permute(i, grid.size())]);
  return spread;
}

absl::StatusOr<std::vector<ProofResult>> Prove(const Profile& profile, const ProofOptions& options) {
  const CapturePause pause;
  Profile untuned = profile;
  untuned.entries.clear();
  const std::vector<ProofCell> grid = ProofGrid();
  std::vector<ProofResult> results;
  const double begin = NowSeconds(), end = begin + options.budget_seconds;
  double set_up_per_row = 3e-7;  // seconds a row of the slowest set-up so far
  for (size_t i = 0; i < grid.size() && NowSeconds() < end; ++i) {
    if (options.stop != nullptr && *options.stop) break;
    const ProofCell& cell = grid[i];
    const double rows = std::exp2(cell.log2_rows), left = end - NowSeconds();
    if (rows * set_up_per_row > left / 4) continue;
    if (options.progress) options.progress({1 - left / options.budget_seconds, NameOf(cell)});
    TuningData data;
    data.build_rows = uint64_t{1} << cell.log2_rows;
    data.hits_percent = cell.hits_percent;
    data.zipf = cell.zipf;
    data.rows_per_key = cell.rows_per_key;
    data.facts = &untuned;
    const double start = NowSeconds();
    auto job = MakeTuningJob({cell.loop, cell.keys, 1, kSmallestSizeClass, 1}, data);
    set_up_per_row = std::max(set_up_per_row, (NowSeconds() - start) / std::max(rows, 1e6));
    if (!job.ok() && IsLeftOut(job.status())) continue;
    QUERN_RETURN_IF_ERROR(job.status());
    if (options.max_bytes != 0 && (*job)->table_bytes() > options.max_bytes) continue;
    const double share = (end - NowSeconds()) / static_cast<double>(grid.size() - i);
    auto result = ProveCell(cell, profile, untuned, job->get(), share);
    if (!result.ok() && IsLeftOut(result.status())) continue;
    QUERN_RETURN_IF_ERROR(result.status());
    results.push_back(*std::move(result));
  }
  return results;
}

std::string ProofCsv(const std::vector<ProofResult>& results) {
  std::string csv =
      "job,log2_rows,hits_percent,zipf,rows_per_key,table_bytes,tuned,best,tuned_ns,off_ns,fixed16_ns,best_ns\n";
  for (const ProofResult& r : results) {
    const PrefetchHint hint = DefaultHint(r.cell.loop);
    char text[240];
    std::snprintf(text, sizeof text, "\"%s\",%u,%u,%g,%u,%llu,%s,%s,%.3f,%.3f,%.3f,%.3f\n", r.cell.job.c_str(),
                  r.cell.log2_rows, r.cell.hits_percent, r.cell.zipf, r.cell.rows_per_key,
                  static_cast<unsigned long long>(r.table_bytes), PrintSetting(r.tuned, hint).c_str(),
                  PrintSetting(r.best, hint).c_str(), r.tuned_ns, r.off_ns, r.fixed16_ns, r.best_ns);
    csv += text;
  }
  return csv;
}

std::string ProofTable(const std::vector<ProofResult>& results, const MachineSignature& machine) {
  if (results.empty()) return "no cell was measured\n";
  std::map<std::pair<std::string, uint32_t>, std::vector<const ProofResult*>> lines;
  std::vector<double> regrets;
  double worst = 0, gain = -1, least_of_off = 1e9;
  size_t lose = 0;
  for (const ProofResult& result : results) {
    lines[{result.cell.job, result.cell.log2_rows}].push_back(&result);
    regrets.push_back(Regret(result));
    worst = std::max(worst, regrets.back());
    if (result.table_bytes > machine.l3_bytes) gain = std::max(gain, 1 - result.tuned_ns / result.fixed16_ns);
    least_of_off = std::min(least_of_off, result.off_ns / result.tuned_ns);
    lose += result.off_ns / result.tuned_ns < kLeastOfOff ? 1 : 0;
  }
  char text[200];
  std::snprintf(text, sizeof text, "%-22s %5s %6s %9s %9s %9s %9s %9s %9s\n", "job", "rows", "cells", "tuned ns",
                "off ns", "16 ns", "best ns", "regret", "worst");
  std::string table = text;
  for (const auto& [name, cells] : lines) {
    std::array<std::vector<double>, 5> columns;
    for (const ProofResult* r : cells) {
      const double values[] = {r->tuned_ns, r->off_ns, r->fixed16_ns, r->best_ns, Regret(*r)};
      for (size_t c = 0; c < columns.size(); ++c) columns[c].push_back(values[c]);
    }
    std::snprintf(text, sizeof text, "%-22s  2^%-2u %6zu %9.2f %9.2f %9.2f %9.2f", name.first.c_str(), name.second,
                  cells.size(), Median(columns[0]), Median(columns[1]), Median(columns[2]), Median(columns[3]));
    table +=
        text + Percent(Median(columns[4])) + Percent(*std::max_element(columns[4].begin(), columns[4].end())) + "\n";
  }
  std::snprintf(text, sizeof text, "%zu of %zu cells; medians over hit rates, skews and duplicates\n", results.size(),
                ProofGrid().size());
  table += text;
  const double median = Median(regrets), losing = static_cast<double>(lose) / static_cast<double>(results.size());
  table += Target("regret against the exhaustive best, median cell", median, kMedianRegret, median <= kMedianRegret);
  table += Target("the same, worst cell", worst, kWorstRegret, worst <= kWorstRegret);
  if (gain == -1) table += "faster than 16 rows fixed: no table above L3 was measured\n";
  else table += Target("faster than 16 rows fixed, best cell above L3", gain, kGainOverFixed, gain >= kGainOverFixed);
  table +=
      Target("speed without prefetch that is kept, worst cell", least_of_off, kLeastOfOff, least_of_off >= kLeastOfOff);
  table += Target("cells that are slower than without prefetch beyond that", losing, 0, lose == 0);
  return table;
}

}  // namespace quern
