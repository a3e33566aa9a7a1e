// SPDX-License-Identifier: Apache-2.0
// Draws the secret. For a draw of 64 random bits the multiplier is
//
//     0x1d0c_83b2_94e1_5f76, made odd: 0x1d0c_83b2_94e1_5f77    32 ones; 31 bits that differ from the next higher one
//
// It is kept if it has 24 to 40 ones and at least 24 such changes. Numbers with few ones, or with long runs of equal
// bits, shift keys more than they mix them.
#include "runtime/base/hash_secret.h"

#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cstddef>

#include "runtime/base/bytes.h"

namespace quern {

using blocks::HashSecret;

// The variable that all other code sees as the constant quern_hash_secret. It has another name here, so that no
// compiler takes a write to it for a write to a constant.
extern HashSecret process_hash_secret asm("quern_hash_secret");
alignas(64) HashSecret process_hash_secret = {};

namespace {

// A counter through Mix, as in SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). The secret does not exist yet.
class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(seed) {}
  uint64_t Next() { return blocks::Mix(state_ += blocks::kPublicHash[blocks::kCombine], blocks::kPublicHash); }
  uint64_t NextMultiplier() {
    for (;;) {
      const uint64_t number = Next() | 1;
      const int ones = std::popcount(number), changes = std::popcount(number ^ number >> 1);
      if (ones >= 24 && ones <= 40 && changes >= 24 && number >> 32 != 0) return number;
    }
  }

 private:
  uint64_t state_;
};

// Random bits from the system. Where it gives none (a sandbox without the call), what differs between processes: the
// time, the process and where its stack is.
void DrawSeeds(uint64_t* seeds, size_t n) {
  const auto num_bytes = static_cast<ssize_t>(n * sizeof(uint64_t));
  if (getrandom(seeds, static_cast<size_t>(num_bytes), GRND_NONBLOCK) == num_bytes) return;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  Draws draws(static_cast<uint64_t>(now.tv_nsec) ^ static_cast<uint64_t>(now.tv_sec) << 30 ^
              static_cast<uint64_t>(getpid()) << 48 ^ reinterpret_cast<uintptr_t>(&now));
  for (size_t i = 0; i < n; ++i) seeds[i] ^= draws.Next();
}

// What takes the place of the system's random bits in tests.
std::atomic<uint64_t> table_seed{0};

// The odd number by which a product is divided: Newton's iteration, each step of which doubles the number of right
// bits.
uint64_t Inverse(uint64_t odd) {
  uint64_t inverse = odd;
  for (int i = 0; i < 5; ++i) inverse *= 2 - odd * inverse;
  return inverse;
}

// Each number from 64 bits of its own.
void SetSecret(const uint64_t (&seeds)[blocks::kNumHashNumbers]) {
  for (size_t i = 0; i < blocks::kNumHashNumbers; ++i) process_hash_secret[i] = Draws(seeds[i]).NextMultiplier();
}

// Before the constructors of other files, which may set a seed.
__attribute__((constructor(101))) void DrawSecret() {
  uint64_t seeds[blocks::kNumHashNumbers] = {};
  DrawSeeds(seeds, blocks::kNumHashNumbers);
  SetSecret(seeds);
}

}  // namespace

void SetHashSeed(uint64_t seed) {
  Draws draws(seed);
  uint64_t seeds[blocks::kNumHashNumbers];
  for (uint64_t& number : seeds) number = draws.Next();
  SetSecret(seeds);
}

uint64_t TableSecret::Unmix(uint64_t remixed) const {
  uint64_t x = remixed;
  x ^= x >> 32;
  x *= Inverse(numbers[blocks::kMultiplier2]);
  x ^= x >> 32;
  x *= Inverse(numbers[blocks::kMultiplier1]);
  return x ^ x >> 32;
}

TableSecret DrawTableSecret() {
  uint64_t seeds[blocks::kNumHashNumbers] = {};
  if (table_seed.load(std::memory_order_relaxed) == 0) {
    DrawSeeds(seeds, blocks::kNumHashNumbers);
  } else {
    for (uint64_t& seed : seeds) seed = table_seed.fetch_add(1, std::memory_order_relaxed);
  }
  TableSecret secret;
  for (size_t i = 0; i < blocks::kNumHashNumbers; ++i) secret.numbers[i] = Draws(seeds[i]).NextMultiplier();
  return secret;
}

void SetTableSecretSeed(uint64_t seed) { table_seed.store(seed | 1, std::memory_order_relaxed); }

}  // namespace quern
