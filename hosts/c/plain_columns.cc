// SPDX-License-Identifier: Apache-2.0
// Each row of the batch has its element looked up once, for all buffers of the column. Example: a column of rows 0 to 3
// with a selection of its own, then a constant:
//
//     selection 2 2 0 1   values 7 8 9   validity 1 0 1   ->   values 9 9 7 8   validity 1 1 1 0
//     constant            values 7                        ->   values 7 7 7 7
//
// Strings by pointer become views: each long one gets a data buffer of its own, which begins at its first byte, so that
// no byte is copied:
//
//     {length 20, "abcd", 0x7f..10}   ->   {length 20, "abcd", buffer 3, offset 0}   buffers[3] = 0x7f..10
//
// Varlena values become views likewise: only those of up to 12 bytes are copied.
//
// Strings behind offsets have to be copied, because two rows of a selection may share one.
#include "hosts/c/plain_columns.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "hosts/c/varlena.h"
#include "runtime/base/status.h"
#include "runtime/blocks/blocks.h"

namespace quern::c_abi {
namespace {

constexpr uint32_t kAllFlags =
    QUERN_COLUMN_CONSTANT | QUERN_COLUMN_POINTERS | QUERN_COLUMN_BYTES | QUERN_COLUMN_VARLENA | QUERN_COLUMN_TRIMMED;

// The element of a column's buffers that belongs to a row of the batch.
uint64_t ElementOf(const quern_column& column, uint32_t row) {
  if ((column.flags & QUERN_COLUMN_CONSTANT) != 0) return 0;
  return column.selection == nullptr ? row : column.selection[row];
}

bool IsSet(const void* bitmap, uint64_t bit) { return (static_cast<const uint8_t*>(bitmap)[bit / 8] >> (bit % 8)) & 1; }

// The type of what `values` holds: of a dictionary, its indices.
TypeId ValueType(const ColumnType& type) { return type.is_dictionary ? type.index : type.id; }

bool IsWhole(TypeId id) {
  switch (id) {
    case TypeId::kI16:
    case TypeId::kI32:
    case TypeId::kI64:
    case TypeId::kU16:
    case TypeId::kU32:
    case TypeId::kU64:
    case TypeId::kDecimal32:
    case TypeId::kDecimal64:
    case TypeId::kDecimal128: return true;
    default: return false;
  }
}

bool IsUnsigned(TypeId id) { return id == TypeId::kU16 || id == TypeId::kU32 || id == TypeId::kU64; }

absl::Status CheckForm(const quern_column& column, const ColumnType& type, const std::string& name) {
  const auto refused = [&](const char* what, uint32_t value, const std::string& accepted) {
    return InvalidArgument("column with " + std::string(what) + ": " + name + ": " + std::to_string(value) +
                           "; accepted: " + accepted);
  };
  const TypeId id = ValueType(type);
  if ((column.flags & ~kAllFlags) != 0)
    return refused("unknown flags", column.flags, "0 to " + std::to_string(kAllFlags));
  if ((column.flags & QUERN_COLUMN_POINTERS) != 0 && RowOf(id).storage != kView)
    return refused("flags of another type", column.flags, "QUERN_COLUMN_POINTERS (2) for views");
  if ((column.flags & QUERN_COLUMN_BYTES) != 0 && id != TypeId::kBool)
    return refused("flags of another type", column.flags, "QUERN_COLUMN_BYTES (4) for bool");
  const bool is_varlena = (column.flags & QUERN_COLUMN_VARLENA) != 0;
  if (is_varlena && RowOf(id).storage != kView)
    return refused("flags of another type", column.flags, "QUERN_COLUMN_VARLENA (8) for views");
  if (is_varlena && (column.flags & QUERN_COLUMN_POINTERS) != 0) {
    return refused("flags that exclude each other", column.flags,
                   "QUERN_COLUMN_POINTERS (2), or QUERN_COLUMN_VARLENA (8)");
  }
  if (!is_varlena && (column.flags & QUERN_COLUMN_TRIMMED) != 0)
    return refused("QUERN_COLUMN_TRIMMED alone", column.flags, "together with QUERN_COLUMN_VARLENA (8)");
  const uint32_t bytes = column.value_bytes, width = RowOf(id).width_bytes;
  if (bytes == 0 || bytes == width) return absl::OkStatus();
  if (!IsWhole(id)) return refused("value_bytes", bytes, "0, or a column of integers or decimals");
  if (bytes > width || (bytes & (bytes - 1)) != 0)
    return refused("value_bytes", bytes, "0, or a power of two up to " + std::to_string(width));
  return absl::OkStatus();
}

// A little-endian integer of `from` bytes at `source`, widened to `to` bytes.
void Widen(const uint8_t* source, uint32_t from, uint8_t* target, uint32_t to, bool is_unsigned) {
  std::memcpy(target, source, from);
  const bool negative = !is_unsigned && (source[from - 1] & 0x80) != 0;
  std::memset(target + from, negative ? 0xff : 0, to - from);
}

class PlainColumn {
 public:
  PlainColumn(const quern_column& column, const ColumnType& type, std::span<const uint32_t> rows, ColumnMemory* memory)
      : column_(column), type_(type), rows_(rows), memory_(memory) {
    for (const uint32_t row : rows) num_elements_ = std::max(num_elements_, uint64_t{row} + 1);
    plain_.dictionary = column.dictionary;
    plain_.buffers = column.buffers;
  }

