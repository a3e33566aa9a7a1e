// SPDX-License-Identifier: Apache-2.0
// Random pipelines by their spec against the same steps by quern_pipeline_input_create: joins of all kinds, tables that
// have written rows, both engines and a swap between them, pieces of any size, threads, selections, nulls and strings.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "test/hosts/jobs.h"
#include "test/hosts/spilling_account.h"
#include "test/unit/seed.h"

namespace quern_test {
namespace {

using quern::Pipeline;
using quern::PipelineJob;
using Numbers = std::vector<int64_t>;
using Columns = std::vector<uint32_t>;
using Types = std::vector<std::string>;
using Random = std::mt19937_64;

// ---- rows -----------------------------------------------------------------------------------------------------------

const Types kSource = {"i64:nullable", "i64", "utf8:nullable", "utf8_view:nullable"};

// A key and two texts, which may be null, and a number. A copy of the bytes that a test may spoil after an append.
struct Rows {
  Numbers key, value;
  std::vector<uint8_t> keys_valid, texts_valid, views_valid;
  std::unique_ptr<StringVector<int32_t>> texts;
  std::unique_ptr<ViewVector> views;
  std::vector<uint32_t> selection;

  Rows(Random* random, uint64_t num_rows, uint64_t num_keys, uint64_t nulls_of_10) {
    std::vector<bool> valid[3];
    std::vector<std::string> short_texts, long_texts;
    for (uint64_t i = 0; i < num_rows; ++i) {
      key.push_back(static_cast<int64_t>((*random)() % num_keys));
      value.push_back(static_cast<int64_t>((*random)() % 1000));
      for (std::vector<bool>& bits : valid) bits.push_back((*random)() % 10 >= nulls_of_10);
      short_texts.push_back("text " + std::to_string((*random)() % 40) + std::string((*random)() % 20, '.'));
      long_texts.push_back("a view of " + std::to_string((*random)() % 1000));
    }
    keys_valid = Bitmap(valid[0]);
    texts_valid = Bitmap(valid[1]);
    views_valid = Bitmap(valid[2]);
    texts = std::make_unique<StringVector<int32_t>>(short_texts);
    views = std::make_unique<ViewVector>(long_texts);
  }
  // A selection of about half of the rows, in disorder.
  void Select(Random* random) {
    for (uint32_t i = 0; i < key.size(); ++i)
      if ((*random)() % 2 == 0) selection.push_back(i);
    if (selection.empty() && !key.empty()) selection.push_back(0);
    std::shuffle(selection.begin(), selection.end(), *random);
  }
  std::vector<quern_column> columns() const {
    return {WithValidity(ColumnOf(key), keys_valid), ColumnOf(value), WithValidity(texts->column(), texts_valid),
            WithValidity(views->column(), views_valid)};
  }
  Table source() const { return {columns(), {}, key.size(), selection}; }
  // build=i64,utf8:nullable or utf8_view:nullable
  Table build(bool has_payload, bool has_views) const {
    const std::vector<quern_column> all = columns();
    Table table = {{all[0]}, {}, key.size(), selection};
    if (has_payload) table.payload = {all[1], all[has_views ? 3 : 2]};
    return table;
  }
};

// ---- random pipelines -----------------------------------------------------------------------------------------------

const char* const kKinds[] = {"inner",      "left",       "right",           "full", "semi",  "anti",
                              "right_semi", "right_anti", "anti_null_aware", "mark", "single"};

bool IsOneOf(const std::string& kind, std::initializer_list<const char*> kinds) {
  return std::any_of(kinds.begin(), kinds.end(), [&](const char* one) { return kind == one; });
}

std::string Joined(const Types& types, const char* suffix = "") {
  std::string text;
  for (const std::string& type : types) text += (text.empty() ? "" : ",") + type + suffix;
  return text;
}

std::string Nullable(const std::string& type) { return type.ends_with(":nullable") ? type : type + ":nullable"; }
bool IsNumber(const std::string& type) { return type.starts_with("i64"); }

struct Step {
  std::string spec, kind;  // kind: of a join
  Columns keys, payload;
  Types behind;  // the columns behind the step
  bool is_reduced = false;
  size_t build = 0;  // of the rows of a join
  bool has_build_payload = false, has_views = false, spills = false;
  int64_t room = 0;

  bool is_join() const { return !kind.empty(); }
  // Whether it has rows left when all probing is done.
  bool leaves_rows() const {
    return is_join() && !is_reduced && (spills || IsOneOf(kind, {"right", "full", "right_semi", "right_anti"}));
  }
};

struct RandomPipeline {
  std::vector<Step> steps;
  std::vector<Rows> builds;
  std::string end;
  Columns end_keys, end_payload;
  std::string letters;

