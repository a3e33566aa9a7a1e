// SPDX-License-Identifier: Apache-2.0
// Most strings in practice are ASCII: bytes of U+0020 to U+007E, which are called plain here. Every function first
// proceeds as far as its strings are plain, eight bytes at a time, and needs only the case of letters and, for order, a
// look-up of two bytes:
//
//     Compare("Ab", "aC"), general_ci    words ..6241 | ..4361 are plain; as capitals ..4241 | ..4341; 42 'B' < 43 'C'
//
// Beyond that, characters are read one by one, and their keys (collation_weights.h) are appended, counted, or compared.
// The key of a string is the concatenation of its characters' keys, so strings are compared from their first difference
// on, or rather from the beginning of the character that contains it.
//
// Words have their first byte lowest, and all bytes of a word are tested at once with carries that never leave them
// (Mycroft 1987).
#include "runtime/collation/collation.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/base/messages.h"
#include "runtime/base/status.h"
#include "runtime/collation/collate.h"
#include "runtime/collation/collation_weights.h"
#include "runtime/collation/icu_collation.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace quern {
namespace {

using blocks::Bytes;

constexpr uint64_t kOnes = 0x0101010101010101u;
constexpr uint64_t kHighs = kOnes << 7;

// The properties of strings that a row of collations.def determines.
struct Reading {
  Weights equality;
  Weights order;
  bool pads;
  // TiDB: a key ends before the first byte that is no character; else such a byte is a unit of its own.
  bool stops_at_bad;
};

constexpr Reading ReadingOf(PadRule pad, Weights equality, Weights order) {
  const bool is_tidb = equality == Weights::kUca900Tidb || (pad == PadRule::kTrims && equality != Weights::kBytes);
  return {equality, order, pad == PadRule::kPads, is_tidb};
}

constexpr Reading kReadings[] = {
#define QUERN_COLLATION(Id, text, pad, equality, order) ReadingOf(PadRule::pad, Weights::equality, Weights::order),
#include "runtime/collation/collations.def"
};

// For rules with weights, except ICU's.
const Reading& ReadingOf(CollationRule rule) { return kReadings[rule >> kCollationShift]; }
bool WeighsEquality(CollationRule rule) { return (rule & kWeighsEquality) != 0; }
bool WeighsOrder(CollationRule rule) { return (rule & kWeighsOrder) != 0; }
bool IsIcu(CollationRule rule) { return (rule >> kCollationShift) >= kFirstIcuCollation; }
Collation CollationOf(CollationRule rule) { return static_cast<Collation>(rule >> kCollationShift); }
const KeyTable& EqualityTable(CollationRule rule) { return KeyTable::OfEquality(ReadingOf(rule).equality); }
const KeyTable& OrderTable(CollationRule rule) { return KeyTable::OfOrder(ReadingOf(rule).order); }

// ---- plain bytes ----

bool IsPlain(uint8_t byte) { return byte >= ' ' && byte <= '~'; }
uint8_t Capital(uint8_t byte) { return byte >= 'a' && byte <= 'z' ? static_cast<uint8_t>(byte - 0x20) : byte; }

// Sets the highest bit of each byte that is not plain; possibly also of higher bytes.
uint64_t NotPlain(uint64_t word) {
  return (word | ~((word | kHighs) - kOnes * ' ') | ((word & ~kHighs) + kOnes)) & kHighs;
}

// For a word of ASCII.
uint64_t Capitals(uint64_t word) {
  const uint64_t from_a = word + kOnes * (0x80 - 'a'), above_z = word + kOnes * (0x7f - 'z');
  return word - ((from_a & ~above_z & kHighs) >> 2);
}

// How many bytes from `begin` on are plain.
uint32_t NumPlain(Bytes s, uint32_t begin, uint32_t end) {
  uint32_t at = begin;
  for (; at + 8 <= end; at += 8) {
    const uint64_t bad = NotPlain(blocks::Load<uint64_t>(s.data + at));
    if (bad != 0) return at - begin + static_cast<uint32_t>(__builtin_ctzll(bad) >> 3);
  }
  while (at < end && IsPlain(s.data[at])) ++at;
  return at - begin;
}

// ---- characters one by one ----

// Reads the keys of a string's characters.
class KeyReader {
 public:
  KeyReader(const KeyTable& table, Bytes s, uint32_t begin, bool stops_at_bad)
      : table_(table), at_(s.data + begin), end_(s.data + s.length), stops_at_bad_(stops_at_bad) {}

