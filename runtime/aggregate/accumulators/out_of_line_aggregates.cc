// SPDX-License-Identifier: Apache-2.0
// Which aggregates are updated by calls, and what their accumulators share.
//
// A kernel's own loop is the right place for sum(i64): one addition into the group's row, for which a call would cost
// ten times as much. It is the wrong place for count_distinct: to save a call per 1,000 rows, each kernel would compile
// a hash table into its loop. So for each batch the kernel lists which rows belong to which group's state, and calls:
//
//     batch rows   0 1 2 3 4      passes the filter: 0 1 3 4     rows   {0, 1, 3, 4}
//     groups       a b b a a                                     states {&a, &b, &a, &a}     n = 4
//
// Update then reads the column with a loop for its storage, chosen once per 512 rows. Dictionary columns are translated
// first: row 3 with index 7 becomes row 7 of the dictionary's values, which the same loop reads.
#include "runtime/aggregate/accumulators/out_of_line_aggregates.h"

#include <cstring>

#include "runtime/aggregate/accumulators/out_of_line_kinds.h"

namespace quern {
namespace {

bool IsOfBytes(const ColumnType& type) {
  const Storage storage = RowOf(type.id).storage;
  return storage == kFixed || IsVariable(storage);
}

template <class Index>
void TranslateRowsOf(const QuernColumn& column, const uint32_t* rows, uint32_t n, uint32_t* out) {
  for (uint32_t i = 0; i < n; ++i) out[i] = blocks::DictionaryRow<Index>(&column, rows[i]);
}

}  // namespace

void TranslateRows(TypeId index, const QuernColumn& column, const uint32_t* rows, uint32_t n, uint32_t* out) {
  const Storage storage = RowOf(index).storage;
  if (storage == k8) return TranslateRowsOf<uint8_t>(column, rows, n, out);
  if (storage == k16) return TranslateRowsOf<uint16_t>(column, rows, n, out);
  if (storage == k32) return TranslateRowsOf<uint32_t>(column, rows, n, out);
  TranslateRowsOf<uint64_t>(column, rows, n, out);
}

absl::Status Piece::Grow(uint64_t used_bytes, uint64_t needed_bytes, AccumulatorMemory* memory) {
  if (needed_bytes <= capacity_bytes) return absl::OkStatus();
  QUERN_ASSIGN_OR_RETURN(uint8_t* const larger, memory->Take(needed_bytes));
  if (used_bytes > 0) std::memcpy(larger, data, used_bytes);
  GiveBack(memory);
  data = larger;
  capacity_bytes = AccumulatorMemory::PieceBytes(needed_bytes);
  return absl::OkStatus();
}

void Piece::GiveBack(AccumulatorMemory* memory) {
  if (capacity_bytes > 0) memory->GiveBack(data, capacity_bytes);
  *this = {};
}

absl::StatusOr<uint32_t> FitOf(int64_t fit_or_code) {
  if (fit_or_code >= 0) return static_cast<uint32_t>(fit_or_code);
  if (fit_or_code == kQuernValueTooLarge)
    return absl::ResourceExhaustedError(
        "value too large for an output column: above 2147483647 bytes; accepted: large_utf8, large_binary");
  return absl::ResourceExhaustedError("memory limit exceeded: result strings; accepted: a higher memory limit");
}

std::string AggregateText(const AggregateSpec& spec) {
  std::string text(RowOf(spec.function).text);
  if (spec.function == AggregateFunction::kHost) text += "." + spec.host_name;
  text += "(";
  for (size_t i = 0; i < spec.arguments.size(); ++i) text += (i > 0 ? "," : "") + PrintType(spec.arguments[i]);
  return text + ")";
}

absl::Status SpecAccumulator::Damaged(std::string_view bytes) const {
  return InvalidArgument("saved state of " + AggregateText(spec_) + " is damaged: " + std::to_string(bytes.size()) +
                         " bytes; accepted: bytes that this version wrote");
}

bool IsOutOfLine(const AggregateSpec& aggregate) {
  switch (aggregate.function) {
    case AggregateFunction::kMin:
    case AggregateFunction::kMax:
    case AggregateFunction::kAny:
    case AggregateFunction::kFirst:
    case AggregateFunction::kLast: return IsOfBytes(aggregate.arguments[0]);
    case AggregateFunction::kCountDistinct:
    case AggregateFunction::kSumDistinct:
    case AggregateFunction::kMedian:
    case AggregateFunction::kQuantile:
    case AggregateFunction::kApproxCountDistinct:
    case AggregateFunction::kStringAgg:
    case AggregateFunction::kHost: return true;
    case AggregateFunction::kCountStar:
    case AggregateFunction::kCount:
    case AggregateFunction::kSum:
    case AggregateFunction::kSum128:
    case AggregateFunction::kAvg:
    case AggregateFunction::kBoolAnd:
    case AggregateFunction::kBoolOr:
    case AggregateFunction::kBitAnd:
    case AggregateFunction::kBitOr:
    case AggregateFunction::kBitXor:
    case AggregateFunction::kVarPop:
    case AggregateFunction::kVarSamp:
    case AggregateFunction::kStddevPop:
    case AggregateFunction::kStddevSamp:
    case AggregateFunction::kCovarPop:
    case AggregateFunction::kCovarSamp:
    case AggregateFunction::kCorr: return false;
  }
  return false;
}

absl::StatusOr<std::unique_ptr<OutOfLineAggregate>> MakeOutOfLineAggregate(const AggregateSpec& aggregate) {
  if (!IsOutOfLine(aggregate)) {
    return Internal("aggregate that is part of the kernel: " + AggregateText(aggregate) +
                    "; accepted: those kept up to date by calls");
  }
  const AggregateFunction function = aggregate.function;
  if (function == AggregateFunction::kHost) return MakeHostAccumulator(aggregate);
  if (function == AggregateFunction::kStringAgg) return MakeStringAgg(aggregate);
  if (function == AggregateFunction::kApproxCountDistinct) return MakeApproxCountDistinct(aggregate);
  if (function == AggregateFunction::kMedian || function == AggregateFunction::kQuantile)
    return MakeQuantile(aggregate);
  if (function == AggregateFunction::kCountDistinct || function == AggregateFunction::kSumDistinct)
    return MakeDistinctAccumulator(aggregate);
  return MakeStringAccumulator(aggregate);
}

}  // namespace quern
