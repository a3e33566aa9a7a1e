// SPDX-License-Identifier: Apache-2.0
// Between Arrow tables and kernels: a table divided into batches, a batch as input of a kernel, output of a kernel as a
// batch.
#ifndef QUERN_TOOLS_FILES_BATCHES_H_
#define QUERN_TOOLS_FILES_BATCHES_H_

#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/kernel/kernel.h"
#include "runtime/base/thresholds.h"
#include "runtime/rows/arrow_import.h"
#include "runtime/rows/batch_view.h"
#include "runtime/rows/output_batch.h"
#include "runtime/spec/column_type.h"

namespace quern::cli {

constexpr int64_t kBatchRows = thresholds::kMorselRows;
constexpr uint64_t kOutputRows = 1 << 16;

using RecordBatchPointer = std::shared_ptr<arrow::RecordBatch>;

class RowMap;
class RowTest;

// One input as its kernel needs it: the columns it reads, with exactly the spec's types.
struct KernelInput {
  std::shared_ptr<arrow::Table> table;
  ColumnBinding binding;
  std::vector<ColumnType> keys;
  std::vector<ColumnType> payload;  // as in the binding
  std::shared_ptr<RowTest> where;   // the rows that take part; nullptr: all
  // Columns that are computed of each batch, at the places behind the table's columns, of the rows alone that take
  // part. Their memory is not counted: a batch of each thread has it. nullptr: none.
  std::shared_ptr<RowMap> map = nullptr;
  // Bool columns that are made of each batch, at the places behind these.
  std::vector<std::shared_ptr<RowTest>> made_columns = {};
};

// The specs of its expressions, in the order in which they are computed.
std::vector<KernelSpec> InputSpecs(const KernelInput& input);
// Compiles the conditions and expressions of an input, before its batches are read.
absl::Status CompileConditions(const CompileOptions& options, const KernelInput& input);

// Up to kBatchRows rows each, in the table's order. *Cost*: no row is copied.
absl::StatusOr<std::vector<RecordBatchPointer>> CutIntoBatches(const std::shared_ptr<arrow::Table>& table);

absl::StatusOr<BatchView> ViewOf(const arrow::RecordBatch& batch, const ColumnBinding& binding,
                                 const std::vector<ColumnType>& keys, const std::vector<ColumnType>& payload);
absl::StatusOr<BatchView> ViewOf(const arrow::RecordBatch& batch, const KernelInput& input);

// One input in batches, for operators that may depend on the order of its rows: each batch has the number of its first
// row. *Threads*: any, once it is divided.
class InputBatches {
 public:
  // first_row: the number of the table's first row. *Ownership*: `input` must outlive it.
  static absl::StatusOr<InputBatches> Cut(const KernelInput& input, uint64_t first_row = 0);

  size_t size() const { return batches_.size(); }
  uint64_t num_rows(size_t i) const;
  uint64_t num_rows() const { return num_rows_; }

  // The batch with the rows that the input's condition keeps. Their numbers are written to `selection`, which must
  // outlive the view; nullptr: there is no condition.
  absl::StatusOr<BatchView> View(size_t i, std::vector<uint32_t>* selection) const;

 private:
  explicit InputBatches(const KernelInput& input) : input_(&input) {}

  const KernelInput* input_;
  std::vector<RecordBatchPointer> batches_;
  std::vector<uint64_t> first_rows_;
  uint64_t num_rows_ = 0;
};

// Moves the rows out. An output batch has memory for its full capacity of rows; a batch with few rows would hold all of
// it until the end (92 batches with 100 rows each: 92 x 64 Ki rows), so a batch that is less than a quarter full is
// copied into buffers of its own size.
absl::StatusOr<RecordBatchPointer> TakeRows(const std::shared_ptr<arrow::Schema>& schema, OutputBatch* out);

// One table of all results, in order; its columns are batches, no row is copied.
absl::StatusOr<std::shared_ptr<arrow::Table>> TableOf(const std::shared_ptr<arrow::Schema>& schema,
                                                      const std::vector<std::vector<RecordBatchPointer>>& results);
// The same with the columns in another order: column i is the results' column order[i].
absl::StatusOr<std::shared_ptr<arrow::Table>> TableOf(const std::shared_ptr<arrow::Schema>& schema,
                                                      const std::vector<std::vector<RecordBatchPointer>>& results,
                                                      const std::vector<int>& order);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FILES_BATCHES_H_
