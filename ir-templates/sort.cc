// SPDX-License-Identifier: Apache-2.0
// The parts of a sort that depend on its spec. A batch of the input passes through:
//
//     encode | encode_leading   batch_rows rows     keys to all words, or to the leading word; vectorised, reads only
//                                                   the key columns
//     store                     the same rows       output columns, and keys that the words do not hold completely, to
//                                                   tuples in order of arrival
//
// The words, with their row numbers, are then sorted by runtime/sort/prefix_sort.cc, which is the same for every spec
// and so is not compiled at run time. Rows with equal words whose keys may still differ (two strings of 20 bytes that
// share the first 16) are ordered by:
//
//     compare                   two tuples          one key after the other, without loops
//
// The sorted rows are written by:
//
//     reserve_output, emit      batch_rows tuples   their fields, column by column
//
// `sort` is an alternative without key words, as in engines that compile only comparisons: a merge sort of tuple
// addresses with the comparison inlined. It serves as a baseline for measurements, and for plans that select it.
//
// Example: 1 M rows by i64. Words and row numbers take 16 bytes a row, and a radix sort reads and writes each a few
// times, sequentially. Sorting by comparison takes 20 comparisons a row; each loads two tuples from random addresses
// and is followed by a move that depends on it.
#include "ir-templates/holes.h"
#include "runtime/base/prefetch_line.h"

#define QUERN_ENTRY extern "C" __attribute__((visibility("default")))

namespace {

// Runs of this many tuples are made by insertion.
constexpr uint64_t kInsertionRows = 8;

// Merges of at least this many tuples prefetch the tuples that are this many places ahead in either run; smaller ones
// are still in the cache from earlier merges.
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

// Merges [begin, middle) and [middle, end), both sorted, in place; among equal tuples, those of the first run come
// first. The first run is moved to `scratch`, so that writing never overtakes reading. No branch depends on which tuple
// is taken.
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

// `fields`: the columns of all fields; output fields come first.
QUERN_ENTRY void quern_sort_store(const QuernRowLayout* layout, const QuernColumn* fields, uint64_t first,
                                  const uint32_t* rows, uint32_t n, uint64_t first_row_id, uint8_t* tuples) {
  quern_hole_store_rows(layout, nullptr, fields, first, rows, n, first_row_id, tuples);
}

QUERN_ENTRY int32_t quern_sort_compare(const QuernSortDescriptor* descriptor, const uint8_t* a, const uint8_t* b) {
  return quern_hole_compare_tuples(descriptor, a, b);
}

// Runs are merged as soon as there are two of the same length, like carries in a binary counter, while their tuples are
// still in the cache. After 5 runs of 8 there is one of 32 and one of 8; at the end all runs are merged, whatever their
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

QUERN_ENTRY int64_t quern_sort_reserve_output(QuernOutputArgs* args, const uint64_t* tuples, uint32_t n) {
  return quern_hole_reserve_fields(args, tuples, n);
}

QUERN_ENTRY void quern_sort_emit(QuernOutputArgs* args, const uint64_t* tuples, uint32_t n) {
  quern_hole_emit_fields(args, tuples, n);
}
