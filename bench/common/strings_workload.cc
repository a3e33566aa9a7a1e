// SPDX-License-Identifier: Apache-2.0
// What a comparison costs depends on where two strings first differ. Therefore the columns cover both extremes: strings
// that differ in their first bytes, as most strings do in a filter, and strings that are equal up to their last byte,
// either byte for byte or except for case:
//
//     constant   "k3VbTq0Zr9WmXa5c"
//     random     "Uq8..", "0aa..", ..              differs at once, except for 1 row in 1,000
//     same       "k3VbTq0Zr9WmXa5c", ..            all of it is compared
//     cased      "K3vBtQ0zR9WMxa5C", ..            equal only under `_ci` collations
//     mixed      "qäT中0Ωb日..", ..                 as random, with characters of two and three bytes
//
// No string ends with a space, so PAD SPACE costs only the search for one. No character of `mixed` expands to several
// or is ignored by any collation, and all are below U+10000.
#include "bench/common/strings_workload.h"

#include <algorithm>
#include <array>
#include <utility>

#include "bench/common/random_bits.h"

namespace quern::bench {
namespace {

constexpr uint64_t kNumStrings = 1000;
constexpr std::string_view kLetters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
constexpr std::array<std::string_view, 16> kCharacters = {"ä", "Ö", "ñ",  "ç",  "é",  "å",  "λ",  "Ω",
                                                          "д", "Ж", "中", "文", "日", "本", "語", "漢"};

// The numbers RandomBits(seed + 1), RandomBits(seed + 2), ..
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : next_(seed) {}
  uint64_t Below(uint64_t n) { return RandomBits(++next_) % n; }

 private:
  uint64_t next_;
};

std::string RandomString(uint32_t num_bytes, bool is_mixed, uint64_t seed) {
  Numbers numbers(seed);
  std::string text;
  while (text.size() < num_bytes) {
    const std::string_view wide = kCharacters[numbers.Below(kCharacters.size())];
    const char letter = kLetters[numbers.Below(kLetters.size())];
    if (is_mixed && numbers.Below(2) == 0 && text.size() + wide.size() <= num_bytes) text += wide;
    else text += letter;
  }
  return text;
}

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::string InRandomCase(std::string text, uint64_t seed) {
  Numbers numbers(seed);
  for (char& c : text) {
    if (IsLetter(c) && numbers.Below(2) == 0) c ^= 0x20;
  }
  return text;
}

// The piece of the constant begins and ends at character boundaries.
std::string PatternOf(const std::string& constant) {
  const auto is_inside = [&](size_t at) { return at < constant.size() && (constant[at] & 0xc0) == 0x80; };
  size_t begin = constant.size() / 3, end = begin + std::max<size_t>(constant.size() / 4, 2);
  while (is_inside(begin)) --begin;
  while (is_inside(end)) ++end;
  return "%" + constant.substr(begin, end - begin) + "%";
}

// Row i of the left or right column.
std::string StringOf(const StringsSpec& spec, const std::vector<std::string>& all, uint64_t row, bool is_right) {
  if (spec.kind == StringKind::kSame) return all[0];
  if (spec.kind == StringKind::kCased) return InRandomCase(all[0], 2 * row + is_right);
  return all[RandomBits(is_right && row % 2 == 1 ? ~row : row) % all.size()];
}

}  // namespace

const char* NameOf(StringKind kind) {
  switch (kind) {
    case StringKind::kRandom: return "random";
    case StringKind::kSame: return "same";
    case StringKind::kCased: return "cased";
    case StringKind::kMixed: return "mixed";
  }
  return "";
}

void StringColumn::Add(std::string_view text) {
  bytes_.insert(bytes_.end(), text.begin(), text.end());
  offsets_.push_back(static_cast<int32_t>(bytes_.size()));
}

QuernColumn StringColumn::View() const {
  QuernColumn column = {};
  column.values = bytes_.data();
  column.offsets = offsets_.data();
  return column;
}

StringsWorkload::StringsWorkload(const StringsSpec& spec) {
  std::vector<std::string> all;
  for (uint64_t i = 0; i < kNumStrings; ++i)
    all.push_back(RandomString(spec.num_bytes, spec.kind == StringKind::kMixed, i << 32));
  constant = all[0];
  pattern = PatternOf(constant);
  for (uint64_t row = 0; row < spec.num_rows; ++row) {
    left.Add(StringOf(spec, all, row, false));
    right.Add(StringOf(spec, all, row, true));
  }
}

}  // namespace quern::bench
