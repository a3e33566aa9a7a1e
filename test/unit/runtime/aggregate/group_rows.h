// SPDX-License-Identifier: Apache-2.0
// Aggregations in the generic kernel over columns that unit tests own, and their groups as lines of text.
#ifndef QUERN_TEST_UNIT_RUNTIME_AGGREGATE_GROUP_ROWS_H_
#define QUERN_TEST_UNIT_RUNTIME_AGGREGATE_GROUP_ROWS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir-templates/generic/generic_aggregate.h"
#include "runtime/aggregate/hash_aggregate.h"
#include "runtime/aggregate/tables/group_table.h"
#include "runtime/blocks/blocks.h"
#include "runtime/rows/output_batch.h"
#include "runtime/spec/spec.h"
#include "test/unit/runtime/aggregate/accumulators/accumulator_rows.h"

namespace quern::test {

struct Tuning {
  uint32_t batch_rows = 1024;
  bool prefetches = true, zero_hashes = false;
};

inline std::shared_ptr<AggregateDescriptor> ShapeOf(const std::string& text, const Tuning& tuning = {}) {
  const auto spec = ParseSpecOf<AggregationSpec>(text);
  EXPECT_TRUE(spec.ok()) << spec.status();
  std::shared_ptr<AggregateDescriptor> descriptor = *AggregateDescriptor::Make(*spec);
  descriptor->mutable_tuning()->batch_rows = tuning.batch_rows;
  descriptor->mutable_tuning()->group.prefetches = tuning.prefetches;
  descriptor->mutable_tuning()->group.zero_hashes = tuning.zero_hashes;
  return descriptor;
}

inline std::shared_ptr<MemoryBudget> NoLimit() { return std::make_shared<MemoryBudget>(); }

inline GroupContext ContextOf(const std::string& text, const AggregateOptions& options = {},
                              const Tuning& tuning = {}) {
  return {ShapeOf(text, tuning), GenericAggregateKernel(), NoLimit(), options};
}

inline std::shared_ptr<HashAggregate> Aggregation(const std::string& text, const AggregateOptions& options = {},
                                                  const Tuning& tuning = {},
                                                  std::shared_ptr<MemoryBudget> budget = NoLimit()) {
  return std::make_shared<HashAggregate>(ShapeOf(text, tuning), GenericAggregateKernel(), nullptr, std::move(budget),
                                         options);
}

// The groups of n rows with these keys.
inline std::vector<uint8_t*> FindGroups(GroupTable* groups, const std::vector<ColumnPtr>& keys, uint32_t n) {
  std::vector<QuernColumn> columns;
  for (const ColumnPtr& key : keys) columns.push_back(key->column);
  std::vector<uint8_t*> tuples(n);
  EXPECT_EQ(groups->Find({columns.data(), 0, nullptr, n}, tuples.data()), absl::OkStatus());
  return tuples;
}

// A batch that keeps its columns alive.
inline BatchView Rows(uint64_t num_rows, const std::vector<ColumnPtr>& keys,
                      const std::vector<ColumnPtr>& payload = {}) {
  BatchView batch;
  batch.num_rows = num_rows;
  for (const ColumnPtr& column : keys) batch.keys.push_back(column->column);
  for (const ColumnPtr& column : payload) batch.payload.push_back(column->column);
  batch.owner = std::make_shared<std::pair<std::vector<ColumnPtr>, std::vector<ColumnPtr>>>(keys, payload);
  return batch;
}

// The same column, null where `valid` is false.
inline ColumnPtr WithNulls(const ColumnPtr& column, const std::vector<bool>& valid) {
  ColumnPtr with = BoolColumn(valid);
  with->dictionary = column;  // keeps its buffers alive
  with->column = column->column;
  with->column.validity = with->values.data();
  return with;
}

// One value of a result column.
inline std::string CellOf(const QuernOutColumn& out, const ColumnType& type, uint64_t row) {
  if (out.validity != nullptr && !blocks::Bit(out.validity, row)) return "null";
  const auto wide = [](__int128 v) {
    const bool is_negative = v < 0;
    std::string digits;
    for (unsigned __int128 rest = is_negative ? -static_cast<unsigned __int128>(v) : v; rest != 0 || digits.empty();
         rest /= 10)
      digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(rest % 10)));
    return (is_negative ? "-" : "") + digits;
  };
  const auto number = [](double v) {
    char text[40];
    std::snprintf(text, sizeof(text), "%.15g", v);
    return std::string(text);
  };
  const QuernColumn in = {nullptr, out.values != nullptr ? out.values : out.bytes, out.offsets, &out.bytes, nullptr, 0};
  const auto text = [](blocks::Bytes s) { return std::string(reinterpret_cast<const char*>(s.data), s.length); };
  const bool is_signed = type.id < TypeId::kU8 || type.id > TypeId::kU64;
  if (type.id == TypeId::kF32) return number(static_cast<double>(blocks::LoadAt<float>(out.values, row)));
  if (type.id == TypeId::kF64) return number(blocks::LoadAt<double>(out.values, row));
  if (type.id == TypeId::kRowId) return std::to_string(blocks::LoadAt<uint64_t>(out.values, row));
  switch (RowOf(type.id).storage) {
    case kBit: return blocks::Bit(static_cast<const uint8_t*>(out.values), row) ? "true" : "false";
    case k8:
      return std::to_string(is_signed ? int{blocks::LoadAt<int8_t>(out.values, row)}
                                      : blocks::LoadAt<uint8_t>(out.values, row));
    case k16:
      return std::to_string(is_signed ? int{blocks::LoadAt<int16_t>(out.values, row)}
                                      : blocks::LoadAt<uint16_t>(out.values, row));
    case k32:
      return wide(is_signed ? int64_t{blocks::LoadAt<int32_t>(out.values, row)}
                            : blocks::LoadAt<uint32_t>(out.values, row));
    case k64:
      return is_signed ? std::to_string(blocks::LoadAt<int64_t>(out.values, row))
                       : wide(blocks::LoadAt<uint64_t>(out.values, row));
    case k128: return wide(blocks::LoadAt<__int128>(out.values, row));
    case kFixed: return text(blocks::ReadBytes<kFixed>(&in, static_cast<uint32_t>(row), false, type.width_bytes));
    case kVar32:
    case kVar64: break;
    case kView: return text(blocks::ReadBytes<kView>(&in, static_cast<uint32_t>(row), false, 0));
    case kF32:
    case kF64:
    case kRowId:
    case kNoStorage: return "?";
  }
  QuernColumn strings = in;
  strings.values = out.bytes;
  return text(RowOf(type.id).storage == kVar32
                  ? blocks::ReadBytes<kVar32>(&strings, static_cast<uint32_t>(row), false, 0)
                  : blocks::ReadBytes<kVar64>(&strings, static_cast<uint32_t>(row), false, 0));
}

