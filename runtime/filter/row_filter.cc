// SPDX-License-Identifier: Apache-2.0
// Converts a kernel's mask to what hosts need: rows, a bitmap, or their number. The mask of a batch of 1000 rows is 16
// words. Words that are 0 are skipped; in the others the set bits are enumerated from the lowest:
//
//     word 3 = 0x0000000000000805      rows 192, 194, 203       (with a selection: its entries 192, 194, 203)
//
// A bitmap is the mask itself, since words are little-endian.
//
// A batch of a million rows goes through the kernel in pieces of 65,536, so that a job with only one batch can change
// to the compiled kernel too. The columns of the second piece are those of the batch, 65,536 rows further.
#include "runtime/filter/row_filter.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <vector>

#include "runtime/base/cpu.h"
#include "runtime/base/refused_calls.h"
#include "runtime/base/status.h"
#include "runtime/blocks/filter_leaves.h"

namespace quern {
namespace {

constexpr uint64_t kPieceRows = 65536;  // a multiple of 64

// Masks for this many rows need no allocation.
constexpr uint64_t kRegisterCache = 256;

class MaskBuffer {
 public:
  explicit MaskBuffer(uint64_t num_rows) : num_words_((num_rows + 63) / 64) {
    if (num_words_ > kRegisterCache) many_.resize(num_words_);
  }
  uint64_t* data() { return many_.empty() ? few_ : many_.data(); }
  uint64_t num_words() const { return num_words_; }

 private:
  uint64_t num_words_;
  uint64_t few_[kRegisterCache];
  std::vector<uint64_t> many_;
};

// Writes the rows of the set bits of a word, whose lowest bit is row `first`; returns how many.
uint32_t WriteRows(uint64_t word, uint32_t first, const uint32_t* selection, uint32_t* rows) {
  uint32_t n = 0;
  for (; word != 0; word &= word - 1, ++n) {
    const uint32_t i = first + static_cast<uint32_t>(__builtin_ctzll(word));
    rows[n] = selection != nullptr ? selection[i] : i;
  }
  return n;
}

uint64_t WriteAllRows(const uint64_t* mask, uint64_t first, uint64_t num_words, const uint32_t* selection,
                      uint32_t* rows) {
  uint64_t n = 0;
  for (uint64_t w = first; w < num_words; ++w)
    n += WriteRows(mask[w], static_cast<uint32_t>(w * 64), selection, rows + n);
  return n;
}

#if defined(__x86_64__)
// The same for words of 64 rows, 16 rows at a time: a register of row numbers is compressed by the mask and written as
// a whole. Excess numbers fall into the room of later rows.
__attribute__((target("avx512f,popcnt"))) uint64_t WriteWordsOfRows(const uint64_t* mask, uint64_t num_words,
                                                                    const uint32_t* selection, uint32_t* rows) {
  const __m512i step = _mm512_set1_epi32(16);
  __m512i numbers = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  uint64_t n = 0;
  for (uint64_t i = 0; i < num_words * 4; ++i) {
    const auto bits = static_cast<__mmask16>(mask[i / 4] >> (i % 4 * 16));
    const __m512i from = selection != nullptr ? _mm512_loadu_si512(selection + i * 16) : numbers;
    _mm512_storeu_si512(rows + n, _mm512_maskz_compress_epi32(bits, from));
    n += static_cast<uint64_t>(__builtin_popcount(bits));
    numbers = _mm512_add_epi32(numbers, step);
  }
  return n;
}

#endif

}  // namespace

absl::StatusOr<uint64_t> RowFilter::Run(const BatchView& batch, uint64_t* mask) const {
  QUERN_RETURN_IF_ERROR(CheckBatch(batch, descriptor_->columns().size(), 0));
  CounterBlock* const counters = counters_.OfThread();
  const CallTimer timer(counters);
  FilterMemo memo;
  std::vector<QuernColumn> columns;  // of a piece
  uint64_t num_true = 0;
  const RefusedCalls refused;
  for (uint64_t first = 0; first < batch.num_rows; first += kPieceRows) {
    QuernFilterArgs args = {};
    args.descriptor = descriptor_->get();
    args.columns = batch.keys.data();
    if (first != 0 && batch.selection == nullptr) {
      columns.clear();
      for (size_t c = 0; c < batch.keys.size(); ++c)
        columns.push_back(ColumnFrom(first, descriptor_->columns()[c], batch.keys[c]));
      args.columns = columns.data();
    }
    args.selection = batch.selection == nullptr ? nullptr : batch.selection + first;
    args.num_rows = std::min(kPieceRows, batch.num_rows - first);
    if (batch.selection == nullptr) args.num_following = batch.num_following + batch.num_rows - first - args.num_rows;
    args.mask = mask + first / 64;
    args.memo = &memo;
    entry_points_.ForBatch(args.num_rows, counters).mask(&args);
    num_true += args.num_true;
  }
  QUERN_RETURN_IF_ERROR(refused.status());
  return num_true;
}

absl::StatusOr<uint64_t> RowFilter::Select(const BatchView& batch, uint32_t* rows) const {
  MaskBuffer mask(batch.num_rows);
  QUERN_ASSIGN_OR_RETURN(const uint64_t num_true, Run(batch, mask.data()));
  uint64_t done = 0;  // words
#if defined(__x86_64__)
  if (HasAvx512()) {
    done = batch.num_rows / 64;
    rows += WriteWordsOfRows(mask.data(), done, batch.selection, rows);
  }
#endif
  WriteAllRows(mask.data(), done, mask.num_words(), batch.selection, rows);
  return num_true;
}

absl::StatusOr<uint64_t> RowFilter::Mask(const BatchView& batch, uint8_t* bitmap) const {
  MaskBuffer mask(batch.num_rows);
  QUERN_ASSIGN_OR_RETURN(const uint64_t num_true, Run(batch, mask.data()));
  std::copy_n(reinterpret_cast<const uint8_t*>(mask.data()), (batch.num_rows + 7) / 8, bitmap);
  return num_true;
}

absl::StatusOr<uint64_t> RowFilter::Count(const BatchView& batch) const {
  MaskBuffer mask(batch.num_rows);
  return Run(batch, mask.data());
}

}  // namespace quern
