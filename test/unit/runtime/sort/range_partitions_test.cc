// SPDX-License-Identifier: Apache-2.0
// Rows that leave memory are divided by ranges of keys where a sample says that this is even, and come out in order
// also where later rows are not like those of the sample.
#include "runtime/sort/spilling/range_partitions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "test/unit/runtime/sort/sort_rows.h"
#include "test/unit/runtime/spill/spill_test_rows.h"

namespace quern::test {
namespace {

const SpillSettings kSmall = {.num_partitions = 4, .block_bytes = 4 << 10, .read_depth = 2, .io_bytes = 256 << 10};

std::vector<RowLead> RandomLeads(uint64_t n, uint64_t range, bool has_second, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<RowLead> leads(n);
  for (RowLead& lead : leads) lead = {random() % range, has_second ? random() % range : 0};
  return leads;
}

TEST(Splitters, NumberRangesInTheOrderOfKeys) {
  for (const bool has_second : {false, true}) {
    for (const uint64_t range : {uint64_t{1}, uint64_t{3}, uint64_t{1000}, UINT64_MAX}) {
      for (const uint32_t num_parts : {2u, 16u, 128u}) {
        const Splitters splitters(RandomLeads(4096, range, has_second, 1), num_parts, has_second);
        std::vector<RowLead> leads = RandomLeads(997, range, has_second, 2);
        leads.push_back({UINT64_MAX, has_second ? UINT64_MAX : 0});
        leads.push_back({});
        std::sort(leads.begin(), leads.end());
        std::vector<uint64_t> parts(leads.size());
        splitters.PartsOf(leads.data(), static_cast<uint32_t>(leads.size()), parts.data());
        EXPECT_TRUE(std::is_sorted(parts.begin(), parts.end()));
        EXPECT_LT(parts.back(), num_parts);
        for (size_t i = 1; i < leads.size(); ++i) {
          EXPECT_TRUE(leads[i] != leads[i - 1] || parts[i] == parts[i - 1]);
        }
        EXPECT_LE(splitters.num_distinct(), num_parts);
        if (range == 1) {
          EXPECT_EQ(splitters.num_distinct(), 1u);
        }
      }
    }
  }
}

TEST(Splitters, RangesAreOfAboutTheSameSize) {
  const Splitters splitters(RandomLeads(8192, UINT64_MAX, false, 3), 64, false);
  const std::vector<RowLead> leads = RandomLeads(64000, UINT64_MAX, false, 4);
  std::vector<uint64_t> counts(64);
  for (const RowLead& lead : leads) {
    uint64_t part;
    splitters.PartsOf(&lead, 1, &part);
    ++counts[part];
  }
  EXPECT_GT(*std::min_element(counts.begin(), counts.end()), 500u);
  EXPECT_LT(*std::max_element(counts.begin(), counts.end()), 1500u);
}

TEST(Splitters, RowsThatComeInOrderAreClustered) {
  std::vector<RowLead> leads = RandomLeads(8192, UINT64_MAX, false, 5);
  const Splitters splitters(leads, 64, false);
  EXPECT_FALSE(splitters.IsClustered(leads));
  std::sort(leads.begin(), leads.end());
  EXPECT_TRUE(splitters.IsClustered(leads));
  std::reverse(leads.begin(), leads.end());
  EXPECT_TRUE(splitters.IsClustered(leads));
  leads.resize(100);
  EXPECT_FALSE(splitters.IsClustered(leads));  // too few to say so
}

// Sorts numbers under a limit; returns the method.
std::string ExpectSorted(const std::vector<int64_t>& keys, uint64_t limit_bytes) {
  const std::vector<BatchView> batches = NumberBatches(keys, 3000);
  const std::string spec = "sort keys=i64:out payload=rowid stable";
  const auto budget = std::make_shared<MemoryBudget>(limit_bytes);
  std::string method;
  {
    const auto sort = SortOf(spec, {.budget = budget});
    sort->SetSpill(TestContext(budget, SystemFileCalls(), kSmall));
    for (const BatchView& batch : batches) EXPECT_EQ(sort->Append(batch), absl::OkStatus());
    EXPECT_EQ(sort->Finalise(), absl::OkStatus());
    method = sort->stats().method;
    EXPECT_TRUE(SortedLines(sort) == SortedLines(spec, batches));
  }
  EXPECT_EQ(budget->used_bytes(), 0u);
  EXPECT_LE(budget->peak_bytes(), limit_bytes);
  return method;
}

TEST(RangePartitions, RandomRowsAreDivided) {
  EXPECT_EQ(ExpectSorted(KeysOf(Pattern::kRandom, 150000), 2 << 20), "distributed");
  EXPECT_EQ(ExpectSorted(KeysOf(Pattern::kRandom, 150000), 9 << 20), "distributed");  // all of them stay
}

TEST(RangePartitions, RowsInOrderAndFewKeysAreMerged) {
  for (const Pattern pattern : {Pattern::kSorted, Pattern::kReversed, Pattern::kNearlySorted, Pattern::kOneKey}) {
    EXPECT_EQ(ExpectSorted(KeysOf(pattern, 100000), 2 << 20), "merged") << static_cast<int>(pattern);
  }
}

// All rows behind the first ones have keys of one range, or one key: it does not fit, and is sorted in runs.
TEST(RangePartitions, ARangeThatDoesNotFitIsSortedInRuns) {
  const std::vector<int64_t> first = KeysOf(Pattern::kRandom, 30000);
  for (const uint64_t step : {0, 1, 77}) {
    std::vector<int64_t> keys = first;
    for (uint64_t i = 0; i < 120000; ++i) keys.push_back(static_cast<int64_t>(i * step % 100003));
    EXPECT_EQ(ExpectSorted(keys, 2 << 20), "distributed");
  }
}

// Threads whose memory is not enough for a block of each range.
TEST(RangePartitions, RowsWithoutABlockAreWrittenTogether) {
  const std::vector<int64_t> keys = KeysOf(Pattern::kRandom, 120000);
  const std::vector<BatchView> batches = NumberBatches(keys, 1000);
  const std::string spec = "sort keys=i64:out payload=rowid stable";
  const auto budget = std::make_shared<MemoryBudget>(2 << 20);
  const auto sort = SortOf(spec, {.budget = budget});
  sort->SetSpill(TestContext(budget, SystemFileCalls(), kSmall));
  {
    std::vector<std::unique_ptr<Appender>> appenders;
    for (int a = 0; a < 24; ++a) appenders.push_back(std::make_unique<Appender>(sort));
    for (size_t b = 0; b < batches.size(); ++b)
      EXPECT_EQ(appenders[b % appenders.size()]->Append(batches[b]), absl::OkStatus());
    for (const auto& appender : appenders) EXPECT_EQ(appender->Finish(), absl::OkStatus());
  }
  EXPECT_EQ(sort->Finalise(), absl::OkStatus());
  EXPECT_STREQ(sort->stats().method, "distributed");
  EXPECT_TRUE(SortedLines(sort) == SortedLines(spec, batches));
}

}  // namespace
}  // namespace quern::test
