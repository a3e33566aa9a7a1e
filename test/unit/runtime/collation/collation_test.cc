// SPDX-License-Identifier: Apache-2.0
// Collations: names, keys, the results of every function for random strings and for all characters, and that nothing
// reads beyond a string. Results of other systems are in collation_oracle_test.cc.
#include "runtime/collation/collation.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "runtime/collation/icu_collation.h"
#include "runtime/spec/spec_text.h"
#include "test/unit/runtime/collation/collation_keys.h"
#include "test/unit/seed.h"

namespace quern {
namespace {

using test::BytesOfText;
using test::CompareKeys;
using test::EqualityKey;
using test::ExpectOrder;
using test::KeyByPieces;
using test::OrderKey;
using test::Sign;
using test::TextOf;

CollationRule RuleNamed(std::string_view name) { return RuleOf(CollationNamed(name).value()); }

// The names of all rows of the table, and some of ICU where it is available.
std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const CollationRow& row : AllCollations()) names.emplace_back(row.text);
  if (IcuVersion().empty()) return names;
  for (const char* name :
       {"icu:und", "icu:und-u-ks-level1", "icu:th", "icu:und-u-ks-identic", "icu:und-u-kk", "icu:fr-CA"})
    names.emplace_back(name);
  return names;
}

std::string Error(std::string_view name) { return std::string(CollationNamed(name).status().message()); }

// ---- names ----

TEST(Collation, EveryRowHasItsName) {
  for (const CollationRow& row : AllCollations()) {
    EXPECT_EQ(CollationNamed(row.text).value(), row.id);
    EXPECT_EQ(RowOf(row.id).text, row.text);
  }
}

TEST(Collation, UnknownNamesAreErrors) {
  std::string accepted;
  for (const CollationRow& row : AllCollations()) accepted += std::string(row.text) + ", ";
  accepted = IcuVersion().empty() ? accepted.substr(0, accepted.size() - 2) : accepted + "icu:TAG";
  EXPECT_EQ(Error("klingon"), "unknown collation: klingon; accepted: " + accepted);
  EXPECT_EQ(Error(""), "unknown collation: \"\"; accepted: " + accepted);
  EXPECT_EQ(Error("utf8mb4_general_cs"),
            "unknown collation: utf8mb4_general_cs; did you mean utf8mb4_general_ci? accepted: " + accepted);
}

TEST(Collation, TagsOfIcuHaveOneNameAndOneNumber) {
  if (IcuVersion().empty()) GTEST_SKIP() << "no ICU in this build";
  const Collation phonebook = CollationNamed("icu:DE-u-CO-phonebk").value();
  EXPECT_EQ(RowOf(phonebook).text, "icu:de-u-co-phonebk");
  EXPECT_EQ(CollationNamed("icu:de-u-co-phonebk").value(), phonebook);
  EXPECT_NE(CollationNamed("icu:de").value(), phonebook);
  EXPECT_GE(phonebook, kFirstIcuCollation);
  EXPECT_LT(phonebook, 2 * kFirstIcuCollation);
  EXPECT_EQ(RuleOf(phonebook), static_cast<uint32_t>(phonebook) << kCollationShift | kWeighsEquality | kWeighsOrder);
}

TEST(Collation, TagsThatIcuHasNoRulesForAreErrors) {
  if (IcuVersion().empty()) {
    EXPECT_EQ(Error("icu:de"),
              "collation of ICU in a build without ICU: icu:de; accepted: names that do not begin with icu:");
    GTEST_SKIP() << "no ICU in this build";
  }
  for (const std::string tag :
       {"", "xx", "qqq", "de_phonebk", "de-u-co-bogus", "de-u-ks-foo", "de@collation=phonebook", "d", "de-", "(de)"}) {
    EXPECT_EQ(Error("icu:" + tag), "unknown collation of ICU: icu:" + tag +
                                       "; accepted: icu: and a BCP 47 tag that ICU has rules for, as icu:und, " +
                                       "icu:de-u-co-phonebk, icu:und-u-ks-level1");
  }
}

