// SPDX-License-Identifier: Apache-2.0
// Functions of strings, and casts to strings and back (expression.h):
//
//     integers, decimals   "-12", "0.50", with just the digits of the scale. Back: a sign, digits and, for decimals, a
//                          point anywhere, and nothing else; rounded half away from 0 where the scale is smaller
//     bool                 "true", "false". Back: in any case of letters
//     date32               "2024-02-29", "-0044-03-15", "12345-01-01" (ISO 8601). Back: such a day of the calendar
//     floats               the fewest digits that are read as the same number: "0.1", "-2", "1e+15", "inf", "nan"; with
//                          an exponent below 1e-4 and from 1e15 on, of f32 from 1e6 on. Back: what std::from_chars
//                          reads, and a plus; 0 where it is too small for the type
//     strings              to another type of strings with the same bytes; a binary is no text
#ifndef QUERN_RUNTIME_SPEC_EXPRESSION_STRINGS_H_
#define QUERN_RUNTIME_SPEC_EXPRESSION_STRINGS_H_

#include <span>

#include "absl/status/status.h"
#include "runtime/spec/expression.h"

namespace quern {

// utf8, large_utf8, utf8_view.
bool IsTextType(TypeId id);
// Whether the first argument of the function is a string, whatever the types of others.
bool TakesOnlyStrings(const ExpressionFunctionRow& row);

// Checks the arguments of such a call, of which there are as many as the function has. *Errors*: InvalidArgument that
// names the types and what is accepted.
absl::Status CheckStringArguments(const ExpressionFunctionRow& row, std::span<const Expression> arguments);
// Whether there is a cast; one of the two is a string.
bool IsStringCast(const ValueType& from, const ValueType& to);

}  // namespace quern

#endif  // QUERN_RUNTIME_SPEC_EXPRESSION_STRINGS_H_
