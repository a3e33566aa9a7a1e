// SPDX-License-Identifier: Apache-2.0
// Specs of filters: what parses, the one canonical text, the columns that a condition reads, and every message in full.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "runtime/spec/condition.h"
#include "runtime/spec/spec.h"
#include "test/unit/runtime/spec/spec_texts.h"

namespace quern {
namespace {

using spec_texts::kAllButRowId;
using spec_texts::Text;

std::string Error(const std::string& condition) { return Text(ParseSpec("filter " + condition).status()); }

Predicate Parsed(const std::string& condition) {
  const auto spec = ParseSpec("filter " + condition);
  EXPECT_TRUE(spec.ok()) << Error(condition);
  return spec.ok() ? std::get<FilterSpec>(*spec).where : Predicate();
}

// The canonical text of a condition, without the operator.
std::string Canonical(const std::string& condition) {
  const auto spec = ParseSpec("filter " + condition);
  return spec.ok() ? PrintSpec(*spec).substr(7) : Text(spec.status());
}

void ExpectCanonical(const std::string& condition) { EXPECT_EQ(Canonical(condition), condition); }

std::string Repeated(const std::string& item, size_t n) {
  std::string text;
  for (size_t i = 0; i < n; ++i) text += item;
  return text;
}

constexpr char kLeafForms[] =
    "TYPE OP LITERAL, TYPE OP TYPE, TYPE [not] in (LITERAL,..), TYPE [not] between LITERAL and LITERAL, TYPE [not] "
    "like 'PATTERN' "
    "[escape 'C'], TYPE is [not] null, bool, not CONDITION, (CONDITION)";
constexpr char kOperators[] = "=, <>, <, <=, >, >=, in, between, like, is, not";
constexpr char kStrings[] = "'TEXT' with '' for a quote, or bytes as x'00ff'";

// ---- what parses ----

TEST(FilterSpec, ExampleIsCanonical) {
  const std::string text =
      "i64:nullable >= 5 and utf8(utf8mb4_bin) = 'zz''z' or utf8(utf8mb4_general_ci) not like '%a!%%' escape '!' and "
      "date32 <> "
      "date32:nullable";
  const Predicate where = Parsed(text);
  ASSERT_EQ(where.kind, PredicateKind::kOr);
  ASSERT_EQ(where.children.size(), 2u);
  ASSERT_EQ(where.children[0].kind, PredicateKind::kAnd);
  const ColumnType number{.id = TypeId::kI64, .nullable = true},
      word{.id = TypeId::kUtf8, .collation = kCollationUtf8mb4Bin};
  EXPECT_EQ(where.children[0].children[0], (Predicate{.kind = PredicateKind::kCompare,
                                                      .column = number,
                                                      .op = Comparison::kGreaterEqual,
                                                      .values = {{.number = 5}}}));
  EXPECT_EQ(
      where.children[0].children[1],
      (Predicate{
          .kind = PredicateKind::kCompare, .column = word, .op = Comparison::kEqual, .values = {{.bytes = "zz'z"}}}));
  const Predicate& like = where.children[1].children[0];
  EXPECT_EQ(like.kind, PredicateKind::kLike);
  EXPECT_TRUE(like.negated);
  EXPECT_EQ(like.values, (std::vector<Literal>{{.bytes = "%a!%%"}}));
  EXPECT_EQ(like.escape, U'!');
  const Predicate& columns = where.children[1].children[1];
  EXPECT_EQ(columns.kind, PredicateKind::kCompareColumns);
  EXPECT_EQ(columns.other, (ColumnType{.id = TypeId::kDate32, .nullable = true}));
  EXPECT_EQ(ColumnsOf(where),
            (std::vector<ColumnType>{number, word, like.column, {.id = TypeId::kDate32}, columns.other}));
  ExpectCanonical(text);
}

TEST(FilterSpec, BlanksCaseAndSignsAreNotKept) {
  EXPECT_EQ(Canonical("\t i64==5 AND(i32!=4)\n"), "i64 = 5 and i32 <> 4");
  EXPECT_EQ(Canonical("bool = TRUE Or Not bool = False"), "bool or not bool = false");
  EXPECT_EQ(Canonical("i8 IN(1,  2,3)"), "i8 in (1, 2, 3)");
  EXPECT_EQ(Canonical("utf8 NOT Like'a'ESCAPE'\\'"), "utf8 not like 'a'");
  EXPECT_EQ(Canonical("time is NOT Null"), "time64 is not null");
  EXPECT_EQ(Canonical("utf8(binary)=X'6162'"), "utf8 = 'ab'");
  EXPECT_EQ(Canonical("i64 between -0 and 007"), "i64 between 0 and 7");
}

TEST(FilterSpec, ParenthesesWhereTheyAreNeeded) {
  EXPECT_EQ(Canonical("((bool) and (bool and bool))"), "bool and bool and bool");
  EXPECT_EQ(Canonical("bool or (bool or bool) or bool"), "bool or bool or bool or bool");
  EXPECT_EQ(Canonical("(bool and bool) or bool"), "bool and bool or bool");
  ExpectCanonical("(bool or bool) and bool");
  EXPECT_EQ(Canonical("not (bool)"), "not bool");
  ExpectCanonical("not (bool and not not (bool or bool))");
  EXPECT_EQ(Canonical("not (i64 = 5) and bool"), "not i64 = 5 and bool");
}

TEST(FilterSpec, EveryLeaf) {
  for (const char* sign : {"=", "<>", "<", "<=", ">", ">="}) {
    ExpectCanonical("i64 " + std::string(sign) + " -5");
    ExpectCanonical("utf8_view(ascii_bin):nullable " + std::string(sign) + " utf8_view(ascii_bin)");
  }
  for (const char* negation : {"", " not"}) {
    const std::string operation = std::string("decimal128") + negation;
    ExpectCanonical(operation + " in (1)");
    ExpectCanonical(operation + " between 5 and -5");
    ExpectCanonical("dictionary(i32,utf8(tidb.utf8mb4_general_ci)):nullable" + std::string(negation) +
                    " like '_%' escape ''");
    ExpectCanonical("f64 is" + std::string(negation) + " null");
  }
  ExpectCanonical("utf8 like 'a' escape 'ß'");
  EXPECT_EQ(Parsed("utf8 like 'a' escape 'ß'").escape, U'ß');
  EXPECT_EQ(Parsed("utf8 like 'a' escape ''").escape, U'\0');
  ExpectCanonical("utf8 like 'a' escape x'01'");
  ExpectCanonical("fixed_binary(3) = x'00ff80'");
}

TEST(FilterSpec, EveryTypeAndCollation) {
  for (const TypeRow& row : AllTypes()) {
    if (row.id == TypeId::kRowId) continue;
    const std::string type = std::string(row.text) + (row.id == TypeId::kFixedBinary ? "(3)" : "");
    ExpectCanonical(type + " is null");
    ExpectCanonical("dictionary(u16," + type + "):nullable = dictionary(u16," + type + ")");
    if (!IsVariable(row.storage)) continue;
    for (const CollationRow& collation : AllCollations()) {
      const Predicate where = Parsed(type + "(" + std::string(collation.text) + ") = 'a'");
      EXPECT_EQ(where.column.collation, collation.id);
    }
  }
}

// ---- constants ----

TEST(FilterSpecConstants, IntegersToTheirEnds) {
  const auto ends = [](const std::string& type, const std::string& min, const std::string& max) {
    ExpectCanonical(type + " between " + min + " and " + max);
  };
  ends("i8", "-128", "127");
  ends("u8", "0", "255");
  ends("i16", "-32768", "32767");
  ends("u16", "0", "65535");
  ends("u32", "0", "4294967295");
  for (const char* type : {"i32", "date32", "time32"}) ends(type, "-2147483648", "2147483647");
  for (const char* type : {"i64", "date64", "time64", "timestamp", "duration"})
    ends(type, "-9223372036854775808", "9223372036854775807");
  ends("u64", "0", "18446744073709551615");
  ends("decimal128", "-170141183460469231731687303715884105728", "170141183460469231731687303715884105727");
}

TEST(FilterSpecConstants, NumbersPrintAsShortAsTheyCan) {
  EXPECT_EQ(Canonical("f64 in (1.50, 1e3, .5, 5., 0.1, -0.0, INF, -inf, NaN, 1e300, 4.9e-324)"),
            "f64 in (1.5, 1000, 0.5, 5, 0.1, -0, inf, -inf, nan, 1e+300, 5e-324)");
  EXPECT_EQ(Canonical("f32 in (0.1, 16777217, 3.4028235e38, 1e-45)"), "f32 in (0.1, 16777216, 3.4028235e+38, 1e-45)");
  EXPECT_EQ(Parsed("f32 = 0.1").values[0].real, static_cast<double>(0.1f));
  EXPECT_TRUE(std::isnan(Parsed("f64 = nan").values[0].real));
  EXPECT_TRUE(std::signbit(Parsed("f64 = -0").values[0].real));
  EXPECT_TRUE(Parsed("f64 = nan") == Parsed("f64 = NAN"));
  EXPECT_FALSE(Parsed("f64 = 0") == Parsed("f64 = -0"));
}

TEST(FilterSpecConstants, StringsAndBytes) {
  ExpectCanonical("utf8 in ('', '''', 'a b', 'ß漢😀', '(:,)#')");
  ExpectCanonical("utf8 in (x'00', x'0a', x'ff', x'61c3', x'7f', x'c285', x'eda080', x'f4908080', x'c0af', x'e08080')");
  EXPECT_EQ(Canonical("utf8 = 'a\nb'"), "utf8 = x'610a62'");
  EXPECT_EQ(Canonical("utf8 = x'c2A0'"), "utf8 = '\xC2\xA0'");
  EXPECT_EQ(Parsed("large_binary = x'00ff'").values[0].bytes, std::string("\0\xff", 2));
}

// ---- messages ----

TEST(FilterSpecErrors, Conditions) {
  const std::string forms = kLeafForms;
  EXPECT_EQ(Text(ParseSpec("filter").status()), "condition expected: end of the condition; accepted: " + forms);
  EXPECT_EQ(Error(""), "condition expected: end of the condition; accepted: " + forms);
  EXPECT_EQ(Error("i64 = 5 and"), "condition expected: end of the condition; accepted: " + forms);
  EXPECT_EQ(Error("i64 = 5 or and bool"), "condition expected: and bool; accepted: " + forms);
  EXPECT_EQ(Error("5 = i64"), "condition expected: 5 = i64; accepted: " + forms);
  EXPECT_EQ(Error("()"), "condition expected: ); accepted: " + forms);
  EXPECT_EQ(Error("bool bool"), "unknown comparison behind bool: bool; accepted: " + std::string(kOperators));
  EXPECT_EQ(Error("i64 = 5 adn bool"), "unknown word behind a condition: adn; did you mean and? accepted: and, or");
  EXPECT_EQ(Error("i64 = 5, bool"), "text behind a condition: , bool; accepted: and, or");
  EXPECT_EQ(Error("bool)"), "text behind a condition: ); accepted: and, or");
  EXPECT_EQ(Error("(bool"), "parenthesis not closed: (bool; accepted: ')'");
  EXPECT_EQ(Error("(i64 = 5 6)"), "text in parentheses behind a condition: 6); accepted: and, or, ')'");
}

TEST(FilterSpecErrors, Columns) {
  EXPECT_EQ(Error("i65 = 5"),
            "unknown column type: i65; did you mean i64? accepted: " + std::string(kAllButRowId) + ", dictionary");
  EXPECT_EQ(Error("rowid = 5"), "rowid in a condition: rowid; accepted: " + std::string(kAllButRowId) + ", dictionary");
  EXPECT_EQ(Error("i64:desc = 5"), "flag without meaning in a condition's column: desc; accepted: nullable");
  EXPECT_EQ(Error("i64:nulable = 5"), "unknown flag: nulable; did you mean nullable? accepted: nullable");
  EXPECT_EQ(Error("i64: = 5"), "empty flag: i64:; accepted: nullable");
  EXPECT_EQ(Error("utf8(ascii_bin = 'a'"), "parenthesis not closed: utf8(ascii_bin = 'a'; accepted: TYPE(PARAMETER)");
  EXPECT_EQ(Error("i64 = i32"),
            "types that differ in a comparison of columns: i64 and i32; accepted: one type, nullable or not");
  EXPECT_EQ(
      Error("utf8(ascii_bin) < utf8"),
      "types that differ in a comparison of columns: utf8(ascii_bin) and utf8; accepted: one type, nullable or not");
}

TEST(FilterSpecErrors, Operators) {
  const std::string operators = kOperators;
  EXPECT_EQ(Error("i64"), "comparison expected behind i64: end of the condition; accepted: " + operators);
  EXPECT_EQ(Error("i64 ~ 5"), "comparison expected behind i64: ~ 5; accepted: " + operators);
  EXPECT_EQ(Error("utf8 lke 'a'"), "unknown comparison behind utf8: lke; did you mean like? accepted: " + operators);
  EXPECT_EQ(Error("i64 not 5"), "comparison expected behind not: 5; accepted: in, between, like");
  EXPECT_EQ(Error("i64 in 5"), "list expected behind in: 5; accepted: (LITERAL,..)");
  EXPECT_EQ(Error("i64 in (5"), "list not closed: end of the condition; accepted: ',' and a literal, or ')'");
  EXPECT_EQ(Error("i64 between 5 or 6"), "upper bound expected behind between: or 6; accepted: and LITERAL");
  EXPECT_EQ(Error("i64 is 5"), "null expected behind is: 5; accepted: null, not null");
  EXPECT_EQ(Error("i64 is not 5"), "null expected behind is not: 5; accepted: null");
  EXPECT_EQ(Error("i64 like 'a'"),
            "like on a column without strings: i64; accepted: binary, utf8, large_binary, large_utf8, binary_view, "
            "utf8_view");
  for (const char* escape : {"'ab'", "x'ff'", "x'00'"}) {
    EXPECT_EQ(Error("utf8 like 'a' escape " + std::string(escape)),
              "escape of like: " + std::string(escape) + "; accepted: one character, or '' for none");
  }
  EXPECT_EQ(Error("utf8 like 'a' escape"),
            "escape of like: end of the condition; accepted: one character, or '' for none");
}

TEST(FilterSpecErrors, Constants) {
  const std::string strings = kStrings;
  EXPECT_EQ(Error("i8 = 128"), "constant of i8: 128; accepted: an integer from -128 to 127");
  EXPECT_EQ(Error("u8 = -1"), "constant of u8: -1; accepted: an integer from 0 to 255");
  EXPECT_EQ(Error("i8 = 1.5"), "constant of i8: 1.5; accepted: an integer from -128 to 127");
  EXPECT_EQ(Error("i8 = 'a'"), "constant of i8: 'a'; accepted: an integer from -128 to 127");
  EXPECT_EQ(Error("i8 ="),
            "constant of i8: end of the condition; accepted: an integer from -128 to 127, or a column's type");
  EXPECT_EQ(
      Error("u64 = 340282366920938463463374607431768211456"),
      "constant of u64: 340282366920938463463374607431768211456; accepted: an integer from 0 to 18446744073709551615");
  EXPECT_EQ(Error("bool = 1"), "constant of bool: 1; accepted: true, false");
  for (const char* number : {"1e999", "1x", "-nan", "+1", "0x10", "1e", "-", "."}) {
    EXPECT_EQ(Error("f64 = " + std::string(number)),
              "constant of f64: " + std::string(number) +
                  "; accepted: a number up to 1.7976931348623157e+308, inf, -inf, nan");
  }
  EXPECT_EQ(Error("f32 = 1e39"), "constant of f32: 1e39; accepted: a number up to 3.4028235e+38, inf, -inf, nan");
  EXPECT_EQ(Error("utf8 = 5"), "constant of utf8: 5; accepted: " + strings);
  EXPECT_EQ(Error("utf8 in (a)"), "constant of utf8: a; accepted: " + strings);
  EXPECT_EQ(Error("utf8 = 'it''s"), "string not closed: 'it''s; accepted: " + strings);
  EXPECT_EQ(Error("utf8 = x'00"), "string not closed: x'00; accepted: " + strings);
  for (const char* bytes : {"x'0'", "x'0g'", "x'+1'"}) {
    EXPECT_EQ(Error("utf8 = " + std::string(bytes)),
              "bytes that are no pairs of hexadecimal digits: " + std::string(bytes) + "; accepted: x'00ff'");
  }
  EXPECT_EQ(Error("fixed_binary(3) = 'ab' and bool"),
            "constant of fixed_binary(3): 'ab'; accepted: 3 bytes, as x'00ff' or 'TEXT' with '' for a quote");
}

TEST(FilterSpecErrors, TooMuch) {
  EXPECT_EQ(Canonical(Repeated("(", 63) + "bool" + Repeated(")", 63)), "bool");
  EXPECT_EQ(Error(Repeated("(", 64) + "bool" + Repeated(")", 64)),
            "condition nested too deep: bool" + Repeated(")", 64) + "; accepted: up to 64 levels");
  ExpectCanonical(Repeated("not ", 63) + "bool");
  EXPECT_EQ(Error(Repeated("not ", 64) + "bool"), "condition nested too deep: bool; accepted: up to 64 levels");
  EXPECT_EQ(Error(Repeated("not ", 100000) + "bool").substr(0, 26), "condition nested too deep:");
  // Nested `and` of `or` of `and` ..: each parenthesis adds two levels.
  EXPECT_EQ(Error(Repeated("(bool or bool and ", 40) + "bool" + Repeated(")", 40)),
            "condition nested too deep: 65; accepted: up to 64 levels");
  ExpectCanonical("bool" + Repeated(" and bool", 1023));
  EXPECT_EQ(Error("bool" + Repeated(" and bool", 1024)),
            "condition of too many comparisons: bool; accepted: up to 1024");
  ExpectCanonical("i64 in (1" + Repeated(", 1", 65535) + ")");
  EXPECT_EQ(Error("i64 in (1" + Repeated(", 1", 65536) + ")"),
            "list of too many constants: 65537; accepted: 1 to 65536");
  EXPECT_EQ(Error("utf8 = '" + Repeated("a", 4 << 20) + "'"),
            "kernel spec too long: 4194320 bytes; accepted: up to 4194304");
}

// ---- structs that a caller filled ----

std::string ValidationError(const Predicate& where) { return Text(ValidateSpec(FilterSpec{where})); }

TEST(FilterSpecValidation, FieldsOfEachKind) {
  const Predicate leaf = Parsed("bool");
  EXPECT_EQ(ValidationError(Predicate()), "field of a predicate of kind 0: children; accepted: children, two or more");
  EXPECT_EQ(ValidationError({.kind = PredicateKind::kOr, .children = {leaf}}),
            "field of a predicate of kind 1: children; accepted: children, two or more");
  EXPECT_EQ(ValidationError({.kind = PredicateKind::kNot, .children = {leaf, leaf}}),
            "field of a predicate of kind 2: children; accepted: children, one");
  EXPECT_EQ(ValidationError({.kind = PredicateKind::kNot, .children = {leaf}, .op = Comparison::kEqual}),
            "field of a predicate of kind 2: op; accepted: children, one");
  EXPECT_EQ(ValidationError({.kind = PredicateKind::kIsNull, .other = {.id = TypeId::kI8}}),
            "field of a predicate of kind 8: other; accepted: column, negated");
  EXPECT_EQ(ValidationError({.kind = PredicateKind::kCompare}),
            "field of a predicate of kind 3: values; accepted: column, op, values, one");
  EXPECT_EQ(ValidationError({.kind = PredicateKind::kCompareColumns, .negated = true}),
            "field of a predicate of kind 4: negated; accepted: column, other, op");
  EXPECT_EQ(ValidationError({.kind = PredicateKind::kBetween, .values = {{}}}),
            "field of a predicate of kind 5: values; accepted: column, negated, values, two");
  EXPECT_EQ(ValidationError({.kind = PredicateKind::kIn}),
            "field of a predicate of kind 6: values; accepted: column, negated, values, 1 to 65536");
  EXPECT_EQ(ValidationError({.kind = PredicateKind::kIn, .values = {{}}, .escape = U'!'}),
            "field of a predicate of kind 6: escape; accepted: column, negated, values, 1 to 65536");
  EXPECT_EQ(ValidationError({.kind = PredicateKind::kLike, .column = {.id = TypeId::kUtf8}}),
            "field of a predicate of kind 7: values; accepted: column, negated, values, one, escape");
  EXPECT_EQ(ValidationError({.kind = PredicateKind::kAnd, .children = {leaf, Parsed("bool and bool")}}),
            "child of its parent's kind: bool and bool; accepted: its children in its place");
}

TEST(FilterSpecValidation, NumbersThatAreNoEnumerators) {
  EXPECT_EQ(ValidationError({.kind = static_cast<PredicateKind>(9)}),
            "predicate kind out of range: 9; accepted: 0 to 8");
  EXPECT_EQ(ValidationError({.kind = PredicateKind::kIsNull, .column = {.id = static_cast<TypeId>(77)}}),
            "column type number out of range in column 0 of the condition: 77; accepted: 0 to " +
                std::to_string(AllTypes().size() - 1));
  EXPECT_EQ(ValidationError({.kind = PredicateKind::kIsNull, .column = {.id = TypeId::kRowId}}),
            "rowid in a condition: column 0 of the condition; accepted: " + std::string(kAllButRowId) + ", dictionary");
  EXPECT_EQ(ValidationError({.kind = PredicateKind::kCompare, .op = static_cast<Comparison>(6), .values = {{}}}),
            "comparison number out of range in a condition: 6; accepted: 0 to 5");
  Predicate columns = Parsed("bool and i64 = i64");
  columns.children[1].other.width_bytes = 3;
  EXPECT_EQ(ValidationError(columns), "width out of range in column 2 of the condition: 3; accepted: 0");
  columns.children[1].other = {.id = TypeId::kI8};
  EXPECT_EQ(ValidationError(columns),
            "types that differ in a comparison of columns: i64 and i8; accepted: one type, nullable or not");
}

TEST(FilterSpecValidation, Constants) {
  const auto error = [](const char* condition, const Literal& literal) {
    Predicate where = Parsed(condition);
    where.values[0] = literal;
    return ValidationError(where);
  };
  EXPECT_EQ(error("i8 = 0", {.number = 128}), "constant of i8: 128; accepted: an integer from -128 to 127");
  EXPECT_EQ(error("bool", {.number = 2}), "constant of bool: 2; accepted: true, false");
  EXPECT_EQ(error("i8 = 0", {.real = 1}),
            "constant with more than one value: i8; accepted: an integer from -128 to 127");
  EXPECT_EQ(error("utf8 = 'a'", {.number = 1, .bytes = "a"}),
            "constant with more than one value: utf8; accepted: " + std::string(kStrings));
  EXPECT_EQ(error("f32 = 0", {.real = 0.1}),
            "constant of f32: 0.1; accepted: a number up to 3.4028235e+38, inf, -inf, nan");
  EXPECT_EQ(error("f32 = 0", {.real = 1e300}),
            "constant of f32: 1e+300; accepted: a number up to 3.4028235e+38, inf, -inf, nan");
  EXPECT_EQ(error("f32 = 0", {.real = std::numeric_limits<double>::infinity()}), "no error");
  EXPECT_EQ(error("fixed_binary(2) = 'ab'", {.bytes = "abc"}),
            "constant of fixed_binary(2): 'abc'; accepted: 2 bytes, as x'00ff' or 'TEXT' with '' for a quote");
  Predicate like = Parsed("utf8 like 'a'");
  like.escape = 0xD800;
  EXPECT_EQ(ValidationError(like), "escape of like: 55296; accepted: a Unicode scalar value, or 0 for none");
  like.escape = U'!';
  like.column.id = TypeId::kDate32;
  EXPECT_EQ(ValidationError(like),
            "like on a column without strings: date32; accepted: binary, utf8, large_binary, large_utf8, binary_view, "
            "utf8_view");
}

}  // namespace
}  // namespace quern
