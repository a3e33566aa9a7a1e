// SPDX-License-Identifier: Apache-2.0
// Maps whose results are strings, or that take computed strings, in compiled and generic kernels, against an evaluation
// row by row (expression_rows.h): random expressions over every layout of strings, with nulls, selections, and errors
// of rows; and what becomes of memory that is refused and of strings beyond 2 GiB.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "test/unit/codegen/emit/mapper_of.h"
#include "test/unit/runtime/map/expression_rows.h"
#include "test/unit/runtime/map/string_columns.h"
#include "test/unit/seed.h"

namespace quern {
namespace {

using test::MapperOf;
using test::Row;
using test::RowValue;
using F = ExpressionFunction;

// ---- random rows and expressions ----

const ValueType kOthers[] = {{.id = TypeId::kI64},
                             {.id = TypeId::kI8},
                             {.id = TypeId::kU64},
                             {.id = TypeId::kBool},
                             {.id = TypeId::kDate32},
                             {.id = TypeId::kF64},
                             {.id = TypeId::kF32},
                             {.id = TypeId::kDecimal128, .digits = 9, .scale = 2},
                             {.id = TypeId::kDecimal128, .digits = 38, .scale = 6}};

class Maker {
 public:
  Maker(uint64_t seed, std::vector<ValueType> columns) : random_(seed), columns_(std::move(columns)) {
    text_ = columns_[0];
    text_.nullable = text_.is_dictionary = false;
    text_.index = ValueType().index;
  }

