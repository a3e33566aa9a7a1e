// SPDX-License-Identifier: Apache-2.0
// The one source of seeds for tests in C++; lit.cfg.py provides them to all others. The seed is QUERN_TEST_SEED, or 1,
// so that runs are repeatable; tools/nightly sets a new one each time.
#ifndef QUERN_TEST_UNIT_SEED_H_
#define QUERN_TEST_UNIT_SEED_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

namespace quern::test {

inline uint64_t Seed() {
  const char* given = std::getenv("QUERN_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
}

// Made from the seed and the name of the running test (FNV-1a), so that each test draws its own numbers, whichever
// others run.
inline uint64_t SeedOfTest() {
  uint64_t seed = 0xcbf29ce484222325 ^ Seed();
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  if (test == nullptr) return seed;
  for (const char c : std::string(test->test_suite_name()) + "." + test->name()) {
    seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return seed;
}

// Random numbers for the running test; prints how to repeat it.
inline std::mt19937_64 PrintedRandom() {
  std::printf("QUERN_TEST_SEED=%llu\n", static_cast<unsigned long long>(Seed()));
  return std::mt19937_64(SeedOfTest());
}

}  // namespace quern::test

#endif  // QUERN_TEST_UNIT_SEED_H_
