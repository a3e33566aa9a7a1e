// SPDX-License-Identifier: Apache-2.0
// Every function of collation.h against the results of MySQL, MariaDB, TiDB and ICU for the same strings
// (test/collations).
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/collation/collation.h"
#include "runtime/collation/collation_weights.h"
#include "runtime/collation/icu_collation.h"
#include "test/unit/runtime/collation/collation_keys.h"
#include "test/unit/seed.h"

namespace quern {
namespace {

using test::ExpectOrder;
using test::KeyByPieces;
using test::OrderKey;
using test::Sign;
using test::TextOf;

std::vector<std::string> Fields(const std::string& line, char separator) {
  std::vector<std::string> fields;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, separator);) fields.push_back(field);
  if (!line.empty() && line.back() == separator) fields.emplace_back();
  return fields;
}

std::vector<std::string> ReadLines(const std::string& name) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(
      gzopen((std::string(QUERN_COLLATION_DATA) + "/" + name).c_str(), "rb"), gzclose);
  EXPECT_NE(file, nullptr) << name;
  std::string text;
  char buffer[1 << 16];
  for (int n = 0; file != nullptr && (n = gzread(file.get(), buffer, sizeof(buffer))) > 0;)
    text.append(buffer, static_cast<size_t>(n));
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string FromHex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

// Compares strings, sorted by rank, each with the next one and with some others.
void ExpectRanks(const std::vector<std::string>& strings, const std::vector<int64_t>& ranks, CollationRule rule,
                 const std::string& name) {
  std::vector<size_t> order;
  for (size_t i = 0; i < ranks.size(); ++i)
    if (ranks[i] >= 0) order.push_back(i);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return std::pair(ranks[a], a) < std::pair(ranks[b], b); });
  std::mt19937_64 random(test::SeedOfTest());
  for (size_t p = 0; p + 1 < order.size(); ++p) {
    const size_t other = order[random() % order.size()];
    for (const size_t next : {order[p + 1], other})
      ASSERT_NO_FATAL_FAILURE(
          ExpectOrder(strings[order[p]], strings[next], Sign(ranks[order[p]] - ranks[next]), rule, name));
    ASSERT_EQ(KeyByPieces(strings[order[p]], rule, 1 + p % 17), OrderKey(strings[order[p]], rule)) << name;
  }
}

// "5 2 - -1": 5, 7, none, 6.
std::vector<int64_t> ReadRanks(const std::string& text) {
  std::vector<int64_t> ranks;
  int64_t rank = 0;
  for (const std::string& field : Fields(text, ' ')) ranks.push_back(field == "-" ? -1 : rank += std::stoll(field));
  return ranks;
}

TEST(CollationOracle, StringsRankAsInOtherSystems) {
  std::vector<std::string> strings;
  for (const std::string& line : ReadLines("strings.txt.gz")) strings.push_back(FromHex(line));
  ASSERT_EQ(strings.size(), 6112u);
  std::map<std::string, size_t> num_seen;
  for (const std::string& line : ReadLines("ranks.txt.gz")) {
    const std::vector<std::string> fields = Fields(line, '\t');
    ASSERT_EQ(fields.size(), 3u);
    const bool is_icu = fields[0].substr(0, kIcuPrefix.size()) == kIcuPrefix;
    ++num_seen[is_icu ? "icu" : fields[0]];
    if (is_icu && IcuVersion().substr(0, 3) != "72.") continue;  // other versions have other data
    const auto collation = CollationNamed(fields[0]);
    ASSERT_TRUE(collation.ok()) << collation.status();
    const std::vector<int64_t> ranks = ReadRanks(fields[2]);
    ASSERT_EQ(ranks.size(), strings.size());
    ExpectRanks(strings, ranks, RuleOf(*collation), fields[0] + " of " + fields[1]);
    if (HasFatalFailure()) return;
  }
  for (const CollationRow& row : AllCollations()) EXPECT_EQ(num_seen[std::string(row.text)], 1u) << row.text;
  EXPECT_EQ(num_seen["icu"], 29u);
}

