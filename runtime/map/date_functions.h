// SPDX-License-Identifier: Apache-2.0
// Which function of lanes does which function of dates and timestamps, and with what constants (map_descriptor.h).
#ifndef QUERN_RUNTIME_MAP_DATE_FUNCTIONS_H_
#define QUERN_RUNTIME_MAP_DATE_FUNCTIONS_H_

#include <cstdint>

#include "runtime/abi/map_abi.h"
#include "runtime/blocks/date_lanes.h"
#include "runtime/spec/expression.h"

namespace quern {

// low, high: constants of the function; for timestamps in seconds.
struct DateFunctionRow {
  ExpressionFunction function;
  LaneFunction lanes;
  uint64_t low, high;
};

constexpr uint64_t kMinuteSeconds = 60, kHourSeconds = 3600, kDaySeconds = 86400;

constexpr DateFunctionRow kDateFunctions[] = {
    {ExpressionFunction::kYear, kDatePartLanes, blocks::kYearPart, 0},
    {ExpressionFunction::kQuarter, kDatePartLanes, blocks::kQuarterPart, 0},
    {ExpressionFunction::kMonth, kDatePartLanes, blocks::kMonthPart, 0},
    {ExpressionFunction::kDay, kDatePartLanes, blocks::kDayPart, 0},
    {ExpressionFunction::kIsoYear, kDatePartLanes, blocks::kIsoYearPart, 0},
    {ExpressionFunction::kIsoWeek, kDatePartLanes, blocks::kIsoWeekPart, 0},
    {ExpressionFunction::kIsoDayOfWeek, kDatePartLanes, blocks::kIsoDayOfWeekPart, 0},
    {ExpressionFunction::kSundayDayOfWeek, kDatePartLanes, blocks::kSundayDayOfWeekPart, 0},
    {ExpressionFunction::kDayOfYear, kDatePartLanes, blocks::kDayOfYearPart, 0},
    {ExpressionFunction::kDateTruncYear, kDateTruncLanes, blocks::kYearPart, 0},
    {ExpressionFunction::kDateTruncQuarter, kDateTruncLanes, blocks::kQuarterPart, 0},
    {ExpressionFunction::kDateTruncMonth, kDateTruncLanes, blocks::kMonthPart, 0},
    {ExpressionFunction::kDateTruncWeek, kDateTruncLanes, blocks::kIsoWeekPart, 0},
    {ExpressionFunction::kTimestampToDate, kTimestampToDateLanes, kDaySeconds, 0},
    {ExpressionFunction::kDateToTimestamp, kDateToTimestampLanes, kDaySeconds, 0},
    {ExpressionFunction::kHour, kTimePartLanes, kDaySeconds, kHourSeconds},
    {ExpressionFunction::kMinute, kTimePartLanes, kHourSeconds, kMinuteSeconds},
    {ExpressionFunction::kSecond, kTimePartLanes, kMinuteSeconds, 1},
    {ExpressionFunction::kTimestampTruncDay, kTimestampTruncLanes, kDaySeconds, 0},
    {ExpressionFunction::kTimestampTruncHour, kTimestampTruncLanes, kHourSeconds, 0},
    {ExpressionFunction::kTimestampTruncMinute, kTimestampTruncLanes, kMinuteSeconds, 0},
    {ExpressionFunction::kTimestampTruncSecond, kTimestampTruncLanes, 1, 0},
};

constexpr const DateFunctionRow& DateFunctionOf(ExpressionFunction function) {
  for (const DateFunctionRow& row : kDateFunctions)
    if (row.function == function) return row;
  return kDateFunctions[0];
}

}  // namespace quern

#endif  // QUERN_RUNTIME_MAP_DATE_FUNCTIONS_H_
