// SPDX-License-Identifier: Apache-2.0
// Prefetch settings of sorts: each returns the same rows, wherever they are read from, also if it changes during
// reading.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/unit/runtime/rows/prefetch_settings.h"
#include "test/unit/runtime/sort/sort_rows.h"
#include "test/unit/seed.h"

namespace quern {
namespace {

using test::AddLines;
using test::LaddersOf;
using test::Lines;
using test::ManySettings;
using test::NumberColumn;
using test::PrintedRandom;
using test::RowIdColumn;
using test::Rows;
using test::SortedLines;
using test::SortOf;
using test::SortTuning;
using test::StringColumn;

// Strings that collide in their first 8 bytes or more, then a number; the payload is a string and the row id, which
// distinguishes all rows.
constexpr const char* kSpec = "sort keys=binary:out,i64:out payload=binary,rowid stable";

std::vector<BatchView> RowsToSort(size_t num_rows) {
  auto random = PrintedRandom();
  std::vector<BatchView> batches;
  for (size_t begin = 0; begin < num_rows; begin += 500) {
    const size_t n = std::min<size_t>(500, num_rows - begin);
    std::vector<std::string> keys(n), texts(n);
    std::vector<int64_t> numbers(n);
    for (size_t i = 0; i < n; ++i) {
      keys[i] = std::string(8 + random() % 3 * 8, 'k') + std::to_string(random() % 90);
      numbers[i] = static_cast<int64_t>(random() % 3 << 50) - (int64_t{1} << 50);
      texts[i] = std::string(random() % 100, 't');
    }
    // From the last batch to the first, so that row ids must be read.
    batches.insert(batches.begin(), Rows(n, {StringColumn(kVar32, keys), NumberColumn(numbers)},
                                         {StringColumn(kVar32, texts), RowIdColumn()}));
    batches.front().first_row_id = begin;
  }
  return batches;
}

std::shared_ptr<RowSort> Sorted(const std::vector<BatchView>& batches, const SortTuning& tuning) {
  auto sort = SortOf(kSpec, tuning);
  for (const BatchView& batch : batches) EXPECT_EQ(sort->Append(batch), absl::OkStatus());
  EXPECT_EQ(sort->Finalise(), absl::OkStatus());
  return sort;
}

SortTuning TuningOf(PrefetchLoop loop, const PrefetchSetting& setting, uint32_t prefix_words) {
  SortTuning tuning;
  tuning.options.prefix_words = prefix_words;
  tuning.options.prefetch = LaddersOf(loop, setting);
  return tuning;
}

TEST(SortPrefetch, EverySettingGivesTheSameRows) {
  const std::vector<BatchView> batches = RowsToSort(1300);
  const Lines expected = SortedLines(Sorted(batches, TuningOf(PrefetchLoop::kGather, {}, 1)));
  ASSERT_EQ(expected.size(), 1300u);
  for (const PrefetchLoop loop : {PrefetchLoop::kGather, PrefetchLoop::kCollision}) {
    for (const PrefetchSetting& setting : ManySettings()) {
      for (const uint32_t prefix_words : {1u, 3u}) {
        EXPECT_EQ(SortedLines(Sorted(batches, TuningOf(loop, setting, prefix_words)), 700), expected)
            << LoopText(loop) << " " << PrintSetting(setting, PrefetchHint::kT0);
      }
    }
  }
}

TEST(SortPrefetch, ComparisonSortsHaveSettingsToo) {
  const std::vector<BatchView> batches = RowsToSort(700);
  SortTuning tuning;
  tuning.method = SortMethod::kComparison;
  const Lines expected = SortedLines(Sorted(batches, tuning));
  for (const PrefetchSetting& setting : ManySettings()) {
    tuning.options.prefetch = LaddersOf(PrefetchLoop::kGather, setting);
    EXPECT_EQ(SortedLines(Sorted(batches, tuning)), expected) << PrintSetting(setting, PrefetchHint::kT0);
  }
}

TEST(SortPrefetch, ItMayChangeWhileRowsAreRead) {
  const std::vector<BatchView> batches = RowsToSort(3000);
  const auto sort = Sorted(batches, {});
  const Lines expected = SortedLines(Sorted(batches, {}));
  const std::vector<PrefetchSetting> settings = ManySettings();
  // Two readers take turns, so that neither continues where it stopped.
  SortReader one(sort), two(sort);
  OutputBatch out(SortOutputTypes(sort->descriptor().spec()), 41, nullptr);
  Lines lines;
  bool more = true;
  for (size_t i = 0; more; ++i) {
    sort->SetPrefetch(PrefetchLoop::kGather, settings[i % settings.size()]);
    SortReader& reader = i % 3 == 0 ? one : two;
    const absl::StatusOr<bool> next = reader.Next(&out);
    ASSERT_TRUE(next.ok()) << next.status();
    EXPECT_EQ(reader.position(), lines.size());
    AddLines(out, &lines);
    more = *next;
  }
  EXPECT_EQ(lines, expected);
}

TEST(SortPrefetch, ItMayChangeBeforeSorting) {
  const std::vector<BatchView> batches = RowsToSort(900);
  const Lines expected = SortedLines(Sorted(batches, {}));
  for (const PrefetchSetting& setting : ManySettings()) {
    auto sort = SortOf(kSpec);
    for (const BatchView& batch : batches) ASSERT_EQ(sort->Append(batch), absl::OkStatus());
    sort->SetPrefetch(PrefetchLoop::kCollision, setting);
    ASSERT_EQ(sort->Finalise(), absl::OkStatus());
    EXPECT_EQ(SortedLines(sort), expected) << PrintSetting(setting, PrefetchHint::kT0);
  }
}

TEST(SortPrefetch, WhereThePlanDoesNotPrefetchSettingsAreNotLookedAt) {
  const std::vector<BatchView> batches = RowsToSort(600);
  SortTuning tuning;
  const Lines expected = SortedLines(Sorted(batches, tuning));
  tuning.options.prefetches = false;
  tuning.options.prefetch = LaddersOf(PrefetchLoop::kGather, {.distance = 64, .batch_rows = 3});
  const auto sort = Sorted(batches, tuning);
  EXPECT_STREQ(sort->stats().prefetch_class, "off");
  EXPECT_EQ(SortedLines(sort), expected);
}

TEST(SortPrefetch, StatsTellTheBytesThatRowsTake) {
  const auto sort = Sorted(RowsToSort(600), {});
  const QuernSortDescriptor& descriptor = *sort->descriptor().get();
  const uint64_t row_bytes = descriptor.num_words * 8 + descriptor.rows.tuple_bytes;
  EXPECT_GE(sort->stats().stored_bytes, 600 * row_bytes);
  EXPECT_LE(sort->stats().stored_bytes, 600 * (row_bytes + 8));
}

}  // namespace
}  // namespace quern