  // Writes the next character's key to *out; false at the end.
  bool Next(uint8_t* out, uint32_t* size) {
    if (at_ == end_) return false;
    if (table_.reads_bytes()) {
      *size = table_.Write(*at_++, out);
      return true;
    }
    char32_t c = 0;
    const uint32_t length = DecodeCharacter(at_, end_, &c);
    if (length == 0) return NextBad(out, size);
    at_ += length;
    *size = table_.Write(c, out);
    return true;
  }

 private:
  bool NextBad(uint8_t* out, uint32_t* size) {
    if (stops_at_bad_) {
      at_ = end_;
      return false;
    }
    *size = table_.WriteBadByte(*at_++, out);
    return true;
  }

  const KeyTable& table_;
  const uint8_t* at_;
  const uint8_t* end_;
  bool stops_at_bad_;
};

// The keys of a string's characters as a stream of bytes.
class KeyStream {
 public:
  explicit KeyStream(KeyReader reader) : reader_(reader) {}
  // False at the end.
  bool Fill() {
    while (at_ == size_) {
      at_ = 0;
      if (!reader_.Next(bytes_, &size_)) return size_ = 0, false;
    }
    return true;
  }
  const uint8_t* data() const { return bytes_ + at_; }
  uint32_t size() const { return size_ - at_; }
  void Skip(uint32_t n) { at_ += n; }

 private:
  KeyReader reader_;
  uint8_t bytes_[kMaxCharacterKeyBytes];
  uint32_t at_ = 0;
  uint32_t size_ = 0;
};

// Compares the rest of a stream with spaces that go on for ever.
int CompareWithSpaces(KeyStream* stream, uint8_t space) {
  for (; stream->Fill(); stream->Skip(1))
    if (*stream->data() != space) return *stream->data() < space ? -1 : 1;
  return 0;
}

int CompareStreams(KeyStream a, KeyStream b, bool pads, uint8_t space) {
  for (;;) {
    const bool has_a = a.Fill(), has_b = b.Fill();
    if (!has_a && !has_b) return 0;
    if (!has_b) return pads ? CompareWithSpaces(&a, space) : 1;
    if (!has_a) return pads ? -CompareWithSpaces(&b, space) : -1;
    const uint32_t n = std::min(a.size(), b.size());
    if (const int order = std::memcmp(a.data(), b.data(), n); order != 0) return order;
    a.Skip(n);
    b.Skip(n);
  }
}

int CompareStreamsFrom(const KeyTable& table, Bytes a, uint32_t a_begin, Bytes b, uint32_t b_begin,
                       const Reading& reading) {
  return CompareStreams(KeyStream(KeyReader(table, a, a_begin, reading.stops_at_bad)),
                        KeyStream(KeyReader(table, b, b_begin, reading.stops_at_bad)), reading.pads, table.space());
}

// Compares from `begin` on, where in both strings a character begins or the string ends. Characters with the same key
// are skipped; of two with different keys the first different byte decides. Only the remaining cases, expansions and
// ends, are read as streams.
int CompareCharacters(const KeyTable& table, Bytes a, Bytes b, uint32_t begin, const Reading& reading) {
  uint32_t at_a = begin, at_b = begin;
  while (!table.reads_bytes() && at_a < a.length && at_b < b.length) {
    char32_t c = 0, d = 0;
    const uint32_t c_length = DecodeCharacter(a.data + at_a, a.data + a.length, &c);
    const uint32_t d_length = DecodeCharacter(b.data + at_b, b.data + b.length, &d);
    const uint64_t c_class = c_length == 0 ? 0 : table.ClassOf(c), d_class = d_length == 0 ? 0 : table.ClassOf(d);
    if (c_class == 0 || d_class == 0) break;
    if (c_class != d_class) {
      const uint64_t x = KeyTable::KeyOfClass(c_class), y = KeyTable::KeyOfClass(d_class);
      const auto num_same = static_cast<uint64_t>(__builtin_clzll(x ^ y)) / 8;
      if (num_same < (x & 255) && num_same < (y & 255)) return x < y ? -1 : 1;
      break;
    }
    at_a += c_length;
    at_b += d_length;
  }
  return CompareStreamsFrom(table, a, at_a, b, at_b, reading);
}

// A position, `at` or before, at which a character begins in both strings; these have the bytes before `at` in common.
uint32_t CharacterBegin(Bytes a, Bytes b, uint32_t at) {
  const auto is_tail = [](Bytes s, uint32_t i) { return i < s.length && (s.data[i] & 0xc0) == 0x80; };
  while (at > 0 && (is_tail(a, at) || is_tail(b, at))) --at;
  return at;
}

uint32_t NumEqual(Bytes a, Bytes b) {
  const uint32_t n = std::min(a.length, b.length);
  uint32_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const uint64_t difference = blocks::Load<uint64_t>(a.data + i) ^ blocks::Load<uint64_t>(b.data + i);
    if (difference != 0) return i + static_cast<uint32_t>(__builtin_ctzll(difference) >> 3);
  }
  while (i < n && a.data[i] == b.data[i]) ++i;
  return i;
}

