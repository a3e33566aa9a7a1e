// SPDX-License-Identifier: Apache-2.0
// Aggregations whose groups exceed their memory, in the generic kernel: the same groups as without a limit, however
// small the budget, in every way of reading them; and every fault of a file.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/aggregate/hash_aggregate.h"
#include "runtime/aggregate/set_operation.h"
#include "runtime/aggregate/spilled_groups.h"
#include "runtime/spill/budget_with_reserve.h"
#include "runtime/spill/spill_context.h"
#include "test/unit/runtime/aggregate/group_rows.h"
#include "test/unit/runtime/spill/spill_test_rows.h"

namespace quern {
namespace {

using test::AddLines;
using test::BoolColumn;
using test::ColumnPtr;
using test::DictionaryColumn;
using test::GroupsOf;
using test::Lines;
using test::NumberColumn;
using test::Rows;
using test::ShapeOf;
using test::ShareOf;
using test::StringColumn;
using test::WithNulls;

constexpr uint64_t kKiB = 1 << 10;
constexpr uint32_t kBatchRows = 3000, kBatches = 6;
constexpr uint64_t kSpread = 1000003;  // keys that are no dense range
const SpillSettings kSmall = {4, 4096, 2, 192 << 10};

struct Limits {
  uint64_t memory = 0;  // 0: no limit, and nothing is spilled
  uint32_t threads = 1;
  SpillSettings settings = kSmall;
  bool by_account = false;  // the host's, instead of a limit
};

// A host's account.
struct Account {
  static constexpr int64_t kNever = -100, kRefused = 3;
  std::mutex mutex;
  uint64_t left;
  int64_t refuses_after = kNever;  // refuses some requests after so many
  MemoryAccount functions() {
    return {[](void* host, uint64_t bytes) {
              auto* const account = static_cast<Account*>(host);
              const std::lock_guard<std::mutex> lock(account->mutex);
              if (bytes > account->left) return false;
              if (account->refuses_after > -kRefused && account->refuses_after-- <= 0) return false;
              account->left -= bytes;
              return true;
            },
            [](void* host, uint64_t bytes) {
              auto* const account = static_cast<Account*>(host);
              const std::lock_guard<std::mutex> lock(account->mutex);
              account->left += bytes;
            },
            this};
  }
};

// What the keys and arguments of a spec are made of: batch b of kBatches. Keys are num_keys numbers in an order that
// looks random.
using MakeBatch = BatchView (*)(uint32_t b);

std::vector<int64_t> Numbers(uint32_t b, uint32_t num_keys) {
  std::vector<int64_t> numbers;
  for (uint32_t i = 0; i < kBatchRows; ++i)
    numbers.push_back(static_cast<int64_t>((b * kBatchRows + i) * uint64_t{2654435761} % num_keys * kSpread));
  return numbers;
}

std::vector<std::string> Texts(const std::vector<int64_t>& numbers, const char* before) {
  std::vector<std::string> texts;
  for (const int64_t number : numbers) texts.push_back(before + std::to_string(number));
  return texts;
}

std::vector<bool> Valid(const std::vector<int64_t>& numbers, int64_t divisor) {
  std::vector<bool> valid;
  for (const int64_t number : numbers) valid.push_back(number / static_cast<int64_t>(kSpread) % divisor != 1);
  return valid;
}

std::shared_ptr<HashAggregate> NewAggregate(const std::string& spec, const std::shared_ptr<MemoryBudget>& budget,
                                            const std::shared_ptr<SpillContext>& spill,
                                            const AggregateOptions& options = {}) {
  auto aggregate = std::make_shared<HashAggregate>(ShapeOf(spec), GenericAggregateKernel(), nullptr, budget, options);
  aggregate->SetSpill(spill);
  return aggregate;
}

absl::Status AppendRows(const std::shared_ptr<HashAggregate>& aggregate, MakeBatch make, uint32_t threads) {
  if (threads == 1) {
    for (uint32_t b = 0; b < kBatches; ++b)
      if (const absl::Status status = aggregate->Append(make(b)); !status.ok()) return status;
    return absl::OkStatus();
  }
  std::vector<absl::Status> statuses(threads);
  std::vector<std::thread> running;
  for (uint32_t t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      Appender appender(aggregate);
      for (uint32_t b = t; b < kBatches && statuses[t].ok(); b += threads) {
        BatchView batch = make(b);
        batch.first_row_id = uint64_t{b} * kBatchRows;
        statuses[t] = appender.Append(batch);
      }
      if (statuses[t].ok()) statuses[t] = appender.Finish();
    });
  }
  for (std::thread& thread : running) thread.join();
  for (const absl::Status& status : statuses)
    if (!status.ok()) return status;
  return absl::OkStatus();
}

absl::Status AppendAll(const std::shared_ptr<HashAggregate>& aggregate, MakeBatch make, uint32_t threads) {
  absl::Status status = AppendRows(aggregate, make, threads);
  return status.ok() ? aggregate->Finalise() : status;
}

