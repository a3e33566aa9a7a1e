// SPDX-License-Identifier: Apache-2.0
// The interface between filter kernels and their callers. It adds to kernel_abi.h, whose rules hold here too.
//
// A batch is tested in pieces of up to kMaxBatchRows rows. A piece has a mask with one bit a row, 64 rows in a word,
// and each leaf of the condition clears bits of it. Leaves that are cheap test all rows, eight numbers at a time;
// leaves on strings test only the rows that are left, one by one, and skip words that are 0. `and` applies its leaves
// to one mask, one after the other; `or` tests its second part only on rows that the first part rejected; `not` is
// moved to the leaves beforehand, and every leaf rejects nulls.
#ifndef QUERN_RUNTIME_ABI_FILTER_ABI_H_
#define QUERN_RUNTIME_ABI_FILTER_ABI_H_

#include "runtime/abi/kernel_abi.h"

constexpr uint32_t kMaskWords = kMaxBatchRows / 64;

enum FilterLeafKind : uint8_t {
  kNullLeaf,     // is null
  kRangeLeaf,    // a number: value - low <= span, unsigned, in the value's width (bool: value == low)
  kColumnsLeaf,  // two columns
  kEqualLeaf,    // a string = constant
  kOrderLeaf,    // a string OP constant
  kPartsLeaf,    // LIKE with a pattern of literal parts between '%'
  kPatternLeaf,  // LIKE, any pattern: `object` is a LikePattern
  kSetLeaf,      // IN with many values: `object` is a FilterSet
};

// Where a part of a LIKE pattern lies in its leaf's constants. The constants begin with one of these structs for each
// part: prefix, suffix, then the inner parts in order. At `offset` lie the part's bytes, followed by one mask for each
// byte: byte b of a row matches where (b | mask) == byte, so that a mask of 0x20 over a small letter matches both
// cases. `first` and `second` are the positions of the part's two rarest bytes.
struct QuernLikePart {
  uint32_t offset;
  uint32_t length;
  uint32_t first;
  uint32_t second;
};

struct QuernFilterLeaf {
  FilterLeafKind kind;
  Storage storage;        // of a value: key_storage
  Storage index_storage;  // dictionary columns: of an index; else kNoStorage
  Storage other_index_storage;
  bool is_signed;
  bool negated;        // all kinds but columns and order
  uint8_t comparison;  // columns and order: a Comparison of spec.h
  bool is_whole;       // parts: the prefix is all of the pattern
  // parts: kFoldsAscii where rows beyond U+0020 to U+007E are tested by `object`, a LikePattern; else 0
  CollationRule rule;
  uint32_t column;  // of QuernFilterArgs.columns
  uint32_t other_column;
  uint32_t width_bytes;  // kFixed: n
  // Ranges: lower half, upper half. Equal: the constant as a 16-byte view. Order: [0] is its LeadWord.
  uint64_t low[2];
  uint64_t span[2];  // ranges: likewise. Equal: masks of these 16 bytes
  // Equal: `length` bytes and as many masks (see above), then, at text_offset, the constant as written; a length of
  // kNoLength means that no string of U+0020 to U+007E is equal. Order: the constant at text_offset. Parts:
  // QuernLikePart.
  const uint8_t* constants;
  uint32_t constants_bytes;
  uint32_t length;
  uint32_t text_offset;
  uint32_t text_length;
  uint32_t num_parts;  // parts: the inner ones, without prefix and suffix
  uint32_t min_length;
  const void* object;
};
constexpr uint32_t kNoLength = 0xffffffffu;

enum FilterStepKind : uint8_t {
  kTestValid,  // mask[to] &= column `column` has a value
  kTestLeaf,   // mask[to] &= leaf
  kClearMask,  // mask[to] = 0
  kSplitMask,  // mask[from] = mask[to], mask[to] = 0: `or` begins; mask[from] holds the rows yet to be tested
  kCopyMask,   // mask[to] = mask[from]
  kKeepMask,   // mask[to] |= mask[from], mask[todo] &= ~mask[from]: one of its children is done
  kMergeMask,  // mask[to] |= mask[from]: its last child is done
};

struct QuernMaskOperation {
  FilterStepKind kind;
  uint32_t leaf;
  uint32_t column;
  uint32_t to;
  uint32_t from;
  uint32_t todo;
};

// What a filter kernel is specialised for; built by FilterDescriptor. Emitters unroll over it, generic kernels
// interpret it, and the runtime reads it for rows that kernels leave to it.
struct QuernFilterDescriptor {
  uint32_t num_steps;
  uint32_t num_leaves;
  uint32_t num_columns;
  uint32_t num_masks;
  uint32_t batch_rows;  // a multiple of 64
  bool prefetches;      // strings that are compared after all lengths
  uint32_t input_rows;  // prefetch distance of numbers that are read in order; 0: none
  const QuernMaskOperation* steps;
  const QuernFilterLeaf* leaves;
};

struct QuernFilterArgs {
  const QuernFilterDescriptor* descriptor;
  const QuernColumn* columns;  // one for each mention of a column in the condition
  const uint32_t* selection;   // nullptr: rows 0 .. num_rows-1
  uint64_t num_rows;
  uint64_t num_following;  // rows of the columns behind these, which are tested next; without a selection
  uint64_t* mask;          // out: (num_rows + 63) / 64 words; bits beyond the last row are 0
  uint64_t num_true;       // out
  void* memo;              // results for dictionary values: the call's FilterMemo
};

// The entry points of one filter kernel; generic and compiled kernels fill the same struct.
struct QuernFilterEntryPoints {
  void (*mask)(QuernFilterArgs* args);
};

#endif  // QUERN_RUNTIME_ABI_FILTER_ABI_H_
