// SPDX-License-Identifier: Apache-2.0
// Arrow reads as f64 what is no i64, and rounds: 9223372036854775809 and 9223372036854775810, two ids, become equal.
// Such columns are read as texts first, and the digits of all values decide the type:
//
//     9223372036854775809, 7                     u64
//     9223372036854775809, -1                    decimal128(19, 0)
//     0.5, 12                                    f64
//     0.5, 12345678901234567.89                  decimal128(19, 2): f64 has only 12345678901234568
//     0.5, 1e300, nan                            f64: a number with an exponent is one that may be rounded
//     0.5, 12345678901234567.89, 1e300           an error, as no type holds the second beside the third
//
// A number without an exponent is in an f64 if the f64, printed with as many digits, gives the number back. Then two
// numbers of as many digits never become equal, and all that programs print of their floats passes:
// 0.10000000000000000555 is 0.1 with 20 digits.
#include "tools/quern/files/csv_numbers.h"

#include <arrow/api.h>
#include <arrow/compute/api.h>
#include <arrow/util/thread_pool.h>
#include <arrow/util/value_parsing.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/shared_work.h"
#include "runtime/base/status.h"
#include "runtime/spec/expression.h"
#include "tools/frontend/errors.h"
#include "tools/quern/files/table_io.h"

namespace quern::cli {
namespace {

using ArrayPointer = std::shared_ptr<arrow::Array>;
using ColumnPointer = std::shared_ptr<arrow::ChunkedArray>;

constexpr size_t kAlwaysHeld = 15;  // digits that every f64 holds

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const size_t begin = text.find_first_not_of(kBlanks);
  return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string_view TakeDigits(std::string_view* rest) {
  const auto end = std::find_if_not(rest->begin(), rest->end(), IsDigit);
  const std::string_view digits = rest->substr(0, static_cast<size_t>(end - rest->begin()));
  rest->remove_prefix(digits.size());
  return digits;
}

std::string_view WithoutZeros(std::string_view digits) {
  return digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
}

// The parts of [-+]123[.45]; `is_plain` is false for numbers that have more, as an exponent, or are nan or inf.
struct Decimal {
  bool is_plain;
  bool is_negative;
  std::string_view whole;     // without zeros in front
  std::string_view fraction;  // digits after the point
  bool has_point;

  explicit Decimal(std::string_view text) {
    is_negative = !text.empty() && text[0] == '-';
    if (is_negative || (!text.empty() && text[0] == '+')) text.remove_prefix(1);
    whole = WithoutZeros(TakeDigits(&text));
    has_point = !text.empty() && text[0] == '.';
    if (has_point) text.remove_prefix(1);
    fraction = TakeDigits(&text);
    is_plain = text.empty();
  }

  bool IsWhole() const { return is_plain && !has_point; }
  // From the first that is not 0.
  std::string SignificantDigits() const {
    return whole.empty() ? std::string(WithoutZeros(fraction)) : std::string(whole) + std::string(fraction);
  }
};

// Whether `value`, printed with as many digits as there are, has these.
bool PrintsDigits(std::string_view digits, double value) {
  const auto is_same = [digits](const char* begin, const char* end) {
    const std::string_view printed(begin, static_cast<size_t>(std::find(begin, end, 'e') - begin));
    const size_t num_digits = printed.size() - (printed.size() > 1 ? 1 : 0);  // without the point
    return num_digits == digits.size() && printed[0] == digits[0] &&
           (num_digits == 1 || printed.substr(2) == digits.substr(1));
  };
  char shortest[32];  // the quick way, for what programs print of their floats
  const auto quick =
      std::to_chars(shortest, shortest + sizeof shortest, std::abs(value), std::chars_format::scientific);
  if (is_same(shortest, quick.ptr)) return true;
  std::string text(digits.size() + 16, '\0');
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), std::abs(value),
                                          std::chars_format::scientific, static_cast<int>(digits.size()) - 1);
  return error == std::errc() && is_same(text.data(), end);
}

// Whether `value`, which is nearest to the plain number, has its digits.
bool PrintsAs(const Decimal& number, double value) {
  if (!std::isfinite(value)) return false;
  if (value != 0 && number.whole.size() + number.fraction.size() <= kAlwaysHeld) return true;
  const std::string digits = number.SignificantDigits();
  if (value == 0 || digits.empty()) return value == 0 && digits.empty();
  return digits.size() <= kAlwaysHeld || PrintsDigits(digits, value);
}

