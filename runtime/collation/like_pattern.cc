// SPDX-License-Identifier: Apache-2.0
// The pattern of a LIKE is a list of units: characters, `_` (any one) and `%` (any number). With escape '!':
//
//     10!%%off_     '1' '0' '%' ANY 'o' 'f' 'f' ONE       as parts: none, since there is a `_`
//     %pend%dep%    ANY 'p' 'e' 'n' 'd' ANY 'd' 'e' 'p' ANY            "", "pend", "dep", ""
//
// A character after the escape character is literal, whatever it is; an escape character at the end stands for itself.
// Matching proceeds unit by unit. At a `%` it remembers the position, and when a later unit does not match, it starts
// again from there, one character further. Only the last `%` needs to be remembered: the units before it were matched
// as early as possible.
//
// Characters are code points, and match by MatchesCharacter if the collation has weights: 'ß' is not LIKE 'ss',
// although it equals it. Bytes that are not part of a well-formed character are units of their own, and each matches
// only itself.
#include "runtime/collation/like_pattern.h"

#include <algorithm>
#include <cstring>

#include "runtime/collation/collation.h"

namespace quern {
namespace {

constexpr uint32_t kBadByte = 0x40000000u;

struct Unit {
  uint32_t value;
  uint32_t num_bytes;
};

// The unit at p, which is below end: a well-formed character (RFC 3629), or one byte.
Unit ReadUnit(const uint8_t* p, const uint8_t* end, LikeUnit unit) {
  const uint32_t lead = *p;
  if (lead < 0x80) return {lead, 1};
  const Unit bad = {kBadByte + lead, 1};
  if (unit == LikeUnit::kByte || lead < 0xc2 || lead > 0xf4) return bad;
  const uint32_t num_bytes = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (end - p < static_cast<int64_t>(num_bytes)) return bad;
  uint32_t value = lead & (0xffu >> (num_bytes + 1));
  for (uint32_t i = 1; i < num_bytes; ++i) {
    if ((p[i] & 0xc0) != 0x80) return bad;
    value = value << 6 | (p[i] & 0x3fu);
  }
  const bool is_too_long = (num_bytes == 3 && value < 0x800) || (num_bytes == 4 && value < 0x10000);
  if (is_too_long || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return bad;
  return {value, num_bytes};
}

bool IsPrintable(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c <= 0x7e; });
}

}  // namespace

LikePattern::LikePattern(std::string_view pattern, char32_t escape, CollationRule rule, LikeUnit unit)
    : rule_(rule), unit_(unit) {
  const auto* p = reinterpret_cast<const uint8_t*>(pattern.data());
  const uint8_t* end = p + pattern.size();
  std::vector<std::string> texts(1);
  const auto add_literal = [&](Unit literal) {
    units_.push_back(literal.value);
    texts.back().append(reinterpret_cast<const char*>(p), literal.num_bytes);
    p += literal.num_bytes;
  };
  while (p < end) {
    // The escape is one character, even if units are bytes.
    const Unit character = ReadUnit(p, end, LikeUnit::kCodePoint);
    if (escape != 0 && character.value == escape && p + character.num_bytes < end) {
      p += character.num_bytes;
      add_literal(ReadUnit(p, end, unit));
    } else if (character.value == '%' && escape != '%') {
      if (units_.empty() || units_.back() != kAnyMany) {
        units_.push_back(kAnyMany);
        texts.emplace_back();
      }
      ++p;
    } else if (character.value == '_' && escape != '_') {
      units_.push_back(kAnyOne);
      ++p;
    } else {
      add_literal(ReadUnit(p, end, unit));
    }
  }
  MakeParts(texts);
  if ((rule_ & kWeighsEquality) == 0) return;
  for (const uint32_t of_pattern : units_)
    classes_.push_back(of_pattern >= kBadByte ? 0 : CharacterClass(static_cast<char32_t>(of_pattern), rule_));
}

void LikePattern::MakeParts(const std::vector<std::string>& texts) {
  if (std::find(units_.begin(), units_.end(), kAnyOne) != units_.end()) return;
  if ((rule_ & kWeighsEquality) != 0) {
    if ((rule_ & kFoldsAscii) == 0 || !std::all_of(texts.begin(), texts.end(), IsPrintable)) return;
    folds_ = true;
  }
  is_parts_ = true;
  parts_ = texts;
  if (!folds_) return;
  for (std::string& part : parts_)
    for (char& c : part)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
}

bool LikePattern::MatchesUnit(size_t place, uint32_t of_string) const {
  const uint32_t of_pattern = units_[place];
  if (of_pattern == of_string) return true;
  if ((rule_ & kWeighsEquality) == 0 || of_pattern >= kBadByte || of_string >= kBadByte) return false;
  const uint64_t string_class = CharacterClass(static_cast<char32_t>(of_string), rule_);
  if (classes_[place] != 0 && string_class != 0) return classes_[place] == string_class;
  return MatchesCharacter(static_cast<char32_t>(of_pattern), static_cast<char32_t>(of_string), rule_);
}

bool LikePattern::IsOneByte(size_t unit) const { return (rule_ & kWeighsEquality) == 0 && units_[unit] < 0x80; }

bool LikePattern::Matches(blocks::Bytes s) const {
  const uint8_t *p = s.data, *end = s.data + s.length;
  const uint8_t* retry = nullptr;  // the string's next attempt after the last '%'
  size_t unit = 0, retry_unit = 0;
  while (true) {
    if (unit < units_.size() && units_[unit] == kAnyMany) {
      retry_unit = ++unit;
      retry = p;
      if (unit == units_.size()) return true;
      continue;
    }
    if (p == end) {
      if (unit == units_.size()) return true;
      return false;  // starting further on would leave even less
    }
    if (unit < units_.size()) {
      const Unit next = ReadUnit(p, end, unit_);
      if (units_[unit] == kAnyOne || MatchesUnit(unit, next.value)) {
        p += next.num_bytes;
        ++unit;
        continue;
      }
    }
    if (retry_unit == 0) return false;
    retry += ReadUnit(retry, end, unit_).num_bytes;
    if (IsOneByte(retry_unit)) {
      retry = static_cast<const uint8_t*>(
          std::memchr(retry, static_cast<int>(units_[retry_unit]), static_cast<size_t>(end - retry)));
      if (retry == nullptr) return false;
    }
    p = retry;
    unit = retry_unit;
  }
}

}  // namespace quern
