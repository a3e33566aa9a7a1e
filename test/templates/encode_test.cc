// SPDX-License-Identifier: Apache-2.0
// Encoding, compiled natively: words order as values do, eight lanes agree with one, and no block reads or writes a
// byte outside its buffers.
#include "runtime/blocks/encode.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "runtime/blocks/block_signatures.h"
#include "test/templates/guarded_buffer.h"

namespace quern::test {
namespace {

namespace b = quern::blocks;
using int128_t = __int128;

constexpr Guard kGuards[] = {Guard::kBehind, Guard::kInFront};
constexpr uint64_t kAll = ~uint64_t{0};

// ---- numbers ----

struct Place {
  uint32_t shift;
  uint64_t flip;
  bool combine;
};

// Encodes n rows by lanes (neighbouring rows) and one by one (picked rows): both give the same words, also in place.
template <Storage kStorage, SortPartKind kPart = kValuePart>
std::vector<uint64_t> Encode(const QuernColumn& column, uint32_t n, bool nullable, const Place& place) {
  std::vector<uint32_t> rows(n);
  for (uint32_t i = 0; i < n; ++i) rows[i] = i;
  const uint64_t before = place.combine ? uint64_t{1} << 63 : 7;
  const GuardedBuffer by_lanes = GuardedBuffer::Of(std::vector<uint64_t>(n, before), Guard::kBehind);
  const GuardedBuffer by_rows = GuardedBuffer::Of(std::vector<uint64_t>(n, before), Guard::kBehind);
  b::EncodeColumn<kStorage, kPart>(&column, 0, nullptr, n, by_lanes.as<uint64_t>(), place.combine, nullable,
                                   place.shift, place.flip);
  b::EncodeColumn<kStorage, kPart>(&column, 0, rows.data(), n, by_rows.as<uint64_t>(), place.combine, nullable,
                                   place.shift, place.flip);
  std::vector<uint64_t> words(by_lanes.as<uint64_t>(), by_lanes.as<uint64_t>() + n);
  EXPECT_EQ(words, std::vector<uint64_t>(by_rows.as<uint64_t>(), by_rows.as<uint64_t>() + n));
  for (uint64_t& word : words) word ^= place.combine ? before : 0;
  return words;
}

template <Storage kStorage, class T>
std::vector<uint64_t> EncodeValues(const std::vector<T>& values, const Place& place) {
  std::vector<uint64_t> words;
  for (const Guard guard : kGuards) {
    const GuardedBuffer buffer = GuardedBuffer::Of(values, guard);
    QuernColumn column = {};
    column.values = buffer.data();
    words = Encode<kStorage>(column, static_cast<uint32_t>(values.size()), false, place);
  }
  return words;
}

// The flip that SortFlip returns for a part with all bits of a T.
template <class T>
uint64_t FlipOf(bool is_signed, bool descending) {
  QuernSortKey key = {};
  QuernSortPart part = {};
  key.storage = k64;
  key.is_signed = is_signed;
  key.descending = descending;
  part.kind = kValuePart;
  part.bits = sizeof(T) * 8;
  return SortFlip(&key, &part);
}

template <Storage kStorage, class T, class Less>
void ExpectWordsOrderAsValues(const std::vector<T>& values, bool is_signed, Less less) {
  for (const bool descending : {false, true}) {
    const std::vector<uint64_t> words = EncodeValues<kStorage>(values, {0, FlipOf<T>(is_signed, descending), false});
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(words[i] >> (sizeof(T) * 8 - 1) >> 1, 0u);
      for (size_t j = 0; j < values.size(); ++j) {
        EXPECT_EQ(words[i] < words[j], descending ? less(values[j], values[i]) : less(values[i], values[j]))
            << i << " " << j;
      }
    }
  }
}

template <class T>
std::vector<T> Integers(uint64_t seed = 5) {
  using L = std::numeric_limits<T>;
  std::vector<T> values = {0, 1, 2, L::max(), L::min(), static_cast<T>(-1), static_cast<T>(L::max() / 2)};
  std::mt19937_64 random(seed);
  while (values.size() < 37) values.push_back(static_cast<T>(random()));
  return values;
}

TEST(Encode, WordsOrderAsIntegersDo) {
  const auto less = [](auto x, auto y) { return x < y; };
  ExpectWordsOrderAsValues<k8>(Integers<uint8_t>(), false, less);
  ExpectWordsOrderAsValues<k8>(Integers<int8_t>(), true, less);
  ExpectWordsOrderAsValues<k16>(Integers<uint16_t>(), false, less);
  ExpectWordsOrderAsValues<k16>(Integers<int16_t>(), true, less);
  ExpectWordsOrderAsValues<k32>(Integers<uint32_t>(), false, less);
  ExpectWordsOrderAsValues<k32>(Integers<int32_t>(), true, less);
  ExpectWordsOrderAsValues<k64>(Integers<uint64_t>(), false, less);
  ExpectWordsOrderAsValues<k64>(Integers<int64_t>(), true, less);
}

template <class F>
std::vector<F> SpecialFloats() {
  using L = std::numeric_limits<F>;
  std::vector<F> values = {0,
                           F{-0.0},
                           1,
                           -1,
                           F{-1.5},
                           L::infinity(),
                           -L::infinity(),
                           L::quiet_NaN(),
                           -L::quiet_NaN(),
                           L::max(),
                           -L::max(),
                           L::min(),
                           -L::denorm_min(),
                           L::denorm_min()};
  for (int i = 0; i < 20; ++i) values.push_back(static_cast<F>(i - 7) / 3);
  return values;
}

TEST(Encode, WordsOrderAsFloatsDoWithNanLast) {
  const auto less = [](auto x, auto y) { return std::isnan(x) ? false : std::isnan(y) ? true : x < y; };
  ExpectWordsOrderAsValues<kF32>(SpecialFloats<float>(), false, less);
  ExpectWordsOrderAsValues<kF64>(SpecialFloats<double>(), false, less);
}

std::vector<int128_t> WideIntegers(uint64_t seed = 6) {
  std::vector<int128_t> values = {0, 1, -1, static_cast<int128_t>(1) << 64, -(static_cast<int128_t>(1) << 64)};
  std::mt19937_64 random(seed);
  while (values.size() < 21) values.push_back(static_cast<int128_t>(random()) << 64 | random());
  return values;
}

TEST(Encode, HalvesOfWideNumbersOrderTogether) {
  const std::vector<int128_t> values = WideIntegers();
  const GuardedBuffer buffer = GuardedBuffer::Of(values, Guard::kBehind);
  QuernColumn column = {};
  column.values = buffer.data();
  const auto n = static_cast<uint32_t>(values.size());
  const std::vector<uint64_t> high = Encode<k128, kHighPart>(column, n, false, {0, uint64_t{1} << 63, false});
  const std::vector<uint64_t> low = Encode<k128>(column, n, false, {0, 0, false});
  for (uint32_t i = 0; i < n; ++i) {
    for (uint32_t j = 0; j < n; ++j) {
      EXPECT_EQ(std::pair(high[i], low[i]) < std::pair(high[j], low[j]), values[i] < values[j]) << i << " " << j;
    }
  }
}

TEST(Encode, ABitIsAWordOfOneBit) {
  const uint8_t bits[] = {0b10110010, 0b00000001};
  QuernColumn column = {};
  column.values = bits;
  column.bit_offset = 1;
  EXPECT_EQ(Encode<kBit>(column, 8, false, {5, 0, true}), (std::vector<uint64_t>{32, 0, 0, 32, 32, 0, 32, 32}));
  EXPECT_EQ(Encode<kBit>(column, 3, false, {5, 1, false}), (std::vector<uint64_t>{0, 32, 32}));
}

// Row i has bit i + bit_offset of the bitmap; the bytes before the first and after the last are not touched.
TEST(Encode, NullsAreZeroWhateverTheirBitmapBeginsAt) {
  const std::vector<int32_t> values = Integers<int32_t>();
  const GuardedBuffer buffer = GuardedBuffer::Of(values, Guard::kBehind);
  for (const Guard guard : kGuards) {
    for (uint32_t bit_offset = 0; bit_offset < 17; ++bit_offset) {
      for (uint32_t n = 0; n <= values.size(); ++n) {
        GuardedBuffer validity((bit_offset + n + 7) / 8, guard);
        for (uint32_t i = 0; i < n; ++i) b::SetBitTo(validity.data(), bit_offset + i, i % 3 != 0);
        QuernColumn column = {};
        column.values = buffer.data();
        column.validity = validity.data();
        column.bit_offset = bit_offset;
        const std::vector<uint64_t> words = Encode<k32>(column, n, true, {31, 0x80000000u, true});
        std::vector<uint64_t> nulls(n, 7), flags(n, 7);
        b::EncodeNulls(&column, 0, nullptr, n, nulls.data(), false, 63, /*null_is_one=*/true);
        b::EncodeNulls(&column, 0, nullptr, n, flags.data(), true, 3, /*null_is_one=*/false);
        for (uint32_t i = 0; i < n; ++i) {
          const bool valid = i % 3 != 0;
          EXPECT_EQ(words[i], valid ? uint64_t{static_cast<uint32_t>(values[i]) ^ 0x80000000u} << 31 : 0);
          EXPECT_EQ(nulls[i] >> 63, valid ? 0u : 1u);
          EXPECT_EQ(flags[i], valid ? 15u : 7u);
        }
      }
    }
  }
}

TEST(Encode, WithoutABitmapNoRowIsNull) {
  const QuernColumn column = {};
  const uint32_t rows[11] = {};
  for (const uint32_t* picked : {static_cast<const uint32_t*>(nullptr), rows}) {
    std::vector<uint64_t> words(11, 4);
    b::EncodeNulls(&column, 0, picked, 11, words.data(), true, 0, true);
    EXPECT_EQ(words, std::vector<uint64_t>(11, 4));
    b::EncodeNulls(&column, 0, picked, 11, words.data(), true, 0, false);
    EXPECT_EQ(words, std::vector<uint64_t>(11, 5));
    b::EncodeNulls(&column, 0, picked, 11, words.data(), false, 63, true);
    EXPECT_EQ(words, std::vector<uint64_t>(11, 0));
  }
}

// ---- bytes ----

// One key of bytes, divided into parts as `cuts` says: the number of bytes in each word. The first word has 24 bits of
// other keys.
struct BytesShape {
  explicit BytesShape(const std::vector<uint32_t>& cuts, bool descending = false, CollationRule rule = 0,
                      uint32_t width = 0) {
    key.nullable = true;
    key.descending = descending;
    key.rule = rule;
    key.width_bytes = width;
    uint32_t first = 0;
    for (const uint32_t bytes : cuts) {
      QuernSortPart part = {};
      part.kind = kBytesPart;
      part.word = static_cast<uint8_t>(parts.size());
      part.bits = static_cast<uint8_t>(bytes * 8);
      part.shift = static_cast<uint8_t>(parts.empty() && bytes < 6 ? 40 - bytes * 8 : 64 - bytes * 8);
      part.first_byte = static_cast<uint8_t>(first);
      part.begins_word = part.shift + part.bits == 64;
      parts.push_back(part);
      first += bytes;
    }
    key.num_parts = static_cast<uint32_t>(parts.size());
    descriptor.num_keys = 1;
    descriptor.num_words = key.num_parts;
    descriptor.keys = &key;
    descriptor.parts = parts.data();
  }
  BytesShape(const BytesShape&) = delete;

