// SPDX-License-Identifier: Apache-2.0
// Readers of maps: what the error of a row says, when the compiled kernel is tried on decimals beyond 64 bits, and what
// is counted. (What the functions compute: map_test.cc.)
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "codegen/compiler.h"
#include "codegen/operators.h"
#include "runtime/base/thresholds.h"

namespace quern {
namespace {

std::shared_ptr<const RowMapper> MapperOf(const std::string& text, Engine engine = Engine::kJit) {
  const absl::StatusOr<MapSpec> spec = ParseSpecOf<MapSpec>(text);
  EXPECT_TRUE(spec.ok()) << spec.status();
  CompileOptions options;
  options.engine = engine;
  const absl::StatusOr<CompiledKernel> compiled = Compile(*spec, options);
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  return MakeRowMapper(compiled->kernel);
}

template <class T>
QuernColumn ColumnOf(const std::vector<T>& values) {
  QuernColumn column = {};
  column.values = values.data();
  return column;
}

// A batch of the columns, whose rows are as many as the first one's.
template <class T, class... Ts>
BatchView BatchOf(const std::vector<T>& first, const std::vector<Ts>&... more) {
  BatchView batch;
  batch.keys = {ColumnOf(first), ColumnOf(more)...};
  batch.num_rows = first.size();
  return batch;
}

std::string Read(MapReader* reader, OutputBatch* out, const BatchView& batch) {
  absl::Status status = reader->SetInput(batch);
  for (bool more = status.ok(); more;) {
    const absl::StatusOr<bool> next = reader->Next(out);
    status = next.status();
    more = next.ok() && *next;
  }
  return std::string(status.message());
}

// ---- errors ----

constexpr char kAccepted[] = "; accepted: rows for which the type has the result";

// What both engines say of a batch.
std::string ErrorOf(const std::string& text, const BatchView& batch) {
  std::string errors[2];
  for (const Engine engine : {Engine::kGeneric, Engine::kJit}) {
    const auto mapper = MapperOf(text, engine);
    MapReader reader(mapper, nullptr);
    OutputBatch out(mapper->descriptor().results(), 8, nullptr);
    errors[engine == Engine::kJit ? 1 : 0] = Read(&reader, &out, batch);
  }
  EXPECT_EQ(errors[0], errors[1]);
  EXPECT_TRUE(errors[0].ends_with(kAccepted)) << errors[0];
  return errors[0].substr(0, errors[0].size() - std::min(errors[0].size(), sizeof(kAccepted) - 1));
}

using Integers = std::vector<int32_t>;
using Decimals = std::vector<__int128>;

__int128 Nines(int digits) {
  __int128 nines = 0;
  for (; digits > 0; --digits) nines = nines * 10 + 9;
  return nines;
}

TEST(MapReader, ErrorsNameRowValuesAndCause) {
  const Integers most = {1, 2147483647}, zero = {1, 0};
  EXPECT_EQ(ErrorOf("map in=i32 out=case_when(is_null($0),0:i32,add_checked($0,1:i32))", BatchOf(most)),
            "row 1: add_checked($0,1:i32) of 2147483647 and 1: overflow of i32");
  EXPECT_EQ(ErrorOf("map in=i32,i32 out=divide_checked($0,$1)", BatchOf(most, zero)),
            "row 1: divide_checked($0,$1) of 2147483647 and 0: division by 0");
  EXPECT_EQ(ErrorOf("map in=decimal128(5,2),decimal128(5,2) out=divide_decimal_checked($0,$1,decimal128(10,2))",
                    BatchOf(Decimals{150}, Decimals{0})),
            "row 0: divide_decimal_checked($0,$1,decimal128(10,2)) of 1.50 and 0.00: division by 0");
  EXPECT_EQ(ErrorOf("map in=f64 out=cast($0,i32)", BatchOf(std::vector<double>{3e9})),
            "row 0: cast($0,i32) of 3e+09: overflow of i32");
}

// A call becomes several instructions: the values are those of the call, with their own scales.
TEST(MapReader, ErrorsNameTheValuesOfTheCall) {
  EXPECT_EQ(ErrorOf("map in=decimal128(9,4) out=cast($0,decimal128(5,2))", BatchOf(Decimals{123456789})),
            "row 0: cast($0,decimal128(5,2)) of 12345.6789: overflow of decimal128(5,2)");
  EXPECT_EQ(ErrorOf("map in=i32 out=cast($0,decimal128(5,2))", BatchOf(Integers{123456})),
            "row 0: cast($0,decimal128(5,2)) of 123456: overflow of decimal128(5,2)");
  EXPECT_EQ(ErrorOf("map in=decimal128(13,2) out=cast($0,i32)", BatchOf(Decimals{9999999999950})),
            "row 0: cast($0,i32) of 99999999999.50: overflow of i32");
  const std::string nines(38, '9');
  EXPECT_EQ(
      ErrorOf("map in=decimal128(38,2),decimal128(38,0) out=add($0,$1)", BatchOf(Decimals{100}, Decimals{Nines(38)})),
      "row 0: add($0,$1) of 1.00 and " + nines + ": overflow of decimal128(38,2)");
}

// The units of a second are a parameter of the instruction, and no value.
TEST(MapReader, ErrorsNameUnits) {
  const std::string text =
      ErrorOf("map in=date32 out=date_to_timestamp($0,1000000000:i64)", BatchOf(Integers{1 << 30}));
  EXPECT_TRUE(text.starts_with("row 0: date_to_timestamp($0,1000000000:i64) of ")) << text;
  EXPECT_TRUE(text.ends_with(" and 1000000000: overflow of timestamp")) << text;
}

// ---- decimals beyond 64 bits ----

constexpr char kSums[] = "map in=decimal128(38,0),decimal128(38,0) out=add($0,$1)";

// A reader that gets one batch of a piece after the other, as in a pipeline, holds the compiled kernel back, and tries
// it again: the rows that follow are compiled.
TEST(MapReader, WideDecimalsHoldTheCompiledKernelBackOverBatches) {
  const Decimals wide(8, Nines(30)), small(8, 5);
  const auto mapper = MapperOf(kSums);
  MapReader reader(mapper, nullptr);
  OutputBatch out(mapper->descriptor().results(), 8, nullptr);
  EXPECT_EQ(Read(&reader, &out, BatchOf(wide, wide)), "");
  EXPECT_EQ(mapper->counters().compiled_rows, 0u);
  EXPECT_EQ(mapper->counters().generic_rows, 8u);
  for (uint64_t i = 1; i < thresholds::kWideRetryCalls; ++i) EXPECT_EQ(Read(&reader, &out, BatchOf(small, small)), "");
  EXPECT_EQ(mapper->counters().compiled_rows, 0u);
  EXPECT_EQ(mapper->counters().generic_rows, 8 * thresholds::kWideRetryCalls);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Read(&reader, &out, BatchOf(small, small)), "");
  EXPECT_EQ(mapper->counters().compiled_rows, 16u);
  EXPECT_EQ(mapper->counters().generic_rows, 8 * thresholds::kWideRetryCalls);
}

// The piece of a batch that the compiled kernel gave up counts as the generic kernel's, the others as its own.
TEST(MapReader, CountsWhichKernelComputed) {
  constexpr uint64_t kPiece = 4096;
  Decimals numbers(2 * kPiece, 7);
  numbers.back() = Nines(30);
  const auto mapper = MapperOf(kSums);
  MapReader reader(mapper, nullptr);
  OutputBatch out(mapper->descriptor().results(), numbers.size(), nullptr);
  EXPECT_EQ(Read(&reader, &out, BatchOf(numbers, numbers)), "");
  EXPECT_EQ(mapper->counters().compiled_rows, kPiece);
  EXPECT_EQ(mapper->counters().generic_rows, kPiece);
  EXPECT_EQ(mapper->counters().compiled_batches, 1u);
  EXPECT_EQ(mapper->counters().generic_batches, 1u);
}

// For a caller that computes the rows in another way after an error.
TEST(MapReader, ErrorsNeedNotBeExplained) {
  const auto mapper = MapperOf("map in=i32 out=divide_checked(1:i32,$0)");
  MapReader reader(mapper, nullptr);
  OutputBatch out(mapper->descriptor().results(), 8, nullptr);
  const Integers divisors = {1, 0};
  EXPECT_TRUE(reader.SetInput(BatchOf(divisors)).ok());
  const absl::Status status = reader.Next(&out, /*explains=*/false).status();
  EXPECT_TRUE(absl::IsOutOfRange(status));
  EXPECT_EQ(status.message(), "a row without a result");
}

}  // namespace
}  // namespace quern
