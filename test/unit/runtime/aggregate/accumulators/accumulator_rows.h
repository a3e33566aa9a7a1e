// SPDX-License-Identifier: Apache-2.0
// Columns and groups for tests of accumulators.
#ifndef QUERN_TEST_UNIT_RUNTIME_AGGREGATE_ACCUMULATORS_ACCUMULATOR_ROWS_H_
#define QUERN_TEST_UNIT_RUNTIME_AGGREGATE_ACCUMULATORS_ACCUMULATOR_ROWS_H_

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runtime/aggregate/accumulators/out_of_line_aggregates.h"
#include "runtime/blocks/blocks.h"
#include "runtime/rows/output_batch.h"
#include "test/unit/seed.h"

namespace quern::test {

inline std::string Message(const absl::Status& status) { return std::string(status.message()); }

inline ColumnType TypeOf(TypeId id, Collation collation = kCollationBinary) {
  return {.id = id, .collation = collation};
}

inline AggregateSpec SpecOf(AggregateFunction function, ColumnType type) {
  AggregateSpec spec;
  spec.function = function;
  spec.arguments = {type};
  spec.separator = ", ";
  return spec;
}

// A column with its buffers.
struct OwnedColumn {
  std::vector<uint8_t> values;
  std::vector<uint8_t> offsets;
  std::vector<uint8_t> bytes;  // the bytes of views
  const uint8_t* buffer = nullptr;
  std::shared_ptr<OwnedColumn> dictionary;
  QuernColumn column = {};

  OwnedColumn() = default;
  OwnedColumn(const OwnedColumn&) = delete;
  OwnedColumn& operator=(const OwnedColumn&) = delete;
};
using ColumnPtr = std::shared_ptr<OwnedColumn>;

template <class T>
void AppendTo(std::vector<uint8_t>* buffer, T value) {
  buffer->resize(buffer->size() + sizeof(T));
  std::memcpy(buffer->data() + buffer->size() - sizeof(T), &value, sizeof(T));
}

template <class T>
ColumnPtr NumberColumn(const std::vector<T>& values) {
  auto column = std::make_shared<OwnedColumn>();
  for (const T value : values) AppendTo(&column->values, value);
  column->column.values = column->values.data();
  return column;
}

inline ColumnPtr ViewColumn(const std::vector<std::string>& strings) {
  auto column = std::make_shared<OwnedColumn>();
  for (const std::string& s : strings) {
    StringRef view =
        blocks::MakeStringRef({reinterpret_cast<const uint8_t*>(s.data()), static_cast<uint32_t>(s.size())});
    if (s.size() > kInlineStringBytes) {
      view.bytes = reinterpret_cast<const char*>(uint64_t{column->bytes.size()} << 32);
      column->bytes.insert(column->bytes.end(), s.begin(), s.end());
    }
    AppendTo(&column->values, view);
  }
  column->buffer = column->bytes.data();
  column->column.values = column->values.data();
  column->column.buffers = &column->buffer;
  return column;
}

inline ColumnPtr StringColumn(Storage storage, const std::vector<std::string>& strings) {
  if (storage == kView) return ViewColumn(strings);
  auto column = std::make_shared<OwnedColumn>();
  for (size_t i = 0; i <= strings.size(); ++i) {
    if (storage == kVar32) AppendTo(&column->offsets, static_cast<int32_t>(column->values.size()));
    if (storage == kVar64) AppendTo(&column->offsets, static_cast<int64_t>(column->values.size()));
    if (i < strings.size()) column->values.insert(column->values.end(), strings[i].begin(), strings[i].end());
  }
  column->column.values = column->values.data();
  column->column.offsets = column->offsets.data();
  return column;
}

inline ColumnPtr BoolColumn(const std::vector<bool>& values) {
  auto column = std::make_shared<OwnedColumn>();
  column->values.resize(values.size() / 8 + 1);
  for (size_t i = 0; i < values.size(); ++i) blocks::SetBitTo(column->values.data(), i, values[i]);
  column->column.values = column->values.data();
  return column;
}

template <class Index = uint8_t>
inline ColumnPtr DictionaryColumn(const std::vector<Index>& indices, ColumnPtr values) {
  ColumnPtr column = NumberColumn(indices);
  column->dictionary = std::move(values);
  column->column.dictionary = &column->dictionary->column;
  return column;
}

// n values, drawn from a few dozen distinct ones.
inline ColumnPtr RandomColumn(ColumnType type, uint32_t n, std::mt19937_64* random) {
  if (type.is_dictionary) {
    std::vector<uint8_t> indices(n);
    for (uint8_t& index : indices) index = (*random)() % 30;
    type.is_dictionary = false;
    return DictionaryColumn(indices, RandomColumn(type, 30, random));
  }
  const Storage storage = RowOf(type.id).storage;
  std::vector<std::string> strings(n);
  std::vector<int64_t> numbers(n);
  for (uint32_t i = 0; i < n; ++i) {
    numbers[i] = static_cast<int64_t>((*random)() % 40) - (type.id >= TypeId::kU8 && type.id <= TypeId::kU64 ? 0 : 20);
    strings[i].resize(storage == kFixed ? type.width_bytes : (*random)() % 24);
    for (char& c : strings[i]) c = "ab "[(*random)() % 3];
  }
  if (storage == kBit) return BoolColumn(std::vector<bool>(numbers.begin(), numbers.end()));
  if (storage == k8) return NumberColumn(std::vector<int8_t>(numbers.begin(), numbers.end()));
  if (storage == k16) return NumberColumn(std::vector<int16_t>(numbers.begin(), numbers.end()));
  if (storage == k128) return NumberColumn(std::vector<__int128>(numbers.begin(), numbers.end()));
  if (type.id == TypeId::kF32) return NumberColumn(std::vector<float>(numbers.begin(), numbers.end()));
  if (type.id == TypeId::kF64) return NumberColumn(std::vector<double>(numbers.begin(), numbers.end()));
  if (storage == k32) return NumberColumn(std::vector<int32_t>(numbers.begin(), numbers.end()));
  if (storage == k64) return NumberColumn(numbers);
  return StringColumn(storage, strings);
}

// One thread's states of an accumulator.
class Groups {
 public:
  Groups(const AggregateSpec& spec, uint32_t num_groups, std::shared_ptr<MemoryBudget> budget = nullptr)
      : spec_(spec), accumulator_(MakeOutOfLineAggregate(spec).value()), memory_(std::move(budget)) {
    words_ = accumulator_->state_bytes() / 8;
    rows_.resize(size_t{num_groups} * words_);
    for (uint32_t g = 0; g < num_groups; ++g)
      states_.push_back(reinterpret_cast<uint8_t*>(rows_.data() + size_t{g} * words_));
  }

