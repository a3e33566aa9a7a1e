// SPDX-License-Identifier: Apache-2.0
// Every request for memory that a job makes may be refused: the job then ends with an error or, where it can do
// without, with its result. Nothing is lost, and the same job succeeds when there is memory again. An append that was
// refused once succeeds when it is repeated, and the job's result is then the same.
//
// A job is first run without a refusal, which compiles its kernel and counts its requests: 210, for example. Then it
// runs 210 times, and each time another request is refused, alone or with all that follow. Of a job with more than
// kFewRequests requests only some are refused, the same ones in each run of the test; all are with
// QUERN_TEST_ALL_REFUSALS=1, as tools/nightly does.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "test/refusals/refused_jobs.h"
#include "test/refusals/refusing_allocator.h"

namespace quern_test {
namespace {

constexpr uint64_t kFewRequests = 160;

// What runs now, for the last words of a process that crashes.
char now[512] = "";

void TellAndDie(int number) {
  static_cast<void>(!write(STDERR_FILENO, now, std::strlen(now)));
  static_cast<void>(!write(STDERR_FILENO, "\n", 1));
  std::signal(number, SIG_DFL);
  raise(number);
}

bool RefusesAll() { return std::getenv("QUERN_TEST_ALL_REFUSALS") != nullptr; }

// The requests that are refused, of `count`: all of the first ones, then each step-th.
std::vector<uint64_t> Chosen(uint64_t count) {
  std::vector<uint64_t> chosen;
  const uint64_t step = RefusesAll() || count <= kFewRequests ? 1 : 2 * (count - kFewRequests / 2) / kFewRequests + 1;
  for (uint64_t n = 1; n <= count; n += n < kFewRequests / 2 ? 1 : step) chosen.push_back(n);
  return chosen;
}

// Whether a job has inputs, and work after them.
bool HasWork(const Job& job) {
  const std::string_view spec = job.spec;
  return !spec.starts_with("filter") && !spec.starts_with("map");
}

class RefusedMemory : public testing::TestWithParam<Job> {
 protected:
  static void SetUpTestSuite() {
    for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGILL}) std::signal(number, TellAndDie);
    MakeTables(4, 300);
    FillKeptMemory();
  }

  // A run in which request number n is refused; 0: none. Returns the number of requests.
  uint64_t Run(uint64_t n, Refusing refusing, Outcome* outcome) {
    const Job& job = GetParam();
    PrepareJob(job);
    std::snprintf(now, sizeof now, "crash of \"%s\" where request %llu is refused%s", NameOf(job).c_str(),
                  static_cast<unsigned long long>(n), refusing == Refusing::kOnce ? "" : ", and all after it");
    StartRefusing(n, refusing);
    *outcome = RunJob(job);
    const uint64_t count = StopRefusing();
    EXPECT_TRUE(AllIsReleased()) << now;
    return count;
  }

  void RefuseEach(Refusing refusing);
};

void RefusedMemory::RefuseEach(Refusing refusing) {
  Outcome expected, outcome;
  uint64_t count = 0;
  for (int i = 0; i < 3; ++i) count = Run(0, refusing, &expected);
  ASSERT_EQ(expected.status, QUERN_OK) << expected.text;
  const std::vector<uint64_t> chosen = Chosen(count);
  ReleaseKeptMemory();
  const int64_t blocks = HeldBlocks();
  uint64_t num_errors = 0, num_repeated = 0;
  for (const uint64_t n : chosen) {
    TakeNumAppends();
    Run(n, refusing, &outcome);
    const NumAppends appends = TakeNumAppends();
    num_repeated += appends.repeated;
    if (refusing == Refusing::kOnce) {
      EXPECT_EQ(appends.given_up, 0u) << now << ": " << outcome.text;
    }
    if (outcome.status == QUERN_OK) {
      EXPECT_EQ(outcome.sum, expected.sum) << now;
    } else {
      EXPECT_EQ(outcome.status, QUERN_RESOURCE_EXHAUSTED) << now << ": " << outcome.text;
    }
    num_errors += outcome.status == QUERN_OK ? 0 : 1;
    Run(0, refusing, &outcome);
    EXPECT_EQ(outcome.status, QUERN_OK) << "after " << now << ": " << outcome.text;
    EXPECT_EQ(outcome.sum, expected.sum) << "after " << now;
    ReleaseKeptMemory();
    EXPECT_LE(HeldBlocks(), blocks) << "after request " << n << " of " << count;
    if (HasFailure()) return;
  }
  EXPECT_GT(num_errors, 0u);
  const bool appends = GetParam().way == Way::kCalls && HasWork(GetParam());
  if (appends && refusing == Refusing::kOnce) {
    EXPECT_GT(num_repeated, 0u);
  }
}

