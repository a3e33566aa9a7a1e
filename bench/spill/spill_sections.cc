// SPDX-License-Identifier: Apache-2.0
// The sections of spill_bench in order; each has its columns, what one of its cells measures, and the list of its
// cells. A cell makes its job, runs it in memory and under limits by turns, and prints a row for each limit, for
// example in section budget:
//
//     sort i64  1 thread  10 M rows  memory 1500 ms, 430 MiB  1/4: 107 MiB  2600 ms  1.73  spilled 158 MiB  1 level ..
//
// A limit is a share of the peak of the run in memory, which is run first, but no less than 4 MiB.
#include "bench/spill/spill_sections.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/common/append_rows.h"
#include "bench/common/timing.h"
#include "bench/spill/spill_run.h"
#include "bench/spill/uncached_files.h"
#include "runtime/base/status.h"

namespace quern::bench {
namespace {

constexpr uint64_t kRows = 10'000'000;
constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kLeastLimit = 4 * kMiB;
constexpr uint64_t kShares[] = {2, 4, 10};

std::string Milliseconds(double seconds) { return Fixed(seconds * 1e3, 0); }
std::string MiB(uint64_t bytes) { return Fixed(static_cast<double>(bytes) / static_cast<double>(kMiB), 1); }
std::string NsPer(double seconds, uint64_t n) { return Fixed(seconds / static_cast<double>(n) * 1e9, 1); }

// Consecutive cells share a job.
absl::StatusOr<const SpillJob*> JobOf(const std::string& name, uint64_t rows) {
  static std::unique_ptr<SpillJob> last;
  if (last == nullptr || last->name != name || last->rows->spec().num_rows != rows) {
    last.reset();  // before the next job's rows take their memory
    QUERN_ASSIGN_OR_RETURN(SpillJob job, MakeSpillJob(name, rows, /*is_stored=*/true));
    last = std::make_unique<SpillJob>(std::move(job));
  }
  return last.get();
}

// In memory, and under each share of its peak.
absl::StatusOr<std::vector<SpillContender>> MemoryAndShares(const SpillJob& job, unsigned threads, FileCalls* calls) {
  RunSettings settings;
  settings.threads = threads;
  QUERN_ASSIGN_OR_RETURN(const Measured in_memory, RunOnce(job, settings));
  std::vector<SpillContender> contenders = {{settings, {}}};
  settings.spills = true;
  settings.calls = calls;
  for (const uint64_t share : kShares) {
    settings.limit_bytes = std::max(in_memory.peak_bytes / share, kLeastLimit);
    contenders.push_back({settings, {}});
  }
  return contenders;
}

std::vector<unsigned> ThreadCounts() {
  const unsigned all = std::max(1u, std::thread::hardware_concurrency());
  return all == 1 ? std::vector<unsigned>{1} : std::vector<unsigned>{1, all};
}

// Adds cell(job, threads, section) for all jobs and for one and all threads.
template <class OneCell>
void AddJobs(Cells* cells, const OneCell& cell) {
  for (const std::string& name : SpillJobNames()) {
    for (const unsigned threads : ThreadCounts()) {
      cells->Add(name + (threads == 1 ? "/one" : "/all"),
                 [settings = cells->settings(), name, threads, cell](Section* section) -> absl::Status {
                   QUERN_ASSIGN_OR_RETURN(const SpillJob* job, JobOf(name, settings.Rows(kRows)));
                   return cell(settings, *job, threads, section);
                 });
    }
  }
}

// The first columns of each section, and what is spilled.
std::vector<TextColumn> Columns(std::vector<TextColumn> own) {
  std::vector<TextColumn> columns = {{"job", -14}, {"threads", 7}, {"rows", 13}};
  columns.insert(columns.end(), own.begin(), own.end());
  columns.insert(columns.end(), {{"written", 9, "MiB"}, {"read", 9, "MiB"}, {"levels", 7}, {"waits", 8}});
  return columns;
}

std::vector<std::string> RowStart(const SpillJob& job, unsigned threads) {
  return {job.name, std::to_string(threads), Grouped(job.num_rows())};
}

void AppendSpilled(const SpillStats& spill, std::vector<std::string>* row) {
  row->insert(row->end(), {MiB(spill.written_bytes), MiB(spill.read_bytes), std::to_string(spill.max_level),
                           Grouped(spill.late_blocks)});
}

// ---- budget ----------------------------------------------------------------------------------------------------

absl::Status BudgetCell(const Settings& settings, const SpillJob& job, unsigned threads, Section* section) {
  QUERN_ASSIGN_OR_RETURN(std::vector<SpillContender> contenders, MemoryAndShares(job, threads, SystemFileCalls()));
  QUERN_RETURN_IF_ERROR(TakeTurns(job, settings.Turns(3), &contenders));
  const Measured& memory = contenders[0].best;
  section->BreakAt(job.name + std::to_string(threads));
  for (size_t i = 1; i < contenders.size(); ++i) {
    const Measured& best = contenders[i].best;
    std::vector<std::string> row = RowStart(job, threads);
    row.insert(row.end(), {MiB(memory.peak_bytes), Milliseconds(memory.seconds), "1/" + std::to_string(kShares[i - 1]),
                           MiB(contenders[i].settings.limit_bytes)});
    if (best.is_refused) row.insert(row.end(), {"-", "refused", "-", "-"});
    else
      row.insert(row.end(), {MiB(best.peak_bytes), Milliseconds(best.seconds), Fixed(best.seconds / memory.seconds),
                             NsPer(best.seconds, job.num_rows())});
    AppendSpilled(best.spill, &row);
    section->Row(row);
  }
  return absl::OkStatus();
}

void AddBudget(Cells* cells) {
  cells->Begin("budget",
               "what does a job cost under a share of the memory that it would take, where the page cache absorbs its "
               "files?",
               Columns({{"peak", 9, "in memory"},
                        {"ms", 8, "in memory"},
                        {"share", 6},
                        {"budget", 9, "spilled"},
                        {"peak", 9, "spilled"},
                        {"ms", 8, "spilled"},
                        {"ratio", 7, "spilled"},
                        {"ns a row", 9, "spilled"}}));
  AddJobs(cells, &BudgetCell);
}

// ---- device ----------------------------------------------------------------------------------------------------

// The least time in which a device moves what a run has moved.
double FloorSeconds(const SpillStats& spill, const DeviceSpeed& device) {
  return static_cast<double>(spill.written_bytes) / device.write_bytes_per_s +
         static_cast<double>(spill.read_bytes) / device.read_bytes_per_s;
}

absl::Status DeviceCell(const Settings& settings, const SpillJob& job, unsigned threads, Section* section) {
  UncachedFiles calls;
  QUERN_ASSIGN_OR_RETURN(std::vector<SpillContender> contenders, MemoryAndShares(job, threads, &calls));
  // Between the turns of the first and the last, as other users of a device make it slower at times.
  const uint64_t device_bytes = std::max<uint64_t>(settings.Rows(512) * kMiB, kMiB);
  QUERN_ASSIGN_OR_RETURN(const DeviceSpeed before, MeasureDevice(SpillFolder(), device_bytes));
  QUERN_RETURN_IF_ERROR(TakeTurns(job, settings.Turns(2), &contenders));
  QUERN_ASSIGN_OR_RETURN(const DeviceSpeed after, MeasureDevice(SpillFolder(), device_bytes));
  const DeviceSpeed device = {std::max(before.write_bytes_per_s, after.write_bytes_per_s),
                              std::max(before.read_bytes_per_s, after.read_bytes_per_s)};
  section->BreakAt(job.name + std::to_string(threads));
  const double memory_s = contenders[0].best.seconds;
  for (size_t i = 1; i < contenders.size(); ++i) {
    const Measured& best = contenders[i].best;
    const double floor_s = FloorSeconds(best.spill, device);
    std::vector<std::string> row = RowStart(job, threads);
    row.insert(row.end(), {Milliseconds(memory_s), "1/" + std::to_string(kShares[i - 1]),
                           MiB(contenders[i].settings.limit_bytes), Fixed(device.write_bytes_per_s / 1e6, 0),
                           Fixed(device.read_bytes_per_s / 1e6, 0), Milliseconds(floor_s)});
    if (best.is_refused) row.insert(row.end(), {"refused", "-", "-"});
    else
      row.insert(row.end(), {Milliseconds(best.seconds), Fixed(best.seconds / std::max(floor_s, 1e-9)),
                             Fixed(best.seconds / std::max(floor_s, memory_s))});
    AppendSpilled(best.spill, &row);
    section->Row(row);
  }
  return absl::OkStatus();
}

void AddDevice(Cells* cells) {
  cells->Begin("device",
               "and where the page cache does not absorb its files? The floor is the bytes moved over the device's "
               "bandwidth",
               Columns({{"memory ms", 10},
                        {"share", 6},
                        {"budget", 9},
                        {"write", 7, "MB/s"},
                        {"read", 7, "MB/s"},
                        {"floor ms", 9},
                        {"ms", 8, "spilled"},
                        {"by floor", 9, "spilled"},
                        {"by larger", 10, "spilled"}}));
  AddJobs(cells, &DeviceCell);
}

// ---- codec -----------------------------------------------------------------------------------------------------

absl::Status CodecCell(const Settings& settings, const SpillJob& job, unsigned threads, Section* section) {
  constexpr uint64_t kShare = 4;
  UncachedFiles uncached;
  RunSettings run;
  run.threads = threads;
  QUERN_ASSIGN_OR_RETURN(const Measured in_memory, RunOnce(job, run));
  run.spills = true;
  run.limit_bytes = std::max(in_memory.peak_bytes / kShare, kLeastLimit);
  std::vector<SpillContender> contenders;
  for (FileCalls* calls : {SystemFileCalls(), static_cast<FileCalls*>(&uncached)}) {
    for (const BlockCodec codec : {BlockCodec::kNone, BlockCodec::kLz4}) {
      run.calls = calls;
      run.codec = codec;
      contenders.push_back({run, {}});
    }
  }
  QUERN_RETURN_IF_ERROR(TakeTurns(job, settings.Turns(3), &contenders));
  const auto best = [&](size_t i) -> const Measured& { return contenders[i].best; };
  std::vector<std::string> row = RowStart(job, threads);
  for (const size_t i : {0, 2})
    row.insert(row.end(), {Milliseconds(best(i).seconds), Milliseconds(best(i + 1).seconds),
                           Fixed(best(i).seconds / best(i + 1).seconds)});
  const SpillStats& compressed = best(1).spill;
  row.push_back(Fixed(static_cast<double>(compressed.row_bytes) / static_cast<double>(compressed.written_bytes)));
  AppendSpilled(compressed, &row);
  section->BreakAt(job.name + std::to_string(threads));
  section->Row(row);
  return absl::OkStatus();
}

void AddCodec(Cells* cells) {
  cells->Begin(
      "codec",
      "does it pay to compress blocks by LZ4, under a quarter of the memory? Through the page cache, and past it; "
      "gain: above 1 it pays",
      Columns({{"none ms", 8, "cache"},
               {"lz4 ms", 8, "cache"},
               {"gain", 7, "cache"},
               {"none ms", 8, "device"},
               {"lz4 ms", 8, "device"},
               {"gain", 7, "device"},
               {"smaller", 8, "times"}}));
  AddJobs(cells, &CodecCell);
}

// ---- linear ----------------------------------------------------------------------------------------------------

// The time that making all rows takes, without a job.
double SecondsToMake(const SpillJob& job, unsigned threads) {
  const double start = Now();
  for (const JobRows* rows : {job.build.get(), job.rows.get()}) {
    if (rows == nullptr) continue;
    std::atomic<uint64_t> next{0};
    const uint64_t num_rows = rows->spec().num_rows;
    const absl::Status made = OnThreads(threads, [&] {
      for (uint64_t at; (at = next.fetch_add(kBatchRows)) < num_rows;)
        rows->View(at, std::min(kBatchRows, num_rows - at));
      return absl::OkStatus();
    });
    if (!made.ok()) return 0;
  }
  return Now() - start;
}

absl::Status LinearCell(const Settings& settings, const std::string& name, Section* section) {
  const unsigned threads = ThreadCounts().back();
  double first_ns = 0;
  section->BreakAt(name);
  for (const uint64_t rows : {10'000'000, 30'000'000, 100'000'000, 200'000'000}) {
    QUERN_ASSIGN_OR_RETURN(const SpillJob job, MakeSpillJob(name, settings.Rows(rows), /*is_stored=*/false));
    RunSettings run;
    run.threads = threads;
    run.spills = true;
    run.limit_bytes = std::max(settings.Rows(1024) * kMiB, 4 * kLeastLimit);
    // The first job of a process takes its memory from the system, and would be measured with that.
    if (first_ns == 0) QUERN_RETURN_IF_ERROR(RunOnce(job, run).status());
    QUERN_ASSIGN_OR_RETURN(Measured best, RunOnce(job, run));
    double made_s = SecondsToMake(job, threads);
    for (int turn = 1; turn < settings.Turns(1); ++turn) {
      QUERN_ASSIGN_OR_RETURN(const Measured again, RunOnce(job, run));
      if (again.seconds < best.seconds) best = again;
      made_s = std::min(made_s, SecondsToMake(job, threads));
    }
    std::vector<std::string> row = RowStart(job, threads);
    const double ns = (best.seconds - made_s) / static_cast<double>(job.num_rows()) * 1e9;
    if (first_ns == 0 && !best.is_refused) first_ns = ns;
    row.insert(row.end(), {MiB(run.limit_bytes), MiB(best.peak_bytes), NsPer(made_s, job.num_rows())});
    if (best.is_refused) row.insert(row.end(), {"refused", "-"});
    else row.insert(row.end(), {Fixed(ns, 1), Fixed(ns / first_ns)});
    AppendSpilled(best.spill, &row);
    section->Row(row);
  }
  return absl::OkStatus();
}

void AddLinear(Cells* cells) {
  cells->Begin("linear",
               "does the cost of a row grow with their number? Rows are made as they are read; their making is "
               "subtracted",
               Columns({{"budget", 9},
                        {"peak", 9},
                        {"making", 8, "ns a row"},
                        {"job", 9, "ns a row"},
                        {"by first", 10, "ns a row"}}));
  for (const std::string& name : {"join i64", "aggregate", "sort i64", "sort text,i64"})
    cells->Add(name,
               [settings = cells->settings(), name](Section* section) { return LinearCell(settings, name, section); });
}

// ---- unspilled -------------------------------------------------------------------------------------------------

absl::Status UnspilledCell(const Settings& settings, const SpillJob& job, unsigned threads, Section* section) {
  RunSettings without;
  without.threads = threads;
  RunSettings with = without;
  with.spills = true;
  with.limit_bytes = uint64_t{64} << 30;
  std::vector<SpillContender> contenders = {{without, {}}, {with, {}}};
  QUERN_RETURN_IF_ERROR(TakeTurns(job, settings.Turns(7), &contenders));
  std::vector<std::string> row = RowStart(job, threads);
  const double without_s = contenders[0].best.seconds, with_s = contenders[1].best.seconds;
  row.insert(row.end(), {Fixed(without_s * 1e3, 1), Fixed(with_s * 1e3, 1), Fixed(without_s / with_s)});
  AppendSpilled(contenders[1].best.spill, &row);
  section->Row(row);
  return absl::OkStatus();
}

void AddUnspilled(Cells* cells) {
  cells->Begin("unspilled", "what do spill options cost a job whose rows all fit? Gain: above 1 they cost nothing",
               Columns({{"without ms", 11}, {"with ms", 11}, {"gain", 7}}));
  AddJobs(cells, &UnspilledCell);
}

}  // namespace

std::vector<NamedCell> AllSpillCells(const Settings& settings) {
  std::vector<NamedCell> all;
  Cells cells(settings, &all);
  AddBudget(&cells);
  AddDevice(&cells);
  AddCodec(&cells);
  AddLinear(&cells);
  AddUnspilled(&cells);
  return all;
}

}  // namespace quern::bench
