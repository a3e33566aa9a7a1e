// SPDX-License-Identifier: Apache-2.0
// A block of 1000 rows with the columns i64, utf8 (nullable). Each part begins at a multiple of 64 bytes, as vectors
// are read from it in place:
//
//     header    | magic, 1000, 2 | column 0: no nulls, 0 | column 1: nulls, 5432 bytes |
//     column 0  | values, 8000 bytes |
//     column 1  | validity, 125 | offsets, 4004 | bytes, 5432 |
#include "runtime/spill/block_format.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <string>

#include "runtime/base/status.h"

namespace quern {
namespace {

constexpr uint64_t kMagic = 0x31'6b'63'6c'62'6e'72'71;  // "qrnblck1"
constexpr uint64_t kAlignment = 64;
constexpr uint64_t kFixedWords = 3;  // of the header, before its columns
constexpr uint64_t kWordsPerColumn = 2;

uint64_t Aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// The bytes of a column's parts, in their order.
struct Parts {
  uint64_t validity, values, offsets, bytes;
};

Parts PartsOf(const ColumnType& type, uint64_t num_rows, bool has_nulls, uint64_t num_bytes) {
  const Storage storage = RowOf(type.id).storage;
  Parts parts = {has_nulls ? (num_rows + 7) / 8 : 0, 0, 0, num_bytes};
  if (storage == kBit) parts.values = (num_rows + 7) / 8;
  else if (storage == kFixed) parts.values = num_rows * type.width_bytes;
  else if (storage == kVar32) parts.offsets = (num_rows + 1) * 4;
  else if (storage == kVar64) parts.offsets = (num_rows + 1) * 8;
  else parts.values = num_rows * StorageFieldBytes(storage);
  return parts;
}

uint32_t ValueBytesOf(const ColumnType& type) {
  const Storage storage = RowOf(type.id).storage;
  if (storage == kBit) return 1;
  return storage == kFixed ? type.width_bytes : static_cast<uint32_t>(StorageFieldBytes(storage));
}

absl::Status OtherColumns(const std::string& found) {
  return absl::DataLossError("spilled rows: a block is not what was written: " + found +
                             "; accepted: the bytes that the store was given");
}

}  // namespace

BlockPieces::BlockPieces(const OutputBatch& rows) {
  header_ = {kMagic, rows.num_rows(), rows.num_columns()};
  for (size_t c = 0; c < rows.num_columns(); ++c) {
    const QuernOutColumn& column = rows.column(c);
    header_.push_back(column.validity != nullptr && column.null_count != 0 ? 1 : 0);
    header_.push_back(column.num_bytes);
  }
  pieces_.reserve(2 + 8 * rows.num_columns());
  value_bytes_.reserve(pieces_.capacity());
  Add(header_.data(), header_.size() * sizeof(uint64_t), 1);
  for (size_t c = 0; c < rows.num_columns(); ++c) {
    const QuernOutColumn& column = rows.column(c);
    const uint64_t* const words = header_.data() + kFixedWords + kWordsPerColumn * c;
    const Parts parts = PartsOf(rows.type(c), rows.num_rows(), words[0] != 0, words[1]);
    Add(column.validity, parts.validity, 1);
    Add(column.values, parts.values, ValueBytesOf(rows.type(c)));
    Add(column.offsets, parts.offsets, RowOf(rows.type(c).id).storage == kVar64 ? 8 : 4);
    Add(column.bytes, parts.bytes, 1);
  }
}

BlockPieces::BlockPieces(std::span<const iovec> values, uint32_t value_bytes, uint64_t num_rows)
    : header_({kMagic, num_rows, 1, 0, 0}) {
  pieces_.reserve(values.size() + 3);
  value_bytes_.reserve(pieces_.capacity());
  Add(header_.data(), header_.size() * sizeof(uint64_t), 1);
  const uint64_t num_bytes = num_rows * value_bytes;
  pieces_.insert(pieces_.end(), values.begin(), values.end());
  value_bytes_.resize(pieces_.size(), value_bytes);
  num_bytes_ += num_bytes;
  Pad(num_bytes);
}

void BlockPieces::Add(const void* bytes, uint64_t num_bytes, uint32_t value_bytes) {
  if (num_bytes == 0) return;
  pieces_.push_back({const_cast<void*>(bytes), num_bytes});
  value_bytes_.push_back(value_bytes);
  num_bytes_ += num_bytes;
  Pad(num_bytes);
}

// Behind a part of so many bytes.
void BlockPieces::Pad(uint64_t num_bytes) {
  static constexpr uint8_t kPadding[kAlignment] = {};
  const uint64_t padding = Aligned(num_bytes) - num_bytes;
  if (padding == 0) return;
  pieces_.push_back({const_cast<uint8_t*>(kPadding), padding});
  value_bytes_.push_back(1);
  num_bytes_ += padding;
}

uint64_t BlockPieces::Checksum() const {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  for (const iovec& piece : pieces_) XXH3_64bits_update(&state, piece.iov_base, piece.iov_len);
  return XXH3_64bits_digest(&state);
}

uint64_t ChecksumOf(const uint8_t* bytes, uint64_t num_bytes) { return XXH3_64bits(bytes, num_bytes); }

absl::Status ReadBlock(const uint8_t* bytes, uint64_t num_bytes, const std::vector<ColumnType>& types,
                       std::vector<QuernColumn>* columns, std::vector<const uint8_t*>* string_bytes,
                       uint64_t* num_rows) {
  const uint64_t header_words = kFixedWords + kWordsPerColumn * types.size();
  const auto* const header = reinterpret_cast<const uint64_t*>(bytes);
  if (num_bytes < header_words * sizeof(uint64_t)) return OtherColumns(std::to_string(num_bytes) + " bytes");
  if (header[0] != kMagic || header[2] != types.size()) return OtherColumns("another header");
  *num_rows = header[1];
  columns->assign(types.size(), QuernColumn{});
  string_bytes->assign(types.size(), nullptr);
  uint64_t at = Aligned(header_words * sizeof(uint64_t));
  const auto take = [&](uint64_t part) -> const uint8_t* {
    const uint8_t* const begin = part == 0 ? nullptr : bytes + at;
    at += Aligned(part);
    return begin;
  };
  for (size_t c = 0; c < types.size(); ++c) {
    const uint64_t* const words = header + kFixedWords + kWordsPerColumn * c;
    const Parts parts = PartsOf(types[c], *num_rows, words[0] != 0, words[1]);
    QuernColumn& column = (*columns)[c];
    column.validity = take(parts.validity);
    column.values = take(parts.values);
    column.offsets = take(parts.offsets);
    const uint8_t* const strings = take(parts.bytes);
    (*string_bytes)[c] = strings;
    const Storage storage = RowOf(types[c].id).storage;
    if (storage == kView) column.buffers = &(*string_bytes)[c];
    else if (storage == kVar32 || storage == kVar64) column.values = strings;
  }
  if (at != num_bytes) return OtherColumns(std::to_string(num_bytes) + " bytes where " + std::to_string(at) + " were");
  return absl::OkStatus();
}

}  // namespace quern
