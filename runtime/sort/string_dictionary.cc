// SPDX-License-Identifier: Apache-2.0
// A key column of 10 million strings often has 20,000 distinct ones. Sorted by their ranks, which take 15 bits, 10
// million rows are one word each, whatever the strings' lengths; only 20,000 strings are sorted, once.
// ("Order-preserving dictionary"; here it is made while rows arrive.)
//
//     rows       "rail" "ship" "air" "rail"
//     codes        0      1      2     0         in the order of arrival
//     ranks      1 of 3   2      0     1         when all strings are known
//
// Codes stand for the original strings, so that each keeps its own bytes. Ranks follow the collation: with
// utf8mb4_general_ci, "Rail" has the rank of "rail". However expensive a collation's order keys are, they are made once
// for each distinct string.
//
// A string is looked up in two arrays. With 20,000 strings both stay in an L2 cache of 1 MB; a single array with 64
// bytes a string would not:
//
//     bucket   16 tags of 16 bits, 16 codes     found by the hash's low bits; the tag is its high bits; at most half
//                                               full on average
//     front    32 bytes by code                 the whole string, or its beginning and a sign that it is longer
//
// One vector comparison finds the position in a bucket, and another compares the front with the string; no branch
// depends on where a string lies or how long it is. 128 strings are processed together: buckets are prefetched when
// hashes are known, fronts when codes are.
#include "runtime/sort/string_dictionary.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/blocks/encode.h"
#include "runtime/collation/collation.h"
#include "runtime/sort/prefix_sort.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace quern {
namespace {

constexpr uint64_t kFirstBuckets = 64;
constexpr uint32_t kLongestFront = 31;
constexpr uint32_t kBlock = 128;
constexpr uint32_t kNone = UINT32_MAX;

uint64_t TagOf(uint64_t hash) { return hash >> 48 | 1; }

bool IsStream(const blocks::Bytes* strings, uint32_t n) {
  const auto first = reinterpret_cast<uintptr_t>(strings[0].data),
             last = reinterpret_cast<uintptr_t>(strings[n - 1].data);
  return last > first && last - first < uint64_t{n} * 64;
}

}  // namespace

// Written word by word to its final place: reading it back at once as a vector would wait for these stores.
inline __attribute__((always_inline)) void StringDictionary::Seek(blocks::Bytes string, Sought* sought) {
  const blocks::ShortWords words = blocks::ReadShort(string.data, std::min(string.length, kLongestFront));
  const uint64_t mark = string.length <= kLongestFront ? string.length + 1 : 255;
  const uint64_t w[4] = {words.words[0], words.words[1], words.words[2], words.words[3] | mark << 56};
  const blocks::HashSecret& secret = blocks::quern_hash_secret;
  uint64_t hash = blocks::FoldedMultiply(w[0] ^ secret[blocks::kMultiplier1], w[1] ^ secret[blocks::kMultiplier2]) +
                  blocks::FoldedMultiply(w[2] ^ secret[blocks::kCombine], w[3] ^ secret[blocks::kMultiplier1]);
  if (__builtin_expect(string.length > kLongestFront, 0))
    hash += blocks::HashBytes(string.data + kLongestFront, string.length - kLongestFront, secret);
  for (uint32_t i = 0; i < 4; ++i) sought->front.words[i] = w[i];
  sought->hash = hash;
}

// A bit for each position that has the tag.
uint32_t StringDictionary::LanesOf(const Bucket& bucket, uint16_t tag) {
#if defined(__x86_64__)
  const __m128i wanted = _mm_set1_epi16(static_cast<int16_t>(tag));
  const auto* const tags = reinterpret_cast<const __m128i*>(bucket.tags);
  const __m128i lanes = _mm_packs_epi16(_mm_cmpeq_epi16(tags[0], wanted), _mm_cmpeq_epi16(tags[1], wanted));
  return static_cast<uint32_t>(_mm_movemask_epi8(lanes));
#else
  uint32_t lanes = 0;
  for (uint32_t i = 0; i < kPlaces; ++i) lanes |= (bucket.tags[i] == tag ? 1u : 0u) << i;
  return lanes;
#endif
}

