// SPDX-License-Identifier: Apache-2.0
// Jobs that write rows beyond their memory to files, or to a store of the host: set operations of every kind, what the
// statistics say, and a store that fails, which ends its job and no other.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "test/hosts/jobs.h"
#include "test/hosts/set_kinds.h"

namespace quern_test {
namespace {

constexpr uint64_t kLimit = uint64_t{16} << 20;

// A host's store in memory. The call with the number `failing` fails, of calls of `fails` ("write" or "read").
struct HostStore {
  std::mutex mutex;
  std::map<uint64_t, std::string> blocks;
  uint64_t num_blocks = 0, num_calls = 0, failing = UINT64_MAX;
  std::string_view fails = "write";

  // Under the lock.
  bool Fails(std::string_view call) { return call == fails && ++num_calls == failing; }

  static int Write(void* host, const void* bytes, uint64_t num_bytes, uint64_t* block) {
    auto* const store = static_cast<HostStore*>(host);
    const std::lock_guard<std::mutex> lock(store->mutex);
    if (store->Fails("write")) return 1;
    *block = ++store->num_blocks;
    store->blocks.emplace(*block, std::string(static_cast<const char*>(bytes), num_bytes));
    return 0;
  }
  static int Read(void* host, uint64_t block, void* bytes, uint64_t num_bytes) {
    auto* const store = static_cast<HostStore*>(host);
    const std::lock_guard<std::mutex> lock(store->mutex);
    const auto found = store->blocks.find(block);
    if (store->Fails("read") || found == store->blocks.end() || found->second.size() != num_bytes) return 1;
    std::memcpy(bytes, found->second.data(), num_bytes);
    return 0;
  }
  static void Free(void* host, uint64_t block, uint64_t /*num_bytes*/) {
    auto* const store = static_cast<HostStore*>(host);
    const std::lock_guard<std::mutex> lock(store->mutex);
    store->blocks.erase(block);
  }

  // They hold while `spill` does.
  quern_job_options OptionsWith(quern_spill_options* spill) {
    spill->write_block = Write;
    spill->read_block = Read;
    spill->free_block = Free;
    quern_job_options options = LimitedTo(kLimit);
    options.spill = spill;
    options.host = this;
    return options;
  }
};

// Rows of an i64 and a string, each value `copies` times from `first` on.
struct Rows {
  Rows(uint64_t first, uint64_t num_values, uint64_t copies) : num_rows(num_values * copies) {
    std::vector<std::string> texts;
    for (uint64_t i = 0; i < num_rows; ++i) {
      numbers.push_back(static_cast<int64_t>(first + i % num_values));
      texts.push_back("a text of the row with the number " + std::to_string(numbers.back()));
      lines.push_back(std::to_string(numbers.back()) + "|" + texts.back());
    }
    strings = StringVector<int32_t>(texts);
  }
  Table table() const { return {{ColumnOf(numbers), strings.column()}, {}, num_rows}; }

