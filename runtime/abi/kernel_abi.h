// SPDX-License-Identifier: Apache-2.0
// The interface between kernels and their callers: plain structs, no behaviour. Generated code, IR templates, generic
// kernels and the runtime's state include this file and nothing larger. Whoever changes a layout here changes
// kKernelAbiVersion too, which is part of every cache key.
//
// A row of the build side is a *tuple*: its keys, then its payload, then its null bits, in `tuple_bytes` bytes:
//
//     keys i64, utf8          payload f64            null bits
//     +-----------------+--------+--------+----------+
//     | key 1 StringRef | key 0  | pay 0  | 1 byte.. |      the widest fields come first; tuples are multiples of
//     +-----------------+--------+--------+----------+      the widest alignment (at most 8)
//
// The tuples of one directory slot are adjacent ("unchained" table: Birler, Schmidt, Fent, Neumann, DaMoN 2024). The
// directory entry of slot s holds where they END (48 bits) and a 16-bit tag; they begin where those of slot s-1 end:
//
//     directory[s]:  | end of slot s's tuples, byte offset (48 bits) | tag (16 bits) |
//
// Keys that together fit one machine word are *packed keys*: they are packed into a word, the first key in the lowest
// bits. The word is hashed, compared and stored, in the first 4 or 8 bytes of the tuple. Packed-key tables have further
// layouts (packed_key_table.h).
#ifndef QUERN_RUNTIME_ABI_KERNEL_ABI_H_
#define QUERN_RUNTIME_ABI_KERNEL_ABI_H_

#include <stddef.h>
#include <stdint.h>

constexpr uint32_t kKernelAbiVersion = 7;

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

// Sets a tuple's matched flag and returns whether it was set before. Probing threads may set it at the same time, all
// to the same value.
inline __attribute__((always_inline)) bool TestAndSetMatched(uint8_t* mark) {
  if (__atomic_load_n(mark, __ATOMIC_RELAXED) != 0) return true;
  __atomic_store_n(mark, static_cast<uint8_t>(1), __ATOMIC_RELAXED);
  return false;
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
  void* owner;  // of `bytes`: quern_rt_reserve_bytes passes it back to the runtime
};

// One key or payload column of a descriptor.
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
  uint32_t tuple_offset;  // build side
  uint32_t null_offset;   // build side: byte of the tuple that holds the null bit
};

// What a join kernel is specialised for. Emitters unroll over it; generic kernels interpret it. Built by JoinDescriptor
// (join_descriptor.h).
struct QuernJoinDescriptor {
  uint32_t num_keys;
  uint32_t num_build;
  uint32_t num_probe;
  uint32_t num_residual;
  uint32_t tuple_bytes;
  uint32_t null_bits_offset;
  uint32_t null_bits_bytes;
  uint32_t matched_offset;   // byte of a tuple that is its matched flag; 0: there is none
  uint32_t packed_bytes;     // packed keys: 4 or 8; 0: each key is a field
  uint32_t packed_bits;      // packed keys: bits in use
  uint64_t packed_sign_bit;  // one signed integer key: its sign bit; else 0
  bool stops_at_first;       // a probe row needs no more than one match
  bool stops_at_matched;     // nor a tuple whose flag is set: then all tuples of its key have been matched
  const QuernField* keys;
  const QuernField* build;           // payload of the build side, stored in tuples
  const QuernField* probe;           // payload of the probe side, copied from the batch
  const QuernField* build_residual;  // columns of the residual predicate, after the payload; stored in tuples
  const QuernField* probe_residual;
  bool asks_host;              // the host decides about pairs, too; a tuple then has its row id
  uint32_t host_row_offset;    // of this row id
  const QuernField* host_row;  // its field; null where it is one of `build`
  // Tuning: affects speed, never results.
  uint32_t batch_rows;  // 1 .. kMaxBatchRows
  uint32_t group_rows;  // rows tested against the directory before their tuples are compared; 1 .. kMaxBatchRows
  bool prefetches;
  bool zero_hashes;                // every hash is 0: a test's worst case
  uint32_t prefetch_string_bytes;  // distance, for strings that are read in order; 0: none
};

// A probe row whose tag was found in the directory, with the tuples that may match it.
struct QuernCandidate {
  uint64_t begin;  // byte offsets into the table's tuples
  uint64_t end;
  uint32_t index;  // of the row in the hash batch
};

// What a probe keeps between calls, one for each prober. The members before the arrays are zeroed once. The arrays
// carry one stage's output to the next.
struct QuernProbeScratch {
  const uint32_t* batch_numbers;  // batch's row of each row in `hashes`; nullptr: batch_first + i
  uint64_t batch_first;
  uint32_t batch_rows;      // rows in `hashes`
  uint32_t batch_next;      // first one not yet tested against the directory
  uint32_t num_candidates;  // those with tuples still to be compared
  uint32_t num_matches;
  uint32_t match_next;   // first one not yet emitted
  uint32_t num_dropped;  // rows of the batch that cannot match, in `dropped`
  bool batch_is_open;    // it still has unmatched rows to return
  uint32_t rows[kMaxBatchRows];
  uint32_t dropped[kMaxBatchRows];
  uint8_t found[kMaxBatchRows];     // of each row of the hash batch: whether it has a match
  uint8_t marks[kMaxBatchRows];     // mark joins, of each row to emit: 0 false, 1 true, 2 null
  uint32_t looking[kMaxBatchRows];  // open tables: rows still being probed
  uint64_t words[kMaxBatchRows];
  uint64_t hashes[kMaxBatchRows + kMaxPrefetchDistance];
  QuernCandidate candidates[kMaxBatchRows];
  uint32_t match_index[kMaxBatchRows];  // of the row in the hash batch
  uint32_t match_rows[kMaxBatchRows];   // of the batch; kNullRow: none, its columns are null
  // Byte offsets: numbers, so that the compiler need not assume that storing one changes a column's pointer.
  uint64_t match_tuples[kMaxBatchRows];
};

struct QuernJoinProbeArgs {
  const QuernJoinDescriptor* descriptor;
  const QuernColumn* keys;
  const QuernColumn* payload;  // then the columns of the residual predicate
  const uint32_t* selection;   // the batch's row of each row to probe; nullptr: rows 0 .. num_rows-1
  uint64_t num_rows;
  uint64_t next_row;           // in/out: how far this batch has been probed
  uint64_t first_row_id;       // number of the batch's row 0 on the probe side
  uint8_t* tuples;             // only matched flags are written
  const uint64_t* directory;   // directory[-1] exists and is 0
  const uint16_t* tags;        // kNumTags
  uint32_t shift;              // slot of hash h: h >> shift
  uint32_t prefetch_distance;  // rows
  QuernOutColumn* out_probe;
  QuernOutColumn* out_build;
  uint64_t out_rows;  // in/out: rows in the output batch
  uint64_t out_capacity;
  QuernProbeScratch* scratch;
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

// The entry points of one join kernel. Generic and compiled kernels fill the same struct; a compiled kernel has nullptr
// where its spec leaves nothing to do (no filter if no key may be null).
struct QuernJoinEntryPoints {
#define QUERN_JOIN_ENTRY(field, result, parameters) result(*field) parameters;
#include "runtime/abi/join_entry_points.def"
};

#endif  // QUERN_RUNTIME_ABI_KERNEL_ABI_H_
