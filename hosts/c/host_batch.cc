// SPDX-License-Identifier: Apache-2.0
// From a host's vectors to a BatchView. Usually only the column structs are copied, and the data stays where it is.
// Three things have to be made anew. First, columns that kernels cannot read as they are (plain_columns.h).
//
// Second, null values in a dictionary. Kernels read only the validity of the indices, so the index of a null value
// becomes null:
//
//     values    "a"  null  "b"            indices        0  1  2  1  2         as kernels see it   0  1  2  1  2
//     validity   1    0     1             validity       1  1  0  1  1    ->   validity            1  0  0  0  1
//
// Third, copies of strings. A tuple of the table points to the bytes of a string longer than 12, so a host that reuses
// its vectors has them copied. Only rows that take part are copied, each once, in the order of their numbers, under
// offsets (or views) of our own that live until the rows are stored:
//
//     selection 5, 3, 5   values "....ab.cde"  ->  bytes "abcde", offsets[3] = 0, [4] = 2, [5] = 2, [6] = 5
//
// Where no key is longer than what a tuple holds of it, a column of keys stays as it is.
//
// A copy of var32 never outgrows 32-bit offsets, because it holds no byte twice.
//
// Slices move pointers instead: row r of a slice that begins at row 65536 of an int64 column is 8 * 65536 bytes
// further, in a bitmap 65536 bits. The bytes of strings, the buffers of views and the values of dictionaries stay,
// since offsets, views and indices lead to them.
#include "hosts/c/host_batch.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "hosts/c/column_memory.h"
#include "hosts/c/plain_columns.h"
#include "runtime/base/status.h"
#include "runtime/blocks/blocks.h"

namespace quern::c_abi {
namespace {

QuernColumn SameColumn(const quern_column& column) {
  return {column.validity, column.values, column.offsets, column.buffers, nullptr, column.bit_offset};
}

quern_column HostColumn(const QuernColumn& column) {
  quern_column same = {};
  same.validity = column.validity;
  same.values = column.values;
  same.offsets = column.offsets;
  same.buffers = column.buffers;
  same.bit_offset = column.bit_offset;
  return same;
}

uint32_t IndexAt(const QuernColumn& column, TypeId index, uint32_t row) {
  const Storage storage = RowOf(index).storage;
  if (storage == k8) return blocks::DictionaryRow<uint8_t>(&column, row);
  if (storage == k16) return blocks::DictionaryRow<uint16_t>(&column, row);
  if (storage == k32) return blocks::DictionaryRow<uint32_t>(&column, row);
  return blocks::DictionaryRow<uint64_t>(&column, row);
}

uint64_t StringLength(const QuernColumn& column, Storage storage, uint32_t row) {
  if (storage == kView) return blocks::LoadAt<uint32_t>(column.values, uint64_t{row} * 4);
  if (storage == kVar32) return blocks::VarReader<int32_t>::Read(&column, row).length;
  return static_cast<uint64_t>(blocks::LoadAt<int64_t>(column.offsets, uint64_t{row} + 1) -
                               blocks::LoadAt<int64_t>(column.offsets, row));
}

bool HasAllPointers(const QuernColumn& column, Storage storage) {
  if (storage == kVar32 || storage == kVar64) return column.values != nullptr && column.offsets != nullptr;
  return column.values != nullptr && (storage != kView || column.buffers != nullptr);
}

// The name of a column in errors: "build key 0 (utf8)".
struct ColumnName {
  std::string_view side;
  const char* part;
  size_t number;
  const ColumnType& type;
};

std::string TextOf(const ColumnName& name) {
  return std::string(name.side) + " " + name.part + " " + std::to_string(name.number) + " (" + PrintType(name.type) +
         ")";
}

absl::Status Missing(const char* what, const ColumnName& name) {
  return InvalidArgument("column without " + std::string(what) + ": " + TextOf(name) +
                         "; accepted: a pointer, unless no row needs it");
}

// The numbers in `rows`, each once, ascending.
std::vector<uint32_t> Distinct(const std::vector<uint32_t>& rows) {
  std::vector<bool> present(rows.empty() ? 0 : uint64_t{*std::max_element(rows.begin(), rows.end())} + 1);
  for (const uint32_t row : rows) present[row] = true;
  std::vector<uint32_t> distinct;
  for (uint64_t row = 0; row < present.size(); ++row) {
    if (present[row]) distinct.push_back(static_cast<uint32_t>(row));
  }
  return distinct;
}

// Converts the columns of one batch, one after the other.
class HostColumns {
 public:
  HostColumns(const quern_batch& batch, const StringMemory& strings)
      : batch_(batch), strings_(strings), copies_strings_(strings.copy), memory_(strings.budget, strings.pages) {}

