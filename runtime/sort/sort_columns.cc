// SPDX-License-Identifier: Apache-2.0
// A column of a sort's result comes from one of three places. For `sort keys=i32:desc:out,utf8:out payload=i64
// window=row_number`:
//
//     i32          decoded from its bits of a word; numbers that are in words are not in fields of tuples
//     utf8, i64    a field of the tuple; the kernel's emit writes all fields of a block of rows at once. In rows
//                  without tuples (not here, as the i64 is payload) strings are looked up by their ranks, and
//                  floats are decoded from their words as numbers are
//     row_number   an array of the caller's
//
// Decoding a number reverses its encoding (sort_abi.h). The i32 key 5, descending, is the upper half of word 0, with
// the sign and then all bits flipped:
//
//     word 0       0x7ffffffa'........
//     >> shift     0x7ffffffa
//     ^ flip       0x00000005               flip = 0x7fffffff: all bits flipped, and the sign bit once more
//
// This is a shift and an xor for every row of a block. The code is therefore one loop for each key and storage, and it
// processes a vector of rows at a time.
#include "runtime/sort/sort_columns.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/blocks/blocks.h"
#include "runtime/blocks/storage_dispatch.h"
#include "runtime/rows/batch_view.h"
#include "runtime/sort/sort_decode.h"

