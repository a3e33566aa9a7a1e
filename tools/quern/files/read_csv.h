// SPDX-License-Identifier: Apache-2.0
// Reads CSV files.
#ifndef QUERN_TOOLS_FILES_READ_CSV_H_
#define QUERN_TOOLS_FILES_READ_CSV_H_

#include <arrow/csv/options.h>
#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace quern::cli {

// How fields and values are read, whatever reads them. columns: those that are read; none: all.
arrow::csv::ParseOptions CsvParseOptions();
arrow::csv::ConvertOptions CsvConvertOptions(const std::vector<std::string>& columns);

// The bytes of a block. *Limits*: a row ends in the block in which it begins, or in the next one; a header in the
// first.
inline constexpr int32_t kCsvBlockBytes = 1 << 20;

// The first row of a file.
struct CsvHeader {
  std::vector<std::string> names;
  int64_t end;  // where the rows begin in the file
};
absl::StatusOr<CsvHeader> ReadCsvHeader(const std::string& path);

// The named columns, with types from their values. *Errors*: numbers that no type holds exactly.
absl::StatusOr<std::shared_ptr<arrow::Table>> ReadCsv(const std::string& path, const std::vector<std::string>& columns);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FILES_READ_CSV_H_
