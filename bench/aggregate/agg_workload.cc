// SPDX-License-Identifier: Apache-2.0
// Row i belongs to group RandomBits(i + 1) * num_groups / 2^64, so 20 M rows touch 8.6 M of 10 M groups (every row
// misses a given group with probability 1/e^2). Values are not zero, because hardware may make stores of zeros cheap.
#include "bench/aggregate/agg_workload.h"

#include <cstring>

#include "bench/common/random_bits.h"

namespace quern::bench {
namespace {

uint64_t GroupOf(const AggWorkloadSpec& spec, uint64_t row) {
  const uint64_t point = spec.is_sorted
                             ? static_cast<uint64_t>((static_cast<unsigned __int128>(row) << 64) / spec.num_rows)
                             : RandomBits(row + 1);
  return static_cast<uint64_t>((static_cast<unsigned __int128>(point) * spec.num_groups) >> 64);
}

std::string Word(uint64_t group) {
  const uint64_t bits = RandomBits(group ^ 0x5eed);
  std::string word = std::to_string(group) + "abcdefghijklmnopqrstuvw";
  word.resize(8 + bits % 16);
  return word;
}

template <class T>
void Put(std::vector<uint8_t>* values, uint64_t i, T value) {
  std::memcpy(values->data() + i * sizeof(T), &value, sizeof(T));
}

}  // namespace

std::string KeyTypes(const std::vector<GroupKey>& keys) {
  std::string text;
  for (const GroupKey key : keys)
    text += (text.empty() ? "" : ",") + std::string(key == GroupKey::kText  ? "utf8"
                                                    : key == GroupKey::kI32 ? "i32"
                                                                            : "i64");
  return text;
}

AggWorkload::AggWorkload(const AggWorkloadSpec& spec) : spec_(spec), keys_(spec.keys.size()) {
  std::vector<uint64_t> groups(spec.num_rows);
  std::vector<bool> met(spec.num_groups);
  for (uint64_t i = 0; i < spec.num_rows; ++i) {
    groups[i] = GroupOf(spec, i);
    num_groups_met_ += !met[groups[i]];
    met[groups[i]] = true;
  }
  for (size_t k = 0; k < spec.keys.size(); ++k) MakeKey(spec.keys[k], groups, &keys_[k]);
  integers_.resize(spec.num_rows);
  numbers_.resize(spec.num_rows);
  for (uint64_t i = 0; i < spec.num_rows; ++i) {
    integers_[i] = static_cast<int64_t>(RandomBits(i + 7) % 1000 + 1);
    numbers_[i] = static_cast<double>(RandomBits(i + 9) % 100000 + 1) / 7;
  }
}

void AggWorkload::MakeKey(GroupKey kind, const std::vector<uint64_t>& groups, Key* key) const {
  if (kind == GroupKey::kText) {
    key->offsets.push_back(0);
    for (const uint64_t group : groups) {
      const std::string word = Word(group);
      key->values.insert(key->values.end(), word.begin(), word.end());
      key->offsets.push_back(static_cast<int32_t>(key->values.size()));
    }
    return;
  }
  key->values.resize(groups.size() * (kind == GroupKey::kI32 ? 4 : 8));
  for (uint64_t i = 0; i < groups.size(); ++i) {
    if (kind == GroupKey::kI32) Put(&key->values, i, static_cast<int32_t>(groups[i] * 0x9e3779b1u & 0x7fffffff));
    else Put(&key->values, i, kind == GroupKey::kDenseI64 ? groups[i] : RandomBits(groups[i] + 1) >> 1);
  }
}

BatchView AggWorkload::View(uint64_t first, uint64_t rows, const std::vector<ColumnType>& arguments) const {
  BatchView batch;
  for (size_t k = 0; k < keys_.size(); ++k) {
    QuernColumn column = {};
    const bool is_text = spec_.keys[k] == GroupKey::kText;
    column.values =
        is_text ? keys_[k].values.data() : keys_[k].values.data() + first * (spec_.keys[k] == GroupKey::kI32 ? 4 : 8);
    if (is_text) column.offsets = keys_[k].offsets.data() + first;
    batch.keys.push_back(column);
  }
  for (const ColumnType& type : arguments) {
    QuernColumn column = {};
    if (type.id == TypeId::kF64) column.values = numbers_.data() + first;
    else column.values = integers_.data() + first;
    batch.payload.push_back(column);
  }
  batch.num_rows = rows;
  batch.first_row_id = first;
  return batch;
}

}  // namespace quern::bench