// A rounded number is not infinite, and is 0 only if it was.
bool IsInRange(std::string_view text, double value) {
  const std::string_view mantissa = text.substr(0, text.find_first_of("eE"));
  const bool has_digits = mantissa.find_first_of("123456789") != std::string_view::npos;
  return std::isinf(value) ? !has_digits && mantissa.find('0') == std::string_view::npos : value != 0 || !has_digits;
}

template <class Integer>
bool Reads(std::string_view text, Integer* number) {
  if (text[0] == '+') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

// `read` appends a text to the builder.
template <class Builder, class Read>
arrow::Result<ArrayPointer> Rebuilt(const arrow::BinaryArray& texts, Builder builder, const Read& read) {
  ARROW_RETURN_NOT_OK(builder.Reserve(texts.length()));
  for (int64_t row = 0; row < texts.length(); ++row) {
    if (texts.IsNull(row)) builder.UnsafeAppendNull();
    else ARROW_RETURN_NOT_OK(read(Trimmed(texts.GetView(row)), &builder));
  }
  return builder.Finish();
}

template <class Builder, class Integer>
arrow::Result<ArrayPointer> Integers(const arrow::BinaryArray& texts) {
  return Rebuilt(texts, Builder(), [](std::string_view text, Builder* builder) {
    Integer number = 0;
    Reads(text, &number);
    builder->UnsafeAppend(number);
    return arrow::Status::OK();
  });
}

arrow::Result<ArrayPointer> Decimals(const arrow::BinaryArray& texts, const std::shared_ptr<arrow::DataType>& type) {
  const int32_t type_scale = static_cast<const arrow::DecimalType&>(*type).scale();
  return Rebuilt(texts, arrow::Decimal128Builder(type),
                 [type_scale](std::string_view text, arrow::Decimal128Builder* builder) {
                   const Decimal parts(text);
                   std::string digits = parts.is_negative ? "-" : "";
                   digits += parts.whole.empty() ? "0" : parts.whole;
                   if (!parts.fraction.empty()) digits += "." + std::string(parts.fraction);
                   arrow::Decimal128 number;
                   int32_t precision = 0, scale = 0;
                   ARROW_RETURN_NOT_OK(arrow::Decimal128::FromString(digits, &number, &precision, &scale));
                   ARROW_ASSIGN_OR_RAISE(number, number.Rescale(scale, type_scale));
                   builder->UnsafeAppend(number);
                   return arrow::Status::OK();
                 });
}

// Arrow treats a column as bytes where one value is not UTF-8.
ColumnPointer AsText(const ColumnPointer& texts) {
  const auto cast = arrow::compute::Cast(texts, arrow::utf8());
  return cast.ok() ? cast->chunked_array() : texts;
}

absl::Status NoType(std::string_view text, int64_t row, const std::string& what) {
  return DataError("number that no type of its column holds: " + Show(text) + ", row " + std::to_string(row + 1) +
                   " of " + what +
                   "; accepted: up to 38 digits in a column without exponents, f64 in others; or a .parquet or .arrow "
                   "file with the column as text");
}

uint32_t NumThreads() { return static_cast<uint32_t>(std::max(arrow::GetCpuThreadPoolCapacity(), 1)); }

const arrow::BinaryArray& TextsOf(const arrow::ChunkedArray& column, uint64_t i) {
  return static_cast<const arrow::BinaryArray&>(*column.chunk(static_cast<int>(i)));
}

}  // namespace

void NumberNeeds::Add(std::string_view text, int64_t row, double value) {
  const Decimal number(text);
  are_plain_ = are_plain_ && number.is_plain;
  are_whole_ = are_whole_ && number.IsWhole();
  int64_t i64;
  uint64_t u64;
  fit_i64_ = fit_i64_ && are_whole_ && Reads(text, &i64);
  fit_u64_ = fit_u64_ && are_whole_ && Reads(text, &u64);
  if (number.is_plain) {
    whole_digits_ = std::max(whole_digits_, number.whole.size());
    fraction_digits_ = std::max(fraction_digits_, number.fraction.size());
  }
  const bool is_held = number.is_plain ? PrintsAs(number, value) : IsInRange(text, value);
  if (!is_held && !no_f64_.has_value()) no_f64_ = {row, std::string(text)};
  const bool needs_more = !number.is_plain || number.whole.size() + number.fraction.size() > kMaxDecimalDigits;
  if (!is_held && needs_more && !no_type_.has_value()) no_type_ = {row, std::string(text)};
}

