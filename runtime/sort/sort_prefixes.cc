// SPDX-License-Identifier: Apache-2.0
// Exact widths. Bits that are the same in all rows do not affect the order, so a prefix leaves them out. For
// keys=i32,i64 and values
//
//     1,000,000 rows; i32 from 0 to 999, i64 from -3 to 2^40
//
// the first key varies in 10 bits and the second in 42 (and its sign), and the row's number takes 20: 73 bits, two
// words of 64 instead of the three that the types would take. i32 alone: 30 bits, one word. One word can be sorted by
// vectors, and two words move at less cost than three.
//
//     prefix  63          54 53                              0
//     word 0  | 10 bits     | upper 43 - 0 bits of i64 ..     |
//     word 1  | .. the rest  |             row number, 20 bits |
//
// OR-ing and AND-ing all words finds which bits vary. Constant bits between varying ones are left out too (PEXT): of
// lower case letters, 5 to 6 of 8 bits remain. Machines without PEXT only leave out the bits above and below, by a
// shift.
//
// Row numbers follow the order of arrival and are a prefix's lowest bits: no two prefixes are equal, and every sorting
// method is stable. If only keys are returned and prefixes hold them whole, row numbers are left out, and stability
// does not matter.
#include "runtime/sort/sort_prefixes.h"

#include <algorithm>
#include <bit>
#include <type_traits>

#include "runtime/base/cpu.h"
#include "runtime/rows/prefetch_lines.h"

