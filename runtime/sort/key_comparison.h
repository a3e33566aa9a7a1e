// SPDX-License-Identifier: Apache-2.0
// The order of two rows as a list of comparison keys: bits of key words, and the tails of strings that do not fit their
// key words.
#ifndef QUERN_RUNTIME_SORT_KEY_COMPARISON_H_
#define QUERN_RUNTIME_SORT_KEY_COMPARISON_H_

#include <cstdint>
#include <vector>

#include "runtime/abi/sort_abi.h"
#include "runtime/blocks/blocks.h"

namespace quern {

struct KeyComparison {
  static constexpr uint32_t kNoKey = 0xffffffffu;
  uint32_t word = 0;
  uint64_t mask = 0;           // the bits of `word` that are compared
  uint32_t tail_key = kNoKey;  // otherwise: the key whose tail is compared, what its words do not hold
  bool is_tail() const { return tail_key != kNoKey; }
};

// The comparison keys that order rows, the first one first. `incomplete`: the keys with values that do not fit their
// key words. The words of the keys after such a key are compared only after its tail: for keys=utf8,i64 and strings of
// 20 bytes, bytes 0 to 15, bytes 16 to 19, the number.
std::vector<KeyComparison> StepsOf(const QuernSortDescriptor& descriptor, uint32_t incomplete);

// The bytes of a key's string that are compared, from a tuple that holds the string; empty for a null.
blocks::Bytes SortBytes(const QuernSortDescriptor& descriptor, const QuernSortKey& key, const uint8_t* tuple);

// Compares the tails of two strings whose key words are equal: negative, 0 or positive, with the key's direction
// applied.
int CompareTails(const QuernSortDescriptor& descriptor, const QuernSortKey& key, const uint8_t* a, const uint8_t* b);

// One row; its word w is words[w * stride].
struct SortRow {
  const uint64_t* words;
  uint64_t stride;
  const uint8_t* tuple;  // null without tuples
};
// Returns a negative number, 0 or a positive number.
int CompareRows(const QuernSortDescriptor& descriptor, const std::vector<KeyComparison>& steps, const SortRow& a,
                const SortRow& b);

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_KEY_COMPARISON_H_
