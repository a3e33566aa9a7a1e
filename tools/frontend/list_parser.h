// SPDX-License-Identifier: Apache-2.0
// What the grammars of the command line share: names, words, signs and constants, read from left to right.
#ifndef QUERN_TOOLS_FRONTEND_LIST_PARSER_H_
#define QUERN_TOOLS_FRONTEND_LIST_PARSER_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/spec/spec.h"
#include "tools/frontend/column_names.h"

namespace quern::cli {

// The characters, besides blanks, that end a bare name: in lists of keys, in lists with signs between names, in lists
// with calls.
constexpr std::string_view kEnds = ",=\"";
constexpr std::string_view kEndsInTests = ",=\"<>!";
constexpr std::string_view kEndsInCalls = ",=\"<>!()'";

bool IsBlank(char c);
bool IsWordCharacter(char c);                     // a letter, a digit, '_' or a byte of a character beyond ASCII
std::string_view Trimmed(std::string_view text);  // without blanks and line ends around it

std::string LowerCase(std::string text);  // of ASCII letters

// The text with one blank for a run of blanks, and none after '(', before ')' and ',', and at the ends. Blanks between
// quotes stay.
std::string WithNormalisedBlanks(std::string_view text);

// Each Take skips blanks, returns whether the text begins with its argument, and if so moves past it. *Ownership*:
// `text` must outlive the parser.
class ListParser {
 public:
  // what: the option; accepted: the grammar, for errors.
  ListParser(std::string_view what, std::string_view accepted, std::string_view text, std::string_view ends = kEnds)
      : what_(what), accepted_(accepted), text_(text), ends_(ends) {}

  bool AtEnd();
  bool At(char c);  // whether it comes next; it is not taken
  bool Take(char c);
  bool Take(std::string_view sign);
  bool ReadWord(std::string_view lower_case);  // a bare word, of letters in either case
  std::optional<Comparison> ReadSign();
  std::string BareWord();  // "" if there is none

  absl::StatusOr<NameText> Name();
  absl::StatusOr<std::string> PlainName();      // one without a side before the quotes
  absl::StatusOr<std::string> CollationName();  // likewise, and not empty
  absl::StatusOr<std::string> QuotedText();     // 'text', with '' for one '

  size_t position();  // of the next character
  // A parser of another grammar, from here on; MoveTo goes on where it stopped.
  ListParser Embedded(std::string_view what, std::string_view accepted, std::string_view ends) const;
  void MoveTo(const ListParser& embedded) { next_ = embedded.next_; }
  std::string_view TextFrom(size_t begin) const { return text_.substr(begin, next_ - begin); }
  std::string_view Rest() { return text_.substr(position()); }
  absl::Status Bad() const;

 private:
  void SkipBlanks();
  std::string_view BareWordAt(size_t begin) const;
  absl::StatusOr<std::string> Quoted();

  std::string what_;
  std::string accepted_;
  std::string_view text_;
  std::string_view ends_;
  size_t next_ = 0;
};

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FRONTEND_LIST_PARSER_H_
