// SPDX-License-Identifier: Apache-2.0
// Map kernels, compiled and generic, against an evaluation row by row (expression_rows.h): every function on every type
// that it accepts, random expressions of many parts, with nulls, selections, bit offsets, ends of types and buffers of
// just the rows.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "codegen/compiler.h"
#include "codegen/operators.h"
#include "test/unit/runtime/map/expression_rows.h"
#include "test/unit/seed.h"

namespace quern {
namespace {

using test::Row;
using test::RowValue;

// ---- columns ----

// The buffers of one column, without a byte to spare.
struct Column {
  std::vector<uint8_t> values, validity;
  QuernColumn column = {};
};

void SetBit(std::vector<uint8_t>* bits, uint64_t i, bool value) {
  if (value) (*bits)[i / 8] = static_cast<uint8_t>((*bits)[i / 8] | 1 << i % 8);
}

template <class T>
void Put(T value, uint64_t row, std::vector<uint8_t>* values) {
  std::memcpy(values->data() + row * sizeof(T), &value, sizeof(T));
}

void PutValue(const RowValue& value, TypeId id, uint64_t row, std::vector<uint8_t>* values) {
  switch (RowOf(id).width_bytes) {
    case 1: return Put(static_cast<uint8_t>(value.number), row, values);
    case 2: return Put(static_cast<uint16_t>(value.number), row, values);
    case 4:
      if (id == TypeId::kF32) return Put(static_cast<float>(value.real), row, values);
      return Put(static_cast<uint32_t>(value.number), row, values);
    case 8:
      if (id == TypeId::kF64) return Put(value.real, row, values);
      return Put(static_cast<uint64_t>(value.number), row, values);
    default: return Put(value.number, row, values);
  }
}

std::unique_ptr<Column> MakeColumnOf(const ValueType& type, const std::vector<Row>& rows, size_t c, uint64_t offset) {
  auto made = std::make_unique<Column>();
  const uint64_t n = rows.size();
  const bool is_bool = type.id == TypeId::kBool;
  made->values.resize(is_bool ? (offset + n + 7) / 8 : n * RowOf(type.id).width_bytes);
  made->values.shrink_to_fit();
  if (type.nullable) made->validity.resize((offset + n + 7) / 8);
  for (uint64_t r = 0; r < n; ++r) {
    if (is_bool) SetBit(&made->values, offset + r, rows[r][c].number != 0);
    else PutValue(rows[r][c], type.id, r, &made->values);
    if (type.nullable) SetBit(&made->validity, offset + r, rows[r][c].valid);
  }
  made->column.values = made->values.data();
  made->column.validity = type.nullable ? made->validity.data() : nullptr;
  made->column.bit_offset = offset;
  return made;
}

template <class T>
T Get(const QuernOutColumn& column, uint64_t row) {
  T value;
  std::memcpy(&value, static_cast<const uint8_t*>(column.values) + row * sizeof(T), sizeof(T));
  return value;
}

bool BitOf(const void* bits, uint64_t i) { return (static_cast<const uint8_t*>(bits)[i / 8] >> (i % 8) & 1) != 0; }

template <class Unsigned, class Signed>
__int128 IntegerAt(const QuernOutColumn& column, bool is_unsigned, uint64_t row) {
  return is_unsigned ? static_cast<__int128>(Get<Unsigned>(column, row)) : Get<Signed>(column, row);
}

RowValue ValueAt(const QuernOutColumn& column, const ValueType& type, uint64_t row) {
  RowValue value{.valid = !type.nullable || BitOf(column.validity, row)};
  const bool is_unsigned = test::rows::IsUnsignedInteger(type.id);
  const uint32_t bytes = RowOf(type.id).width_bytes;
  if (type.id == TypeId::kBool) value.number = BitOf(column.values, row);
  else if (type.id == TypeId::kF32) value.real = Get<float>(column, row);
  else if (type.id == TypeId::kF64) value.real = Get<double>(column, row);
  else if (bytes == 1) value.number = IntegerAt<uint8_t, int8_t>(column, is_unsigned, row);
  else if (bytes == 2) value.number = IntegerAt<uint16_t, int16_t>(column, is_unsigned, row);
  else if (bytes == 4) value.number = IntegerAt<uint32_t, int32_t>(column, is_unsigned, row);
  else if (bytes == 8) value.number = IntegerAt<uint64_t, int64_t>(column, is_unsigned, row);
  else value.number = Get<__int128>(column, row);
  return value;
}

std::string Text(const RowValue& value, const ValueType& type) {
  if (!value.valid) return "null";
  Literal literal;
  literal.number = value.number;
  literal.real = value.real;
  return ConstantText(literal, type);
}

// ---- random values, types and expressions ----

const ValueType kTypes[] = {
    {.id = TypeId::kBool},
    {.id = TypeId::kI8},
    {.id = TypeId::kI16},
    {.id = TypeId::kI32},
    {.id = TypeId::kI64},
    {.id = TypeId::kU8},
    {.id = TypeId::kU16},
    {.id = TypeId::kU32},
    {.id = TypeId::kU64},
    {.id = TypeId::kF32},
    {.id = TypeId::kF64},
    {.id = TypeId::kDate32},
    {.id = TypeId::kTimestamp},
    {.id = TypeId::kDecimal32, .digits = 7, .scale = 2},
    {.id = TypeId::kDecimal64, .digits = 18, .scale = 2},
    {.id = TypeId::kDecimal128, .digits = 5, .scale = 2},
    {.id = TypeId::kDecimal128, .digits = 15, .scale = 2},
    {.id = TypeId::kDecimal128, .digits = 18, .scale = 0},
    {.id = TypeId::kDecimal128, .digits = 38, .scale = 6},
};

// Whether the second argument has another type than the first.
bool IsOfDates(const ExpressionFunctionRow& row) {
  return row.accepts == Operands::kDateAndNumber || row.accepts == Operands::kDateAndUnits ||
         row.accepts == Operands::kTimestampAndUnits;
}
ValueType FirstOfDates(const ExpressionFunctionRow& row) {
  return {.id = row.accepts == Operands::kTimestampAndUnits ? TypeId::kTimestamp : TypeId::kDate32};
}

class Maker {
 public:
  explicit Maker(uint64_t seed) : random_(seed) {}