  absl::StatusOr<quern_column> Make(const std::string& name) {
    if (type_.nullable && column_.validity != nullptr) plain_.validity = Bits(column_.validity);
    const Storage storage = RowOf(ValueType(type_)).storage;
    switch (storage) {
      case kBit: MakeBits(); break;
      case kVar32: QUERN_RETURN_IF_ERROR(MakeStrings<int32_t>(name)); break;
      case kVar64: QUERN_RETURN_IF_ERROR(MakeStrings<int64_t>(name)); break;
      case kView:
        if ((column_.flags & QUERN_COLUMN_VARLENA) == 0) MakeViews();
        else QUERN_RETURN_IF_ERROR(MakeViewsOfVarlena(name));
        break;
      default: MakeValues(); break;
    }
    return plain_;
  }

 private:
  bool HasValue(uint32_t row) const { return plain_.validity == nullptr || IsSet(plain_.validity, row); }

  const uint8_t* Bits(const void* bitmap) {
    uint8_t* bits = memory_->NewArray((num_elements_ + 7) / 8);
    for (const uint32_t row : rows_) {
      if (IsSet(bitmap, column_.bit_offset + ElementOf(column_, row))) bits[row / 8] |= 1 << (row % 8);
    }
    return bits;
  }

  void MakeBits() {
    if (column_.values == nullptr) return;
    if ((column_.flags & QUERN_COLUMN_BYTES) == 0) {
      plain_.values = Bits(column_.values);
      return;
    }
    const auto* values = static_cast<const uint8_t*>(column_.values);
    uint8_t* bits = memory_->NewArray((num_elements_ + 7) / 8);
    for (const uint32_t row : rows_) {
      if (values[ElementOf(column_, row)] != 0) bits[row / 8] |= 1 << (row % 8);
    }
    plain_.values = bits;
  }

  void MakeValues() {
    if (column_.values == nullptr) return;
    const TypeId id = ValueType(type_);
    const uint32_t width = id == TypeId::kFixedBinary ? type_.width_bytes : RowOf(id).width_bytes;
    const uint32_t from = column_.value_bytes == 0 ? width : column_.value_bytes;
    const auto* values = static_cast<const uint8_t*>(column_.values);
    uint8_t* target = memory_->NewArray(num_elements_ * width);
    for (const uint32_t row : rows_)
      Widen(values + ElementOf(column_, row) * from, from, target + uint64_t{row} * width, width, IsUnsigned(id));
    plain_.values = target;
  }

  void MakeViews();
  absl::Status MakeViewsOfVarlena(const std::string& name);
  template <class Offset>
  absl::Status MakeStrings(const std::string& name);

