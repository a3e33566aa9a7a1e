// SPDX-License-Identifier: Apache-2.0
// The functions that kernels call for strings that they do not fold in a register: those with a character beyond U+0020
// to U+007E, and pairs of which one is longer than 32 bytes. Joins and aggregations compare strings after their hashes
// agreed, so that they are nearly always equal, most often byte by byte. Hence that test comes first, then one as
// capitals, 16 bytes at a time, and the weights (collation.h) only for the rest:
//
//     'rök', 'rök'        the same bytes                          equal
//     'Rail', 'RAIL' ..   capitals, 16 bytes at a time            equal
//     'rök', 'RÖK'        weights                                 equal under utf8mb4_general_ci
#include "runtime/collation/collate.h"

#include "runtime/base/refused_calls.h"
#include "runtime/collation/collation.h"

namespace quern {
namespace {

namespace b = blocks;

enum class Answer { kEqual, kDifferent, kUnknown };

// Compares n bytes of U+0020 to U+007E, ignoring the case of letters; kUnknown if there are others.
Answer ComparePrintable(const uint8_t* x, const uint8_t* y, uint32_t n) {
  b::I8x32 others = {}, difference = {};
  for (; n > b::kShortBytes; n -= b::kShortBytes, x += b::kShortBytes, y += b::kShortBytes) {
    const auto u = b::Load<b::I8x32>(x), v = b::Load<b::I8x32>(y);
    others |= b::OtherThanPrintable(u) | b::OtherThanPrintable(v);
    difference |= b::Capitals(u) ^ b::Capitals(v);
  }
  const b::I8x32 u = b::ReadShortBytes(x, n), v = b::ReadShortBytes(y, n);
  others |= (b::OtherThanPrintable(u) | b::OtherThanPrintable(v)) & b::Load<b::I8x32>(b::ShortMask(n));
  difference |= b::Capitals(u) ^ b::Capitals(v);
  if (b::AnyBit((b::U64x4)others)) return Answer::kUnknown;
  return b::AnyBit((b::U64x4)difference) ? Answer::kDifferent : Answer::kEqual;
}

}  // namespace
}  // namespace quern

extern "C" {
uint64_t quern_rt_hash_collated(const uint8_t* data, uint32_t length, CollationRule rule,
                                const quern::blocks::HashSecret* secret) {
  return quern::OrNoted<uint64_t>(0, [&] { return quern::HashString({data, length}, rule, *secret); });
}

bool quern_rt_equal_collated(const uint8_t* a, uint32_t a_length, const uint8_t* b, uint32_t b_length,
                             CollationRule rule) {
  if (a_length == b_length) {
    if (quern::b::EqualBytes(a, b, a_length)) return true;
    if ((rule & kFoldsAscii) != 0) {
      const quern::Answer answer = quern::ComparePrintable(a, b, a_length);
      if (answer != quern::Answer::kUnknown) return answer == quern::Answer::kEqual;
    }
  }
  return quern::OrNoted(false, [&] { return quern::EqualStrings({a, a_length}, {b, b_length}, rule); });
}
}