  uint64_t Below(uint64_t n) { return random_() % n; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }

  ValueType AnyType() {
    ValueType type = kTypes[Below(std::size(kTypes))];
    type.nullable = OneIn(2);
    return type;
  }

  // Near 0, near an end, or anything; of more than 20 numbers.
  __int128 Whole(__int128 least, __int128 most) {
    const uint64_t kind = Below(8);
    const auto near = static_cast<__int128>(Below(20));
    if (kind == 0) return least + near;
    if (kind == 1) return most - near;
    if (kind < 5) return std::max(least, std::min(most, near - (least < 0 ? 10 : 0)));
    const auto bits = static_cast<int>(Below(127));
    const auto any = static_cast<__int128>(static_cast<unsigned __int128>(random_()) << 64 | random_()) >> bits;
    return any < least || any > most ? near : any;
  }

  RowValue Value(const ValueType& type) {
    RowValue value{.valid = !type.nullable || !OneIn(4)};
    if (type.id == TypeId::kBool) {
      value.number = static_cast<__int128>(Below(2));
    } else if (IsDecimal(type.id)) {
      const __int128 most = test::rows::Power(type.digits) - 1;
      value.number = Whole(-most, most);
    } else if (test::rows::IsReal(type.id)) {
      value.real = Real(type.id);
    } else {
      value.number = Whole(test::rows::LeastOf(type.id), test::rows::MostOf(type.id));
    }
    return value;
  }

  Expression Constant(ValueType type) {
    type.nullable = false;
    if (OneIn(8)) return *MakeConstant(std::nullopt, type);
    const RowValue value = Value(type);
    return *MakeConstant(Literal{.number = value.number, .real = value.real}, type);
  }