  const OutOfLineAggregate& accumulator() const { return *accumulator_; }
  AccumulatorMemory* memory() { return &memory_; }
  uint8_t* state(uint32_t group) { return states_[group]; }

  // Row rows[i] belongs to group rows[i] % number of groups.
  absl::Status Add(const QuernColumn* columns, const std::vector<uint32_t>& rows, uint64_t first_row_id = 0) {
    std::vector<uint8_t*> states;
    for (const uint32_t row : rows) states.push_back(states_[row % states_.size()]);
    const auto n = static_cast<uint32_t>(rows.size());
    uint32_t num_added = 0;
    return accumulator_->Update({columns, rows.data(), first_row_id, states.data(), n, n % 3 * 8, &num_added},
                                &memory_);
  }
  absl::Status AddAll(const OwnedColumn& column, uint32_t n) {
    std::vector<uint32_t> rows(n);
    for (uint32_t i = 0; i < n; ++i) rows[i] = i;
    return Add(&column.column, rows);
  }
  absl::Status Merge(Groups* from) {
    return accumulator_->Merge(states_.data(), from->states_.data(), static_cast<uint32_t>(states_.size()), &memory_);
  }
  std::string Saved(uint32_t group) const {
    std::string bytes;
    accumulator_->Save(states_[group], &bytes);
    return bytes;
  }
  absl::Status MergeSaved(uint32_t group, std::string_view bytes) {
    return accumulator_->MergeSaved(states_[group], bytes, &memory_);
  }

  absl::StatusOr<std::vector<std::string>> Results() const {
    OutputBatch out({AggregateResultType(spec_, false)}, states_.size() + 1, nullptr);
    if (absl::Status status = out.Reset(); !status.ok()) return status;
    // Output begins at row 1; one string lies before it.
    if (out.columns()[0].offsets != nullptr) static_cast<uint64_t*>(out.columns()[0].offsets)[0] = 0;
    if (RowOf(out.type(0).id).storage == kVar32) static_cast<int32_t*>(out.columns()[0].offsets)[1] = 0;
    if (RowOf(out.type(0).id).storage == kVar64) static_cast<int64_t*>(out.columns()[0].offsets)[1] = 0;
    const auto n = static_cast<uint32_t>(states_.size());
    absl::StatusOr<uint32_t> fit = accumulator_->Finalise(states_.data(), n, out.columns(), 1, nullptr);
    if (!fit.ok()) return fit.status();
    EXPECT_EQ(*fit, n);
    std::vector<std::string> results;
    for (uint32_t i = 0; i < n; ++i) results.push_back(TextOf(out.column(0), out.type(0), i + 1));
    return results;
  }
  std::string Result() const { return Results().value()[0]; }

 private:
  static std::string TextOf(const QuernOutColumn& out, const ColumnType& type, uint32_t row) {
    if (out.validity != nullptr && !blocks::Bit(out.validity, row)) return "null";
    const Storage storage = RowOf(type.id).storage;
    if (type.id == TypeId::kI64) return std::to_string(blocks::LoadAt<int64_t>(out.values, row));
    if (type.id == TypeId::kU64) return std::to_string(blocks::LoadAt<uint64_t>(out.values, row));
    if (type.id == TypeId::kF64) return std::to_string(blocks::LoadAt<double>(out.values, row));
    if (storage == k128) return std::to_string(static_cast<double>(blocks::LoadAt<__int128>(out.values, row)));
    const QuernColumn in = {
        nullptr, storage == kView || storage == kFixed ? out.values : out.bytes, out.offsets, &out.bytes, nullptr, 0};
    blocks::Bytes s = {};
    if (storage == kFixed) s = blocks::ReadBytes<kFixed>(&in, row, false, type.width_bytes);
    if (storage == kVar32) s = blocks::ReadBytes<kVar32>(&in, row, false, 0);
    if (storage == kVar64) s = blocks::ReadBytes<kVar64>(&in, row, false, 0);
    if (storage == kView) s = blocks::ReadBytes<kView>(&in, row, false, 0);
    return std::string(reinterpret_cast<const char*>(s.data), s.length);
  }

  AggregateSpec spec_;
  std::unique_ptr<OutOfLineAggregate> accumulator_;
  AccumulatorMemory memory_;
  size_t words_;
  std::vector<uint64_t> rows_;
  std::vector<uint8_t*> states_;
};

}  // namespace quern::test

#endif  // QUERN_TEST_UNIT_RUNTIME_AGGREGATE_ACCUMULATORS_ACCUMULATOR_ROWS_H_
