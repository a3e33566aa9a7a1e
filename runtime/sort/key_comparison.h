// SPDX-License-Identifier: Apache-2.0
// The order of two rows, step by step: bits of words, and the rest of strings whose words do not say all.
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
  uint64_t mask = 0;           // the bits of `word` that count
  uint32_t tail_key = kNoKey;  // or: what of this key's string is not in its words
  bool is_tail() const { return tail_key != kNoKey; }
};

// The steps that decide the order of rows, first one first. `incomplete`: the keys with values that their words do not
// say whole. The words of keys after such a one count only after its tail: for keys=utf8,i64 and strings of 20 bytes,
// bytes 0 to 15, bytes 16 to 19, the number.
std::vector<KeyComparison> StepsOf(const QuernSortDescriptor& descriptor, uint32_t incomplete);

// A key's string as it counts, from a tuple that holds it; empty for a null.
blocks::Bytes SortBytes(const QuernSortDescriptor& descriptor, const QuernSortKey& key, const uint8_t* tuple);

// What of two strings the words do not say, whose words are equal: negative, 0 or positive, the key's direction
// included.
int CompareTails(const QuernSortDescriptor& descriptor, const QuernSortKey& key, const uint8_t* a, const uint8_t* b);

// One row: word w is words[w * stride].
struct SortRow {
  const uint64_t* words;
  uint64_t stride;
  const uint8_t* tuple;  // null where there are none
};
// Negative, 0 or positive.
int CompareRows(const QuernSortDescriptor& descriptor, const std::vector<KeyComparison>& steps, const SortRow& a,
                const SortRow& b);

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_KEY_COMPARISON_H_
