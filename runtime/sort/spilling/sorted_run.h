// SPDX-License-Identifier: Apache-2.0
// One sorted run that was written to a store, with a sample of its rows: enough to find where a row of another run
// would stand in it without reading it.
#ifndef QUERN_RUNTIME_SORT_SPILLING_SORTED_RUN_H_
#define QUERN_RUNTIME_SORT_SPILLING_SORTED_RUN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/rows/batch_view.h"
#include "runtime/rows/output_batch.h"
#include "runtime/sort/key_comparison.h"
#include "runtime/sort/sort_descriptor.h"
#include "runtime/spec/column_type.h"
#include "runtime/spill/spill_context.h"
#include "runtime/spill/spilled_rows.h"

namespace quern {

// The *lead* of a row: of its comparison keys, those before the first tail that a string may have. Leads never descend
// within a run; rows of one lead may be in any order. *Threads*: any number at once.
class RowLeads {
 public:
  // descriptor: whose keys are the first columns of a run.
  RowLeads(std::shared_ptr<const SortDescriptor> descriptor, const QuernSortEntryPoints& generic);

  size_t num_words() const { return steps_.size(); }
  // Writes the num_words words of a row. *Errors*: ResourceExhausted, of a collation's memory.
  absl::Status Read(const BatchView& rows, uint64_t row, uint64_t* lead) const;
  // Whether lead a is less than lead b.
  bool Precedes(const uint64_t* a, const uint64_t* b) const;

 private:
  std::shared_ptr<const SortDescriptor> descriptor_;
  const QuernSortEntryPoints generic_;
  std::vector<KeyComparison> steps_;
};

struct SortedRun {
  SpilledRows rows;
  uint64_t level = 1;  // how often its rows were written
  // Some of its rows, in order, the first one among them: their numbers and, num_words for each, their leads.
  std::vector<uint64_t> sampled_rows, leads;

  uint64_t most_block_bytes() const;
};

// Writes a run. *Threads*: one.
class RunWriter {
 public:
  // leads: not owned. types: of a run's columns.
  RunWriter(const std::shared_ptr<SpillContext>& context, const std::vector<ColumnType>& types, const RowLeads* leads);

  // Adds rows that follow those before in order. *Errors*: those of RowWriter and RowLeads.
  absl::Status Append(const OutputBatch& rows);
  // level: how often the rows were written, with this time.
  absl::StatusOr<SortedRun> Finish(uint64_t level);

 private:
  const RowLeads* leads_;
  const uint64_t rows_of_sample_;
  RowWriter writer_;
  SortedRun run_;
  uint64_t num_rows_ = 0;
};

// Leads that divide the rows of some runs into so many parts of about the same size, in order; fewer where rows of one
// lead are many. num_words for each.
std::vector<uint64_t> DividingLeads(const std::vector<SortedRun>& runs, const RowLeads& leads, uint64_t num_parts);

// The numbers of the run's first rows whose leads are not below each of the dividing leads. *Cost*: one or two blocks
// of the run are read for each. *Errors*: those of RowReader and RowLeads.
absl::StatusOr<std::vector<uint64_t>> FirstRowsFrom(const std::vector<uint64_t>& dividing_leads, const RowLeads& leads,
                                                    SortedRun* run, const std::vector<ColumnType>& types,
                                                    const std::shared_ptr<SpillContext>& context);

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_SPILLING_SORTED_RUN_H_
