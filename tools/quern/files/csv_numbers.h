// SPDX-License-Identifier: Apache-2.0
// Columns of a CSV file whose values may be numbers, read without losing a digit.
#ifndef QUERN_TOOLS_FILES_CSV_NUMBERS_H_
#define QUERN_TOOLS_FILES_CSV_NUMBERS_H_

#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace quern::cli {

// What the values of a column, or of a part of it, need of a type.
class NumberNeeds {
 public:
  // A number, its row and the f64 that is nearest to it.
  void Add(std::string_view text, int64_t row, double value);
  // Those of a part behind this one; first_row: that of the part.
  void Add(const NumberNeeds& other, int64_t first_row);
  void SetNoNumbers() { are_numbers_ = false; }

  // Whether all values are numbers; the others are of use only if they are.
  bool are_numbers() const { return are_numbers_; }
  // i64, u64, f64 or decimal128, the first that holds all values. *Errors*: numbers that no type holds; `what` names
  // column and file.
  absl::StatusOr<std::shared_ptr<arrow::DataType>> Type(const std::string& what) const;

 private:
  struct Value {
    int64_t row;
    std::string text;
  };
  bool FitDecimal() const;

  bool are_numbers_ = true;
  bool are_plain_ = true;
  bool are_whole_ = true;
  bool fit_i64_ = true;
  bool fit_u64_ = true;
  size_t whole_digits_ = 0;
  size_t fraction_digits_ = 0;
  std::optional<Value> no_f64_;   // the first whose number no f64 holds
  std::optional<Value> no_type_;  // and that nothing else holds
};

// Of a part of a column, up to the first value that is no number. reals: may be null; the values as f64, if all are
// numbers.
arrow::Result<NumberNeeds> NeedsOf(const arrow::BinaryArray& texts, std::shared_ptr<arrow::Array>* reals);

// Numbers in the type that NumberNeeds has found for them, unless it is f64.
arrow::Result<std::shared_ptr<arrow::Array>> NumbersOf(const arrow::BinaryArray& texts,
                                                       const std::shared_ptr<arrow::DataType>& type);

// The column in the first type that holds all of its values: i64, u64, f64, decimal128; utf8 where one of them is no
// number, binary where one is no text either. `texts` is a binary column, `what` names column and file in errors.
// *Errors*: numbers that no type holds.
absl::StatusOr<std::shared_ptr<arrow::ChunkedArray>> ColumnOfTexts(const std::shared_ptr<arrow::ChunkedArray>& texts,
                                                                   const std::string& what);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FILES_CSV_NUMBERS_H_
