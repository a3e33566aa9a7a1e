// SPDX-License-Identifier: Apache-2.0
// Columns that are computed of the rows of one input: names resolved, types found, kernel compiled and run on batches.
// Every option that holds an expression goes this way.
#ifndef QUERN_TOOLS_FILES_ROW_MAP_H_
#define QUERN_TOOLS_FILES_ROW_MAP_H_

#include <arrow/type_fwd.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/kernel/kernel.h"
#include "runtime/base/memory.h"
#include "runtime/map/row_mapper.h"
#include "runtime/rows/arrow_import.h"
#include "runtime/spec/spec.h"
#include "tools/frontend/column_names.h"
#include "tools/frontend/expression_text.h"
#include "tools/frontend/expression_types.h"
#include "tools/quern/files/batches.h"
#include "tools/quern/files/input_columns.h"
#include "tools/quern/files/table_io.h"

namespace quern::cli {

// The same for the names of an expression as ResolveName of row_condition.h.
absl::Status ResolveNames(const TableInput& input, ExpressionText* text);
// The same for a key or an argument; a text that is the name of a column is that column, and no expression. *Errors*:
// also an unknown collation.
absl::Status ResolveColumn(const TableInput& input, KeyText* column);

// Expressions with types instead of names.
struct RowExpressions {
  MapSpec spec;
  ColumnBinding binding;                              // the places of $0, $1, .. in the kernel's table
  std::vector<ColumnType> keys;                       // their types
  std::vector<std::shared_ptr<arrow::Field>> fields;  // of the results
};

// Finds the types of expressions, one after the other.
class ExpressionPreparation {
 public:
  // *Ownership*: `columns` must outlive it.
  explicit ExpressionPreparation(InputColumns* columns) : columns_(columns) {}

  // option: holds the expression, for errors. Returns the number of the result; an expression that is there already
  // keeps its own. *Cost*: a pass over the bitmaps, and a cast of columns that are dictionaries. *Errors*: those of
  // TypedExpression.
  absl::StatusOr<size_t> Add(const std::string& option, const ExpressionText& text, const std::string& name);
  // The column as a kernel reads it, or the result of its expression, whose place is below 0 until FinishInput: -1, -2,
  // .. *Errors*: those of Add and of InputColumns::Add.
  absl::StatusOr<ReadColumn> Read(const std::string& option, const KeyText& column,
                                  const std::shared_ptr<arrow::DataType>& without_values);
  // The columns that an expression mentions become arguments.
  absl::Status AddColumns(const ExpressionText& text);
  const std::vector<ExpressionColumn>& arguments() const { return names_; }
  // An expression over these, likewise.
  absl::StatusOr<ReadColumn> ReadTyped(Expression expression, const std::string& name);
  size_t size() const { return expressions_.spec.results.size(); }
  size_t num_columns() const { return names_.size(); }
  // Forgets the results, and the columns of expressions, that were added when there were so many.
  void Truncate(size_t results, size_t columns);
  // A result whose $0, $1, .. are the columns of the kernel's table.
  Expression OverTable(size_t result) const;
  const ValueType& type(size_t result) const { return expressions_.spec.results[result].type; }
  const std::shared_ptr<arrow::Field>& field(size_t result) const { return expressions_.fields[result]; }
  // *Errors*: too many columns, or parts of expressions.
  absl::StatusOr<RowExpressions> Finish();

 private:
  absl::Status AddColumn(const std::string& name);
  absl::StatusOr<size_t> AddTyped(Expression expression, const std::string& name);

  InputColumns* columns_;
  std::vector<ExpressionColumn> names_;
  RowExpressions expressions_;
};

// The type that a column of the kernel's table has in expressions; nullopt: none.
std::optional<ValueType> ValueTypeOf(const ReadColumn& column);

// Two expressions, or columns, of two inputs that are compared, in the type that they have in common; places as those
// of ExpressionPreparation::Read. *Errors*: those of TypedComparison.
absl::StatusOr<std::array<ReadColumn, 2>> ReadSides(const std::string& option, const KeyText& left,
                                                    ExpressionPreparation* left_side, const KeyText& right,
                                                    ExpressionPreparation* right_side);

// Gives an input its table and its map, behind whose columns the results stand, and its computed columns their places.
// *Errors*: those of ExpressionPreparation::Finish.
absl::Status FinishInput(const InputColumns& columns, ExpressionPreparation* expressions, KernelInput* input);

// Expressions with their kernel. *Threads*: any.
class RowMap {
 public:
  explicit RowMap(RowExpressions expressions);

  const RowExpressions& expressions() const { return expressions_; }
  // One of both must be called once before Compute. The parameters of `options` are those of another kernel and left
  // out.
  absl::Status Compile(CompileOptions options);
  void Use(const std::shared_ptr<const Kernel>& kernel);

  // The results for all rows of a batch. first_row: the number of its first row in the input, for errors; nullopt:
  // rows were left out before. *Errors*: over the budget; OutOfRange for a row without a result.
  absl::StatusOr<RecordBatchPointer> Compute(const arrow::RecordBatch& batch,
                                             const std::shared_ptr<MemoryBudget>& budget,
                                             std::optional<uint64_t> first_row) const;

 private:
  RowExpressions expressions_;
  std::shared_ptr<arrow::Schema> schema_;
  std::shared_ptr<const RowMapper> mapper_;
};

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FILES_ROW_MAP_H_
