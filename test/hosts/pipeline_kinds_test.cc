// SPDX-License-Identifier: Apache-2.0
// Each kind of join as a step of a pipeline: what the join has left when all probing is done, build rows that come out
// on their own and rows of keys that it has written, goes through the steps behind the probe, in a pipeline of its own.
// The rows are those of quern_job_run and of calls operator by operator.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <random>
#include <thread>

#include "test/hosts/jobs.h"
#include "test/hosts/refusals.h"
#include "test/hosts/spilling_account.h"
#include "test/unit/seed.h"

namespace quern_test {
namespace {

using quern::Pipeline;
using Numbers = std::vector<int64_t>;

// ---- rows ----

// Columns: a key, which may be null, and a number.
struct Rows {
  Numbers key, value;
  std::vector<uint8_t> bitmap;

  Rows(std::mt19937_64* random, uint64_t num_rows, uint64_t num_keys, uint64_t nulls_of_10) {
    std::vector<bool> valid;
    for (uint64_t i = 0; i < num_rows; ++i) {
      key.push_back(static_cast<int64_t>((*random)() % num_keys));
      value.push_back(static_cast<int64_t>((*random)() % 1000));
      valid.push_back((*random)() % 10 >= nulls_of_10);
    }
    bitmap = Bitmap(valid);
  }
  quern_column keys() const { return WithValidity(ColumnOf(key), bitmap); }
  Table build() const { return {{keys()}, {ColumnOf(value)}, key.size()}; }
  Table source() const { return {{keys(), ColumnOf(value)}, {}, key.size()}; }
};

const char kSource[] = "i64:nullable,i64";

struct Kind {
  const char* spec;
  const char* columns;  // of its results
};

const Kind kKinds[] = {
    {"join.inner keys=i64:nullable build=i64 probe=i64", "i64,i64"},
    {"join.left keys=i64:nullable build=i64 probe=i64", "i64,i64:nullable"},
    {"join.right keys=i64:nullable build=i64 probe=i64", "i64:nullable,i64"},
    {"join.full keys=i64:nullable build=i64 probe=i64", "i64:nullable,i64:nullable"},
    {"join.semi keys=i64:nullable probe=i64", "i64"},
    {"join.anti keys=i64:nullable probe=i64", "i64"},
    {"join.right_semi keys=i64:nullable build=i64", "i64"},
    {"join.right_anti keys=i64:nullable build=i64", "i64"},
    {"join.anti_null_aware keys=i64:nullable probe=i64", "i64"},
    {"join.mark keys=i64:nullable probe=i64", "i64,bool:nullable"},
    {"join.single keys=i64:nullable build=i64 probe=i64", "i64,i64:nullable"},
};

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

// A sort by all columns, which also come out, and by the column that the map adds.
std::string SortOf(const Kind& kind) {
  return "sort keys=" + Replaced(std::string(kind.columns) + ",i64", ",", ":out,") + ":out";
}
std::string LettersOf(const Kind& kind) {
  std::string letters = Replaced(Replaced(kind.columns, ":nullable", ""), ",", "");
  return Replaced(Replaced(letters, "i64", "l"), "bool", "b") + "l";
}
std::vector<uint32_t> AllColumns(const Kind& kind) {
  std::vector<uint32_t> numbers;
  while (numbers.size() < LettersOf(kind).size()) numbers.push_back(static_cast<uint32_t>(numbers.size()));
  return numbers;
}

// A build row of each key alone, where a second match is an error; no null, where one would leave no rows.
Rows BuildRows(std::mt19937_64* random, const Kind& kind) {
  const bool is_single = std::string(kind.spec).starts_with("join.single");
  const bool is_null_aware = std::string(kind.spec).starts_with("join.anti_null_aware");
  Rows rows(random, is_single ? 60 : 300, 90, is_single || is_null_aware ? 0 : 1);
  for (size_t i = 0; is_single && i < rows.key.size(); ++i) rows.key[i] = static_cast<int64_t>(i);
  return rows;
}

// A join that has written its rows, of which a table has `room` bytes. All memory is given while it is probed.
class Spilling {
 public:
  explicit Spilling(int64_t room) : room_(room) {}

  quern::Join Build(const Kind& kind, const Rows& rows, Engine engine) {
    auto join = New<quern::Join>(kind.spec, engine, account_.options());
    Feed(join.Build(), {rows.build()});
    account_.Finalise(&join, room_);
    EXPECT_GT(join.Stats().spilled_rows, 0u) << kind.spec;
    return join;
  }

