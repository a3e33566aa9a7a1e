// SPDX-License-Identifier: Apache-2.0
// Captures: what an observer sees of a job, how similar jobs become one line, that a file parses to what was written,
// and that an invalid file is an error that names the line. Estimates must stay within bounds for generated keys.
#include "codegen/inspect/capture.h"
#include "ir-templates/generic/generic_join.h"
#include "runtime/observe/key_sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "codegen/inspect/pipeline_capture.h"
#include "codegen/tuning/job_data.h"
#include "codegen/tuning/replay.h"
#include "codegen/tuning/tuner.h"
#include "runtime/base/status.h"
#include "runtime/observe/key_sample.h"

namespace quern {
namespace {

// ---- samples --------------------------------------------------------------------------------------------------

// The exponent that is estimated if that many rows choose among n keys.
double FittedZipf(uint64_t n, double zipf, uint32_t hits_percent, uint64_t num_rows) {
  tuning::KeyChooser chooser(n, zipf, hits_percent);
  RowSample sample;
  constexpr uint64_t kBatch = 5000;
  for (uint64_t done = 0; done < num_rows; done += kBatch) {
    std::vector<uint64_t> keys(kBatch), hashes;
    for (uint64_t& key : keys) key = chooser.Next();
    std::vector<uint32_t> rows;
    const uint64_t stride = sample.Choose(kBatch, &rows);
    for (const uint32_t row : rows) hashes.push_back(tuning::SplitMix(keys[row]));
    sample.Add(hashes.data(), hashes.size(), stride);
  }
  EXPECT_LE(sample.hashes().size(), RowSample::kMostRows);
  EXPECT_GE(sample.hashes().size(), std::min<uint64_t>(num_rows, RowSample::kMostRows / 2));
  return FitZipf(sample.hashes(), static_cast<double>(n));
}

TEST(KeySample, FindsTheExponentThatKeysWereChosenBy) {
  for (const double zipf : {0.0, 0.75, 1.25})
    for (const uint32_t hits_percent : {100, 10})
      for (const uint64_t n : {1000, 100'000, 10'000'000})
        EXPECT_NEAR(FittedZipf(n, zipf, hits_percent, 200'000), zipf, 0.15)
            << n << " keys, " << hits_percent << " % hits";
}

TEST(KeySample, FindsNoExponentWhereThereIsNone) {
  EXPECT_EQ(FitZipf({}, 100), 0);
  EXPECT_EQ(FitZipf(std::vector<uint64_t>(1000, 7), 1), 0);
  EXPECT_EQ(FittedZipf(1'000'000, 0, 100, 5000), 0);
}

TEST(KeySample, CountsDifferentKeys) {
  for (const uint64_t n : {0, 1, 100, 10'000, 50'000, 1'000'000}) {
    DistinctCounter counter;
    for (uint64_t i = 0; i < n; ++i) {
      const uint64_t hash = tuning::SplitMix(i);
      counter.Add(&hash, 1);
      counter.Add(&hash, 1);
    }
    EXPECT_NEAR(counter.Estimate(), static_cast<double>(n), 0.04 * static_cast<double>(n) + 0.5);
  }
}

// ---- observers ------------------------------------------------------------------------------------------------

KernelSpec Spec(const std::string& text) {
  absl::StatusOr<KernelSpec> spec = ParseSpec(text);
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? *spec : KernelSpec();
}

std::shared_ptr<const tuning::JobRows> Rows(const KernelSpec& spec, uint64_t n, uint64_t keys, uint32_t text_bytes) {
  std::vector<uint64_t> numbers(n);
  for (uint64_t i = 0; i < n; ++i) numbers[i] = i % keys;
  auto rows = tuning::JobRows::Make({{KeysOf(spec).begin(), KeysOf(spec).end()}, {}, false, text_bytes, 0}, numbers);
  EXPECT_TRUE(rows.ok()) << rows.status();
  return rows.ok() ? *rows : nullptr;
}

TEST(KeySampler, SeesSizesKeysAndThreads) {
  const KernelSpec spec = Spec("join.inner keys=i32,utf8 build=i64");
  JobSummary seen;
  KeySampler observer(spec, GenericJoinKernel(), [&](const JobSummary& job) { seen = job; });
  const auto rows = Rows(spec, 40'000, 10'000, 30);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (uint64_t at = t * 10'000; at < (t + 1) * 10'000; at += 1000) observer.SeeBuild(rows->View(at, 1000));
      for (uint64_t at = 0; at < 40'000; at += 1000) observer.SeeProbe(rows->View(at, 1000));
    });
  for (std::thread& thread : threads) thread.join();
  JobSummary known;
  known.num_hits = 120'000;
  known.layout = "unchained";
  observer.End(known);
  EXPECT_EQ(seen.build_rows, 40'000u);
  EXPECT_EQ(seen.probe_rows, 160'000u);
  EXPECT_NEAR(static_cast<double>(seen.keys), 10'000, 300);
  EXPECT_EQ(seen.num_hits, 120'000u);
  EXPECT_EQ(seen.zipf, 0);
  EXPECT_EQ(seen.key_bytes, 30);
  EXPECT_EQ(seen.threads, 4u);
  EXPECT_EQ(seen.layout, "unchained");
}

TEST(KeySampler, LeavesOutRowsThatAreNotSelectedAndNullsThatMatchNothing) {
  const KernelSpec spec = Spec("join.inner keys=i64:nullable build=i64");
  JobSummary seen;
  KeySampler observer(spec, GenericJoinKernel(), [&](const JobSummary& job) { seen = job; });
  const auto rows = Rows(spec, 4000, 4000, 0);
  std::vector<uint32_t> selection;
  for (uint32_t row = 0; row < 4000; row += 2) selection.push_back(row);
  std::vector<uint8_t> validity(500, 0x0f);  // the first four of eight rows
  BatchView batch = rows->View(0, 4000);
  batch.keys[0].validity = validity.data();
  batch.selection = selection.data();
  batch.num_rows = selection.size();
  observer.SeeBuild(batch);
  observer.End({});
  EXPECT_EQ(seen.build_rows, 2000u);
  EXPECT_NEAR(static_cast<double>(seen.keys), 1000, 30);
}

TEST(KeySampler, SaysNothingOfAJobWithoutRows) {
  bool is_told = false;
  KeySampler observer(Spec("aggregate aggs=count_star"), GenericJoinKernel(),
                      [&](const JobSummary&) { is_told = true; });
  observer.End({});
  EXPECT_FALSE(is_told);
  BatchView batch;
  batch.num_rows = 10;
  observer.SeeInput(batch);
  observer.End({});
  EXPECT_TRUE(is_told);
}

// Where pairs are counted, each hit gives as many pairs as its key has rows.
TEST(KeySampler, KnowsHitsByTheirPairs) {
  const KernelSpec spec = Spec("join.inner keys=i64");
  JobSummary seen;
  KeySampler observer(spec, GenericJoinKernel(), [&](const JobSummary& job) { seen = job; });
  const auto rows = Rows(spec, 4000, 1000, 0);
  observer.SeeBuild(rows->View(0, 4000));
  observer.SeeProbe(rows->View(0, 1000));
  observer.SeeMatches(2000);
  observer.End({});
  EXPECT_NEAR(static_cast<double>(seen.num_hits), 500, 20);
}

// ---- logs -----------------------------------------------------------------------------------------------------

CapturedJob SomeJob() {
  CapturedJob job;
  job.spec = "join.inner keys=i64 build=i64";
  job.params = {{"batch_size", "512"}, {"layout", "open"}};
  job.layout = "open";
  job.jobs = 2;
  job.threads = 3;
  job.build_rows = 1'000'000;
  job.probe_rows = 59'986'052;
  job.keys = 999'999;
  job.hits_percent = 97.5;
  job.zipf = 0.75;
  job.key_bytes = 0;
  job.table_bytes = 40'000'000;
  job.ns = 512'000'000;
  return job;
}

constexpr const char* kSomeText =
    "quern-capture 1\n"
    "job jobs=2 threads=3 layout=open build_rows=1000000 probe_rows=59986052 keys=999999 hits=97.5 zipf=0.75 "
    "key_bytes=0 "
    "table_bytes=40000000 collided_rows=0 ns=512000000 params=batch_size=512,layout=open spec=join.inner keys=i64 "
    "build=i64\n"
    "end 1\n";

TEST(CaptureLog, PrintsWhatItReads) {
  CaptureLog log;
  EXPECT_TRUE(log.Add(SomeJob()));
  EXPECT_EQ(log.Print(), kSomeText);
  const absl::StatusOr<CaptureLog> read = CaptureLog::Parse(kSomeText, "x");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->Print(), kSomeText);
  const absl::StatusOr<CaptureLog> none = CaptureLog::Parse("# nothing yet\n\nquern-capture 1\r\nend 0\n", "x");
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_TRUE(none->jobs().empty());
}

TEST(CaptureLog, MakesOneKindOfAlikeJobs) {
  CaptureLog log;
  CapturedJob job = SomeJob();
  log.Add(job);
  job.jobs = 6;
  job.build_rows = 1'020'000;
  job.hits_percent = 95.5;
  job.zipf = 0.79;
  log.Add(job);
  ASSERT_EQ(log.jobs().size(), 1u);
  EXPECT_EQ(log.jobs()[0].jobs, 8u);
  EXPECT_NEAR(log.jobs()[0].build_rows, 1'015'000, 1);
  EXPECT_NEAR(log.jobs()[0].hits_percent, 96, 1e-9);
  EXPECT_NEAR(log.jobs()[0].zipf, 0.78, 1e-9);
}

TEST(CaptureLog, KeepsOthersApart) {
  CaptureLog log;
  log.Add(SomeJob());
  const auto other = [&](auto&& change) {
    CapturedJob job = SomeJob();
    change(&job);
    log.Add(job);
  };
  other([](CapturedJob* job) { job->spec = "join.left keys=i64 build=i64"; });
  other([](CapturedJob* job) { job->params.clear(); });
  other([](CapturedJob* job) { job->layout = "counting"; });
  other([](CapturedJob* job) { job->threads = 1; });
  other([](CapturedJob* job) { job->build_rows *= 2; });
  other([](CapturedJob* job) { job->probe_rows /= 2; });
  other([](CapturedJob* job) { job->table_bytes *= 2; });
  other([](CapturedJob* job) { job->hits_percent = 10; });
  other([](CapturedJob* job) { job->zipf = 0; });
  EXPECT_EQ(log.jobs().size(), 10u);
}

TEST(CaptureLog, HasAnEnd) {
  CaptureLog log;
  CapturedJob job = SomeJob();
  for (uint32_t i = 1; i <= 4096; ++i) {
    job.threads = i;
    EXPECT_TRUE(log.Add(job));
  }
  job.threads = 5000;
  EXPECT_FALSE(log.Add(job));
  job.threads = 1;
  EXPECT_TRUE(log.Add(job));
}

std::string ErrorOf(const std::string& from, const std::string& to) {
  std::string text = kSomeText;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  return std::string(CaptureLog::Parse(text, "x.capture").status().message());
}

TEST(CaptureLog, NamesWhatIsWrong) {
  EXPECT_EQ(
      CaptureLog::Parse("", "x.capture").status().message(),
      "x.capture:1: capture without its last line: empty; accepted: a whole one, from quern-capture 1 to end COUNT");
  EXPECT_EQ(ErrorOf("quern-capture 1", "quern-profile 1"),
            "x.capture:1: not a capture: quern-profile 1; accepted: quern-capture 1 as first line");
  EXPECT_EQ(ErrorOf("quern-capture 1", "quern-capture 2"), "x.capture:1: version of a capture: 2; accepted: 1");
  EXPECT_EQ(ErrorOf("job jobs", "sort jobs"), "x.capture:2: unknown line of a capture: sort; accepted: job, end");
  EXPECT_EQ(ErrorOf("jobs=2", "jobs=0"), "x.capture:2: bad jobs of a job: 0; accepted: 1 to 1125899906842624");
  EXPECT_EQ(ErrorOf("threads=3", "threads=x"), "x.capture:2: bad threads of a job: x; accepted: 1 to 65536");
  EXPECT_EQ(ErrorOf("layout=open ", "layout=2 "),
            "x.capture:2: bad layout of a job: 2; accepted: a word of small letters");
  EXPECT_EQ(ErrorOf("keys=999999", "keys=-1"),
            "x.capture:2: bad keys of a job: -1; accepted: a number from 0 to 1e+18");
  EXPECT_EQ(ErrorOf("hits=97.5", "hits=101"), "x.capture:2: bad hits of a job: 101; accepted: a number from 0 to 100");
  EXPECT_EQ(ErrorOf("zipf=0.75", "zip=0.75"), "x.capture:2: field of a job: zip=0.75; accepted: zipf= here");
  EXPECT_EQ(ErrorOf("params=batch_size=512", "params=batch"),
            "x.capture:2: bad params of a job: batch,layout=open; accepted: NAME=VALUE,NAME=VALUE.. or -");
  EXPECT_EQ(ErrorOf("spec=join.inner", "spec=join.outer").substr(0, 13), "x.capture:2: ");
  EXPECT_EQ(ErrorOf("spec=join.inner keys=i64 build=i64", "spec=filter i64 >= 3"),
            "x.capture:2: spec of a job: filter i64 >= 3; accepted: joins, aggregations, sorts and pipelines");
  EXPECT_EQ(ErrorOf("batch_size=512", "batch_size=0").substr(0, 13), "x.capture:2: ");
  EXPECT_EQ(ErrorOf("end 1", "end 2"),
            "x.capture:3: number of jobs of a capture: 2; accepted: 1, as many as there are");
  EXPECT_EQ(
      ErrorOf("end 1\n", ""),
      "x.capture:2: capture without its last line: cut off; accepted: a whole one, from quern-capture 1 to end COUNT");
  EXPECT_EQ(ErrorOf("end 1\n", "end 1\nend 1\n"),
            "x.capture:4: line behind the end of a capture: end 1; accepted: nothing behind end");
}

TEST(CaptureLog, KeepsPipelines) {
  const std::string text =
      "quern-capture 1\n"
      "job jobs=1 threads=1 layout=pipeline build_rows=5 probe_rows=0 keys=0 hits=0 zipf=0 key_bytes=0 table_bytes=0 "
      "collided_rows=0 ns=700 params=piece_rows=512,1.huge_pages=off spec=pipeline in=i64 | filter i64 > 1 [$0] | sort "
      "keys=i64 [$0]\nend 1\n";
  const absl::StatusOr<CaptureLog> read = CaptureLog::Parse(text, "x");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->Print(), text);
  const auto error_of = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return std::string(CaptureLog::Parse(changed, "x").status().message());
  };
  EXPECT_EQ(error_of("keys=i64 [$0]", "keys=i32 [$0]"), "x:2: keys of the end[0]: column 0 of i64; accepted: i32");
  EXPECT_EQ(error_of("piece_rows=512", "piece_rows=0"),
            "x:2: bad value of plan parameter piece_rows: 0; accepted: 1 to 65536 rows");
}

// Without QUERN_CAPTURE there is nothing to record.
TEST(PipelineCapture, IsNotThereWhereNothingIsCaptured) {
  const absl::StatusOr<PipelineSpec> spec = ParsePipeline("pipeline in=i64 | filter i64 > 1 [$0] | emit [$0]");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(PipelineCapture::Of(*spec, {}), nullptr);
}

// ---- folders --------------------------------------------------------------------------------------------------

TEST(ReadCaptures, PutsAlikeJobsOfAllFilesTogetherTheDearestFirst) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "quern_captures";
  std::filesystem::remove_all(folder);
  EXPECT_EQ(ReadCaptures(folder).status().message(),
            "cannot read folder of captures: " + folder.string() +
                " (No such file or directory); accepted: a folder that processes with "
                "QUERN_CAPTURE have filled");
  std::filesystem::create_directories(folder);
  EXPECT_EQ(
      ReadCaptures(folder).status().message(),
      "no captured jobs: " + folder.string() + "; accepted: a folder that processes with QUERN_CAPTURE have filled");
  CaptureLog first, second;
  CapturedJob cheap = SomeJob();
  cheap.spec = "aggregate keys=i64 aggs=count_star";
  cheap.params.clear();
  cheap.ns = 600'000'000;
  first.Add(cheap);
  first.Add(SomeJob());
  second.Add(SomeJob());
  std::ofstream(folder / "1-a.capture") << first.Print();
  std::ofstream(folder / "2-b.capture") << second.Print();
  std::ofstream(folder / "3-c.capture.quern-tmp") << "half";
  const absl::StatusOr<std::vector<CapturedJob>> jobs = ReadCaptures(folder);
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->size(), 2u);
  EXPECT_EQ((*jobs)[0].spec, SomeJob().spec);
  EXPECT_EQ((*jobs)[0].jobs, 4u);
  EXPECT_EQ((*jobs)[1].spec, cheap.spec);
  std::ofstream(folder / "3-c.capture") << "quern-capture 1\n";
  EXPECT_EQ(ReadCaptures(folder).status().message(),
            (folder / "3-c.capture").string() +
                ":1: capture without its last line: cut off; accepted: a whole one, from quern-capture 1 to end COUNT");
}

// ---- replays --------------------------------------------------------------------------------------------------

TEST(Replay, TunesTheLoopsOfAJobAtItsSizes) {
  CapturedJob job = SomeJob();
  job.keys = 250'000;
  const std::vector<CellJob> cells = CellsToReplay({job}, uint64_t{1} << 31);
  ASSERT_EQ(cells.size(), 2u);
  EXPECT_EQ(PrintCell(cells[0].cell), "probe_open packed 2^26 pipeline=1 threads=1");
  EXPECT_EQ(PrintCell(cells[1].cell), "build_open packed 2^26 pipeline=1 threads=1");
  EXPECT_EQ(cells[0].data.build_rows, 1'000'000u);
  EXPECT_EQ(cells[0].data.hits_percent, 98u);
  EXPECT_EQ(cells[0].data.zipf, 0.75);
  EXPECT_EQ(cells[0].data.rows_per_key, 4u);
  EXPECT_EQ(cells[0].data.spec, job.spec);
  EXPECT_NEAR(cells[0].weight + cells[1].weight, job.total_ns(), 1);
  EXPECT_GT(cells[0].weight, 50 * cells[1].weight);
  EXPECT_TRUE(CellsToReplay({job}, uint64_t{1} << 25).empty());
  job.params = {{"prefetch", "off"}};
  EXPECT_TRUE(CellsToReplay({job}, uint64_t{1} << 31).empty());
  job.params = {{"pipeline", "2"}};
  EXPECT_EQ(PrintCell(CellsToReplay({job}, uint64_t{1} << 31)[0].cell), "probe_open packed 2^26 pipeline=2 threads=1");
  EXPECT_EQ(PrintCell(CellsToReplay({job}, uint64_t{1} << 31)[1].cell), "build_open packed 2^26 pipeline=1 threads=1");
}

TEST(Replay, TakesTheDearestOfTwoJobsInACell) {
  CapturedJob cheap = SomeJob(), dear = SomeJob();
  cheap.probe_rows = dear.probe_rows = 0;
  dear.ns *= 2;
  dear.build_rows = 900'000;
  const std::vector<CellJob> cells = CellsToReplay({cheap, dear}, uint64_t{1} << 31);
  ASSERT_EQ(cells.size(), 1u);
  EXPECT_EQ(cells[0].data.build_rows, 900'000u);
}

TEST(Replay, TunesGroupsByTheirNumberAndSortsByWhatComesOut) {
  CapturedJob groups = SomeJob();
  groups.spec = "aggregate keys=utf8 aggs=count_star";
  groups.layout = "directory";
  groups.keys = 5000;
  groups.key_bytes = 23.6;
  std::vector<CellJob> cells = CellsToReplay({groups}, uint64_t{1} << 31);
  ASSERT_EQ(cells.size(), 1u);
  EXPECT_EQ(PrintCell(cells[0].cell), "update_directory string 2^26 pipeline=1 threads=1");
  EXPECT_EQ(cells[0].data.build_rows, 5000u);
  EXPECT_EQ(cells[0].data.key_bytes, 24u);
  EXPECT_EQ(cells[0].data.hits_percent, 100u);
  CapturedJob sort = SomeJob();
  sort.spec = "sort keys=utf8 payload=i64 limit=7";
  sort.layout = "radix";
  cells = CellsToReplay({sort}, uint64_t{1} << 31);
  ASSERT_EQ(cells.size(), 1u);
  EXPECT_EQ(cells[0].cell.loop, PrefetchLoop::kGather);
  EXPECT_EQ(cells[0].data.build_rows, 7u);
  sort.collided_rows = 3000;
  EXPECT_EQ(CellsToReplay({sort}, uint64_t{1} << 31).size(), 2u);
}

// A job that cannot run here, because it calls a function of its host, is skipped.
TEST(Replay, TunesWhatCanRunHere) {
  TuningOptions options;
  options.budget_seconds = 0.3;
  options.max_bytes = 1 << 22;
  CapturedJob groups = SomeJob();
  groups.spec = "aggregate keys=i64 aggs=count_star";
  groups.params.clear();
  groups.keys = 1000;
  groups.table_bytes = 1 << 15;
  CapturedJob foreign = groups;
  foreign.spec = "aggregate keys=i64 aggs=host.of_nobody(i64)";
  foreign.ns *= 2;
  foreign.table_bytes = 1 << 17;
  options.replay = {foreign, groups};
  const auto result = Tune(options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_LE(result->cells.size(), 1u);
  EXPECT_EQ(result->replayed, result->cells.size());
  EXPECT_NEAR(result->replayed_share, result->cells.empty() ? 0 : 1. / 3, 1e-6);
  for (const CellResult& cell : result->cells) EXPECT_EQ(cell.cell.loop, PrefetchLoop::kUpdateOpen);
}

}  // namespace
}  // namespace quern
