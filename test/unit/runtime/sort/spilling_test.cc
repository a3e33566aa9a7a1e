// SPDX-License-Identifier: Apache-2.0
// Sorts that write runs to a store give the rows that they give in memory.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "test/unit/runtime/sort/sort_rows.h"
#include "test/unit/runtime/spill/spill_test_rows.h"

namespace quern::test {
namespace {

constexpr uint32_t kBatchRows = 5000;

struct Limits {
  uint64_t bytes = 1 << 20;
  SpillSettings settings = {.num_partitions = 2, .block_bytes = 8 << 10, .read_depth = 2, .io_bytes = 256 << 10};
  uint32_t threads = 1;
  bool divides = true;  // by ranges of keys, where rows have a fixed size
};

// Batches of random values of each column of a spec, of which each has few values where few_values is set.
std::vector<BatchView> RandomBatches(const SortSpec& spec, uint32_t num_batches, bool few_values = true) {
  std::mt19937_64 random(7);
  const auto column = [&](const ColumnType& type) -> ColumnPtr {
    if (type.id == TypeId::kRowId) return RowIdColumn();
    ColumnPtr values;
    const auto number = [&] { return static_cast<int64_t>(random() % (few_values ? 300 : 1 << 30)) - 100; };
    if (type.is_dictionary) {
      std::vector<uint8_t> codes(kBatchRows);
      for (uint8_t& code : codes) code = static_cast<uint8_t>(random() % 3);
      values = DictionaryColumn(codes, StringColumn(kVar32, {"an entry that is quite long", "b", "an entry of words"}));
    } else if (IsVariable(RowOf(type.id).storage)) {
      std::vector<std::string> strings(kBatchRows);
      for (std::string& text : strings)
        text = std::string(static_cast<size_t>(random() % 3) * 9, random() % 2 != 0 ? 'a' : 'A') +
               std::to_string(number());
      values = StringColumn(RowOf(type.id).storage, strings);
    } else if (type.id == TypeId::kF64) {
      std::vector<double> floats(kBatchRows);
      const double odd[] = {-0.0, 0.0, std::nan(""), std::numeric_limits<double>::infinity()};
      for (double& value : floats) value = random() % 4 == 0 ? odd[random() % 4] : static_cast<double>(number()) / 4;
      values = NumberColumn(floats);
    } else if (type.id == TypeId::kBool) {
      std::vector<bool> bits(kBatchRows);
      for (uint32_t i = 0; i < kBatchRows; ++i) bits[i] = random() % 2 != 0;
      values = BoolColumn(bits);
    } else if (type.id == TypeId::kFixedBinary) {
      std::vector<uint8_t> bytes(uint64_t{kBatchRows} * type.width_bytes);
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random() % 3);
      values = NumberColumn(bytes);
    } else {
      std::vector<int64_t> numbers(kBatchRows);
      for (int64_t& value : numbers) value = number();
      values = NumberColumn(numbers);
    }
    std::vector<bool> valid(kBatchRows);
    for (uint32_t i = 0; i < kBatchRows; ++i) valid[i] = random() % 10 != 0;
    return type.nullable ? WithNulls(values, valid) : values;
  };
  std::vector<BatchView> batches;
  for (uint32_t b = 0; b < num_batches; ++b) {
    std::vector<ColumnPtr> keys, payload;
    for (const KeySpec& key : spec.keys) keys.push_back(column(key.type));
    for (const ColumnType& type : spec.payload) payload.push_back(column(type));
    batches.push_back(Rows(kBatchRows, keys, payload));
    batches.back().first_row_id = uint64_t{b} * kBatchRows;
  }
  return batches;
}

std::vector<BatchView> RandomBatches(const std::string& text, uint32_t num_batches, bool few_values = true) {
  return RandomBatches(*ParseSpecOf<SortSpec>(text), num_batches, few_values);
}

absl::Status AppendAll(const std::shared_ptr<RowSort>& sort, const std::vector<BatchView>& batches, uint32_t threads) {
  if (threads == 1) {
    for (const BatchView& batch : batches) {
      const absl::Status status = sort->Append(batch);
      if (!status.ok()) return status;
    }
    return sort->Finalise();
  }
  std::vector<absl::Status> statuses(threads);
  std::vector<std::thread> running;
  for (uint32_t t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      Appender appender(sort);
      for (size_t b = t; b < batches.size() && statuses[t].ok(); b += threads)
        statuses[t] = appender.Append(batches[b]);
      if (statuses[t].ok()) statuses[t] = appender.Finish();
    });
  }
  for (std::thread& thread : running) thread.join();
  for (const absl::Status& status : statuses)
    if (!status.ok() && !absl::IsFailedPrecondition(status)) return status;  // not "after a failed append"
  return sort->Finalise();
}

