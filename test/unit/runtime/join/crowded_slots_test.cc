// SPDX-License-Identifier: Apache-2.0
// Keys that all meet in one slot, of the build side or of the probe side, cost a bounded number of comparisons a row,
// and change no result. Neither do keys with many rows.
#include "runtime/join/tables/crowded_slots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir-templates/generic/generic_join.h"
#include "runtime/base/thresholds.h"
#include "runtime/join/hash_join.h"
#include "runtime/spec/spec.h"
#include "test/unit/hostile_keys.h"
#include "test/unit/runtime/join/number_join.h"

namespace quern {
namespace {

using test::HostileKeys;
using test::Pairs;
using Keys = std::vector<int64_t>;

constexpr uint64_t kMostTuples = thresholds::kCrowdedSlotTuples;

struct Joined {
  Pairs pairs;
  uint64_t rows = 0;   // of both sides
  uint64_t steps = 0;  // tuples or slots after the first
  std::string layout;

  // Further steps than those to the rows of the result.
  uint64_t steps_in_vain() const { return steps > pairs.size() ? steps - pairs.size() : 0; }
};

BatchView BatchOf(const std::vector<Keys>& keys, const Keys& payload) {
  BatchView batch;
  for (const Keys& column : keys) batch.keys.push_back(test::Column(column));
  batch.payload.push_back(test::Column(payload));
  batch.num_rows = payload.size();
  return batch;
}

// The payload of both sides is the row number.
Joined Join(const std::string& spec, const std::vector<Keys>& build, const std::vector<Keys>& probe,
            LayoutChoice layout = LayoutChoice::kAuto) {
  JoinOptions options;
  options.layout = layout;
  auto join = std::make_shared<HashJoin>(std::make_shared<JoinDescriptor>(*ParseSpecOf<JoinSpec>(spec)),
                                         GenericJoinKernel(), nullptr, nullptr, options);
  const Keys build_rows = test::RowNumbers(build[0].size()), probe_rows = test::RowNumbers(probe[0].size());
  Appender appender(join);
  EXPECT_TRUE(appender.Append(BatchOf(build, build_rows)).ok());
  EXPECT_TRUE(appender.Finish().ok());
  EXPECT_TRUE(join->Finalise().ok());
  Joined joined;
  joined.pairs = test::Probe(join, BatchOf(probe, probe_rows), 1000);
  joined.rows = build_rows.size() + probe_rows.size();
  joined.steps = join->counters().chain_steps;
  joined.layout = join->stats().layout;
  return joined;
}

Pairs Expected(const std::vector<Keys>& build, const std::vector<Keys>& probe) {
  const auto key_of = [](const std::vector<Keys>& keys, size_t row) {
    Keys key;
    for (const Keys& column : keys) key.push_back(column[row]);
    return key;
  };
  std::map<Keys, Keys> rows_of;
  for (size_t row = 0; row < build[0].size(); ++row) rows_of[key_of(build, row)].push_back(static_cast<int64_t>(row));
  Pairs pairs;
  for (size_t row = 0; row < probe[0].size(); ++row)
    for (const int64_t match : rows_of[key_of(probe, row)]) pairs.emplace_back(row, match);
  return pairs;
}

// The rows of a join of any kind that returns no payload.
uint64_t CountRows(const std::string& kind, const Keys& build, const Keys& probe) {
  const auto spec = ParseSpecOf<JoinSpec>("join." + kind + " keys=i64");
  JoinOptions options;
  options.layout = LayoutChoice::kUnchained;
  auto join = std::make_shared<HashJoin>(std::make_shared<JoinDescriptor>(*spec), GenericJoinKernel(), nullptr, nullptr,
                                         options);
  BatchView batch;
  batch.keys = {test::Column(build)};
  batch.num_rows = build.size();
  EXPECT_TRUE(join->Append(batch).ok());
  EXPECT_TRUE(join->Finalise().ok());
  batch.keys = {test::Column(probe)};
  batch.num_rows = probe.size();
  OutputBatch out(JoinOutputTypes(*spec), 1000, nullptr);
  JoinProber prober(join);
  uint64_t rows = 0;
  for (const bool is_probe : {true, false}) {
    EXPECT_TRUE((is_probe ? prober.SetInput(batch) : prober.SetUnmatched()).ok());
    for (bool more = true; more; rows += out.num_rows()) {
      const absl::StatusOr<bool> next = prober.Next(&out);
      EXPECT_TRUE(next.ok()) << next.status();
      more = next.ok() && *next;
    }
  }
  return rows;
}

constexpr const char* kOneKey = "join.inner keys=i64 build=i64 probe=i64";
constexpr const char* kTwoKeys = "join.inner keys=i64,i64 build=i64 probe=i64";

Keys Both(Keys keys, const Keys& more) {
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

TEST(CrowdedSlots, DifferentKeysOfOneSlotAreFoundAtOnce) {
  for (const size_t n : {20'000, 150'000}) {  // more than 131,072 are partitioned
    for (const LayoutChoice layout : {LayoutChoice::kAuto, LayoutChoice::kUnchained}) {
      const Keys keys = HostileKeys(n), probe = HostileKeys(n, n / 2);  // every second row finds its key
      const Joined joined = Join(kOneKey, {keys}, {probe}, layout);
      EXPECT_EQ(joined.layout, "unchained");
      EXPECT_EQ(joined.pairs, Expected({keys}, {probe}));
      EXPECT_LE(joined.steps, joined.rows);
    }
  }
}

// The tag of their slot gives them away.
TEST(CrowdedSlots, KeysThatAreNotPackedToo) {
  constexpr size_t kRows = 20'000;
  std::vector<Keys> build(2), probe(2);
  for (size_t i = 0; i < kRows; ++i) {
    for (const bool is_build : {true, false}) {
      const auto first = static_cast<int64_t>(is_build ? i : i + kRows / 2);
      std::vector<Keys>& side = is_build ? build : probe;
      side[0].push_back(first);
      side[1].push_back(test::SecondWithHash(first, test::HostileHashOfAnyTag(static_cast<uint64_t>(first))));
    }
  }
  const Joined joined = Join(kTwoKeys, build, probe);
  EXPECT_EQ(joined.pairs, Expected(build, probe));
  EXPECT_LE(joined.steps, joined.rows);
}

// A frequent key and a few rare ones in its slot are no crowd: they are compared as ever.
TEST(CrowdedSlots, AFrequentKeyIsNoCrowd) {
  const Keys rare = HostileKeys(2), frequent(5'000, rare[0]);
  const Keys build = Both(Both(frequent, rare), test::RowNumbers(20'000));
  const Joined joined = Join(kOneKey, {build}, {rare}, LayoutChoice::kUnchained);
  EXPECT_EQ(joined.pairs, Expected({build}, {rare}));
  EXPECT_GE(joined.steps_in_vain(), 5'000u);
}

// Beside a crowded slot, one of a frequent key keeps its rows.
TEST(CrowdedSlots, AFrequentKeyBesideACrowdKeepsItsRows) {
  const Keys frequent(5'000, 7), keys = HostileKeys(5'000);
  const Keys build = Both(frequent, keys), probe = Both({7, 8}, keys);
  const Joined joined = Join(kOneKey, {build}, {probe}, LayoutChoice::kUnchained);
  EXPECT_EQ(joined.pairs, Expected({build}, {probe}));
  EXPECT_LE(joined.steps_in_vain(), joined.rows);
}

// A slot that is just not crowded is compared whole.
TEST(CrowdedSlots, FewTuplesAreCompared) {
  const Keys keys = HostileKeys(kMostTuples);
  const Joined joined = Join(kOneKey, {keys}, {keys}, LayoutChoice::kUnchained);
  EXPECT_EQ(joined.pairs, Expected({keys}, {keys}));
  EXPECT_EQ(joined.steps, kMostTuples * (kMostTuples - 1));
  const Keys one_more = HostileKeys(kMostTuples + 1);
  EXPECT_EQ(Join(kOneKey, {one_more}, {one_more}, LayoutChoice::kUnchained).steps, 0u);
}

// Rows of a frequent key before, between and behind rare keys of its slot.
TEST(CrowdedSlots, RowsOfAKeyStayTogether) {
  const Keys rare = HostileKeys(40), frequent(1'000, rare[7]), half(600, rare[9]);
  Keys build = Both(Both(Both(Both(rare, frequent), half), rare), test::RowNumbers(3'000));
  std::rotate(build.begin(), build.begin() + 1'300, build.end());
  const Keys probe = Both(HostileKeys(80), test::RowNumbers(10));
  const Joined joined = Join(kOneKey, {build}, {probe}, LayoutChoice::kUnchained);
  EXPECT_EQ(joined.pairs, Expected({build}, {probe}));
  EXPECT_LE(joined.steps_in_vain(), joined.rows);
  const auto in = [](const Keys& keys, int64_t key) { return std::find(keys.begin(), keys.end(), key) != keys.end(); };
  const auto num_in = [&](const Keys& keys, const Keys& others) {
    return static_cast<uint64_t>(std::count_if(keys.begin(), keys.end(), [&](int64_t key) { return in(others, key); }));
  };
  const uint64_t pairs = joined.pairs.size(), found = num_in(probe, build), matched = num_in(build, probe);
  const std::map<std::string, uint64_t> rows_of_kind = {{"left", pairs + probe.size() - found},
                                                        {"full", pairs + probe.size() - found + build.size() - matched},
                                                        {"semi", found},
                                                        {"anti", probe.size() - found},
                                                        {"right_semi", matched},
                                                        {"right_anti", build.size() - matched}};
  for (const auto& [kind, rows] : rows_of_kind) EXPECT_EQ(CountRows(kind, build, probe), rows) << kind;
}

TEST(CrowdedSlots, MemoryForTheIndexIsUnderTheLimit) {
  const Keys keys = HostileKeys(20'000), rows = test::RowNumbers(20'000);
  const auto finalised = [&](uint64_t limit, uint64_t* peak) {
    auto budget = std::make_shared<MemoryBudget>(limit);
    JoinOptions options;
    options.layout = LayoutChoice::kUnchained;
    auto join = std::make_shared<HashJoin>(std::make_shared<JoinDescriptor>(*ParseSpecOf<JoinSpec>(kOneKey)),
                                           GenericJoinKernel(), nullptr, budget, options);
    Appender appender(join);
    EXPECT_TRUE(appender.Append(BatchOf({keys}, rows)).ok());
    EXPECT_TRUE(appender.Finish().ok());
    const absl::Status status = join->Finalise();
    *peak = budget->peak_bytes();
    return status;
  };
  uint64_t peak = 0, unused = 0;
  EXPECT_TRUE(finalised(0, &peak).ok());
  EXPECT_EQ(finalised(peak - 1, &unused).code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace quern
