// SPDX-License-Identifier: Apache-2.0
// Turns an untrusted Arrow array into columns that kernels read without further checks. An offset that falls, a view
// that points past its buffer or an index past its dictionary would make a kernel read out of bounds. So every array is
// checked here, once, in loops that run at the speed of memory.
//
// Slices. A struct array of 100 rows with offset 3 over a child with offset 5 means the child's elements 8 to 107.
// Values and offsets are advanced to element 8, so that row r is element r. Bitmaps cannot in general be advanced by 8
// bits and keep bit_offset = 8 instead. A child's own null count covers all its rows and is verified over them; nulls
// in the slice are counted separately.
//
// Dictionaries. Kernels translate a row to the row of its value and read only the index column's validity. A dictionary
// may itself hold nulls: indices 0 2 1 2 into {"a", null, "b"} become indices 0 2 1 2 with validity 1 1 0 1, in a
// bitmap made here. Slots of null rows may hold anything and are never followed, neither here nor later.
//
// Limits. The C data interface does not give the sizes of buffers (except those of views), so a wrong length from a
// producer cannot be detected.
#include "runtime/rows/arrow_import.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <deque>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "runtime/base/cpu.h"
#include "runtime/base/status.h"

namespace quern {
namespace {

// Upper bound of the sum of an array's offset and length: more than memory holds, and small enough that no address
// computed from it overflows.
constexpr int64_t kMaxElements = int64_t{1} << 44;
constexpr uint32_t kMaxFixedBytes = 65536;
constexpr uint32_t kViewBytes = 16;

// Stands in for buffers that may be absent: one offset of 0, and the bytes of strings that are all empty.
alignas(16) constexpr uint8_t kZeros[16] = {};

// ---- formats and schemas ----

bool Digits(std::string_view text, uint32_t* number) {
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && rest == text.data() + text.size();
}

// "10,2" or "10,2,64": precision, scale (may be negative), and bits, 128 where none are given.
bool IsDecimalOf(TypeId id, std::string_view parameters) {
  const size_t comma = parameters.find(',');
  uint32_t number = 0;
  if (comma == std::string_view::npos || !Digits(parameters.substr(0, comma), &number) || number < 1 ||
      number > MaxDigitsOf(id))
    return false;
  std::string_view scale = parameters.substr(comma + 1);
  const size_t second = scale.find(',');
  uint32_t bits = 128;
  if (second != std::string_view::npos && !Digits(scale.substr(second + 1), &bits)) return false;
  if (bits != RowOf(id).width_bytes * 8) return false;
  scale = scale.substr(0, second);
  if (!scale.empty() && scale[0] == '-') scale.remove_prefix(1);
  return Digits(scale, &number);
}

bool IsTimestamp(std::string_view parameters) {
  return parameters.size() >= 2 && std::string_view("smun").find(parameters[0]) != std::string_view::npos &&
         parameters[1] == ':';
}

// Whether the text in place of a format's '*' is valid for a type.
bool ParametersFit(TypeId id, std::string_view parameters, ColumnType* type) {
  if (IsDecimal(id)) return IsDecimalOf(id, parameters);
  if (id == TypeId::kTimestamp) return IsTimestamp(parameters);
  if (id != TypeId::kFixedBinary) return true;
  return Digits(parameters, &type->width_bytes) && type->width_bytes >= 1 && type->width_bytes <= kMaxFixedBytes;
}

// Whether a format is one of a table row's formats, which are written "a", "a|b" or "a*".
bool FormatFits(std::string_view format, const TypeRow& row, ColumnType* type) {
  std::string_view rest = row.arrow;
  while (!rest.empty()) {
    const size_t bar = std::min(rest.find('|'), rest.size());
    const std::string_view accepted = rest.substr(0, bar);
    rest.remove_prefix(std::min(bar + 1, rest.size()));
    if (accepted.back() != '*') {
      if (accepted == format) return true;
      continue;
    }
    const std::string_view prefix = accepted.substr(0, accepted.size() - 1);
    if (format.substr(0, prefix.size()) == prefix) return ParametersFit(row.id, format.substr(prefix.size()), type);
  }
  return false;
}

// The type of a format alone, without dictionary and flags.
bool TypeOfFormat(const char* format, ColumnType* type) {
  if (format == nullptr) return false;
  for (const TypeRow& row : AllTypes()) {
    if (row.id == TypeId::kRowId || !FormatFits(format, row, type)) continue;
    type->id = row.id;
    return true;
  }
  return false;
}

std::string AcceptedFormats() {
  std::string text;
  for (const TypeRow& row : AllTypes()) {
    if (row.id == TypeId::kRowId || text.ends_with(row.arrow)) continue;  // decimals have one format
    text += (text.empty() ? "" : ", ") + std::string(row.arrow);
  }
  return text + ", and dictionaries of these with integer indices";
}

// An untrusted text as a message shows it: on one line, not too long.
std::string Show(const char* text) {
  constexpr size_t kMaxShownBytes = 80;
  if (text == nullptr) return "";
  std::string shown(text, strnlen(text, kMaxShownBytes));
  for (char& c : shown)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return shown;
}

std::string NameOf(const ArrowSchema& field) { return "\"" + Show(field.name) + "\""; }

std::string FormatOf(const ArrowSchema& field) {
  if (field.dictionary == nullptr) return Show(field.format);
  return "dictionary(" + Show(field.format) + "," + Show(field.dictionary->format) + ")";
}

bool IsInteger(const ColumnType& type) { return type.id >= TypeId::kI8 && type.id <= TypeId::kU64; }

// *Errors*: returns false; the caller words the message.
bool ReadType(const ArrowSchema& field, ColumnType* type) {
  ColumnType storage;
  if (!TypeOfFormat(field.format, &storage)) return false;
  *type = storage;
  if (field.dictionary != nullptr) {
    *type = ColumnType();
    if (!IsInteger(storage) || field.dictionary->dictionary != nullptr || !TypeOfFormat(field.dictionary->format, type))
      return false;
    type->is_dictionary = true;
    type->index = storage.id;
  }
  type->nullable = (field.flags & ARROW_FLAG_NULLABLE) != 0;
  return true;
}

bool SameLayout(const ColumnType& a, const ColumnType& b) {
  return a.id == b.id && a.is_dictionary == b.is_dictionary && a.index == b.index && a.width_bytes == b.width_bytes;
}

std::string WithoutCollation(ColumnType type) {
  type.collation = kCollationBinary;
  return PrintType(type);
}

std::string Numbered(const char* list, size_t i) { return std::string(list) + "[" + std::to_string(i) + "]"; }

absl::Status CheckField(const ArrowSchema& schema, int child, const ColumnType& type, const std::string& column) {
  const ArrowSchema* field = schema.children[child];
  if (field == nullptr)
    return InvalidArgument("field missing for " + column + ": " + std::to_string(child) + "; accepted: a schema");
  ColumnType found;
  const bool known = ReadType(*field, &found);
  if (known && SameLayout(found, type)) return absl::OkStatus();
  const std::string what = known ? PrintType(found) : "of unsupported format " + FormatOf(*field);
  return InvalidArgument("wrong type for " + column + ": field " + NameOf(*field) + " is " + what +
                         "; accepted: " + WithoutCollation(type));
}

// ---- bindings ----

// One column of a side (keys come first): its name in messages, and the child that feeds it.
struct BoundColumn {
  std::string name;
  int child;
  const ColumnType* type;
};

absl::Status CheckSize(const char* list, size_t bound, size_t wanted) {
  if (bound == wanted) return absl::OkStatus();
  return InvalidArgument("binding of wrong size: " + std::to_string(bound) + " " + list +
                         "; accepted: " + std::to_string(wanted));
}

absl::Status CheckBound(const BoundColumn& column, int64_t num_children) {
  const bool is_rowid = column.type->id == TypeId::kRowId;
  if (is_rowid ? column.child == -1 : column.child >= 0 && column.child < num_children) return absl::OkStatus();
  const std::string accepted = is_rowid ? "-1 for a rowid" : "0 to " + std::to_string(num_children - 1);
  return InvalidArgument("field out of range for " + column.name + ": " + std::to_string(column.child) +
                         "; accepted: " + accepted);
}

absl::StatusOr<std::vector<BoundColumn>> Bind(const ColumnBinding& binding, const std::vector<ColumnType>& keys,
                                              const std::vector<ColumnType>& payload, int64_t num_children) {
  QUERN_RETURN_IF_ERROR(CheckSize("keys", binding.keys.size(), keys.size()));
  QUERN_RETURN_IF_ERROR(CheckSize("payload columns", binding.payload.size(), payload.size()));
  std::vector<BoundColumn> columns;
  columns.reserve(keys.size() + payload.size());
  for (size_t i = 0; i < keys.size(); ++i) columns.push_back({Numbered("keys", i), binding.keys[i], &keys[i]});
  for (size_t i = 0; i < payload.size(); ++i)
    columns.push_back({Numbered("payload", i), binding.payload[i], &payload[i]});
  for (const BoundColumn& column : columns) QUERN_RETURN_IF_ERROR(CheckBound(column, num_children));
  return columns;
}

// ---- bitmaps ----

bool Bit(const uint8_t* bitmap, uint64_t i) { return (bitmap[i >> 3] >> (i & 7)) & 1; }

// Counts the set bits among n from bit `first`. *Cost*: n / 8 bytes read, 8 at a time.
uint64_t CountSetBits(const uint8_t* bitmap, uint64_t first, uint64_t n) {
  uint64_t count = 0, i = first;
  const uint64_t end = first + n;
  for (; i < end && i % 8 != 0; ++i) count += Bit(bitmap, i);
  for (; i + 64 <= end; i += 64) {
    uint64_t word;
    std::memcpy(&word, bitmap + i / 8, 8);
    count += static_cast<uint64_t>(std::popcount(word));
  }
  for (; i < end; ++i) count += Bit(bitmap, i);
  return count;
}

// ---- arrays ----

// Rows `first` to `first + num_rows` of an array, counted from the beginning of its buffers, as one column sees them.
struct Slice {
  const ArrowArray* array;
  uint64_t first;
  uint64_t num_rows;
  std::string name;

