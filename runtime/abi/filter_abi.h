// SPDX-License-Identifier: Apache-2.0
// What filter kernels and their callers speak, beside kernel_abi.h, whose rules hold here too.
//
// A batch is tested in pieces of up to kMaxBatchRows rows. Each leaf of the condition clears bits of a mask of 64 rows
// a word: of the rows that are left it asks those that it can ask cheaply (all of them, eight numbers at a time) or one
// by one (strings), and words that are 0 are stepped over. `and` is one leaf after the other over one mask; `or` asks
// the second of the rows that the first refused; `not` is moved to the leaves beforehand, which all refuse nulls.
#ifndef QUERN_RUNTIME_ABI_FILTER_ABI_H_
#define QUERN_RUNTIME_ABI_FILTER_ABI_H_

#include "runtime/abi/kernel_abi.h"

constexpr uint32_t kMaskWords = kMaxBatchRows / 64;

enum FilterLeafKind : uint8_t {
  kNullLeaf,     // is null
  kRangeLeaf,    // a number: value - low <= span, unsigned, of the value's width (bool: value == low)
  kColumnsLeaf,  // two columns
  kEqualLeaf,    // a string = constant
  kOrderLeaf,    // a string OP constant
  kPartsLeaf,    // LIKE whose pattern is parts between '%'
  kPatternLeaf,  // LIKE, any pattern: `object` is a LikePattern
  kSetLeaf,      // IN of many: `object` is a FilterSet
};

// Where a LIKE's part lies in its leaf's constants, at whose beginning these stand: prefix, suffix, then those between
// in order. At `offset` the part's bytes, behind them as many masks: a byte b of a row is taken where (b | mask) ==
// byte, so that a mask of 0x20 over a small letter takes both cases. The bytes `first` and `second` of the part are its
// rarest.
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
  CollationRule
      rule;  // parts: kFoldsAscii where rows beyond U+0020 .. U+007E are to be asked of `object`, a LikePattern; else 0
  uint32_t column;  // of QuernFilterArgs.columns
  uint32_t other_column;
  uint32_t width_bytes;  // kFixed: n
  uint64_t
      low[2];  // ranges: lower half, upper half. Equal: what a view of the constant is, 16 bytes. Order: [0] LeadWord
  uint64_t span[2];  // ranges likewise. Equal: masks of these 16 bytes
  // Equal: `length` bytes and as many masks (see above), then at text_offset the constant as it is written. kNoLength:
  // no string of U+0020 to U+007E is equal. Order: the constant at text_offset. Parts: QuernLikePart.
  const uint8_t* constants;
  uint32_t constants_bytes;
  uint32_t length;
  uint32_t text_offset;
  uint32_t text_length;
  uint32_t num_parts;  // parts: those between prefix and suffix
  uint32_t min_length;
  const void* object;
};
constexpr uint32_t kNoLength = 0xffffffffu;

enum FilterStepKind : uint8_t {
  kTestValid,  // mask[to] &= column `column` has a value
  kTestLeaf,   // mask[to] &= leaf
  kClearMask,  // mask[to] = 0
  kSplitMask,  // mask[from] = mask[to], mask[to] = 0: `or` begins; mask[from] is what is yet to be asked
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
// interpret it, and what leaves leave to the runtime reads it.
struct QuernFilterDescriptor {
  uint32_t num_steps;
  uint32_t num_leaves;
  uint32_t num_columns;
  uint32_t num_masks;
  uint32_t batch_rows;  // a multiple of 64
  bool prefetches;      // strings that are compared after all lengths
  const QuernMaskOperation* steps;
  const QuernFilterLeaf* leaves;
};

struct QuernFilterArgs {
  const QuernFilterDescriptor* descriptor;
  const QuernColumn* columns;  // one for each column that the condition mentions
  const uint32_t* selection;   // nullptr: rows 0 .. num_rows-1
  uint64_t num_rows;
  uint64_t* mask;     // out: (num_rows + 63) / 64 words; bits beyond the last row are 0
  uint64_t num_true;  // out
  void* memo;         // what is known of dictionaries' values: a FilterMemo of the call
};

// The entry points of one filter kernel; generic and compiled kernels fill the same struct.
struct QuernFilterEntryPoints {
  void (*mask)(QuernFilterArgs* args);
};

#endif  // QUERN_RUNTIME_ABI_FILTER_ABI_H_