// The rows in memory and the spilled ones.
void ExpectSameRows(const std::string& text, uint32_t num_batches, const Limits& limits, bool few_values = true) {
  SCOPED_TRACE(text + ", bytes " + std::to_string(limits.bytes) + ", threads " + std::to_string(limits.threads));
  const std::vector<BatchView> batches = RandomBatches(text, num_batches, few_values);
  const Lines expected = SortedLines(text, batches);
  const auto budget = std::make_shared<MemoryBudget>(limits.bytes);
  {
    const auto context = TestContext(budget, SystemFileCalls(), limits.settings);
    SortTuning tuning = {.budget = budget};
    tuning.options.divides_ranges = limits.divides;
    const auto sort = SortOf(text, tuning);
    sort->SetSpill(context);
    ASSERT_EQ(AppendAll(sort, batches, limits.threads), absl::OkStatus());
    if (!limits.divides) {
      EXPECT_STREQ(sort->stats().method, "merged");
    }
    EXPECT_EQ(sort->stats().input_rows, uint64_t{num_batches} * kBatchRows);
    EXPECT_EQ(sort->stats().num_rows, expected.size());
    EXPECT_GT(context->stats().written_blocks, 0u);
    Lines lines = SortedLines(sort);
    Lines all = expected;
    const SortSpec& spec = sort->descriptor().spec();
    if (!spec.stable) {
      // Rows with equal keys come in any order; those of a limit may be other ones.
      if (spec.limit != 0) return;
      std::sort(lines.begin(), lines.end());
      std::sort(all.begin(), all.end());
    }
    EXPECT_TRUE(lines == all);
  }
  EXPECT_EQ(budget->used_bytes(), 0u);
  EXPECT_LE(budget->peak_bytes(), limits.bytes);
}

// Rows of another thread may leave between a refusal and the look at them, so that one without rows is told to try
// again, though not for ever.
TEST(SpilledSort, AThreadThatFindsNoRowsTriesAgain) {
  const auto budget = std::make_shared<MemoryBudget>(1 << 20);
  const auto sort = SortOf("sort keys=utf8", {.budget = budget});
  sort->SetSpill(TestContext(budget, SystemFileCalls(), Limits().settings));
  Appender first(sort), second(sort);
  const absl::Status refused = absl::ResourceExhaustedError("no memory for a batch");
  EXPECT_EQ(first.FreeMemory(refused), absl::OkStatus());
  absl::Status last;
  for (int tries = 0; tries < 100 && last.ok(); ++tries) last = first.FreeMemory(refused);
  EXPECT_EQ(last, refused);
  const std::vector<BatchView> batches = RandomBatches("sort keys=utf8", 1);
  ASSERT_EQ(second.Append(batches[0]), absl::OkStatus());
  EXPECT_EQ(first.FreeMemory(refused), absl::OkStatus());  // they leave
  EXPECT_EQ(sort->spill()->stats().written_rows, kBatchRows);
}

TEST(SpilledSort, EqualsTheSortInMemory) {
  for (const char* text : {
           "sort keys=i64:out payload=rowid stable",
           "sort keys=i64 payload=rowid stable",
           "sort keys=i64:out",
           "sort keys=i64:desc:nulls_first:nullable payload=i64,rowid stable",
           "sort keys=i64:nullable:out:nulls_first payload=i64:nullable,bool,utf8:nullable stable",
           "sort keys=f64:out:nullable payload=rowid stable",
           "sort keys=f64:desc payload=rowid stable",
           "sort keys=f64:out,i64:out payload=i64",
           "sort keys=utf8:out payload=rowid stable",
           "sort keys=utf8:nullable payload=rowid stable",
           "sort keys=utf8:out,i64",
           "sort keys=utf8(utf8mb4_general_ci) payload=utf8,rowid stable",
           "sort keys=utf8(utf8mb4_general_ci):out:desc,i64 payload=rowid stable",
           "sort keys=dictionary(u8,utf8):out,i64 payload=dictionary(u8,utf8),rowid stable",
           "sort keys=dictionary(u8,utf8):nullable:desc,i64:out stable",
           "sort keys=fixed_binary(5),i64:desc payload=fixed_binary(3),rowid stable",
           "sort keys=fixed_binary(13):desc:nullable payload=fixed_binary(13) stable",
           "sort keys=fixed_binary(20) payload=fixed_binary(20),rowid stable",
           "sort keys=bool,utf8:desc,f64,i64:out payload=utf8,f64,rowid stable",
           "sort keys=i64:out payload=utf8 stable",
           "sort keys=large_utf8:out payload=bool stable",
       }) {
    for (const bool divides : {true, false}) {
      ExpectSameRows(text, 14, {.divides = divides});
      ExpectSameRows(text, 28, {.bytes = 2 << 20, .threads = 3, .divides = divides});
    }
  }
}

}  // namespace
}  // namespace quern::test
