// SPDX-License-Identifier: Apache-2.0
// Prefixes of one word are sorted by a vector sort (VQSort of the Highway library: Blacher, Giesen, Sanders,
// Wassenberg, Vectorized and performance-portable Quicksort, 2022). Prefixes of more words are radix-sorted, highest
// bits first. The radix sort finds the bits that vary before it partitions by them, so that leading bits which all keys
// share cost one scan:
//
//     n = 5000 prefixes, which differ in bit 52 and below of word 0
//     partition by bits 52 .. 40: 8192 buckets, most of them with one prefix or none
//     buckets of up to 16 prefixes: one insertion sort over all of them, as the buckets are already in order
//     a larger bucket: scanned again for the bits that vary in it
//
// The number of bits to partition by is that of n, so that one pass suffices where keys are evenly distributed; where
// they are not, each pass partitions by the next bits of the rest. Prefixes with equal first words continue with the
// next word. Prefixes move between the array and a scratch array of the same size. Both should fit the L2 cache, which
// is why sorted_rows.cc partitions large inputs beforehand.
#include "runtime/sort/prefix_sort.h"

#include <hwy/contrib/sort/vqsort.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/sort/sort_prefixes.h"

namespace quern {
namespace {

constexpr uint64_t kInsertionEntries = thresholds::kInsertionSortRows;
constexpr uint64_t kVectorEntries = thresholds::kVectorSortRows;
constexpr uint32_t kMostBits = thresholds::kMostRadixBits;

template <uint32_t kWords>
struct Entry {
  uint64_t words[kWords];
};

template <uint32_t kWords>
inline bool IsLess(const Entry<kWords>& a, const Entry<kWords>& b) {
  if constexpr (kWords == 1) {
    return a.words[0] < b.words[0];
  } else if constexpr (kWords == 2) {
    using uint128_t = unsigned __int128;
    return (uint128_t{a.words[0]} << 64 | a.words[1]) < (uint128_t{b.words[0]} << 64 | b.words[1]);
  } else {
    for (uint32_t w = 0; w + 1 < kWords; ++w)
      if (a.words[w] != b.words[w]) return a.words[w] < b.words[w];
    return a.words[kWords - 1] < b.words[kWords - 1];
  }
}

template <uint32_t kWords>
void Insert(Entry<kWords>* entries, uint64_t n) {
  for (uint64_t i = 1; i < n; ++i) {
    if (!IsLess(entries[i], entries[i - 1])) continue;
    const Entry<kWords> entry = entries[i];
    uint64_t to = i;
    do {
      entries[to] = entries[to - 1];
      --to;
    } while (to > 0 && IsLess(entry, entries[to - 1]));
    entries[to] = entry;
  }
}

template <uint32_t kWords>
class RadixSort {
 public:
  using E = Entry<kWords>;
  explicit RadixSort(std::vector<std::unique_ptr<uint32_t[]>>* counts) : counts_(*counts) {}

  // Sorts n prefixes that are equal in the words before `word`; into `scratch` if so, else in place.
  void Sort(E* entries, E* scratch, uint64_t n, uint32_t word, bool into_scratch, size_t depth) {
    const uint64_t varying = n <= kInsertionEntries ? 0 : FindVarying(entries, n, &word);
    if (varying == 0) {
      if (n <= kInsertionEntries) Insert(entries, n);
      if (into_scratch) std::memcpy(scratch, entries, n * sizeof(E));
      return;
    }
    const uint32_t top = 64 - static_cast<uint32_t>(__builtin_clzll(varying));
    const uint32_t bits_of_n = 64 - static_cast<uint32_t>(__builtin_clzll(n));
    const uint32_t bits = std::min({bits_of_n, top, kMostBits});
    const uint32_t shift = top - bits;
    uint32_t* const ends = Partition(entries, scratch, n, word, shift, bits, depth);
    if (shift == 0 && word + 1 == kWords) {
      if (!into_scratch) std::memcpy(entries, scratch, n * sizeof(E));
      return;
    }
    // The prefixes are now in `scratch`, and move to their destination. `small`: where the buckets begin that wait for
    // insertion.
    uint64_t begin = 0, small = 0;
    for (uint32_t b = 0; b < uint32_t{1} << bits; ++b) {
      const uint64_t end = ends[b];
      if (end - begin > kInsertionEntries) {
        FinishSmall(entries + small, scratch + small, begin - small, into_scratch);
        Sort(scratch + begin, entries + begin, end - begin, word, !into_scratch, depth + 1);
        small = end;
      }
      begin = end;
    }
    FinishSmall(entries + small, scratch + small, n - small, into_scratch);
  }

