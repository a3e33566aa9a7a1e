// SPDX-License-Identifier: Apache-2.0
// Joins of strings that spill, where results take memory of the same limit: rows are right and none is missing, the
// limit is kept, and all memory is given back.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/rows/output_batch.h"
#include "runtime/spill/spill_context.h"
#include "test/unit/runtime/join/threaded_join.h"
#include "test/unit/runtime/spill/spill_test_rows.h"

namespace quern::test {
namespace {

constexpr uint64_t kKiB = 1 << 10;
constexpr const char* kFull = "join.full keys=utf8 build=i64,utf8 probe=i64,utf8";
using Rows = std::multiset<std::pair<int64_t, int64_t>>;  // numbers of a probe row and a build row; -1: none

// Rows of a side: key, number, and a text that follows from the number.
struct TextSide {
  std::string keys, texts;
  std::vector<int32_t> key_offsets = {0}, text_offsets = {0};
  std::vector<int64_t> numbers;

  static std::string TextOf(int64_t number, uint64_t longest) {
    return std::string(static_cast<uint64_t>(number) * 7919 % (longest + 1), static_cast<char>('a' + number % 26));
  }
  void Add(const std::string& key, int64_t number, uint64_t longest) {
    keys += key;
    texts += TextOf(number, longest);
    key_offsets.push_back(static_cast<int32_t>(keys.size()));
    text_offsets.push_back(static_cast<int32_t>(texts.size()));
    numbers.push_back(number);
  }
  BatchView Batch(size_t begin, size_t n) const {
    BatchView batch;
    batch.keys.push_back(Column(keys, key_offsets.data() + begin));
    QuernColumn number = {};
    number.values = numbers.data() + begin;
    batch.payload = {number, Column(texts, text_offsets.data() + begin)};
    batch.num_rows = n;
    return batch;
  }

  SideRows Rows() const {
    return {numbers.size(), [this](size_t begin, size_t n) { return Batch(begin, n); }};
  }
  static QuernColumn Column(const std::string& bytes, const int32_t* offsets) {
    QuernColumn column = {};
    column.values = bytes.data();
    column.offsets = offsets;
    return column;
  }
};

// A full join: build rows 0 .. n-1 with two rows a key, and probe rows of which half have a match.
struct Texts {
  TextSide build, probe;
  Rows expected;
  uint64_t longest;

  Texts(int64_t num_rows, uint64_t longest_text) : longest(longest_text) {
    for (int64_t i = 0; i < num_rows; ++i) build.Add(Key(i / 2), i, longest);
    for (int64_t i = 0; i < num_rows; ++i) probe.Add(Key(i), i, longest);
    for (int64_t i = 0; i < num_rows; ++i) {
      if (i < num_rows / 2) expected.insert({{i, 2 * i}, {i, 2 * i + 1}});
      else expected.insert({i, -1});
    }
  }
  static std::string Key(int64_t number) { return std::string(15, 'k') + std::to_string(number); }
};

int64_t NumberAt(const OutputBatch& out, size_t column, uint64_t row) {
  const QuernOutColumn& numbers = out.column(column);
  if (numbers.validity != nullptr && (numbers.validity[row / 8] >> row % 8 & 1) == 0) return -1;
  return static_cast<const int64_t*>(numbers.values)[row];
}

std::string TextAt(const OutputBatch& out, size_t column, uint64_t row) {
  const auto* const offsets = static_cast<const int32_t*>(out.column(column).offsets);
  const auto* const bytes = static_cast<const char*>(static_cast<const void*>(out.column(column).bytes));
  return {bytes + offsets[row], static_cast<size_t>(offsets[row + 1] - offsets[row])};
}

// The number of a side's row, whose text must be its own.
int64_t NumberOf(const OutputBatch& out, size_t column, uint64_t row, uint64_t longest) {
  const int64_t number = NumberAt(out, column, row);
  if (number != -1) {
    EXPECT_EQ(TextAt(out, column + 1, row), TextSide::TextOf(number, longest));
  }
  return number;
}

struct Limits {
  uint64_t aside_bytes, bytes;
  uint32_t num_partitions, num_threads;
  bool spills = true;
  size_t batch_rows = ThreadedSettings().batch_rows;
  uint64_t result_rows = ThreadedSettings().result_rows;
};

void ExpectAll(const Texts& texts, const Limits& limits) {
  SCOPED_TRACE(std::to_string(limits.bytes) + " bytes, " + std::to_string(limits.num_threads) + " threads");
  const auto budget = std::make_shared<MemoryBudget>(limits.aside_bytes + limits.bytes);
  {
    const SpillSettings settings = {limits.num_partitions, 4096, 1, limits.aside_bytes};
    const ThreadedSettings threads = {.num_threads = limits.num_threads,
                                      .batch_rows = limits.batch_rows,
                                      .result_rows = limits.result_rows,
                                      .result_budget = budget};
    Rows rows;
    ThreadedJoin join(kFull, budget, TestContext(budget, SystemFileCalls(), settings), texts.build.Rows(),
                      texts.probe.Rows(), threads, [&](const OutputBatch& out) {
                        for (uint64_t i = 0; i < out.num_rows(); ++i)
                          rows.insert({NumberOf(out, 0, i, texts.longest), NumberOf(out, 2, i, texts.longest)});
                      });
    EXPECT_EQ(join.Run(), absl::OkStatus());
    EXPECT_TRUE(rows == texts.expected) << rows.size() << " rows, not " << texts.expected.size();
    EXPECT_EQ(join.has_spilled(), limits.spills);
    EXPECT_LE(budget->peak_bytes(), budget->limit_bytes());
  }
  EXPECT_EQ(budget->used_bytes(), 0);
}

TEST(SpillingJoinLimits, ResultsOfStringsTakeMemoryOfTheSameLimit) {
  const Texts texts(6000, 200);
  for (const uint32_t num_threads : {1, 4})
    for (const uint64_t bytes : {300 * kKiB, 400 * kKiB, 500 * kKiB})
      ExpectAll(texts, {256 * kKiB, bytes, 4, num_threads});
}

// Rows fit, since their texts stay where they are; one result with the texts of all of them would not.
TEST(SpillingJoinLimits, ResultsEndWhereTheirStringsFindNoRoom) {
  ExpectAll(Texts(3000, 8000), {.aside_bytes = 1024 * kKiB,
                                .bytes = 5 * 1024 * kKiB,
                                .num_partitions = 4,
                                .num_threads = 1,
                                .spills = false,
                                .batch_rows = 3000,
                                .result_rows = 4096});
}

// ---- texts that are longer than blocks ----

// A left join of build rows that do not fit with probe rows of which each other one has a match.
struct LongTexts {
  std::vector<int64_t> build, keys;
  TextSide probe;  // its numbers and texts
  Rows expected;

