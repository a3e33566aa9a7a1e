// SPDX-License-Identifier: Apache-2.0
// Why are tuples radix-partitioned? A table of 10 M rows takes 200 MB, so each insertion into it misses every cache.
// With 64 partitions, the slots of one take 3 MB and its tuples 2.5 MB, which stay in the L2 and L3 caches while one
// thread inserts them. Partitioning costs 64 streams of sequential writes (about 2 ns a row, `join_bench
// --benchmark_filter=partitions`), and lets threads build partitions at the same time without a lock: slots come from
// the top bits of the hash, in the same order as partitions.
//
//     hash 0x83f1.. -> partition 0x83f1.. >> 58 = 32 of 64 -> slots [S/2, S/2 + S/64) of S
#include "runtime/rows/tuple_store.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/base/cpu.h"
#include "runtime/base/prefetch_line.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/blocks/blocks.h"

namespace quern {
namespace {

constexpr uint64_t kSmallSpanRows = 128,
                   kSmallSpanBytes = uint64_t{64} << 10;  // the smaller of the two, where there are few rows
constexpr uint64_t kFirstSpanRows = uint64_t{1} << 16, kLastSpanRows = uint64_t{1} << 20;
constexpr uint64_t kLargestSpanBytes = uint64_t{64}
                                       << 20;  // wide tuples: no span uses up a budget for rows that may not arrive
constexpr uint32_t kBlockRows = 1024;
constexpr uint64_t kLineBytes = 64;

template <uint32_t kBytes>
void CopyTuple(uint8_t* to, const uint8_t* from, uint32_t bytes) {
  std::memcpy(to, from, kBytes != 0 ? kBytes : bytes);
}

template <class Word>
void LoadPackedKeysOf(const uint8_t* tuples, uint32_t n, uint32_t tuple_bytes, uint64_t* words) {
  for (uint32_t i = 0; i < n; ++i) words[i] = blocks::Load<Word>(tuples + uint64_t{i} * tuple_bytes);
}

}  // namespace

// One loop, compiled for the vectors of each machine: a 64-bit multiplication of eight lanes at once is an instruction
// of AVX-512 only; AVX2 composes four lanes from 32-bit multiplications. On a Zen 5 core a word takes 0.78 ns without
// vectors, 0.38 ns with AVX2 and 0.14 ns with AVX-512.
namespace {

using HashLoop = void (*)(const uint64_t* words, uint32_t n, uint64_t* hashes);

inline __attribute__((always_inline)) void HashAll(const uint64_t* words, uint32_t n, uint64_t* hashes) {
  for (uint32_t i = 0; i < n; ++i) hashes[i] = blocks::Mix(words[i], blocks::quern_hash_secret);
}

void HashBaseline(const uint64_t* words, uint32_t n, uint64_t* hashes) { HashAll(words, n, hashes); }

#if defined(__x86_64__)
__attribute__((target("avx2"))) void HashAvx2(const uint64_t* words, uint32_t n, uint64_t* hashes) {
  HashAll(words, n, hashes);
}
__attribute__((target("avx512f,avx512dq,avx512vl"))) void HashAvx512(const uint64_t* words, uint32_t n,
                                                                     uint64_t* hashes) {
  HashAll(words, n, hashes);
}
#endif

HashLoop HashLoopOfMachine() {
#if defined(__x86_64__)
  if (HasAvx512()) return HashAvx512;
  if (HasAvx2()) return HashAvx2;
#endif
  return HashBaseline;
}

}  // namespace

void HashPackedKeys(const uint64_t* words, uint32_t n, bool zero, uint64_t* hashes) {
  static const HashLoop hash_loop = HashLoopOfMachine();
  if (zero) std::memset(hashes, 0, n * sizeof(uint64_t));
  else hash_loop(words, n, hashes);
}

void LoadPackedKeys(const uint8_t* tuples, uint32_t n, const TupleFormat& format, uint64_t* words) {
  if (format.packed_bytes == 4) return LoadPackedKeysOf<uint32_t>(tuples, n, format.tuple_bytes, words);
  LoadPackedKeysOf<uint64_t>(tuples, n, format.tuple_bytes, words);
}

void LoadHashes(const TupleSpan& span, uint64_t first, uint32_t n, const TupleFormat& format, uint64_t* hashes) {
  if (span.hashes != nullptr) {
    std::memcpy(hashes, span.hashes + first, n * sizeof(uint64_t));
    return;
  }
  LoadPackedKeys(span.tuples + first * format.tuple_bytes, n, format, hashes);
  HashPackedKeys(hashes, n, format.zero_hashes, hashes);
}

uint32_t ScanSpans(const TupleList& spans, const std::vector<uint64_t>& positions, uint64_t tuple_bytes, uint64_t begin,
                   uint64_t end, uint8_t** tuples) {
  if (spans.empty()) return 0;
  end = std::min(end, positions.back() + spans.back().num_tuples);
  if (begin >= end) return 0;
  size_t s = static_cast<size_t>(std::upper_bound(positions.begin(), positions.end(), begin) - positions.begin()) - 1;
  uint32_t n = 0;
  for (uint64_t position = begin; position < end; ++s) {
    const TupleSpan& span = spans[s];
    for (uint64_t t = position - positions[s]; t < span.num_tuples && position < end; ++t, ++position)
      tuples[n++] = span.tuples + t * tuple_bytes;
  }
  return n;
}

TupleStore::TupleStore(const TupleFormat& format, std::shared_ptr<MemoryBudget> budget, bool huge_pages)
    : format_(format),
      budget_(std::move(budget)),
      huge_pages_(huge_pages),
      flat_arena_(budget_, huge_pages, Contents::kAnything) {}

// Of a span for so many tuples, without their hashes.
uint64_t TupleStore::TupleBytesOf(uint64_t rows) const { return (rows * format_.tuple_bytes + 7) / 8 * 8; }
uint64_t TupleStore::BytesOf(uint64_t rows) const {
  return TupleBytesOf(rows) + (format_.packed_bytes == 0 ? rows * sizeof(uint64_t) : 0);
}

// Adds an empty span.
absl::Status TupleStore::Extend(TupleList* list, Arena* arena, uint64_t rows) {
  const uint64_t tuple_bytes = TupleBytesOf(rows), all_bytes = BytesOf(rows);
  return WithoutBadAlloc([&]() -> absl::Status {
    ReserveOne(list);
    TupleSpan span;
    span.capacity = rows;
    QUERN_ASSIGN_OR_RETURN(span.tuples, arena->Allocate(all_bytes));
    if (format_.packed_bytes == 0) span.hashes = reinterpret_cast<uint64_t*>(span.tuples + tuple_bytes);
    list->push_back(span);
    return absl::OkStatus();
  });
}

absl::StatusOr<TupleSpan*> TupleStore::FlatSpan(uint64_t rows) {
  if (open_span_ < flat_.size() && flat_[open_span_].num_tuples < flat_[open_span_].capacity) return &flat_[open_span_];
  if (open_span_ + 1 < flat_.size()) return &flat_[++open_span_];
  uint64_t wanted = flat_.empty() ? kFirstSpanRows : std::min(flat_.back().capacity * 2, kLastSpanRows);
  if (flat_.empty() && rows < kFirstSpanRows) {
    wanted = std::max(rows, std::min(kSmallSpanRows, kSmallSpanBytes / format_.tuple_bytes + 1));
  }
  wanted = std::min(wanted, std::max<uint64_t>(kLargestSpanBytes / format_.tuple_bytes, 1));
  QUERN_RETURN_IF_ERROR(Extend(&flat_, &flat_arena_, wanted));
  open_span_ = flat_.size() - 1;
  return &flat_.back();
}

void TupleStore::ForgetFlat(uint64_t n) {
  while (n > 0) {
    TupleSpan& span = flat_[open_span_];
    const uint64_t removed = std::min(n, span.num_tuples);
    span.num_tuples -= removed;
    n -= removed;
    if (n > 0) --open_span_;
  }
}

void TupleStore::Forget(const uint64_t* hashes, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) {
    TupleList& part = parts_[hashes[i] >> part_shift_];
    auto last = part.rbegin();
    while (last->num_tuples == 0) ++last;
    --last->num_tuples;
  }
}

