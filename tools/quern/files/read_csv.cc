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
#include <arrow/io/api.h>

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

arrow::csv::ConvertOptions ConvertingTo(const Names& columns) {
  arrow::csv::ConvertOptions options = arrow::csv::ConvertOptions::Defaults();
  options.null_values = {""};
  options.strings_can_be_null = true;
  options.quoted_strings_can_be_null = false;
  options.include_columns = columns;
  return options;
}

arrow::csv::ParseOptions ParseOptions() {
  arrow::csv::ParseOptions options = arrow::csv::ParseOptions::Defaults();
  options.newlines_in_values = true;
  return options;
}

// Types are those of the first block. Each reader has a file of its own, since this one may go on reading ahead.
arrow::Result<SchemaPointer> FirstSchema(const std::string& path, const Names& columns) {
  ARROW_ASSIGN_OR_RAISE(const auto file, BoundedFile::Open(path, arrow::default_memory_pool()));
  ARROW_ASSIGN_OR_RAISE(const auto reader, arrow::csv::StreamingReader::Make(arrow::io::default_io_context(), file,
                                                                             arrow::csv::ReadOptions::Defaults(),
                                                                             ParseOptions(), ConvertingTo(columns)));
  return reader->schema();
}

// `texts` are read as bytes. Arrow's CSV reader ends the process where a pool refuses memory for a parsed block. So it
// takes the default pool, and the file refuses the next block of 1 MiB once what that pool holds is over the budget.
arrow::Result<TablePointer> ReadTable(const std::string& path, const Names& columns, const Names& texts) {
  arrow::csv::ConvertOptions convert = ConvertingTo(columns);
  for (const std::string& name : texts) convert.column_types[name] = arrow::binary();
  ARROW_ASSIGN_OR_RAISE(const auto file, BoundedFile::Open(path, arrow::default_memory_pool()));
  ARROW_ASSIGN_OR_RAISE(const auto reader,
                        arrow::csv::TableReader::Make(arrow::io::default_io_context(), CountedFile(file),
                                                      arrow::csv::ReadOptions::Defaults(), ParseOptions(), convert));
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

}  // namespace

absl::StatusOr<SchemaPointer> CsvSchema(const std::string& path) {
  QUERN_ASSIGN_OR_RETURN_ARROW(SchemaPointer schema, FirstSchema(path, {}), CannotRead(path));
  return schema;
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