namespace quern {
namespace {

#if defined(__x86_64__)
__attribute__((target("bmi2"))) void GatherBits(const uint64_t* source, uint32_t n, uint64_t mask, uint64_t* out) {
  for (uint32_t i = 0; i < n; ++i) out[i] = __builtin_ia32_pext_di(source[i], mask);
}
__attribute__((target("bmi2"))) void ScatterBits(uint64_t* values, uint32_t n, uint64_t mask, uint64_t constant) {
  for (uint32_t i = 0; i < n; ++i) values[i] = __builtin_ia32_pdep_di(values[i], mask) | constant;
}
bool GathersBits() { return HasAvx2(); }
#else
void GatherBits(const uint64_t*, uint32_t, uint64_t, uint64_t*) {}
void ScatterBits(uint64_t*, uint32_t, uint64_t, uint64_t) {}
bool GathersBits() { return false; }
#endif

uint32_t BitsOf(uint64_t mask) { return static_cast<uint32_t>(std::popcount(mask)); }
uint32_t LowestBit(uint64_t mask) { return static_cast<uint32_t>(std::countr_zero(mask)); }
uint32_t HighestBit(uint64_t mask) { return 63 - static_cast<uint32_t>(std::countl_zero(mask)); }
uint64_t Ones(uint32_t n) { return n == 0 ? 0 : ~uint64_t{0} >> (64 - n); }
// From the lowest bit of a mask to its highest.
uint64_t Range(uint64_t mask) {
  return mask == 0 ? 0 : Ones(HighestBit(mask) - LowestBit(mask) + 1) << LowestBit(mask);
}

// The lowest n bits of a mask.
uint64_t LowestOf(uint64_t mask, uint32_t n) {
  uint64_t taken = 0;
  for (uint32_t i = 0; i < n; ++i) {
    taken |= mask & -mask;
    mask &= mask - 1;
  }
  return taken;
}

uint32_t WordsFor(uint64_t bits) { return static_cast<uint32_t>((bits + 63) / 64); }

}  // namespace

PrefixLayout::PrefixLayout(const std::vector<KeyComparison>& steps, const std::vector<WordBits64>& bits,
                           uint32_t row_bits, uint32_t most_words)
    : bits_(bits), row_bits_(row_bits) {
  uint64_t exact = row_bits, ranges = row_bits;
  size_t num_words = 0;
  for (; num_words < steps.size() && !steps[num_words].is_tail(); ++num_words) {
    const uint64_t mask = bits[steps[num_words].word].varying() & steps[num_words].mask;
    exact += BitsOf(mask);
    ranges += BitsOf(Range(mask));
  }
  // Extracting bits also makes the highest ones, by which prefixes are partitioned, vary: text has three constant bits
  // in each byte.
  const bool gathers = GathersBits() && exact < ranges;
  words_ = std::clamp(WordsFor(gathers ? exact : ranges), 1u, most_words);
  const uint32_t room = 64 * words_ - row_bits;
  for (size_t s = 0; s < steps.size(); ++s) {
    KeyComparison step = steps[s];
    if (!step.is_tail()) step.mask &= bits[step.word].varying();
    if (!step.is_tail() && step.mask == 0) continue;
    if (s >= num_words || key_bits_ == room) {
      rest_.push_back(step);
      continue;
    }
    Piece piece = {};
    piece.word = step.word;
    piece.mask = gathers ? step.mask : Range(step.mask);
    piece.shift = LowestBit(piece.mask);
    piece.is_contiguous = Range(piece.mask) == piece.mask;
    piece.bits = BitsOf(piece.mask);
    piece.position = key_bits_;
    piece.dropped = piece.bits > room - key_bits_ ? piece.bits - (room - key_bits_) : 0;
    key_bits_ += piece.bits - piece.dropped;
    step.mask = LowestOf(piece.mask, piece.dropped);
    if (step.mask != 0) rest_.push_back(step);
    pieces_.push_back(piece);
  }
}

void PrefixLayout::PackPiece(const Piece& piece, const uint64_t* source, uint32_t n, uint64_t* const* lanes) const {
  uint64_t gathered[kBlockRows];
  const uint32_t taken = piece.bits - piece.dropped;
  if (piece.is_contiguous) {
    const uint32_t shift = piece.shift + piece.dropped;
    const uint64_t mask = Ones(taken);
    for (uint32_t i = 0; i < n; ++i) gathered[i] = source[i] >> shift & mask;
  } else {
    GatherBits(source, n, piece.mask, gathered);
    for (uint32_t i = 0; i < n && piece.dropped != 0; ++i) gathered[i] >>= piece.dropped;
  }
  const uint32_t end = piece.position % 64 + taken;
  uint64_t* const first = lanes[piece.position / 64];
  if (end <= 64) {
    for (uint32_t i = 0; i < n; ++i) first[i] |= gathered[i] << (64 - end);
    return;
  }
  uint64_t* const second = lanes[piece.position / 64 + 1];
  for (uint32_t i = 0; i < n; ++i) {
    first[i] |= gathered[i] >> (end - 64);
    second[i] |= gathered[i] << (128 - end);
  }
}

// If all bits are contiguous in one word, this is a shift.
bool PrefixLayout::PackOne(const SortChunk& chunk, uint32_t begin, uint32_t n, uint64_t* words) const {
  if (pieces_.size() != 1 || !pieces_[0].is_contiguous || pieces_[0].dropped != 0) return false;
  const Piece& piece = pieces_[0];
  const uint64_t* const source = chunk.words + uint64_t{piece.word} * chunk.capacity + begin;
  const uint64_t mask = Ones(piece.bits);
  const uint32_t down = piece.shift, up = 64 - piece.bits;
  for (uint32_t i = 0; i < n; ++i) words[i] = (source[i] >> down & mask) << up;
  return true;
}

void PrefixLayout::Pack(const SortChunk& chunk, uint32_t begin, uint32_t n, uint64_t first_number,
                        uint64_t* entries) const {
  if (words_ == 1 && row_bits_ == 0 && PackOne(chunk, begin, n, entries)) return;
  uint64_t buffer[kMaxEntryWords][kBlockRows];
  uint64_t* lanes[kMaxEntryWords];
  for (uint32_t w = 0; w < words_; ++w) {
    lanes[w] = words_ == 1 ? entries : buffer[w];
    std::fill(lanes[w], lanes[w] + n, uint64_t{0});
  }
  for (const Piece& piece : pieces_)
    PackPiece(piece, chunk.words + uint64_t{piece.word} * chunk.capacity + begin, n, lanes);
  if (row_bits_ != 0) {
    uint64_t* const last = lanes[words_ - 1];
    for (uint32_t i = 0; i < n; ++i) last[i] |= first_number + begin + i;
  }
  for (uint32_t w = 0; w < words_ && words_ > 1; ++w)
    for (uint32_t i = 0; i < n; ++i) entries[uint64_t{i} * words_ + w] = lanes[w][i];
}

void PrefixLayout::PackFirst(const SortChunk& chunk, uint32_t begin, uint32_t n, uint64_t* first_words) const {
  if (PackOne(chunk, begin, n, first_words)) return;
  uint64_t rest[kBlockRows];
  uint64_t* const lanes[2] = {first_words, rest};
  std::fill(first_words, first_words + n, uint64_t{0});
  std::fill(rest, rest + n, uint64_t{0});
  for (const Piece& piece : pieces_)
    if (piece.position < 64) PackPiece(piece, chunk.words + uint64_t{piece.word} * chunk.capacity + begin, n, lanes);
}

// The piece that has all varying bits of a word; null if none has.
const PrefixLayout::Piece* PrefixLayout::HolderOf(uint32_t w) const {
  for (const Piece& piece : pieces_)
    if (piece.word == w && piece.dropped == 0 && (bits_[w].varying() & ~piece.mask) == 0) return &piece;
  return nullptr;
}

namespace {

// visit(number of words of a prefix), as a compile-time constant.
template <class Visit>
void WithWords(uint32_t words, Visit visit) {
  switch (words) {
    case 1: return visit(std::integral_constant<uint32_t, 1>());
    case 2: return visit(std::integral_constant<uint32_t, 2>());
    case 3: return visit(std::integral_constant<uint32_t, 3>());
    default: return visit(std::integral_constant<uint32_t, kMaxEntryWords>());
  }
}

}  // namespace

void PrefixLayout::UnpackRows(const uint64_t* entries, uint32_t n, uint64_t* rows) const {
  const uint64_t mask = row_mask();
  WithWords(words_, [&]<uint32_t kWords>(std::integral_constant<uint32_t, kWords>) {
    for (uint32_t i = 0; i < n; ++i) rows[i] = entries[uint64_t{i} * kWords + kWords - 1] & mask;
  });
}

void PrefixLayout::Unpack(const SortChunks& chunks, const uint64_t* entries, uint32_t n, uint32_t w,
                          const PrefetchSetting& setting, uint32_t packed_keys_ahead, uint64_t* out) const {
  const uint64_t varying = bits_[w].varying(), constant = bits_[w].all;
  const Piece* const held = HolderOf(w);
  if (varying == 0) {
    std::fill(out, out + n, constant);
  } else if (held != nullptr) {
    const uint32_t word = held->position / 64, end = held->position % 64 + held->bits;
    const uint64_t mask = Ones(held->bits), filler = held->is_contiguous ? constant : 0;
    const uint32_t up = held->is_contiguous ? held->shift : 0;
    WithWords(words_, [&]<uint32_t kWords>(std::integral_constant<uint32_t, kWords>) {
      const uint64_t* const from = entries + word;
      if (end <= 64) {
        for (uint32_t i = 0; i < n; ++i) out[i] = (from[uint64_t{i} * kWords] >> (64 - end) & mask) << up | filler;
      } else {
        for (uint32_t i = 0; i < n; ++i) {
          const uint64_t* const entry = from + uint64_t{i} * kWords;
          out[i] = ((entry[0] << (end - 64) | entry[1] >> (128 - end)) & mask) << up | filler;
        }
      }
    });
    if (!held->is_contiguous) ScatterBits(out, n, held->mask, constant);
  } else {
    PrefetchSetting of_words = setting;
    if (setting.distance == kWholeBatch) of_words.distance = static_cast<uint16_t>(packed_keys_ahead);
    const uint32_t ahead = RowsAhead(of_words, n);
    WithPrefetch(of_words, [&]<class Prefetch>() {
      const auto word_at = [&](uint32_t i) { return chunks.WordAt(w, RowOf(entries + uint64_t{i} * words_)); };
      ForEachRow<Prefetch>(
          n, ahead, [&](uint32_t i) { Prefetch::For(word_at(i)); }, [&](uint32_t i) { out[i] = *word_at(i); });
    });
  }
}

uint32_t PrefixLayout::PrefixBits(const QuernSortDescriptor& descriptor, uint32_t num_keys) const {
  std::vector<uint64_t> masks(descriptor.num_words);
  for (uint32_t p = 0; p < descriptor.num_parts; ++p) {
    const QuernSortPart& part = descriptor.parts[p];
    if (part.key < num_keys) masks[part.word] |= SortPartMask(&part);
  }
  for (const KeyComparison& step : rest_) {
    if (step.is_tail() ? step.tail_key < num_keys : (step.mask & masks[step.word]) != 0) return UINT32_MAX;
  }
  uint32_t bits = 0;
  for (const Piece& piece : pieces_) {
    if (masks[piece.word] == 0) break;
    bits += BitsOf(piece.mask & masks[piece.word]);
  }
  return bits;
}

}  // namespace quern
