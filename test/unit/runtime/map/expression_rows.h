// SPDX-License-Identifier: Apache-2.0
// Expressions evaluated row by row, as the table of functions says: what the tests of maps compare kernels with. It
// shares no code with them. Integers and decimals are computed in 128 bits, or as long double where that is not enough
// to see an overflow.
#ifndef QUERN_TEST_UNIT_RUNTIME_MAP_EXPRESSION_ROWS_H_
#define QUERN_TEST_UNIT_RUNTIME_MAP_EXPRESSION_ROWS_H_

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/spec/expression.h"
#include "test/unit/runtime/map/date_rows.h"
#include "test/unit/runtime/map/string_rows.h"

namespace quern::test {

namespace rows {

inline bool IsReal(TypeId id) { return id == TypeId::kF32 || id == TypeId::kF64; }
inline bool IsUnsignedInteger(TypeId id) { return id >= TypeId::kU8 && id <= TypeId::kU64; }
inline int BitsOf(TypeId id) { return static_cast<int>(RowOf(id).width_bytes) * 8; }
inline __int128 Power(int digits) {
  __int128 power = 1;
  for (; digits > 0; --digits) power *= 10;
  return power;
}
inline __int128 LeastOf(TypeId id) {
  return IsUnsignedInteger(id) ? 0 : -(static_cast<__int128>(1) << (BitsOf(id) - 1));
}
inline __int128 MostOf(TypeId id) {
  return (static_cast<__int128>(1) << (BitsOf(id) - (IsUnsignedInteger(id) ? 0 : 1))) - 1;
}

inline __int128 Wrapped(__int128 number, TypeId id) {
  const __int128 range = static_cast<__int128>(1) << BitsOf(id);
  __int128 rest = number % range;
  if (rest < 0) rest += range;
  return rest > MostOf(id) ? rest - range : rest;
}

inline RowValue Refused(RowValue value, RowErrors errors) {
  if (errors == RowErrors::kNull) value.valid = false;
  else value.failed = true;
  return value;
}

// An integer result, wrapped where the function has no errors.
inline RowValue Integer(__int128 number, const Expression& e) {
  RowValue value{.valid = true, .number = Wrapped(number, e.type.id)};
  const RowErrors errors = RowOf(e.function).errors;
  return value.number == number || errors == RowErrors::kNone ? value : Refused(value, errors);
}

inline RowValue Real(double number, const Expression& e) {
  return {.valid = true, .real = e.type.id == TypeId::kF32 ? static_cast<float>(number) : number};
}

// The same, refused where it is infinite or NaN and the arguments do not say so.
inline RowValue FiniteReal(double number, std::initializer_list<double> arguments, const Expression& e) {
  const RowErrors errors = RowOf(e.function).errors;
  bool all_finite = true, any_nan = false;
  for (const double argument : arguments) {
    all_finite = all_finite && std::isfinite(argument);
    any_nan = any_nan || std::isnan(argument);
  }
  const RowValue value = Real(number, e);
  const bool is_refused = std::isnan(number) ? !any_nan : std::isinf(value.real) && all_finite;
  return is_refused && errors != RowErrors::kNone ? Refused(value, errors) : value;
}

// A decimal result of `scale`, whose size as a long double tells what 128 bits do not hold.
inline RowValue Decimal(__int128 number, long double size, int digits, RowErrors errors) {
  RowValue value{.valid = true, .number = number};
  const bool fits = std::fabs(size) < 1.6e38L && number < Power(digits) && number > -Power(digits);
  return fits ? value : Refused(value, errors);
}

inline __int128 RoundedQuotient(__int128 number, __int128 power) {
  const __int128 quotient = number / power, rest = number % power;
  return 2 * rest >= power ? quotient + 1 : 2 * rest <= -power ? quotient - 1 : quotient;
}

inline RowValue Scaled(const RowValue& value, int from, int to, int digits, RowErrors errors) {
  if (to < from) {
    const __int128 number = RoundedQuotient(value.number, Power(from - to));
    return Decimal(number, static_cast<long double>(number), digits, errors);
  }
  const auto power = Power(to - from);
  __int128 product = 0;
  __builtin_mul_overflow(value.number, power, &product);
  return Decimal(product, static_cast<long double>(value.number) * static_cast<long double>(power), digits, errors);
}

// -1, 0, 1; NaN equals NaN and is greatest.
inline int Compared(const RowValue& a, const RowValue& b, TypeId id) {
  if (IsStringType(id)) return a.bytes < b.bytes ? -1 : a.bytes > b.bytes;
  if (!IsReal(id)) return a.number < b.number ? -1 : a.number > b.number;
  if (std::isnan(a.real) || std::isnan(b.real)) return int{std::isnan(a.real)} - int{std::isnan(b.real)};
  return a.real < b.real ? -1 : a.real > b.real;
}

inline RowValue Truth(bool truth) { return {.valid = true, .number = truth}; }

// ---- strings ----

// Characters of UTF-8, or the bytes of a binary.
inline std::vector<std::string> UnitsOf(const std::string& bytes, TypeId id) {
  const bool is_binary = id == TypeId::kBinary || id == TypeId::kLargeBinary || id == TypeId::kBinaryView;
  std::vector<std::string> units;
  for (const char c : bytes) {
    const bool goes_on = !is_binary && (static_cast<uint8_t>(c) >> 6) == 2;
    if (goes_on && !units.empty()) units.back() += c;
    else units.emplace_back(1, c);
  }
  return units;
}

struct PatternUnit {
  std::string text;
  bool is_literal = true;
};

// Whether text[i..] matches pattern[k..].
inline bool MatchesFrom(const std::vector<std::string>& text, size_t i, const std::vector<PatternUnit>& pattern,
                        size_t k) {
  if (k == pattern.size()) return i == text.size();
  if (!pattern[k].is_literal && pattern[k].text == "%") {
    for (size_t next = i; next <= text.size(); ++next)
      if (MatchesFrom(text, next, pattern, k + 1)) return true;
    return false;
  }
  if (i == text.size()) return false;
  const bool matches = !pattern[k].is_literal || pattern[k].text == text[i];
  return matches && MatchesFrom(text, i + 1, pattern, k + 1);
}

inline bool IsLike(const std::vector<RowValue>& v, TypeId id) {
  const std::string escape = v.size() > 2 ? v[2].bytes : "\\";
  std::vector<PatternUnit> pattern;
  bool escaped = false;
  for (const std::string& unit : UnitsOf(v[1].bytes, id)) {
    const bool is_escape = !escaped && unit == escape;
    if (!is_escape) pattern.push_back({unit, escaped || (unit != "%" && unit != "_")});
    escaped = is_escape;
  }
  return MatchesFrom(UnitsOf(v[0].bytes, id), 0, pattern, 0);
}

RowValue Evaluate(const Expression& e, const Row& row);

inline RowValue Arithmetic(const Expression& e, const RowValue& a, const RowValue& b, char op) {
  const TypeId id = e.type.id;
  if (IsReal(id)) {
    const double x = a.real, y = b.real;
    RowValue value = Real(op == '+' ? x + y : op == '-' ? x - y : op == '*' ? x * y : x / y, e);
    const RowErrors errors = RowOf(e.function).errors;
    return op == '/' && y == 0 && errors != RowErrors::kNone ? Refused(value, errors) : value;
  }
  if (IsDecimal(id)) {
    const auto scaled = [&](const RowValue& v, size_t i) {
      return op == '*' ? v : Scaled(v, e.arguments[i].type.scale, e.type.scale, 38, RowErrors::kFail);
    };
    const RowValue x = scaled(a, 0), y = scaled(b, 1);
    const auto p = static_cast<long double>(x.number), q = static_cast<long double>(y.number);
    __int128 result = 0;
    if (op == '+') __builtin_add_overflow(x.number, y.number, &result);
    else if (op == '-') __builtin_sub_overflow(x.number, y.number, &result);
    else __builtin_mul_overflow(x.number, y.number, &result);
    RowValue value = Decimal(result, op == '+' ? p + q : op == '-' ? p - q : p * q, 38, RowErrors::kFail);
    value.failed |= x.failed || y.failed;
    return value;
  }
  if (op == '/' || op == '%') {
    if (b.number == 0) return Refused({.valid = true}, RowOf(e.function).errors);
    return Integer(op == '/' ? a.number / b.number : a.number % b.number, e);
  }
  // Products of u64 may wrap around; then they are negative, which no u64 is.
  const auto product = static_cast<unsigned __int128>(a.number) * static_cast<unsigned __int128>(b.number);
  return Integer(op == '+' ? a.number + b.number : op == '-' ? a.number - b.number : static_cast<__int128>(product), e);
}

inline RowValue Cast(const Expression& e, const RowValue& v) {
  const ValueType &from = e.arguments[0].type, &to = e.type;
  const RowErrors errors = RowOf(e.function).errors;
  if (IsStringType(to.id)) return IsStringType(from.id) ? v : StringOf(v, from);
  if (IsStringType(from.id)) {
    const RowValue read = ReadString(v.bytes, to);
    return read.valid ? read : Refused({.valid = true}, errors);
  }
  if (IsDecimal(to.id)) return Scaled(v, from.scale, to.scale, to.digits, errors);
  if (IsReal(to.id)) {
    if (IsReal(from.id)) return Real(v.real, e);
    if (IsDecimal(from.id)) return Real(static_cast<double>(v.number) / static_cast<double>(Power(from.scale)), e);
    return to.id == TypeId::kF32 ? RowValue{.valid = true, .real = static_cast<float>(v.number)}
                                 : RowValue{.valid = true, .real = static_cast<double>(v.number)};
  }
  if (to.id == TypeId::kBool) return v;
  if (IsReal(from.id)) {
    const double whole = std::trunc(v.real);
    const bool fits = whole >= static_cast<double>(LeastOf(to.id)) && whole < static_cast<double>(MostOf(to.id)) + 1 &&
                      (BitsOf(to.id) == 64 || whole <= static_cast<double>(MostOf(to.id)));
    return fits ? RowValue{.valid = true, .number = static_cast<__int128>(whole)} : Refused({.valid = true}, errors);
  }
  if (IsDecimal(from.id)) return Integer(RoundedQuotient(v.number, Power(from.scale)), e);
  return Integer(v.number, e);
}

// Digit by digit, as by hand, where one product does not hold the dividend.
inline RowValue Quotient(const Expression& e, const RowValue& a, const RowValue& b) {
  const RowErrors errors = RowOf(e.function).errors;
  if (b.number == 0) return Refused({.valid = true}, errors);
  using Wide = unsigned __int128;
  const Wide divisor = b.number < 0 ? -static_cast<Wide>(b.number) : static_cast<Wide>(b.number);
  const Wide dividend = a.number < 0 ? -static_cast<Wide>(a.number) : static_cast<Wide>(a.number);
  Wide quotient = dividend / divisor, rest = dividend % divisor;
  const Wide end = static_cast<Wide>(Power(37));  // ten times as much is beyond 38 digits
  const auto add = [&](Wide* sum, Wide more) {    // modulo the divisor; whether it was reached
    *sum += more;
    const bool reached = *sum >= divisor;
    if (reached) *sum -= divisor;
    return reached;
  };
  for (int k = e.type.scale + e.arguments[1].type.scale - e.arguments[0].type.scale; k > 0; --k) {
    Wide ten_rests = 0;
    int digit = 0;
    for (int i = 0; i < 10; ++i) digit += add(&ten_rests, rest) ? 1 : 0;
    rest = ten_rests;
    if (quotient >= end) return Refused({.valid = true}, errors);
    quotient = 10 * quotient + static_cast<Wide>(digit);
  }
  if (rest >= divisor - rest) ++quotient;
  if (quotient >= static_cast<Wide>(Power(e.type.digits))) return Refused({.valid = true}, errors);
  const auto number = static_cast<__int128>(quotient);
  return {.valid = true, .number = (a.number < 0) != (b.number < 0) ? -number : number};
}

inline RowValue Strict(const Expression& e, const std::vector<RowValue>& v) {
  using F = ExpressionFunction;
  const RowValue &a = v[0], &b = v[v.size() - 1];
  const TypeId of = e.arguments[0].type.id;
  switch (e.function) {
    case F::kAdd:
    case F::kAddChecked:
    case F::kAddOrNull: return Arithmetic(e, a, b, '+');
    case F::kSubtract:
    case F::kSubtractChecked:
    case F::kSubtractOrNull: return Arithmetic(e, a, b, '-');
    case F::kMultiply:
    case F::kMultiplyChecked:
    case F::kMultiplyOrNull: return Arithmetic(e, a, b, '*');
    case F::kDivide:
    case F::kDivideChecked:
    case F::kDivideOrNull: return Arithmetic(e, a, b, '/');
    case F::kDivideDecimalChecked:
    case F::kDivideDecimalOrNull: return Quotient(e, a, b);
    case F::kModuloChecked:
    case F::kModuloOrNull: return Arithmetic(e, a, b, '%');
    case F::kNegate:
    case F::kNegateChecked:
      if (IsReal(of)) return Real(-a.real, e);
      if (IsDecimal(of)) return {.valid = true, .number = -a.number};
      return Integer(-a.number, e);
    case F::kAbs:
    case F::kAbsChecked:
      if (IsReal(of)) return Real(std::fabs(a.real), e);
      if (IsDecimal(of)) return {.valid = true, .number = a.number < 0 ? -a.number : a.number};
      return Integer(a.number < 0 ? -a.number : a.number, e);
    case F::kBitAnd: return Integer(a.number & b.number, e);
    case F::kBitOr: return Integer(a.number | b.number, e);
    case F::kBitXor: return Integer(a.number ^ b.number, e);
    case F::kBitNot: return Integer(~a.number, e);
    case F::kFloor: return Real(std::floor(a.real), e);
    case F::kCeil: return Real(std::ceil(a.real), e);
    case F::kTrunc: return Real(std::trunc(a.real), e);
    case F::kRoundHalfToEven: return Real(std::nearbyint(a.real), e);
    case F::kSqrt: return Real(std::sqrt(a.real), e);
    case F::kLn:
    case F::kLnChecked:
    case F::kLnOrNull: return FiniteReal(std::log(a.real), {a.real}, e);
    case F::kLog10:
    case F::kLog10Checked:
    case F::kLog10OrNull: return FiniteReal(std::log10(a.real), {a.real}, e);
    case F::kExp:
    case F::kExpChecked: return FiniteReal(std::exp(a.real), {a.real}, e);
    case F::kPower:
    case F::kPowerChecked:
    case F::kPowerOrNull: return FiniteReal(std::pow(a.real, b.real), {a.real, b.real}, e);
    case F::kSign: {
      const RowValue zero{.valid = true};
      return {.valid = true, .number = Compared(a, zero, of)};
    }
    case F::kEqual: return Truth(Compared(a, b, of) == 0);
    case F::kNotEqual: return Truth(Compared(a, b, of) != 0);
    case F::kLess: return Truth(Compared(a, b, of) < 0);
    case F::kLessEqual: return Truth(Compared(a, b, of) <= 0);
    case F::kGreater: return Truth(Compared(a, b, of) > 0);
    case F::kGreaterEqual: return Truth(Compared(a, b, of) >= 0);
    case F::kNot: return Truth(a.number == 0);
    case F::kLike: return Truth(IsLike(v, of));
    case F::kNotLike: return Truth(!IsLike(v, of));
    case F::kStartsWith: return Truth(a.bytes.starts_with(b.bytes));
    case F::kEndsWith: return Truth(a.bytes.ends_with(b.bytes));
    case F::kContains: return Truth(a.bytes.find(b.bytes) != std::string::npos);
    case F::kOctetLength: return {.valid = true, .number = static_cast<__int128>(a.bytes.size())};
    case F::kCharLength: return {.valid = true, .number = static_cast<__int128>(UnitsOf(a.bytes, of).size())};
    case F::kSubstring: {
      const __int128 length = v.size() > 2 ? v[2].number : static_cast<__int128>(1) << 100;
      if (length < 0) return Refused({.valid = true}, RowOf(e.function).errors);
      return StringValue(SubstringOf(UnitsOf(a.bytes, of), v[1].number, length));
    }
    case F::kConcat: {
      std::string all;
      for (const RowValue& part : v) all += part.bytes;
      return StringValue(all);
    }
    case F::kAsciiLower: return StringValue(WithCase(a.bytes, 'A', 'Z', 'a'));
    case F::kAsciiUpper: return StringValue(WithCase(a.bytes, 'a', 'z', 'A'));
    case F::kTrim: return StringValue(Trimmed(a.bytes, true, true));
    case F::kTrimStart: return StringValue(Trimmed(a.bytes, true, false));
    case F::kTrimEnd: return StringValue(Trimmed(a.bytes, false, true));
    case F::kReplace: return StringValue(Replaced(a.bytes, v[1].bytes, v[2].bytes));
    case F::kCast:
    case F::kCastOrNull: return Cast(e, a);
    default: return Integer(OfDates(e.function, static_cast<int64_t>(a.number), static_cast<int64_t>(b.number)), e);
  }
}

// The result of the first argument that decides: and, or, case_when, coalesce, least, greatest.
inline RowValue Chosen(const Expression& e, const std::vector<RowValue>& v) {
  using F = ExpressionFunction;
  if (e.function == F::kCaseWhen) {
    for (size_t i = 0; i + 1 < v.size(); i += 2) {
      if (v[i].failed) return v[i];
      if (v[i].IsTrue()) return v[i + 1];
    }
    return v.back();
  }
  if (e.function == F::kAnd || e.function == F::kOr) {
    const bool decisive = e.function == F::kOr;
    RowValue result = Truth(!decisive);
    for (const RowValue& next : v) {
      if (next.failed) return next;
      if (next.valid && (next.number != 0) == decisive) return Truth(decisive);
      result.valid &= next.valid;
    }
    return result;
  }
  if (e.function == F::kCoalesce) {
    for (const RowValue& next : v)
      if (next.failed || next.valid) return next;
    return {};
  }
  RowValue best;  // least, greatest
  for (const RowValue& next : v) {
    if (next.failed) return next;
    if (!next.valid) continue;
    const int order = best.valid ? Compared(next, best, e.type.id) : 0;
    if (!best.valid || (e.function == F::kLeast ? order < 0 : order > 0)) best = next;
  }
  return best;
}

inline RowValue Evaluate(const Expression& e, const Row& row) {
  using F = ExpressionFunction;
  if (e.kind == ExpressionKind::kColumn) return row[e.column];
  if (e.kind == ExpressionKind::kConstant) {
    if (!e.value.has_value()) return {};
    return {.valid = true, .number = e.value->number, .real = e.value->real, .bytes = e.value->bytes};
  }
  std::vector<RowValue> v;
  bool failed = false;
  for (const Expression& argument : e.arguments) {
    v.push_back(Evaluate(argument, row));
    failed |= v.back().failed;
  }
  const TypeId of = e.arguments[0].type.id;
  switch (e.function) {
    case F::kAnd:
    case F::kOr:
    case F::kCaseWhen:
    case F::kCoalesce:
    case F::kLeast:
    case F::kGreatest: return Chosen(e, v);
    case F::kIsNull:
    case F::kIsValid: {
      RowValue value = Truth(v[0].valid == (e.function == F::kIsValid));
      value.failed = failed;
      return value;
    }
    case F::kIsDistinct:
    case F::kIsNotDistinct: {
      const bool same = v[0].valid == v[1].valid && (!v[0].valid || Compared(v[0], v[1], of) == 0);
      RowValue value = Truth(same == (e.function == F::kIsNotDistinct));
      value.failed = failed;
      return value;
    }
    case F::kNullIf: {
      RowValue value = v[0];
      if (v[0].valid && v[1].valid && Compared(v[0], v[1], of) == 0) value.valid = false;
      value.failed = failed;
      return value;
    }
    default: break;
  }
  RowValue value;
  bool valid = true;
  for (const RowValue& one : v) valid &= one.valid;
  if (valid) value = Strict(e, v);
  value.failed |= failed;
  return value;
}

}  // namespace rows

using rows::Evaluate;

}  // namespace quern::test

#endif  // QUERN_TEST_UNIT_RUNTIME_MAP_EXPRESSION_ROWS_H_
