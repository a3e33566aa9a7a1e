// SPDX-License-Identifier: Apache-2.0
// The first bytes that order strings are those of their order keys, however they are computed, and no byte outside the
// string is read.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/blocks/encode.h"
#include "runtime/collation/collation.h"
#include "test/templates/guarded_buffer.h"
#include "test/unit/runtime/aggregate/accumulators/accumulator_rows.h"
#include "test/unit/runtime/collation/collated_texts.h"
#include "test/unit/seed.h"

namespace quern {
namespace {

using test::BytesOfText;
using test::Guard;
using test::GuardedBuffer;

constexpr Guard kGuards[] = {Guard::kBehind, Guard::kInFront};

struct Prefix {
  uint64_t high = 0, low = 0;
  bool operator==(const Prefix&) const = default;
};

uint64_t Number(const std::string& bytes, size_t begin) {
  uint64_t number = 0;
  for (size_t i = begin; i < begin + 8; ++i) number = number << 8 | static_cast<uint8_t>(bytes[i]);
  return number;
}

// The order key and its padding.
std::string PaddedKey(const std::string& text, CollationRule rule, size_t size) {
  std::string key;
  AppendOrderKey(BytesOfText(text), rule, &key);
  if (key.size() < size) key.resize(size, static_cast<char>(PadByte(rule)));
  return key;
}

std::string Trimmed(std::string text, CollationRule rule) {
  while ((rule & kTrimsSpaces) != 0 && !text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

std::vector<std::string> SomeTexts(std::mt19937_64* random) {
  std::vector<std::string> texts = {
      "", " ", "~", std::string(16, ' '), std::string(17, 'z'), "exactly sixteen.", "15 of them, all"};
  for (const test::TextKind kind : test::kTextKinds)
    for (std::string& text : test::RandomTexts(kind, 60, random)) texts.push_back(std::move(text));
  for (int c = 0; c < 256; ++c) texts.push_back(std::string(static_cast<size_t>(c) % 18, 'm') + static_cast<char>(c));
  return texts;
}

// Calls check(collation, texts, strings), with strings that end at an inaccessible page.
template <class Check>
void ForAllCollations(Check check) {
  auto random = test::PrintedRandom();
  for (const CollationRow& collation : AllCollations()) {
    SCOPED_TRACE(collation.text);
    const std::vector<std::string> texts = SomeTexts(&random);
    for (const Guard guard : kGuards) {
      std::vector<GuardedBuffer> buffers;
      std::vector<blocks::Bytes> strings;
      for (const std::string& text : texts) {
        const std::string trimmed = Trimmed(text, RuleOf(collation.id));
        buffers.push_back(GuardedBuffer::Of(std::vector<char>(trimmed.begin(), trimmed.end()), guard));
        strings.push_back({buffers.back().data(), static_cast<uint32_t>(trimmed.size())});
      }
      check(RuleOf(collation.id), texts, strings);
    }
  }
}

TEST(OrderPrefix, PrefixesAreTheFirstBytesOfOrderKeys) {
  ForAllCollations(
      [](CollationRule rule, const std::vector<std::string>& texts, const std::vector<blocks::Bytes>& strings) {
        for (size_t i = 0; i < texts.size(); ++i) {
          const std::string key = PaddedKey(texts[i], rule, 16);
          Prefix prefix;
          const bool more = blocks::OrderPrefixes(&strings[i], 1, rule, &prefix.high, &prefix.low);
          EXPECT_EQ(prefix, (Prefix{Number(key, 0), Number(key, 8)})) << testing::PrintToString(texts[i]);
          EXPECT_TRUE(more || key.size() <= 16) << testing::PrintToString(texts[i]);
        }
      });
}

TEST(OrderPrefix, ManyAtOnceAreTheSame) {
  ForAllCollations([](CollationRule rule, const std::vector<std::string>&, const std::vector<blocks::Bytes>& strings) {
    const auto n = static_cast<uint32_t>(strings.size());
    std::vector<uint64_t> high(n), low(n);
    bool any_more = false;
    const bool more = blocks::OrderPrefixes(strings.data(), n, rule, high.data(), low.data());
    for (uint32_t i = 0; i < n; ++i) {
      Prefix one;
      any_more |= blocks::OrderPrefixes(&strings[i], 1, rule, &one.high, &one.low);
      EXPECT_EQ(one, (Prefix{high[i], low[i]}));
    }
    EXPECT_EQ(more, any_more);
  });
}

TEST(OrderPrefix, WordsAreOrderKeysFromAnyByteOn) {
  ForAllCollations(
      [](CollationRule rule, const std::vector<std::string>& texts, const std::vector<blocks::Bytes>& strings) {
        if ((rule & kWeighsOrder) == 0) return;
        for (size_t i = 0; i < texts.size(); ++i) {
          for (const uint32_t from : {0u, 1u, 7u, 8u, 16u, 24u, 33u, 1000u}) {
            const std::string key = PaddedKey(texts[i], rule, from + 8);
            uint64_t word = 0;
            const bool more = blocks::OrderWords(&strings[i], 1, rule, from, &word);
            EXPECT_EQ(word, Number(key, from)) << testing::PrintToString(texts[i]) << " from " << from;
            EXPECT_TRUE(more || key.size() <= from + 8) << testing::PrintToString(texts[i]) << " from " << from;
          }
        }
      });
}

// Trailing padding in characters other than U+0020 is no reason to read the string again.
TEST(OrderPrefix, PlainStringsOfUpToSixteenBytesAreAllInTheirPrefix) {
  for (const CollationRow& collation : AllCollations()) {
    for (size_t length = 0; length <= 17; ++length) {
      const std::string text = std::string(length / 2, 'a') + std::string(length - length / 2, 'Z');
      const blocks::Bytes string = BytesOfText(text);
      Prefix prefix;
      EXPECT_EQ(blocks::OrderPrefixes(&string, 1, RuleOf(collation.id), &prefix.high, &prefix.low), length > 16)
          << collation.text;
    }
  }
}

// ---- columns ----

// One key in two whole words.
struct KeyShape {
  KeyShape(CollationRule rule, bool descending) {
    key.storage = kVar32;
    key.nullable = true;
    key.descending = descending;
    key.rule = rule;
    key.num_parts = 2;
    for (uint8_t w = 0; w < 2; ++w) {
      parts[w].kind = kBytesPart;
      parts[w].word = w;
      parts[w].bits = 64;
      parts[w].first_byte = static_cast<uint8_t>(8 * w);
      parts[w].begins_word = true;
    }
    descriptor.num_keys = 1;
    descriptor.num_words = 2;
    descriptor.keys = &key;
    descriptor.parts = parts;
  }
  KeyShape(const KeyShape&) = delete;

  QuernSortKey key = {};
  QuernSortPart parts[2] = {};
  QuernSortDescriptor descriptor = {};
};

template <Storage kStorage>
void ExpectEncoded(const std::vector<std::string>& texts, CollationRule rule, bool picked, bool descending) {
  const auto n = static_cast<uint32_t>(texts.size());
  const auto owned = test::StringColumn(kStorage, texts);
  std::vector<uint8_t> validity((n + 7) / 8, 0xff);
  for (uint32_t i = 0; i < n; i += 5) validity[i / 8] = static_cast<uint8_t>(validity[i / 8] & ~(1u << (i % 8)));
  QuernColumn column = owned->column;
  column.validity = validity.data();
  std::vector<uint32_t> rows;
  for (uint32_t i = 0; i < n; ++i) rows.push_back(i * 7 % 11 == 0 ? kNullRow : n - 1 - i);
  const KeyShape s(rule, descending);
  std::vector<uint64_t> words[2] = {std::vector<uint64_t>(n), std::vector<uint64_t>(n)};
  std::vector<uint64_t> lead(n);
  uint64_t* const to[] = {words[0].data(), words[1].data()};
  uint64_t* const lead_to[] = {lead.data()};
  uint32_t incomplete = 0, none = 0;
  blocks::EncodeBytes<kStorage>(&s.descriptor, 0, &column, 0, picked ? rows.data() : nullptr, n, to, 2, &incomplete);
  blocks::EncodeBytes<kStorage>(&s.descriptor, 0, &column, 0, picked ? rows.data() : nullptr, n, lead_to, 1, &none);
  EXPECT_EQ(none, 0u);
  EXPECT_EQ(incomplete, 1u);
  EXPECT_EQ(lead, words[0]);
  const uint64_t turned = descending ? ~uint64_t{0} : 0;
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t row = picked ? rows[i] : i;
    const bool is_null = row == kNullRow || row % 5 == 0;
    const std::string key = is_null ? std::string(16, '\0') : PaddedKey(texts[row], rule, 16);
    EXPECT_EQ(words[0][i], is_null ? 0 : Number(key, 0) ^ turned);
    EXPECT_EQ(words[1][i], is_null ? 0 : Number(key, 8) ^ turned);
  }
}

TEST(OrderPrefix, ColumnsAreEncodedByThem) {
  auto random = test::PrintedRandom();
  for (const CollationRow& collation : AllCollations()) {
    SCOPED_TRACE(collation.text);
    std::vector<std::string> texts = SomeTexts(&random);
    texts.push_back("a string of more than sixteen bytes");
    texts.push_back(texts.back());
    for (const bool picked : {false, true}) {
      for (const bool descending : {false, true}) {
        ExpectEncoded<kVar32>(texts, RuleOf(collation.id), picked, descending);
        ExpectEncoded<kVar64>(texts, RuleOf(collation.id), picked, descending);
        ExpectEncoded<kView>(texts, RuleOf(collation.id), picked, descending);
      }
    }
  }
}

}  // namespace
}  // namespace quern
