// SPDX-License-Identifier: Apache-2.0
// Merges of a host's vectors: up to four runs, batches in order or not, in any order of calls. What comes out is in
// order, and as many rows as went in; rows out of order, a run that does not exist and a run that has ended are refused
// in one line.
#include <iterator>
#include <limits>
#include <memory>
#include <vector>

#include "test/fuzz/targets/host_calls.h"

namespace quern::fuzz {
namespace {

constexpr uint32_t kMostRows = 24;

// The first key of each is the column whose order is checked: 'i' of i64, 'f' of f64, 'u' of strings that are not.
struct MergeSpec {
  const char* text;
  const char* columns;  // 'i': i64; 'f': f64; 'u': utf8
  bool nullable;        // the first key
  bool descending;
};
constexpr MergeSpec kSpecs[] = {
    {"sort keys=i64:out", "i", false, false},
    {"sort keys=i64:desc:out payload=utf8", "iu", false, true},
    {"sort keys=i64:nullable:nulls_first:out,utf8:out limit=20", "iu", true, false},
    {"sort keys=f64:out,i64:desc:out", "fi", false, false},
    {"sort keys=utf8:out payload=i64", "ui", false, false},
    {"sort keys=utf8(utf8mb4_general_ci):nullable:desc:out,utf8:out", "uu", true, true},
};

// A batch and its vectors, which must stay while its run is read. Each has exactly the bytes that are promised.
struct Batch {
  std::vector<std::unique_ptr<uint8_t[]>> memory;
  std::vector<quern_column> columns;
  quern_batch batch = {};

  uint8_t* Buffer(size_t bytes, Input* in) {
    memory.push_back(std::make_unique<uint8_t[]>(bytes));
    in->Fill(memory.back().get(), bytes);
    return memory.back().get();
  }
};

template <class T>
void SortValues(uint8_t* bytes, size_t n, bool descending) {
  std::vector<T> values(n);
  if (n != 0) std::memcpy(values.data(), bytes, n * sizeof(T));
  std::sort(values.begin(), values.end());
  if (descending) std::reverse(values.begin(), values.end());
  if (n != 0) std::memcpy(bytes, values.data(), n * sizeof(T));
}

void AddStrings(size_t n, Input* in, Batch* made, quern_column* column) {
  auto* const offsets = reinterpret_cast<int32_t*>(made->Buffer((n + 1) * 4, in));
  int32_t next = 0;
  for (size_t i = 0; i <= n; ++i) {
    offsets[i] = next;
    next += static_cast<int32_t>(in->Below(12));
  }
  column->offsets = offsets;
  column->values = made->Buffer(static_cast<size_t>(offsets[n]), in);
}

std::unique_ptr<Batch> ReadBatch(const MergeSpec& spec, Input* in) {
  auto made = std::make_unique<Batch>();
  const size_t n = in->Below(kMostRows + 1);
  const bool in_order = in->Chance(192);
  for (const char* kind = spec.columns; *kind != '\0'; ++kind) {
    quern_column column = {};
    if (*kind == 'u') AddStrings(n, in, made.get(), &column);
    else column.values = made->Buffer(n * 8, in);
    const bool has_nulls = spec.nullable && kind == spec.columns && in->Chance(64);
    if (has_nulls) column.validity = made->Buffer((n + 7) / 8, in);
    if (in_order && *kind == 'i' && kind == spec.columns)
      SortValues<int64_t>(const_cast<uint8_t*>(static_cast<const uint8_t*>(column.values)), n, spec.descending);
    made->columns.push_back(column);
  }
  // A spec's keys come first in its columns, so that one array serves as both.
  made->batch.keys = made->columns.data();
  made->batch.payload = made->columns.data() + 1;
  made->batch.num_rows = n;
  return made;
}

// Rows of results, and whether the first column is in order.
class Checker {
 public:
  explicit Checker(const MergeSpec& spec) : spec_(spec) {}
  void Take(const quern_result& result) {
    num_rows_ += result.num_rows;
    if (spec_.columns[0] == 'i' && !spec_.nullable) CheckOrder(result);
    for (size_t i = 0; i < result.num_columns; ++i)
      if (spec_.columns[i] == 'u') CheckStrings(result.columns[i], result.num_rows);
  }
  uint64_t num_rows() const { return num_rows_; }

