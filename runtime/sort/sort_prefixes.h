// SPDX-License-Identifier: Apache-2.0
// Sort-key prefixes: the bits of a row's key words that vary, contiguous, and below them the row's number. Code calls a
// prefix an entry.
#ifndef QUERN_RUNTIME_SORT_SORT_PREFIXES_H_
#define QUERN_RUNTIME_SORT_SORT_PREFIXES_H_

#include <cstdint>
#include <vector>

#include "runtime/rows/prefetch.h"
#include "runtime/sort/key_comparison.h"
#include "runtime/sort/sort_chunk.h"

namespace quern {

constexpr uint32_t kMaxEntryWords = 4;

// What the rows of a sort have in common: which bits of a word are set in any row, and which in all.
struct WordBits64 {
  uint64_t any = 0;
  uint64_t all = ~uint64_t{0};
  uint64_t varying() const { return any & ~all; }
};

class PrefixLayout {
 public:
  // bits: by word. row_bits: of a row's number; 0 where prefixes need none. most_words: 1 to kMaxEntryWords, if keys
  // and row number do not fit fewer.
  PrefixLayout(const std::vector<KeyComparison>& steps, const std::vector<WordBits64>& bits, uint32_t row_bits,
               uint32_t most_words);

  uint32_t words() const { return words_; }
  uint32_t bytes() const { return words_ * 8; }
  uint32_t row_bits() const { return row_bits_; }
  uint64_t row_mask() const { return (uint64_t{1} << row_bits_) - 1; }
  uint32_t key_bits() const { return key_bits_; }  // in the prefix
  // The comparison keys that the prefix does not hold; the first of them may be the rest of a word. Empty: prefixes
  // hold the whole key.
  const std::vector<KeyComparison>& rest() const { return rest_; }

  // Makes the prefixes of rows begin .. begin+n-1 of a chunk whose first row has number first_number; n up to
  // kBlockRows.
  static constexpr uint32_t kBlockRows = 512;
  void Pack(const SortChunk& chunk, uint32_t begin, uint32_t n, uint64_t first_number, uint64_t* entries) const;
  // Makes the first word of each prefix alone, without the row's number.
  void PackFirst(const SortChunk& chunk, uint32_t begin, uint32_t n, uint64_t* first_words) const;

  // Word w of the rows for which n prefixes stand.
  // *Cost*: a random line a row where the prefix does not hold the word, prefetched by the setting; at kWholeBatch
  // packed_keys_ahead rows ahead, since only copying a word waits for these lines.
  void Unpack(const SortChunks& chunks, const uint64_t* entries, uint32_t n, uint32_t w, const PrefetchSetting& setting,
              uint32_t packed_keys_ahead, uint64_t* out) const;
  // The numbers of the rows for which n prefixes stand.
  void UnpackRows(const uint64_t* entries, uint32_t n, uint64_t* rows) const;
  uint64_t RowOf(const uint64_t* entry) const { return entry[words_ - 1] & row_mask(); }
  // Whether a prefix and the next one are equal except for their row numbers.
  bool Collides(const uint64_t* entry) const {
    for (uint32_t w = 0; w + 1 < words_; ++w)
      if (entry[w] != entry[words_ + w]) return false;
    return ((entry[words_ - 1] ^ entry[2 * words_ - 1]) & ~row_mask()) == 0;
  }

  // Whether a prefix holds all of word w.
  bool Holds(uint32_t w) const { return bits_[w].varying() == 0 || HolderOf(w) != nullptr; }

  // How many of a prefix's highest bits decide whether rows are equal by the first `num_keys` keys; UINT32_MAX if the
  // prefix does not hold these keys.
  uint32_t PrefixBits(const QuernSortDescriptor& descriptor, uint32_t num_keys) const;

 private:
  struct Piece {
    uint32_t word;
    uint64_t mask;   // of the word's bits
    uint32_t shift;  // of its lowest bit, if the mask is contiguous
    bool is_contiguous;
    uint32_t bits;      // of the mask
    uint32_t dropped;   // lowest bits that did not fit
    uint32_t position;  // of its highest bit in the prefix, from the top
  };
  const Piece* HolderOf(uint32_t w) const;
  bool PackOne(const SortChunk& chunk, uint32_t begin, uint32_t n, uint64_t* words) const;
  void PackPiece(const Piece& piece, const uint64_t* source, uint32_t n, uint64_t* const* lanes) const;

  std::vector<Piece> pieces_;
  std::vector<WordBits64> bits_;
  std::vector<KeyComparison> rest_;
  uint32_t words_ = 1;
  uint32_t row_bits_ = 0;
  uint32_t key_bits_ = 0;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_SORT_PREFIXES_H_