Lines Unlimited(const std::string& spec, MakeBatch make) {
  auto aggregate = NewAggregate(spec, std::make_shared<MemoryBudget>(), nullptr);
  EXPECT_EQ(AppendAll(aggregate, make, 1), absl::OkStatus());
  return ShareOf(aggregate, 0, 1, 1000);
}

// The groups under limits, and whether some were written.
Lines Limited(const std::string& spec, MakeBatch make, const Limits& limits, bool* has_spilled) {
  Account account{{}, limits.memory};
  const auto budget = limits.by_account ? std::make_shared<MemoryBudget>(0, account.functions())
                                        : std::make_shared<MemoryBudget>(limits.memory);
  Lines lines;
  {
    const auto spill = TestContext(budget, SystemFileCalls(), limits.settings);
    auto aggregate = NewAggregate(spec, budget, spill);
    EXPECT_EQ(AppendAll(aggregate, make, limits.threads), absl::OkStatus()) << spec << " " << limits.memory;
    lines = ShareOf(aggregate, 0, 1, 1000);
    *has_spilled = spill->stats().written_blocks != 0;
    EXPECT_LE(budget->peak_bytes(), limits.memory);
  }
  EXPECT_EQ(budget->used_bytes(), 0);
  return lines;
}

void ExpectSame(const std::string& spec, MakeBatch make, uint64_t smallest = 400 * kKiB) {
  const Lines expected = Unlimited(spec, make);
  bool has_spilled = false;
  for (const uint32_t threads : {1u, 3u}) {
    for (const uint64_t memory : {smallest * threads, 2 * smallest * threads, uint64_t{1} << 30}) {
      EXPECT_EQ(Limited(spec, make, {memory, threads}, &has_spilled), expected) << spec << " " << memory;
      EXPECT_EQ(has_spilled, memory < (uint64_t{1} << 30)) << spec << " " << memory << " " << threads;
    }
  }
  EXPECT_EQ(Limited(spec, make, {2 * smallest, 1, kSmall, true}, &has_spilled), expected) << spec;
}

BatchView SumRows(uint32_t b) {
  return Rows(kBatchRows, {NumberColumn(Numbers(b, 15013))}, {NumberColumn(Numbers(b, 977))});
}
constexpr const char* kSum = "aggregate keys=i64 aggs=sum(i64)";

// ---- kinds of keys and aggregates ----

TEST(SpillingAggregate, Integers) {
  ExpectSame("aggregate keys=i64 aggs=count_star,sum(i64),min(i64),avg(i64),last(i64)", [](uint32_t b) {
    const ColumnPtr values = NumberColumn(Numbers(b, 977));
    return Rows(kBatchRows, {NumberColumn(Numbers(b, 15013))}, {values, values, values, values});
  });
}

// Rows of which nearly each is a group are written without a table; then many rows have few groups, for which a table
// is tried again.
TEST(SpillingAggregate, RowsThatAreGroupsAndThenAreNot) {
  ExpectSame("aggregate keys=i64 aggs=count_star,sum(i64):filter,min(f64),first(i64),last(i64)", [](uint32_t b) {
    std::mt19937_64 random(b);
    std::vector<int64_t> keys(kBatchRows);
    std::vector<double> floats(kBatchRows);
    for (uint32_t i = 0; i < kBatchRows; ++i) {
      keys[i] = static_cast<int64_t>(b < kBatches / 2 ? random() : random() % 5 * kSpread);
      floats[i] = static_cast<double>(i) / 8;
    }
    const ColumnPtr values = NumberColumn(Numbers(b, 977));
    return Rows(kBatchRows, {NumberColumn(keys)},
                {values, BoolColumn(Valid(keys, 3)), NumberColumn(floats), values, values});
  });
}

TEST(SpillingAggregate, TwoKeysWithNulls) {
  ExpectSame("aggregate keys=i64:nullable,i64 aggs=sum(i64):filter,count_star", [](uint32_t b) {
    const std::vector<int64_t> keys = Numbers(b, 15013);
    return Rows(kBatchRows, {WithNulls(NumberColumn(keys), Valid(keys, 7)), NumberColumn(keys)},
                {NumberColumn(keys), BoolColumn(Valid(keys, 3))});
  });
}

TEST(SpillingAggregate, Texts) {
  ExpectSame(
      "aggregate keys=utf8:nullable aggs=max(utf8),first(utf8),count_star",
      [](uint32_t b) {
        const std::vector<int64_t> keys = Numbers(b, 10009);
        const ColumnPtr texts = StringColumn(kVar32, Texts(keys, "a key that is longer than twelve bytes "));
        const ColumnPtr values = StringColumn(kVar32, Texts(Numbers(b, 1009), "some value "));
        return Rows(kBatchRows, {WithNulls(texts, Valid(keys, 5))}, {values, values});
      },
      900 * kKiB);
}

// Which of the equal texts a group shows is open: they are equal in all bytes here.
TEST(SpillingAggregate, CollatedTexts) {
  ExpectSame("aggregate keys=utf8(utf8mb4_general_ci) aggs=count_star,sum(i64)", [](uint32_t b) {
    const std::vector<int64_t> keys = Numbers(b, 10009);
    return Rows(kBatchRows, {StringColumn(kVar32, Texts(keys, "Key "))}, {NumberColumn(keys)});
  });
}

