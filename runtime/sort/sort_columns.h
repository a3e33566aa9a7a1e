// SPDX-License-Identifier: Apache-2.0
// Writes sorted rows to the columns of a result.
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

// Rows in result order. Members that no column of the descriptor needs may be null.
struct SortedBlock {
  uint32_t n = 0;  // up to kMaxBatchRows
  const uint64_t* const* words =
      nullptr;  // words[w][i]: word w of row i; only words of keys that are decoded from them are read
  const uint64_t* tuples = nullptr;  // addresses
  const uint64_t* row_ids = nullptr;
  const uint64_t* row_numbers = nullptr;
  const uint64_t* ranks = nullptr;
  const uint64_t* dense_ranks = nullptr;
  // Where rows have no tuples because words hold all fields: each key's strings by rank; the ranks are in the words.
  const blocks::Bytes* const* ranked = nullptr;
};

// *Threads*: one.
class SortColumnWriter {
 public:
  SortColumnWriter(std::shared_ptr<const SortDescriptor> descriptor, SortEntrySource entry_points);

  // Appends the block's rows to `out`, whose columns are SortOutputTypes(spec), from row out->num_rows() on, and counts
  // them there. Returns how many fit: fewer than n if the batch is full or a string column's offsets end. A batch
  // without columns counts.
  // *Cost*: a random line a row where tuples have fields, unless the caller has prefetched it.
  // *Errors*: ResourceExhausted, also where one value does not fit.
  absl::StatusOr<uint32_t> Append(const SortedBlock& block, OutputBatch* out);

 private:
  absl::StatusOr<uint32_t> AppendRanked(const SortedBlock& block, uint32_t n, OutputBatch* out);
  absl::StatusOr<uint32_t> AppendFields(const SortedBlock& block, uint32_t n, OutputBatch* out);
  void AppendWords(uint32_t key, const SortedBlock& block, uint32_t n, QuernOutColumn* out, uint64_t out_row) const;

  std::shared_ptr<const SortDescriptor> descriptor_;
  SortEntrySource entry_points_;
  std::vector<QuernOutColumn> fields_;  // result columns that are fields, contiguous as kernels expect them
  std::vector<size_t> field_columns_;   // their positions in the result
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_SORT_COLUMNS_H_
