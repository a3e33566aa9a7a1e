// SPDX-License-Identifier: Apache-2.0
// What all benches share: their options, the registration of cells with Google Benchmark (so that its filters select
// them) and the printing of rows as tables. A cell runs once; it decides itself how many turns its contenders take.
#include "bench/common/sections.h"

#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "codegen/machine/machine.h"
#include "codegen/plan/plan.h"

namespace quern::bench {
namespace {

// Prints nothing: cells print their own rows.
class SilentReporter : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>&) override {}
};

struct Progress {
  std::string bench;
  Section* open = nullptr;
  int num_failed = 0;
};

void RunCell(const NamedCell& cell, Progress* progress, benchmark::State& state) {
  if (progress->open != cell.section.get()) {
    if (progress->open != nullptr) progress->open->PrintSummary();
    progress->open = cell.section.get();
    progress->open->Open();
  }
  absl::Status status;
  for (auto _ : state) status = cell.run(progress->open);
  if (status.ok()) return;
  ++progress->num_failed;
  std::fprintf(stderr, "%s: error: %s: %s\n", progress->bench.c_str(), cell.name.c_str(),
               std::string(status.message()).c_str());
  state.SkipWithError("failed");
}

// Removes the options of the bench from the arguments.
bool ReadSettings(const std::string& bench, int* argc, char** argv, Settings* settings) {
  int kept = 1;
  for (int i = 1; i < *argc; ++i) {
    const std::string option = argv[i];
    if (option != "--rows-scale" && option != "--turns") {
      argv[kept++] = argv[i];
      continue;
    }
    const char* const text = i + 1 < *argc ? argv[++i] : "";
    char* end = nullptr;
    const double value = std::strtod(text, &end);
    const double largest = option == "--turns" ? 1000 : 2;  // keys are 31-bit numbers, and text has 32-bit offsets
    if (end == text || *end != '\0' || !(value > 0) || value > largest ||
        (option == "--turns" && value != static_cast<int>(value))) {
      std::fprintf(stderr, "%s: error: bad value of %s: '%s'; accepted: %s\n", bench.c_str(), option.c_str(), text,
                   option == "--turns" ? "1 to 1000" : "a number above 0, up to 2");
      return false;
    }
    if (option == "--turns") settings->turns = static_cast<int>(value);
    else settings->rows_scale = value;
  }
  *argc = kept;
  return true;
}

void PrintContext(const std::string& bench, const Settings& settings) {
  const auto machine = HostMachine();
  if (!machine.ok()) return;
  std::printf("%s: %s, %u cores, L2 %s, L3 %s; rows times %g; ns a row, best of interleaved turns\n", bench.c_str(),
              machine->cpu.c_str(), std::thread::hardware_concurrency(), Bytes(machine->l2_bytes).c_str(),
              Bytes(machine->l3_bytes).c_str(), settings.rows_scale);
  std::printf("!: ratio below 0.98\n");
}

void PrintPeak() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("\npeak memory %s\n", Bytes(static_cast<uint64_t>(usage.ru_maxrss) * 1024).c_str());
}

}  // namespace

int RunSections(const std::string& bench, AllCells all_cells, int argc, char** argv) {
  Settings settings;
  if (!ReadSettings(bench, &argc, argv, &settings)) return 2;
  bool lists = false;
  for (int i = 1; i < argc; ++i) lists |= std::string_view(argv[i]).rfind("--benchmark_list_tests", 0) == 0;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const std::vector<NamedCell> cells = all_cells(settings);
  Progress progress;
  progress.bench = bench;
  for (const NamedCell& cell : cells) {
    benchmark::RegisterBenchmark(cell.name.c_str(), [&](benchmark::State& state) {
      RunCell(cell, &progress, state);
    })->Iterations(1);
  }
  if (!lists) PrintContext(bench, settings);
  SilentReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  if (lists) return 0;
  if (progress.open != nullptr) progress.open->PrintSummary();
  PrintPeak();
  return progress.num_failed == 0 ? 0 : 1;
}

uint64_t Settings::Rows(uint64_t rows) const {
  return std::max<uint64_t>(static_cast<uint64_t>(static_cast<double>(rows) * rows_scale) / 4 * 4, 4);
}

void Section::Open() const {
  std::printf("\n%s: %s\n\n", name_.c_str(), question_.c_str());
  table_.PrintHeader();
}

void Section::BreakAt(const std::string& block) {
  if (!block_.empty() && block != block_) std::printf("\n");
  block_ = block;
}

void Section::CountRatio(double ratio) {
  ++num_ratios_;
  lowest_ratio_ = std::min(lowest_ratio_, ratio);
  highest_ratio_ = std::max(highest_ratio_, ratio);
  if (ratio < kLowRatio) ++num_low_ratios_;
}

void Section::PrintSummary() const {
  if (num_ratios_ == 0) return;
  std::printf("\n%d of %d cells below %.2f of distance 0; ratios %.2f to %.2f\n", num_low_ratios_, num_ratios_,
              kLowRatio, lowest_ratio_, highest_ratio_);
}

}  // namespace quern::bench