TEST(Collation, TypesOfSpecsTakeThem) {
  if (IcuVersion().empty()) GTEST_SKIP() << "no ICU in this build";
  const Item item = ParseItem("utf8(icu:DE-u-co-phonebk):nullable:desc", Role::kSortKey).value();
  EXPECT_EQ(PrintItem(item.key), "utf8(icu:de-u-co-phonebk):nullable:desc");
  EXPECT_TRUE(CheckType(item.key.type, "keys[0]").ok());
}

TEST(Collation, NumbersThatNobodyOpenedAreErrors) {
  ColumnType type = {.id = TypeId::kUtf8, .collation = static_cast<Collation>(kFirstIcuCollation + 12345)};
  EXPECT_EQ(CheckType(type, "keys[0]").message(),
            "collation number out of range in keys[0]: 67121209; accepted: 0 to " +
                std::to_string(AllCollations().size() - 1));
}

// ---- keys ----

TEST(Collation, EqualityKeysAreCapitals) {
  EXPECT_EQ(EqualityKey("Straße ", RuleNamed("utf8mb4_unicode_ci")), "STRASSE");
  EXPECT_EQ(EqualityKey("Straße ", RuleNamed("utf8mb4_general_ci")), "STRASE");
  EXPECT_EQ(EqualityKey("Stra\u00dfe ", RuleNamed("utf8mb4_0900_ai_ci")), "STRASSE ");
  EXPECT_EQ(EqualityKey("a\u00df ", RuleNamed("ascii_ci")), "A\xc3\x9f");
  EXPECT_EQ(EqualityKey("Aa ", RuleNamed("utf8mb4_bin")), "Aa");
  EXPECT_EQ(EqualityKey("a\u00a0", RuleNamed("utf8mb4_unicode_ci")), "A");
  EXPECT_EQ(EqualityKey("a\u00a0", RuleNamed("tidb.utf8mb4_unicode_ci")), "A ");
  EXPECT_EQ(EqualityKey("\u0439", RuleNamed("utf8mb4_general_ci")), "\u0419");
}

// Kernels compute both keys of such strings themselves.
TEST(Collation, KeysOfAsciiTakeAByteForEachCharacter) {
  std::string plain;
  for (char c = ' '; c <= '~'; ++c) plain.push_back(c);
  plain += "a";
  std::string capitals = plain;
  for (char& c : capitals) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 0x20) : c;
  for (const CollationRow& row : AllCollations()) {
    const CollationRule rule = RuleOf(row.id);
    if ((rule & kFoldsAscii) != 0) {
      EXPECT_EQ(EqualityKey(plain, rule), capitals) << row.text;
    }
    EXPECT_EQ(OrderKey(plain, rule).size(), plain.size()) << row.text;
    if (row.order == Weights::kGeneral || row.order == Weights::kAsciiUpper) {
      EXPECT_EQ(OrderKey(plain, rule), capitals) << row.text;
    }
    EXPECT_EQ(PadByte(rule), (rule & kPadsSpaces) != 0 ? static_cast<uint8_t>(OrderKey(" a", rule)[0]) : 0) << row.text;
  }
}

TEST(Collation, PaddingIsAboveWhatIsBelowASpace) {
  ExpectOrder("a\t", "a", -1, RuleNamed("utf8mb4_bin"), "utf8mb4_bin");
  ExpectOrder("a\t", "a ", -1, RuleNamed("utf8mb4_general_ci"), "utf8mb4_general_ci");
  ExpectOrder("a\t", "a ", 1, RuleNamed("tidb.utf8mb4_general_ci"), "tidb.utf8mb4_general_ci");
  ExpectOrder("a \t", "a", -1, RuleNamed("latin1_bin"), "latin1_bin");
  ExpectOrder("a ", "a", 1, RuleNamed("utf8mb4_0900_ai_ci"), "utf8mb4_0900_ai_ci");
}