namespace quern {
namespace {

using blocks::uint128_t;

// Sets bits row, row+1, .. of a zeroed bitmap to bit(0), bit(1), .., a byte at a time where possible; returns how many
// of them are 1.
template <class Bit>
uint32_t WriteBits(Bit&& bit, uint32_t n, uint8_t* bitmap, uint64_t row) {
  uint32_t num_set = 0, i = 0;
  const auto write_one = [&](uint32_t at) {
    const bool value = bit(at);
    blocks::SetBitTo(bitmap, row + at, value);
    num_set += value;
  };
  for (; i < n && (row + i) % 8 != 0; ++i) write_one(i);
  for (; i + 8 <= n; i += 8) {
    uint32_t byte = 0;
    for (uint32_t j = 0; j < 8; ++j) byte |= (bit(i + j) ? 1u : 0u) << j;
    bitmap[(row + i) / 8] = static_cast<uint8_t>(byte);
    num_set += static_cast<uint32_t>(std::popcount(byte));
  }
  for (; i < n; ++i) write_one(i);
  return num_set;
}

// Writes numbers of a fixed width. Nulls are written as zeros, so that no byte of a result is left from before.
template <class T, bool kIsFloat>
void WriteNumbers(const RowParts& rows, uint32_t n, T* to) {
  const RowParts r = rows;  // a copy, which cannot alias a stored number
  const auto read = [&r](uint32_t i) {
    if constexpr (kIsFloat) return r.Float<T>(i);
    else return r.Value<T>(i);
  };
  if (!r.nullable) {
    for (uint32_t i = 0; i < n; ++i) to[i] = read(i);
    return;
  }
  for (uint32_t i = 0; i < n; ++i) {
    const T value = read(i);
    to[i] = r.Valid(i) ? value : T{0};
  }
}

// Writes binaries of a fixed width, which words hold whole, from the parts of their words.
void WriteBytes(const QuernSortDescriptor& descriptor, const QuernSortKey& key, const uint64_t* const* words,
                uint32_t n, uint64_t out_row, QuernOutColumn* out) {
  uint8_t* const to = static_cast<uint8_t*>(out->values) + out_row * key.width_bytes;
  const RowParts rows(&descriptor, &key, words);
  for (uint32_t p = key.first_part; p < key.first_part + key.num_parts; ++p) {
    const QuernSortPart& part = descriptor.parts[p];
    if (part.kind != kBytesPart) continue;
    const PartRows bytes(&key, &part, words);
    const uint32_t num_bytes = part.bits / 8;
    for (uint32_t i = 0; i < n; ++i) {
      const uint64_t value = rows.Valid(i) ? bytes[i] : 0;
      for (uint32_t b = 0; b < num_bytes; ++b)
        to[uint64_t{i} * key.width_bytes + part.first_byte + b] =
            static_cast<uint8_t>(value >> 8 * (num_bytes - 1 - b));
    }
  }
}

// Writes strings by their ranks.
struct RankedSource {
  RowParts rows;
  RowCodes ranks;
  const blocks::Bytes* strings;
  bool Valid(uint32_t i) const { return rows.Valid(i); }
  blocks::Bytes ReadString(uint32_t i) const { return strings[ranks[i]]; }
};

void CopyNumbers(const uint64_t* from, uint32_t n, QuernOutColumn* out, uint64_t out_row) {
  if (n > 0) std::memcpy(static_cast<uint64_t*>(out->values) + out_row, from, n * sizeof(uint64_t));
}

}  // namespace

SortColumnWriter::SortColumnWriter(std::shared_ptr<const SortDescriptor> descriptor, SortEntrySource entry_points)
    : descriptor_(std::move(descriptor)), entry_points_(std::move(entry_points)) {
  const uint32_t num_fields = descriptor_->get()->rows.num_output_fields;
  fields_.resize(num_fields);
  field_columns_.resize(num_fields);
  for (size_t c = 0; c < descriptor_->columns().size(); ++c) {
    const SortColumn& column = descriptor_->columns()[c];
    if (column.source == SortColumn::Source::kField) field_columns_[column.index] = c;
  }
}

void SortColumnWriter::AppendWords(uint32_t key, const SortedBlock& block, uint32_t n, QuernOutColumn* out,
                                   uint64_t out_row) const {
  const QuernSortKey& k = descriptor_->get()->keys[key];
  const RowParts rows(descriptor_->get(), &k, block.words);
  if (k.nullable)
    out->null_count += n - WriteBits([&](uint32_t i) { return rows.Valid(i); }, n, out->validity, out_row);
  const auto write = [&]<bool kIsFloat = false>(auto zero) {
    using T = decltype(zero);
    WriteNumbers<T, kIsFloat>(rows, n, static_cast<T*>(out->values) + out_row);
  };
  switch (k.storage) {
    case kBit: {
      const auto bit = [&](uint32_t i) { return (rows.low[i] & 1) != 0 && (!k.nullable || rows.Valid(i)); };
      WriteBits(bit, n, static_cast<uint8_t*>(out->values), out_row);
      return;
    }
    case k8: return write(uint8_t{0});
    case k16: return write(uint16_t{0});
    case k32: return write(uint32_t{0});
    case k64: return write(uint64_t{0});
    case k128: return write(uint128_t{0});
    case kF32: return write.template operator()<true>(uint32_t{0});
    case kF64: return write.template operator()<true>(uint64_t{0});
    case kFixed: return WriteBytes(*descriptor_->get(), k, block.words, n, out_row, out);
    case kVar32:  // these have fields
    case kVar64:
    case kView:
    case kRowId:
    case kNoStorage: return;
  }
}

// Writes fields of rows that have no tuples: strings by their ranks, floats from their words.
absl::StatusOr<uint32_t> SortColumnWriter::AppendRanked(const SortedBlock& block, uint32_t n, OutputBatch* out) {
  const QuernSortDescriptor& descriptor = *descriptor_->get();
  const auto for_strings = [&](auto visit) {
    for (uint32_t f = 0; f < descriptor.rows.num_output_fields; ++f) {
      const uint32_t key = descriptor_->fields()[f].index;
      if (!IsVariable(descriptor.keys[key].storage)) continue;
      visit(descriptor.rows.fields[f],
            RankedSource{{&descriptor, &descriptor.keys[key], block.words},
                         {&descriptor, &descriptor.keys[key], block.words},
                         block.ranked[key]},
            &out->columns()[field_columns_[f]]);
    }
  };
  int64_t fit = n;
  for_strings([&](const QuernField& field, const RankedSource& source, QuernOutColumn* column) {
    if (fit <= 0) return;
    DispatchStorage(field.storage, [&](auto storage) {
      if constexpr (blocks::IsVariableStorage(storage.value))
        fit = blocks::FitStrings<storage.value>(source, static_cast<uint32_t>(fit), column);
    });
  });
  if (fit < 0) return StatusOfCode(fit);
  n = static_cast<uint32_t>(fit);
  for_strings([&](const QuernField& field, const RankedSource& source, QuernOutColumn* column) {
    DispatchStorage(field.storage, [&](auto storage) {
      if constexpr (blocks::IsVariableStorage(storage.value))
        blocks::EmitColumn<storage.value>(source, n, column, out->num_rows(), source.rows.nullable);
    });
  });
  for (uint32_t f = 0; f < descriptor.rows.num_output_fields; ++f) {
    const uint32_t key = descriptor_->fields()[f].index;
    if (!IsVariable(descriptor.keys[key].storage))
      AppendWords(key, block, n, &out->columns()[field_columns_[f]], out->num_rows());
  }
  return n;
}

absl::StatusOr<uint32_t> SortColumnWriter::AppendFields(const SortedBlock& block, uint32_t n, OutputBatch* out) {
  const size_t num_fields = fields_.size();
  // If all columns are fields, they are already contiguous.
  const bool in_place =
      num_fields == out->num_columns() && std::is_sorted(field_columns_.begin(), field_columns_.end());
  QuernOutputArgs args = {};
  args.layout = &descriptor_->get()->rows;
  args.columns = in_place ? out->columns() : fields_.data();
  args.num_rows = out->num_rows();
  args.capacity = out->capacity();
  for (size_t f = 0; f < num_fields && !in_place; ++f) fields_[f] = out->columns()[field_columns_[f]];
  const QuernSortEntryPoints& kernel = entry_points_.Now();
  int64_t fit = kernel.reserve_output != nullptr ? kernel.reserve_output(&args, block.tuples, n) : n;
  // Where memory is refused for all of them, fewer rows may have some: the batch then ends before its capacity.
  for (; fit == kQuernOutOfMemory && n > 1; fit = kernel.reserve_output(&args, block.tuples, n)) n /= 2;
  if (fit == kQuernOutOfMemory && args.num_rows > 0) fit = 0;
  if (fit > 0 && kernel.emit != nullptr) kernel.emit(&args, block.tuples, static_cast<uint32_t>(fit));
  // Also if nothing fits: making room has moved bytes.
  for (size_t f = 0; f < num_fields && !in_place; ++f) out->columns()[field_columns_[f]] = fields_[f];
  if (fit < 0) return StatusOfCode(fit);
  return static_cast<uint32_t>(fit);
}

absl::StatusOr<uint32_t> SortColumnWriter::Append(const SortedBlock& block, OutputBatch* out) {
  const uint64_t out_row = out->num_rows();
  if (out->num_columns() == 0) {
    out->set_num_rows(out_row + block.n);
    return block.n;
  }
  uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(block.n, out->capacity() - out_row));
  if (!fields_.empty() && n > 0) {
    QUERN_ASSIGN_OR_RETURN(n, block.ranked != nullptr ? AppendRanked(block, n, out) : AppendFields(block, n, out));
  }
  for (size_t c = 0; c < out->num_columns(); ++c) {
    const SortColumn& source = descriptor_->columns()[c];
    QuernOutColumn* column = &out->columns()[c];
    switch (source.source) {
      case SortColumn::Source::kField: break;
      case SortColumn::Source::kWords: AppendWords(source.index, block, n, column, out_row); break;
      case SortColumn::Source::kRowId: CopyNumbers(block.row_ids, n, column, out_row); break;
      case SortColumn::Source::kRowNumber: CopyNumbers(block.row_numbers, n, column, out_row); break;
      case SortColumn::Source::kRank: CopyNumbers(block.ranks, n, column, out_row); break;
      case SortColumn::Source::kDenseRank: CopyNumbers(block.dense_ranks, n, column, out_row); break;
    }
  }
  out->set_num_rows(out_row + n);
  return n;
}

}  // namespace quern
