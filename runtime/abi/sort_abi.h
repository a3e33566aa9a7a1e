// SPDX-License-Identifier: Apache-2.0
// What sort kernels and their callers speak, beside kernel_abi.h, whose rules hold here too.
//
// The keys of a row are encoded to *words*: unsigned 64-bit numbers whose order, first word first, is the order of the
// rows ("normalised keys"). Each key is cut into *parts*, which are placed one below the other, from the highest bit of
// word 0 on; a part that does not fit what is left of a word begins the next one. For keys=i16,utf8:nullable,i64:desc
//
//             63    48 47 46                7 6      0
//     word 0  | i16   | N | 5 bytes           | unused |      i16: its sign bit turned. N: 1 where null, since nulls
//     come last word 1  | 8 bytes of the string                  |      the first byte highest, so that numbers order
//     as bytes do word 2  | 3 bytes           | unused             | word 3  | i64: sign bit turned, then all bits    |
//     descending
//
// Of a string kSortPrefixBytes bytes are in the words, zeros behind its end; under a collation that pads, spaces; under
// one that weighs, those of its order key (collation.h). Rows whose words are equal may still differ in strings that
// are longer, or that end with zero bytes; encoding says which keys have such values.
#ifndef QUERN_RUNTIME_ABI_SORT_ABI_H_
#define QUERN_RUNTIME_ABI_SORT_ABI_H_

#include "runtime/abi/kernel_abi.h"

constexpr uint32_t kSortPrefixBytes = 16;
constexpr uint32_t kMaxSortWords = kMaxKeys * 3;
constexpr uint32_t kNoField = 0xffffffffu;
// Bit kSkipKeyShift + k of encode's *incomplete, set by the caller: the bytes of key k are not wanted, and their parts
// stay as they are.
constexpr uint32_t kSkipKeyShift = kMaxKeys;

enum SortPartKind : uint8_t {
  kNullPart,   // 1 bit
  kValuePart,  // a number of up to 64 bits, or the lower half of one of 128
  kHighPart,   // the upper half of a number of 128 bits
  kBytesPart,  // bits/8 bytes of a string or fixed_binary, from first_byte on
};

struct QuernSortPart {
  uint32_t key;
  SortPartKind kind;
  uint8_t word;
  uint8_t shift;       // its lowest bit in the word
  uint8_t bits;        // 1 to 64
  uint8_t first_byte;  // kBytesPart
  bool begins_word;    // the first part of its word: stores, where later ones are or-ed
};

struct QuernSortKey {
  Storage storage;        // key_storage of its type
  Storage index_storage;  // dictionary columns: of an index; else kNoStorage
  bool nullable;
  bool is_signed;
  bool descending;
  bool nulls_first;
  CollationRule rule;
  uint32_t width_bytes;  // kFixed: n
  uint32_t first_part;
  uint32_t num_parts;
  // Where the value lies in a tuple too, untrimmed, unweighed and as it came: number of the field, the fields of
  // rows.build first, then those of rows.build_residual; kNoField: it does not.
  uint32_t field;
};

// What a sort kernel is specialised for. Built by SortDescriptor (sort_descriptor.h).
struct QuernSortDescriptor {
  uint32_t num_keys;
  uint32_t num_parts;
  uint32_t num_words;
  uint32_t batch_rows;           // 1 .. kMaxBatchRows
  uint32_t prefetch_merge_rows;  // distance, where tuples are merged; 0: none
  const QuernSortKey* keys;
  const QuernSortPart* parts;  // in order: of a key one after the other
  // Tuples, which hold what comes out and is not in the words, and keys whose words may not say all: no keys, `build`
  // the fields that come out, `build_residual` the fields that do not. Both come as payload columns to the store stage,
  // in this order.
  QuernJoinDescriptor rows;
};

// The field that holds a key's value; its key has one.
inline __attribute__((always_inline)) const QuernField* SortFieldOf(const QuernSortDescriptor* descriptor,
                                                                    const QuernSortKey* key) {
  const uint32_t num_build = descriptor->rows.num_build;
  return key->field < num_build ? &descriptor->rows.build[key->field]
                                : &descriptor->rows.build_residual[key->field - num_build];
}

// The bits of its word that a part takes.
inline __attribute__((always_inline)) uint64_t SortPartMask(const QuernSortPart* part) {
  return (~uint64_t{0} >> (64 - part->bits)) << part->shift;
}

// A string's first bytes: the part that follows the null bit, where there is one.
inline __attribute__((always_inline)) const QuernSortPart* FirstBytesPart(const QuernSortDescriptor* descriptor,
                                                                          const QuernSortKey* key) {
  return &descriptor->parts[key->first_part + (key->nullable ? 1 : 0)];
}

// What is xor-ed to the bits of a value part (for floats: of the number of the same order), within part->bits.
inline __attribute__((always_inline)) uint64_t SortFlip(const QuernSortKey* key, const QuernSortPart* part) {
  const uint64_t all = ~uint64_t{0} >> (64 - part->bits);
  const bool is_float = key->storage == kF32 || key->storage == kF64;
  const bool has_sign =
      key->is_signed && !is_float && (key->storage != k128 || part->kind == kHighPart) && part->kind != kBytesPart;
  const uint64_t sign = has_sign ? uint64_t{1} << (part->bits - 1) : 0;
  return key->descending ? all ^ sign : sign;
}

// Whether word 0 on its own, as the entry point `lead` writes it, leaves a bytes part out: where numbers of 16 bits or
// more stand before it, it is they that decide, and reading strings costs more than looking again at the rows for which
// they do not.
inline __attribute__((always_inline)) bool IsLeftOutOfLead(const QuernSortDescriptor* descriptor,
                                                           const QuernSortPart* part) {
  return part->kind == kBytesPart && descriptor->num_words > 1 && part->shift + part->bits <= 48;
}

// The entry points of one sort kernel. A compiled one has nullptr where its descriptor leaves nothing to do.
struct QuernSortEntryPoints {
#define QUERN_SORT_ENTRY(field, result, parameters) result(*field) parameters;
#include "runtime/abi/sort_entry_points.def"
};

#endif  // QUERN_RUNTIME_ABI_SORT_ABI_H_
