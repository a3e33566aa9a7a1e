// SPDX-License-Identifier: Apache-2.0
// A kernel compares bits of one type, but files may have two: an i32 in one and an i64 in the other. The cast to the
// common type must be exact, or different values would match. Hence integers are cast to the narrowest type that holds
// both (u32 and i32: i64); u64 with a signed type has none, and both become decimals of 20 digits: a CSV file of ids
// has u64 where one of them is above 2^63. Casts check every value: 9007199254740993 does not fit an f64, and ends the
// run with an error rather than with a match of 9007199254740992.
#include "tools/quern/files/key_types.h"

#include <arrow/api.h>
#include <arrow/c/bridge.h>

#include <algorithm>

#include "runtime/base/status.h"
#include "runtime/rows/arrow_import.h"
#include "runtime/spec/expression.h"
#include "tools/frontend/errors.h"

namespace quern::cli {
namespace {

using TypePointer = std::shared_ptr<arrow::DataType>;

TypePointer SignedInteger(int bits) {
  if (bits <= 8) return arrow::int8();
  if (bits <= 16) return arrow::int16();
  if (bits <= 32) return arrow::int32();
  return bits <= 64 ? arrow::int64() : arrow::decimal128(20, 0);
}

TypePointer CommonInteger(const TypePointer& a, const TypePointer& b) {
  const bool a_signed = arrow::is_signed_integer(a->id());
  const bool b_signed = arrow::is_signed_integer(b->id());
  if (a_signed == b_signed) return a->bit_width() >= b->bit_width() ? a : b;
  const int signed_bits = a_signed ? a->bit_width() : b->bit_width();
  const int unsigned_bits = a_signed ? b->bit_width() : a->bit_width();
  return SignedInteger(std::max(signed_bits, 2 * unsigned_bits));
}

// The decimal that holds every value of an integer type; a decimal itself.
TypePointer AsDecimal(const TypePointer& type) {
  if (!arrow::is_integer(type->id())) return type;
  const int bits = type->bit_width() - (arrow::is_signed_integer(type->id()) ? 1 : 0);
  constexpr double kDigitsPerBit = 0.30103;
  return arrow::decimal128(static_cast<int>(bits * kDigitsPerBit) + 1, 0);
}

TypePointer CommonDecimal(const arrow::DataType& a, const arrow::DataType& b) {
  const auto& first = static_cast<const arrow::DecimalType&>(a);
  const auto& second = static_cast<const arrow::DecimalType&>(b);
  const int scale = std::max(first.scale(), second.scale());
  const int whole_digits = std::max(first.precision() - first.scale(), second.precision() - second.scale());
  const int digits = whole_digits + scale, bits = std::max(first.bit_width(), second.bit_width());
  if (digits > kMaxDecimalDigits) return nullptr;
  if (bits == 32 && digits <= MaxDigitsOf(TypeId::kDecimal32)) return arrow::decimal32(digits, scale);
  if (bits <= 64 && digits <= MaxDigitsOf(TypeId::kDecimal64)) return arrow::decimal64(digits, scale);
  return arrow::decimal128(digits, scale);
}

bool IsUtf8(arrow::Type::type id) { return arrow::is_string(id) || id == arrow::Type::STRING_VIEW; }
bool IsBinary(arrow::Type::type id) {
  return id == arrow::Type::BINARY || id == arrow::Type::LARGE_BINARY || id == arrow::Type::BINARY_VIEW;
}
bool IsFloat(arrow::Type::type id) { return id == arrow::Type::FLOAT || id == arrow::Type::DOUBLE; }

bool IsKernelDecimal(arrow::Type::type id) {
  return id == arrow::Type::DECIMAL32 || id == arrow::Type::DECIMAL64 || id == arrow::Type::DECIMAL128;
}

// A timestamp is a moment, counted from 1970 in UTC whatever its zone; one without a zone is taken as UTC.
bool AreMomentsOfOneUnit(const arrow::DataType& a, const arrow::DataType& b) {
  return a.id() == arrow::Type::TIMESTAMP && b.id() == arrow::Type::TIMESTAMP &&
         static_cast<const arrow::TimestampType&>(a).unit() == static_cast<const arrow::TimestampType&>(b).unit();
}

std::string AcceptedTypes() {
  std::string text;
  for (const TypeRow& row : AllTypes()) {
    if (row.id == TypeId::kRowId) continue;  // no column of a file
    text += (text.empty() ? "" : ", ") + std::string(row.text);
  }
  return text + ", and dictionaries of these";
}

}  // namespace

TypePointer DecodedType(const TypePointer& type) {
  return type->id() == arrow::Type::DICTIONARY ? static_cast<const arrow::DictionaryType&>(*type).value_type() : type;
}

TypePointer CommonKeyType(const TypePointer& probe, const TypePointer& build) {
  if (probe->Equals(build)) return probe;
  const TypePointer a = DecodedType(probe);
  const TypePointer b = DecodedType(build);
  if (a->Equals(b) || b->id() == arrow::Type::NA) return a;
  if (a->id() == arrow::Type::NA) return b;
  if (AreMomentsOfOneUnit(*a, *b)) return a;
  if (arrow::is_integer(a->id()) && arrow::is_integer(b->id())) return CommonInteger(a, b);
  if ((IsUtf8(a->id()) && IsUtf8(b->id())) || (IsBinary(a->id()) && IsBinary(b->id()))) return a;
  const auto is_exact = [](arrow::Type::type id) { return IsKernelDecimal(id) || arrow::is_integer(id); };
  if (is_exact(a->id()) && is_exact(b->id())) return CommonDecimal(*AsDecimal(a), *AsDecimal(b));
  const bool both_numbers =
      (IsFloat(a->id()) || arrow::is_integer(a->id())) && (IsFloat(b->id()) || arrow::is_integer(b->id()));
  return both_numbers ? arrow::float64() : nullptr;
}

absl::StatusOr<ColumnType> KernelType(const std::string& column, const arrow::DataType& type) {
  const absl::Status unsupported =
      CommandError("unsupported type of " + column + ": " + type.ToString() + "; accepted: " + AcceptedTypes());
  ArrowSchema schema;
  if (!arrow::ExportType(type, &schema).ok()) return unsupported;
  const absl::StatusOr<ColumnType> column_type = TypeOfArrow(schema);
  if (schema.release != nullptr) schema.release(&schema);
  return column_type.ok() ? column_type : unsupported;
}

}  // namespace quern::cli
