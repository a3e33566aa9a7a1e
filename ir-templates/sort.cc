// SPDX-License-Identifier: Apache-2.0
// The parts of a sort that depend on its spec. A batch of the input passes through
//
//     encode | lead    batch_rows rows      keys to words, or to the first word alone     vectorised, no memory but the
//     key columns store            the same rows        what comes out, and keys that words do not say all of, to
//     tuples in order of arrival
//
// Words, with the numbers of their rows, are then sorted by runtime/sort/prefix_sort.cc, which is the same for every
// spec and so is not compiled at run time. Rows whose words tie while they may differ (two strings of 20 bytes with the
// same first 16) are told apart by
//
//     compare          two tuples           one key after the other, in a straight line
//
// and the sorted rows come out by
//
//     fit, emit        batch_rows tuples    their fields, column by column
//
// `sort` is the other way to sort, as engines do that compile comparisons alone: no words, but tuples by their
// addresses, a merge sort with the comparison inlined. It is there to be measured against, and for plans that ask for
// it.
//
// Example: 1 M rows by i64. Words and row numbers are 16 bytes a row, and a radix sort reads and writes each a few
// times, in order. Comparing takes 20 comparisons a row, of which each loads two tuples from anywhere and is followed
// by a move that depends on it.
#include "ir-templates/holes.h"
#include "runtime/base/prefetch_line.h"

#define QUERN_ENTRY extern "C" __attribute__((visibility("default")))

namespace {

// Runs of so many tuples are made by insertion.
constexpr uint64_t kInsertionRows = 8;

// Merging so many tuples asks for those that lie further on in either run: fewer are in the cache since the merges
// before.
constexpr uint64_t kPrefetchedRows = 8192;

inline __attribute__((always_inline)) void PrefetchAhead(int64_t distance, uint8_t* const* next, uint8_t* const* end) {
  quern::PrefetchIf(static_cast<uint64_t>(distance), end - next > distance ? next[distance] : *next);
}

inline __attribute__((always_inline)) void InsertionSort(const QuernSortDescriptor* descriptor, uint8_t** begin,
                                                         uint8_t** end) {
  for (uint8_t** next = begin + 1; next < end; ++next) {
    uint8_t* tuple = *next;
    uint8_t** hole = next;
    for (; hole > begin && quern_hole_compare_tuples(descriptor, hole[-1], tuple) > 0; --hole) *hole = hole[-1];
    *hole = tuple;
  }
}

// Merges [begin, middle) and [middle, end), both sorted, in place; of equal tuples the first run's come first. The
// first run is moved to `scratch`, so that what is written never overtakes what is yet to be read. No branch depends on
// which tuple is taken.
inline __attribute__((always_inline)) void Merge(const QuernSortDescriptor* descriptor, uint8_t** begin,
                                                 uint8_t** middle, uint8_t** end, uint8_t** scratch) {
  uint8_t** left_end = scratch + (middle - begin);
  __builtin_memcpy(scratch, begin, static_cast<uint64_t>(middle - begin) * sizeof(uint8_t*));
  uint8_t **left = scratch, **right = middle, **out = begin;
  const bool prefetches =
      quern_hole_prefetches(&descriptor->rows) && static_cast<uint64_t>(end - begin) >= kPrefetchedRows;
  const int64_t distance = prefetches ? descriptor->prefetch_merge_rows : 0;
  while (left < left_end && right < end) {
    if (distance != 0) {
      PrefetchAhead(distance, left, left_end);
      PrefetchAhead(distance, right, end);
    }
    uint8_t *first = *left, *second = *right;
    const bool takes_right = quern_hole_compare_tuples(descriptor, first, second) > 0;
    *out++ = takes_right ? second : first;
    left += !takes_right;
    right += takes_right;
  }
  while (left < left_end) *out++ = *left++;
}

}  // namespace

QUERN_ENTRY void quern_sort_encode(const QuernSortDescriptor* descriptor, const QuernColumn* keys, uint64_t first,
                                   const uint32_t* rows, uint32_t n, uint64_t* const* words, uint32_t* incomplete) {
  quern_hole_encode_rows(descriptor, keys, first, rows, n, words, incomplete);
}

QUERN_ENTRY void quern_sort_encode_leading(const QuernSortDescriptor* descriptor, const QuernColumn* keys,
                                           uint64_t first, const uint32_t* rows, uint32_t n, uint64_t* lead) {
  quern_hole_encode_leading_rows(descriptor, keys, first, rows, n, lead);
}

// `fields`: the columns of all fields, those that come out first.
QUERN_ENTRY void quern_sort_store(const QuernJoinDescriptor* rows_descriptor, const QuernColumn* fields, uint64_t first,
                                  const uint32_t* rows, uint32_t n, uint64_t first_row_id, uint8_t* tuples) {
  quern_hole_store_rows(rows_descriptor, nullptr, fields, first, rows, n, first_row_id, tuples);
}

QUERN_ENTRY int32_t quern_sort_compare(const QuernSortDescriptor* descriptor, const uint8_t* a, const uint8_t* b) {
  return quern_hole_compare_tuples(descriptor, a, b);
}

// Runs are merged as soon as there are two of the same length, as a binary counter carries: tuples are still in the
// cache then. After 5 runs of 8 there is one of 32 and one of 8; after the last one all are merged, whatever their
// lengths.
QUERN_ENTRY void quern_sort_sort(const QuernSortDescriptor* descriptor, uint8_t** tuples, uint64_t n,
                                 uint8_t** scratch) {
  for (uint64_t begin = 0; begin < n; begin += kInsertionRows) {
    const uint64_t end = n - begin < kInsertionRows ? n : begin + kInsertionRows;
    InsertionSort(descriptor, tuples + begin, tuples + end);
    for (uint64_t width = kInsertionRows; width <= begin; width *= 2) {
      const uint64_t middle = begin & ~(width - 1);
      if ((begin & width) != 0) Merge(descriptor, tuples + middle - width, tuples + middle, tuples + end, scratch);
      else if (end < n) break;
    }
  }
}

QUERN_ENTRY int64_t quern_sort_reserve_output(QuernJoinProbeArgs* args, const uint64_t* tuples, uint32_t n) {
  return quern_hole_reserve_matches(args, nullptr, tuples, n);
}

QUERN_ENTRY void quern_sort_emit(QuernJoinProbeArgs* args, const uint64_t* tuples, uint32_t n) {
  quern_hole_emit_matches(args, nullptr, tuples, n);
}