  // The units of a second.
  Expression Units() {
    constexpr int kUnits[] = {1, 1000, 1000000, 1000000000};
    return *MakeConstant(Literal{.number = kUnits[Below(std::size(kUnits))]}, {.id = TypeId::kI64});
  }

  // An expression of any type over the columns.
  Expression Any(const std::vector<ValueType>& columns, int depth) {
    if (depth <= 0 || OneIn(6)) {
      if (columns.empty() || OneIn(4)) return Constant(AnyType());
      return *MakeColumn(static_cast<uint32_t>(Below(columns.size())), columns);
    }
    for (int tries = 0; tries < 200; ++tries) {
      // Those before the functions of strings (map_strings_test.cc).
      const auto functions = AllExpressionFunctions().first(static_cast<size_t>(ExpressionFunction::kLike));
      const ExpressionFunctionRow& row = functions[Below(functions.size())];
      size_t n = row.min_arguments;
      while (n < row.max_arguments && n < 5 && OneIn(2)) n += row.accepts == Operands::kCases ? 2 : 1;
      std::vector<Expression> arguments;
      for (size_t i = 0; i < n; ++i) arguments.push_back(Any(columns, depth - 1 - static_cast<int>(Below(2))));
      Suit(row, &arguments);
      ValueType target = AnyType();
      target.nullable = false;
      absl::StatusOr<Expression> call = MakeCall(row.id, std::move(arguments), target);
      if (call.ok()) return *std::move(call);
    }
    return Constant(AnyType());
  }

 private:
  double Real(TypeId id) {
    constexpr double kSome[] = {0.0,
                                -0.0,
                                1.5,
                                -2.5,
                                0.5,
                                3,
                                -1,
                                127,
                                128,
                                2147483648.0,
                                9223372036854775808.0,
                                -9223372036854775808.0,
                                18446744073709551616.0,
                                1e30,
                                1e-30};
    double value = kSome[Below(std::size(kSome))];
    if (OneIn(12)) value = std::numeric_limits<double>::quiet_NaN();
    if (OneIn(12)) value = -std::numeric_limits<double>::infinity();
    if (OneIn(3)) value = static_cast<double>(static_cast<int64_t>(random_())) / (1 << Below(31));
    return id == TypeId::kF32 ? static_cast<float>(value) : value;
  }

  // Makes arguments that do not fit constants of types that do.
  void Suit(const ExpressionFunctionRow& row, std::vector<Expression>* arguments) {
    ValueType type = arguments->back().type;
    if (row.accepts == Operands::kDates) type = {.id = TypeId::kDate32};
    if (row.accepts == Operands::kTruths) type = {.id = TypeId::kBool};
    if (IsOfDates(row)) {
      const ValueType first = FirstOfDates(row);
      if (arguments->front().type.id != first.id) arguments->front() = Constant(first);
      if (row.accepts != Operands::kDateAndNumber) arguments->back() = Units();
      else if (arguments->back().type.id != TypeId::kI32) arguments->back() = Constant({.id = TypeId::kI32});
      return;
    }
    for (size_t i = 0; i < arguments->size(); ++i) {
      Expression& argument = (*arguments)[i];
      const bool is_condition = row.accepts == Operands::kCases && i % 2 == 0 && i + 1 < arguments->size();
      const ValueType wanted = is_condition ? ValueType{.id = TypeId::kBool} : type;
      if (!AreAlike(argument.type, wanted) && row.accepts != Operands::kAnyValue && !OneIn(10))
        argument = Constant(wanted);
    }
  }

  std::mt19937_64 random_;
};

// ---- the test ----

struct Batch {
  std::vector<Row> rows;
  std::vector<uint32_t> selection;  // empty: none
  std::vector<std::unique_ptr<Column>> columns;

