// SPDX-License-Identifier: Apache-2.0
// Random strings that tell collations apart: letters of equal weight, several scripts, control characters, ill-formed
// text. Many of them are equal or have common beginnings; their lengths are near those of words; some end with spaces.
#ifndef QUERN_TEST_UNIT_RUNTIME_COLLATION_COLLATED_TEXTS_H_
#define QUERN_TEST_UNIT_RUNTIME_COLLATION_COLLATED_TEXTS_H_

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/blocks/blocks.h"

namespace quern::test {

enum class TextKind : uint8_t { kAscii, kScripts, kControls, kIllFormed, kMixed };
constexpr TextKind kTextKinds[] = {TextKind::kAscii, TextKind::kScripts, TextKind::kControls, TextKind::kIllFormed,
                                   TextKind::kMixed};

inline blocks::Bytes BytesOfText(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), static_cast<uint32_t>(text.size())};
}

inline std::vector<std::string> CharactersOf(TextKind kind) {
  const std::vector<std::string> ascii = {"a", "A", "b", "B", "z", "Z", "_", " ", "~", "!", "0"};
  // Some of these weigh nothing, some as much as several others, some as much as a space.
  const std::vector<std::string> scripts = {
      "a",      "A",      "s",      " ",      "\u00df", "\u00e9", "\u00c9",     "\u00e6",     "\u0130",
      "\u0131", "\u03c3", "\u03c2", "\u0439", "\u0418", "\u4e2d", "\u3042",     "\uff71",     "\u3000",
      "\u00a0", "\u200b", "\u0301", "\u337f", "\ufdfa", "\ufffd", "\U0001f600", "\U0002f800", "\U0010ffff"};
  const std::vector<std::string> controls = {"a",  "A",    "b",    " ",     std::string(1, '\0'), "\t", "\x01",
                                             "\n", "\x1f", "\x7f", "\u0085"};
  const std::vector<std::string> ill_formed = {
      "a", "A", " ", "\xff", "\x80", "\xc3", "\xe2\x82", "\xf0\x9f\x98", "\xed\xa0\x80", "\xc0\x80"};
  std::vector<std::string> all;
  switch (kind) {
    case TextKind::kAscii: return ascii;
    case TextKind::kScripts: return scripts;
    case TextKind::kControls: return controls;
    case TextKind::kIllFormed: return ill_formed;
    case TextKind::kMixed: break;
  }
  for (const auto* some : {&ascii, &scripts, &controls, &ill_formed}) all.insert(all.end(), some->begin(), some->end());
  return all;
}

inline std::string RandomText(TextKind kind, std::mt19937_64* random) {
  static constexpr std::string_view kStem = "the Beginning of many of these strings, longer than words";
  const std::vector<std::string> characters = CharactersOf(kind);
  const auto some = [&](uint64_t most) { return (*random)() % (most + 1); };
  // A beginning that ends at a word's end, or a stem longer than words hold.
  std::string text(kStem.substr(0, some(1) == 0 ? 0 : some(2) == 0 ? 20 + some(8) : 5 + some(12)));
  for (char& c : text)
    if (some(7) == 0 && c >= 'a' && c <= 'z') c = static_cast<char>(c - 0x20);
  for (uint64_t left = some(3) == 0 ? some(20) : some(3); left > 0; --left)
    text += characters[some(characters.size() - 1)];
  if (some(2) == 0) text += std::string(some(3), ' ');
  return text;
}

inline std::vector<std::string> RandomTexts(TextKind kind, size_t n, std::mt19937_64* random) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < n; ++i) texts.push_back(RandomText(kind, random));
  return texts;
}

}  // namespace quern::test

#endif  // QUERN_TEST_UNIT_RUNTIME_COLLATION_COLLATED_TEXTS_H_