  std::string spec() const {
    std::string text = "pipeline in=" + Joined(kSource);
    for (const Step& step : steps) {
      text += " | " +
              std::string(!step.is_join()   ? ""
                          : step.is_reduced ? "reduce "
                                            : "probe ") +
              step.spec + " " + Bracketed(step.keys, step.payload);
    }
    return text + " | " + end + " " + Bracketed(end_keys, end_payload);
  }

 private:
  static std::string Listed(const Columns& numbers) {
    std::string text;
    for (const uint32_t number : numbers) text += (text.empty() ? "$" : ", $") + std::to_string(number);
    return text;
  }
  static std::string Bracketed(const Columns& keys, const Columns& payload) {
    return "[" + Listed(keys) + (payload.empty() ? "" : "; " + Listed(payload)) + "]";
  }
};

class Maker {
 public:
  Maker(Random* random, bool spills) : random_(random), spills_(spills) {}

  // kinds: of the joins, in their order; filters and maps stand between them.
  RandomPipeline Make(const std::vector<std::string>& kinds, bool aggregates) {
    types_ = kSource;
    for (const std::string& kind : kinds) {
      AddOthers(2);
      AddJoin(kind);
    }
    AddOthers(3);
    if (aggregates) EndInGroups();
    else EndInSort();
    return std::move(made_);
  }

 private:
  uint64_t Draw(uint64_t n) { return (*random_)() % n; }

  uint32_t NumberColumn() {
    Columns numbers;
    for (uint32_t i = 0; i < types_.size(); ++i)
      if (IsNumber(types_[i])) numbers.push_back(i);
    return numbers[Draw(numbers.size())];
  }

  void Add(Step step) {
    if (step.behind.empty()) step.behind = types_;
    types_ = step.behind;
    made_.steps.push_back(std::move(step));
  }

  void AddOthers(uint64_t most) {
    for (uint64_t i = Draw(most + 1); i != 0; --i) {
      const uint32_t column = NumberColumn();
      Step step;
      step.keys = {column};
      if (Draw(2) == 0) {
        step.spec = "filter " + types_[column] + (Draw(2) == 0 ? " >= 5" : " <> 17");
      } else {
        step.spec = "map in=" + types_[column] +
                    (Draw(2) == 0 ? " out=modulo_checked(add_checked(coalesce($0,41:i64),7:i64),120:i64)"
                                  : " out=subtract($0,3:i64),coalesce($0,-1:i64)");
        step.behind = types_;
        if (step.spec.find("subtract") != std::string::npos) step.behind.push_back(types_[column]);
        step.behind.emplace_back("i64");
      }
      Add(std::move(step));
    }
  }

  void AddJoin(const std::string& kind) {
    Step step;
    step.kind = kind;
    step.is_reduced = IsOneOf(kind, {"inner", "semi"}) && Draw(6) == 0;
    step.spills = spills_ && Draw(3) != 0;
    step.room = Draw(2) == 0 ? 3000 : 8000;
    step.has_build_payload = IsOneOf(kind, {"inner", "left", "right", "full", "right_semi", "right_anti", "single"});
    step.has_views = Draw(2) == 0;
    step.build = made_.builds.size();
    made_.builds.push_back(BuildRows(kind));
    step.keys = {NumberColumn()};
    Types probe, build;
    if (!IsOneOf(kind, {"right_semi", "right_anti"})) {
      step.payload.push_back(NumberColumn());
      for (uint32_t i = 0; i < types_.size(); ++i)
        if (Draw(3) != 0) step.payload.push_back(i);
      for (const uint32_t number : step.payload) probe.push_back(types_[number]);
    }
    if (step.has_build_payload) build = {"i64", step.has_views ? "utf8_view:nullable" : "utf8:nullable"};
    step.spec = "join." + kind + " keys=i64:nullable" + (build.empty() ? "" : " build=" + Joined(build)) +
                (probe.empty() ? "" : " probe=" + Joined(probe));
    if (step.is_reduced) {
      step.payload.clear();
      return Add(std::move(step));
    }
    for (const std::string& type : probe)
      step.behind.push_back(IsOneOf(kind, {"right", "full"}) ? Nullable(type) : type);
    if (kind == "mark") step.behind.emplace_back("bool:nullable");
    for (const std::string& type : build)
      step.behind.push_back(IsOneOf(kind, {"left", "full", "single"}) ? Nullable(type) : type);
    Add(std::move(step));
  }

