// SPDX-License-Identifier: Apache-2.0
// Constants in the text of specs, as conditions (condition.h) and expressions (expression.h) have them.
//
//     42   -7   1.5e3   nan   inf   true   false   'text', where '' is a quote   x'00ff', bytes
//
// A constant prints as text that reads back to the same bits.
#ifndef QUERN_RUNTIME_SPEC_LITERAL_H_
#define QUERN_RUNTIME_SPEC_LITERAL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/spec/column_type.h"

namespace quern {

// A constant, in the member that matches its column's type.
struct Literal {
  __int128 number = 0;     // integers, decimals, dates, times, bool
  double real = 0;         // f32, f64
  std::string bytes = {};  // strings and binaries of any kind

  bool operator==(const Literal& other) const;  // the same bits, except that all NaNs are equal
};

enum class LiteralForm : uint8_t { kBool, kInteger, kReal, kBytes };
LiteralForm FormOf(TypeId id);

// The integers that a column of the type can hold.
struct IntegerRange {
  __int128 min, max;
};
IntegerRange RangeOf(TypeId id);

constexpr char kStringForm[] = "'TEXT' with '' for a quote, or bytes as x'00ff'";

// What a constant of the type may be, in messages.
std::string AcceptedLiteral(const ColumnType& type);
absl::Status WrongLiteral(const ColumnType& type, std::string_view shown);

// Reads a number, true or false. *Errors*: InvalidArgument for a text or a value that is none of the type.
absl::StatusOr<Literal> NumberOf(std::string_view token, const ColumnType& type);

std::string LiteralText(const Literal& literal, const ColumnType& type);
// The decimal digits of an integer; and its value. ReadInteger returns false if the text is not an integer of 128 bits.
std::string IntegerText(__int128 number);
bool ReadInteger(std::string_view text, __int128* number);
// 10^digits; digits: 0 to 38.
__int128 PowerOfTen(int digits);
// A string between quotes, or bytes in hex.
std::string StringText(std::string_view bytes);

// Checks what only a caller who fills the struct can get wrong.
absl::Status CheckLiteral(const Literal& literal, const ColumnType& type);

// ---- UTF-8 ----

// The number of bytes of the well-formed character at the beginning of `text`; 0 if there is none.
size_t CharacterBytes(std::string_view text, char32_t* character);
void AppendCharacter(char32_t c, std::string* text);
// Whether the number is a Unicode scalar value.
bool IsScalar(char32_t c);

}  // namespace quern

#endif  // QUERN_RUNTIME_SPEC_LITERAL_H_