  QuernSortKey key = {};
  std::vector<QuernSortPart> parts;
  QuernSortDescriptor descriptor = {};
};

// The words of n encoded rows, word by word.
template <class Encode>
std::vector<std::vector<uint64_t>> WordsOf(uint32_t num_words, uint32_t n, Encode&& encode) {
  std::vector<GuardedBuffer> buffers;
  std::vector<uint64_t*> words;
  for (uint32_t w = 0; w < num_words; ++w) {
    buffers.push_back(GuardedBuffer::Of(std::vector<uint64_t>(n, uint64_t{0xabcdef} << 40), Guard::kBehind));
    words.push_back(buffers.back().as<uint64_t>());
  }
  encode(words.data());
  std::vector<std::vector<uint64_t>> result;
  for (uint32_t w = 0; w < num_words; ++w) result.emplace_back(words[w], words[w] + n);
  return result;
}

uint64_t ExpectedBytes(std::string text, const QuernSortPart& part, bool descending) {
  text.resize(16);
  uint64_t v = 0;
  for (uint32_t i = 0; i < part.bits / 8u; ++i) v = v << 8 | static_cast<uint8_t>(text[part.first_byte + i]);
  if (descending) v ^= kAll >> (64 - part.bits);
  return v << part.shift | (part.begins_word ? 0 : uint64_t{0xabcdef} << 40);
}

std::string Letters(uint32_t n) {
  std::string text(n, ' ');
  for (uint32_t i = 0; i < n; ++i) text[i] = static_cast<char>('A' + i * 7 % 26 + (i % 2 == 0 ? 0x80 : 0));
  return text;
}

TEST(Encode, StringsOfAnyLengthAreReadToTheirLastByteAndNoFurther) {
  for (const std::vector<uint32_t>& cuts :
       {std::vector<uint32_t>{8, 8}, {3, 8, 5}, {4, 8, 4}, {5, 3, 8}, {1, 7, 8}, {16 / 2, 4, 4}}) {
    for (const bool descending : {false, true}) {
      const BytesShape s(cuts, descending);
      for (const Guard guard : kGuards) {
        for (uint32_t length = 0; length <= 40; ++length) {
          const std::string text = Letters(length);
          const GuardedBuffer bytes = GuardedBuffer::Of(std::vector<char>(text.begin(), text.end()), guard);
          const int64_t offsets[] = {0, length};
          QuernColumn column = {};
          column.values = bytes.data();
          column.offsets = offsets;
          uint32_t incomplete = 0;
          const auto words = WordsOf(s.descriptor.num_words, 1, [&](uint64_t* const* to) {
            b::EncodeBytes<kVar64>(&s.descriptor, 0, &column, 0, nullptr, 1, to, s.descriptor.num_words, &incomplete);
          });
          for (const QuernSortPart& part : s.parts)
            EXPECT_EQ(words[part.word][0], ExpectedBytes(text, part, descending)) << length;
          EXPECT_EQ(incomplete, length > 16 ? 1u : 0u) << length;
        }
      }
    }
  }
}

// The strings of one column, enough for several chunks of prefixes, picked or not.
struct Strings {
  explicit Strings(const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      bytes += text;
      offsets.push_back(static_cast<int32_t>(bytes.size()));
    }
    validity.assign((texts.size() + 7) / 8, 0xff);
    column.values = bytes.data();
    column.offsets = offsets.data();
    column.validity = validity.data();
  }
  std::string bytes;
  std::vector<int32_t> offsets = {0};
  std::vector<uint8_t> validity;
  QuernColumn column = {};
};

