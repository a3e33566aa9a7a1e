// SPDX-License-Identifier: Apache-2.0
// Numbers the values of an aggregation's dictionary keys: a value has one number in the dictionaries of all batches,
// and groups are formed by these numbers. A value is hashed and compared once for each batch that uses it, not once a
// row. Values that a collation holds equal share a number, and the result shows the first of them that arrived.
#ifndef QUERN_RUNTIME_AGGREGATE_KEY_DICTIONARIES_H_
#define QUERN_RUNTIME_AGGREGATE_KEY_DICTIONARIES_H_

#include <array>
#include <bit>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "runtime/aggregate/tables/group_table.h"
#include "runtime/base/bytes.h"
#include "runtime/base/memory.h"
#include "runtime/spec/aggregation_spec.h"

namespace quern {

// Strings by number, which stay where they are: in segments, each twice as long as the one before.
// *Threads*: one adds at a time; others may read strings that have been added before.
class NumberedStrings {
 public:
  uint32_t size() const { return size_; }
  const std::string& operator[](uint32_t number) const {
    const Place place = PlaceOf(number);
    return segments_[place.segment][place.offset];
  }
  // *Errors*: std::bad_alloc, with nothing added.
  const std::string& Add(std::string_view value);

 private:
  static constexpr uint32_t kFirstBits = 6;
  struct Place {
    uint32_t segment;
    uint64_t offset;
  };
  static Place PlaceOf(uint32_t number) {
    const uint64_t from_first = uint64_t{number} + (uint64_t{1} << kFirstBits);
    const auto bits = static_cast<uint32_t>(std::bit_width(from_first)) - 1;
    return {bits - kFirstBits, from_first - (uint64_t{1} << bits)};
  }

  std::array<std::unique_ptr<std::string[]>, 33 - kFirstBits> segments_;
  uint32_t size_ = 0;
};

class KeyDictionaries {
 public:
  KeyDictionaries(const AggregationSpec& spec, std::shared_ptr<MemoryBudget> budget);
  ~KeyDictionaries();

  bool has(size_t key) const { return keys_[key] != nullptr; }
  bool has_any() const { return has_any_; }
  // What the values take, until the end of the aggregation.
  uint64_t bytes() const { return reserved_bytes_; }

  // Numbers by index, of one batch's dictionary; empty at first.
  typedef std::vector<uint32_t> Numbers;

  // Sets codes[row] to the number of the row's value for all rows that are not null; `codes` has an element for each
  // row of the column. column: a dictionary, or the values themselves where `is_plain`. numbers: what an earlier call
  // has left there for other rows of the same column. *Cost*: 1 ns a row, and 50 to 100 ns for each value of the
  // dictionary that the rows use. *Threads*: any. *Errors*: ResourceExhausted.
  absl::Status Encode(size_t key, const QuernColumn* column, bool is_plain, const KeyRows& rows, Numbers* numbers,
                      uint32_t* codes);

  // Of a number that Encode has returned to this thread, or to one that has handed it over. *Threads*: any, also while
  // others encode.
  std::string_view ValueOf(size_t key, uint32_t code) const { return keys_[key]->values[code]; }

 private:
  struct Key {
    ColumnType type;
    std::mutex mutex;
    NumberedStrings values;                 // as in the data; floats are normalised
    std::deque<std::string> equality_keys;  // by number, where the collation uses weights (collation.h)
    std::unordered_map<std::string_view, uint32_t>
        numbers;  // of equality keys, or of values without the spaces that PAD SPACE ignores
  };
  absl::Status NumberOf(Key* key, const QuernColumn* column, uint32_t row, uint32_t* number);
  absl::Status NumberOfString(Key* key, blocks::Bytes bytes, uint32_t* number);
  absl::Status NumberOfWeighed(Key* key, std::string_view value, CollationRule rule, uint32_t* number);
  absl::Status Add(Key* key, std::string_view value, size_t significant_bytes, uint32_t* number);
  absl::Status Reserve(uint64_t bytes);

  std::vector<std::unique_ptr<Key>> keys_;  // null: no dictionary
  bool has_any_ = false;
  std::shared_ptr<MemoryBudget> budget_;
  std::atomic<uint64_t> reserved_bytes_{0};
};

// Dictionaries of which one follows another when it is full. Groups that were formed by the numbers of one are written
// with their values before their thread goes on with the next, so that the memory of values is free once the last
// thread has left them. *Threads*: any.
class DictionarySeries {
 public:
  // spec: outlives the series.
  DictionarySeries(const AggregationSpec& spec, std::shared_ptr<MemoryBudget> budget);

  std::shared_ptr<KeyDictionaries> current() const;
  // Those that follow `full`, which another thread may have begun.
  std::shared_ptr<KeyDictionaries> After(const std::shared_ptr<KeyDictionaries>& full);
  // Begins the next ones, so that the current ones are freed with their last thread.
  void Drop() { After(current()); }

 private:
  const AggregationSpec& spec_;
  const std::shared_ptr<MemoryBudget> budget_;
  mutable std::mutex mutex_;
  std::shared_ptr<KeyDictionaries> current_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_KEY_DICTIONARIES_H_
