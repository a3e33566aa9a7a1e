// SPDX-License-Identifier: Apache-2.0
// Calls of functions of dates as kernels take them. SQL has one function for dates and timestamps, kernels have one for
// each; `units` are those that a second of the timestamps has.
#ifndef QUERN_TOOLS_FRONTEND_DATE_EXPRESSIONS_H_
#define QUERN_TOOLS_FRONTEND_DATE_EXPRESSIONS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/spec/expression.h"
#include "tools/frontend/date_words.h"

namespace quern::cli {

// Whether it is a function of dates or timestamps.
bool IsOfDates(ExpressionFunction function);

// A call of any of them on dates or timestamps; year($0) of a timestamp is year(timestamp_to_date($0,..)). *Errors*:
// those of MakeCall.
absl::StatusOr<Expression> DateCall(ExpressionFunction function, std::vector<Expression> arguments, int64_t units);
// date32 to timestamp, and back.
absl::StatusOr<Expression> DateCast(Expression value, TypeId to, int64_t units);
// A date or a timestamp, plus an interval. *Errors*: InvalidArgument for a date plus seconds, and any other type.
absl::StatusOr<Expression> PlusInterval(Expression value, const Interval& interval, int64_t units);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FRONTEND_DATE_EXPRESSIONS_H_
