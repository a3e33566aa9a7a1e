// SPDX-License-Identifier: Apache-2.0
// Arrow's reader tries types one after the other on all blocks of a file: null, i64, bool, date, and so on to text. It
// keeps the blocks until the last one is read. Here blocks are not kept. Instead, each column has a bit for each type
// that all of its values have so far, and at the end the first of these is its type:
//
//     block 1    7, 12              i64, f64, text, binary
//     block 2    2.5, 3             f64, text, binary
//     block 3    2026-11-23         text, binary
//
// A type that one block lacks is never tried again, so most columns soon have two or three types left. Text is tried
// only on blocks that have no other type, since it refuses nothing but bytes that are no UTF-8, and the other types
// refuse these too. An i64 is also an f64, unless it has hexadecimal digits.
//
// Which type numbers have that are no i64 depends on their digits (csv_numbers.h). These are looked at from the first
// block on that is not i64. Where that is not the first block, the file is read once more for the column.
#include "tools/quern/stream/csv_types.h"

#include <arrow/api.h>
#include <arrow/csv/converter.h>
#include <arrow/csv/parser.h>

#include <algorithm>
#include <iterator>

#include "runtime/base/status.h"
#include "tools/quern/files/read_csv.h"
#include "tools/quern/files/reading_memory.h"