  uint64_t Below(uint64_t n) { return random_() % n; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  bool is_utf8() const { return RowOf(text_.id).text.find("utf8") != std::string_view::npos; }

  RowValue Value(const ValueType& type) {
    RowValue value{.valid = !type.nullable || !OneIn(4)};
    if (IsStringType(type.id)) value.bytes = Text();
    else if (type.id == TypeId::kF64 || type.id == TypeId::kF32) value.real = Real(type.id);
    else value.number = Whole(type);
    return value;
  }

  Expression String(int depth) {
    if (depth <= 0 || OneIn(6)) {
      if (OneIn(3)) return Constant();
      return *MakeColumn(static_cast<uint32_t>(Below(2)), columns_);
    }
    const int less = depth - 1;
    switch (Below(is_utf8() ? 14 : 7)) {
      case 0: return Call(F::kConcat, {String(less), String(less), String(less)});
      case 1: return Call(F::kSubstring, {String(less), Number(less), Number(less)});
      case 2: return Call(F::kSubstring, {String(less), Number(less)});
      case 3: return Call(F::kReplace, {String(less), Constant(), String(less)});
      case 4: return Call(F::kCaseWhen, {Truth(less), String(less), Truth(less), String(less), String(less)});
      case 5: return Call(F::kCoalesce, {String(less), String(less)});
      case 6: return Call(OneIn(2) ? F::kLeast : F::kGreatest, {String(less), String(less), String(less)});
      case 7: return Call(F::kNullIf, {String(less), String(less)});
      case 8: return Call(F::kAsciiLower, {String(less)});
      case 9: return Call(F::kAsciiUpper, {String(less)});
      case 10: return Call(F::kTrim, {String(less)});
      case 11: return Call(OneIn(2) ? F::kTrimStart : F::kTrimEnd, {String(less)});
      case 12: return Call(F::kCast, {Number(less)}, text_);
      default:
        return Call(F::kCast, {*MakeColumn(static_cast<uint32_t>(2 + Below(columns_.size() - 2)), columns_)}, text_);
    }
  }

  Expression Truth(int depth) {
    const int less = depth - 1;
    switch (Below(depth <= 0 ? 2 : 7)) {
      case 0: return Call(F::kIsNull, {String(less)});
      case 1: return Call(F::kLess, {String(less), String(less)});
      case 2: return Call(OneIn(2) ? F::kEqual : F::kGreaterEqual, {String(less), String(less)});
      case 3: return Call(OneIn(2) ? F::kLike : F::kNotLike, {String(less), Constant()});
      case 4: return Call(OneIn(2) ? F::kStartsWith : F::kContains, {String(less), Constant()});
      case 5: return Call(OneIn(2) ? F::kIsDistinct : F::kIsNotDistinct, {String(less), String(less)});
      default: return Call(OneIn(2) ? F::kAnd : F::kOr, {Truth(less), Truth(less)});
    }
  }

  // An i64.
  Expression Number(int depth) {
    constexpr ValueType kNumber = {.id = TypeId::kI64};
    const int less = depth - 1;
    if (depth <= 0 || OneIn(3)) return *MakeConstant(Literal{.number = static_cast<int>(Below(9)) - 2}, kNumber);
    switch (Below(is_utf8() ? 4 : 1)) {
      case 0: return Call(F::kOctetLength, {String(less)});
      case 1: return Call(F::kCharLength, {String(less)});
      case 2: return Call(F::kCastOrNull, {String(less)}, kNumber);
      default: return *MakeColumn(2, columns_);
    }
  }

  // A string, or what is computed of one.
  Expression Result() {
    if (OneIn(5)) return Truth(3);
    if (!is_utf8() || !OneIn(4)) return String(3);
    ValueType to = kOthers[Below(std::size(kOthers))];
    return Call(OneIn(8) ? F::kCast : F::kCastOrNull, {String(2)}, to);
  }

 private:
  Expression Call(F function, std::vector<Expression> arguments, const ValueType& target = {}) {
    absl::StatusOr<Expression> call = MakeCall(function, std::move(arguments), target);
    EXPECT_TRUE(call.ok()) << call.status();
    return call.ok() ? *std::move(call) : Expression();
  }

  Expression Constant() {
    return *MakeConstant(OneIn(10) ? std::nullopt : std::optional(Literal{.bytes = Text()}), text_);
  }

  std::string Text() {
    static const char* const kParts[] = {"a",        "B",     "ab",  "A",   " ",          "%",           "_",
                                         "7",        "-",     "1.5", "1e2", "inf",        "12.",         "true",
                                         "\xC3\xA9", "false", "+",   "99",  "2024-02-29", "zzzzzzzzzzzz"};
    std::string text;
    for (uint64_t n = Below(5); n > 0; --n) text += kParts[Below(std::size(kParts))];
    return text;
  }

  double Real(TypeId id) {
    constexpr double kSome[] = {0, -0.0, 0.1, 1e15, 999999999999999.0, 1e-4, 9.9e-5, 1e300, 5e-324, 100000, -2.5, 1e22};
    double value = OneIn(2) ? kSome[Below(std::size(kSome))] : std::ldexp(static_cast<double>(random_()), -40);
    if (OneIn(12)) value = OneIn(2) ? std::nan("") : -HUGE_VAL;
    return id == TypeId::kF32 ? static_cast<float>(value) : value;
  }

  __int128 Whole(const ValueType& type) {
    if (type.id == TypeId::kBool) return static_cast<__int128>(Below(2));
    __int128 end = static_cast<__int128>(1) << (RowOf(type.id).width_bytes * 8 - 1);
    if (IsDecimal(type.id)) end = test::rows::Power(type.digits);
    const bool is_unsigned = test::rows::IsUnsignedInteger(type.id);
    if (OneIn(3)) return static_cast<__int128>(Below(120)) - (is_unsigned ? 0 : 60);
    const __int128 any =
        static_cast<__int128>(static_cast<unsigned __int128>(random_()) << 63 | random_()) >> Below(126);
    const __int128 number = any % end;
    return is_unsigned && number < 0 ? -number : number;
  }

  std::mt19937_64 random_;
  std::vector<ValueType> columns_;
  ValueType text_;
};

// ---- the test ----

std::string Shown(const RowValue& value, const ValueType& type) {
  if (!value.valid) return "null";
  Literal literal{.number = value.number, .real = value.real, .bytes = value.bytes};
  return ConstantText(literal, type);
}

RowValue ValueAt(const QuernOutColumn& column, const ValueType& type, uint64_t row) {
  RowValue value{.valid = !type.nullable || test::BitOf(column.validity, row)};
  const Storage storage = RowOf(type.id).storage;
  const size_t width = RowOf(type.id).width_bytes;
  const auto* const at = static_cast<const uint8_t*>(column.values) + row * width;
  if (IsStringType(type.id)) {
    value.bytes = test::StringAt(column, storage, row);
  } else if (type.id == TypeId::kBool) {
    value.number = test::BitOf(column.values, row) ? 1 : 0;
  } else if (type.id == TypeId::kF64) {
    std::memcpy(&value.real, at, sizeof(double));
  } else if (type.id == TypeId::kF32) {
    float narrow;
    std::memcpy(&narrow, at, sizeof(float));
    value.real = static_cast<double>(narrow);
  } else {
    std::memcpy(&value.number, at, width);
    if (!test::rows::IsUnsignedInteger(type.id)) {
      const auto shift = static_cast<uint32_t>(128 - 8 * width);
      value.number = static_cast<__int128>(static_cast<unsigned __int128>(value.number) << shift) >> shift;
    }
  }
  return value;
}

struct Batch {
  std::vector<Row> rows;
  std::vector<uint32_t> selection;
  std::vector<std::unique_ptr<test::StringColumn>> columns;

