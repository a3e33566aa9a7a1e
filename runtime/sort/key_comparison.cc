// SPDX-License-Identifier: Apache-2.0
// Words order rows only if they hold the whole key. Two rows of keys=utf8,i64, whose strings differ in their 18th byte:
//
//     "Manufacturer#1 B2", 9       words  "Manufact" "urer#1 B" 9
//     "Manufacturer#1 B1 ", 8      words  "Manufact" "urer#1 B" 8
//
// By words alone the second row comes first; by the rest of its string it does as well here, but need not. The
// comparison keys of this spec are therefore word 0, word 1, the string's tail, word 2. If no value is longer than its
// words (which encoding finds out), there are no tails, and each comparison key is a word.
//
// How a tail is compared depends on the string's collation: as bytes and then the length; as bytes followed by endless
// spaces; or by the rest of the order key. The order key is not stored, so in that case whole strings are compared.
#include "runtime/sort/key_comparison.h"

#include "runtime/blocks/encode.h"
#include "runtime/collation/collation.h"

namespace quern {

std::vector<KeyComparison> StepsOf(const QuernSortDescriptor& descriptor, uint32_t incomplete) {
  std::vector<KeyComparison> steps;
  KeyComparison step;
  const auto end_step = [&] {
    if (step.mask != 0) steps.push_back(step);
    step.mask = 0;
  };
  for (uint32_t p = 0; p < descriptor.num_parts; ++p) {
    const QuernSortPart& part = descriptor.parts[p];
    if (part.word != step.word) end_step();
    step.word = part.word;
    step.mask |= SortPartMask(&part);
    const bool ends_key = p + 1 == descriptor.num_parts || descriptor.parts[p + 1].key != part.key;
    if (!ends_key || (incomplete >> part.key & 1) == 0) continue;
    end_step();
    KeyComparison tail;
    tail.tail_key = part.key;
    steps.push_back(tail);
  }
  end_step();
  return steps;
}

blocks::Bytes SortBytes(const QuernSortDescriptor& descriptor, const QuernSortKey& key, const uint8_t* tuple) {
  const QuernField& field = *SortFieldOf(&descriptor, &key);
  if (field.null_mask != 0 && (tuple[field.null_offset] & field.null_mask) != 0) return {nullptr, 0};
  if (key.storage == kFixed) return {tuple + field.tuple_offset, key.width_bytes};
  const blocks::Bytes bytes = blocks::BytesOf(tuple + field.tuple_offset, 0);
  return (key.rule & kTrimsSpaces) != 0 ? blocks::TrimSpaces(bytes) : bytes;
}

int CompareTails(const QuernSortDescriptor& descriptor, const QuernSortKey& key, const uint8_t* a, const uint8_t* b) {
  const blocks::Bytes x = SortBytes(descriptor, key, a), y = SortBytes(descriptor, key, b);
  // The first bytes of order keys do not determine where in the strings the rest begins.
  const bool weighs = (key.rule & kWeighsOrder) != 0;
  const int order = weighs ? CompareStrings(x, y, key.rule) : blocks::OrderBytes(x, y, kSortPrefixBytes, key.rule);
  return order == 0 ? 0 : (order < 0) != key.descending ? -1 : 1;
}

int CompareRows(const QuernSortDescriptor& descriptor, const std::vector<KeyComparison>& steps, const SortRow& a,
                const SortRow& b) {
  for (const KeyComparison& step : steps) {
    if (step.is_tail()) {
      const int order = CompareTails(descriptor, descriptor.keys[step.tail_key], a.tuple, b.tuple);
      if (order != 0) return order;
      continue;
    }
    const uint64_t x = a.words[step.word * a.stride] & step.mask, y = b.words[step.word * b.stride] & step.mask;
    if (x != y) return x < y ? -1 : 1;
  }
  return 0;
}

}  // namespace quern