  uint64_t num_rows;
  std::vector<int64_t> numbers;
  StringVector<int32_t> strings{{}};
  Lines lines;
};

std::string Spec(std::string_view kind) { return "set." + std::string(kind) + " keys=i64,utf8"; }

TEST(Spilling, SetOperationsOfEveryKind) {
  const Rows left(0, 120'000, 2), right(60'000, 120'000, 1);
  for (const char* kind : kSetKinds) {
    for (const bool is_host : {false, true}) {
      SCOPED_TRACE(std::string(kind) + (is_host ? ", host" : ", files"));
      HostStore store;
      quern_spill_options spill = {};
      quern_job_options options = is_host ? store.OptionsWith(&spill) : LimitedTo(kLimit);
      options.spill = &spill;
      {
        auto set = New<quern::SetOperation>(Spec(kind), is_host ? Engine::kGeneric : Engine::kJit, options);
        Feed(set.Left(), {left.table()});
        Feed(set.Right(), {right.table()});
        Done(set.Finalise());
        EXPECT_EQ(RowsOf(set.Rows(BatchRows(1000)), "ls"), Combination(kind, left.lines, right.lines));
        const quern_job_stats stats = set.Stats();
        EXPECT_STREQ(stats.layout, "spilled");
        EXPECT_GE(stats.spilled_rows, 180'000u);
        EXPECT_GT(stats.spilled_bytes, stats.spilled_rows * 30);
        EXPECT_EQ(stats.unspilled_bytes, stats.spilled_bytes);
        EXPECT_GE(stats.spill_levels, 1u);
        EXPECT_LE(stats.peak_bytes, kLimit);
        EXPECT_EQ(store.num_blocks != 0, is_host);
      }
      EXPECT_TRUE(store.blocks.empty());
    }
  }
}

TEST(Spilling, NothingIsWrittenWhileAllRowsFit) {
  const Rows rows(0, 1000, 2);
  HostStore store;
  quern_spill_options spill = {};
  auto set = New<quern::SetOperation>(Spec("union"), Engine::kJit, store.OptionsWith(&spill));
  Feed(set.Left(), {rows.table()});
  Done(set.Finalise());
  EXPECT_EQ(RowsOf(set.Rows(), "ls").size(), 1000u);
  EXPECT_EQ(store.num_blocks, 0u);
  EXPECT_EQ(set.Stats().spilled_bytes, 0u);
  EXPECT_EQ(set.Stats().spill_levels, 0u);
}

// The most rows of a result are those that a share of the limit holds.
TEST(Spilling, ResultsUnderALimitHaveFewerRows) {
  const Rows rows(0, 100'000, 1);
  for (const uint64_t limit : {uint64_t{0}, uint64_t{64} << 20}) {
    auto aggregate = New<quern::Aggregate>("aggregate keys=i64 aggs=count_star", Engine::kJit, LimitedTo(limit));
    Feed(aggregate.Rows(), {{{ColumnOf(rows.numbers)}, {}, rows.num_rows}});
    Done(aggregate.Finalise());
    quern::Output output = Take(aggregate.Groups());
    EXPECT_EQ(Take(output.Next())->num_rows, limit == 0 ? 65536 : (limit >> 6) / 16);
    EXPECT_EQ(RowsOf(&output, "ll").size(), rows.num_rows - (limit == 0 ? 65536 : (limit >> 6) / 16));
  }
}

// What a job says whose store fails in a call, and what it says from then on.
void ExpectTheEnd(std::string_view fails, uint64_t failing, const Rows& rows) {
  HostStore store;
  store.fails = fails;
  store.failing = failing;
  quern_spill_options spill = {};
  auto set = New<quern::SetOperation>(Spec("union"), Engine::kGeneric, store.OptionsWith(&spill));
  quern::Input left = Take(set.Left());
  quern::Status status = left.Append(rows.table().batch());
  if (status.ok()) status = left.Finish();
  if (status.ok()) status = set.Finalise();
  if (status.ok()) {
    quern::Output output = Take(set.Rows());
    while (status.ok()) status = output.Next().status();
    EXPECT_EQ(output.Next().status().code(), QUERN_FAILED_PRECONDITION);
  } else {
    EXPECT_EQ(set.Finalise().code(), QUERN_FAILED_PRECONDITION);
  }
  EXPECT_EQ(status.code(), QUERN_IO_ERROR);
  EXPECT_EQ(status.text().find("spilled rows: the host's " + std::string(fails) + " of a block failed: "), 0u)
      << status.text();
}

TEST(Spilling, AStoreThatFailsEndsItsJobAndNoOther) {
  const Rows rows(0, 200'000, 1);
  const auto other = [&] {
    HostStore store;
    quern_spill_options spill = {};
    auto set = New<quern::SetOperation>(Spec("union"), Engine::kGeneric, store.OptionsWith(&spill));
    Feed(set.Left(), {rows.table()});
    Done(set.Finalise());
    EXPECT_EQ(RowsOf(set.Rows(), "ls").size(), 200'000u);
    EXPECT_GT(set.Stats().spilled_bytes, 0u);
  };
  std::thread beside(other);
  for (const uint64_t failing : {1, 2, 20}) {
    ExpectTheEnd("write", failing, rows);
    ExpectTheEnd("read", failing, rows);
  }
  beside.join();
  other();
}

}  // namespace
}  // namespace quern_test