 private:
  const int64_t room_;
  SpillingAccount account_;
};

constexpr int64_t kRooms[] = {2500, 6000};

quern::Job MapBehind() { return New<quern::Job>("map in=i64:nullable out=add(coalesce($0,5000:i64),1:i64)"); }

// ---- operator by operator ----

// Probes with the rows of value 300 and more, by quern_job_run, and computes a column of each result.
Lines Expected(const Kind& kind, const Rows& build, const std::vector<Rows>& sources) {
  const auto filter = New<quern::Filter>("filter i64 >= 300");
  std::vector<Table> probes;
  for (const Rows& source : sources) {
    Table table = {{source.keys()}, {ColumnOf(source.value)}, source.key.size()};
    const Table values = {{ColumnOf(source.value)}, {}, source.key.size()};
    table.selection.resize(source.key.size());
    table.selection.resize(Take(filter.Select(values.batch(), table.selection.data())));
    if (!table.selection.empty()) probes.push_back(table);
  }
  std::vector<quern_batch> batches;
  for (const Table& probe : probes) batches.push_back(probe.batch());
  const Table built_table = build.build();
  const quern_batch build_batch = built_table.batch();
  auto join = New<quern::Join>(kind.spec);
  quern::Job map = MapBehind();
  quern::Output mapped = Take(map.NewOutput(QUERN_PORT_ROWS));
  Lines lines;
  const quern_run_input inputs[] = {{QUERN_PORT_BUILD, &build_batch, 1},
                                    {QUERN_PORT_PROBE, batches.data(), batches.size()}};
  quern_run_options options = {};
  options.threads = 1;
  Take(join.Run(inputs, options, [&](const quern_result& result) {
    const std::string letters = LettersOf(kind);
    Lines left, right;
    AddLines(result, letters.substr(0, letters.size() - 1), &left);
    Done(mapped.Push(Table{{result.columns[0]}, {}, result.num_rows}.batch()));
    right = InOrder(&mapped, "l");
    for (size_t i = 0; i < left.size(); ++i) lines.push_back(left[i] + "|" + right.at(i));
    return true;
  }));
  return Ordered(lines);
}

// ---- as a pipeline ----

// Sends what the join has left through `rest`, on so many threads.
void SendUnmatched(const Pipeline& rest, quern::Join* join, const quern::Job& sink, const std::vector<uint32_t>& keys,
                   uint64_t piece_rows, uint32_t num_threads) {
  OnThreads(num_threads, [&] {
    quern::Output unmatched = Take(join->Unmatched(100));
    quern::Input input = Take(rest.Into(sink, QUERN_PORT_ROWS, keys, {}, piece_rows));
    for (quern_result_state state = QUERN_RESULT_MORE; state == QUERN_RESULT_MORE;) {
      const quern_result& rows = *Take(unmatched.Next());
      Done(input.Append(AsTable(rows, rows.num_columns).batch()));
      state = rows.state;
    }
    Done(input.Finish());
  });
}

Lines ThroughPipeline(const Kind& kind, const Rows& build, const std::vector<Rows>& sources, uint64_t piece_rows,
                      uint32_t num_threads, Engine engine, Spilling* spilling = nullptr) {
  const auto filter = New<quern::Job>("filter i64 >= 300", engine);
  const quern::Job map = MapBehind();
  quern::Join join =
      spilling == nullptr ? Built(kind.spec, {build.build()}, engine) : spilling->Build(kind, build, engine);
  auto sort = New<quern::Sort>(SortOf(kind), engine);
  const bool has_probe = std::string(kind.spec).find(" probe=") != std::string::npos;
  const Pipeline pipeline = Pipeline(kSource)
                                .Through(filter, {1})
                                .Through(join, {0}, has_probe ? std::vector<uint32_t>{1} : std::vector<uint32_t>{})
                                .Through(map, {0});
  std::atomic<size_t> next{0};
  OnThreads(num_threads, [&] {
    quern::Input input = Take(pipeline.Into(sort, QUERN_PORT_ROWS, AllColumns(kind), {}, piece_rows));
    for (size_t i = next++; i < sources.size(); i = next++) Done(input.Append(sources[i].source().batch()));
    Done(input.Finish());
  });
  SendUnmatched(Pipeline(kind.columns).Through(map, {0}), &join, sort, AllColumns(kind), piece_rows, num_threads);
  Done(sort.Finalise());
  return RowsOf(sort.Sorted(), LettersOf(kind));
}

TEST(PipelineKinds, AreThoseOfJobsOneByOne) {
  std::mt19937_64 random(quern::test::SeedOfTest());
  std::vector<Rows> sources;
  for (const uint64_t num_rows : {300, 1, 0, 40, 500, 90, 200}) sources.emplace_back(&random, num_rows, 120, 1);
  for (const Kind& kind : kKinds) {
    const Rows build = BuildRows(&random, kind);
    const Lines expected = Expected(kind, build, sources);
    for (const uint64_t piece_rows : {1, 7, 100, 0, 65536}) {
      for (const uint32_t num_threads : {1, 4}) {
        for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
          ASSERT_EQ(ThroughPipeline(kind, build, sources, piece_rows, num_threads, engine), expected)
              << kind.spec << ", pieces of " << piece_rows << ", threads " << num_threads;
        }
      }
    }
    EXPECT_FALSE(expected.empty()) << kind.spec;
  }
}

TEST(PipelineKinds, OfJoinsThatHaveWrittenRowsAreTheSame) {
  std::mt19937_64 random(quern::test::SeedOfTest());
  std::vector<Rows> sources;
  for (const uint64_t num_rows : {300, 1, 0, 40, 500}) sources.emplace_back(&random, num_rows, 120, 1);
  for (const Kind& kind : kKinds) {
    const Rows build = BuildRows(&random, kind);
    const Lines expected = Expected(kind, build, sources);
    for (const int64_t room : kRooms) {
      for (const uint64_t piece_rows : {7, 0}) {
        for (const uint32_t num_threads : {1, 4}) {
          for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
            Spilling spilling(room);
            ASSERT_EQ(ThroughPipeline(kind, build, sources, piece_rows, num_threads, engine, &spilling), expected)
                << kind.spec << ", pieces of " << piece_rows << ", threads " << num_threads << ", room " << room;
          }
        }
      }
    }
  }
}

