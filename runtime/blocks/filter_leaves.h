// SPDX-License-Identifier: Apache-2.0
// Leaves of filters row by row, for rows that blocks leave to the runtime (filter_leaves.cc).
#ifndef QUERN_RUNTIME_BLOCKS_FILTER_LEAVES_H_
#define QUERN_RUNTIME_BLOCKS_FILTER_LEAVES_H_

#include <cstdint>
#include <vector>

#include "runtime/abi/filter_abi.h"
#include "runtime/blocks/blocks.h"

namespace quern {

// The results of leaves for dictionaries' values, each tested once per call of a filter. The caller of a kernel makes
// one for each call.
struct FilterMemo {
  enum Truth : uint8_t { kUnknown, kPrefetched, kFalse, kTrue };
  std::vector<std::vector<uint8_t>> truths;  // by leaf, by row of the dictionary
};

// A leaf's rows: row i of the piece is rows ? rows[i] : first + i of `column`.
struct LeafRows {
  const QuernFilterLeaf& leaf;
  const QuernColumn* column;
  const QuernColumn* other;
  uint64_t first;
  const uint32_t* rows;
  uint32_t n;
  uint64_t* mask;
  bool prefetches;
  uint64_t rows_ahead;  // blocks::FilterRowsAhead

  uint32_t RowAt(uint32_t i) const { return blocks::RowAt(rows, first, i); }
};

// Rows first .. first+n-1 of args' batch, or of its selection.
LeafRows RowsOf(const QuernFilterArgs* args, uint32_t leaf, uint64_t first, uint32_t n, uint64_t* mask);

// Clears the bits of rows that the leaf rejects; rows whose bits are set must have values.
void TestLeafRows(const QuernFilterArgs* args, uint32_t leaf, const LeafRows& rows);

}  // namespace quern

#endif  // QUERN_RUNTIME_BLOCKS_FILTER_LEAVES_H_
