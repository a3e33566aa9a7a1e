// SPDX-License-Identifier: Apache-2.0
// A join whose build keys are unique gives each probe row one tuple at most, so that its build columns may stand beside
// the rows of the probe side, which then need not be copied:
//
//     probe side    row   item         matches   row 1 ─> tuple of item 7, price 30
//                    0      4                    row 3 ─> tuple of item 2, price 50
//                    1      7
//                    2      4          price     ?  30  ?  50
//                    3      2          selected     1     3
//
// How a field is placed depends on nothing but its width and nulls. So these loops are the same for every spec, and are
// not compiled at run time.
#include "runtime/rows/place_fields.h"

#include <algorithm>
#include <array>
#include <bit>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "runtime/base/cpu.h"
#include "runtime/base/prefetch_line.h"
#include "runtime/blocks/blocks.h"
#include "runtime/rows/address_views.h"

namespace quern {
namespace {

using blocks::SetBitTo;
using blocks::TupleSource;

constexpr uint32_t kRowsAtATime = 512;

template <Storage kStorage>
TupleSource<kStorage> SourceOf(const QuernField& field, const PlacedTuples& placed) {
  return {placed.base, placed.tuples, field.tuple_offset, field.null_offset, field.null_mask, field.width_bytes};
}

// row(i): of tuple i.
template <Storage kStorage, class RowOf>
void PlaceAt(const TupleSource<kStorage>& source, uint32_t n, bool nullable, const RowOf& row, QuernOutColumn* out) {
  if (!nullable) {
    for (uint32_t i = 0; i < n; ++i) blocks::WriteValue<kStorage>(source, i, true, out, row(i));
    return;
  }
  for (uint32_t i = 0; i < n; ++i) {
    const bool valid = source.Valid(i);
    SetBitTo(out->validity, row(i), valid);
    blocks::WriteValue<kStorage>(source, i, valid, out, row(i));
  }
}

// Whether the tuples' rows follow one another. Without a branch for each row, so that it takes a vector of them at a
// time.
bool AreAdjacent(const PlacedTuples& placed) {
  uint32_t differs = 0;
  for (uint32_t i = 0; i < placed.n; ++i) differs |= placed.rows[i] ^ (placed.rows[0] + i);
  return differs == 0;
}

template <Storage kStorage>
void PlaceField(const QuernField& field, const PlacedTuples& placed, bool is_adjacent, QuernOutColumn* column) {
  const TupleSource<kStorage> source = SourceOf<kStorage>(field, placed);
  QuernOutColumn out = *column;  // a copy, which writing values cannot alias
  const uint32_t *const rows = placed.rows, n = placed.n, first = rows[0];
  const bool nullable = field.null_mask != 0;
  if (is_adjacent) PlaceAt(source, n, nullable, [first](uint32_t i) { return uint64_t{first} + i; }, &out);
  else PlaceAt(source, n, nullable, [rows](uint32_t i) { return uint64_t{rows[i]}; }, &out);
  column->num_bytes = out.num_bytes;
}

#if defined(__x86_64__)
// Whether four fields are words without nulls, one behind the other. So are all numbers of 64 bits of a wide tuple.
bool AreFourWords(const QuernField* fields) {
  for (uint32_t f = 0; f < 4; ++f) {
    const QuernField& field = fields[f];
    if (field.storage != k64 || field.null_mask != 0 || field.tuple_offset != fields[0].tuple_offset + 8 * f)
      return false;
  }
  return true;
}

// Reads four words of a tuple at once, and writes four rows of a column at once: 20 instructions for 16 values, where
// value by value takes 48.
__attribute__((target("avx2"))) void PlaceFourWords(uint32_t tuple_offset, const PlacedTuples& placed,
                                                    QuernOutColumn* columns) {
  const uint8_t* const base = placed.base + tuple_offset;
  const uint64_t* const tuples = placed.tuples;  // a copy, as n: stores cannot change them
  const uint64_t n = placed.n;
  uint64_t* to[4];
  for (uint32_t f = 0; f < 4; ++f) to[f] = static_cast<uint64_t*>(columns[f].values) + placed.rows[0];
  const auto load = [=](uint64_t i) __attribute__((target("avx2"))) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(base + tuples[i]));
  };
  const auto store = [](uint64_t* at, __m256i words) __attribute__((target("avx2"))) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), words);
  };
  uint64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const __m256i a = load(i), b = load(i + 1), c = load(i + 2), d = load(i + 3);
    const __m256i ab02 = _mm256_unpacklo_epi64(a, b), ab13 = _mm256_unpackhi_epi64(a, b);
    const __m256i cd02 = _mm256_unpacklo_epi64(c, d), cd13 = _mm256_unpackhi_epi64(c, d);
    store(to[0] + i, _mm256_permute2x128_si256(ab02, cd02, 0x20));
    store(to[1] + i, _mm256_permute2x128_si256(ab13, cd13, 0x20));
    store(to[2] + i, _mm256_permute2x128_si256(ab02, cd02, 0x31));
    store(to[3] + i, _mm256_permute2x128_si256(ab13, cd13, 0x31));
  }
  for (; i < n; ++i)
    for (uint32_t f = 0; f < 4; ++f) to[f][i] = blocks::Load<uint64_t>(base + tuples[i] + 8 * f);
}
#endif

