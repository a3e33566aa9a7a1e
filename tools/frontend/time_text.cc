// SPDX-License-Identifier: Apache-2.0
// ISO 8601 as far as conditions need it, in the proleptic Gregorian calendar:
//
//     date       YYYY-MM-DD
//     time       HH:MM [ :SS [ .f ] ]                     f: one to nine digits
//     timestamp  date [ ' ' or 'T'  time or HH  [ Z | +HH | +HHMM | +HH:MM, and so with - ] ]
//
//     "1970-01-01 00:00:01+01:00" in milliseconds     -3,599,000
//
// A constant is a number of the column's units or an error: "00:00:01.5" is no number of seconds.
#include "tools/frontend/time_text.h"

#include <chrono>

namespace quern::cli {
namespace {

constexpr int64_t kNanosPerSecond = 1'000'000'000;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Reads a text from its front; whatever does not fit makes it fail.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  bool Take(char c) {
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool AtEnd() const { return rest_.empty(); }
  bool AtDigit() const { return !rest_.empty() && IsDigit(rest_[0]); }

  // Exactly so many digits.
  std::optional<int> Number(size_t digits) {
    if (rest_.size() < digits) return std::nullopt;
    int number = 0;
    for (size_t i = 0; i < digits; ++i) {
      if (!IsDigit(rest_[i])) return std::nullopt;
      number = number * 10 + (rest_[i] - '0');
    }
    rest_.remove_prefix(digits);
    return number;
  }

  // Two digits of a number below `end`.
  std::optional<int> Below(int end) {
    const std::optional<int> number = Number(2);
    return number.has_value() && *number < end ? number : std::nullopt;
  }

 private:
  std::string_view rest_;
};

std::optional<int64_t> ReadDays(Reader* reader) {
  const std::optional<int> year = reader->Number(4);
  if (!year.has_value() || !reader->Take('-')) return std::nullopt;
  const std::optional<int> month = reader->Number(2);
  if (!month.has_value() || !reader->Take('-')) return std::nullopt;
  const std::optional<int> day = reader->Number(2);
  if (!day.has_value()) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year), std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date).time_since_epoch().count();
}

// The digits after the point of a second, in units.
std::optional<int64_t> ReadFraction(Reader* reader, int64_t per_second) {
  int64_t nanos = 0;
  int64_t digit_nanos = kNanosPerSecond;
  while (reader->AtDigit()) {
    digit_nanos /= 10;
    if (digit_nanos == 0) return std::nullopt;
    nanos += *reader->Number(1) * digit_nanos;
  }
  const int64_t nanos_per_unit = kNanosPerSecond / per_second;
  if (digit_nanos == kNanosPerSecond || nanos % nanos_per_unit != 0) return std::nullopt;
  return nanos / nanos_per_unit;
}

// Minutes and all that follows them, after the hour.
std::optional<int64_t> ReadAfterHour(Reader* reader, int64_t per_second) {
  const std::optional<int> minute = reader->Below(60);
  if (!minute.has_value()) return std::nullopt;
  if (!reader->Take(':')) return *minute * 60 * per_second;
  const std::optional<int> second = reader->Below(60);
  if (!second.has_value()) return std::nullopt;
  const int64_t whole = (*minute * 60 + *second) * per_second;
  if (!reader->Take('.')) return whole;
  const std::optional<int64_t> fraction = ReadFraction(reader, per_second);
  return fraction.has_value() ? std::optional<int64_t>(whole + *fraction) : std::nullopt;
}

// Units since midnight. `may_be_hour`: an hour alone will do.
std::optional<int64_t> ReadTime(Reader* reader, int64_t per_second, bool may_be_hour) {
  const std::optional<int> hour = reader->Below(24);
  if (!hour.has_value()) return std::nullopt;
  const int64_t units = *hour * 3600 * per_second;
  if (!reader->Take(':')) return may_be_hour ? std::optional<int64_t>(units) : std::nullopt;
  const std::optional<int64_t> rest = ReadAfterHour(reader, per_second);
  return rest.has_value() ? std::optional<int64_t>(units + *rest) : std::nullopt;
}

// Seconds by which a local time is ahead of UTC.
std::optional<int64_t> ReadOffset(Reader* reader) {
  if (reader->Take('Z')) return 0;
  const bool is_behind = reader->Take('-');
  if (!is_behind && !reader->Take('+')) return std::nullopt;
  const std::optional<int> hours = reader->Below(24);
  if (!hours.has_value()) return std::nullopt;
  std::optional<int> minutes = 0;
  if (reader->Take(':') || reader->AtDigit()) minutes = reader->Below(60);
  if (!minutes.has_value()) return std::nullopt;
  const int64_t seconds = *hours * 3600 + *minutes * 60;
  return is_behind ? -seconds : seconds;
}

}  // namespace

std::optional<int64_t> DaysOf(std::string_view text) {
  Reader reader(text);
  const std::optional<int64_t> days = ReadDays(&reader);
  return reader.AtEnd() ? days : std::nullopt;
}

std::optional<int64_t> TimeOf(std::string_view text, int64_t per_second) {
  Reader reader(text);
  const std::optional<int64_t> units = ReadTime(&reader, per_second, false);
  return reader.AtEnd() ? units : std::nullopt;
}

std::optional<__int128> TimestampOf(std::string_view text, int64_t per_second, bool has_zone) {
  Reader reader(text);
  const std::optional<int64_t> days = ReadDays(&reader);
  if (!days.has_value()) return std::nullopt;
  __int128 units = static_cast<__int128>(*days) * kSecondsPerDay * per_second;
  if (reader.AtEnd()) return units;
  if (!reader.Take(' ') && !reader.Take('T')) return std::nullopt;
  const std::optional<int64_t> time = ReadTime(&reader, per_second, true);
  if (!time.has_value()) return std::nullopt;
  units += *time;
  if (reader.AtEnd()) return units;
  const std::optional<int64_t> offset = has_zone ? ReadOffset(&reader) : std::nullopt;
  if (!offset.has_value() || !reader.AtEnd()) return std::nullopt;
  return units - static_cast<__int128>(*offset) * per_second;
}

}  // namespace quern::cli