TEST_P(RefusedMemory, Once) { RefuseEach(Refusing::kOnce); }
TEST_P(RefusedMemory, FromThenOn) { RefuseEach(Refusing::kFromThenOn); }

constexpr Job kSmallJobs[] = {
    {"join of numbers", "join.inner keys=i64 build=f64 probe=i64", "n", "f", "n", "nf"},
    {"join of texts", "join.full keys=utf8,i64 build=utf8 probe=f64", "tn", "t", "f", "ft"},
    {"join of dictionaries", "join.semi keys=dictionary(i32,utf8) probe=i64", "d", "", "n", "n"},
    {"groups of numbers", "aggregate keys=i64 aggs=count_star,sum(i64)", "n", "n", "", "nnn"},
    {"groups of texts", "aggregate keys=utf8 aggs=count_distinct(utf8),string_agg(utf8,x'2c'),median(f64),min(utf8)",
     "t", "ttft", "", "tntft"},
    {"groups of dictionaries", "aggregate keys=dictionary(i32,utf8),i64 aggs=avg(f64)", "dn", "f", "", "tnf"},
    {"sort of numbers", "sort keys=i64:out payload=f64,utf8 stable", "n", "ft", "", "nft"},
    {"sort of texts", "sort keys=utf8:out,f64:desc payload=utf8 stable window=row_number", "tf", "t", "", "ttn"},
    {"first rows", "sort keys=utf8:desc:out payload=i64 limit=20 stable", "t", "n", "", "tn"},
    {"filter", "filter i64 >= 50 and utf8 like '%1_ %' or dictionary(i32,utf8) in ('word 7', 'word 9')", "ntd", "", "",
     ""},
    {"map", "map in=i64,f64 out=case_when(less($0,50:i64),add_checked($0,1:i64),$0),sqrt($1)", "nf", "", "", "nf"},
    {"intersection", "set.intersect_all keys=utf8:nullable,i64", "tn", "", "", "tn"},
    {"union", "set.union keys=i64", "n", "", "", "n"},
    {"sort of collated texts", "sort keys=utf8(utf8mb4_unicode_ci):out payload=i64 stable", "t", "n", "", "tn"},
    {"groups of collated texts", "aggregate keys=utf8(icu:de-u-co-phonebk) aggs=count_star", "t", "", "", "tn"},
};

std::vector<Job> SmallJobs() {
  std::vector<Job> jobs;
  for (Job job : kSmallJobs) {
    for (const quern_engine engine : {QUERN_ENGINE_GENERIC, QUERN_ENGINE_JIT}) {
      job.engine = engine;
      job.way = Way::kCalls;
      job.threads = 1;
      jobs.push_back(job);
      job.way = Way::kRun;
      job.threads = 2;
      if (HasWork(job)) jobs.push_back(job);
    }
  }
  for (const size_t i : {size_t{0}, size_t{1}, size_t{3}, size_t{5}, size_t{6}, size_t{9}, size_t{10}}) {
    Job job = kSmallJobs[i];
    job.way = Way::kArrow;  // of a sort: a merge
    jobs.push_back(job);
  }
  for (Job job : kSmallJobs) {
    job.way = Way::kPieces;
    if (HasWork(job)) jobs.push_back(job);
  }
  return jobs;
}

std::string TestName(const testing::TestParamInfo<Job>& info) {
  std::string name = NameOf(info.param);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(SmallJobs, RefusedMemory, testing::ValuesIn(SmallJobs()), TestName);

}  // namespace
}  // namespace quern_test
