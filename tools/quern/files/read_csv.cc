// SPDX-License-Identifier: Apache-2.0
// CSV follows DuckDB where readers disagree: an empty field is null, "" in quotes is an empty string, a header row is
// required, types come from the values. A column of a CSV file without values has type null; it takes the type of the
// same column in another file.
//
// Arrow finds the types, trying one after the other: i64, bool, date, time, timestamp, f64, text. All but f64 hold what
// they read exactly, and text holds whatever they refuse (a date of year 12024, a fraction of a second with ten
// digits). Columns that the first block of the file shows to be f64 are read as texts and made numbers in
// csv_numbers.cc; for a column that shows it later, as one of ids of which the millionth is above 2^63, the file is
// read once more.
#include "tools/quern/files/read_csv.h"

#include <arrow/api.h>
#include <arrow/csv/api.h>
#include <arrow/csv/parser.h>
#include <arrow/io/api.h>
#include <arrow/util/utf8.h>

#include <string_view>
#include <utility>

#include "runtime/base/status.h"
#include "tools/quern/files/bounded_file.h"
#include "tools/quern/files/csv_numbers.h"
#include "tools/quern/files/input_columns.h"
#include "tools/quern/files/reading_memory.h"
#include "tools/quern/files/table_io.h"

namespace quern::cli {
namespace {

using SchemaPointer = std::shared_ptr<arrow::Schema>;
using TablePointer = std::shared_ptr<arrow::Table>;
using Names = std::vector<std::string>;

// Types are those of the first block. Each reader has a file of its own, since this one may go on reading ahead.
arrow::Result<SchemaPointer> FirstSchema(const std::string& path, const Names& columns) {
  ARROW_ASSIGN_OR_RAISE(const auto file, BoundedFile::Open(path, arrow::default_memory_pool()));
  ARROW_ASSIGN_OR_RAISE(
      const auto reader,
      arrow::csv::StreamingReader::Make(arrow::io::default_io_context(), file, arrow::csv::ReadOptions::Defaults(),
                                        CsvParseOptions(), CsvConvertOptions(columns)));
  return reader->schema();
}

// `texts` are read as bytes. Arrow's CSV reader ends the process where a pool refuses memory for a parsed block. So it
// takes the default pool, and the file refuses the next block of 1 MiB once what that pool holds is over the budget.
arrow::Result<TablePointer> ReadTable(const std::string& path, const Names& columns, const Names& texts) {
  arrow::csv::ConvertOptions convert = CsvConvertOptions(columns);
  for (const std::string& name : texts) convert.column_types[name] = arrow::binary();
  ARROW_ASSIGN_OR_RAISE(const auto file, BoundedFile::Open(path, arrow::default_memory_pool()));
  ARROW_ASSIGN_OR_RAISE(const auto reader,
                        arrow::csv::TableReader::Make(arrow::io::default_io_context(), CountedFile(file),
                                                      arrow::csv::ReadOptions::Defaults(), CsvParseOptions(), convert));
  return reader->Read();
}

Names FloatColumns(const arrow::Schema& schema) {
  Names names;
  for (const auto& field : schema.fields())
    if (field->type()->id() == arrow::Type::DOUBLE) names.push_back(field->name());
  return names;
}

// Replaces the columns by those of `texts` that have their names, as numbers.
absl::Status ReplaceByNumbers(const Names& names, const TablePointer& texts, const std::string& path,
                              TablePointer* table) {
  for (const std::string& name : names) {
    const std::string what = ColumnText(path, name);
    QUERN_ASSIGN_OR_RETURN(const auto numbers, ColumnOfTexts(texts->GetColumnByName(name), what));
    const int place = (*table)->schema()->GetFieldIndex(name);
    QUERN_ASSIGN_OR_RETURN_ARROW(*table, (*table)->SetColumn(place, arrow::field(name, numbers->type()), numbers),
                                 "cannot read " + what);
  }
  return absl::OkStatus();
}

// With the errors of Arrow's readers. Their parser ends the process where a pool refuses memory, as said above.
arrow::Result<CsvHeader> HeaderOf(const std::string& path) {
  arrow::MemoryPool* const pool = arrow::default_memory_pool();
  ARROW_ASSIGN_OR_RAISE(const auto file, BoundedFile::Open(path, pool));
  ARROW_ASSIGN_OR_RAISE(const auto block, file->ReadAt(0, kCsvBlockBytes));
  if (block->size() == 0) return arrow::Status::Invalid("Empty CSV file");
  ARROW_ASSIGN_OR_RAISE(const uint8_t* const text, arrow::util::SkipUTF8BOM(block->data(), block->size()));
  const int64_t begin = text - block->data();
  if (begin == block->size()) return arrow::Status::Invalid("Empty CSV file");
  arrow::csv::BlockParser parser(pool, CsvParseOptions(), /*num_cols=*/-1, /*first_row=*/-1,
                                 /*max_num_rows=*/1);
  uint32_t bytes = 0;
  ARROW_RETURN_NOT_OK(parser.Parse(std::string_view(*block).substr(static_cast<size_t>(begin)), &bytes));
  if (parser.num_rows() != 1) {
    return arrow::Status::Invalid(
        "Could not read first row from CSV file, either file is too short or header is larger than block size");
  }
  CsvHeader header = {{}, begin + bytes};
  ARROW_RETURN_NOT_OK(parser.VisitLastRow([&header](const uint8_t* data, uint32_t size, bool /*quoted*/, bool) {
    header.names.emplace_back(reinterpret_cast<const char*>(data), size);
    return arrow::Status::OK();
  }));
  return header;
}

}  // namespace

arrow::csv::ParseOptions CsvParseOptions() {
  arrow::csv::ParseOptions options = arrow::csv::ParseOptions::Defaults();
  options.newlines_in_values = true;
  return options;
}

arrow::csv::ConvertOptions CsvConvertOptions(const Names& columns) {
  arrow::csv::ConvertOptions options = arrow::csv::ConvertOptions::Defaults();
  options.null_values = {""};
  options.strings_can_be_null = true;
  options.quoted_strings_can_be_null = false;
  options.include_columns = columns;
  return options;
}

absl::StatusOr<CsvHeader> ReadCsvHeader(const std::string& path) {
  QUERN_ASSIGN_OR_RETURN_ARROW(CsvHeader header, HeaderOf(path), CannotRead(path));
  return header;
}

absl::StatusOr<TablePointer> ReadCsv(const std::string& path, const Names& columns) {
  QUERN_ASSIGN_OR_RETURN_ARROW(const SchemaPointer schema, FirstSchema(path, columns), CannotRead(path));
  const Names texts = FloatColumns(*schema);
  QUERN_ASSIGN_OR_RETURN_ARROW(TablePointer table, ReadTable(path, columns, texts), CannotRead(path));
  const Names late = FloatColumns(*table->schema());
  QUERN_RETURN_IF_ERROR(ReplaceByNumbers(texts, TablePointer(table), path, &table));
  if (late.empty()) return table;
  QUERN_ASSIGN_OR_RETURN_ARROW(const TablePointer again, ReadTable(path, late, late), CannotRead(path));
  QUERN_RETURN_IF_ERROR(ReplaceByNumbers(late, again, path, &table));
  return table;
}

}  // namespace quern::cli
