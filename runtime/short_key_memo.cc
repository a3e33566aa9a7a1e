// SPDX-License-Identifier: Apache-2.0
// TPC-H's first query groups by two strings of one letter each, into four groups. Hashing both, looking at the directory and comparing both
// takes 11 ns a row, for a question that a word answers:
//
//     keys      "N", "O"
//     word      01+1 4e 00 00 | 01+1 4f 00 00      a byte more than the length, then the bytes, zero behind the last
//     entry     [word * golden ratio >> 54]        the word, and where its group lies
//
// How many bytes each key has of the word is found in the first batch: as many as its longest string needs, and what is left over is shared
// among the strings. A batch with longer ones has another division, and nothing is known then; one that fits none, or has nulls, is looked
// for as if there were no memo. The word holds the keys' own bytes, so that any collation may put two words into one group, and no word
// ever belongs to two.
//
// Where more than one row in eight is not found, or strings are mostly longer, the memo gives up.
#include "runtime/short_key_memo.h"

#include <algorithm>

#include "runtime/blocks.h"

namespace quern {
namespace {

constexpr uint32_t kWordBytes = 8;
constexpr uint64_t kRowsToJudge = 8192;  // the first rows of all groups are misses
constexpr uint64_t kRowsPerMiss = 8;     // at least
constexpr uint32_t kMostRefusals = 4;

// Bytes that a key of fixed width needs; 0: it is no key for words.
uint32_t FixedBytes(const QuernField& key) {
  switch (key.storage) {
    case kBit:
    case k8: return 1;
    case k16: return 2;
    case k32:
    case kF32: return 4;
    default: return 0;
  }
}

// The first 8 bytes as a number, zero behind the last.
QUERN_INLINE uint64_t FirstBytes(blocks::Bytes s) {
  if (__builtin_expect(static_cast<int>(s.length != 0) & static_cast<int>(blocks::MayReadShort(s.data)), 1))
    return blocks::Load<uint64_t>(s.data) & blocks::Load<uint64_t>(blocks::ShortMask(std::min(s.length, blocks::kShortBytes)));
  return blocks::ReadTail(s.data, s.length);
}

// Adds a key to the words, `shift` bits up; answers the longest string's bytes.
template <Storage kStorage>
uint32_t AddKey(const QuernColumn& column, const KeyRows& rows, uint32_t shift, uint64_t* words) {
  const QuernColumn c = column;  // a copy, which no store of a word can be taken for a change of
  uint32_t longest = 0;
  for (uint32_t i = 0; i < rows.n; ++i) {
    const uint32_t row = blocks::RowAt(rows.rows, rows.first, i);
    if constexpr (blocks::IsVariableStorage(kStorage)) {
      const blocks::Bytes s = blocks::ReaderOf<kStorage>::Read(&c, row);
      longest = std::max(longest, s.length);
      words[i] |= (FirstBytes(s) << 8 | ((s.length + 1) & 0xff)) << shift;
    } else {
      words[i] |= static_cast<uint64_t>(blocks::ReaderOf<kStorage>::Read(&c, row)) << shift;
    }
  }
  return longest;
}

uint32_t AddKeyOf(Storage storage, const QuernColumn& column, const KeyRows& rows, uint32_t shift, uint64_t* words) {
  switch (storage) {
    case kBit: return AddKey<kBit>(column, rows, shift, words);
    case k8: return AddKey<k8>(column, rows, shift, words);
    case k16: return AddKey<k16>(column, rows, shift, words);
    case k32:
    case kF32: return AddKey<k32>(column, rows, shift, words);
    case kVar32: return AddKey<kVar32>(column, rows, shift, words);
    case kVar64: return AddKey<kVar64>(column, rows, shift, words);
    case kView: return AddKey<kView>(column, rows, shift, words);
    default: return 0;
  }
}

}  // namespace

ShortKeyMemo::ShortKeyMemo(const QuernJoinShape& group) : group_(group), pays_(!group.zero_hashes) {
  uint32_t fewest = 0;
  bool has_strings = false;
  for (uint32_t k = 0; k < group.num_keys && pays_; ++k) {
    const bool is_string = blocks::IsVariableStorage(group.keys[k].storage);
    const uint32_t bytes = is_string ? 1 : FixedBytes(group.keys[k]);
    pays_ = bytes != 0;
    has_strings |= is_string;
    bytes_.push_back(bytes);
    fewest += bytes;
  }
  pays_ &= has_strings && fewest < kWordBytes;
}

// Divides the word anew, by the bytes that each key needs at least.
bool ShortKeyMemo::Fits(const std::vector<uint32_t>& bytes) {
  uint32_t needed = 0, num_strings = 0;
  for (size_t k = 0; k < bytes.size(); ++k) {
    needed += bytes[k];
    num_strings += blocks::IsVariableStorage(group_.keys[k].storage);
  }
  if (needed > kWordBytes) return false;
  bytes_ = bytes;
  const uint32_t more = (kWordBytes - needed) / num_strings;
  for (size_t k = 0; k < bytes.size(); ++k) bytes_[k] += blocks::IsVariableStorage(group_.keys[k].storage) ? more : 0;
  return true;
}

// The word of each row. Twice where a string was longer than there was room for.
bool ShortKeyMemo::PackKeys(const KeyRows& rows) {
  for (uint32_t k = 0; k < group_.num_keys; ++k)
    if (group_.keys[k].nullable && rows.keys[k].validity != nullptr) return false;
  for (bool again = false;; again = true) {
    std::fill_n(words_.begin(), rows.n, 0);
    std::vector<uint32_t> needed = bytes_;
    bool fits = true;
    for (uint32_t k = 0, shift = 0; k < group_.num_keys; shift += 8 * bytes_[k], ++k) {
      const uint32_t longest = AddKeyOf(group_.keys[k].storage, rows.keys[k], rows, shift, words_.data());
      fits &= longest < bytes_[k] || !blocks::IsVariableStorage(group_.keys[k].storage);
      if (blocks::IsVariableStorage(group_.keys[k].storage)) needed[k] = longest >= kWordBytes ? kWordBytes + 1 : longest + 1;
    }
    if (fits) return true;
    if (again || !Fits(needed)) return false;
    Forget();
  }
}

bool ShortKeyMemo::Look(const KeyRows& rows, uint8_t** tuples, uint32_t* others, uint32_t* num_others) {
  if (!pays_) return false;
  if (words_.empty()) words_.resize(kMaxBatchRows);
  if (entries_.empty()) entries_.resize(size_t{1} << kNumEntriesLog2);
  if (!PackKeys(rows)) {
    pays_ = ++refusals_ < kMostRefusals;
    return false;
  }
  refusals_ = 0;
  const Entry* const entries = entries_.data();
  const uint64_t* const words = words_.data();
  uint32_t n = 0;
  for (uint32_t i = 0; i < rows.n; ++i) {
    const Entry& entry = entries[words[i] * kMultiplier >> (64 - kNumEntriesLog2)];
    tuples[i] = entry.tuple;
    others[n] = i;
    n += entry.word != words[i];
  }
  *num_others = n;
  rows_ += rows.n;
  misses_ += n;
  if (rows_ >= kRowsToJudge) {
    pays_ = misses_ * kRowsPerMiss <= rows_;
    rows_ = misses_ = 0;
  }
  return true;
}

void ShortKeyMemo::Learn(const uint32_t* others, uint32_t num_others, uint8_t* const* found) {
  for (uint32_t o = 0; o < num_others; ++o) *EntryOf(words_[others[o]]) = {words_[others[o]], found[o]};
}

void ShortKeyMemo::Forget() { std::fill(entries_.begin(), entries_.end(), Entry{0, nullptr}); }

}  // namespace quern
