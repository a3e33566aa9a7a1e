// SPDX-License-Identifier: Apache-2.0
// Keys of joins have one type on both sides, and producers have their own: Polars gives strings as views, pandas as
// large_utf8, DuckDB as utf8, and an id is an i32 here and an i64 there. Casts bring them together without ever making
// two different values equal.
//
//     i32  7              -> i64  7                  i64  9007199254740993   -> f64   an error: no f64 is that number
//     utf8 "long text.."  -> view {length, prefix, buffer 0, offset}         its bytes stay where they are
//     dictionary 1 0 1 of {"a", "b"} -> "b" "a" "b"
//
// Every column goes through the library's own import first, which checks offsets, views and indices, so that an
// ill-formed one cannot make the loops below read outside of it, and which folds the nulls of a dictionary's values
// into those of the rows.
#include "column_making.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "errors.h"
#include "runtime/rows/arrow_import.h"
#include "runtime/spec/column_type.h"

namespace quern::python {
namespace {

using Integer = __int128;

// Bytes that need not be cleared before they are written.
class Bytes {
 public:
  uint8_t* Make(uint64_t size) {
    bytes_ = std::make_unique_for_overwrite<uint8_t[]>(size);
    size_ = size;
    return bytes_.get();
  }
  uint8_t* MakeZeros(uint64_t size) {
    std::memset(Make(size), 0, size);
    return bytes_.get();
  }
  uint8_t* data() const { return bytes_.get(); }
  bool empty() const { return size_ == 0; }

 private:
  std::unique_ptr<uint8_t[]> bytes_;
  uint64_t size_ = 0;
};

// What a made column owns.
struct Made {
  std::vector<uint8_t> validity;
  Bytes values;
  Bytes offsets;
  std::vector<int64_t> sizes;        // of the data buffers of views
  std::vector<const void*> buffers;  // what the array points to
  std::shared_ptr<const void> source;
};

Column Finish(std::shared_ptr<Made> made, int64_t num_rows, bool has_nulls) {
  Column column;
  column.array.length = num_rows;
  column.array.null_count = has_nulls ? -1 : 0;
  column.array.n_buffers = static_cast<int64_t>(made->buffers.size());
  column.array.buffers = made->buffers.data();
  column.owner = std::move(made);
  return column;
}

// Zeros, since rows without a value are not written.
template <class T>
T* ValuesOf(Made* made, uint64_t n) {
  return reinterpret_cast<T*>(made->values.MakeZeros(n * sizeof(T)));
}

// Some consumers want an address for buffers without a byte too.
alignas(16) constexpr uint8_t kNothing[16] = {};
template <class Buffer>
const void* AddressOf(const Buffer& bytes) {
  return bytes.empty() ? static_cast<const void*>(kNothing) : bytes.data();
}

bool BitOf(const void* bitmap, uint64_t i) { return (static_cast<const uint8_t*>(bitmap)[i / 8] >> (i % 8) & 1) != 0; }
void SetBit(uint8_t* bitmap, uint64_t i) { bitmap[i / 8] = static_cast<uint8_t>(bitmap[i / 8] | 1u << (i % 8)); }

// ---- columns as kernels read them ----

struct Imported {
  ColumnType type;
  BatchView batch;
  const QuernColumn& column() const { return batch.keys[0]; }
  bool IsValid(uint64_t row) const {
    return column().validity == nullptr || BitOf(column().validity, column().bit_offset + row);
  }
};

Imported Import(const Column& column, const Field& field) {
  ArrowSchema schema = {};
  ExportSchema({field}, &schema);
  absl::StatusOr<ColumnType> type = TypeOfArrow(*schema.children[0]);
  schema.release(&schema);
  Check(type.status());
  type->nullable = true;
  ArrowArray array = {};
  ExportBatch({column.array.length, {column}}, &array);
  absl::StatusOr<BatchView> batch = ImportArrow(&array, {{0}, {}}, {*type}, {});
  Check(batch.status());
  return {*type, *std::move(batch)};
}

bool CopyValidity(const Imported& from, uint64_t n, Made* made) {
  if (from.column().validity == nullptr) return false;
  made->validity.assign((n + 7) / 8, 0);
  for (uint64_t i = 0; i < n; ++i)
    if (from.IsValid(i)) SetBit(made->validity.data(), i);
  return true;
}

// The element of the values that row `row` stands for.
uint64_t ElementOf(const ArrowArray& array, char format, uint64_t row) {
  const auto at = static_cast<uint64_t>(array.offset) + row;
  switch (format) {
    case 'c':
    case 'C': return static_cast<const uint8_t*>(array.buffers[1])[at];
    case 's':
    case 'S': return static_cast<const uint16_t*>(array.buffers[1])[at];
    case 'i':
    case 'I': return static_cast<const uint32_t*>(array.buffers[1])[at];
    default: return static_cast<const uint64_t*>(array.buffers[1])[at];
  }
}

// Rows of a column that may be a dictionary of what `values` are.
class Rows {
 public:
  Rows(const Column& column, const Field& field, const Imported& imported)
      : array_(column.array), format_(field.dictionary.empty() ? '\0' : field.format[0]), imported_(imported) {}