// Prefetches lines behind the end of each stream for writing, since hardware prefetchers do not follow 64 streams. With
// 192 bytes of distance, appending 10 M build rows takes 4.9 instead of 6.2 ns a row for i64 keys, and 12.4 instead of
// 15.1 ns for strings of 16 letters (Zen 4, `join_bench --benchmark_filter=partitions`). Hashes are a second stream of
// each partition: prefetched too, a join by 10 M texts of 16 letters builds its table in 33 ns a row, not 36 (Intel).
template <class TupleAt>
absl::Status TupleStore::PartitionAll(TupleAt tuple_at, const uint64_t* hashes, uint32_t n) {
  const uint32_t bytes = format_.tuple_bytes;
  const uint64_t distance = format_.prefetch_bytes;
  const auto deal = [&]<uint32_t kBytes>() -> absl::Status {
    for (uint32_t i = 0; i < n; ++i) {
      TupleList& part = parts_[hashes[i] >> part_shift_];
      if (part.empty() || part.back().num_tuples == part.back().capacity) {
        Arena* const arena = &groups_[GroupOf(hashes[i] >> part_shift_)]->arena;
        absl::Status status = Extend(&part, arena, std::max<uint64_t>(format_.span_bytes / bytes, 16));
        if (!status.ok()) return Forget(hashes, i), status;
      }
      TupleSpan& span = part.back();
      uint8_t* const to = span.tuples + span.num_tuples * bytes;
      CopyTuple<kBytes>(to, tuple_at(i), bytes);
      PrefetchIf(distance, to + distance);
      if (span.hashes != nullptr) {
        uint64_t* const hash = span.hashes + span.num_tuples;
        *hash = hashes[i];
        PrefetchIf(distance, reinterpret_cast<const uint8_t*>(hash) + kLineBytes);
      }
      ++span.num_tuples;
    }
    return absl::OkStatus();
  };
  switch (bytes) {
    case 4: return deal.template operator()<4>();
    case 8: return deal.template operator()<8>();
    case 16: return deal.template operator()<16>();
    case 24: return deal.template operator()<24>();
    case 32: return deal.template operator()<32>();
    case 40: return deal.template operator()<40>();
    case 48: return deal.template operator()<48>();
    case 56: return deal.template operator()<56>();
    case 64: return deal.template operator()<64>();
    case 72: return deal.template operator()<72>();
    default: return deal.template operator()<0>();
  }
}

