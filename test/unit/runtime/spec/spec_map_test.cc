// SPDX-License-Identifier: Apache-2.0
// The text form of maps and of their expressions. (What the functions compute: test/unit/codegen/emit/map_test.cc.)
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/spec/spec.h"
#include "test/unit/runtime/spec/spec_texts.h"

namespace quern {
namespace {

using namespace spec_texts;  // NOLINT: the helpers of this folder

constexpr char kTypes[] =
    "bool, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, decimal32(DIGITS,SCALE), decimal64(DIGITS,SCALE), "
    "decimal128(DIGITS,SCALE), date32, date64, time32, time64, "
    "timestamp, duration, binary, utf8, large_binary, large_utf8, binary_view, utf8_view";

// The error of a map whose only result is the expression.
std::string ErrorOf(const std::string& expression, const std::string& columns = "i64,i32,bool,f64,decimal128(15,2)") {
  return Error("map in=" + columns + " out=" + expression);
}

// The type of the expression, or its error.
std::string TypeOf(const std::string& expression, const std::string& columns) {
  const auto spec = ParseSpec("map in=" + columns + " out=" + expression);
  return spec.ok() ? PrintValueType(std::get<MapSpec>(*spec).results[0].type) : Text(spec.status());
}

TEST(MapSpec, ParsesColumnsAndExpressions) {
  const auto spec = Parsed<MapSpec>("map in=i64:nullable,decimal128(15,2) out=add($0,-7:i64), $1 ,null:f32");
  ASSERT_EQ(spec.columns.size(), 2u);
  EXPECT_EQ(spec.columns[0], (ValueType{.id = TypeId::kI64, .nullable = true}));
  EXPECT_EQ(spec.columns[1], (ValueType{.id = TypeId::kDecimal128, .digits = 15, .scale = 2}));
  ASSERT_EQ(spec.results.size(), 3u);
  const Expression& sum = spec.results[0];
  EXPECT_EQ(sum.kind, ExpressionKind::kCall);
  EXPECT_EQ(sum.function, ExpressionFunction::kAdd);
  EXPECT_EQ(sum.arguments[0].kind, ExpressionKind::kColumn);
  EXPECT_EQ(static_cast<int64_t>(sum.arguments[1].value->number), -7);
  EXPECT_EQ(spec.results[1].column, 1u);
  EXPECT_EQ(spec.results[2].value, std::nullopt);
  EXPECT_EQ(Types(MapInputTypes(spec)), "i64:nullable decimal128");
  EXPECT_EQ(Types(MapOutputTypes(spec)), "i64:nullable decimal128 f32:nullable");
}

TEST(MapSpec, Canonical) {
  EXPECT_EQ(Canonical("map  in=i64   out=add( $0 , 1:i64 ) , negate($0)"), "map in=i64 out=add($0,1:i64),negate($0)");
  EXPECT_EQ(Canonical("map out=1:i8"), "map out=1:i8");
  EXPECT_EQ(Canonical("map in= out=true:bool,null:date32"), "map out=true:bool,null:date32");
  EXPECT_EQ(Canonical("map in=f64 out=add($0,1.50e3:f64)"), "map in=f64 out=add($0,1500:f64)");
  EXPECT_EQ(Canonical("map in=i32 out=cast($0, decimal128(12,2)),cast_or_null($0,u8)"),
            "map in=i32 out=cast($0,decimal128(12,2)),cast_or_null($0,u8)");
  EXPECT_EQ(Canonical("map out=-0.05:decimal128(3,2),5:decimal128(1,0),0.00:decimal128(2,2)"),
            "map out=-0.05:decimal128(3,2),5:decimal128(1,0),0.00:decimal128(2,2)");
}

// ---- types of results ----

TEST(MapTypes, OfDecimals) {
  const std::string two = "decimal128(15,2),decimal128(10,4),decimal128(38,0),decimal128(38,20)";
  EXPECT_EQ(TypeOf("add($0,$1)", two), "decimal128(18,4)") << "13 digits before the point, 4 behind it, one more";
  EXPECT_EQ(TypeOf("subtract($1,$0)", two), "decimal128(18,4)");
  EXPECT_EQ(TypeOf("multiply($0,$1)", two), "decimal128(25,6)");
  EXPECT_EQ(TypeOf("add($2,$0)", two), "decimal128(38,2)") << "no more than 38";
  EXPECT_EQ(TypeOf("multiply($2,$2)", two), "decimal128(38,0)");
  EXPECT_EQ(TypeOf("multiply($3,$3)", two),
            "scale of a product: 40; accepted: 0 to 38; cast an argument to fewer digits");
  EXPECT_EQ(TypeOf("negate($0)", two), "decimal128(15,2)");
  EXPECT_EQ(TypeOf("coalesce($0,1.00:decimal128(20,2))", two), "decimal128(20,2)");
  EXPECT_EQ(TypeOf("case_when(true:bool,$0,1.00:decimal128(20,2))", two), "decimal128(20,2)");
  EXPECT_EQ(TypeOf("cast($0,decimal128(3,3))", two), "decimal128(3,3)");
}

TEST(MapTypes, OfDecimalsOfFewerBits) {
  const std::string columns = "decimal32(7,2),decimal64(15,2):nullable,decimal128(15,2),decimal64(18,4)";
  EXPECT_EQ(TypeOf("add($0,$0)", columns), "decimal128(8,2)");
  EXPECT_EQ(TypeOf("multiply($1,$3)", columns), "decimal128(33,6):nullable");
  EXPECT_EQ(TypeOf("negate($0)", columns), "decimal128(7,2)");
  EXPECT_EQ(TypeOf("coalesce($1,$0)", columns), "decimal64(15,2)");
  EXPECT_EQ(TypeOf("least($0,$1,$2)", columns), "decimal128(15,2)");
  EXPECT_EQ(TypeOf("null_if($0,$2)", columns), "decimal32(7,2):nullable");
  EXPECT_EQ(TypeOf("less($0,1.00:decimal128(38,2))", columns), "bool");
  EXPECT_EQ(TypeOf("cast($0,decimal64(18,0))", columns), "decimal64(18,0)");
  EXPECT_EQ(TypeOf("divide_decimal_checked($0,$1,decimal32(9,4))", columns), "decimal32(9,4):nullable");
  EXPECT_EQ(
      TypeOf("cast($0,decimal32(10,0))", columns),
      "decimal type: decimal32(10,0); accepted: decimal32(DIGITS,SCALE), 1 to 9 digits, a scale from 0 to the digits");
  EXPECT_EQ(
      TypeOf("1234567.00:decimal32(8,2)", columns),
      "constant of decimal32(8,2): 1234567.00; accepted: up to 6 digits before the point and exactly 2 behind it");
}

TEST(MapTypes, OfQuotients) {
  const std::string columns = "decimal128(15,4),decimal128(15,2),i64";
  EXPECT_EQ(TypeOf("divide_decimal_checked($0,$1,decimal128(20,6))", columns), "decimal128(20,6)");
  EXPECT_EQ(TypeOf("divide_decimal_or_null($0,$1,decimal128(20,2))", columns), "decimal128(20,2):nullable");
  EXPECT_EQ(TypeOf("divide_decimal_checked($0,$1,decimal128(20,1))", columns),
            "scale of a quotient: 1; accepted: 2 or more, the difference of the arguments' scales");
  EXPECT_EQ(
      TypeOf("divide_decimal_checked($0,$1,f64)", columns),
      "type of a quotient: f64; accepted: decimal32(DIGITS,SCALE), decimal64(DIGITS,SCALE), decimal128(DIGITS,SCALE)");
  EXPECT_EQ(
      TypeOf("divide_decimal_checked($0,$2,decimal128(20,4))", columns),
      "arguments of divide_decimal_checked: decimal128(15,4), i64; accepted: decimals of any precision and scale");
  EXPECT_EQ(TypeOf("divide_decimal_checked($0,$1)", columns),
            "quotient without a type: ); accepted: divide_decimal_checked(EXPRESSION,EXPRESSION,TYPE)");
}

TEST(MapTypes, OfDates) {
  const std::string columns = "date32,timestamp:nullable,i32:nullable";
  EXPECT_EQ(TypeOf("add_months($0,$2)", columns), "date32:nullable");
  EXPECT_EQ(TypeOf("add_days($0,1:i32)", columns), "date32");
  EXPECT_EQ(TypeOf("days_between($0,$0)", columns), "i64");
  EXPECT_EQ(TypeOf("iso_week($0)", columns), "i32");
  EXPECT_EQ(TypeOf("date_trunc_month($0)", columns), "date32");
  EXPECT_EQ(TypeOf("timestamp_to_date($1,1000:i64)", columns), "date32:nullable");
  EXPECT_EQ(TypeOf("date_to_timestamp($0,1:i64)", columns), "timestamp");
  EXPECT_EQ(TypeOf("hour($1,1000000000:i64)", columns), "i32:nullable");
  EXPECT_EQ(TypeOf("timestamp_trunc_hour($1,1000000:i64)", columns), "timestamp:nullable");
}

TEST(MapTypes, OfNulls) {
  const std::string columns = "i64:nullable,i64,bool:nullable,bool,date32:nullable";
  EXPECT_EQ(TypeOf("add($0,$1)", columns), "i64:nullable");
  EXPECT_EQ(TypeOf("add($1,$1)", columns), "i64");
  EXPECT_EQ(TypeOf("add_or_null($1,$1)", columns), "i64:nullable");
  EXPECT_EQ(TypeOf("less($0,$1)", columns), "bool:nullable");
  EXPECT_EQ(TypeOf("is_null($0)", columns), "bool");
  EXPECT_EQ(TypeOf("is_distinct($0,$1)", columns), "bool");
  EXPECT_EQ(TypeOf("and($3,$2)", columns), "bool:nullable");
  EXPECT_EQ(TypeOf("coalesce($0,$1)", columns), "i64");
  EXPECT_EQ(TypeOf("coalesce($0,$0)", columns), "i64:nullable");
  EXPECT_EQ(TypeOf("least($0,$0,$1)", columns), "i64");
  EXPECT_EQ(TypeOf("null_if($1,$1)", columns), "i64:nullable");
  EXPECT_EQ(TypeOf("case_when($2,$1,$1)", columns), "i64") << "a condition that is null is not true";
  EXPECT_EQ(TypeOf("case_when($3,$1,$0)", columns), "i64:nullable");
  EXPECT_EQ(TypeOf("year($4)", columns), "i32:nullable");
  EXPECT_EQ(TypeOf("cast($0,i32)", columns), "i32:nullable");
  EXPECT_EQ(TypeOf("cast_or_null($1,i32)", columns), "i32:nullable");
}

// The text of a map of which expressions with strings come back.
TEST(MapSpec, Strings) {
  const std::string ci = "utf8(utf8mb4_general_ci)";
  for (const std::string& text : std::initializer_list<std::string>{
           "map in=utf8:nullable,dictionary(i32,utf8) out=equal($0,'it''s, ok':utf8),less($1,$0),is_null($1)",
           "map in=binary out=not_equal(x'00ff':binary,$0),octet_length($0)",
           "map in=utf8:nullable,i64 out=$0,concat($0,'it''s':utf8),substring($0,$1,2:i64),cast(cast($1,utf8),i32)",
           "map in=utf8 out=case_when(like(trim($0),'a%':utf8),ascii_upper($0),replace($0,'a':utf8,'b':utf8))",
           "map in=" + ci + " out=like($0,'a!%%':" + ci + ",'!':" + ci + "),starts_with($0,null:" + ci + ")"})
    EXPECT_EQ(Canonical(text), text);
  EXPECT_EQ(TypeOf("equal($0,'a':utf8)", "utf8:nullable"), "bool:nullable");
  EXPECT_EQ(TypeOf("is_distinct($0,'a':utf8)", "utf8:nullable"), "bool");
  EXPECT_EQ(TypeOf("equal($0,null:utf8)", "utf8"), "bool:nullable");
  EXPECT_EQ(TypeOf("char_length($0)", "utf8_view"), "i64");
  EXPECT_EQ(TypeOf("concat($0,'a':utf8)", "dictionary(i32,utf8):nullable"), "utf8:nullable");
  EXPECT_EQ(TypeOf("coalesce($0,'a':utf8)", "dictionary(i32,utf8):nullable"), "utf8");
  EXPECT_EQ(TypeOf("substring($0,1:i64)", ci), ci);
  EXPECT_EQ(TypeOf("substring($0,1:i64,2:i64)", "binary_view"), "binary_view");
  EXPECT_EQ(TypeOf("cast($0,utf8_view)", "decimal128(5,2):nullable"), "utf8_view:nullable");
  EXPECT_EQ(TypeOf("cast_or_null($0,decimal128(5,2))", "utf8"), "decimal128(5,2):nullable");
  EXPECT_EQ(TypeOf("cast($0,large_binary)", "utf8"), "large_binary");
}

TEST(MapSpec, StringsThatAreRefused) {
  const std::string columns = "utf8,binary,utf8(ascii_ci),i64";
  const auto error = [&](const std::string& expression) { return ErrorOf(expression, columns); };
  const std::string alike = "values of one type, decimals of one scale";
  EXPECT_EQ(error("equal($0,$1)"), "arguments of equal: utf8, binary; accepted: " + alike);
  EXPECT_EQ(error("less($0,'a':utf8(ascii_ci))"), "arguments of less: utf8, utf8(ascii_ci); accepted: " + alike);
  EXPECT_EQ(error("coalesce($0,$3)"), "arguments of coalesce: utf8, i64; accepted: " + alike);
  EXPECT_EQ(error("concat($0,$1)"), "arguments of concat: utf8, binary; accepted: strings of one type");
  EXPECT_EQ(error("add($0,$0)"),
            "arguments of add: utf8, utf8; accepted: integers, floats or decimals of one type, decimals of any "
            "precision and scale");
  EXPECT_EQ(error("substring($0,1:i32)"), "arguments of substring: utf8, i32; accepted: a string, and one or two i64");
  EXPECT_EQ(error("like($0,$0)"),
            "arguments of like: utf8, utf8; accepted: a string, a constant of its type and, if wanted, another one, "
            "the escape");
  EXPECT_EQ(error("like($0,'a':utf8,'ab':utf8)"), "escape of like: 'ab'; accepted: one character, or '' for none");
  EXPECT_EQ(error("like($0,'a':utf8,null:utf8)"), "escape of like: null; accepted: one character, or '' for none");
  EXPECT_EQ(error("contains($3,'a':utf8)"),
            "arguments of contains: i64, utf8; accepted: a string and a constant of its type");
  const std::string texts = "a string of utf8, large_utf8 or utf8_view";
  EXPECT_EQ(error("char_length($1)"), "arguments of char_length: binary; accepted: " + texts);
  EXPECT_EQ(error("trim($1)"), "arguments of trim: binary; accepted: " + texts);
  const std::string casts =
      "; accepted: numbers and bool to numbers, dates and times to integers of their width and back, numbers, bool and "
      "date32 to utf8, large_utf8 and utf8_view and back";
  EXPECT_EQ(error("cast($1,utf8)"), "cast: binary to utf8" + casts);
  EXPECT_EQ(error("cast($1,i64)"), "cast: binary to i64" + casts);
  EXPECT_EQ(error("cast($0,timestamp)"), "cast: utf8 to timestamp" + casts);
  EXPECT_EQ(ErrorOf("equal($0,'a':dictionary(i32,utf8))", "dictionary(i32,utf8)"),
            "constant of a dictionary: dictionary(i32,utf8); accepted: the type of its values, utf8");
}

// ---- errors ----

TEST(MapSpec, ErrorsOfFields) {
  const std::string form = "map in=TYPE,TYPE,.. out=EXPRESSION,EXPRESSION,..";
  EXPECT_EQ(Error("map"), "fields of a map: end of the spec; accepted: " + form);
  EXPECT_EQ(Error("map in=i64"), "fields of a map: end of the spec; accepted: " + form);
  EXPECT_EQ(Error("map out=1:i8 in=i64"), "text behind an expression: in=i64; accepted: ',' and an expression");
  EXPECT_EQ(Error("map in=i64,,i32 out=$0"), "empty item in a list: in=i64,,i32; accepted: types separated by ','");
  EXPECT_EQ(Error("map in=fixed_binary(4) out=$0"),
            std::string("type that expressions do not have: fixed_binary; accepted: ") + kTypes);
  EXPECT_EQ(Error("map in=dictionary(i8,i64) out=$0"),
            std::string("type that expressions do not have: dictionary(i8,i64); accepted: ") + kTypes);
  EXPECT_EQ(Error("map in=i64:nullable:nullable out=$0"), "flag of a value: nullable; accepted: nullable, once");
  EXPECT_EQ(Error("map in=i64:desc out=$0"), "flag of a value: desc; accepted: nullable, once");
  for (const char* type : {"decimal128", "decimal128(39,2)", "decimal128(0,0)", "decimal128(5,6)", "decimal128(5,-1)",
                           "decimal128(5)", "decimal128(5,2,1)"}) {
    EXPECT_EQ(Error(std::string("map in=") + type + " out=$0"),
              std::string("decimal type: ") + type +
                  "; accepted: decimal128(DIGITS,SCALE), 1 to 38 digits, a scale from 0 to the digits");
  }
  EXPECT_EQ(Error("map in=" + Repeated("i8", 1025) + " out=$0"),
            "number of in out of range: 1025; accepted: 0 to 1024");
  EXPECT_EQ(Error("map out=" + Repeated("1:i8", 1025)), "number of out out of range: 1025; accepted: 1 to 1024");
}

TEST(MapSpec, ErrorsOfExpressions) {
  const std::string forms = "$NUMBER, CONSTANT:TYPE, null:TYPE, FUNCTION(EXPRESSION,..)";
  EXPECT_EQ(ErrorOf(""), "expression expected: end of the expression; accepted: " + forms);
  EXPECT_EQ(ErrorOf("$0,"), "expression expected: end of the expression; accepted: " + forms);
  EXPECT_EQ(ErrorOf("'a':i8"), "constant of i8: 'a'; accepted: an integer from -128 to 127");
  EXPECT_EQ(ErrorOf("equal('a,$0)"),
            "string not closed: 'a,$0); accepted: 'TEXT' with '' for a quote, or bytes as x'00ff'");
  EXPECT_EQ(ErrorOf("$5"), "column: $5; accepted: $0 to $4");
  EXPECT_EQ(ErrorOf("$99999999999999999999"), "column: $4294967295; accepted: $0 to $4");
  EXPECT_EQ(ErrorOf("$"), "column: $; accepted: $0, $1, ..");
  EXPECT_EQ(Error("map out=$0"), "column: $0; accepted: none");
  EXPECT_EQ(ErrorOf("$0 $1"), "text behind an expression: $1; accepted: ',' and an expression");
  EXPECT_EQ(ErrorOf("add($0,1)"), std::string("constant without a type: 1; accepted: 1:TYPE, TYPE one of ") + kTypes);
  EXPECT_EQ(ErrorOf("1:"), std::string("type expected: end of the expression; accepted: ") + kTypes);
  EXPECT_EQ(ErrorOf("1:i64:nullable"), "constant that is nullable: i64:nullable; accepted: i64");
  EXPECT_EQ(ErrorOf("add($0,$0"),
            "arguments of add not closed: end of the expression; accepted: ',' and an expression, or ')'");
  EXPECT_EQ(ErrorOf("cast($0)"), "cast without a type: ); accepted: cast(EXPRESSION,TYPE)");
  EXPECT_EQ(ErrorOf("cast_or_null($0,i32:nullable)"), "target of a cast that is nullable: i32:nullable; accepted: i32");
  EXPECT_EQ(ErrorOf("plus($0,$0)").substr(0, 43), "unknown function: plus; accepted: add, subt");
}

TEST(MapSpec, ErrorsOfConstants) {
  EXPECT_EQ(ErrorOf("300:u8"), "constant of u8: 300; accepted: an integer from 0 to 255");
  EXPECT_EQ(ErrorOf("1.5:i8"), "constant of i8: 1.5; accepted: an integer from -128 to 127");
  EXPECT_EQ(ErrorOf("1:bool"), "constant of bool: 1; accepted: true, false");
  const std::string two = "; accepted: up to 1 digits before the point and exactly 2 behind it";
  for (const char* wrong : {"1", "1.0", "1.000", "10.00", "1.", ".", "1.x0", "--1.00"})
    EXPECT_NE(ErrorOf(std::string(wrong) + ":decimal128(3,2)"), "no error") << wrong;
  EXPECT_EQ(ErrorOf("1.0:decimal128(3,2)"), "constant of decimal128(3,2): 1.0" + two);
  EXPECT_EQ(ErrorOf("10.00:decimal128(3,2)"), "constant of decimal128(3,2): 10.00" + two);
}

TEST(MapSpec, ErrorsOfOperands) {
  EXPECT_EQ(ErrorOf("add($0,$1)"),
            "arguments of add: i64, i32; accepted: integers, floats or decimals of one type, decimals of any precision "
            "and scale");
  EXPECT_EQ(ErrorOf("add_checked($3,$3)"), "arguments of add_checked: f64, f64; accepted: integers of one type");
  EXPECT_EQ(ErrorOf("divide($0,$0)"), "arguments of divide: i64, i64; accepted: floats of one type");
  EXPECT_EQ(
      ErrorOf("divide_checked($4,$4)"),
      "arguments of divide_checked: decimal128(15,2), decimal128(15,2); accepted: integers or floats of one type");
  EXPECT_EQ(
      ErrorOf("less($4,1:decimal128(1,0))"),
      "arguments of less: decimal128(15,2), decimal128(1,0); accepted: values of one type, decimals of one scale");
  EXPECT_EQ(ErrorOf("and($2,$0)"), "arguments of and: bool, i64; accepted: bool");
  EXPECT_EQ(
      ErrorOf("case_when($2,$0,$1)"),
      "arguments of case_when: bool, i64, i32; accepted: bool, value, bool, value, .., value; values of one type");
  EXPECT_EQ(ErrorOf("year($0)"), "arguments of year: i64; accepted: date32");
  EXPECT_EQ(ErrorOf("negate($0,$0)"), "number of arguments of negate: 2; accepted: 1");
  EXPECT_EQ(ErrorOf("coalesce($0)"), "number of arguments of coalesce: 1; accepted: 2 to 64");
  EXPECT_EQ(ErrorOf("cast($3,bool)"),
            "cast: f64 to bool; accepted: numbers and bool to numbers, dates and times to integers of their width and "
            "back, numbers, bool and date32 to utf8, large_utf8 and utf8_view and back");
}

TEST(MapSpec, ErrorsOfDates) {
  const auto error = [](const std::string& expression) { return ErrorOf(expression, "date32,timestamp,i64"); };
  const std::string units = "a constant, 1, 1000, 1000000 or 1000000000 as i64";
  EXPECT_EQ(error("add_days($0,$2)"), "arguments of add_days: date32, i64; accepted: date32, i32");
  EXPECT_EQ(error("days_between($0,$1)"), "arguments of days_between: date32, timestamp; accepted: date32");
  EXPECT_EQ(error("hour($1,$2)"), "arguments of hour: timestamp, i64; accepted: timestamp and " + units);
  EXPECT_EQ(error("hour($1,60:i64)"), "arguments of hour: timestamp, i64; accepted: timestamp and " + units);
  EXPECT_EQ(error("hour($1,null:i64)"), "arguments of hour: timestamp, i64; accepted: timestamp and " + units);
  EXPECT_EQ(error("hour($1,1000:i32)"), "arguments of hour: timestamp, i32; accepted: timestamp and " + units);
  EXPECT_EQ(error("hour($1)"), "number of arguments of hour: 1; accepted: 2");
  EXPECT_EQ(error("date_to_timestamp($1,1:i64)"),
            "arguments of date_to_timestamp: timestamp, i64; accepted: date32 and " + units);
}

TEST(MapSpec, LimitsOfSize) {
  const auto nested = [](size_t depth) {
    std::string text = "$0";
    for (size_t i = 1; i < depth; ++i) text = "negate(" + text + ")";
    return text;
  };
  EXPECT_EQ(ErrorOf(nested(kMaxExpressionDepth)), "no error");
  EXPECT_EQ(ErrorOf(nested(kMaxExpressionDepth + 1)),
            "expression nested too deep: $0" + std::string(kMaxExpressionDepth, ')') + "; accepted: up to 64 levels");
  const std::string four = "add(add($0,$0),$0)";  // five parts
  EXPECT_EQ(ErrorOf(Repeated(four, 819)), "no error");
  EXPECT_EQ(ErrorOf(Repeated(four, 820)), "expressions of too many parts: 4100; accepted: up to 4096");
}

// What only a caller who fills the struct can get wrong.
TEST(MapSpec, ErrorsOfStructs) {
  const auto valid = Parsed<MapSpec>("map in=i64,decimal128(5,2) out=add($0,1:i64),cast($1,i8)");
  MapSpec spec = valid;
  spec.results.clear();
  EXPECT_EQ(Text(ValidateSpec(spec)), "number of out out of range: 0; accepted: 1 to 1024");
  spec = valid;
  spec.columns[0].digits = 3;
  EXPECT_EQ(Text(ValidateSpec(spec)), "digits of a column that has none: i64; accepted: i64");
  spec = valid;
  spec.columns[1].scale = 6;
  EXPECT_EQ(Text(ValidateSpec(spec)),
            "decimal type: decimal128(5,6); accepted: decimal128(DIGITS,SCALE), 1 to 38 digits, a scale from 0 to the "
            "digits");
  spec = valid;
  spec.columns[0].id = TypeId::kRowId;
  EXPECT_EQ(Text(ValidateSpec(spec)), std::string("type that expressions do not have: rowid; accepted: ") + kTypes);
  spec = valid;
  spec.columns[0].collation = static_cast<Collation>(60000);
  EXPECT_TRUE(Text(ValidateSpec(spec)).starts_with("collation number out of range in in: 60000; "));
  spec = valid;
  spec.results[0].type.id = TypeId::kI32;
  EXPECT_EQ(Text(ValidateSpec(spec)),
            "fields of an expression: i32; accepted: what MakeColumn, MakeConstant and MakeCall fill: i64");
  spec = valid;
  spec.results[0].kind = static_cast<ExpressionKind>(7);
  EXPECT_EQ(Text(ValidateSpec(spec)), "kind of an expression out of range: 7; accepted: 0 to 2");
  spec = valid;
  spec.results[0].function = static_cast<ExpressionFunction>(200);
  EXPECT_EQ(Text(ValidateSpec(spec)),
            "function number out of range: 200; accepted: 0 to " + std::to_string(AllExpressionFunctions().size() - 1));
  spec = valid;
  spec.results[0].arguments.clear();
  EXPECT_EQ(Text(ValidateSpec(spec)), "number of arguments of add: 0; accepted: 2");
  spec = valid;
  spec.results[0].arguments[1].value->number = __int128{1} << 64;
  EXPECT_NE(Text(ValidateSpec(spec)), "no error");
  spec = valid;
  for (int i = 0; i < 64; ++i) spec.results[0].arguments[0] = Expression(spec.results[0]);
  EXPECT_EQ(Text(ValidateSpec(spec)), "expression nested too deep: 65; accepted: up to 64 levels");
}

// ---- random ----

ValueType RandomType(Random* random) {
  constexpr TypeId kIds[] = {TypeId::kBool,      TypeId::kI8,        TypeId::kI32,       TypeId::kU64,
                             TypeId::kF32,       TypeId::kF64,       TypeId::kI64,       TypeId::kDate32,
                             TypeId::kTimestamp, TypeId::kDecimal32, TypeId::kDecimal64, TypeId::kDecimal128};
  ValueType type{.id = kIds[random->Below(std::size(kIds))]};
  if (IsDecimal(type.id)) {
    type.digits = static_cast<uint8_t>(1 + random->Below(MaxDigitsOf(type.id)));
    type.scale = static_cast<uint8_t>(random->Below(type.digits + 1u));
  }
  return type;
}

Expression RandomConstant(Random* random, const ValueType& type) {
  Literal literal;
  if (type.id == TypeId::kF64) literal.real = (random->Fraction() - 0.5) * 1e6;
  else if (type.id == TypeId::kF32) literal.real = static_cast<float>(random->Fraction());
  else literal.number = static_cast<int64_t>(random->Below(2)) - (type.id == TypeId::kI8 ? 1 : 0);
  return *MakeConstant(random->Below(5) == 0 ? std::nullopt : std::optional(literal), type);
}

Expression RandomExpression(Random* random, const std::vector<ValueType>& columns, uint64_t depth) {
  const uint64_t kind = random->Below(6);
  if (depth == 0 || kind == 0) return RandomConstant(random, RandomType(random));
  if (kind == 1 && !columns.empty()) return *MakeColumn(static_cast<uint32_t>(random->Below(columns.size())), columns);
  for (int tries = 0; tries < 50; ++tries) {
    // Those before `sign`: the next test has the others.
    const auto functions = AllExpressionFunctions().first(static_cast<size_t>(ExpressionFunction::kSign));
    const ExpressionFunctionRow& row = functions[random->Below(functions.size())];
    std::vector<Expression> arguments = {RandomExpression(random, columns, depth - 1)};
    while (arguments.size() < row.min_arguments)
      arguments.push_back(random->Coin() ? arguments[0] : RandomExpression(random, columns, depth - 1));
    absl::StatusOr<Expression> call = MakeCall(row.id, std::move(arguments), RandomType(random));
    if (call.ok()) return *std::move(call);
  }
  return RandomConstant(random, RandomType(random));
}

MapSpec RandomSpec(Random* random) {
  MapSpec spec;
  for (uint64_t n = random->Below(6); n > 0; --n) {
    spec.columns.push_back(RandomType(random));
    spec.columns.back().nullable = random->Coin();
  }
  for (uint64_t n = 1 + random->Below(4); n > 0; --n) spec.results.push_back(RandomExpression(random, spec.columns, 3));
  return spec;
}

TEST(MapSpecRandom, ParseInvertsPrint) { ExpectParseInvertsPrint(1000, RandomSpec); }
TEST(MapSpecRandom, FunctionsOfNumbers) {
  for (const ExpressionFunctionRow& row :
       AllExpressionFunctions().subspan(static_cast<size_t>(ExpressionFunction::kSign))) {
    for (const TypeId id : {TypeId::kF32, TypeId::kF64, TypeId::kI8, TypeId::kBool}) {
      MapSpec spec;
      spec.columns = {{.id = id, .nullable = true}};
      const std::vector<Expression> arguments(row.min_arguments, *MakeColumn(0, spec.columns));
      absl::StatusOr<Expression> call = MakeCall(row.id, arguments, {});
      const bool is_accepted = id != TypeId::kBool && (IsFloat(id) || row.accepts == Operands::kNumbers);
      ASSERT_EQ(call.ok(), is_accepted) << row.text;
      if (!is_accepted) continue;
      spec.results.push_back(*std::move(call));
      const absl::StatusOr<KernelSpec> parsed = ParseSpec(spec.Print());
      ASSERT_TRUE(parsed.ok()) << parsed.status();
      EXPECT_EQ(std::get<MapSpec>(*parsed), spec);
    }
  }
}
TEST(MapSpecRandom, DamageIsAnswered) { ExpectDamageIsAnswered(3000, "=,:()$._ nul", RandomSpec); }

// Of errors, whose values may be anything that 16 bytes hold.
TEST(MapSpec, LowestNumberOf128Bits) {
  Literal lowest;
  lowest.number = static_cast<__int128>(static_cast<unsigned __int128>(1) << 127);
  EXPECT_EQ(ConstantText(lowest, {.id = TypeId::kDecimal128, .digits = 38, .scale = 2}),
            "-1701411834604692317316873037158841057.28");
  lowest.number = -5;
  EXPECT_EQ(ConstantText(lowest, {.id = TypeId::kDecimal128, .digits = 38, .scale = 2}), "-0.05");
}

}  // namespace
}  // namespace quern