  bool IsValid(uint64_t row) const { return imported_.IsValid(row); }
  uint64_t Element(uint64_t row) const { return format_ == '\0' ? row : ElementOf(array_, format_, row); }
  const QuernColumn& values() const { return format_ == '\0' ? imported_.column() : *imported_.column().dictionary; }

 private:
  const ArrowArray& array_;
  char format_;
  const Imported& imported_;
};

// ---- numbers ----

template <class T>
Integer IntegerAt(const void* values, uint64_t i) {
  T value;
  std::memcpy(&value, static_cast<const uint8_t*>(values) + i * sizeof(T), sizeof(T));
  return value;
}

Integer IntegerAt(TypeId id, const void* values, uint64_t i) {
  switch (id) {
    case TypeId::kI8: return IntegerAt<int8_t>(values, i);
    case TypeId::kI16: return IntegerAt<int16_t>(values, i);
    case TypeId::kU8: return IntegerAt<uint8_t>(values, i);
    case TypeId::kU16: return IntegerAt<uint16_t>(values, i);
    case TypeId::kU32: return IntegerAt<uint32_t>(values, i);
    case TypeId::kU64: return IntegerAt<uint64_t>(values, i);
    case TypeId::kDecimal128: return IntegerAt<Integer>(values, i);
    default: return RowOf(id).width_bytes == 4 ? IntegerAt<int32_t>(values, i) : IntegerAt<int64_t>(values, i);
  }
}

std::invalid_argument DoesNotFit(const Field& field, const std::string& value, const std::string& format) {
  return std::invalid_argument("value of column " + field.name + " that Arrow format " + format +
                               " does not hold: " + value + "; accepted: values that it holds exactly");
}

template <class T>
void CastIntegers(const Rows& rows, const Imported& from, const Field& field, const std::string& format, uint64_t n,
                  Made* made) {
  T* const values = ValuesOf<T>(made, n);
  for (uint64_t i = 0; i < n; ++i) {
    if (!rows.IsValid(i)) continue;
    const Integer value = IntegerAt(from.type.id, rows.values().values, rows.Element(i));
    values[i] = static_cast<T>(value);
    if (static_cast<Integer>(values[i]) != value)
      throw DoesNotFit(field, std::to_string(static_cast<int64_t>(value)), format);
  }
}

void CastToDouble(const Rows& rows, const Imported& from, const Field& field, const std::string& format, uint64_t n,
                  Made* made) {
  auto* const values = ValuesOf<double>(made, n);
  for (uint64_t i = 0; i < n; ++i) {
    if (!rows.IsValid(i)) continue;
    const uint64_t element = rows.Element(i);
    if (from.type.id == TypeId::kF32)
      values[i] = static_cast<double>(static_cast<const float*>(rows.values().values)[element]);
    else if (from.type.id == TypeId::kF64) values[i] = static_cast<const double*>(rows.values().values)[element];
    else {
      const Integer value = IntegerAt(from.type.id, rows.values().values, element);
      values[i] = static_cast<double>(value);
      if (static_cast<Integer>(values[i]) != value)
        throw DoesNotFit(field, std::to_string(static_cast<int64_t>(value)), format);
    }
  }
}

int ScaleOf(const std::string& format) {
  const size_t comma = format.find(',');
  int scale = 0;
  if (comma != std::string::npos) std::from_chars(format.data() + comma + 1, format.data() + format.size(), scale);
  return scale;
}

// To decimals of the bits that T has.
template <class T>
void CastDecimals(const Rows& rows, const Imported& from, const Field& field, const std::string& format, uint64_t n,
                  Made* made) {
  const int steps = ScaleOf(format) - ScaleOf(field.dictionary.empty() ? field.format : field.dictionary);
  T* const values = ValuesOf<T>(made, n);
  for (uint64_t i = 0; i < n; ++i) {
    if (!rows.IsValid(i)) continue;
    Integer value = IntegerAt(from.type.id, rows.values().values, rows.Element(i));
    for (int step = 0; step < steps; ++step)
      if (__builtin_mul_overflow(value, 10, &value)) throw DoesNotFit(field, "a decimal", format);
    values[i] = static_cast<T>(value);
    if (values[i] != value) throw DoesNotFit(field, "a decimal", format);
  }
}

// Values of which nothing but the width matters, as those of a dictionary of dates.
void CopyFixed(const Rows& rows, uint64_t width, uint64_t n, Made* made) {
  made->values.MakeZeros(n * width);
  const auto* const from = static_cast<const uint8_t*>(rows.values().values);
  for (uint64_t i = 0; i < n; ++i)
    if (rows.IsValid(i)) std::memcpy(made->values.data() + i * width, from + rows.Element(i) * width, width);
}

// ---- strings ----

struct View {
  uint32_t length = 0;
  uint32_t prefix = 0;
  uint32_t buffer = 0;
  uint32_t offset = 0;
};
constexpr uint32_t kInline = 12;

// Writes views of bytes that stay where they are. A data buffer's offsets have 31 bits, so that bytes beyond 2 GiB
// begin a further buffer.
class ViewWriter {
 public:
  ViewWriter(Made* made, uint64_t n) : made_(*made), views_(ValuesOf<View>(made, n)) {}