// Two dictionaries, whose numbers make a word, with 125 values each; those of a batch have an order of their own.
ColumnPtr DictionaryOf(uint32_t b, const std::vector<int64_t>& keys, int64_t divisor) {
  constexpr int64_t kValues = 125;
  std::vector<std::string> values(kValues);
  std::vector<uint8_t> indices;
  for (int64_t v = 0; v < kValues; ++v) values[(v + b) % kValues] = "the value " + std::to_string(v);
  for (const int64_t key : keys)
    indices.push_back(static_cast<uint8_t>((key / static_cast<int64_t>(kSpread) / divisor % kValues + b) % kValues));
  return DictionaryColumn(indices, StringColumn(kVar32, values));
}

TEST(SpillingAggregate, DictionaryKeys) {
  ExpectSame(
      "aggregate keys=dictionary(u8,utf8):nullable,dictionary(u8,utf8) aggs=count_star,sum(i64)", [](uint32_t b) {
        const std::vector<int64_t> keys = Numbers(b, 15013);
        return Rows(kBatchRows, {WithNulls(DictionaryOf(b, keys, 1), Valid(keys, 7)), DictionaryOf(b + 1, keys, 125)},
                    {NumberColumn(Numbers(b, 977))});
      });
}

// Some 15,000 values, which take several times the limit; each batch has its own dictionary, in falling order.
ColumnPtr DictionaryOfManyValues(uint32_t b) {
  std::vector<uint16_t> indices(kBatchRows);
  for (uint32_t i = 0; i < kBatchRows; ++i) indices[i] = static_cast<uint16_t>(kBatchRows - 1 - i);
  std::vector<std::string> values = Texts(Numbers(b, 15013), "a value of a dictionary ");
  std::reverse(values.begin(), values.end());
  return DictionaryColumn(indices, StringColumn(kVar32, values));
}

TEST(SpillingAggregate, DictionariesOfManyValues) {
  ExpectSame("aggregate keys=dictionary(u16,utf8) aggs=count_star,sum(i64)",
             [](uint32_t b) { return Rows(kBatchRows, {DictionaryOfManyValues(b)}, {NumberColumn(Numbers(b, 977))}); });
}

TEST(SpillingAggregate, DictionariesOfManyValuesBesideOthers) {
  ExpectSame("aggregate keys=dictionary(u16,utf8(utf8mb4_general_ci)):nullable,i64 aggs=sum(i64)", [](uint32_t b) {
    const ColumnPtr values = WithNulls(DictionaryOfManyValues(b), Valid(Numbers(b, 15013), 7));
    return Rows(kBatchRows, {values, NumberColumn(Numbers(b, 3))}, {NumberColumn(Numbers(b, 977))});
  });
}

TEST(SpillingAggregate, DictionaryKeysBesideOthers) {
  ExpectSame(
      "aggregate keys=dictionary(u8,utf8(utf8mb4_bin)),utf8,dictionary(u8,utf8(utf8mb4_general_ci)) "
      "aggs=count_star,max(utf8)",
      [](uint32_t b) {
        const std::vector<int64_t> keys = Numbers(b, 10009);
        const ColumnPtr texts = StringColumn(kVar32, Texts(keys, "a key that is longer than twelve bytes "));
        const ColumnPtr values = StringColumn(kVar32, Texts(Numbers(b, 1009), "some value "));
        return Rows(kBatchRows, {DictionaryOf(b, keys, 1), texts, DictionaryOf(b + 1, keys, 125)}, {values});
      },
      900 * kKiB);
}

TEST(SpillingAggregate, StatesOutOfLine) {
  ExpectSame(
      "aggregate keys=i64 aggs=count_distinct(i64),quantile(i64,0.5),string_agg(utf8,x'2c')",
      [](uint32_t b) {
        return Rows(kBatchRows, {NumberColumn(Numbers(b, 15013))},
                    {NumberColumn(Numbers(b, 61)), NumberColumn(Numbers(b, 977)),
                     StringColumn(kVar32, Texts(Numbers(b, 31), "s"))});
      },
      2500 * kKiB);
}

// A block of rows is so small that the reserve has room for all that it adds.
TEST(SpillingAggregate, LongStates) {
  const MakeBatch make = [](uint32_t b) {
    const ColumnPtr texts = StringColumn(kVar32, Texts(Numbers(b, 977), std::string(1000, 'x').c_str()));
    return Rows(kBatchRows, {NumberColumn(Numbers(b, 5003))}, {texts, texts});
  };
  ExpectSame("aggregate keys=i64 aggs=min(utf8),max(utf8)", make, 2000 * kKiB);
}

TEST(SpillingAggregate, MoreGroupsAreExpectedThanFit) {
  AggregateOptions options;
  options.expected_groups = 10'000'000;
  const auto budget = std::make_shared<MemoryBudget>(900 * kKiB);
  auto aggregate = NewAggregate(kSum, budget, TestContext(budget, SystemFileCalls(), kSmall), options);
  ASSERT_EQ(AppendAll(aggregate, SumRows, 1), absl::OkStatus());
  EXPECT_EQ(ShareOf(aggregate, 0, 1, 1000), Unlimited(kSum, SumRows));
}

