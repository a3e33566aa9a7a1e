// SPDX-License-Identifier: Apache-2.0
// An allocator that refuses chosen requests of the process, and counts what is not given back.
#ifndef QUERN_TEST_REFUSALS_REFUSING_ALLOCATOR_H_
#define QUERN_TEST_REFUSALS_REFUSING_ALLOCATOR_H_

#include <cstdint>

namespace quern_test {

// kOnce: the n-th request alone. kFromThenOn: the n-th and all that follow.
enum class Refusing : uint8_t { kOnce, kFromThenOn };

// Numbers the requests of all threads from 1 on, and refuses number n; 0 refuses none.
void StartRefusing(uint64_t n, Refusing refusing);
// Returns how many requests there were since StartRefusing; from now on none is refused.
uint64_t StopRefusing();

// What the process holds: blocks of the allocator, and bytes of mappings.
int64_t HeldBlocks();
int64_t HeldMappedBytes();

}  // namespace quern_test

#endif  // QUERN_TEST_REFUSALS_REFUSING_ALLOCATOR_H_