// Two that follow one another: what the first one has left is probed in the second, which writes some of it again.
TEST(PipelineKinds, JoinsThatHaveWrittenRowsFollowOneAnother) {
  std::mt19937_64 random(quern::test::SeedOfTest());
  const Kind inner = kKinds[0];
  const Kind second = {"join.left keys=i64 build=i64 probe=i64,i64", "i64,i64,i64:nullable"};
  const Rows build(&random, 300, 90, 0), of_second(&random, 300, 90, 0), source(&random, 700, 120, 0);
  const std::vector<uint32_t> all = {0, 1, 2};
  Lines lines[2];
  for (const bool spills : {false, true}) {
    Spilling of_first(kRooms[1]), of_next(kRooms[0]);
    quern::Join first = spills ? of_first.Build(inner, build, Engine::kJit) : Built(inner.spec, {build.build()});
    quern::Join next =
        spills ? of_next.Build(second, of_second, Engine::kJit) : Built(second.spec, {of_second.build()});
    const auto small = New<quern::Job>("map in=i64 out=subtract($0,500:i64)");
    auto sort = New<quern::Sort>("sort keys=i64:out,i64:out,i64:nullable:out");
    Pipeline whole(kSource), behind_first("i64,i64"), behind_next("i64,i64,i64:nullable");
    whole.Through(first, {0}, {1}).Through(small, {1}).Through(next, {2}, {0, 1});
    behind_first.Through(small, {1}).Through(next, {2}, {0, 1});
    quern::Input input = Take(whole.Into(sort, QUERN_PORT_ROWS, all));
    Done(input.Append(source.source().batch()));
    Done(input.Finish());
    SendUnmatched(behind_first, &first, sort, all, 0, 2);
    const quern::Status late = input.Append(source.source().batch());
    EXPECT_EQ(late.code(), QUERN_FAILED_PRECONDITION);
    SendUnmatched(behind_next, &next, sort, all, 0, 2);
    Done(sort.Finalise());
    lines[spills ? 1 : 0] = RowsOf(sort.Sorted(), "lll");
  }
  EXPECT_EQ(lines[0], lines[1]);
  EXPECT_GT(lines[0].size(), 1000u);
}

