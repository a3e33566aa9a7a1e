// SPDX-License-Identifier: Apache-2.0
// The versions of collations, which hosts store: each stands for a digest of the keys of many strings. Where a digest
// changes, so must the version.
#include "runtime/collation/collation_version.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <string>

#include "runtime/collation/collation.h"
#include "runtime/collation/collation_weights.h"
#include "runtime/collation/icu_collation.h"
#include "test/unit/runtime/collation/collation_keys.h"

namespace quern {
namespace {

std::string VersionOf(std::string_view name) { return CollationVersion(name).value(); }

// Characters of all planes, alone and before spaces, and bytes that are no characters.
uint64_t DigestOf(CollationRule rule) {
  uint64_t digest = 0xcbf29ce484222325u;
  const auto add = [&](const std::string& s) {
    std::string key;
    AppendEqualityKey(test::BytesOfText(s), rule, &key);
    key += '\0';
    AppendOrderKey(test::BytesOfText(s), rule, &key);
    key += static_cast<char>(PadByte(rule));
    for (const char c : key) digest = (digest ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  };
  for (char32_t c = 1; c < 0x110000; c += c < 0x3000 ? 1 : 61) {
    uint8_t bytes[4];
    if (!IsCharacter(c)) continue;
    const uint32_t n = EncodeCharacter(c, bytes);
    add(std::string(reinterpret_cast<const char*>(bytes), n));
  }
  for (const char* s : {"", " ", "a  ", "a\t", "Stra\u00dfe \u00a0", "a\xff b", "\xc3", "e\u0301", "\U0001f600"})
    add(s);
  return digest;
}

struct Kept {
  const char* name;
  const char* version;
  uint64_t digest;
};

// A digest may only change together with its version: runtime/collation/collation_version.cc has the numbers to raise.
constexpr Kept kKept[] = {
    {"binary", "1", 0x50217fb76178c193},
    {"ascii_bin", "1", 0x025aede8ce0b014b},
    {"latin1_bin", "1", 0x87dc4b866af203e0},
    {"utf8_bin", "1", 0x025aede8ce0b014b},
    {"utf8mb4_bin", "1", 0x025aede8ce0b014b},
    {"utf8mb4_0900_bin", "1", 0x50217fb76178c193},
    {"ascii_ci", "1", 0xa6d20c277b16c2e3},
    {"utf8_general_ci", "1.18fc53a9558b1ca3", 0xec52250a2eaf4bc9},
    {"utf8mb4_general_ci", "1.18fc53a9558b1ca3", 0xec52250a2eaf4bc9},
    {"utf8_unicode_ci", "1.d2995676b0c0012d", 0xf76fea2339fcd08e},
    {"utf8mb4_unicode_ci", "1.d2995676b0c0012d", 0xf76fea2339fcd08e},
    {"utf8mb4_unicode_520_ci", "1.528eeddd222426df", 0xea0dd03622b49108},
    {"utf8mb4_0900_ai_ci", "1.b60c7d3b5466ee11", 0x78d35554c2ce5615},
    {"tidb.binary", "1", 0x50217fb76178c193},
    {"tidb.ascii_bin", "1", 0x52283c62e4bd4bcb},
    {"tidb.latin1_bin", "1", 0x52283c62e4bd4bcb},
    {"tidb.utf8_bin", "1", 0x52283c62e4bd4bcb},
    {"tidb.utf8mb4_bin", "1", 0x52283c62e4bd4bcb},
    {"tidb.utf8mb4_0900_bin", "1", 0x50217fb76178c193},
    {"tidb.utf8_general_ci", "1.18fc53a9558b1ca3", 0x5d2b97e7973a6761},
    {"tidb.utf8mb4_general_ci", "1.18fc53a9558b1ca3", 0x5d2b97e7973a6761},
    {"tidb.utf8_unicode_ci", "1.d2995676b0c0012d", 0x0232adeeaeeb2cf2},
    {"tidb.utf8mb4_unicode_ci", "1.d2995676b0c0012d", 0x0232adeeaeeb2cf2},
    {"tidb.utf8mb4_0900_ai_ci", "1.b60c7d3b5466ee11", 0x3283cbc0d5a6edfd},
};

TEST(CollationVersion, StandsForWhatTheCollationAnswers) {
  ASSERT_EQ(std::size(kKept), AllCollations().size());
  for (size_t i = 0; i < std::size(kKept); ++i) {
    const CollationRow& row = AllCollations()[i];
    EXPECT_EQ(row.text, kKept[i].name);
    EXPECT_EQ(VersionOf(row.text), kKept[i].version) << row.text;
    EXPECT_EQ(DigestOf(RuleOf(row.id)), kKept[i].digest) << row.text << ": other keys need another version";
  }
}

TEST(CollationVersion, OfIcuIsThatOfItsRules) {
  if (IcuVersion().empty()) GTEST_SKIP() << "no ICU in this build";
  const std::string root = VersionOf("icu:und");
  EXPECT_EQ(root.substr(0, 2), "1.");
  EXPECT_GT(root.size(), 2u);
  EXPECT_EQ(VersionOf("icu:DE-u-CO-phonebk"), VersionOf("icu:de-u-co-phonebk"));
  if (IcuVersion() == "72.1") {
    EXPECT_EQ(root, "1.153.120");
    EXPECT_EQ(VersionOf("icu:sv"), "1.153.120.42");
  }
}

TEST(CollationVersion, UnknownNamesAreErrors) {
  EXPECT_EQ(CollationVersion("utf8mb4_unicode").status(), CollationNamed("utf8mb4_unicode").status());
  EXPECT_FALSE(CollationVersion("icu:qqq").ok());
}

}  // namespace
}  // namespace quern
