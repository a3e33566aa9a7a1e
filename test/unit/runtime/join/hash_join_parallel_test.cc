// SPDX-License-Identifier: Apache-2.0
// Four threads append, finalise, probe and scan unmatched build rows of one join together. Appenders have so many rows
// that they radix-partition them, or so few that they do not, or some have many and some few.
//
// Build row r of B has key number r % K, probe row p has key number p, p < 2 K. So each build row below K x (B / K)
// matches exactly one probe row with a known number, and no test needs a second join to compare with:
//
//     B = 6, K = 3    rows 0 3 match probe row 0, 1 4 row 1, 2 5 row 2; probe rows 3 4 5 match nothing
//     half of them    probe rows 0 .. K / 2 only: the scan of unmatched build rows returns the other build rows
//
// ThreadSanitizer uses this test to check what threads share.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ir-templates/generic/generic_join.h"
#include "runtime/join/hash_join.h"
#include "runtime/rows/output_batch.h"
#include "runtime/spec/spec.h"
#include "test/unit/runtime/join/number_join.h"
#include "test/unit/runtime/sink/finalise_together.h"

namespace quern {
namespace {

using test::Column;

constexpr uint32_t kThreads = 4;
constexpr uint64_t kMany = 140000, kFew = 3000;  // rows of an appender; from 131072 on they are partitioned
constexpr uint64_t kBatchRows = 10000;

enum class KeyKind { kDense, kGaps, kSparse, kTwo };

int64_t KeyOf(KeyKind kind, uint64_t number) {
  return kind == KeyKind::kDense  ? static_cast<int64_t>(number) - 1000
         : kind == KeyKind::kGaps ? static_cast<int64_t>(number) * 9 - 1000
                                  : static_cast<int64_t>((number + 1) * 0x9e3779b97f4a7c15u);
}

struct Case {
  const char* name;
  const char* spec;
  KeyKind keys;
  std::vector<uint64_t> rows;  // of each appender
  uint64_t times;              // build rows a key
  const char* layout;
  LayoutChoice choice = LayoutChoice::kAuto;

  uint64_t NumRows() const {
    uint64_t n = 0;
    for (const uint64_t of_one : rows) n += of_one;
    return n;
  }
  uint64_t NumKeys() const { return NumRows() / times; }
};

const std::vector<Case>& AllCases() {
  static const std::vector<uint64_t> many(4, kMany), few(4, kFew), mixed = {kMany, kFew, kMany, 0};
  static const std::vector<Case> cases = {
      {"unchained", "join.right keys=i64 build=i64 probe=i64", KeyKind::kSparse, many, 4, "unchained"},
      {"unchained_mixed", "join.full keys=i64 build=i64 probe=i64", KeyKind::kSparse, mixed, 2, "unchained"},
      {"unchained_few", "join.right_semi keys=i64 build=i64", KeyKind::kSparse, few, 2, "unchained"},
      {"two_keys", "join.right_anti keys=i64,i64 build=i64", KeyKind::kTwo, many, 1, "unchained"},
      {"two_keys_mixed", "join.right_semi keys=i64,i64 build=i64", KeyKind::kTwo, mixed, 2, "unchained"},
      {"open", "join.right keys=i64 build=i64 probe=i64", KeyKind::kSparse, many, 1, "open"},
      {"open_mixed", "join.right_semi keys=i64 build=i64", KeyKind::kSparse, mixed, 1, "open"},
      {"open_of_dense_keys", "join.inner keys=i64 build=i64 probe=i64", KeyKind::kDense, many, 1, "open",
       LayoutChoice::kOpen},
      {"dense", "join.full keys=i64 build=i64 probe=i64", KeyKind::kDense, many, 1, "dense"},
      {"ranked", "join.full keys=i64 build=i64 probe=i64", KeyKind::kGaps, many, 1, "ranked"},
      {"ranked_mixed", "join.right_anti keys=i64 build=i64", KeyKind::kGaps, mixed, 1, "ranked"},
      {"csr", "join.right_semi keys=i64 build=i64", KeyKind::kDense, many, 4, "csr"},
      {"inner", "join.inner keys=i64 build=i64 probe=i64", KeyKind::kSparse, many, 2, "unchained"}};
  return cases;
}

std::shared_ptr<HashJoin> Join(const Case& of, std::shared_ptr<MemoryBudget> budget = nullptr) {
  JoinOptions options;
  options.layout = of.choice;
  return std::make_shared<HashJoin>(std::make_shared<JoinDescriptor>(*ParseSpecOf<JoinSpec>(of.spec)),
                                    GenericJoinKernel(), nullptr, std::move(budget), options);
}

// Rows [first, first + n) of one side: key columns, and the row numbers where the spec has them.
struct Rows {
  std::vector<int64_t> keys, numbers;