  // Strings up to so many bytes of the next columns are in the rows that are stored.
  void SetHeldBytes(uint64_t held_bytes) { held_bytes_ = held_bytes; }

  absl::StatusOr<QuernColumn> Convert(const quern_column& given, const ColumnType& type, const ColumnName& name) {
    if (type.id == TypeId::kRowId || batch_.num_rows == 0) return QuernColumn{};
    quern_column column = given;
    if (!IsPlain(given)) {
      QUERN_ASSIGN_OR_RETURN(column, MakePlain(given, type, AllRows(), TextOf(name), &memory_));
    }
    QuernColumn converted = SameColumn(column);
    // Where the spec has no nulls, kernels read no bitmap, but translating a dictionary's rows would.
    if (!type.nullable) converted.validity = nullptr;
    if (type.is_dictionary) {
      QUERN_RETURN_IF_ERROR(ConvertDictionary(column, type, name, &converted));
    } else if (NeedsRows(converted, type) && !AreHeldViews(converted, type)) {
      QUERN_RETURN_IF_ERROR(CompleteValues(type, RowsWithValue(converted, type), NumElements(), name, &converted));
    }
    return converted;
  }

  const ColumnMemory& memory() const { return memory_; }

 private:
  uint32_t RowAt(uint64_t i) const { return batch_.selection ? batch_.selection[i] : static_cast<uint32_t>(i); }

  // Of a column's arrays, up to the highest row of the batch, which has rows.
  uint64_t NumElements() const {
    if (batch_.selection == nullptr) return batch_.num_rows;
    return uint64_t{*std::max_element(batch_.selection, batch_.selection + batch_.num_rows)} + 1;
  }

  // A column whose pointers are all set, and whose bytes stay where they are, is not read here.
  bool NeedsRows(const QuernColumn& values, const ColumnType& type) const {
    const Storage storage = RowOf(type.id).storage;
    return !HasAllPointers(values, storage) || (copies_strings_ && IsVariable(storage));
  }

  // Whether stored rows hold the strings of all views, as they mostly do of a join's keys: then nothing is copied, and
  // the rows need not be listed, which took as long as hashing them. The view of a null row may have any length.
  bool AreHeldViews(const QuernColumn& views, const ColumnType& type) const {
    if (held_bytes_ == 0 || RowOf(type.id).storage != kView || !HasAllPointers(views, kView)) return false;
    constexpr uint64_t kLengthsOfView = sizeof(StringRef) / sizeof(StringRef::length);
    uint32_t longest = 0;
    for (uint64_t i = 0; i < batch_.num_rows; ++i)
      longest = std::max(longest, blocks::LoadAt<uint32_t>(views.values, RowAt(i) * kLengthsOfView));
    return longest <= held_bytes_;
  }

  std::vector<uint32_t> AllRows() const {
    std::vector<uint32_t> rows(batch_.num_rows);
    for (uint64_t i = 0; i < batch_.num_rows; ++i) rows[i] = RowAt(i);
    return rows;
  }

  // The batch's rows that a kernel may read.
  std::vector<uint32_t> RowsWithValue(const QuernColumn& column, const ColumnType& type) const {
    std::vector<uint32_t> rows;
    rows.reserve(batch_.num_rows);
    for (uint64_t i = 0; i < batch_.num_rows; ++i) {
      const uint32_t row = RowAt(i);
      if (!type.nullable || blocks::IsValid(&column, row)) rows.push_back(row);
    }
    return rows;
  }

  absl::Status ConvertDictionary(const quern_column& column, const ColumnType& type, const ColumnName& name,
                                 QuernColumn* indices);
  void FoldNulls(const QuernColumn& values, const ColumnType& type, QuernColumn* indices);
  absl::Status CompleteValues(const ColumnType& type, const std::vector<uint32_t>& rows, uint64_t num_elements,
                              const ColumnName& name, QuernColumn* column);
  template <class Offset>
  absl::Status CopyStrings(const std::vector<uint32_t>& rows, uint64_t num_elements, QuernColumn* column);
  absl::Status CopyViews(const std::vector<uint32_t>& rows, uint64_t num_elements, QuernColumn* column);

  // Before so many bytes are copied.
  absl::Status CountCopies(uint64_t num_bytes) {
    copied_bytes_ += num_bytes;
    if (strings_.most_bytes == 0 || copied_bytes_ <= strings_.most_bytes || batch_.num_rows == 1)
      return absl::OkStatus();
    *strings_.is_too_large = true;
    return OutOfMemory();
  }

