// SPDX-License-Identifier: Apache-2.0
// Blocks over strings of every collation, compiled natively and between red zones: a string's hash is that of its
// equality key, and two strings are equal if and only if their keys are, whatever their lengths, their bytes and the
// field that holds one of them.
#include "runtime/collation/collate.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "runtime/blocks/blocks.h"
#include "runtime/collation/collation.h"
#include "test/templates/guarded_buffer.h"
#include "test/unit/runtime/collation/collated_texts.h"
#include "test/unit/seed.h"

namespace quern::test {
namespace {

namespace b = quern::blocks;

constexpr Guard kGuards[] = {Guard::kBehind, Guard::kInFront};

// The key that decides whether strings are equal.
std::string EqualityKey(const std::string& text, CollationRule rule) {
  std::string key;
  if ((rule & kWeighsEquality) != 0) AppendEqualityKey(BytesOfText(text), rule, &key);
  else key.assign(text, 0, b::Trimmed(BytesOfText(text), rule).length);
  return key;
}

// About `length` bytes of any kind, possibly cut in the middle of a character.
std::string TextOfLength(uint32_t length, std::mt19937_64* random) {
  const TextKind kind = kTextKinds[(*random)() % std::size(kTextKinds)];
  std::string text;
  while (text.size() < length) text += RandomText(kind, random);
  if ((*random)() % 2 == 0) text.resize(length);
  return text;
}

// The same text or a similar one: another case, another piece, trailing spaces, fewer bytes.
std::string Relative(std::string text, std::mt19937_64* random) {
  const auto pick = [&](size_t n) { return (*random)() % n; };
  switch (pick(6)) {
    case 0: break;
    case 1:
      for (char& c : text)
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) c = static_cast<char>(c ^ (pick(2) * 0x20));
      break;
    case 2:
      if (!text.empty()) text[pick(text.size())] ^= static_cast<char>(1 << pick(8));
      break;
    case 3: text.append(pick(9), ' '); break;
    case 4: text.resize(pick(text.size() + 1)); break;
    default: text.insert(pick(text.size() + 1), RandomText(TextKind::kMixed, random)); break;
  }
  return text;
}

std::string Shown(const std::string& text) {
  std::string shown;
  char byte[8];
  for (const char c : text) shown += (std::snprintf(byte, sizeof(byte), "%02x ", static_cast<uint8_t>(c)), byte);
  return shown;
}

// A string column whose bytes end at a red zone.
struct Column {
  Column(const std::vector<std::string>& values, Guard guard) : bytes(Joined(values), guard) {
    size_t end = 0;
    for (const std::string& value : values) {
      if (!value.empty()) std::memcpy(bytes.data() + end, value.data(), value.size());
      offsets.push_back(static_cast<int32_t>(end += value.size()));
    }
    column.values = bytes.data();
    column.offsets = offsets.data();
  }
  static size_t Joined(const std::vector<std::string>& values) {
    size_t size = 0;
    for (const std::string& value : values) size += value.size();
    return size;
  }
  uint32_t num_rows() const { return static_cast<uint32_t>(offsets.size()) - 1; }

