/* SPDX-License-Identifier: Apache-2.0
 *
 * Numerics as they are stored: a header of two or four bytes (sign, digits behind the point, weight), then digits of
 * base 10,000, the most significant first. PostgreSQL keeps this format for as long as pg_upgrade copies tables; its
 * own declarations of it are private (src/backend/utils/adt/numeric.c).
 */
#include "quern_pg.h"

#include "lanes.h"
#include "utils/memutils.h"

enum {
  kSignMask = 0xC000,
  kNegative = 0x4000,
  kShort = 0x8000,
  kSpecial = 0xC000, /* NaN, and the infinities */
  kShortSign = 0x2000,
  kShortScaleShift = 7,
  kShortScaleMask = 0x1F80,
  kShortWeightSign = 0x0040,
  kShortWeightMask = 0x003F,
  kLongScaleMask = 0x3FFF,
  kBase = 10000,
  kDigitsOfBase = 4
};

typedef struct Parts {
  bool is_special, is_negative;
  uint16 header;
  int weight; /* of the first digit: its power of kBase */
  const char* digits;
  int num_digits;
} Parts;

/* A varlena may lie at any address. */
static uint16 read_u16(const char* at) {
  uint16 value;

  memcpy(&value, at, sizeof(value));
  return value;
}

static Parts parts_of(struct varlena* numeric) {
  const char* bytes = VARDATA_ANY(numeric);
  const Size size = VARSIZE_ANY_EXHDR(numeric);
  Parts parts = {.header = read_u16(bytes)};
  int header_bytes = 2;

  if ((parts.header & kSignMask) == kSpecial) {
    parts.is_special = true;
    return parts;
  }
  if (parts.header & kShort) {
    parts.is_negative = (parts.header & kShortSign) != 0;
    parts.weight = parts.header & kShortWeightMask;
    if (parts.header & kShortWeightSign) parts.weight |= ~kShortWeightMask;
  } else {
    parts.is_negative = (parts.header & kSignMask) == kNegative;
    parts.weight = (int16)read_u16(bytes + 2);
    header_bytes = 4;
  }
  parts.digits = bytes + header_bytes;
  parts.num_digits = (int)(size - header_bytes) / 2;
  return parts;
}

static const int64 kPowers[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000, 10000000000};

/* Up to three digits of the base and up to four decimal digits more, in 64 bits: nearly all values. */
static bool small_decimal(const Parts* parts, int shift, int64* value) {
  int64 number = 0;

  if (parts->is_special || parts->num_digits > 3 || shift < -kDigitsOfBase || shift > kDigitsOfBase) return false;
  for (int i = 0; i < parts->num_digits; ++i) number = number * kBase + read_u16(parts->digits + 2 * i);
  if (shift >= 0) {
    number *= kPowers[shift];
  } else {
    if (number % kPowers[-shift] != 0) return false;
    number /= kPowers[-shift];
  }
  *value = parts->is_negative ? -number : number;
  return true;
}

bool decimal_of_numeric(struct varlena* numeric, int scale, Decimal* decimal) {
  const Parts parts = parts_of(numeric);
  /* The digits that the value needs behind the point, in whole digits of the base. */
  const int fraction_digits = parts.num_digits - 1 - parts.weight;
  const Decimal limit = ((Decimal)1 << 126) / kBase;
  Decimal value = 0;
  int shift = scale - kDigitsOfBase * fraction_digits;
  int64 small;

  if (small_decimal(&parts, shift, &small)) {
    *decimal = small;
    return true;
  }
  if (parts.is_special || parts.num_digits > 10) return false;
  for (int i = 0; i < parts.num_digits; ++i) {
    if (value >= limit) return false;
    value = value * kBase + read_u16(parts.digits + 2 * i);
  }
  /* value * kBase^-fraction_digits, as a number of 10^-scale. */
  for (; shift > 0; shift -= Min(shift, kDigitsOfBase)) {
    if (value >= limit) return false;
    value *= kPowers[Min(shift, kDigitsOfBase)];
  }
  for (; shift < 0; shift += Min(-shift, kDigitsOfBase)) {
    const int64 power = kPowers[Min(-shift, kDigitsOfBase)];

    if (value % power != 0) return false;
    value /= power;
  }
  *decimal = parts.is_negative ? -value : value;
  return true;
}

/* ---- numerics of a page ---- */

/* What digit i of a numeric is worth, kWeights[d][p][i], whose digit p is worth 10^-d. */
static const uint64 kWeights[kDigitsOfBase][4][3] = {
    {{0, 0, 0}, {10000, 0, 0}, {100000000, 10000, 0}, {1000000000000, 100000000, 10000}},
    {{0, 0, 0}, {1000, 0, 0}, {10000000, 1000, 0}, {100000000000, 10000000, 1000}},
    {{0, 0, 0}, {100, 0, 0}, {1000000, 100, 0}, {10000000000, 1000000, 100}},
    {{0, 0, 0}, {10, 0, 0}, {100000, 10, 0}, {1000000000, 100000, 10}}};
