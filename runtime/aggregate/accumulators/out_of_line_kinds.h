// SPDX-License-Identifier: Apache-2.0
// What out-of-line aggregates share: dispatch once per batch, growing pieces, the bytes of saved states.
#ifndef QUERN_RUNTIME_AGGREGATE_ACCUMULATORS_OUT_OF_LINE_KINDS_H_
#define QUERN_RUNTIME_AGGREGATE_ACCUMULATORS_OUT_OF_LINE_KINDS_H_

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/aggregate/accumulators/out_of_line_aggregates.h"
#include "runtime/base/prefetch_line.h"
#include "runtime/base/status.h"
#include "runtime/blocks/blocks.h"
#include "runtime/blocks/storage_dispatch.h"

namespace quern {

// Each makes the functions of its name; `spec` satisfies IsOutOfLine.
std::unique_ptr<OutOfLineAggregate> MakeStringAccumulator(const AggregateSpec& spec);  // min, max, any, first, last
std::unique_ptr<OutOfLineAggregate> MakeStringAgg(const AggregateSpec& spec);
std::unique_ptr<OutOfLineAggregate> MakeDistinctAccumulator(const AggregateSpec& spec);  // count_distinct, sum_distinct
std::unique_ptr<OutOfLineAggregate> MakeApproxCountDistinct(const AggregateSpec& spec);
std::unique_ptr<OutOfLineAggregate> MakeQuantile(const AggregateSpec& spec);  // and median
absl::StatusOr<std::unique_ptr<OutOfLineAggregate>> MakeHostAccumulator(const AggregateSpec& spec);

// "sum_distinct(i64)", "host.area(f64,f64)": without parameters and flags.
std::string AggregateText(const AggregateSpec& spec);

class SpecAccumulator : public OutOfLineAggregate {
 protected:
  explicit SpecAccumulator(const AggregateSpec& spec) : spec_(spec) {}

  const AggregateSpec& spec() const { return spec_; }
  const ColumnType& type() const { return spec_.arguments[0]; }
  // How its values are read: in the same way as keys, so that equal floats have equal bits.
  Storage storage() const { return RowOf(type().id).key_storage; }
  CollationRule rule() const { return RuleOf(type().collation); }
  absl::Status Damaged(std::string_view bytes) const;

 private:
  AggregateSpec spec_;
};

// ---- values of a batch --------------------------------------------------------------------------------------------

constexpr uint32_t kBlockRows = 512;  // rows read before they are used: 12 KB of strings at most, in the L1 cache

// Rows of one block and the location of their values.
struct ValueRows {
  QuernColumn column;          // a copy, so that the compiler need not assume that stores into states change it
  const uint32_t* rows;        // of `column`: rows of the dictionary, where there is one
  const uint32_t* batch_rows;  // of the batch
  uint64_t first_row_id;
  uint8_t* const* states;
  uint32_t n;
  uint32_t prefetch_rows;  // distance; by default 16: a state's line takes some 80 ns to arrive, a row some 5 to 10
  uint32_t* num_added;

  uint64_t RowId(uint32_t i) const { return first_row_id + batch_rows[i]; }
};

// Tells how many of some rows were added, however the loop over them ends.
class AddedRows {
 public:
  explicit AddedRows(uint32_t* total) : total_(total) {}
  AddedRows(const AddedRows&) = delete;
  AddedRows& operator=(const AddedRows&) = delete;
  ~AddedRows() { *total_ += n; }

  uint32_t n = 0;

 private:
  uint32_t* total_;
};

// Translates n rows that are not null to rows of the dictionary.
void TranslateRows(TypeId index, const QuernColumn& column, const uint32_t* rows, uint32_t n, uint32_t* out);

// Calls f(ValueRows) for the rows of an accumulator's only argument, kBlockRows at a time, until it fails.
template <class F>
absl::Status ForEachBlock(const ColumnType& type, const AccumulatorRows& rows, F&& f) {
  uint32_t translated[kBlockRows];
  const QuernColumn& column = rows.columns[0];
  for (uint32_t first = 0; first < rows.n; first += kBlockRows) {
    const uint32_t n = std::min(kBlockRows, rows.n - first);
    const uint32_t* const batch_rows = rows.rows + first;
    if (type.is_dictionary) TranslateRows(type.index, column, batch_rows, n, translated);
    QUERN_RETURN_IF_ERROR(
        f(ValueRows{type.is_dictionary ? *column.dictionary : column, type.is_dictionary ? translated : batch_rows,
                    batch_rows, rows.first_row_id, rows.states + first, n, rows.prefetch_rows, rows.num_added}));
  }
  return absl::OkStatus();
}

// ---- states -------------------------------------------------------------------------------------------------------

template <class State>
State* StateAt(uint8_t* state) {
  static_assert(alignof(State) <= 8 && sizeof(State) % 8 == 0);
  return reinterpret_cast<State*>(state);
}

template <class State>
const State& StateAt(const uint8_t* state) {
  return *reinterpret_cast<const State*>(state);
}

// An array that grows. All zero: it has no memory yet.
struct Piece {
  uint8_t* data;
  uint64_t capacity_bytes;

  // Room for `needed_bytes`; the first `used_bytes` are kept.
  absl::Status Grow(uint64_t used_bytes, uint64_t needed_bytes, AccumulatorMemory* memory);
  void GiveBack(AccumulatorMemory* memory);
};

// ---- results ------------------------------------------------------------------------------------------------------

inline void WriteValidity(QuernOutColumn* out, uint64_t row, bool valid) {
  if (out->validity == nullptr) return;
  blocks::SetBitTo(out->validity, row, valid);
  out->null_count += !valid;
}

// Converts the result of FitStrings.
absl::StatusOr<uint32_t> FitOf(int64_t fit_or_code);

// ---- saved states -------------------------------------------------------------------------------------------------

// Numbers as they lie in memory: all machines that Quern generates kernels for are little-endian.
template <class T>
void AppendValue(T value, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof(T));
}

// Reads what Save wrote, never beyond its end: a read past the end returns zeros and makes IsAtEnd false permanently.
class SavedReader {
 public:
  explicit SavedReader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  T Read() {
    const uint8_t* const at = ReadBytes(sizeof(T));
    return at != nullptr ? blocks::Load<T>(at) : T{};
  }
  // nullptr: fewer bytes are left.
  const uint8_t* ReadBytes(uint64_t num_bytes) {
    if (num_bytes > rest_.size()) ok_ = false;
    if (!ok_) return nullptr;
    const auto* const at = reinterpret_cast<const uint8_t*>(rest_.data());
    rest_.remove_prefix(num_bytes);
    return at;
  }
  uint64_t num_bytes_left() const { return rest_.size(); }
  bool ok() const { return ok_; }
  bool IsAtEnd() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_ACCUMULATORS_OUT_OF_LINE_KINDS_H_
