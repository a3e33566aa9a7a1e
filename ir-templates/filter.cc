// SPDX-License-Identifier: Apache-2.0
// The loop of a filter. It tests a batch in pieces, and applies the condition's leaves to each piece in turn. A piece's
// masks, and values of columns that several leaves share, stay in the cache from leaf to leaf. The descriptor's
// batch_rows is the number of rows in a piece, a multiple of 64.
//
//     6,000,000 rows, batch_rows 1024:   5860 pieces of 16 words of mask, the last of 384 rows and 6 words
//
// All bits are set at first, and the hole clears some. The only output is the mask, which row_filter.cc turns into
// rows.
#include "ir-templates/holes.h"

#define QUERN_ENTRY extern "C" __attribute__((visibility("default")))

QUERN_ENTRY void quern_filter_mask(QuernFilterArgs* args) {
  const uint64_t num_rows = args->num_rows, batch_rows = args->descriptor->batch_rows;
  uint64_t num_true = 0;
  for (uint64_t first = 0; first < num_rows; first += batch_rows) {
    const uint64_t left = num_rows - first;
    const uint32_t n = static_cast<uint32_t>(left < batch_rows ? left : batch_rows), num_words = (n + 63) / 64;
    uint64_t* mask = args->mask + first / 64;
    __builtin_memset(mask, 255, num_words * 8);
    if (n % 64 != 0) mask[n / 64] = (uint64_t{1} << n % 64) - 1;
    quern_hole_filter_batch(args, first, n, mask);
    for (uint32_t w = 0; w < num_words; ++w) num_true += static_cast<uint64_t>(__builtin_popcountll(mask[w]));
  }
  args->num_true = num_true;
}
