// SPDX-License-Identifier: Apache-2.0
// A group of collided rows is sorted by the next comparison key: eight more bytes of each row's key and the row's
// number form a pair, and the pairs are sorted as prefixes of two words. Rows that collide again are sorted by the
// comparison key after it. Three rows of keys=utf8 that share 16 bytes:
//
//     prefix           bytes 16 to 23    bytes 24 to 31     length
//     row 7, collided  "lemon ch"
//     row 2, collided  "lavender"        "blush"            (differs from both others)
//     row 9, collided  "lemon ch"        "iffon"  equals row 7 up to here, and so on to the strings' ends
//
// ("Caching multikey quicksort": Bentley, Sedgewick 1997; Ng, Kakehi 2007. Here the cached bytes are radix-sorted.)
//
// With a weighted collation the bytes are those of the order key: "LEMON CH" for both "lemon ch" and "Lemon Ch". A key
// is made again for each comparison key that reads it, up to the bytes that are read.
//
// Groups of a bucket are sorted in rounds, by one comparison key each a round. The rows that a round reads lie
// anywhere; they can then be prefetched some rows ahead even where groups are small. There is no recursion, since a
// million strings may share a million bytes. A group with more rows than the L1 cache has lines prefetches its own rows
// as it reads them. If its rows are still in the order of arrival, it does not prefetch, since the hardware prefetcher
// does.
#include "runtime/sort/collision_sort.h"

#include <algorithm>
#include <string>

#include "runtime/base/status.h"
#include "runtime/blocks/encode.h"
#include "runtime/collation/collation.h"
#include "runtime/rows/prefetch_lines.h"

