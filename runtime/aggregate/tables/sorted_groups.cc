// SPDX-License-Identifier: Apache-2.0
// Line items are stored in the order of their order numbers, log lines in the order of time: a row belongs to the group
// of the previous row, or to a new one behind all others.
//
//     words    3 3 3 | 5 5 | 6 | 9 9 9 9        largest so far 3, its tuple at 128; the next free one at 160
//     tuples   128 128 128 | 160 160 | 192 | 224 ..
//
// So six million rows become one and a half million groups by comparing neighbours, and the groups are contiguous,
// whereas in a half-empty table of slots each lies on a random line. The first word that is smaller than the largest
// ends this: the groups move to a table that supports lookups (packed_key_groups.cc).
#include "runtime/aggregate/tables/sorted_groups.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/blocks/blocks.h"

namespace quern {
namespace {

constexpr uint64_t kFirstSpanBytes = uint64_t{16} << 10, kLastSpanBytes = uint64_t{16} << 20;

template <class Word>
void FindNeighbours(const uint64_t* words, uint32_t n, uint64_t last_word, uint8_t* last_tuple, uint8_t* next,
                    uint64_t bytes, uint8_t** tuples) {
  for (uint32_t i = 0; i < n; ++i) {
    // No branch: the end of a run is not predictable.
    const bool is_new = words[i] != last_word;
    last_word = words[i];
    last_tuple = is_new ? next : last_tuple;
    next += is_new ? bytes : 0;
    blocks::Store(last_tuple, static_cast<Word>(last_word));
    tuples[i] = last_tuple;
  }
}

}  // namespace

void SortedGroups::Begin(const QuernRowLayout& group, bool huge_pages, std::shared_ptr<MemoryBudget> budget) {
  Free();
  arena_ = std::make_unique<Arena>(std::move(budget), huge_pages, Contents::kAnything);
  bytes_ = group.tuple_bytes;
  packed_bytes_ = group.packed_bytes;
  sign_bit_ = group.packed_sign_bit;
}

bool SortedGroups::IsInOrder(const uint64_t* words, uint32_t n) const {
  bool in_order = num_groups_ == 0 || OrderOf(words[0]) >= OrderOf(last_word_);
  for (uint32_t i = 1; i < n; ++i) in_order &= OrderOf(words[i]) >= OrderOf(words[i - 1]);
  return in_order;
}

absl::Status SortedGroups::MakeRoom(uint32_t n) {
  if (!spans_.empty() && spans_.back().capacity - spans_.back().num_tuples >= n) return absl::OkStatus();
  TupleSpan span;
  span.capacity = std::max<uint64_t>(n, std::clamp(num_groups_ * bytes_, kFirstSpanBytes, kLastSpanBytes) / bytes_);
  ReserveOne(&spans_);
  ReserveOne(&span_positions_);
  QUERN_ASSIGN_OR_RETURN(span.tuples, arena_->Allocate(span.capacity * bytes_));
  spans_.push_back(span);
  span_positions_.push_back(num_groups_);
  return absl::OkStatus();
}

absl::Status SortedGroups::Find(const uint64_t* words, uint32_t n, uint8_t** tuples) {
  uint32_t num_new = num_groups_ == 0 || words[0] != last_word_;
  for (uint32_t i = 1; i < n; ++i) num_new += words[i] != words[i - 1];
  if (num_new > 0) QUERN_RETURN_IF_ERROR(MakeRoom(num_new));
  uint8_t* const next = spans_.back().tuples + spans_.back().num_tuples * bytes_;
  std::memset(next, 0, num_new * bytes_);  // states begin as zeros
  const uint64_t last_word = num_groups_ == 0 ? ~words[0] : last_word_;
  if (packed_bytes_ == 4) FindNeighbours<uint32_t>(words, n, last_word, last_tuple_, next, bytes_, tuples);
  else FindNeighbours<uint64_t>(words, n, last_word, last_tuple_, next, bytes_, tuples);
  spans_.back().num_tuples += num_new;
  num_groups_ += num_new;
  last_word_ = words[n - 1];
  last_tuple_ = tuples[n - 1];
  return absl::OkStatus();
}

absl::Status SortedGroups::Copy(uint8_t* const* from, const uint64_t* words, uint32_t n) {
  if (n == 0) return absl::OkStatus();
  QUERN_RETURN_IF_ERROR(MakeRoom(n));
  for (uint32_t i = 0; i < n; ++i) {
    uint8_t* const to = spans_.back().tuples + spans_.back().num_tuples++ * bytes_;
    std::memcpy(to, from[i], bytes_);
    if (num_groups_++ != 0 && OrderOf(words[i]) < OrderOf(last_word_)) continue;
    last_word_ = words[i];
    last_tuple_ = to;
  }
  return absl::OkStatus();
}

void SortedGroups::Free() {
  spans_.clear();
  span_positions_.clear();
  arena_.reset();
  num_groups_ = 0;
  last_tuple_ = nullptr;
}

}  // namespace quern