// Whether the first n bytes of s are whole characters.
bool IsWellFormed(Bytes s, uint32_t n) {
  char32_t c = 0;
  for (uint32_t at = NumPlain(s, 0, n), length = 0; at < n; at += length) {
    length = DecodeCharacter(s.data + at, s.data + n, &c);
    if (length == 0) return false;
  }
  return true;
}

// Up to where both strings, which are equal before `begin`, are plain and equal except for case.
uint32_t NumPlainEqual(Bytes a, Bytes b, uint32_t begin) {
  const uint32_t n = std::min(a.length, b.length);
  uint32_t i = begin;
  for (; i + 8 <= n; i += 8) {
    const uint64_t x = blocks::Load<uint64_t>(a.data + i), y = blocks::Load<uint64_t>(b.data + i);
    if ((NotPlain(x) | NotPlain(y)) != 0) break;
    const uint64_t difference = Capitals(x) ^ Capitals(y);
    if (difference != 0) return i + static_cast<uint32_t>(__builtin_ctzll(difference) >> 3);
  }
  while (i < n && IsPlain(a.data[i]) && IsPlain(b.data[i]) && Capital(a.data[i]) == Capital(b.data[i])) ++i;
  return i;
}

bool IsPlainFrom(Bytes s, uint32_t begin) { return NumPlain(s, begin, s.length) == s.length - begin; }

// ---- bytes ----

int CompareTail(Bytes s, uint32_t begin) {
  for (uint32_t i = begin; i < s.length; ++i)
    if (s.data[i] != ' ') return s.data[i] < ' ' ? -1 : 1;
  return 0;
}

int CompareBytes(Bytes a, Bytes b, bool pads) {
  const uint32_t n = std::min(a.length, b.length);
  const int order = n == 0 ? 0 : std::memcmp(a.data, b.data, n);
  if (order != 0) return order;
  if (pads) return a.length > n ? CompareTail(a, n) : -CompareTail(b, n);
  return a.length == b.length ? 0 : a.length < b.length ? -1 : 1;
}

void AppendBytes(Bytes s, std::string* key) {
  if (s.length != 0) key->append(reinterpret_cast<const char*>(s.data), s.length);
}

// ---- whole keys ----

