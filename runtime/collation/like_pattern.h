// SPDX-License-Identifier: Apache-2.0
// The pattern of a LIKE: what is compiled of it, and the matcher for what is not.
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
  // escape 0: no character is. rule: of the column's collation; equality of characters is MatchesCharacter's where it
  // weighs.
  LikePattern(std::string_view pattern, char32_t escape, CollationRule rule, LikeUnit unit);

  // Whether the string as a whole is what the pattern says: nothing is trimmed or padded. *Cost*: of a pattern without
  // '%' its length; else at most the string's length times that of the longest part between two '%'.
  bool Matches(blocks::Bytes s) const;

  // Whether the pattern is bytes between '%' alone: no `_`, and characters match by their bytes, or (folds) as ASCII
  // letters do.
  bool is_parts() const { return is_parts_; }
  // Then these, at least one: "%a%b" has "", "a", "b". With folds: letters are small ones.
  const std::vector<std::string>& parts() const { return parts_; }
  // Parts hold for strings of U+0020 to U+007E only; others are to be asked by Matches.
  bool folds() const { return folds_; }

 private:
  enum : uint32_t {
    kAnyOne = 0x80000000u,
    kAnyMany
  };  // beside code points, and kBadByte + a byte that is part of none

  // Whether a unit of the string is what stands at a place of the pattern.
  bool MatchesUnit(size_t place, uint32_t of_string) const;
  // Whether one byte of a string is the unit, and nothing else.
  bool IsOneByte(size_t unit) const;
  void MakeParts(const std::vector<std::string>& texts);

  CollationRule rule_;
  LikeUnit unit_;
  std::vector<uint32_t> units_;
  std::vector<uint64_t> classes_;  // of characters among them, under rules that weigh: CharacterClass
  bool is_parts_ = false, folds_ = false;
  std::vector<std::string> parts_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_COLLATION_LIKE_PATTERN_H_