/* By the number of digits. */
static const uint64 kDigitMasks[5] = {0, 0xffff, 0xffffffff, 0xffffffffffff, 0xffffffffffffffff};

enum {
  kNoDigits = 7, /* the first byte of a varlena of n digits is 7 + 4n, where its header and the numeric's are short */
  kDigitShift = 2,
  kMostDigits = 4,
  kFormBits = 0xC07F, /* of a short numeric's header: that it is one, and its weight */
  kWeightSign = 0x40,
  kFirstDigit = 3, /* byte */
  kBytesRead = kFirstDigit + sizeof(uint64)
};

/* Up to four digits of the base, none of them further behind the point than `fraction_digits`: nearly all values. The
 * result is the value times kBase^fraction_digits / 10^dropped. Without branches but for values of other kinds. */
static pg_attribute_always_inline bool few_digits(const char* at, int fraction_digits, int dropped, int64* value) {
  const uint32 first = (uint8)*at - kNoDigits;
  const uint32 num_digits = first >> kDigitShift;
  const uint16 header = read_u16(at + 1);
  /* Of the digit that is worth 1; too large for specials and for long headers. */
  const uint32 place = (((header & kFormBits) ^ kShort ^ kWeightSign) - kWeightSign) + (uint32)fraction_digits;
  const uint64* weights;
  uint64 digits, number;
  const uint32 divisor = (uint32)kPowers[dropped];
  uint32 last;

  if (unlikely((first & 3) != 0 || num_digits > kMostDigits)) return false;
  if (unlikely(place >= lengthof(kWeights[0]) || num_digits > place + 1)) return false;
  weights = kWeights[dropped][place];
  memcpy(&digits, at + kFirstDigit, sizeof(digits));
  digits &= kDigitMasks[num_digits];
  last = (uint32)(digits >> (16 * place)) & 0xffff;
  if (unlikely(last % divisor != 0)) return false;
  number = (digits & 0xffff) * weights[0] + (digits >> 16 & 0xffff) * weights[1] +
           (digits >> 32 & 0xffff) * weights[2] + last / divisor;
  *value = (header & kShortSign) != 0 ? -(int64)number : (int64)number;
  return true;
}

/* One numeric, into two halves: a 128-bit value would go through memory. Returns whether it has such a form. */
static pg_attribute_always_inline bool decimal_by(char* out, int scale, const char* page, uint16 place, int dropped) {
  const int fraction_digits = (scale + kDigitsOfBase - 1) / kDigitsOfBase;
  const char* at = page + place;
  Decimal decimal = 0;
  bool exact;
  int64 few = 0;

  if (likely(place <= BLCKSZ - kBytesRead) && likely(few_digits(at, fraction_digits, dropped, &few))) {
    const int64 high = few >> 63;

    memcpy(out, &few, sizeof(few));
    memcpy(out + sizeof(few), &high, sizeof(high));
    return true;
  }
  if (place == 0) return true;
  exact = decimal_of_numeric((struct varlena*)at, scale, &decimal);
  memcpy(out, &decimal, sizeof(decimal));
  return exact;
}

#ifdef HAS_LANES

enum { kLanes = 8 };

/* number / divisor for a divisor of 1, 10, 100 or 1000 and numbers below 10^8 that are multiples of it: a product with
 * 2^k / divisor, rounded up. */
OF_LANES static pg_attribute_always_inline __m512i divide(__m512i numbers, int dropped) {
  static const uint32 kInverses[kDigitsOfBase] = {0, 3435973837, 2748779070, 2199023256};

  if (dropped == 0) return numbers;
  return _mm512_srli_epi64(_mm512_mul_epu32(numbers, _mm512_set1_epi64(kInverses[dropped])), 32 + 3 * dropped);
}