TEST(Encode, ManyStringsWithNullsAndPickedRows) {
  std::vector<std::string> texts;
  for (uint32_t i = 0; i < 1000; ++i) texts.push_back(Letters(i % 14) + std::to_string(i % 100));
  Strings strings(texts);
  for (uint32_t i = 0; i < 1000; i += 3)
    strings.validity[i / 8] = static_cast<uint8_t>(strings.validity[i / 8] & ~(1u << (i % 8)));
  const BytesShape s({3, 8, 5}, /*descending=*/true);
  std::vector<uint32_t> rows;
  for (uint32_t i = 0; i < 900; ++i) rows.push_back(i == 500 ? kNullRow : (i * 37) % 1000);
  for (const bool picked : {false, true}) {
    uint32_t incomplete = 0;
    const auto words = WordsOf(3, 900, [&](uint64_t* const* to) {
      b::EncodeBytes<kVar32>(&s.descriptor, 0, &strings.column, picked ? 0 : 100, picked ? rows.data() : nullptr, 900,
                             to, 3, &incomplete);
    });
    for (uint32_t i = 0; i < 900; ++i) {
      const uint32_t row = picked ? rows[i] : i + 100;
      const bool is_null = row == kNullRow || row % 3 == 0;
      for (const QuernSortPart& part : s.parts) {
        const uint64_t others = part.begins_word ? 0 : uint64_t{0xabcdef} << 40;
        EXPECT_EQ(words[part.word][i], is_null ? others : ExpectedBytes(texts[row], part, true)) << row;
      }
    }
    EXPECT_EQ(incomplete, 0u);
  }
}

