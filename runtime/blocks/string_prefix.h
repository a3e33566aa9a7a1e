// SPDX-License-Identifier: Apache-2.0
// The first bytes of adjacent strings, eight strings at a time.
#ifndef QUERN_RUNTIME_BLOCKS_STRING_PREFIX_H_
#define QUERN_RUNTIME_BLOCKS_STRING_PREFIX_H_

#include "runtime/abi/kernel_abi.h"
namespace quern::blocks {

// Strings of a column whose bytes follow each other: string i is bytes offsets[i] .. offsets[i + 1] - 1 of `values`. No
// byte from offsets[num_offsets - 1] on is read.
template <class Offset>
struct StringRun {
  const uint8_t* values;
  const Offset* offsets;
  uint32_t num_offsets;
  uint32_t prefetch_bytes = 0;  // distance; 0: none
};

// The first eight bytes of strings 0 .. n-1, each as a number whose highest byte is the first; `fill` gives the bytes
// behind a string's end. Returns how many strings it has done: all but the last ones, where eight bytes may not be
// readable. *Cost*: about 0.6 ns a string, and its bytes.
uint32_t ReadFronts(const StringRun<int32_t>& strings, uint32_t n, uint64_t fill, uint64_t* fronts);
uint32_t ReadFronts(const StringRun<int64_t>& strings, uint32_t n, uint64_t fill, uint64_t* fronts);

// The first 16 bytes in two such numbers, zeros behind the end. Sets *incomplete if a string has more bytes than that,
// or ends with a zero byte.
uint32_t ReadPrefixes(const StringRun<int32_t>& strings, uint32_t n, uint64_t* high, uint64_t* low, bool* incomplete);
uint32_t ReadPrefixes(const StringRun<int64_t>& strings, uint32_t n, uint64_t* high, uint64_t* low, bool* incomplete);

// The loops that implement these functions, one for each vector extension of this machine; the last one is used. For
// tests.
struct PrefixLoops {
  const char* name;
  uint32_t (*fronts32)(const StringRun<int32_t>& strings, uint32_t n, uint64_t fill, uint64_t* fronts);
  uint32_t (*fronts64)(const StringRun<int64_t>& strings, uint32_t n, uint64_t fill, uint64_t* fronts);
  uint32_t (*prefixes32)(const StringRun<int32_t>& strings, uint32_t n, uint64_t* high, uint64_t* low,
                         bool* incomplete);
  uint32_t (*prefixes64)(const StringRun<int64_t>& strings, uint32_t n, uint64_t* high, uint64_t* low,
                         bool* incomplete);
};
constexpr uint32_t kMostPrefixLoops = 3;
uint32_t PrefixLoopsOfMachine(PrefixLoops* loops);  // returns how many, up to kMostPrefixLoops

}  // namespace quern::blocks

#endif  // QUERN_RUNTIME_BLOCKS_STRING_PREFIX_H_