/* As few_digits, of kLanes numerics; false: one has another form, or the page ends too close behind it. */
OF_LANES static pg_attribute_always_inline bool few_digits_of_lanes(char* out, int fraction_digits, const char* page,
                                                                    __m256i places, int dropped) {
  enum { kDigitBits = 16, kHalf = 100 * 1000 * 1000 };
  const __m512i ones = _mm512_set1_epi64(1), three = _mm512_set1_epi64(3);
  const __m256i last_place = _mm256_set1_epi32(BLCKSZ - kBytesRead);
  const __m256i within = _mm256_min_epi32(places, last_place);
  const __m512i head = _mm512_i32gather_epi64(within, page, 1);
  const __m512i tail = _mm512_i32gather_epi64(within, page + kFirstDigit, 1);
  const __m512i first = _mm512_sub_epi64(_mm512_and_si512(head, _mm512_set1_epi64(0xff)), _mm512_set1_epi64(kNoDigits));
  const __m512i num_digits = _mm512_srli_epi64(first, kDigitShift);
  const __m512i header = _mm512_srli_epi64(head, 8);
  const __m512i form = _mm512_and_si512(header, _mm512_set1_epi64(kFormBits));
  const __m512i weight =
      _mm512_sub_epi64(_mm512_xor_si512(form, _mm512_set1_epi64(kShort ^ kWeightSign)), _mm512_set1_epi64(kWeightSign));
  const __m512i place = _mm512_add_epi64(weight, _mm512_set1_epi64(fraction_digits));
  /* Four digits, of which the last is worth 1: those that are not there are zeros. */
  const __m512i absent = _mm512_sub_epi64(_mm512_set1_epi64(kMostDigits), num_digits);
  const __m512i present = _mm512_srlv_epi64(_mm512_set1_epi64(-1), _mm512_slli_epi64(absent, 4));
  const __m512i shifts = _mm512_slli_epi64(_mm512_sub_epi64(three, place), 4);
  const __m512i digits = _mm512_sllv_epi64(_mm512_and_si512(tail, present), shifts);
  /* Pairs of digits: two numbers of 32 bits. */
  const __m512i pairs = _mm512_madd_epi16(digits, _mm512_set1_epi32(1 << kDigitBits | kBase));
  const __m512i low = _mm512_srli_epi64(pairs, 32);
  const __m512i quotient = divide(low, dropped);
  const __m512i high = _mm512_mul_epu32(pairs, _mm512_set1_epi64(kHalf / kPowers[dropped]));
  const __m512i number = _mm512_add_epi64(high, quotient);
  const __mmask8 negative = _mm512_test_epi64_mask(header, _mm512_set1_epi64(kShortSign));
  const __m512i value = _mm512_mask_sub_epi64(number, negative, _mm512_setzero_si512(), number);
  const __m512i sign = _mm512_srai_epi64(value, 63);
  const __mmask8 others =
      _mm512_test_epi64_mask(first, three) | _mm512_cmpgt_epu64_mask(place, three) |
      _mm512_cmpgt_epu64_mask(num_digits, _mm512_add_epi64(place, ones)) |
      _mm512_cmpneq_epi64_mask(_mm512_mul_epu32(quotient, _mm512_set1_epi64(kPowers[dropped])), low) |
      _mm256_cmpgt_epi32_mask(places, last_place);

  if (unlikely(others != 0)) return false;
  _mm512_storeu_si512(out, _mm512_permutex2var_epi64(value, _mm512_set_epi64(11, 3, 10, 2, 9, 1, 8, 0), sign));
  _mm512_storeu_si512(out + sizeof(__m512i),
                      _mm512_permutex2var_epi64(value, _mm512_set_epi64(15, 7, 14, 6, 13, 5, 12, 4), sign));
  return true;
}

OF_LANES static pg_attribute_always_inline bool decimals_by_lanes(char* values, int scale, const uint16* places,
                                                                  const FoundTuples* found, int first, int n,
                                                                  int dropped) {
  const int fraction_digits = (scale + kDigitsOfBase - 1) / kDigitsOfBase;
  const uint16* const tuples = found->tuples + first;
  bool exact = true;
  int i = 0;

  for (; i + kLanes <= n; i += kLanes) {
    const __m256i numbers = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)(tuples + i)));
    const __m256i words = _mm256_i32gather_epi32((const int*)places, numbers, sizeof(uint16));
    const __m256i of_lanes = _mm256_and_si256(words, _mm256_set1_epi32(0xffff));
    char* const out = values + sizeof(Decimal) * i;

    if (few_digits_of_lanes(out, fraction_digits, found->page, of_lanes, dropped)) continue;
    for (int k = 0; k < kLanes; ++k)
      exact &= decimal_by(out + sizeof(Decimal) * k, scale, found->page, places[tuples[i + k]], dropped);
  }
  for (; i < n; ++i) exact &= decimal_by(values + sizeof(Decimal) * i, scale, found->page, places[tuples[i]], dropped);
  return exact;
}

/* Each with a constant number of digits. */
OF_LANES static bool decimals_of_lanes(char* values, int scale, const uint16* places, const FoundTuples* found,
                                       int first, int n) {
  switch (scale % kDigitsOfBase) {
    case 1: return decimals_by_lanes(values, scale, places, found, first, n, 3);
    case 2: return decimals_by_lanes(values, scale, places, found, first, n, 2);
    case 3: return decimals_by_lanes(values, scale, places, found, first, n, 1);
    default: return decimals_by_lanes(values, scale, places, found, first, n, 0);
  }
}

#endif

