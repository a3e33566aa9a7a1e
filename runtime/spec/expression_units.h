// SPDX-License-Identifier: Apache-2.0
// Units, zones and scales of the results of expressions. A spec says timestamp, and a kernel sees a number; the Arrow
// formats of the columns say what it counts:
//
//     case_when(less($0,$1),$2,null:timestamp)    passes $2 on, and has its unit and zone; $0 and $1 are compared, and
//                                                 have one unit, which may be another one
//     cast($0,timestamp) of an i64                passes nothing on: microseconds
#ifndef QUERN_RUNTIME_SPEC_EXPRESSION_UNITS_H_
#define QUERN_RUNTIME_SPEC_EXPRESSION_UNITS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/spec/expression.h"

namespace quern {

// The numbers of the columns of this type that expressions pass on: those which reach the results through nothing but
// values of the type; a timestamp also through the sum of its units, and through its date (expression_units.cc). In
// the order of mention, one number for each.
std::vector<uint32_t> PassedOn(std::span<const Expression> expressions, TypeId id);

// The Arrow format of a decimal, "d:15,2"; of any other type without columns to take a unit from, "tsu:" of a
// timestamp.
std::string DefaultFormat(const ValueType& type);

// The Arrow format of a result: that of the first column that the expression passes on, or DefaultFormat. formats[i]
// belongs to column i.
std::string FormatOf(const Expression& expression, std::span<const std::string> formats);

// Two columns of one type and of different units that meet in the arguments of a call.
struct MixedUnits {
  const Expression* call;
  uint32_t first, other;
};
// The first of these; nullopt: there are none, and each constant of a time has the unit of the columns that it meets.
std::optional<MixedUnits> FindMixedUnits(const Expression& expression, std::span<const std::string> formats);

}  // namespace quern

#endif  // QUERN_RUNTIME_SPEC_EXPRESSION_UNITS_H_
