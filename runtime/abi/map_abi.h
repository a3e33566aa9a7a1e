// SPDX-License-Identifier: Apache-2.0
// The interface between map kernels and their callers. It adds to kernel_abi.h, whose rules hold here too.
//
// A map is a list of instructions, each of which computes one value from the values of earlier ones, for eight rows at
// a time. For out=multiply($0,subtract(1.00:decimal128(3,2),$1)):
//
//     %0 = load 128 $0                  16-byte decimals of eight rows
//     %1 = constant 100
//     %2 = load 128 $1
//     %3 = decimal_subtract %1 %2
//     %4 = decimal_multiply %0 %3
//     store 128 %4
//
// A compiled kernel keeps eight rows of all values in registers; the generic kernel runs one instruction over a few
// hundred rows before the next. Both call the functions of runtime/blocks/lanes.h. Decimals have 128 bits, but nearly
// always fit 64: the compiled kernel assumes that, notices where it does not hold (kQuernTooWide), and its caller then
// has the generic kernel compute the batch.
//
// Most that a map takes from columns of strings is a truth or a length of each row. It is in columns of bits or of
// 64-bit integers before the kernel is called (runtime/map/string_values.h). Both kernels load it:
//
//     %0 = string bit s0                     equal($1,'MAIL':utf8), for one
//
// Strings of which another is made, or that are chosen by a condition, are values as well: an address and a length in
// each lane. Functions of them are calls of the runtime (runtime/blocks/string_functions.h). For
// out=concat(ascii_upper($0),'!':utf8):
//
//     %0 = load_strings var32 $0
//     %1 = ascii_upper %0
//     %2 = string_constant s0
//     %3 = concat %1 %2
//     store var32 %3
#ifndef QUERN_RUNTIME_ABI_MAP_ABI_H_
#define QUERN_RUNTIME_ABI_MAP_ABI_H_

#include "runtime/abi/kernel_abi.h"

// Eight rows of a value. Lanes without a value may hold anything.
struct QuernLanes {
  typedef uint64_t Words __attribute__((vector_size(64)));
  Words low;       // integers: sign- or zero-extended; floats: as f64; decimals: lower halves; strings: addresses
  Words high;      // decimals in 128 bits: their upper halves; strings: their bytes
  uint8_t truth;   // bool: one bit a row
  uint8_t valid;   // one bit a row: whether it has a value
  uint8_t failed;  // one bit a row: whether computing it failed
};

enum LaneFunction : uint8_t {
#define QUERN_LANE_FUNCTION(Id, text, num_arguments, Function) Id,
#include "runtime/abi/lane_functions.def"
  kLoadLanes,             // from column `column`, as `storage` says
  kStoreLanes,            // to result `column`
  kLoadStringValueLanes,  // what is computed of strings, from column `column` of string_values
  kLoadStringsLanes,      // strings of column `column`; parameters.low: the storage of a dictionary's indices
  kStringConstantLanes,   // column `column` of string_values: its bytes and their number, or a LikePattern's address
};

// Whether it reads or computes strings: outside a map of its own, nothing has them ready.
constexpr bool IsOfStrings(LaneFunction function) {
  return (function >= kStringEqualLanes && function <= kStringCoalesceLanes) || function >= kLoadStringValueLanes;
}

// Whether it makes new bytes, and not a part of a string that is there, or what is no string.
constexpr bool WritesStrings(LaneFunction function) {
  switch (function) {
    case kConcatLanes:
    case kAsciiLowerLanes:
    case kAsciiUpperLanes:
    case kReplaceLanes:
    case kIntegerToStringLanes:
    case kFloatToStringLanes:
    case kDecimalToStringLanes:
    case kDateToStringLanes: return true;
    default: return false;
  }
}

enum LaneErrors : uint8_t { kErrorsIgnored, kErrorsFail, kErrorsAreNull };

// Constants of a function of lanes.
struct QuernLaneParameters {
  uint8_t bits;      // integers, floats: the width of the result; 128: decimals, wherever values of any kind are meant
  bool is_signed;    // of the result; comparisons: of the arguments
  bool from_signed;  // casts: of the argument
  uint8_t errors;    // a LaneErrors
  uint64_t low;      // constants, powers of ten, parts of dates
  uint64_t high;
};

struct QuernMapInstruction {
  LaneFunction function;
  Storage storage;  // loads, stores
  bool nullable;    // loads, stores: whether the column has nulls
  uint32_t column;
  uint32_t arguments[3];  // numbers of instructions
  uint32_t place;         // where the generic kernel keeps the value
  QuernLaneParameters parameters;
};

// What a map kernel is specialised for; built by MapDescriptor.
struct QuernMapDescriptor {
  uint32_t num_instructions;
  uint32_t num_columns;
  uint32_t num_results;
  uint32_t num_places;
  bool writes_strings;  // to the thread's StringScratch, which the kernel then empties before each few rows
  const QuernMapInstruction* instructions;
};

// The generic kernel runs an instruction over this many rows, eight in each QuernLanes.
constexpr uint32_t kPieceLanes = 32;
constexpr uint32_t kPieceRows = kPieceLanes * (sizeof(QuernLanes::Words) / sizeof(uint64_t));

struct QuernMapArgs {
  const QuernMapDescriptor* descriptor;
  const QuernColumn* columns;
  const uint32_t* selection;  // nullptr: rows first, first + 1, ..
  uint64_t first;             // else ignored
  uint32_t num_rows;
  QuernOutColumn* results;  // row i of the rows above is written to row out_first + i, a multiple of 8
  uint64_t out_first;
  uint32_t failed_row;  // out, with kQuernRowFailed: its number in the rows above
  QuernLanes* places;   // the generic kernel's: num_places * kPieceLanes, of any content
  const QuernColumn*
      string_values;  // row i of the rows above is row i of these; constants: bytes, length as bit_offset
};

// More of what an entry point returns (QuernCode).
constexpr int32_t kQuernRowFailed = -5;  // one of the rows, the first being failed_row, has no result
constexpr int32_t kQuernTooWide = -6;    // decimals that do not fit 64 bits; nothing is to be used

// The entry points of one map kernel; generic and compiled kernels fill the same struct.
struct QuernMapEntryPoints {
  int32_t (*rows)(QuernMapArgs* args);
};

#endif  // QUERN_RUNTIME_ABI_MAP_ABI_H_