  const uint8_t* buffer(int64_t i) const { return static_cast<const uint8_t*>(array->buffers[i]); }
};

template <class T>
T LoadAt(const uint8_t* elements, uint64_t i) {
  T value;
  std::memcpy(&value, elements + i * sizeof(T), sizeof(T));
  return value;
}

absl::Status Wrong(const std::string& what, const std::string& column, const std::string& value,
                   const std::string& accepted) {
  return InvalidArgument(what + " of column " + column + ": " + value + "; accepted: " + accepted);
}

absl::Status WrongAt(const std::string& what, uint64_t row, const std::string& column, const std::string& value,
                     const std::string& accepted) {
  return Wrong(what + " at row " + std::to_string(row), column, value, accepted);
}

// Checks offset, length and null count on their own; whether they fit the buffers is checked later.
absl::Status CheckNumbers(const ArrowArray& array, const std::string& name) {
  if (array.release == nullptr) return Wrong("released array", name, "no release callback", "an array that is alive");
  if (array.length < 0) return Wrong("negative length", name, std::to_string(array.length), "0 or more");
  if (array.offset < 0) return Wrong("negative offset", name, std::to_string(array.offset), "0 or more");
  if (array.offset > kMaxElements || array.length > kMaxElements - array.offset) {
    return Wrong("offset and length out of range", name,
                 std::to_string(array.offset) + " and " + std::to_string(array.length),
                 "together up to 17592186044416");
  }
  if (array.null_count >= -1 && array.null_count <= array.length) return absl::OkStatus();
  return Wrong("null count out of range", name, std::to_string(array.null_count),
               "-1 to " + std::to_string(array.length));
}

absl::Status CheckNumBuffers(const ArrowArray& array, Storage storage, const std::string& name) {
  const bool is_view = storage == kView;
  const int64_t wanted = is_view || IsVariable(storage) ? 3 : 2;
  const bool fits = is_view ? array.n_buffers >= wanted && array.n_buffers <= INT32_MAX : array.n_buffers == wanted;
  if (!fits) {
    return Wrong("wrong number of buffers", name, std::to_string(array.n_buffers),
                 std::to_string(wanted) + (is_view ? " or more" : ""));
  }
  if (array.buffers == nullptr)
    return Wrong("missing buffers", name, "null", "an array of " + std::to_string(array.n_buffers));
  if (array.n_children != 0) return Wrong("unexpected children", name, std::to_string(array.n_children), "0");
  return absl::OkStatus();
}

absl::Status CheckDictionary(const ArrowArray& array, const ColumnType& type, const std::string& name) {
  if ((array.dictionary != nullptr) == type.is_dictionary) return absl::OkStatus();
  return Wrong(type.is_dictionary ? "missing dictionary" : "unexpected dictionary", name,
               type.is_dictionary ? "none" : "one", WithoutCollation(type));
}

absl::Status MissingBuffer(const Slice& slice, const char* which) {
  return Wrong("missing buffer", slice.name, which,
               "no null pointer where there are " + std::to_string(slice.num_rows) + " rows");
}

// Counts the nulls among all rows of an array and compares them with its null count. *Cost*: one population count.
absl::StatusOr<uint64_t> CountNulls(const Slice& slice) {
  const ArrowArray& array = *slice.array;
  const uint8_t* bitmap = slice.buffer(0);
  const auto length = static_cast<uint64_t>(array.length);
  const uint64_t nulls =
      bitmap == nullptr ? 0 : length - CountSetBits(bitmap, static_cast<uint64_t>(array.offset), length);
  if (array.null_count == -1 || static_cast<uint64_t>(array.null_count) == nulls) return nulls;
  return Wrong(
      "wrong null count", slice.name, std::to_string(array.null_count),
      "-1 or " + std::to_string(nulls) + (bitmap == nullptr ? ", since there is no bitmap" : ", as its bitmap says"));
}

// Returns the bitmap if the slice has nulls, else nullptr.
absl::StatusOr<const uint8_t*> ValidityOf(const Slice& slice) {
  QUERN_ASSIGN_OR_RETURN(const uint64_t nulls, CountNulls(slice));
  if (nulls == 0) return nullptr;
  const bool is_whole = slice.num_rows == static_cast<uint64_t>(slice.array->length);
  const bool has_nulls = is_whole || CountSetBits(slice.buffer(0), slice.first, slice.num_rows) < slice.num_rows;
  return has_nulls ? slice.buffer(0) : nullptr;
}

bool IsValid(const QuernColumn& column, uint64_t row) {
  return column.validity == nullptr || Bit(column.validity, column.bit_offset + row);
}

// ---- strings ----

// Finds the first offset that breaks a rule. It is slow, and called only once such an offset is known to exist. A slot
// that is null may have any length.
template <class Offset>
absl::Status WrongOffset(const Slice& slice, const uint8_t* offsets, const QuernColumn& column) {
  for (uint64_t row = 0; row < slice.num_rows; ++row) {
    const auto begin = LoadAt<Offset>(offsets, row), end = LoadAt<Offset>(offsets, row + 1);
    if (begin < 0) return WrongAt("negative offset", row, slice.name, std::to_string(begin), "0 or more");
    if (end < begin) {
      return WrongAt("offsets fall", row, slice.name, std::to_string(begin) + " to " + std::to_string(end),
                     "non-decreasing");
    }
    if (static_cast<uint64_t>(end - begin) > UINT32_MAX && IsValid(column, row)) {
      return WrongAt("value too long", row, slice.name, std::to_string(end - begin) + " bytes", "up to 4294967295");
    }
  }
  return absl::OkStatus();
}

// One pass without branches, which compilers turn into vector code. With every offset >= 0, `end - begin` has its sign
// bit set exactly where offsets fall, and bits above 31 only where a value is too long for a kernel's 32-bit lengths.
template <class Offset>
bool OffsetsFit(const uint8_t* offsets, uint64_t num_rows) {
  using Bits = std::make_unsigned_t<Offset>;
  auto all = LoadAt<Bits>(offsets, 0);
  Bits lengths = 0;
  for (uint64_t row = 0; row < num_rows; ++row) {
    const auto begin = LoadAt<Bits>(offsets, row), end = LoadAt<Bits>(offsets, row + 1);
    all |= end;
    lengths |= end - begin;
  }
  constexpr Bits kTooLong = sizeof(Offset) == 8 ? static_cast<Bits>(~uint64_t{UINT32_MAX}) : Bits{1} << 31;
  return static_cast<Offset>(all) >= 0 && (lengths & kTooLong) == 0;
}

template <class Offset>
absl::Status ImportStrings(const Slice& slice, QuernColumn* column) {
  column->offsets = kZeros;
  column->values = slice.buffer(2) == nullptr ? kZeros : slice.buffer(2);
  if (slice.num_rows == 0) return absl::OkStatus();
  if (slice.buffer(1) == nullptr) return MissingBuffer(slice, "offsets");
  const uint8_t* offsets = slice.buffer(1) + slice.first * sizeof(Offset);
  if (!OffsetsFit<Offset>(offsets, slice.num_rows)) QUERN_RETURN_IF_ERROR(WrongOffset<Offset>(slice, offsets, *column));
  if (slice.buffer(2) == nullptr && LoadAt<Offset>(offsets, slice.num_rows) > 0) return MissingBuffer(slice, "bytes");
  column->offsets = offsets;
  return absl::OkStatus();
}

// ---- views ----

// The data buffers of a view array, and their sizes, which its last buffer holds.
struct ViewBuffers {
  int64_t num;
  const uint8_t* sizes;
  const void* const* data;
};

absl::Status CheckViewBuffers(const Slice& slice, const ViewBuffers& buffers) {
  if (buffers.num > 0 && buffers.sizes == nullptr) return MissingBuffer(slice, "sizes of the data buffers");
  for (int64_t i = 0; i < buffers.num; ++i) {
    const auto size = LoadAt<int64_t>(buffers.sizes, static_cast<uint64_t>(i));
    if (size < 0)
      return Wrong("negative size of data buffer " + std::to_string(i), slice.name, std::to_string(size), "0 or more");
    if (size > 0 && buffers.data[i] == nullptr) return MissingBuffer(slice, "data");
  }
  return absl::OkStatus();
}

// *Cost*: a longer string than twelve bytes also reads one of the few buffer sizes.
absl::Status CheckView(const Slice& slice, const ViewBuffers& buffers, const uint8_t* view, uint64_t row) {
  const auto length = LoadAt<int32_t>(view, 0);
  if (static_cast<uint32_t>(length) <= kInlineStringBytes) return absl::OkStatus();
  if (length < 0) return WrongAt("negative length of a view", row, slice.name, std::to_string(length), "0 or more");
  const auto buffer = LoadAt<int32_t>(view, 2), offset = LoadAt<int32_t>(view, 3);
  if (buffer < 0 || buffer >= buffers.num) {
    return WrongAt("view into an unknown buffer", row, slice.name, std::to_string(buffer),
                   "below " + std::to_string(buffers.num));
  }
  const auto size = LoadAt<int64_t>(buffers.sizes, static_cast<uint64_t>(buffer));
  if (offset >= 0 && int64_t{offset} + length <= size) return absl::OkStatus();
  return WrongAt("view outside its buffer", row, slice.name,
                 std::to_string(offset) + " and " + std::to_string(length) + " bytes",
                 "within " + std::to_string(size));
}

// Whether all have a length of 0 to 12, those of nulls, too. Without branches, as in OffsetsFit: from 13 on, and below
// 0, a length or three more than it has a bit above the lowest four.
bool AreAllInline(const uint8_t* views, uint64_t num_rows) {
  static_assert(kInlineStringBytes == 12);
  uint32_t bits = 0;
  for (uint64_t row = 0; row < num_rows; ++row) {
    const auto length = LoadAt<uint32_t>(views + row * kViewBytes, 0);
    bits |= length | (length + 3);
  }
  return bits < 16;
}

#if defined(__x86_64__)
// Four views of a register: their lengths, prefixes, buffers and offsets are the lanes 0 to 3, 4 to 7, ..
constexpr uint32_t kLengths = 0x1111, kNumbers = 0x4444, kOffsets = 0x8888;

// num_rows: a multiple of four.
QUERN_WIDE bool AreAllInlineWide(const uint8_t* views, uint64_t num_rows) {
  const __m512i most_inline = _mm512_set1_epi32(kInlineStringBytes);
  uint32_t is_long = 0;
  for (uint64_t row = 0; row < num_rows; row += 4)
    is_long |= _mm512_cmpgt_epu32_mask(_mm512_loadu_si512(views + row * kViewBytes), most_inline);
  return (is_long & kLengths) == 0;
}
#endif

bool AreInline(const uint8_t* views, uint64_t num_rows) {
#if defined(__x86_64__)
  if (HasAvx512() && num_rows % 4 == 0) return AreAllInlineWide(views, num_rows);
#endif
  return AreAllInline(views, num_rows);
}

// Where the longer strings of a block usually lie.
struct OneBuffer {
  uint32_t number;
  uint32_t size;  // at most UINT32_MAX, which no offset and length together exceed
};

// The buffer of the first longer string, whose number is valid.
std::optional<OneBuffer> FirstBuffer(const ViewBuffers& buffers, const uint8_t* views, uint64_t num_rows) {
  for (uint64_t row = 0; row < num_rows; ++row) {
    const uint8_t* const view = views + row * kViewBytes;
    if (LoadAt<uint32_t>(view, 0) <= kInlineStringBytes) continue;
    const auto number = LoadAt<uint32_t>(view, 2);
    if (number >= static_cast<uint64_t>(buffers.num)) return std::nullopt;
    const auto size = static_cast<uint64_t>(LoadAt<int64_t>(buffers.sizes, number));
    return OneBuffer{number, static_cast<uint32_t>(std::min<uint64_t>(size, UINT32_MAX))};
  }
  return std::nullopt;
}

// Whether all views that are not inline lie within that buffer. Without branches.
bool LieWithin(const OneBuffer& buffer, const uint8_t* views, uint64_t num_rows) {
  uint32_t fails = 0;
  for (uint64_t row = 0; row < num_rows; ++row) {
    const uint8_t* const view = views + row * kViewBytes;
    const auto length = LoadAt<uint32_t>(view, 0), number = LoadAt<uint32_t>(view, 2),
               offset = LoadAt<uint32_t>(view, 3);
    const auto is_long = static_cast<uint32_t>(length > kInlineStringBytes);
    const auto is_other = static_cast<uint32_t>(number != buffer.number);
    const auto is_negative = (length | offset) >> 31;
    const auto is_outside = static_cast<uint32_t>(offset + length > buffer.size);
    fails |= is_long & (is_other | is_negative | is_outside);
  }
  return fails == 0;
}

#if defined(__x86_64__)
// The same for a multiple of four views.
QUERN_WIDE bool LieWithinWide(const OneBuffer& buffer, const uint8_t* views, uint64_t num_rows) {
  const __m512i number = _mm512_set1_epi32(static_cast<int32_t>(buffer.number));
  const __m512i size = _mm512_set1_epi32(static_cast<int32_t>(buffer.size));
  const __m512i most_inline = _mm512_set1_epi32(kInlineStringBytes), most = _mm512_set1_epi32(INT32_MAX);
  uint32_t fails = 0;
  for (uint64_t row = 0; row < num_rows; row += 4) {
    const __m512i four = _mm512_loadu_si512(views + row * kViewBytes);
    const __m512i lengths = _mm512_shuffle_epi32(four, _MM_PERM_AAAA);
    const uint32_t is_long = _mm512_cmpgt_epu32_mask(lengths, most_inline);
    const __m512i ends = _mm512_add_epi32(four, lengths);  // in the lanes of offsets
    fails |= _mm512_mask_cmpneq_epi32_mask(static_cast<__mmask16>(is_long & kNumbers), four, number);
    fails |= _mm512_mask_cmpgt_epu32_mask(static_cast<__mmask16>(is_long & (kLengths | kOffsets)), four, most);
    fails |= _mm512_mask_cmpgt_epu32_mask(static_cast<__mmask16>(is_long & kOffsets), ends, size);
  }
  return fails == 0;
}
#endif

// Whether all views of a block are valid whatever its nulls; false where that is not clear.
bool AreWithinOneBuffer(const ViewBuffers& buffers, const uint8_t* views, uint64_t num_rows) {
  const std::optional<OneBuffer> buffer = FirstBuffer(buffers, views, num_rows);
  if (!buffer.has_value()) return false;
#if defined(__x86_64__)
  if (HasAvx512() && num_rows % 4 == 0) return LieWithinWide(*buffer, views, num_rows);
#endif
  return LieWithin(*buffer, views, num_rows);
}

absl::Status ImportViews(const Slice& slice, QuernColumn* column) {
  const int64_t last = slice.array->n_buffers - 1;
  const ViewBuffers buffers = {last - 2, slice.buffer(last), slice.array->buffers + 2};
  column->buffers = reinterpret_cast<const uint8_t* const*>(buffers.data);
  column->values = kZeros;
  if (slice.num_rows == 0) return absl::OkStatus();
  if (slice.buffer(1) == nullptr) return MissingBuffer(slice, "views");
  QUERN_RETURN_IF_ERROR(CheckViewBuffers(slice, buffers));
  const uint8_t* views = slice.buffer(1) + slice.first * kViewBytes;
  constexpr uint64_t kRowsAtATime = 256;
  for (uint64_t begin = 0, end = 0; begin < slice.num_rows; begin = end) {
    end = std::min(slice.num_rows, begin + kRowsAtATime);
    if (AreInline(views + begin * kViewBytes, end - begin)) continue;
    if (AreWithinOneBuffer(buffers, views + begin * kViewBytes, end - begin)) continue;
    for (uint64_t row = begin; row < end; ++row)
      if (IsValid(*column, row)) QUERN_RETURN_IF_ERROR(CheckView(slice, buffers, views + row * kViewBytes, row));
  }
  column->values = views;
  return absl::OkStatus();
}

// ---- columns ----

absl::Status ImportFixed(const Slice& slice, uint64_t width_bytes, QuernColumn* column) {
  column->values = kZeros;
  if (slice.num_rows == 0) return absl::OkStatus();
  if (slice.buffer(1) == nullptr) return MissingBuffer(slice, "values");
  column->values = slice.buffer(1) + slice.first * width_bytes;  // a bitmap's width is 0: it is not advanced
  return absl::OkStatus();
}

// Imports a column without its dictionary; if it has one, `type` is that of the indices.
absl::StatusOr<QuernColumn> ImportValues(const Slice& slice, const ColumnType& type) {
  const TypeRow& row = RowOf(type.id);
  QUERN_RETURN_IF_ERROR(CheckNumBuffers(*slice.array, row.storage, slice.name));
  QuernColumn column = {};
  column.bit_offset = slice.first;
  QUERN_ASSIGN_OR_RETURN(column.validity, ValidityOf(slice));
  if (row.storage == kVar32) QUERN_RETURN_IF_ERROR(ImportStrings<int32_t>(slice, &column));
  else if (row.storage == kVar64) QUERN_RETURN_IF_ERROR(ImportStrings<int64_t>(slice, &column));
  else if (row.storage == kView) QUERN_RETURN_IF_ERROR(ImportViews(slice, &column));
  else QUERN_RETURN_IF_ERROR(ImportFixed(slice, row.storage == kFixed ? type.width_bytes : row.width_bytes, &column));
  return column;
}

// ---- dictionaries ----

// The number of entries that an index type can address in a dictionary; negative indices are invalid.
template <class Index>
uint64_t IndexLimit(uint64_t dictionary_rows) {
  return std::min<uint64_t>(dictionary_rows, uint64_t{std::numeric_limits<Index>::max()} + (sizeof(Index) < 8 ? 1 : 0));
}

template <class Index>
absl::Status WrongIndex(const Slice& slice, const QuernColumn& column, uint64_t limit) {
  const auto* indices = static_cast<const uint8_t*>(column.values);
  for (uint64_t row = 0; row < slice.num_rows; ++row) {
    const auto index = LoadAt<Index>(indices, row);
    if (!IsValid(column, row) || static_cast<uint64_t>(index) < limit) continue;
    return WrongAt("index outside the dictionary", row, slice.name, std::to_string(index),
                   "0 or more, below " + std::to_string(limit));
  }
  return absl::OkStatus();
}

// One pass without branches, as in OffsetsFit: for an index above `last`, either its own sign bit or that of `last -
// index` is set.
template <class Bits>
bool IndicesFit(const uint8_t* indices, uint64_t num_rows, Bits last) {
  Bits signs = 0;
  for (uint64_t row = 0; row < num_rows; ++row) {
    const auto index = LoadAt<Bits>(indices, row);
    signs = static_cast<Bits>(signs | index | static_cast<Bits>(last - index));
  }
  return signs >> (sizeof(Bits) * 8 - 1) == 0;
}

// Indices of unsigned types that use their top bit are valid but fail the fast check. They are then checked one by one,
// like those with nulls.
template <class Index>
absl::Status CheckIndices(const Slice& slice, const QuernColumn& column, uint64_t dictionary_rows) {
  using Bits = std::make_unsigned_t<Index>;
  const auto* indices = static_cast<const uint8_t*>(column.values);
  const uint64_t limit = IndexLimit<Index>(dictionary_rows);
  const uint64_t fast_limit = std::min(limit, uint64_t{1} << (sizeof(Bits) * 8 - 1));
  const bool is_fast = column.validity == nullptr && limit > 0;
  if (is_fast && IndicesFit<Bits>(indices, slice.num_rows, static_cast<Bits>(fast_limit - 1))) return absl::OkStatus();
  return WrongIndex<Index>(slice, column, limit);
}

// The validity of the indices combined with the dictionary's nulls, from bit 0.
template <class Index>
std::vector<uint8_t> FoldNulls(const QuernColumn& column, const QuernColumn& dictionary, uint64_t num_rows) {
  const auto* indices = static_cast<const uint8_t*>(column.values);
  std::vector<uint8_t> bitmap((num_rows + 7) / 8);
  for (uint64_t row = 0; row < num_rows; ++row) {
    const bool valid = IsValid(column, row) && IsValid(dictionary, static_cast<uint64_t>(LoadAt<Index>(indices, row)));
    bitmap[row / 8] = static_cast<uint8_t>(bitmap[row / 8] | valid << (row % 8));
  }
  return bitmap;
}

// Calls f with a zero of the index type.
template <class F>
auto WithIndex(TypeId index, F&& f) {
  if (index == TypeId::kI8) return f(int8_t{0});
  if (index == TypeId::kI16) return f(int16_t{0});
  if (index == TypeId::kI32) return f(int32_t{0});
  if (index == TypeId::kI64) return f(int64_t{0});
  if (index == TypeId::kU8) return f(uint8_t{0});
  if (index == TypeId::kU16) return f(uint16_t{0});
  if (index == TypeId::kU32) return f(uint32_t{0});
  return f(uint64_t{0});
}

// ---- one batch ----

// The owner of a batch's columns. Its destructor calls the producer's release callback.
struct ImportedBatch {
  ArrowArray array;
  std::deque<QuernColumn> dictionaries;  // columns point to them, so they must not move
  std::deque<std::vector<uint8_t>> bitmaps;

