// SPDX-License-Identifier: Apache-2.0
// Where most rows are new groups, a directory that is half full sends every second row at least one entry further, and
// one in fifty ten entries. Since this is not predictable, all entries of a row up to the end of their line, which
// memory delivers as a whole, are compared at once. For a row whose hash belongs at entry 2 of this line (a tag each; .
// means none):
//
//     entry        0    1    2    3    4    5    6    7
//     holds        .   4a7   1f   c03  .    .   99   .
//     empty        1              -    1    1        1
//     tag 77                 -    -                          first of both from 2 on: entry 4, empty: make the group
//     tag c03                     1                          first of both: entry 3: a candidate
//
// It is still linear probing: a search entry by entry gives the same result. With half of the entries taken, 1 row in 9
// goes on to another line.
//
// No branch depends on what is found. Zeros are added or masked instead of a choice, because compilers turn choices
// into branches.
#include "runtime/aggregate/tables/directory_probe.h"

#include <algorithm>
#include <bit>

#include "runtime/base/cpu.h"
#include "runtime/rows/prefetch_lines.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace quern {
namespace {

constexpr uint32_t kLineEntries = 8;

inline __attribute__((always_inline)) uint64_t If(bool condition, uint64_t value) {
  return value & (uint64_t{0} - static_cast<uint64_t>(condition));
}

// The inputs of a probe, in registers.
struct Step {
  uint64_t* const entries;
  const uint64_t mask;
  const uint64_t tuple_bytes;
  uint64_t* const made_hashes;
  const uint64_t new_tuples;
  uint32_t num_made = 0, num_candidates = 0, num_further = 0;

  // Completes row i's probe of a line: `lane` is the first of its entries that is empty or has the row's tag;
  // kLineEntries: there is none.
  inline __attribute__((always_inline)) void Take(uint32_t i, uint64_t line, uint32_t lane, DirectoryRows* batch,
                                                  uint8_t** tuples) {
    const bool goes_on = lane == kLineEntries;
    const uint64_t slot = line + lane % kLineEntries, hash = batch->hashes[i], found = entries[slot];
    const bool is_empty = found == 0, makes = is_empty & !goes_on;
    const uint64_t entry = found | If(makes, (new_tuples + num_made * tuple_bytes) << kTagBits | (hash & kTagMask));
    entries[slot] = entry;
    tuples[i] = reinterpret_cast<uint8_t*>(entry >> kTagBits);
    made_hashes[num_made] = hash;
    batch->made[num_made] = i;
    num_made += makes;
    batch->candidates[num_candidates] = i;
    num_candidates += !is_empty & !goes_on;
    batch->slots[i] = (line + lane + !goes_on) & mask;
    batch->rows[num_further] = i;
    num_further += goes_on;
  }
};

Step Begin(const DirectoryEntries& directory, const NewTuples& added) {
  return {directory.entries, directory.num_entries - 1, added.tuple_bytes, added.hashes,
          reinterpret_cast<uint64_t>(added.tuples)};
}

void End(const Step& step, DirectoryRows* batch) {
  batch->n = step.num_further;
  batch->num_made = step.num_made;
  batch->num_candidates = step.num_candidates;
}

inline __attribute__((always_inline)) uint32_t FirstLane(const uint64_t* line, uint32_t lane, uint64_t hash) {
  while (lane < kLineEntries && line[lane] != 0 && ((line[lane] ^ hash) & kTagMask) != 0) ++lane;
  return lane;
}

template <class Prefetch>
void StepByEntry(const DirectoryEntries& directory, const NewTuples& added, uint32_t ahead, DirectoryRows* batch,
                 uint8_t** tuples) {
  Step step = Begin(directory, added);
  const auto prefetch = [&](uint32_t r) { Prefetch::For(&step.entries[batch->slots[batch->rows[r]]]); };
  ForEachRow<Prefetch>(batch->n, ahead, prefetch, [&](uint32_t r) {
    const uint32_t i = batch->rows[r];
    const uint64_t slot = batch->slots[i], line = slot / kLineEntries * kLineEntries;
    step.Take(i, line, FirstLane(step.entries + line, slot % kLineEntries, batch->hashes[i]), batch, tuples);
  });
  End(step, batch);
}

#if defined(__x86_64__)
template <class Prefetch>
__attribute__((target("avx512f,avx512bw,avx512vl,bmi"))) void StepByVector(const DirectoryEntries& directory,
                                                                           const NewTuples& added, uint32_t ahead,
                                                                           DirectoryRows* batch, uint8_t** tuples) {
  Step step = Begin(directory, added);
  const uint32_t n = batch->n;
  if constexpr (Prefetch::kPrefetches)
    for (uint32_t r = 0; r < ahead; ++r) Prefetch::For(&step.entries[batch->slots[batch->rows[r]]]);
  const __m512i tag_mask = _mm512_set1_epi64(static_cast<int64_t>(kTagMask));
  for (uint32_t r = 0; r < n; ++r) {
    // Past the last row the last one again.
    if constexpr (Prefetch::kPrefetches)
      Prefetch::For(&step.entries[batch->slots[batch->rows[std::min(r + ahead, n - 1)]]]);
    const uint32_t i = batch->rows[r];
    const uint64_t slot = batch->slots[i], line = slot / kLineEntries * kLineEntries;
    const __m512i found = _mm512_load_si512(step.entries + line),
                  tag = _mm512_set1_epi64(static_cast<int64_t>(batch->hashes[i]));
    const uint32_t empty = _mm512_testn_epi64_mask(found, found);
    const uint32_t equal = _mm512_testn_epi64_mask(_mm512_xor_si512(found, tag), tag_mask);
    const uint32_t lanes = (empty | equal) >> slot % kLineEntries << slot % kLineEntries;
    step.Take(i, line, static_cast<uint32_t>(std::countr_zero(lanes | 1u << kLineEntries)), batch, tuples);
  }
  End(step, batch);
}
#endif

}  // namespace

void ProbeLinesByEntry(const DirectoryEntries& directory, const NewTuples& added, const PrefetchSetting& setting,
                       DirectoryRows* batch, uint8_t** tuples) {
  WithPrefetch(setting, [&]<class Prefetch>() {
    StepByEntry<Prefetch>(directory, added, RowsAhead(setting, batch->n), batch, tuples);
  });
}

void ProbeLines(const DirectoryEntries& directory, const NewTuples& added, const PrefetchSetting& setting,
                DirectoryRows* batch, uint8_t** tuples) {
#if defined(__x86_64__)
  if (HasAvx512()) {
    return WithPrefetch(setting, [&]<class Prefetch>() {
      StepByVector<Prefetch>(directory, added, RowsAhead(setting, batch->n), batch, tuples);
    });
  }
#endif
  ProbeLinesByEntry(directory, added, setting, batch, tuples);
}

}  // namespace quern
