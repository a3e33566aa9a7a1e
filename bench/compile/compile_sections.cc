// SPDX-License-Identifier: Apache-2.0
// Times are medians of 50 compilations (--turns). A compilation makes ten thousand small allocations and touches more
// memory than the caches hold, so its best case is not what a query sees. For code that runs, the best turn counts, as
// in the other benches.
//
// Section `keys` fits a line through the totals of 1, 2, 4, 8 and 16 keys by least squares and prints how far 16 keys
// are from it: a small distance means that time is linear.
#include "bench/compile/compile_sections.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "bench/common/timing.h"
#include "bench/compile/compile_jobs.h"
#include "bench/compile/fresh_process.h"
#include "codegen/compiler.h"
#include "codegen/llvm/passes.h"
#include "runtime/base/status.h"

namespace quern::bench {
namespace {

constexpr int kTurns = 50;
constexpr uint64_t kLoopRows = 1 << 18;

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// The medians of all stages.
struct Stages {
  CompileTimes ms;
  uint64_t code_bytes = 0;
};

PlanOverrides OverridesOf(const std::string& params) {
  PlanOverrides overrides;
  for (size_t at = 0; at < params.size();) {
    const size_t end = std::min(params.find(' ', at), params.size()), equals = params.find('=', at);
    overrides.emplace_back(params.substr(at, equals - at), params.substr(equals + 1, end - equals - 1));
    at = end + 1;
  }
  return overrides;
}

absl::StatusOr<Stages> CompileCold(const std::string& text, int turns, const std::string& params = "") {
  QUERN_ASSIGN_OR_RETURN(const KernelSpec spec, ParseSpec(text));
  CompileOptions options;
  options.engine = Engine::kJit;
  options.use_cache = false;
  options.overrides = OverridesOf(params);
  constexpr double CompileTimes::* kStages[] = {
      &CompileTimes::plan_ms,     &CompileTimes::load_ms,    &CompileTimes::emit_ms, &CompileTimes::link_ms,
      &CompileTimes::optimise_ms, &CompileTimes::codegen_ms, &CompileTimes::jit_ms,  &CompileTimes::total_ms};
  std::vector<double> ms[std::size(kStages)];
  Stages stages;
  for (int turn = -1; turn < turns; ++turn) {  // the first turn is not counted
    QUERN_ASSIGN_OR_RETURN(const CompiledKernel compiled, Compile(spec, options));
    for (size_t s = 0; turn >= 0 && s < std::size(kStages); ++s) ms[s].push_back(compiled.kernel->times.*kStages[s]);
    stages.code_bytes = compiled.kernel->code_bytes;
  }
  for (size_t s = 0; s < std::size(kStages); ++s) stages.ms.*kStages[s] = Median(ms[s]);
  return stages;
}

// ---- cold --------------------------------------------------------------------------------------------------------

// Specs that other sections take, too.
constexpr const char* kJoin = "join.inner keys=i64 build=i64 probe=i64";
constexpr const char* kJoinOfFourKeys = "join.inner keys=i64,utf8,i32,utf8(utf8mb4_bin) build=f64 probe=i64";
constexpr const char* kAggregation = "aggregate keys=i64 aggs=count_star,sum(i64),max(f64)";
constexpr const char* kSort = "sort keys=i64:out payload=rowid";
constexpr const char* kFilter = "filter i64 >= 5";

constexpr const char* kColdSpecs[] = {
    "join.inner keys=i64",
    kJoin,
    "join.inner keys=i64,utf8 build=i64 probe=i64",
    "join.inner keys=i64,utf8(utf8mb4_0900_ai_ci) build=i64 probe=i64",
    kJoinOfFourKeys,
    "aggregate keys=i64 aggs=count_star",
    kAggregation,
    "aggregate keys=i64,utf8,i32,utf8(utf8mb4_bin) aggs=count_star,sum(i64)",
    ("aggregate keys=i64 aggs=sum(i64:nullable):filter,avg(f64:nullable),var_pop(f64),min(i32),max(i64),"
     "bool_and(bool),sum(f64),any(i64)"),
    // TPC-H query 1.
    ("aggregate keys=utf8,utf8 in=decimal64(15,2),decimal64(15,2),decimal64(15,2),decimal64(15,2) aggs=sum($0),sum($1),"
     "sum(multiply($1,subtract(1:decimal64(1,0),$2))),"
     "sum(multiply(multiply($1,subtract(1:decimal64(1,0),$2)),add(1:decimal64(1,0),$3))),sum($2),count_star"),
    kSort,
    "sort keys=i32:out,utf8:out limit=100",
    "sort keys=i32:out,utf8(utf8mb4_bin):out,i64:desc:out,utf8:nullable:out payload=f64,rowid",
    kFilter,
    "filter utf8 = 'REG AIR'",
    "filter utf8(utf8mb4_0900_ai_ci) = 'REG AIR'",
    "filter utf8 in ('MAIL', 'SHIP', 'TRUCK', 'RAIL')",
    "filter utf8 like '%pending%deposits%'",
    "filter i64 between -250 and 249 and utf8 like '%et%' or date32 < 9000",
};

std::vector<TextColumn> StageColumns(const TextColumn& first) {
  std::vector<TextColumn> columns = {first};
  for (const char* name : {"total", "load", "emit", "link", "optimise", "codegen", "jit"}) columns.push_back({name, 9});
  columns.push_back({"code bytes", 12});
  return columns;
}

void AddStages(const Stages& stages, std::vector<std::string>* row) {
  const CompileTimes& t = stages.ms;
  for (double ms : {t.total_ms, t.load_ms, t.emit_ms, t.link_ms, t.optimise_ms, t.codegen_ms, t.jit_ms})
    row->push_back(Fixed(ms));
  row->push_back(Grouped(stages.code_bytes));
}

std::string Shortened(const std::string& text, size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 2) + "..";
}

void AddCold(Cells* cells) {
  cells->Begin("cold", "from spec to callable kernel, nothing cached, medians in ms", StageColumns({"spec", -68}));
  const int turns = cells->settings().Turns(kTurns);
  for (const char* spec : kColdSpecs) {
    cells->Add(spec, [=](Section* section) -> absl::Status {
      QUERN_ASSIGN_OR_RETURN(const Stages stages, CompileCold(spec, turns));
      std::vector<std::string> row = {Shortened(spec, 66)};
      AddStages(stages, &row);
      section->Row(row);
      return absl::OkStatus();
    });
  }
}

// ---- keys --------------------------------------------------------------------------------------------------------

constexpr int kNumKeys[] = {1, 2, 4, 8, 16};

// The types i64, utf8, i32, f64, and so on in turn.
std::string SpecOfKeys(const std::string& op, int num_keys) {
  const std::string flag = op == "sort" ? ":out" : "";
  std::string keys;
  for (int k = 0; k < num_keys; ++k) {
    constexpr const char* kTypes[] = {"i64", "utf8", "i32", "f64"};
    keys += (k == 0 ? "" : ",") + std::string(kTypes[k % 4]) + flag;
  }
  if (op == "join") return "join.inner keys=" + keys + " build=i64 probe=i64";
  return op == "sort" ? "sort keys=" + keys + " payload=i64" : "aggregate keys=" + keys + " aggs=count_star,sum(i64)";
}

absl::Status KeysCell(const std::string& op, int turns, Section* section) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0, last = 0;
  for (int num_keys : kNumKeys) {
    QUERN_ASSIGN_OR_RETURN(const Stages stages, CompileCold(SpecOfKeys(op, num_keys), turns));
    std::vector<std::string> row = {op + " " + std::to_string(num_keys)};
    AddStages(stages, &row);
    section->Row(row);
    last = stages.ms.total_ms;
    n += 1, x += num_keys, y += last, xx += num_keys * num_keys, xy += num_keys * last;
  }
  const double slope = (n * xy - x * y) / (n * xx - x * x), base = (y - slope * x) / n;
  std::printf("  %s: %.2f ms + %.2f ms a key; 16 keys take %.2f times what the line predicts\n\n", op.c_str(), base,
              slope, last / (base + slope * 16));
  return absl::OkStatus();
}