std::vector<uint64_t> FirstWords(const std::vector<uint32_t>& cuts) {
  const Strings strings({"abcdefghijkl", "b"});
  const BytesShape s(cuts);
  uint32_t incomplete = 0;
  const auto words = WordsOf(1, 2, [&](uint64_t* const* to) {
    b::EncodeBytes<kVar32>(&s.descriptor, 0, &strings.column, 0, nullptr, 2, to, 1, &incomplete);
  });
  EXPECT_EQ(incomplete, 0u);
  return words[0];
}

TEST(Encode, TheFirstWordAloneTouchesNoOther) {
  EXPECT_EQ(FirstWords({8, 8}), (std::vector<uint64_t>{0x6162636465666768, 0x6200000000000000}));
  EXPECT_EQ(FirstWords({7, 8, 1}), (std::vector<uint64_t>{0x6162636465666700, 0x6200000000000000}));
}

TEST(Encode, BytesBehindANumberAreLeftOutOfTheFirstWordAlone) {
  EXPECT_EQ(FirstWords({3, 8, 5}), std::vector<uint64_t>(2, 0xabcdef0000000000));
}

constexpr CollationRule kPads = kTrimsSpaces | kPadsSpaces;

uint32_t IncompleteOf(const std::string& text, CollationRule rule) {
  const Strings strings({"x", text, "y"});
  const BytesShape s({8, 8}, false, rule);
  uint32_t incomplete = 0;
  WordsOf(2, 3, [&](uint64_t* const* to) {
    b::EncodeBytes<kVar32>(&s.descriptor, 0, &strings.column, 0, nullptr, 3, to, 2, &incomplete);
  });
  return incomplete;
}

