// SPDX-License-Identifier: Apache-2.0
// A kernel reads columns by their positions in a table that is made for it: each column once, however often it is used,
// unless two uses need two types. For `aggregate --by k --agg sum(x),avg(x)` over k,x and 14 more columns:
//
//     Add("k", i64) -> 0    Add("x", f64) -> 1    Add("x", f64) -> 1          the kernel's table has the columns k, x
//
// For a join whose other side has an i64, Add("k", i64) beside Add("k", i32) gives two columns: the key is cast, and
// the result has the file's own type. Casts are exact or end the run, so two different values never become equal.
#include "tools/quern/files/input_columns.h"

#include <arrow/api.h>
#include <arrow/compute/api.h>

#include <algorithm>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/collation/collation.h"
#include "tools/frontend/errors.h"
#include "tools/quern/files/key_types.h"
#include "tools/quern/files/reading_memory.h"
#include "tools/quern/files/table_io.h"

namespace quern::cli {

std::string ColumnText(const std::string& what, const std::string& name) {
  return "column " + QuoteName(name) + " of " + what;
}

absl::Status CheckColumn(const std::vector<std::string>& names, const std::string& what, const std::string& name) {
  const int64_t found = std::count(names.begin(), names.end(), name);
  if (found == 1) return absl::OkStatus();
  if (found > 1) return DataError("two columns of one name in " + what + ": " + QuoteName(name) + "; accepted: one");
  if (names.empty())
    return CommandError("unknown column of " + what + ": " + QuoteName(name) +
                        "; accepted: none, as it has no columns");
  std::vector<std::string> accepted;
  for (const std::string& column : names) accepted.push_back(QuoteName(column));
  return CommandError(UnknownWord("column of " + what, QuoteName(name), accepted));
}

absl::StatusOr<Collation> CollationByName(const std::string& name) {
  if (name.empty()) return kCollationBinary;
  absl::StatusOr<Collation> collation = CollationNamed(name);
  if (!collation.ok()) return CommandError(std::string(collation.status().message()));
  return collation;
}

absl::Status SetCollation(Collation collation, const std::string& column, const arrow::DataType& arrow,
                          ColumnType* type) {
  if (collation != kCollationBinary && !IsVariable(RowOf(type->id).storage)) {
    return CommandError("collation on a column without text: " + column + " is " + arrow.ToString() +
                        "; accepted: utf8 columns");
  }
  type->collation = collation;
  return absl::OkStatus();
}

bool HasNulls(const arrow::ChunkedArray& column) {
  if (column.null_count() > 0) return true;
  if (column.type()->id() != arrow::Type::DICTIONARY) return false;
  return std::any_of(column.chunks().begin(), column.chunks().end(), [](const std::shared_ptr<arrow::Array>& chunk) {
    return static_cast<const arrow::DictionaryArray&>(*chunk).dictionary()->null_count() > 0;
  });
}

absl::StatusOr<std::shared_ptr<arrow::ChunkedArray>> CastColumn(std::shared_ptr<arrow::ChunkedArray> column,
                                                                const std::shared_ptr<arrow::DataType>& type,
                                                                const std::string& text) {
  if (column->type()->Equals(type)) return column;
  const auto decoded = DecodedType(column->type());
  if (!decoded->Equals(column->type()) &&
      !decoded->Equals(type)) {  // Arrow casts a dictionary to its values' type only
    QUERN_ASSIGN_OR_RETURN(column, CastColumn(column, decoded, text));
  }
  arrow::compute::ExecContext context(ReadingPool());
  QUERN_ASSIGN_OR_RETURN_ARROW(const arrow::Datum cast,
                               arrow::compute::Cast(column, type, arrow::compute::CastOptions::Safe(), &context),
                               "cannot make " + type->ToString() + " of " + text + ": " + column->type()->ToString());
  return cast.chunked_array();
}

InputColumns::InputColumns(std::string what, std::shared_ptr<arrow::Table> table)
    : what_(std::move(what)), table_(std::move(table)) {}
InputColumns::~InputColumns() = default;

std::shared_ptr<arrow::ChunkedArray> InputColumns::Find(const std::string& name) const {
  return table_->GetColumnByName(name);
}

absl::StatusOr<int> InputColumns::Add(const std::string& name, const std::shared_ptr<arrow::DataType>& type) {
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (fields_[i]->name() == name && fields_[i]->type()->Equals(type)) return static_cast<int>(i);
  }
  QUERN_ASSIGN_OR_RETURN(auto column, CastColumn(Find(name), type, Text(name)));
  return Append(name, std::move(column));
}

absl::StatusOr<ReadColumn> InputColumns::Add(const KeyText& column,
                                             const std::shared_ptr<arrow::DataType>& without_values) {
  const auto values = Find(column.name);
  ReadColumn read;
  read.arrow = values->type()->id() == arrow::Type::NA ? without_values : values->type();
  QUERN_ASSIGN_OR_RETURN(read.type, KernelType(Text(column.name), *read.arrow));
  QUERN_ASSIGN_OR_RETURN(const Collation collation, CollationByName(column.collation));
  QUERN_RETURN_IF_ERROR(SetCollation(collation, Text(column.name), *values->type(), &read.type));
  read.type.nullable = HasNulls(*values);
  QUERN_ASSIGN_OR_RETURN(read.place, Add(column.name, read.arrow));
  return read;
}

int InputColumns::Append(const std::string& name, std::shared_ptr<arrow::ChunkedArray> column) {
  fields_.push_back(arrow::field(name, column->type()));
  columns_.push_back(std::move(column));
  return static_cast<int>(fields_.size()) - 1;
}

std::shared_ptr<arrow::Table> InputColumns::Finish() const {
  return arrow::Table::Make(arrow::schema(fields_), columns_, table_->num_rows());
}

}  // namespace quern::cli
