// SPDX-License-Identifier: Apache-2.0
// How long from a spec to a callable kernel? Every stage, cold (nothing cached but the process's targets and templates), one thread; and a
// hit of the memory cache. The time of an iteration is the whole compilation, the counters are its stages in milliseconds:
//
//     load      parse the template's bitcode          optimise  our own pass list
//     emit      define the holes                      codegen   LLVM's code generator
//     link      link blocks, check invariants         jit       JITLink
//
// `compile_bench` prints the median of 20 repetitions; the first line is the process's first compilation, with LLVM's initialisation.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <string>

#include "codegen/compiler.h"

namespace quern {
namespace {

constexpr const char* kFourKeys = "join.inner keys=i64,utf8,i32,utf8(utf8mb4_bin) build=f64 probe=i64";

std::string ManyKeys(int n) {
  std::string spec = "join.inner keys=i64";
  for (int i = 1; i < n; ++i) spec += i % 4 == 1 ? ",utf8" : i % 4 == 2 ? ",i32" : i % 4 == 3 ? ",f64" : ",i64";
  return spec + " build=i64 probe=i64";
}

std::string ManySortKeys(int n) {
  std::string spec = "sort keys=i64:out";
  for (int i = 1; i < n; ++i) spec += i % 4 == 1 ? ",utf8:out" : i % 4 == 2 ? ",i32:out" : i % 4 == 3 ? ",f64:out" : ",i64:out";
  return spec + " payload=i64";
}

void Report(benchmark::State& state, const CompileTimes& total) {
  const auto mean = benchmark::Counter::kAvgIterations;
  state.counters["load"] = benchmark::Counter(total.load_ms, mean);
  state.counters["emit"] = benchmark::Counter(total.emit_ms, mean);
  state.counters["link"] = benchmark::Counter(total.link_ms, mean);
  state.counters["optimise"] = benchmark::Counter(total.optimise_ms, mean);
  state.counters["codegen"] = benchmark::Counter(total.codegen_ms, mean);
  state.counters["jit"] = benchmark::Counter(total.jit_ms, mean);
}

void Cold(benchmark::State& state, const std::string& text) {
  const auto spec = ParseSpec(text);
  if (!spec.ok()) return state.SkipWithError(std::string(spec.status().message()).c_str());
  CompileOptions options;
  options.engine = Engine::kJit;
  options.use_cache = false;
  CompileTimes total;
  uint64_t code_bytes = 0;
  for (auto _ : state) {
    const auto compiled = Compile(*spec, options);
    if (!compiled.ok()) return state.SkipWithError(std::string(compiled.status().message()).c_str());
    const CompileTimes& t = compiled->kernel->times;
    total.load_ms += t.load_ms;
    total.emit_ms += t.emit_ms;
    total.link_ms += t.link_ms;
    total.optimise_ms += t.optimise_ms;
    total.codegen_ms += t.codegen_ms;
    total.jit_ms += t.jit_ms;
    code_bytes = compiled->kernel->code_bytes;
  }
  Report(state, total);
  state.counters["code_bytes"] = static_cast<double>(code_bytes);
}

void MemoryHit(benchmark::State& state) {
  CompileOptions options;
  options.engine = Engine::kJit;
  const auto first = CompileText(kFourKeys, options);
  if (!first.ok()) return state.SkipWithError(std::string(first.status().message()).c_str());
  for (auto _ : state) benchmark::DoNotOptimize(CompileText(kFourKeys, options));
}

void Register(const char* name, const std::string& spec) {
  benchmark::RegisterBenchmark((std::string("cold/") + name).c_str(), [spec](benchmark::State& state) { Cold(state, spec); })
      ->Unit(benchmark::kMillisecond)
      ->Iterations(1)
      ->Repetitions(20)
      ->ReportAggregatesOnly();
}

void PrintFirst() {
  const auto spec = ParseSpec("join.inner keys=i64 build=i64 probe=i64");
  CompileOptions options;
  options.engine = Engine::kJit;
  options.use_cache = false;
  const auto compiled = Compile(*spec, options);
  if (compiled.ok()) std::printf("first compilation of the process: %.1f ms\n", compiled->kernel->times.total_ms);
}

}  // namespace
}  // namespace quern

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  quern::PrintFirst();
  quern::Register("keys=i64", "join.inner keys=i64 build=i64 probe=i64");
  quern::Register("keys=i64/no_payload", "join.inner keys=i64");
  quern::Register("keys=i64,utf8,i32,utf8", quern::kFourKeys);
  for (int n : {1, 2, 4, 8, 16}) quern::Register((std::to_string(n) + "_keys").c_str(), quern::ManyKeys(n));
  quern::Register("sort/keys=i64", "sort keys=i64:out");
  quern::Register("sort/keys=i64,payload=rowid", "sort keys=i64:out payload=rowid");
  quern::Register("sort/keys=i32,utf8", "sort keys=i32:out,utf8:out");
  quern::Register("sort/keys=i32,utf8,limit", "sort keys=i32:out,utf8:out limit=100");
  quern::Register("sort/keys=i32,utf8,i64,utf8",
                  "sort keys=i32:out,utf8(utf8mb4_bin):out,i64:desc:out,utf8:nullable:out payload=f64,rowid");
  for (int n : {1, 2, 4, 8, 16}) quern::Register(("sort/" + std::to_string(n) + "_keys").c_str(), quern::ManySortKeys(n));
  quern::Register("sort/keys=i32,utf8_ci", "sort keys=i32:out,utf8(utf8mb4_0900_ai_ci):out");
  quern::Register("keys=i64,utf8_ci", "join.inner keys=i64,utf8(utf8mb4_0900_ai_ci) build=i64 probe=i64");
  quern::Register("keys=i64,utf8", "join.inner keys=i64,utf8 build=i64 probe=i64");
  quern::Register("filter/i64>=", "filter i64 >= 5");
  quern::Register("filter/utf8=", "filter utf8 = 'REG AIR'");
  quern::Register("filter/utf8_ci=", "filter utf8(utf8mb4_0900_ai_ci) = 'REG AIR'");
  quern::Register("filter/utf8_in", "filter utf8 in ('MAIL', 'SHIP', 'TRUCK', 'RAIL')");
  quern::Register("filter/utf8_like", "filter utf8 like '%pending%deposits%'");
  quern::Register("filter/utf8_ci_like", "filter utf8(utf8mb4_0900_ai_ci) like '%pending%deposits%'");
  quern::Register("filter/three", "filter i64 between -250 and 249 and utf8 like '%et%' or date32 < 9000");
  benchmark::RegisterBenchmark("memory_hit", quern::MemoryHit)->Unit(benchmark::kMicrosecond)->Repetitions(5)->ReportAggregatesOnly();
  benchmark::RunSpecifiedBenchmarks();
}
