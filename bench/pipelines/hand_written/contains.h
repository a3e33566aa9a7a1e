// SPDX-License-Identifier: Apache-2.0
// Texts that have "green" in them. The texts of a batch lie behind each other, so they are searched as one: blocks of
// 64 places are looked at for a "g" with an "n" four places on, and only where there is one are all letters compared
// and is the text found that the place belongs to.
#ifndef QUERN_BENCH_PIPELINES_HAND_WRITTEN_CONTAINS_H_
#define QUERN_BENCH_PIPELINES_HAND_WRITTEN_CONTAINS_H_

#include <stdint.h>
#include <string.h>

#include "bench/pipelines/hand_written/arrow_tables.h"

namespace quern::bench {

constexpr char kGreen[] = "green";
constexpr int32_t kGreenBytes = 5, kBlockBytes = 64;

// Calls use(row) for the rows first .. first + n-1 whose text has kGreen in it, once each and in their order.
template <class Use>
void ForEachTextWithGreen(const Texts& texts, size_t first, uint32_t n, Use&& use) {
  const int32_t* ends = texts.offsets + first + 1;
  const int32_t end = texts.offsets[first + n];
  uint32_t row = 0;
  int32_t next_place = texts.offsets[first];  // behind the text that was found last
  const auto try_place = [&](int32_t place) {
    if (place < next_place || place + kGreenBytes > end) return;
    if (memcmp(texts.bytes + place, kGreen, kGreenBytes) != 0) return;
    while (ends[row] <= place) ++row;
    if (place + kGreenBytes > ends[row]) return;
    use(first + row);
    next_place = ends[row];
  };
  int32_t begin = texts.offsets[first];
  for (; begin + kBlockBytes + kGreenBytes <= end; begin += kBlockBytes) {
    const char* block = texts.bytes + begin;
    uint8_t hits[kBlockBytes], any = 0;
    for (int32_t i = 0; i < kBlockBytes; ++i) {
      hits[i] = static_cast<uint8_t>((block[i] == kGreen[0]) & (block[i + kGreenBytes - 1] == kGreen[kGreenBytes - 1]));
      any |= hits[i];
    }
    if (any == 0) continue;
    for (int32_t i = 0; i < kBlockBytes; ++i)
      if (hits[i] != 0) try_place(begin + i);
  }
  for (; begin < end; ++begin) try_place(begin);
}

}  // namespace quern::bench

#endif  // QUERN_BENCH_PIPELINES_HAND_WRITTEN_CONTAINS_H_
