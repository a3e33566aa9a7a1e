// SPDX-License-Identifier: Apache-2.0
// First bytes of neighbouring strings, with each loop that this machine has: the results equal those of one string at a
// time, and no byte after the column's last one is read.
#include "runtime/blocks/string_prefix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "test/templates/guarded_buffer.h"

namespace quern::test {
namespace {

namespace b = quern::blocks;

std::vector<b::PrefixLoops> AllLoops() {
  b::PrefixLoops loops[b::kMostPrefixLoops];
  return {loops, loops + b::PrefixLoopsOfMachine(loops)};
}

uint64_t FrontOf(const std::string& text, size_t from, uint8_t fill) {
  uint64_t front = 0;
  for (size_t i = from; i < from + 8; ++i)
    front = front << 8 | (i < text.size() ? static_cast<uint8_t>(text[i]) : fill);
  return front;
}

// Strings of up to `longest` bytes, many of them empty, made of zeros, letters and bytes above 127.
std::vector<std::string> RandomTexts(uint32_t seed, size_t n, size_t longest) {
  std::mt19937 random(seed);
  std::vector<std::string> texts(n);
  for (std::string& text : texts) {
    text.resize(random() % 4 == 0 ? 0 : random() % (longest + 1));
    for (char& c : text) c = "a\0z\xff"[random() % 4];
  }
  return texts;
}

template <class Offset>
void ExpectLikeOneByOne(const std::vector<std::string>& texts, Guard guard) {
  std::vector<Offset> offsets = {0};
  std::vector<char> bytes;
  for (const std::string& text : texts) {
    bytes.insert(bytes.end(), text.begin(), text.end());
    offsets.push_back(static_cast<Offset>(bytes.size()));
  }
  const GuardedBuffer values = GuardedBuffer::Of(bytes, guard), ends = GuardedBuffer::Of(offsets, guard);
  const auto n = static_cast<uint32_t>(texts.size());
  const b::StringRun<Offset> run = {values.data(), ends.as<Offset>(), n + 1, n % 2 * 4096};
  for (const b::PrefixLoops& loops : AllLoops()) {
    std::vector<uint64_t> fronts(n), high(n), low(n);
    bool incomplete = false, expected = false;
    uint32_t num_fronts = 0, num_prefixes = 0;
    if constexpr (sizeof(Offset) == 4) num_fronts = loops.fronts32(run, n, 0x2020202020202020u, fronts.data());
    else num_fronts = loops.fronts64(run, n, 0x2020202020202020u, fronts.data());
    if constexpr (sizeof(Offset) == 4) num_prefixes = loops.prefixes32(run, n, high.data(), low.data(), &incomplete);
    else num_prefixes = loops.prefixes64(run, n, high.data(), low.data(), &incomplete);
    ASSERT_LE(std::max(num_fronts, num_prefixes), n);
    for (uint32_t i = 0; i < num_fronts; ++i) EXPECT_EQ(fronts[i], FrontOf(texts[i], 0, ' ')) << loops.name << " " << i;
    for (uint32_t i = 0; i < num_prefixes; ++i) {
      EXPECT_EQ(high[i], FrontOf(texts[i], 0, 0)) << loops.name << " " << i;
      EXPECT_EQ(low[i], FrontOf(texts[i], 8, 0)) << loops.name << " " << i;
      expected |= texts[i].size() > 16 || (!texts[i].empty() && texts[i].back() == 0);
    }
    EXPECT_EQ(incomplete, expected) << loops.name;
    // All strings except those too near the end for a load of eight, or sixteen, bytes.
    if (n >= 64 && bytes.size() > size_t{n} * 2) {
      EXPECT_GE(std::min(num_fronts, num_prefixes) + 40, n) << loops.name;
    }
  }
}

TEST(StringPrefix, LoopsGiveWhatOneStringAtATimeGives) {
  for (const Guard guard : {Guard::kBehind, Guard::kInFront}) {
    for (const size_t longest : {0, 1, 7, 9, 16, 17, 40, 200}) {
      for (const size_t n : {size_t{1}, size_t{7}, size_t{8}, size_t{9}, size_t{64}, size_t{500}}) {
        const std::vector<std::string> texts = RandomTexts(static_cast<uint32_t>(n + longest), n, longest);
        ExpectLikeOneByOne<int32_t>(texts, guard);
        ExpectLikeOneByOne<int64_t>(texts, guard);
      }
    }
  }
}

// A trailing zero byte is found at any of the sixteen positions, and no other byte is mistaken for it.
TEST(StringPrefix, ZeroBytesAtTheEnd) {
  for (size_t length = 1; length <= 16; ++length) {
    for (const char last : {'\0', 'x'}) {
      std::vector<std::string> texts(24, std::string(12, 'y'));
      texts[5] = std::string(length - 1, '\0') + last;
      ExpectLikeOneByOne<int32_t>(texts, Guard::kBehind);
    }
  }
}

}  // namespace
}  // namespace quern::test
