// SPDX-License-Identifier: Apache-2.0
#include "runtime/aggregate/accumulators/quantile_selection.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "runtime/base/status.h"

namespace quern {
namespace {

constexpr uint32_t kDigitBits = 16, kNumDigits = 64 / kDigitBits;
constexpr uint64_t kSign = uint64_t{1} << 63;

// Unsigned numbers in the order of the values.
uint64_t Ordered(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

double ValueOf(uint64_t ordered) { return std::bit_cast<double>((ordered & kSign) != 0 ? ordered & ~kSign : ~ordered); }

uint64_t DigitOf(uint64_t ordered, uint32_t digit) {
  return ordered >> (64 - kDigitBits * (digit + 1)) & ((uint64_t{1} << kDigitBits) - 1);
}

class Selection {
 public:
  explicit Selection(const ReadValues& read) : read_(read), counts_(uint64_t{1} << kDigitBits) {}

  uint64_t num_values() const { return num_values_; }
  uint64_t num_numbers() const { return num_numbers_; }

  // Counts the first digits, and all values.
  absl::Status Begin() {
    return read_([this](const double* values, uint64_t n) {
      num_values_ += n;
      for (uint64_t i = 0; i < n; ++i) {
        if (std::isnan(values[i])) continue;
        ++num_numbers_;
        ++counts_[DigitOf(Ordered(values[i]), 0)];
      }
    });
  }

  // Finds the number at a place, below num_numbers(); once.
  absl::Status Find(uint64_t place) {
    for (uint32_t digit = 0; digit < kNumDigits; ++digit) {
      if (digit != 0) QUERN_RETURN_IF_ERROR(Count(digit));
      uint64_t found = 0;
      while (num_before_ + counts_[found] <= place) num_before_ += counts_[found++];
      num_equal_ = counts_[found];
      prefix_ = prefix_ << kDigitBits | found;
    }
    return absl::OkStatus();
  }
  double found() const { return ValueOf(prefix_); }
  // How many numbers are not above it.
  uint64_t num_up_to_found() const { return num_before_ + num_equal_; }

  // The smallest number above it; there is one.
  absl::StatusOr<double> NextAbove() {
    uint64_t next = UINT64_MAX;
    QUERN_RETURN_IF_ERROR(read_([&](const double* values, uint64_t n) {
      for (uint64_t i = 0; i < n; ++i) {
        const uint64_t ordered = Ordered(values[i]);
        if (!std::isnan(values[i]) && ordered > prefix_) next = std::min(next, ordered);
      }
    }));
    return ValueOf(next);
  }

 private:
  absl::Status Count(uint32_t digit) {
    std::fill(counts_.begin(), counts_.end(), 0);
    return read_([this, digit](const double* values, uint64_t n) {
      for (uint64_t i = 0; i < n; ++i) {
        const uint64_t ordered = Ordered(values[i]);
        if (std::isnan(values[i]) || ordered >> (64 - kDigitBits * digit) != prefix_) continue;
        ++counts_[DigitOf(ordered, digit)];
      }
    });
  }

  const ReadValues& read_;
  std::vector<uint64_t> counts_;  // of the digit that is looked for
  uint64_t num_values_ = 0, num_numbers_ = 0;
  uint64_t prefix_ = 0;  // the digits that were found
  uint64_t num_before_ = 0, num_equal_ = 0;
};

}  // namespace

absl::StatusOr<std::optional<double>> SelectQuantileByCounting(const ReadValues& read, double quantile) {
  Selection selection(read);
  QUERN_RETURN_IF_ERROR(selection.Begin());
  if (selection.num_values() == 0) return std::nullopt;
  const double place = quantile * static_cast<double>(selection.num_values() - 1);
  const auto index = static_cast<uint64_t>(place);
  if (index >= selection.num_numbers()) return std::numeric_limits<double>::quiet_NaN();
  QUERN_RETURN_IF_ERROR(selection.Find(index));
  const double lower = selection.found(), fraction = place - static_cast<double>(index);
  if (fraction == 0) return lower;
  if (index + 1 >= selection.num_numbers()) return std::numeric_limits<double>::quiet_NaN();
  if (selection.num_up_to_found() > index + 1) return lower;
  QUERN_ASSIGN_OR_RETURN(const double upper, selection.NextAbove());
  return lower + (upper - lower) * fraction;
}

}  // namespace quern
