// SPDX-License-Identifier: Apache-2.0
// A filter: finds the rows of a batch for which a condition holds.
//
//     RowFilter filter(descriptor, entry_points);
//     uint64_t passed = filter.Select(batch, rows).value();    // rows[0] .. rows[passed-1], ascending
//
// *Threads*: any number may call one filter at the same time; between calls it keeps only counters.
#ifndef QUERN_RUNTIME_FILTER_ROW_FILTER_H_
#define QUERN_RUNTIME_FILTER_ROW_FILTER_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/abi/filter_abi.h"
#include "runtime/base/counters.h"
#include "runtime/filter/filter_descriptor.h"
#include "runtime/rows/batch_view.h"
#include "runtime/rows/entry_slot.h"

namespace quern {

class RowFilter {
 public:
  // code: keeps the entry points' code alive; may be null if the code is permanent.
  RowFilter(std::shared_ptr<const FilterDescriptor> descriptor, FilterEntrySource entry_points,
            std::shared_ptr<const void> code = nullptr)
      : descriptor_(std::move(descriptor)),
        entry_points_(std::move(entry_points)),
        code_(std::move(code)),
        counter_set_(entry_points_.NewCounters()),
        counters_(counter_set_) {}

  // batch.keys are the condition's columns (ColumnsOf); batch.payload is ignored. With a selection only its rows are
  // tested.
  //
  // Writes the numbers of the rows that pass, in the order of the batch (or of its selection), and returns how many;
  // `rows` must have room for batch.num_rows. *Errors*: InvalidArgument for a batch without the spec's columns.
  absl::StatusOr<uint64_t> Select(const BatchView& batch, uint32_t* rows) const;
  // Bit i%8 of byte i/8: whether row i (or row i of the selection) passes; (batch.num_rows + 7) / 8 bytes, bits beyond
  // the last row are 0.
  absl::StatusOr<uint64_t> Mask(const BatchView& batch, uint8_t* bitmap) const;
  // How many rows pass.
  absl::StatusOr<uint64_t> Count(const BatchView& batch) const;

  // *Threads*: any, at any time.
  Counters counters() const { return counter_set_->Sum(); }
  const FilterDescriptor& descriptor() const { return *descriptor_; }

 private:
  // Writes the batch's mask, (batch.num_rows + 63) / 64 words.
  absl::StatusOr<uint64_t> Run(const BatchView& batch, uint64_t* mask) const;

  std::shared_ptr<const FilterDescriptor> descriptor_;
  FilterEntrySource entry_points_;
  std::shared_ptr<const void> code_;
  std::shared_ptr<CounterSet> counter_set_;
  ThreadCounters counters_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_FILTER_ROW_FILTER_H_
