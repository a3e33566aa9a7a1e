// SPDX-License-Identifier: Apache-2.0
// A collation as engines implement it, TiFlash among them: a filter calls `collator->compare(a, b)` for each row. The
// call decodes a character of each string, looks up both weights and continues while they are equal. The weights of a
// character are packed into one word, the first one lowest, so a character with several weights is no special case:
//
//     'a'  0x..0023        'A'  0x..0023        '中'  0x..e5a48e        "aB" and "Ab": 0x23 = 0x23, then 0x25 = 0x25
//
// The table of a collation has a word for each code point below U+10000 (512 KiB, of which text touches a few lines).
// It is filled from the library's own keys, character by character; the loops are not the library's. Binary collations
// trim and call memcmp.
#include "bench/collation/virtual_collator.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "runtime/collation/collation.h"

namespace quern::bench {
namespace {

std::string_view Trimmed(std::string_view s, bool trims) {
  while (trims && !s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

// The code point at *at, which is advanced past it. Missing bytes of a truncated character count as zeros.
uint32_t NextCharacter(std::string_view s, size_t* at) {
  const auto byte = [&](size_t i) -> uint32_t { return i < s.size() ? static_cast<uint8_t>(s[i]) : 0; };
  const size_t i = *at;
  const uint32_t first = byte(i);
  if (first < 0x80) {
    *at += 1;
    return first;
  }
  if (first < 0xe0) {
    *at += 2;
    return (first & 0x1f) << 6 | (byte(i + 1) & 0x3f);
  }
  *at += 3;
  return (first & 0x0f) << 12 | (byte(i + 1) & 0x3f) << 6 | (byte(i + 2) & 0x3f);
}

std::string Utf8Of(uint32_t code) {
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
  return {static_cast<char>(0xe0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3f)),
          static_cast<char>(0x80 | (code & 0x3f))};
}

// The weights of a character, and the place of the next one. Each class below takes one of these as a template
// argument.
struct ByteUnits {
  uint64_t Next(std::string_view s, size_t* at) const { return static_cast<uint8_t>(s[(*at)++]) + 1; }
};
struct CharacterUnits {
  uint64_t Next(std::string_view s, size_t* at) const { return NextCharacter(s, at) + 1; }
};
struct WeightUnits {
  const std::vector<uint64_t>* table;
  uint64_t Next(std::string_view s, size_t* at) const { return (*table)[NextCharacter(s, at)]; }
};

constexpr uint32_t kNumCharacters = 0x10000, kFirstSurrogate = 0xd800, kEndOfSurrogates = 0xe000;

std::vector<uint64_t> MakeTable(CollationRule rule) {
  std::vector<uint64_t> table(kNumCharacters);
  for (uint32_t code = 0; code < kNumCharacters; ++code) {
    if (code >= kFirstSurrogate && code < kEndOfSurrogates) continue;
    const std::string character = Utf8Of(code);
    std::string key;
    AppendOrderKey({reinterpret_cast<const uint8_t*>(character.data()), static_cast<uint32_t>(character.size())}, rule,
                   &key);
    for (size_t i = std::min<size_t>(key.size(), 8); i > 0; --i)
      table[code] = table[code] << 8 | static_cast<uint8_t>(key[i - 1]);
  }
  return table;
}

template <class Units>
class Pattern : public VirtualPattern {
 public:
  Pattern(const Units& units, std::string_view pattern) : units_(units) {
    for (size_t at = 0; at < pattern.size();) {
      const bool is_any = pattern[at] == '%', is_one = pattern[at] == '_';
      parts_.push_back({is_any, is_one, units_.Next(pattern, &at)});
    }
  }

  // Goes back to the last % where the text after it does not match.
  bool Match(std::string_view text) const override {
    size_t at = 0, part = 0, last_any = SIZE_MAX, retry = 0;
    while (at < text.size()) {
      if (part < parts_.size() && parts_[part].is_any) {
        last_any = part++;
        retry = at;
        continue;
      }
      size_t next = at;
      const uint64_t unit = units_.Next(text, &next);
      if (part < parts_.size() && (parts_[part].is_one || parts_[part].unit == unit)) {
        at = next;
        ++part;
      } else if (last_any == SIZE_MAX) {
        return false;
      } else {
        units_.Next(text, &retry);
        at = retry;
        part = last_any + 1;
      }
    }
    while (part < parts_.size() && parts_[part].is_any) ++part;
    return part == parts_.size();
  }

 private:
  struct Part {
    bool is_any, is_one;
    uint64_t unit;
  };
  Units units_;
  std::vector<Part> parts_;
};

// Strings that are compared byte by byte.
template <class Units>
class ByteCollator : public VirtualCollator {
 public:
  explicit ByteCollator(bool trims) : trims_(trims) {}

  int Compare(std::string_view a, std::string_view b) const override {
    return Trimmed(a, trims_).compare(Trimmed(b, trims_));
  }
  void SortKey(std::string_view text, std::string* key) const override { key->append(Trimmed(text, trims_)); }
  std::unique_ptr<VirtualPattern> MakePattern(std::string_view pattern) const override {
    return std::make_unique<Pattern<Units>>(Units(), pattern);
  }

 private:
  const bool trims_;
};

class WeightCollator : public VirtualCollator {
 public:
  WeightCollator(CollationRule rule, bool trims) : trims_(trims), table_(MakeTable(rule)) {}

  int Compare(std::string_view a, std::string_view b) const override {
    const WeightUnits units = {&table_};
    a = Trimmed(a, trims_);
    b = Trimmed(b, trims_);
    uint64_t left = 0, right = 0;  // the weights of the current characters that are not compared yet
    for (size_t i = 0, j = 0;;) {
      while (left == 0 && i < a.size()) left = units.Next(a, &i);
      while (right == 0 && j < b.size()) right = units.Next(b, &j);
      if (left == 0 || right == 0) return static_cast<int>(left != 0) - static_cast<int>(right != 0);
      if (left == right) {
        left = right = 0;
        continue;
      }
      const auto x = static_cast<uint8_t>(left), y = static_cast<uint8_t>(right);
      if (x != y) return x < y ? -1 : 1;
      left >>= 8;
      right >>= 8;
    }
  }

  void SortKey(std::string_view text, std::string* key) const override {
    text = Trimmed(text, trims_);
    for (size_t at = 0; at < text.size();) {
      for (uint64_t weights = WeightUnits{&table_}.Next(text, &at); weights != 0; weights >>= 8)
        key->push_back(static_cast<char>(static_cast<uint8_t>(weights)));
    }
  }

  std::unique_ptr<VirtualPattern> MakePattern(std::string_view pattern) const override {
    return std::make_unique<Pattern<WeightUnits>>(WeightUnits{&table_}, pattern);
  }

 private:
  const bool trims_;
  const std::vector<uint64_t> table_;
};

}  // namespace

std::unique_ptr<VirtualCollator> MakeVirtualCollator(Collation collation) {
  if (collation >= kFirstIcuCollation) return nullptr;
  const CollationRow& row = RowOf(collation);
  const bool trims = row.pad != PadRule::kNoPad;
  if (row.order != Weights::kBytes) return std::make_unique<WeightCollator>(RuleOf(collation), trims);
  if (RuleOf(collation) == 0 && row.text.ends_with("binary")) return std::make_unique<ByteCollator<ByteUnits>>(trims);
  return std::make_unique<ByteCollator<CharacterUnits>>(trims);
}

}  // namespace quern::bench
