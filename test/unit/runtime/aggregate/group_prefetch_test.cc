// SPDX-License-Identifier: Apache-2.0
// Prefetch settings of aggregations: each gives the same groups in every table, also if it changes between batches.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/unit/runtime/aggregate/group_rows.h"
#include "test/unit/runtime/rows/prefetch_settings.h"
#include "test/unit/seed.h"

namespace quern {
namespace {

using test::Aggregation;
using test::GroupsOf;
using test::LaddersOf;
using test::Lines;
using test::ManySettings;
using test::NumberColumn;
using test::PrintedRandom;
using test::Rows;
using test::StringColumn;

struct Table {
  const char* spec;
  GroupLayout layout;
  PrefetchLoop loop;
  const char* name;
};
constexpr Table kTables[] = {
    {"aggregate keys=i64 aggs=count_star,sum(i64)", GroupLayout::kDense, PrefetchLoop::kUpdateDense, "dense"},
    {"aggregate keys=i32:nullable aggs=count_star,sum(i64)", GroupLayout::kDense, PrefetchLoop::kUpdateDense, "dense"},
    {"aggregate keys=i64 aggs=count_star,sum(i64)", GroupLayout::kOpen, PrefetchLoop::kUpdateOpen, "open"},
    {"aggregate keys=i64 aggs=count_star,sum(i64)", GroupLayout::kDirectory, PrefetchLoop::kUpdateDirectory,
     "directory"},
    {"aggregate keys=binary aggs=count_star,sum(i64)", GroupLayout::kAuto, PrefetchLoop::kUpdateDirectory, "directory"},
};

// Batches of 1 to 600 rows with some 700 groups, among them the key 0.
std::vector<BatchView> BatchesOf(const Table& table) {
  auto random = PrintedRandom();
  std::vector<BatchView> batches;
  for (const size_t n : {1, 8, 9, 600, 599}) {
    std::vector<int64_t> keys(n), values(n);
    std::vector<std::string> texts(n);
    for (size_t i = 0; i < n; ++i) {
      keys[i] = static_cast<int64_t>(random() % 700);
      values[i] = static_cast<int64_t>(random() % 1000);
      texts[i] = std::string(static_cast<size_t>(keys[i] % 40), 'x') + std::to_string(keys[i]);
    }
    const std::string spec = table.spec;
    const auto column = spec.find("binary") != std::string::npos ? StringColumn(kVar32, texts)
                        : spec.find("i32") != std::string::npos
                            ? NumberColumn(std::vector<int32_t>(keys.begin(), keys.end()))
                            : NumberColumn(keys);
    batches.push_back(Rows(n, {column}, {NumberColumn(values)}));
  }
  return batches;
}

AggregateOptions OptionsOf(const Table& table, const PrefetchSetting& setting = {}) {
  AggregateOptions options;
  options.layout = table.layout;
  options.prefetch = LaddersOf(table.loop, setting);
  return options;
}

TEST(GroupPrefetch, EverySettingGivesTheSameGroups) {
  for (const Table& table : kTables) {
    const std::vector<BatchView> batches = BatchesOf(table);
    const Lines expected = GroupsOf(table.spec, batches, OptionsOf(table), {.prefetches = false});
    for (const PrefetchSetting& setting : ManySettings()) {
      EXPECT_EQ(GroupsOf(table.spec, batches, OptionsOf(table, setting), {.batch_rows = 100}), expected)
          << table.spec << " " << PrintSetting(setting, PrefetchHint::kT0);
    }
  }
}

TEST(GroupPrefetch, ItMayChangeBetweenBatches) {
  for (const Table& table : kTables) {
    const std::vector<BatchView> batches = BatchesOf(table);
    auto once = Aggregation(table.spec, OptionsOf(table)), often = Aggregation(table.spec, OptionsOf(table));
    for (const PrefetchSetting& setting : ManySettings()) {
      often->SetPrefetch(table.loop, setting);
      Appender appender(often);
      for (const BatchView& batch : batches) {
        ASSERT_EQ(once->Append(batch), absl::OkStatus());
        ASSERT_EQ(once->Append(batch), absl::OkStatus());
        ASSERT_EQ(often->Append(batch), absl::OkStatus());
        ASSERT_EQ(appender.Append(batch), absl::OkStatus());
      }
      ASSERT_EQ(appender.Finish(), absl::OkStatus());
    }
    ASSERT_EQ(once->Finalise(), absl::OkStatus());
    ASSERT_EQ(often->Finalise(), absl::OkStatus());
    EXPECT_EQ(GroupsOf(often), GroupsOf(once)) << table.spec;
  }
}

TEST(GroupPrefetch, StatsTellTheLastSetting) {
  for (const Table& table : kTables) {
    const auto distance_of = [&](const PrefetchSetting& setting, bool prefetches) {
      auto aggregate = Aggregation(table.spec, OptionsOf(table, {.distance = 5}), {.prefetches = prefetches});
      for (const BatchView& batch : BatchesOf(table)) EXPECT_EQ(aggregate->Append(batch), absl::OkStatus());
      aggregate->SetPrefetch(table.loop, setting);
      EXPECT_EQ(aggregate->Finalise(), absl::OkStatus());
      EXPECT_STREQ(aggregate->stats().layout, table.name);
      return aggregate->stats().prefetch_distance;
    };
    EXPECT_EQ(distance_of({.distance = 64}, true), 64u);
    EXPECT_EQ(distance_of({.distance = kWholeBatch}, true), 1024u);
    EXPECT_EQ(distance_of({.distance = kWholeBatch, .batch_rows = 300}, true), 300u);
    EXPECT_EQ(distance_of({}, true), 0u);
    EXPECT_EQ(distance_of({.distance = 64}, false), 0u);
  }
}

// Rows that threads partition pass through a buffer of one batch, which a setting may make larger than the plan's
// batch.
TEST(GroupPrefetch, DealtRowsMayComeInLargerBatches) {
  const Table& table = kTables[2];
  AggregateOptions options = OptionsOf(table, {.distance = 8, .batch_rows = 4096});
  options.local_groups = 1;
  auto aggregate = Aggregation(table.spec, options, {.batch_rows = 16});
  Appender one(aggregate), two(aggregate);
  std::vector<int64_t> keys(20000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int64_t>(i) * 1000003;
  const std::vector<int64_t> first(keys.begin(), keys.begin() + 10000), rest(keys.begin() + 10000, keys.end());
  for (Appender* appender : {&one, &two})
    for (const auto& some : {first, rest})
      ASSERT_EQ(appender->Append(Rows(10000, {NumberColumn(some)}, {NumberColumn(some)})), absl::OkStatus());
  ASSERT_EQ(one.Finish(), absl::OkStatus());
  ASSERT_EQ(two.Finish(), absl::OkStatus());
  ASSERT_EQ(aggregate->Finalise(), absl::OkStatus());
  EXPECT_EQ(aggregate->stats().num_groups, keys.size());
  const Lines groups = GroupsOf(aggregate);
  ASSERT_EQ(groups.size(), keys.size());
  EXPECT_EQ(groups.front(), "0|2|0");
}

}  // namespace
}  // namespace quern
