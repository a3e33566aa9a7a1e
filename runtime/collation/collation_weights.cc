// SPDX-License-Identifier: Apache-2.0
// From published tables to bytes of keys. A character has 0 to 8 weights, numbers of 16 bits. Strings are equal if
// their sequences of weights are, and ordered as these sequences are. In utf8mb4_unicode_ci:
//
//     a  0e33        e  0e8b        é  0e8b          a letter's accents and case have no weight
//     ß  0fea 0fea   (as "ss")      U+0301 none      U+4E2D  fb40 ce2d: not in the table, by rule
//
// Bytes of equality keys. A weight that an ASCII character has is written as that character, a capital; any other
// weight as the UTF-8 form of the code point with its number: "é" E, "ß" SS, "я" e1 8a ad (weight 12ad). No two ASCII
// capitals have the same weight, so this is one to one, and no weight's code is a prefix of another's, so keys are
// equal only if all weights are.
//
// Bytes of order keys. In general_ci, ascii_ci and latin1_bin a weight is a code point or a byte and ASCII is in place,
// so that its UTF-8 form keeps the order; 0 and 1 are two bytes, 01 01 and 01 02, so that no byte is 0. Under UCA,
// ASCII weights are apart, with others between them, so lead bytes are divided among ranges of weights (DivideWeights);
// for 0900_ai_ci:
//
//     lead  01         02    03 ..     43  44       45  ..   75   76 .. fb          fc         fd            fe
//     of    TAB LF ..  ' '   _ , - ..  A   between  B   ..   Z    255 weights each  the rest   fb00 .. fbfe  the rest
//     more  2          0     0, 1, 2   0   1        0        0    1                 2          1             2
//
// So a character that weighs as ASCII takes one byte, a letter of another script two, Han five. A byte that begins no
// character is ff and itself in both keys: above all characters.
#include "runtime/collation/collation_weights.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <span>
#include <utility>

#include "runtime/base/fork_safety.h"
#include "runtime/collation/packed_weights.h"

namespace quern {
namespace {

constexpr char32_t kReplacement = 0xfffd;

// ---- the published weights, unpacked ----

class PackedReader {
 public:
  explicit PackedReader(std::string_view text) : text_(text) {}
  bool AtEnd() const { return at_ == text_.size() || text_[at_] == '='; }

  uint32_t Number() {
    uint32_t number = 0, shift = 0, byte = 0;
    do {
      byte = Byte();
      number |= (byte & 0x7f) << shift;
      shift += 7;
    } while (byte >= 0x80);
    return number;
  }

 private:
  static uint32_t ValueOf(char c) {
    if (c >= 'A' && c <= 'Z') return static_cast<uint32_t>(c - 'A');
    if (c >= 'a' && c <= 'z') return static_cast<uint32_t>(c - 'a') + 26;
    if (c >= '0' && c <= '9') return static_cast<uint32_t>(c - '0') + 52;
    return c == '+' ? 62 : 63;
  }

  // A byte begins with the bits that the sextet before it has left.
  uint32_t Byte() {
    while (num_bits_ < 8) {
      bits_ = bits_ << 6 | ValueOf(text_[at_++]);
      num_bits_ += 6;
    }
    num_bits_ -= 8;
    return bits_ >> num_bits_ & 0xff;
  }

  std::string_view text_;
  size_t at_ = 0;
  uint32_t bits_ = 0;
  uint32_t num_bits_ = 0;
};

// A published table: its code points have 0 to kMaxCharacterWeights weights.
class PublishedTable {
 public:
  explicit PublishedTable(std::string_view packed) {
    PackedReader reader(packed);
    char32_t at = 0;
    uint16_t weight = 0;
    while (!reader.AtEnd()) {
      const uint32_t step = reader.Number(), n = step >> 2;
      switch (step & 3) {
        case 0:
        case 1:
          for (uint32_t i = 0; i < n; ++i) {
            weight = static_cast<uint16_t>(weight + 1 - (step & 1));
            Add(at++, {&weight, 1});
          }
          break;
        case 2: at += n; break;
        default:
          std::array<uint16_t, kMaxCharacterWeights> weights = {};
          for (uint32_t i = 0; i < n; ++i) weights[i] = weight = Moved(weight, reader.Number());
          Add(at++, {weights.data(), n});
      }
    }
  }