// ICU's own comparison reports that these differ.
TEST(Collation, StringsOfIcuWithTheSameSortKeyAreEqual) {
  if (IcuVersion().empty()) GTEST_SKIP() << "no ICU in this build";
  ExpectOrder("\uff62", "\uff62\uff9e", 0, RuleNamed("icu:und-u-ka-shifted"), "icu:und-u-ka-shifted");
  ExpectOrder("a b", "ab", 0, RuleNamed("icu:und-u-ka-shifted"), "icu:und-u-ka-shifted");
  ExpectOrder("a b", "ab", -1, RuleNamed("icu:und"), "icu:und");
}

TEST(Collation, BytesThatAreNoCharactersAreAboveAllAndInOrder) {
  const std::vector<std::string> ascending = {"a", "a\uffff", "a\x80", "a\xc3", "a\xff", "b\x80"};
  const std::vector<std::string> bad_above_all = {"z", "\uffff", "\x80", "\x81z", "\xe2\x82", "\xff", "\xff\x80"};
  for (const CollationRow& row : AllCollations()) {
    const bool stops = row.equality != Weights::kBytes && row.text.substr(0, 5) == "tidb.";
    if (stops || row.order == Weights::kAsciiUpper) continue;
    for (const auto* strings : {&ascending, &bad_above_all})
      for (size_t i = 0; i + 1 < strings->size(); ++i)
        if (row.order != Weights::kBytes)
          ExpectOrder((*strings)[i], (*strings)[i + 1], -1, RuleOf(row.id), std::string(row.text));
  }
}

// ---- all characters ----

std::vector<uint16_t> WeightsVector(Weights weights, char32_t c) {
  uint16_t out[kMaxCharacterWeights];
  const uint32_t n = WeightsOf(weights, c, out);
  return {out, out + n};
}

constexpr char32_t kCharacters[][2] = {{0, 0xd7ff},        {0xe000, 0x187ff},   {0x1d000, 0x20100},
                                       {0x2a6d0, 0x2a710}, {0x2ce90, 0x2ceb0},  {0x2f800, 0x2fa20},
                                       {0xe0000, 0xe0200}, {0x10fff0, 0x10ffff}};

std::vector<char32_t> Characters() {
  std::vector<char32_t> characters;
  for (const auto& [first, last] : kCharacters)
    for (char32_t c = first; c <= last; ++c) characters.push_back(c);
  return characters;
}

// Keys order as weights do: all characters next to each other, and pairs.
TEST(Collation, KeysOfCharactersAreInTheOrderOfTheirWeights) {
  std::mt19937_64 random = test::PrintedRandom();
  for (const char* name : {"utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb4_unicode_520_ci", "utf8mb4_0900_ai_ci",
                           "tidb.utf8mb4_0900_ai_ci"}) {
    const CollationRow& row = RowOf(CollationNamed(name).value());
    const KeyTable &equality = KeyTable::OfEquality(row.equality), &order = KeyTable::OfOrder(row.order);
    const auto key = [](const KeyTable& table, char32_t c) {
      uint8_t bytes[kMaxCharacterKeyBytes];
      const uint32_t size = table.Write(c, bytes);
      return std::string(reinterpret_cast<const char*>(bytes), size);
    };
    std::vector<std::pair<std::vector<uint16_t>, char32_t>> sorted;
    for (const char32_t c : Characters()) sorted.emplace_back(WeightsVector(row.order, c), c);
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i + 1 < sorted.size(); ++i) {
      const auto& [weights, c] = sorted[i];
      const auto& [next_weights, next] = sorted[i + 1];
      ASSERT_EQ(key(order, c) < key(order, next), weights < next_weights) << name << " " << static_cast<uint32_t>(c);
      ASSERT_EQ(key(equality, c) == key(equality, next), weights == next_weights)
          << name << " " << static_cast<uint32_t>(c);
      ASSERT_EQ(key(order, c).find('\0'), std::string::npos) << name << " " << static_cast<uint32_t>(c);
      const auto& [a_weights, a] = sorted[random() % sorted.size()];
      const auto& [b_weights, b] = sorted[random() % 2 == 0 ? i : random() % sorted.size()];
      std::vector<uint16_t> ab = a_weights, ba = b_weights;
      ab.insert(ab.end(), b_weights.begin(), b_weights.end());
      ba.insert(ba.end(), a_weights.begin(), a_weights.end());
      ASSERT_EQ(key(order, a) + key(order, b) < key(order, b) + key(order, a), ab < ba) << name;
      ASSERT_EQ(key(equality, a) + key(equality, b) == key(equality, b) + key(equality, a), ab == ba) << name;
    }
  }
}