  const quern_column& column_;
  const ColumnType& type_;
  const std::span<const uint32_t> rows_;
  ColumnMemory* const memory_;
  uint64_t num_elements_ = 0;
  quern_column plain_ = {};
};

void PlainColumn::MakeViews() {
  if (column_.values == nullptr) return;
  const auto* values = static_cast<const uint8_t*>(column_.values);
  uint8_t* views = memory_->NewArray(num_elements_ * sizeof(StringRef));
  const bool has_pointers = (column_.flags & QUERN_COLUMN_POINTERS) != 0;
  std::vector<const uint8_t*>* buffers = nullptr;
  if (has_pointers) {
    buffers = &memory_->NewBuffers(1, views);
  }
  for (const uint32_t row : rows_) {
    if (!HasValue(row)) continue;
    uint8_t* view = views + uint64_t{row} * sizeof(StringRef);
    std::memcpy(view, values + ElementOf(column_, row) * sizeof(StringRef), sizeof(StringRef));
    if (!has_pointers || blocks::LoadAt<uint32_t>(view, 0) <= kInlineStringBytes) continue;
    buffers->push_back(blocks::LoadAt<const uint8_t*>(view, 1));
    blocks::Store(view + 8, static_cast<uint32_t>(buffers->size() - 1));
    blocks::Store(view + 12, uint32_t{0});
  }
  plain_.values = views;
  if (has_pointers) plain_.buffers = buffers->data();
}

absl::Status PlainColumn::MakeViewsOfVarlena(const std::string& name) {
  if (column_.values == nullptr) return absl::OkStatus();
  const bool is_trimmed = (column_.flags & QUERN_COLUMN_TRIMMED) != 0;
  uint8_t* views = memory_->NewArray(num_elements_ * sizeof(StringRef));
  std::vector<const uint8_t*>& buffers = memory_->NewBuffers(1, views);
  for (const uint32_t row : rows_) {
    if (!HasValue(row)) continue;
    Varlena value = ReadVarlena(blocks::LoadAt<const uint8_t*>(column_.values, ElementOf(column_, row)));
    if (value.refusal != nullptr) {
      return InvalidArgument("varlena " + std::string(value.refusal) + ": " + name + ": row " + std::to_string(row) +
                             "; accepted: values in place, as pg_detoast_datum_packed gives them");
    }
    if (is_trimmed) value.length = LengthWithoutBlanks(value.data, value.length);
    uint8_t* view = views + uint64_t{row} * sizeof(StringRef);
    blocks::Store(view, value.length);
    std::memcpy(view + 4, value.data, std::min(value.length, kInlineStringBytes));
    if (value.length <= kInlineStringBytes) continue;
    blocks::Store(view + 8, static_cast<uint32_t>(buffers.size()));
    blocks::Store(view + 12, uint32_t{0});
    buffers.push_back(value.data);
  }
  plain_.values = views;
  plain_.buffers = buffers.data();
  return absl::OkStatus();
}

// The rows come in any order, and may repeat; offsets have to rise with the row numbers.
template <class Offset>
absl::Status PlainColumn::MakeStrings(const std::string& name) {
  if (column_.offsets == nullptr) return absl::OkStatus();
  const auto* source = static_cast<const uint8_t*>(column_.values);
  std::vector<bool> takes_part(num_elements_);
  for (const uint32_t row : rows_) takes_part[row] = HasValue(row);
  const auto begin_of = [&](uint64_t row) {
    return blocks::LoadAt<Offset>(column_.offsets, ElementOf(column_, static_cast<uint32_t>(row)));
  };
  const auto end_of = [&](uint64_t row) {
    return blocks::LoadAt<Offset>(column_.offsets, ElementOf(column_, static_cast<uint32_t>(row)) + 1);
  };
  uint8_t* offsets = memory_->NewArray((num_elements_ + 1) * sizeof(Offset));
  uint64_t num_bytes = 0;
  for (uint64_t row = 0; row < num_elements_; ++row) {
    if (takes_part[row]) num_bytes += static_cast<uint64_t>(end_of(row) - begin_of(row));
    if (num_bytes > static_cast<uint64_t>(std::numeric_limits<Offset>::max())) {
      return InvalidArgument("strings of a column too large: " + name + ": row " + std::to_string(row) + " is beyond " +
                             std::to_string(std::numeric_limits<Offset>::max()) + " bytes; accepted: smaller batches");
    }
    blocks::Store(offsets + (row + 1) * sizeof(Offset), static_cast<Offset>(num_bytes));
  }
  plain_.offsets = offsets;
  if (source == nullptr || num_bytes == 0) {  // whether bytes may be missing is checked with those of plain columns
    plain_.values = source;
    return absl::OkStatus();
  }
  QUERN_ASSIGN_OR_RETURN(uint8_t* bytes, memory_->NewStrings(num_bytes));
  plain_.values = bytes;
  for (uint64_t row = 0; row < num_elements_; ++row) {
    if (!takes_part[row]) continue;
    const auto length = static_cast<size_t>(end_of(row) - begin_of(row));
    std::memcpy(bytes, source + begin_of(row), length);
    bytes += length;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<quern_column> MakePlain(const quern_column& column, const ColumnType& type,
                                       std::span<const uint32_t> rows, const std::string& name, ColumnMemory* memory) {
  QUERN_RETURN_IF_ERROR(CheckForm(column, type, name));
  return PlainColumn(column, type, rows, memory).Make(name);
}

}  // namespace quern::c_abi
