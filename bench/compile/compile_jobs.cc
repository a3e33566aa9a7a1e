// SPDX-License-Identifier: Apache-2.0
// The jobs are those of the other benches (join_run.h, agg_run.h, sort_run.h), but small: 1,000 build rows or groups.
// Times are per row of an aggregation, of both sides of a join, and of a sort, whose finalise counts only where it
// compares keys. Example: a join of 1,000 texts and 262,144 probe rows spends 25 ns a row in its stages that hash,
// check tags, prefetch key bytes, compare and write rows, and 1 ns in everything that is not compiled.
#include "bench/compile/compile_jobs.h"

#include <memory>
#include <sstream>
#include <utility>

#include "bench/aggregate/agg_run.h"
#include "bench/common/strings_workload.h"
#include "bench/common/timing.h"
#include "bench/join/join_run.h"
#include "bench/sort/sort_run.h"
#include "runtime/base/status.h"
#include "runtime/filter/row_filter.h"

namespace quern::bench {
namespace {

using Nanoseconds = absl::StatusOr<std::vector<double>>;

double PerRow(double seconds, uint64_t rows) { return seconds / static_cast<double>(rows) * 1e9; }

LoopJob JoinJob(const std::string& name, const std::string& spec, KeyKind keys, uint32_t text_bytes) {
  return {
      name, spec, [=](const ParamLists& params, uint64_t num_rows, int turns) -> Nanoseconds {
        const JoinWorkload workload(
            {.keys = keys, .text_bytes = text_bytes, .build_rows = 1000, .probe_rows = num_rows, .payload_columns = 1});
        std::vector<Contender> contenders;
        for (const std::string& list : params) {
          QUERN_ASSIGN_OR_RETURN(Contender contender, Compete(spec, list));
          contenders.push_back(std::move(contender));
        }
        QUERN_RETURN_IF_ERROR(TakeTurns(workload, turns, &contenders));
        std::vector<double> ns;
        for (const Contender& contender : contenders) {
          ns.push_back(PerRow(contender.best.probe_s, num_rows) + PerRow(contender.best.append_s, 1000));
        }
        return ns;
      }};
}

LoopJob AggregateJob(const std::string& name, const std::string& spec, const std::vector<GroupKey>& keys) {
  return {name, spec, [=](const ParamLists& params, uint64_t num_rows, int turns) -> Nanoseconds {
            const AggWorkload workload({.keys = keys, .num_groups = 1000, .num_rows = num_rows});
            std::vector<AggContender> contenders;
            for (const std::string& list : params) {
              QUERN_ASSIGN_OR_RETURN(AggContender contender, CompeteAggregate(spec, list));
              contenders.push_back(std::move(contender));
            }
            QUERN_RETURN_IF_ERROR(TakeTurns(workload, turns, &contenders));
            std::vector<double> ns;
            for (const AggContender& contender : contenders) ns.push_back(PerRow(contender.best.append_s, num_rows));
            return ns;
          }};
}

LoopJob SortJob(const std::string& name, const std::string& spec, const std::vector<SortKey>& keys, bool is_compared) {
  return {name, spec, [=](const ParamLists& params, uint64_t num_rows, int turns) -> Nanoseconds {
            const SortWorkload workload({.keys = keys, .num_rows = num_rows});
            std::vector<SortContender> contenders;
            for (const std::string& list : params) {
              QUERN_ASSIGN_OR_RETURN(auto kernel,
                                     CompileSort(spec, list + (is_compared ? " test.sort_method=comparison" : "")));
              contenders.push_back(SortWith(kernel, workload));
            }
            QUERN_RETURN_IF_ERROR(TakeTurns(turns, &contenders));
            std::vector<double> ns;
            for (const SortContender& c : contenders) {
              ns.push_back(PerRow(c.best.append_s + c.best.read_s + (is_compared ? c.best.finalise_s : 0), num_rows));
            }
            return ns;
          }};
}

CompileOptions OptionsOf(const std::string& params) {
  CompileOptions options;
  options.engine = Engine::kJit;
  std::istringstream words(params);
  for (std::string word; words >> word;) {
    options.overrides.emplace_back(word.substr(0, word.find('=')), word.substr(word.find('=') + 1));
  }
  return options;
}

LoopJob FilterJob(const std::string& name, const std::string& spec, bool is_text) {
  return {name, spec, [=](const ParamLists& params, uint64_t num_rows, int turns) -> Nanoseconds {
            const StringsWorkload strings({.kind = StringKind::kRandom, .num_bytes = 12, .num_rows = num_rows});
            std::vector<int64_t> numbers(num_rows);
            for (uint64_t i = 0; i < num_rows; ++i) numbers[i] = static_cast<int64_t>(i * 7919 % 1000);
            BatchView batch;
            batch.num_rows = num_rows;
            QuernColumn integers = {};
            integers.values = numbers.data();
            batch.keys.push_back(is_text ? strings.left.View() : integers);
            std::vector<uint8_t> bitmap(num_rows / 8 + 8);
            std::vector<Timed> contenders;
            for (const std::string& list : params) {
              QUERN_ASSIGN_OR_RETURN(const CompiledKernel compiled, CompileText(spec, OptionsOf(list)));
              const auto filter = MakeRowFilter(compiled.kernel);
              contenders.push_back(
                  {.run = [filter, &batch, &bitmap] { return filter->Mask(batch, bitmap.data()).status(); }});
            }
            QUERN_RETURN_IF_ERROR(TakeTurns(turns, &contenders));
            std::vector<double> ns;
            for (const Timed& contender : contenders) ns.push_back(PerRow(contender.best_s, num_rows));
            return ns;
          }};
}

}  // namespace

const std::vector<LoopJob>& AllLoopJobs() {
  static const auto* jobs = new std::vector<LoopJob>{
      JoinJob("join/word", "join.inner keys=i64 build=i64 probe=i64", KeyKind::kSparseI64, 0),
      JoinJob("join/text16", "join.inner keys=utf8 build=i64 probe=i64", KeyKind::kText, 16),
      JoinJob("join/text64", "join.inner keys=utf8 build=i64 probe=i64", KeyKind::kText, 64),
      JoinJob("join/text_ci", "join.inner keys=utf8(utf8mb4_0900_ai_ci) build=i64 probe=i64", KeyKind::kText, 16),
      AggregateJob("aggregate/word", "aggregate keys=i64 aggs=count_star,sum(i64),max(f64)", {GroupKey::kSparseI64}),
      AggregateJob("aggregate/two", "aggregate keys=i64,utf8 aggs=count_star,sum(i64),avg(f64)",
                   {GroupKey::kSparseI64, GroupKey::kText}),
      AggregateJob("aggregate/three", "aggregate keys=i64,i32,i64 aggs=sum(i64),var_pop(f64),min(i64)",
                   {GroupKey::kSparseI64, GroupKey::kI32, GroupKey::kSparseI64}),
      SortJob("sort/word", "sort keys=i64:out", {SortKey::kI64}, false),
      SortJob("sort/three", "sort keys=i32:out,f64:out,utf8:out", {SortKey::kI32, SortKey::kF64, SortKey::kText16},
              false),
      SortJob("sort/compared", "sort keys=i32:out,f64:out,utf8:out",
              {SortKey::kCategory, SortKey::kF64, SortKey::kText16}, true),
      FilterJob("filter/number", "filter i64 between 250 and 749", false),
      FilterJob("filter/text", "filter utf8 = 'abcdefghijkl'", true),
      FilterJob("filter/like", "filter utf8 like '%abc%'", true),
  };
  return *jobs;
}

}  // namespace quern::bench
