// SPDX-License-Identifier: Apache-2.0
// Does Compile's work in the background ever slow a job down? Twenty specs, jobs of 10^2 to 10^7 rows; each job runs as
// if its spec had never been seen: the kernels of the process are dropped before it, and none are kept on disk. A time
// is that of a whole job on one thread, from Compile to the last row. A ratio is that time divided by the time of the
// same job with Engine::kGeneric; both take turns; medians.
//
//     background   the number of rows is not announced
//     expected     CompileOptions::expected_rows announces it, as quern_*_run and the command line do
//     speeds       what codegen/tier/tier_policy.cc estimates: ns a row of both kernels and ms to compile,
//                  each beside the expected value; CPU time, best of the turns
//
// A job of 10^6 rows of `aggregate keys=i64 ..` takes 10 ms on the generic kernel; compiling meanwhile takes 4 ms on
// another CPU.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/common/any_job.h"
#include "bench/common/sections.h"
#include "bench/common/text_table.h"
#include "bench/common/timing.h"
#include "codegen/compiler.h"
#include "codegen/tier/compile_queue.h"
#include "codegen/tier/tier_policy.h"
#include "runtime/base/status.h"

namespace quern::bench {
namespace {

constexpr const char* kSpecs[] = {
    "join.inner keys=i64",
    "join.inner keys=i64 build=i64 probe=i64",
    "join.inner keys=i32 build=f64,date32 probe=i64,f64",
    "join.inner keys=utf8 build=i64 probe=i64",
    "join.inner keys=i64,utf8(utf8mb4_bin) build=f64 probe=i64",
    "join.semi keys=i64,i64 probe=i64",
    "aggregate keys=i64 aggs=count_star,sum(i64),max(f64)",
    "aggregate keys=utf8 aggs=sum(f64)",
    "aggregate keys=utf8,utf8 aggs=sum(f64),sum(f64),avg(f64),avg(f64),count_star",
    "aggregate keys=i64,i32 aggs=count_star,min(i64),max(i64),avg(f64)",
    "aggregate aggs=sum(f64),min(f64),max(f64),count_star",
    "sort keys=i64:out payload=rowid",
    "sort keys=f64:desc:out,i64:out",
    "sort keys=utf8:out payload=rowid",
    "sort keys=i32:out,utf8:out payload=i64",
    "sort keys=f64:desc:out,i64:out payload=rowid limit=100",
    "filter i64 > 36028797018963968",
    "filter i64 > 36028797018963968 and i32 < 50000 and f64 >= 3",
    "filter utf8 = 'w000000007919'",
    "filter utf8(utf8mb4_bin) like '%9%9%' and i64 > 36028797018963968",
};
constexpr uint64_t kSizes[] = {100, 1'000, 10'000, 100'000, 1'000'000, 10'000'000};

int TurnsOf(uint64_t num_rows) {
  return num_rows <= 10'000 ? 101 : num_rows <= 100'000 ? 51 : num_rows <= 1'000'000 ? 15 : 5;
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Drops everything that earlier jobs compiled, and waits until no compilation of theirs is running.
void Forget() {
  while (!CompileQueue::OfProcess().IsIdle()) std::this_thread::sleep_for(std::chrono::microseconds(200));
  ClearKernelCache();
}

absl::StatusOr<double> JobSeconds(const std::string& spec, const CompileOptions& options, const AnyInput& input) {
  Forget();
  const double start = Now();
  {
    QUERN_ASSIGN_OR_RETURN(const CompiledKernel compiled, CompileText(spec, options));
    QUERN_RETURN_IF_ERROR(RunAny(compiled.kernel, input).status());
  }
  return Now() - start;
}

struct PairOfTimes {
  double generic_s = 0, tiered_s = 0;
};

absl::StatusOr<PairOfTimes> TakeTurns(const std::string& spec, uint64_t num_rows, bool tells_rows, int turns) {
  QUERN_ASSIGN_OR_RETURN(const KernelSpec parsed, ParseSpec(spec));
  const AnyInput input(parsed, num_rows);
  CompileOptions generic, tiered;
  generic.engine = Engine::kGeneric;
  tiered.when = CompileWhen::kBackground;
  if (tells_rows) tiered.expected_rows = input.num_rows() + input.build_rows();
  std::vector<double> generic_s, tiered_s;
  for (int turn = -1; turn < turns; ++turn) {  // the first turn warms up
    QUERN_ASSIGN_OR_RETURN(const double one, JobSeconds(spec, generic, input));
    QUERN_ASSIGN_OR_RETURN(const double other, JobSeconds(spec, tiered, input));
    if (turn < 0) continue;
    generic_s.push_back(one);
    tiered_s.push_back(other);
  }
  return PairOfTimes{Median(generic_s), Median(tiered_s)};
}

// The sums for the last rows of a section.
struct Totals {
  std::map<uint64_t, PairOfTimes> sums;
  std::map<uint64_t, double> worst;
};

void AddRatios(const std::string& name, const std::string& question, bool tells_rows, Cells* cells) {
  std::vector<TextColumn> columns = {{"spec", -80}};
  for (const uint64_t rows : kSizes) columns.push_back({Grouped(rows), 12});
  cells->Begin(name, question, columns);
  const auto totals = std::make_shared<Totals>();
  const Settings settings = cells->settings();
  for (const char* spec : kSpecs) {
    cells->Add(spec, [=](Section* section) -> absl::Status {
      std::vector<std::string> row = {spec};
      for (const uint64_t size : kSizes) {
        const uint64_t rows = settings.Rows(size);
        QUERN_ASSIGN_OR_RETURN(const PairOfTimes times,
                               TakeTurns(spec, rows, tells_rows, settings.Turns(TurnsOf(size))));
        const double ratio = times.tiered_s / times.generic_s;
        totals->sums[size].generic_s += times.generic_s;
        totals->sums[size].tiered_s += times.tiered_s;
        totals->worst[size] = std::max(totals->worst[size], ratio);
        row.push_back(Fixed(ratio, 3));
      }
      section->Row(row);
      return absl::OkStatus();
    });
  }
  cells->Add("total", [=](Section* section) -> absl::Status {
    std::vector<std::string> all = {"all specs: sum of times"}, worst = {"worst spec"}, ms = {"all specs, generic, ms"};
    for (const uint64_t size : kSizes) {
      all.push_back(Fixed(totals->sums[size].tiered_s / totals->sums[size].generic_s, 3));
      worst.push_back(Fixed(totals->worst[size], 3));
      ms.push_back(Fixed(totals->sums[size].generic_s * 1e3, 3));
    }
    section->BreakAt("specs");
    section->BreakAt("totals");
    section->Row(all);
    section->Row(worst);
    section->Row(ms);
    return absl::OkStatus();
  });
}

// Seconds that this thread had a CPU, so that a shared CPU does not make kernels look slow.
double CpuNow() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

absl::StatusOr<double> RowNs(const std::shared_ptr<const Kernel>& kernel, const AnyInput& input) {
  const double start = CpuNow();
  QUERN_RETURN_IF_ERROR(RunAny(kernel, input).status());
  return (CpuNow() - start) / static_cast<double>(input.num_rows() + input.build_rows()) * 1e9;
}

absl::Status PrintSpeeds(const std::string& spec, const Settings& settings, Section* section) {
  QUERN_ASSIGN_OR_RETURN(const KernelSpec parsed, ParseSpec(spec));
  const AnyInput input(parsed, settings.Rows(1'000'000));
  CompileOptions generic, compiled;
  generic.engine = Engine::kGeneric;
  compiled.engine = Engine::kJit;
  std::vector<double> compile_ms;
  QUERN_ASSIGN_OR_RETURN(const CompiledKernel generic_kernel, CompileText(spec, generic));
  QUERN_RETURN_IF_ERROR(CompileText(spec, compiled).status());  // initialises LLVM
  double generic_ns = 1e9, jit_ns = 1e9;
  for (int turn = 0; turn < settings.Turns(9); ++turn) {
    ClearKernelCache();
    const double start = CpuNow();
    QUERN_ASSIGN_OR_RETURN(const CompiledKernel kernel, CompileText(spec, compiled));
    compile_ms.push_back((CpuNow() - start) * 1e3);
    QUERN_ASSIGN_OR_RETURN(const double one, RowNs(generic_kernel.kernel, input));
    QUERN_ASSIGN_OR_RETURN(const double other, RowNs(kernel.kernel, input));
    generic_ns = std::min(generic_ns, one);
    jit_ns = std::min(jit_ns, other);
  }
  const KernelCosts costs = EstimateCosts(parsed);
  section->Row({spec, Fixed(*std::min_element(compile_ms.begin(), compile_ms.end()), 1), Fixed(costs.compile_ms, 1),
                Fixed(generic_ns), Fixed(costs.generic_ns), Fixed(jit_ns), Fixed(generic_ns - jit_ns),
                Fixed(costs.gain_ns)});
  return absl::OkStatus();
}

std::vector<NamedCell> AllSections(const Settings& settings) {
  std::vector<NamedCell> all;
  Cells cells(settings, &all);
  AddRatios("background",
            "jobs with unknown row counts, compiled in the background: time divided by the generic kernel's", false,
            &cells);
  AddRatios("expected", "the same with expected_rows", true, &cells);
  cells.Begin("speeds", "what compiling costs and gains, 10^6 rows, and what the policy expects",
              {{"spec", -80},
               {"ms", 8, "compile"},
               {"expected", 10, "compile"},
               {"ns", 8, "generic"},
               {"expected", 10, "generic"},
               {"ns", 8, "compiled"},
               {"ns", 8, "gain"},
               {"expected", 10, "gain"}});
  for (const char* spec : kSpecs) {
    cells.Add(spec, [=](Section* section) { return PrintSpeeds(spec, settings, section); });
  }
  return all;
}

}  // namespace
}  // namespace quern::bench

int main(int argc, char** argv) {
  setenv("QUERN_CACHE", "off", 1);
  return quern::bench::RunSections("never_slower", quern::bench::AllSections, argc, argv);
}
