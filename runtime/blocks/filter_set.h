// SPDX-License-Identifier: Apache-2.0
// The values of a long IN list as a hash table: numbers by their bits, strings by the equality of their collation.
#ifndef QUERN_RUNTIME_BLOCKS_FILTER_SET_H_
#define QUERN_RUNTIME_BLOCKS_FILTER_SET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/blocks/blocks.h"

namespace quern {

class FilterSet {
 public:
  // Numbers of up to 128 bits: their low bytes are the values' bits, normalised as keys are.
  explicit FilterSet(std::vector<blocks::uint128_t> numbers);
  // Strings under the rule of a collation.
  FilterSet(std::vector<std::string> strings, CollationRule rule);

  // *Cost*: one or two multiplications and 1 to 2 slots; for strings also their hash.
  bool Has(blocks::uint128_t number) const;
  bool Has(blocks::Bytes s) const;

 private:
  // Calls f(index of the value) until it returns true; returns false if it never does.
  template <class F>
  bool Find(uint64_t hash, F f) const;
  void Insert(uint64_t hash, uint32_t index);

  std::vector<blocks::uint128_t> numbers_;
  std::vector<std::string> strings_;
  CollationRule rule_ = 0;
  std::vector<uint32_t> slots_;  // a power of two, at least twice as many as values; index + 1
};

}  // namespace quern

#endif  // QUERN_RUNTIME_BLOCKS_FILTER_SET_H_
