// SPDX-License-Identifier: Apache-2.0
// Dictionary codes for the strings of a sort key, while few are distinct: rows are sorted by their ranks instead of
// their bytes.
#ifndef QUERN_RUNTIME_SORT_STRING_DICTIONARY_H_
#define QUERN_RUNTIME_SORT_STRING_DICTIONARY_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/memory.h"
#include "runtime/base/thresholds.h"
#include "runtime/blocks/blocks.h"
#include "runtime/rows/prefetch.h"

namespace quern {

// Assigns codes to strings in the order in which they are first seen. *Threads*: one.
class StringDictionary {
 public:
  static constexpr uint32_t kMostStrings = thresholds::kDictionaryStrings;

  // Prefetches by string_bytes and dictionary_rows of the distances.
  explicit StringDictionary(std::shared_ptr<MemoryBudget> budget, const PrefetchDistances& distances = {})
      : distances_(distances), budget_(budget), bytes_(std::move(budget), false) {}

  // Finds the codes of n strings, and the addresses of their copies, which live as long as the dictionary; copies: null
  // if not needed. Returns false once there would be more than kMostStrings distinct strings; what was written by then
  // is undefined.
  // *Cost*: about 5 ns a string of up to 31 bytes that was seen before.
  // *Errors*: ResourceExhausted.
  absl::StatusOr<bool> Add(const blocks::Bytes* strings, uint32_t n, uint32_t* codes, const uint8_t** copies);

  // Makes room, so that finding strings that are there takes no memory. *Errors*: ResourceExhausted.
  absl::Status MakeRoom();

  uint32_t size() const { return static_cast<uint32_t>(strings_.size()); }
  const std::vector<blocks::Bytes>& strings() const { return strings_; }
  const PrefetchDistances& distances() const { return distances_; }

 private:
  // A bucket holds strings whose hashes share their low bits, filled from the front; strings that do not fit go to the
  // next bucket.
  static constexpr uint32_t kPlaces = 16;
  struct alignas(64) Bucket {
    uint16_t tags[kPlaces];  // of the hash; 0: empty
    uint16_t codes[kPlaces];
  };
  // A whole string of up to 31 bytes, padded with zeros, or the beginning of a longer one. The last byte is the length
  // plus one, or 255 for a longer string.
  struct alignas(32) Front {
    uint64_t words[4];
  };
  struct Sought {
    Front front;
    uint64_t hash;
  };
  static void Seek(blocks::Bytes string, Sought* sought);
  static uint32_t LanesOf(const Bucket& bucket, uint16_t tag);
  static bool IsFront(const Front& a, const Front& b);
  bool IsString(uint32_t code, const Front& front, blocks::Bytes string) const;
  const Front* fronts() const { return reinterpret_cast<const Front*>(fronts_.data()); }
  Bucket* buckets() { return reinterpret_cast<Bucket*>(buckets_.data()); }
  uint64_t num_buckets() const { return buckets_.bytes() / sizeof(Bucket); }
  absl::Status Grow();
  void Place(uint64_t hash, uint32_t code);
  absl::StatusOr<uint32_t> FindOrAdd(const Sought& sought, blocks::Bytes string);

  template <class Prefetch>
  absl::StatusOr<bool> AddAs(const blocks::Bytes* strings, uint32_t n, uint32_t* codes, const uint8_t** copies);

  PrefetchDistances distances_;
  std::shared_ptr<MemoryBudget> budget_;
  Arena bytes_;
  HugeBuffer buckets_;
  HugeBuffer fronts_;  // by code
  uint64_t mask_ = 0;
  std::vector<blocks::Bytes> strings_;
};

// Ranks the strings of several dictionaries among all of them: (*ranks)[i][code]. Strings that are equal by the rule
// have equal ranks. Returns the number of different ranks. Strings must be trimmed if the rule trims.
// *Errors*: ResourceExhausted.
absl::StatusOr<uint32_t> RankStrings(const std::vector<const StringDictionary*>& codes, CollationRule rule,
                                     const std::shared_ptr<MemoryBudget>& budget,
                                     std::vector<std::vector<uint32_t>>* ranks);

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_STRING_DICTIONARY_H_