// Looks up the codes of 16 plain bytes. A register holds the codes of 16 bytes, and six of them hold all. An index with
// its highest bit set finds 0, and saturation sets that bit in the five registers that do not hold the byte's code.
#if defined(__x86_64__)
__attribute__((target("ssse3"))) void LookUp16(const uint8_t* codes, const uint8_t* bytes, uint8_t* out) {
  const __m128i to_top = _mm_set1_epi8(0x70), sixteen = _mm_set1_epi8(16);
  __m128i x = _mm_sub_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)), _mm_set1_epi8(' ')),
          found = _mm_setzero_si128();
  for (uint32_t t = 0; t < 6; ++t, x = _mm_sub_epi8(x, sixteen)) {
    const __m128i table = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + (t + 2) * 16));
    found = _mm_or_si128(found, _mm_shuffle_epi8(table, _mm_adds_epu8(x, to_top)));
  }
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), found);
}
const bool kLooksUp16 = __builtin_cpu_supports("ssse3");
#else
void LookUp16(const uint8_t* /*codes*/, const uint8_t* /*bytes*/, uint8_t* /*out*/) {}
constexpr bool kLooksUp16 = false;
#endif

void LookUp(const KeyTable& table, const uint8_t* bytes, uint32_t n, uint8_t* out) {
  const uint8_t* const codes = table.ascii().data();
  uint32_t i = 0;
  for (; kLooksUp16 && i + 16 <= n; i += 16) LookUp16(codes, bytes + i, out + i);
  for (; i < n; ++i) out[i] = codes[bytes[i]];
}

// A buffer of bytes that grows; on the stack as long as it is small. Writers keep the position in a local variable,
// since storing a byte may alias anything that has an address.
class KeyBuffer {
 public:
  // Room for `more` bytes after those before `end`.
  uint8_t* Reserve(uint8_t* end, size_t more) {
    const auto size = static_cast<size_t>(end - bytes_);
    if (__builtin_expect(capacity_ - size >= more, 1)) return end;
    std::vector<uint8_t> grown(std::max(capacity_ * 2, size + more));
    std::memcpy(grown.data(), bytes_, size);
    heap_ = std::move(grown);
    bytes_ = heap_.data();
    capacity_ = heap_.size();
    return bytes_ + size;
  }
  uint8_t* data() { return bytes_; }
  // The last position at which a character's key may be written.
  const uint8_t* last() const { return bytes_ + capacity_ - kMaxCharacterKeyBytes; }

 private:
  uint8_t stack_[1024];
  std::vector<uint8_t> heap_;
  uint8_t* bytes_ = stack_;
  size_t capacity_ = sizeof(stack_);
};

// Writes the key of trimmed s at the buffer's beginning, without trailing spaces if they are padding. Returns its
// bytes.
size_t WriteKey(const KeyTable& table, Bytes s, const Reading& reading, KeyBuffer* key) {
  const uint32_t num_plain = NumPlain(s, 0, s.length);
  uint8_t* out = key->Reserve(key->data(), num_plain + kMaxCharacterKeyBytes);
  LookUp(table, s.data, num_plain, out);
  if (num_plain == s.length) return num_plain;
  size_t end = num_plain;
  while (end > 0 && s.data[end - 1] == ' ') --end;
  out += num_plain;
  const uint8_t *last = key->last(), *begin = key->data();
  uint32_t size = 0;
  for (KeyReader reader(table, s, num_plain, reading.stops_at_bad); reader.Next(out, &size);) {
    const uint32_t without_spaces = reading.pads ? table.WithoutSpaces(out, size) : size;
    if (without_spaces != 0) end = static_cast<size_t>(out - begin) + without_spaces;
    out += size;
    if (__builtin_expect(out <= last, 1)) continue;
    out = key->Reserve(out, 2 * kMaxCharacterKeyBytes);
    last = key->last();
    begin = key->data();
  }
  return reading.pads ? end : static_cast<size_t>(out - begin);
}

void AppendKey(const KeyTable& table, Bytes s, CollationRule rule, std::string* key) {
  KeyBuffer buffer;
  const size_t size = WriteKey(table, s, ReadingOf(rule), &buffer);
  key->append(reinterpret_cast<const char*>(buffer.data()), size);
}

