// SPDX-License-Identifier: Apache-2.0
// A row's update adds to numbers in memory, and the next row of the same group has to wait for them: some eight cycles
// from one addition to the next. With four groups, as in TPC-H's first query, that wait is most of an update's time.
// The states of a run stay in registers from its first row to its last, where an addition waits only for the previous
// one. So rows of few groups are sorted by group first:
//
//     rows     0  1  2  3  4  5  6  7      groups  A B A A C B A C
//     split    0  2  3  6 | 1  5 | 4  7    runs    A until 4, B until 6, C until 8
//
// Each group scans all rows, sixteen at a time: comparing their addresses with the group's gives a mask, which
// compresses the row numbers. The rows of a group stay in order, on which sums of floats and the aggregates first and
// last depend.
#include "runtime/aggregate/group_runs.h"

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "runtime/base/cpu.h"
#include "runtime/blocks/blocks.h"

namespace quern {
namespace {

constexpr uint32_t kRowsPerRun = 4;     // at least, for runs in their original order
constexpr uint32_t kSampleRows = 64;    // enough to see that a block has no runs
constexpr uint32_t kRowsPerGroup = 16;  // at least, for a split

// Lists the rows of one group, in order; room for kSpare more. Returns their number.
using PickRows = uint32_t (*)(const KeyRows& rows, uint8_t* const* tuples, const uint8_t* group, uint32_t* picked);

uint32_t PickByRow(const KeyRows& rows, uint8_t* const* tuples, const uint8_t* group, uint32_t* picked) {
  const KeyRows r = rows;  // a copy, so that the compiler need not assume that stores change it
  uint32_t n = 0;
  for (uint32_t i = 0; i < r.n; ++i) {
    picked[n] = blocks::RowAt(r.rows, r.first, i);
    n += tuples[i] == group;
  }
  return n;
}

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512dq,avx512vl,popcnt"))) uint32_t PickBySixteen(const KeyRows& rows,
                                                                                   uint8_t* const* tuples,
                                                                                   const uint8_t* group,
                                                                                   uint32_t* picked) {
  const KeyRows r = rows;
  const __m512i wanted = _mm512_set1_epi64(static_cast<int64_t>(reinterpret_cast<uint64_t>(group)));
  __m512i numbers = _mm512_add_epi32(_mm512_set1_epi32(static_cast<int32_t>(r.first)),
                                     _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
  uint32_t n = 0;
  for (uint32_t i = 0; i < r.n; i += 16) {
    const uint32_t there = r.n - i < 16 ? (1u << (r.n - i)) - 1 : 0xffff;
    const __m512i low = _mm512_maskz_loadu_epi64(static_cast<__mmask8>(there), tuples + i);
    const __m512i high = _mm512_maskz_loadu_epi64(static_cast<__mmask8>(there >> 8), tuples + i + 8);
    const uint32_t is_low = _mm512_cmpeq_epi64_mask(low, wanted), is_high = _mm512_cmpeq_epi64_mask(high, wanted);
    const auto is_wanted = static_cast<__mmask16>(is_low | is_high << 8);
    const __m512i from =
        r.rows != nullptr ? _mm512_maskz_loadu_epi32(static_cast<__mmask16>(there), r.rows + i) : numbers;
    // To a register and then to memory: ten times as fast as directly to memory.
    _mm512_storeu_si512(picked + n, _mm512_maskz_compress_epi32(is_wanted, from));
    n += static_cast<uint32_t>(__builtin_popcount(is_wanted));
    numbers = _mm512_add_epi32(numbers, _mm512_set1_epi32(16));
  }
  return n;
}
#endif

// numbers[i] = number of row i's group, or kNoLaneGroup; room for kSpare more. Returns whether all rows have one.
using NumberRows = bool (*)(uint8_t* const* tuples, uint32_t n, uint8_t* const* groups, uint32_t num_groups,
                            uint8_t* numbers);

bool NumberByRow(uint8_t* const* tuples, uint32_t n, uint8_t* const* groups, uint32_t num_groups, uint8_t* numbers) {
  bool all = true;
  for (uint32_t i = 0; i < n; ++i) {
    const auto found = std::find(groups, groups + num_groups, tuples[i]) - groups;
    numbers[i] = found == num_groups ? kNoLaneGroup : static_cast<uint8_t>(found);
    all &= found != num_groups;
  }
  return all;
}

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512dq,avx512vl,avx512bw"))) bool NumberBySixteen(uint8_t* const* tuples, uint32_t n,
                                                                                   uint8_t* const* groups,
                                                                                   uint32_t num_groups,
                                                                                   uint8_t* numbers) {
  uint32_t missing = 0;
  for (uint32_t i = 0; i < n; i += 16) {
    const uint32_t there = n - i < 16 ? (1u << (n - i)) - 1 : 0xffff;
    const __m512i low = _mm512_maskz_loadu_epi64(static_cast<__mmask8>(there), tuples + i);
    const __m512i high = _mm512_maskz_loadu_epi64(static_cast<__mmask8>(there >> 8), tuples + i + 8);
    __m128i found = _mm_set1_epi8(static_cast<char>(kNoLaneGroup));
    uint32_t any = 0;
    for (uint32_t g = 0; g < num_groups; ++g) {
      const __m512i wanted = _mm512_set1_epi64(static_cast<int64_t>(reinterpret_cast<uint64_t>(groups[g])));
      const uint32_t is_low = _mm512_cmpeq_epi64_mask(low, wanted), is_high = _mm512_cmpeq_epi64_mask(high, wanted);
      const uint32_t is_wanted = is_low | is_high << 8;
      found = _mm_mask_set1_epi8(found, static_cast<__mmask16>(is_wanted), static_cast<char>(g));
      any |= is_wanted;
    }
    _mm_storeu_si128(reinterpret_cast<__m128i*>(numbers + i), found);
    missing |= there & ~any;
  }
  return missing == 0;
}
#endif

NumberRows NumberRowsFor(bool uses_vectors) {
#if defined(__x86_64__)
  if (uses_vectors && HasAvx512()) return NumberBySixteen;
#endif
  static_cast<void>(uses_vectors);
  return NumberByRow;
}

PickRows PickRowsFor(bool uses_vectors) {
#if defined(__x86_64__)
  if (uses_vectors && HasAvx512()) return PickBySixteen;
#endif
  static_cast<void>(uses_vectors);
  return PickByRow;
}

// Whether all rows are of one group, as long runs of sorted rows are.
bool IsOneRun(uint8_t* const* tuples, uint32_t n) {
  const auto group = reinterpret_cast<uint64_t>(tuples[0]);
  for (uint32_t begin = 0; begin < n; begin += kSampleRows) {
    const uint32_t end = std::min(n, begin + kSampleRows);
    uint64_t differs = 0;
    for (uint32_t i = begin; i < end; ++i) differs |= reinterpret_cast<uint64_t>(tuples[i]) ^ group;
    if (differs != 0) return false;
  }
  return true;
}

}  // namespace