 private:
  // The varying bits of the first word, from `word` on, in which any vary; sets `word` to it. 0: all prefixes are
  // equal.
  static uint64_t FindVarying(const E* entries, uint64_t n, uint32_t* word) {
    for (; *word < kWords; ++*word) {
      const uint64_t first = entries[0].words[*word];
      uint64_t varying = 0;
      for (uint64_t i = 1; i < n; ++i) varying |= entries[i].words[*word] ^ first;
      if (varying != 0) return varying;
    }
    return 0;
  }

  uint32_t* Partition(const E* entries, E* scratch, uint64_t n, uint32_t word, uint32_t shift, uint32_t bits,
                      size_t depth) {
    if (counts_.size() == depth) counts_.push_back(std::make_unique<uint32_t[]>(uint64_t{1} << kMostBits));
    uint32_t* const counts = counts_[depth].get();
    const uint32_t num_buckets = uint32_t{1} << bits;
    std::fill(counts, counts + num_buckets, 0u);
    const uint64_t mask = num_buckets - 1;
    for (uint64_t i = 0; i < n; ++i) ++counts[entries[i].words[word] >> shift & mask];
    uint32_t sum = 0;
    for (uint32_t b = 0; b < num_buckets; ++b) {
      const uint32_t count = counts[b];
      counts[b] = sum;
      sum += count;
    }
    for (uint64_t i = 0; i < n; ++i) scratch[counts[entries[i].words[word] >> shift & mask]++] = entries[i];
    return counts;
  }

  static void FinishSmall(E* entries, E* scratch, uint64_t n, bool into_scratch) {
    Insert(scratch, n);
    if (!into_scratch) std::memcpy(entries, scratch, n * sizeof(E));
  }

  std::vector<std::unique_ptr<uint32_t[]>>& counts_;
};

}  // namespace

struct PrefixSorter::Vectors {
  hwy::Sorter sort;
};

PrefixSorter::PrefixSorter(uint32_t words, std::shared_ptr<MemoryBudget> budget)
    : words_(words), budget_(std::move(budget)) {}
PrefixSorter::~PrefixSorter() = default;

const char* PrefixSorter::MethodFor(uint32_t words, uint64_t n) {
  return n <= kInsertionEntries ? "insertion" : words == 1 && n >= kVectorEntries ? "vector" : "radix";
}

template <uint32_t kWords>
absl::Status PrefixSorter::SortAll(uint64_t* entries, uint64_t n) {
  auto* const array = reinterpret_cast<Entry<kWords>*>(entries);
  if (n <= kInsertionEntries) {
    Insert(array, n);
    return absl::OkStatus();
  }
  const uint64_t bytes = n * sizeof(Entry<kWords>);
  if (scratch_.bytes() < bytes) {
    scratch_.Free();
    QUERN_ASSIGN_OR_RETURN(scratch_, HugeBuffer::Allocate(budget_, bytes, true, Contents::kAnything));
  }
  RadixSort<kWords>(&counts_).Sort(array, reinterpret_cast<Entry<kWords>*>(scratch_.data()), n, 0, false, 0);
  return absl::OkStatus();
}

absl::Status PrefixSorter::Sort(uint64_t* entries, uint64_t n) {
  if (words_ == 1 && n >= kVectorEntries) {
    if (vectors_ == nullptr) vectors_ = std::make_unique<Vectors>();
    vectors_->sort(entries, n, hwy::SortAscending());
    return absl::OkStatus();
  }
  // Counts are 32 bits.
  if (n > UINT32_MAX)
    return absl::ResourceExhaustedError("too many rows for one part of a sort: " + std::to_string(n) +
                                        "; accepted: 2^32");
  switch (words_) {
    case 1: return SortAll<1>(entries, n);
    case 2: return SortAll<2>(entries, n);
    case 3: return SortAll<3>(entries, n);
    default: return SortAll<4>(entries, n);
  }
}

absl::Status PrefixSorter::SortCollisions(uint64_t* entries, uint64_t n) {
  if (words_ == 1) return absl::OkStatus();
  for (uint64_t begin = 0, end = 0; begin < n; begin = end) {
    const uint64_t first = entries[begin * words_];
    for (end = begin + 1; end < n && entries[end * words_] == first;) ++end;
    if (IsSorted(entries + begin * words_, end - begin, words_)) continue;
    QUERN_RETURN_IF_ERROR(Sort(entries + begin * words_, end - begin));
  }
  return absl::OkStatus();
}

// Removes prefixes that are out of place ("drop-merge sort", Ernerfelt). A prefix that is less than the last kept one
// is dropped; but if it is not less than the one before that, the last kept one was too high and is dropped instead.
// After kRecency drops in a row the kept ones before them were too high: these are dropped, and the drops are undone.
template <uint32_t kWords>
class DropMerge {
 public:
  using E = Entry<kWords>;
  // `dropped` has room for MostDropped(n).
  DropMerge(E* entries, E* dropped) : entries_(entries), dropped_(dropped) {}
  static uint64_t MostDropped(uint64_t n) { return 2 * (64 + n / 16) + kRecency; }