  // A build row of each key alone, where a second match is an error; no null, where one would leave no rows.
  Rows BuildRows(const std::string& kind) {
    const bool is_single = kind == "single";
    Rows rows(random_, is_single ? 60 : 250, 110, is_single || kind == "anti_null_aware" ? 0 : 1);
    for (size_t i = 0; is_single && i < rows.key.size(); ++i) rows.key[i] = static_cast<int64_t>(i);
    if (!is_single && Draw(3) == 0) rows.Select(random_);
    return rows;
  }

  static char LetterOf(const std::string& type) {
    return type.starts_with("i64") ? 'l' : type.starts_with("bool") ? 'b' : type.starts_with("utf8_view") ? 'v' : 's';
  }

  void EndInSort() {
    made_.end = "sort keys=" + Joined(types_, ":out");
    for (uint32_t i = 0; i < types_.size(); ++i) {
      made_.end_keys.push_back(i);
      made_.letters += LetterOf(types_[i]);
    }
  }

  void EndInGroups() {
    const uint32_t key = NumberColumn(), sum = NumberColumn(), most = NumberColumn();
    const auto last = static_cast<uint32_t>(types_.size() - 1);
    made_.end = "aggregate keys=" + types_[key] + " aggs=sum(" + types_[sum] + "),count_star,max(" + types_[most] +
                "),count_distinct(" + types_[last] + ")";
    made_.end_keys = {key};
    made_.end_payload = {sum, most, last};
    made_.letters = "lllll";
  }

  Random* const random_;
  const bool spills_;
  Types types_;
  RandomPipeline made_;
};

// ---- both ways ------------------------------------------------------------------------------------------------------

// The tables of a pipeline's joins; those of other steps are empty.
struct Tables {
  std::vector<std::unique_ptr<SpillingAccount>> spilling;  // outlives the joins
  std::vector<std::unique_ptr<quern::Join>> joins;
  uint64_t num_spilled = 0;

