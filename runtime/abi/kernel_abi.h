// SPDX-License-Identifier: Apache-2.0
// The language that kernels and their callers speak: plain structs, no behaviour. Generated code, IR templates, generic
// kernels and the runtime's state all include this file and nothing bigger; a change of any layout here is a change of
// kKernelAbiVersion, which is part of every cache key.
//
// A row of the build side is a *tuple*: its keys, then its payload, then its null bits, in `tuple_bytes` bytes:
//
//     keys i64, utf8          payload f64            null bits
//     +-----------------+--------+--------+----------+
//     | key 1 StringRef | key 0  | pay 0  | 1 byte.. |      fields are placed by widest first, tuples are multiples of
//     +-----------------+--------+--------+----------+      the widest alignment (at most 8)
//
// Tuples of one directory slot lie side by side ("unchained" table: Birler, Schmidt, Fent, Neumann, DaMoN 2024); the
// directory entry of slot s holds where they END (48 bits) and a 16-bit tag, so that they begin where those of slot s-1
// end:
//
//     directory[s]:  | end of slot s's tuples, byte offset (48 bits) | tag (16 bits) |
//
// Keys that fit one machine word together are *packed keys*: they are packed into it, the first one lowest, and the
// word is what is hashed, compared and stored, in 4 or 8 bytes at the tuple's beginning. Packed-key tables have more
// layouts (packed_key_table.h).
#ifndef QUERN_RUNTIME_ABI_KERNEL_ABI_H_
#define QUERN_RUNTIME_ABI_KERNEL_ABI_H_

#include <stddef.h>
#include <stdint.h>

constexpr uint32_t kKernelAbiVersion = 6;

// Upper bounds of what a plan may choose; buffers between the stages of a kernel have these sizes.
constexpr uint32_t kMaxBatchRows = 4096;
constexpr uint32_t kMaxPrefetchDistance = 512;
constexpr uint32_t kMaxKeys = 16;
constexpr uint32_t kMaxPayloadColumns = 1024;

// The row number that stands for "null" where rows were translated through a dictionary.
constexpr uint32_t kNullRow = 0xffffffffu;
// What the hole filter_rows answers when every row of the batch stays and none was written.
constexpr uint32_t kAllRows = 0xffffffffu;

// A directory entry: bytes above, tag below. A tuple's tag is 4 of 16 bits, looked up by the bottom bits of its hash
// (the slot is in the top ones) in a table of the 1820 patterns there are; an entry's tag is the union of its tuples'.
// One tuple lets 1 in 1820 strangers pass.
constexpr uint32_t kTagBits = 16;
constexpr uint64_t kTagMask = (uint64_t{1} << kTagBits) - 1;
constexpr uint32_t kNumTags = 2048;
inline __attribute__((always_inline)) uint64_t TagOf(const uint16_t* tags, uint64_t hash) {
  return tags[hash % kNumTags];
}

// Sets a tuple's mark; answers whether it was set before. Probers of other threads may do the same at the same time,
// with the same value.
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
// pointer. The same idea as Arrow's views and Umbra's strings, with an address in place of a buffer number.
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

// How a kernel reads strings of a collation: the flags below, above them the collation's number (collation.h). 0: bytes
// as they are. A number of a collation is the same in every process, so that code that has one in it can be kept.
typedef uint32_t CollationRule;
constexpr CollationRule kTrimsSpaces = 1;  // trailing U+0020 is cut before anything else
constexpr CollationRule kPadsSpaces =
    2;  // order: as if spaces followed for ever; without it an end is below everything
constexpr CollationRule kWeighsEquality = 4;  // strings of different bytes may be equal
constexpr CollationRule kWeighsOrder = 8;     // the order of the bytes is not the strings'
constexpr CollationRule kFoldsAscii =
    16;  // of strings of U+0020 to U+007E all that equality ignores is the case of letters
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
  void* owner;  // of `bytes`: quern_rt_reserve_bytes hands it back to the runtime
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