  // Keeps or drops each prefix of the array. Returns false, with all of them there in some order, if too many are
  // dropped.
  bool Split(uint64_t n) {
    uint64_t read = 0;
    for (; read < n && num_dropped_ <= 64 + read / 16; ++read) {
      if (Take(entries_[read])) in_a_row_ = 0;
      else if (++in_a_row_ == kRecency && !GoBack(64 + n / 16)) break;
    }
    if (read < n) std::copy_n(dropped_, num_dropped_, entries_ + kept_);
    return read == n;
  }

  // Merges the dropped prefixes, which are sorted by now, from the end.
  void Merge(uint64_t n) {
    for (uint64_t to = n, left = num_dropped_; left > 0; --to) {
      const bool takes_kept = kept_ > 0 && IsLess(dropped_[left - 1], entries_[kept_ - 1]);
      entries_[to - 1] = takes_kept ? entries_[--kept_] : dropped_[--left];
    }
  }

  uint64_t num_dropped() const { return num_dropped_; }

 private:
  static constexpr uint32_t kRecency = 8;

  // Returns whether the prefix was kept.
  bool Take(E entry) {
    if (kept_ == 0 || !IsLess(entry, entries_[kept_ - 1])) {
      entries_[kept_++] = entry;
      return true;
    }
    const bool last_was_too_high = kept_ == 1 || !IsLess(entry, entries_[kept_ - 2]);
    dropped_[num_dropped_++] = last_was_too_high ? std::exchange(entries_[kept_ - 1], entry) : entry;
    return last_was_too_high;
  }

  // Returns false, with nothing changed, if more than `most` would be dropped.
  bool GoBack(uint64_t most) {
    E back[kRecency];
    std::copy_n(dropped_ + num_dropped_ - kRecency, kRecency, back);
    const E highest = *std::max_element(back, back + kRecency, IsLess<kWords>);
    uint64_t left = kept_;
    while (left > 0 && kept_ - left <= most && IsLess(highest, entries_[left - 1])) --left;
    if (kept_ - left > most) return false;
    num_dropped_ -= kRecency;
    while (kept_ > left) dropped_[num_dropped_++] = entries_[--kept_];
    for (const E& entry : back) Take(entry);
    in_a_row_ = 0;
    return true;
  }

  E* entries_;
  uint64_t kept_ = 0;
  uint32_t in_a_row_ = 0;
  E* dropped_;
  uint64_t num_dropped_ = 0;
};

template <uint32_t kWords>
absl::StatusOr<bool> PrefixSorter::SortFew(uint64_t* entries, uint64_t n) {
  using E = Entry<kWords>;
  QUERN_ASSIGN_OR_RETURN(
      const HugeBuffer memory,
      HugeBuffer::Allocate(budget_, DropMerge<kWords>::MostDropped(n) * sizeof(E), true, Contents::kAnything));
  auto* const dropped = reinterpret_cast<E*>(memory.data());
  DropMerge<kWords> drop_merge(reinterpret_cast<E*>(entries), dropped);
  if (!drop_merge.Split(n)) return false;
  QUERN_RETURN_IF_ERROR(Sort(reinterpret_cast<uint64_t*>(dropped), drop_merge.num_dropped()));
  drop_merge.Merge(n);
  return true;
}

absl::StatusOr<bool> PrefixSorter::SortNearly(uint64_t* entries, uint64_t n) {
  switch (words_) {
    case 1: return SortFew<1>(entries, n);
    case 2: return SortFew<2>(entries, n);
    case 3: return SortFew<3>(entries, n);
    default: return SortFew<4>(entries, n);
  }
}

bool IsSorted(const uint64_t* entries, uint64_t n, uint32_t words) {
  for (uint64_t i = 1; i < n; ++i) {
    const uint64_t *a = entries + (i - 1) * words, *b = a + words;
    uint32_t w = 0;
    while (w + 1 < words && a[w] == b[w]) ++w;
    if (b[w] < a[w]) return false;
  }
  return true;
}

}  // namespace quern
