// SPDX-License-Identifier: Apache-2.0
// Sorted rows to columns of a result.
#ifndef QUERN_RUNTIME_SORT_SORT_COLUMNS_H_
#define QUERN_RUNTIME_SORT_SORT_COLUMNS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/blocks/blocks.h"
#include "runtime/rows/entry_slot.h"
#include "runtime/rows/output_batch.h"
#include "runtime/sort/sort_descriptor.h"

namespace quern {

// Rows in the order in which they come out; what no column of the descriptor is made of may be null.
struct SortedBlock {
  uint32_t n = 0;  // up to kMaxBatchRows
  const uint64_t* const* words =
      nullptr;  // words[w][i]: word w of row i; only the words of keys that come out of them are read
  const uint64_t* tuples = nullptr;  // addresses
  const uint64_t* row_ids = nullptr;
  const uint64_t* row_numbers = nullptr;
  const uint64_t* ranks = nullptr;
  const uint64_t* dense_ranks = nullptr;
  // Where rows have no tuples, but words say all fields: the strings of each key by their ranks, which are in the
  // words.
  const blocks::Bytes* const* ranked = nullptr;
};

// *Threads*: one.
class SortColumnWriter {
 public:
  SortColumnWriter(std::shared_ptr<const SortDescriptor> descriptor, SortEntrySource entry_points);

  // Appends the block's rows to `out`, whose columns are SortOutputTypes(spec), from row out->num_rows() on, and counts
  // them there; answers how many fit: fewer than n where the batch is full, or a string column's offsets end. A batch
  // without columns counts. *Cost*: a random line a row where tuples have fields; who prefetched them has them.
  // *Errors*: ResourceExhausted, also where one value does not fit.
  absl::StatusOr<uint32_t> Append(const SortedBlock& block, OutputBatch* out);

 private:
  absl::StatusOr<uint32_t> AppendRanked(const SortedBlock& block, uint32_t n, OutputBatch* out);
  absl::StatusOr<uint32_t> AppendFields(const SortedBlock& block, uint32_t n, OutputBatch* out);
  void AppendWords(uint32_t key, const SortedBlock& block, uint32_t n, QuernOutColumn* out, uint64_t out_row) const;

  std::shared_ptr<const SortDescriptor> descriptor_;
  SortEntrySource entry_points_;
  std::vector<QuernOutColumn> fields_;  // those of the result that are fields, side by side as kernels want them
  std::vector<size_t> field_columns_;   // and their place in the result
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_SORT_COLUMNS_H_
