// SPDX-License-Identifier: Apache-2.0
// The highest bits of keys are seldom distributed evenly: half of all numbers from 0 to 1 have the exponent of those
// above one half. A sample of the words shows how often each value of the 10 highest bits occurs. Each value gets its
// share of the buckets, which are told apart by the lower bits that vary in the sample. For 1024 buckets and a sample
// of 8192:
//
//     10 highest bits       in the sample    lowest, highest word           buckets
//     0011111111 (>= 1/2)   4096             0x3fe0.. 0x3fef..              512: bits 52 to 44
//     0011111110 ..         4090             ..                             511
//     0011110000 (< 2^-60)  1                                               1
//
// A word below the lowest of its range goes to the range's first bucket, one above the highest to its last, so that
// buckets are in order whatever the sample missed. If no bucket is far above its share, the highest bits alone are the
// bucket.
#include "runtime/base/bucket_map.h"

#include <algorithm>

namespace quern {

BucketMap::BucketMap(uint32_t bits, std::vector<uint64_t> sample) : shift_(64 - bits), num_buckets_(1u << bits) {
  if (!std::is_sorted(sample.begin(), sample.end())) std::sort(sample.begin(), sample.end());
  const uint64_t fair = std::max<uint64_t>(sample.size() >> bits, 1);
  uint64_t largest = 0;
  for (size_t begin = 0, end = 0; begin < sample.size(); begin = end) {
    while (end < sample.size() && sample[end] >> shift_ == sample[begin] >> shift_) ++end;
    largest = std::max<uint64_t>(largest, end - begin);
  }
  // Looking up ranges costs more than buckets of several times their fair size do: 31 instead of 22 ns for each entry
  // where texts of digits make buckets 4 times as large, 22 instead of 18 where numbers from 0 to 1 make them 16 times
  // as large. Words that are all the same cannot be divided.
  if (largest <= 12 * fair || sample.front() == sample.back()) return;
  ranges_.resize(1u << kTopBits);
  num_buckets_ = 0;
  size_t begin = 0, end = 0;
  for (uint64_t top = 0; top < ranges_.size(); ++top) {
    while (end < sample.size() && sample[end] >> (64 - kTopBits) == top) ++end;
    Range& range = ranges_[top];
    range.first_bucket = num_buckets_;
    if (end > begin) {
      const uint64_t share = std::max<uint64_t>(((end - begin) << bits) / sample.size(), 1), low = sample[begin],
                     high = sample[end - 1];
      range.shift = 0;
      while ((high >> range.shift) - (low >> range.shift) >= share) ++range.shift;
      range.low = low >> range.shift;
      range.most = static_cast<uint32_t>((high >> range.shift) - range.low);
    }
    num_buckets_ += range.most + 1;
    begin = end;
  }
}

}  // namespace quern
