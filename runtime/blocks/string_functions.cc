// SPDX-License-Identifier: Apache-2.0
// Functions of strings, each a loop over the rows that have all arguments. Those that only cut a string (substring,
// trim) copy nothing; the others write to the thread's scratch. Numbers are written by std::to_chars and read by
// std::from_chars, which know no locale; decimals of 128 bits digit by digit.
#include "runtime/blocks/string_functions.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>

#include "runtime/base/refused_calls.h"
#include "runtime/blocks/blocks.h"
#include "runtime/blocks/storage_dispatch.h"
#include "runtime/blocks/string_scratch.h"
#include "runtime/collation/collation.h"
#include "runtime/collation/like_pattern.h"

namespace quern {
namespace {

namespace b = blocks;
using b::Bytes;

constexpr uint64_t kMaxStringBytes = std::numeric_limits<uint32_t>::max();

Bytes StringAt(const QuernLanes& x, uint32_t i) {
  return {reinterpret_cast<const uint8_t*>(x.low[i]), static_cast<uint32_t>(x.high[i])};
}
std::string_view TextAt(const QuernLanes& x, uint32_t i) {
  const Bytes s = StringAt(x, i);
  return {reinterpret_cast<const char*>(s.data), s.length};
}

void SetString(const uint8_t* data, uint64_t length, uint32_t i, QuernLanes* out) {
  out->low[i] = reinterpret_cast<uint64_t>(data);
  out->high[i] = length;
}

// A copy in the scratch; an empty string where memory is refused, which is known.
void SetCopy(std::string_view text, uint32_t i, QuernLanes* out) {
  uint8_t* const to = StringScratch::Allocate(text.size());
  if (to != nullptr && !text.empty()) std::memcpy(to, text.data(), text.size());
  SetString(to, to == nullptr ? 0 : text.size(), i, out);
}

void SetTruth(bool truth, uint32_t i, QuernLanes* out) {
  out->truth = static_cast<uint8_t>((out->truth & ~(1u << i)) | static_cast<uint32_t>(truth) << i);
}

// body(i) says whether row i has a result.
template <class Body>
uint8_t EachRow(uint8_t rows, Body&& body) {
  uint32_t refused = 0;
  for (uint32_t left = rows; left != 0; left &= left - 1) {
    const auto i = static_cast<uint32_t>(std::countr_zero(left));
    if (!body(i)) refused |= 1u << i;
  }
  return static_cast<uint8_t>(refused);
}

template <class Truth>
uint8_t EachTruth(uint8_t rows, QuernLanes* out, Truth&& truth) {
  return EachRow(rows, [&](uint32_t i) {
    SetTruth(OrNoted(false, [&] { return truth(i); }), i, out);
    return true;
  });
}

// ---- characters ----

// Where the `number`-th character begins that is counted from `from` on, a character's begin itself; the string's end
// if it has fewer.
uint32_t Forward(Bytes s, uint32_t from, uint64_t number, bool of_characters) {
  const uint32_t left = s.length - from;
  if (number >= left) return s.length;  // each has a byte at least
  if (!of_characters) return from + static_cast<uint32_t>(number);
  uint32_t at = from;
  for (; number > 0 && at < s.length; --number) do
      ++at;
    while (at < s.length && !BeginsCharacter(s.data[at]));
  return at;
}

// The positions start .. start + length - 1, of which some may lie before the first character; nullopt: to the end.
Bytes Substring(Bytes s, int64_t start, std::optional<int64_t> length, bool of_characters) {
  const int64_t first = std::max<int64_t>(start, 1);
  const uint32_t begin = Forward(s, 0, static_cast<uint64_t>(first) - 1, of_characters);
  if (!length.has_value()) return {s.data + begin, s.length - begin};
  const __int128 end = __int128{start} + *length;  // the first position behind
  if (end <= first) return {s.data + begin, 0};
  const auto number = static_cast<uint64_t>(std::min<__int128>(end - first, std::numeric_limits<int64_t>::max()));
  return {s.data + begin, Forward(s, begin, number, of_characters) - begin};
}

template <uint8_t kFirst>  // of 26 letters, of which another case is 32 away
void ChangeCase(Bytes s, uint8_t* to) {
  for (uint32_t i = 0; i < s.length; ++i) {
    const uint8_t c = s.data[i];
    to[i] = static_cast<uint8_t>(c ^ (static_cast<uint8_t>(c - kFirst) < 26 ? 0x20 : 0));
  }
}

template <uint8_t kFirst>
uint8_t EachChangedCase(const QuernLanes& a, uint8_t rows, QuernLanes* out) {
  return EachRow(rows, [&](uint32_t i) {
    const Bytes s = StringAt(a, i);
    uint8_t* const to = StringScratch::Allocate(s.length);
    if (to != nullptr) ChangeCase<kFirst>(s, to);
    SetString(to, to == nullptr ? 0 : s.length, i, out);
    return true;
  });
}

// The string with each `part` replaced; false: it would be too long.
bool Replace(std::string_view s, std::string_view part, std::string_view by, uint32_t i, QuernLanes* out) {
  uint64_t number = 0;
  if (!part.empty())
    for (size_t at = s.find(part); at != s.npos; at = s.find(part, at + part.size())) ++number;
  if (number == 0) {
    SetString(reinterpret_cast<const uint8_t*>(s.data()), s.size(), i, out);
    return true;
  }
  const unsigned __int128 length = static_cast<unsigned __int128>(number) * by.size() + s.size() - number * part.size();
  if (length > kMaxStringBytes) return false;
  uint8_t* to = StringScratch::Allocate(static_cast<uint64_t>(length));
  SetString(to, to == nullptr ? 0 : static_cast<uint64_t>(length), i, out);
  if (to == nullptr) return true;
  const auto append = [&to](std::string_view text) {
    if (!text.empty()) std::memcpy(to, text.data(), text.size());
    to += text.size();
  };
  size_t from = 0;
  for (size_t at = s.find(part); at != s.npos; at = s.find(part, from)) {
    append(s.substr(from, at - from));
    append(by);
    from = at + part.size();
  }
  append(s.substr(from));
  return true;
}

// ---- numbers ----

constexpr size_t kNumberBytes = 48;  // a sign, 39 digits, a point

// The digits of a number, at the end of the buffer; returns their begin. At least `least` of them.
char* WriteDigits(unsigned __int128 number, size_t least, char* end) {
  char* at = end;
  constexpr uint64_t kChunk = 10'000'000'000'000'000'000u;  // 10^19
  const auto write = [&at](uint64_t part, size_t digits) {
    for (size_t d = 0; d < digits || part != 0; ++d, part /= 10) *--at = static_cast<char>('0' + part % 10);
  };
  while (number >= kChunk) {
    write(static_cast<uint64_t>(number % kChunk), 19);
    number /= kChunk;
  }
  write(static_cast<uint64_t>(number), 0);
  while (static_cast<size_t>(end - at) < least) *--at = '0';
  return at;
}

std::string_view DecimalText(__int128 number, uint32_t scale, char (&buffer)[kNumberBytes]) {
  char* const end = buffer + kNumberBytes;
  const bool is_negative = number < 0;
  const auto magnitude =
      is_negative ? 0 - static_cast<unsigned __int128>(number) : static_cast<unsigned __int128>(number);
  char* at = WriteDigits(magnitude, scale + 1, end);
  if (scale != 0) {
    std::memmove(at - 1, at, static_cast<size_t>(end - at) - scale);
    --at;
    *(end - scale - 1) = '.';
  }
  if (is_negative) *--at = '-';
  return {at, static_cast<size_t>(end - at)};
}

// The fewest digits that are read as the same number, with an exponent below 1e-4 and from 1e15 on, of f32 from 1e6 on:
// whole numbers below that are exact, and have no digits but their own.
template <class T>
std::string_view FloatText(T number, char (&buffer)[kNumberBytes]) {
  constexpr T kEnd = std::is_same_v<T, float> ? T(1e6) : T(1e15);
  const T magnitude = std::fabs(number);
  const bool is_plain = number == 0 || (magnitude >= T(1e-4) && magnitude < kEnd) || !std::isfinite(number);
  const std::chars_format format = is_plain ? std::chars_format::fixed : std::chars_format::scientific;
  if (std::isnan(number)) return "nan";
  const char* const end = std::to_chars(buffer, buffer + kNumberBytes, number, format).ptr;
  return {buffer, static_cast<size_t>(end - buffer)};
}

// Takes a sign from the front of a text; returns whether it was a minus.
bool TakeSign(std::string_view* text) {
  if (text->empty() || ((*text)[0] != '-' && (*text)[0] != '+')) return false;
  const bool is_minus = (*text)[0] == '-';
  text->remove_prefix(1);
  return is_minus;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Whether it is a sign, perhaps, and digits that the type holds.
template <class T>
bool ReadWhole(std::string_view text, T* number) {
  const size_t sign_bytes = text.starts_with('+') || text.starts_with('-') ? 1 : 0;
  if (text.size() == sign_bytes || !IsDigit(text[sign_bytes])) return false;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

bool ReadInteger(std::string_view text, bool is_signed, uint64_t bits, uint64_t* low) {
  int64_t number = 0;
  if (is_signed) {
    if (!ReadWhole(text, &number)) return false;
    const auto shift = static_cast<uint32_t>(64 - bits);
    *low = static_cast<uint64_t>(number);
    return static_cast<int64_t>(static_cast<uint64_t>(number) << shift) >> shift == number;
  }
  if (text.starts_with('-')) return ReadWhole(text, &number) && number == 0;
  return ReadWhole(text, low) && (bits == 64 || *low >> bits == 0);
}

// A sign, digits with a point somewhere, rounded half away from 0 to the scale.
bool ReadDecimal(std::string_view text, uint64_t scale, uint64_t digits, __int128* number) {
  const bool is_minus = TakeSign(&text);
  unsigned __int128 limit = 1, value = 0;
  for (uint64_t d = 0; d < digits; ++d) limit *= 10;
  uint64_t behind = 0, num_digits = 0;
  bool has_point = false, rounds_up = false;
  const auto append = [&](unsigned digit) {
    if (value > (limit - 1 - digit) / 10) return false;
    value = value * 10 + digit;
    return true;
  };
  for (const char c : text) {
    if (c == '.' && !has_point) {
      has_point = true;
      continue;
    }
    if (!IsDigit(c)) return false;
    ++num_digits;
    if (has_point && behind == scale) {
      if (++behind == scale + 1) rounds_up = c >= '5';
      continue;
    }
    if (has_point && behind > scale) continue;
    behind += has_point ? 1 : 0;
    if (!append(static_cast<unsigned>(c - '0'))) return false;
  }
  if (num_digits == 0) return false;
  for (; behind < scale; ++behind)
    if (!append(0)) return false;
  value += rounds_up ? 1 : 0;
  *number = is_minus ? -static_cast<__int128>(value) : static_cast<__int128>(value);
  return value < limit;
}

// Whether the size of a number beyond the range of floats is below 1: its first digit stands behind the point, or is
// moved there by the exponent.
bool IsTiny(std::string_view text) {
  const size_t e = std::min(text.find_first_of("eE"), text.size());
  const std::string_view digits = text.substr(0, e);
  std::string_view exponent = text.substr(std::min(e + 1, text.size()));
  if (exponent.starts_with('+')) exponent.remove_prefix(1);
  const size_t point = std::min(digits.find('.'), digits.size());
  const size_t first = std::min(digits.find_first_of("123456789"), digits.size());
  int64_t moved = 0;
  const std::errc error = std::from_chars(exponent.data(), exponent.data() + exponent.size(), moved).ec;
  if (error == std::errc::result_out_of_range) return exponent.starts_with('-');
  return static_cast<__int128>(point) - static_cast<__int128>(first) + moved <= 0;
}

// What is too small for the type is 0.
template <class T>
bool ReadFloat(std::string_view text, uint64_t* low) {
  T number = 0;
  if (text.starts_with('+') && text.size() > 1 && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || end != text.data() + text.size()) return false;
  if (error == std::errc::result_out_of_range) {
    if (!IsTiny(text)) return false;
    number = text.starts_with('-') ? -T(0) : T(0);
  } else if (error != std::errc()) {
    return false;
  }
  *low = std::bit_cast<uint64_t>(static_cast<double>(number));
  return true;
}

// ---- dates: days since 1970-01-01 of the proleptic Gregorian calendar ----

struct Day {
  int64_t year;
  uint32_t month, day;
};

constexpr int64_t kDaysPerEra = 146097, kYearsPerEra = 400, kEpochShift = 719468;  // days from 0000-03-01 to 1970

// In eras of 400 years that begin in March, so that the leap day is a year's last.
Day DayOf(int64_t days) {
  const int64_t shifted = days + kEpochShift;
  const int64_t era = (shifted >= 0 ? shifted : shifted - (kDaysPerEra - 1)) / kDaysPerEra;
  const auto of_era = static_cast<uint32_t>(shifted - era * kDaysPerEra);
  const uint32_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  const uint32_t of_year = of_era - (365 * year + year / 4 - year / 100);
  const uint32_t month = (5 * of_year + 2) / 153;
  const uint32_t day = of_year - (153 * month + 2) / 5 + 1;
  const uint32_t civil_month = month < 10 ? month + 3 : month - 9;
  return {era * kYearsPerEra + year + (civil_month <= 2 ? 1 : 0), civil_month, day};
}

int64_t DaysOf(const Day& d) {
  const int64_t year = d.month <= 2 ? d.year - 1 : d.year;
  const int64_t era = (year >= 0 ? year : year - (kYearsPerEra - 1)) / kYearsPerEra;
  const int64_t of_era = year - era * kYearsPerEra;
  const int64_t of_year = (153 * (d.month > 2 ? d.month - 3 : d.month + 9) + 2) / 5 + d.day - 1;
  return era * kDaysPerEra + of_era * 365 + of_era / 4 - of_era / 100 + of_year - kEpochShift;
}

uint32_t DaysInMonth(int64_t year, uint32_t month) {
  constexpr uint32_t kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return kDays[month - 1] + (month == 2 && is_leap ? 1 : 0);
}

std::string_view DateText(int64_t days, char (&buffer)[kNumberBytes]) {
  const Day d = DayOf(days);
  char* const end = buffer + kNumberBytes;
  WriteDigits(d.day, 2, end);
  *(end - 3) = '-';
  WriteDigits(d.month, 2, end - 3);
  *(end - 6) = '-';
  char* at = WriteDigits(static_cast<unsigned __int128>(d.year < 0 ? -d.year : d.year), 4, end - 6);
  if (d.year < 0) *--at = '-';
  return {at, static_cast<size_t>(end - at)};
}

// "-0044-03-15": four digits of a year or more, two of month and day.
bool ReadDate(std::string_view text, uint64_t* low) {
  const bool is_minus = text.starts_with('-');
  if (is_minus) text.remove_prefix(1);
  const size_t n = text.size();
  if (n < 10 || n > 13 || text[n - 3] != '-' || text[n - 6] != '-') return false;
  for (size_t i = 0; i < n; ++i)
    if (i != n - 3 && i != n - 6 && !IsDigit(text[i])) return false;
  Day d = {};
  std::from_chars(text.data(), text.data() + n - 6, d.year);
  std::from_chars(text.data() + n - 5, text.data() + n - 3, d.month);
  std::from_chars(text.data() + n - 2, text.data() + n, d.day);
  if (is_minus) d.year = -d.year;
  if (d.month < 1 || d.month > 12 || d.day < 1 || d.day > DaysInMonth(d.year, d.month)) return false;
  const int64_t days = DaysOf(d);
  *low = static_cast<uint64_t>(days);
  return days >= std::numeric_limits<int32_t>::min() && days <= std::numeric_limits<int32_t>::max();
}

bool IsWord(std::string_view text, std::string_view word) {
  return std::equal(text.begin(), text.end(), word.begin(), word.end(),
                    [](char c, char of_word) { return (c | 0x20) == of_word; });
}

// ---- columns ----

// What FitStrings and EmitColumn read of tuples, of lanes.
struct LaneSource {
  const QuernLanes& x;
  uint8_t taken;

  bool Valid(uint32_t i) const { return (taken >> i & 1) != 0; }
  Bytes ReadString(uint32_t i) const { return StringAt(x, i); }
};

template <Storage kStorage>
void StoreStrings(const LaneSource& from, uint32_t n, QuernOutColumn* column, uint64_t row) {
  const int64_t fit = b::FitStrings<kStorage>(from, n, column);
  if (fit == kQuernOutOfMemory) return RefusedCalls::Note();
  if (fit != n) return StringScratch::NoteTooLarge();
  for (uint32_t i = 0; i < n; ++i)
    b::WriteString<kStorage>(from.Valid(i) ? from.ReadString(i) : Bytes{nullptr, 0}, column, row + i);
}

}  // namespace
}  // namespace quern

using namespace quern;  // NOLINT: the functions below are C symbols that use the code above

#define QUERN_ROWS(name)                                                                                         \
  extern "C" uint8_t quern_rt_##name([[maybe_unused]] const QuernLanes* a, [[maybe_unused]] const QuernLanes* b, \
                                     [[maybe_unused]] const QuernLanes* c, uint8_t rows,                         \
                                     [[maybe_unused]] uint64_t low, [[maybe_unused]] uint64_t high, QuernLanes* out)

QUERN_ROWS(string_equal) {
  const auto rule = static_cast<CollationRule>(low);
  return EachTruth(rows, out, [&](uint32_t i) {
    return rule == 0 ? TextAt(*a, i) == TextAt(*b, i) : EqualStrings(StringAt(*a, i), StringAt(*b, i), rule);
  });
}

QUERN_ROWS(string_less) {
  const auto rule = static_cast<CollationRule>(low);
  return EachTruth(rows, out, [&](uint32_t i) {
    return rule == 0 ? TextAt(*a, i) < TextAt(*b, i) : CompareStrings(StringAt(*a, i), StringAt(*b, i), rule) < 0;
  });
}

QUERN_ROWS(string_like) {
  const auto* const pattern = reinterpret_cast<const LikePattern*>(b->low[0]);
  return EachTruth(rows, out, [&](uint32_t i) { return pattern->Matches(StringAt(*a, i)); });
}

QUERN_ROWS(char_length) {
  return EachRow(rows, [&](uint32_t i) {
    out->low[i] = NumCharacters(StringAt(*a, i));
    return true;
  });
}

QUERN_ROWS(substring) {
  return EachRow(rows, [&](uint32_t i) {
    const auto length = high == 0 ? std::optional(static_cast<int64_t>(c->low[i])) : std::nullopt;
    if (length.has_value() && *length < 0) return false;
    const Bytes part = Substring(StringAt(*a, i), static_cast<int64_t>(b->low[i]), length, low != 0);
    SetString(part.data, part.length, i, out);
    return true;
  });
}

QUERN_ROWS(concat) {
  return EachRow(rows, [&](uint32_t i) {
    const std::string_view x = TextAt(*a, i), y = TextAt(*b, i);
    if (x.size() + y.size() > kMaxStringBytes) return false;
    uint8_t* const to = StringScratch::Allocate(x.size() + y.size());
    SetString(to, to == nullptr ? 0 : x.size() + y.size(), i, out);
    if (to == nullptr) return true;
    if (!x.empty()) std::memcpy(to, x.data(), x.size());
    if (!y.empty()) std::memcpy(to + x.size(), y.data(), y.size());
    return true;
  });
}

QUERN_ROWS(ascii_lower) { return EachChangedCase<'A'>(*a, rows, out); }
QUERN_ROWS(ascii_upper) { return EachChangedCase<'a'>(*a, rows, out); }

QUERN_ROWS(trim) {
  return EachRow(rows, [&](uint32_t i) {
    std::string_view s = TextAt(*a, i);
    while ((low & kTrimsStart) != 0 && s.starts_with(' ')) s.remove_prefix(1);
    while ((low & kTrimsEnd) != 0 && s.ends_with(' ')) s.remove_suffix(1);
    SetString(reinterpret_cast<const uint8_t*>(s.data()), s.size(), i, out);
    return true;
  });
}

QUERN_ROWS(replace) {
  return EachRow(rows, [&](uint32_t i) { return Replace(TextAt(*a, i), TextAt(*b, i), TextAt(*c, i), i, out); });
}

QUERN_ROWS(integer_to_string) {
  return EachRow(rows, [&](uint32_t i) {
    char buffer[kNumberBytes];
    const uint64_t number = a->low[i];
    const char* const end = low != 0 ? std::to_chars(buffer, buffer + kNumberBytes, static_cast<int64_t>(number)).ptr
                                     : std::to_chars(buffer, buffer + kNumberBytes, number).ptr;
    SetCopy({buffer, static_cast<size_t>(end - buffer)}, i, out);
    return true;
  });
}

QUERN_ROWS(float_to_string) {
  return EachRow(rows, [&](uint32_t i) {
    char buffer[kNumberBytes];
    const auto number = std::bit_cast<double>(static_cast<uint64_t>(a->low[i]));
    SetCopy(low == 32 ? FloatText(static_cast<float>(number), buffer) : FloatText(number, buffer), i, out);
    return true;
  });
}

QUERN_ROWS(truth_to_string) {
  return EachRow(rows, [&](uint32_t i) {
    const std::string_view text = (a->truth >> i & 1) != 0 ? "true" : "false";
    SetString(reinterpret_cast<const uint8_t*>(text.data()), text.size(), i, out);
    return true;
  });
}

QUERN_ROWS(decimal_to_string) {
  return EachRow(rows, [&](uint32_t i) {
    char buffer[kNumberBytes];
    const auto number = static_cast<__int128>(static_cast<unsigned __int128>(a->high[i]) << 64 | a->low[i]);
    SetCopy(DecimalText(number, static_cast<uint32_t>(low), buffer), i, out);
    return true;
  });
}

QUERN_ROWS(date_to_string) {
  return EachRow(rows, [&](uint32_t i) {
    char buffer[kNumberBytes];
    SetCopy(DateText(static_cast<int64_t>(a->low[i]), buffer), i, out);
    return true;
  });
}

QUERN_ROWS(string_to_integer) {
  return EachRow(rows, [&](uint32_t i) {
    uint64_t number = 0;
    if (!ReadInteger(TextAt(*a, i), low != 0, high, &number)) return false;
    out->low[i] = number;
    return true;
  });
}

QUERN_ROWS(string_to_truth) {
  return EachRow(rows, [&](uint32_t i) {
    const std::string_view text = TextAt(*a, i);
    const bool truth = IsWord(text, "true");
    SetTruth(truth, i, out);
    return truth || IsWord(text, "false");
  });
}

QUERN_ROWS(string_to_decimal) {
  return EachRow(rows, [&](uint32_t i) {
    __int128 number = 0;
    const bool is_number = ReadDecimal(TextAt(*a, i), low, high, &number);
    if (!is_number) number = 0;
    out->low[i] = static_cast<uint64_t>(number);
    out->high[i] = static_cast<uint64_t>(static_cast<unsigned __int128>(number) >> 64);
    return is_number;
  });
}

QUERN_ROWS(string_to_float) {
  return EachRow(rows, [&](uint32_t i) {
    uint64_t number = 0;
    if (!(high == 32 ? ReadFloat<float>(TextAt(*a, i), &number) : ReadFloat<double>(TextAt(*a, i), &number)))
      return false;
    out->low[i] = number;
    return true;
  });
}

QUERN_ROWS(string_to_date) {
  return EachRow(rows, [&](uint32_t i) {
    uint64_t days = 0;
    if (!ReadDate(TextAt(*a, i), &days)) return false;
    out->low[i] = days;
    return true;
  });
}
#undef QUERN_ROWS

extern "C" void quern_rt_empty_strings() { StringScratch::Empty(); }

extern "C" void quern_rt_load_strings(const QuernColumn* column, uint64_t first, const uint32_t* rows, Storage storage,
                                      Storage index, bool nullable, QuernLanes* out) {
  const QuernColumn* const values = index == kNoStorage ? column : column->dictionary;
  out->failed = 0;
  DispatchStorage(storage, [&](auto tag) {
    constexpr Storage kStorage = decltype(tag)::value;
    if constexpr (b::IsVariableStorage(kStorage)) {
      uint32_t valid = 0;
      for (uint32_t i = 0; i < b::kLanes; ++i) {
        const uint32_t row = b::RowAt(rows, first, i);
        if (nullable && !b::IsValid(column, row)) continue;
        valid |= 1u << i;
        const Bytes s =
            b::ReaderOf<kStorage>::Read(values, index == kNoStorage ? row : TranslateRow(index, column, row));
        SetString(s.data, s.length, i, out);
      }
      out->valid = static_cast<uint8_t>(valid);
    }
  });
}

extern "C" uint8_t quern_rt_store_strings(const QuernLanes* x, QuernOutColumn* column, uint64_t* null_count,
                                          uint64_t row, uint32_t n, Storage storage, bool nullable) {
  n = std::min(n, b::kLanes);
  const auto present = static_cast<uint8_t>((1u << n) - 1);
  const auto valid = static_cast<uint8_t>(nullable ? x->valid & present : present);
  if (nullable) {
    column->validity[row / 8] = valid;
    *null_count += static_cast<uint64_t>(std::popcount(static_cast<uint8_t>(present & ~valid)));
  }
  const LaneSource from = {*x, static_cast<uint8_t>(valid & ~x->failed)};
  if (storage == kVar32) StoreStrings<kVar32>(from, n, column, row);
  else if (storage == kVar64) StoreStrings<kVar64>(from, n, column, row);
  else StoreStrings<kView>(from, n, column, row);
  return static_cast<uint8_t>(x->failed & present);
}