  GuardedBuffer bytes;
  std::vector<int32_t> offsets = {0};
  QuernColumn column = {};
};

uint64_t HashOf(const std::string& text, CollationRule rule, Guard guard) {
  const Column s({text}, guard);
  uint64_t hash = 0;
  b::HashColumn<kVar32>(&s.column, 0, nullptr, 1, &hash, false, false, rule, 0);
  return hash;
}

// Compares through a field that holds `width` bytes inline.
bool AreEqual(const std::string& x, const std::string& y, CollationRule rule, uint32_t width, Guard guard) {
  const Column row({x}, guard), stored({y}, guard);
  const size_t field_bytes = width <= kInlineStringBytes ? sizeof(StringRef) : 4 + width;
  const GuardedBuffer field((field_bytes + 7) / 8 * 8, guard);
  b::StoreField<kVar32>(&stored.column, 0, field.data(), rule, width);
  return b::EqualField<kVar32>(&row.column, 0, field.data(), rule, width);
}

template <class F>
void ForEachRule(F&& f) {
  for (const CollationRow& row : AllCollations()) {
    SCOPED_TRACE(row.text);
    f(RuleOf(row.id));
  }
}

TEST(CollatedBlocks, AHashIsThatOfTheEqualityKey) {
  auto random = quern::test::PrintedRandom();
  ForEachRule([&](CollationRule rule) {
    for (uint32_t length = 0; length <= 70; ++length) {
      for (int i = 0; i < 4; ++i) {
        const std::string text = TextOfLength(length, &random), key = EqualityKey(text, rule);
        ASSERT_EQ(HashOf(text, rule, kGuards[i % 2]),
                  b::HashBytes(BytesOfText(key).data, key.size(), b::quern_hash_secret))
            << Shown(text);
      }
    }
  });
}

TEST(CollatedBlocks, StringsAreEqualWhereTheirKeysAre) {
  auto random = quern::test::PrintedRandom();
  ForEachRule([&](CollationRule rule) {
    for (uint32_t length = 0; length <= 70; ++length) {
      for (uint32_t width : {0u, 16u, 24u, 32u, 60u}) {
        const std::string x = TextOfLength(length, &random), y = Relative(x, &random);
        const Guard guard = kGuards[random() % 2];
        const bool expected = EqualityKey(x, rule) == EqualityKey(y, rule);
        ASSERT_EQ(AreEqual(x, y, rule, width, guard), expected) << Shown(x) << "| " << Shown(y) << width;
        ASSERT_TRUE(!expected || HashOf(x, rule, guard) == HashOf(y, rule, guard)) << Shown(x) << "| " << Shown(y);
      }
    }
  });
}

// Every byte at every position of a string, in the middle of a page and at its end.
TEST(CollatedBlocks, LettersAloneLoseTheirCase) {
  const CollationRule rule = RuleOf(kCollationAsciiCi);
  for (uint32_t length : {1u, 16u, 32u, 33u}) {
    for (uint32_t at : {0u, length - 1}) {
      for (int c = 0; c < 256; ++c) {
        std::string text(length, 'q'), other(length, 'Q');
        text[at] = static_cast<char>(c);
        other[at] = static_cast<char>(c ^ 0x20);
        const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        for (Guard guard : kGuards) {
          ASSERT_EQ(AreEqual(text, other, rule, 0, guard), is_letter) << length << " " << at << " " << c;
          ASSERT_TRUE(AreEqual(text, text, rule, 0, guard));
        }
      }
    }
  }
}

// A few distinct strings, which are cached, and more than the cache holds.
TEST(CollatedBlocks, ABatchHashesLikeItsRows) {
  auto random = quern::test::PrintedRandom();
  ForEachRule([&](CollationRule rule) {
    for (const uint32_t num_different : {5u, 1000u}) {
      std::vector<std::string> different, values;
      for (uint32_t i = 0; i < num_different; ++i)
        different.push_back(TextOfLength(static_cast<uint32_t>(random() % 50), &random));
      for (uint32_t i = 0; i < 700; ++i) values.push_back(different[random() % num_different]);
      const Column column(values, Guard::kBehind);
      const uint32_t n = column.num_rows();
      std::vector<uint64_t> hashes(n, 7), picked_hashes(n);
      std::vector<uint32_t> picked(n);
      for (uint32_t i = 0; i < n; ++i) picked[i] = n - 1 - i;
      b::HashColumn<kVar32>(&column.column, 0, nullptr, n, hashes.data(), true, false, rule, 0);
      b::HashColumn<kVar32>(&column.column, 0, picked.data(), n, picked_hashes.data(), false, false, rule, 0);
      for (uint32_t i = 0; i < n; ++i) {
        const std::string key = EqualityKey(values[i], rule);
        const uint64_t alone = b::HashBytes(BytesOfText(key).data, key.size(), b::quern_hash_secret);
        ASSERT_EQ(hashes[i], b::Combine(uint64_t{7}, alone, b::quern_hash_secret)) << Shown(values[i]);
        ASSERT_EQ(picked_hashes[n - 1 - i], alone) << Shown(values[i]);
      }
    }
  });
}

TEST(CollatedBlocks, NullsAreNotRead) {
  Column column({"x", "y", "\xc3\xa9"}, Guard::kBehind);
  const uint8_t validity[] = {0b101};
  column.column.validity = validity;
  column.offsets[1] = INT32_MAX;  // that of the null row
  column.offsets[2] = 2;
  uint64_t hashes[2];
  const uint32_t rows[] = {1, 2};
  const CollationRule rule = RuleOf(kCollationUtf8mb40900AiCi);
  b::HashColumn<kVar32>(&column.column, 0, rows, 2, hashes, false, true, rule, 0);
  EXPECT_EQ(hashes[0], b::kNullInput);
  EXPECT_EQ(hashes[1], HashOf("E", rule, Guard::kBehind));
}

}  // namespace
}  // namespace quern::test