/* `dropped` is a constant where this is inlined. */
static pg_attribute_always_inline bool decimals_by(char* values, int scale, const uint16* places,
                                                   const FoundTuples* found, int first, int n, int dropped) {
  const uint16* const tuples = found->tuples + first;
  bool exact = true;

  for (int i = 0; i < n; ++i)
    exact &= decimal_by(values + sizeof(Decimal) * i, scale, found->page, places[tuples[i]], dropped);
  return exact;
}

bool decimals_of_found(char* values, int scale, const uint16* places, const FoundTuples* found, int first, int n) {
#ifdef HAS_LANES
  if (found->has_lanes) return decimals_of_lanes(values, scale, places, found, first, n);
#endif
  switch (scale % kDigitsOfBase) {
    case 1: return decimals_by(values, scale, places, found, first, n, 3);
    case 2: return decimals_by(values, scale, places, found, first, n, 2);
    case 3: return decimals_by(values, scale, places, found, first, n, 1);
    default: return decimals_by(values, scale, places, found, first, n, 0);
  }
}

struct varlena* numeric_of_decimal(Decimal decimal, int scale) {
  uint16 digits[12];
  int num_digits = 0, first, weight;
  const bool is_negative = decimal < 0;
  unsigned __int128 rest = is_negative ? -(unsigned __int128)decimal : (unsigned __int128)decimal;
  const int fraction_digits = (scale + kDigitsOfBase - 1) / kDigitsOfBase;
  const int pad = fraction_digits * kDigitsOfBase - scale; /* zeros behind, up to a whole digit of the base */
  struct varlena* numeric;
  uint16* out;
  uint16 header;
  Size size;

  /* The least significant digit first. It has kDigitsOfBase - pad decimal digits. */
  if (pad > 0) {
    digits[num_digits++] = (uint16)(rest % kPowers[kDigitsOfBase - pad] * kPowers[pad]);
    rest /= kPowers[kDigitsOfBase - pad];
  }
  for (; rest > 0; rest /= kBase) digits[num_digits++] = (uint16)(rest % kBase);
  weight = num_digits - 1 - fraction_digits;
  for (first = 0; first < num_digits && digits[first] == 0; ++first) {
  }
  while (num_digits > first && digits[num_digits - 1] == 0) --num_digits, --weight;
  if (num_digits == first) weight = 0;

  size = VARHDRSZ + sizeof(uint16) * (1 + num_digits - first);
  numeric = palloc(size);
  SET_VARSIZE(numeric, size);
  header = kShort | (uint16)(scale << kShortScaleShift) | (weight & kShortWeightMask);
  if (is_negative && num_digits > first) header |= kShortSign;
  if (weight < 0) header |= kShortWeightSign;
  out = (uint16*)VARDATA(numeric);
  *out++ = header;
  for (int i = num_digits; i-- > first;) *out++ = digits[i];
  return numeric;
}

static void reserve_of_thread(Bytes* bytes, Size size) {
  char* data = realloc(bytes->data, size);

  if (data == NULL) {
    quern_last_error->status = QUERN_RESOURCE_EXHAUSTED;
    snprintf(quern_last_error->text, sizeof(quern_last_error->text), "no memory for %zu bytes of strings", size);
    node_raise();
  }
  bytes->data = data;
}

char* bytes_reserve(Bytes* bytes, Size size) {
  if (bytes->used + size > bytes->size) {
    const Size new_size = Max((bytes->used + size) * 2, 1024);

    if (bytes->of_thread) reserve_of_thread(bytes, new_size);
    else if (bytes->data == NULL) bytes->data = MemoryContextAllocHuge(CurrentMemoryContext, new_size);
    else bytes->data = repalloc_huge(bytes->data, new_size);
    bytes->size = new_size;
  }
  return bytes->data + bytes->used;
}

void numeric_append_key(struct varlena* numeric, Bytes* bytes) {
  Parts parts = parts_of(numeric);
  char* out;

  if (parts.is_special) {
    out = bytes_reserve(bytes, 2);
    memcpy(out, &parts.header, 2);
    bytes->used += 2;
    return;
  }
  /* Values are stored without zeros on either side; other programs may have written them with some. */
  for (; parts.num_digits > 0 && read_u16(parts.digits) == 0; --parts.num_digits, --parts.weight) parts.digits += 2;
  while (parts.num_digits > 0 && read_u16(parts.digits + 2 * (parts.num_digits - 1)) == 0) --parts.num_digits;
  if (parts.num_digits == 0) parts.weight = 0, parts.is_negative = false;
  out = bytes_reserve(bytes, 4 + 2 * parts.num_digits);
  *out++ = (char)(parts.is_negative ? 1 : 0);
  memcpy(out, &parts.weight, 2);
  out += 2;
  if (parts.num_digits > 0) memcpy(out, parts.digits, 2 * parts.num_digits);
  bytes->used += 3 + 2 * parts.num_digits;
}