TEST(Encode, ValuesThatWordsDoNotSayAllOfAreToldOf) {
  EXPECT_EQ(IncompleteOf("0123456789abcdef", 0), 0u);
  EXPECT_EQ(IncompleteOf("0123456789abcdefg", 0), 1u);
  EXPECT_EQ(IncompleteOf("0123456789abcdef    ", 0), 1u);
  EXPECT_EQ(IncompleteOf("0123456789abcdef    ", kTrimsSpaces), 0u);
  EXPECT_EQ(IncompleteOf("", 0), 0u);
  EXPECT_EQ(IncompleteOf("    ", kTrimsSpaces), 0u);
  EXPECT_EQ(IncompleteOf(std::string("a\0", 2), 0), 1u);
  EXPECT_EQ(IncompleteOf(std::string("\0", 1), 0), 1u);
  EXPECT_EQ(IncompleteOf(std::string("a\0  ", 4), kTrimsSpaces), 1u);
  EXPECT_EQ(IncompleteOf(std::string("a\0b", 3), 0), 0u);
}

// "a\0" is equal to "a\0" and spaces, "a" to "a" and one more space.
TEST(Encode, OfStringsThatPadOnlyLongOnesAreMoreThanTheirWords) {
  EXPECT_EQ(IncompleteOf("0123456789abcdef", kPads), 0u);
  EXPECT_EQ(IncompleteOf("0123456789abcdef    ", kPads), 0u);
  EXPECT_EQ(IncompleteOf("0123456789abcdef    x", kPads), 1u);
  EXPECT_EQ(IncompleteOf(std::string("a\0", 2), kPads), 0u);
  EXPECT_EQ(IncompleteOf(std::string(16, '\0'), kPads), 0u);
  EXPECT_EQ(IncompleteOf(std::string(17, '\0'), kPads), 1u);
}

TEST(Encode, SpacesStandBehindTheEndOfStringsThatPad) {
  for (const std::vector<uint32_t>& cuts : {std::vector<uint32_t>{8, 8}, {3, 8, 5}, {5, 3, 8}}) {
    for (const bool descending : {false, true}) {
      const BytesShape s(cuts, descending, kPads);
      for (const Guard guard : kGuards) {
        for (uint32_t length = 0; length <= 20; ++length) {
          std::string text = Letters(length);
          if (length > 2) text[length - 1] = '\0';
          const GuardedBuffer bytes = GuardedBuffer::Of(std::vector<char>(text.begin(), text.end()), guard);
          const int64_t offsets[] = {0, length};
          QuernColumn column = {};
          column.values = bytes.data();
          column.offsets = offsets;
          const uint32_t rows[] = {0};
          for (const uint32_t* picked : {static_cast<const uint32_t*>(nullptr), rows}) {
            uint32_t incomplete = 0;
            const auto words = WordsOf(s.descriptor.num_words, 1, [&](uint64_t* const* to) {
              b::EncodeBytes<kVar64>(&s.descriptor, 0, &column, 0, picked, 1, to, s.descriptor.num_words, &incomplete);
            });
            const std::string padded = text + std::string(16, ' ');
            for (const QuernSortPart& part : s.parts)
              EXPECT_EQ(words[part.word][0], ExpectedBytes(padded, part, descending)) << length;
          }
          if (s.parts[0].bits != 64) continue;
          const auto lead = WordsOf(1, 1, [&](uint64_t* const* to) {
            uint32_t incomplete = 0;
            b::EncodeBytes<kVar64>(&s.descriptor, 0, &column, 0, nullptr, 1, to, 1, &incomplete);
          });
          EXPECT_EQ(lead[0][0], ExpectedBytes(text + std::string(16, ' '), s.parts[0], descending)) << length;
        }
      }
    }
  }
}