  Rows(const Case& of, uint64_t first, uint64_t n, uint64_t num_keys) {
    for (uint64_t row = first; row < first + n; ++row) {
      keys.push_back(KeyOf(of.keys, row % num_keys));
      numbers.push_back(static_cast<int64_t>(row));
    }
  }
  BatchView Batch(const Case& of, bool has_numbers) const {
    BatchView batch;
    batch.keys.assign(of.keys == KeyKind::kTwo ? 2 : 1, Column(keys));
    if (has_numbers) batch.payload.push_back(Column(numbers));
    batch.num_rows = keys.size();
    return batch;
  }
};

// How often each build row was returned, and whether its probe row was the right one.
struct Outcome {
  std::vector<std::atomic<uint32_t>> pairs, alone;
  std::atomic<uint64_t> probe_rows_alone{0}, wrong_pairs{0};

  explicit Outcome(uint64_t num_rows) : pairs(num_rows), alone(num_rows) {}

  void Add(const Case& of, const OutputBatch& out) {
    const bool has_probe = out.num_columns() == 2;
    for (uint64_t i = 0; i < out.num_rows(); ++i) {
      const auto value = [&](size_t column) { return static_cast<const uint64_t*>(out.column(column).values)[i]; };
      const auto is_null = [&](size_t column) {
        const uint8_t* const bits = out.column(column).validity;
        return bits != nullptr && ((bits[i / 8] >> i % 8) & 1) == 0;
      };
      const size_t build_column = has_probe ? 1 : 0;
      if (is_null(build_column)) ++probe_rows_alone;
      else if (!has_probe || is_null(0)) ++alone.at(value(build_column));
      else {
        ++pairs.at(value(build_column));
        if (value(build_column) % of.NumKeys() != value(0)) ++wrong_pairs;
      }
    }
  }
};

absl::Status NextAll(const Case& of, JoinProber* prober, OutputBatch* out, Outcome* outcome) {
  for (bool more = true; more;) {
    const absl::StatusOr<bool> next = prober->Next(out);
    if (!next.ok()) return next.status();
    outcome->Add(of, *out);
    more = *next;
  }
  return absl::OkStatus();
}

absl::Status AppendRows(const Case& of, const std::shared_ptr<HashJoin>& join, uint32_t thread) {
  uint64_t first = 0;
  for (uint32_t before = 0; before < thread; ++before) first += of.rows[before];
  Appender appender(join);
  for (uint64_t done = 0; done < of.rows[thread]; done += kBatchRows) {
    const Rows rows(of, first + done, std::min(kBatchRows, of.rows[thread] - done), of.NumKeys());
    if (absl::Status status = appender.Append(rows.Batch(of, true)); !status.ok()) return status;
  }
  return appender.Finish();
}

// One thread's run through the join; all threads do each stage at the same time.
absl::Status RunThread(const Case& of, const std::shared_ptr<HashJoin>& join, uint32_t thread, uint64_t num_probes,
                       std::barrier<>* all, Outcome* outcome) {
  absl::Status status = AppendRows(of, join, thread);
  all->arrive_and_wait();
  if (status.ok()) status = test::FinaliseTogether(join.get(), thread);
  all->arrive_and_wait();
  const bool has_probe = !join->descriptor().spec().probe.empty();
  JoinProber prober(join);
  OutputBatch out(JoinOutputTypes(join->descriptor().spec()), 1000, nullptr);
  for (uint64_t begin = thread * kBatchRows; begin < num_probes && status.ok(); begin += kThreads * kBatchRows) {
    const Rows rows(of, begin, std::min(kBatchRows, num_probes - begin), UINT64_MAX);
    status = prober.SetInput(rows.Batch(of, has_probe));
    if (status.ok()) status = NextAll(of, &prober, &out, outcome);
  }
  all->arrive_and_wait();
  if (status.ok()) status = prober.SetUnmatched();
  if (status.ok()) status = NextAll(of, &prober, &out, outcome);
  return status;
}

void RunThreads(const Case& of, const std::shared_ptr<HashJoin>& join, uint64_t num_probes, Outcome* outcome) {
  std::barrier<> all(kThreads);
  std::vector<std::thread> threads;
  std::vector<absl::Status> statuses(kThreads);
  for (uint32_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] { statuses[t] = RunThread(of, join, t, num_probes, &all, outcome); });
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) EXPECT_TRUE(status.ok()) << status;
}

