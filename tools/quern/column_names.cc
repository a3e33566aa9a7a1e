// SPDX-License-Identifier: Apache-2.0
// The little grammar of column lists:
//
//     list := item (',' item)*              --select a,build.b,"odd, name"
//     pair := key ['=' key]                 --on "name collate utf8mb4_bin = other, k"
//     key  := name ['collate' word]
//     test := name ('<' | '<=' | '>' | '>=' | '!=' | '=') name          --residual 'shipped<=due,"odd name">k'
//     name := any run of characters but blanks , = and "   |   '"' anything, with "" for one " '"'   |   both, side first: probe."a b"
//
// A bare name with a point is undecided here: probe.x can be the column x of PROBE or a column called "probe.x", and only the schemas
// know. NameText keeps both readings; quotes decide. In the list of tests a bare name ends at < > and ! too.
#include "tools/quern/column_names.h"

#include <cctype>
#include <utility>

#include "runtime/status.h"
#include "tools/quern/errors.h"

namespace quern::cli {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n'; }
constexpr std::string_view kEnds = ",=\"";
constexpr std::string_view kEndsInTests = ",=\"<>!";

bool IsCollateWord(std::string_view word) {
  constexpr std::string_view kCollate = "collate";
  if (word.size() != kCollate.size()) return false;
  for (size_t i = 0; i < word.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(word[i])) != kCollate[i]) return false;
  }
  return true;
}

class ListParser {
 public:
  ListParser(std::string_view what, std::string_view accepted, std::string_view text, std::string_view ends = kEnds)
      : what_(what), accepted_(accepted), text_(text), ends_(ends) {}

  bool AtEnd() {
    SkipBlanks();
    return next_ == text_.size();
  }

  bool Take(char c) {
    if (AtEnd() || text_[next_] != c) return false;
    ++next_;
    return true;
  }

  bool Take(std::string_view sign) {
    SkipBlanks();
    if (text_.substr(next_, sign.size()) != sign) return false;
    next_ += sign.size();
    return true;
  }

  // Takes `collate` where it stands as a bare word.
  bool TakeCollate() {
    SkipBlanks();
    const std::string_view word = BareWordAt(next_);
    if (!IsCollateWord(word)) return false;
    next_ += word.size();
    return true;
  }

  absl::StatusOr<NameText> Name() {
    SkipBlanks();
    const std::string bare(BareWordAt(next_));
    next_ += bare.size();
    const bool quoted = next_ < text_.size() && text_[next_] == '"';
    if (bare.empty() && !quoted) return Bad();
    if (!quoted) return BareName(bare);
    if (!(bare.empty() || bare == "probe." || bare == "build.")) return Bad();
    QUERN_ASSIGN_OR_RETURN(std::string name, Quoted());
    if (bare.empty()) return NameText{name, "", name};
    return NameText{"", bare.substr(0, bare.size() - 1), std::move(name)};
  }

  absl::Status Bad() const { return CommandError("bad value of " + what_ + ": " + std::string(text_) + "; accepted: " + accepted_); }

 private:
  void SkipBlanks() {
    while (next_ < text_.size() && IsBlank(text_[next_])) ++next_;
  }

  std::string_view BareWordAt(size_t begin) const {
    size_t end = begin;
    while (end < text_.size() && !IsBlank(text_[end]) && ends_.find(text_[end]) == std::string_view::npos) ++end;
    return text_.substr(begin, end - begin);
  }

  static NameText BareName(const std::string& bare) {
    const std::string side = bare.substr(0, 6);
    if ((side == "probe." || side == "build.") && bare.size() > side.size()) return {bare, side.substr(0, 5), bare.substr(6)};
    return {bare, "", bare};
  }

  // From the opening quote to behind the closing one.
  absl::StatusOr<std::string> Quoted() {
    std::string name;
    for (++next_; next_ < text_.size(); ++next_) {
      if (text_[next_] == '"') {
        ++next_;
        if (next_ == text_.size() || text_[next_] != '"') return name.empty() ? absl::StatusOr<std::string>(Bad()) : name;
      }
      name += text_[next_];
    }
    return Bad();  // no closing quote
  }

  std::string what_;
  std::string accepted_;
  std::string_view text_;
  std::string_view ends_;  // of a bare name, beside blanks
  size_t next_ = 0;
};

