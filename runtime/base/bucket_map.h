// SPDX-License-Identifier: Apache-2.0
// Assigns entries to buckets by their first word. Buckets are of about the same size, and in order.
#ifndef QUERN_RUNTIME_BASE_BUCKET_MAP_H_
#define QUERN_RUNTIME_BASE_BUCKET_MAP_H_

#include <algorithm>
#include <cstdint>
#include <vector>

namespace quern {

class BucketMap {
 public:
  static constexpr uint32_t kTopBits = 10;

  // For about 2^bits buckets, 1 to 11, of words like those of the sample, which need not be sorted. Words that the
  // sample missed can make buckets uneven, but never change their order.
  BucketMap(uint32_t bits, std::vector<uint64_t> sample);

  uint32_t num_buckets() const { return num_buckets_; }
  // Whether the highest bits alone determine the bucket.
  bool is_plain() const { return ranges_.empty(); }
  uint32_t shift() const { return shift_; }

  // The words with the same kTopBits highest bits.
  struct Range {
    uint64_t low = 0;  // of word >> shift
    uint32_t first_bucket = 0;
    uint32_t most = 0;  // number of buckets - 1
    uint32_t shift = 63;
  };
  // Indexed by a word's highest bits. Only where is_plain() is false.
  const Range* ranges() const { return ranges_.data(); }

  // Monotonic: a greater word never has a lower bucket.
  static uint32_t BucketOf(const Range* ranges, uint64_t word) {
    const Range& range = ranges[word >> (64 - kTopBits)];
    const uint64_t place = std::max(word >> range.shift, range.low) - range.low;
    return range.first_bucket + static_cast<uint32_t>(std::min<uint64_t>(place, range.most));
  }

 private:
  std::vector<Range> ranges_;
  uint32_t shift_;
  uint32_t num_buckets_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_BASE_BUCKET_MAP_H_