  static std::string TextOf(int64_t row) {
    return std::string((100 + static_cast<uint64_t>(row) * 7919 % 925) * kKiB, static_cast<char>('a' + row % 26));
  }
  LongTexts(int64_t num_build, int64_t num_probe) {
    for (int64_t i = 0; i < num_build; ++i) build.push_back(i * 7990001);
    for (int64_t i = 0; i < num_probe; ++i) {
      const int64_t row = i * (num_build / num_probe);
      keys.push_back(row * 7990001 + i % 2);
      probe.texts += TextOf(i);
      probe.text_offsets.push_back(static_cast<int32_t>(probe.texts.size()));
      probe.numbers.push_back(i);
      expected.insert({i, i % 2 == 0 ? row : -1});
    }
  }
  SideRows BuildRows() const {
    return {build.size(), [this](size_t begin, size_t n) {
              BatchView batch;
              batch.keys.push_back(Numbers(build.data() + begin));
              batch.payload.push_back(batch.keys[0]);
              batch.num_rows = n;
              return batch;
            }};
  }
  SideRows ProbeRows() const {
    return {keys.size(), [this](size_t begin, size_t n) {
              BatchView batch;
              batch.keys.push_back(Numbers(keys.data() + begin));
              batch.payload = {Numbers(probe.numbers.data() + begin),
                               TextSide::Column(probe.texts, probe.text_offsets.data() + begin)};
              batch.num_rows = n;
              return batch;
            }};
  }
  static QuernColumn Numbers(const int64_t* values) {
    QuernColumn column = {};
    column.values = values;
    return column;
  }
};

void ExpectLongTexts(uint64_t limit, int64_t num_probe, uint32_t num_threads) {
  SCOPED_TRACE(std::to_string(limit) + " bytes, " + std::to_string(num_threads) + " threads");
  const LongTexts texts(static_cast<int64_t>(limit / 40), num_probe);
  const auto budget = std::make_shared<MemoryBudget>(limit);
  Rows rows;
  {
    ThreadedJoin join("join.left keys=i64 build=i64 probe=i64,utf8", budget, TestContext(budget), texts.BuildRows(),
                      texts.ProbeRows(), {.num_threads = num_threads, .batch_rows = 4, .result_budget = budget},
                      [&](const OutputBatch& out) {
                        for (uint64_t i = 0; i < out.num_rows(); ++i) {
                          const int64_t row = NumberAt(out, 0, i), match = NumberAt(out, 2, i);
                          EXPECT_TRUE(TextAt(out, 1, i) == LongTexts::TextOf(row));
                          rows.insert({row, match == -1 ? -1 : match / 7990001});
                        }
                      });
    EXPECT_EQ(join.Run(), absl::OkStatus());
    EXPECT_TRUE(join.has_spilled());
    EXPECT_LE(budget->peak_bytes(), limit);
  }
  EXPECT_TRUE(rows == texts.expected) << rows.size() << " rows, not " << texts.expected.size();
  EXPECT_EQ(budget->used_bytes(), 0);
}

// Build rows of one key leave most partitions without any: their probe rows are joined with no build rows, whatever
// memory there is.
TEST(SpillingJoinLimits, PartitionsWithoutBuildRows) {
  constexpr const char* kAnti = "join.anti keys=utf8 probe=i64,utf8";
  TextSide build, probe;
  std::multiset<int64_t> expected;
  for (int64_t i = 0; i < 4000; ++i) build.Add(Texts::Key(7), i, 0);
  for (int64_t i = 0; i < 4000; ++i) {
    probe.Add(Texts::Key(i), i, 20);
    if (i != 7) expected.insert(i);
  }
  const SideRows build_rows = {build.numbers.size(), [&build](size_t begin, size_t n) {
                                 BatchView batch = build.Batch(begin, n);
                                 batch.payload.clear();
                                 return batch;
                               }};
  int num_whole = 0, num_refused = 0;
  for (uint64_t bytes = 150 * kKiB; bytes < 700 * kKiB; bytes += 10 * kKiB) {
    SCOPED_TRACE(bytes);
    const auto budget = std::make_shared<MemoryBudget>(bytes);
    {
      const SpillSettings settings = {16, 4096, 1, 100 * kKiB};
      const ThreadedSettings threads = {
          .num_threads = 1, .batch_rows = 500, .result_rows = 100, .result_budget = budget};
      std::multiset<int64_t> rows;
      ThreadedJoin join(kAnti, budget, TestContext(budget, SystemFileCalls(), settings), build_rows, probe.Rows(),
                        threads, [&](const OutputBatch& out) {
                          for (uint64_t i = 0; i < out.num_rows(); ++i) rows.insert(NumberOf(out, 0, i, 20));
                        });
      const absl::Status status = join.Run();
      if (status.ok()) {
        EXPECT_TRUE(rows == expected) << rows.size() << " rows, not " << expected.size();
      } else {
        EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
      }
      (status.ok() && join.has_spilled() ? num_whole : num_refused) += 1;
    }
    EXPECT_EQ(budget->used_bytes(), 0);
  }
  EXPECT_GT(num_whole, 5);
  EXPECT_GT(num_refused, 0);
}

TEST(SpillingJoinLimits, ProbeRowsOfLongTextsAreWritten) {
  ExpectLongTexts(16 << 20, 64, 1);
  ExpectLongTexts(64 << 20, 150, 1);
  ExpectLongTexts(64 << 20, 150, 4);
}

// Of 128 keys of the probe side, those in odd rows are long, and have no match.
TEST(SpillingJoinLimits, ProbeRowsOfLongKeysAreWritten) {
  constexpr uint64_t kLimit = 16 << 20;
  const auto budget = std::make_shared<MemoryBudget>(kLimit);
  TextSide build, probe;
  Rows rows, expected;
  for (int64_t i = 0; i < 300'000; ++i) build.Add(Texts::Key(i), i, 0);
  for (int64_t i = 0; i < 128; ++i) {
    probe.Add(i % 2 == 0 ? Texts::Key(i * 2000) : LongTexts::TextOf(i), i, 0);
    expected.insert({i, i % 2 == 0 ? i * 2000 : -1});
  }
  {
    ThreadedJoin join(kFull, budget, TestContext(budget), build.Rows(), probe.Rows(),
                      {.batch_rows = 4, .result_budget = budget}, [&](const OutputBatch& out) {
                        for (uint64_t i = 0; i < out.num_rows(); ++i)
                          if (NumberAt(out, 0, i) != -1) rows.insert({NumberAt(out, 0, i), NumberAt(out, 2, i)});
                      });
    EXPECT_EQ(join.Run(), absl::OkStatus());
    EXPECT_TRUE(join.has_spilled());
    EXPECT_LE(budget->peak_bytes(), kLimit);
  }
  EXPECT_TRUE(rows == expected) << rows.size() << " rows, not " << expected.size();
  EXPECT_EQ(budget->used_bytes(), 0);
}

}  // namespace
}  // namespace quern::test
