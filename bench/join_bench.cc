// SPDX-License-Identifier: Apache-2.0
// What a join costs per row: of every key type, size and layout, with and without prefetching, on one thread and on several, beside what
// the machine's memory costs per row. Each section answers one question and prints one table; its cells are benchmarks by name:
//
//     join_bench                                        all of it: minutes, and 3 GiB at the peak
//     join_bench --benchmark_list_tests                 the names
//     join_bench --benchmark_filter=floor               one section
//     join_bench --benchmark_filter=postgres/i64/.*/extra0 --turns 9
//     join_bench --rows-scale 0.001                     everything with a thousandth of the rows: does it run?
//
// What is compared takes turns (A B C A B C ..) in one process, and the best of the turns counts, because a neighbour on a shared machine
// can only add. A prefetch that gains nothing differs from distance 0 by noise alone; hence a ratio below 0.98 is given more turns before
// it is believed. Every run checks the number of its result rows.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/join_sections.h"
#include "codegen/machine.h"
#include "codegen/plan.h"

namespace quern::bench {
namespace {

// Prints nothing: cells print their own rows.
class SilentReporter : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>&) override {}
};

struct Progress {
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
  std::fprintf(stderr, "join_bench: error: %s: %s\n", cell.name.c_str(), std::string(status.message()).c_str());
  state.SkipWithError("failed");
}

// Takes our own options out of the arguments.
bool ReadSettings(int* argc, char** argv, Settings* settings) {
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
    const double largest = option == "--turns" ? 1000 : 2;  // keys are numbers of 31 bits, and text has 32-bit offsets
    if (end == text || *end != '\0' || !(value > 0) || value > largest || (option == "--turns" && value != static_cast<int>(value))) {
      std::fprintf(stderr, "join_bench: error: bad value of %s: '%s'; accepted: %s\n", option.c_str(), text,
                   option == "--turns" ? "1 to 1000" : "a number above 0, up to 2");
      return false;
    }
    if (option == "--turns") settings->turns = static_cast<int>(value);
    else settings->rows_scale = value;
  }
  *argc = kept;
  return true;
}

void PrintContext(const Settings& settings) {
  const auto machine = HostMachine();
  if (!machine.ok()) return;
  std::printf("join_bench: %s, %u cores, L2 %s, L3 %s; rows times %g; ns a row, best of interleaved turns\n", machine->cpu.c_str(),
              std::thread::hardware_concurrency(), Bytes(machine->l2_bytes).c_str(), Bytes(machine->l3_bytes).c_str(), settings.rows_scale);
  const KernelPlan plan;
  std::printf("prefetch distances of the plan: %u rows for tables in L2, %u in L3, %u beyond; !: ratio below 0.98\n",
              plan.prefetch_distance_l2, plan.prefetch_distance_l3, plan.prefetch_distance_dram);
}

void PrintPeak() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("\npeak memory %s\n", Bytes(static_cast<uint64_t>(usage.ru_maxrss) * 1024).c_str());
}

int Main(int argc, char** argv) {
  Settings settings;
  if (!ReadSettings(&argc, argv, &settings)) return 2;
  bool lists = false;
  for (int i = 1; i < argc; ++i) lists |= std::string_view(argv[i]).rfind("--benchmark_list_tests", 0) == 0;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const std::vector<NamedCell> cells = AllCells(settings);
  Progress progress;
  for (const NamedCell& cell : cells) {
    benchmark::RegisterBenchmark(cell.name.c_str(), [&](benchmark::State& state) { RunCell(cell, &progress, state); })->Iterations(1);
  }
  if (!lists) PrintContext(settings);
  SilentReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  if (lists) return 0;
  if (progress.open != nullptr) progress.open->PrintSummary();
  PrintPeak();
  return progress.num_failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace quern::bench

int main(int argc, char** argv) { return quern::bench::Main(argc, argv); }
