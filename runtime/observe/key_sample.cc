// SPDX-License-Identifier: Apache-2.0
// Skew is estimated from how many rows of a sample share their key, in pairs and triples. If a row has key k with
// probability p_k, a pair of rows agrees with probability P2 = sum p_k^2 and a triple with P3 = sum p_k^3. Both can be
// estimated from a sample without bias, whether or not it contains the rare keys. The statistic is
//
//     R = P3^2 / P2^3        1/n if n keys are equally frequent; 1 if there is one key
//
// Rows with a key of their own, such as most rows of a probe without matches, do not change R: if they leave a share h
// of the rows, P2 is h^2 times and P3 h^3 times what it would be. Under Zipf's law with exponent s over n keys, and
// with H(s) = 1 + 2^-s + .. + n^-s, R is H(3s)^2 / H(2s)^3. The estimate is the s for which this is the R that was
// counted:
//
//     n = 1,000,000     s = 0       0.25      0.5       0.75      1         1.25
//                       R = 1e-6    1.9e-6    0.0023    0.12      0.32      0.51
//
// A sample of 32768 rows over a million equally frequent keys has 537 pairs and 6 triples. A few more triples may be
// chance: the exponent is 0 unless there are at least three standard deviations and 3 triples more than equally
// frequent keys give with as many pairs.
//
// Distinct keys are counted by HyperLogLog (Flajolet, Fusy, Gandouet, Meunier, AofA 2007) with 16384 registers: a
// standard error of 0.8 %.
#include "runtime/observe/key_sample.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "runtime/blocks/blocks.h"

namespace quern {
namespace {

constexpr double kMostZipf = 4;
constexpr uint32_t kExactTerms = 64;  // terms of a sum; an integral approximates the others
constexpr uint32_t kBisections = 20;

// 1 + 2^-s + .. + n^-s.
double PowerSum(double n, double s) {
  const auto exact = static_cast<uint32_t>(std::clamp(n, 1.0, double{kExactTerms}));
  double sum = 0;
  for (uint32_t k = 1; k <= exact; ++k) sum += std::pow(k, -s);
  if (n <= kExactTerms) return sum;
  const double from = kExactTerms + 0.5, to = n + 0.5;
  if (std::abs(s - 1) < 1e-9) return sum + std::log(to / from);
  return sum + (std::pow(to, 1 - s) - std::pow(from, 1 - s)) / (1 - s);
}

double RatioOf(double keys, double s) {
  return std::pow(PowerSum(keys, 3 * s), 2) / std::pow(PowerSum(keys, 2 * s), 3);
}

}  // namespace

// ---- rows ----

// The position of the chosen row within a stride varies, so that rows which repeat periodically are not sampled in
// phase.
uint64_t RowSample::Choose(uint64_t n, std::vector<uint32_t>* rows) {
  rows->clear();
  const uint64_t stride = stride_.load(std::memory_order_relaxed);
  for (uint64_t begin = 0; begin < n; begin += stride) {
    const uint64_t row = begin + NextBelow(stride);
    if (row < n) rows->push_back(static_cast<uint32_t>(row));
  }
  return stride;
}

// A number below n, which is a power of two. Which rows are sampled depends on their places alone, and is the same in
// each process.
uint64_t RowSample::NextBelow(uint64_t n) {
  if (n == 1) return 0;
  const uint64_t choice = num_choices_.fetch_add(1, std::memory_order_relaxed);
  return blocks::Mix(choice + blocks::kPublicHash[blocks::kCombine], blocks::kPublicHash) & (n - 1);
}

void RowSample::Add(const uint64_t* hashes, size_t n, uint64_t stride) {
  // Rows chosen by a stride smaller than the current one are thinned by the same factor.
  uint64_t rule = stride_.load(std::memory_order_relaxed);
  const uint64_t thinning = std::max<uint64_t>(rule / stride, 1);
  for (size_t i = 0; i < n; ++i)
    if (NextBelow(thinning) == 0) hashes_.push_back(hashes[i]);
  while (hashes_.size() > kMostRows) {
    const size_t num_pairs = hashes_.size() / 2;
    for (size_t i = 0; i < num_pairs; ++i) hashes_[i] = hashes_[2 * i + NextBelow(2)];
    hashes_.resize(num_pairs);
    rule *= 2;
  }
  stride_.store(rule, std::memory_order_relaxed);
}

// ---- keys ----

void DistinctCounter::Add(const uint64_t* hashes, size_t n) {
  constexpr uint32_t kRankBits = 64 - kRegisterBits;
  for (size_t i = 0; i < n; ++i) {
    std::atomic<uint8_t>& kept = ranks_[hashes[i] >> kRankBits];
    // The bit set behind the hash ends the count of zeros if the hash has only zeros.
    const uint64_t rest = hashes[i] << kRegisterBits | uint64_t{1} << (kRegisterBits - 1);
    const auto rank = static_cast<uint8_t>(std::countl_zero(rest) + 1);
    uint8_t before = kept.load(std::memory_order_relaxed);
    while (before < rank && !kept.compare_exchange_weak(before, rank, std::memory_order_relaxed)) {
    }
  }
}

double DistinctCounter::Estimate() const {
  constexpr double kRegisters = kNumRegisters, kAlpha = 0.7213 / (1 + 1.079 / kRegisters);
  double sum = 0, empty = 0;
  for (const std::atomic<uint8_t>& kept : ranks_) {
    const uint8_t rank = kept.load(std::memory_order_relaxed);
    sum += std::ldexp(1.0, -rank);
    empty += rank == 0;
  }
  const double raw = kAlpha * kRegisters * kRegisters / sum;
  const bool counts_empty = raw <= 2.5 * kRegisters && empty > 0;
  return counts_empty ? kRegisters * std::log(kRegisters / empty) : raw;
}

// ---- skew ----

double FitZipf(std::vector<uint64_t> hashes, double keys) {
  const auto m = static_cast<double>(hashes.size());
  if (m < 3 || keys < 2) return 0;
  std::sort(hashes.begin(), hashes.end());
  double pairs = 0, triples = 0;
  for (size_t begin = 0, end = 0; begin < hashes.size(); begin = end) {
    while (end < hashes.size() && hashes[end] == hashes[begin]) ++end;
    const auto c = static_cast<double>(end - begin);
    pairs += c * (c - 1) / 2;
    triples += c * (c - 1) * (c - 2) / 6;
  }
  const double pair_share = pairs / (m * (m - 1) / 2), all_triples = m * (m - 1) * (m - 2) / 6;
  const double alike_triples = all_triples * pair_share * pair_share;
  if (triples <= alike_triples + 3 * std::sqrt(alike_triples) + 3) return 0;
  const double ratio = std::pow(triples / all_triples, 2) / std::pow(pair_share, 3);
  if (ratio <= RatioOf(keys, 0)) return 0;
  double low = 0, high = kMostZipf;
  for (uint32_t i = 0; i < kBisections; ++i) {
    const double middle = (low + high) / 2;
    (RatioOf(keys, middle) < ratio ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace quern
