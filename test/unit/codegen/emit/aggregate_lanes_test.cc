// SPDX-License-Identifier: Apache-2.0
// Adding up eight rows at a time, and arguments that are expressions: compiled kernels give the results of the generic
// one, and expressions those of a map in front of the aggregation.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "codegen/compiler.h"
#include "codegen/operators.h"
#include "test/unit/runtime/aggregate/group_rows.h"
#include "test/unit/seed.h"

namespace quern {
namespace {

using test::ColumnPtr;
using test::Lines;

enum class Keys { kNone, kThree, kTwelve, kLongRuns, kShortRuns };
enum class Selected { kAll, kMost, kFew, kBackwards, kTwice };
enum class Values { kSmall, kFewWide, kWide };

struct Case {
  Keys keys = Keys::kThree;
  Selected selected = Selected::kAll;
  Values values = Values::kSmall;
};

constexpr uint32_t kRows = 5000;

bool IsWide(Values values, std::mt19937_64* random) {
  return values == Values::kWide || (values == Values::kFewWide && (*random)() % 3000 == 0);
}

template <class T>
ColumnPtr NumbersOf(Values values, std::mt19937_64* random) {
  std::vector<T> numbers(kRows);
  for (T& number : numbers) {
    const uint64_t bits = (*random)();
    number = IsWide(values, random) ? static_cast<T>(bits >> 6) : static_cast<T>(bits % 100);
    if (std::is_signed_v<T> && bits % 2 == 0) number = static_cast<T>(-number);
  }
  return test::NumberColumn(numbers);
}

ColumnPtr DecimalsOf(Values values, std::mt19937_64* random) {
  std::vector<__int128> numbers(kRows);
  for (__int128& number : numbers) {
    number = static_cast<int64_t>((*random)() % 20000) - 10000;
    if (IsWide(values, random)) number = number << ((*random)() % 60);
  }
  return test::NumberColumn(numbers);
}

ColumnPtr ColumnOf(const ColumnType& type, Values values, std::mt19937_64* random) {
  const auto plain = [&]() -> ColumnPtr {
    switch (type.id) {
      case TypeId::kI8: return NumbersOf<int8_t>(values, random);
      case TypeId::kU8: return NumbersOf<uint8_t>(values, random);
      case TypeId::kI16: return NumbersOf<int16_t>(values, random);
      case TypeId::kU16: return NumbersOf<uint16_t>(values, random);
      case TypeId::kI32:
      case TypeId::kDate32: return NumbersOf<int32_t>(values, random);
      case TypeId::kU32: return NumbersOf<uint32_t>(values, random);
      case TypeId::kI64: return NumbersOf<int64_t>(values, random);
      case TypeId::kU64: return NumbersOf<uint64_t>(values, random);
      case TypeId::kDecimal128: return DecimalsOf(values, random);
      default: return test::RandomColumn(type, kRows, random);
    }
  };
  if (!type.nullable) return plain();
  std::vector<bool> valid(kRows);
  for (size_t i = 0; i < valid.size(); ++i) valid[i] = (*random)() % 7 != 0;
  return test::WithNulls(plain(), valid);
}

ColumnPtr KeysOf(Keys keys) {
  std::vector<int64_t> numbers(kRows);
  for (uint32_t i = 0; i < kRows; ++i) {
    switch (keys) {
      case Keys::kNone: break;
      case Keys::kThree: numbers[i] = i * 7919 % 101 % 3; break;
      case Keys::kTwelve: numbers[i] = i * 7919 % 101 % 12; break;
      case Keys::kLongRuns: numbers[i] = i / 700; break;
      case Keys::kShortRuns: numbers[i] = i / 37; break;
    }
  }
  return test::NumberColumn(numbers);
}

std::vector<uint32_t> SelectedRows(Selected selected, std::mt19937_64* random) {
  std::vector<uint32_t> rows(kRows);
  std::iota(rows.begin(), rows.end(), 0u);
  if (selected == Selected::kMost) std::erase_if(rows, [&](uint32_t) { return (*random)() % 9 == 0; });
  if (selected == Selected::kFew) std::erase_if(rows, [&](uint32_t) { return (*random)() % 5 != 0; });
  if (selected == Selected::kBackwards) std::reverse(rows.begin(), rows.end());
  if (selected == Selected::kTwice)
    for (uint32_t i = 0; i < kRows; i += 2) rows[i] = rows[i + 1];
  return rows;
}

struct Batches {
  std::vector<BatchView> views;
  std::vector<uint32_t> selection;
};

// Two batches of the spec's columns, of which the second one is short.
std::unique_ptr<Batches> BatchesOf(const AggregationSpec& spec, const Case& of, std::mt19937_64* random) {
  std::vector<ColumnPtr> keys(spec.keys.size(), KeysOf(of.keys)), payload;
  for (const ColumnType& type : AggregateInputTypes(spec)) payload.push_back(ColumnOf(type, of.values, random));
  auto batches = std::make_unique<Batches>();
  batches->views.push_back(test::Rows(kRows, keys, payload));
  if (of.selected != Selected::kAll) {
    batches->selection = SelectedRows(of.selected, random);
    batches->views[0].selection = batches->selection.data();
    batches->views[0].num_rows = batches->selection.size();
  }
  batches->views.push_back(test::Rows(11, keys, payload));
  return batches;
}

std::string ErrorText(const absl::Status& status) { return std::string(status.message()); }

// The groups, or the error.
Lines GroupsBy(const std::string& text, Engine engine, const PlanOverrides& overrides, const Batches& batches) {
  CompileOptions options;
  options.engine = engine;
  options.overrides = overrides;
  const auto compiled = CompileText(text, options);
  EXPECT_TRUE(compiled.ok()) << text << ": " << compiled.status();
  if (!compiled.ok()) return {};
  const auto aggregate = MakeHashAggregate(compiled->kernel, test::NoLimit());
  for (const BatchView& batch : batches.views)
    if (const absl::Status status = aggregate->Append(batch); !status.ok()) return {ErrorText(status)};
  if (const absl::Status status = aggregate->Finalise(); !status.ok()) return {ErrorText(status)};
  return test::GroupsOf(aggregate);
}

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  for (const Keys keys : {Keys::kNone, Keys::kThree, Keys::kTwelve, Keys::kLongRuns, Keys::kShortRuns})
    for (const Selected selected :
         {Selected::kAll, Selected::kMost, Selected::kFew, Selected::kBackwards, Selected::kTwice})
      for (const Values values : {Values::kSmall, Values::kFewWide, Values::kWide})
        cases.push_back({keys, selected, values});
  return cases;
}

void ExpectGenericResults(const std::string& fields) {
  auto random = test::PrintedRandom();
  for (const Case& of : AllCases()) {
    const std::string text = std::string("aggregate") + (of.keys == Keys::kNone ? " " : " keys=i64 ") + fields;
    const auto batches = BatchesOf(*ParseSpecOf<AggregationSpec>(text), of, &random);
    const Lines expected = GroupsBy(text, Engine::kGeneric, {}, *batches);
    for (const char* runs : {"lanes", "rows"}) {
      EXPECT_EQ(GroupsBy(text, Engine::kJit, {{"runs", runs}}, *batches), expected)
          << text << " " << runs << " keys " << static_cast<int>(of.keys) << " selected "
          << static_cast<int>(of.selected) << " values " << static_cast<int>(of.values);
    }
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(AggregateLanes, Sums) {
  ExpectGenericResults("aggs=count_star,sum(i64),sum(u64),sum(i32),sum(u8),sum128(i64),sum128(u64),sum(decimal128)");
  ExpectGenericResults("aggs=avg(i16),avg(u32),avg(i64),avg(u64),avg(decimal128),sum(decimal128)");
}

TEST(AggregateLanes, NullsAndFilters) {
  ExpectGenericResults(
      "aggs=count_star,count(utf8:nullable),sum(i64:nullable),sum(decimal128:nullable):filter,avg(i32:nullable),"
      "count_star:filter,avg(decimal128):filter,min(i64:nullable)");
}

TEST(AggregateLanes, ExtremesAndBits) {
  ExpectGenericResults(
      "aggs=min(i8),max(u8),min(i64),max(u64:nullable),min(f64),max(f64:nullable),min(f32),max(f32),min(decimal128),"
      "max(decimal128:nullable):filter,min(date32),min(bool),max(bool:nullable)");
  ExpectGenericResults(
      "aggs=bool_and(bool:nullable),bool_or(bool),bit_and(u16):filter,bit_or(i8:nullable),bit_xor(i64),bit_and(i64)");
}

TEST(AggregateLanes, WithFunctionsThatAreCalled) {
  ExpectGenericResults("aggs=sum(i64),median(i64),count_distinct(i32:nullable),max(utf8)");
}

// ---- expressions ----

TEST(AggregateLanes, ExpressionsOfNumbers) {
  ExpectGenericResults(
      "in=i64,i32:nullable,bool:nullable aggs=sum(add($0,1:i64)),sum($0),avg(multiply(cast($1,i64),$0)),"
      "min(negate($1)),max($1):filter($2),count_star:filter(greater($0,50:i64)),count(null_if($1,7:i32))");
}

TEST(AggregateLanes, ExpressionsOfDecimals) {
  ExpectGenericResults(
      "in=decimal128(15,2),decimal128(15,2):nullable aggs=sum($0),sum(multiply($0,subtract(1.00:decimal128(3,2),$1))),"
      "avg(multiply($0,$0)),min(multiply($0,$1)),avg($1),count_star");
}

TEST(AggregateLanes, ExpressionsOfFloatsAndTexts) {
  ExpectGenericResults(
      "in=f64,utf8:nullable aggs=sum(multiply($0,2:f64)),avg($0),count_star:filter(like($1,'%a%':utf8)),"
      "sum(octet_length($1)),min($1),first(add($0,1:f64)),var_pop(add($0,$0))");
}

TEST(AggregateLanes, ExpressionsOfFunctionsThatAreCalled) {
  ExpectGenericResults(
      "in=i64:nullable,bool:nullable,utf8 aggs=median(add($0,1:i64)),count_distinct(modulo_or_null($0,10:i64))"
      ":filter($1),string_agg($2,x'2c'):filter(greater($0,90:i64)),corr($0,cast($0,f64))");
}

TEST(AggregateLanes, ErrorsNameTheRow) {
  std::vector<int64_t> numbers(kRows, 5);
  numbers[4321] = std::numeric_limits<int64_t>::max();
  for (const bool has_keys : {false, true}) {
    const std::string text =
        std::string("aggregate ") + (has_keys ? "keys=i64 " : "") + "in=i64 aggs=sum(add_checked($0,1:i64)),count_star";
    Batches batches;
    std::vector<ColumnPtr> keys;
    if (has_keys) keys.push_back(KeysOf(Keys::kThree));
    batches.views.push_back(test::Rows(kRows, keys, {test::NumberColumn(numbers)}));
    batches.views[0].first_row_id = 1000;
    const Lines expected = {
        "row 5321: add_checked($0,1:i64) of 9223372036854775807 and 1: overflow of i64; accepted: rows for which the "
        "type has the result"};
    EXPECT_EQ(GroupsBy(text, Engine::kGeneric, {}, batches), expected);
    EXPECT_EQ(GroupsBy(text, Engine::kJit, {{"runs", "lanes"}}, batches), expected);
    EXPECT_EQ(GroupsBy(text, Engine::kJit, {{"runs", "rows"}}, batches), expected);
  }
}

// A row that is not selected fails nothing, and is not too wide.
TEST(AggregateLanes, RowsThatAreNotSelectedDoNotCount) {
  std::vector<int64_t> numbers(kRows, 5);
  Batches batches;
  for (uint32_t i = 0; i < kRows; ++i) {
    if (i % 10 == 3) numbers[i] = std::numeric_limits<int64_t>::max();
    else batches.selection.push_back(i);
  }
  batches.views.push_back(test::Rows(batches.selection.size(), {}, {test::NumberColumn(numbers)}));
  batches.views[0].selection = batches.selection.data();
  for (const char* runs : {"lanes", "rows"})
    EXPECT_EQ(GroupsBy("aggregate in=i64 aggs=sum(add_checked($0,1:i64))", Engine::kJit, {{"runs", runs}}, batches),
              (Lines{"27000"}));
}

TEST(AggregateLanes, OverflowIsFoundAsRowByRow) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  Batches batches;
  std::vector<int64_t> numbers(kRows, 1);
  numbers[0] = kMost - 4000;
  batches.views.push_back(test::Rows(kRows, {}, {test::NumberColumn(numbers)}));
  const Lines expected = GroupsBy("aggregate aggs=sum(i64)", Engine::kGeneric, {}, batches);
  EXPECT_NE(expected.front().find("sum(i64)"), std::string::npos) << expected.front();
  EXPECT_EQ(GroupsBy("aggregate aggs=sum(i64)", Engine::kJit, {{"runs", "lanes"}, {"adapt", "off"}}, batches),
            expected);
}

}  // namespace
}  // namespace quern
