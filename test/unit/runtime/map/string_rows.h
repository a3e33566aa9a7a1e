// SPDX-License-Identifier: Apache-2.0
// Functions of strings, and casts to strings and back, of one value: what the tests of maps compare kernels with
// (expression_rows.h).
#ifndef QUERN_TEST_UNIT_RUNTIME_MAP_STRING_ROWS_H_
#define QUERN_TEST_UNIT_RUNTIME_MAP_STRING_ROWS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <regex>
#include <string>
#include <vector>

#include "runtime/spec/expression.h"
#include "test/unit/runtime/map/date_rows.h"

namespace quern::test {

struct RowValue {
  bool valid = false;
  bool failed = false;
  __int128 number = 0;     // bool, integers, decimals, dates
  double real = 0;         // floats
  std::string bytes = {};  // strings, in binary order

  bool IsTrue() const { return valid && number != 0; }
};
using Row = std::vector<RowValue>;  // the columns of one row

namespace rows {

inline RowValue StringValue(std::string bytes) {
  RowValue value{.valid = true};
  value.bytes = std::move(bytes);
  return value;
}

// The units at the positions start .. start + length - 1, of which some lie before the first or behind the last one.
// length: beyond every position where there is none.
inline std::string SubstringOf(const std::vector<std::string>& units, __int128 start, __int128 length) {
  std::string part;
  for (size_t i = 0; i < units.size(); ++i) {
    const auto position = static_cast<__int128>(i) + 1;
    if (position >= start && position < start + length) part += units[i];
  }
  return part;
}

inline std::string WithCase(std::string text, char first, char last, char to) {
  for (char& c : text)
    if (c >= first && c <= last) c = static_cast<char>(c - first + to);
  return text;
}

inline std::string Trimmed(std::string text, bool start, bool end) {
  while (start && !text.empty() && text.front() == ' ') text.erase(0, 1);
  while (end && !text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

inline std::string Replaced(std::string text, const std::string& part, const std::string& by) {
  if (part.empty()) return text;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += by.size())
    text.replace(at, part.size(), by);
  return text;
}

inline std::string Digits(__int128 number) {
  std::string digits;
  for (; number != 0 || digits.empty(); number /= 10)
    digits.insert(digits.begin(), static_cast<char>('0' + std::abs(static_cast<int>(number % 10))));
  return digits;
}

inline RowValue StringOf(const RowValue& v, const ValueType& type) {
  if (type.id == TypeId::kBool) return StringValue(v.number != 0 ? "true" : "false");
  if (type.id == TypeId::kDate32) {
    const CivilDate date = DateOf(static_cast<int64_t>(v.number));
    char text[32];
    std::snprintf(text, sizeof(text), "%s%04lld-%02d-%02d", date.year < 0 ? "-" : "",
                  std::llabs(static_cast<long long>(date.year)), date.month, date.day);
    return StringValue(text);
  }
  if (type.id == TypeId::kF64 || type.id == TypeId::kF32) {
    // The first number of digits that is read as the same number.
    if (std::isnan(v.real)) return StringValue("nan");
    if (std::isinf(v.real)) return StringValue(v.real < 0 ? "-inf" : "inf");
    const double size = std::fabs(v.real);
    for (int precision = 0;; ++precision) {
      char text[64];
      std::snprintf(text, sizeof(text), "%.*e", precision, v.real);
      const double read = type.id == TypeId::kF32 ? static_cast<double>(std::strtof(text, nullptr)) : std::atof(text);
      if (read != v.real) continue;
      if (size != 0 &&
          (size < (type.id == TypeId::kF32 ? 1e-4F : 1e-4) || size >= (type.id == TypeId::kF32 ? 1e6F : 1e15)))
        return StringValue(text);
      const int behind = precision - std::atoi(std::string(text).substr(std::string(text).find('e') + 1).c_str());
      std::snprintf(text, sizeof(text), "%.*f", std::max(behind, 0), v.real);
      return StringValue(text);
    }
  }
  std::string digits = Digits(v.number);
  if (type.scale > 0) {
    while (digits.size() <= type.scale) digits.insert(0, "0");
    digits.insert(digits.size() - type.scale, ".");
  }
  return StringValue((v.number < 0 ? "-" : "") + digits);
}

// The number of the digits; false beyond 38 of them.
inline bool NumberOf(const std::string& digits, __int128* number) {
  *number = 0;
  for (const char c : digits) {
    if (*number > static_cast<__int128>(1) << 122) return false;
    *number = *number * 10 + (c - '0');
  }
  return true;
}

// Invalid where the text is no value of the type.
inline RowValue ReadString(const std::string& text, const ValueType& type) {
  std::smatch parts;
  RowValue value{.valid = true};
  if (type.id == TypeId::kBool) {
    const std::string word = WithCase(text, 'A', 'Z', 'a');
    value.number = word == "true";
    value.valid = word == "true" || word == "false";
  } else if (type.id == TypeId::kDate32) {
    value.valid = std::regex_match(text, parts, std::regex("(-?[0-9]{4,7})-([0-9]{2})-([0-9]{2})"));
    if (!value.valid) return {};
    const int64_t year = std::stol(parts[1]);
    const int month = std::stoi(parts[2]), day = std::stoi(parts[3]);
    if (month < 1 || month > 12 || day < 1 || day > LengthOf(year, month)) return {};
    value.number = DaysOf({year, month, day});
    value.valid =
        value.number >= std::numeric_limits<int32_t>::min() && value.number <= std::numeric_limits<int32_t>::max();
  } else if (type.id == TypeId::kF64 || type.id == TypeId::kF32) {
    value.valid = std::regex_match(
        text, std::regex("[+-]?([0-9]+\\.?[0-9]*|\\.[0-9]+)(e[+-]?[0-9]+)?|[+-]?(inf|nan)", std::regex::icase));
    value.real = type.id == TypeId::kF32 ? std::strtof(text.c_str(), nullptr) : std::strtod(text.c_str(), nullptr);
    if (std::isinf(value.real) && text.find_first_of("iI") == std::string::npos) value.valid = false;
  } else if (IsDecimal(type.id)) {
    value.valid = std::regex_match(text, parts, std::regex("([+-]?)([0-9]*)\\.?([0-9]*)")) &&
                  text.find_first_of("0123456789") != std::string::npos;
    if (!value.valid) return {};
    std::string behind = parts[3];
    const bool rounds_up = behind.size() > type.scale && behind[type.scale] >= '5';
    behind.resize(type.scale, '0');
    if (!NumberOf(parts[2].str() + behind, &value.number)) return {};
    __int128 limit = 1;
    for (int i = 0; i < type.digits; ++i) limit *= 10;
    if (value.number >= limit) return {};
    value.number += rounds_up ? 1 : 0;
    value.valid = value.number < limit;
    if (parts[1] == "-") value.number = -value.number;
  } else {
    value.valid = std::regex_match(text, parts, std::regex("([+-]?)([0-9]+)"));
    if (!value.valid || !NumberOf(parts[2], &value.number)) return {};
    const bool is_unsigned = type.id >= TypeId::kU8 && type.id <= TypeId::kU64;
    if (parts[1] == "-") value.number = -value.number;
    const int bits = static_cast<int>(RowOf(type.id).width_bytes) * 8 - (is_unsigned ? 0 : 1);
    const auto end = static_cast<__int128>(1) << bits;
    value.valid = value.number < end && value.number >= (is_unsigned ? 0 : -end);
  }
  return value;
}

}  // namespace rows
}  // namespace quern::test

#endif  // QUERN_TEST_UNIT_RUNTIME_MAP_STRING_ROWS_H_