bool FindRuns(uint8_t* const* tuples, uint32_t n, GroupRuns* runs) {
  uint32_t changes = 0;
  const uint32_t sample = std::min(n, kSampleRows), most = n / kRowsPerRun;
  for (uint32_t i = 1; i < sample; ++i) changes += tuples[i] != tuples[i - 1];
  if (changes > sample / 2) return false;
  if (changes == 0 && most != 0 && IsOneRun(tuples, n)) {
    SetRun(tuples[0], n, runs);
    return true;
  }
  // No branch depends on where a run ends. The loop stops early where there are too many runs.
  uint32_t num_runs = 0;
  for (uint32_t begin = 1; begin < n; begin += kSampleRows) {
    const uint32_t end = std::min(n, begin + kSampleRows);
    for (uint32_t i = begin; i < end; ++i) {
      runs->tuples[num_runs] = tuples[i - 1];
      runs->ends[num_runs] = i;
      num_runs += tuples[i] != tuples[i - 1];
    }
    if (num_runs >= most) return false;
  }
  runs->tuples[num_runs] = tuples[n - 1];
  runs->ends[num_runs++] = n;
  runs->n = num_runs;
  return num_runs <= most;
}

RunSplitter::RunSplitter(uint32_t states_bytes, bool adapts)
    : most_groups_(std::min(kMostGroups, states_bytes / 8)), gate_(Gate::kGroupRuns, adapts) {}

// Adds the groups of rows that are not known. False: there are too many.
bool RunSplitter::Learn(uint8_t* const* tuples, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) {
    if (std::find(groups_, groups_ + num_groups_, tuples[i]) != groups_ + num_groups_) continue;
    if (num_groups_ == kMostGroups) return false;
    groups_[num_groups_++] = tuples[i];
  }
  return true;
}

// Also where a table has grown and its tuples have moved: all groups are then learnt anew.
bool RunSplitter::Refuse() {
  num_groups_ = 0;
  gate_.Count(1, 0);
  return false;
}

bool RunSplitter::Number(uint8_t* const* tuples, uint32_t n, uint32_t most, uint8_t* numbers) {
  has_refused_ = true;
  if (!gate_.TakeTurn()) return false;
  if (num_groups_ == 0 && !Learn(tuples, std::min(n, kSampleRows))) return Refuse();
  const NumberRows number = NumberRowsFor(uses_vectors_);
  if (!number(tuples, n, groups_, num_groups_, numbers)) {
    if (!Learn(tuples, n)) return Refuse();
    number(tuples, n, groups_, num_groups_, numbers);
  }
  if (num_groups_ > std::max(most, most_groups_)) return Refuse();
  has_refused_ = n < kRowsPerGroup * num_groups_;
  return !has_refused_;
}

bool RunSplitter::Split(const KeyRows& rows, uint8_t* const* tuples, GroupRuns* runs) {
  if (!gate_.TakeTurn()) return false;
  // A few rows suffice to show that there are many groups.
  bool may_split = num_groups_ != 0 || Learn(tuples, std::min(rows.n, kSampleRows));
  const PickRows pick = PickRowsFor(uses_vectors_);
  uint32_t placed = 0, num_runs = 0;
  for (uint32_t g = 0; placed < rows.n; ++g) {
    may_split = may_split && num_groups_ <= most_groups_ && (g < num_groups_ || Learn(tuples, rows.n)) &&
                rows.n >= kRowsPerGroup * num_groups_;
    if (!may_split) return Refuse();
    const uint32_t n = pick(rows, tuples, groups_[g], runs->rows + placed);
    placed += n;
    runs->tuples[num_runs] = groups_[g];
    runs->ends[num_runs] = placed;
    num_runs += n != 0;
  }
  runs->n = num_runs;
  return true;
}

}  // namespace quern
