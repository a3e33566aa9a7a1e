// SPDX-License-Identifier: Apache-2.0
// median and quantile, exactly: a group's values as f64 in an array that doubles, and at the end a selection in linear
// time instead of a sort. A quantile between two values is interpolated by its place, like quantile_cont of DuckDB and
// PERCENTILE_CONT of SQL:
//
//     quantile(0.9) of 10 20 40 80    place 0.9 * (4 - 1) = 2.7    40 + 0.7 * (80 - 40) = 68
//
// NaN is greater than all numbers, so NaNs are moved to the end, and the selection covers the numbers before them with
// plain comparisons. The selection moves values but states are read-only, so it works on a copy of one group's values
// at a time.
//
// Values that are many, or lie in files, are selected without a copy (quantile_selection.h).
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/aggregate/accumulators/out_of_line_kinds.h"
#include "runtime/aggregate/accumulators/quantile_selection.h"
#include "runtime/base/thresholds.h"

namespace quern {
namespace {

struct Values {
  Piece piece;  // of doubles
  uint64_t num_values;

  const double* begin() const { return reinterpret_cast<const double*>(piece.data); }
  const double* end() const { return begin() + num_values; }
};

absl::Status Append(const double* values, uint64_t n, Values* to, AccumulatorMemory* memory) {
  const uint64_t used_bytes = to->num_values * sizeof(double);
  QUERN_RETURN_IF_ERROR(to->piece.Grow(used_bytes, used_bytes + n * sizeof(double), memory));
  std::copy_n(values, n, reinterpret_cast<double*>(to->piece.data) + to->num_values);
  to->num_values += n;
  return absl::OkStatus();
}

template <class T>
absl::Status AppendBlock(const ValueRows& values, AccumulatorMemory* memory) {
  const RowsToCome states(values.prefetch_rows, values.n);
  AddedRows added(values.num_added);
  for (uint32_t& i = added.n; i < values.n; ++i) {
    states.Before(i, [&](uint32_t row) { return values.states[row]; });
    const auto value = static_cast<double>(blocks::LoadAt<T>(values.column.values, values.rows[i]));
    QUERN_RETURN_IF_ERROR(Append(&value, 1, StateAt<Values>(values.states[i]), memory));
  }
  return absl::OkStatus();
}

// The two values around place quantile * (n - 1), which are the same where the place is an integer. Moves the values.
double SelectQuantile(std::vector<double>* values, double quantile) {
  const double place = quantile * static_cast<double>(values->size() - 1);
  const auto index = static_cast<uint64_t>(place);
  const auto numbers_end = std::partition(values->begin(), values->end(), [](double v) { return !std::isnan(v); });
  const auto num_numbers = static_cast<uint64_t>(numbers_end - values->begin());
  if (index >= num_numbers) return std::numeric_limits<double>::quiet_NaN();
  const auto lower = values->begin() + static_cast<ptrdiff_t>(index);
  std::nth_element(values->begin(), lower, numbers_end);
  const double fraction = place - static_cast<double>(index);
  if (fraction == 0) return *lower;
  if (index + 1 >= num_numbers) return std::numeric_limits<double>::quiet_NaN();
  const double upper = *std::min_element(lower + 1, numbers_end);
  return *lower == upper ? upper : *lower + (upper - *lower) * fraction;
}

class Quantile final : public SpecAccumulator {
 public:
  explicit Quantile(const AggregateSpec& spec) : SpecAccumulator(spec) {}

  uint32_t state_bytes() const override { return sizeof(Values); }

  absl::Status Update(const AccumulatorRows& rows, AccumulatorMemory* memory) const override {
    const TypeId id = type().id;
    if (id == TypeId::kI8) return UpdateOf<int8_t>(rows, memory);
    if (id == TypeId::kI16) return UpdateOf<int16_t>(rows, memory);
    if (id == TypeId::kI32) return UpdateOf<int32_t>(rows, memory);
    if (id == TypeId::kI64) return UpdateOf<int64_t>(rows, memory);
    if (id == TypeId::kU8) return UpdateOf<uint8_t>(rows, memory);
    if (id == TypeId::kU16) return UpdateOf<uint16_t>(rows, memory);
    if (id == TypeId::kU32) return UpdateOf<uint32_t>(rows, memory);
    if (id == TypeId::kU64) return UpdateOf<uint64_t>(rows, memory);
    if (id == TypeId::kF32) return UpdateOf<float>(rows, memory);
    return UpdateOf<double>(rows, memory);
  }

  absl::Status Merge(uint8_t* const* into, uint8_t* const* from, uint32_t n, AccumulatorMemory* memory) const override {
    for (uint32_t i = 0; i < n; ++i) {
      auto *to = StateAt<Values>(into[i]), *other = StateAt<Values>(from[i]);
      if (other->num_values > to->num_values) std::swap(*to, *other);
      QUERN_RETURN_IF_ERROR(Append(other->begin(), other->num_values, to, memory));
      other->piece.GiveBack(memory);
      *other = {};
    }
    return absl::OkStatus();
  }