// Whether any of n fields from field f on is left out.
bool AreLeftOut(const PlacedTuples& placed, uint32_t f, uint32_t n) {
  return f < 64 && (placed.left_out >> f & ((uint64_t{1} << n) - 1)) != 0;
}

// Whether all strings are short, and none is null: a field then has the bytes of a view.
bool AreInline(const QuernField& field, const PlacedTuples& placed) {
  if (field.null_mask != 0) return false;
  const uint8_t* const fields = placed.base + field.tuple_offset;
  uint32_t any_long = 0;
  for (uint32_t i = 0; i < placed.n; ++i)
    any_long |= static_cast<uint32_t>(blocks::Load<uint32_t>(fields + placed.tuples[i]) > kInlineStringBytes);
  return any_long == 0;
}

// Views that point to the strings. A field has all of a view but where the string lies, its first four bytes included,
// so that no string is read.
void PlaceAddresses(const QuernField& field, const PlacedTuples& placed, QuernOutColumn* column) {
  const TupleSource<kView> source = SourceOf<kView>(field, placed);
  const QuernOutColumn out = *column;  // a copy, which writing values cannot alias
  for (uint32_t i = 0; i < placed.n; ++i) {
    const bool valid = source.Valid(i);
    if (field.null_mask != 0) SetBitTo(out.validity, placed.rows[i], valid);
    auto view = source.ReadValue<std::array<uint64_t, 2>>(i);
    const auto length = static_cast<uint32_t>(view[0]);
    if (length > kInlineStringBytes) view[1] = ViewOfAddress(view[1]);
    if (!valid) view = {};
    static_cast<std::array<uint64_t, 2>*>(out.values)[placed.rows[i]] = view;
  }
}

// How many of n views have room for their bytes; fewer where memory is refused for all.
int64_t FitViews(const QuernField& field, const PlacedTuples& placed, uint32_t n, QuernOutColumn* column) {
  const TupleSource<kView> source = SourceOf<kView>(field, placed);
  int64_t fit = blocks::FitStrings<kView>(source, n, column);
  for (; fit == kQuernOutOfMemory && n > 1; fit = blocks::FitStrings<kView>(source, n, column)) n /= 2;
  return fit;
}

void Place(const QuernField& field, const PlacedTuples& placed, bool is_adjacent, QuernOutColumn* column) {
  switch (field.storage) {
    case kBit: return PlaceField<kBit>(field, placed, is_adjacent, column);
    case k8: return PlaceField<k8>(field, placed, is_adjacent, column);
    case k16: return PlaceField<k16>(field, placed, is_adjacent, column);
    case k32: return PlaceField<k32>(field, placed, is_adjacent, column);
    case k64:
    case kRowId: return PlaceField<k64>(field, placed, is_adjacent, column);
    case k128: return PlaceField<k128>(field, placed, is_adjacent, column);
    case kFixed: return PlaceField<kFixed>(field, placed, is_adjacent, column);
    case kView: return PlaceField<kView>(field, placed, is_adjacent, column);
    default: break;  // keys alone have floats' storages; strings with offsets are not placed
  }
}

}  // namespace