TEST(SpillingAggregate, TablesOfExpectedGroupsLeaveRoomForResults) {
  AggregateOptions options;
  options.expected_groups = 10'000'000;
  for (const GroupLayout layout : {GroupLayout::kAuto, GroupLayout::kOpen, GroupLayout::kDirectory}) {
    options.layout = layout;
    const auto budget = std::make_shared<MemoryBudget>(32 << 20);
    const auto spill = TestContext(budget, SystemFileCalls(), kSmall);
    auto aggregate = NewAggregate("aggregate keys=i64,i32 aggs=sum(i64)", budget, spill, options);
    const ColumnPtr values = NumberColumn(std::vector<int64_t>{5, kSpread, 5});
    ASSERT_EQ(aggregate->Append(Rows(3, {values, NumberColumn(std::vector<int32_t>{1, 2, 1})}, {values})),
              absl::OkStatus());
    EXPECT_LE(budget->used_bytes(), budget->limit_bytes() / 2);
    ASSERT_EQ(aggregate->Finalise(), absl::OkStatus());
    EXPECT_EQ(ShareOf(aggregate, 0, 1, 10).size(), 2);
  }
}

// ---- groups of more values than memory has room for ----

constexpr uint32_t kManyRows = 30000;

// Rows of which nearly all have key 7 have 180,000 different values together, and nulls.
BatchView ManyValues(uint32_t b) {
  std::vector<int64_t> keys, values, few;
  std::vector<double> floats;
  for (uint32_t i = 0; i < kManyRows; ++i) {
    const uint64_t n = (b * kManyRows + i) * uint64_t{2654435761} % 200003;
    keys.push_back(i % 50 == 0 ? static_cast<int64_t>(n % 300) : 7);
    values.push_back(static_cast<int64_t>(n * kSpread) - 100000);
    few.push_back(static_cast<int64_t>(n % 9));
    floats.push_back(static_cast<double>(n) / 64 - 1000);
  }
  std::vector<std::string> texts = Texts(values, "a text of some length ");
  return Rows(kManyRows, {NumberColumn(keys)},
              {WithNulls(NumberColumn(values), Valid(values, 1000)), NumberColumn(floats), StringColumn(kVar32, texts),
               NumberColumn(few)});
}

BatchView ManyValuesWithoutKeys(uint32_t b) {
  BatchView rows = ManyValues(b);
  rows.keys.clear();
  return rows;
}

TEST(SpillingAggregate, GroupsOfManyValues) {
  const std::string of = "i64:nullable,f64,utf8,i64 ";
  const std::string aggregates[] = {
      "count_distinct($0),sum($0),median($1),sum_distinct($0)",
      "count_distinct($2),min($2),quantile($1,0.999),count_star",
      "quantile($1,0),count_distinct($3),median($0),approx_count_distinct($0)",
  };
  for (const std::string& aggs : aggregates) {
    for (const bool has_keys : {false, true}) {
      const std::string spec = "aggregate " + std::string(has_keys ? "keys=i64 " : "") + "in=" + of + "aggs=" + aggs;
      const MakeBatch make = has_keys ? ManyValues : ManyValuesWithoutKeys;
      const Lines expected = Unlimited(spec, make);
      bool has_spilled = false;
      for (const uint32_t threads : {1u, 3u}) {
        for (const uint64_t memory : {1300 * kKiB, 2500 * kKiB}) {
          EXPECT_EQ(Limited(spec, make, {memory, threads}, &has_spilled), expected) << spec << " " << memory;
          EXPECT_TRUE(has_spilled) << spec << " " << memory << " " << threads;
        }
      }
      EXPECT_EQ(Limited(spec, make, {uint64_t{1} << 30, 3}, &has_spilled), expected) << spec;
      EXPECT_FALSE(has_spilled);
      EXPECT_EQ(Limited(spec, make, {2500 * kKiB, 1, kSmall, true}, &has_spilled), expected) << spec;
    }
  }
}

// ---- merging ----

// Refuses three requests of finalising, one later each time. Where less memory does not do, all groups are written
// then, and none is lost or counted twice.
void ExpectMergesThatAreRefused(const std::string& spec, MakeBatch make, const AggregateOptions& options) {
  const Lines expected = Unlimited(spec, make);
  bool was_refused = true;
  uint32_t num_spilled = 0;
  for (int64_t number = 0; was_refused; number += number < 10 ? 1 : 11) {
    Account account{{}, uint64_t{1} << 30};
    const auto budget = std::make_shared<MemoryBudget>(0, account.functions());
    const auto spill = TestContext(budget, SystemFileCalls(), kSmall);
    auto aggregate = NewAggregate(spec, budget, spill, options);
    ASSERT_EQ(AppendRows(aggregate, make, 3), absl::OkStatus());
    ASSERT_EQ(spill->stats().written_blocks, 0);
    account.refuses_after = number;
    ASSERT_EQ(aggregate->Finalise(), absl::OkStatus()) << number;
    was_refused = account.refuses_after < 0;
    account.refuses_after = Account::kNever;
    EXPECT_EQ(ShareOf(aggregate, 0, 1, 1000), expected) << number;
    num_spilled += spill->stats().written_blocks != 0 ? 1 : 0;
  }
  EXPECT_GE(num_spilled, 2);  // by the first request, which asks whether all fit, and in the midst of merging
}