TEST(Encode, FixedBytesAreIncompleteOnlyWhereTheyAreLong) {
  for (const uint32_t width : {1u, 7u, 15u, 16u, 17u, 40u}) {
    const std::string text = std::string(width - 1, 'q') + std::string(1, '\0');
    for (const Guard guard : kGuards) {
      const GuardedBuffer bytes = GuardedBuffer::Of(std::vector<char>(text.begin(), text.end()), guard);
      const uint32_t held = std::min(width, 16u);
      const BytesShape s(held > 8 ? std::vector<uint32_t>{8, held - 8} : std::vector<uint32_t>{held}, false, 0, width);
      QuernColumn column = {};
      column.values = bytes.data();
      uint32_t incomplete = 0;
      const auto words = WordsOf(s.descriptor.num_words, 1, [&](uint64_t* const* to) {
        b::EncodeBytes<kFixed>(&s.descriptor, 0, &column, 0, nullptr, 1, to, s.descriptor.num_words, &incomplete);
      });
      for (const QuernSortPart& part : s.parts)
        EXPECT_EQ(words[part.word][0], ExpectedBytes(text, part, false)) << width;
      EXPECT_EQ(incomplete, width > 16 ? 1u : 0u);
    }
  }
}

TEST(Encode, ViewsAreReadInPlaceAndElsewhere) {
  const std::string elsewhere = "elsewhere, 22 bytes on";
  const GuardedBuffer data = GuardedBuffer::Of(std::vector<char>(elsewhere.begin(), elsewhere.end()), Guard::kBehind);
  const GuardedBuffer views(32, Guard::kBehind);
  views.as<uint32_t>()[0] = 22;
  views.as<uint32_t>()[4] = 12;
  std::memcpy(views.data() + 20, "in the view.", 12);
  const uint8_t* const buffers[] = {data.data()};
  QuernColumn column = {};
  column.values = views.data();
  column.buffers = buffers;
  const BytesShape s({8, 8});
  uint32_t incomplete = 0;
  const auto words = WordsOf(2, 2, [&](uint64_t* const* to) {
    b::EncodeBytes<kView>(&s.descriptor, 0, &column, 0, nullptr, 2, to, 2, &incomplete);
  });
  EXPECT_EQ(words[0][0], ExpectedBytes("elsewher", s.parts[0], false));
  EXPECT_EQ(words[1][0], ExpectedBytes(elsewhere, s.parts[1], false));
  EXPECT_EQ(words[1][1], ExpectedBytes("in the view.", s.parts[1], false));
  EXPECT_EQ(incomplete, 1u);
}

// ---- two tuples ----

int Sign(int32_t order) { return (order > 0) - (order < 0); }

template <Storage kStorage, class T>
int Order(T x, T y, bool is_signed) {
  return Sign(b::OrderField<kStorage>(reinterpret_cast<const uint8_t*>(&x), reinterpret_cast<const uint8_t*>(&y),
                                      is_signed, false, 0));
}

TEST(OrderField, NumbersByTheirSign) {
  EXPECT_EQ((Order<k8, uint8_t>(0x80, 0x7f, false)), 1);
  EXPECT_EQ((Order<k8, uint8_t>(0x80, 0x7f, true)), -1);
  EXPECT_EQ((Order<k16, uint16_t>(0x8000, 1, true)), -1);
  EXPECT_EQ((Order<k32, int32_t>(-5, -5, true)), 0);
  EXPECT_EQ((Order<k64, int64_t>(INT64_MIN, INT64_MAX, true)), -1);
  EXPECT_EQ((Order<k64, uint64_t>(UINT64_MAX, 1, false)), 1);
  EXPECT_EQ((Order<k128, int128_t>(-1, 1, true)), -1);
  EXPECT_EQ((Order<kBit, uint8_t>(1, 0, false)), 1);
}