bool StringDictionary::IsFront(const Front& a, const Front& b) {
  typedef uint64_t U64x2 __attribute__((vector_size(16)));
  const auto *x = reinterpret_cast<const U64x2*>(&a), *y = reinterpret_cast<const U64x2*>(&b);
  const U64x2 difference = (x[0] ^ y[0]) | (x[1] ^ y[1]);
  return (difference[0] | difference[1]) == 0;
}

bool StringDictionary::IsString(uint32_t code, const Front& front, blocks::Bytes string) const {
  if (!IsFront(fronts()[code], front)) return false;
  if (string.length <= kLongestFront) return true;
  return strings_[code].length == string.length && blocks::EqualBytes(strings_[code].data, string.data, string.length);
}

void StringDictionary::Place(uint64_t hash, uint32_t code) {
  uint64_t at = hash & mask_;
  while (buckets()[at].tags[kPlaces - 1] != 0) at = (at + 1) & mask_;
  Bucket& bucket = buckets()[at];
  const auto place = static_cast<uint32_t>(std::countr_zero(LanesOf(bucket, 0)));
  bucket.tags[place] = static_cast<uint16_t>(TagOf(hash));
  bucket.codes[place] = static_cast<uint16_t>(code);
}

// Doubles the buckets, and makes room for fronts that fill half of their positions.
absl::Status StringDictionary::Grow() {
  const uint64_t num = num_buckets() == 0 ? kFirstBuckets : num_buckets() * 2;
  QUERN_ASSIGN_OR_RETURN(HugeBuffer grown, HugeBuffer::Allocate(budget_, num * sizeof(Bucket), true));
  QUERN_ASSIGN_OR_RETURN(HugeBuffer fronts, HugeBuffer::Allocate(budget_, num * (kPlaces / 2) * sizeof(Front), true));
  if (size() != 0) std::memcpy(fronts.data(), fronts_.data(), size() * sizeof(Front));
  buckets_ = std::move(grown);
  fronts_ = std::move(fronts);
  mask_ = num - 1;
  for (uint32_t code = 0; code < size(); ++code) {
    Sought sought;
    Seek(strings_[code], &sought);
    Place(sought.hash, code);
  }
  return absl::OkStatus();
}

absl::Status StringDictionary::MakeRoom() {
  while (uint64_t{size()} + kBlock > num_buckets() * (kPlaces / 2)) QUERN_RETURN_IF_ERROR(Grow());
  return absl::OkStatus();
}

// Returns kNone if there would be too many strings, or if so many meet in one place that they were made to.
absl::StatusOr<uint32_t> StringDictionary::FindOrAdd(const Sought& sought, blocks::Bytes string) {
  uint32_t probes = 0;
  for (uint64_t at = sought.hash & mask_;; at = (at + 1) & mask_) {
    if (++probes > thresholds::kLongestDictionaryProbe) return kNone;
    const Bucket& bucket = buckets()[at];
    for (uint32_t lanes = LanesOf(bucket, static_cast<uint16_t>(TagOf(sought.hash))); lanes != 0; lanes &= lanes - 1) {
      const uint32_t code = bucket.codes[std::countr_zero(lanes)];
      if (IsString(code, sought.front, string)) return code;
    }
    if (bucket.tags[kPlaces - 1] == 0) break;
  }
  const uint32_t code = size();
  if (code == kMostStrings) return kNone;
  QUERN_ASSIGN_OR_RETURN(uint8_t* copy, bytes_.Allocate(std::max(string.length, 1u)));
  if (string.length != 0) std::memcpy(copy, string.data, string.length);
  strings_.push_back({copy, string.length});
  std::memcpy(fronts_.data() + code * sizeof(Front), &sought.front, sizeof(Front));
  Place(sought.hash, code);
  return code;
}

absl::StatusOr<bool> StringDictionary::Add(const blocks::Bytes* strings, uint32_t n, uint32_t* codes,
                                           const uint8_t** copies) {
  return WithPrefetch(distances_.dictionary_rows,
                      [&]<class Prefetch>() { return AddAs<Prefetch>(strings, n, codes, copies); });
}