  size_t num_rows() const { return selection.empty() ? rows.size() : selection.size(); }
  size_t RowAt(size_t i) const { return selection.empty() ? i : selection[i]; }
};

Batch MakeBatch(const std::vector<ValueType>& types, size_t num_rows, Maker* maker) {
  Batch batch;
  for (size_t r = 0; r < num_rows; ++r) {
    batch.rows.emplace_back();
    for (const ValueType& type : types) batch.rows.back().push_back(maker->Value(type));
  }
  for (size_t c = 0; c < types.size(); ++c)
    batch.columns.push_back(MakeColumnOf(types[c], batch.rows, c, maker->Below(20)));
  if (num_rows > 0 && maker->OneIn(3))
    for (size_t n = maker->Below(2 * num_rows) + 1; n > 0; --n)
      batch.selection.push_back(static_cast<uint32_t>(maker->Below(num_rows)));
  return batch;
}

BatchView ViewOf(const Batch& batch) {
  BatchView view;
  for (const auto& column : batch.columns) view.keys.push_back(column->column);
  view.num_rows = batch.num_rows();
  view.selection = batch.selection.empty() ? nullptr : batch.selection.data();
  return view;
}

void ExpectNullsCounted(const MapSpec& spec, const OutputBatch& out) {
  for (size_t r = 0; r < spec.results.size(); ++r) {
    uint64_t num_nulls = 0;
    for (uint64_t row = 0; row < out.num_rows(); ++row)
      num_nulls += ValueAt(out.column(r), spec.results[r].type, row).valid ? 0 : 1;
    EXPECT_EQ(out.column(r).null_count, num_nulls) << "result " << r;
  }
}

// The first row without a result, and the values of the rows before it.
void ExpectResults(const MapSpec& spec, const Batch& batch, const RowMapper& mapper, uint64_t capacity) {
  MapReader reader(std::shared_ptr<const RowMapper>(std::shared_ptr<void>(), &mapper), nullptr);
  ASSERT_TRUE(reader.SetInput(ViewOf(batch)).ok());
  OutputBatch out(MapOutputTypes(spec), capacity, nullptr);
  size_t done = 0;
  for (bool more = true; more;) {
    const absl::StatusOr<bool> next = reader.Next(&out);
    const size_t end = std::min(done + static_cast<size_t>(capacity), batch.num_rows());
    for (size_t i = done; i < end; ++i) {
      const Row& row = batch.rows[batch.RowAt(i)];
      for (size_t r = 0; r < spec.results.size(); ++r) {
        const RowValue expected = test::Evaluate(spec.results[r], row);
        if (expected.failed) {
          ASSERT_FALSE(next.ok()) << "no error for row " << batch.RowAt(i);
          EXPECT_TRUE(std::string(next.status().message()).starts_with("row " + std::to_string(batch.RowAt(i)) + ": "))
              << next.status();
          return;
        }
        if (!next.ok()) continue;
        const ValueType& type = spec.results[r].type;
        ASSERT_EQ(Text(ValueAt(out.column(r), type, i - done), type), Text(expected, type))
            << "row " << batch.RowAt(i) << ", result " << r;
      }
    }
    ASSERT_TRUE(next.ok()) << next.status();
    ASSERT_EQ(out.num_rows(), end - done);
    ExpectNullsCounted(spec, out);
    done = end;
    more = *next;
  }
  EXPECT_EQ(done, batch.num_rows());
}

void ExpectFromBothEngines(const MapSpec& spec, const std::vector<Batch>& batches, Maker* maker) {
  SCOPED_TRACE(PrintSpec(spec));
  const absl::StatusOr<KernelSpec> read = ParseSpec(PrintSpec(spec));
  ASSERT_TRUE(read.ok() && *read == KernelSpec(spec)) << read.status();
  for (const Engine engine : {Engine::kGeneric, Engine::kJit}) {
    SCOPED_TRACE(engine == Engine::kJit ? "jit" : "generic");
    CompileOptions options;
    options.engine = engine;
    options.use_cache = false;
    const absl::StatusOr<CompiledKernel> compiled = Compile(spec, options);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    const auto mapper = MakeRowMapper(compiled->kernel);
    for (const Batch& batch : batches) {
      ExpectResults(spec, batch, *mapper, 1 + maker->Below(2 * batch.num_rows() + 20));
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// sizes: the numbers of rows of a batch each.
void ExpectFromBothEngines(const MapSpec& spec, const std::vector<size_t>& sizes, Maker* maker) {
  std::vector<Batch> batches;
  for (const size_t num_rows : sizes) batches.push_back(MakeBatch(spec.columns, num_rows, maker));
  ExpectFromBothEngines(spec, batches, maker);
}

MapSpec SpecOf(const std::string& text) {
  const absl::StatusOr<MapSpec> spec = ParseSpecOf<MapSpec>(text);
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? *spec : MapSpec();
}

// Few rows at a time, so that most batches end without an error.
TEST(MapKernel, EveryFunctionOnEveryType) {
  Maker maker(test::SeedOfTest());
  for (const ExpressionFunctionRow& row : AllExpressionFunctions()) {
    for (const ValueType& first : kTypes) {
      for (const ValueType& target : kTypes) {
        if (row.result != ResultOf::kTarget && row.result != ResultOf::kQuotient && target != kTypes[0]) break;
        MapSpec spec;
        for (size_t i = 0; i < std::max<size_t>(row.min_arguments, 3); ++i) spec.columns.push_back(first);
        if (row.accepts == Operands::kCases) spec.columns[0] = {.id = TypeId::kBool, .nullable = true};
        if (row.accepts == Operands::kDateAndNumber) spec.columns[1] = {.id = TypeId::kI32};
        spec.columns[1].nullable = true;
        std::vector<Expression> arguments;
        for (uint32_t i = 0; i < row.min_arguments; ++i) arguments.push_back(*MakeColumn(i, spec.columns));
        if (IsOfDates(row) && row.accepts != Operands::kDateAndNumber) arguments[1] = maker.Units();
        absl::StatusOr<Expression> call = MakeCall(row.id, arguments, target);
        if (!call.ok()) continue;
        spec.results.push_back(*call);
        ExpectFromBothEngines(spec, {300, 1 + maker.Below(9), 1 + maker.Below(9), 1 + maker.Below(9)}, &maker);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(MapKernel, RandomExpressions) {
  Maker maker(test::SeedOfTest());
  for (int i = 0; i < 400 && !HasFailure(); ++i) {
    MapSpec spec;
    for (uint64_t n = maker.Below(5); n > 0; --n) spec.columns.push_back(maker.AnyType());
    for (uint64_t n = 1 + maker.Below(4); n > 0; --n) spec.results.push_back(maker.Any(spec.columns, 4));
    ExpectFromBothEngines(spec, {maker.Below(700), maker.Below(40), maker.Below(9)}, &maker);
  }
}

// Bits that are no decimal of the column's digits, as a host may have left them.
TEST(MapKernel, NarrowDecimalsBeyondTheirDigits) {
  Maker maker(test::SeedOfTest());
  Batch batch;
  for (const __int128 number : {static_cast<__int128>(INT64_MIN), static_cast<__int128>(INT64_MAX), __int128{-1}})
    batch.rows.push_back({{.valid = true, .number = number}});
  const MapSpec spec = SpecOf(
      "map in=decimal64(18,2) out=$0,negate($0),abs($0),add($0,$0),subtract($0,1.00:decimal32(3,2)),"
      "multiply($0,$0),less(negate($0),0.00:decimal64(3,2)),cast($0,decimal128(38,4)),"
      "cast_or_null($0,decimal32(9,2)),cast_or_null(negate($0),decimal64(18,2)),cast($0,f64)");
  batch.columns.push_back(MakeColumnOf(spec.columns[0], batch.rows, 0, 0));
  std::vector<Batch> batches;
  batches.push_back(std::move(batch));
  ExpectFromBothEngines(spec, batches, &maker);
}

// Every fifth day of two cycles of the calendar, and moments around midnight.
TEST(MapKernel, DatesDayByDay) {
  Maker maker(test::SeedOfTest());
  constexpr int64_t kFirstDay = -220000;
  Batch batch;
  for (int64_t i = 0; i < 300000; i += 5) {
    const int64_t second = (kFirstDay + i) * 86400 + i % 3 - 1;
    batch.rows.push_back({{.valid = true, .number = kFirstDay + i},
                          {.valid = true, .number = static_cast<__int128>(maker.Below(900)) - 450},
                          {.valid = true, .number = second}});
  }
  const std::vector<ValueType> types = {{.id = TypeId::kDate32}, {.id = TypeId::kI32}, {.id = TypeId::kTimestamp}};
  for (size_t c = 0; c < types.size(); ++c) batch.columns.push_back(MakeColumnOf(types[c], batch.rows, c, 0));
  std::vector<Batch> batches;
  batches.push_back(std::move(batch));
  ExpectFromBothEngines(
      SpecOf("map in=date32,i32,timestamp out=year($0),quarter($0),month($0),day($0),iso_year($0),iso_week($0),"
             "iso_day_of_week($0),sunday_day_of_week($0),day_of_year($0),date_trunc_year($0),date_trunc_quarter($0),"
             "date_trunc_month($0),date_trunc_week($0),add_days($0,$1),add_months($0,$1),"
             "days_between($0,add_months($0,$1)),timestamp_to_date($2,1:i64),hour($2,1:i64),minute($2,1:i64),"
             "second($2,1:i64),timestamp_trunc_hour($2,1:i64)"),
      batches, &maker);
}

// Rows that pass none of their errors on.
TEST(MapKernel, ErrorsThatDoNotCount) {
  Maker maker(test::SeedOfTest());
  for (const char* text : {"map in=i32,i32 out=case_when(equal($1,0:i32),0:i32,divide_checked($0,$1))",
                           "map in=i64,i64 out=and(not_equal($1,0:i64),equal(modulo_checked($0,$1),1:i64))",
                           "map in=i64,i64 out=or(equal($1,0:i64),equal(modulo_or_null($0,$1),1:i64))",
                           "map in=i8:nullable,i8 out=coalesce($0,0:i8),add_or_null($0,$1)"})
    ExpectFromBothEngines(SpecOf(text), std::vector<size_t>{500}, &maker);
}

// Prices and discounts of TPC-H, and decimals that do not fit 64 bits among them.
TEST(MapKernel, DecimalsBeyond64Bits) {
  Maker maker(test::SeedOfTest());
  const MapSpec spec = SpecOf(
      "map in=decimal128(15,2),decimal128(15,2),decimal128(38,0) "
      "out=multiply($0,subtract(1.00:decimal128(3,2),$1)),multiply(multiply($0,subtract(1.00:decimal128(3,2),$1)),$1),"
      "add($2,0:decimal128(1,0))");
  ExpectFromBothEngines(spec, {1, 7, 8, 9, 100, 10000}, &maker);
}

TEST(MapKernel, QuotientsOfDecimals) {
  Maker maker(test::SeedOfTest());
  for (const char* text :
       {"map in=decimal128(15,2),decimal128(15,2) out=divide_decimal_or_null($0,$1,decimal128(38,6)),"
        "divide_decimal_or_null($0,$1,decimal128(10,0))",
        "map in=decimal128(38,0),decimal128(38,0) out=divide_decimal_or_null($0,$1,decimal128(38,0)),"
        "divide_decimal_or_null($0,$1,decimal128(38,38)),divide_decimal_or_null($0,$1,decimal128(38,19))",
        "map in=decimal128(38,38),decimal128(18,18) out=divide_decimal_or_null($0,$1,decimal128(38,20)),"
        "divide_decimal_or_null($1,$0,decimal128(38,38))"})
    ExpectFromBothEngines(SpecOf(text), {2000, 9}, &maker);
}

}  // namespace
}  // namespace quern
