// SPDX-License-Identifier: Apache-2.0
// Functions of dates and timestamps evaluated row by row (expression_rows.h): year by year and month by month, with the
// lengths of months in a table.
#ifndef QUERN_TEST_UNIT_RUNTIME_MAP_DATE_ROWS_H_
#define QUERN_TEST_UNIT_RUNTIME_MAP_DATE_ROWS_H_

#include <algorithm>
#include <cstdint>

#include "runtime/spec/expression.h"

namespace quern::test::rows {

struct CivilDate {
  int64_t year = 1970;
  int month = 1, day = 1;
};

inline bool IsLeap(int64_t year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }
inline int LengthOf(int64_t year, int month) {
  const int lengths[] = {31, IsLeap(year) ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return lengths[month - 1];
}
inline int64_t Floor(int64_t number, int64_t divisor) { return number / divisor - (number % divisor < 0 ? 1 : 0); }

// By whole cycles of 400 years, then year by year and month by month.
inline CivilDate DateOf(int64_t days) {
  constexpr int64_t kCycle = 146097;
  const int64_t cycles = Floor(days, kCycle);
  CivilDate date;
  date.year += 400 * cycles;
  days -= cycles * kCycle;
  for (; days >= (IsLeap(date.year) ? 366 : 365); ++date.year) days -= IsLeap(date.year) ? 366 : 365;
  for (; days >= LengthOf(date.year, date.month); ++date.month) days -= LengthOf(date.year, date.month);
  date.day += static_cast<int>(days);
  return date;
}

inline int64_t DaysOf(const CivilDate& date) {
  const int64_t cycles = Floor(date.year - 1970, 400);
  int64_t days = cycles * 146097 + date.day - 1;
  for (int64_t year = 1970 + 400 * cycles; year < date.year; ++year) days += IsLeap(year) ? 366 : 365;
  for (int month = 1; month < date.month; ++month) days += LengthOf(date.year, month);
  return days;
}

// 0: Monday.
inline int64_t DayOfWeek(int64_t days) { return days + 3 - 7 * Floor(days + 3, 7); }

inline int64_t PlusMonths(int64_t days, int64_t more) {
  const CivilDate date = DateOf(days);
  const int64_t months = 12 * date.year + date.month - 1 + more, year = Floor(months, 12);
  const int month = static_cast<int>(months - 12 * year) + 1;
  return DaysOf({year, month, std::min(date.day, LengthOf(year, month))});
}

// `a`: days or units since 1970. `b`: units a second, days, months or the second date.
inline __int128 OfDates(ExpressionFunction function, int64_t a, int64_t b) {
  using F = ExpressionFunction;
  const CivilDate date = function < F::kTimestampToDate ? DateOf(a) : CivilDate();
  const int64_t thursday = function < F::kTimestampToDate ? a + 3 - DayOfWeek(a) : 0;
  switch (function) {
    case F::kYear: return date.year;
    case F::kQuarter: return (date.month + 2) / 3;
    case F::kMonth: return date.month;
    case F::kDay: return date.day;
    case F::kIsoYear: return DateOf(thursday).year;
    case F::kIsoWeek: return (thursday - DaysOf({DateOf(thursday).year, 1, 1})) / 7 + 1;
    case F::kIsoDayOfWeek: return DayOfWeek(a) + 1;
    case F::kSundayDayOfWeek: return (DayOfWeek(a) + 1) % 7;
    case F::kDayOfYear: return a - DaysOf({date.year, 1, 1}) + 1;
    case F::kDateTruncYear: return DaysOf({date.year, 1, 1});
    case F::kDateTruncQuarter: return DaysOf({date.year, (date.month - 1) / 3 * 3 + 1, 1});
    case F::kDateTruncMonth: return DaysOf({date.year, date.month, 1});
    case F::kDateTruncWeek: return a - DayOfWeek(a);
    case F::kAddDays: return a + b;
    case F::kAddMonths: return PlusMonths(a, b);
    case F::kDaysBetween: return b - a;
    case F::kTimestampToDate: return Floor(a, 86400 * b);
    case F::kDateToTimestamp: return static_cast<__int128>(a) * 86400 * b;
    case F::kHour: return Floor(a, 3600 * b) - __int128{24} * Floor(a, 86400 * b);
    case F::kMinute: return Floor(a, 60 * b) - __int128{60} * Floor(a, 3600 * b);
    case F::kSecond: return Floor(a, b) - __int128{60} * Floor(a, 60 * b);
    case F::kTimestampTruncDay: return static_cast<__int128>(Floor(a, 86400 * b)) * 86400 * b;
    case F::kTimestampTruncHour: return static_cast<__int128>(Floor(a, 3600 * b)) * 3600 * b;
    case F::kTimestampTruncMinute: return static_cast<__int128>(Floor(a, 60 * b)) * 60 * b;
    case F::kTimestampTruncSecond: return static_cast<__int128>(Floor(a, b)) * b;
    default: return 0;
  }
}

}  // namespace quern::test::rows

#endif  // QUERN_TEST_UNIT_RUNTIME_MAP_DATE_ROWS_H_