  const quern_batch& batch_;
  const StringMemory& strings_;
  const bool copies_strings_;
  uint64_t copied_bytes_ = 0;
  uint64_t held_bytes_ = 0;
  ColumnMemory memory_;
};

absl::Status HostColumns::ConvertDictionary(const quern_column& column, const ColumnType& type, const ColumnName& name,
                                            QuernColumn* indices) {
  if (column.dictionary == nullptr) return Missing("dictionary", name);
  if (!IsPlain(*column.dictionary)) {
    return InvalidArgument("dictionary with selection, flags or value_bytes: " + TextOf(name) +
                           "; accepted: plain values; the indices may have them");
  }
  if (column.values == nullptr && !RowsWithValue(*indices, type).empty()) return Missing("indices", name);
  QuernColumn values = SameColumn(*column.dictionary);
  if (values.validity != nullptr && type.nullable && column.values != nullptr) FoldNulls(values, type, indices);
  values.validity = nullptr;
  if (NeedsRows(values, type)) {
    std::vector<uint32_t> rows = RowsWithValue(*indices, type);
    for (uint32_t& row : rows) row = IndexAt(*indices, type.index, row);
    QUERN_RETURN_IF_ERROR(CompleteValues(type, rows, /*num_elements=*/0, name, &values));
  }
  indices->dictionary = memory_.NewDictionary(values);
  return absl::OkStatus();
}

// Indices of rows that do not take part are not followed: they may be anything.
void HostColumns::FoldNulls(const QuernColumn& values, const ColumnType& type, QuernColumn* indices) {
  const std::vector<uint32_t> rows = RowsWithValue(*indices, type);
  uint8_t* validity = memory_.NewArray((NumElements() + 7) / 8);
  for (const uint32_t row : rows) {
    if (blocks::IsValid(&values, IndexAt(*indices, type.index, row))) blocks::SetBitTo(validity, row, true);
  }
  indices->validity = validity;
  indices->bit_offset = 0;
}

// Ensures that `rows` can be read: a pointer may be missing only if none of them needs it. Copies strings if requested;
// the copy has num_elements of them, or as many as `rows` need: kernels that take 64 rows at a time skip a null after
// they have read its offsets or its view.
absl::Status HostColumns::CompleteValues(const ColumnType& type, const std::vector<uint32_t>& rows,
                                         uint64_t num_elements, const ColumnName& name, QuernColumn* column) {
  static constexpr uint8_t kNoBytes[1] = {};
  if (rows.empty()) return absl::OkStatus();
  const Storage storage = RowOf(type.id).storage;
  const bool has_offsets = storage == kVar32 || storage == kVar64;
  if (has_offsets && column->offsets == nullptr) return Missing("offsets", name);
  if (!has_offsets && column->values == nullptr) return Missing("values", name);
  if (!HasAllPointers(*column, storage)) {
    // The bytes of strings are missing.
    const uint64_t inline_bytes = storage == kView ? kInlineStringBytes : 0;
    for (const uint32_t row : rows) {
      if (StringLength(*column, storage, row) > inline_bytes)
        return Missing(storage == kView ? "buffers" : "values", name);
    }
    if (has_offsets) column->values = kNoBytes;
  }
  if (!copies_strings_ || !IsVariable(storage)) return absl::OkStatus();
  const bool ascends = std::adjacent_find(rows.begin(), rows.end(), std::greater_equal<>()) == rows.end();
  const std::vector<uint32_t> sorted = ascends ? std::vector<uint32_t>() : Distinct(rows);
  const std::vector<uint32_t>& distinct = ascends ? rows : sorted;
  num_elements = std::max(num_elements, uint64_t{distinct.back()} + 1);
  if (storage == kView) return CopyViews(distinct, num_elements, column);
  return storage == kVar32 ? CopyStrings<int32_t>(distinct, num_elements, column)
                           : CopyStrings<int64_t>(distinct, num_elements, column);
}

// offsets[row], offsets[row + 1] enclose the copy of each of `rows`, which are distinct and ascending. All other
// elements are empty: offsets never fall.
template <class Offset>
absl::Status HostColumns::CopyStrings(const std::vector<uint32_t>& rows, uint64_t num_elements, QuernColumn* column) {
  const auto begin_of = [&](uint32_t row) { return blocks::LoadAt<Offset>(column->offsets, row); };
  const auto length_of = [&](uint32_t row) {
    return blocks::LoadAt<Offset>(column->offsets, uint64_t{row} + 1) - begin_of(row);
  };
  uint64_t num_bytes = 0, longest = 0;
  for (const uint32_t row : rows) {
    num_bytes += static_cast<uint64_t>(length_of(row));
    longest = std::max(longest, static_cast<uint64_t>(length_of(row)));
  }
  if (longest <= held_bytes_) return absl::OkStatus();
  QUERN_RETURN_IF_ERROR(CountCopies(num_bytes));
  QUERN_ASSIGN_OR_RETURN(uint8_t* bytes, memory_.NewStrings(num_bytes));
  uint8_t* offsets = memory_.NewArray((num_elements + 1) * sizeof(Offset));
  Offset end = 0;
  uint64_t num_offsets = 0;
  const auto write_offsets = [&](uint64_t last) {
    for (; num_offsets <= last; ++num_offsets) blocks::Store(offsets + num_offsets * sizeof(Offset), end);
  };
  for (const uint32_t row : rows) {
    write_offsets(row);
    const auto length = static_cast<Offset>(length_of(row));
    std::memcpy(bytes + end, static_cast<const uint8_t*>(column->values) + begin_of(row), static_cast<size_t>(length));
    end = static_cast<Offset>(end + length);
  }
  write_offsets(num_elements);
  column->values = bytes;
  column->offsets = offsets;
  return absl::OkStatus();
}

// Values of up to 12 bytes are inside their views. The others go into one block that is divided into buffers, because
// the offset in a view has 31 bits. `rows` are distinct and ascending.
absl::Status HostColumns::CopyViews(const std::vector<uint32_t>& rows, uint64_t num_elements, QuernColumn* column) {
  uint64_t num_bytes = 0, longest = 0;
  for (const uint32_t row : rows) {
    const uint64_t length = blocks::ViewReader::Read(column, row).length;
    if (length > kInlineStringBytes) num_bytes += length;
    longest = std::max(longest, length);
  }
  if (longest <= held_bytes_) return absl::OkStatus();
  QUERN_RETURN_IF_ERROR(CountCopies(num_bytes));
  QUERN_ASSIGN_OR_RETURN(uint8_t* bytes, memory_.NewStrings(num_bytes));
  uint8_t* copies = memory_.NewArray(num_elements * sizeof(StringRef));
  std::vector<const uint8_t*>& buffers = memory_.NewBuffers(1, bytes);
  for (const uint32_t row : rows) {
    uint8_t* view = copies + uint64_t{row} * sizeof(StringRef);
    std::memcpy(view, static_cast<const uint8_t*>(column->values) + uint64_t{row} * sizeof(StringRef),
                sizeof(StringRef));
    const blocks::Bytes value = blocks::ViewReader::Read(column, row);
    if (value.length <= kInlineStringBytes) continue;
    if (static_cast<uint64_t>(bytes - buffers.back()) + value.length > INT32_MAX) buffers.push_back(bytes);
    std::memcpy(bytes, value.data, value.length);
    blocks::Store(view + 8, static_cast<uint32_t>(buffers.size() - 1));
    blocks::Store(view + 12, static_cast<uint32_t>(bytes - buffers.back()));
    bytes += value.length;
  }
  column->values = copies;
  column->buffers = buffers.data();
  return absl::OkStatus();
}

// The key columns or the payload columns of a side. *Errors*: InvalidArgument.
absl::Status ConvertColumns(const quern_column* columns, const std::vector<ColumnType>& types, std::string_view side,
                            const char* part, bool has_rows, HostColumns* converter,
                            std::vector<QuernColumn>* converted) {
  converted->assign(types.size(), QuernColumn{});
  if (types.empty() || !has_rows) return absl::OkStatus();
  if (columns == nullptr) {
    return InvalidArgument("batch without columns: " + std::string(side) + " " + part +
                           "; accepted: " + std::to_string(types.size()) + " columns");
  }
  for (size_t i = 0; i < types.size(); ++i) {
    QUERN_ASSIGN_OR_RETURN((*converted)[i], converter->Convert(columns[i], types[i], {side, part, i, types[i]}));
  }
  return absl::OkStatus();
}

const void* MovedOn(const void* array, uint64_t bytes) {
  return array == nullptr ? nullptr : static_cast<const uint8_t*>(array) + bytes;
}

// The bytes from one row's element of `values` to the next one's; 0 where `values` is not indexed by row numbers.
uint64_t ElementBytes(const ColumnType& type) {
  const Storage storage = RowOf(type.is_dictionary ? type.index : type.id).storage;
  if (storage == kBit || storage == kVar32 || storage == kVar64) return 0;
  return storage == kFixed ? type.width_bytes : StorageFieldBytes(storage);
}

uint64_t OffsetBytes(const ColumnType& type) {
  const Storage storage = RowOf(type.id).storage;
  if (type.is_dictionary || !IsVariable(storage) || storage == kView) return 0;
  return storage == kVar32 ? sizeof(int32_t) : sizeof(int64_t);
}

// The column from a row on; quern_column or QuernColumn.
template <class Column>
void MoveOn(const ColumnType& type, uint64_t first_row, uint64_t element_bytes, Column* column) {
  column->values = MovedOn(column->values, first_row * element_bytes);
  column->offsets = MovedOn(column->offsets, first_row * OffsetBytes(type));
  column->bit_offset += first_row;
}

std::vector<quern_column> ColumnsFrom(const quern_column* columns, const std::vector<ColumnType>& types,
                                      uint64_t first_row) {
  std::vector<quern_column> moved(columns, columns + types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    quern_column& column = moved[i];
    if (types[i].id == TypeId::kRowId || (column.flags & QUERN_COLUMN_CONSTANT) != 0) continue;
    if (column.selection != nullptr) {
      column.selection += first_row;
      continue;
    }
    const uint64_t element_bytes = column.value_bytes != 0                      ? column.value_bytes
                                   : (column.flags & QUERN_COLUMN_BYTES) != 0   ? 1
                                   : (column.flags & QUERN_COLUMN_VARLENA) != 0 ? sizeof(void*)
                                                                                : ElementBytes(types[i]);
    MoveOn(types[i], first_row, element_bytes, &column);
  }
  return moved;
}

}  // namespace

const quern_column* ShownColumns::Show(std::span<const QuernColumn> columns) {
  columns_.resize(columns.size());
  dictionaries_.resize(columns.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    columns_[i] = HostColumn(columns[i]);
    if (columns[i].dictionary == nullptr) continue;
    dictionaries_[i] = HostColumn(*columns[i].dictionary);
    columns_[i].dictionary = &dictionaries_[i];
  }
  return columns_.data();
}

absl::StatusOr<HostBatchView> WithCopiedStrings(const BatchView& batch, const std::vector<ColumnType>& keys,
                                                const std::vector<ColumnType>& payload, std::string_view side,
                                                const StringMemory& strings) {
  ShownColumns shown_keys, shown_payload;
  const quern_batch host = {
      shown_keys.Show(batch.keys), shown_payload.Show(batch.payload), batch.selection, batch.num_rows, 0, 0};
  QUERN_ASSIGN_OR_RETURN(HostBatchView copied, ViewOfHostBatch(host, keys, payload, side, strings));
  copied.batch.first_row_id = batch.first_row_id;
  return copied;
}

absl::Status CheckNumRows(uint64_t num_rows) {
  if (num_rows < kNullRow) return absl::OkStatus();
  return InvalidArgument("batch too large: " + std::to_string(num_rows) + " rows; accepted: below 4294967295");
}

BatchSlice::BatchSlice(const quern_batch& batch, const std::vector<ColumnType>& keys,
                       const std::vector<ColumnType>& payload, uint64_t first_row, uint64_t num_rows)
    : batch_(batch) {
  batch_.num_rows = num_rows;
  if (batch.selection != nullptr) {
    batch_.selection = batch.selection + first_row;
    return;
  }
  batch_.first_row_id += first_row;
  if (batch.keys != nullptr) {
    keys_ = ColumnsFrom(batch.keys, keys, first_row);
    batch_.keys = keys_.data();
  }
  if (batch.payload != nullptr) {
    payload_ = ColumnsFrom(batch.payload, payload, first_row);
    batch_.payload = payload_.data();
  }
}

absl::StatusOr<HostBatchView> ViewOfHostBatch(const quern_batch& batch, const std::vector<ColumnType>& keys,
                                              const std::vector<ColumnType>& payload, std::string_view side,
                                              const StringMemory& strings) {
  QUERN_RETURN_IF_ERROR(CheckNumRows(batch.num_rows));
  HostColumns converter(batch, strings);
  HostBatchView view;
  const bool has_rows = batch.num_rows != 0;
  converter.SetHeldBytes(strings.held_key_bytes);
  QUERN_RETURN_IF_ERROR(ConvertColumns(batch.keys, keys, side, "key", has_rows, &converter, &view.batch.keys));
  converter.SetHeldBytes(0);
  QUERN_RETURN_IF_ERROR(
      ConvertColumns(batch.payload, payload, side, "payload", has_rows, &converter, &view.batch.payload));
  view.batch.selection = batch.selection;
  view.batch.num_rows = batch.num_rows;
  view.batch.first_row_id = batch.first_row_id;
  view.batch.owner = converter.memory().scratch_owner();
  view.strings = converter.memory().strings_owner();
  return view;
}

}  // namespace quern::c_abi
