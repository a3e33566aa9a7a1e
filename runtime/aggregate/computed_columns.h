// SPDX-License-Identifier: Apache-2.0
// Arguments of aggregates that are expressions, as columns: for blocks of rows whose values update_lanes does not
// compute on the way.
#ifndef QUERN_RUNTIME_AGGREGATE_COMPUTED_COLUMNS_H_
#define QUERN_RUNTIME_AGGREGATE_COMPUTED_COLUMNS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "runtime/abi/aggregate_abi.h"
#include "runtime/base/memory.h"
#include "runtime/map/map_descriptor.h"
#include "runtime/map/map_run.h"
#include "runtime/map/string_values.h"
#include "runtime/rows/output_batch.h"

namespace quern {

// *Threads*: one.
class ComputedColumns {
 public:
  // *Ownership*: `map` must outlive it.
  ComputedColumns(const MapDescriptor* map, const GenericMaps& generic, std::shared_ptr<MemoryBudget> budget);

  // Takes the memory of a block; later calls take none. *Errors*: ResourceExhausted.
  absl::Status Reserve();
  // Computes n rows, first, first + 1, .. of the batch's columns or those that the selection names. Row i of columns()
  // is the i-th of them, until the next call. first_row_id: of the batch's row 0, for errors. *Errors*: OutOfRange for
  // a row without a result; ResourceExhausted for a collation's keys.
  absl::Status Compute(const QuernAggregateEntryPoints& kernel, const QuernColumn* columns, uint64_t first,
                       const uint32_t* selection, uint32_t n, uint64_t first_row_id);
  const QuernColumn* columns() const { return columns_.data(); }
  // Whether a result of the last call is null.
  bool has_nulls() const { return has_nulls_; }

 private:
  const MapDescriptor* map_;
  const GenericMaps generic_;
  const std::shared_ptr<MemoryBudget> budget_;
  StringReader strings_;
  HugeBuffer places_;
  std::unique_ptr<OutputBatch> results_;
  std::vector<QuernColumn> columns_;
  bool has_nulls_ = false;
  uint64_t wide_calls_ = 0;  // of RunMap
};

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_COMPUTED_COLUMNS_H_
