// SPDX-License-Identifier: Apache-2.0
// The interface between kernels and their callers: plain structs, no behaviour. Generated code, IR templates, generic
// kernels and the runtime's state include this file and nothing larger. Whoever changes a layout here changes
// kKernelAbiVersion too, which is part of every cache key.
//
// A row that an operator keeps is a *tuple*: its keys, then its other fields, then its null bits, in `tuple_bytes`
// bytes:
//
//     keys i64, utf8          field f64              null bits
//     +-----------------+--------+--------+----------+
//     | key 1 StringRef | key 0  | field 0| 1 byte.. |      the widest come first; tuples are multiples of the widest
//     +-----------------+--------+--------+----------+      alignment (at most 8)
//
// Keys that together fit one machine word are *packed keys*: they are packed into a word, the first key in the lowest
// bits. The word is hashed, compared and stored, in the first 4 or 8 bytes of the tuple.
//
// join_abi.h, aggregate_abi.h, sort_abi.h and filter_abi.h add what belongs to one operator.
#ifndef QUERN_RUNTIME_ABI_KERNEL_ABI_H_
#define QUERN_RUNTIME_ABI_KERNEL_ABI_H_

#include <stddef.h>
#include <stdint.h>

constexpr uint32_t kKernelAbiVersion = 9;

// Upper bounds of a plan's choices; buffers between the stages of a kernel have these sizes.
constexpr uint32_t kMaxBatchRows = 4096;
constexpr uint32_t kMaxPrefetchDistance = 512;
constexpr uint32_t kMaxKeys = 16;
constexpr uint32_t kMaxPayloadColumns = 1024;

// The row number that stands for null after rows were translated through a dictionary.
constexpr uint32_t kNullRow = 0xffffffffu;
// The result of the hole filter_rows when every row of the batch stays and none was written.
constexpr uint32_t kAllRows = 0xffffffffu;

// A directory entry has the offset in its upper bits and the tag in its lower bits. A tuple's tag has 4 of 16 bits set;
// the lowest bits of its hash select it from a table of all 1820 such patterns (the slot comes from the highest bits).
// An entry's tag is the union of its tuples' tags. With one tuple in the slot, 1 in 1820 strangers passes.
constexpr uint32_t kTagBits = 16;
constexpr uint64_t kTagMask = (uint64_t{1} << kTagBits) - 1;
constexpr uint32_t kNumTags = 2048;
inline __attribute__((always_inline)) uint64_t TagOf(const uint16_t* tags, uint64_t hash) {
  return tags[hash % kNumTags];
}

enum Storage : uint8_t {
#define QUERN_STORAGE(Id, text, field_bytes) Id,
#include "runtime/abi/storages.def"
  kNoStorage = 255,
};

// One column of one batch. Row r is element r of the buffers, except in bitmaps, where it is bit `bit_offset + r`.
struct QuernColumn {
  const uint8_t* validity;        // bit set: the row has a value. nullptr: every row has one.
  const void* values;             // fixed width: elements; bool: bitmap; var: the bytes; view: 16-byte views
  const void* offsets;            // var32, var64: one more than rows
  const uint8_t* const* buffers;  // view: the data buffers
  const QuernColumn* dictionary;  // index columns: the dictionary's values (their nulls are folded into `validity`)
  uint64_t bit_offset;
};

// A string or binary value inside a tuple, 16 bytes: up to 12 bytes inline (zero-filled), else 4 bytes of prefix and a
// pointer. It is like Arrow's views and Umbra's strings, with an address in place of a buffer number.
struct StringRef {
  uint32_t length;
  char prefix[4];
  union {
    char rest[8];
    const char* bytes;
  };
};
static_assert(sizeof(StringRef) == 16);
constexpr uint32_t kInlineStringBytes = 12;

// How a kernel reads strings of a collation: the flags below and, above them, the collation's number (collation.h). 0:
// as plain bytes. A collation's number is the same in every process, so that code which contains it can be cached.
typedef uint32_t CollationRule;
constexpr CollationRule kTrimsSpaces = 1;     // trailing U+0020 is removed before anything else
constexpr CollationRule kPadsSpaces = 2;      // order: as if spaces followed for ever; without it, an end sorts lowest
constexpr CollationRule kWeighsEquality = 4;  // strings of different bytes may be equal
constexpr CollationRule kWeighsOrder = 8;     // strings are not ordered as their bytes are
constexpr CollationRule kFoldsAscii = 16;  // for strings of U+0020 to U+007E, equality ignores only the case of letters
constexpr uint32_t kCollationShift = 5;