class ParallelJoin : public testing::TestWithParam<size_t> {};

TEST_P(ParallelJoin, EachRowComesOutAsOftenAsItHasTo) {
  const Case& of = AllCases()[GetParam()];
  const uint64_t num_keys = of.NumKeys();
  for (const bool half : {false, true}) {
    const uint64_t num_probes = half ? num_keys / 2 : 2 * num_keys;
    auto join = Join(of);
    Outcome outcome(of.NumRows());
    RunThreads(of, join, num_probes, &outcome);
    EXPECT_EQ(std::string(join->stats().layout), of.layout);
    EXPECT_EQ(join->stats().table_rows, of.NumRows());
    EXPECT_EQ(outcome.wrong_pairs, 0u);
    const JoinKindRow& kind = RowOf(join->descriptor().spec().kind);
    EXPECT_EQ(outcome.probe_rows_alone, kind.probe_row == RowsOut::kUnmatched && !half ? num_probes - num_keys : 0);
    uint64_t wrong = 0;
    for (uint64_t row = 0; row < of.NumRows(); ++row) {
      const bool is_met = row % num_keys < num_probes;
      const uint32_t alone =
          (kind.build_row == RowsOut::kMatched && is_met) || (kind.build_row == RowsOut::kUnmatched && !is_met);
      wrong += outcome.pairs[row] != (kind.pairs && is_met ? 1u : 0u) || outcome.alone[row] != alone;
    }
    EXPECT_EQ(wrong, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, ParallelJoin, testing::Range(size_t{0}, AllCases().size()),
                         [](const auto& of) { return std::string(AllCases()[of.param].name); });

// ---- memory limits
// ---------------------------------------------------------------------------------------------------------------------

TEST(HashJoinThreads, AllThreadsAreToldThatTheTableDoesNotFit) {
  const Case& of = AllCases()[1];  // this case also partitions in finalise
  auto full = std::make_shared<MemoryBudget>(uint64_t{64} << 20);
  auto join = Join(of, full);
  for (uint32_t t = 0; t < kThreads; ++t) ASSERT_TRUE(AppendRows(of, join, t).ok());
  const uint64_t others = full->limit_bytes() - full->used_bytes() - 100000;
  ASSERT_TRUE(full->Reserve(others).ok());
  std::vector<std::thread> threads;
  std::vector<absl::Status> statuses(kThreads);
  for (uint32_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] { statuses[t] = test::FinaliseTogether(join.get(), t); });
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(JoinProber(join).SetUnmatched().code(), absl::StatusCode::kFailedPrecondition);
  join.reset();
  full->Release(others);
  EXPECT_EQ(full->used_bytes(), 0u);
}

// One thread, which may try again: no row may be lost between the attempts.
TEST(HashJoinThreads, AFinaliseThatDoesNotFitCanBeRepeatedAfterAppendersOfEverySize) {
  const Case& of = AllCases()[1];
  auto budget = std::make_shared<MemoryBudget>(uint64_t{64} << 20);
  auto join = Join(of, budget);
  for (uint32_t t = 0; t < kThreads; ++t) ASSERT_TRUE(AppendRows(of, join, t).ok());
  for (const uint64_t room : {100000, 2000000}) {
    const uint64_t others = budget->limit_bytes() - budget->used_bytes() - room;
    ASSERT_TRUE(budget->Reserve(others).ok());
    EXPECT_EQ(join->Finalise().code(), absl::StatusCode::kResourceExhausted) << room;
    budget->Release(others);
  }
  ASSERT_TRUE(join->Finalise().ok());
  EXPECT_EQ(join->stats().table_rows, of.NumRows());
  join.reset();
  EXPECT_EQ(budget->used_bytes(), 0u);
}

// ---- order of the calls ---------------------------------------------------------------------------------------

TEST(HashJoinThreads, AppendersFinishOnceAndBeforeTheTableIsBuilt) {
  const Case& of = AllCases()[0];
  auto join = Join(of);
  const Rows rows(of, 0, 10, 10);
  Appender first(join), late(join), unfinished(join);
  for (Appender* appender : {&first, &late, &unfinished}) ASSERT_TRUE(appender->Append(rows.Batch(of, true)).ok());
  EXPECT_TRUE(first.Finish().ok());
  EXPECT_EQ(first.Finish(),
            absl::FailedPreconditionError("finish called twice: the rows were handed over; accepted: once"));
  EXPECT_EQ(first.Append(rows.Batch(of, true)),
            absl::FailedPreconditionError("append after finish: the rows were handed over; accepted: a new appender"));
  ASSERT_TRUE(join->Append(rows.Batch(of, true)).ok());  // the join's own rows are additional
  ASSERT_TRUE(join->Finalise().ok());
  EXPECT_TRUE(join->Finalise().ok());
  EXPECT_EQ(join->stats().table_rows, 20u);
  EXPECT_EQ(late.Append(rows.Batch(of, true)),
            absl::FailedPreconditionError("append after finalise: the table is built; accepted: a new join"));
  EXPECT_EQ(late.Finish(),
            absl::FailedPreconditionError("append after finalise: the table is built; accepted: a new join"));
}

// Row ids that no host provides continue after the previous batch, whichever appender had it.
TEST(HashJoinThreads, CountedRowIdsAreUniqueOverAllAppenders) {
  const std::vector<int64_t> keys = {1, 2, 3, 4, 5};
  auto join = std::make_shared<HashJoin>(
      std::make_shared<JoinDescriptor>(*ParseSpecOf<JoinSpec>("join.right keys=i64 build=rowid")), GenericJoinKernel(),
      nullptr, nullptr, JoinOptions());
  Appender a(join), b(join);
  BatchView batch;
  batch.keys.push_back(Column(keys));
  batch.payload.push_back(Column(keys));  // not read
  batch.num_rows = keys.size();
  for (Appender* appender : {&a, &b, &a}) ASSERT_TRUE(appender->Append(batch).ok());
  ASSERT_TRUE(a.Finish().ok() && b.Finish().ok() && join->Finalise().ok());
  JoinProber prober(join);
  ASSERT_TRUE(prober.SetUnmatched().ok());
  OutputBatch out(JoinOutputTypes(join->descriptor().spec()), 100, nullptr);
  ASSERT_TRUE(prober.Next(&out).ok());
  const auto* const ids = static_cast<const uint64_t*>(out.column(0).values);
  std::vector<uint64_t> sorted(ids, ids + out.num_rows());
  std::sort(sorted.begin(), sorted.end());
  ASSERT_EQ(sorted.size(), 15u);
  for (uint64_t i = 0; i < 15; ++i) EXPECT_EQ(sorted[i], i);
}

}  // namespace
}  // namespace quern