struct KeyText {
  std::string name;
  std::string collation;
};

absl::StatusOr<KeyText> ParseKey(ListParser* parser) {
  QUERN_ASSIGN_OR_RETURN(const NameText name, parser->Name());
  if (name.whole.empty()) return parser->Bad();
  KeyText key{name.whole, ""};
  if (parser->TakeCollate()) {
    QUERN_ASSIGN_OR_RETURN(const NameText collation, parser->Name());
    key.collation = collation.whole;
  }
  return key;
}

absl::StatusOr<KeyPairText> ParseKeyPair(ListParser* parser) {
  QUERN_ASSIGN_OR_RETURN(const KeyText probe, ParseKey(parser));
  KeyText build = probe;
  if (parser->Take('=')) {
    QUERN_ASSIGN_OR_RETURN(build, ParseKey(parser));
  }
  if (!probe.collation.empty() && !build.collation.empty() && probe.collation != build.collation) {
    return CommandError("two collations for one key: " + QuoteName(probe.name) + " collate " + probe.collation + "=" +
                        QuoteName(build.name) + " collate " + build.collation + "; accepted: the same after both, or one after either");
  }
  return KeyPairText{probe.name, build.name, probe.collation.empty() ? build.collation : probe.collation};
}

struct Sign {
  std::string_view text;
  Comparison op;
};

// A sign that begins another one stands behind it.
constexpr Sign kSigns[] = {{"<=", Comparison::kLessEqual}, {">=", Comparison::kGreaterEqual}, {"!=", Comparison::kNotEqual},
                           {"<", Comparison::kLess},       {">", Comparison::kGreater},       {"=", Comparison::kEqual}};

absl::StatusOr<Comparison> ParseSign(ListParser* parser) {
  for (const Sign& sign : kSigns)
    if (parser->Take(sign.text)) return sign.op;
  return parser->Bad();
}

absl::StatusOr<ComparisonText> ParseComparison(ListParser* parser) {
  QUERN_ASSIGN_OR_RETURN(const NameText probe, parser->Name());
  QUERN_ASSIGN_OR_RETURN(const Comparison op, ParseSign(parser));
  QUERN_ASSIGN_OR_RETURN(const NameText build, parser->Name());
  if (probe.whole.empty() || build.whole.empty()) return parser->Bad();
  return ComparisonText{probe.whole, build.whole, op};
}

}  // namespace

absl::StatusOr<std::vector<NameText>> ParseNames(std::string_view what, std::string_view text) {
  ListParser parser(what, "NAME[,NAME...], odd names in double quotes", text);
  std::vector<NameText> names;
  do {
    QUERN_ASSIGN_OR_RETURN(NameText name, parser.Name());
    names.push_back(std::move(name));
  } while (parser.Take(','));
  if (!parser.AtEnd()) return parser.Bad();
  return names;
}

absl::StatusOr<std::vector<KeyPairText>> ParseKeyPairs(std::string_view what, std::string_view text) {
  ListParser parser(what, "L=R[,L=R...], each a column name [collate NAME], odd names in double quotes", text);
  std::vector<KeyPairText> pairs;
  do {
    QUERN_ASSIGN_OR_RETURN(KeyPairText pair, ParseKeyPair(&parser));
    pairs.push_back(std::move(pair));
  } while (parser.Take(','));
  if (!parser.AtEnd()) return parser.Bad();
  return pairs;
}

absl::StatusOr<std::vector<ComparisonText>> ParseComparisons(std::string_view what, std::string_view text) {
  ListParser parser(what, "L<R[,L<R...], with < <= > >= != or =, odd names in double quotes", text, kEndsInTests);
  std::vector<ComparisonText> comparisons;
  do {
    QUERN_ASSIGN_OR_RETURN(ComparisonText comparison, ParseComparison(&parser));
    comparisons.push_back(std::move(comparison));
  } while (parser.Take(','));
  if (!parser.AtEnd()) return parser.Bad();
  return comparisons;
}

std::string QuoteName(std::string_view name) {
  bool odd = name.empty();
  std::string quoted = "\"";
  for (const char c : name) {
    odd = odd || IsBlank(c) || kEndsInTests.find(c) != std::string_view::npos;
    quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  }
  return odd ? quoted + "\"" : std::string(name);
}

}  // namespace quern::cli
