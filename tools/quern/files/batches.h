// SPDX-License-Identifier: Apache-2.0
// Between Arrow tables and kernels: a table cut into batches, a batch as a kernel sees it, a kernel's rows as a batch.
#ifndef QUERN_TOOLS_FILES_BATCHES_H_
#define QUERN_TOOLS_FILES_BATCHES_H_

#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/thresholds.h"
#include "runtime/rows/arrow_import.h"
#include "runtime/rows/batch_view.h"
#include "runtime/rows/output_batch.h"
#include "runtime/spec/column_type.h"

namespace quern::cli {

constexpr int64_t kBatchRows = thresholds::kMorselRows;
constexpr uint64_t kOutputRows = 1 << 16;

using RecordBatchPointer = std::shared_ptr<arrow::RecordBatch>;

// One input as its kernel wants it: the columns it reads, all of the spec's types.
struct KernelInput {
  std::shared_ptr<arrow::Table> table;
  ColumnBinding binding;
  std::vector<ColumnType> keys;
  std::vector<ColumnType> payload;  // as in the binding
  std::optional<int> filter;        // the table's bool column whose true rows take part; of no interest to the kernel
};

// Up to kBatchRows rows each, in the table's order. *Cost*: no row is copied.
absl::StatusOr<std::vector<RecordBatchPointer>> CutIntoBatches(const std::shared_ptr<arrow::Table>& table);

absl::StatusOr<BatchView> ViewOf(const arrow::RecordBatch& batch, const KernelInput& input);

// One input in batches, for operators to which the order of its rows may matter: each batch knows the number of its
// first row. *Threads*: any, once it is cut.
class InputBatches {
 public:
  // *Ownership*: `input` must outlive it.
  static absl::StatusOr<InputBatches> Cut(const KernelInput& input);

  size_t size() const { return batches_.size(); }
  uint64_t num_rows(size_t i) const;
  uint64_t num_rows() const { return num_rows_; }

  // With the rows that the input's filter keeps. They are written to `selection`, which must outlive the view.
  absl::StatusOr<BatchView> View(size_t i, std::vector<uint32_t>* selection) const;

 private:
  explicit InputBatches(const KernelInput& input) : input_(&input) {}

  const KernelInput* input_;
  std::vector<RecordBatchPointer> batches_;
  std::vector<uint64_t> first_rows_;
  uint64_t num_rows_ = 0;
};

// Moves the rows out. An output batch takes memory for its capacity of rows; one that came back with few would hold all
// of it until the end (of 92 batches with 100 rows each, 92 x 64 Ki rows), so one that is less than a quarter full is
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
