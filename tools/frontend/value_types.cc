// SPDX-License-Identifier: Apache-2.0
// The type in which two values meet, and what a constant is in a type:
//
//     i16 and u16    i32: no i16 holds 65,535, and no u16 holds -1         u64 and i8    none
//     i32 and decimal128(15,2)    decimal128(15,2), as an i32 has 10 digits and 13 are in front of the point
//     1.50    150 with a scale of 2: a decimal128(3,2)          0.05    5 with a scale of 2: a decimal128(2,2)
#include "tools/frontend/value_types.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "runtime/spec/expression_strings.h"
#include "runtime/spec/expression_units.h"
#include "tools/frontend/time_text.h"

namespace quern::cli {
namespace {

using Integer = __int128;

uint8_t DigitsOf(Integer number) {
  uint8_t digits = 1;
  for (number /= 10; number != 0; number /= 10) ++digits;
  return digits;
}

ValueType Widest(const ValueType& a, const ValueType& b) {
  const int scale = std::max(a.scale, b.scale);
  ValueType type = DecimalType(std::max(a.digits - a.scale, b.digits - b.scale) + scale, scale);
  const TypeId id = std::max(a.id, b.id);
  if (type.digits <= MaxDigitsOf(id)) type.id = id;
  return type;
}

// The signed type that holds both; nullopt for u64.
std::optional<ValueType> CommonInteger(const ValueType& a, const ValueType& b) {
  if (IsSigned(a.id) == IsSigned(b.id)) return RowOf(a.id).width_bytes >= RowOf(b.id).width_bytes ? a : b;
  const ValueType& with_sign = IsSigned(a.id) ? a : b;
  const ValueType& without = IsSigned(a.id) ? b : a;
  for (const TypeId id : {TypeId::kI16, TypeId::kI32, TypeId::kI64})
    if (RowOf(id).width_bytes >= RowOf(with_sign.id).width_bytes &&
        RowOf(id).width_bytes > RowOf(without.id).width_bytes)
      return ValueType{.id = id};
  return std::nullopt;
}

// Of texts, or of binaries, of different types: the one of 64-bit offsets, or views.
std::optional<ValueType> CommonString(const ValueType& a, const ValueType& b) {
  if (IsTextType(a.id) != IsTextType(b.id)) return std::nullopt;
  const bool is_text = IsTextType(a.id);
  const TypeId large = is_text ? TypeId::kLargeUtf8 : TypeId::kLargeBinary;
  if (a.id == large || b.id == large) return ValueType{.id = large};
  return ValueType{.id = is_text ? TypeId::kUtf8View : TypeId::kBinaryView};
}

std::optional<Literal> RealOf(std::string_view text, TypeId id) {
  Literal literal;
  float narrow = 0;
  const char* const end = text.data() + text.size();
  const std::errc error = id == TypeId::kF32 ? std::from_chars(text.data(), end, narrow).ec
                                             : std::from_chars(text.data(), end, literal.real).ec;
  if (error != std::errc()) return std::nullopt;
  if (id == TypeId::kF32) literal.real = narrow;
  return literal;
}

}  // namespace

ValueType DecimalType(int digits, int scale) {
  return {.id = TypeId::kDecimal128,
          .digits = static_cast<uint8_t>(std::min<int>(digits, kMaxDecimalDigits)),
          .scale = static_cast<uint8_t>(scale)};
}

ValueType AsDecimal(const ValueType& type) {
  if (!IsInteger(type.id)) return type;
  return DecimalType(DigitsOf(RangeOf(type.id).max), 0);
}

std::optional<ValueType> CommonType(const ValueType& a, const ValueType& b) {
  if (IsInteger(a.id) && IsInteger(b.id)) return CommonInteger(a, b);
  const auto is_number = [](TypeId id) { return IsInteger(id) || IsFloat(id) || IsDecimal(id); };
  if (is_number(a.id) && is_number(b.id)) {
    if (IsFloat(a.id) && IsFloat(b.id)) return ValueType{.id = std::max(a.id, b.id)};
    if (IsFloat(a.id) || IsFloat(b.id)) return ValueType{.id = IsFloat(a.id) ? a.id : b.id};
    return Widest(AsDecimal(a), AsDecimal(b));
  }
  if (IsStringType(a.id) && IsStringType(b.id) && a.id != b.id) return CommonString(a, b);
  return a.id == b.id ? std::optional(a) : std::nullopt;
}

// ---- constants ----

ValueType Number::type() const {
  if (is_real) return {.id = TypeId::kF64};
  return DecimalType(std::max<int>(DigitsOf(unscaled), std::max<int>(scale, 1)), scale);
}

std::optional<Number> NumberOfText(std::string_view text) {
  Number number;
  number.is_real = text.find_first_of("eE") != std::string_view::npos;
  if (number.is_real) return number;
  const size_t point = std::min(text.find('.'), text.size());
  std::string digits(text.substr(0, point));
  const std::string_view behind = text.substr(std::min(point + 1, text.size()));
  digits += behind;
  if (behind.size() > kMaxDecimalDigits || !ReadInteger(digits, &number.unscaled) ||
      DigitsOf(number.unscaled) > kMaxDecimalDigits)
    return std::nullopt;
  number.scale = static_cast<uint8_t>(behind.size());
  return number;
}

std::optional<Literal> NumberIn(const Number& number, std::string_view text, const ValueType& type) {
  if (IsFloat(type.id)) return RealOf(text, type.id);
  if (number.is_real || number.scale > type.scale) return std::nullopt;
  Literal literal;
  literal.number = number.unscaled;
  for (int i = number.scale; i < type.scale; ++i)
    if (__builtin_mul_overflow(literal.number, 10, &literal.number)) return std::nullopt;
  if (IsDecimal(type.id))
    return DigitsOf(literal.number) <= type.digits || literal.number == 0 ? std::optional(literal) : std::nullopt;
  if (!IsInteger(type.id)) return std::nullopt;
  const IntegerRange range = RangeOf(type.id);
  return literal.number >= range.min && literal.number <= range.max ? std::optional(literal) : std::nullopt;
}

ValueType TypeOfWhole(const Number& number, const std::optional<ValueType>& beside) {
  constexpr std::array kTypes = {TypeId::kI16, TypeId::kI32, TypeId::kI64, TypeId::kU64};
  for (const TypeId id : kTypes) {
    if (!beside.has_value() && id < TypeId::kI64) continue;
    if (number.unscaled >= RangeOf(id).min && number.unscaled <= RangeOf(id).max) return {.id = id};
  }
  return number.type();
}

bool IsTimeOf(TypeId constant, TypeId beside) {
  if (constant == TypeId::kDate32) return beside == TypeId::kDate32 || beside == TypeId::kDate64;
  if (constant == TypeId::kTime64) return beside == TypeId::kTime32 || beside == TypeId::kTime64;
  return beside == constant;
}

int64_t UnitsPerSecond(std::string_view format) {
  switch (format.size() < 3 ? 's' : format[2]) {
    case 'm': return 1'000;
    case 'u': return 1'000'000;
    case 'n': return 1'000'000'000;
    default: return 1;
  }
}

std::optional<Literal> TimeIn(std::string_view text, TypeId id, std::string_view format) {
  constexpr int64_t kMsPerDay = 86'400'000;
  const bool has_zone = format.empty() || format.size() > std::string_view("tsu:").size();
  const int64_t per_second = UnitsPerSecond(format.empty() ? DefaultFormat({.id = id}) : format);
  std::optional<Integer> units;
  if (id == TypeId::kTimestamp) units = TimestampOf(text, per_second, has_zone);
  else if (id == TypeId::kTime32 || id == TypeId::kTime64) units = TimeOf(text, per_second);
  else units = DaysOf(text);
  if (!units.has_value()) return std::nullopt;
  return Literal{.number = id == TypeId::kDate64 ? *units * kMsPerDay : *units};
}

std::optional<ValueType> ValueTypeOf(TypeId id, std::string_view format, bool nullable) {
  ValueType type{.id = id, .nullable = nullable};
  if (IsStringType(id)) return type;
  if (id > TypeId::kDuration) return std::nullopt;
  if (!IsDecimal(id)) return type;
  int digits = 0, scale = 0;
  const size_t comma = std::min(format.find(','), format.size());
  const std::string_view first = format.substr(std::min<size_t>(2, comma), comma - std::min<size_t>(2, comma));
  const std::string_view second = format.substr(std::min(comma + 1, format.size()));
  std::from_chars(first.data(), first.data() + first.size(), digits);
  std::from_chars(second.data(), second.data() + second.size(), scale);
  if (digits < 1 || digits > kMaxDecimalDigits || scale < 0 || scale > digits) return std::nullopt;
  type.digits = static_cast<uint8_t>(digits);
  type.scale = static_cast<uint8_t>(scale);
  return type;
}

}  // namespace quern::cli
