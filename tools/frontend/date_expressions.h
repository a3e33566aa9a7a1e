// SPDX-License-Identifier: Apache-2.0
// Calls of functions of dates as kernels take them. SQL has one function for dates and timestamps, kernels have one for
// each. Some have the units of a second as an argument. These depend on the columns that a call meets, which are known
// when all types are; until then this argument is 1, and TypedExpression sets it.
#ifndef QUERN_TOOLS_FRONTEND_DATE_EXPRESSIONS_H_
#define QUERN_TOOLS_FRONTEND_DATE_EXPRESSIONS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/spec/expression.h"
#include "tools/frontend/date_words.h"

namespace quern::cli {

// In Literal::bytes of a constant that is no string: it depends on a unit, too. One of i64 is a number of seconds, to
// be multiplied by the units of one; one of a time is what TypedExpression keeps under this number.
inline constexpr char kUnread[] = "unread";

// Whether it is a function of dates or timestamps.
bool IsOfDates(ExpressionFunction function);

// A call of any of them on dates or timestamps; year($0) of a timestamp is year(timestamp_to_date($0,..)). *Errors*:
// those of MakeCall.
absl::StatusOr<Expression> DateCall(ExpressionFunction function, std::vector<Expression> arguments);
// date32 to timestamp, and back.
absl::StatusOr<Expression> DateCast(Expression value, TypeId to);
// A date or a timestamp, plus an interval. *Errors*: InvalidArgument for a date plus seconds, and any other type.
absl::StatusOr<Expression> PlusInterval(Expression value, const Interval& interval);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FRONTEND_DATE_EXPRESSIONS_H_