  BatchView View() const {
    BatchView view;
    for (const auto& column : columns) view.keys.push_back(column->column);
    view.num_rows = selection.empty() ? rows.size() : selection.size();
    view.selection = selection.empty() ? nullptr : selection.data();
    return view;
  }
};

Batch BatchOf(const MapSpec& spec, size_t num_rows, bool selects, Maker* maker) {
  Batch batch;
  for (size_t r = 0; r < num_rows; ++r) {
    batch.rows.emplace_back();
    for (const ValueType& type : spec.columns) batch.rows.back().push_back(maker->Value(type));
  }
  for (size_t i = 0; selects && i < num_rows; ++i)
    batch.selection.push_back(static_cast<uint32_t>(maker->Below(num_rows)));
  for (size_t c = 0; c < spec.columns.size(); ++c)
    batch.columns.push_back(test::MakeColumnOf(spec.columns[c], batch.rows, c, maker->Below(11)));
  return batch;
}

// The values of the rows, or the error of the first one that has none.
void ExpectResults(const MapSpec& spec, const Batch& batch, const RowMapper& mapper) {
  MapReader reader(std::shared_ptr<const RowMapper>(std::shared_ptr<void>(), &mapper), nullptr);
  ASSERT_TRUE(reader.SetInput(batch.View()).ok());
  const size_t num_rows = batch.rows.size();
  OutputBatch out(MapOutputTypes(spec), num_rows, nullptr);
  const absl::StatusOr<bool> more = reader.Next(&out);
  std::vector<uint64_t> num_nulls(spec.results.size());
  for (size_t i = 0; i < num_rows; ++i) {
    const size_t row = batch.selection.empty() ? i : batch.selection[i];
    for (size_t r = 0; r < spec.results.size(); ++r) {
      const RowValue expected = test::Evaluate(spec.results[r], batch.rows[row]);
      if (expected.failed) {
        ASSERT_FALSE(more.ok()) << "no error of row " << row;
        EXPECT_TRUE(std::string(more.status().message()).starts_with("row " + std::to_string(row) + ": "))
            << more.status();
        return;
      }
      if (!more.ok()) continue;
      const ValueType& type = spec.results[r].type;
      num_nulls[r] += expected.valid ? 0 : 1;
      ASSERT_EQ(Shown(ValueAt(out.column(r), type, i), type), Shown(expected, type))
          << "row " << row << ", result " << r;
    }
  }
  ASSERT_TRUE(more.ok() && !*more) << more.status();
  for (size_t r = 0; r < spec.results.size(); ++r) EXPECT_EQ(out.column(r).null_count, num_nulls[r]) << "result " << r;
}

TEST(MapStringResults, RandomExpressions) {
  const uint64_t seed = test::SeedOfTest();
  std::mt19937_64 seeds(seed);
  for (const char* name : {"utf8", "utf8_view", "large_utf8", "binary", "binary_view", "large_binary"}) {
    for (int round = 0; round < 24; ++round) {
      MapSpec spec;
      const std::string values = name;
      const std::string type = round % 3 == 2 ? "dictionary(i32," + values + ")" : values;
      spec.columns = {*ParseValueType(type), *ParseValueType(type + ":nullable")};
      for (const ValueType& other : kOthers) spec.columns.push_back(other);
      for (size_t c = 2; c < spec.columns.size(); c += 2) spec.columns[c].nullable = true;
      Maker maker(seeds(), spec.columns);
      for (uint64_t n = 1 + maker.Below(3); n > 0; --n) spec.results.push_back(maker.Result());
      SCOPED_TRACE(PrintSpec(spec));
      const absl::StatusOr<KernelSpec> read = ParseSpec(PrintSpec(spec));
      ASSERT_TRUE(read.ok() && *read == KernelSpec(spec)) << read.status();
      const Batch batches[] = {BatchOf(spec, round == 0 ? 4500 : 150, false, &maker), BatchOf(spec, 60, true, &maker),
                               BatchOf(spec, 1, false, &maker), BatchOf(spec, 9, true, &maker)};
      for (const Engine engine : {Engine::kGeneric, Engine::kJit}) {
        SCOPED_TRACE(engine == Engine::kJit ? "jit" : "generic");
        const std::shared_ptr<const RowMapper> mapper = MapperOf(spec, engine);
        ASSERT_NE(mapper, nullptr);
        for (const Batch& batch : batches) {
          ExpectResults(spec, batch, *mapper);
          if (HasFailure()) return;
        }
      }
    }
  }
}

MapSpec SpecOf(const std::string& text) {
  const absl::StatusOr<MapSpec> spec = ParseSpecOf<MapSpec>(text);
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? *spec : MapSpec();
}

Batch TextsOf(const MapSpec& spec, const std::vector<std::string>& texts) {
  Batch batch;
  for (const std::string& text : texts) batch.rows.push_back({{.valid = true, .bytes = text}});
  batch.columns.push_back(test::MakeColumnOf(spec.columns[0], batch.rows, 0, 0));
  return batch;
}

// Decimals beyond 64 bits send a call back to the generic kernel, whose strings are appended but once.
TEST(MapStringResults, WideDecimalsAppendOnce) {
  const MapSpec spec = SpecOf("map in=utf8 out=concat($0,'!':utf8),cast(cast($0,decimal128(38,0)),utf8)");
  std::vector<std::string> texts(300, "12345678901234567890123456789012345678");
  texts[4] = "-7";
  const Batch batch = TextsOf(spec, texts);
  for (const Engine engine : {Engine::kGeneric, Engine::kJit}) {
    ExpectResults(spec, batch, *MapperOf(spec, engine));
  }
}

TEST(MapStringResults, RefusedMemoryIsAnError) {
  const MapSpec spec = SpecOf("map in=utf8 out=concat($0,$0,$0,$0)");
  const Batch batch = TextsOf(spec, std::vector<std::string>(64, std::string(100000, 'x')));
  for (const Engine engine : {Engine::kGeneric, Engine::kJit}) {
    const auto budget = std::make_shared<MemoryBudget>(uint64_t{8} << 20);
    {
      MapReader reader(MapperOf(spec, engine), budget);
      ASSERT_TRUE(reader.SetInput(batch.View()).ok());
      OutputBatch out(MapOutputTypes(spec), 64, budget);
      const absl::Status status = reader.Next(&out).status();
      EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    }
    EXPECT_EQ(budget->used_bytes(), 0u);
  }
}

// Offsets of 32 bits end at 2 GiB: the batch of results ends before them, and the next one goes on.
TEST(MapStringResults, EndsBeforeTwoGib) {
  constexpr uint64_t kBytes = uint64_t{1200} << 20;
  void* const zeros = mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(zeros, MAP_FAILED);
  const int64_t offsets[] = {0, kBytes};
  const uint8_t indices[] = {0, 0};
  QuernColumn values = {}, column = {};
  values.values = zeros;
  values.offsets = offsets;
  column.values = indices;
  column.dictionary = &values;
  const MapSpec spec = SpecOf("map in=dictionary(i8,large_utf8) out=cast($0,utf8),octet_length($0)");
  MapReader reader(MapperOf(spec, Engine::kGeneric), nullptr);
  BatchView batch;
  batch.keys = {column};
  batch.num_rows = 2;
  ASSERT_TRUE(reader.SetInput(std::move(batch)).ok());
  OutputBatch out(MapOutputTypes(spec), 2, nullptr);
  for (const bool has_more : {true, false}) {
    const absl::StatusOr<bool> next = reader.Next(&out);
    ASSERT_TRUE(next.ok()) << next.status();
    EXPECT_EQ(*next, has_more);
    ASSERT_EQ(out.num_rows(), 1u);
    EXPECT_EQ(static_cast<const int32_t*>(out.column(0).offsets)[1], static_cast<int64_t>(kBytes));
    EXPECT_EQ(static_cast<const int64_t*>(out.column(1).values)[0], static_cast<int64_t>(kBytes));
  }
  munmap(zeros, kBytes);
}

TEST(MapStringResults, ErrorsNameTheText) {
  const MapSpec spec = SpecOf("map in=utf8 out=cast(trim($0),i16),substring($0,1:i64,cast($0,i64))");
  const auto error_of = [&](const std::string& text) {
    std::string all;
    for (const Engine engine : {Engine::kGeneric, Engine::kJit}) {
      MapReader reader(MapperOf(spec, engine), nullptr);
      const Batch batch = TextsOf(spec, {"12", text});
      EXPECT_TRUE(reader.SetInput(batch.View()).ok());
      OutputBatch out(MapOutputTypes(spec), 2, nullptr);
      const std::string message(reader.Next(&out).status().message());
      EXPECT_TRUE(all.empty() || all == message) << message;
      all = message;
    }
    return all;
  };
  const std::string accepted = "; accepted: rows for which the type has the result";
  EXPECT_EQ(error_of("12a"), "row 1: cast(trim($0),i16) of '12a': no i16 in the text" + accepted);
  EXPECT_EQ(error_of("40000"), "row 1: cast(trim($0),i16) of '40000': no i16 in the text" + accepted);
  EXPECT_EQ(error_of("-1"), "row 1: substring($0,1:i64,cast($0,i64)) of '-1' and 1 and -1: length below 0" + accepted);
  EXPECT_EQ(error_of(std::string(70, '1')),
            "row 1: cast(trim($0),i16) of '" + std::string(60, '1') + "'..: no i16 in the text" + accepted);
}

}  // namespace
}  // namespace quern
