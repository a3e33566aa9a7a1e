// SPDX-License-Identifier: Apache-2.0
// Blocks of maps on dates and timestamps (lanes.h). A date is a number of days since 1970 in the proleptic Gregorian
// calendar, a timestamp a number of units since 1970; how many units a second has is a constant of the plan.
//
//     2024-01-31 plus one month      19753 days -> year 2024, month 1, day 31 -> month 2 has 29 days -> 2024-02-29
//
// The calendar's arithmetic is that of Neri and Schneider (Euclidean affine functions, 2023). Its years begin in March,
// so that a leap day is the last one of a year. Divisions of vectors are multiplications; only those of timestamps, and
// that of days by whole cycles, go lane by lane.
#ifndef QUERN_RUNTIME_BLOCKS_DATE_LANES_H_
#define QUERN_RUNTIME_BLOCKS_DATE_LANES_H_

#include "runtime/blocks/lanes.h"

namespace quern::blocks {

enum DatePart : uint64_t {
  kYearPart,
  kQuarterPart,
  kMonthPart,
  kDayPart,
  kIsoYearPart,
  kIsoWeekPart,
  kIsoDayOfWeekPart,
  kSundayDayOfWeekPart,
  kDayOfYearPart,
};

// The days of any i32 are made positive by adding whole cycles of 400 years.
constexpr uint64_t kCycleDays = 146097, kCycles = 14700;
constexpr uint64_t kDayShift = 719468 + kCycleDays * kCycles, kYearShift = 400 * kCycles;

// The quotient of numbers below 2^36 / kDivisor.
template <uint64_t kDivisor>
QUERN_INLINE U64x8 SmallQuotient(U64x8 x) {
  static_assert(kDivisor < 256);
  return (x * ((uint64_t{1} << 36) / kDivisor + 1)) >> 36;
}

struct CivilLanes {
  U64x8 year;         // plus kYearShift
  U64x8 month;        // 1 .. 12
  U64x8 day;          // 1 .. 31
  U64x8 day_of_year;  // 1 .. 366
  U64x8 is_leap;      // 0, 1
};

// `year` of either kind: kYearShift is whole cycles.
QUERN_INLINE U64x8 IsLeapYear(U64x8 year) {
  const U64x8 of_century = (U64x8)(year == 100 * SmallQuotient<100>(year)) & 12;
  return (U64x8)((year & (of_century | 3)) == 0) & 1;
}

QUERN_INLINE CivilLanes CivilOf(U64x8 days) {
  const U64x8 n = days + kDayShift;
  const U64x8 n1 = 4 * n + 3;
  U64x8 century = {}, rest = {};
  for (uint32_t i = 0; i < kLanes; ++i) {
    century[i] = n1[i] / kCycleDays;
    rest[i] = n1[i] % kCycleDays / 4;
  }
  const U64x8 n2 = 4 * rest + 3, p2 = 2939745 * n2;
  const U64x8 year = 100 * century + (p2 >> 32), from_march = (p2 & 0xffffffffu) / 2939745 / 4;
  const U64x8 n3 = 2141 * from_march + 197913;
  const U64x8 is_next_year = (U64x8)(from_march >= 306);
  CivilLanes civil = {};
  civil.year = year + (is_next_year & 1);
  civil.month = (n3 >> 16) - (is_next_year & 12);
  civil.day = (n3 & 0xffffu) / 2141 + 1;
  civil.is_leap = IsLeapYear(civil.year);
  // January and February have 306 days behind them; all other months have 59 or 60 before them.
  const U64x8 from_january = (is_next_year & (from_march - 306)) | (~is_next_year & (from_march + 59 + civil.is_leap));
  civil.day_of_year = from_january + 1;
  return civil;
}

// Days since 1970 of a date whose year is at least 1 - kYearShift; `day` begins at 1.
QUERN_INLINE U64x8 DaysOfCivil(U64x8 shifted_year, U64x8 month, U64x8 day) {
  const U64x8 is_early = (U64x8)(month <= 2);
  const U64x8 year = shifted_year - (is_early & 1), m = month + (is_early & 12), century = SmallQuotient<100>(year);
  return ((1461 * year) >> 2) - century + (century >> 2) + ((979 * m - 2919) >> 5) + day - 1 - kDayShift;
}

QUERN_INLINE U64x8 DaysInMonth(U64x8 month, U64x8 is_leap) {
  const U64x8 is_february = (U64x8)(month == 2);
  return (is_february & (28 + is_leap)) | (~is_february & (30 | ((month ^ (month >> 3)) & 1)));
}

// 0: Monday. 1970-01-01 was a Thursday. 2^27 is 8^9, whose rest by 7 is 1.
QUERN_INLINE U64x8 DayOfWeek(U64x8 days) {
  constexpr uint64_t kDays = uint64_t{7} << 29;  // whole weeks, more than any i32 has before 1970
  const U64x8 n = days + (3 + kDays), folded = (n >> 27) + (n & ((uint64_t{1} << 27) - 1));
  return folded - 7 * SmallQuotient<7>(folded);
}

QUERN_INLINE U64x8 QuarterOf(U64x8 month) { return SmallQuotient<3>(month + 2); }

// `low`: a DatePart. The parts of an ISO week are those of its Thursday.
QUERN_INLINE void DatePart(const LaneCall& call) {
  Pass(call, call.a);
  U64x8 days = call.a.low;
  if (call.p.low == kIsoDayOfWeekPart) {
    call.out->low = DayOfWeek(days) + 1;
    return;
  }
  if (call.p.low == kSundayDayOfWeekPart) {
    call.out->low = DayOfWeek(days + 1);
    return;
  }
  if (call.p.low == kIsoYearPart || call.p.low == kIsoWeekPart) days += 3 - DayOfWeek(days);
  const CivilLanes civil = CivilOf(days);
  switch (call.p.low) {
    case kYearPart:
    case kIsoYearPart: call.out->low = civil.year - kYearShift; break;
    case kQuarterPart: call.out->low = QuarterOf(civil.month); break;
    case kMonthPart: call.out->low = civil.month; break;
    case kIsoWeekPart: call.out->low = SmallQuotient<7>(civil.day_of_year - 1) + 1; break;
    case kDayOfYearPart: call.out->low = civil.day_of_year; break;
    default: call.out->low = civil.day; break;
  }
}

// The first day of the year, quarter, month or ISO week (`low`: a DatePart).
QUERN_INLINE void DateTrunc(const LaneCall& call) {
  Pass(call, call.a);
  const U64x8 days = call.a.low;
  if (call.p.low == kIsoWeekPart) return SetInteger(call, days - DayOfWeek(days), I64x8{});
  const CivilLanes civil = CivilOf(days);
  U64x8 behind = civil.day;
  if (call.p.low == kYearPart) behind = civil.day_of_year;
  if (call.p.low == kQuarterPart) {
    // Quarters begin behind 0, 90, 181 and 273 days, in leap years one later.
    const U64x8 quarter = QuarterOf(civil.month), later = (U64x8)(quarter > 1);
    const U64x8 short_by_one = (U64x8)(quarter == 2) | (U64x8)(quarter == 3);
    behind = civil.day_of_year - (91 * (quarter - 1) - (short_by_one & 1) + (later & civil.is_leap));
  }
  SetInteger(call, days + 1 - behind, I64x8{});
}

// The same day of another month, or that month's last one.
QUERN_INLINE void AddMonths(const LaneCall& call) {
  Pass(call, call.a, call.b);
  const CivilLanes civil = CivilOf(call.a.low);
  const U64x8 sum = 12 * civil.year + civil.month - 1 + call.b.low;
  // Beyond both ends of any i32: years -5,877,641 to 5,881,580.
  constexpr int64_t kFirst = 12, kEnd = 12 * (2 * static_cast<int64_t>(kYearShift) + 2000);
  const I64x8 refused = ((I64x8)sum < kFirst) | ((I64x8)sum >= kEnd);
  const U64x8 months = (sum & ~(U64x8)refused) | ((U64x8)refused & static_cast<uint64_t>(kFirst));
  const U64x8 year = SmallQuotient<12>(months), month = months - 12 * year + 1;
  const U64x8 most = DaysInMonth(month, IsLeapYear(year)), is_beyond = (U64x8)(civil.day > most);
  SetInteger(call, DaysOfCivil(year, month, (is_beyond & most) | (~is_beyond & civil.day)), refused);
}

// ---- timestamps ----

// 0 .. divisor - 1, of a quotient that is rounded down.
QUERN_INLINE U64x8 FloorRest(U64x8 x, uint64_t divisor) {
  U64x8 result = {};
  for (uint32_t i = 0; i < kLanes; ++i) {
    const int64_t rest = static_cast<int64_t>(x[i]) % static_cast<int64_t>(divisor);
    result[i] = static_cast<uint64_t>(rest) + (rest < 0 ? divisor : 0);
  }
  return result;
}

// `low`: units a day.
QUERN_INLINE void TimestampToDate(const LaneCall& call) {
  Pass(call, call.a);
  U64x8 days = {};
  for (uint32_t i = 0; i < kLanes; ++i) {
    const auto x = static_cast<int64_t>(call.a.low[i]), divisor = static_cast<int64_t>(call.p.low);
    days[i] = static_cast<uint64_t>(x / divisor - (x % divisor < 0));
  }
  SetInteger(call, days, I64x8{});
}

// `low`: units a day.
QUERN_INLINE void DateToTimestamp(const LaneCall& call) {
  Pass(call, call.a);
  const auto most = static_cast<int64_t>((~uint64_t{0} >> 1) / call.p.low);
  const I64x8 days = (I64x8)call.a.low;
  SetInteger(call, call.a.low * call.p.low, (days > most) | (days < -most));
}

// The units behind a whole number of `low` units, in wholes of `high`: the minutes of an hour.
QUERN_INLINE void TimePart(const LaneCall& call) {
  Pass(call, call.a);
  const U64x8 rest = FloorRest(call.a.low, call.p.low);
  for (uint32_t i = 0; i < kLanes; ++i) call.out->low[i] = rest[i] / call.p.high;
}

// Without the units behind a whole number of `low` units.
QUERN_INLINE void TimestampTrunc(const LaneCall& call) {
  Pass(call, call.a);
  const U64x8 x = call.a.low, rest = FloorRest(x, call.p.low), result = x - rest;
  SetInteger(call, result, (I64x8)((x ^ rest) & (x ^ result)) < 0);
}

}  // namespace quern::blocks

#endif  // QUERN_RUNTIME_BLOCKS_DATE_LANES_H_