void AddKeys(Cells* cells) {
  cells->Begin("keys", "does time grow linearly with the keys (i64, utf8, i32, f64, in turn)? medians in ms",
               StageColumns({"keys", -16}));
  const int turns = cells->settings().Turns(kTurns);
  for (const char* op : {"join", "aggregate", "sort"}) {
    cells->Add(op, [=](Section* section) { return KeysCell(op, turns, section); });
  }
}

// ---- first, hit --------------------------------------------------------------------------------------------------

absl::Status FirstCell(const std::string& spec, int turns, Section* section) {
  std::vector<double> first;
  for (int turn = 0; turn < turns; ++turn) {
    QUERN_ASSIGN_OR_RETURN(const std::vector<double> ms, AskFreshProcess({"--first", spec}, {}, 1));
    first.push_back(ms[0]);
  }
  QUERN_ASSIGN_OR_RETURN(const Stages later, CompileCold(spec, turns));
  const double median = Median(first);
  section->Row({spec, Fixed(median), Fixed(later.ms.total_ms), Fixed(median - later.ms.total_ms)});
  return absl::OkStatus();
}

void AddFirst(Cells* cells) {
  cells->Begin("first", "the first compilation of a process, which initialises LLVM, medians in ms",
               {{"spec", -68}, {"first", 9}, {"later", 9}, {"extra", 9}});
  const int turns = cells->settings().Turns(21);
  for (const char* spec : {kJoin, kJoinOfFourKeys, kAggregation, kSort, kFilter}) {
    cells->Add(spec, [=](Section* section) { return FirstCell(spec, turns, section); });
  }
}