 private:
  void CheckOrder(const quern_result& result) {
    for (uint64_t row = 0; row < result.num_rows; ++row) {
      int64_t value = 0;
      std::memcpy(&value, static_cast<const uint8_t*>(result.columns[0].values) + row * 8, 8);
      Require(!has_last_ || (spec_.descending ? value <= last_ : value >= last_), "merged rows are in order");
      last_ = value;
      has_last_ = true;
    }
  }
  static void CheckStrings(const quern_column& column, uint64_t num_rows) {
    const auto* const offsets = static_cast<const int32_t*>(column.offsets);
    for (uint64_t row = 0; row < num_rows; ++row) Require(offsets[row] <= offsets[row + 1], "offsets of a result rise");
    uint32_t sum = 0;
    for (int32_t i = 0; num_rows != 0 && i < offsets[num_rows]; ++i)
      sum += static_cast<const uint8_t*>(column.values)[i];
    [[maybe_unused]] const volatile uint32_t kept = sum;
  }

  const MergeSpec& spec_;
  uint64_t num_rows_ = 0;
  int64_t last_ = 0;
  bool has_last_ = false;
};

void RequireNoInput(const JobHandle& merge, uint32_t run) {
  quern_input_options options = {};
  options.struct_size = sizeof(options);
  options.run = run;
  quern_error error;
  quern_input* input = nullptr;
  Require(!Succeeded(quern_input_create(merge.get(), QUERN_PORT_ROWS, &options, &input, &error), error),
          "a run that does not exist has no input");
}

// Calls in any order, chosen by the input; returns once the merge is done, refuses for good, or the input ends. Number
// num_runs is a run that does not exist: no input can be made for it.
void Drive(const MergeSpec& spec, const JobHandle& merge, uint32_t num_runs, Input* in) {
  std::vector<InputHandle> runs;
  for (uint32_t run = 0; run < num_runs; ++run) runs.push_back(NewInput(merge, QUERN_PORT_ROWS, run));
  const OutputHandle output = NewOutput(merge, QUERN_PORT_ROWS, 5);
  std::vector<std::unique_ptr<Batch>> batches;
  Checker checker(spec);
  uint64_t rows_in = 0;
  while (!in->AtEnd()) {
    quern_error error;
    const uint32_t call = in->Below(8);
    const uint32_t run = in->Below(num_runs + 1);
    if (call < 4 && run == num_runs) RequireNoInput(merge, run);
    if (call == 0) {
      if (run < num_runs) Succeeded(quern_input_finish(runs[run].get(), &error), error);
    } else if (call < 4) {
      batches.push_back(ReadBatch(spec, in));
      const quern_batch& batch = batches.back()->batch;
      if (run < num_runs && Succeeded(quern_input_append(runs[run].get(), &batch, &error), error))
        rows_in += batch.num_rows;
    } else {
      const quern_result* const result = Next(output);
      if (result == nullptr) return;
      checker.Take(*result);
      Require(checker.num_rows() <= rows_in, "no more rows come out than went in");
      Require(result->state != QUERN_RESULT_NEEDS_INPUT || result->run < num_runs, "a run that needs input exists");
    }
  }
}

}  // namespace
}  // namespace quern::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace fuzz = quern::fuzz;
  fuzz::Input in(data, size);
  const fuzz::MergeSpec& spec = fuzz::kSpecs[in.Below(std::size(fuzz::kSpecs))];
  const uint32_t num_runs = 1 + in.Below(4);
  const fuzz::KernelHandle kernel = fuzz::CompileGeneric(spec.text);
  fuzz::Require(kernel != nullptr, "a spec of this list is right", spec.text);
  fuzz::Drive(spec, fuzz::NewJob(kernel, num_runs), num_runs, &in);
  return 0;
}
