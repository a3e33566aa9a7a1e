// SPDX-License-Identifier: Apache-2.0
// Operators with collated keys, compared with the same operators under binary. The workloads are those of sort_bench,
// join_bench and agg_bench. A row is one workload, for example in section padding:
//
//     sort  words  binary 31.9 ns a row   utf8mb4_bin 1.01 times that   tidb.utf8mb4_bin 1.01
//
// No string of these workloads ends with a space. Except in `text16` their letters have one case, so `_ci` collations
// find the same groups and pairs as binary, and the number of rows checks them; sorts are checked row by row.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/aggregate/agg_run.h"
#include "bench/collation/collation_sections.h"
#include "bench/collation/filter_run.h"
#include "bench/common/strings_workload.h"
#include "bench/common/timing.h"
#include "bench/join/join_run.h"
#include "bench/sort/sort_run.h"
#include "runtime/base/status.h"

namespace quern::bench {
namespace {

using Names = std::vector<std::string>;
// Nanoseconds a row under each collation.
using Costs = absl::StatusOr<std::vector<double>>;
// Runs an operator over a workload under each of these collations, in that many turns.
using Job = std::function<Costs(const Names& collations, int turns)>;

Names BinaryAndPadding() { return {"binary", "utf8mb4_bin", "tidb.utf8mb4_bin"}; }
Names BinaryAndWeighted() {
  return {"binary", "ascii_ci", "utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb4_0900_ai_ci"};
}

// ---- jobs ------------------------------------------------------------------------------------------------------

Job SortJob(SortKey key, uint64_t num_rows) {
  return [=](const Names& collations, int turns) -> Costs {
    const SortWorkload workload({.keys = {key}, .num_rows = num_rows});
    std::vector<SortContender> contenders;
    for (const std::string& collation : collations) {
      QUERN_ASSIGN_OR_RETURN(const auto kernel, CompileSort("sort keys=" + KeyList({key}, collation)));
      contenders.push_back(SortWith(kernel, workload));
    }
    QUERN_RETURN_IF_ERROR(TakeTurns(turns, &contenders));
    std::vector<double> costs;
    for (const SortContender& contender : contenders)
      costs.push_back(contender.best.all_s() / static_cast<double>(num_rows) * 1e9);
    return costs;
  };
}

// Pairs are counted: every probe row matches one build row.
Job JoinJob(uint32_t text_bytes, uint64_t build_rows, uint64_t probe_rows) {
  return [=](const Names& collations, int turns) -> Costs {
    const JoinWorkload workload(
        {.keys = KeyKind::kText, .text_bytes = text_bytes, .build_rows = build_rows, .probe_rows = probe_rows});
    std::vector<Contender> contenders;
    for (const std::string& collation : collations) {
      QUERN_ASSIGN_OR_RETURN(Contender contender, Compete("join.inner keys=utf8(" + collation + ")"));
      contenders.push_back(std::move(contender));
    }
    QUERN_RETURN_IF_ERROR(TakeTurns(workload, turns, &contenders));
    std::vector<double> costs;
    for (const Contender& contender : contenders)
      costs.push_back(contender.best.all_s() / static_cast<double>(build_rows + probe_rows) * 1e9);
    return costs;
  };
}

Job AggregateJob(uint64_t num_groups, uint64_t num_rows) {
  return [=](const Names& collations, int turns) -> Costs {
    const AggWorkload workload({.keys = {GroupKey::kText}, .num_groups = num_groups, .num_rows = num_rows});
    std::vector<AggContender> contenders;
    for (const std::string& collation : collations) {
      QUERN_ASSIGN_OR_RETURN(AggContender contender,
                             CompeteAggregate("aggregate keys=utf8(" + collation + ") aggs=sum(i64)"));
      contenders.push_back(std::move(contender));
    }
    QUERN_RETURN_IF_ERROR(TakeTurns(workload, turns, &contenders));
    std::vector<double> costs;
    for (const AggContender& contender : contenders) costs.push_back(contender.RowNs(workload));
    return costs;
  };
}

// what: "=", "<" or "like".
Job FilterJob(const std::string& what, uint32_t num_bytes, uint64_t num_rows) {
  return [=](const Names& collations, int turns) -> Costs {
    const StringsWorkload strings({StringKind::kRandom, num_bytes, num_rows});
    BatchView batch;
    batch.keys.push_back(strings.left.View());
    batch.num_rows = strings.left.num_rows();
    std::vector<std::vector<uint8_t>> bitmaps(collations.size());
    std::vector<Timed> contenders;
    for (size_t i = 0; i < collations.size(); ++i) {
      const std::string condition =
          "utf8(" + collations[i] + ") " + what + " '" + (what == "like" ? strings.pattern : strings.constant) + "'";
      QUERN_ASSIGN_OR_RETURN(Timed contender, FilterWith(condition, batch, &bitmaps[i]));
      contenders.push_back(std::move(contender));
    }
    QUERN_RETURN_IF_ERROR(TakeTurns(turns, &contenders));
    std::vector<double> costs;
    for (size_t i = 0; i < collations.size(); ++i) {
      costs.push_back(contenders[i].best_s / static_cast<double>(num_rows) * 1e9);
      if (bitmaps[i] != bitmaps[0])
        return Internal("filter " + what + " lets other rows pass under " + collations[i] + " than under binary");
    }
    return costs;
  };
}

// ---- sections --------------------------------------------------------------------------------------------------

struct NamedJob {
  std::string name, operation, strings;
  Job job;
  int turns;
};

// A row: the nanoseconds of the first collation, then the ratios of the others to it.
absl::Status JobCell(const Settings& settings, const NamedJob& job, const Names& collations, Section* section) {
  QUERN_ASSIGN_OR_RETURN(const std::vector<double> costs, job.job(collations, settings.Turns(job.turns)));
  std::vector<std::string> row = {job.operation, job.strings, Fixed(costs[0])};
  for (size_t i = 1; i < costs.size(); ++i) row.push_back(Fixed(costs[i] / costs[0]));
  section->BreakAt(job.operation);
  section->Row(row);
  return absl::OkStatus();
}

void AddJobs(Cells* cells, const std::string& name, const std::string& question, const Names& collations,
             const std::vector<NamedJob>& jobs) {
  std::vector<TextColumn> columns = {{"operator", -10}, {"strings", -26}, {collations[0], 10, "ns a row"}};
  for (size_t i = 1; i < collations.size(); ++i)
    columns.push_back({collations[i], static_cast<int>(collations[i].size()) + 2, "times " + collations[0]});
  cells->Begin(name, question, columns);
  for (const NamedJob& job : jobs) {
    cells->Add(job.name, [settings = cells->settings(), job, collations](Section* section) {
      return JobCell(settings, job, collations, section);
    });
  }
}

void AddPadding(Cells* cells) {
  const Settings& s = cells->settings();
  std::vector<NamedJob> jobs = {
      {"sort/words", "sort", "20,000 words", SortJob(SortKey::kWord, s.Rows(4'000'000)), 9},
      {"sort/text16", "sort", "random, 16 bytes", SortJob(SortKey::kText16, s.Rows(4'000'000)), 9},
      {"join/text16", "join", "1 M keys of 16 bytes", JoinJob(16, s.Rows(1'000'000), s.Rows(4'000'000)), 9},
      {"join/text64", "join", "100,000 keys of 64 bytes", JoinJob(64, s.Rows(100'000), s.Rows(4'000'000)), 9},
      {"aggregate/20000", "aggregate", "20,000 groups", AggregateJob(s.Rows(20'000), s.Rows(4'000'000)), 9},
      {"aggregate/1000000", "aggregate", "1 M groups", AggregateJob(s.Rows(1'000'000), s.Rows(4'000'000)), 9},
  };
  const std::pair<const char*, const char*> tests[] = {{"equal", "="}, {"less", "<"}, {"like", "like"}};
  for (const auto& [name, what] : tests) {
    for (const uint32_t num_bytes : {5, 16, 64}) {
      const std::string length = std::to_string(num_bytes);
      jobs.push_back({"filter/" + std::string(name) + "/" + length, "filter",
                      std::string(what) + ", " + length + " bytes",
                      FilterJob(what, num_bytes, s.Rows(uint64_t{1} << 16)), 101});
    }
  }
  AddJobs(cells, "padding",
          "what does PAD SPACE cost where no string ends with a space? Wanted: at most 1.03 times binary",
          BinaryAndPadding(), jobs);
}

void AddCollated(Cells* cells) {
  const Settings& s = cells->settings();
  AddJobs(cells, "collated", "what do case-insensitive keys cost in joins and aggregations of ASCII strings?",
          BinaryAndWeighted(),
          {{"join/text16", "join", "1 M keys of 16 bytes", JoinJob(16, s.Rows(1'000'000), s.Rows(4'000'000)), 5},
           {"join/text64", "join", "100,000 keys of 64 bytes", JoinJob(64, s.Rows(100'000), s.Rows(4'000'000)), 5},
           {"aggregate/1000", "aggregate", "1,000 groups", AggregateJob(1'000, s.Rows(10'000'000)), 5},
           {"aggregate/20000", "aggregate", "20,000 groups", AggregateJob(s.Rows(20'000), s.Rows(10'000'000)), 5},
           {"aggregate/1000000", "aggregate", "1 M groups", AggregateJob(s.Rows(1'000'000), s.Rows(10'000'000)), 5}});
}

void AddSorts(Cells* cells) {
  const Settings& s = cells->settings();
  std::vector<NamedJob> jobs;
  const std::pair<const char*, uint64_t> sizes[] = {{"1M", 1'000'000}, {"10M", 10'000'000}};
  for (const auto& [name, rows] : sizes) {
    const std::string prefix = std::string(name) + "/";
    const int turns = rows > 1'000'000 ? 3 : 7;
    jobs.push_back({prefix + "words", name, "20,000 words", SortJob(SortKey::kWord, s.Rows(rows)), turns});
    jobs.push_back({prefix + "text16", name, "random, 16 bytes", SortJob(SortKey::kText16, s.Rows(rows)), turns});
    jobs.push_back(
        {prefix + "colours", name, "five colours, 33 bytes", SortJob(SortKey::kPartName, s.Rows(rows)), turns});
  }
  AddJobs(cells, "sort", "what do case-insensitive sorts of ASCII strings cost? Wanted: at most 1.5 times binary",
          BinaryAndWeighted(), jobs);
}

}  // namespace

void AddOperatorSections(Cells* cells) {
  AddPadding(cells);
  AddCollated(cells);
  AddSorts(cells);
}

}  // namespace quern::bench
