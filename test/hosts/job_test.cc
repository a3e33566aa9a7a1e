// SPDX-License-Identifier: Apache-2.0
// Jobs by way of C++: each operator from its inputs to its outputs, work in pieces, cancelling, a host's account of
// memory, and columns as hosts have them.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "quern.hpp"

namespace {

using quern::Job;
using quern::Kernel;
using Numbers = std::vector<int64_t>;

Kernel Compiled(const std::string& spec) {
  auto kernel = Kernel::Compile(spec, quern::Engine::kGeneric);
  if (!kernel.ok()) ADD_FAILURE() << kernel.status().text();
  return *std::move(kernel);
}

// Whatever must succeed.
template <class Made>
Made Take(quern::Result<Made> result) {
  if (!result.ok()) ADD_FAILURE() << result.status().text();
  return *std::move(result);
}
void Done(const quern::Status& status) { ASSERT_EQ(status.text(), ""); }

quern_column ColumnOf(const Numbers& values) {
  quern_column column = {};
  column.values = values.data();
  return column;
}

quern_batch BatchOf(const quern_column* keys, const quern_column* payload, uint64_t num_rows) {
  quern_batch batch = {};
  batch.keys = keys;
  batch.payload = payload;
  batch.num_rows = num_rows;
  return batch;
}

// The rows of an output of i64 columns, sorted.
std::vector<Numbers> RowsOf(quern::Output* output) {
  std::vector<Numbers> rows;
  while (true) {
    auto next = output->Next();
    if (!next.ok()) {
      ADD_FAILURE() << next.status().text();
      return rows;
    }
    const quern_result& result = **next;
    for (uint64_t row = 0; row < result.num_rows; ++row) {
      Numbers& values = rows.emplace_back();
      for (size_t i = 0; i < result.num_columns; ++i)
        values.push_back(static_cast<const int64_t*>(result.columns[i].values)[row]);
    }
    if (result.state != QUERN_RESULT_MORE) break;
  }
  std::ranges::sort(rows);
  return rows;
}

// One input with one batch.
void AppendAll(quern::Result<quern::Input> input, const quern_batch& batch) {
  ASSERT_TRUE(input.ok()) << input.status().text();
  Done(input->Append(batch));
  Done(input->Finish());
}

// ---- operators ----

TEST(Jobs, JoinsAreProbedAndReturnUnmatchedRows) {
  const Kernel kernel = Compiled("join.right keys=i64 build=i64 probe=i64");
  auto join = Take(quern::Join::Create(kernel));
  const Numbers keys = {1, 2, 3}, build = {10, 20, 30}, probe_keys = {3, 4, 1, 3}, probe = {5, 6, 7, 8};
  const quern_column key = ColumnOf(keys), value = ColumnOf(build);
  AppendAll(join.Build(), BatchOf(&key, &value, 3));
  EXPECT_STREQ(join.Stats().layout, "");
  Done(join.Finalise());
  Done(join.Finalise());  // nothing remains to be done
  EXPECT_STRNE(join.Stats().layout, "");
  EXPECT_EQ(join.Stats().input_rows, 3u);
  auto probed = Take(join.Probe());
  EXPECT_EQ((*Take(probed.Next())).state, QUERN_RESULT_NEEDS_INPUT);
  const quern_column probe_key = ColumnOf(probe_keys), probe_value = ColumnOf(probe);
  Done(probed.Push(BatchOf(&probe_key, &probe_value, 4)));
  EXPECT_EQ(RowsOf(&probed), (std::vector<Numbers>{{5, 30}, {7, 10}, {8, 30}}));
  auto unmatched = Take(join.Unmatched());
  const quern_result* rows = Take(unmatched.Next());
  ASSERT_EQ(rows->num_rows, 1u);
  EXPECT_EQ(static_cast<const int64_t*>(rows->columns[1].values)[0], 20);
  EXPECT_EQ(join.Counters().rows, 7u);
}

TEST(Jobs, AggregationsPassStatesOn) {
  const Kernel kernel = Compiled("aggregate keys=i64 aggs=sum(i64)");
  auto first = Take(quern::Aggregate::Create(kernel)), second = Take(quern::Aggregate::Create(kernel));
  const Numbers keys = {1, 2, 1}, values = {5, 6, 7};
  const quern_column key = ColumnOf(keys), value = ColumnOf(values);
  auto input = Take(first.Rows());
  Done(input.Append(BatchOf(&key, &value, 3)));
  EXPECT_EQ(input.NumGroups(), 2u);
  Done(input.Finish());
  Done(first.Finalise());
  auto states = Take(first.GroupStates());
  const quern_result* rows = Take(states.Next());
  // The columns of a result are the input of another job.
  AppendAll(second.States(), BatchOf(rows->columns, rows->columns + 1, rows->num_rows));
  AppendAll(second.Rows(), BatchOf(&key, &value, 1));
  Done(second.Finalise());
  auto groups = Take(second.Groups());
  EXPECT_EQ(RowsOf(&groups), (std::vector<Numbers>{{1, 17}, {2, 6}}));
  EXPECT_EQ(second.Stats().num_rows, 2u);
}

TEST(Jobs, SortsKnowTheirThreshold) {
  const Kernel kernel = Compiled("sort keys=i64:out limit=2");
  auto sort = Take(quern::Sort::Create(kernel));
  auto current = Take(sort.CurrentThreshold());
  EXPECT_EQ(Take(current.Next())->num_rows, 0u);
  Numbers keys(5000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int64_t>(5000 - i);
  const quern_column key = ColumnOf(keys);
  AppendAll(sort.Rows(), BatchOf(&key, nullptr, keys.size()));
  const quern_result* threshold = Take(current.Next());
  ASSERT_EQ(threshold->num_rows, 1u);
  EXPECT_GE(static_cast<const int64_t*>(threshold->columns[0].values)[0], 2);
  const Numbers better = {1};
  const quern_column bound = ColumnOf(better);
  AppendAll(sort.Threshold(), BatchOf(&bound, nullptr, 1));
  Done(sort.Finalise());
  auto sorted = Take(sort.Sorted());
  EXPECT_EQ(RowsOf(&sorted).front(), Numbers{1});
  EXPECT_EQ(current.Next().status().code(), QUERN_FAILED_PRECONDITION);
}

TEST(Jobs, FiltersSelectMarkAndCount) {
  const auto filter = Take(quern::Filter::Create(Compiled("filter i64 > 2")));
  const Numbers values = {1, 3, 2, 5};
  const quern_column column = ColumnOf(values);
  const quern_batch batch = BatchOf(&column, nullptr, 4);
  uint32_t rows[4];
  EXPECT_EQ(Take(filter.Select(batch, rows)), 2u);
  EXPECT_EQ(rows[0] + 10 * rows[1], 31u);
  uint8_t bits = 0;
  EXPECT_EQ(Take(filter.Bitmap(batch, &bits)), 2u);
  EXPECT_EQ(bits, 0b1010);
  EXPECT_EQ(Take(filter.Count(batch)), 2u);
}

TEST(Jobs, RunOnThreadsOfTheLibrary) {
  const Kernel kernel = Compiled("join.full keys=i64 build=i64 probe=i64");
  Numbers keys(200000), probes(200000);
  for (size_t i = 0; i < keys.size(); ++i) {
    keys[i] = static_cast<int64_t>(i);
    probes[i] = static_cast<int64_t>(i) + 100000;
  }
  const quern_column key = ColumnOf(keys), probe = ColumnOf(probes);
  const quern_batch build = BatchOf(&key, &key, keys.size()), side = BatchOf(&probe, &probe, probes.size());
  const quern_run_input inputs[] = {{QUERN_PORT_BUILD, &build, 1}, {QUERN_PORT_PROBE, &side, 1}};
  quern_run_options options = {};
  options.threads = 3;
  auto join = Take(quern::Join::Create(kernel));
  std::atomic<uint64_t> seen{0};
  EXPECT_EQ(Take(join.Run(inputs, options,
                          [&](const quern_result& result) {
                            seen += result.num_rows;
                            return true;
                          })),
            300000u);
  EXPECT_EQ(seen, 300000u);
  auto merge = Take(quern::Merge::Create(Compiled("sort keys=i64:out"), 2));
  EXPECT_EQ(static_cast<Job&>(merge).Run(inputs, options).status().code(), QUERN_INVALID_ARGUMENT);
}

// ---- work in pieces ----

TEST(Jobs, WorkBeginsWhenAllInputsHaveFinished) {
  auto aggregate = Take(quern::Aggregate::Create(Compiled("aggregate keys=i64 aggs=count_star")));
  const Numbers keys = {1};
  const quern_column key = ColumnOf(keys);
  {
    auto open = Take(aggregate.Rows()), unused = Take(aggregate.Rows());
    Done(open.Append(BatchOf(&key, nullptr, 1)));
    EXPECT_EQ(aggregate.Finalise().text(),
              "work before all inputs have finished: 1 with rows; accepted: after quern_input_finish of each");
    EXPECT_EQ(aggregate.Groups().status().text(),
              "output before all work is done: the aggregation still has work; accepted: after quern_job_finalise, or "
              "QUERN_WORK_DONE");
  }
  Done(aggregate.Finalise());  // the rows of the input that was destroyed are dropped
  auto groups = Take(aggregate.Groups());
  EXPECT_EQ(RowsOf(&groups), std::vector<Numbers>());
}

// ---- cancelling, and memory ----

TEST(Jobs, CancelledJobsRefuseEveryCall) {
  const Kernel kernel = Compiled("aggregate keys=i64 aggs=count_star");
  volatile int stop = 0;
  quern_job_options options = {};
  options.stop = &stop;
  auto aggregate = Take(quern::Aggregate::Create(kernel, options));
  const Numbers keys = {1, 2};
  const quern_column key = ColumnOf(keys);
  auto input = Take(aggregate.Rows());
  stop = 1;
  EXPECT_EQ(input.Append(BatchOf(&key, nullptr, 2)).code(), QUERN_CANCELLED);
  stop = 0;  // nothing was lost
  Done(input.Append(BatchOf(&key, nullptr, 2)));
  Done(input.Finish());
  Done(aggregate.Finalise());
  auto groups = Take(aggregate.Groups());
  aggregate.Cancel();
  EXPECT_EQ(groups.Next().status().text(), "job cancelled: the host has stopped it; accepted: a new job");
  EXPECT_EQ(groups.Next().status().code(), QUERN_CANCELLED);
}

TEST(Jobs, ABatchWithManyCandidatesIsCancelledWithinIt) {
  // 65536 probe rows with 65536 candidates each, none of which satisfies the residual predicate.
  const Kernel kernel = Compiled("join.semi keys=i64 probe=rowid residual=i64:eq");
  const Numbers keys(65536, 1), low(65536, 0), high(65536, 1);
  const quern_column key = ColumnOf(keys), build = ColumnOf(low), probe[] = {quern_column{}, ColumnOf(high)};
  auto join = Take(quern::Join::Create(kernel));
  AppendAll(join.Build(), BatchOf(&key, &build, keys.size()));
  Done(join.Finalise());
  auto output = Take(join.Probe());
  Done(output.Push(BatchOf(&key, probe, keys.size())));
  std::thread host([&] {
    while (join.Counters().rows <= keys.size()) std::this_thread::yield();
    join.Cancel();
  });
  EXPECT_EQ(output.Next().status().code(), QUERN_CANCELLED);
  host.join();
}

struct Account {
  std::atomic<int64_t> used{0}, peak{0}, limit{INT64_MAX};

  static bool Reserve(void* host, uint64_t bytes) {
    auto* account = static_cast<Account*>(host);
    const int64_t now = account->used += static_cast<int64_t>(bytes);
    if (now <= account->limit) {
      account->peak = std::max<int64_t>(account->peak, now);
      return true;
    }
    account->used -= static_cast<int64_t>(bytes);
    return false;
  }
  static void Release(void* host, uint64_t bytes) { static_cast<Account*>(host)->used -= static_cast<int64_t>(bytes); }
  quern_job_options options() {
    quern_job_options options = {};
    options.reserve = Reserve;
    options.release = Release;
    options.host = this;
    return options;
  }
};

TEST(Jobs, TheHostsAccountSeesEveryByte) {
  const Kernel kernel = Compiled("join.inner keys=i64 build=i64 probe=rowid");
  Account account;
  Numbers keys(100000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int64_t>(i * 7);
  const quern_column key = ColumnOf(keys);
  {
    auto join = Take(quern::Join::Create(kernel, account.options()));
    AppendAll(join.Build(), BatchOf(&key, &key, keys.size()));
    EXPECT_EQ(account.used, static_cast<int64_t>(join.Stats().used_bytes));
    EXPECT_EQ(join.UsedBytes(), join.Stats().used_bytes);
    account.limit = account.used.load();  // building takes more
    const quern::Status refused = join.Finalise();
    EXPECT_EQ(refused.code(), QUERN_RESOURCE_EXHAUSTED);
    EXPECT_EQ(refused.text().rfind("memory refused by the host: ", 0), 0u) << refused.text();
    account.limit = INT64_MAX;  // the host has freed memory elsewhere
    Done(join.Finalise());
    EXPECT_EQ(join.Stats().num_rows, keys.size());
    EXPECT_EQ(account.peak, static_cast<int64_t>(join.Stats().peak_bytes));
  }
  EXPECT_EQ(account.used, 0);
}

// ---- columns as hosts have them ----

TEST(HostColumns, HaveSelectionsOfTheirOwnOrAreConstant) {
  auto aggregate = Take(quern::Aggregate::Create(Compiled("aggregate keys=i64:nullable aggs=sum(i64)")));
  const Numbers keys = {7, 8, 9}, values = {100};
  const uint8_t validity = 0b011;  // 9 is null
  const uint32_t selection[] = {2, 0, 0, 1, 2};
  quern_column key = ColumnOf(keys), value = ColumnOf(values);
  key.validity = &validity;
  key.selection = selection;
  value.flags = QUERN_COLUMN_CONSTANT;
  AppendAll(aggregate.Rows(), BatchOf(&key, &value, 5));
  Done(aggregate.Finalise());
  auto groups = Take(aggregate.Groups());
  const quern_result* rows = Take(groups.Next());
  std::vector<std::string> found;
  for (uint64_t row = 0; row < rows->num_rows; ++row) {
    const bool valid = (rows->columns[0].validity[0] >> row & 1) != 0;
    found.push_back((valid ? std::to_string(static_cast<const int64_t*>(rows->columns[0].values)[row]) : "null") + "=" +
                    std::to_string(static_cast<const int64_t*>(rows->columns[1].values)[row]));
  }
  std::ranges::sort(found);
  EXPECT_EQ(found, (std::vector<std::string>{"7=200", "8=100", "null=200"}));
}

struct PointerString {  // as DuckDB's string_t
  explicit PointerString(const std::string& text) : length(static_cast<uint32_t>(text.size())) {
    std::memset(rest, 0, sizeof(rest));
    std::memcpy(rest, text.data(), text.size() <= 12 ? text.size() : 4);
    if (text.size() <= 12) return;
    const char* data = text.data();
    std::memcpy(rest + 4, &data, sizeof(data));
  }
  uint32_t length;
  char rest[12];
};

TEST(HostColumns, HaveStringsByPointerBoolsAsBytesAndNarrowIntegers) {
  auto sort = Take(quern::Sort::Create(Compiled("sort keys=utf8_view:out payload=bool,i64,decimal128")));
  const std::string texts[] = {"a rather long string, b", "short", "a rather long string, a"};
  const PointerString words[] = {PointerString(texts[0]), PointerString(texts[1]), PointerString(texts[2])};
  const uint8_t flags[] = {0, 2, 1};
  const int16_t numbers[] = {-1, 2, 300};
  quern_column key = {}, payload[3] = {};
  key.values = words;
  key.flags = QUERN_COLUMN_POINTERS;
  payload[0].values = flags;
  payload[0].flags = QUERN_COLUMN_BYTES;
  payload[1].values = payload[2].values = numbers;
  payload[1].value_bytes = payload[2].value_bytes = 2;
  AppendAll(sort.Rows(), BatchOf(&key, payload, 3));
  Done(sort.Finalise());
  auto sorted = Take(sort.Sorted());
  const quern_result* rows = Take(sorted.Next());
  ASSERT_EQ(rows->num_rows, 3u);
  std::string found;
  for (uint64_t row = 0; row < 3; ++row) {
    const char* view = static_cast<const char*>(rows->columns[0].values) + 16 * row;
    uint32_t length = 0, offset = 0;
    std::memcpy(&length, view, 4);
    std::memcpy(&offset, view + 12, 4);
    found += length <= 12 ? std::string(view + 4, length)
                          : std::string(reinterpret_cast<const char*>(rows->columns[0].buffers[0]) + offset, length);
    found += (static_cast<const uint8_t*>(rows->columns[1].values)[0] >> row & 1) != 0 ? " true " : " false ";
    found += std::to_string(static_cast<const int64_t*>(rows->columns[2].values)[row]) + " ";
    const auto* wide = static_cast<const int64_t*>(rows->columns[3].values) + 2 * row;
    found += std::to_string(wide[0]) + "," + std::to_string(wide[1]) + "\n";
  }
  EXPECT_EQ(found,
            "a rather long string, a true 300 300,0\na rather long string, b false -1 -1,-1\nshort true 2 2,0\n");
}

TEST(HostColumns, OfABadFormAreRefused) {
  auto aggregate = Take(quern::Aggregate::Create(Compiled("aggregate keys=i64 aggs=sum(f64)")));
  auto input = Take(aggregate.Rows());
  const Numbers values = {1};
  quern_column key = ColumnOf(values), value = key;
  const auto refused = [&] { return input.Append(BatchOf(&key, &value, 1)).text(); };
  key.flags = 32;
  EXPECT_EQ(refused(), "column with unknown flags: input key 0 (i64): 32; accepted: 0 to 31");
  key.flags = QUERN_COLUMN_POINTERS;
  EXPECT_EQ(refused(),
            "column with flags of another type: input key 0 (i64): 2; accepted: QUERN_COLUMN_POINTERS (2) for views");
  key.flags = 0;
  key.value_bytes = 3;
  EXPECT_EQ(refused(), "column with value_bytes: input key 0 (i64): 3; accepted: 0, or a power of two up to 8");
  key.value_bytes = 0;
  value.value_bytes = 4;
  EXPECT_EQ(refused(),
            "column with value_bytes: input payload 0 (f64): 4; accepted: 0, or a column of integers or decimals");
  value.value_bytes = 0;
  EXPECT_EQ(refused(), "");  // nothing was lost
}

// ---- structs that carry their size ----

TEST(Structs, MayBeLongerWhileTheRestIsZero) {
  const Kernel kernel = Compiled("sort keys=i64:out");
  struct Newer {
    quern_job_options options = {};
    uint64_t unknown = 0;
  } newer;
  newer.options.struct_size = sizeof(newer);
  quern_job* job = nullptr;
  quern_error error;
  EXPECT_EQ(quern_job_create(kernel.handle(), &newer.options, &job, &error), QUERN_OK);
  quern_job_destroy(job);
  newer.unknown = 7;
  EXPECT_EQ(quern_job_create(kernel.handle(), &newer.options, &job, &error), QUERN_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(error.text).rfind("struct_size too large: ", 0), 0u) << error.text;
  EXPECT_EQ(job, nullptr);
  newer.options.struct_size = 8;
  EXPECT_EQ(quern_job_create(kernel.handle(), &newer.options, &job, &error), QUERN_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(error.text).rfind("struct_size too small: 8; accepted: ", 0), 0u) << error.text;
}

}  // namespace