TEST(OrderField, FloatsWithAllTheirBits) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ((Order<kF64, double>(-0.0, 0.0, false)), 0);
  EXPECT_EQ((Order<kF64, double>(nan, -nan, false)), 0);
  EXPECT_EQ((Order<kF64, double>(-nan, std::numeric_limits<double>::infinity(), false)), 1);
  EXPECT_EQ((Order<kF32, float>(-1.5f, -1.25f, false)), -1);
  EXPECT_EQ((Order<kF32, float>(-1.5f, 1.5f, true)), -1);
}

int OrderTexts(const std::string& x, const std::string& y, CollationRule rule) {
  const auto ref = [](const std::string& s) {
    return b::MakeStringRef({reinterpret_cast<const uint8_t*>(s.data()), static_cast<uint32_t>(s.size())});
  };
  const StringRef a = ref(x), c = ref(y);
  const auto *left = reinterpret_cast<const uint8_t*>(&a), *right = reinterpret_cast<const uint8_t*>(&c);
  const int order = Sign(b::OrderField<kVar32>(left, right, false, rule, 0));
  EXPECT_EQ(Sign(b::OrderField<kView>(right, left, false, rule, 0)), -order);
  return order;
}

TEST(OrderField, StringsByBytesThenByLength) {
  EXPECT_EQ(OrderTexts("", "", 0), 0);
  EXPECT_EQ(OrderTexts("", std::string("\0", 1), 0), -1);
  EXPECT_EQ(OrderTexts("ab", std::string("ab\0", 3), 0), -1);
  EXPECT_EQ(OrderTexts("ab", "aB", 0), 1);
  EXPECT_EQ(OrderTexts("\xff", "zz", 0), 1);
  EXPECT_EQ(OrderTexts(std::string(40, 'x') + "1", std::string(40, 'x') + "2", 0), -1);
  EXPECT_EQ(OrderTexts(std::string(40, 'x'), std::string(12, 'x'), 0), 1);
}

TEST(OrderField, TrimmedStringsIgnoreTrailingSpaces) {
  EXPECT_EQ(OrderTexts("ab", "ab  ", 0), -1);
  EXPECT_EQ(OrderTexts("ab", "ab  ", kTrimsSpaces), 0);
  EXPECT_EQ(OrderTexts("ab\t", "ab  ", kTrimsSpaces), 1);
  EXPECT_EQ(OrderTexts("    ", "", kTrimsSpaces), 0);
  EXPECT_EQ(OrderTexts("abcdefghijklmnop  ", "abcdefghijklmnop", kTrimsSpaces), 0);
}

TEST(OrderField, BehindStringsThatPadSpacesGoOn) {
  for (const std::string& stem :
       {std::string(), std::string("ab"), std::string("abcd"), std::string("abcdefghijklmnop")}) {
    EXPECT_EQ(OrderTexts(stem, stem + "  ", kPads), 0);
    EXPECT_EQ(OrderTexts(stem, stem + "\t", kPads), 1);
    EXPECT_EQ(OrderTexts(stem, stem + std::string(1, '\0'), kPads), 1);
    EXPECT_EQ(OrderTexts(stem, stem + "    \x1f", kPads), 1);
    EXPECT_EQ(OrderTexts(stem, stem + "     !", kPads), -1);
    EXPECT_EQ(OrderTexts(stem + "\t", stem + "  ", kPads), -1);
    EXPECT_EQ(OrderTexts(stem + " \t", stem + "\t", kPads), 1);
  }
  EXPECT_EQ(OrderTexts("abcde", "abcdf  ", kPads), -1);
  EXPECT_EQ(OrderTexts("abxx  ", "ab", kPads), 1);
}

TEST(OrderField, FixedBytes) {
  const uint8_t x[] = {1, 2, 0x80}, y[] = {1, 2, 0x7f};
  EXPECT_EQ(Sign(b::OrderField<kFixed>(x, y, true, false, 3)), 1);
  EXPECT_EQ(Sign(b::OrderField<kFixed>(x, y, true, false, 2)), 0);
}

}  // namespace
}  // namespace quern::test