TEST(CollationOracle, CharactersRankAsInOtherSystems) {
  size_t num_characters = 0;
  for (const std::string& line : ReadLines("codepoints.txt.gz")) {
    const std::vector<std::string> fields = Fields(line, '\t');
    const CollationRule rule = RuleOf(CollationNamed(fields[0]).value());
    std::vector<std::string> strings;
    std::vector<int64_t> ranks;
    char32_t c = 0;
    int64_t rank = 0;
    for (const std::string& field : Fields(fields[2], ' ')) {
      const size_t colon = field.find(':');
      c += colon == std::string::npos ? 1 : static_cast<char32_t>(std::stol(field));
      rank += std::stoll(field.substr(colon == std::string::npos ? 0 : colon + 1));
      const bool is_trimmed = c == ' ' && (rule & kTrimsSpaces) != 0;
      strings.push_back(TextOf(c));
      ranks.push_back(is_trimmed ? -1 : rank);
    }
    num_characters += strings.size();
    ExpectRanks(strings, ranks, rule, fields[0]);
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(num_characters, 3u * 12091 + 2 * 3861);
}

// ---- LIKE ----

struct Unit {
  enum Kind { kCharacter, kOne, kMany } kind;
  char32_t character;
};

std::vector<char32_t> UnitsOf(const std::string& s, bool is_binary) {
  std::vector<char32_t> units;
  const auto* p = reinterpret_cast<const uint8_t*>(s.data());
  for (const uint8_t* const end = p + s.size(); p < end;) {
    char32_t c = *p;
    p += is_binary ? 1 : DecodeCharacter(p, end, &c);
    units.push_back(c);
  }
  return units;
}

std::vector<Unit> PatternOf(const std::string& pattern, char32_t escape, bool is_binary) {
  const std::vector<char32_t> units = UnitsOf(pattern, is_binary);
  std::vector<Unit> read;
  for (size_t i = 0; i < units.size(); ++i) {
    if (units[i] == escape && i + 1 < units.size()) read.push_back({Unit::kCharacter, units[++i]});
    else if (units[i] == '%' && escape != '%') read.push_back({Unit::kMany, 0});
    else if (units[i] == '_' && escape != '_') read.push_back({Unit::kOne, 0});
    else read.push_back({Unit::kCharacter, units[i]});
  }
  return read;
}

// The positions of the pattern that can be reached, character by character.
bool IsLike(const std::vector<char32_t>& units, const std::vector<Unit>& pattern, CollationRule rule) {
  std::vector<bool> reached(pattern.size() + 1);
  const auto pass_many = [&](std::vector<bool>* at) {
    for (size_t i = 0; i < pattern.size(); ++i)
      if ((*at)[i] && pattern[i].kind == Unit::kMany) (*at)[i + 1] = true;
  };
  reached[0] = true;
  pass_many(&reached);
  for (const char32_t c : units) {
    std::vector<bool> next(pattern.size() + 1);
    for (size_t i = 0; i < pattern.size(); ++i) {
      if (!reached[i]) continue;
      if (pattern[i].kind == Unit::kMany) next[i] = true;
      else if (pattern[i].kind == Unit::kOne || MatchesCharacter(pattern[i].character, c, rule)) next[i + 1] = true;
    }
    pass_many(&next);
    reached = next;
  }
  return reached.back();
}

TEST(CollationOracle, CharactersMatchAsInOtherSystems) {
  const std::vector<std::string> lines = ReadLines("like.txt.gz");
  const std::vector<std::string> names = Fields(Fields(lines[0], '\t')[3], ' ');
  size_t num_asked = 0;
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> fields = Fields(lines[i], '\t'), expected = Fields(fields[3], ' ');
    for (size_t n = 0; n < names.size(); ++n) {
      const bool is_binary = names[n] == "binary";
      const char32_t escape = fields[2].empty() ? 0x110000 : UnitsOf(fields[2], false)[0];
      const std::vector<char32_t> units = UnitsOf(FromHex(fields[1]), is_binary);
      const std::vector<Unit> pattern = PatternOf(FromHex(fields[0]), escape, is_binary);
      for (const std::string& name : {names[n], "tidb." + names[n]}) {
        ++num_asked;
        ASSERT_EQ(IsLike(units, pattern, RuleOf(CollationNamed(name).value())), expected[n] == "1")
            << name << " line " << i + 1;
      }
    }
  }
  EXPECT_EQ(num_asked, 2480u * 12);
}

TEST(CollationOracle, IllFormedStringsRankAsTheirKeysInTidb) {
  const std::vector<std::string> lines = ReadLines("ill_formed.txt.gz"), names = Fields(lines[0], '\t');
  for (size_t n = 1; n < names.size(); ++n) {
    std::vector<std::string> strings, keys;
    for (size_t i = 1; i < lines.size(); ++i) {
      const std::vector<std::string> fields = Fields(lines[i], '\t');
      strings.push_back(FromHex(fields[0]));
      keys.push_back(n < fields.size() ? FromHex(fields[n]) : std::string());
    }
    std::vector<std::string> sorted = keys;
    std::sort(sorted.begin(), sorted.end());
    std::vector<int64_t> ranks;
    for (const std::string& key : keys)
      ranks.push_back(std::lower_bound(sorted.begin(), sorted.end(), key) - sorted.begin());
    ExpectRanks(strings, ranks, RuleOf(CollationNamed(names[n]).value()), names[n]);
    EXPECT_EQ(strings.size(), 389u);
  }
}

}  // namespace
}  // namespace quern