  explicit ImportedBatch(ArrowArray* source) : array(*source) { source->release = nullptr; }
  ImportedBatch(const ImportedBatch&) = delete;
  ImportedBatch& operator=(const ImportedBatch&) = delete;
  ~ImportedBatch() {
    if (array.release != nullptr) array.release(&array);
  }

  absl::StatusOr<QuernColumn> Import(const BoundColumn& bound);
  absl::StatusOr<QuernColumn> ImportDictionary(const Slice& slice, const ColumnType& type);
};

absl::StatusOr<QuernColumn> ImportedBatch::ImportDictionary(const Slice& slice, const ColumnType& type) {
  const ArrowArray& values = *slice.array->dictionary;
  const std::string name = "dictionary of " + slice.name;
  QUERN_RETURN_IF_ERROR(CheckNumbers(values, name));
  if (values.dictionary != nullptr) return Wrong("unexpected dictionary", name, "a second one", "none");
  if (values.length >= int64_t{kNullRow})
    return Wrong("too many rows", name, std::to_string(values.length), "below 4294967295");
  ColumnType index_type;
  index_type.id = type.index;
  QUERN_ASSIGN_OR_RETURN(QuernColumn column, ImportValues(slice, index_type));
  const Slice all = {&values, static_cast<uint64_t>(values.offset), static_cast<uint64_t>(values.length), name};
  QUERN_ASSIGN_OR_RETURN(QuernColumn dictionary, ImportValues(all, type));
  QUERN_RETURN_IF_ERROR(
      WithIndex(type.index, [&](auto zero) { return CheckIndices<decltype(zero)>(slice, column, all.num_rows); }));
  if (dictionary.validity != nullptr) {
    bitmaps.push_back(WithIndex(
        type.index, [&](auto zero) { return FoldNulls<decltype(zero)>(column, dictionary, slice.num_rows); }));
    const uint8_t* bitmap = bitmaps.back().data();
    column.validity = CountSetBits(bitmap, 0, slice.num_rows) == slice.num_rows ? nullptr : bitmap;
    column.bit_offset = 0;
    dictionary.validity = nullptr;
  }
  dictionaries.push_back(dictionary);
  column.dictionary = &dictionaries.back();
  return column;
}

absl::StatusOr<QuernColumn> ImportedBatch::Import(const BoundColumn& bound) {
  const ArrowArray* child = array.children[bound.child];
  if (child == nullptr) return Wrong("missing child", bound.name, "null", "an array");
  QUERN_RETURN_IF_ERROR(CheckNumbers(*child, bound.name));
  if (child->length < array.offset + array.length) {
    return Wrong("too few rows", bound.name, std::to_string(child->length),
                 std::to_string(array.offset + array.length) + " or more");
  }
  const Slice slice = {child, static_cast<uint64_t>(child->offset + array.offset), static_cast<uint64_t>(array.length),
                       bound.name};
  QUERN_RETURN_IF_ERROR(CheckDictionary(*child, *bound.type, bound.name));
  return bound.type->is_dictionary ? ImportDictionary(slice, *bound.type) : ImportValues(slice, *bound.type);
}

absl::Status CheckStruct(const ArrowArray& array) {
  const auto wrong = [&](const char* what, int64_t value, const std::string& accepted) {
    return InvalidArgument(std::string(what) + ": " + std::to_string(value) + "; accepted: " + accepted);
  };
  if (array.length < 0 || array.length >= int64_t{kNullRow})
    return wrong("number of rows out of range", array.length, "below 4294967295");
  if (array.offset < 0 || array.offset > kMaxElements - array.length)
    return wrong("offset out of range", array.offset, "0 or more");
  if (array.dictionary != nullptr || array.n_buffers != 1 || array.buffers == nullptr) {
    return wrong("not a struct array, by its number of buffers", array.n_buffers, "1");
  }
  if (array.n_children < 0 || (array.n_children > 0 && array.children == nullptr)) {
    return wrong("number of children out of range", array.n_children, "0 or more");
  }
  const auto* bitmap = static_cast<const uint8_t*>(array.buffers[0]);
  const auto length = static_cast<uint64_t>(array.length);
  const uint64_t nulls =
      bitmap == nullptr ? 0 : length - CountSetBits(bitmap, static_cast<uint64_t>(array.offset), length);
  const int64_t told = std::max<int64_t>(array.null_count, 0);
  if (nulls == 0 && told == 0) return absl::OkStatus();
  return wrong("struct array with null rows", std::max(static_cast<int64_t>(nulls), told), "none");
}

// Rejects nulls in a column for which the kernel has no code for nulls.
absl::Status CheckNullable(const QuernColumn& column, const BoundColumn& bound) {
  if (column.validity == nullptr || bound.type->nullable) return absl::OkStatus();
  uint64_t row = 0;
  while (IsValid(column, row)) ++row;
  return WrongAt("null", row, bound.name, PrintType(*bound.type),
                 "no nulls, or a spec with " + PrintType(*bound.type) + ":nullable");
}

}  // namespace

absl::StatusOr<ColumnType> TypeOfArrow(const ArrowSchema& field) {
  ColumnType type;
  if (ReadType(field, &type)) return type;
  return absl::UnimplementedError("unsupported type of field " + NameOf(field) + ": " + FormatOf(field) +
                                  "; accepted: " + AcceptedFormats());
}

absl::Status CheckSchema(const ArrowSchema& schema, const ColumnBinding& binding, const std::vector<ColumnType>& keys,
                         const std::vector<ColumnType>& payload, std::string_view side) {
  if (schema.format == nullptr || std::string_view(schema.format) != "+s" || schema.n_children < 0 ||
      (schema.n_children > 0 && schema.children == nullptr)) {
    return InvalidArgument("not a struct schema on the " + std::string(side) + " side: " + Show(schema.format) +
                           "; accepted: +s");
  }
  QUERN_ASSIGN_OR_RETURN(const std::vector<BoundColumn> columns, Bind(binding, keys, payload, schema.n_children));
  for (const BoundColumn& column : columns) {
    if (column.child < 0) continue;
    QUERN_RETURN_IF_ERROR(CheckField(schema, column.child, *column.type, std::string(side) + " " + column.name));
  }
  return absl::OkStatus();
}

absl::Status CheckArrowArray(const ArrowArray& array, const ColumnType& type, const std::string& name) {
  QUERN_RETURN_IF_ERROR(CheckNumbers(array, name));
  QUERN_RETURN_IF_ERROR(CheckDictionary(array, type, name));
  QUERN_RETURN_IF_ERROR(CheckNumBuffers(array, RowOf(type.is_dictionary ? type.index : type.id).storage, name));
  const Slice all = {&array, static_cast<uint64_t>(array.offset), static_cast<uint64_t>(array.length), name};
  if (array.length > 0 && all.buffer(1) == nullptr) return MissingBuffer(all, "values");
  if (array.null_count > 0 && all.buffer(0) == nullptr)
    return Wrong("wrong null count", name, std::to_string(array.null_count), "-1 or 0, since there is no bitmap");
  if (!type.is_dictionary) return absl::OkStatus();
  ColumnType values = type;
  values.is_dictionary = false;
  return CheckArrowArray(*array.dictionary, values, "dictionary of " + name);
}

absl::StatusOr<BatchView> ImportArrow(ArrowArray* array, const ColumnBinding& binding,
                                      const std::vector<ColumnType>& keys, const std::vector<ColumnType>& payload) {
  if (array == nullptr || array->release == nullptr) {
    return InvalidArgument("released array: no release callback; accepted: a struct array that is alive");
  }
  auto batch = std::make_shared<ImportedBatch>(array);
  QUERN_RETURN_IF_ERROR(CheckStruct(batch->array));
  QUERN_ASSIGN_OR_RETURN(const std::vector<BoundColumn> columns, Bind(binding, keys, payload, batch->array.n_children));
  BatchView view;
  view.num_rows = static_cast<uint64_t>(batch->array.length);
  for (size_t i = 0; i < columns.size(); ++i) {
    QuernColumn column = {};
    if (columns[i].child >= 0) {
      QUERN_ASSIGN_OR_RETURN(column, batch->Import(columns[i]));
      QUERN_RETURN_IF_ERROR(CheckNullable(column, columns[i]));
    }
    (i < keys.size() ? view.keys : view.payload).push_back(column);
  }
  view.owner = std::move(batch);
  view.owns_strings = true;
  return view;
}

}  // namespace quern
