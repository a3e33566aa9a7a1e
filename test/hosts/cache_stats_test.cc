// SPDX-License-Identifier: Apache-2.0
// What the library says its kernels take.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "hosts/cpp/quern.hpp"

namespace {

constexpr uint64_t kPage = 4096;

TEST(CacheStats, CountKernelsPagesAndMappings) {
  quern_cache_clear();
  const quern_cache_stats before = quern::CacheStats();
  {
    const auto first = quern::Kernel::Compile("filter i64 >= 31", quern::Engine::kJit);
    const auto again = quern::Kernel::Compile("filter i64 >= 31", quern::Engine::kJit);
    ASSERT_TRUE(first.ok() && again.ok());
    const quern_cache_stats one = quern::CacheStats();
    EXPECT_EQ(one.kernels, 1u);
    EXPECT_EQ(one.code_bytes, kPage);
    EXPECT_EQ(one.limit_bytes, uint64_t{64} << 20);
    EXPECT_EQ(one.misses, before.misses + 1);
    EXPECT_EQ(one.hits, before.hits + 1);
    EXPECT_EQ(one.live_kernels, before.live_kernels + 1);
    EXPECT_EQ(one.live_bytes, before.live_bytes + kPage);
    EXPECT_GE(one.reserved_bytes, one.live_bytes);
    EXPECT_GE(one.mappings, 2u);
    quern_cache_set_limit(0);
    EXPECT_EQ(quern::CacheStats().kernels, 0u);
    EXPECT_EQ(quern::CacheStats().evictions, before.evictions + 1);
    EXPECT_EQ(quern::CacheStats().live_kernels, before.live_kernels + 1);  // its handles keep it
    quern_cache_set_limit(uint64_t{64} << 20);
  }
  EXPECT_EQ(quern::CacheStats().live_kernels, before.live_kernels);
  EXPECT_EQ(quern::CacheStats().live_bytes, before.live_bytes);
}

// A host that was built with a shorter struct gets what it knows of.
TEST(CacheStats, FillWhatTheCallerHas) {
  quern_cache_stats stats;
  std::memset(&stats, 0xee, sizeof(stats));
  stats.struct_size = offsetof(quern_cache_stats, hits);
  quern_cache_get_stats(&stats);
  EXPECT_EQ(stats.struct_size, offsetof(quern_cache_stats, hits));
  EXPECT_EQ(stats.limit_bytes, uint64_t{64} << 20);
  EXPECT_EQ(stats.hits, 0xeeeeeeeeeeeeeeeeu);
  stats.struct_size = 0;
  quern_cache_get_stats(&stats);
  EXPECT_EQ(stats.struct_size, 0u);
  quern_cache_get_stats(nullptr);
}

}  // namespace