TEST(SpillingAggregate, FewGroupsThatAreRefusedMemoryWhileTheyAreMerged) {
  const MakeBatch make = [](uint32_t b) {
    return Rows(kBatchRows, {NumberColumn(Numbers(b, 15013))},
                {NumberColumn(Numbers(b, 61)), StringColumn(kVar32, Texts(Numbers(b, 977), "a value of some length"))});
  };
  ExpectMergesThatAreRefused("aggregate keys=i64 aggs=count_distinct(i64),max(utf8)", make, {});
}

TEST(SpillingAggregate, PartitionsThatAreRefusedMemoryWhileTheyAreMerged) {
  AggregateOptions options;
  options.local_groups = 1000;
  options.partition_bits = 3;
  const MakeBatch make = [](uint32_t b) {
    const std::vector<int64_t> keys = Numbers(b, 15013);
    return Rows(kBatchRows, {StringColumn(kVar32, Texts(keys, "a key that is longer than twelve bytes "))},
                {NumberColumn(Numbers(b, 61))});
  };
  ExpectMergesThatAreRefused("aggregate keys=utf8 aggs=count_distinct(i64)", make, options);
}

// ---- levels ----

TEST(SpillingAggregate, PartitionsAreDividedAgain) {
  const MakeBatch make = [](uint32_t b) {
    return Rows(kBatchRows, {NumberColumn(Numbers(b, 15013))}, {NumberColumn(Numbers(b, 977))});
  };
  const std::string spec = "aggregate keys=i64 aggs=sum(i64)";
  const auto budget = std::make_shared<MemoryBudget>(700 * kKiB);
  const auto spill = TestContext(budget, SystemFileCalls(), {2, 4096, 1, 64 << 10});
  auto aggregate = NewAggregate(spec, budget, spill);
  ASSERT_EQ(AppendAll(aggregate, make, 1), absl::OkStatus());
  EXPECT_EQ(ShareOf(aggregate, 0, 1, 1000), Unlimited(spec, make));
  EXPECT_GE(spill->stats().max_level, 1);
}

// ---- ways of reading ----

TEST(SpillingAggregate, SharesByPartition) {
  const Lines expected = Unlimited(kSum, SumRows);
  for (const uint32_t num_partitions : {2u, 3u, 7u, 16u}) {
    const auto budget = std::make_shared<MemoryBudget>(900 * kKiB);
    auto aggregate = NewAggregate(kSum, budget, TestContext(budget, SystemFileCalls(), kSmall));
    ASSERT_EQ(AppendAll(aggregate, SumRows, 1), absl::OkStatus());
    EXPECT_STREQ(aggregate->stats().layout, "spilled");
    Lines all;
    for (uint32_t p = 0; p < num_partitions; ++p) {
      const Lines share = ShareOf(aggregate, p, num_partitions, 1000);
      all.insert(all.end(), share.begin(), share.end());
    }
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, expected) << num_partitions;
  }
}

TEST(SpillingAggregate, ReadersOnThreadsShareTheGroups) {
  const auto budget = std::make_shared<MemoryBudget>(1800 * kKiB);
  auto aggregate = NewAggregate(kSum, budget, TestContext(budget, SystemFileCalls(), kSmall));
  ASSERT_EQ(AppendAll(aggregate, SumRows, 3), absl::OkStatus());
  std::vector<Lines> lines(3);
  std::vector<std::thread> threads;
  for (Lines& of_one : lines) threads.emplace_back([&] { of_one = ShareOf(aggregate, 0, 1, 500); });
  for (std::thread& thread : threads) thread.join();
  Lines all;
  for (const Lines& of_one : lines) all.insert(all.end(), of_one.begin(), of_one.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, Unlimited(kSum, SumRows));
}

// Readers of one thread that take turns: each has a partition in memory while the others read.
TEST(SpillingAggregate, ManyReadersTakeTurns) {
  const MakeBatch make = [](uint32_t b) {
    return Rows(kBatchRows, {NumberColumn(Numbers(b, 1 << 20))}, {NumberColumn(Numbers(b, 977))});
  };
  const Lines expected = Unlimited(kSum, make);
  const SpillSettings settings = {.num_partitions = 16, .block_bytes = 4096, .read_depth = 1, .io_bytes = 128 << 10};
  for (const uint64_t memory : {400 * kKiB, 600 * kKiB, 800 * kKiB}) {
    const auto budget = std::make_shared<MemoryBudget>(memory);
    auto aggregate = NewAggregate(kSum, budget, TestContext(budget, SystemFileCalls(), settings));
    ASSERT_EQ(AppendAll(aggregate, make, 1), absl::OkStatus());
    ASSERT_STREQ(aggregate->stats().layout, "spilled") << memory;
    std::vector<std::unique_ptr<GroupReader>> readers(24);
    for (auto& reader : readers) reader = std::make_unique<GroupReader>(aggregate);
    OutputBatch out(AggregateOutputTypes(aggregate->descriptor().spec()), 100, std::make_shared<MemoryBudget>());
    Lines all;
    for (size_t num_left = readers.size(); num_left != 0;) {
      for (auto& reader : readers) {
        if (reader == nullptr) continue;
        const absl::StatusOr<bool> more = reader->Next(&out);
        ASSERT_TRUE(more.ok()) << more.status() << " " << memory;
        AddLines(out, &all);
        if (*more) continue;
        reader.reset();
        --num_left;
      }
    }
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, expected) << memory;
  }
}

