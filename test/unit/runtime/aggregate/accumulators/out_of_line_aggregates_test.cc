// SPDX-License-Identifier: Apache-2.0
// Properties of every out-of-line aggregate and type: merging and saving change no result, damaged bytes are rejected,
// and budgets are kept.
#include "runtime/aggregate/accumulators/out_of_line_aggregates.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "test/unit/runtime/aggregate/accumulators/accumulator_rows.h"
#include "test/unit/seed.h"

namespace quern::test {
namespace {

using Function = AggregateFunction;

constexpr uint32_t kNumGroups = 7;

std::vector<ColumnType> TypesFor(Function function) {
  const bool takes_all = function == Function::kCountDistinct || function == Function::kApproxCountDistinct;
  const bool takes_numbers = takes_all || function == Function::kSumDistinct || function == Function::kMedian ||
                             function == Function::kQuantile;
  std::vector<ColumnType> types;
  for (const TypeRow& row : AllTypes()) {
    const bool is_number = row.id >= TypeId::kI8 && row.id <= TypeId::kF64;
    const bool is_text = IsVariable(row.storage);
    if (row.storage == kRowId) continue;
    if (!takes_all && (takes_numbers ? !is_number : !is_text)) continue;
    types.push_back({.id = row.id, .width_bytes = row.storage == kFixed ? 11u : 0u});
    types.push_back(
        {.id = row.id, .is_dictionary = true, .index = TypeId::kI8, .width_bytes = row.storage == kFixed ? 11u : 0u});
    if (is_text && function != Function::kStringAgg) types.push_back(TypeOf(row.id, kCollationUtf8mb4Bin));
  }
  if (function == Function::kSumDistinct) types.push_back(TypeOf(TypeId::kDecimal128));
  if (!takes_numbers && function != Function::kStringAgg)
    types.push_back({.id = TypeId::kFixedBinary, .width_bytes = 11});
  return types;
}

// All except any, whose result depends on the order of merging.
std::vector<AggregateSpec> AllSpecs() {
  std::vector<AggregateSpec> specs;
  for (const Function function : {Function::kMin, Function::kMax, Function::kFirst, Function::kLast,
                                  Function::kCountDistinct, Function::kSumDistinct, Function::kMedian,
                                  Function::kQuantile, Function::kApproxCountDistinct, Function::kStringAgg})
    for (const ColumnType& type : TypesFor(function)) specs.push_back(SpecOf(function, type));
  return specs;
}

std::string TextOf(const AggregateSpec& spec) {
  return std::string(RowOf(spec.function).text) + " " + PrintType(spec.arguments[0]);
}

// Of strings that are equal under a collation, any one may be the result.
std::vector<std::string> Comparable(const AggregateSpec& spec, std::vector<std::string> results) {
  if (RuleOf(spec.arguments[0].collation) == 0 || spec.function == Function::kFirst || spec.function == Function::kLast)
    return results;
  for (std::string& s : results) s.erase(s.find_last_not_of(' ') + 1);
  return results;
}

TEST(OutOfLineAggregates, MergingThreadsEqualsOnePass) {
  std::mt19937_64 random = PrintedRandom();
  for (const AggregateSpec& spec : AllSpecs()) {
    SCOPED_TRACE(TextOf(spec));
    constexpr uint32_t kRows = 1300;
    const ColumnPtr column = RandomColumn(spec.arguments[0], kRows, &random);
    Groups whole(spec, kNumGroups), a(spec, kNumGroups), b(spec, kNumGroups), c(spec, kNumGroups);
    ASSERT_TRUE(whole.AddAll(*column, kRows).ok());
    std::vector<uint32_t> rows[3];
    for (uint32_t row = 0; row < kRows; ++row) rows[random() % 8 % 3].push_back(row);
    ASSERT_TRUE(a.Add(&column->column, rows[0]).ok());
    ASSERT_TRUE(b.Add(&column->column, rows[1]).ok());
    ASSERT_TRUE(c.Add(&column->column, rows[2]).ok());
    ASSERT_TRUE(b.Merge(&c).ok());
    ASSERT_TRUE(a.Merge(&b).ok());
    EXPECT_EQ(Comparable(spec, a.Results().value()), Comparable(spec, whole.Results().value()));
  }
}

TEST(OutOfLineAggregates, SavedStatesMergeLikeStates) {
  std::mt19937_64 random = PrintedRandom();
  for (const AggregateSpec& spec : AllSpecs()) {
    SCOPED_TRACE(TextOf(spec));
    const ColumnPtr column = RandomColumn(spec.arguments[0], 400, &random);
    Groups whole(spec, kNumGroups), a(spec, kNumGroups), b(spec, kNumGroups);
    ASSERT_TRUE(whole.AddAll(*column, 400).ok());
    for (uint32_t row = 0; row < 400; ++row) ASSERT_TRUE((row % 3 == 0 ? a : b).Add(&column->column, {row}).ok());
    for (uint32_t g = 0; g < kNumGroups; ++g) ASSERT_TRUE(a.MergeSaved(g, b.Saved(g)).ok());
    EXPECT_EQ(Comparable(spec, a.Results().value()), Comparable(spec, whole.Results().value()));
  }
}

TEST(OutOfLineAggregates, StatesWithoutValuesSaveAndMerge) {
  for (const AggregateSpec& spec : AllSpecs()) {
    SCOPED_TRACE(TextOf(spec));
    Groups a(spec, 1), b(spec, 1);
    ASSERT_TRUE(a.Merge(&b).ok());
    ASSERT_TRUE(a.MergeSaved(0, b.Saved(0)).ok());
    const bool counts = spec.function == Function::kCountDistinct || spec.function == Function::kApproxCountDistinct;
    EXPECT_EQ(a.Result(), counts ? "0" : "null");
  }
}

// Each copy has memory of exactly its own length, so that AddressSanitizer detects reads beyond it.
TEST(OutOfLineAggregates, BytesOfEveryOtherLengthAreRefused) {
  std::mt19937_64 random = PrintedRandom();
  for (const AggregateSpec& spec : AllSpecs()) {
    SCOPED_TRACE(TextOf(spec));
    const ColumnPtr column = RandomColumn(spec.arguments[0], 30, &random);
    Groups groups(spec, 1);
    ASSERT_TRUE(groups.AddAll(*column, 30).ok());
    const std::string saved = groups.Saved(0) + "x";
    for (size_t length = 0; length <= saved.size(); ++length) {
      const std::vector<char> bytes(saved.begin(), saved.begin() + static_cast<ptrdiff_t>(length));
      EXPECT_EQ(groups.MergeSaved(0, {bytes.data(), length}).ok(), length == saved.size() - 1) << length;
    }
  }
}

TEST(OutOfLineAggregates, ChangedBytesDoNoHarm) {
  std::mt19937_64 random = PrintedRandom();
  for (const AggregateSpec& spec : AllSpecs()) {
    SCOPED_TRACE(TextOf(spec));
    const ColumnPtr column = RandomColumn(spec.arguments[0], 12, &random);
    Groups groups(spec, 1);
    ASSERT_TRUE(groups.AddAll(*column, 12).ok());
    const std::string saved = groups.Saved(0);
    for (int round = 0; round < 200; ++round) {
      std::vector<char> bytes(saved.begin(), saved.end());
      for (uint64_t changes = 1 + random() % 3; changes > 0; --changes)
        bytes[random() % bytes.size()] = static_cast<char>(random());
      const absl::Status status = groups.MergeSaved(0, {bytes.data(), bytes.size()});
      EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status));
    }
    const absl::StatusOr<std::vector<std::string>> results = groups.Results();
    EXPECT_TRUE(results.ok() || absl::IsOutOfRange(results.status()));
  }
}