absl::Status HitCell(int turns, Section* section) {
  constexpr int kHits = 10'000;
  CompileOptions options;
  options.engine = Engine::kJit;
  QUERN_RETURN_IF_ERROR(CompileText(kJoinOfFourKeys, options).status());
  std::vector<double> us;
  for (int turn = 0; turn < turns; ++turn) {
    const double start = Now();
    for (int i = 0; i < kHits; ++i) QUERN_RETURN_IF_ERROR(CompileText(kJoinOfFourKeys, options).status());
    us.push_back((Now() - start) / kHits * 1e6);
  }
  section->Row({"memory", Fixed(Median(us), 3)});
  return absl::OkStatus();
}

absl::Status DiskHitCell(int turns, Section* section) {
  std::string folder = (std::filesystem::temp_directory_path() / "quern-bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr)
    return Internal("no folder: " + folder + "; accepted: a temporary folder that is writable");
  // The first process compiles the kernel; all later ones load it.
  const auto prefetch = [&] {
    return AskFreshProcess({"--from-disk", kJoinOfFourKeys}, {{"QUERN_CACHE", "rw"}, {"QUERN_CACHE_DIR", folder}}, 2);
  };
  QUERN_RETURN_IF_ERROR(prefetch().status());
  std::vector<double> first, later;
  for (int turn = 0; turn < turns; ++turn) {
    QUERN_ASSIGN_OR_RETURN(const std::vector<double> us, prefetch());
    first.push_back(us[0]);
    later.push_back(us[1]);
  }
  std::filesystem::remove_all(folder);
  section->Row({"disk, first", Fixed(Median(first), 3)});
  section->Row({"disk, later", Fixed(Median(later), 3)});
  return absl::OkStatus();
}

void AddHit(Cells* cells) {
  cells->Begin("hit",
               "a cached kernel, medians in microseconds; first: in a new process, with CPU detection and the "
               "creation of the JIT",
               {{"cache", -16}, {"us", 9}});
  const int turns = cells->settings().Turns(21);
  cells->Add("memory", [turns](Section* section) { return HitCell(turns, section); });
  cells->Add("disk", [turns](Section* section) { return DiskHitCell(turns, section); });
}

// ---- passes, stock, levels ---------------------------------------------------------------------------------------

// Milliseconds of optimise and codegen for the specs of all jobs, with these parameters and without, in turns.
struct Compared {
  double without_ms = 0, with_ms = 0;
};

absl::StatusOr<Compared> CompareCompiling(const std::string& params, int turns) {
  Compared compared;
  for (const LoopJob& job : AllLoopJobs()) {
    std::vector<double> without, with;
    for (int turn = 0; turn < turns; ++turn) {
      for (auto* ms : {&without, &with}) {
        QUERN_ASSIGN_OR_RETURN(const Stages stages, CompileCold(job.spec, 1, ms == &with ? params : ""));
        ms->push_back(stages.ms.optimise_ms + stages.ms.codegen_ms);
      }
    }
    compared.without_ms += Median(without);
    compared.with_ms += Median(with);
  }
  return compared;
}

// The time of the jobs with `params` relative to that without: the geometric mean, and the worst.
struct Slowdown {
  double mean = 1, worst = 0;
  std::string worst_job;
};

absl::StatusOr<Slowdown> CompareLoops(const std::string& params, const Settings& settings, int turns) {
  Slowdown slowdown;
  double sum = 0;
  for (const LoopJob& job : AllLoopJobs()) {
    QUERN_ASSIGN_OR_RETURN(const std::vector<double> ns, job.run({"", params}, settings.Rows(kLoopRows), turns));
    const double ratio = ns[1] / ns[0];
    sum += std::log(ratio);
    if (ratio > slowdown.worst) slowdown.worst = ratio, slowdown.worst_job = job.name;
  }
  slowdown.mean = std::exp(sum / static_cast<double>(AllLoopJobs().size()));
  return slowdown;
}

absl::Status PassCell(const Settings& settings, uint32_t row, Section* section) {
  const PassRow& pass = PassRows()[row];
  const std::string params = "test.toggled_pass=" + std::to_string(row + 1);
  QUERN_ASSIGN_OR_RETURN(const Compared compiling, CompareCompiling(params, settings.Turns(11)));
  QUERN_ASSIGN_OR_RETURN(const Slowdown loops, CompareLoops(params, settings, settings.Turns(15)));
  const bool is_left_out = pass.kind == PassKind::kLeftOut;
  const double cost_ms = (compiling.with_ms - compiling.without_ms) * (is_left_out ? 1 : -1);
  std::string name = pass.passes;
  if (name[0] == ',') name = name.substr(1, name.size() - 2);
  section->BreakAt(pass.kind < PassKind::kMachine ? "optimise" : is_left_out ? "left out" : "code generation");
  section->Row({Shortened(name, 50), is_left_out ? "no" : "yes", Fixed(cost_ms / compiling.without_ms * 100, 1),
                Fixed(loops.mean, 3), Fixed(loops.worst, 3), loops.worst_job});
  return absl::OkStatus();
}

void AddPasses(Cells* cells) {
  cells->Begin(
      "passes",
      "what share of optimise + codegen a pass costs, and how long loops take without it (if left out: with it)",
      {{"pass", -52}, {"run", 4}, {"cost %", 8}, {"loops", 8}, {"worst", 8}, {"  of job", -18}});
  for (uint32_t row = 1; row < PassRows().size(); ++row) {  // without always-inline there is no kernel
    const std::string name = std::to_string(row + 1);
    cells->Add(name,
               [settings = cells->settings(), row](Section* section) { return PassCell(settings, row, section); });
  }
}

absl::Status StockCell(const Settings& settings, const LoopJob& job, Section* section) {
  const int turns = settings.Turns(11);
  const std::string stock = "passes=o3 codegen_level=3";
  QUERN_ASSIGN_OR_RETURN(const Stages own_ms, CompileCold(job.spec, turns));
  QUERN_ASSIGN_OR_RETURN(const Stages stock_ms, CompileCold(job.spec, turns, stock));
  QUERN_ASSIGN_OR_RETURN(const std::vector<double> ns,
                         job.run({"", stock}, settings.Rows(kLoopRows), settings.Turns(31)));
  section->Row({job.name, Fixed(own_ms.ms.total_ms), Fixed(stock_ms.ms.total_ms), Fixed(ns[0]), Fixed(ns[1]),
                Fixed(ns[0] / ns[1], 3)});
  return absl::OkStatus();
}

void AddStock(Cells* cells) {
  cells->Begin("stock", "our passes against LLVM's -O3: ms to compile, ns a row of the main loops",
               {{"job", -18},
                {"own", 9, "ms"},
                {"-O3", 9, "ms"},
                {"own", 9, "ns a row"},
                {"-O3", 9, "ns a row"},
                {"ratio", 9, "ns a row"}});
  for (const LoopJob& job : AllLoopJobs()) {
    cells->Add(job.name,
               [settings = cells->settings(), &job](Section* section) { return StockCell(settings, job, section); });
  }
}

absl::Status LevelCell(const Settings& settings, const LoopJob& job, Section* section) {
  const int turns = settings.Turns(11);
  std::vector<std::string> row = {job.name};
  ParamLists params;
  for (int level = 0; level < 4; ++level) {
    params.push_back("codegen_level=" + std::to_string(level));
    QUERN_ASSIGN_OR_RETURN(const Stages stages, CompileCold(job.spec, turns, params.back()));
    row.push_back(Fixed(stages.ms.total_ms));
  }
  QUERN_ASSIGN_OR_RETURN(const std::vector<double> ns, job.run(params, settings.Rows(kLoopRows), settings.Turns(15)));
  for (double each : ns) row.push_back(Fixed(each));
  section->Row(row);
  return absl::OkStatus();
}

void AddLevels(Cells* cells) {
  std::vector<TextColumn> columns = {{"job", -18}};
  for (const char* group : {"ms, by level", "ns a row, by level"}) {
    for (int level = 0; level < 4; ++level) columns.push_back({std::to_string(level), 8, group});
  }
  cells->Begin("levels", "does a lower or a higher level of code generation pay? the default is 1", std::move(columns));
  for (const LoopJob& job : AllLoopJobs()) {
    cells->Add(job.name,
               [settings = cells->settings(), &job](Section* section) { return LevelCell(settings, job, section); });
  }
}

}  // namespace

std::vector<NamedCell> AllCompileCells(const Settings& settings) {
  std::vector<NamedCell> all;
  Cells cells(settings, &all);
  AddCold(&cells);
  AddKeys(&cells);
  AddFirst(&cells);
  AddHit(&cells);
  AddPasses(&cells);
  AddStock(&cells);
  AddLevels(&cells);
  return all;
}

int CompileFirst(const std::string& spec) {
  const double start = Now();
  CompileOptions options;
  options.engine = Engine::kJit;
  options.use_cache = false;
  const auto compiled = CompileText(spec, options);
  if (!compiled.ok()) return 1;
  std::printf("%.3f\n", (Now() - start) * 1e3);
  return 0;
}

int CompileFromDisk(const std::string& spec) {
  CompileOptions options;
  options.engine = Engine::kJit;
  std::vector<double> us;
  for (int turn = 0; turn < 22; ++turn) {
    ClearKernelCache();
    const double start = Now();
    if (!CompileText(spec, options).ok()) return 1;
    us.push_back((Now() - start) * 1e6);
  }
  std::printf("%.3f %.3f\n", us[0], Median({us.begin() + 1, us.end()}));
  return 0;
}

}  // namespace quern::bench
