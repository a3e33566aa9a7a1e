// SPDX-License-Identifier: Apache-2.0
// The sections of agg_bench in order; each has its columns, what one of its cells measures, and the list of its cells.
// A cell makes its workload, runs contenders over it in turns and prints a row, for example in section groups:
//
//     i64  10,000,000  open  512 MiB  8.1 ns a line   12.9 ns a row (append 8.8)   generic 16.0   0.80
#include "bench/aggregate/agg_sections.h"

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/aggregate/agg_run.h"
#include "bench/aggregate/agg_workload.h"
#include "bench/common/any_job.h"
#include "bench/common/memory_floor.h"
#include "bench/common/timing.h"
#include "runtime/base/status.h"

namespace quern::bench {
namespace {

constexpr uint64_t kRows = 20'000'000, kManyKeysRows = 10'000'000;
constexpr char kThree[] = "count_star,sum(i64),max(f64)";

// Consecutive cells share a workload.
const AggWorkload& WorkloadOf(const AggWorkloadSpec& spec) {
  static std::unique_ptr<AggWorkload> last;
  if (last == nullptr || !(last->spec() == spec)) {
    last.reset();  // before the next workload takes its memory
    last = std::make_unique<AggWorkload>(spec);
  }
  return *last;
}

std::string SpecText(const std::vector<GroupKey>& keys, const std::string& aggregates) {
  return "aggregate keys=" + KeyTypes(keys) + " aggs=" + aggregates;
}

std::string NsPer(double seconds, uint64_t n) {
  return Fixed(seconds / static_cast<double>(std::max<uint64_t>(n, 1)) * 1e9);
}

AggWorkloadSpec Scaled(const Settings& settings, const std::vector<GroupKey>& keys, uint64_t groups, uint64_t rows) {
  const uint64_t num_groups = groups <= 10'000 ? groups : settings.Rows(groups);
  return {.keys = keys, .num_groups = num_groups, .num_rows = settings.Rows(rows)};
}

// ---- groups --------------------------------------------------------------------------------------------------

absl::Status GroupsCell(const Settings& settings, const std::string& name, const std::vector<GroupKey>& keys,
                        uint64_t groups, uint64_t rows, const std::string& aggregates, Section* section) {
  const AggWorkload& workload = WorkloadOf(Scaled(settings, keys, groups, rows));
  std::vector<AggContender> contenders;
  const std::string spec = SpecText(keys, aggregates);
  for (const char* params : {"", "prefetch=off"}) {
    QUERN_ASSIGN_OR_RETURN(AggContender contender, CompeteAggregate(spec, params));
    contenders.push_back(std::move(contender));
  }
  QUERN_ASSIGN_OR_RETURN(AggContender generic, CompeteAggregate(spec, "", Engine::kGeneric));
  contenders.push_back(std::move(generic));
  QUERN_RETURN_IF_ERROR(TakeTurns(workload, settings.Turns(3), &contenders));
  const AggTimes& best = contenders[0].best;
  const MemoryFloor floor = MeasureFloor(best.stats.table_bytes, 1'000'000);
  const double ns = contenders[0].RowNs(workload), unprefetched_ns = contenders[1].RowNs(workload),
               generic_ns = contenders[2].RowNs(workload);
  const uint64_t num_rows = workload.spec().num_rows;
  section->BreakAt(name);
  section->CountRatio(unprefetched_ns / ns);
  section->Row({name, Grouped(groups), best.stats.layout, Bytes(best.stats.table_bytes),
                std::to_string(best.stats.num_growths), Fixed(floor.line_ns), NsPer(best.append_s, num_rows),
                NsPer(best.read_s, best.num_groups), Fixed(ns), Fixed(unprefetched_ns), Fixed(unprefetched_ns / ns),
                Fixed(generic_ns), Fixed(generic_ns / ns)});
  return absl::OkStatus();
}

void AddGroups(Cells* cells) {
  cells->Begin("groups",
               "what does a row cost, by the number of groups and the kind of keys? Beside it distance 0 and generic "
               "(ns a row)",
               {{"keys", -17},
                {"groups", 12},
                {"layout", -11},
                {"table", 10},
                {"grown", 6},
                {"a line", 8},
                {"append", 8},
                {"a group", 8, "read"},
                {"all", 8},
                {"distance 0", 12},
                {"ratio", 7},
                {"generic", 9},
                {"ratio", 7}});
  const auto add = [&](const std::string& name, const std::vector<GroupKey>& keys, uint64_t groups, uint64_t rows,
                       const std::string& aggregates) {
    cells->Add(name + "/" + std::to_string(groups), [=, settings = cells->settings()](Section* section) {
      return GroupsCell(settings, name, keys, groups, rows, aggregates, section);
    });
  };
  for (const uint64_t groups : {10, 10'000, 1'000'000, 10'000'000})
    add("i64", {GroupKey::kSparseI64}, groups, kRows, kThree);
  for (const uint64_t groups : {10, 10'000, 1'000'000, 10'000'000})
    add("i64dense", {GroupKey::kDenseI64}, groups, kRows, kThree);
  for (const uint64_t groups : {1'000, 20'000, 10'000'000})
    add("text", {GroupKey::kText}, groups, kManyKeysRows, "sum(i64)");
  for (const uint64_t groups : {1'000, 10'000'000})
    add("i32,text", {GroupKey::kI32, GroupKey::kText}, groups, kManyKeysRows, "sum(i64)");
  for (const uint64_t groups : {1'000, 10'000'000})
    add("text,i32,text", {GroupKey::kText, GroupKey::kI32, GroupKey::kText}, groups, kManyKeysRows, "sum(i64)");
}

// ---- fused --------------------------------------------------------------------------------------------------

const std::vector<std::string>& EightAggregates() {
  static const std::vector<std::string> all = {"count_star", "sum(i64)", "sum(f64)", "min(i64)",
                                               "max(i64)",   "min(f64)", "max(f64)", "avg(f64)"};
  return all;
}

absl::Status FusedCell(const Settings& settings, uint64_t groups, size_t num_aggregates, Section* section) {
  const std::vector<GroupKey> keys = {GroupKey::kSparseI64};
  const AggWorkload& workload = WorkloadOf(Scaled(settings, keys, groups, kManyKeysRows));
  std::string list;
  AggContender apart;
  for (size_t i = 0; i < num_aggregates; ++i) {
    list += (i == 0 ? "" : ",") + EightAggregates()[i];
    QUERN_ASSIGN_OR_RETURN(AggContender one, CompeteAggregate(SpecText(keys, EightAggregates()[i])));
    apart.kernels.push_back(one.kernels[0]);
  }
  QUERN_ASSIGN_OR_RETURN(AggContender fused, CompeteAggregate(SpecText(keys, list)));
  QUERN_ASSIGN_OR_RETURN(AggContender generic, CompeteAggregate(SpecText(keys, list), "", Engine::kGeneric));
  std::vector<AggContender> contenders = {fused, apart, generic};
  QUERN_RETURN_IF_ERROR(TakeTurns(workload, settings.Turns(3), &contenders));
  const double ns = contenders[0].RowNs(workload);
  section->BreakAt(std::to_string(groups));
  section->Row({Grouped(groups), std::to_string(num_aggregates), Fixed(ns), Fixed(contenders[1].RowNs(workload)),
                Fixed(contenders[1].RowNs(workload) / ns), Fixed(contenders[2].RowNs(workload)),
                Fixed(contenders[2].RowNs(workload) / ns)});
  return absl::OkStatus();
}

void AddFused(Cells* cells) {
  cells->Begin("fused", "k aggregates in one kernel, or one each in k kernels? Keys i64, 10 M rows (ns a row)",
               {{"groups", 12}, {"k", 4}, {"one", 9}, {"k kernels", 11}, {"ratio", 7}, {"generic", 9}, {"ratio", 7}});
  for (const uint64_t groups : {10, 10'000, 1'000'000}) {
    for (const size_t k : {1, 2, 4, 8}) {
      cells->Add(std::to_string(groups) + "/" + std::to_string(k), [=, settings = cells->settings()](Section* section) {
        return FusedCell(settings, groups, k, section);
      });
    }
  }
}

// ---- order --------------------------------------------------------------------------------------------------

absl::Status OrderCell(const Settings& settings, uint64_t groups, Section* section) {
  const std::vector<GroupKey> keys = {GroupKey::kSparseI64};
  AggWorkloadSpec spec = Scaled(settings, keys, groups, kRows);
  std::vector<double> ns;
  for (const bool is_sorted : {false, true}) {
    spec.is_sorted = is_sorted;
    const AggWorkload& workload = WorkloadOf(spec);
    QUERN_ASSIGN_OR_RETURN(AggContender contender, CompeteAggregate(SpecText(keys, kThree)));
    std::vector<AggContender> contenders = {contender};
    QUERN_RETURN_IF_ERROR(TakeTurns(workload, settings.Turns(3), &contenders));
    ns.push_back(contenders[0].RowNs(workload));
  }
  section->Row({Grouped(groups), Fixed(ns[0]), Fixed(ns[1]), Fixed(ns[0] / ns[1])});
  return absl::OkStatus();
}

void AddOrder(Cells* cells) {
  cells->Begin("order", "does it help if the rows of a group are neighbours? Keys i64, 20 M rows (ns a row)",
               {{"groups", 12}, {"random", 9}, {"sorted", 9}, {"ratio", 7}});
  for (const uint64_t groups : {10, 10'000, 1'000'000, 10'000'000}) {
    cells->Add(std::to_string(groups),
               [=, settings = cells->settings()](Section* section) { return OrderCell(settings, groups, section); });
  }
}

// ---- threads --------------------------------------------------------------------------------------------------

absl::Status ThreadsCell(const Settings& settings, uint64_t groups, Section* section) {
  const std::vector<GroupKey> keys = {GroupKey::kSparseI64};
  const AggWorkload& workload = WorkloadOf(Scaled(settings, keys, groups, kRows));
  std::vector<AggContender> contenders;
  for (unsigned threads = 1; threads <= std::max(std::thread::hardware_concurrency(), 2u); threads *= 2) {
    QUERN_ASSIGN_OR_RETURN(AggContender contender, CompeteAggregate(SpecText(keys, kThree)));
    contender.threads = threads;
    contenders.push_back(std::move(contender));
  }
  QUERN_RETURN_IF_ERROR(TakeTurns(workload, settings.Turns(5), &contenders));
  section->BreakAt(std::to_string(groups));
  for (const AggContender& contender : contenders) {
    const AggTimes& t = contender.best;
    const uint64_t rows = workload.spec().num_rows;
    section->Row({Grouped(groups), std::to_string(contender.threads), NsPer(t.append_s, rows),
                  NsPer(t.finalise_s, rows), NsPer(t.read_s, rows), Fixed(contender.RowNs(workload)),
                  Fixed(contenders[0].best.all_s() / t.all_s())});
  }
  return absl::OkStatus();
}

void AddThreads(Cells* cells) {
  cells->Begin(
      "threads", "how much faster are several threads? Keys i64, 20 M rows (ns a row)",
      {{"groups", 12}, {"threads", 9}, {"append", 9}, {"finalise", 10}, {"read", 8}, {"all", 8}, {"speed-up", 10}});
  for (const uint64_t groups : {10, 10'000, 1'000'000, 10'000'000}) {
    cells->Add(std::to_string(groups),
               [=, settings = cells->settings()](Section* section) { return ThreadsCell(settings, groups, section); });
  }
}

// ---- sets --------------------------------------------------------------------------------------------------

struct SetContender {
  std::shared_ptr<const Kernel> kernel;
  std::unique_ptr<AnyInput> input;
  uint64_t rows_out = 0;
};

absl::StatusOr<SetContender> CompeteSet(const std::string& spec, uint64_t num_rows) {
  CompileOptions options;
  options.engine = Engine::kJit;
  QUERN_ASSIGN_OR_RETURN(CompiledKernel compiled, CompileText(spec, options));
  auto input = std::make_unique<AnyInput>(compiled.kernel->plan.spec, num_rows);
  return SetContender{std::move(compiled.kernel), std::move(input)};
}

// The groups of a group_by are the rows of a union. The rows of the left side are in the intersection or in the
// difference.
absl::Status SetsCell(const Settings& settings, uint64_t rows, Section* section) {
  const uint64_t num_rows = settings.Rows(rows);
  std::vector<SetContender> contenders;
  for (const char* spec : {"aggregate keys=i64 aggs=count_star", "set.union keys=i64", "set.intersect keys=i64",
                           "set.except keys=i64", "set.intersect_all keys=i64", "set.except_all keys=i64"}) {
    QUERN_ASSIGN_OR_RETURN(SetContender contender, CompeteSet(spec, num_rows));
    contenders.push_back(std::move(contender));
  }
  std::vector<Timed> timed;
  for (SetContender& contender : contenders) {
    timed.push_back({.run = [&contender]() -> absl::Status {
      QUERN_ASSIGN_OR_RETURN(contender.rows_out, RunAny(contender.kernel, *contender.input));
      return absl::OkStatus();
    }});
  }
  QUERN_RETURN_IF_ERROR(TakeTurns(settings.Turns(3), &timed));
  const uint64_t groups = contenders[0].rows_out, shared = contenders[2].rows_out, left_only = contenders[3].rows_out;
  if (contenders[1].rows_out != groups || shared + left_only > groups) {
    return Internal("wrong number of rows of set operations: " + std::to_string(contenders[1].rows_out) + ", " +
                    std::to_string(shared) + " and " + std::to_string(left_only) + "; accepted: those of " +
                    std::to_string(groups) + " groups");
  }
  std::vector<std::string> cells = {Grouped(rows), Grouped(groups), Grouped(shared)};
  for (const Timed& one : timed) cells.push_back(NsPer(one.best_s, num_rows));
  section->Row(cells);
  return absl::OkStatus();
}

void AddSets(Cells* cells) {
  cells->Begin("sets",
               "what does a row of a set operation cost, beside its group alone? Keys i64, half of the rows on either "
               "side (ns a row)",
               {{"rows", 12},
                {"groups", 12},
                {"shared", 12},
                {"group by", 10},
                {"union", 8},
                {"intersect", 11},
                {"except", 8},
                {"intersect_all", 15},
                {"except_all", 12}});
  for (const uint64_t rows : {100'000, 1'000'000, 10'000'000}) {
    cells->Add(std::to_string(rows),
               [=, settings = cells->settings()](Section* section) { return SetsCell(settings, rows, section); });
  }
}

}  // namespace

std::vector<NamedCell> AllAggregateCells(const Settings& settings) {
  std::vector<NamedCell> all;
  Cells cells(settings, &all);
  AddGroups(&cells);
  AddFused(&cells);
  AddOrder(&cells);
  AddThreads(&cells);
  AddSets(&cells);
  return all;
}

}  // namespace quern::bench
