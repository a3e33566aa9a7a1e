// SPDX-License-Identifier: Apache-2.0
// The interface between sort kernels and their callers. It adds to kernel_abi.h, whose rules hold here too.
//
// The keys of a row are encoded as *words*: unsigned 64-bit numbers whose order, first word first, is the order of the
// rows ("normalised keys"). Each key is cut into *parts*, which are placed one below the other from the highest bit of
// word 0 on; a part that does not fit the rest of a word begins the next one. For keys=i16,utf8:nullable,i64:desc:
//
//             63    48 47 46                7 6      0
//     word 0  | i16   | N | 5 bytes           | unused |      i16: sign bit inverted. N: 1 for null; nulls come last
//     word 1  | 8 bytes of the string                  |      the first byte highest: numbers order as bytes do
//     word 2  | 3 bytes           | unused             |
//     word 3  | i64: sign bit inverted, then all bits  |      descending
//
// The words hold the first kSortPrefixBytes bytes of a string, with zeros behind its end, or with spaces under a
// collation that pads; under a collation with weights, they hold those bytes of its order key (collation.h). Rows whose
// words are equal may still differ in strings that are longer or that end with zero bytes; encoding reports which keys
// have such values.
#ifndef QUERN_RUNTIME_ABI_SORT_ABI_H_
#define QUERN_RUNTIME_ABI_SORT_ABI_H_

#include "runtime/abi/kernel_abi.h"

constexpr uint32_t kSortPrefixBytes = 16;
constexpr uint32_t kMaxSortWords = kMaxKeys * 3;
constexpr uint32_t kNoField = 0xffffffffu;
// Bit kSkipKeyShift + k of encode's *incomplete, set by the caller: the bytes of key k are not needed, and their parts
// are left unchanged.
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
  bool begins_word;    // the first part of its word is stored, later ones are or-ed
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
  // The tuple's field that also holds the value as it came, neither trimmed nor weighed. kNoField: no field holds it.
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
  const QuernSortPart* parts;  // in order: all parts of a key, then those of the next
  // The tuples. They hold output columns that are not in the words, and keys that the words may not hold completely.
  // They have fields and no keys. The store stage gets the fields' columns.
  QuernRowLayout rows;
};

// The field that holds a key's value. The key must have one.
inline __attribute__((always_inline)) const QuernField* SortFieldOf(const QuernSortDescriptor* descriptor,
                                                                    const QuernSortKey* key) {
  return &descriptor->rows.fields[key->field];
}

// The bits of its word that a part takes.
inline __attribute__((always_inline)) uint64_t SortPartMask(const QuernSortPart* part) {
  return (~uint64_t{0} >> (64 - part->bits)) << part->shift;
}

// The part with a string's first bytes: it follows the null bit, where there is one.
inline __attribute__((always_inline)) const QuernSortPart* FirstBytesPart(const QuernSortDescriptor* descriptor,
                                                                          const QuernSortKey* key) {
  return &descriptor->parts[key->first_part + (key->nullable ? 1 : 0)];
}

// The bits that are xor-ed to the value of a value part (for floats: to the number of the same order), within
// part->bits.
inline __attribute__((always_inline)) uint64_t SortFlip(const QuernSortKey* key, const QuernSortPart* part) {
  const uint64_t all = ~uint64_t{0} >> (64 - part->bits);
  const bool is_float = key->storage == kF32 || key->storage == kF64;
  const bool has_sign =
      key->is_signed && !is_float && (key->storage != k128 || part->kind == kHighPart) && part->kind != kBytesPart;
  const uint64_t sign = has_sign ? uint64_t{1} << (part->bits - 1) : 0;
  return key->descending ? all ^ sign : sign;
}

// Whether encode_leading leaves a bytes part out of word 0: it does where numbers of 16 bits or more precede the part.
// They decide nearly always, and reading strings costs more than looking again at the rows for which they do not.
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