// A partition that finds no memory at all while it is divided again is written with what is in reserve for that.
TEST(SpillingAggregate, TuplesThatFindNoBlockAreWrittenFromTheReserve) {
  constexpr uint32_t kTuples = 40'000, kSome = 1000;
  constexpr uint64_t kMemory = 1024 * kKiB;
  const std::shared_ptr<const AggregateDescriptor> descriptor = ShapeOf(kSum);
  const auto budget = std::make_shared<MemoryBudget>(kMemory);
  const auto spill = TestContext(budget, SystemFileCalls(), {16, 4096, 1, 128 << 10});
  ASSERT_EQ(spill->SetMemoryAside(), absl::OkStatus());
  BudgetWithReserve io(spill->io_budget());
  io.Open();
  const SpilledGroups whole(descriptor, spill, {}, spill->io_budget());
  ASSERT_EQ(io.GrowBy(whole.WriterBytes()), absl::OkStatus());
  // Others have all the rest, also of what is set aside.
  const uint64_t of_others = kMemory - whole.WriterBytes();
  ASSERT_EQ(spill->io_budget()->Reserve(of_others), absl::OkStatus());
  ASSERT_EQ(budget->used_bytes(), kMemory);
  uint64_t num_read = 0;
  {
    SpilledGroups part(descriptor, spill, {1, 3}, io.budget());
    std::unique_ptr<TupleBlocks> blocks = part.NewBlocks(0, budget);
    const uint64_t tuple_bytes = descriptor->group()->tuple_bytes;
    std::vector<uint8_t> bytes(kSome * tuple_bytes);
    std::vector<uint8_t*> tuples;
    for (uint32_t i = 0; i < kSome; ++i) tuples.push_back(bytes.data() + i * tuple_bytes);
    std::vector<uint64_t> hashes(kSome);
    for (uint32_t done = 0; done < kTuples; done += kSome) {
      for (uint32_t i = 0; i < kSome; ++i) hashes[i] = (done + i) * 0x9e3779b97f4a7c15;
      ASSERT_EQ(blocks->Add(tuples.data(), hashes.data(), kSome), absl::OkStatus());
    }
    ASSERT_EQ(part.Keep(std::move(blocks), 0), absl::OkStatus());
    ASSERT_EQ(part.Finish(1, {}, *budget), absl::OkStatus());
    for (SpilledGroups::Taken taken = part.Take(0, 1, io.budget()); taken.rows != nullptr;
         taken = part.Take(0, 1, io.budget())) {
      BatchView rows;
      for (absl::StatusOr<bool> more = true; more.ok() && *more; num_read += rows.num_rows) {
        more = taken.rows->Next(&rows);
        ASSERT_TRUE(more.ok()) << more.status();
      }
    }
  }
  EXPECT_EQ(num_read, kTuples);
  spill->io_budget()->Release(of_others);
}

// The number of groups of kSum, and a digest of their rows.
std::pair<uint64_t, uint64_t> DigestOf(const std::shared_ptr<HashAggregate>& aggregate) {
  GroupReader reader(aggregate);
  OutputBatch out(AggregateOutputTypes(aggregate->descriptor().spec()), 1000, nullptr);
  std::pair<uint64_t, uint64_t> groups = {0, 0};
  for (bool more = true; more; groups.first += out.num_rows()) {
    const absl::StatusOr<bool> next = reader.Next(&out);
    EXPECT_TRUE(next.ok()) << next.status();
    more = next.ok() && *next;
    const auto* const keys = static_cast<const uint64_t*>(out.column(0).values);
    const auto* const sums = static_cast<const uint64_t*>(out.column(1).values);
    for (uint64_t i = 0; i < out.num_rows(); ++i) groups.second += (keys[i] + 1) * (sums[i] + 3);
  }
  return groups;
}