  void Write(uint64_t row, const uint8_t* bytes, uint64_t length) {
    View& view = views_[row];
    view.length = static_cast<uint32_t>(length);
    std::memcpy(reinterpret_cast<uint8_t*>(&view) + sizeof(view.length), bytes,
                length <= kInline ? length : sizeof(view.prefix));
    if (length <= kInline) return;
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    if (begin_ == nullptr || bytes < begin_ || bytes + length - begin_ > kMost) {
      begin_ = bytes;
      data_.push_back(bytes);
      made_.sizes.push_back(0);
    }
    view.buffer = static_cast<uint32_t>(data_.size() - 1);
    view.offset = static_cast<uint32_t>(bytes - begin_);
    made_.sizes.back() = std::max(made_.sizes.back(), bytes + length - begin_);
  }
  const std::vector<const void*>& data() const { return data_; }

 private:
  Made& made_;
  View* views_;
  const uint8_t* begin_ = nullptr;
  std::vector<const void*> data_;
};

template <class Offset>
void WriteViews(const Rows& rows, uint64_t n, ViewWriter* writer) {
  const auto* const offsets = static_cast<const Offset*>(rows.values().offsets);
  const auto* const bytes = static_cast<const uint8_t*>(rows.values().values);
  for (uint64_t i = 0; i < n; ++i) {
    if (!rows.IsValid(i)) continue;
    const uint64_t element = rows.Element(i);
    const auto length = static_cast<uint64_t>(offsets[element + 1] - offsets[element]);
    if (length > std::numeric_limits<int32_t>::max())
      throw std::invalid_argument("string too long: " + std::to_string(length) + " bytes; accepted: below 2 GiB");
    writer->Write(i, bytes + offsets[element], length);
  }
}

// Decoded views keep their data buffers.
void CopyViews(const Rows& rows, const ArrowArray& values, uint64_t n, Made* made, std::vector<const void*>* data) {
  auto* const to = ValuesOf<View>(made, n);
  const auto* const from = static_cast<const View*>(rows.values().values);
  for (uint64_t i = 0; i < n; ++i)
    if (rows.IsValid(i)) to[i] = from[rows.Element(i)];
  const int64_t num_data = values.n_buffers - 3;
  for (int64_t i = 0; i < num_data; ++i) data->push_back(values.buffers[2 + i]);
  const auto* const sizes = static_cast<const int64_t*>(values.buffers[values.n_buffers - 1]);
  if (num_data > 0) made->sizes.assign(sizes, sizes + num_data);
}

std::vector<const void*> CastStrings(const Column& column, const Rows& rows, const Imported& from, uint64_t n,
                                     Made* made) {
  if (RowOf(from.type.id).storage == kView) {
    std::vector<const void*> data;
    const ArrowArray& values = column.array.dictionary == nullptr ? column.array : *column.array.dictionary;
    CopyViews(rows, values, n, made, &data);
    return data;
  }
  ViewWriter writer(made, n);
  if (RowOf(from.type.id).storage == kVar32) WriteViews<int32_t>(rows, n, &writer);
  else WriteViews<int64_t>(rows, n, &writer);
  return writer.data();
}

// ---- casts ----

void CastNumbers(const Rows& rows, const Imported& from, const Field& field, const std::string& format, uint64_t n,
                 Made* made) {
  if (format.ends_with(",32")) return CastDecimals<int32_t>(rows, from, field, format, n, made);
  if (format.ends_with(",64")) return CastDecimals<int64_t>(rows, from, field, format, n, made);
  if (format[0] == 'd') return CastDecimals<Integer>(rows, from, field, format, n, made);
  const std::string& own = field.dictionary.empty() ? field.format : field.dictionary;
  const uint64_t width = from.type.id == TypeId::kFixedBinary ? from.type.width_bytes : RowOf(from.type.id).width_bytes;
  if (own == format && width > 0) return CopyFixed(rows, width, n, made);
  constexpr std::string_view kIntegers = "csilCSIL";
  const bool is_integer = own.size() == 1 && kIntegers.find(own[0]) != std::string_view::npos;
  if (format == "g" && (is_integer || own == "f")) return CastToDouble(rows, from, field, format, n, made);
  if (is_integer && format.size() == 1) {
    switch (format[0]) {
      case 's': return CastIntegers<int16_t>(rows, from, field, format, n, made);
      case 'i': return CastIntegers<int32_t>(rows, from, field, format, n, made);
      case 'l': return CastIntegers<int64_t>(rows, from, field, format, n, made);
      case 'S': return CastIntegers<uint16_t>(rows, from, field, format, n, made);
      case 'I': return CastIntegers<uint32_t>(rows, from, field, format, n, made);
      case 'L': return CastIntegers<uint64_t>(rows, from, field, format, n, made);
      default: break;
    }
  }
  throw std::invalid_argument("cast that is not known: column " + field.name + " of Arrow format " + own + " to " +
                              format + "; accepted: wider integers, f64, views of strings, decimals with more digits");
}

uint64_t WidthOf(const std::string& format) {
  ArrowSchema schema = {};
  ExportSchema({{"", format, "", true, false}}, &schema);
  const absl::StatusOr<ColumnType> type = TypeOfArrow(*schema.children[0]);
  schema.release(&schema);
  Check(type.status());
  if (type->id == TypeId::kFixedBinary) return type->width_bytes;
  return RowOf(type->id).storage == kView ? sizeof(View) : RowOf(type->id).width_bytes;
}

bool IsViewFormat(const std::string& format) { return format == "vu" || format == "vz"; }

Column OnlyNulls(const std::string& format, int64_t num_rows) {
  auto made = std::make_shared<Made>();
  const auto n = static_cast<uint64_t>(num_rows);
  made->validity.assign((n + 7) / 8, 0);
  made->values.MakeZeros(n * std::max<uint64_t>(WidthOf(format), 1));
  made->buffers = {made->validity.data(), AddressOf(made->values)};
  if (IsViewFormat(format)) made->buffers.push_back(AddressOf(made->sizes));
  Column column = Finish(std::move(made), num_rows, true);
  column.array.null_count = num_rows;
  return column;
}

}  // namespace

Column CastColumn(const Column& column, const Field& field, const std::string& format) {
  if (field.format == "n") return OnlyNulls(format, column.array.length);
  const Imported from = Import(column, field);
  const Rows rows(column, field, from);
  const auto n = static_cast<uint64_t>(column.array.length);
  auto made = std::make_shared<Made>();
  made->source = column.owner;
  const bool has_nulls = CopyValidity(from, n, made.get());
  std::vector<const void*> data;
  if (IsViewFormat(format)) data = CastStrings(column, rows, from, n, made.get());
  else CastNumbers(rows, from, field, format, n, made.get());
  made->buffers = {has_nulls ? made->validity.data() : nullptr, AddressOf(made->values)};
  made->buffers.insert(made->buffers.end(), data.begin(), data.end());
  if (IsViewFormat(format)) made->buffers.push_back(AddressOf(made->sizes));
  return Finish(std::move(made), column.array.length, has_nulls);
}

// ---- gathering ----

namespace {

bool GatherValidity(const ArrowArray& array, const uint32_t* rows, uint64_t n, Made* made) {
  const void* const validity = array.n_buffers > 0 ? array.buffers[0] : nullptr;
  if (validity == nullptr || array.null_count == 0) return false;
  made->validity.assign((n + 7) / 8, 0);
  bool has_nulls = false;
  for (uint64_t i = 0; i < n; ++i) {
    if (BitOf(validity, static_cast<uint64_t>(array.offset) + rows[i])) SetBit(made->validity.data(), i);
    else has_nulls = true;
  }
  return has_nulls;
}

template <class T>
void GatherFixed(const ArrowArray& array, const uint32_t* rows, uint64_t n, Made* made) {
  T* const to = reinterpret_cast<T*>(made->values.Make(n * sizeof(T)));
  const T* const from = static_cast<const T*>(array.buffers[1]) + array.offset;
  for (uint64_t i = 0; i < n; ++i) to[i] = from[rows[i]];
}

void GatherBytes(const ArrowArray& array, uint64_t width, const uint32_t* rows, uint64_t n, Made* made) {
  made->values.Make(n * width);
  const auto* const from = static_cast<const uint8_t*>(array.buffers[1]) + static_cast<uint64_t>(array.offset) * width;
  for (uint64_t i = 0; i < n; ++i) std::memcpy(made->values.data() + i * width, from + rows[i] * width, width);
}

void GatherBits(const ArrowArray& array, const uint32_t* rows, uint64_t n, Made* made) {
  made->values.MakeZeros((n + 7) / 8);
  for (uint64_t i = 0; i < n; ++i)
    if (BitOf(array.buffers[1], static_cast<uint64_t>(array.offset) + rows[i])) SetBit(made->values.data(), i);
}

template <class Offset>
void GatherStrings(const QuernColumn& column, const uint32_t* rows, uint64_t n, Made* made) {
  const auto* const from = static_cast<const Offset*>(column.offsets);
  auto* const to = reinterpret_cast<Offset*>(made->offsets.Make((n + 1) * sizeof(Offset)));
  to[0] = 0;
  for (uint64_t i = 0; i < n; ++i) to[i + 1] = static_cast<Offset>(to[i] + from[rows[i] + 1] - from[rows[i]]);
  made->values.Make(static_cast<uint64_t>(to[n]));
  const auto* const bytes = static_cast<const uint8_t*>(column.values);
  for (uint64_t i = 0; i < n; ++i) {
    const auto length = static_cast<uint64_t>(to[i + 1] - to[i]);
    if (length > 0) std::memcpy(made->values.data() + to[i], bytes + from[rows[i]], length);
  }
}

void GatherWidth(const ArrowArray& array, uint64_t width, const uint32_t* rows, uint64_t n, Made* made) {
  switch (width) {
    case 1: return GatherFixed<uint8_t>(array, rows, n, made);
    case 2: return GatherFixed<uint16_t>(array, rows, n, made);
    case 4: return GatherFixed<uint32_t>(array, rows, n, made);
    case 8: return GatherFixed<uint64_t>(array, rows, n, made);
    default: return GatherBytes(array, width, rows, n, made);
  }
}

uint64_t IndexWidth(char format) {
  switch (format) {
    case 'c':
    case 'C': return 1;
    case 's':
    case 'S': return 2;
    case 'i':
    case 'I': return 4;
    default: return 8;
  }
}

}  // namespace

Column GatherColumn(const Column& column, const Field& field, const uint32_t* rows, uint64_t n) {
  const ArrowArray& array = column.array;
  auto made = std::make_shared<Made>();
  made->source = column.owner;
  const Imported imported = Import(column, field);  // checks what is read below
  const bool has_nulls = GatherValidity(array, rows, n, made.get());
  const Storage storage = RowOf(imported.type.id).storage;
  const bool is_dictionary = !field.dictionary.empty();
  if (is_dictionary) GatherWidth(array, IndexWidth(field.format[0]), rows, n, made.get());
  else if (storage == kBit) GatherBits(array, rows, n, made.get());
  else if (storage == kVar32) GatherStrings<int32_t>(imported.column(), rows, n, made.get());
  else if (storage == kVar64) GatherStrings<int64_t>(imported.column(), rows, n, made.get());
  else GatherWidth(array, WidthOf(field.format), rows, n, made.get());
  made->buffers = {has_nulls ? made->validity.data() : nullptr};
  if (!made->offsets.empty()) made->buffers.push_back(made->offsets.data());
  made->buffers.push_back(AddressOf(made->values));
  if (!is_dictionary && storage == kView)
    made->buffers.insert(made->buffers.end(), array.buffers + 2, array.buffers + array.n_buffers);
  Column gathered = Finish(std::move(made), static_cast<int64_t>(n), has_nulls);
  gathered.array.dictionary = array.dictionary;
  return gathered;
}

Column BitColumn(std::vector<uint8_t> bits, int64_t num_rows) {
  auto made = std::make_shared<Made>();
  made->validity = std::move(bits);  // a bitmap is a bitmap
  made->buffers = {nullptr, AddressOf(made->validity)};
  return Finish(std::move(made), num_rows, false);
}

}  // namespace quern::python
