// SPDX-License-Identifier: Apache-2.0
// Types of values and what constants are in them: the arithmetic behind expression_types.h.
#ifndef QUERN_TOOLS_FRONTEND_VALUE_TYPES_H_
#define QUERN_TOOLS_FRONTEND_VALUE_TYPES_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/spec/expression.h"

namespace quern::cli {

// A decimal of as many digits, 38 at most.
ValueType DecimalType(int digits, int scale);
// The decimal that holds all values of an integer type; any other type as it is.
ValueType AsDecimal(const ValueType& type);
// The type in which values of both meet in an operator (expression_types.cc); nullopt: there is none.
std::optional<ValueType> CommonType(const ValueType& a, const ValueType& b);

// A number as it was written: 1.50 is 150 with 2 digits behind the point.
struct Number {
  bool is_real = false;  // it has an exponent; it is its text
  __int128 unscaled = 0;
  uint8_t scale = 0;

  bool is_whole() const { return !is_real && scale == 0; }
  // That it has by itself: a decimal or f64.
  ValueType type() const;
};
// nullopt: it has more than 38 digits.
std::optional<Number> NumberOfText(std::string_view text);
// The number in a type; nullopt where the type does not hold it. Floats round.
std::optional<Literal> NumberIn(const Number& number, std::string_view text, const ValueType& type);
// The type of a whole number that `beside` does not hold, or without a type beside it.
ValueType TypeOfWhole(const Number& number, const std::optional<ValueType>& beside);

// Whether a date, time or timestamp can be a constant of type `beside`.
bool IsTimeOf(TypeId constant, TypeId beside);
// How many units a second has in a time's Arrow format, whose third letter is the unit: "ttm", "tsu:".
int64_t UnitsPerSecond(std::string_view format);
// A date, time or timestamp in the units of a column of that type and Arrow format; "": of no column, whose unit is
// that of DefaultFormat (expression_units.h) and to which a time with an offset from UTC belongs, too. nullopt: a text
// of another form, or no whole number of units.
std::optional<Literal> TimeIn(std::string_view text, TypeId id, std::string_view format);

// The type of values of an Arrow format, which a kernel reads as a column of type `id`; nullopt for binaries of
// one width and decimals of a negative scale.
std::optional<ValueType> ValueTypeOf(TypeId id, std::string_view format, bool nullable);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FRONTEND_VALUE_TYPES_H_
