// SPDX-License-Identifier: Apache-2.0
// What aggregates add to specs: their texts, the input and result columns, and every message in full.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "runtime/spec/host_aggregates.h"
#include "runtime/spec/spec.h"
#include "test/unit/runtime/spec/spec_texts.h"

namespace quern {
namespace {

using spec_texts::Error;
using spec_texts::ExpectDamageIsAnswered;
using spec_texts::ExpectParseInvertsPrint;
using spec_texts::kAllButRowId;
using spec_texts::Parsed;
using spec_texts::Random;
using spec_texts::RandomKeyType;
using spec_texts::Repeated;
using spec_texts::Text;
using spec_texts::Types;

// The canonical text of one aggregate without keys.
std::string Canonical(const std::string& aggregate) {
  const auto spec = ParseSpec("aggregate aggs=" + aggregate);
  return spec.ok() ? PrintSpec(*spec).substr(15) : Text(spec.status());
}
std::string AggError(const std::string& aggregate) { return Error("aggregate aggs=" + aggregate); }

std::string OutputOf(std::string_view text) { return Types(AggregateOutputTypes(Parsed<AggregationSpec>(text))); }

AggregateSpec Of(AggregateFunction function, std::vector<ColumnType> arguments = {}, double quantile = 0.5,
                 std::string separator = "", std::string host_name = "") {
  return {function, std::move(arguments), false, quantile, std::move(separator), std::move(host_name)};
}

constexpr char kIntegers[] = "i8, i16, i32, i64, u8, u16, u32, u64";
constexpr char kPlainNumbers[] = "i8, i16, i32, i64, u8, u16, u32, u64, f32, f64";
constexpr char kNumbers[] = "i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, decimal32, decimal64, decimal128";
constexpr char kTexts[] = "binary, utf8, large_binary, large_utf8, binary_view, utf8_view";
constexpr char kFunctions[] =
    "count_star, count, sum, sum128, avg, min, max, any, first, last, bool_and, bool_or, bit_and, bit_or, bit_xor, "
    "var_pop, var_samp, "
    "stddev_pop, stddev_samp, covar_pop, covar_samp, corr, count_distinct, sum_distinct, median, quantile, "
    "approx_count_distinct, "
    "string_agg, host.NAME";

// ---- what parses ----

TEST(AggregateSpec, TheTableAnswersForItself) {
  for (size_t i = 0; i < AllAggregateFunctions().size(); ++i) {
    const AggregateFunctionRow& row = AllAggregateFunctions()[i];
    EXPECT_EQ(static_cast<size_t>(row.id), i);
    EXPECT_EQ(&RowOf(row.id), &row);
  }
  EXPECT_EQ(RowOf(AggregateFunction::kHost).text, "host");
}

TEST(AggregateSpec, ExampleIsCanonical) {
  const std::string text =
      "aggregate keys=i64,utf8(utf8mb4_bin),i32:nullable "
      "aggs=count_star,sum(i64),avg(f64:nullable):filter,min(utf8(utf8mb4_bin)),"
      "max(date32),covar_pop(f64,i32:nullable),quantile(f64,0.9),string_agg(utf8,x'2c20'),host.area(f64,f64)";
  const AggregationSpec spec = Parsed<AggregationSpec>(text);
  ASSERT_EQ(spec.keys.size(), 3u);
  EXPECT_FALSE(spec.keys[0].null_equal);
  EXPECT_TRUE(spec.keys[2].type.nullable && spec.keys[2].null_equal);
  ASSERT_EQ(spec.aggregates.size(), 9u);
  EXPECT_EQ(spec.aggregates[0], AggregateSpec());
  EXPECT_EQ(spec.aggregates[2],
            (AggregateSpec{AggregateFunction::kAvg, {{.id = TypeId::kF64, .nullable = true}}, true, 0.5, "", ""}));
  EXPECT_EQ(spec.aggregates[5].arguments.size(), 2u);
  EXPECT_EQ(spec.aggregates[6].quantile, 0.9);
  EXPECT_EQ(spec.aggregates[7].separator, ", ");
  EXPECT_EQ(spec.aggregates[8].host_name, "area");
  EXPECT_EQ(PrintSpec(spec), text);
}

TEST(AggregateSpec, KeysOrAggregatesAreEnough) {
  EXPECT_EQ(PrintSpec(Parsed<AggregationSpec>(" aggregate\taggs=count_star \n")), "aggregate aggs=count_star");
  EXPECT_EQ(PrintSpec(Parsed<AggregationSpec>("aggregate aggs= keys=time")), "aggregate keys=time64");
  EXPECT_EQ(PrintSpec(Parsed<AggregationSpec>("aggregate aggs=sum(i8) keys=i8:nullable")),
            "aggregate keys=i8:nullable aggs=sum(i8)");
}

TEST(AggregateSpec, ExpressionsOfColumns) {
  const std::string text =
      "aggregate keys=i64 in=decimal128(15,2),i64:nullable,utf8(utf8mb4_bin) "
      "aggs=sum($0),sum(multiply($0,subtract(1:decimal128(1,0),$0))),avg($1):filter(like($2,'a, "
      "b)%':utf8(utf8mb4_bin)))"
      ",min($2),quantile($1,0.5),count_star:filter(is_null($1)),corr($1,cast($1,f64)),host.f(),count_star";
  const AggregationSpec spec = Parsed<AggregationSpec>(text);
  ASSERT_EQ(spec.columns.size(), 3u);
  EXPECT_EQ(PrintSpec(spec), text);
  EXPECT_EQ(Types(AggregateInputTypes(spec)), "decimal128 i64:nullable utf8(utf8mb4_bin)");
  EXPECT_EQ(Types(AggregateOutputTypes(spec)),
            "i64 decimal128 decimal128 f64:nullable utf8 f64:nullable i64 f64:nullable i64:nullable i64");
  EXPECT_EQ(PrintSpec(ComputedArguments(spec)),
            "map in=decimal128(15,2),i64:nullable,utf8(utf8mb4_bin) out=multiply($0,subtract(1:decimal128(1,0),$0)),"
            "like($2,'a, b)%':utf8(utf8mb4_bin)),is_null($1),$1,cast($1,f64)");
  EXPECT_EQ(PrintSpec(Parsed<AggregationSpec>(
                "aggregate  in=i64  keys=i8 aggs= sum( $0 ) , avg($0):filter( less($0,3:i64) )")),
            "aggregate keys=i8 in=i64 aggs=sum($0),avg($0):filter(less($0,3:i64))");
}

TEST(AggregateSpec, WhatIsNoAggregateOfExpressions) {
  const std::string form = "; accepted: aggregate [keys=TYPE,..] in=TYPE,.. aggs=AGGREGATE,..";
  const std::string call = "; accepted: NAME(EXPRESSION,..)[:filter(EXPRESSION)]";
  EXPECT_EQ(Error("aggregate in=i64"), "columns without aggregates:  in=i64" + form);
  EXPECT_EQ(Error("aggregate aggs=sum($0) in=i64"), "field out of place: in=i64" + form);
  EXPECT_EQ(Error("aggregate in=i64 in=i64 aggs=sum($0)"), "field given twice: in; accepted: each field once");
  EXPECT_EQ(Error("aggregate keys=i8 keys=i8 in=i64 aggs=sum($0)"),
            "field given twice or out of place: keys=i8" + form);
  EXPECT_EQ(Error("aggregate in=i64 aggs=sum($1)"), "column: $1; accepted: $0 to $0");
  EXPECT_EQ(Error("aggregate in=i64 aggs=sum($0):filter"), "text in an aggregate: end of the spec" + call);
  EXPECT_EQ(Error("aggregate in=i64 aggs=sum($0,$0)"), "text in an aggregate: $0)" + call);
  EXPECT_EQ(Error("aggregate in=i64 aggs=sum($0)sum($0)"),
            "text behind an aggregate: sum($0); accepted: ',' and an aggregate");
  EXPECT_EQ(Error("aggregate in=i64 aggs=sum($0):filter($0)"),
            "filter that is no bool: $0; accepted: an expression of type bool");
  EXPECT_EQ(Error("aggregate in=utf8 aggs=host.f($0,1:i64)"),
            "aggregate of texts and of expressions: host.f($0,1:i64); accepted: columns alone, or no texts");
  EXPECT_EQ(Error("aggregate in=utf8 aggs=min('a':utf8)"),
            "aggregate of an expression that is a string: 'a':utf8; accepted: a column, as $0; a map computes it");
  EXPECT_EQ(Error("aggregate in=bool aggs=sum($0)").substr(0, 49), "aggregate of a type that it does not take: sum(bo");
  EXPECT_EQ(Error("aggregate in=decimal128 aggs=sum($0)").substr(0, 7), "decimal");
}

TEST(AggregateSpec, ConstantsHaveOneText) {
  EXPECT_EQ(Canonical("quantile(f64,0.50)"), "quantile(f64,0.5)");
  EXPECT_EQ(Canonical("quantile(f64,5e-1)"), "quantile(f64,0.5)");
  EXPECT_EQ(Canonical("quantile(f64,.00001)"), "quantile(f64,1e-05)");
  EXPECT_EQ(Canonical("quantile(f64,1.0)"), "quantile(f64,1)");
  EXPECT_EQ(Canonical("quantile(f64,-0)"), "quantile(f64,0)");
  EXPECT_EQ(Canonical("quantile(f64:nullable,0.30000000000000004):filter"),
            "quantile(f64:nullable,0.30000000000000004):filter");
  EXPECT_EQ(Canonical("string_agg(utf8,x'')"), "string_agg(utf8,x'')");
  EXPECT_EQ(Canonical("string_agg(utf8,x'00fFAb29')"), "string_agg(utf8,x'00ffab29')");
}

TEST(AggregateSpec, EveryFunctionAndType) {
  for (const AggregateFunctionRow& row : AllAggregateFunctions()) {
    if (row.num_arguments != 1) continue;
    int num_accepted = 0;
    for (const TypeRow& type_row : AllTypes()) {
      const std::string type = std::string(type_row.text) + (type_row.id == TypeId::kFixedBinary ? "(3)" : "");
      const std::string constant = row.id == AggregateFunction::kQuantile    ? ",0.1"
                                   : row.id == AggregateFunction::kStringAgg ? ",x''"
                                                                             : "";
      const std::string name(row.text), plain = name + "(" + type + constant + ")";
      if (Canonical(plain) != plain) continue;
      ++num_accepted;
      const std::string all = name + "(dictionary(i8," + type + "):nullable" + constant + "):filter";
      EXPECT_EQ(Canonical(all), all);
    }
    const int expected[] = {27, 13, 10, 8, 1, 6};  // by Accepts
    EXPECT_EQ(num_accepted, expected[static_cast<size_t>(row.accepts)]) << row.text;
  }
}

TEST(AggregateSpec, HostsFunctions) {
  EXPECT_EQ(Canonical("host.Count_2()"), "host.Count_2()");
  EXPECT_EQ(Canonical("host.f(utf8:nullable,dictionary(i8,bool)):filter"),
            "host.f(utf8:nullable,dictionary(i8,bool)):filter");
  EXPECT_EQ(Canonical("host.sum(" + Repeated("i8", 8) + ")"), "host.sum(" + Repeated("i8", 8) + ")");
}

TEST(AggregateSpec, CollationsWhereValuesAreCompared) {
  for (const char* name : {"min", "max", "any", "first", "last", "count_distinct", "approx_count_distinct"}) {
    const std::string text = std::string(name) + "(dictionary(i8,utf8(utf8mb4_bin)):nullable)";
    EXPECT_EQ(Canonical(text), text);
  }
}

// ---- columns ----

TEST(AggregateSpec, InputColumns) {
  const AggregationSpec spec = Parsed<AggregationSpec>(
      "aggregate aggs=count_star:filter,covar_pop(f64,i32:nullable):filter,count_star,min(utf8)");
  EXPECT_EQ(Types(AggregateInputTypes(spec.aggregates)), "bool:nullable f64 i32:nullable bool:nullable utf8");
}

TEST(AggregateSpec, KeysComeOutDecodedAndWithoutCollation) {
  EXPECT_EQ(OutputOf("aggregate keys=dictionary(i8,utf8(utf8mb4_bin)):nullable,fixed_binary(3),f32"),
            "utf8:nullable fixed_binary(3) f32");
}

TEST(AggregateSpec, ResultTypes) {
  const auto result = [](const std::string& aggregate) {
    return OutputOf("aggregate keys=i8 aggs=" + aggregate).substr(3);
  };
  EXPECT_EQ(result("count_star"), "i64");
  EXPECT_EQ(result("sum(i8),sum(i64),sum(u8),sum(u64),sum(f32),sum(decimal128)"), "i64 i64 u64 u64 f64 decimal128");
  EXPECT_EQ(result("sum_distinct(dictionary(u8,i16)),sum_distinct(u16)"), "i64 u64");
  EXPECT_EQ(result("sum128(u64),avg(i64),avg(f32),avg(decimal128)"), "decimal128 f64 f64 decimal128");
  EXPECT_EQ(result("min(dictionary(i8,utf8(utf8mb4_bin))),any(fixed_binary(3)),bool_or(bool),bit_xor(u16)"),
            "utf8 fixed_binary(3) bool u16");
  EXPECT_EQ(result("string_agg(dictionary(i8,utf8_view),x'')"), "utf8_view");
  EXPECT_EQ(result("var_pop(i8),stddev_pop(f32),median(u8),quantile(f32,1)"), "f64 f64 f64 f64");
  EXPECT_EQ(result("count(utf8),count_distinct(bool),approx_count_distinct(f64)"), "i64 i64 i64");
}

TEST(AggregateSpec, ResultsThatMayBeNull) {
  EXPECT_EQ(OutputOf("aggregate aggs=count_star:filter,count(i8:nullable),sum(i8),min(utf8)"),
            "i64 i64 i64:nullable utf8:nullable");
  EXPECT_EQ(OutputOf("aggregate keys=i8 aggs=sum(i8:nullable),sum(i8):filter,max(f64:nullable):filter"),
            "i8 i64:nullable i64:nullable f64:nullable");
  EXPECT_EQ(
      OutputOf("aggregate keys=i8 aggs=var_samp(i8),stddev_samp(i8),covar_pop(i8,i8),covar_samp(i8,i8),corr(i8,i8)"),
      "i8 f64:nullable f64:nullable f64:nullable f64:nullable f64:nullable");
  EXPECT_EQ(OutputOf("aggregate keys=i8 aggs=host.spec_test_not_registered()"), "i8 i64:nullable");
}

TEST(AggregateSpec, ResultOfAHostsFunction) {
  HostAggregate host;
  host.state_bytes = 8;
  host.result = {.id = TypeId::kDate32};
  host.update = [](void*, void*, const QuernColumn*, uint32_t, const uint32_t*, void* const*, uint64_t) { return 0; };
  host.merge = [](void*, void*, void* const*, const void* const*, uint64_t) { return 0; };
  host.finalise = [](void*, void*, const void* const*, uint64_t, void*, uint8_t*) { return 0; };
  static const absl::Status registered =
      RegisterHostAggregate("spec_test_date", host);  // permanently, even if the test is repeated
  ASSERT_EQ(Text(registered), "no error");
  EXPECT_EQ(OutputOf("aggregate keys=i8 aggs=host.spec_test_date(i8)"), "i8 date32:nullable");
}

// ---- messages ----

TEST(AggregateErrors, Fields) {
  EXPECT_EQ(
      Error("aggregate"),
      "missing field: keys or aggs; accepted: one of them at least: keys=TYPE,TYPE,.. aggs=AGGREGATE,AGGREGATE,..");
  EXPECT_EQ(Error("aggregate keys= aggs="), Error("aggregate"));
  EXPECT_EQ(Error("aggregate keys=i8 build=i8"), "unknown field: build; accepted: keys, aggs");
  EXPECT_EQ(Error("aggregate keys=i8 agg=sum(i8)"), "unknown field: agg; did you mean aggs? accepted: keys, aggs");
  EXPECT_EQ(Error("join.inner keys=i8 aggs=sum(i8)"), "unknown field: aggs; accepted: keys, build, probe, residual");
  EXPECT_EQ(Error("aggregate aggs"), "field without a value: aggs; accepted: aggs=AGGREGATE,AGGREGATE,..");
  EXPECT_EQ(Error("aggregate aggs=sum(i8) aggs=sum(i8)"), "field given twice: aggs; accepted: each field once");
  EXPECT_EQ(Error("aggregate aggs=count_star,,sum(i8)"),
            "empty item in a list: aggs=count_star,,sum(i8); accepted: aggregates separated by ','");
}

TEST(AggregateErrors, Counts) {
  EXPECT_EQ(Error("aggregate keys=" + Repeated("i64:nullable", 16) + " aggs=" + Repeated("count_star", 256)),
            "no error");
  EXPECT_EQ(Error("aggregate keys=" + Repeated("i64", 17)), "number of keys out of range: 17; accepted: 0 to 16");
  EXPECT_EQ(AggError(Repeated("sum(i8)", 257)), "number of aggregates out of range: 257; accepted: 0 to 256");
}

TEST(AggregateErrors, Keys) {
  EXPECT_EQ(Error("aggregate keys=i64:nullable:nullequal"),
            "flag without meaning in an aggregate's key: nullequal; accepted: nullable");
  EXPECT_EQ(Error("aggregate keys=i64:asc"), "flag without meaning in an aggregate's key: asc; accepted: nullable");
  EXPECT_EQ(Error("aggregate keys=i64:filter"),
            "flag without meaning in an aggregate's key: filter; accepted: nullable");
  EXPECT_EQ(Error("aggregate keys=i64:nulable"), "unknown flag: nulable; did you mean nullable? accepted: nullable");
  EXPECT_EQ(Error("aggregate keys=rowid"),
            "rowid is no key: rowid; accepted: " + std::string(kAllButRowId) + ", dictionary");
}

TEST(AggregateErrors, Functions) {
  const std::string accepted = "accepted: " + std::string(kFunctions);
  EXPECT_EQ(AggError("smu(i64)"), "unknown aggregate: smu; did you mean sum? " + accepted);
  EXPECT_EQ(AggError("stddev_sample(i64)"), "unknown aggregate: stddev_sample; did you mean stddev_samp? " + accepted);
  EXPECT_EQ(AggError("host(i64)"), "unknown aggregate: host; " + accepted);
  EXPECT_EQ(AggError("(i64)"), "unknown aggregate: \"\"; " + accepted);
  EXPECT_EQ(AggError("host.a-b(i64)"), "bad name of a host's aggregate: a-b; accepted: letters, digits and '_'");
  EXPECT_EQ(AggError("host.()"), "bad name of a host's aggregate: \"\"; accepted: letters, digits and '_'");
}

TEST(AggregateErrors, Parentheses) {
  EXPECT_EQ(AggError("sum(i64"), "parenthesis not closed: sum(i64; accepted: NAME(ARGUMENT,..)[:filter]");
  EXPECT_EQ(AggError("sum)"), "parenthesis closed that was not opened: sum); accepted: NAME(ARGUMENT,..)[:filter]");
  EXPECT_EQ(AggError("sum(i64)x"), "text behind a parenthesis: sum(i64)x; accepted: NAME(ARGUMENT,..)[:filter]");
}

TEST(AggregateErrors, NumbersOfArguments) {
  EXPECT_EQ(AggError("count_star()"), "aggregate takes no arguments: count_star(); accepted: count_star");
  EXPECT_EQ(AggError("count_star(i64)"), "aggregate takes no arguments: count_star(i64); accepted: count_star");
  EXPECT_EQ(AggError("sum"), "aggregate without arguments: sum; accepted: sum(TYPE)");
  EXPECT_EQ(AggError("host.f"), "aggregate without arguments: host.f; accepted: host.NAME(TYPE,..) with 0 to 8 types");
  EXPECT_EQ(AggError("sum()"), "wrong number of arguments: sum(); accepted: sum(TYPE)");
  EXPECT_EQ(AggError("sum(i64,i64)"), "wrong number of arguments: sum(i64,i64); accepted: sum(TYPE)");
  EXPECT_EQ(AggError("corr(f64)"), "wrong number of arguments: corr(f64); accepted: corr(TYPE,TYPE)");
  EXPECT_EQ(AggError("quantile(f64)"),
            "wrong number of arguments: quantile(f64); accepted: quantile(TYPE,Q) with Q from 0 to 1");
  EXPECT_EQ(AggError("quantile()"),
            "wrong number of arguments: quantile(); accepted: quantile(TYPE,Q) with Q from 0 to 1");
  EXPECT_EQ(AggError("string_agg(utf8)"),
            "wrong number of arguments: string_agg(utf8); accepted: string_agg(TYPE,x'HEX')");
  EXPECT_EQ(AggError("host.f(" + Repeated("i8", 9) + ")"), "wrong number of arguments: host.f(" + Repeated("i8", 9) +
                                                               "); accepted: host.NAME(TYPE,..) with 0 to 8 types");
}

TEST(AggregateErrors, TypesOfArguments) {
  const std::string refused = "aggregate of a type that it does not take: ";
  EXPECT_EQ(AggError("sum(utf8)"), refused + "sum(utf8); accepted: " + kNumbers);
  EXPECT_EQ(AggError("avg(dictionary(i8,duration):nullable)"),
            refused + "avg(dictionary(i8,duration)); accepted: " + kNumbers);
  EXPECT_EQ(AggError("corr(f64,decimal128)"), refused + "corr(decimal128); accepted: " + kPlainNumbers);
  EXPECT_EQ(AggError("bit_or(f64)"), refused + "bit_or(f64); accepted: " + kIntegers);
  EXPECT_EQ(AggError("bool_and(i8)"), refused + "bool_and(i8); accepted: bool");
  EXPECT_EQ(AggError("string_agg(fixed_binary(3),x'')"), refused + "string_agg(fixed_binary(3)); accepted: " + kTexts);
  EXPECT_EQ(AggError("count(rowid)"), refused + "count(rowid); accepted: " + kAllButRowId);
  EXPECT_EQ(AggError("host.f(rowid:nullable)"), refused + "host.f(rowid); accepted: " + kAllButRowId);
  EXPECT_EQ(AggError("sum(i65)"),
            "unknown column type: i65; did you mean i64? accepted: " + std::string(kAllButRowId) + ", dictionary");
  EXPECT_EQ(AggError("corr(f64,)"),
            "missing column type: \"\"; accepted: " + std::string(kAllButRowId) + ", dictionary");
}

TEST(AggregateErrors, CollationsWhereNothingIsCompared) {
  const std::string refused = "collation where nothing is compared: ";
  EXPECT_EQ(AggError("count(utf8(ascii_bin))"), refused + "count(utf8(ascii_bin)); accepted: count(utf8)");
  EXPECT_EQ(AggError("string_agg(dictionary(i8,utf8(ascii_bin)):nullable,x'')"),
            refused + "string_agg(dictionary(i8,utf8(ascii_bin))); accepted: string_agg(dictionary(i8,utf8))");
  EXPECT_EQ(AggError("host.f(utf8(ascii_bin))"), refused + "host.f(utf8(ascii_bin)); accepted: host.f(utf8)");
}

TEST(AggregateErrors, Flags) {
  EXPECT_EQ(AggError("sum(i64):nullable"), "flag without meaning in an aggregate: nullable; accepted: filter");
  EXPECT_EQ(AggError("sum(i64:filter)"), "flag without meaning in an aggregate's argument: filter; accepted: nullable");
  EXPECT_EQ(AggError("sum(i64:nullequal)"),
            "flag without meaning in an aggregate's argument: nullequal; accepted: nullable");
  EXPECT_EQ(AggError("sum(i64):filtre"), "unknown flag: filtre; did you mean filter? accepted: filter");
  EXPECT_EQ(AggError("sum(i64):filter:filter"), "flag given twice: filter; accepted: each flag once");
  EXPECT_EQ(AggError("sum(i64):"), "empty flag: sum(i64):; accepted: filter");
}

TEST(AggregateErrors, Constants) {
  for (const char* quantile : {"", "x", "1.5", "-0.1", "nan", "inf", "1e-400", "0.5x", "+0.5", "0.5:nullable"}) {
    const std::string shown = *quantile == 0 ? "\"\"" : quantile;
    EXPECT_EQ(AggError("quantile(f64," + std::string(quantile) + ")"),
              "quantile out of range: " + shown + "; accepted: a number from 0 to 1");
  }
  for (const char* bytes : {"", "2c", "x", "x'", "x'2'", "x'2g'", "X'2c'", "x'2c", "x'2c'x"}) {
    const std::string shown = *bytes == 0 ? "\"\"" : bytes;
    EXPECT_EQ(AggError("string_agg(utf8," + std::string(bytes) + ")"),
              "bytes that are no hexadecimal text: " + shown + "; accepted: x'HEX' with two digits a byte, as x'2c20'");
  }
  EXPECT_EQ(AggError("string_agg(utf8,x'" + std::string(2048, '0') + "')"), "no error");
  EXPECT_EQ(AggError("string_agg(utf8,x'" + std::string(2050, '0') + "')"),
            "separator too long: 1025 bytes; accepted: up to 1024");
}

// ---- specs that were filled by a caller ----

TEST(AggregateValidation, Keys) {
  AggregationSpec spec = Parsed<AggregationSpec>("aggregate keys=i8");
  const auto error = [&](const KeySpec& key) {
    spec.keys[0] = key;
    return Text(ValidateSpec(spec));
  };
  const std::string differ = "nullable and null_equal differ in an aggregate's key: keys[0] is ";
  EXPECT_EQ(error({.type = {.nullable = true}}), differ + "nullable alone; accepted: both or neither");
  EXPECT_EQ(error({.type = {}, .null_equal = true}), differ + "null_equal alone; accepted: both or neither");
  EXPECT_EQ(error({.type = {}, .descending = true}),
            "flag without meaning in an aggregate's key: desc; accepted: nullable");
  EXPECT_EQ(error({.type = {}, .nulls_first = true}),
            "flag without meaning in an aggregate's key: nulls_first; accepted: nullable");
  EXPECT_EQ(error({.type = {}, .out = true}), "flag without meaning in an aggregate's key: out; accepted: nullable");
  EXPECT_EQ(error({.type = {.id = TypeId::kRowId}}),
            "rowid is no key: keys[0]; accepted: " + std::string(kAllButRowId) + ", dictionary");
  EXPECT_EQ(error({.type = {.width_bytes = 3}}), "width out of range in keys[0]: 3; accepted: 0");
  spec.keys.clear();
  EXPECT_EQ(Text(ValidateSpec(spec)), Error("aggregate"));
}

TEST(AggregateValidation, Aggregates) {
  AggregationSpec spec = Parsed<AggregationSpec>("aggregate aggs=count_star,sum(i8)");
  const auto error = [&](const AggregateSpec& aggregate) {
    spec.aggregates[1] = aggregate;
    return Text(ValidateSpec(spec));
  };
  using enum AggregateFunction;
  EXPECT_EQ(error(Of(static_cast<AggregateFunction>(77))),
            "aggregate function number out of range in aggs[1]: 77; accepted: 0 to 28");
  EXPECT_EQ(error(Of(kSum)), "wrong number of arguments in aggs[1]: 0; accepted: sum(TYPE)");
  EXPECT_EQ(error(Of(kCountStar, {{}})), "wrong number of arguments in aggs[1]: 1; accepted: count_star");
  EXPECT_EQ(error(Of(kHost, std::vector<ColumnType>(9), 0.5, "", "f")),
            "wrong number of arguments in aggs[1]: 9; accepted: host.NAME(TYPE,..) with 0 to 8 types");
  EXPECT_EQ(error(Of(kCorr, {{}, {.id = static_cast<TypeId>(77)}})),
            "column type number out of range in aggs[1].arguments[1]: 77; accepted: 0 to 27");
  EXPECT_EQ(error(Of(kMin, {{.width_bytes = 3}})), "width out of range in aggs[1].arguments[0]: 3; accepted: 0");
  EXPECT_EQ(error(Of(kSum, {{.id = TypeId::kBool}})),
            "aggregate of a type that it does not take: sum(bool); accepted: " + std::string(kNumbers));
}

TEST(AggregateValidation, Constants) {
  AggregationSpec spec = Parsed<AggregationSpec>("aggregate aggs=count_star,sum(i8)");
  const auto error = [&](const AggregateSpec& aggregate) {
    spec.aggregates[1] = aggregate;
    return Text(ValidateSpec(spec));
  };
  using enum AggregateFunction;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(error(Of(kQuantile, {{}}, nan)), "quantile out of range: nan; accepted: a number from 0 to 1");
  EXPECT_EQ(error(Of(kQuantile, {{}}, 1.25)), "quantile out of range: 1.25; accepted: a number from 0 to 1");
  EXPECT_EQ(error(Of(kMedian, {{}}, 0.25)), "quantile without meaning in aggs[1]: 0.25; accepted: 0.5");
  EXPECT_EQ(error(Of(kSum, {{}}, 0.5, ", ")), "separator without meaning in aggs[1]: x'2c20'; accepted: none");
  EXPECT_EQ(error(Of(kSum, {{}}, 0.5, "", "f")), "host's name without meaning in aggs[1]: f; accepted: none");
  EXPECT_EQ(error(Of(kHost, {}, 0.5, "", "a.b")),
            "bad name of a host's aggregate: a.b; accepted: letters, digits and '_'");
  EXPECT_EQ(error(Of(kStringAgg, {{.id = TypeId::kUtf8}}, 0.5, std::string(1025, ','))),
            "separator too long: 1025 bytes; accepted: up to 1024");
  EXPECT_EQ(error(Of(kQuantile, {{}}, -0.0)), "no error");
  EXPECT_EQ(PrintSpec(spec), "aggregate aggs=count_star,quantile(i64,0)");
}

// ---- random ----

AggregateSpec RandomAggregate(Random* random) {
  const AggregateFunctionRow& row = AllAggregateFunctions()[random->Below(AllAggregateFunctions().size())];
  AggregateSpec aggregate = Of(row.id);
  for (size_t i = 0; i < row.num_arguments; ++i) aggregate.arguments.push_back(RandomKeyType(random));
  aggregate.filtered = random->Below(2) == 0;
  if (row.id == AggregateFunction::kQuantile)
    aggregate.quantile = random->Below(2) == 0 ? random->Fraction() : 1e-300 * random->Fraction();
  if (row.id == AggregateFunction::kStringAgg) {
    for (uint64_t n = random->Below(5); n > 0; --n) aggregate.separator += static_cast<char>(random->Below(256));
  }
  if (row.id == AggregateFunction::kHost) aggregate.host_name = "f" + std::to_string(random->Below(100));
  return aggregate;
}

// Draws again if a function does not take the type.
AggregationSpec RandomSpec(Random* random) {
  AggregationSpec spec;
  spec.keys.resize(1 + random->Below(kMaxKeys));
  for (KeySpec& key : spec.keys) {
    key.type = RandomKeyType(random);
    key.null_equal = key.type.nullable;
  }
  for (uint64_t n = random->Below(10); n > 0;) {
    spec.aggregates.push_back(RandomAggregate(random));
    if (ValidateSpec(spec).ok()) --n;
    else spec.aggregates.pop_back();
  }
  if (!spec.aggregates.empty() && random->Below(4) == 0) spec.keys.clear();
  return spec;
}

TEST(AggregateRandom, ParseIsTheInverseOfPrint) {
  ExpectParseInvertsPrint(1000, [](Random* random) {
    AggregationSpec spec = RandomSpec(random);
    EXPECT_EQ(AggregateOutputTypes(spec).size(), spec.keys.size() + spec.aggregates.size());
    return spec;
  });
}

TEST(AggregateRandom, DamagedTextsAreAnswered) { ExpectDamageIsAnswered(3000, "(),:=' \t\n0x.", RandomSpec); }

}  // namespace
}  // namespace quern