TEST(Collation, Latin1IsCodePage1252AndAllElseIsAboveIt) {
  const CollationRule rule = RuleNamed("latin1_bin");
  std::string before;
  for (const char32_t c :
       {0, 1, 9, 0x1f, 0x20, 0x41, 0x7f, 0x20ac, 0x81, 0x201a, 0x178, 0xa0, 0xe9, 0xff, 0x80, 0x100, 0x4e2d, 0x1f600}) {
    const std::string text = TextOf(c) + "a";
    if (!before.empty()) ExpectOrder(before, text, -1, rule, "latin1_bin");
    before = text;
  }
}

TEST(Collation, CharactersThatAreKnownToBeEqual) {
  struct Pair {
    const char *a, *b;
    bool general, unicode, uca900;
  };
  const Pair pairs[] = {{"ss", "\u00df", false, true, true},
                        {"s", "\u00df", true, false, false},
                        {"ss", "\u1e9e", false, false, true},
                        {"ae", "\u00e6", false, false, true},
                        {"oe", "\u0153", false, true, true},
                        {"o", "\u00f8", false, false, true},
                        {"i", "\u0131", true, false, false},
                        {"i", "\u0130", true, true, true},
                        {"\u03c3", "\u03c2", true, true, true},
                        {"e\u0301", "\u00e9", false, true, true},
                        {"\u304b", "\u30ac", false, true, true},
                        {"a", "\uff41", false, true, true},
                        {"ab", "a\u200bb", false, true, true},
                        {"ab", "a\u00adb", false, false, true},
                        {"\uac00", "\u1100\u1161", false, false, true},
                        {"\U0001f600", "\U0001f601", true, true, false},
                        {"\ufffd", "\U0001f600", true, false, false}};
  for (const Pair& pair : pairs) {
    EXPECT_EQ(EqualStrings(BytesOfText(pair.a), BytesOfText(pair.b), RuleNamed("utf8mb4_general_ci")), pair.general)
        << pair.a << pair.b;
    EXPECT_EQ(EqualStrings(BytesOfText(pair.a), BytesOfText(pair.b), RuleNamed("utf8mb4_unicode_ci")), pair.unicode)
        << pair.a << pair.b;
    EXPECT_EQ(EqualStrings(BytesOfText(pair.a), BytesOfText(pair.b), RuleNamed("utf8mb4_0900_ai_ci")), pair.uca900)
        << pair.a << pair.b;
  }
}

TEST(Collation, LikeMatchesCharactersAndNotStrings) {
  EXPECT_TRUE(MatchesCharacter('a', U'\u00e9' - 8, RuleNamed("utf8mb4_general_ci")));
  EXPECT_FALSE(MatchesCharacter('s', U'\u00df', RuleNamed("utf8mb4_unicode_ci")));
  EXPECT_TRUE(MatchesCharacter(0, 1, RuleNamed("utf8mb4_unicode_ci")));
  EXPECT_FALSE(MatchesCharacter(U'\U0001f600', U'\U0001f601', RuleNamed("utf8mb4_unicode_ci")));
  EXPECT_TRUE(MatchesCharacter(U'\U0001f600', U'\U0001f601', RuleNamed("utf8mb4_general_ci")));
  EXPECT_FALSE(MatchesCharacter('a', 'A', RuleNamed("utf8mb4_bin")));
  EXPECT_TRUE(MatchesCharacter('a', 'A', RuleNamed("ascii_ci")));
  EXPECT_FALSE(MatchesCharacter(0xe9, 0xc9, RuleNamed("ascii_ci")));
  EXPECT_FALSE(MatchesCharacter(0x110000, 'a', RuleNamed("utf8mb4_general_ci")));
  if (!IcuVersion().empty()) {
    EXPECT_TRUE(MatchesCharacter('a', U'\u00e1', RuleNamed("icu:und-u-ks-level1")));
  }
}

