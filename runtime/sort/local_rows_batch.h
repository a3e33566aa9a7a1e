// SPDX-License-Identifier: Apache-2.0
// Private to the implementation of LocalRows (local_rows.cc, local_rows_dictionary.cc, sort_top.cc).
#ifndef QUERN_RUNTIME_SORT_LOCAL_ROWS_BATCH_H_
#define QUERN_RUNTIME_SORT_LOCAL_ROWS_BATCH_H_

#include <memory>
#include <vector>

#include "runtime/base/refused_calls.h"
#include "runtime/sort/local_rows.h"

namespace quern {

// The memory to which chunks point.
struct LocalRows::Memory {
  Memory(const std::shared_ptr<MemoryBudget>& budget, bool huge_pages)
      : chunks(budget, huge_pages, Contents::kAnything), strings(budget, false, Contents::kAnything) {}
  HugeBuffer first;  // the first chunk while it grows
  Arena chunks;
  HugeBuffer first_row_ids;
  Arena strings;  // copied bytes of strings, under a limit
};

// Up to batch_rows rows of a batch.
struct LocalRows::Block {
  const BatchView* batch;
  const std::vector<QuernColumn>* fields;
  uint64_t first;        // the block's rows are rows[i], or first + i
  const uint32_t* rows;  // the rows are consecutive
  uint32_t n;
  uint64_t num_left;            // rows of the batch from the block's first one on, for which there should be room
  uint64_t first_row_id;        // of the batch's row 0
  const RefusedCalls* refused;  // of the batch
  uint64_t RowId(uint32_t i) const { return first_row_id + (rows != nullptr ? rows[i] : first + i); }
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_LOCAL_ROWS_BATCH_H_