__attribute__((noinline)) uint64_t HashOfKey(Bytes s, CollationRule rule, const blocks::HashSecret& secret) {
  if (IsIcu(rule)) {
    std::string key;
    AppendIcuKey(CollationOf(rule), s, &key);
    return blocks::HashBytes(reinterpret_cast<const uint8_t*>(key.data()), key.size(), secret);
  }
  KeyBuffer key;
  const size_t size = WriteKey(EqualityTable(rule), s, ReadingOf(rule), &key);
  return blocks::HashBytes(key.data(), size, secret);
}

// ---- parts of order keys ----

// The result of OrderKeyBytes: bytes from .. from + n - 1 at *out, and whether there are more.
struct Window {
  uint64_t from;
  uint32_t n;
  uint8_t* out;

  // Copies those of the key's `size` bytes from byte `at` on that lie in the window.
  void Take(uint64_t at, const uint8_t* bytes, uint32_t size) const {
    const uint64_t begin = std::max(at, from), end = std::min(at + size, from + n);
    for (uint64_t i = begin; i < end; ++i) out[i - from] = bytes[i - at];
  }
  // Finishes a key of `size` bytes, of which those in the window have been copied.
  uint32_t End(uint64_t size, uint8_t pad) const {
    const uint64_t rest = size > from ? size - from : 0;
    if (rest < n) std::memset(out + rest, pad, n - rest);
    return static_cast<uint32_t>(std::min<uint64_t>(rest, uint64_t{n} + 1));
  }
};

// From the character at `begin` on; everything before it is plain.
__attribute__((noinline)) uint32_t OrderKeyCharacters(const KeyTable& table, Bytes s, CollationRule rule,
                                                      uint32_t begin, const Window& window) {
  const Reading& reading = ReadingOf(rule);
  uint64_t at = begin, end = begin;  // bytes of the key; the same without trailing spaces so far
  while (reading.pads && end > 0 && s.data[end - 1] == ' ') --end;
  uint8_t bytes[kMaxCharacterKeyBytes];
  uint32_t size = 0;
  const uint64_t enough = window.from + window.n + 1;
  for (KeyReader reader(table, s, begin, reading.stops_at_bad); end < enough && reader.Next(bytes, &size); at += size) {
    const uint32_t without_spaces = reading.pads ? table.WithoutSpaces(bytes, size) : size;
    if (without_spaces != 0) end = at + without_spaces;
    window.Take(at, bytes, size);
  }
  return window.End(end, PadByte(rule));
}

uint32_t OrderKeyOfPlain(const KeyTable& table, Bytes s, CollationRule rule, const Window& window) {
  const auto last = static_cast<uint32_t>(std::min<uint64_t>(s.length, window.from + window.n + 1));
  const uint32_t num_plain = NumPlain(s, 0, last);
  const auto held = static_cast<uint32_t>(std::min<uint64_t>(num_plain, window.from + window.n));
  if (held > window.from) LookUp(table, s.data + window.from, held - static_cast<uint32_t>(window.from), window.out);
  if (num_plain == s.length) return window.End(num_plain, ReadingOf(rule).pads ? table.space() : 0);
  // Byte `last` - 1 is beyond the window: there certainly are more, unless what follows may be padding.
  const bool has_more = num_plain == last && last == window.from + window.n + 1 && s.data[last - 1] != ' ';
  return has_more ? window.n + 1 : OrderKeyCharacters(table, s, rule, num_plain, window);
}

// The first 16 bytes of the key of up to 16 plain bytes; false for other strings.
bool OrderKey16(const KeyTable& table, Bytes s, CollationRule rule, uint8_t* out) {
  if (!kLooksUp16 || s.length > 16) return false;
  const blocks::I8x16 mask = blocks::Load<blocks::I8x16>(blocks::ShortMask(s.length));
  const blocks::ShortWords words = blocks::ReadShort(s.data, s.length);
  const blocks::I8x16 bytes = blocks::Load<blocks::I8x16>(&words) | (~mask & int8_t{' '});
  if (blocks::AnyBit((blocks::U64x2)blocks::OtherThanPrintable(bytes))) return false;
  LookUp16(table.ascii().data(), reinterpret_cast<const uint8_t*>(&bytes), out);
  if (!ReadingOf(rule).pads) blocks::Store(out, blocks::Load<blocks::I8x16>(out) & mask);
  return true;
}

}  // namespace

