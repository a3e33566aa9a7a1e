// SPDX-License-Identifier: Apache-2.0
// Which layout the data gets, what a plan can request, and what happens when memory runs out. Whatever the layout, the
// number of pairs is that of two nested loops.
#include "runtime/join/table_builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir-templates/generic/generic_join.h"
#include "runtime/join/hash_join.h"
#include "runtime/rows/output_batch.h"
#include "runtime/spec/spec.h"
#include "test/unit/runtime/join/number_join.h"

namespace quern {
namespace {

using test::Column;
using test::RowNumbers;

using Keys = std::vector<int64_t>;

Keys Dense(size_t n, int64_t first = 0) {
  Keys keys = RowNumbers(n);
  for (int64_t& key : keys) key = (key * 7 % static_cast<int64_t>(n)) + first;  // n must not be a multiple of 7
  return keys;
}

// Random keys of 64 bits, unique.
Keys Sparse(size_t n) {
  Keys keys(n);
  for (size_t i = 0; i < n; ++i) keys[i] = static_cast<int64_t>((i + 1) * 0x9e3779b97f4a7c15u);
  return keys;
}

Keys Stepped(size_t n, int64_t step) {
  Keys keys = RowNumbers(n);
  for (int64_t& key : keys) key *= step;
  return keys;
}

Keys Times(size_t times, const Keys& keys) {
  Keys all;
  for (size_t i = 0; i < times; ++i) all.insert(all.end(), keys.begin(), keys.end());
  return all;
}

// Every column of a batch is the keys themselves.
BatchView BatchOf(const Keys& keys, size_t num_keys, size_t num_payload) {
  BatchView batch;
  batch.keys.assign(num_keys, Column(keys));
  batch.payload.assign(num_payload, Column(keys));
  batch.num_rows = keys.size();
  return batch;
}

std::shared_ptr<HashJoin> Join(const std::string& spec, LayoutChoice layout,
                               std::shared_ptr<MemoryBudget> budget = nullptr, bool zero_hashes = false) {
  auto descriptor = std::make_shared<JoinDescriptor>(*ParseSpecOf<JoinSpec>(spec));
  descriptor->mutable_tuning()->rows.zero_hashes = zero_hashes;
  JoinOptions options;
  options.layout = layout;
  return std::make_shared<HashJoin>(descriptor, GenericJoinKernel(), nullptr, std::move(budget), options);
}

absl::StatusOr<uint64_t> CountRows(const std::shared_ptr<HashJoin>& join, const BatchView& probe,
                                   std::shared_ptr<MemoryBudget> budget) {
  OutputBatch out(JoinOutputTypes(join->descriptor().spec()), 1000, std::move(budget));
  JoinProber prober(join);
  if (absl::Status status = prober.SetInput(probe); !status.ok()) return status;
  uint64_t rows = 0;
  for (;;) {
    const absl::StatusOr<bool> more = prober.Next(&out);
    if (!more.ok()) return more.status();
    rows += out.num_rows();
    if (!*more) return rows;
  }
}

uint64_t NumPairs(const Keys& build, const Keys& probe) {
  std::map<int64_t, uint64_t> counts;
  for (const int64_t key : build) ++counts[key];
  uint64_t pairs = 0;
  for (const int64_t key : probe)
    if (const auto at = counts.find(key); at != counts.end()) pairs += at->second;
  return pairs;
}

// Builds with one appender or with three, which take the keys in turn; checks the number of pairs of inner joins.
std::string LayoutOf(const std::string& spec, const Keys& build, LayoutChoice layout = LayoutChoice::kAuto,
                     bool zero_hashes = false) {
  std::string name;
  for (const size_t num_appenders : {1, 3}) {
    auto join = Join(spec, layout, nullptr, zero_hashes);
    const JoinSpec& parsed = join->descriptor().spec();
    std::vector<Keys> partitioned(num_appenders);
    for (size_t i = 0; i < build.size(); ++i) partitioned[i % num_appenders].push_back(build[i]);
    for (const Keys& keys : partitioned) {
      Appender appender(join);
      EXPECT_TRUE(appender.Append(BatchOf(keys, parsed.keys.size(), parsed.build.size())).ok());
      EXPECT_TRUE(appender.Finish().ok());
    }
    EXPECT_TRUE(join->Finalise().ok());
    EXPECT_EQ(join->stats().table_rows, build.size());
    if (num_appenders == 3) {
      EXPECT_EQ(name, join->stats().layout) << spec;
    }
    name = join->stats().layout;
    Keys probe = build;
    for (const int64_t key : build) probe.push_back(static_cast<int64_t>(static_cast<uint64_t>(key) * 3 + 1));
    const auto rows = CountRows(join, BatchOf(probe, parsed.keys.size(), parsed.probe.size()), nullptr);
    EXPECT_TRUE(rows.ok()) << rows.status();
    if (parsed.kind == JoinKind::kInner && rows.ok()) {
      EXPECT_EQ(*rows, NumPairs(build, probe)) << spec << " " << name;
    }
  }
  return name;
}

// ---- chosen by the data ---------------------------------------------------------------------------------------

TEST(TableBuilder, DenseKeysNeedNoHash) {
  EXPECT_EQ(LayoutOf("join.inner keys=i64", Dense(10000)), "bitmap");
  EXPECT_EQ(LayoutOf("join.inner keys=i64", Dense(10000, -5000)), "bitmap");
  EXPECT_EQ(LayoutOf("join.inner keys=i64 build=i64", Dense(10000)), "dense");
  EXPECT_EQ(LayoutOf("join.inner keys=i64 build=i64", Dense(10000, INT64_MIN)), "dense");
  EXPECT_EQ(LayoutOf("join.inner keys=i64 build=i64", Dense(10000, INT64_MAX - 9999)), "dense");
  EXPECT_EQ(LayoutOf("join.inner keys=u64 build=i64", Dense(10000, -10000)), "dense");  // the largest of all
}

TEST(TableBuilder, DuplicatesOfDenseKeysAreRuns) {
  EXPECT_EQ(LayoutOf("join.inner keys=i64 build=i64", Times(2, Dense(5000))), "csr");
  EXPECT_EQ(LayoutOf("join.inner keys=i64", Times(2, Dense(5000, -77))), "csr");
  Keys one_twice = Dense(5000);
  one_twice.push_back(17);
  EXPECT_EQ(LayoutOf("join.inner keys=i64 build=i64", one_twice), "csr");
  EXPECT_EQ(LayoutOf("join.right keys=i64 build=i64", one_twice), "csr");
}

TEST(TableBuilder, SparseKeysAreHashed) {
  EXPECT_EQ(LayoutOf("join.inner keys=i64", Sparse(3000)), "open");
  EXPECT_EQ(LayoutOf("join.inner keys=i64 build=i64", Sparse(3000)), "open");
  EXPECT_EQ(LayoutOf("join.inner keys=i64 build=i64,i64,i64", Sparse(3000)), "open");           // 32 bytes
  EXPECT_EQ(LayoutOf("join.inner keys=i64 build=i64,i64,i64,i64", Sparse(3000)), "unchained");  // 40 bytes
  EXPECT_EQ(LayoutOf("join.inner keys=i64", Times(4, Sparse(1000))), "counting");
  EXPECT_EQ(LayoutOf("join.inner keys=i64 build=i64", Times(4, Sparse(1000))), "unchained");
  EXPECT_EQ(LayoutOf("join.inner keys=i64,i64", Sparse(3000)), "unchained");
  EXPECT_EQ(LayoutOf("join.inner keys=i64,i64", Dense(3000)), "unchained");
}

TEST(TableBuilder, WhereOneMatchIsEnoughDuplicatesGo) {
  for (const char* kind : {"semi", "anti", "mark", "anti_null_aware"}) {
    const std::string spec = "join." + std::string(kind) + " keys=i64 probe=i64";
    EXPECT_EQ(LayoutOf(spec, Times(3, Dense(3000))), "bitmap") << kind;
    EXPECT_EQ(LayoutOf(spec, Times(3, Sparse(3000))), "open") << kind;
  }
  EXPECT_EQ(LayoutOf("join.right_semi keys=i64 build=i64", Times(3, Sparse(3000))), "unchained");
  EXPECT_EQ(LayoutOf("join.semi keys=i64 residual=i64:lt", {}), "unchained");
}

TEST(TableBuilder, KeysWithGapsAreRanked) {
  const char *payload = "join.inner keys=i64 build=i64", *wide = "join.right keys=i64 build=i64,i64,i64,i64,i64,i64";
  EXPECT_EQ(LayoutOf(payload, Stepped(5000, 40)), "ranked");
  EXPECT_EQ(LayoutOf("join.inner keys=i64 build=i64 probe=i64", Stepped(700, 300)), "ranked");
  EXPECT_EQ(LayoutOf(wide, Stepped(5000, 40)), "ranked");  // too wide for slots
  EXPECT_EQ(LayoutOf(payload, Stepped(5000, 300)), "open");
  EXPECT_EQ(LayoutOf("join.inner keys=i64", Stepped(5000, 40)), "bitmap");  // nothing but the key is wanted
  EXPECT_EQ(LayoutOf(payload, Stepped(100000, 3)), "ranked");               // 4.8 MB of places for 1.6 MB of tuples
  EXPECT_EQ(LayoutOf(payload, Stepped(20000, 3)), "dense");                 // the L2 cache holds the places
  EXPECT_EQ(LayoutOf(payload, Times(2, Stepped(5000, 40))), "unchained");
  Keys late = Stepped(5000, 40);
  late.push_back(late[10]);
  EXPECT_EQ(LayoutOf(payload, late), "unchained");
  EXPECT_EQ(LayoutOf(payload, Stepped(5000, 40), LayoutChoice::kOpen), "open");
}

TEST(TableBuilder, FewRowsAndTheEndsOfTheType) {
  EXPECT_EQ(LayoutOf("join.inner keys=i64 build=i64", {}), "unchained");
  EXPECT_EQ(LayoutOf("join.inner keys=i64 build=i64", {-1}), "dense");
  EXPECT_EQ(LayoutOf("join.inner keys=i64 build=i64", {0, 16383}), "dense");
  EXPECT_EQ(LayoutOf("join.inner keys=i64 build=i64", {0, 16384}), "open");
  EXPECT_EQ(LayoutOf("join.inner keys=i64 build=i64", {INT64_MIN, INT64_MAX - 1}), "open");
  EXPECT_EQ(LayoutOf("join.inner keys=i64 build=i64", {INT64_MIN + 1, INT64_MAX}), "open");
  EXPECT_EQ(LayoutOf("join.inner keys=i64 build=i64", {INT64_MIN, INT64_MAX}),
            "unchained");  // no word is left that could mean "empty"
  EXPECT_EQ(LayoutOf("join.inner keys=i64", {INT64_MIN, 0, INT64_MAX, 0}), "unchained");
}

// ---- rows in the order of their keys ----

// Appends the keys in batches of `batch_rows`, with their row numbers as payload, by appenders that take batches in
// turn. Checks each key's payload.
void ExpectPayloads(const Keys& build, size_t batch_rows, size_t num_appenders, const char* layout) {
  SCOPED_TRACE(std::to_string(build.size()) + " keys from " + std::to_string(build[0]) + ", batches of " +
               std::to_string(batch_rows) + " rows, appenders: " + std::to_string(num_appenders));
  auto join = Join("join.inner keys=i64 build=i64 probe=i64", LayoutChoice::kAuto);
  const Keys numbers = RowNumbers(build.size());
  std::vector<std::unique_ptr<Appender>> appenders;
  for (size_t i = 0; i < num_appenders; ++i) appenders.push_back(std::make_unique<Appender>(join));
  for (size_t first = 0, b = 0; first < build.size(); first += batch_rows, ++b) {
    BatchView batch = test::Batch(build, numbers);
    batch.keys[0].values = build.data() + first;
    batch.payload[0].values = numbers.data() + first;
    batch.num_rows = std::min(batch_rows, build.size() - first);
    ASSERT_TRUE(appenders[b % num_appenders]->Append(batch).ok());
  }
  for (const auto& appender : appenders) ASSERT_TRUE(appender->Finish().ok());
  ASSERT_TRUE(join->Finalise().ok());
  EXPECT_EQ(join->stats().layout, layout);

  std::multimap<int64_t, int64_t> rows;
  for (size_t i = 0; i < build.size(); ++i) rows.emplace(build[i], i);
  Keys probe;
  for (size_t i = 0; i < build.size(); i += 3) probe.push_back(build[build.size() - 1 - i]);
  for (size_t i = 0; i < build.size(); i += 5) probe.push_back(build[i] + 1);
  test::Pairs expected;
  for (size_t p = 0; p < probe.size(); ++p)
    for (auto [at, end] = rows.equal_range(probe[p]); at != end; ++at) expected.emplace_back(p, at->second);
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(test::Probe(join, test::Batch(probe, RowNumbers(probe.size())), 1000), expected);
}

TEST(TableBuilder, RowsThatComeInTheOrderOfTheirKeys) {
  const auto from = [](int64_t first, Keys keys) {
    for (int64_t& key : keys) key += first;
    return keys;
  };
  for (const size_t batch_rows : {1, 700, 50000}) {
    const bool is_slow = batch_rows == 1;
    for (const size_t num_appenders : {1, 2}) {
      // Places without gaps, with gaps in the caches, and ranks.
      ExpectPayloads(from(-2000, Stepped(5000, 1)), batch_rows, num_appenders, "dense");
      ExpectPayloads(Stepped(5000, 3), batch_rows, num_appenders, "dense");
      ExpectPayloads(from(-70000, Stepped(5000, 40)), batch_rows, num_appenders, "ranked");
      if (!is_slow) ExpectPayloads(from(-1, Stepped(200000, 3)), batch_rows, num_appenders, "ranked");
      // All but the last key are in order, or the first.
      for (Keys keys : {Stepped(5000, 1), Stepped(5000, 40)}) {
        const char* const layout = keys[1] == 1 ? "dense" : "ranked";
        Keys moved = keys;
        std::rotate(moved.begin(), moved.begin() + 1, moved.end());
        ExpectPayloads(moved, batch_rows, num_appenders, layout);
        std::rotate(keys.begin(), keys.end() - 1, keys.end());
        ExpectPayloads(keys, batch_rows, num_appenders, layout);
        keys.front() = keys[1];
        ExpectPayloads(keys, batch_rows, num_appenders, keys[2] == 1 ? "csr" : "unchained");
      }
    }
  }
  ExpectPayloads({7}, 1, 1, "dense");
  ExpectPayloads({INT64_MIN, INT64_MIN + 1, INT64_MIN + 2}, 2, 1, "dense");
}

// ---- asked for
// ---------------------------------------------------------------------------------------------------------------------

TEST(TableBuilder, APlanCanAskForALayout) {
  const char *plain = "join.inner keys=i64", *payload = "join.inner keys=i64 build=i64";
  EXPECT_EQ(LayoutOf(payload, Dense(3000), LayoutChoice::kUnchained), "unchained");
  EXPECT_EQ(LayoutOf(plain, Dense(3000), LayoutChoice::kUnchained), "unchained");
  EXPECT_EQ(LayoutOf(payload, Dense(3000), LayoutChoice::kOpen), "open");
  EXPECT_EQ(LayoutOf(plain, Times(2, Dense(3000)), LayoutChoice::kOpen), "counting");
  const Keys stepped = Stepped(1000, 500);  // 500 words a row
  EXPECT_EQ(LayoutOf(plain, stepped), "open");
  EXPECT_EQ(LayoutOf(plain, stepped, LayoutChoice::kDense), "bitmap");
  EXPECT_EQ(LayoutOf(payload, stepped), "open");
  EXPECT_EQ(LayoutOf(payload, Stepped(5000, 40), LayoutChoice::kDense), "dense");
  EXPECT_EQ(LayoutOf(payload, Times(2, Stepped(5000, 100)), LayoutChoice::kDense), "csr");
}

TEST(TableBuilder, WhatTheDataDoesNotAllowFallsBack) {
  const char *plain = "join.inner keys=i64", *payload = "join.inner keys=i64 build=i64";
  EXPECT_EQ(LayoutOf(payload, Sparse(3000), LayoutChoice::kDense), "open");
  EXPECT_EQ(LayoutOf(payload, Times(2, Sparse(3000)), LayoutChoice::kDense), "unchained");
  EXPECT_EQ(LayoutOf(payload, Times(2, Dense(3000)), LayoutChoice::kOpen), "unchained");
  EXPECT_EQ(LayoutOf("join.inner keys=i64,i64", Dense(3000), LayoutChoice::kDense), "unchained");
  EXPECT_EQ(LayoutOf("join.inner keys=i64,i64", Dense(3000), LayoutChoice::kOpen), "unchained");
  EXPECT_EQ(LayoutOf(plain, Sparse(90), LayoutChoice::kAuto, true), "open");
  EXPECT_EQ(LayoutOf(plain, Sparse(300), LayoutChoice::kAuto, true), "unchained");  // all hashes 0: walks of 300 slots
}

// ---- memory
// ---------------------------------------------------------------------------------------------------------------------

// A join under a limit, from the first append to the last result row.
absl::Status RunUnder(const std::shared_ptr<MemoryBudget>& budget, const std::string& spec, const Keys& build) {
  auto join = Join(spec, LayoutChoice::kAuto, budget);
  const JoinSpec& parsed = join->descriptor().spec();
  const BatchView batch = BatchOf(build, parsed.keys.size(), parsed.build.size());
  if (absl::Status status = join->Append(batch); !status.ok()) return status;
  if (absl::Status status = join->Finalise(); !status.ok()) return status;
  const auto rows = CountRows(join, batch, budget);
  if (rows.ok()) {
    EXPECT_EQ(*rows, NumPairs(build, build));
  }
  return rows.status();
}

TEST(TableBuilder, OverTheBudgetIsAnErrorAndLeavesNothing) {
  struct Case {
    const char* spec;
    Keys build;
  };
  const std::vector<Case> cases = {{"join.inner keys=i64", Dense(20000)},
                                   {"join.inner keys=i64 build=i64", Dense(20000)},
                                   {"join.inner keys=i64 build=i64", Times(2, Dense(10000))},
                                   {"join.inner keys=i64 build=i64", Sparse(20000)},
                                   {"join.inner keys=i64", Times(4, Sparse(5000))},
                                   {"join.inner keys=i64 build=i64", Times(4, Sparse(5000))},
                                   {"join.inner keys=i64,i64 build=i64", Sparse(20000)}};
  for (const Case& of : cases) {
    uint64_t needed = 0;
    {
      auto unlimited = std::make_shared<MemoryBudget>();
      ASSERT_TRUE(RunUnder(unlimited, of.spec, of.build).ok());
      EXPECT_EQ(unlimited->used_bytes(), 0u);
      needed = unlimited->peak_bytes();
    }
    for (uint64_t percent = 5; percent <= 100; percent += 5) {
      auto budget = std::make_shared<MemoryBudget>(needed * percent / 100);
      const absl::Status status = RunUnder(budget, of.spec, of.build);
      // Where a layout is refused memory, one that takes less may fit.
      const bool is_refused = absl::IsResourceExhausted(status);
      EXPECT_TRUE(is_refused ? percent < 100 : status.ok() && percent > 5)
          << of.spec << " " << percent << " " << status;
      EXPECT_EQ(budget->used_bytes(), 0u) << of.spec << " " << percent << " %";
      EXPECT_LE(budget->peak_bytes(), budget->limit_bytes());
    }
  }
}

// An abandoned attempt at a layout returns its memory before the next layout takes its own.
TEST(TableBuilder, AttemptsDoNotAddUp) {
  const Keys build = Times(4, Sparse(20000));
  const auto peak_of = [&](LayoutChoice layout) {
    auto budget = std::make_shared<MemoryBudget>();
    auto join = Join("join.inner keys=i64 build=i64", layout, budget);
    EXPECT_TRUE(join->Append(BatchOf(build, 1, 1)).ok());
    EXPECT_TRUE(join->Finalise().ok());
    EXPECT_EQ(std::string(join->stats().layout), "unchained");
    return std::make_pair(budget->peak_bytes(), budget->used_bytes());
  };
  const auto [auto_peak, auto_used] = peak_of(LayoutChoice::kAuto);
  const auto [peak, used] = peak_of(LayoutChoice::kUnchained);
  EXPECT_EQ(auto_used, used);
  EXPECT_LE(
      auto_peak,
      peak * 5 / 4);  // an open table is about as large as directory and tuples, each of which is half of the peak
}

}  // namespace
}  // namespace quern