TEST(OutOfLineAggregates, NamesWhatIsDamaged) {
  Groups groups(SpecOf(Function::kCountDistinct, TypeOf(TypeId::kI64)), 1);
  const absl::Status status = groups.MergeSaved(0, "thirteen byte");
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(Message(status),
            "saved state of count_distinct(i64) is damaged: 13 bytes; accepted: bytes that this version wrote");
}

TEST(OutOfLineAggregates, AFixedBinaryOfAnotherWidthIsRefused) {
  const auto type_of_width = [](uint32_t width) {
    return ColumnType{.id = TypeId::kFixedBinary, .width_bytes = width};
  };
  for (const Function function : {Function::kMin, Function::kFirst, Function::kCountDistinct}) {
    Groups narrow(SpecOf(function, type_of_width(3)), 1), wide(SpecOf(function, type_of_width(40)), 1);
    ASSERT_TRUE(narrow.AddAll(*StringColumn(kFixed, {"abc"}), 1).ok());
    EXPECT_TRUE(absl::IsInvalidArgument(wide.MergeSaved(0, narrow.Saved(0))));
  }
}

TEST(OutOfLineAggregates, ABudgetEndsTheirGrowth) {
  std::mt19937_64 random = PrintedRandom();
  for (const Function function : {Function::kCountDistinct, Function::kMedian, Function::kApproxCountDistinct}) {
    SCOPED_TRACE(RowOf(function).text);
    std::vector<int64_t> values(40000);
    for (int64_t& value : values) value = static_cast<int64_t>(random());
    Groups groups(SpecOf(function, TypeOf(TypeId::kI64)), 40, std::make_shared<MemoryBudget>(100000));
    const absl::Status status = groups.AddAll(*NumberColumn(values), 40000);
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  }
  for (const Function function : {Function::kMax, Function::kStringAgg, Function::kCountDistinct}) {
    SCOPED_TRACE(RowOf(function).text);
    const std::vector<std::string> strings = {std::string(30000, 'a'), std::string(70000, 'b'),
                                              std::string(140000, 'c')};
    Groups groups(SpecOf(function, TypeOf(TypeId::kUtf8)), 1, std::make_shared<MemoryBudget>(100000));
    EXPECT_TRUE(absl::IsResourceExhausted(groups.AddAll(*StringColumn(kVar32, strings), 3)));
  }
}