absl::Status TupleStore::Partition(const uint8_t* tuples, const uint64_t* hashes, uint32_t n) {
  const uint64_t bytes = format_.tuple_bytes;
  return PartitionAll([=](uint32_t i) { return tuples + i * bytes; }, hashes, n);
}

absl::Status TupleStore::Partition(uint8_t* const* tuples, const uint64_t* hashes, uint32_t n) {
  return PartitionAll([=](uint32_t i) { return tuples[i]; }, hashes, n);
}

void TupleStore::SwapParts(uint64_t first, TupleStore* other) {
  for (uint64_t p = first; p < parts_.size(); ++p) parts_[p].swap(other->parts_[p]);
}

absl::Status TupleStore::Partition(uint32_t bits) {
  const uint64_t num_parts = uint64_t{1} << bits, num_groups = std::min<uint64_t>(format_.part_groups, num_parts);
  // Of several groups, each has less than a large page that is not used.
  const uint64_t most_bytes = num_groups == 1 ? Arena::kMostBytes : thresholds::kLargePageBytes;
  groups_.clear();
  for (uint64_t group = 0; group < num_groups; ++group) {
    Arena arena(budget_, huge_pages_, Contents::kAnything, most_bytes);
    groups_.push_back(std::make_unique<PartGroup>(std::move(arena), num_parts / num_groups));
  }
  group_shift_ = static_cast<uint32_t>(std::countr_zero(num_parts / num_groups));
  parts_.resize(num_parts);
  part_shift_ = 64 - bits;
  const absl::Status status = PartitionFlat();
  if (status.ok()) {
    flat_.clear();
    open_span_ = 0;
    flat_arena_.Clear();
  } else {
    ClearParts();
  }
  return status;
}

absl::Status TupleStore::PartitionFlat() {
  uint64_t hashes[kBlockRows];
  for (const TupleSpan& span : flat_) {
    for (uint64_t at = 0; at < span.num_tuples; at += kBlockRows) {
      const uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(kBlockRows, span.num_tuples - at));
      LoadHashes(span, at, n, format_, hashes);
      QUERN_RETURN_IF_ERROR(Partition(span.tuples + at * format_.tuple_bytes, hashes, n));
    }
  }
  return absl::OkStatus();
}

void TupleStore::Clear() {
  flat_.clear();
  open_span_ = 0;
  flat_arena_.Clear();
  ClearParts();
}

void TupleStore::ClearParts() {
  parts_.clear();
  groups_.clear();
}

uint64_t TupleStore::DisownParts() {
  uint64_t bytes = 0;
  for (const auto& group : groups_) bytes += group->arena.Disown(/*releases_pages=*/groups_.size() == 1);
  return bytes;
}

uint64_t TupleStore::part_bytes() const {
  uint64_t bytes = 0;
  for (const auto& group : groups_) bytes += group->arena.bytes();
  return bytes;
}

uint64_t TupleStore::largest_group_bytes() const {
  uint64_t bytes = 0;
  for (const auto& group : groups_) bytes = std::max(bytes, group->arena.bytes());
  return bytes;
}

void TupleStore::ReplacePart(uint64_t part, const TupleSpan& elsewhere) {
  TupleList& spans = parts_[part];
  if (groups_.size() == 1)
    for (const TupleSpan& span : spans) ReleasePages(span.tuples, BytesOf(span.capacity));
  spans.clear();
  if (elsewhere.num_tuples != 0) spans.push_back(elsewhere);  // into the room of an earlier one
  PartGroup* const group = groups_[GroupOf(part)].get();
  if (group->left.fetch_sub(1, std::memory_order_acq_rel) == 1) group->arena.Clear();
}

uint64_t TupleStore::num_tuples() const {
  uint64_t n = 0;
  for (const TupleSpan& span : flat_) n += span.num_tuples;
  for (const TupleList& part : parts_)
    for (const TupleSpan& span : part) n += span.num_tuples;
  return n;
}

}  // namespace quern
