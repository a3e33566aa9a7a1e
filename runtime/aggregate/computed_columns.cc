// SPDX-License-Identifier: Apache-2.0
// The columns of a block stay in the cache until the accumulators read them.
#include "runtime/aggregate/computed_columns.h"

#include <utility>

#include "runtime/base/status.h"

namespace quern {

ComputedColumns::ComputedColumns(const MapDescriptor* map, const GenericMaps& generic,
                                 std::shared_ptr<MemoryBudget> budget)
    : map_(map),
      generic_(generic),
      budget_(std::move(budget)),
      strings_(map->string_values(), generic.strings),
      columns_(map->results().size()) {}

absl::Status ComputedColumns::Reserve() {
  if (results_ != nullptr) return absl::OkStatus();
  const uint64_t bytes = uint64_t{map_->get()->num_places} * kPieceLanes * sizeof(QuernLanes);
  QUERN_ASSIGN_OR_RETURN(places_, HugeBuffer::Allocate(budget_, bytes, /*huge_pages=*/false, Contents::kAnything));
  QUERN_RETURN_IF_ERROR(strings_.SetBatch(budget_));
  auto results = std::make_unique<OutputBatch>(map_->results(), kMaxBatchRows, budget_);
  QUERN_RETURN_IF_ERROR(results->Reset());
  results_ = std::move(results);
  return absl::OkStatus();
}

absl::Status ComputedColumns::Compute(const QuernAggregateEntryPoints& kernel, const QuernColumn* columns,
                                      uint64_t first, const uint32_t* selection, uint32_t n, uint64_t first_row_id) {
  QUERN_RETURN_IF_ERROR(Reserve());
  QUERN_RETURN_IF_ERROR(results_->Reset());
  QuernMapArgs args = {};
  args.descriptor = map_->get();
  args.columns = columns;
  args.selection = selection;
  args.first = first;
  args.num_rows = n;
  args.results = results_->columns();
  args.places = reinterpret_cast<QuernLanes*>(places_.data());
  QUERN_ASSIGN_OR_RETURN(const MapEnd end, RunMap({kernel.compute}, generic_.rows, &strings_, &args, &wide_calls_));
  if (end == MapEnd::kRowFailed) return FailedRow(*map_, generic_.rows, args, first_row_id, &strings_);
  has_nulls_ = false;
  for (size_t c = 0; c < columns_.size(); ++c) {
    const QuernOutColumn& result = results_->column(c);
    columns_[c] = {};
    columns_[c].validity = result.validity;
    columns_[c].values = result.values;
    has_nulls_ |= result.null_count != 0;
  }
  return absl::OkStatus();
}

}  // namespace quern