// Groups of a fixed size are written only as far as they do not fit, beside what is set aside and the tables of
// readers.
TEST(SpillingAggregate, WhatFitsStays) {
  constexpr uint32_t kManyBatches = 200;
  constexpr uint64_t kAllBytes = uint64_t{kManyBatches} * kBatchRows * 16;  // of tuples
  const auto groups_of = [](const std::shared_ptr<HashAggregate>& aggregate) {
    for (uint32_t b = 0; b < kManyBatches; ++b) {
      const BatchView rows = Rows(kBatchRows, {NumberColumn(Numbers(b, 1u << 30))}, {NumberColumn(Numbers(b, 977))});
      EXPECT_EQ(aggregate->Append(rows), absl::OkStatus());
    }
    EXPECT_EQ(aggregate->Finalise(), absl::OkStatus());
    return DigestOf(aggregate);
  };
  const auto expected = groups_of(NewAggregate(kSum, std::make_shared<MemoryBudget>(), nullptr));
  uint64_t written[3];
  for (const uint64_t thirds : {1, 2, 3}) {
    const auto budget = std::make_shared<MemoryBudget>(thirds * kAllBytes / 3);
    const auto spill = TestContext(budget, SystemFileCalls(), {64, 4 << 10, 1, 1 << 20});
    EXPECT_EQ(groups_of(NewAggregate(kSum, budget, spill)), expected) << thirds;
    EXPECT_EQ(spill->stats().max_level, 1) << thirds;
    written[thirds - 1] = spill->stats().row_bytes;
  }
  EXPECT_LT(written[0], kAllBytes * 19 / 20);
  EXPECT_LT(written[1], written[0] - kAllBytes / 6);
  EXPECT_LT(written[2], written[1] - kAllBytes / 6);
}

// Two threads divide rows in memory, and are refused memory within a batch: each row counts once.
TEST(SpillingAggregate, RowsThatAreDividedWhenMemoryEnds) {
  constexpr uint32_t kManyRows = 400'000, kFewRows = 500;
  AggregateOptions options;
  options.local_groups = 1;
  options.partition_bits = 3;
  const auto rows_of = [](uint64_t seed, uint32_t n) {
    std::vector<int64_t> keys(n), values(n);
    for (uint32_t i = 0; i < n; ++i) {
      keys[i] = static_cast<int64_t>((seed * kManyRows + i) * 0x9e3779b97f4a7c15 >> 20);
      values[i] = static_cast<int64_t>(seed + i);
    }
    return Rows(n, {NumberColumn(keys)}, {NumberColumn(values)});
  };
  const auto spilled = [&](const std::shared_ptr<MemoryBudget>& budget, const std::shared_ptr<SpillContext>& spill) {
    auto aggregate = NewAggregate(kSum, budget, spill, options);
    Appender first(aggregate), second(aggregate);
    for (const uint32_t n : {kFewRows, kManyRows}) {
      EXPECT_EQ(first.Append(rows_of(n, n)), absl::OkStatus());
      EXPECT_EQ(second.Append(rows_of(n + 1, n)), absl::OkStatus());
    }
    EXPECT_EQ(first.Finish(), absl::OkStatus());
    EXPECT_EQ(second.Finish(), absl::OkStatus());
    EXPECT_EQ(aggregate->Finalise(), absl::OkStatus());
    return DigestOf(aggregate);
  };
  const auto expected = spilled(std::make_shared<MemoryBudget>(), nullptr);
  for (const uint64_t memory : {4000 * kKiB, 6000 * kKiB, 8000 * kKiB}) {
    const auto budget = std::make_shared<MemoryBudget>(memory);
    const auto spill = TestContext(budget, SystemFileCalls(), {16, 8 << 10, 1, 512 << 10});
    EXPECT_EQ(spilled(budget, spill), expected) << memory;
    EXPECT_NE(spill->stats().written_blocks, 0) << memory;
  }
}

// Results of groups in memory end where their strings find no room.
TEST(SpillingAggregate, ResultsOfTextsTakeWhatIsLeft) {
  constexpr uint64_t kRoom = 300 * kKiB, kCapacity = 5000;
  const char* const spec = "aggregate keys=i64:nullable aggs=min(utf8),last(utf8)";
  const MakeBatch make = [](uint32_t b) {
    const ColumnPtr texts = StringColumn(kVar32, Texts(Numbers(b, 977), std::string(150, 'x').c_str()));
    const std::vector<int64_t> keys = Numbers(b, 4001);
    return Rows(kBatchRows, {WithNulls(NumberColumn(keys), Valid(keys, 11))}, {texts, texts});
  };
  const auto others = std::make_shared<MemoryBudget>();
  auto aggregate = NewAggregate(spec, others, nullptr);
  ASSERT_EQ(AppendAll(aggregate, make, 1), absl::OkStatus());
  const auto budget = std::make_shared<MemoryBudget>(kRoom);
  OutputBatch out(AggregateOutputTypes(aggregate->descriptor().spec()), kCapacity, budget);
  GroupReader reader(aggregate);
  Lines lines;
  uint32_t num_batches = 0;
  for (bool more = true; more; ++num_batches) {
    const absl::StatusOr<bool> next = reader.Next(&out);
    ASSERT_TRUE(next.ok()) << next.status();
    AddLines(out, &lines);
    more = *next;
  }
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(lines, Unlimited(spec, make));
  EXPECT_GT(num_batches, 4);
}