// One output column of one output batch, row 0 first. Owned by the caller of the kernel; `bytes` grows through
// quern_rt_reserve_bytes.
struct QuernOutColumn {
  uint8_t* validity;  // bitmap, zeroed by the caller; nullptr where the column is not nullable
  void* values;       // fixed width: elements; bool: zeroed bitmap; view: 16-byte views
  void* offsets;      // var32, var64: one more than rows, offsets[0] = 0 set by the caller
  uint8_t* bytes;     // var and view: the bytes
  uint64_t num_bytes;
  uint64_t bytes_capacity;
  uint64_t null_count;
  void* owner;          // of `bytes`: quern_rt_reserve_bytes passes it back to the runtime
  uint64_t most_bytes;  // strings beyond these, but the first one, are for the next batch; 0: no such bound
};

// One key or other column of a row layout. Descriptors also have columns that no tuple stores; these have no offsets.
struct QuernField {
  Storage storage;        // of a value (keys: key_storage)
  Storage index_storage;  // dictionary columns: of an index; else kNoStorage
  bool index_is_signed;
  bool nullable;
  bool null_equal;       // keys: null matches null
  bool is_signed;        // order of integers: residual predicates, ranges of packed keys
  uint8_t null_mask;     // bit of the tuple's null byte; 0: no null bit in the tuple
  uint8_t comparison;    // residual predicate: a Comparison of spec.h
  uint8_t packed_shift;  // packed keys: lowest bit of the value in the word
  uint8_t
      packed_null_bit;  // packed keys whose nulls are equal: the bit that stands for null; the value's bits are 0 then
  CollationRule rule;   // keys of variable length
  uint32_t
      width_bytes;  // kFixed: n. Keys of variable length: bytes that a tuple holds itself (kInlineStringBytes at least)
  uint32_t tuple_offset;
  uint32_t null_offset;  // byte of the tuple that holds the null bit
};

// How rows are laid out as tuples, whichever operator keeps them. The stages that pack, hash and compare keys, and that
// store and emit tuples, are specialised for it. Emitters unroll over it; generic kernels interpret it. Made by
// RowLayout (row_layout.h), which owns the fields.
struct QuernRowLayout {
  uint32_t num_keys;
  uint32_t num_fields;         // besides the keys; their columns are the payload of a batch, in this order
  uint32_t num_output_fields;  // the first of the fields: those that are columns of a result
  uint32_t tuple_bytes;
  uint32_t null_bits_offset;
  uint32_t null_bits_bytes;  // storing a tuple zeroes them first
  uint32_t packed_bytes;     // packed keys: 4 or 8; 0: each key is a field of its own
  uint32_t packed_bits;      // packed keys: bits in use
  uint64_t packed_sign_bit;  // one signed integer key: its sign bit; else 0
  const QuernField* keys;
  const QuernField* fields;
  // Tuning: affects speed, never results.
  bool prefetches;
  bool zero_hashes;                // every hash is 0: a test's worst case
  uint32_t prefetch_string_bytes;  // distance, for strings that are read in order; 0: none
};

// Tuples whose output fields become rows of a result.
struct QuernOutputArgs {
  const uint8_t* tuples;    // where the tuples' byte offsets count from; nullptr: they are addresses
  QuernOutColumn* columns;  // of the output fields
  uint64_t num_rows;        // in/out: rows in the output batch
  uint64_t capacity;
  const QuernRowLayout* layout;
};

// What an entry point returns. Negative: an error, for which the runtime has the text.
enum QuernCode : int32_t {
  kQuernDone = 0,  // all input consumed
  kQuernFull = 1,  // output (or chunk) full: empty it and call again with the same arguments
  kQuernOutOfMemory = -1,
  kQuernValueTooLarge = -2,  // one value does not fit an output column's offsets
  kQuernSecondMatch = -3,    // single joins
  kQuernHostFailed = -4,     // the host's residual
};

#endif  // QUERN_RUNTIME_ABI_KERNEL_ABI_H_
