// SPDX-License-Identifier: Apache-2.0
// The state of one sort: append batches, finalise, read sorted rows. RowSort owns the memory and the order of the
// stages. A kernel (generic or compiled), called through QuernSortEntryPoints, does what depends on the spec; sorting
// the prefixes depends on no spec (prefix_sort.h).
//
//     RowSort sort(descriptor, entry points, code, budget, options);
//     sort.Append(...)*  ->  sort.Finalise()  ->  SortReader: Next(...)*
//
// A sort is a sink (runtime/sink/sink.h).
#ifndef QUERN_RUNTIME_SORT_ROW_SORT_H_
#define QUERN_RUNTIME_SORT_ROW_SORT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/counters.h"
#include "runtime/base/memory.h"
#include "runtime/rows/batch_view.h"
#include "runtime/rows/entry_slot.h"
#include "runtime/rows/output_batch.h"
#include "runtime/sink/sink.h"
#include "runtime/sort/sort_descriptor.h"
#include "runtime/sort/sort_options.h"

namespace quern {

struct SortStats {
  uint64_t input_rows = 0;
  uint64_t num_rows = 0;            // of the result, after Finalise
  uint64_t dropped_rows = 0;        // rows that a limit or threshold dropped as they arrived
  uint64_t entry_bytes = 0;         // of a sort-key prefix, after Finalise
  uint32_t key_bits = 0;            // bits of the key words that vary
  uint64_t collided_rows = 0;       // rows whose prefixes collided
  uint64_t stored_bytes = 0;        // of the sorted rows, without long strings; decides the prefetch settings
  const char* prefetch_class = "";  // after Finalise: "group", or "off" where the plan does not prefetch
  const char* method = "";  // how prefixes were sorted: "none", "sorted", "reversed", "nearly_sorted", "insertion",
                            // "vector", "radix", "comparison"; where rows were spilled, "distributed" or
                            // "merged"
};

class SortedRows;
class SpilledSort;
class SortThreshold;
struct SortContext;

class RowSort final : public Sink {
 public:
  // *Ownership*: `code` keeps the kernel's machine code alive.
  // *Errors*: none; memory is allocated later.
  RowSort(std::shared_ptr<const SortDescriptor> descriptor, SortEntrySource entry_points,
          const QuernSortEntryPoints& generic, std::shared_ptr<const void> code, std::shared_ptr<MemoryBudget> budget,
          const SortOptions& options);
  ~RowSort() override;

  // A batch has keys and payload as the spec lists them (a rowid among the payload has a column without data). Values
  // of fixed width are copied. The bytes of strings above 12 bytes stay where they are until the sort and its readers
  // are gone (`owner` keeps them alive), except in a sort with a limit, which copies those of the rows that it keeps.
  // *Cost* of Append: a few ns a key; of finalising: 5 to 30 ns a row.

  // Changes the settings for tables of any size: kGather from the next block that a reader reads, kCollision for
  // sorting that begins later. For measuring settings. It changes nothing where the plan does not prefetch.
  // *Threads*: none while another call is under way.
  void SetPrefetch(PrefetchLoop loop, const PrefetchSetting& setting);

  // For a sort with a limit: writes the key columns of the threshold, as one row. Later rows must precede or equal that
  // row to be among the first `limit`. Returns false, and no row, while there are too few rows or if the spec has no
  // limit. `out`: SortKeyTypes(spec).
  // *Threads*: any, at any time before Finalise.
  absl::StatusOr<bool> GetThreshold(OutputBatch* out) const;
  // Sets a threshold that another sort or a host knows: rows after the one row of `keys` are not needed.
  // *Errors*: InvalidArgument for a spec without limit, or not one row.
  absl::Status SetThreshold(const BatchView& keys);

  // Whether the bytes of strings above 12 bytes must stay where they are, as Append requires.
  bool keeps_strings() const;

  const SortStats& stats() const { return stats_; }
  const SortDescriptor& descriptor() const { return *descriptor_; }

 private:
  friend class SortReader;
  std::unique_ptr<LocalState> NewLocalState() override;
  absl::Status CheckInput(const BatchView& batch, RowKind kind) const override;
  absl::StatusOr<SharedWork*> BeginFinalise() override;
  void EndFinalise() override;
  SortContext Context() const;
  absl::Status UnifyLocalStates();
  bool CanSpill() const;
  absl::StatusOr<SharedWork*> BeginRead(const std::vector<class SpillingRows*>& locals);

  std::shared_ptr<const SortDescriptor> descriptor_;
  SortEntrySource entry_points_;
  const QuernSortEntryPoints generic_;
  std::shared_ptr<const void> code_;
  SortOptions options_;
  SortStats stats_;
  std::shared_ptr<SortThreshold> threshold_;
  std::shared_ptr<SpilledSort> spilled_;  // null: rows stay in memory
  bool has_spilled_ = false;              // it has the rows
  std::unique_ptr<SortedRows> rows_;
  std::atomic<uint64_t> next_position_{0};  // how far the readers have come
};

// Reads the rows of a finalised sort in order. *Threads*: each reader belongs to one thread. Any number of readers
// share the rows: each takes the next rows that no other has taken, and reports their position.
class SortReader {
 public:
  explicit SortReader(std::shared_ptr<RowSort> sort);
  ~SortReader();

  // Fills `out` (emptied first) with the next rows, up to out->capacity() of them; returns whether there may be more.
  // Without output columns it counts.
  // *Cost*: about one random cache line a row where tuples have fields, prefetched.
  // *Errors*: FailedPrecondition before Finalise; InvalidArgument for an output batch with other columns or without
  // rows; ResourceExhausted.
  absl::StatusOr<bool> Next(OutputBatch* out);
  // The position of the last batch's first row within the result.
  uint64_t position() const { return position_; }

 private:
  struct State;
  std::shared_ptr<RowSort> sort_;
  std::unique_ptr<State> state_;
  uint64_t position_ = 0;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_ROW_SORT_H_