// What a join kernel is specialised for. Emitters unroll over it; generic kernels interpret it. Built by MakeJoinShape
// (join_descriptor.h).
struct QuernJoinDescriptor {
  uint32_t num_keys;
  uint32_t num_build;
  uint32_t num_probe;
  uint32_t num_residual;
  uint32_t tuple_bytes;
  uint32_t null_bits_offset;
  uint32_t null_bits_bytes;
  uint32_t matched_offset;   // byte of a tuple that tells whether a probe row has met it; 0: there is none
  uint32_t packed_bytes;     // packed keys: 4 or 8; 0: keys are fields of their own
  uint32_t packed_bits;      // packed keys: bits in use
  uint64_t packed_sign_bit;  // one signed integer key: its sign bit; else 0
  bool stops_at_first;       // a probe row needs no more than one match
  bool stops_at_matched;     // nor a tuple that was met before, since all with its key are marked then
  const QuernField* keys;
  const QuernField* build;           // payload of the build side, stored in tuples
  const QuernField* probe;           // payload of the probe side, copied from the batch
  const QuernField* build_residual;  // columns of the residual predicate, after the payload; stored in tuples
  const QuernField* probe_residual;
  // Tuning: how, never what.
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

// What a probe keeps between calls; one per prober, zeroed once. The arrays carry one stage's output to the next.
struct QuernProbeScratch {
  const uint32_t* batch_numbers;  // batch's row of each row in `hashes`; nullptr: batch_first + i
  uint64_t batch_first;
  uint32_t batch_rows;      // rows in `hashes`
  uint32_t batch_next;      // first one not yet tested against the directory
  uint32_t num_candidates;  // those with tuples yet to be compared
  uint32_t num_matches;
  uint32_t match_next;   // first one not yet emitted
  uint32_t num_dropped;  // rows of the batch that can match nothing, in `dropped`
  bool batch_is_open;    // rows that come out on their own are still to come from it
  uint32_t rows[kMaxBatchRows];
  uint32_t dropped[kMaxBatchRows];
  uint8_t found[kMaxBatchRows];     // of each row of the hash batch: whether it has a match
  uint8_t marks[kMaxBatchRows];     // mark joins, of each row to emit: 0 false, 1 true, 2 null
  uint32_t looking[kMaxBatchRows];  // open tables: rows whose walk goes on
  uint64_t words[kMaxBatchRows];
  uint64_t hashes[kMaxBatchRows + kMaxPrefetchDistance];
  QuernCandidate candidates[kMaxBatchRows];
  uint32_t match_index[kMaxBatchRows];   // of the row in the hash batch
  uint32_t match_rows[kMaxBatchRows];    // of the batch; kNullRow: none, its columns are null
  uint64_t match_tuples[kMaxBatchRows];  // byte offsets; numbers, so that no store of one can be taken for a change of
                                         // a column's pointer
};

struct QuernJoinProbeArgs {
  const QuernJoinDescriptor* descriptor;
  const QuernColumn* keys;
  const QuernColumn* payload;  // then the columns of the residual predicate
  const uint32_t* selection;   // the batch's row of each row to probe; nullptr: rows 0 .. num_rows-1
  uint64_t num_rows;
  uint64_t next_row;           // in/out: how far this batch has been probed
  uint64_t first_row_id;       // number of the batch's row 0 on the probe side
  uint8_t* tuples;             // only mark bytes are written
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

// What an entry point answers. Negative: an error, whose text the runtime knows.
enum QuernCode : int32_t {
  kQuernDone = 0,  // all input consumed
  kQuernFull = 1,  // output (or chunk) full: empty it and call again with the same arguments
  kQuernOutOfMemory = -1,
  kQuernValueTooLarge = -2,  // one value does not fit an output column's offsets
  kQuernSecondMatch = -3,    // single joins
};

// The entry points of one join kernel. Generic and compiled kernels fill the same struct; a compiled one has nullptr
// where its spec leaves nothing to do (no key may be null: no filter).
struct QuernJoinEntryPoints {
#define QUERN_JOIN_ENTRY(field, result, parameters) result(*field) parameters;
#include "runtime/abi/join_entry_points.def"
};

#endif  // QUERN_RUNTIME_ABI_KERNEL_ABI_H_
