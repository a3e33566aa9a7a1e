// SPDX-License-Identifier: Apache-2.0
// A condition on the rows of one input: its names resolved, its columns typed, its kernel compiled and run on batches.
// Every option that holds a condition goes this way.
#ifndef QUERN_TOOLS_FILES_ROW_CONDITION_H_
#define QUERN_TOOLS_FILES_ROW_CONDITION_H_

#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/kernel/kernel.h"
#include "runtime/filter/row_filter.h"
#include "runtime/rows/arrow_import.h"
#include "runtime/spec/spec.h"
#include "tools/frontend/condition_text.h"
#include "tools/frontend/where_text.h"
#include "tools/quern/files/input_columns.h"
#include "tools/quern/files/row_map.h"
#include "tools/quern/files/table_io.h"

namespace quern::cli {

// Replaces a name by the file's: one that no column has stands for the one that differs only in case. *Errors*: unknown
// and ambiguous names.
absl::Status ResolveName(const TableInput& input, std::string* name);
// The same for the columns of another table; what: names it in errors.
absl::Status ResolveName(const std::string& what, const std::vector<std::string>& names, std::string* name);
// The same for all names of a condition.
absl::Status ResolveNames(const TableInput& input, WhereText* where);
// The same; a term that may be read in two ways is then read in one.
absl::Status ResolveNames(const TableInput& input, ConditionText* condition);

// A condition with types instead of names: comparisons that all hold, and expressions that are true of such rows.
struct RowCondition {
  std::optional<FilterSpec> spec;            // nullopt: no comparisons
  ColumnBinding binding;                     // one key for each mention: the column's place in the kernel's table
  std::vector<ColumnType> keys;              // likewise
  std::shared_ptr<RowMap> expressions = {};  // one result, a bool; nullptr: none

  // Of its kernels, in the order in which they run.
  std::vector<KernelSpec> specs() const;
  // The places of all columns that it reads.
  std::vector<int> columns() const;
};

// Finds the types and reads the constants; `option` holds the condition, for errors. A column is nullable in the spec
// if nulls were read. *Cost*: casts if two columns of different types are compared, and a pass over the bitmaps.
// *Errors*: types that have no comparison, constants that are not of their column's type.
absl::StatusOr<RowCondition> PrepareCondition(const std::string& option, const WhereText& where, InputColumns* columns);
// The same, of a condition whose names are resolved. *Errors*: also those of expressions, and one that is no bool.
absl::StatusOr<RowCondition> PrepareCondition(const std::string& option, const ConditionText& condition,
                                              InputColumns* columns);

// A condition with its kernels. *Threads*: any. *Errors* of its functions: OutOfRange for a row of which an expression
// has no result, as by an overflow; those for which a comparison does not hold have none.
class RowTest {
 public:
  explicit RowTest(RowCondition condition) : condition_(std::move(condition)) {}

  const RowCondition& condition() const { return condition_; }
  // Must be called once before the others. The parameters of `options` are those of another kernel and left out.
  absl::Status Compile(CompileOptions options);

  // Writes the numbers of the rows for which the condition holds, in order; there must be room for all rows of the
  // batch. Returns how many they are.
  absl::StatusOr<uint64_t> Select(const arrow::RecordBatch& batch, uint32_t* rows) const;
  // How many they are.
  absl::StatusOr<uint64_t> Count(const arrow::RecordBatch& batch) const;
  // These rows as a batch: `batch` itself where they are all, else copies of these columns; the others are then nulls.
  absl::StatusOr<std::shared_ptr<arrow::RecordBatch>> Rows(const std::shared_ptr<arrow::RecordBatch>& batch,
                                                           const std::vector<int>& columns) const;
  // A bool for each row, without nulls: whether the condition holds.
  absl::StatusOr<std::shared_ptr<arrow::Array>> Bits(const arrow::RecordBatch& batch) const;

 private:
  // The rows for which the comparisons hold, and those for which the expression is true, too.
  absl::StatusOr<std::shared_ptr<arrow::Array>> Compared(const arrow::RecordBatch& batch) const;
  absl::StatusOr<std::shared_ptr<arrow::Array>> Computed(const arrow::RecordBatch& batch,
                                                         const std::shared_ptr<arrow::Array>& compared) const;

  RowCondition condition_;
  std::shared_ptr<const RowFilter> filter_;  // null: no comparisons
};

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FILES_ROW_CONDITION_H_
