// SPDX-License-Identifier: Apache-2.0
// Accumulator blocks alone: the order-preserving numbers of every kind of value and back, readers, and update functions
// whose flag says not to count.
#include "runtime/blocks/accumulators.h"

#include <gtest/gtest.h>
#include <bit>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace b = quern::blocks;

namespace quern::test {
namespace {

template <class T>
QuernColumn ColumnOf(const std::vector<T>& values) {
  QuernColumn column = {};
  column.values = values.data();
  return column;
}

// All values in ascending order, NaN last.
template <class T>
std::vector<T> FloatsInOrder() {
  using Limits = std::numeric_limits<T>;
  return {-Limits::infinity(),
          Limits::lowest(),
          T{-2},
          std::nextafter(T{-1}, T{-2}),
          T{-1},
          -Limits::min(),
          -Limits::denorm_min(),
          T{-0.0},
          T{0},
          Limits::denorm_min(),
          Limits::min(),
          T{1},
          std::nextafter(T{1}, T{2}),
          Limits::max(),
          Limits::infinity(),
          Limits::quiet_NaN()};
}

template <Storage kStorage, class T>
void ExpectFloatsInOrder() {
  const std::vector<T> values = FloatsInOrder<T>();
  const QuernColumn column = ColumnOf(values);
  for (uint32_t i = 1; i < values.size(); ++i)
    EXPECT_LT(b::ReadOrdered<kStorage>(&column, i - 1, true), b::ReadOrdered<kStorage>(&column, i, true))
        << values[i - 1] << " " << values[i];
}

TEST(Accumulators, FloatsAreNumbersOfTheSameOrder) {
  ExpectFloatsInOrder<kF32, float>();
  ExpectFloatsInOrder<kF64, double>();
}

template <Storage kStorage, class T, class Bits>
void ExpectFloatsComeBack() {
  const std::vector<T> values = FloatsInOrder<T>();
  const QuernColumn column = ColumnOf(values);
  for (uint32_t i = 0; i < values.size(); ++i) {
    const auto bits = static_cast<Bits>(b::BitsOfOrdered(b::ReadOrdered<kStorage>(&column, i, true), kStorage, true));
    EXPECT_EQ(bits, std::bit_cast<Bits>(values[i])) << values[i];
  }
}

TEST(Accumulators, FloatsComeBackBitByBit) {
  ExpectFloatsComeBack<kF32, float, uint32_t>();
  ExpectFloatsComeBack<kF64, double, uint64_t>();
}

template <Storage kStorage, class Bits>
void ExpectNansAreGreatest(Bits infinity, Bits sign, Bits quiet_nan) {
  const std::vector<Bits> nans = {static_cast<Bits>(infinity + 1),     quiet_nan,
                                  static_cast<Bits>(sign - 1),         static_cast<Bits>(sign | (infinity + 1)),
                                  static_cast<Bits>(sign | quiet_nan), static_cast<Bits>(~Bits{0})};
  const std::vector<Bits> infinities = {infinity};
  const QuernColumn nan_column = ColumnOf(nans), infinity_column = ColumnOf(infinities);
  const uint64_t greatest_number = b::ReadOrdered<kStorage>(&infinity_column, 0, true);
  for (uint32_t i = 0; i < nans.size(); ++i) {
    const uint64_t ordered = b::ReadOrdered<kStorage>(&nan_column, i, true);
    EXPECT_GT(ordered, greatest_number) << std::hex << nans[i];
    EXPECT_EQ(b::BitsOfOrdered(ordered, kStorage, true), quiet_nan) << std::hex << nans[i];
  }
}

// Quiet and signalling, with and without a sign.
TEST(Accumulators, EveryNanIsGreaterThanAllNumbersAndComesBackAsOne) {
  ExpectNansAreGreatest<kF32, uint32_t>(0x7f800000u, 0x80000000u, 0x7fc00000u);
  ExpectNansAreGreatest<kF64, uint64_t>(0x7ff0000000000000u, uint64_t{1} << 63, 0x7ff8000000000000u);
}

template <Storage kStorage, class T>
void ExpectIntegers() {
  using Limits = std::numeric_limits<T>;
  constexpr bool kIsSigned = Limits::is_signed;
  std::vector<T> values = {Limits::min(), static_cast<T>(Limits::min() + 1), static_cast<T>(Limits::max() / 2),
                           static_cast<T>(Limits::max() - 1), Limits::max()};
  const QuernColumn column = ColumnOf(values);
  for (uint32_t i = 0; i < values.size(); ++i) {
    const uint64_t ordered = b::ReadOrdered<kStorage>(&column, i, kIsSigned);
    EXPECT_EQ(static_cast<T>(b::BitsOfOrdered(ordered, kStorage, kIsSigned)), values[i]);
    EXPECT_EQ(static_cast<T>(b::ReadInteger<kStorage>(&column, i, kIsSigned)), values[i]);
    EXPECT_EQ(b::ReadNumber<kStorage>(&column, i, kIsSigned), static_cast<double>(values[i]));
    EXPECT_EQ(static_cast<T>(b::ReadBits<kStorage>(&column, i)), values[i]);
    if (i > 0) {
      EXPECT_LT(b::ReadOrdered<kStorage>(&column, i - 1, kIsSigned), ordered);
    }
  }
}

TEST(Accumulators, IntegersKeepOrderAndValue) {
  ExpectIntegers<k8, int8_t>();
  ExpectIntegers<k8, uint8_t>();
  ExpectIntegers<k16, int16_t>();
  ExpectIntegers<k16, uint16_t>();
  ExpectIntegers<k32, int32_t>();
  ExpectIntegers<k32, uint32_t>();
  ExpectIntegers<k64, int64_t>();
  ExpectIntegers<k64, uint64_t>();
}

TEST(Accumulators, NumbersOf128BitsKeepTheirOrder) {
  const __int128 large = __int128{1} << 126;
  const std::vector<__int128> values = {-large - large, -large, -1, 0, 1, large};
  for (size_t i = 1; i < values.size(); ++i) EXPECT_LT(b::OrderedWide(values[i - 1]), b::OrderedWide(values[i]));
  for (const __int128 value : values)
    EXPECT_EQ(static_cast<__int128>(b::OrderedWide(static_cast<__int128>(b::OrderedWide(value)))), value);
}

TEST(Accumulators, ColumnsMayLieAnywhere) {
  std::vector<uint8_t> bytes(33, 0xff);
  QuernColumn column = {};
  column.values = bytes.data() + 1;
  EXPECT_EQ(b::ReadInteger<k32>(&column, 3, true), -1);
  EXPECT_EQ(b::ReadInteger<k64>(&column, 1, false), -1);
  EXPECT_EQ(b::ReadBits<kF64>(&column, 2), UINT64_MAX);
}

// A row that does not take part has value 0 and changes no state.
template <Step kStep>
void ExpectNothingChanges() {
  ASSERT_TRUE(b::IsMasked(kStep));
  for (const uint64_t before : {uint64_t{0}, uint64_t{5}, uint64_t{1} << 63, UINT64_MAX}) {
    uint64_t state[3] = {before, before, before};
    uint8_t overflowed = 0;
    b::Step64<kStep>(0, reinterpret_cast<uint8_t*>(state), /*one=*/0, /*is_signed=*/true, 77, &overflowed);
    for (const uint64_t word : state) EXPECT_EQ(word, before) << kStep;
    EXPECT_EQ(overflowed, 0);
  }
}

TEST(Accumulators, StepsThatAreMaskedAddNothingForNoRow) {
  ExpectNothingChanges<kUpdateRows>();
  ExpectNothingChanges<kUpdateSum>();
  ExpectNothingChanges<kUpdateSum128>();
  ExpectNothingChanges<kUpdateAvgSmall>();
  ExpectNothingChanges<kUpdateAvg>();
  ExpectNothingChanges<kUpdateMin>();
  ExpectNothingChanges<kUpdateMax>();
  ExpectNothingChanges<kUpdateBitAnd>();
  ExpectNothingChanges<kUpdateBitOr>();
  ExpectNothingChanges<kUpdateBitXor>();
}

TEST(Accumulators, AnOverflowIsReportedAndNotTakenBack) {
  int64_t state = INT64_MAX;
  uint8_t overflowed = 0;
  b::UpdateSum(1, reinterpret_cast<uint8_t*>(&state), true, &overflowed);
  EXPECT_EQ(overflowed, 1);
  b::UpdateSum(-1, reinterpret_cast<uint8_t*>(&state), true, &overflowed);
  EXPECT_EQ(overflowed, 1);
}

// A sum that is too large for a signed type may fit an unsigned one.
TEST(Accumulators, SignsDecideWhatFits) {
  for (const bool is_signed : {false, true}) {
    int64_t state = INT64_MAX;
    uint8_t overflowed = 0;
    b::UpdateSum(1, reinterpret_cast<uint8_t*>(&state), is_signed, &overflowed);
    EXPECT_EQ(overflowed, is_signed ? 1 : 0);
    EXPECT_EQ(static_cast<uint64_t>(state), uint64_t{1} << 63);
  }
}

TEST(Accumulators, PicksGoByTheOrderAndNotByTheTime) {
  uint64_t first[2] = {}, last[2] = {};
  uint8_t unused = 0;
  for (const uint64_t row : {5u, 3u, 9u, 4u}) {
    b::Step64<kUpdateFirst>(row * 10, reinterpret_cast<uint8_t*>(first), 1, true, row, &unused);
    b::Step64<kUpdateLast>(row * 10, reinterpret_cast<uint8_t*>(last), 1, true, row, &unused);
  }
  EXPECT_EQ(first[1], 30u);
  EXPECT_EQ(last[1], 90u);
}

TEST(Accumulators, MomentsAreThoseOfTheValues) {
  b::Moments m = {};
  for (const double v : {2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0}) b::UpdateMoments(v, reinterpret_cast<uint8_t*>(&m));
  EXPECT_EQ(m.count, 8);
  EXPECT_DOUBLE_EQ(m.mean, 5);
  EXPECT_DOUBLE_EQ(m.squares, 32);
}

TEST(Accumulators, ComomentsAndCorrelationAgree) {
  b::Comoments c = {};
  b::Correlation r = {};
  for (const double x : {1.0, 2.0, 4.0, 8.0}) {
    b::UpdateComoments(x, 3 - x, reinterpret_cast<uint8_t*>(&c));
    b::UpdateCorrelation(x, 3 - x, reinterpret_cast<uint8_t*>(&r));
  }
  EXPECT_DOUBLE_EQ(c.products, -28.75);
  EXPECT_DOUBLE_EQ(r.products, c.products);
  EXPECT_DOUBLE_EQ(r.squares_x, 28.75);
  EXPECT_DOUBLE_EQ(r.squares_y, 28.75);
}

}  // namespace
}  // namespace quern::test
