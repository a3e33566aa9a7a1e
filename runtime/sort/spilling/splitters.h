// SPDX-License-Identifier: Apache-2.0
// Keys that divide the rows of a sort into ranges of about the same size, found by sampling. (DeWitt, Naughton,
// Schneider, Parallel Sorting on a Shared-Nothing Architecture Using Probabilistic Splitting, PDIS 1991.)
#ifndef QUERN_RUNTIME_SORT_SPILLING_SPLITTERS_H_
#define QUERN_RUNTIME_SORT_SPILLING_SPLITTERS_H_

#include <compare>
#include <cstdint>
#include <vector>

#include "runtime/sort/key_comparison.h"
#include "runtime/sort/sort_chunk.h"
#include "runtime/sort/sort_descriptor.h"

namespace quern {

// The first two comparison keys of a row, of those before the first tail that a string may have. Rows of one lead are
// in one range.
struct RowLead {
  uint64_t first = 0, second = 0;
  auto operator<=>(const RowLead&) const = default;
};

// What a lead is made of. *Threads*: any.
class LeadWords {
 public:
  explicit LeadWords(const QuernSortDescriptor& descriptor);
  bool has_first() const { return num_words_ != 0; }
  bool has_second() const { return num_words_ > 1; }
  // A lead of which word(w) is word w of the row.
  template <class Word>
  RowLead Of(const Word& word) const {
    return {word(words_[0]) & masks_[0], num_words_ > 1 ? word(words_[1]) & masks_[1] : 0};
  }

 private:
  uint32_t num_words_ = 0;
  uint32_t words_[2] = {};
  uint64_t masks_[2] = {};
};

class Splitters {
 public:
  // num_parts: a power of two. sample: of leads; not empty.
  Splitters(std::vector<RowLead> sample, uint32_t num_parts, bool has_second);

  // The numbers of the ranges of n leads, in order of keys, up to kMaxBatchRows. *Cost*: log2(num_parts) steps a row,
  // without branches.
  void PartsOf(const RowLead* leads, uint32_t n, uint64_t* parts) const;
  // Of how many different ranges rows of the sample are.
  uint32_t num_distinct() const { return num_distinct_; }

  // Whether keys of a later part of the sample lie elsewhere than those of the whole, as in rows that come in the order
  // of a key: splitters of the first rows say little of the next ones. sample: in the order of arrival.
  bool IsClustered(const std::vector<RowLead>& sample) const;

 private:
  const uint32_t num_parts_;
  const bool has_second_;
  std::vector<uint64_t> of_one_;  // num_parts - 1 leads, of one word or of two
  std::vector<unsigned __int128> of_two_;
  uint32_t num_distinct_ = 1;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_SPILLING_SPLITTERS_H_
