// SPDX-License-Identifier: Apache-2.0
// The pattern of a LIKE: the parts that are compiled, and a matcher for all other patterns.
#ifndef QUERN_RUNTIME_COLLATION_LIKE_PATTERN_H_
#define QUERN_RUNTIME_COLLATION_LIKE_PATTERN_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/abi/kernel_abi.h"
#include "runtime/base/bytes.h"

namespace quern {

// What `_` stands for: a code point, or a byte (binary).
enum class LikeUnit : uint8_t { kCodePoint, kByte };

class LikePattern {
 public:
  // escape 0: there is no escape character. rule: the column's collation; if it has weights, MatchesCharacter decides
  // which characters match.
  LikePattern(std::string_view pattern, char32_t escape, CollationRule rule, LikeUnit unit);

  // Whether the whole string matches the pattern; nothing is trimmed or padded. *Cost*: for a pattern without '%' its
  // length; else at most the string's length times that of the longest part between two '%'.
  bool Matches(blocks::Bytes s) const;

  // Whether the pattern has only literal parts between '%': no `_`, and characters match by their bytes or, with
  // folds(), as ASCII letters do.
  bool is_parts() const { return is_parts_; }
  // The parts, at least one: "%a%b" has "", "a", "b". With folds(), letters are lower case.
  const std::vector<std::string>& parts() const { return parts_; }
  // Whether the parts are valid only for strings of U+0020 to U+007E; Matches must test the others.
  bool folds() const { return folds_; }

 private:
  enum : uint32_t {
    kAnyOne = 0x80000000u,
    kAnyMany
  };  // other units: code points, and kBadByte + a byte of no character

  // Whether a unit of the string matches the unit at a place of the pattern.
  bool MatchesUnit(size_t place, uint32_t of_string) const;
  // Whether the unit matches exactly one byte value and nothing else.
  bool IsOneByte(size_t unit) const;
  void MakeParts(const std::vector<std::string>& texts);

  CollationRule rule_;
  LikeUnit unit_;
  std::vector<uint32_t> units_;
  std::vector<uint64_t> classes_;  // CharacterClass of its characters, under rules with weights
  bool is_parts_ = false, folds_ = false;
  std::vector<std::string> parts_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_COLLATION_LIKE_PATTERN_H_
