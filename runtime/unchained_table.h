// SPDX-License-Identifier: Apache-2.0
// Bringing the tuples of an unchained table to their places (layout: kernel_abi.h).
#ifndef QUERN_RUNTIME_UNCHAINED_TABLE_H_
#define QUERN_RUNTIME_UNCHAINED_TABLE_H_

#include <cstdint>

namespace quern {

// One chunk of tuples in order of arrival, and the table that they go to.
struct UnchainedBuild {
  const uint8_t* tuples = nullptr;
  const uint64_t* hashes = nullptr;  // one per tuple; readable 2 * prefetch_distance beyond num_tuples
  uint64_t num_tuples = 0;
  uint32_t tuple_bytes = 0;
  uint64_t* directory = nullptr;   // directory[-1] exists and is 0
  uint32_t directory_bits = 0;     // slots: 2^directory_bits
  uint32_t prefetch_distance = 0;  // rows; 0: no prefetch
  uint8_t* target = nullptr;       // the table's tuples
};

// The patterns that TagOf looks up.
const uint16_t* DirectoryTags();

// Adds each tuple's bytes and tag to its slot's entry. *Cost*: one random line a tuple, prefetched for writing.
void CountTuples(const UnchainedBuild& build);

// Turns the bytes of each slot into where its tuples begin. *Cost*: one sequential pass over the directory.
void SumSlots(const UnchainedBuild& build);

// Copies each tuple to its slot's next place; the entries then hold where the slots' tuples end. *Cost*: two dependent random lines a
// tuple, each prefetched.
void ScatterTuples(const UnchainedBuild& build);

}  // namespace quern

#endif  // QUERN_RUNTIME_UNCHAINED_TABLE_H_
