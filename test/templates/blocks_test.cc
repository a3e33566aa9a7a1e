// SPDX-License-Identifier: Apache-2.0
// Blocks, compiled natively: eight lanes agree with one, and no block reads or writes a byte outside its buffers.
#include "runtime/blocks/blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "test/templates/guarded_buffer.h"

namespace quern::test {
namespace {

namespace b = quern::blocks;

constexpr Guard kGuards[] = {Guard::kBehind, Guard::kInFront};

template <Storage kStorage, class T>
void ExpectLanesAgree(const std::vector<T>& values) {
  for (Guard guard : kGuards) {
    for (uint32_t n = 0; n <= values.size(); ++n) {
      const GuardedBuffer buffer = GuardedBuffer::Of(std::vector<T>(values.begin(), values.begin() + n), guard);
      QuernColumn column = {};
      column.values = buffer.data();
      std::vector<uint32_t> rows(n);
      for (uint32_t i = 0; i < n; ++i) rows[i] = i;
      std::vector<uint64_t> by_lanes(n, 7), by_rows(n, 7);
      for (bool combine : {false, true}) {
        b::HashColumn<kStorage>(&column, 0, nullptr, n, by_lanes.data(), combine, false, false, 0);
        b::HashColumn<kStorage>(&column, 0, rows.data(), n, by_rows.data(), combine, false, false, 0);
        EXPECT_EQ(by_lanes, by_rows) << n;
      }
    }
  }
}

template <class T>
std::vector<T> RandomValues(uint32_t n, uint64_t seed = 11) {
  std::mt19937_64 random(seed);
  std::vector<T> values(n);
  for (T& value : values) value = static_cast<T>(random());
  return values;
}

TEST(Blocks, EightLanesHashLikeOne) {
  ExpectLanesAgree<k8>(RandomValues<uint8_t>(40));
  ExpectLanesAgree<k16>(RandomValues<uint16_t>(40));
  ExpectLanesAgree<k32>(RandomValues<uint32_t>(40));
  ExpectLanesAgree<k64>(RandomValues<uint64_t>(40));
}

template <class F>
std::vector<F> SpecialFloats() {
  using L = std::numeric_limits<F>;
  std::vector<F> values = {
      0,        F{-0.0}, 1, -1, L::infinity(), -L::infinity(), L::quiet_NaN(), -L::quiet_NaN(), L::denorm_min(),
      L::max(), L::min()};
  for (int i = 0; i < 20; ++i) values.push_back(static_cast<F>(i) / 3);
  return values;
}

TEST(Blocks, FloatLanesNormaliseLikeOne) {
  ExpectLanesAgree<kF32>(SpecialFloats<float>());
  ExpectLanesAgree<kF64>(SpecialFloats<double>());
}

TEST(Blocks, EveryNanIsOneValueAndMinusZeroIsZero) {
  const std::vector<uint64_t> bits = {0x7ff8000000000000u, 0xfff8000000000001u, 0x7ff0000000000001u,
                                      0x8000000000000000u, 0};
  QuernColumn column = {};
  column.values = bits.data();
  uint64_t hashes[5];
  b::HashColumn<kF64>(&column, 0, nullptr, 5, hashes, false, false, false, 0);
  EXPECT_EQ(hashes[0], hashes[1]);
  EXPECT_EQ(hashes[0], hashes[2]);
  EXPECT_EQ(hashes[3], hashes[4]);
  EXPECT_NE(hashes[0], hashes[3]);
  uint64_t field = 0;
  b::StoreField<kF64>(&column, 2, reinterpret_cast<uint8_t*>(&field), false, 0);
  EXPECT_TRUE(b::EqualField<kF64>(&column, 1, reinterpret_cast<uint8_t*>(&field), false, 0));
}

// A string column with one value, exactly `text`, whose bytes end at a red zone.
struct OneString {
  OneString(const std::string& text, Guard guard)
      : bytes(GuardedBuffer::Of(std::vector<char>(text.begin(), text.end()), guard)),
        offsets(GuardedBuffer::Of(std::vector<int32_t>{0, static_cast<int32_t>(text.size())}, guard)) {
    column = {};
    column.values = bytes.data();
    column.offsets = offsets.data();
  }
  GuardedBuffer bytes, offsets;
  QuernColumn column;
};

std::string Letters(uint32_t n) {
  std::string text(n, ' ');
  for (uint32_t i = 0; i < n; ++i) text[i] = static_cast<char>('a' + i * 7 % 26);
  return text;
}

TEST(Blocks, StringsAreReadToTheirLastByteAndNoFurther) {
  for (Guard guard : kGuards) {
    for (uint32_t n = 0; n <= 300; ++n) {
      const std::string text = Letters(n);
      const OneString a(text, guard), same(text, guard);
      uint64_t hash_a = 0, hash_same = 0;
      b::HashColumn<kVar32>(&a.column, 0, nullptr, 1, &hash_a, false, false, false, 0);
      b::HashColumn<kVar32>(&same.column, 0, nullptr, 1, &hash_same, false, false, false, 0);
      EXPECT_EQ(hash_a, hash_same);
      alignas(64) uint8_t field[64];  // a string's field is compared under a mask together with the bytes after it
      b::StoreField<kVar32>(&a.column, 0, field, false, 0);
      EXPECT_TRUE(b::EqualField<kVar32>(&same.column, 0, field, false, 0)) << n;
      for (uint32_t at : {0u, n / 2, n - 1}) {
        if (n == 0) continue;
        std::string other = text;
        other[at] ^= 1;
        const OneString different(other, guard);
        EXPECT_FALSE(b::EqualField<kVar32>(&different.column, 0, field, false, 0)) << n << " at " << at;
        uint64_t hash_different = 0;
        b::HashColumn<kVar32>(&different.column, 0, nullptr, 1, &hash_different, false, false, false, 0);
        EXPECT_NE(hash_a, hash_different) << n << " at " << at;
      }
    }
  }
}

// Neighbouring strings are hashed with loads that reach into the next string; the last ones are loaded differently.
template <Storage kStorage, class Offset>
void CheckNeighbours(Guard guard, uint32_t first, bool combine) {
  std::string text;
  std::vector<Offset> offsets = {0};
  for (uint32_t i = 0; i < 90; ++i) {
    text += Letters(i % 3 == 0 ? i * 13 % 70 : i % 30).substr(0, i >= 80 ? i % 4 : std::string::npos);
    offsets.push_back(static_cast<Offset>(text.size()));
  }
  const GuardedBuffer bytes = GuardedBuffer::Of(std::vector<char>(text.begin(), text.end()), guard);
  const GuardedBuffer offset_bytes = GuardedBuffer::Of(offsets, guard);
  QuernColumn column = {};
  column.values = bytes.data();
  column.offsets = offset_bytes.data();
  for (uint32_t n : {0u, 1u, 2u, 17u, 90u - first}) {
    std::vector<uint64_t> hashes(n, 77);
    b::HashColumn<kStorage>(&column, first, nullptr, n, hashes.data(), combine, false, 0, 0);
    for (uint32_t i = 0; i < n; ++i) {
      const std::string alone = text.substr(static_cast<size_t>(offsets[first + i]),
                                            static_cast<size_t>(offsets[first + i + 1] - offsets[first + i]));
      const uint64_t hash =
          b::HashBytes(reinterpret_cast<const uint8_t*>(alone.data()), alone.size(), b::quern_hash_secret);
      ASSERT_EQ(hashes[i], combine ? b::Combine(uint64_t{77}, hash, b::quern_hash_secret) : hash)
          << i << " of " << n << " from " << first;
    }
  }
}

TEST(Blocks, NeighbouringStringsAreHashedAsStringsAlone) {
  for (Guard guard : kGuards) {
    for (uint32_t first : {0u, 5u, 60u}) {
      for (bool combine : {false, true}) {
        CheckNeighbours<kVar32, int32_t>(guard, first, combine);
        CheckNeighbours<kVar64, int64_t>(guard, first, combine);
      }
    }
  }
}

TEST(Blocks, PaddingCollationsIgnoreTrailingSpacesOnly) {
  const auto hash = [](const std::string& text) {
    const OneString s(text, Guard::kInFront);
    uint64_t h = 0;
    b::HashColumn<kVar32>(&s.column, 0, nullptr, 1, &h, false, false, /*rule=*/kTrimsSpaces, 0);
    return h;
  };
  EXPECT_EQ(hash("a"), hash("a    "));
  EXPECT_EQ(hash(""), hash("   "));
  EXPECT_NE(hash("a"), hash(" a"));
  EXPECT_NE(hash("a"), hash("a\t"));
  EXPECT_NE(hash("a"), hash("a\xc2\xa0"));
}

TEST(Blocks, CopyReadsNoByteTooMuchAndWritesAtMostItsSlack) {
  for (Guard guard : kGuards) {
    for (uint32_t n = 0; n <= 300; ++n) {
      const std::string text = Letters(n);
      const GuardedBuffer from = GuardedBuffer::Of(std::vector<char>(text.begin(), text.end()), guard);
      const GuardedBuffer to(n + b::kCopySlackBytes, Guard::kBehind);
      b::CopyBytes(to.data(), from.data(), n);
      EXPECT_EQ(std::string(to.as<char>(), n), text);
    }
  }
}

TEST(Blocks, NullRowsOfADictionaryStayNull) {
  const uint8_t indices[] = {2, 200, 0};  // the second row is null: garbage
  const uint8_t validity[] = {0b101};
  QuernColumn column = {};
  column.values = indices;
  column.validity = validity;
  uint32_t rows[3];
  b::DictionaryRows<uint8_t>(&column, 0, nullptr, 3, rows);
  EXPECT_EQ(rows[0], 2u);
  EXPECT_EQ(rows[1], kNullRow);
  EXPECT_EQ(rows[2], 0u);
}

}  // namespace
}  // namespace quern::test

// The test is linked without the runtime; no string is output here.
extern "C" int32_t quern_rt_reserve_bytes(QuernOutColumn*, uint64_t) { return kQuernOutOfMemory; }
