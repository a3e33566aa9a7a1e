// SPDX-License-Identifier: Apache-2.0
// Two batches may bring the same values in dictionaries of different order:
//
//     batch 1: indices 0 1 1, values "air" "rail"          numbers  0 1 1
//     batch 2: indices 0 1 2, values "rail" "ship" "air"   numbers  1 2 0
//
// For each batch, a table from its indices to numbers is filled as indices occur, so only the part of a large
// dictionary that is in use costs anything. The table is not kept for the next batch, because the same address may by
// then hold another dictionary.
#include "runtime/aggregate/key_dictionaries.h"

#include <algorithm>

#include "runtime/base/status.h"
#include "runtime/blocks/blocks.h"
#include "runtime/blocks/storage_dispatch.h"
#include "runtime/collation/collation.h"

namespace quern {
namespace {

constexpr uint32_t kUnknown = UINT32_MAX;
constexpr uint64_t kBytesPerValue = 112;  // for up to two strings and an entry of the map, apart from the bytes

}  // namespace

const std::string& NumberedStrings::Add(std::string_view value) {
  const Place place = PlaceOf(size_);
  std::unique_ptr<std::string[]>& segment = segments_[place.segment];
  if (segment == nullptr) segment = std::make_unique<std::string[]>(uint64_t{1} << (place.segment + kFirstBits));
  segment[place.offset] = value;
  ++size_;
  return segment[place.offset];
}

KeyDictionaries::KeyDictionaries(const AggregationSpec& spec, std::shared_ptr<MemoryBudget> budget)
    : budget_(std::move(budget)) {
  for (const KeySpec& key : spec.keys) {
    keys_.push_back(key.type.is_dictionary ? std::make_unique<Key>() : nullptr);
    if (!key.type.is_dictionary) continue;
    keys_.back()->type = key.type;
    has_any_ = true;
  }
}

KeyDictionaries::~KeyDictionaries() {
  if (budget_) budget_->Release(reserved_bytes_);
}

absl::Status KeyDictionaries::Reserve(uint64_t bytes) {
  if (budget_) QUERN_RETURN_IF_ERROR(budget_->Reserve(bytes));
  reserved_bytes_ += bytes;
  return absl::OkStatus();
}

absl::Status KeyDictionaries::Add(Key* key, std::string_view value, size_t significant_bytes, uint32_t* number) {
  const auto found = key->numbers.find(value.substr(0, significant_bytes));
  if (found != key->numbers.end()) {
    *number = found->second;
    return absl::OkStatus();
  }
  QUERN_RETURN_IF_ERROR(Reserve(value.size() + kBytesPerValue));
  *number = key->values.size();
  key->numbers.emplace(std::string_view(key->values.Add(value)).substr(0, significant_bytes), *number);
  return absl::OkStatus();
}

// Strings with one equality key are one value. The key is made once per dictionary value and batch.
absl::Status KeyDictionaries::NumberOfWeighed(Key* key, std::string_view value, CollationRule rule, uint32_t* number) {
  std::string equality_key;
  AppendEqualityKey({reinterpret_cast<const uint8_t*>(value.data()), static_cast<uint32_t>(value.size())}, rule,
                    &equality_key);
  const auto found = key->numbers.find(equality_key);
  if (found != key->numbers.end()) {
    *number = found->second;
    return absl::OkStatus();
  }
  QUERN_RETURN_IF_ERROR(Reserve(value.size() + equality_key.size() + kBytesPerValue));
  *number = key->values.size();
  key->values.Add(value);
  key->equality_keys.push_back(std::move(equality_key));
  key->numbers.emplace(key->equality_keys.back(), *number);
  return absl::OkStatus();
}

absl::Status KeyDictionaries::NumberOfString(Key* key, blocks::Bytes bytes, uint32_t* number) {
  const CollationRule rule = RuleOf(key->type.collation);
  const std::string_view value(reinterpret_cast<const char*>(bytes.data), bytes.length);
  if ((rule & kWeighsEquality) != 0) return NumberOfWeighed(key, value, rule, number);
  return Add(key, value, blocks::Trimmed(bytes, rule).length, number);
}

absl::Status KeyDictionaries::NumberOf(Key* key, const QuernColumn* column, uint32_t row, uint32_t* number) {
  const TypeRow& type = RowOf(key->type.id);
  return DispatchStorage(type.key_storage, [&](auto tag) {
    constexpr Storage kStorage = decltype(tag)::value;
    if constexpr (blocks::IsVariableStorage(kStorage) || kStorage == kFixed) {
      return NumberOfString(key, blocks::ReadBytes<kStorage>(column, row, 0, key->type.width_bytes), number);
    } else {
      const auto value = blocks::ReaderOf<kStorage>::Read(column, row);
      return Add(key, {reinterpret_cast<const char*>(&value), sizeof(value)}, sizeof(value), number);
    }
  });
}

absl::Status KeyDictionaries::Encode(size_t key_number, const QuernColumn* column, bool is_plain, const KeyRows& rows,
                                     Numbers* by_index, uint32_t* codes) {
  Key* key = keys_[key_number].get();
  const Storage index = RowOf(key->type.index).storage;
  const QuernColumn* values = is_plain ? column : column->dictionary;
  Numbers& numbers = *by_index;
  const std::lock_guard<std::mutex> lock(key->mutex);
  for (uint32_t i = 0; i < rows.n; ++i) {
    const uint32_t row = blocks::RowAt(rows.rows, rows.first, i);
    if (!blocks::IsValid(column, row)) continue;
    if (is_plain) {
      QUERN_RETURN_IF_ERROR(NumberOf(key, values, row, &codes[row]));
      continue;
    }
    const uint32_t at = TranslateRow(index, column, row);
    if (at >= numbers.size()) numbers.resize(std::max<size_t>(size_t{at} + 1, numbers.size() * 2), kUnknown);
    if (numbers[at] == kUnknown) QUERN_RETURN_IF_ERROR(NumberOf(key, values, at, &numbers[at]));
    codes[row] = numbers[at];
  }
  return absl::OkStatus();
}

DictionarySeries::DictionarySeries(const AggregationSpec& spec, std::shared_ptr<MemoryBudget> budget)
    : spec_(spec), budget_(std::move(budget)), current_(std::make_shared<KeyDictionaries>(spec_, budget_)) {}

std::shared_ptr<KeyDictionaries> DictionarySeries::current() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return current_;
}

std::shared_ptr<KeyDictionaries> DictionarySeries::After(const std::shared_ptr<KeyDictionaries>& full) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (current_ == full) current_ = std::make_shared<KeyDictionaries>(spec_, budget_);
  return current_;
}

}  // namespace quern
