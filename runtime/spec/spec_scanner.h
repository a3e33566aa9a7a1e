// SPDX-License-Identifier: Apache-2.0
// Reads the text of conditions and expressions word by word. The parsers build on it.
#ifndef QUERN_RUNTIME_SPEC_SPEC_SCANNER_H_
#define QUERN_RUNTIME_SPEC_SPEC_SCANNER_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/spec/literal.h"

namespace quern {

std::string LowerCase(std::string_view text);
bool IsDigit(char c);

class SpecScanner {
 public:
  // end: what messages call the end of the text.
  SpecScanner(std::string_view text, const char* end) : rest_(text), end_(end) { SkipBlanks(); }

  // What stands here, in messages.
  std::string Near() const { return rest_.empty() ? end_ : std::string(rest_); }

  // The letters, digits, '_' and '.' that follow.
  std::string_view Word() const { return rest_.substr(0, EndOfWord(0)); }
  size_t EndOfWord(size_t begin) const;
  // The same with a sign before it, and with signs of exponents.
  std::string_view NumberToken() const;
  // Whether a string or bytes between quotes follow; and any literal.
  bool StartsString() const;
  bool StartsLiteral() const;

  // Take what follows, and the blanks behind it. ReadWord (given in small letters) and ReadSign return whether it did.
  std::string_view Take(size_t bytes);
  bool ReadWord(std::string_view word);
  bool ReadSign(std::string_view sign);
  // *Errors*: InvalidArgument for text that is none of the type.
  absl::StatusOr<Literal> Constant(const ColumnType& type);
  // 'text' or x'00ff'
  absl::StatusOr<std::string> String();
  // A type with its parameters and flags: the bytes up to its end.
  size_t EndOfType() const;

 protected:
  std::string_view rest_;  // begins with no blank

 private:
  absl::StatusOr<std::string> Text();
  absl::StatusOr<std::string> HexBytes();
  void SkipBlanks();

  const char* end_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SPEC_SPEC_SCANNER_H_