// ---- random strings ----

// For any strings, hash, equality and order agree with the keys, and the keys with each other.
TEST(Collation, HashEqualityAndOrderAgree) {
  std::mt19937_64 random = test::PrintedRandom();
  for (const std::string& name : Names()) {
    const CollationRule rule = RuleNamed(name);
    for (const test::TextKind kind : test::kTextKinds) {
      const std::vector<std::string> texts = test::RandomTexts(kind, 120, &random);
      for (const std::string& a : texts) {
        const std::string& b = texts[random() % texts.size()];
        ASSERT_NO_FATAL_FAILURE(ExpectOrder(a, b, CompareKeys(OrderKey(a, rule), OrderKey(b, rule), rule), rule, name));
        ASSERT_EQ(KeyByPieces(a, rule, 1 + static_cast<uint32_t>(random() % 20)), OrderKey(a, rule))
            << name << ::testing::PrintToString(a);
      }
    }
  }
}

// A readable page, followed by an inaccessible one.
class GuardedPage {
 public:
  GuardedPage()
      : bytes_(static_cast<uint8_t*>(
            mmap(nullptr, 2 * Size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    mprotect(bytes_ + Size(), Size(), PROT_NONE);
  }
  ~GuardedPage() { munmap(bytes_, 2 * Size()); }
  GuardedPage(const GuardedPage&) = delete;
  GuardedPage& operator=(const GuardedPage&) = delete;

  // The text, ending where the page ends.
  blocks::Bytes Put(const std::string& text) {
    uint8_t* const at = bytes_ + Size() - text.size();
    std::copy(text.begin(), text.end(), at);
    return {at, static_cast<uint32_t>(text.size())};
  }

 private:
  static size_t Size() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }
  uint8_t* bytes_;
};

TEST(Collation, NothingIsReadBeyondAString) {
  std::mt19937_64 random = test::PrintedRandom();
  GuardedPage page, other;
  for (const std::string& name : Names()) {
    const CollationRule rule = RuleNamed(name);
    for (const std::string& text : test::RandomTexts(test::TextKind::kMixed, 100, &random)) {
      for (size_t cut = 0; cut <= std::min<size_t>(text.size(), 4); ++cut) {
        const std::string a = text.substr(0, text.size() - cut);
        const blocks::Bytes at_end = page.Put(a), same_at_end = other.Put(a);
        uint8_t bytes[16];
        ASSERT_EQ(HashString(at_end, rule, blocks::kPublicHash), HashString(BytesOfText(a), rule, blocks::kPublicHash));
        ASSERT_TRUE(EqualStrings(at_end, same_at_end, rule));
        ASSERT_EQ(Sign(CompareStrings(at_end, BytesOfText(text), rule)),
                  Sign(CompareStrings(BytesOfText(a), BytesOfText(text), rule)));
        OrderKeyBytes(at_end, rule, 0, sizeof(bytes), bytes);
        std::string key;
        AppendOrderKey(at_end, rule, &key);
        ASSERT_EQ(key, OrderKey(a, rule));
      }
    }
  }
}

// Tables and tags are made on first use.
TEST(Collation, ThreadsMayBeginAtOnce) {
  std::vector<std::thread> threads;
  std::vector<uint64_t> hashes(4);
  for (uint64_t& hash : hashes) {
    threads.emplace_back([&hash] {
      for (const std::string& name : Names())
        hash += HashString(BytesOfText("Stra\u00dfe"), RuleNamed(name), blocks::kPublicHash);
      for (const char* tag : {"icu:sv", "icu:cs", "icu:da"})
        if (!IcuVersion().empty()) hash += HashString(BytesOfText("Stra\u00dfe"), RuleNamed(tag), blocks::kPublicHash);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const uint64_t hash : hashes) EXPECT_EQ(hash, hashes[0]);
}

}  // namespace
}  // namespace quern
