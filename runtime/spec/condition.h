// SPDX-License-Identifier: Apache-2.0
// The condition of a filter's spec (filter_spec.h):
//
//     filter utf8(utf8mb4_bin) = 'zzzz'
//     filter i64:nullable >= 5 and i64:nullable < 10 or utf8(utf8mb4_general_ci) not like '%pend%dep%' escape '!'
//     filter utf8 in ('MAIL', 'SHIP') and date32 < date32 and not (bool or f64 is null)
//
// Each type stands for a column of the batch, in the order of mention; a host that uses one column twice binds it
// twice. A row passes if the condition is true. A comparison with null is unknown; unknown is not true, and `not`
// unknown is unknown.
//
//     condition   condition or condition | condition and condition | not condition | ( condition ) | leaf
//                 (from loosest to tightest)
//     leaf        TYPE OP literal | TYPE OP TYPE | TYPE [not] in (literal, ..) | TYPE [not] between literal and literal
//                 TYPE [not] like 'pattern' [escape 'c'] | TYPE is [not] null | TYPE (bool: is true)
//     OP          = <> < <= > >=    (!= and == are accepted too)
//     literal     integers and unscaled decimals 42, -7; numbers 1.5e3, nan, inf; true, false; 'text', where '' is a
//                 quote; x'00ff' bytes
//
// Keywords are read in any case and printed in lower case. Literals of dates, times and decimals are the numbers that
// the columns hold.
#ifndef QUERN_RUNTIME_SPEC_CONDITION_H_
#define QUERN_RUNTIME_SPEC_CONDITION_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/spec/column_type.h"
#include "runtime/spec/literal.h"

namespace quern {

// column OP column, or column OP literal. True only if both have a value; NaN equals NaN and is greater than every
// number, -0 equals 0.
enum class Comparison : uint8_t { kLess, kLessEqual, kGreater, kGreaterEqual, kNotEqual, kEqual };

enum class PredicateKind : uint8_t { kAnd, kOr, kNot, kCompare, kCompareColumns, kBetween, kIn, kLike, kIsNull };

struct Predicate {
  PredicateKind kind = PredicateKind::kAnd;
  std::vector<Predicate> children = {};  // kAnd, kOr: two or more, none of its own kind; kNot: one
  // Leaves, as all below.
  ColumnType column = {};
  ColumnType other = {};             // kCompareColumns: the right-hand column; types are the same except for nullable
  Comparison op = {};                // kCompare, kCompareColumns
  bool negated = false;              // kBetween, kIn, kLike, kIsNull: NOT
  std::vector<Literal> values = {};  // kCompare: one; kBetween: low, high; kIn: one or more; kLike: the pattern
  char32_t escape = U'\\';           // kLike; 0: there is no escape character

  bool operator==(const Predicate&) const = default;
};

constexpr size_t kMaxPredicateLeaves = 1024;
constexpr size_t kMaxPredicateDepth = 64;
constexpr size_t kMaxInValues = 65536;

// The columns that a condition reads, in the order in which it mentions them.
std::vector<ColumnType> ColumnsOf(const Predicate& condition);

// Reads and writes the text form: ParseCondition(PrintCondition(c)) == c. *Errors*: InvalidArgument that names the
// value and what is accepted.
absl::StatusOr<Predicate> ParseCondition(std::string_view text);
std::string PrintCondition(const Predicate& condition);

// Parses the escape of a LIKE: one character of UTF-8, or 0 if the text is empty.
absl::StatusOr<char32_t> EscapeOf(std::string_view text);

// Checks what only a caller who fills the struct can get wrong, since no text expresses it.
absl::Status ValidateCondition(const Predicate& condition);

}  // namespace quern

#endif  // QUERN_RUNTIME_SPEC_CONDITION_H_
