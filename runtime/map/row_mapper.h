// SPDX-License-Identifier: Apache-2.0
// A map: computes columns from the columns of a batch.
//
//     RowMapper mapper(descriptor, entry_points, GenericMapKernel(), GenericFilterKernel());
//     MapReader reader(mapper, budget);
//     reader.SetInput(batch);
//     while (reader.Next(&out).value()) ..         // out: up to out.capacity() rows, in the order of the batch
#ifndef QUERN_RUNTIME_MAP_ROW_MAPPER_H_
#define QUERN_RUNTIME_MAP_ROW_MAPPER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/abi/filter_abi.h"
#include "runtime/abi/map_abi.h"
#include "runtime/base/counters.h"
#include "runtime/base/memory.h"
#include "runtime/map/map_descriptor.h"
#include "runtime/map/map_run.h"
#include "runtime/map/string_values.h"
#include "runtime/rows/batch_view.h"
#include "runtime/rows/entry_slot.h"
#include "runtime/rows/output_batch.h"

namespace quern {

// *Threads*: any number may share one mapper, each with a reader of its own; between calls it keeps only counters.
class RowMapper {
 public:
  // generic: for batches whose decimals do not fit 64 bits. strings: runs the conditions on strings. code: keeps the
  // entry points' code alive; may be null if the code is permanent.
  RowMapper(std::shared_ptr<const MapDescriptor> descriptor, MapEntrySource entry_points,
            const QuernMapEntryPoints& generic, const QuernFilterEntryPoints& strings,
            std::shared_ptr<const void> code = nullptr)
      : descriptor_(std::move(descriptor)),
        entry_points_(std::move(entry_points)),
        generic_(generic),
        strings_(strings),
        code_(std::move(code)),
        counter_set_(entry_points_.NewCounters()),
        counters_(counter_set_) {}

  // *Threads*: any, at any time.
  Counters counters() const { return counter_set_->Sum(); }
  const MapDescriptor& descriptor() const { return *descriptor_; }

 private:
  friend class MapReader;

  // RunMap (map_run.h), counted.
  absl::StatusOr<MapEnd> Run(QuernMapArgs* args, StringReader* strings, uint64_t* wide_calls) const;

  std::shared_ptr<const MapDescriptor> descriptor_;
  MapEntrySource entry_points_;
  QuernMapEntryPoints generic_;
  QuernFilterEntryPoints strings_;
  std::shared_ptr<const void> code_;
  std::shared_ptr<CounterSet> counter_set_;
  ThreadCounters counters_;
};

// Computes the rows of one batch after the other. *Threads*: one.
class MapReader {
 public:
  MapReader(std::shared_ptr<const RowMapper> mapper, std::shared_ptr<MemoryBudget> budget)
      : mapper_(std::move(mapper)),
        budget_(std::move(budget)),
        strings_(mapper_->descriptor().string_values(), mapper_->strings_) {}

  // Starts on a batch. batch.keys are the spec's columns; batch.payload is ignored. With a selection its rows alone are
  // computed. The columns must stay valid until Next has returned false. *Errors*: InvalidArgument for a batch without
  // the spec's columns; ResourceExhausted.
  // first_row: what errors call the batch's row 0; nullopt: they name no row.
  absl::Status SetInput(BatchView batch, std::optional<uint64_t> first_row = 0);

  // Empties `out` and fills it with up to out->capacity() rows, or with fewer where 32-bit offsets of strings end.
  // Returns whether this input has more. *Errors*: InvalidArgument for an output batch of other columns; OutOfRange for
  // a row without a result, as spec'd by the functions (expression_functions.def): the rows of `out` are then lost;
  // ResourceExhausted. explains: whether that error names the row, its values and the cause; finding these takes some
  // microseconds.
  absl::StatusOr<bool> Next(OutputBatch* out, bool explains = true);

 private:
  std::shared_ptr<const RowMapper> mapper_;
  std::shared_ptr<MemoryBudget> budget_;
  StringReader strings_;
  HugeBuffer places_;
  BatchView input_;
  std::optional<uint64_t> first_row_ = 0;
  uint64_t next_row_ = 0;
  uint64_t wide_calls_ = 0;  // of RowMapper::Run
};

}  // namespace quern

#endif  // QUERN_RUNTIME_MAP_ROW_MAPPER_H_
