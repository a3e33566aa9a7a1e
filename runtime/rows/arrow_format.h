// SPDX-License-Identifier: Apache-2.0
// Formats of the Arrow C data interface ("d:15,2", "tsu:UTC") where they say more than a column's type.
#ifndef QUERN_RUNTIME_ROWS_ARROW_FORMAT_H_
#define QUERN_RUNTIME_ROWS_ARROW_FORMAT_H_

#include <string>

#include "runtime/spec/aggregate_spec.h"
#include "runtime/spec/column_type.h"

namespace quern {

// What a format specifies beyond the type that a spec names: a decimal's scale, a time's unit. Time zones and
// precisions change no value.
std::string UnitOf(const std::string& format);

// The format of a type whose unit, scale and zone are unknown: the first of those that column_types.def lists.
std::string FirstFormat(const ColumnType& type);

// The format of an aggregate's result. argument: that of its first column; empty if it has none. A minimum of
// timestamps has the unit and zone of its column; a sum of decimals has their scale, and as many digits as 128 bits
// hold.
std::string FormatOfResult(const AggregateSpec& aggregate, const ColumnType& result, const std::string& argument);

}  // namespace quern

#endif  // QUERN_RUNTIME_ROWS_ARROW_FORMAT_H_