  Tables(const RandomPipeline& made, Engine engine, StringBytes bytes) {
    for (const Step& step : made.steps) {
      joins.emplace_back();
      if (!step.is_join()) continue;
      spilling.push_back(std::make_unique<SpillingAccount>());
      joins.back() = std::make_unique<quern::Join>(
          New<quern::Join>(step.spec, engine, step.spills ? spilling.back()->options() : quern_job_options{}));
      const Rows& rows = made.builds[step.build];
      Feed(joins.back()->Build(bytes), {rows.build(step.has_build_payload, step.has_views)});
      if (step.spills) spilling.back()->Finalise(joins.back().get(), step.room);
      else Done(joins.back()->Finalise());
      num_spilled += joins.back()->Stats().spilled_rows != 0;
    }
  }
  std::vector<const quern::Job*> jobs() const {
    std::vector<const quern::Job*> jobs;
    for (const auto& join : joins)
      if (join != nullptr) jobs.push_back(join.get());
    return jobs;
  }
};

// By quern_pipeline_input_create, and an input more for what each join has left.
Lines Expected(const RandomPipeline& made, const std::vector<Rows>& sources) {
  const Tables tables(made, Engine::kGeneric, StringBytes::kStay);
  std::vector<quern::Job> others;
  others.reserve(made.steps.size());
  for (const Step& step : made.steps) others.push_back(New<quern::Job>(step.spec, Engine::kGeneric));
  quern::Job end = New<quern::Job>(made.end, Engine::kGeneric);
  const auto from = [&](const Types& columns, size_t first_step) {
    Pipeline pipeline(Joined(columns));
    for (size_t i = first_step; i < made.steps.size(); ++i) {
      const Step& step = made.steps[i];
      if (step.is_reduced) pipeline.Reduced(*tables.joins[i], step.keys);
      else pipeline.Through(step.is_join() ? *tables.joins[i] : others[i], step.keys, step.payload);
    }
    return Take(pipeline.Into(end, QUERN_PORT_ROWS, made.end_keys, made.end_payload, 0,
                              first_step == 0 ? StringBytes::kStay : StringBytes::kCopied));
  };
  quern::Input rows = from(kSource, 0);
  for (const Rows& source : sources) Done(rows.Append(source.source().batch()));
  Done(rows.Finish());
  for (size_t i = 0; i < made.steps.size(); ++i) {
    if (!made.steps[i].leaves_rows()) continue;
    quern::Output left = Take(tables.joins[i]->Unmatched());
    quern::Input rest = from(made.steps[i].behind, i + 1);
    for (quern_result_state state = QUERN_RESULT_MORE; state == QUERN_RESULT_MORE;) {
      const quern_result& result = *Take(left.Next());
      Done(rest.Append(AsTable(result, result.num_columns).batch()));
      state = result.state;
    }
    Done(rest.Finish());
  }
  Done(end.Finalise());
  return RowsOf(end.NewOutput(QUERN_PORT_ROWS), made.letters);
}

struct Way {
  std::string params;
  Engine engine = Engine::kGeneric;
  uint64_t swap_after = 0;  // rows
  uint32_t num_threads = 1;
  StringBytes bytes = StringBytes::kStay;
  bool works = false;  // piece by piece
  bool runs = false;   // as a whole
};

std::ostream& operator<<(std::ostream& out, const Way& way) {
  return out << way.params << ", engine " << static_cast<int>(way.engine) << ", swap after " << way.swap_after << ", "
             << way.num_threads << " threads, copied " << (way.bytes == StringBytes::kCopied) << ", works " << way.works
             << ", runs " << way.runs;
}

quern::Kernel KernelFor(const std::string& spec, const Way& way) {
  quern::CompileOptions options;
  options.engine = way.swap_after != 0 ? Engine::kAuto : way.engine;
  options.params = way.params;
  options.compile_after_rows = way.swap_after;
  options.swap_waits = way.swap_after != 0;
  return Take(quern::Kernel::Compile(spec, options));
}

void WorkUntilDone(quern::Job* job, uint32_t num_threads) {
  OnThreads(num_threads, [&] {
    while (true) {
      const quern_work_state state = Take(job->Work());
      if (state == QUERN_WORK_DONE) return;
      if (state == QUERN_WORK_BUSY) std::this_thread::yield();
    }
  });
}

Lines BySpec(const RandomPipeline& made, std::vector<Rows>* sources, Random* random, const Way& way) {
  const Tables tables(made, way.engine, StringBytes::kStay);
  auto job = Take(PipelineJob::Create(KernelFor(made.spec(), way), tables.jobs()));
  Lines lines;
  if (way.runs) {
    std::vector<Table> batches_of;
    std::vector<quern_batch> batches;
    for (const Rows& source : *sources) batches_of.push_back(source.source());
    for (const Table& table : batches_of) batches.push_back(table.batch());
    const quern_run_input input = {QUERN_PORT_ROWS, batches.data(), batches.size()};
    quern_run_options options = {};
    options.threads = way.num_threads;
    std::atomic_flag busy;
    Take(job.Run({&input, 1}, options, [&](const quern_result& rows) {
      while (busy.test_and_set()) std::this_thread::yield();
      AddLines(rows, made.letters, &lines);
      busy.clear();
      return true;
    }));
    return Ordered(lines);
  }
  std::atomic<size_t> next{0};
  OnThreads(way.num_threads, [&] {
    quern::Input rows = Take(job.Rows(way.bytes));
    for (size_t i = next++; i < sources->size(); i = next++) {
      Done(rows.Append((*sources)[i].source().batch()));
      if (way.bytes == StringBytes::kCopied) {  // spoiled
        for (char& byte : (*sources)[i].texts->bytes) byte = '#';
        for (std::string& buffer : (*sources)[i].views->bytes)
          for (char& byte : buffer) byte = '#';
      }
    }
    Done(rows.Finish());
  });
  if (way.works) WorkUntilDone(&job, way.num_threads);
  else if (random != nullptr && (*random)() % 2 == 0) OnThreads(way.num_threads, [&] { Done(job.Finalise()); });
  else Done(job.Finalise());
  return RowsOf(job.NewOutput(QUERN_PORT_ROWS), made.letters);
}

class PipelineSpecRows : public testing::TestWithParam<bool> {};

const char* const kPieces[] = {"piece_rows=1", "piece_rows=7", "piece_rows=1000", "piece_rows=4096",
                               "piece_rows=65536"};

std::vector<Rows> Sources(uint64_t seed) {
  Random random(seed);
  std::vector<Rows> sources;
  for (const uint64_t num_rows : {200, 1, 0, 40, 300, 90}) {
    sources.emplace_back(&random, num_rows, 120, 1);
    if (random() % 2 == 0) sources.back().Select(&random);
  }
  return sources;
}

Way DrawWay(Random* random, bool may_compile) {
  Way way;
  way.params = std::string(kPieces[(*random)() % 5]) + ((*random)() % 2 == 0 ? "" : " fuse=off");
  if (may_compile) {
    if ((*random)() % 2 == 0) way.engine = Engine::kJit;
    else way.swap_after = 1 + (*random)() % 300;
  }
  way.num_threads = (*random)() % 2 == 0 ? 1 : 3;
  way.bytes = (*random)() % 2 == 0 ? StringBytes::kStay : StringBytes::kCopied;
  way.works = (*random)() % 2 == 0;
  way.runs = (*random)() % 5 == 0;
  return way;
}

// Each kind once in front, then two random ones.
TEST_P(PipelineSpecRows, AreThoseOfStepsOneByOne) {
  Random random(quern::test::SeedOfTest());
  size_t num_rows = 0, num_spilled = 0;
  for (int round = 0; round < 33; ++round) {
    std::vector<std::string> kinds = {kKinds[round % 11]};
    for (uint64_t more = random() % 3; more != 0; --more) kinds.emplace_back(kKinds[random() % 11]);
    const RandomPipeline made = Maker(&random, GetParam()).Make(kinds, random() % 3 == 0);
    const uint64_t seed = random();
    const Lines expected = Expected(made, Sources(seed));
    num_rows += expected.size();
    num_spilled += Tables(made, Engine::kGeneric, StringBytes::kStay).num_spilled;
    for (int i = 0; i < 6; ++i) {
      const Way way = DrawWay(&random, /*may_compile=*/round % 3 == 0 && i >= 4);
      std::vector<Rows> sources = Sources(seed);
      const Lines rows = BySpec(made, &sources, &random, way);
      ASSERT_EQ(rows.size(), expected.size()) << made.spec() << "\n" << way;
      ASSERT_EQ(rows, expected) << made.spec() << "\n" << way;
    }
  }
  EXPECT_GT(num_rows, 1000u);
  EXPECT_EQ(num_spilled > 10, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Tables, PipelineSpecRows, testing::Values(false, true),
                         [](const auto& info) { return info.param ? "ThatHaveWrittenRows" : "InMemory"; });

// ---- what joins have left -------------------------------------------------------------------------------------------

const char kBothSpec[] =
    "pipeline in=i64,i64 | probe join.full keys=i64 build=i64,utf8 probe=i64 [$0; $1]"
    " | map in=i64:nullable out=multiply(coalesce($0,0:i64),10:i64) [$1]"
    " | probe join.right keys=i64 build=i64 probe=i64:nullable,i64:nullable,utf8:nullable [$3; $0, $1, $2]"
    " | sort keys=i64:nullable:out,i64:nullable:out,utf8:nullable:out,i64:out [$0, $1, $2, $3]";

// Behind the full join: 7|1|one, 8|null|null, and left null|2|two; of these, times 10, the right one has 10 and 0.
TEST(PipelineSpecLeft, OfTwoJoinsBehindEachOther) {
  const Numbers keys = {1, 2}, others = {10, 0, 50}, probed = {1, 9}, values = {7, 8};
  const StringVector<int32_t> names({"one, as a long text", "two, as a long text"});
  for (const StringBytes bytes : {StringBytes::kStay, StringBytes::kCopied}) {
    for (const char* params : {"", "piece_rows=1"}) {
      const quern::Join first = Built("join.full keys=i64 build=i64,utf8 probe=i64",
                                      {{{ColumnOf(keys)}, {ColumnOf(keys), names.column()}, 2}});
      const quern::Join second = Built("join.right keys=i64 build=i64 probe=i64:nullable,i64:nullable,utf8:nullable",
                                       {{{ColumnOf(others)}, {ColumnOf(others)}, 3}});
      auto job = Take(PipelineJob::Create(KernelOf(kBothSpec, Engine::kJit, params), {&first, &second}));
      Feed(job.Rows(bytes), {{{ColumnOf(probed), ColumnOf(values)}, {}, 2}});
      Done(job.Finalise());
      EXPECT_EQ(RowsOf(job.NewOutput(QUERN_PORT_ROWS), "llsl"),
                (Lines{"7|1|one, as a long text|10", "8|null|null|0", "null|null|null|50"}));
    }
  }
}

// A table whose own pipeline has sent what a right join had left, for another pipeline.
TEST(PipelineSpecLeft, IsBuiltIntoATable) {
  const Numbers keys = {1, 2, 3}, probed = {2}, values = {20};
  const quern::Join first = Built("join.right keys=i64 build=i64 probe=i64", {{{ColumnOf(keys)}, {ColumnOf(keys)}, 3}});
  auto table =
      Take(PipelineJob::Create(KernelOf("pipeline in=i64,i64 | probe join.right keys=i64 build=i64 probe=i64 [$0; $1]"
                                        " | build join.left keys=i64 build=i64:nullable probe=i64 [$1; $0]"),
                               {&first}));
  Feed(table.Rows(), {{{ColumnOf(probed), ColumnOf(values)}, {}, 1}});
  auto rows = Take(
      PipelineJob::Create(KernelOf("pipeline in=i64 | probe join.left keys=i64 build=i64:nullable probe=i64 [$0; $0]"
                                   " | sort keys=i64:out,i64:nullable:out [$0, $1]"),
                          {&table}));
  EXPECT_EQ(rows.Rows().status().text(), "step 0: the join still has work; accepted: a join whose work is done");
  WorkUntilDone(&table, 3);
  EXPECT_EQ(table.Stats().num_rows, 3u);
  const Numbers asked = {1, 2, 3, 4};
  Feed(rows.Rows(), {{{ColumnOf(asked)}, {}, 4}});
  Done(rows.Finalise());
  EXPECT_EQ(RowsOf(rows.NewOutput(QUERN_PORT_ROWS), "ll"), (Lines{"1|null", "2|20", "3|null", "4|null"}));
  // The ports of the end are those of the table's pipeline.
  quern::Output probe = Take(table.NewOutput(QUERN_PORT_PROBE));
  EXPECT_EQ(Probed(&probe, {{ColumnOf(asked)}, {ColumnOf(asked)}, 2}, "ll"), (Lines{"1|null", "2|20"}));
}

// ---- row ids --------------------------------------------------------------------------------------------------------

// Row ids that come out of a join are u64 to later steps, also those of rows that it has left, and whatever the host
// gets from the table.
TEST(PipelineSpecRowIds, OfWhatIsLeftAreNumbers) {
  const Numbers keys = {1, 2, 3, 3}, probed = {2, 3, 7};
  for (const uint32_t row_id_bytes : {8, 4}) {
    quern_job_options options = {};
    options.row_id_bytes = row_id_bytes;
    auto table = New<quern::Join>("join.full keys=i64 build=rowid probe=rowid", Engine::kJit, options);
    Feed(table.Build(), {{{ColumnOf(keys)}, {quern_column{}}, 4, {}, 50}});
    Done(table.Finalise());
    auto job = Take(
        PipelineJob::Create(KernelOf("pipeline in=i64 | probe join.full keys=i64 build=rowid probe=rowid [$0; $0]"
                                     " | map in=u64:nullable out=add($0,1000:u64) [$1]"
                                     " | sort keys=u64:nullable:out,u64:nullable:out,u64:nullable:out [$0, $1, $2]"),
                            {&table}));
    Feed(job.Rows(), {{{ColumnOf(probed)}, {}, 3, {}, 100}});
    Done(job.Finalise());
    EXPECT_EQ(RowsOf(job.NewOutput(QUERN_PORT_ROWS), "rrr"),
              (Lines{"100|51|1051", "101|52|1052", "101|53|1053", "102|null|null", "null|50|1050"}));
  }
}

// Ids of the end number all rows that arrive, what joins have left behind the others.
TEST(PipelineSpecRowIds, AreCountedOverWhatIsLeft) {
  const Numbers keys = {1, 2, 3, 3}, probed = {2, 3, 7};
  for (const char* stable : {"", " stable"}) {
    const quern::Join table =
        Built("join.right keys=i64 build=i64 probe=i64", {{{ColumnOf(keys)}, {ColumnOf(keys)}, 4}});
    auto job =
        Take(PipelineJob::Create(KernelOf("pipeline in=i64 | probe join.right keys=i64 build=i64 probe=i64 [$0; $0]"
                                          " | map in=i64:nullable out=multiply(coalesce($0,0:i64),0:i64) [$0]"
                                          " | sort keys=i64 payload=i64,rowid" +
                                          std::string(stable) + " [$2; $1, $1]"),
                                 {&table}));
    Feed(job.Rows(), {{{ColumnOf(probed)}, {}, 3, {}, 100}});
    Done(job.Finalise());
    const Lines rows = InOrder(job.NewOutput(QUERN_PORT_ROWS), "lr");
    EXPECT_EQ(Ordered(rows), (Lines{"1|3", "2|0", "3|1", "3|2"}));
    if (*stable != 0) {
      EXPECT_EQ(rows, (Lines{"2|0", "3|1", "3|2", "1|3"}));
    }
  }
}

// first(x) takes the row of the lowest id.
TEST(PipelineSpecRowIds, OfTheFirstRowOfAGroup) {
  const Numbers keys = {1, 2, 3}, probed = {3, 2};
  const quern::Join table = Built("join.right keys=i64 build=i64 probe=i64", {{{ColumnOf(keys)}, {ColumnOf(keys)}, 3}});
  auto job =
      Take(PipelineJob::Create(KernelOf("pipeline in=i64 | probe join.right keys=i64 build=i64 probe=i64 [$0; $0]"
                                        " | aggregate aggs=first(i64),last(i64),count_star [; $1, $1]"),
                               {&table}));
  Feed(job.Rows(), {{{ColumnOf(probed)}, {}, 2}});
  Done(job.Finalise());
  EXPECT_EQ(RowsOf(job.NewOutput(QUERN_PORT_ROWS), "lll"), (Lines{"3|1|3"}));
}

TEST(PipelineSpecRowIds, OfTheSourcePassFiltersAndMaps) {
  const Numbers values = {5, 1, 7};
  auto job =
      Take(PipelineJob::Create(KernelOf("pipeline in=i64 | filter i64 > 2 [$0] | map in=i64 out=negate($0) [$0]"
                                        " | sort keys=i64:out payload=rowid stable [$1; $0]")));
  Feed(job.Rows(), {{{ColumnOf(values)}, {}, 3, {}, 40}, {{ColumnOf(values)}, {}, 3, {0, 2}, 60}});
  Done(job.Finalise());
  EXPECT_EQ(InOrder(job.NewOutput(QUERN_PORT_ROWS), "lr"), (Lines{"-7|42", "-7|62", "-5|40", "-5|60"}));
}

// ---- functions of the host ------------------------------------------------------------------------------------------

// What on_rows has been called with.
struct Emitted {
  Numbers values = {};
  int num_calls = 0, stops_at = 1000, throws_at = 1000;

  static bool OnRows(void* context, const quern_batch* rows) {
    auto* const own = static_cast<Emitted*>(context);
    if (++own->num_calls == own->throws_at) throw 1;  // NOLINT: any exception
    for (uint64_t i = 0; i < rows->num_rows; ++i) {
      const uint64_t row = rows->selection == nullptr ? i : rows->selection[i];
      own->values.push_back(static_cast<const int64_t*>(rows->keys[0].values)[row]);
    }
    return own->num_calls < own->stops_at;
  }
  quern_job_options options() {
    quern_job_options options = {};
    options.on_rows = OnRows;
    options.rows_context = this;
    return options;
  }
};

const char kEmit[] = "pipeline in=i64 | probe join.right keys=i64 build=i64 probe=i64 [$0; $0] | emit [$1]";

quern::Join ForEmit() {
  static const Numbers keys = {1, 2, 3};
  return Built("join.right keys=i64 build=i64 probe=i64", {{{ColumnOf(keys)}, {ColumnOf(keys)}, 3}});
}

TEST(PipelineSpecEmit, StopsForAllInputsAndWhatIsLeft) {
  const Numbers probed = {2};
  const Table source = {{ColumnOf(probed)}, {}, 1};
  for (const int stops_at : {1, 2, 3}) {
    const quern::Join table = ForEmit();
    Emitted emitted{.stops_at = stops_at};
    auto job = Take(PipelineJob::Create(KernelOf(kEmit), {&table}, emitted.options()));
    quern::Input first = Take(job.Rows()), second = Take(job.Rows());
    for (int i = 0; i < 2; ++i) Done(first.Append(source.batch()));
    Done(second.Append(source.batch()));
    Done(first.Finish());
    Done(second.Finish());
    Done(job.Finalise());
    EXPECT_EQ(emitted.num_calls, stops_at);
    EXPECT_EQ(emitted.values, Numbers(static_cast<size_t>(stops_at), 2));
  }
}

TEST(PipelineSpecEmit, InputsMayHaveContextsOfTheirOwn) {
  const Numbers probed = {2};
  const quern::Join table = ForEmit();
  Emitted of_job, of_input;
  auto job = Take(PipelineJob::Create(KernelOf(kEmit), {&table}, of_job.options()));
  Feed(job.Rows(StringBytes::kStay, &of_input), {{{ColumnOf(probed)}, {}, 1}});
  Done(job.Finalise());
  EXPECT_EQ(of_input.values, Numbers{2});
  EXPECT_EQ(of_job.values, (Numbers{1, 3}));
}

TEST(PipelineSpecEmit, ExceptionsEndTheInputOrTheWork) {
  const char* const failed = "function of a pipeline's host failed: an exception; accepted: true or false";
  const Numbers probed = {2};
  const Table source = {{ColumnOf(probed)}, {}, 1};
  for (const int throws_at : {1, 2}) {
    const quern::Join table = ForEmit();
    Emitted emitted{.throws_at = throws_at};
    auto job = Take(PipelineJob::Create(KernelOf(kEmit), {&table}, emitted.options()));
    quern::Input input = Take(job.Rows());
    const quern::Status appended = input.Append(source.batch());
    if (throws_at == 1) {
      EXPECT_EQ(appended.code(), QUERN_ABORTED);
      EXPECT_EQ(appended.text(), failed);
      EXPECT_EQ(input.Append(source.batch()).text(),
                "append after a failure: the host has a part of the batch; accepted: a new input");
      continue;
    }
    Done(appended);
    Done(input.Finish());
    const quern::Status finalised = job.Finalise();
    EXPECT_EQ(finalised.code(), QUERN_ABORTED);
    EXPECT_EQ(finalised.text(), failed);
    EXPECT_EQ(job.Finalise().text(), "work after a failure: rows that a join had left are lost; accepted: a new job");
  }
}

// A pair matches where the host's function says so; it gets the input's context.
TEST(PipelineSpecHostResidual, GetsTheContextOfTheInput) {
  const Numbers keys = {1, 1, 2};
  quern_job_options options = {};
  options.residual = [](void*, void* context, const uint64_t*, const uint64_t* build_rows, uint64_t num_pairs,
                        uint8_t* keep) {
    for (uint64_t i = 0; i < num_pairs; ++i) keep[i] = build_rows[i] == *static_cast<uint64_t*>(context);
    return 0;
  };
  const std::string join = "join.left keys=i64 build=i64 probe=i64 residual=host";
  auto table = New<quern::Join>(join, Engine::kJit, options);
  const Numbers payload = {10, 11, 12};
  Feed(table.Build(), {{{ColumnOf(keys)}, {ColumnOf(payload)}, 3}});
  Done(table.Finalise());
  auto job = Take(PipelineJob::Create(
      KernelOf("pipeline in=i64 | probe " + join + " [$0; $0] | sort keys=i64:out,i64:nullable:out [$0, $1]"),
      {&table}));
  uint64_t first = 0, second = 1;
  const Table source = {{ColumnOf(keys)}, {}, 3};
  Feed(job.Rows(StringBytes::kStay, &first), {source});
  Feed(job.Rows(StringBytes::kStay, &second), {source});
  Done(job.Finalise());
  EXPECT_EQ(RowsOf(job.NewOutput(QUERN_PORT_ROWS), "ll"), (Lines{"1|10", "1|10", "1|11", "1|11", "2|null", "2|null"}));
}

// Rows that come back from files have no ids of the source: a wrong order of a stable sort would not be seen.
TEST(PipelineSpecRowIds, AreRefusedBehindASemiJoinThatHasWrittenRows) {
  Numbers keys(2000);
  std::iota(keys.begin(), keys.end(), 0);
  const Table table = {{ColumnOf(keys)}, {}, keys.size()};
  const std::string probe = " | probe join.semi keys=i64 probe=i64 [$0; $0]";
  const auto input_of = [&](const quern::Join& join, const std::string& end) {
    auto job = Take(PipelineJob::Create(KernelOf("pipeline in=i64" + probe + end, Engine::kGeneric), {&join}));
    const quern::Result<quern::Input> input = job.Rows();
    return input.ok() ? std::string() : std::string(input.status().text());
  };
  for (const bool spills : {false, true}) {
    SpillingAccount account;
    quern::Join join = New<quern::Join>("join.semi keys=i64 probe=i64", Engine::kGeneric, account.options());
    Feed(join.Build(), {table});
    if (spills) account.Finalise(&join, 3000);
    else Done(join.Finalise());
    ASSERT_EQ(join.Stats().spilled_rows != 0, spills);
    const std::string refused =
        spills ? "row ids of a pipeline behind step 0, whose join has written rows to files; accepted: ids in a column "
                 "of the source, or a table in memory"
               : "";
    EXPECT_EQ(input_of(join, " | sort keys=i64 stable [$0]"), refused);
    EXPECT_EQ(input_of(join, " | sort keys=i64 payload=rowid [$0; $0]"), refused);
    EXPECT_EQ(input_of(join, " | sort keys=i64:out [$0]"), "");
  }
}

}  // namespace
}  // namespace quern_test