template <class Prefetch>
absl::StatusOr<bool> StringDictionary::AddAs(const blocks::Bytes* strings, uint32_t n, uint32_t* codes,
                                             const uint8_t** copies) {
  Sought sought[kBlock];
  // Lookups between the reads hide from the hardware prefetcher that the strings are contiguous.
  const uint64_t ahead_bytes = distances_.string_bytes;
  const bool is_stream = ahead_bytes != 0 && n > 0 && IsStream(strings, n);
  const uint32_t block_rows = Prefetch::kPrefetches ? std::min(kBlock, distances_.dictionary_rows) : kBlock;
  for (uint32_t begin = 0; begin < n; begin += block_rows) {
    const uint32_t size_of_block = std::min(block_rows, n - begin);
    while (uint64_t{size()} + size_of_block > num_buckets() * (kPlaces / 2)) QUERN_RETURN_IF_ERROR(Grow());
    const Bucket* const table = buckets();
    const Front* const fronts_of_codes = fronts();
    for (uint32_t i = 0; i < size_of_block; ++i) {
      if (i % 4 == 0)
        PrefetchIf(is_stream,
                   reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(strings[begin + i].data) + ahead_bytes));
      Seek(strings[begin + i], &sought[i]);
      Prefetch::For(&table[sought[i].hash & mask_]);
    }
    for (uint32_t i = 0; i < size_of_block; ++i) {
      const Bucket& bucket = table[sought[i].hash & mask_];
      // If no position has the tag, the last one will do: the comparison with its front decides.
      const uint32_t lanes = LanesOf(bucket, static_cast<uint16_t>(TagOf(sought[i].hash))) | 1u << (kPlaces - 1);
      codes[begin + i] = bucket.codes[std::countr_zero(lanes)];
      Prefetch::For(&fronts_of_codes[codes[begin + i]]);
    }
    for (uint32_t i = 0; i < size_of_block; ++i) {
      const bool is_found = IsFront(fronts_of_codes[codes[begin + i]], sought[i].front);
      if (__builtin_expect(is_found && strings[begin + i].length <= kLongestFront, 1)) continue;
      QUERN_ASSIGN_OR_RETURN(codes[begin + i], FindOrAdd(sought[i], strings[begin + i]));
      if (codes[begin + i] == kNone) return false;
    }
  }
  for (uint32_t i = 0; i < n && copies != nullptr; ++i) copies[i] = strings_[codes[i]].data;
  return true;
}

namespace {

// Orders the strings of several dictionaries.
class StringOrder {
 public:
  StringOrder(const std::vector<const StringDictionary*>& codes, CollationRule rule,
              const std::shared_ptr<MemoryBudget>& budget)
      : codes_(codes), rule_(rule), budget_(budget), keys_(budget, false, Contents::kAnything) {}

  // Sorts by the first eight bytes as numbers and then, where these are equal, by comparing.
  absl::Status Sort() {
    for (uint32_t i = 0; i < codes_.size(); ++i) QUERN_RETURN_IF_ERROR(AddNumbering(i));
    PrefixSorter sorter(2, budget_);
    QUERN_RETURN_IF_ERROR(sorter.Sort(reinterpret_cast<uint64_t*>(places_.data()), places_.size()));
    for (size_t begin = 0, end = 0; begin < places_.size(); begin = end) {
      for (end = begin + 1; end < places_.size() && places_[end].front == places_[begin].front;) ++end;
      std::sort(places_.begin() + static_cast<ptrdiff_t>(begin), places_.begin() + static_cast<ptrdiff_t>(end),
                [this](const Place& a, const Place& b) { return Compare(a, b) < 0; });
    }
    return absl::OkStatus();
  }

  // Compares the bytes after the first eight.
  uint32_t GiveRanks(std::vector<std::vector<uint32_t>>* ranks) const {
    uint32_t rank = 0;
    for (size_t p = 0; p < places_.size(); ++p) {
      if (p > 0 && (places_[p].front != places_[p - 1].front || Compare(places_[p - 1], places_[p]) != 0)) ++rank;
      (*ranks)[places_[p].numbering][places_[p].code] = rank;
    }
    return places_.empty() ? 0 : rank + 1;
  }

 private:
  struct Place {
    uint64_t front;
    uint32_t numbering;
    uint32_t code;
  };
  static_assert(sizeof(Place) == 16);

  absl::Status AddNumbering(uint32_t numbering) {
    const std::vector<blocks::Bytes>& strings = codes_[numbering]->strings();
    std::vector<uint64_t> high(strings.size()), low(strings.size());
    blocks::OrderPrefixes(strings.data(), static_cast<uint32_t>(strings.size()), rule_, high.data(), low.data());
    for (uint32_t code = 0; code < strings.size(); ++code) places_.push_back({high[code], numbering, code});
    return weighs() ? AddKeys(strings) : absl::OkStatus();
  }

