// SPDX-License-Identifier: Apache-2.0
// Three passes place the tuples of one slot next to each other (Birler, Schmidt, Fent, Neumann: Simple, Efficient, and
// Robust Hash Tables for Join Processing, DaMoN 2024). With 8-byte tuples and hashes whose slots are 2, 0, 2:
//
//     count      directory  [8|t1]  [0]  [16|t0+t2]  [0]          bytes per slot, tags or-ed
//     sum        directory  [0|t1]  [8]  [8|t0+t2]  [24]          where each slot begins
//     scatter    directory  [8|t1]  [8]  [24|t0+t2] [24]          where each slot ends; tuples: 1, 0, 2
//
// This code depends on a kernel spec only through the size of a tuple, so none of it is compiled at run time. The
// common sizes are instantiated below, so that a copy is a register move; the others call memcpy.
#include "runtime/join/tables/unchained_table.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/abi/join_abi.h"
#include "runtime/base/thresholds.h"
#include "runtime/rows/prefetch_lines.h"

namespace quern {
namespace {

// All 1820 patterns of 4 of 16 bits; the first 228 appear twice to fill the table.
struct Tags {
  uint16_t patterns[kNumTags];
  constexpr Tags() : patterns() {
    uint32_t n = 0;
    while (n < kNumTags)
      for (uint32_t bits = 0; bits < 65536 && n < kNumTags; ++bits)
        if (std::popcount(bits) == 4) patterns[n++] = static_cast<uint16_t>(bits);
  }
};
const Tags kTags;

// Hashes are first copied into a block's array, which has room to read ahead.
constexpr uint32_t kBlockRows = 1024;

struct Block {
  const uint8_t* tuples;
  uint32_t n;
  uint64_t hashes[kBlockRows];