void NumberNeeds::Add(const NumberNeeds& other, int64_t first_row) {
  are_numbers_ = are_numbers_ && other.are_numbers_;
  are_plain_ = are_plain_ && other.are_plain_;
  are_whole_ = are_whole_ && other.are_whole_;
  fit_i64_ = fit_i64_ && other.fit_i64_;
  fit_u64_ = fit_u64_ && other.fit_u64_;
  whole_digits_ = std::max(whole_digits_, other.whole_digits_);
  fraction_digits_ = std::max(fraction_digits_, other.fraction_digits_);
  const auto take = [first_row](const std::optional<Value>& from, std::optional<Value>* value) {
    if (!value->has_value() && from.has_value()) *value = {first_row + from->row, from->text};
  };
  take(other.no_f64_, &no_f64_);
  take(other.no_type_, &no_type_);
}

bool NumberNeeds::FitDecimal() const { return are_plain_ && whole_digits_ + fraction_digits_ <= kMaxDecimalDigits; }

absl::StatusOr<std::shared_ptr<arrow::DataType>> NumberNeeds::Type(const std::string& what) const {
  if (are_whole_ && fit_i64_) return arrow::int64();
  if (are_whole_ && fit_u64_) return arrow::uint64();
  if ((are_whole_ || no_f64_.has_value()) && FitDecimal()) {
    const size_t digits = std::max<size_t>(whole_digits_ + fraction_digits_, 1);
    return arrow::decimal128(static_cast<int32_t>(digits), static_cast<int32_t>(fraction_digits_));
  }
  if (!no_f64_.has_value()) return arrow::float64();
  const Value& value = no_type_.has_value() ? *no_type_ : *no_f64_;
  return NoType(value.text, value.row, what);
}

arrow::Result<NumberNeeds> NeedsOf(const arrow::BinaryArray& texts, ArrayPointer* reals) {
  NumberNeeds needs;
  arrow::DoubleBuilder builder;
  if (reals != nullptr) ARROW_RETURN_NOT_OK(builder.Reserve(texts.length()));
  for (int64_t row = 0; row < texts.length(); ++row) {
    if (texts.IsNull(row)) {
      if (reals != nullptr) builder.UnsafeAppendNull();
      continue;
    }
    const std::string_view text = Trimmed(texts.GetView(row));
    double value = 0;
    if (!arrow::internal::ParseValue<arrow::DoubleType>(text.data(), text.size(), &value)) {
      needs.SetNoNumbers();
      return needs;
    }
    needs.Add(text, row, value);
    if (reals != nullptr) builder.UnsafeAppend(value);
  }
  if (reals != nullptr) ARROW_RETURN_NOT_OK(builder.Finish(reals));
  return needs;
}

arrow::Result<ArrayPointer> NumbersOf(const arrow::BinaryArray& texts, const std::shared_ptr<arrow::DataType>& type) {
  if (type->id() == arrow::Type::INT64) return Integers<arrow::Int64Builder, int64_t>(texts);
  if (type->id() == arrow::Type::UINT64) return Integers<arrow::UInt64Builder, uint64_t>(texts);
  return Decimals(texts, type);
}

absl::StatusOr<ColumnPointer> ColumnOfTexts(const ColumnPointer& texts, const std::string& what) {
  const std::string cannot = "cannot read " + what;
  const auto num_chunks = static_cast<uint64_t>(texts->num_chunks());
  std::vector<NumberNeeds> of_chunks(num_chunks);
  arrow::ArrayVector chunks(num_chunks);  // as f64 at first
  QUERN_RETURN_IF_ERROR(RunMorsels(NumThreads(), num_chunks, [&](uint32_t, uint64_t i) -> absl::Status {
    QUERN_ASSIGN_OR_RETURN_ARROW(of_chunks[i], NeedsOf(TextsOf(*texts, i), &chunks[i]), cannot);
    return absl::OkStatus();
  }));
  NumberNeeds needs;
  int64_t first_row = 0;
  for (uint64_t i = 0; i < num_chunks; ++i) {
    needs.Add(of_chunks[i], first_row);
    first_row += TextsOf(*texts, i).length();
  }
  if (!needs.are_numbers()) return AsText(texts);
  QUERN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::DataType> type, needs.Type(what));
  if (type->id() == arrow::Type::DOUBLE) return std::make_shared<arrow::ChunkedArray>(std::move(chunks), type);
  QUERN_RETURN_IF_ERROR(RunMorsels(NumThreads(), num_chunks, [&](uint32_t, uint64_t i) -> absl::Status {
    QUERN_ASSIGN_OR_RETURN_ARROW(chunks[i], NumbersOf(TextsOf(*texts, i), type), cannot);
    return absl::OkStatus();
  }));
  return std::make_shared<arrow::ChunkedArray>(std::move(chunks), type);
}

}  // namespace quern::cli
