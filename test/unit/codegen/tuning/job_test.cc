// SPDX-License-Identifier: Apache-2.0
// Jobs and the tuner: every existing cell has a job over a table of its class, rows hit and miss in the requested
// proportion, and a short tuning returns a profile of what it measured. No expectation depends on speed.
#include "codegen/tuning/job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/inspect/capture.h"
#include "codegen/tuning/job_data.h"
#include "codegen/tuning/tuner.h"
#include "runtime/base/status.h"

namespace quern {
namespace {

constexpr uint32_t kClass = 19;  // so large that tables of groups do not outgrow it within a batch

TuningCell Cell(PrefetchLoop loop, KeyClass keys, uint32_t size_class, uint32_t threads = 1, uint32_t pipeline = 1) {
  return {loop, keys, pipeline, size_class, threads};
}

TuningData ShortRuns() {
  TuningData data;
  data.slice_ms = 0.05;
  return data;
}

std::vector<PrefetchSetting> Settings(PrefetchLoop loop) {
  PrefetchSetting off, far, whole;
  off.hint = far.hint = whole.hint = DefaultHint(loop);
  far.distance = 64;
  whole.distance = kWholeBatch;
  return {off, far, whole};
}

MachineFacts SomeFacts() {
  MachineFacts facts;
  facts.l2_bytes = uint64_t{1} << 20;
  facts.l3_bytes = uint64_t{32} << 20;
  return facts;
}

// ---- data -----------------------------------------------------------------------------------------------------

TEST(TuningData, PermutesEveryNumberOnce) {
  for (const uint64_t n : {1, 2, 3, 17, 1000, 4096}) {
    std::set<uint64_t> seen;
    for (uint64_t i = 0; i < n; ++i) seen.insert(tuning::Permute(i, n));
    EXPECT_EQ(seen.size(), n);
    EXPECT_EQ(*seen.rbegin(), n - 1);
  }
}

TEST(TuningData, HitsAsManyRowsAsAsked) {
  for (const uint32_t percent : {0u, 10u, 100u}) {
    tuning::KeyChooser chooser(1000, 0, percent);
    uint32_t hits = 0;
    for (int i = 0; i < 20000; ++i) hits += chooser.Next() < 1000 ? 1 : 0;
    EXPECT_NEAR(hits / 200.0, percent, 2);
  }
}

// The most frequent of n keys has the share 1 / (1 + 2^-s + .. + n^-s).
TEST(TuningData, FollowsZipfsLaw) {
  for (const double s : {0.75, 1.0, 1.25}) {
    constexpr uint64_t kKeys = 1000, kRows = 100000;
    tuning::KeyChooser chooser(kKeys, s, 100);
    std::map<uint64_t, uint64_t> counts;
    for (uint64_t i = 0; i < kRows; ++i) ++counts[chooser.Next()];
    uint64_t most = 0;
    for (const auto& [key, count] : counts) most = std::max(most, count);
    double sum = 0;
    for (uint64_t k = 1; k <= kKeys; ++k) sum += std::pow(static_cast<double>(k), -s);
    EXPECT_NEAR(static_cast<double>(most) / kRows, 1 / sum, 0.1 / sum) << s;
  }
}

// Values of distinct numbers are distinct in all types that are wide enough, and lie where the column points.
TEST(TuningData, MakesColumnsOfAllTypes) {
  const std::vector<uint64_t> numbers = {7, 3, 7, 1};
  for (const char* type : {"i64", "i32", "u16", "f32", "f64", "decimal128", "fixed_binary(5)", "bool", "date32"}) {
    tuning::RowMaker maker;
    maker.keys = {*ParseKey(type)};
    const auto rows = tuning::JobRows::Make(maker, numbers);
    ASSERT_TRUE(rows.ok()) << type;
    const BatchView all = (*rows)->View(0, 4), rest = (*rows)->View(2, 2);
    EXPECT_EQ(all.num_rows, 4);
    ASSERT_NE(all.keys[0].values, nullptr);
    if (maker.keys[0].type.id == TypeId::kBool) {
      EXPECT_EQ(rest.keys[0].bit_offset, 2);
      continue;
    }
    const auto* const first = static_cast<const char*>(all.keys[0].values);
    const auto width = static_cast<size_t>(static_cast<const char*>(rest.keys[0].values) - first) / 2;
    EXPECT_EQ(std::string(first, width), std::string(first + 2 * width, width)) << type;
    EXPECT_NE(std::string(first, width), std::string(first + width, width)) << type;
  }
}

TEST(TuningData, MakesStrings) {
  for (const char* type : {"utf8", "large_binary", "utf8_view"}) {
    tuning::RowMaker maker;
    maker.keys = {*ParseKey(type)};
    maker.prefix_bytes = 4;
    const auto rows = tuning::JobRows::Make(maker, {5, 6});
    ASSERT_TRUE(rows.ok()) << type;
    EXPECT_EQ(*tuning::BytesOfRow(maker), 20 + (std::string(type) == "utf8"        ? 4
                                                : std::string(type) == "utf8_view" ? 16
                                                                                   : 8));
    const QuernColumn column = (*rows)->View(0, 2).keys[0];
    if (std::string(type) == "utf8") {
      const auto* const ends = static_cast<const int32_t*>(column.offsets);
      EXPECT_EQ(ends[0], 0);
      EXPECT_EQ(ends[1], 20);
      EXPECT_EQ(ends[2], 40);
      EXPECT_EQ(std::string(static_cast<const char*>(column.values), 4), "pppp");
    }
  }
}

TEST(TuningData, HasNoDictionaries) {
  tuning::RowMaker maker;
  maker.keys = {*ParseKey("dictionary(i32,utf8)")};
  EXPECT_EQ(tuning::BytesOfRow(maker).status().message(),
            "column of a tuning job: dictionary(i32,utf8); accepted: all types but dictionaries");
}

TEST(TuningData, RefusesStringsThatOffsetsDoNotReach) {
  const auto column = tuning::NumberColumn::Make(ParseKey("utf8")->type, tuning::Values::kSpread, 1024, 0);
  ASSERT_TRUE(column.ok());
  EXPECT_TRUE(column->CheckRows(1 << 20).ok());
  EXPECT_EQ(column->CheckRows(1 << 21).message(),
            "bytes of a column of a tuning job: 2147483648; accepted: up to 2147483647, which 32-bit offsets reach");
}

TEST(TuningData, StartsThreadsTogetherAndGivesTheFirstError) {
  std::atomic<uint32_t> ran{0};
  EXPECT_TRUE(tuning::OnThreads(3, [&](uint32_t t) { return ran |= 1u << t, absl::OkStatus(); }).ok());
  EXPECT_EQ(ran, 7);
  const absl::Status failed = tuning::OnThreads(
      2, [](uint32_t t) { return t == 1 ? Internal("broken: 1; accepted: none") : absl::OkStatus(); });
  EXPECT_EQ(failed.message(), "broken: 1; accepted: none");
}

TEST(TuningData, RefusesMoreMemoryThanThereIs) {
  EXPECT_TRUE(tuning::CheckMemory(1 << 20).ok());
  const absl::Status status = tuning::CheckMemory(uint64_t{1} << 60);
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_EQ(
      std::string(status.message()).rfind("memory of a tuning job: 1152921504606846976 bytes; accepted: up to ", 0),
      0u);
}

// ---- jobs -----------------------------------------------------------------------------------------------------

class TuningJobs : public testing::TestWithParam<PrefetchLoop> {};

// Every loop has a job for each of its key classes, over a table of its class, with one thread and with two.
TEST_P(TuningJobs, RunsEverySetting) {
  const PrefetchLoop loop = GetParam();
  uint32_t num_jobs = 0;
  for (const KeyClass keys : {KeyClass::kPacked, KeyClass::kFixed, KeyClass::kString}) {
    for (const uint32_t threads : {1u, 2u}) {
      const auto job = MakeTuningJob(Cell(loop, keys, kClass, threads), ShortRuns());
      if (absl::IsUnimplemented(job.status())) continue;
      ASSERT_TRUE(job.ok()) << job.status();
      ++num_jobs;
      for (const PrefetchSetting& setting : Settings(loop)) {
        const auto ns = (*job)->Run(setting);
        ASSERT_TRUE(ns.ok()) << ns.status();
        EXPECT_GT(*ns, 0);
      }
      // An arena of groups consists of spans that double in size.
      EXPECT_NEAR(SizeClassOf((*job)->table_bytes()), kClass, loop == PrefetchLoop::kUpdateDirectory ? 1 : 0)
          << (*job)->table_bytes();
      EXPECT_EQ((*job)->Default().hint, DefaultHint(loop));
    }
  }
  EXPECT_GE(num_jobs, 2u);
}

std::vector<PrefetchLoop> AllLoops() {
  return {
#define QUERN_PREFETCH_LOOP(Id, name, scope, hint, stages, meaning) PrefetchLoop::Id,
#include "runtime/rows/prefetch_loops.def"
  };
}

INSTANTIATE_TEST_SUITE_P(AllLoops, TuningJobs, testing::ValuesIn(AllLoops()),
                         [](const auto& info) { return std::string(LoopText(info.param)); });

TEST(TuningJob, RunsPipelinesOfTwo) {
  for (const PrefetchLoop loop : {PrefetchLoop::kProbeOpen, PrefetchLoop::kUpdateOpen}) {
    const auto job = MakeTuningJob(Cell(loop, KeyClass::kPacked, kClass, 1, 2), ShortRuns());
    ASSERT_TRUE(job.ok()) << job.status();
    EXPECT_TRUE((*job)->Run(Settings(loop)[1]).ok());
    EXPECT_EQ(SizeClassOf((*job)->table_bytes()), kClass);
  }
}

TEST(TuningJob, TakesOtherRowsAndSpecs) {
  TuningData data = ShortRuns();
  data.build_rows = 500;
  data.rows_per_key = 4;
  data.hits_percent = 10;
  data.zipf = 1.25;
  data.spec = "join.left keys=i32:nullable build=utf8,f64 probe=i64";
  const auto job = MakeTuningJob(Cell(PrefetchLoop::kProbeUnchained, KeyClass::kPacked, 20), data);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_TRUE((*job)->Run(Settings(PrefetchLoop::kProbeUnchained)[2]).ok());
}

TEST(TuningJob, RefusesCellsThatHaveNone) {
  const auto error = [](const TuningCell& cell, const std::string& spec = "") {
    TuningData data;
    data.spec = spec;
    return std::string(MakeTuningJob(cell, data).status().message());
  };
  EXPECT_EQ(error(Cell(PrefetchLoop::kProbeDense, KeyClass::kString, 20)),
            "tuning job of a cell: probe_dense string 2^20 pipeline=1 threads=1; accepted: loops that these keys have; "
            "pipelines of one for "
            "builds and sorts");
  EXPECT_NE(error(Cell(PrefetchLoop::kGather, KeyClass::kFixed, 20, 1, 2)), "");
  EXPECT_NE(error(Cell(PrefetchLoop::kProbeOpen, KeyClass::kPacked, 20), "sort keys=i64"), "");
  EXPECT_EQ(error(Cell(PrefetchLoop::kProbeOpen, KeyClass::kPacked, 20), "nonsense").empty(), false);
}

// ---- cells ----------------------------------------------------------------------------------------------------

TEST(CellsToTune, AreEachOnceAndAllHaveJobs) {
  for (const TuningEffort effort : {TuningEffort::kMeasure, TuningEffort::kPatient}) {
    const std::vector<TuningCell> cells = CellsToTune(effort, SomeFacts(), uint64_t{1} << 28);
    EXPECT_EQ(std::set<TuningCell>(cells.begin(), cells.end()).size(), cells.size());
    std::set<PrefetchLoop> loops;
    for (const TuningCell& cell : cells) {
      loops.insert(cell.loop);
      EXPECT_LE(cell.size_class, 28u);
    }
    EXPECT_EQ(loops.size(), kNumPrefetchLoops);
  }
  EXPECT_GT(CellsToTune(TuningEffort::kPatient, SomeFacts(), uint64_t{1} << 28).size(),
            CellsToTune(TuningEffort::kMeasure, SomeFacts(), uint64_t{1} << 28).size());
  EXPECT_TRUE(CellsToTune(TuningEffort::kEstimate, SomeFacts(), uint64_t{1} << 28).empty());
}

// ---- the tuner ------------------------------------------------------------------------------------------------

// The state before a tuning, so that it need not measure the machine.
Profile StartHere() {
  Profile start;
  start.machine = HostSignature();
  start.facts = SomeFacts();
  start.facts->signature = start.machine;
  MemoryFact fact;
  fact.bytes = uint64_t{2} << 30;
  fact.latency_ns = fact.read_ns = fact.write_ns = 1;
  start.facts->memory = {fact};
  return start;
}

TEST(Tuner, GivesAProfileOfWhatItMeasured) {
  const Profile start = StartHere();
  TuningOptions options;
  options.budget_seconds = 0.5;
  options.max_bytes = 1 << 19;
  options.threads = 2;
  options.specs = {"aggregate keys=i64 aggs=count_star", "join.inner keys=i64 build=i64"};
  options.start = &start;
  std::vector<std::string> doing;
  options.progress = [&](const TuningProgress& at) { doing.push_back(at.doing); };
  const auto result = Tune(options);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_FALSE(result->cells.empty());
  EXPECT_EQ(result->profile.machine, HostSignature());
  EXPECT_FALSE(result->stopped);
  EXPECT_FALSE(doing.empty());
  EXPECT_EQ(result->profile.entries.size(), result->cells.size());
  for (const CellResult& cell : result->cells) {
    EXPECT_EQ(cell.cell.keys, KeyClass::kPacked);
    EXPECT_GE(cell.candidates.size(), 2u);
  }
  const auto parsed = Profile::Parse(result->profile.Print(), "printed");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->entries.size(), result->profile.entries.size());
}

TEST(Tuner, StopsWhenItIsAsked) {
  const Profile start = StartHere();
  const std::atomic<bool> stop{true};
  TuningOptions options;
  options.start = &start;
  options.stop = &stop;
  const auto result = Tune(options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->stopped);
  EXPECT_TRUE(result->cells.empty());
}

// An interrupted measurement of the machine leaves nothing in the profile.
TEST(Tuner, StopsWhileTheMachineIsMeasured) {
  std::atomic<bool> stop{false};
  TuningOptions options;
  options.progress = [&](const TuningProgress& at) { stop = at.doing.find("random lines of 64 KiB") == 0; };
  options.stop = &stop;
  const auto result = Tune(options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->stopped);
  EXPECT_TRUE(result->facts.memory.empty());
  EXPECT_FALSE(result->profile.facts.has_value());
}

TEST(Tuner, EstimatesWithoutMeasuring) {
  TuningOptions options;
  options.effort = TuningEffort::kEstimate;
  const auto result = Tune(options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->cells.empty());
  EXPECT_TRUE(result->facts.memory.empty());
}

TEST(Tuner, RefusesBadSpecs) {
  const Profile start = StartHere();
  TuningOptions options;
  options.start = &start;
  options.specs = {"filter i64 >= 5"};
  EXPECT_EQ(Tune(options).status().message(),
            "spec to tune: filter i64 >= 5; accepted: joins, aggregations and sorts, which touch tables at random, and "
            "pipelines");
  for (const char* spec : {"nonsense", "pipeline in=i64 | filter i64 > 1 [$1] | emit [$0]"}) {
    options.specs = {spec};
    EXPECT_TRUE(absl::IsInvalidArgument(Tune(options).status())) << spec;
  }
}

// "probe_open 2", by loop and number of tables.
std::set<std::string> LoopsOf(const std::string& spec) {
  const auto jobs = CellsOfSpec(spec, CellsToTune(TuningEffort::kMeasure, SomeFacts(), uint64_t{1} << 28));
  EXPECT_TRUE(jobs.ok()) << jobs.status();
  std::set<std::string> loops;
  for (const CellJob& job : *jobs)
    loops.insert(std::string(LoopText(job.cell.loop)) + " " + std::to_string(job.cell.pipeline));
  return loops;
}

TEST(CellsOfSpec, ArePipelinesLoops) {
  // Two tables take turns, and a reduction is no probe.
  EXPECT_EQ(LoopsOf("pipeline in=i64,i64,f64 | reduce join.inner keys=i64 [$0]"
                    " | probe join.inner keys=i64 probe=i64,f64 [$0; $1, $2]"
                    " | probe join.semi keys=i64 probe=i64,f64 [$0; $0, $1]"
                    " | aggregate keys=i64 aggs=sum(f64) [$0; $1]"),
            (std::set<std::string>{"probe_dense 2", "probe_open 2", "probe_unchained 2", "update_dense 1",
                                   "update_open 1", "update_directory 1"}));
  // A table at the end is built, and probed elsewhere.
  EXPECT_EQ(LoopsOf("pipeline in=i64,f64 | filter f64 > 3 [$1] | build join.inner keys=i64 build=f64 [$0; $1]"),
            (std::set<std::string>{"build_dense 1", "build_open 1", "build_unchained 1"}));
  EXPECT_EQ(LoopsOf("pipeline in=utf8 | probe join.inner keys=utf8 probe=utf8 [$0; $0] | emit [$0]"),
            (std::set<std::string>{"probe_unchained 1"}));
  EXPECT_EQ(LoopsOf("join.inner keys=i64"),
            (std::set<std::string>{"build_dense 1", "build_open 1", "build_unchained 1", "probe_dense 1",
                                   "probe_open 1", "probe_open 2", "probe_unchained 1", "probe_unchained 2"}));
}

TuningOptions ShortTuning(const Profile* start) {
  TuningOptions options;
  options.budget_seconds = 0.5;
  options.max_bytes = 1 << 16;
  options.start = start;
  return options;
}

TEST(Tuner, TunesPipelines) {
  const Profile start = StartHere();
  TuningOptions options = ShortTuning(&start);
  options.specs = {
      "pipeline in=i64,f64 | probe join.inner keys=i64 probe=f64 [$0; $1] | aggregate aggs=sum(f64) [; $0]"};
  const auto result = Tune(options);
  ASSERT_TRUE(result.ok()) << result.status();
  for (const CellResult& cell : result->cells) {
    EXPECT_TRUE(std::string(LoopText(cell.cell.loop)).starts_with("probe_")) << LoopText(cell.cell.loop);
  }
  ASSERT_TRUE(result->pieces.has_value());
  ASSERT_EQ(result->pieces->pipelines.size(), 1u);
  EXPECT_FALSE(result->input.has_value());  // nobody asked
  EXPECT_EQ(result->pieces->pipelines[0].why_not, "");
  EXPECT_EQ(result->profile.pieces.has_value(), result->pieces->found.default_ns != 0);
}

// What cannot run here is left out, and so is a pipeline whose host chose the pieces.
TEST(Tuner, ReplaysPipelines) {
  const Profile start = StartHere();
  TuningOptions options = ShortTuning(&start);
  CapturedJob job;
  job.layout = "pipeline";
  job.jobs = 1;
  job.build_rows = 5000;
  job.ns = 1000;
  for (const char* spec : {"pipeline in=i64 | filter i64 > 1 [$0] | aggregate aggs=sum(i64) [; $0]",
                           "pipeline in=i64 | filter i64 > 1 [$0] | aggregate aggs=host.nobody(i64) [; $0]"}) {
    job.spec = spec;
    options.replay.push_back(job);
  }
  job.spec = "pipeline in=i64 | filter i64 > 2 [$0] | emit [$0]";
  job.params = {{"piece_rows", "64"}};
  options.replay.push_back(job);
  const auto result = Tune(options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->cells.empty());
  ASSERT_TRUE(result->pieces.has_value());
  ASSERT_EQ(result->pieces->pipelines.size(), 2u);
  EXPECT_EQ(result->pieces->pipelines[0].why_not, "");
  EXPECT_NE(result->pieces->pipelines[1].why_not, "");
  EXPECT_EQ(result->replayed, result->pieces->found.default_ns != 0 ? 1u : 0u);
}

// An entry whose times are 1000 times too long has not drifted; one whose setting is the default cannot be 10 times
// worse than the default.
TEST(Tuner, ChecksEntriesAgain) {
  Profile profile = StartHere();
  ProfileEntry entry;
  entry.cell = Cell(PrefetchLoop::kProbeOpen, KeyClass::kPacked, 16);
  entry.setting.distance = 32;
  entry.ns = 1;
  entry.default_ns = 2;
  entry.noise = 10;
  profile.Put({entry});
  entry.cell.size_class = 17;
  entry.is_default = true;
  profile.Put({entry});
  const auto report = CheckProfile(profile, 0.1);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->machine_difference, "");
  ASSERT_EQ(report->rows.size(), 1u);
  EXPECT_EQ(report->rows[0].entry.cell.size_class, 16u);
  EXPECT_GT(report->rows[0].ns, 0);
  EXPECT_FALSE(report->rows[0].drifted);
}

}  // namespace
}  // namespace quern