// ---- names ----

absl::StatusOr<Collation> CollationNamed(std::string_view name) {
  for (const CollationRow& row : AllCollations())
    if (row.text == name) return row.id;
  if (name.substr(0, kIcuPrefix.size()) == kIcuPrefix) return OpenIcuCollation(name.substr(kIcuPrefix.size()));
  Names names;
  for (const CollationRow& row : AllCollations()) names.push_back(row.text);
  if (!IcuVersion().empty()) names.push_back(kIcuForm);
  return Unknown("collation", name, names);
}

// ---- equality ----

void AppendEqualityKey(Bytes s, CollationRule rule, std::string* key) {
  s = blocks::Trimmed(s, rule);
  if (!WeighsEquality(rule)) return AppendBytes(s, key);
  if (IsIcu(rule)) return AppendIcuKey(CollationOf(rule), s, key);
  AppendKey(EqualityTable(rule), s, rule, key);
}

uint64_t HashString(Bytes s, CollationRule rule, const blocks::HashSecret& secret) {
  s = blocks::Trimmed(s, rule);
  if (!WeighsEquality(rule)) return blocks::HashBytes(s.data, s.length, secret);
  uint64_t hash = 0;
  if ((rule & kFoldsAscii) != 0 && blocks::HashPrintable(s.data, s.length, secret, &hash)) return hash;
  return HashOfKey(s, rule, secret);
}

bool EqualStrings(Bytes a, Bytes b, CollationRule rule) {
  a = blocks::Trimmed(a, rule);
  b = blocks::Trimmed(b, rule);
  const bool is_same = a.length == b.length && blocks::EqualBytes(a.data, b.data, a.length);
  if (is_same || !WeighsEquality(rule)) return is_same;
  if (IsIcu(rule)) return CompareIcu(CollationOf(rule), a, b) == 0;
  if (a.length != 0 && b.length != 0 && IsPlain(a.data[0]) && IsPlain(b.data[0]) &&
      Capital(a.data[0]) != Capital(b.data[0]))
    return false;
  if (std::max(a.length, b.length) <= blocks::kShortBytes) {
    const blocks::I8x32 x = blocks::ReadShortBytes(a.data, a.length), y = blocks::ReadShortBytes(b.data, b.length);
    const blocks::I8x32 others =
        (blocks::OtherThanPrintable(x) & blocks::Load<blocks::I8x32>(blocks::ShortMask(a.length))) |
        (blocks::OtherThanPrintable(y) & blocks::Load<blocks::I8x32>(blocks::ShortMask(b.length)));
    // If the lengths differ, a byte is compared with a zero.
    if (!blocks::AnyBit((blocks::U64x4)others))
      return !blocks::AnyBit((blocks::U64x4)(blocks::Capitals(x) ^ blocks::Capitals(y)));
  }
  const uint32_t at = NumPlainEqual(a, b, 0);
  // Plain strings are equal if their capitals are, and trimmed ones do not end in padding.
  if (IsPlainFrom(a, at) && IsPlainFrom(b, at)) return at == a.length && at == b.length;
  return CompareCharacters(EqualityTable(rule), a, b, at, ReadingOf(rule)) == 0;
}

// ---- order ----

uint8_t PadByte(CollationRule rule) {
  if ((rule & kPadsSpaces) == 0) return 0;
  return WeighsOrder(rule) ? OrderTable(rule).space() : static_cast<uint8_t>(' ');
}