  void Load(const TupleSpan& span, uint64_t first, const TupleFormat& format, uint32_t max_rows) {
    tuples = span.tuples + first * format.tuple_bytes;
    n = static_cast<uint32_t>(std::min<uint64_t>(max_rows, span.num_tuples - first));
    LoadHashes(span, first, n, format, hashes);
  }
};

// kBytes 0: any size, known at run time only.
template <uint32_t kBytes, class Prefetch>
[[gnu::noinline]] void Scatter(const UnchainedBuild& build, const Block& block) {
  const uint32_t bytes = kBytes != 0 ? kBytes : build.format.tuple_bytes;
  const uint32_t shift = build.shift, n = block.n;
  const uint64_t* hashes = block.hashes;
  uint64_t* directory = build.directory;
  const uint8_t* tuples = block.tuples;
  uint8_t* target = build.target;
  // A place that was read ahead may have moved by a tuple or two before it is used: to the same line or its neighbour.
  const bool prefetches_places = build.prefetch.stages >= 2;
  const uint32_t entries_ahead = prefetches_places ? RowsAheadTwice(build.prefetch, n) : RowsAhead(build.prefetch, n);
  const uint32_t places_ahead = prefetches_places ? RowsAhead(build.prefetch, n) : n;
  const auto prefetch_entry = [&](uint32_t i) { Prefetch::For(&directory[hashes[i] >> shift]); };
  const auto prefetch_place = [&](uint32_t i) {
    uint8_t* const first = target + (directory[hashes[i] >> shift] >> kTagBits);
    Prefetch::For(first);
    if (kBytes == 0 || kBytes > sizeof(uint64_t)) Prefetch::For(first + bytes - 1);
  };
  if constexpr (Prefetch::kPrefetches) {
    for (uint32_t i = 0; i < entries_ahead; ++i) prefetch_entry(i);
    for (uint32_t i = 0; i < places_ahead && prefetches_places; ++i) prefetch_place(i);
  }
  uint32_t i = 0;
  const auto place = [&] {
    uint64_t* entry = &directory[hashes[i] >> shift];
    std::memcpy(target + (*entry >> kTagBits), tuples + uint64_t{i} * bytes, bytes);
    *entry += static_cast<uint64_t>(bytes) << kTagBits;
  };
  for (; Prefetch::kPrefetches && i + std::min(entries_ahead, places_ahead) < n; ++i) {
    if (i + entries_ahead < n) prefetch_entry(i + entries_ahead);
    if (i + places_ahead < n) prefetch_place(i + places_ahead);
    place();
  }
  for (; i < n; ++i) place();
}

template <uint32_t kBytes>
void ScatterSized(const UnchainedBuild& build, const Block& block) {
  WithPrefetch(build.prefetch, [&]<class Prefetch>() { Scatter<kBytes, Prefetch>(build, block); });
}

void ScatterBlock(const UnchainedBuild& build, const Block& block) {
  switch (build.format.tuple_bytes) {
    case 4: return ScatterSized<4>(build, block);
    case 8: return ScatterSized<8>(build, block);
    case 16: return ScatterSized<16>(build, block);
    case 24: return ScatterSized<24>(build, block);
    case 32: return ScatterSized<32>(build, block);
    case 40: return ScatterSized<40>(build, block);
    case 48: return ScatterSized<48>(build, block);
    case 56: return ScatterSized<56>(build, block);
    case 64: return ScatterSized<64>(build, block);
    case 72: return ScatterSized<72>(build, block);
    default: return ScatterSized<0>(build, block);
  }
}

template <class Prefetch>
void Count(const UnchainedBuild& build, const Block& block) {
  const uint64_t one_tuple = static_cast<uint64_t>(build.format.tuple_bytes) << kTagBits;
  const uint32_t shift = build.shift;
  const uint64_t* hashes = block.hashes;
  uint64_t* directory = build.directory;
  const uint16_t* tags = kTags.patterns;
  const auto prefetch = [&](uint32_t i) { Prefetch::For(&directory[hashes[i] >> shift]); };
  ForEachRow<Prefetch>(block.n, RowsAhead(build.prefetch, block.n), prefetch, [&](uint32_t i) {
    uint64_t* entry = &directory[hashes[i] >> shift];
    *entry = (*entry + one_tuple) | TagOf(tags, hashes[i]);
  });
}

template <class F>
void ForEachBlock(const UnchainedBuild& build, const TupleSpan& span, F&& f) {
  Block block;
  const uint32_t max_rows =
      build.prefetch.batch_rows == 0 ? kBlockRows : std::min<uint32_t>(build.prefetch.batch_rows, kBlockRows);
  for (uint64_t first = 0; first < span.num_tuples; first += max_rows) {
    block.Load(span, first, build.format, max_rows);
    f(block);
  }
}

}  // namespace

const uint16_t* DirectoryTags() { return kTags.patterns; }

void CountTuples(const UnchainedBuild& build, const TupleSpan& span) {
  ForEachBlock(build, span, [&](const Block& block) {
    WithPrefetch(build.prefetch, [&]<class Prefetch>() { Count<Prefetch>(build, block); });
  });
}

namespace {

constexpr uint64_t kSlotsChecked = 256;  // about as many as have kCrowdedSlotTuples tuples in an honest table

// Adds those of the slots from first on, whose tuples end at `end`, that may be crowded (crowded_slots.h). A key with
// many rows is no crowd: the hashes of one key, and of a few rare ones beside it, do not set every bit of the slot's
// tag. Who knows the secret can choose keys of one tag; packed keys are therefore looked at.
void AddCrowded(const UnchainedBuild& build, uint64_t first, uint64_t end_slot, uint64_t end, uint64_t most_bytes) {
  for (uint64_t slot = first; slot < end_slot; ++slot) {
    const uint64_t entry = build.directory[slot];
    const uint64_t next = slot + 1 < end_slot ? build.directory[slot + 1] >> kTagBits : end;
    const bool is_suspect = build.format.packed_bytes != 0 || (entry & kTagMask) == kTagMask;
    if (next - (entry >> kTagBits) > most_bytes && is_suspect) build.crowded->push_back(slot);
  }
}

}  // namespace

// Whether a slot is crowded is asked only where many have more tuples together than one may have.
void SumSlots(const UnchainedBuild& build) {
  const uint64_t most_bytes = thresholds::kCrowdedSlotTuples * build.format.tuple_bytes, end_slot = build.end_slot;
  uint64_t* const directory = build.directory;
  uint64_t begin = build.first_byte;
  for (uint64_t first = build.first_slot; first < end_slot; first += kSlotsChecked) {
    const uint64_t end_checked = std::min(first + kSlotsChecked, end_slot), first_byte = begin;
    for (uint64_t slot = first; slot < end_checked; ++slot) {
      const uint64_t entry = directory[slot];
      directory[slot] = begin << kTagBits | (entry & kTagMask);
      begin += entry >> kTagBits;
    }
    if (begin - first_byte > most_bytes && build.crowded != nullptr)
      AddCrowded(build, first, end_checked, begin, most_bytes);
  }
}

void ScatterTuples(const UnchainedBuild& build, const TupleSpan& span) {
  ForEachBlock(build, span, [&](const Block& block) { ScatterBlock(build, block); });
}

void PrefetchEntries(const JoinTable& table, const QuernProbeScratch& scratch, uint32_t begin, uint32_t end) {
  const uint64_t *directory = table.directory, *hashes = scratch.hashes;
  const uint32_t shift = table.shift;
  WithPrefetch(table.probe, [&]<class Prefetch>() {
    for (uint32_t i = begin; i < end; ++i) PrefetchEntry<Prefetch>(&directory[hashes[i] >> shift]);
  });
}

void PrefetchTuples(const JoinTable& table, const QuernProbeScratch& scratch) {
  const uint8_t* tuples = table.tuples;
  WithPrefetch(table.probe, [&]<class Prefetch>() {
    for (uint32_t c = 0; c < scratch.num_candidates; ++c) {
      Prefetch::For(tuples + scratch.candidates[c].begin);
      Prefetch::For(tuples + scratch.candidates[c].end - 1);
    }
  });
}

}  // namespace quern
