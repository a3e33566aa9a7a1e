// SPDX-License-Identifier: Apache-2.0
// Constants print as text that reads back to the same bits: numbers as the shortest decimal that does (0.1, 1e+300, -0,
// nan), strings between quotes if they are UTF-8 without control characters and otherwise as x'00ff', so that a spec is
// always one line. A literal's type is that of the column beside it.
#include "runtime/spec/literal.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>

#include "runtime/base/messages.h"
#include "runtime/base/status.h"
#include "runtime/spec/spec_scanner.h"

namespace quern {
namespace {

constexpr std::string_view kDigits = "0123456789";

std::string RealText(double number, TypeId id) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char text[32];
  const auto end = id == TypeId::kF32 ? std::to_chars(text, text + sizeof(text), static_cast<float>(number)).ptr
                                      : std::to_chars(text, text + sizeof(text), number).ptr;
  return {text, end};
}

template <class Real>
bool ReadFinite(std::string_view text, double* number) {
  if (text.find_first_not_of("0123456789.eE+-") != std::string_view::npos) return false;
  Real value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  *number = value;
  return error == std::errc() && rest == end;
}

bool ReadReal(std::string_view text, TypeId id, double* number) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::string lower = LowerCase(text);
  if (lower == "nan") *number = std::numeric_limits<double>::quiet_NaN();
  else if (lower == "inf") *number = kInfinity;
  else if (lower == "-inf") *number = -kInfinity;
  else return id == TypeId::kF32 ? ReadFinite<float>(text, number) : ReadFinite<double>(text, number);
  return true;
}

bool ReadBool(std::string_view text, __int128* number) {
  const std::string lower = LowerCase(text);
  *number = lower == "true" ? 1 : 0;
  return lower == "true" || lower == "false";
}

// UTF-8 without the control characters of ASCII and of Latin-1.
bool IsPrintable(std::string_view text) {
  while (!text.empty()) {
    char32_t c = 0;
    const size_t size = CharacterBytes(text, &c);
    if (size == 0 || c < 0x20 || (c >= 0x7F && c < 0xA0)) return false;
    text.remove_prefix(size);
  }
  return true;
}

}  // namespace

bool Literal::operator==(const Literal& other) const {
  const bool same_real =
      std::isnan(real) ? std::isnan(other.real) : std::bit_cast<uint64_t>(real) == std::bit_cast<uint64_t>(other.real);
  return same_real && number == other.number && bytes == other.bytes;
}

LiteralForm FormOf(TypeId id) {
  if (id == TypeId::kBool) return LiteralForm::kBool;
  if (id == TypeId::kF32 || id == TypeId::kF64) return LiteralForm::kReal;
  const Storage storage = RowOf(id).storage;
  return IsVariable(storage) || storage == kFixed ? LiteralForm::kBytes : LiteralForm::kInteger;
}

IntegerRange RangeOf(TypeId id) {
  constexpr __int128 kOne = 1, kMax = ~(kOne << 127);
  if (id == TypeId::kDecimal128) return {-kMax - 1, kMax};
  const uint32_t bits = RowOf(id).width_bytes * 8;
  if (id >= TypeId::kU8 && id <= TypeId::kU64) return {0, (kOne << bits) - 1};
  return {-(kOne << (bits - 1)), (kOne << (bits - 1)) - 1};
}

std::string AcceptedLiteral(const ColumnType& type) {
  switch (FormOf(type.id)) {
    case LiteralForm::kBool: return "true, false";
    case LiteralForm::kInteger:
      return "an integer from " + IntegerText(RangeOf(type.id).min) + " to " + IntegerText(RangeOf(type.id).max);
    case LiteralForm::kReal:
      return std::string("a number up to ") + (type.id == TypeId::kF32 ? "3.4028235e+38" : "1.7976931348623157e+308") +
             ", inf, -inf, nan";
    case LiteralForm::kBytes:
      return type.width_bytes == 0
                 ? kStringForm
                 : std::to_string(type.width_bytes) + " bytes, as x'00ff' or 'TEXT' with '' for a quote";
  }
  return {};
}

absl::Status WrongLiteral(const ColumnType& type, std::string_view shown) {
  return Wrong("constant of " + PrintType(type), shown, AcceptedLiteral(type));
}

absl::StatusOr<Literal> NumberOf(std::string_view token, const ColumnType& type) {
  Literal literal;
  bool known = false;
  switch (FormOf(type.id)) {
    case LiteralForm::kBool: known = ReadBool(token, &literal.number); break;
    case LiteralForm::kReal: known = ReadReal(token, type.id, &literal.real); break;
    case LiteralForm::kInteger: {
      const IntegerRange range = RangeOf(type.id);
      known = ReadInteger(token, &literal.number) && literal.number >= range.min && literal.number <= range.max;
      break;
    }
    case LiteralForm::kBytes: break;
  }
  if (!known) return WrongLiteral(type, token);
  return literal;
}