void PrefetchTuples(const QuernRowLayout& layout, const PlacedTuples& placed) {
  constexpr uint32_t kLineBytes = 64;
  WithPrefetch(placed.prefetch_distance, [&]<class Prefetch>() {
    for (uint32_t i = 0; i < placed.n && Prefetch::kPrefetches; ++i) {
      const uint8_t* const tuple = placed.base + placed.tuples[i];
      for (uint32_t at = 0; at < layout.tuple_bytes; at += kLineBytes) Prefetch::For(tuple + at);
      Prefetch::For(tuple + layout.tuple_bytes - 1);
    }
  });
}

PlacedTuples SomeOf(const PlacedTuples& placed, uint32_t done) {
  PlacedTuples some = placed;
  some.tuples += done;
  some.rows += done;
  some.n = std::min(placed.n - done, kRowsAtATime);
  return some;
}

namespace {

// The bytes of strings that tuples point to, wherever they lie.
void PrefetchStrings(const QuernField& field, const PlacedTuples& placed) {
  const TupleSource<kView> source = SourceOf<kView>(field, placed);
  WithPrefetch(placed.prefetch_distance, [&]<class Prefetch>() {
    for (uint32_t i = 0; i < placed.n && Prefetch::kPrefetches; ++i) {
      const blocks::Bytes string = source.ReadString(i);
      Prefetch::For(string.data);
      Prefetch::For(string.data + string.length);
    }
  });
}

// Places up to kRowsAtATime tuples; returns as PlaceFields.
int64_t PlaceSome(const QuernRowLayout& layout, PlacedTuples some, QuernOutColumn* columns) {
  PrefetchTuples(layout, some);
  uint64_t inline_views = 0;  // bit f: field f, of the first 64
  for (uint32_t f = 0; f < layout.num_output_fields; ++f) {
    if (layout.fields[f].storage != kView) continue;
    if (f < 64 && AreInline(layout.fields[f], some)) {
      inline_views |= uint64_t{1} << f;
      continue;
    }
    if (some.copies_strings) {
      const int64_t fit = FitViews(layout.fields[f], some, some.n, &columns[f]);
      if (fit <= 0) return fit;
      some.n = static_cast<uint32_t>(fit);
    }
    if (some.prefetches_strings) PrefetchStrings(layout.fields[f], some);
  }
  const bool is_adjacent = AreAdjacent(some);
  for (uint32_t f = 0; f < layout.num_output_fields;) {
    if (AreLeftOut(some, f, 1)) {
      ++f;
      continue;
    }
#if defined(__x86_64__)
    if (is_adjacent && f + 4 <= layout.num_output_fields && !AreLeftOut(some, f, 4) &&
        AreFourWords(layout.fields + f) && HasAvx2()) {
      PlaceFourWords(layout.fields[f].tuple_offset, some, columns + f);
      f += 4;
      continue;
    }
#endif
    const bool is_inline = f < 64 && (inline_views >> f & 1) != 0;
    if (is_inline) PlaceField<k128>(layout.fields[f], some, is_adjacent, &columns[f]);
    else if (layout.fields[f].storage == kView && !some.copies_strings)
      PlaceAddresses(layout.fields[f], some, &columns[f]);
    else Place(layout.fields[f], some, is_adjacent, &columns[f]);
    ++f;
  }
  return some.n;
}

}  // namespace

int64_t PlaceFields(const QuernRowLayout& layout, const PlacedTuples& placed, QuernOutColumn* columns) {
  if (layout.num_output_fields <= 64 && std::countr_one(placed.left_out) >= static_cast<int>(layout.num_output_fields))
    return placed.n;
  for (uint32_t done = 0; done < placed.n;) {
    const PlacedTuples some = SomeOf(placed, done);
    const int64_t fit = PlaceSome(layout, some, columns);
    if (fit < 0 || fit < some.n) return done != 0 ? done + std::max<int64_t>(fit, 0) : fit;
    done += some.n;
  }
  return placed.n;
}

}  // namespace quern