  absl::StatusOr<uint32_t> Finalise(const uint8_t* const* states, uint32_t n, QuernOutColumn* out, uint64_t out_row,
                                    void* /*host*/) const override {
    std::vector<double> copy;
    for (uint32_t i = 0; i < n; ++i) {
      const auto& values = StateAt<Values>(states[i]);
      if (values.num_values > thresholds::kValuesToCopy) {
        const ReadValues read = [&values](const ValuesRead& f) {
          f(values.begin(), values.num_values);
          return absl::OkStatus();
        };
        QUERN_RETURN_IF_ERROR(Write(read, out, out_row + i));
        continue;
      }
      copy.assign(values.begin(), values.end());
      static_cast<double*>(out->values)[out_row + i] = copy.empty() ? 0 : SelectQuantile(&copy, quantile());
      WriteValidity(out, out_row + i, !copy.empty());
    }
    return n;
  }

  // 8 bytes for the number of values, and the values.
  void Save(const uint8_t* state, std::string* bytes) const override {
    const auto& values = StateAt<Values>(state);
    AppendValue(values.num_values, bytes);
    for (const double value : values) AppendValue(value, bytes);
  }

  absl::Status MergeSaved(uint8_t* state, std::string_view bytes, AccumulatorMemory* memory) const override {
    SavedReader reader(bytes);
    auto left = reader.Read<uint64_t>();
    if (!reader.ok() || left > reader.num_bytes_left() || left * sizeof(double) != reader.num_bytes_left())
      return Damaged(bytes);
    auto* const values = StateAt<Values>(state);
    const uint64_t used_bytes = values->num_values * sizeof(double);
    QUERN_RETURN_IF_ERROR(values->piece.Grow(used_bytes, used_bytes + left * sizeof(double), memory));
    for (; left > 0; --left) {
      const auto value = reader.Read<double>();
      QUERN_RETURN_IF_ERROR(Append(&value, 1, values, memory));
    }
    return absl::OkStatus();
  }

  bool has_parts() const override { return true; }

  uint64_t SavedBytes(const uint8_t* state) const override {
    return sizeof(uint64_t) + StateAt<Values>(state).num_values * sizeof(double);
  }

  bool SavePart(const uint8_t* state, uint64_t* next, uint64_t most_bytes, std::string* bytes) const override {
    const auto& values = StateAt<Values>(state);
    const uint64_t n = std::min(values.num_values - *next, most_bytes / sizeof(double) + 1);
    AppendValue(n, bytes);
    bytes->append(reinterpret_cast<const char*>(values.begin() + *next), n * sizeof(double));
    *next += n;
    return *next < values.num_values;
  }

  absl::Status FinaliseParts(SavedParts* parts, const std::shared_ptr<MemoryBudget>& budget, QuernOutColumn* out,
                             uint64_t out_row) const override {
    QUERN_RETURN_IF_ERROR(budget->Reserve(kSelectionBytes));
    const ReadValues read = [parts, this](const ValuesRead& f) {
      return parts->ForEach([&](std::string_view bytes) -> absl::Status {
        SavedReader reader(bytes);
        for (auto left = reader.Read<uint64_t>(); left > 0;) {
          double block[kBlockRows];
          const uint64_t n = std::min<uint64_t>(left, kBlockRows);
          for (uint64_t i = 0; i < n; ++i) block[i] = reader.Read<double>();
          if (!reader.ok()) return Damaged(bytes);
          f(block, n);
          left -= n;
        }
        return absl::OkStatus();
      });
    };
    const absl::Status written = Write(read, out, out_row);
    budget->Release(kSelectionBytes);
    return written;
  }

 private:
  double quantile() const { return spec().function == AggregateFunction::kMedian ? 0.5 : spec().quantile; }

  absl::Status Write(const ReadValues& read, QuernOutColumn* out, uint64_t row) const {
    QUERN_ASSIGN_OR_RETURN(const std::optional<double> selected, SelectQuantileByCounting(read, quantile()));
    static_cast<double*>(out->values)[row] = selected.value_or(0);
    WriteValidity(out, row, selected.has_value());
    return absl::OkStatus();
  }

  template <class T>
  absl::Status UpdateOf(const AccumulatorRows& rows, AccumulatorMemory* memory) const {
    return ForEachBlock(type(), rows, [&](const ValueRows& values) { return AppendBlock<T>(values, memory); });
  }
};

}  // namespace

std::unique_ptr<OutOfLineAggregate> MakeQuantile(const AggregateSpec& spec) { return std::make_unique<Quantile>(spec); }

}  // namespace quern