  // False if the table does not contain c.
  bool Find(char32_t c, uint16_t* out, uint32_t* n) const {
    const auto& page = pages_[c >> 8];
    const uint32_t entry = page ? page[c & 255] : 0;
    if (entry == 0) return false;
    *n = (entry >> 24) - 1;
    for (uint32_t i = 0; i < *n; ++i) out[i] = weights_[(entry & 0xffffff) + i];
    return true;
  }
  bool HasPage(uint32_t page) const { return pages_[page] != nullptr; }

 private:
  static uint16_t Moved(uint16_t weight, uint32_t by) {
    return static_cast<uint16_t>((by & 1) != 0 ? weight - (by >> 1) : weight + (by >> 1));
  }

  void Add(char32_t c, std::span<const uint16_t> weights) {
    auto& page = pages_[c >> 8];
    if (!page) page = std::make_unique<uint32_t[]>(256);
    page[c & 255] = static_cast<uint32_t>(weights.size() + 1) << 24 | static_cast<uint32_t>(weights_.size());
    weights_.insert(weights_.end(), weights.begin(), weights.end());
  }

  std::array<std::unique_ptr<uint32_t[]>, 0x1100>
      pages_;  // entries: 8 bits of 1 + number of weights, 24 of their position
  std::vector<uint16_t> weights_;
};

const PublishedTable& PublishedOf(Weights weights) {
  static const PublishedTable general(kPackedGeneral);
  if (weights == Weights::kGeneral) return general;
  if (weights == Weights::kUca400) {
    static const PublishedTable uca400(kPackedUca400);
    return uca400;
  }
  if (weights == Weights::kUca520) {
    static const PublishedTable uca520(kPackedUca520);
    return uca520;
  }
  static const PublishedTable uca900(kPackedUca900);
  return uca900;
}

// ---- weights by rule ----

bool IsBetween(char32_t c, char32_t first, char32_t last) { return c >= first && c <= last; }

uint32_t ByRule(uint32_t base, char32_t c, uint16_t* out) {
  out[0] = static_cast<uint16_t>(base + (c >> 15));
  out[1] = static_cast<uint16_t>((c & 0x7fff) | 0x8000);
  return 2;
}

uint32_t Uca400ByRule(char32_t c, uint16_t* out) {
  if (IsBetween(c, 0x3400, 0x4db5)) return ByRule(0xfb80, c, out);
  const bool is_han = IsBetween(c, 0x4e00, 0x9fa5) || c == 0xfa0e || c == 0xfa0f;
  return ByRule(is_han ? 0xfb40 : 0xfbc0, c, out);
}

uint32_t Uca900ByRule(char32_t c, uint16_t* out) {
  if (IsBetween(c, 0x17000, 0x18aff)) {  // Tangut
    out[0] = 0xfb00;
    out[1] = static_cast<uint16_t>((c - 0x17000) | 0x8000);
    return 2;
  }
  const bool is_extension = IsBetween(c, 0x3400, 0x4db5) || IsBetween(c, 0x20000, 0x2a6d6) ||
                            IsBetween(c, 0x2a700, 0x2b734) || IsBetween(c, 0x2b740, 0x2b81d) ||
                            IsBetween(c, 0x2b820, 0x2cea1);
  if (is_extension) return ByRule(0xfb80, c, out);
  const bool is_han = IsBetween(c, 0x4e00, 0x9fd5) || IsBetween(c, 0xfa0e, 0xfa29);
  return ByRule(is_han ? 0xfb40 : 0xfbc0, c, out);
}

// A syllable has the weights of its two or three letters (The Unicode Standard, 3.12).
uint32_t HangulWeights(char32_t c, const PublishedTable& table, uint16_t* out) {
  const uint32_t index = c - 0xac00, num_vowels = 21, num_tails = 28;
  const char32_t letters[] = {0x1100 + index / (num_vowels * num_tails), 0x1161 + index / num_tails % num_vowels,
                              0x11a7 + index % num_tails};
  uint32_t all = 0, n = 0;
  for (char32_t letter : letters)
    if (letter != 0x11a7 && table.Find(letter, out + all, &n)) all += n;
  return all;
}

uint32_t Uca900Weights(char32_t c, uint16_t* out) {
  const PublishedTable& table = PublishedOf(Weights::kUca900);
  if (c == kReplacement) {
    out[0] = kReplacement;
    return 1;
  }
  if (IsBetween(c, 0xac00, 0xd7af)) return HangulWeights(c, table, out);
  uint32_t n = 0;
  return table.Find(c, out, &n) ? n : Uca900ByRule(c, out);
}

uint32_t OneWeight(char32_t weight, uint16_t* out) {
  out[0] = static_cast<uint16_t>(weight);
  return 1;
}

}  // namespace

uint32_t WeightsOf(Weights weights, char32_t c, uint16_t* out) {
  uint32_t n = 0;
  switch (weights) {
    case Weights::kAsciiUpper: return OneWeight(c >= 'a' && c <= 'z' ? c - 0x20 : c, out);
    case Weights::kGeneral:
      if (c > 0xffff) return OneWeight(kReplacement, out);
      return PublishedOf(weights).Find(c, out, &n) ? n : OneWeight(c, out);
    case Weights::kUca400:
      if (c > 0xffff) return OneWeight(kReplacement, out);
      return PublishedOf(weights).Find(c, out, &n) ? n : Uca400ByRule(c, out);
    case Weights::kUca520: return PublishedOf(weights).Find(c, out, &n) ? n : Uca400ByRule(c, out);
    // TiDB's table ends here; above it weights are by rule, even for characters that others have in their tables.
    case Weights::kUca900Tidb: return c > 0x2cea1 ? ByRule(0xfbc0, c, out) : Uca900Weights(c, out);
    case Weights::kUca900: return Uca900Weights(c, out);
    case Weights::kBytes:
    case Weights::kLatin1:
    case Weights::kIcu: break;
  }
  return 0;
}

// ---- keys ----

uint32_t EncodeCharacter(char32_t c, uint8_t* out) {
  const auto tail = [c](uint32_t shift) { return static_cast<uint8_t>(0x80 | (c >> shift & 0x3f)); };
  if (c < 0x80) {
    out[0] = static_cast<uint8_t>(c);
    return 1;
  }
  if (c < 0x800) {
    out[0] = static_cast<uint8_t>(0xc0 | c >> 6);
    out[1] = tail(0);
    return 2;
  }
  if (c < 0x10000) {
    out[0] = static_cast<uint8_t>(0xe0 | c >> 12);
    out[1] = tail(6);
    out[2] = tail(0);
    return 3;
  }
  out[0] = static_cast<uint8_t>(0xf0 | c >> 18);
  out[1] = tail(12);
  out[2] = tail(6);
  out[3] = tail(0);
  return 4;
}

namespace {

bool IsUca(Weights weights) {
  return weights == Weights::kUca400 || weights == Weights::kUca520 || weights == Weights::kUca900 ||
         weights == Weights::kUca900Tidb;
}

// MySQL's latin1 is Microsoft's code page 1252; five of its bytes have no character and stand for U+0081, U+008D, ..
constexpr uint16_t kCodePage1252[32] = {0x20ac, 0x81,   0x201a, 0x192,  0x201e, 0x2026, 0x2020, 0x2021,
                                        0x2c6,  0x2030, 0x160,  0x2039, 0x152,  0x8d,   0x17d,  0x8f,
                                        0x90,   0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014,
                                        0x2dc,  0x2122, 0x161,  0x203a, 0x153,  0x9d,   0x17e,  0x178};

// Writes the byte of c. A character that latin1 lacks is ff and its UTF-8 form, so that these sort above all of latin1,
// in their own order; the byte ff itself is followed by 01.
uint32_t WriteLatin1(char32_t c, uint8_t* out) {
  const auto found = std::find(std::begin(kCodePage1252), std::end(kCodePage1252), c);
  if (found != std::end(kCodePage1252)) c = 0x80 + static_cast<char32_t>(found - std::begin(kCodePage1252));
  else if (IsBetween(c, 0x80, 0x9f) || c > 0xff) {
    out[0] = kNoCharacter;
    return 1 + EncodeCharacter(c, out + 1);
  }
  out[0] = static_cast<uint8_t>(c);
  out[1] = 1;
  return c == 0xff ? 2 : 1;
}

constexpr uint32_t kChunk = 255;  // weights that a second byte, which is not 0, distinguishes

}  // namespace

// Assigns lead bytes: to ASCII weights, to those between them, and to those above. For scripts, each lead byte has a
// chunk of weights with one more byte; chunks end where weights by rule begin. The rest have two more bytes.
void KeyTable::DivideWeights() {
  constexpr uint32_t kFirstByRule = 0xfb00, kEnd = 0x10000, kLastLead = kNoCharacter - 1;
  uint8_t lead = 0;
  uint32_t first = 0;
  weight_bytes_[kNoCharacter] = 2;
  const auto add = [&](uint32_t end, uint8_t more_bytes) {
    if (first >= end) return;
    ranges_.push_back({first, ++lead, more_bytes});
    weight_bytes_[lead] = static_cast<uint8_t>(1 + more_bytes);
    first = end;
  };
  for (const auto& [weight, capital] : ascii_weights_) {
    add(weight, weight - first <= kChunk ? 1 : 2);
    add(weight + 1u, 0);
  }
  const uint32_t chunk_leads = kLastLead - lead - 3;
  for (uint32_t i = 0; i < chunk_leads && first + kChunk < kFirstByRule; ++i) add(first + kChunk, 1);
  add(kFirstByRule, 2);
  add(kFirstByRule + kChunk, 1);
  add(kEnd, 2);
  weight_bytes_[kNoCharacter] = 2;  // kNoCharacter and the byte
}

KeyTable::KeyTable(Weights weights, bool is_order) : weights_(weights), is_order_(is_order), is_uca_(IsUca(weights)) {
  uint16_t weight[kMaxCharacterWeights] = {};
  for (uint32_t c = ' '; is_uca_ && c <= '~'; ++c) {
    if (IsBetween(c, 'a', 'z')) continue;
    WeightsOf(weights_, c, weight);
    ascii_weights_.emplace_back(weight[0], static_cast<uint8_t>(c));
  }
  std::sort(ascii_weights_.begin(), ascii_weights_.end());
  if (is_order_ && is_uca_) DivideWeights();
  uint8_t key[kMaxCharacterKeyBytes];
  for (uint32_t c = ' '; c <= '~'; ++c) {
    Make(c, key);
    ascii_[c] = key[0];
  }
  AddPages();
}

uint32_t KeyTable::BeforeSpaces(const uint8_t* key, uint32_t n) const {
  if (!is_order_ || !is_uca_) {  // no other weight contains that byte
    while (n > 0 && key[n - 1] == space()) --n;
    return n;
  }
  uint32_t end = 0;
  for (uint32_t at = 0; at < n;) {
    const bool is_space = key[at] == space();
    at += weight_bytes_[key[at]];
    if (!is_space) end = at;
  }
  return end;
}

uint32_t KeyTable::WriteOrderWeight(uint32_t weight, uint8_t* out) const {
  const auto above = std::upper_bound(ranges_.begin(), ranges_.end(), weight,
                                      [](uint32_t w, const Range& range) { return w < range.first; });
  const Range& range = above[-1];
  const uint32_t offset = weight - range.first;
  out[0] = range.lead;
  if (range.more_bytes == 1) out[1] = static_cast<uint8_t>(offset + 1);
  if (range.more_bytes == 2) {
    out[1] = static_cast<uint8_t>(offset / kChunk + 1);
    out[2] = static_cast<uint8_t>(offset % kChunk + 1);
  }
  return 1u + range.more_bytes;
}

uint32_t KeyTable::WriteWeight(uint32_t weight, uint8_t* out) const {
  if (is_order_ && is_uca_) return WriteOrderWeight(weight, out);
  if (is_uca_) {
    const auto at =
        std::lower_bound(ascii_weights_.begin(), ascii_weights_.end(), std::pair<uint16_t, uint8_t>(weight, 0));
    if (at == ascii_weights_.end() || at->first != weight) return EncodeCharacter(weight, out);
    out[0] = at->second;
    return 1;
  }
  if (is_order_ && weight < 2) {
    out[0] = 1;
    out[1] = static_cast<uint8_t>(weight + 1);
    return 2;
  }
  if (!reads_bytes()) return EncodeCharacter(weight, out);
  out[0] = static_cast<uint8_t>(weight);
  return 1;
}

uint32_t KeyTable::Make(char32_t c, uint8_t* out) const {
  if (weights_ == Weights::kLatin1 && c >= 2) return WriteLatin1(c, out);
  uint16_t weights[kMaxCharacterWeights] = {static_cast<uint16_t>(c)};
  const uint32_t n = weights_ == Weights::kLatin1 ? 1 : WeightsOf(weights_, c, weights);
  uint32_t size = 0;
  for (uint32_t i = 0; i < n; ++i) size += WriteWeight(weights[i], out + size);
  return size;
}

uint64_t KeyTable::EntryOf(char32_t c) {
  uint8_t key[kMaxCharacterKeyBytes] = {};
  const uint64_t size = Make(c, key);
  if (size <= kMaxEntryBytes) return (blocks::Load<uint64_t>(key) & 0xffffffffffffff) | size << 56;
  const uint64_t at = long_.size();
  long_.insert(long_.end(), key, key + size);
  return at | size << 56;
}

uint32_t KeyTable::WriteLong(uint64_t entry, uint8_t* out) const {
  const auto size = static_cast<uint32_t>(entry >> 56);
  std::memcpy(out, long_.data() + static_cast<uint32_t>(entry), size);
  return size;
}

// Makes pages for all characters that are likely to occur.
void KeyTable::AddPages() {
  const bool is_latin1 = weights_ == Weights::kLatin1, is_published = !reads_bytes() && !is_latin1;
  for (uint32_t page = 0; page < pages_.size(); ++page) {
    const bool is_of_latin1 = is_latin1 && (page <= 2 || page == 0x20 || page == 0x21);
    const bool is_of_table = is_published && (page < 256 || PublishedOf(weights_).HasPage(page));
    if (page != 0 && !is_of_latin1 && !is_of_table) continue;
    memory_.push_back(std::make_unique<uint64_t[]>(256));
    uint64_t* const entries = memory_.back().get();
    for (uint32_t i = 0; i < 256; ++i) entries[i] = EntryOf(page << 8 | i);
    pages_[page] = entries;
  }
}

std::atomic<const KeyTable*> KeyTable::tables_[2][static_cast<size_t>(Weights::kIcu) + 1];

namespace {
constinit ForkSafeMutex tables_mutex;
}  // namespace

// Never freed: other threads may still run when the process ends.
const KeyTable& KeyTable::Made(Weights weights, bool is_order) {
  const std::lock_guard lock(tables_mutex);
  std::atomic<const KeyTable*>& table = tables_[is_order][static_cast<size_t>(weights)];
  if (table.load(std::memory_order_relaxed) == nullptr)
    table.store(new KeyTable(weights, is_order), std::memory_order_release);
  return *table.load(std::memory_order_relaxed);
}

}  // namespace quern
