// SPDX-License-Identifier: Apache-2.0
// What a join costs per row, beside what this machine's memory costs per row: the price of one random cache line at the best prefetch
// distance, in a table of the same size, on the same kind of pages, measured in this run. A probe of the unchained table touches two such
// lines (directory, tuple), so two floors are what it can reach.
//
// Sparse random i64 keys, unique on the build side, every probe row has one match; the result is counted. Kernels take turns (A B C A B C
// ..), and the best of the turns counts, because a neighbour on a shared machine can only add.
//
//     join_bench [--benchmark_filter=..]     ns/row of build and probe: generic, compiled, compiled with distance 0, and the floor
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "codegen/compiler.h"
#include "runtime/blocks.h"
#include "runtime/output_batch.h"

namespace quern {
namespace {

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Keys {
  std::vector<uint64_t> build, probe;
};

const Keys& KeysOf(uint64_t build_rows, uint64_t probe_rows) {
  static Keys keys;
  if (keys.build.size() == build_rows && keys.probe.size() == probe_rows) return keys;
  std::mt19937_64 random(build_rows);
  keys.build.resize(build_rows);
  keys.probe.resize(probe_rows);
  for (uint64_t& key : keys.build) key = random();
  for (uint64_t& key : keys.probe) key = keys.build[random() % build_rows];
  return keys;
}

BatchView View(const std::vector<uint64_t>& keys, uint64_t first, uint64_t rows) {
  BatchView batch;
  batch.keys.resize(1);
  batch.keys[0] = {};
  batch.keys[0].values = keys.data() + first;
  batch.num_rows = rows;
  return batch;
}

constexpr uint64_t kRowsOfABatch = 1 << 16;

struct Times {
  double build_ns = 1e9, probe_ns = 1e9;  // per row, best of all turns
  uint64_t matches = 0;
  uint64_t table_bytes = 0;
};

void RunOnce(const std::shared_ptr<const Kernel>& kernel, const Keys& keys, Times* times) {
  const auto budget = std::make_shared<MemoryBudget>();
  const double start = Now();
  const std::shared_ptr<HashJoin> join = MakeHashJoin(kernel, budget);
  for (uint64_t at = 0; at < keys.build.size(); at += kRowsOfABatch) {
    if (!join->Append(View(keys.build, at, std::min(kRowsOfABatch, keys.build.size() - at))).ok()) return;
  }
  if (!join->Finalise().ok()) return;
  const double built = Now();
  JoinProber prober(join);
  OutputBatch out({}, 1, budget);
  uint64_t matches = 0;
  for (uint64_t at = 0; at < keys.probe.size(); at += kRowsOfABatch) {
    if (!prober.SetInput(View(keys.probe, at, std::min(kRowsOfABatch, keys.probe.size() - at))).ok()) return;
    if (!prober.Next(&out).ok()) return;
    matches += out.num_rows();
  }
  const double probed = Now();
  times->build_ns = std::min(times->build_ns, (built - start) / static_cast<double>(keys.build.size()) * 1e9);
  times->probe_ns = std::min(times->probe_ns, (probed - built) / static_cast<double>(keys.probe.size()) * 1e9);
  times->matches = matches;
  times->table_bytes = join->stats().directory_bytes + join->stats().tuple_bytes;
}

// ns of one random line in `bytes` of memory: independent loads at the best of several prefetch distances.
template <int kDistance>
double RandomLines(const uint64_t* table, uint64_t lines, uint64_t loads) {
  // Truly random: multiplying alone would step through memory by one stride.
  const auto line = [&](uint64_t i) { return static_cast<uint64_t>((static_cast<unsigned __int128>(blocks::Mix(i + 1)) * lines) >> 64); };
  uint64_t sum = 0;
  const double start = Now();
  for (uint64_t i = 0; i < loads; ++i) {
    if (kDistance > 0) __builtin_prefetch(&table[line(i + kDistance) * 8]);
    sum += table[line(i) * 8];
  }
  benchmark::DoNotOptimize(sum);
  return (Now() - start) / static_cast<double>(loads) * 1e9;
}

double Floor(uint64_t bytes) {
  const auto budget = std::make_shared<MemoryBudget>();
  auto memory = HugeBuffer::Allocate(budget, std::max<uint64_t>(bytes, 4096), true);
  if (!memory.ok()) return 0;
  uint64_t* table = reinterpret_cast<uint64_t*>(memory->data());
  for (uint64_t i = 0; i < memory->bytes() / 8; ++i) table[i] = i * 0x9e3779b97f4a7c15u >> 7;
  const uint64_t lines = memory->bytes() / 64, loads = 5'000'000;
  double best = 1e9;
  for (int turn = 0; turn < 3; ++turn) {
    best = std::min({best, RandomLines<0>(table, lines, loads), RandomLines<8>(table, lines, loads), RandomLines<16>(table, lines, loads),
                     RandomLines<32>(table, lines, loads), RandomLines<64>(table, lines, loads), RandomLines<128>(table, lines, loads)});
  }
  return best;
}

std::shared_ptr<const Kernel> Make(Engine engine, const PlanOverrides& overrides) {
  CompileOptions options;
  options.engine = engine;
  options.overrides = overrides;
  const auto compiled = Compile(*ParseSpec("join.inner keys=i64"), options);
  return compiled.ok() ? compiled->kernel : nullptr;
}

void JoinRow(benchmark::State& state) {
  const uint64_t build_rows = static_cast<uint64_t>(state.range(0)), probe_rows = static_cast<uint64_t>(state.range(1));
  const Keys& keys = KeysOf(build_rows, probe_rows);
  const std::pair<const char*, std::shared_ptr<const Kernel>> kernels[] = {
      {"generic", Make(Engine::kGeneric, {})}, {"jit", Make(Engine::kJit, {})}, {"jit_d0", Make(Engine::kJit, {{"prefetch", "off"}})}};
  std::map<std::string, Times> times;
  const int turns = build_rows > 1'000'000 ? 3 : 7;
  for (auto _ : state) {
    for (int turn = 0; turn < turns; ++turn)
      for (const auto& [name, kernel] : kernels)
        if (kernel) RunOnce(kernel, keys, &times[name]);
  }
  for (const auto& [name, t] : times) {
    if (t.matches != probe_rows) return state.SkipWithError("wrong number of matches");
    state.counters[name + "_build"] = t.build_ns;
    state.counters[name + "_probe"] = t.probe_ns;
  }
  const double floor = Floor(times["jit"].table_bytes);
  state.counters["floor"] = floor;
  state.counters["probe/floor"] = times["jit"].probe_ns / floor;
}

}  // namespace
}  // namespace quern

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  std::printf("ns/row of build and probe; floor: ns of one random cache line in a table of the same size, at its best distance\n");
  auto* bench = benchmark::RegisterBenchmark("join/i64/unique", quern::JoinRow)->Iterations(1)->Unit(benchmark::kMillisecond);
  bench->ArgNames({"build", "probe"});
  bench->Args({1'000, 10'000'000})->Args({100'000, 10'000'000})->Args({1'000'000, 10'000'000})->Args({10'000'000, 20'000'000});
  benchmark::RunSpecifiedBenchmarks();
}
