// SPDX-License-Identifier: Apache-2.0
// A key is a function of its number, and the functions are bijections: the numbers 0 .. n-1 are the distinct keys of
// the build side, and a number n + i is certainly none of them. So a side is made in one pass without a set of the keys
// so far, and the result is known:
//
//     build rows 8, 2 rows a key     numbers 0 1 2 3 0 1 2 3
//     probe rows 4, 50 % hits        numbers 2 0 6 5             2 hits x 2 rows = 4 pairs; keys 1 and 3 never match
//
//     sparse i64     number 2 -> 0x975835de1c9756ce              SplitMix64's bijection of 64 bits
//     text of 16     number 2 -> "hWqtKPmFx0Zc9eB_"              8 characters are a bijection of 48 bits, 8 are random
#include "bench/join/join_workload.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <utility>

namespace quern::bench {
namespace {

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;
constexpr uint64_t k48Bits = (uint64_t{1} << 48) - 1;

// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): not the hash of the join, so that keys are random with respect to it.
uint64_t SplitMix(uint64_t x) {
  x = (x + 1) * kGolden;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t Scatter48(uint64_t x) {
  x = ((x + 1) * kGolden) & k48Bits;
  x = ((x ^ (x >> 24)) * 0xbf58476d1ce4e5b9u) & k48Bits;
  return x ^ (x >> 23);
}

void PutText(uint64_t number, uint32_t bytes, uint8_t* to) {
  static constexpr char kCharacters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
  for (uint32_t at = 0; at < bytes; at += 8) {
    const uint64_t bits = at == 0 ? Scatter48(number) : SplitMix(number * kGolden + at);
    for (uint32_t i = 0; i < 8; ++i) to[at + i] = static_cast<uint8_t>(kCharacters[(bits >> (6 * i)) & 63]);
  }
}

double Uniform(uint64_t random) { return (static_cast<double>(random >> 11) + 1) * 0x1p-53; }  // above 0, at most 1

// Rejection method from Devroye, "Non-Uniform Random Variate Generation", 1986, chapter X.6.1. exponent: above 1.
uint64_t Zipf(double exponent, uint64_t n, std::mt19937_64* random) {
  const double s1 = exponent - 1, b = std::pow(2.0, s1);
  for (;;) {
    const double u = Uniform((*random)()), v = Uniform((*random)());
    const double x = std::floor(std::pow(u, -1 / s1));
    const double t = std::pow(1 + 1 / x, s1);
    if (x <= static_cast<double>(n) && v * x * (t - 1) / (b - 1) <= t / b) return static_cast<uint64_t>(x) - 1;
  }
}

}  // namespace

std::string KeyType(KeyKind keys) {
  switch (keys) {
    case KeyKind::kSequentialI32:
    case KeyKind::kDenseI32: return "i32";
    case KeyKind::kSparseI64: return "i64";
    case KeyKind::kText: return "utf8";
  }
  return "";
}

JoinWorkload::JoinWorkload(const WorkloadSpec& spec)
    : spec_(spec), num_keys_(std::max<uint64_t>(spec.build_rows / spec.rows_per_key, 1)) {
  MakeBuild();
  MakeProbe();
  payload_.resize(spec_.payload_columns);
  for (size_t column = 0; column < payload_.size(); ++column) {
    payload_[column].resize(std::max(spec_.build_rows, spec_.probe_rows));
    for (uint64_t row = 0; row < payload_[column].size(); ++row) payload_[column][row] = SplitMix(row * 8 + column);
  }
}

void JoinWorkload::Reserve(Keys* keys, uint64_t rows) const {
  keys->width_bytes = spec_.keys == KeyKind::kText ? 0 : spec_.keys == KeyKind::kSparseI64 ? 8 : 4;
  keys->values.resize(rows * (keys->width_bytes == 0 ? spec_.text_bytes : keys->width_bytes));
  if (spec_.keys != KeyKind::kText) return;
  keys->offsets.resize(rows + 1);
  for (uint64_t row = 0; row <= rows; ++row) keys->offsets[row] = static_cast<int32_t>(row * spec_.text_bytes);
}

void JoinWorkload::PutKey(Keys* keys, uint64_t row, uint64_t number) const {
  if (keys->width_bytes == 0) return PutText(number, spec_.text_bytes, keys->values.data() + row * spec_.text_bytes);
  const uint64_t key = spec_.keys == KeyKind::kSparseI64 ? SplitMix(number) : number;
  std::memcpy(keys->values.data() + row * keys->width_bytes, &key, keys->width_bytes);
}

void JoinWorkload::MakeBuild() {
  Reserve(&build_, spec_.build_rows);
  std::vector<uint32_t> order;
  if (spec_.keys == KeyKind::kDenseI32) {
    order.resize(num_keys_);
    for (uint32_t i = 0; i < num_keys_; ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), std::mt19937_64(spec_.build_rows));
  }
  for (uint64_t row = 0; row < spec_.build_rows; ++row) {
    const uint64_t number = row % num_keys_;
    PutKey(&build_, row, order.empty() ? number : order[number]);
  }
}

void JoinWorkload::MakeProbe() {
  Reserve(&probe_, spec_.probe_rows);
  std::mt19937_64 random(spec_.build_rows + spec_.probe_rows);  // the same in every run
  std::vector<bool> met(num_keys_);
  for (uint64_t row = 0; row < spec_.probe_rows; ++row) {
    uint64_t number = 0;
    if (spec_.keys == KeyKind::kSequentialI32) number = row % num_keys_;
    else if (spec_.zipf > 1) number = Zipf(spec_.zipf, num_keys_, &random);
    else number = random() % num_keys_;
    if (spec_.hits_percent < 100 && random() % 100 >= spec_.hits_percent) number += num_keys_;
    PutKey(&probe_, row, number);
    if (number >= num_keys_) continue;
    ++num_hits_;
    num_keys_hit_ += met[number] ? 0 : 1;
    met[number] = true;
  }
}

BatchView JoinWorkload::View(const Keys& keys, uint64_t first, uint64_t rows, size_t payload_columns) const {
  BatchView batch;
  batch.num_rows = rows;
  QuernColumn key = {};
  key.values = keys.values.data() + first * keys.width_bytes;
  if (keys.width_bytes == 0) key.offsets = keys.offsets.data() + first;
  batch.keys.push_back(key);
  for (size_t i = 0; i < payload_columns; ++i) {
    QuernColumn column = {};
    column.values = payload_[i].data() + first;
    batch.payload.push_back(column);
  }
  return batch;
}

uint64_t JoinWorkload::ResultRows(JoinKind kind) const {
  const JoinKindRow& row = RowOf(kind);
  const uint64_t met_rows =
      num_keys_hit_ * spec_.rows_per_key;  // of the build side, whose number of rows is a multiple of rows_per_key
  const auto alone = [](RowsOut which, uint64_t matched, uint64_t all) -> uint64_t {
    switch (which) {
      case RowsOut::kNever: return 0;
      case RowsOut::kMatched: return matched;
      case RowsOut::kUnmatched: return all - matched;
      case RowsOut::kAlways: return all;
    }
    return 0;
  };
  return (row.pairs ? num_hits_ * spec_.rows_per_key : 0) + alone(row.probe_row, num_hits_, spec_.probe_rows) +
         alone(row.build_row, met_rows, spec_.build_rows);
}

}  // namespace quern::bench