namespace quern {
namespace {

// Prefetched together if a setting says the whole batch, and the most that is prefetched before a group is read: their
// lines fit the L1 cache.
constexpr uint32_t kBatchRows = 256;

// Bytes from .. from+7 of a string as a number; bytes after its end are `fill`.
uint64_t WordAt(blocks::Bytes s, uint32_t from, uint64_t fill) {
  if (s.length <= from) return fill;
  const uint32_t left = s.length - from;
  if (left >= 8) return __builtin_bswap64(blocks::Load<uint64_t>(s.data + from));
  return __builtin_bswap64(blocks::ReadTail(s.data + from, left)) | fill >> (8 * left);
}

// How many bytes, up to `most`, two strings share that are known to share the first `from`.
uint32_t CommonBytes(blocks::Bytes a, blocks::Bytes b, uint32_t from, uint32_t most) {
  uint32_t i = from;
  while (i + 8 <= most && blocks::Load<uint64_t>(a.data + i) == blocks::Load<uint64_t>(b.data + i)) i += 8;
  while (i < most && a.data[i] == b.data[i]) ++i;
  return std::min(i, most);
}

blocks::Bytes AsBytes(const std::string& s) {
  return {reinterpret_cast<const uint8_t*>(s.data()), static_cast<uint32_t>(s.size())};
}

}  // namespace

CollisionSorter::CollisionSorter(const QuernSortDescriptor* descriptor, const PrefixLayout* layout,
                                 const SortChunks* chunks, bool by_row_id, const PrefetchSetting& setting,
                                 std::shared_ptr<MemoryBudget> budget)
    : descriptor_(descriptor),
      layout_(layout),
      chunks_(chunks),
      by_row_id_(by_row_id),
      setting_(setting),
      sorter_(2, budget),
      budget_(std::move(budget)) {}

// Finds the groups of collided prefixes, and stores their rows as pairs.
absl::Status CollisionSorter::FindCollisions(const uint64_t* entries, uint64_t n) {
  const uint32_t words = layout_->words();
  runs_.clear();
  groups_.clear();
  uint64_t num_pairs = 0;
  for (uint64_t begin = 0, end = 0; begin < n; begin = end) {
    for (end = begin + 1; end < n && layout_->Collides(entries + (end - 1) * words);) ++end;
    if (end - begin == 1) continue;
    runs_.push_back(begin);
    groups_.push_back({num_pairs, end - begin, 0, kSortPrefixBytes});
    num_pairs += end - begin;
  }
  if (memory_.bytes() < num_pairs * sizeof(Pair)) {
    memory_.Free();
    QUERN_ASSIGN_OR_RETURN(memory_, HugeBuffer::Allocate(budget_, std::max<uint64_t>(num_pairs, 64) * sizeof(Pair),
                                                         true, Contents::kAnything));
    pairs_ = reinterpret_cast<Pair*>(memory_.data());
  }
  for (size_t g = 0; g < groups_.size(); ++g)
    for (uint64_t i = 0; i < groups_[g].n; ++i)
      pairs_[groups_[g].begin + i] = {0, layout_->RowOf(entries + (runs_[g] + i) * words)};
  num_collided_ += num_pairs;
  return absl::OkStatus();
}

// Prefetches what a group's comparison key first reads of a row: a word, a row id, or the field that leads to a string.
template <class Prefetch>
void CollisionSorter::PrefetchFar(const Group& group, uint64_t i) const {
  const uint64_t row = pairs_[group.begin + i].row;
  if (group.step == layout_->rest().size()) {
    if (const uint64_t* const at = chunks_->RowIdAt(row)) Prefetch::For(at);
    return;
  }
  const KeyComparison& step = layout_->rest()[group.step];
  if (step.is_tail())
    Prefetch::For(chunks_->Tuple(row) + SortFieldOf(descriptor_, &descriptor_->keys[step.tail_key])->tuple_offset);
  else Prefetch::For(chunks_->WordAt(step.word, row));
}

// Prefetches a string's bytes, once its field has arrived.
template <class Prefetch>
void CollisionSorter::PrefetchNear(const Group& group, uint64_t i) const {
  if (group.step == layout_->rest().size() || !layout_->rest()[group.step].is_tail()) return;
  const QuernSortKey& key = descriptor_->keys[layout_->rest()[group.step].tail_key];
  const uint8_t* const field =
      chunks_->Tuple(pairs_[group.begin + i].row) + SortFieldOf(descriptor_, &key)->tuple_offset;
  if (key.storage == kFixed || blocks::Load<uint32_t>(field) <= group.from_byte) return;
  Prefetch::For(blocks::Load<const uint8_t*>(field + 8) + group.from_byte);
}

// Called before row i is read of a group that prefetches its own rows.
template <class Prefetch>
inline __attribute__((always_inline)) void CollisionSorter::PrefetchInside(const Group& group, uint64_t i) const {
  if constexpr (Prefetch::kPrefetches) {
    const uint64_t ahead = i + std::min<uint32_t>(setting_.distance, kBatchRows);
    const uint64_t twice = ahead + (ahead - i);
    if (twice < group.prefetch_rows) PrefetchFar<Prefetch>(group, twice);
    if (ahead < group.prefetch_rows && setting_.stages >= 2) PrefetchNear<Prefetch>(group, ahead);
  }
}

// How many rows a group prefetches itself: all of a large group, unless they are in the order of arrival, as they are
// where all strings begin alike.
uint64_t CollisionSorter::RowsToPrefetchInside(const Group& group) const {
  if (group.n <= kBatchRows) return 0;
  const Pair* const pairs = pairs_ + group.begin;
  bool in_order = true;
  for (uint64_t part = 1; part < 4; ++part) {
    const uint64_t i = group.n / 4 * part;
    in_order &= pairs[i].row - pairs[i - 1].row < 4;
  }
  return in_order ? 0 : group.n;
}

// Iterates over the rows of all small groups in order.
struct CollisionSorter::Cursor {
  size_t group = 0;
  uint64_t i = 0;
  uint64_t position = 0;

