// SPDX-License-Identifier: Apache-2.0
// Keys of whoever knows the secret of the process: all meet in one place of every table that hashes with it.
#ifndef QUERN_TEST_UNIT_HOSTILE_KEYS_H_
#define QUERN_TEST_UNIT_HOSTILE_KEYS_H_

#include <cstdint>
#include <vector>

#include "runtime/base/bytes.h"
#include "runtime/base/hash_secret.h"

namespace quern::test {

// The word whose hash under the secret of the process is `hash`.
inline uint64_t WordWithHash(uint64_t hash) {
  TableSecret process;
  for (int i = 0; i < blocks::kNumHashNumbers; ++i) process.numbers[i] = blocks::quern_hash_secret[i];
  return process.Unmix(hash);
}

// The hash of hostile key i, up to 2^20. The first 33 bits are the same, which select slots and partitions, and so are
// the last 11, which are the tag of a join and 11 bits of that of a group.
inline uint64_t HostileHash(uint64_t i) { return uint64_t{0x15ead5ee7} << 31 | i << 11 | 0x5a5; }

// The same, but the tags differ.
inline uint64_t HostileHashOfAnyTag(uint64_t i) { return uint64_t{0x15ead5ee7} << 31 | i << 11 | (i * 0x9e3 & 0x7ff); }

inline std::vector<int64_t> HostileKeys(size_t n, uint64_t first = 0) {
  std::vector<int64_t> keys(n);
  for (size_t i = 0; i < n; ++i) keys[i] = static_cast<int64_t>(WordWithHash(HostileHash(first + i)));
  return keys;
}

// The second of two keys, so that both together have this hash.
inline int64_t SecondWithHash(int64_t first, uint64_t hash) {
  const uint64_t hash_of_first = blocks::Mix(static_cast<uint64_t>(first), blocks::quern_hash_secret);
  return static_cast<int64_t>(WordWithHash(hash) - hash_of_first * blocks::quern_hash_secret[blocks::kCombine]);
}

}  // namespace quern::test

#endif  // QUERN_TEST_UNIT_HOSTILE_KEYS_H_