// A full join, then a right one: rows without a match in the first are probed in the second, and row ids are u64.
TEST(PipelineKinds, UnmatchedRowsAreProbedFurtherOn) {
  const Numbers of_first = {1, 2, 3, 3}, of_second = {10, 20, 30, 50}, probed = {2, 3, 7};
  quern::Join first =
      Built("join.full keys=i64 build=i64 probe=rowid", {{{ColumnOf(of_first)}, {ColumnOf(of_first)}, 4}});
  const auto tenfold = New<quern::Job>("map in=i64:nullable out=multiply($0,10:i64)");
  quern::Join second = Built("join.right keys=i64:nullable build=i64 probe=u64:nullable,i64:nullable",
                             {{{ColumnOf(of_second)}, {ColumnOf(of_second)}, 4}});
  auto sort = New<quern::Sort>("sort keys=u64:nullable:out,i64:nullable:out,i64:out");
  const std::vector<uint32_t> all = {0, 1, 2};
  Pipeline whole("i64"), rest("u64:nullable,i64:nullable");
  whole.Through(first, {0}, {0}).Through(tenfold, {1}).Through(second, {2}, {0, 1});
  rest.Through(tenfold, {1}).Through(second, {2}, {0, 1});
  quern::Input input = Take(whole.Into(sort, QUERN_PORT_ROWS, all));
  Done(input.Append(Table{{ColumnOf(probed)}, {}, 3, {}, 100}.batch()));
  Done(input.Finish());
  SendUnmatched(rest, &first, sort, all, 0, 1);
  SendUnmatched(Pipeline("u64:nullable,i64:nullable,i64"), &second, sort, all, 0, 1);
  Done(sort.Finalise());
  EXPECT_EQ(RowsOf(sort.Sorted(), "rll"), Ordered({"100|2|20", "101|3|30", "101|3|30", "null|1|10", "null|null|50"}));
}

// ---- refused memory ----

// Whichever request of the sort or of the steps is refused, in either pass.
TEST(PipelineKinds, RefusedBatchesLoseAndDoubleNothing) {
  std::mt19937_64 random(quern::test::SeedOfTest());
  for (const Kind& kind : {kKinds[2], kKinds[3], kKinds[6], kKinds[7]}) {
    const Rows build = BuildRows(&random, kind), source(&random, 3000, 120, 1);
    const bool has_probe = std::string(kind.spec).find(" probe=") != std::string::npos;
    Lines expected;
    int64_t num_refused = 0;
    for (int64_t n = -1; n < 400; ++n) {
      OneRefusal memory{-1};
      auto sort = New<quern::Sort>(SortOf(kind), Engine::kJit, memory.options());
      quern::Join join = Built(kind.spec, {build.build()});
      const quern::Job map = MapBehind();
      quern::Input probes = Take(Pipeline(kSource)
                                     .Through(join, {0}, has_probe ? std::vector<uint32_t>{1} : std::vector<uint32_t>{})
                                     .Through(map, {0})
                                     .Into(sort, QUERN_PORT_ROWS, AllColumns(kind), {}, 700));
      memory.left = n;
      bool refused = !AppendTwice(&probes, source.source());
      Done(probes.Finish());
      quern::Output unmatched = Take(join.Unmatched());
      const quern_result& rows = *Take(unmatched.Next());
      quern::Input rest =
          Take(Pipeline(kind.columns).Through(map, {0}).Into(sort, QUERN_PORT_ROWS, AllColumns(kind), {}, 7));
      refused |= !AppendTwice(&rest, AsTable(rows, rows.num_columns));
      Done(rest.Finish());
      num_refused += refused;
      memory.left = -1;
      Done(sort.Finalise());
      const Lines lines = RowsOf(sort.Sorted(), LettersOf(kind));
      if (n == -1) expected = lines;
      ASSERT_EQ(lines, expected) << kind.spec << ", request " << n;
      if (!refused && n >= 0) break;
    }
    EXPECT_GT(num_refused, 3) << kind.spec;
  }
}

// A probe step writes the rows of a piece once, however often the piece comes.
TEST(PipelineKinds, RefusedBatchesOfJoinsThatHaveWrittenRowsAreWrittenOnce) {
  std::mt19937_64 random(quern::test::SeedOfTest());
  for (const Kind& kind : kKinds) {
    const Rows build = BuildRows(&random, kind), source(&random, 1000, 120, 1);
    const bool has_probe = std::string(kind.spec).find(" probe=") != std::string::npos;
    Lines expected;
    for (int64_t n = -1; n < 40; ++n) {
      OneRefusal memory{-1};
      Spilling spilling(kRooms[1]);
      auto sort = New<quern::Sort>(SortOf(kind), Engine::kGeneric, memory.options());
      quern::Join join = spilling.Build(kind, build, Engine::kGeneric);
      const quern::Job map = MapBehind();
      const Pipeline rest = Pipeline(kind.columns).Through(map, {0});
      quern::Input probes = Take(Pipeline(kSource)
                                     .Through(join, {0}, has_probe ? std::vector<uint32_t>{1} : std::vector<uint32_t>{})
                                     .Through(map, {0})
                                     .Into(sort, QUERN_PORT_ROWS, AllColumns(kind), {}, 300));
      memory.left = n;
      AppendTwice(&probes, source.source());
      Done(probes.Finish());
      quern::Output unmatched = Take(join.Unmatched());
      quern::Input input = Take(rest.Into(sort, QUERN_PORT_ROWS, AllColumns(kind), {}, 7));
      for (quern_result_state state = QUERN_RESULT_MORE; state == QUERN_RESULT_MORE;) {
        const quern_result& rows = *Take(unmatched.Next());
        AppendTwice(&input, AsTable(rows, rows.num_columns));
        state = rows.state;
      }
      Done(input.Finish());
      memory.left = -1;
      Done(sort.Finalise());
      const Lines lines = RowsOf(sort.Sorted(), LettersOf(kind));
      if (n == -1) expected = lines;
      ASSERT_EQ(lines, expected) << kind.spec << ", request " << n;
    }
  }
}