using Lines = std::vector<std::string>;

// Rows of an output batch: "7|2|null".
inline void AddLines(const OutputBatch& out, Lines* lines) {
  for (uint64_t row = 0; row < out.num_rows(); ++row) {
    std::string line;
    for (size_t c = 0; c < out.num_columns(); ++c)
      line += (c == 0 ? "" : "|") + CellOf(out.column(c), out.type(c), row);
    lines->push_back(line);
  }
}

// The groups of one share of a finalised aggregation, sorted.
inline Lines ShareOf(const std::shared_ptr<HashAggregate>& aggregate, uint32_t partition, uint32_t num_partitions,
                     uint64_t capacity) {
  OutputBatch out(AggregateOutputTypes(aggregate->descriptor().spec()), capacity, nullptr);
  GroupReader reader(aggregate, GroupColumns::kResults, partition, num_partitions);
  Lines lines;
  for (bool more = true; more;) {
    const absl::StatusOr<bool> next = reader.Next(&out);
    EXPECT_TRUE(next.ok()) << next.status();
    if (!next.ok()) break;
    EXPECT_LE(out.num_rows(), capacity);
    AddLines(out, &lines);
    more = *next;
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}
inline Lines GroupsOf(const std::shared_ptr<HashAggregate>& aggregate, uint64_t capacity = 1000) {
  return ShareOf(aggregate, 0, 1, capacity);
}

// The groups of some batches.
inline Lines GroupsOf(const std::string& text, const std::vector<BatchView>& batches,
                      const AggregateOptions& options = {}, const Tuning& tuning = {}) {
  auto aggregate = Aggregation(text, options, tuning);
  for (const BatchView& batch : batches) EXPECT_EQ(aggregate->Append(batch), absl::OkStatus());
  EXPECT_EQ(aggregate->Finalise(), absl::OkStatus());
  return GroupsOf(aggregate);
}

}  // namespace quern::test

#endif  // QUERN_TEST_UNIT_RUNTIME_AGGREGATE_GROUP_ROWS_H_