namespace quern::cli {
namespace {

// In the order in which Arrow tries them.
enum InferredType : size_t {
  kNull,
  kInteger,
  kBoolean,
  kDate,
  kTime,
  kSeconds,
  kNanos,
  kSecondsUtc,
  kNanosUtc,
  kReal,
  kText,
  kBinary,
  kNumTypes
};

std::shared_ptr<arrow::DataType> TypeOf(size_t type) {
  switch (static_cast<InferredType>(type)) {
    case kNull: return arrow::null();
    case kInteger: return arrow::int64();
    case kBoolean: return arrow::boolean();
    case kDate: return arrow::date32();
    case kTime: return arrow::time32(arrow::TimeUnit::SECOND);
    case kSeconds: return arrow::timestamp(arrow::TimeUnit::SECOND);
    case kNanos: return arrow::timestamp(arrow::TimeUnit::NANO);
    case kSecondsUtc: return arrow::timestamp(arrow::TimeUnit::SECOND, "UTC");
    case kNanosUtc: return arrow::timestamp(arrow::TimeUnit::NANO, "UTC");
    case kReal: return arrow::float64();
    case kText: return arrow::utf8();
    case kBinary:
    case kNumTypes: break;
  }
  return arrow::binary();
}

constexpr uint32_t Bit(size_t type) { return uint32_t{1} << type; }
constexpr uint32_t kAllTypes = Bit(kNumTypes) - 1 - Bit(kNull);

bool HasHexadecimal(const arrow::csv::BlockParser& block, int32_t column) {
  bool found = false;
  const auto visit = [&found](const uint8_t* data, uint32_t size, bool /*quoted*/, bool /*missing*/) {
    found = found || std::any_of(data, data + size, [](uint8_t c) { return c == 'x' || c == 'X'; });
    return arrow::Status::OK();
  };
  return !block.VisitColumn(column, visit).ok() || found;
}

// An error that says nothing of the values.
bool IsRefusal(const arrow::Status& status) { return status.IsOutOfMemory() || status.IsCapacityError(); }

}  // namespace

arrow::Result<CsvConverters> CsvConverters::Make() {
  CsvConverters made;
  made.options_ = std::make_unique<arrow::csv::ConvertOptions>(CsvConvertOptions({}));
  for (size_t type = 0; type < kNumTypes; ++type) {
    ARROW_ASSIGN_OR_RAISE(auto converter, arrow::csv::Converter::Make(TypeOf(type), *made.options_, ReadingPool()));
    made.converters_.push_back(std::move(converter));
  }
  return made;
}

arrow::Result<std::shared_ptr<arrow::Array>> CsvConverters::Convert(size_t type, const arrow::csv::BlockParser& block,
                                                                    int32_t column) const {
  return converters_[type]->Convert(block, column);
}

CsvColumnType::CsvColumnType() : possible_(kAllTypes) {}

arrow::Status CsvColumnType::AddBlock(const CsvConverters& converters, const arrow::csv::BlockParser& block,
                                      int32_t column) {
  const int64_t first_row = num_rows_;
  num_rows_ += block.num_rows();
  if (block.num_rows() == 0) return arrow::Status::OK();
  if (converters.Convert(kNull, block, column).ok()) {
    has_nulls_ = true;
    if (num_rows_of_numbers_ == first_row) num_rows_of_numbers_ = num_rows_;
    return arrow::Status::OK();
  }
  has_values_ = true;
  bool is_other_than_text = false;
  for (size_t type = kInteger; type < kReal; ++type) {
    ARROW_ASSIGN_OR_RAISE(const bool has_type, Try(type, converters, block, column));
    is_other_than_text = is_other_than_text || has_type;
  }
  if (Has(kReal) && (!Has(kInteger) || HasHexadecimal(block, column))) {
    const bool are_all_known = num_rows_of_numbers_ == first_row;
    ARROW_ASSIGN_OR_RAISE(const NumberNeeds needs, NumbersIn(converters, block, column));
    if (!needs.are_numbers()) possible_ &= ~Bit(kReal);
    is_other_than_text = is_other_than_text || needs.are_numbers();
    needs_.Add(needs, first_row);
    if (are_all_known) num_rows_of_numbers_ = num_rows_;
  }
  if (is_other_than_text) return arrow::Status::OK();
  ARROW_ASSIGN_OR_RAISE(const bool is_text, Try(kText, converters, block, column));
  return is_text || has_nulls_ ? arrow::Status::OK() : Try(kBinary, converters, block, column).status();
}

arrow::Result<bool> CsvColumnType::Try(size_t type, const CsvConverters& converters,
                                       const arrow::csv::BlockParser& block, int32_t column) {
  if (!Has(type)) return false;
  const auto values = converters.Convert(type, block, column);
  if (values.ok()) {
    has_nulls_ = has_nulls_ || (*values)->null_count() > 0;
    return true;
  }
  if (IsRefusal(values.status())) return values.status();
  possible_ &= ~Bit(type);
  return false;
}

arrow::Result<NumberNeeds> CsvColumnType::NumbersIn(const CsvConverters& converters,
                                                    const arrow::csv::BlockParser& block, int32_t column) {
  ARROW_ASSIGN_OR_RAISE(const auto texts, converters.Convert(kBinary, block, column));
  has_nulls_ = has_nulls_ || texts->null_count() > 0;
  return NeedsOf(static_cast<const arrow::BinaryArray&>(*texts), /*reals=*/nullptr);
}

bool CsvColumnType::Has(size_t type) const { return (possible_ & Bit(type)) != 0; }

size_t CsvColumnType::Inferred() const {
  if (!has_values_) return kNull;
  size_t type = kInteger;
  while (!Has(type)) ++type;
  return type;
}

bool CsvColumnType::NeedsNumbers() const { return Inferred() == kReal && num_rows_of_numbers_ < num_rows_; }

void CsvColumnType::BeginNumbers() {
  needs_ = NumberNeeds();
  num_rows_of_numbers_ = 0;
}

arrow::Status CsvColumnType::AddNumbers(const CsvConverters& converters, const arrow::csv::BlockParser& block,
                                        int32_t column) {
  ARROW_ASSIGN_OR_RAISE(const NumberNeeds needs, NumbersIn(converters, block, column));
  needs_.Add(needs, num_rows_of_numbers_);
  num_rows_of_numbers_ += block.num_rows();
  return arrow::Status::OK();
}

absl::StatusOr<std::shared_ptr<arrow::DataType>> CsvColumnType::Type(const std::string& what) const {
  const size_t inferred = Inferred();
  if (inferred == kReal) return needs_.Type(what);
  return TypeOf(inferred);
}

bool CsvColumnType::IsReadAsText(const arrow::DataType& type) const {
  return Inferred() == kReal && type.id() != arrow::Type::DOUBLE;
}

}  // namespace quern::cli