int CompareStrings(Bytes a, Bytes b, CollationRule rule) {
  a = blocks::Trimmed(a, rule);
  b = blocks::Trimmed(b, rule);
  if (!WeighsOrder(rule)) return CompareBytes(a, b, (rule & kPadsSpaces) != 0);
  if (IsIcu(rule)) return CompareIcu(CollationOf(rule), a, b);
  const KeyTable& table = OrderTable(rule);
  if (a.length != 0 && b.length != 0) {  // unrelated strings mostly differ here
    const int order =
        static_cast<int>(table.ascii()[a.data[0] & 0x7f]) - static_cast<int>(table.ascii()[b.data[0] & 0x7f]);
    if (order != 0 && IsPlain(a.data[0]) && IsPlain(b.data[0])) return order;
  }
  const Reading& reading = ReadingOf(rule);
  uint32_t at = CharacterBegin(a, b, NumEqual(a, b));
  if (reading.stops_at_bad && !IsWellFormed(a, at)) return 0;  // both keys end within the common part
  if ((rule & kFoldsAscii) != 0) at = NumPlainEqual(a, b, at);
  if (at < a.length && at < b.length && IsPlain(a.data[at]) && IsPlain(b.data[at])) {
    const int order = static_cast<int>(table.ascii()[a.data[at]]) - static_cast<int>(table.ascii()[b.data[at]]);
    if (order != 0) return order;
  }
  if (at == a.length && at == b.length) return 0;
  return CompareCharacters(table, a, b, at, reading);
}

void AppendOrderKey(Bytes s, CollationRule rule, std::string* key) {
  s = blocks::Trimmed(s, rule);
  if (!WeighsOrder(rule)) return AppendBytes(s, key);
  if (IsIcu(rule)) return AppendIcuKey(CollationOf(rule), s, key);
  AppendKey(OrderTable(rule), s, rule, key);
}

uint32_t OrderKeyBytes(Bytes s, CollationRule rule, uint32_t from, uint32_t n, uint8_t* out) {
  s = blocks::Trimmed(s, rule);
  const Window window = {from, n, out};
  if (!WeighsOrder(rule)) {
    if (s.length > from) std::memcpy(out, s.data + from, std::min(s.length - from, n));
    return window.End(s.length, PadByte(rule));
  }
  if (!IsIcu(rule)) {
    const KeyTable& table = OrderTable(rule);
    if (from == 0 && n == 16 && OrderKey16(table, s, rule, out)) return s.length;
    return OrderKeyOfPlain(table, s, rule, window);
  }
  std::string key;
  AppendIcuKey(CollationOf(rule), s, &key);
  window.Take(0, reinterpret_cast<const uint8_t*>(key.data()), static_cast<uint32_t>(key.size()));
  return window.End(key.size(), 0);
}

// ---- LIKE ----

uint64_t CharacterClass(char32_t c, CollationRule rule) {
  constexpr uint64_t kItself = uint64_t{1} << 63;  // or-ed with a character: it matches no other
  if (!WeighsEquality(rule) || !IsCharacter(c)) return kItself | c;
  if (IsIcu(rule)) return 0;
  const KeyTable& table = EqualityTable(rule);
  // Above U+FFFF all characters weigh the same under unicode_ci, yet each matches only itself.
  if ((table.reads_bytes() && c > 0x7f) || (ReadingOf(rule).equality == Weights::kUca400 && c > 0xffff))
    return kItself | c;
  return table.ClassOf(c);
}

bool MatchesCharacter(char32_t a, char32_t b, CollationRule rule) {
  if (a == b) return true;
  const uint64_t x_class = CharacterClass(a, rule), y_class = CharacterClass(b, rule);
  if (x_class != 0 && y_class != 0) return x_class == y_class;
  if (!WeighsEquality(rule) || !IsCharacter(a) || !IsCharacter(b)) return false;
  uint8_t x[kMaxCharacterKeyBytes], y[kMaxCharacterKeyBytes];
  if (IsIcu(rule)) return CompareIcu(CollationOf(rule), {x, EncodeCharacter(a, x)}, {y, EncodeCharacter(b, y)}) == 0;
  const KeyTable& table = EqualityTable(rule);
  const uint32_t size = table.Write(a, x);
  return size == table.Write(b, y) && std::memcmp(x, y, size) == 0;
}

}  // namespace quern