  template <class Prefetch>
  void GoTo(uint64_t to, const std::vector<Group>& groups, Prefetch prefetch) {
    while (position < to && group < groups.size()) {
      if (groups[group].n <= kBatchRows) {
        prefetch(groups[group], i);
        ++position;
        if (++i < groups[group].n) continue;
      }
      ++group;
      i = 0;
    }
  }
};

// Called before the rows up to `done` are used. At a distance of 24, fields are prefetched 48 rows ahead and bytes 24
// rows ahead. At kWholeBatch, the fields of the next group of rows and then their bytes are prefetched once the rows
// prefetched before have been used.
template <class Prefetch>
void CollisionSorter::PrefetchAhead(uint64_t done, Cursor* far, Cursor* near) const {
  uint64_t far_to = done + 2 * uint64_t{setting_.distance}, near_to = done + setting_.distance;
  if (setting_.distance == kWholeBatch) {
    if (done <= far->position) return;
    far_to = near_to = far->position + std::max<uint64_t>(done - far->position,
                                                          setting_.batch_rows != 0 ? setting_.batch_rows : kBatchRows);
  }
  far->GoTo(far_to, groups_, [this](const Group& g, uint64_t i) { PrefetchFar<Prefetch>(g, i); });
  if (setting_.stages < 2) return;
  near->GoTo(near_to, groups_, [this](const Group& g, uint64_t i) { PrefetchNear<Prefetch>(g, i); });
}

// Sorts each group by one comparison key.
template <class Prefetch>
absl::Status CollisionSorter::TakeRound() {
  Cursor far, near;
  uint64_t done = 0;
  for (Group& group : groups_) {
    if constexpr (Prefetch::kPrefetches) {
      group.prefetch_rows = RowsToPrefetchInside(group);
      if (group.n <= kBatchRows) {
        done += group.n;
        PrefetchAhead<Prefetch>(done, &far, &near);
      }
    }
    QUERN_RETURN_IF_ERROR(TakeStep<Prefetch>(group));
  }
  return absl::OkStatus();
}

absl::Status CollisionSorter::Sort(uint64_t* entries, uint64_t n) {
  QUERN_RETURN_IF_ERROR(FindCollisions(entries, n));
  const std::vector<Group> runs = groups_;
  while (!groups_.empty()) {
    next_groups_.clear();
    QUERN_RETURN_IF_ERROR(WithPrefetch(setting_, [this]<class Prefetch>() { return TakeRound<Prefetch>(); }));
    std::swap(groups_, next_groups_);
  }
  const uint32_t words = layout_->words();
  for (size_t r = 0; r < runs.size(); ++r) {
    uint64_t* last_word = entries + runs_[r] * words + words - 1;
    const uint64_t rest = *last_word & ~layout_->row_mask();
    for (uint64_t i = 0; i < runs[r].n; ++i, last_word += words) *last_word = rest | pairs_[runs[r].begin + i].row;
  }
  return absl::OkStatus();
}

template <class Prefetch>
absl::Status CollisionSorter::TakeStep(const Group& group) {
  Pair* const pairs = pairs_ + group.begin;
  if (group.step == layout_->rest().size()) {
    if (!by_row_id_) return absl::OkStatus();
    for (uint64_t i = 0; i < group.n; ++i) {
      PrefetchInside<Prefetch>(group, i);
      pairs[i].word = chunks_->RowId(pairs[i].row);
    }
    return sorter_.Sort(reinterpret_cast<uint64_t*>(pairs), group.n);
  }
  const KeyComparison& step = layout_->rest()[group.step];
  if (step.is_tail()) {
    const QuernSortKey& key = descriptor_->keys[step.tail_key];
    return (key.rule & kWeighsOrder) != 0 ? TakeWeighedStep<Prefetch>(group, key) : TakeTailStep<Prefetch>(group, key);
  }
  for (uint64_t i = 0; i < group.n; ++i) {
    PrefetchInside<Prefetch>(group, i);
    pairs[i].word = chunks_->Word(step.word, pairs[i].row) & step.mask;
  }
  return Split(group, group.step + 1, kSortPrefixBytes);
}

template <class Prefetch>
absl::Status CollisionSorter::TakeTailStep(const Group& group, const QuernSortKey& key) {
  Pair* const pairs = pairs_ + group.begin;
  const uint64_t turned = key.descending ? ~uint64_t{0} : 0, fill = blocks::FillOf(key.rule);
  const blocks::Bytes first = SortBytes(*descriptor_, key, chunks_->Tuple(pairs[0].row));
  uint32_t longest = first.length, shortest = first.length, common = first.length;
  for (uint64_t i = 1; i < group.n; ++i) {
    PrefetchInside<Prefetch>(group, i);
    const blocks::Bytes bytes = SortBytes(*descriptor_, key, chunks_->Tuple(pairs[i].row));
    longest = std::max(longest, bytes.length);
    shortest = std::min(shortest, bytes.length);
    common = CommonBytes(first, bytes, group.from_byte, std::min(common, bytes.length));
  }
  const uint32_t from = std::max(common, group.from_byte);
  const bool by_bytes = longest > from;
  // If all bytes are equal, or zeros after an end, the shorter string comes first. Padded strings have the same length
  // here.
  if (!by_bytes && shortest == longest) {
    next_groups_.push_back({group.begin, group.n, group.step + 1, kSortPrefixBytes});
    return absl::OkStatus();
  }
  for (uint64_t i = 0; i < group.n; ++i) {
    PrefetchInside<Prefetch>(group, i);
    const blocks::Bytes bytes = SortBytes(*descriptor_, key, chunks_->Tuple(pairs[i].row));
    pairs[i].word = (by_bytes ? WordAt(bytes, from, fill) : bytes.length) ^ turned;
  }
  return by_bytes ? Split(group, group.step, from + 8) : Split(group, group.step + 1, kSortPrefixBytes);
}

// The same by order keys, which are made only up to the bytes that are read. The filler after a key's end is either no
// byte of any key, or a byte that every key is compared as if followed by. Keys are therefore equal if their words are
// equal and no key has more bytes.
template <class Prefetch>
absl::Status CollisionSorter::TakeWeighedStep(const Group& group, const QuernSortKey& key) {
  Pair* const pairs = pairs_ + group.begin;
  uint32_t from = group.from_byte;
  WeighedWords words = ReadKeys<Prefetch>(group, key, from);
  if (words.are_equal && words.go_on) {
    from = CommonKeyBytes(group, key, from + 8);
    words = from == kAllBytes ? WeighedWords{true, false} : ReadKeys<Prefetch>(group, key, from);
  }
  if (words.are_equal && !words.go_on) {
    next_groups_.push_back({group.begin, group.n, group.step + 1, kSortPrefixBytes});
    return absl::OkStatus();
  }
  if (key.descending)
    for (uint64_t i = 0; i < group.n; ++i) pairs[i].word = ~pairs[i].word;
  return Split(group, group.step, from + 8);
}

// Reads bytes from .. from+7 of the group's order keys as its pairs' words.
template <class Prefetch>
CollisionSorter::WeighedWords CollisionSorter::ReadKeys(const Group& group, const QuernSortKey& key, uint32_t from) {
  constexpr uint32_t kBlock = 64;
  blocks::Bytes strings[kBlock];
  uint64_t block[kBlock];
  Pair* const pairs = pairs_ + group.begin;
  WeighedWords words = {true, false};
  for (uint64_t begin = 0; begin < group.n; begin += kBlock) {
    const auto n = static_cast<uint32_t>(std::min<uint64_t>(kBlock, group.n - begin));
    for (uint32_t i = 0; i < n; ++i) {
      PrefetchInside<Prefetch>(group, begin + i);
      strings[i] = SortBytes(*descriptor_, key, chunks_->Tuple(pairs[begin + i].row));
    }
    words.go_on |= blocks::OrderWords(strings, n, key.rule, from, block);
    for (uint32_t i = 0; i < n; ++i) {
      pairs[begin + i].word = block[i];
      words.are_equal &= block[i] == pairs[0].word;
    }
  }
  return words;
}

// How many bytes all order keys of a group share, with the filler after their ends, if they share the first `from`;
// kAllBytes: they are equal.
// *Cost*: makes each key as a whole, so that a group whose keys have a long common prefix pays for it once and not for
// every eight bytes.
uint32_t CollisionSorter::CommonKeyBytes(const Group& group, const QuernSortKey& key, uint32_t from) {
  std::string first, other;
  const auto make_key = [&](uint64_t i, std::string* to) {
    to->clear();
    AppendOrderKey(SortBytes(*descriptor_, key, chunks_->Tuple(pairs_[group.begin + i].row)), key.rule, to);
  };
  const char pad = (key.rule & kPadsSpaces) != 0 ? static_cast<char>(PadByte(key.rule)) : '\0';
  uint32_t common = kAllBytes;
  make_key(0, &first);
  for (uint64_t i = 1; i < group.n; ++i) {
    make_key(i, &other);
    const auto shorter = static_cast<uint32_t>(std::min(first.size(), other.size()));
    uint32_t equal = CommonBytes(AsBytes(first), AsBytes(other), from, std::min(common, shorter));
    const std::string& longer = first.size() > other.size() ? first : other;
    if (equal == shorter) {
      while (equal < longer.size() && longer[equal] == pad) ++equal;
      if (equal == longer.size()) continue;
    }
    common = std::min(common, equal);
  }
  return std::max(common, from);
}

// Sorts the group's pairs, and lists those that still collide for the next round and the next comparison key.
absl::Status CollisionSorter::Split(const Group& group, uint32_t next_step, uint32_t from_byte) {
  Pair* const pairs = pairs_ + group.begin;
  QUERN_RETURN_IF_ERROR(sorter_.Sort(reinterpret_cast<uint64_t*>(pairs), group.n));
  for (uint64_t begin = 0, end = 0; begin < group.n; begin = end) {
    for (end = begin + 1; end < group.n && pairs[end].word == pairs[begin].word;) ++end;
    if (end - begin > 1) next_groups_.push_back({group.begin + begin, end - begin, next_step, from_byte});
  }
  return absl::OkStatus();
}

}  // namespace quern