  // Makes order keys once a string, since sorting compares each several times.
  absl::Status AddKeys(const std::vector<blocks::Bytes>& strings) {
    std::vector<blocks::Bytes>& keys = keys_of_.emplace_back();
    std::string key;
    for (const blocks::Bytes& string : strings) {
      key.clear();
      AppendOrderKey(string, rule_, &key);
      QUERN_ASSIGN_OR_RETURN(uint8_t* copy, keys_.Allocate(std::max<size_t>(key.size(), 1)));
      std::copy(key.begin(), key.end(), copy);
      keys.push_back({copy, static_cast<uint32_t>(key.size())});
    }
    return absl::OkStatus();
  }

  bool weighs() const { return (rule_ & kWeighsOrder) != 0; }
  int Compare(const Place& a, const Place& b) const {
    if (!weighs())
      return blocks::OrderBytes(codes_[a.numbering]->strings()[a.code], codes_[b.numbering]->strings()[b.code], 0,
                                rule_);
    return CompareOrderKeys(keys_of_[a.numbering][a.code], keys_of_[b.numbering][b.code]);
  }
  int CompareOrderKeys(blocks::Bytes a, blocks::Bytes b) const {
    const uint32_t shorter = std::min(a.length, b.length);
    const int order = std::memcmp(a.data, b.data, shorter);
    if (order != 0 || a.length == b.length) return order;
    const uint8_t pad = (rule_ & kPadsSpaces) != 0 ? PadByte(rule_) : 0;
    const blocks::Bytes longer = a.length > b.length ? a : b;
    const int if_longer_is_greater = a.length > b.length ? 1 : -1;
    for (uint32_t i = shorter; i < longer.length; ++i)
      if (longer.data[i] != pad) return longer.data[i] > pad ? if_longer_is_greater : -if_longer_is_greater;
    return 0;
  }

  const std::vector<const StringDictionary*>& codes_;
  const CollationRule rule_;
  const std::shared_ptr<MemoryBudget>& budget_;
  Arena keys_;
  std::vector<std::vector<blocks::Bytes>> keys_of_;  // by dictionary and code
  std::vector<Place> places_;
};

}  // namespace

namespace {

// Unifies the dictionaries, which are nearly the same for threads that see the same strings: looking a string up costs
// less than ordering it. Returns false if there are too many strings for that.
absl::StatusOr<bool> NumberAsOne(const std::vector<const StringDictionary*>& codes, StringDictionary* all,
                                 std::vector<std::vector<uint32_t>>* numbers) {
  for (const StringDictionary* numbering : codes) {
    std::vector<uint32_t>& of_numbering = numbers->emplace_back(numbering->size());
    QUERN_ASSIGN_OR_RETURN(const bool few,
                           all->Add(numbering->strings().data(), numbering->size(), of_numbering.data(), nullptr));
    if (!few) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<uint32_t> RankStrings(const std::vector<const StringDictionary*>& codes, CollationRule rule,
                                     const std::shared_ptr<MemoryBudget>& budget,
                                     std::vector<std::vector<uint32_t>>* ranks) {
  if (codes.size() > 1) {
    StringDictionary all(budget, codes.front()->distances());
    std::vector<std::vector<uint32_t>> numbers, ranks_of_all;
    QUERN_ASSIGN_OR_RETURN(const bool few, NumberAsOne(codes, &all, &numbers));
    if (few) {
      QUERN_ASSIGN_OR_RETURN(const uint32_t num_ranks, RankStrings({&all}, rule, budget, &ranks_of_all));
      for (std::vector<uint32_t>& of_numbering : numbers)
        for (uint32_t& number : of_numbering) number = ranks_of_all[0][number];
      *ranks = std::move(numbers);
      return num_ranks;
    }
  }
  ranks->assign(codes.size(), {});
  for (uint32_t i = 0; i < codes.size(); ++i) (*ranks)[i].resize(codes[i]->size());
  StringOrder order(codes, rule, budget);
  QUERN_RETURN_IF_ERROR(order.Sort());
  return order.GiveRanks(ranks);
}

}  // namespace quern
