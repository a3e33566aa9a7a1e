// SPDX-License-Identifier: Apache-2.0
// Quantiles by counting are those of the sorted values.
#include "runtime/aggregate/accumulators/quantile_selection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <vector>

namespace quern {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double OfSorted(std::vector<double> values, double quantile) {
  std::sort(values.begin(), values.end(),
            [](double a, double b) { return std::isnan(b) ? !std::isnan(a) : !std::isnan(a) && a < b; });
  const double place = quantile * static_cast<double>(values.size() - 1);
  const auto index = static_cast<size_t>(place);
  const double fraction = place - static_cast<double>(index);
  if (fraction == 0) return values[index];
  const double lower = values[index], upper = values[index + 1];
  return lower == upper ? lower : lower + (upper - lower) * fraction;
}

std::optional<double> ByCounting(const std::vector<double>& values, double quantile) {
  const ReadValues read = [&](const ValuesRead& f) {
    for (size_t i = 0; i < values.size(); i += 7) f(values.data() + i, std::min<size_t>(7, values.size() - i));
    return absl::OkStatus();
  };
  return *SelectQuantileByCounting(read, quantile);
}

void ExpectSame(const std::vector<double>& values) {
  for (const double quantile : {0.0, 0.001, 0.25, 0.5, 0.77, 0.999, 1.0}) {
    const double expected = OfSorted(values, quantile);
    const std::optional<double> selected = ByCounting(values, quantile);
    ASSERT_TRUE(selected.has_value());
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(*selected)) << quantile;
    } else {
      EXPECT_EQ(*selected, expected) << quantile << " of " << values.size();
    }
  }
}

TEST(SelectQuantileByCounting, IsThatOfSortedValues) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  for (const size_t n : {1, 2, 3, 10, 1000, 20001}) {
    std::vector<double> near, equal, wide;
    for (size_t i = 0; i < n; ++i) {
      near.push_back(1e6 + normal(random));
      equal.push_back(static_cast<double>(random() % 3));
      wide.push_back(std::ldexp(normal(random), static_cast<int>(random() % 600) - 300));
    }
    ExpectSame(near);
    ExpectSame(equal);
    ExpectSame(wide);
  }
}

TEST(SelectQuantileByCounting, PutsNanBehindAllNumbers) {
  ExpectSame({kNan, 3, -kInfinity, 1, kInfinity, kNan, -0.5});
  ExpectSame({kNan, kNan, kNan});
  ExpectSame({kInfinity, kInfinity, 5});
  ExpectSame({-std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::denorm_min(), 0});
}

TEST(SelectQuantileByCounting, HasNoneOfNoValues) { EXPECT_EQ(ByCounting({}, 0.5), std::nullopt); }

TEST(SelectQuantileByCounting, FailsWhereReadingFails) {
  const ReadValues read = [](const ValuesRead&) { return absl::UnavailableError("no file"); };
  EXPECT_TRUE(absl::IsUnavailable(SelectQuantileByCounting(read, 0.5).status()));
}

}  // namespace
}  // namespace quern