std::string LiteralText(const Literal& literal, const ColumnType& type) {
  switch (FormOf(type.id)) {
    case LiteralForm::kBool: return literal.number != 0 ? "true" : "false";
    case LiteralForm::kInteger: return IntegerText(literal.number);
    case LiteralForm::kReal: return RealText(literal.real, type.id);
    case LiteralForm::kBytes: return StringText(literal.bytes);
  }
  return {};
}

std::string IntegerText(__int128 number) {
  // The digits of the negative number: there is one more negative number than positive ones.
  std::string digits;
  __int128 rest = number < 0 ? number : -number;
  do {
    digits += static_cast<char>('0' - static_cast<int>(rest % 10));
    rest /= 10;
  } while (rest != 0);
  if (number < 0) digits += '-';
  return {digits.rbegin(), digits.rend()};
}

bool ReadInteger(std::string_view text, __int128* number) {
  const bool negative = !text.empty() && text[0] == '-';
  if (negative) text.remove_prefix(1);
  if (text.empty() || text.find_first_not_of(kDigits) != std::string_view::npos) return false;
  __int128 value = 0;
  for (char c : text) {
    const int digit = negative ? '0' - c : c - '0';
    if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, digit, &value)) return false;
  }
  *number = value;
  return true;
}

std::string StringText(std::string_view bytes) {
  constexpr char kHex[] = "0123456789abcdef";
  const bool printable = IsPrintable(bytes);
  std::string text = printable ? "'" : "x'";
  for (char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    if (!printable) text += {kHex[byte >> 4], kHex[byte & 15]};
    else text.append(c == '\'' ? 2 : 1, c);
  }
  return text + "'";
}

absl::Status CheckLiteral(const Literal& literal, const ColumnType& type) {
  const LiteralForm form = FormOf(type.id);
  const Literal alone{.number = form == LiteralForm::kBool || form == LiteralForm::kInteger ? literal.number : 0,
                      .real = form == LiteralForm::kReal ? literal.real : 0,
                      .bytes = form == LiteralForm::kBytes ? literal.bytes : std::string()};
  if (alone != literal) return Wrong("constant with more than one value", PrintType(type), AcceptedLiteral(type));
  bool known = true;
  if (form == LiteralForm::kBool) known = literal.number == 0 || literal.number == 1;
  if (form == LiteralForm::kInteger)
    known = literal.number >= RangeOf(type.id).min && literal.number <= RangeOf(type.id).max;
  if (form == LiteralForm::kBytes) known = type.width_bytes == 0 || literal.bytes.size() == type.width_bytes;
  if (type.id == TypeId::kF32 && std::isfinite(literal.real)) {
    known =
        std::abs(literal.real) <= std::numeric_limits<float>::max() && static_cast<float>(literal.real) == literal.real;
  }
  if (known) return absl::OkStatus();
  if (form == LiteralForm::kReal) return WrongLiteral(type, RealText(literal.real, TypeId::kF64));
  return WrongLiteral(type, form == LiteralForm::kBytes ? StringText(literal.bytes) : IntegerText(literal.number));
}

__int128 PowerOfTen(int digits) {
  __int128 power = 1;
  for (int i = 0; i < digits; ++i) power *= 10;
  return power;
}

// ---- UTF-8 ----

size_t CharacterBytes(std::string_view text, char32_t* character) {
  if (text.empty()) return 0;
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
  const uint8_t lead = byte(0);
  const size_t size = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  char32_t value = size == 1 ? lead : lead & (0xFFu >> (size + 1));
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    value = value << 6 | (byte(i) & 0x3F);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kLeast[size] || (value >= 0xD800 && value < 0xE000) || value > 0x10FFFF) return 0;
  *character = value;
  return size;
}

void AppendCharacter(char32_t c, std::string* text) {
  const auto add = [&](char32_t byte) { *text += static_cast<char>(byte); };
  if (c < 0x80) return add(c);
  if (c < 0x800) add(0xC0 | c >> 6);
  else if (c < 0x10000) add(0xE0 | c >> 12);
  else add(0xF0 | c >> 18);
  if (c >= 0x10000) add(0x80 | (c >> 12 & 0x3F));
  if (c >= 0x800) add(0x80 | (c >> 6 & 0x3F));
  add(0x80 | (c & 0x3F));
}

bool IsScalar(char32_t c) { return c < 0xD800 || (c >= 0xE000 && c <= 0x10FFFF); }

}  // namespace quern