// Partitions of a thread that has few groups yet leave most of a limit to others.
TEST(SpillingAggregate, PartitionsOfFewGroupsTakeLittle) {
  AggregateOptions options;
  options.local_groups = 1;
  const MakeBatch make = [](uint32_t b) {
    std::vector<std::string> values = Texts(Numbers(0, 200), "a value of a dictionary ");
    values.resize(200);
    std::vector<uint8_t> indices(kBatchRows);
    for (uint32_t i = 0; i < kBatchRows; ++i) indices[i] = static_cast<uint8_t>((b + i) % 200);
    return Rows(kBatchRows, {DictionaryColumn(indices, StringColumn(kVar32, values)), NumberColumn(Numbers(b, 15013))},
                {NumberColumn(Numbers(b, 977))});
  };
  const char* const spec = "aggregate keys=dictionary(u8,utf8),i64 aggs=sum(i64)";  // which cannot be spilled
  const auto budget = std::make_shared<MemoryBudget>(8 << 20);
  auto aggregate = NewAggregate(spec, budget, nullptr, options);
  std::vector<std::unique_ptr<Appender>> appenders(kBatches);
  for (auto& appender : appenders) appender = std::make_unique<Appender>(aggregate);
  for (uint32_t b = 0; b < kBatches; ++b) {
    ASSERT_EQ(appenders[b]->Append(make(b)), absl::OkStatus());
    ASSERT_EQ(appenders[b]->Finish(), absl::OkStatus());
  }
  ASSERT_EQ(aggregate->Finalise(), absl::OkStatus());
  EXPECT_EQ(ShareOf(aggregate, 0, 1, 1000), Unlimited(spec, make));
}

TEST(SpillingAggregate, CountsAndStates) {
  const Lines expected = Unlimited(kSum, SumRows);
  const auto budget = std::make_shared<MemoryBudget>(900 * kKiB);
  for (const bool counts : {true, false}) {
    auto aggregate = NewAggregate(kSum, budget, TestContext(budget, SystemFileCalls(), kSmall));
    ASSERT_EQ(AppendAll(aggregate, SumRows, 1), absl::OkStatus());
    EXPECT_GE(aggregate->stats().num_groups, expected.size());
    if (counts) {
      OutputBatch out({}, 0, nullptr);
      GroupReader reader(aggregate);
      uint64_t num_rows = 0;
      for (bool more = true; more; num_rows += out.num_rows()) more = *reader.Next(&out);
      EXPECT_EQ(num_rows, expected.size());
      continue;
    }
    auto again = NewAggregate(kSum, std::make_shared<MemoryBudget>(), nullptr);
    OutputBatch out(AggregateStateTypes(aggregate->descriptor().spec()), 777, nullptr);
    GroupReader reader(aggregate, GroupColumns::kStates);
    for (bool more = true; more;) {
      more = *reader.Next(&out);
      BatchView states = ViewOf(out);
      states.payload.assign(states.keys.begin() + 1, states.keys.end());
      states.keys.resize(1);
      ASSERT_EQ(again->Append(states, RowKind::kStates), absl::OkStatus());
    }
    ASSERT_EQ(again->Finalise(), absl::OkStatus());
    EXPECT_EQ(ShareOf(again, 0, 1, 1000), expected);
  }
}

// ---- what ends it ----

TEST(SpillingAggregate, AStopEndsReading) {
  const auto budget = std::make_shared<MemoryBudget>(900 * kKiB);
  auto aggregate = NewAggregate(kSum, budget, TestContext(budget, SystemFileCalls(), kSmall));
  const auto stop = std::make_shared<StopFlag>(nullptr);
  aggregate->SetStopFlag(stop);
  ASSERT_EQ(AppendAll(aggregate, SumRows, 1), absl::OkStatus());
  stop->Stop();
  OutputBatch out(AggregateOutputTypes(aggregate->descriptor().spec()), 100, nullptr);
  EXPECT_TRUE(absl::IsCancelled(GroupReader(aggregate).Next(&out).status()));
}

TEST(SpillingAggregate, EveryFaultIsAnErrorOrChangesNothing) {
  const Lines expected = Unlimited(kSum, SumRows);
  for (const Fault fault : {Fault::kError, Fault::kOtherBytes}) {
    int num_errors = 0;
    for (int64_t fails_at = 0;; fails_at += 17) {
      FaultyCalls calls(fails_at, fault);
      const auto budget = std::make_shared<MemoryBudget>(500 * kKiB);
      {
        auto aggregate = NewAggregate(kSum, budget, TestContext(budget, &calls, kSmall));
        absl::Status status = AppendAll(aggregate, SumRows, 1);
        Lines lines;
        OutputBatch out(AggregateOutputTypes(aggregate->descriptor().spec()), 1000, nullptr);
        GroupReader reader(aggregate);
        for (bool more = status.ok(); more;) {
          const absl::StatusOr<bool> next = reader.Next(&out);
          status = next.status();
          more = next.ok() && *next;
          if (next.ok()) AddLines(out, &lines);
        }
        std::sort(lines.begin(), lines.end());
        if (status.ok()) {
          EXPECT_EQ(lines, expected);
        } else EXPECT_TRUE(absl::IsUnavailable(status) || absl::IsDataLoss(status)) << status;
        num_errors += status.ok() ? 0 : 1;
      }
      EXPECT_EQ(budget->used_bytes(), 0);
      EXPECT_EQ(calls.num_open, 0);
      if (calls.num_calls <= fails_at) break;
    }
    EXPECT_GT(num_errors, 0);
  }
}

}  // namespace
}  // namespace quern
