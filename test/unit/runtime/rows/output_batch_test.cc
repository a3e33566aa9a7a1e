// SPDX-License-Identifier: Apache-2.0
// Result columns: buffers, growth under a budget, and export as Arrow arrays.
#include "runtime/rows/output_batch.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/blocks/blocks.h"
#include "runtime/blocks/runtime_calls.h"

namespace quern {
namespace {

std::string Message(const absl::Status& status) {
  return std::string(status.message().data(), status.message().size());
}

ColumnType Type(TypeId id, bool nullable = false, uint32_t width_bytes = 0) {
  ColumnType type;
  type.id = id;
  type.nullable = nullable;
  type.width_bytes = width_bytes;
  return type;
}

// Appends a string as a kernel does.
void AppendString(QuernOutColumn* column, uint64_t row, const std::string& s) {
  ASSERT_EQ(quern_rt_reserve_bytes(column, s.size()), 0);
  std::memcpy(column->bytes + column->num_bytes, s.data(), s.size());
  std::memset(column->bytes + column->num_bytes + s.size(), 0xee, 32);  // the contract permits writing beyond the end
  column->num_bytes += s.size();
  static_cast<int32_t*>(column->offsets)[row + 1] = static_cast<int32_t>(column->num_bytes);
}

bool AllZero(const void* data, size_t bytes) {
  const auto* p = static_cast<const uint8_t*>(data);
  for (size_t i = 0; i < bytes; ++i)
    if (p[i] != 0) return false;
  return true;
}

TEST(OutputBatch, EveryTypeHasItsBuffers) {
  std::vector<ColumnType> types;
  for (const TypeRow& row : AllTypes())
    types.push_back(Type(row.id, row.id != TypeId::kRowId, row.id == TypeId::kFixedBinary ? 3 : 0));
  OutputBatch batch(types, 100, std::make_shared<MemoryBudget>());
  ASSERT_TRUE(batch.Reset().ok());
  for (size_t i = 0; i < types.size(); ++i) {
    const Storage storage = RowOf(types[i].id).storage;
    const QuernOutColumn& column = batch.column(i);
    EXPECT_EQ(column.validity != nullptr, types[i].nullable);
    EXPECT_EQ(column.values != nullptr, storage != kVar32 && storage != kVar64);
    EXPECT_EQ(column.offsets != nullptr, storage == kVar32 || storage == kVar64);
    EXPECT_EQ(column.bytes != nullptr, IsVariable(storage));
    for (const void* buffer : {static_cast<const void*>(column.validity), static_cast<const void*>(column.values),
                               static_cast<const void*>(column.offsets), static_cast<const void*>(column.bytes)}) {
      EXPECT_EQ(reinterpret_cast<uint64_t>(buffer) % 64, 0u);
    }
    // What kernels may write: 100 rows, and 64 bytes beyond them.
    const size_t value_bytes = storage == kBit ? 13 : 100 * (storage == kFixed ? 3 : StorageFieldBytes(storage));
    if (column.values != nullptr) std::memset(column.values, 1, value_bytes + 64);
  }
}

TEST(OutputBatch, ResetZeroesWhatKernelsOnlyAddTo) {
  OutputBatch batch({Type(TypeId::kBool, true), Type(TypeId::kUtf8), Type(TypeId::kLargeUtf8)}, 100, nullptr);
  ASSERT_TRUE(batch.Reset().ok());
  std::memset(batch.columns()[0].validity, 0xff, 13);
  std::memset(batch.columns()[0].values, 0xff, 13);
  static_cast<int32_t*>(batch.columns()[1].offsets)[0] = 7;
  batch.columns()[0].null_count = 5;
  batch.columns()[1].num_bytes = 5;
  batch.set_num_rows(50);
  ASSERT_TRUE(batch.Reset().ok());
  EXPECT_EQ(batch.num_rows(), 0u);
  EXPECT_TRUE(AllZero(batch.column(0).validity, 13));
  EXPECT_TRUE(AllZero(batch.column(0).values, 13));
  EXPECT_TRUE(AllZero(batch.column(1).offsets, 4));
  EXPECT_TRUE(AllZero(batch.column(2).offsets, 8));
  EXPECT_EQ(batch.column(0).null_count, 0u);
  EXPECT_EQ(batch.column(1).num_bytes, 0u);
}

TEST(OutputBatch, WithoutColumnsOnlyCounts) {
  OutputBatch batch({}, 10, std::make_shared<MemoryBudget>(1));
  ASSERT_TRUE(batch.Reset().ok());
  batch.set_num_rows(12345678901);
  ArrowArray array;
  batch.ExportArrow(&array);
  EXPECT_EQ(array.length, 12345678901);
  EXPECT_EQ(array.n_children, 0);
  array.release(&array);
  EXPECT_EQ(array.release, nullptr);
}

TEST(OutputBatch, HasFewerRowsWhereMemoryIsRefused) {
  const auto budget = std::make_shared<MemoryBudget>(20'000);
  OutputBatch batch({Type(TypeId::kI64, true), Type(TypeId::kUtf8)}, 4096, budget);
  EXPECT_TRUE(absl::IsResourceExhausted(batch.Reset()));
  batch.SetFewestRows(100);
  ASSERT_EQ(batch.Reset(), absl::OkStatus());
  EXPECT_EQ(batch.capacity(), 512);
  AppendString(&batch.columns()[1], 0, "some text");
  ASSERT_EQ(batch.Reset(), absl::OkStatus());
  EXPECT_EQ(batch.capacity(), 512);
  OutputBatch other({Type(TypeId::kI64)}, 4096, std::make_shared<MemoryBudget>(1000));
  other.SetFewestRows(200);
  EXPECT_TRUE(absl::IsResourceExhausted(other.Reset()));
  EXPECT_EQ(other.capacity(), 256);
}

TEST(OutputBatch, Errors) {
  OutputBatch small({Type(TypeId::kI64), Type(TypeId::kI64)}, 1000, std::make_shared<MemoryBudget>(10000));
  EXPECT_EQ(Message(small.Reset()), "memory limit exceeded: 8064 bytes requested, 8064 in use; limit 10000");
  EXPECT_FALSE(small.Reset().ok());
  OutputBatch large({Type(TypeId::kI64)}, uint64_t{1} << 31, nullptr);
  EXPECT_EQ(Message(large.Reset()), "output batch too large: 2147483648 rows; accepted: up to 2147483647");
}

TEST(ReserveBytes, KeepsContentsAndCharges) {
  auto budget = std::make_shared<MemoryBudget>(1 << 20);
  OutputBatch batch({Type(TypeId::kUtf8)}, 2000, budget);
  ASSERT_TRUE(batch.Reset().ok());
  QuernOutColumn* column = &batch.columns()[0];
  std::string all;
  for (uint64_t row = 0; row < 2000; ++row) {
    const std::string s(row % 97, static_cast<char>('a' + row % 26));
    AppendString(column, row, s);
    all += s;
  }
  EXPECT_EQ(std::string(reinterpret_cast<char*>(column->bytes), column->num_bytes), all);
  EXPECT_GE(column->bytes_capacity, column->num_bytes);
  EXPECT_GE(budget->used_bytes(), column->bytes_capacity);
  const QuernOutColumn before = *column;
  EXPECT_EQ(quern_rt_reserve_bytes(column, 2 << 20), kQuernOutOfMemory);
  EXPECT_EQ(quern_rt_reserve_bytes(column, UINT64_MAX), kQuernOutOfMemory);
  EXPECT_EQ(column->bytes, before.bytes);
  EXPECT_EQ(column->bytes_capacity, before.bytes_capacity);
}

struct Texts {
  std::vector<std::string> texts;

  static bool Valid(uint32_t) { return true; }
  blocks::Bytes ReadString(uint32_t i) const {
    return {reinterpret_cast<const uint8_t*>(texts[i].data()), static_cast<uint32_t>(texts[i].size())};
  }
};

// The first string fits, however long it is; the others up to the bound of the batch.
TEST(OutputBatch, StringsBeyondABoundAreForTheNextBatch) {
  OutputBatch batch({Type(TypeId::kUtf8)}, 100, std::make_shared<MemoryBudget>());
  batch.SetMostStringBytes(1000);
  ASSERT_TRUE(batch.Reset().ok());
  QuernOutColumn* column = &batch.columns()[0];
  const Texts texts = {{std::string(400, 'a'), std::string(500, 'b'), std::string(200, 'c'), std::string(100, 'd')}};
  EXPECT_EQ(blocks::FitStrings<kVar32>(texts, 4, column), 2);
  AppendString(column, 0, texts.texts[0]);
  EXPECT_EQ(blocks::FitStrings<kVar32>(Texts{{texts.texts[1], texts.texts[3], texts.texts[2]}}, 3, column), 2);
  EXPECT_EQ(blocks::FitStrings<kVar32>(Texts{{std::string(601, 'e')}}, 1, column), 0);
  ASSERT_TRUE(batch.Reset().ok());
  EXPECT_EQ(blocks::FitStrings<kVar32>(Texts{{std::string(5000, 'e'), "f"}}, 2, &batch.columns()[0]), 1);
  EXPECT_EQ(blocks::FitStrings<kVar32>(Texts{{"", std::string(5000, 'e'), "f"}}, 3, &batch.columns()[0]), 2);
}

TEST(ReserveBytes, GrowsByHalfAtLeast) {
  OutputBatch batch({Type(TypeId::kBinary)}, 64, nullptr);
  ASSERT_TRUE(batch.Reset().ok());
  QuernOutColumn* column = &batch.columns()[0];
  const uint64_t capacity = column->bytes_capacity;
  column->num_bytes = capacity;
  ASSERT_EQ(quern_rt_reserve_bytes(column, 1), 0);
  EXPECT_GE(column->bytes_capacity, capacity + capacity / 2);
}

TEST(RuntimeCalls, TableIsUniqueAndFilled) {
  std::set<std::string> names;
  for (const RuntimeCall& call : AllRuntimeCalls()) {
    EXPECT_NE(call.address, nullptr);
    EXPECT_TRUE(names.insert(call.name).second) << call.name;
  }
  std::erase_if(names, [](const std::string& name) { return name.rfind("quern_rt_", 0) == 0; });
  EXPECT_EQ(names, (std::set<std::string>{"bcmp", "memcmp", "memcpy", "memmove", "memset"}));
}

// ---- export ----

void FillThreeRows(OutputBatch* batch) {
  ASSERT_TRUE(batch->Reset().ok());
  auto* numbers = static_cast<int64_t*>(batch->columns()[0].values);
  numbers[0] = 10;
  numbers[1] = 0;
  numbers[2] = 30;
  batch->columns()[0].validity[0] = 0b101;
  batch->columns()[0].null_count = 1;
  const std::vector<std::string> strings = {"one", "", "three"};
  for (uint64_t row = 0; row < 3; ++row) AppendString(&batch->columns()[1], row, strings[row]);
  batch->columns()[1].validity[0] = 0b111;
  batch->set_num_rows(3);
}

TEST(ExportArrow, MovesTheRowsOut) {
  auto budget = std::make_shared<MemoryBudget>();
  OutputBatch batch({Type(TypeId::kI64, true), Type(TypeId::kUtf8, true)}, 8, budget);
  FillThreeRows(&batch);
  ArrowArray array;
  batch.ExportArrow(&array);
  EXPECT_EQ(batch.num_rows(), 0u);
  EXPECT_EQ(batch.column(0).values, nullptr);
  ASSERT_EQ(array.n_children, 2);
  EXPECT_EQ(array.n_buffers, 1);
  EXPECT_EQ(array.buffers[0], nullptr);
  EXPECT_EQ(array.length, 3);
  EXPECT_EQ(array.null_count, 0);
  const ArrowArray& numbers = *array.children[0];
  EXPECT_EQ(numbers.length, 3);
  EXPECT_EQ(numbers.null_count, 1);
  ASSERT_EQ(numbers.n_buffers, 2);
  EXPECT_EQ(*static_cast<const uint8_t*>(numbers.buffers[0]), 0b101);
  EXPECT_EQ(static_cast<const int64_t*>(numbers.buffers[1])[2], 30);
  const ArrowArray& strings = *array.children[1];
  EXPECT_EQ(strings.null_count, 0);
  ASSERT_EQ(strings.n_buffers, 3);
  EXPECT_EQ(strings.buffers[0], nullptr);  // no nulls, no bitmap
  EXPECT_EQ(static_cast<const int32_t*>(strings.buffers[1])[3], 8);
  EXPECT_EQ(std::string(static_cast<const char*>(strings.buffers[2]), 8), "onethree");
  EXPECT_GT(budget->used_bytes(), 0u);
  array.release(&array);
  EXPECT_EQ(array.release, nullptr);
  EXPECT_EQ(budget->used_bytes(), 0u);
}

// An array that is kept for long does not hold buffers for many more rows than it has.
TEST(ExportArrow, FewRowsMoveToSmallBuffers) {
  auto budget = std::make_shared<MemoryBudget>();
  OutputBatch batch({Type(TypeId::kI64, true), Type(TypeId::kUtf8, true)}, 1 << 20, budget);
  FillThreeRows(&batch);
  EXPECT_GT(budget->used_bytes(), 8 << 20);
  ArrowArray array;
  batch.ExportArrow(&array);
  EXPECT_LT(budget->used_bytes(), 32 << 10);
  EXPECT_EQ(*static_cast<const uint8_t*>(array.children[0]->buffers[0]), 0b101);
  EXPECT_EQ(static_cast<const int64_t*>(array.children[0]->buffers[1])[2], 30);
  EXPECT_EQ(static_cast<const int32_t*>(array.children[1]->buffers[1])[3], 8);
  EXPECT_EQ(std::string(static_cast<const char*>(array.children[1]->buffers[2]), 8), "onethree");
  array.release(&array);
  EXPECT_EQ(budget->used_bytes(), 0u);
}

TEST(ExportArrow, ChildrenOutliveTheirParentAndTheBatch) {
  auto budget = std::make_shared<MemoryBudget>();
  ArrowArray array, child;
  {
    OutputBatch batch({Type(TypeId::kI64, true), Type(TypeId::kUtf8, true)}, 8, budget);
    FillThreeRows(&batch);
    batch.ExportArrow(&array);
    FillThreeRows(&batch);  // and is used again
  }
  child = *array.children[1];
  array.children[1]->release = nullptr;
  array.release(&array);
  EXPECT_EQ(std::string(static_cast<const char*>(child.buffers[2]), 8), "onethree");
  EXPECT_GT(budget->used_bytes(), 0u);
  child.release(&child);
  EXPECT_EQ(child.release, nullptr);
  EXPECT_EQ(budget->used_bytes(), 0u);
}

TEST(ExportArrow, ViewsTellTheSizeOfTheirBuffer) {
  OutputBatch batch({Type(TypeId::kUtf8View)}, 8, nullptr);
  ASSERT_TRUE(batch.Reset().ok());
  QuernOutColumn* column = &batch.columns()[0];
  ASSERT_EQ(quern_rt_reserve_bytes(column, 20), 0);
  std::memcpy(column->bytes, "twenty bytes of text", 20);
  column->num_bytes = 20;
  const uint32_t view[4] = {20, 0x6e657774, 0, 0};
  std::memcpy(column->values, view, 16);
  batch.set_num_rows(1);
  ArrowArray array;
  batch.ExportArrow(&array);
  const ArrowArray& views = *array.children[0];
  ASSERT_EQ(views.n_buffers, 4);
  EXPECT_EQ(std::memcmp(views.buffers[1], view, 16), 0);
  EXPECT_EQ(std::memcmp(views.buffers[2], "twenty bytes of text", 20), 0);
  EXPECT_EQ(*static_cast<const int64_t*>(views.buffers[3]), 20);
  array.release(&array);
}

TEST(ExportArrow, BatchThatWasNeverReset) {
  OutputBatch batch({Type(TypeId::kUtf8, true), Type(TypeId::kUtf8View)}, 8, nullptr);
  ArrowArray array;
  batch.ExportArrow(&array);
  EXPECT_EQ(array.length, 0);
  EXPECT_EQ(array.children[0]->length, 0);
  EXPECT_EQ(*static_cast<const int32_t*>(array.children[0]->buffers[1]), 0);  // there is one offset more than rows
  EXPECT_EQ(array.children[1]->n_buffers, 4);
  array.release(&array);
}

}  // namespace
}  // namespace quern
