// SPDX-License-Identifier: Apache-2.0
// Sorts in the generic kernel over columns that unit tests own, and their results.
#ifndef QUERN_TEST_UNIT_RUNTIME_SORT_SORT_ROWS_H_
#define QUERN_TEST_UNIT_RUNTIME_SORT_SORT_ROWS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <compare>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ir-templates/generic/generic_sort.h"
#include "runtime/sort/row_sort.h"
#include "runtime/spec/spec.h"
#include "test/unit/runtime/aggregate/group_rows.h"

namespace quern::test {

struct SortTuning {
  SortMethod method = SortMethod::kRadix;
  uint32_t batch_rows = 1024;
  SortOptions options = {};
  std::shared_ptr<MemoryBudget> budget = NoLimit();
};

inline std::shared_ptr<RowSort> SortOf(const std::string& text, const SortTuning& tuning = {}) {
  const auto spec = ParseSpecOf<SortSpec>(text);
  EXPECT_TRUE(spec.ok()) << spec.status();
  auto descriptor = std::make_shared<SortDescriptor>(*spec, tuning.method);
  descriptor->mutable_tuning()->batch_rows = tuning.batch_rows;
  return std::make_shared<RowSort>(descriptor, GenericSortKernel(), GenericSortKernel(), nullptr, tuning.budget,
                                   tuning.options);
}

// A row id in the payload has a column without data.
inline ColumnPtr RowIdColumn() { return std::make_shared<OwnedColumn>(); }

// A batch of a reader, with the place of its first row.
struct SortedBatch {
  uint64_t position;
  Lines lines;
};
inline std::vector<SortedBatch> BatchesOf(const std::shared_ptr<RowSort>& sort, uint64_t capacity) {
  OutputBatch out(SortOutputTypes(sort->descriptor().spec()), capacity, nullptr);
  SortReader reader(sort);
  std::vector<SortedBatch> batches;
  for (bool more = true; more;) {
    const absl::StatusOr<bool> next = reader.Next(&out);
    EXPECT_TRUE(next.ok()) << next.status();
    if (!next.ok()) break;
    EXPECT_LE(out.num_rows(), capacity);
    batches.push_back({reader.position(), {}});
    AddLines(out, &batches.back().lines);
    more = *next;
  }
  return batches;
}

inline Lines SortedLines(const std::shared_ptr<RowSort>& sort, uint64_t capacity = 1000) {
  Lines lines;
  for (const SortedBatch& batch : BatchesOf(sort, capacity)) {
    EXPECT_TRUE(batch.lines.empty() || batch.position == lines.size()) << batch.position;
    lines.insert(lines.end(), batch.lines.begin(), batch.lines.end());
  }
  return lines;
}

// The rows of some batches in order.
inline Lines SortedLines(const std::string& text, const std::vector<BatchView>& batches,
                         const SortTuning& tuning = {}) {
  auto sort = SortOf(text, tuning);
  for (const BatchView& batch : batches) EXPECT_EQ(sort->Append(batch), absl::OkStatus());
  EXPECT_EQ(sort->Finalise(), absl::OkStatus());
  const Lines lines = SortedLines(sort);
  EXPECT_EQ(sort->stats().num_rows, lines.size());
  return lines;
}

// The finalised sort, after append(state, first row, appender) has given each thread-local state's rows,
// num_rows_of(state) of them, to an appender of its own.
template <class LocalState, class Append, class NumRowsOf>
std::shared_ptr<RowSort> SortOfSides(const std::string& text, const SortTuning& tuning,
                                     const std::vector<LocalState>& locals, Append append, NumRowsOf num_rows_of) {
  const auto sort = SortOf(text, tuning);
  size_t first_row = 0;
  for (const LocalState& local : locals) {
    Appender appender(sort);
    append(local, first_row, &appender);
    EXPECT_EQ(appender.Finish(), absl::OkStatus());
    first_row += num_rows_of(local);
  }
  EXPECT_EQ(sort->Finalise(), absl::OkStatus());
  return sort;
}

// ---- rows of one number and a row id, many of them ----

struct NumberRow {
  int64_t key;
  uint64_t row_id;
  auto operator<=>(const NumberRow&) const = default;
};
using NumberRows = std::vector<NumberRow>;

enum class Pattern { kRandom, kFewKeys, kOneKey, kSorted, kReversed, kNearlySorted, kLastOutOfPlace, kRuns };
constexpr Pattern kPatterns[] = {Pattern::kRandom,   Pattern::kFewKeys,      Pattern::kOneKey,         Pattern::kSorted,
                                 Pattern::kReversed, Pattern::kNearlySorted, Pattern::kLastOutOfPlace, Pattern::kRuns};

inline std::vector<int64_t> KeysOf(Pattern pattern, size_t n, uint64_t seed = 1) {
  std::mt19937_64 random(seed * 1000003 + n);
  std::vector<int64_t> keys(n);
  for (size_t i = 0; i < n; ++i) {
    const auto number = static_cast<int64_t>(i);
    keys[i] = pattern == Pattern::kRandom    ? static_cast<int64_t>(random() >> 20) - (int64_t{1} << 43)
              : pattern == Pattern::kFewKeys ? static_cast<int64_t>(random() % 7) - 3
              : pattern == Pattern::kOneKey  ? 42
              : pattern == Pattern::kRuns    ? number % 100
                                             : number * 3 - 1000;
  }
  if (pattern == Pattern::kReversed) std::reverse(keys.begin(), keys.end());
  if (pattern == Pattern::kLastOutOfPlace && n > 0) keys[n - 1] = -5000;
  for (size_t i = 0; pattern == Pattern::kNearlySorted && i < n; i += 100) std::swap(keys[i], keys[random() % n]);
  return keys;
}

// Keys and their numbers, in batches of `batch_rows`; the numbers are the row ids.
inline std::vector<BatchView> NumberBatches(const std::vector<int64_t>& keys, size_t batch_rows) {
  std::vector<BatchView> batches;
  for (size_t begin = 0; begin < keys.size(); begin += batch_rows) {
    const size_t end = std::min(begin + batch_rows, keys.size());
    const std::vector<int64_t> some(keys.begin() + static_cast<ptrdiff_t>(begin),
                                    keys.begin() + static_cast<ptrdiff_t>(end));
    batches.push_back(Rows(end - begin, {NumberColumn(some)}, {RowIdColumn()}));
    batches.back().first_row_id = begin;
  }
  return batches;
}

// The order of a stable sort.
inline NumberRows StablySorted(const std::vector<int64_t>& keys, uint64_t limit = 0) {
  NumberRows rows(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) rows[i] = {keys[i], i};
  std::sort(rows.begin(), rows.end());
  if (limit != 0 && limit < rows.size()) rows.resize(limit);
  return rows;
}

// The rows of one reader of "sort keys=i64:out payload=rowid".
inline NumberRows NumberRowsOf(const std::shared_ptr<RowSort>& sort, uint64_t capacity = 4096) {
  OutputBatch out(SortOutputTypes(sort->descriptor().spec()), capacity, nullptr);
  SortReader reader(sort);
  NumberRows rows;
  for (bool more = true; more;) {
    const absl::StatusOr<bool> next = reader.Next(&out);
    EXPECT_TRUE(next.ok()) << next.status();
    if (!next.ok()) break;
    EXPECT_TRUE(out.num_rows() == 0 || reader.position() == rows.size()) << reader.position();
    const auto* keys = static_cast<const int64_t*>(out.column(0).values);
    const auto* row_ids = static_cast<const uint64_t*>(out.column(1).values);
    for (uint64_t i = 0; i < out.num_rows(); ++i) rows.push_back({keys[i], row_ids[i]});
    more = *next;
  }
  return rows;
}

}  // namespace quern::test

#endif  // QUERN_TEST_UNIT_RUNTIME_SORT_SORT_ROWS_H_