TEST(OutOfLineAggregates, AreThoseThatAKernelDoesNotKnow) {
  const auto is_out_of_line = [](Function function, TypeId id) { return IsOutOfLine(SpecOf(function, TypeOf(id))); };
  for (const Function function : {Function::kMin, Function::kMax, Function::kAny, Function::kFirst, Function::kLast}) {
    for (const TypeId id : {TypeId::kUtf8, TypeId::kLargeBinary, TypeId::kUtf8View, TypeId::kFixedBinary})
      EXPECT_TRUE(is_out_of_line(function, id));
    for (const TypeId id : {TypeId::kBool, TypeId::kI64, TypeId::kF32, TypeId::kDecimal128})
      EXPECT_FALSE(is_out_of_line(function, id));
  }
  for (const Function function : {Function::kCountDistinct, Function::kSumDistinct, Function::kMedian,
                                  Function::kQuantile, Function::kApproxCountDistinct, Function::kHost})
    EXPECT_TRUE(is_out_of_line(function, TypeId::kI64));
  EXPECT_TRUE(is_out_of_line(Function::kStringAgg, TypeId::kUtf8));
  EXPECT_FALSE(IsOutOfLine(AggregateSpec()));
  EXPECT_FALSE(is_out_of_line(Function::kSum, TypeId::kI64));
}

TEST(OutOfLineAggregates, AreNotMadeForAKernelsOwn) {
  const absl::Status status = MakeOutOfLineAggregate(SpecOf(Function::kSum, TypeOf(TypeId::kI64))).status();
  EXPECT_EQ(Message(status),
            "aggregate that is part of the kernel: sum(i64); accepted: those kept up to date by calls");
}

// ---- memory
// ---------------------------------------------------------------------------------------------------------------------

TEST(AccumulatorMemory, PiecesArePowersOfTwo) {
  EXPECT_EQ(AccumulatorMemory::PieceBytes(0), 16u);
  EXPECT_EQ(AccumulatorMemory::PieceBytes(16), 16u);
  EXPECT_EQ(AccumulatorMemory::PieceBytes(17), 32u);
  EXPECT_EQ(AccumulatorMemory::PieceBytes(4096), 4096u);
}

TEST(AccumulatorMemory, ReusesWhatIsGivenBack) {
  AccumulatorMemory memory(nullptr);
  uint8_t* const a = memory.Take(20).value();
  uint8_t* const b = memory.Take(32).value();
  EXPECT_NE(a, b);
  memory.GiveBack(a, 20);
  memory.GiveBack(b, 32);
  EXPECT_EQ(memory.Take(17).value(), b);
  EXPECT_EQ(memory.Take(31).value(), a);
  EXPECT_NE(memory.Take(31).value(), a);
}

TEST(AccumulatorMemory, PiecesDoNotOverlap) {
  std::mt19937_64 random = PrintedRandom();
  AccumulatorMemory memory(nullptr);
  std::vector<std::vector<uint8_t>> expected;
  std::vector<uint8_t*> pieces;
  for (uint32_t i = 0; i < 2000; ++i) {
    const uint64_t bytes = AccumulatorMemory::PieceBytes(1 + random() % (i % 50 == 0 ? 5000 : 600));
    pieces.push_back(memory.Take(bytes).value());
    EXPECT_EQ(reinterpret_cast<uint64_t>(pieces.back()) % 16, 0u);
    expected.emplace_back(bytes, static_cast<uint8_t>(random()));
    std::memcpy(pieces.back(), expected.back().data(), bytes);
    if (i % 3 != 0) continue;
    memory.GiveBack(pieces.back(), bytes);
    pieces.pop_back();
    expected.pop_back();
  }
  for (size_t i = 0; i < pieces.size(); ++i)
    EXPECT_EQ(std::memcmp(pieces[i], expected[i].data(), expected[i].size()), 0);
}

// A chunk has 4096 bytes: 16 and three times 1024 leave 1008 = 512 + 256 + 128 + 64 + 32 + 16.
TEST(AccumulatorMemory, UsesTheRestOfAChunk) {
  AccumulatorMemory memory(nullptr);
  uint8_t* const chunk = memory.Take(16).value();
  const auto lies_in_chunk = [begin = reinterpret_cast<uintptr_t>(chunk)](const uint8_t* piece) {
    return reinterpret_cast<uintptr_t>(piece) - begin < 4096;
  };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(memory.Take(1024).value(), chunk + 16 + 1024 * i);
  EXPECT_FALSE(lies_in_chunk(memory.Take(1024).value()));
  for (const uint64_t bytes : {16, 32, 64, 128, 256, 512})
    EXPECT_TRUE(lies_in_chunk(memory.Take(bytes).value())) << bytes;
  EXPECT_FALSE(lies_in_chunk(memory.Take(16).value()));
}

TEST(AccumulatorMemory, RefusesWhatNoMachineHas) {
  AccumulatorMemory memory(nullptr);
  const absl::Status status = memory.Take(UINT64_MAX).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_EQ(Message(status), "out of memory: 18446744073709551615 bytes requested; accepted: what the system has free");
}

}  // namespace
}  // namespace quern::test