// ---- the order of calls ----

TEST(PipelineKinds, UnmatchedRowsComeAfterAllProbing) {
  const Numbers keys = {1, 2, 3};
  const Table source = {{ColumnOf(keys)}, {}, 3};
  quern::Join join = Built("join.right_anti keys=i64 build=i64", {{{ColumnOf(keys)}, {ColumnOf(keys)}, 3}});
  auto sums = New<quern::Aggregate>("aggregate aggs=sum(i64)");
  const Pipeline pipeline = Pipeline("i64").Through(join, {0});
  quern::Input idle = Take(pipeline.Into(sums, QUERN_PORT_ROWS, {}, {0}));
  quern::Input probes = Take(pipeline.Into(sums, QUERN_PORT_ROWS, {}, {0}));
  {
    quern::Input dropped = Take(pipeline.Into(sums, QUERN_PORT_ROWS, {}, {0}));
    Done(dropped.Append(source.batch()));
    Done(probes.Append(source.batch()));
    EXPECT_EQ(join.Unmatched().status().text(),
              "QUERN_PORT_UNMATCHED before all inputs of pipelines have finished: 2 with rows; accepted: after "
              "quern_input_finish of each");
  }
  const quern::Status early = join.Unmatched().status();
  EXPECT_EQ(early.code(), QUERN_FAILED_PRECONDITION);
  EXPECT_EQ(early.text(),
            "QUERN_PORT_UNMATCHED before all inputs of pipelines have finished: 1 with rows; accepted: after "
            "quern_input_finish of each");
  {
    quern::Input next = Take(pipeline.Into(sums, QUERN_PORT_ROWS, {}, {0}));
    Done(next.Append(source.batch()));  // what was refused counts as no output
  }
  Done(probes.Finish());
  EXPECT_EQ(RowsOf(join.Unmatched(), "l"), Lines());
  const quern::Status late = idle.Append(source.batch());
  EXPECT_EQ(late.code(), QUERN_FAILED_PRECONDITION);
  EXPECT_EQ(late.text(),
            "append after QUERN_PORT_UNMATCHED: rows of step 0 have been handed out; accepted: before an output "
            "of that port is created");
  Done(join.Unmatched().status());  // nor what was refused as an input
  Done(idle.Finish());
}

// Whichever comes first, no rows are appended once an output of build rows exists. A check in the wrong order shows in
// most runs of so many rounds.
TEST(PipelineKinds, OneOfProbingAndUnmatchedRowsIsRefused) {
  const Numbers keys = {1, 2, 3};
  const Table source = {{ColumnOf(keys)}, {}, 3};
  for (int round = 0; round < 2000; ++round) {
    quern::Join join = Built("join.right_anti keys=i64 build=i64", {{{ColumnOf(keys)}, {ColumnOf(keys)}, 3}});
    auto sums = New<quern::Aggregate>("aggregate aggs=sum(i64)");
    quern::Input probes = Take(Pipeline("i64").Through(join, {0}).Into(sums, QUERN_PORT_ROWS, {}, {0}));
    std::atomic<int> num_waiting{2};
    const auto wait = [&] {
      --num_waiting;
      while (num_waiting != 0) std::this_thread::yield();
    };
    bool has_appended = false;
    std::thread prober([&] {
      wait();
      has_appended = probes.Append(source.batch()).ok();
    });
    wait();
    const bool has_output = join.Unmatched().ok();
    prober.join();
    ASSERT_FALSE(has_appended && has_output) << round;
    ASSERT_EQ(probes.Append(source.batch()).ok(), !has_output) << round;
    Done(probes.Finish());
    if (!has_output) Done(join.Unmatched().status());
  }
}

}  // namespace
}  // namespace quern_test
