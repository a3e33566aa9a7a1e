// SPDX-License-Identifier: Apache-2.0
// Row ids of four bytes: in the results of all operators that give row ids, in Arrow arrays and schemas, and that ids
// which do not fit end the call.
#include <gtest/gtest.h>

#include <string>

#include "test/hosts/arrow_results.h"
#include "test/hosts/jobs.h"

namespace quern_test {
namespace {

constexpr uint64_t kLast = UINT32_MAX;

quern_job_options Narrow() {
  quern_job_options options = {};
  options.row_id_bytes = 4;
  return options;
}

// Three rows, whose ids end at `last`.
Table RowsUpTo(uint64_t last, const std::vector<int64_t>& keys) {
  static const quern_column row_ids = {};
  return {{ColumnOf(keys)}, {row_ids}, keys.size(), {}, last + 1 - keys.size()};
}

const std::vector<int64_t> kKeys = {3, 1, 2}, kOthers = {1, 7, 3};

TEST(RowIds, OfJoinsHaveFourBytes) {
  for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
    quern::Join join = New<quern::Join>("join.full keys=i64 build=rowid probe=rowid", engine, Narrow());
    Feed(join.Build(), {RowsUpTo(kLast, kKeys)});
    Done(join.Finalise());
    quern::Output probe = Take(join.Probe());
    EXPECT_EQ(Probed(&probe, RowsUpTo(2, kOthers), "44"),
              (Lines{"00000000|feffffff", "01000000|null", "02000000|fdffffff"}));
    EXPECT_EQ(RowsOf(join.Unmatched(), "44"), Lines{"null|ffffffff"});
  }
}

TEST(RowIds, OfSortsAndMergesHaveFourBytes) {
  const std::string spec = "sort keys=i64:out payload=rowid";
  for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
    quern::Sort sort = New<quern::Sort>(spec, engine, Narrow());
    Feed(sort.Rows(), {RowsUpTo(kLast, kKeys)});
    Done(sort.Finalise());
    EXPECT_EQ(InOrder(sort.Sorted(2), "l4"), (Lines{"1|feffffff", "2|ffffffff", "3|fdffffff"}));
    quern::Merge merge = Take(quern::Merge::Create(KernelOf(spec, engine), 1, Narrow()));
    const std::vector<int64_t> ascending = {4, 5};
    EXPECT_EQ(Merged(&merge, {{RowsUpTo(9, ascending)}}, "l4"), (Lines{"4|08000000", "5|09000000"}));
  }
}

TEST(RowIds, OfWholeRunsHaveFourBytes) {
  quern::Sort sort = New<quern::Sort>("sort keys=i64 payload=rowid", Engine::kGeneric, Narrow());
  const Table table = RowsUpTo(5, kKeys);
  const quern_batch rows = table.batch();
  const quern_run_input input = {QUERN_PORT_ROWS, &rows, 1};
  Lines lines;
  Take(sort.Run({&input, 1}, {}, [&](const quern_result& result) {
    AddLines(result, "i", &lines);
    return true;
  }));
  EXPECT_EQ(lines, (Lines{"4", "5", "3"}));
}

TEST(RowIds, ThatDoNotFitEndTheCall) {
  const char* const text = "row id beyond 32 bits: 4294967296; accepted: below 4294967296, or row_id_bytes 8";
  quern::Sort sort = New<quern::Sort>("sort keys=i64 payload=rowid", Engine::kGeneric, Narrow());
  Feed(sort.Rows(), {RowsUpTo(kLast + 1, kKeys)});
  Done(sort.Finalise());
  quern::Output sorted = Take(sort.Sorted());
  const quern::Status refused = sorted.Next().status();
  EXPECT_EQ(refused.text(), text);
  EXPECT_EQ(refused.code(), QUERN_OUT_OF_RANGE);
  EXPECT_EQ(sorted.Next().status().text(), "result after a failure: rows are lost; accepted: a new job");
  quern::Join join = New<quern::Join>("join.anti keys=i64 probe=rowid", Engine::kGeneric, Narrow());
  Done(join.Finalise());
  quern::Output probe = Take(join.Probe());
  Done(probe.Push(RowsUpTo(kLast + 1, kKeys).batch()));
  EXPECT_EQ(probe.Next().status().text(), text);
  EXPECT_EQ(Probed(&probe, RowsUpTo(2, kKeys), "i"), (Lines{"0", "1", "2"})) << "the next batch";
}

TEST(RowIds, OfArrowArraysSayTheirWidth) {
  const TestSchema schema({{"key", "l"}});
  const int32_t key[] = {0}, row_id[] = {-1};
  quern::Sort sort = New<quern::Sort>("sort keys=i64:out payload=rowid window=row_number", Engine::kJit, Narrow());
  Done(sort.BindArrow(QUERN_PORT_ROWS, {&schema.schema, key, row_id}));
  ArrowSchema result;
  Done(sort.ResultSchema(QUERN_PORT_ROWS, &result));
  EXPECT_EQ(TakeFields(&result), "key:l rowid:I row_number:L");
  Feed(sort.Rows(), {RowsUpTo(7, kKeys)});
  Done(sort.Finalise());
  quern::Output sorted = Take(sort.Sorted());
  ArrowArray rows;
  EXPECT_EQ(Take(sorted.NextArrow(&rows))->num_rows, 3u);
  EXPECT_EQ(TakeLines(&rows, "lir"), (Lines{"1|6|1", "2|7|2", "3|5|3"}));
}

TEST(RowIds, HaveNoOtherWidths) {
  quern_job_options options = {};
  options.row_id_bytes = 2;
  EXPECT_EQ(quern::Job::Create(KernelOf("sort keys=i64 payload=rowid", Engine::kGeneric), options).status().text(),
            "row_id_bytes: 2; accepted: 0, 4 or 8");
  options.row_id_bytes = 8;
  quern::Sort sort = New<quern::Sort>("sort keys=i64 payload=rowid", Engine::kGeneric, options);
  Feed(sort.Rows(), {RowsUpTo(kLast + 1, kKeys)});
  Done(sort.Finalise());
  EXPECT_EQ(InOrder(sort.Sorted(), "r"), (Lines{"4294967295", "4294967296", "4294967294"}));
}

}  // namespace
}  // namespace quern_test
