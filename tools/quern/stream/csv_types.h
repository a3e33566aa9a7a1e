// SPDX-License-Identifier: Apache-2.0
// The type of a column of a CSV file, found block by block: the one that a reader finds that has all blocks at once.
#ifndef QUERN_TOOLS_STREAM_CSV_TYPES_H_
#define QUERN_TOOLS_STREAM_CSV_TYPES_H_

#include <arrow/csv/options.h>
#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/quern/files/csv_numbers.h"

namespace arrow::csv {
class BlockParser;
class Converter;
}  // namespace arrow::csv

namespace quern::cli {

// Tries types on blocks. *Threads*: one.
class CsvConverters {
 public:
  static arrow::Result<CsvConverters> Make();

  // The values of a column in a type that Arrow's readers infer; an error where one of them is of another type.
  arrow::Result<std::shared_ptr<arrow::Array>> Convert(size_t type, const arrow::csv::BlockParser& block,
                                                       int32_t column) const;

 private:
  CsvConverters() = default;
  std::unique_ptr<arrow::csv::ConvertOptions> options_;  // the converters refer to them
  std::vector<std::shared_ptr<arrow::csv::Converter>> converters_;
};

// What is known of one column.
class CsvColumnType {
 public:
  CsvColumnType();

  // The next block of a file. *Errors*: memory that is refused.
  arrow::Status AddBlock(const CsvConverters& converters, const arrow::csv::BlockParser& block, int32_t column);

  // Whether AddNumbers must see all blocks, from the first on, since some of their numbers were not looked at.
  bool NeedsNumbers() const;
  void BeginNumbers();
  arrow::Status AddNumbers(const CsvConverters& converters, const arrow::csv::BlockParser& block, int32_t column);

  bool has_nulls() const { return has_nulls_; }
  // After all blocks; null: there is no value. *Errors*: numbers that no type holds; `what` names column and file.
  absl::StatusOr<std::shared_ptr<arrow::DataType>> Type(const std::string& what) const;
  // Whether its values are numbers that NumbersOf must read, since Arrow takes them for f64.
  bool IsReadAsText(const arrow::DataType& type) const;

 private:
  bool Has(size_t type) const;
  // Whether the values of a block have a type that those before it have.
  arrow::Result<bool> Try(size_t type, const CsvConverters& converters, const arrow::csv::BlockParser& block,
                          int32_t column);
  arrow::Result<NumberNeeds> NumbersIn(const CsvConverters& converters, const arrow::csv::BlockParser& block,
                                       int32_t column);
  size_t Inferred() const;

  uint32_t possible_;  // a bit for each type that all values have
  bool has_nulls_ = false;
  bool has_values_ = false;
  int64_t num_rows_ = 0;
  int64_t num_rows_of_numbers_ = 0;  // rows that needs_ knows
  NumberNeeds needs_;
};

}  // namespace quern::cli

#endif  // QUERN_TOOLS_STREAM_CSV_TYPES_H_
