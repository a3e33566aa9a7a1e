// SPDX-License-Identifier: Apache-2.0
// A pipeline: rows of a source pass through steps into a sink, a few thousand at a time, so that what one step makes is
// still in the cache when the next one reads it.
//
//     source columns ─> filter ─> map ─> probe a table ─> probe another ─> .. ─> sink: build, aggregate, sort
//                       `────────── pieces of up to piece_rows rows ───────────'
//
// Each step is an operator with a kernel of its own, and so is the sink; the pipeline computes nothing itself. (This is
// vectorised execution with compiled steps, which Kersten et al., VLDB 2018, compare with whole compiled pipelines;
// staging rows between loops is the relaxed operator fusion of Menon, Mowry and Pavlo, VLDB 2017.)
//
// Rows in flight have columns, numbered from 0. A step says by number which of them are its keys and its payload:
//
//     filter   keeps columns and takes rows away
//     map      adds its results behind the columns
//     probe    replaces all columns by the result columns of the join: probe payload, mark, build payload; a semi or
//              anti join copies nothing: it takes columns and rows away. Where no row of a piece has two matches, any
//              other join puts its build payload beside the columns that are there; else it copies all of them
//     reduce   keeps columns and takes away rows whose key the table of a join cannot have: rows that a later step, or
//              the probe of a table that they are for, would take away (semi-join reduction: Bernstein and Chiu, JACM
//              1981). Some of these may pass; none are tested for a while where few of them are taken away
//
// Rows that come out when all probing is done belong to no piece: build rows that come out on their own (right, full,
// right_semi, right_anti), and all rows whose keys a join has written. Whoever runs the pipeline sends them through the
// steps behind the probe.
//
// *Row ids*: those of the source, up to the first probe of another kind than semi and anti; behind it rows are counted.
// Rows that a semi or anti join has written come back without them, and a pipeline that reads them is refused.
#ifndef QUERN_RUNTIME_PIPELINE_PIPELINE_H_
#define QUERN_RUNTIME_PIPELINE_PIPELINE_H_

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/memory.h"
#include "runtime/filter/row_filter.h"
#include "runtime/join/hash_join.h"
#include "runtime/map/row_mapper.h"
#include "runtime/pipeline/pipeline_columns.h"
#include "runtime/sink/sink.h"
#include "runtime/spec/column_type.h"
#include "runtime/spec/spec.h"

namespace quern {

struct PipelineStep {
  std::variant<std::shared_ptr<const RowFilter>, std::shared_ptr<const RowMapper>, std::shared_ptr<const HashJoin>> op;
  StepColumns columns;
  bool is_reduction = false;     // of a join, which is not probed then; no payload
  void* host_context = nullptr;  // probes: passed to the host's residual
};

struct PipelineSink {
  std::vector<ColumnType> keys, payload;  // the columns that the sink reads
  std::vector<ValueType> values;          // of the payload, where expressions read it; else empty
  std::vector<bool> only_added = {};      // of the payload: AddedColumnsOf an aggregation; else empty
  StepColumns columns;
  bool takes_all_types = false;  // `keys` and `payload` become the types of the columns
  bool keeps_strings = false;    // the sink points to the bytes of strings, and keeps BatchView::owner for that
  bool reads_row_ids = false;    // besides its row id columns: a stable sort, a join whose host decides about pairs
};

// What a sink of the spec reads of these columns; it keeps strings unless it is an aggregation.
PipelineSink SinkOf(const KernelSpec& spec, StepColumns columns);

// *Threads*: immutable, shared by all.
class Pipeline {
 public:
  // Compares types, and digits and scale of decimals where they are known, of the source or of what a map has computed:
  // those of a join's build side and of sinks are not, and neither are units of times.
  // *Errors*: InvalidArgument for a column that is not there or has another type: step, column and types are named; and
  // for row ids that are read behind a semi or anti join which has written rows (row_numbers.h).
  static absl::StatusOr<std::shared_ptr<const Pipeline>> Make(const std::vector<PipelineColumn>& source,
                                                              std::vector<PipelineStep> steps, PipelineSink sink);

  const std::vector<ColumnType>& source() const { return source_; }
  const std::vector<PipelineStep>& steps() const { return steps_; }
  const PipelineSink& sink() const { return sink_; }

 private:
  Pipeline() = default;
  absl::Status Check(std::vector<PipelineColumn> columns);

  std::vector<ColumnType> source_;
  std::vector<PipelineStep> steps_;
  PipelineSink sink_;
};

// What takes the rows that arrive at the end: usually an Appender's Append.
class PipelineEnd {
 public:
  virtual ~PipelineEnd() = default;
  virtual absl::Status Append(const BatchView& batch) = 0;
  // Before and after the batches of one piece. A piece that fails does not end; where it is sent again, the same
  // batches come in the same order.
  virtual void BeginPiece() {}
  virtual void EndPiece() {}
  // After a step was refused memory: lets rows go. After OK the piece may be sent again. *Errors*: `refused` where
  // nothing can go.
  virtual absl::Status FreeMemory(const absl::Status& refused) { return refused; }
};

// One thread's way through a pipeline. *Threads*: one.
class PipelineInput {
 public:
  // end: not owned. piece_rows: of the pieces behind the first ones, which have at most kFirstPieceRows; all have no
  // more where memory may be refused. grows: false: all pieces have piece_rows.
  PipelineInput(std::shared_ptr<const Pipeline> pipeline, const std::shared_ptr<MemoryBudget>& budget, PipelineEnd* end,
                uint64_t piece_rows, bool grows = true);
  PipelineInput(const PipelineInput&) = delete;
  PipelineInput& operator=(const PipelineInput&) = delete;
  ~PipelineInput();

  // Sends a batch's rows through. batch.keys are the source columns. taken_rows: receives how many rows went through
  // in whole pieces, the first ones; set also by a call that fails. *Errors*: those of the steps and of the end, after
  // which a part of the next piece may have arrived there. After ResourceExhausted the batch may be sent again from row
  // taken_rows on.
  absl::Status Append(const BatchView& batch, uint64_t* taken_rows);
  // After an error: whether a join has written rows of the next piece, so that no other piece may come before it.
  bool has_written_part() const;

 private:
  class Step;
  class FilterStep;
  class MapStep;
  class ProbeStep;
  class ReductionStep;
  class SelectionStep;
  class SinkStep;

  // The next piece: num_rows rows, whose row 0 is the batch's row first_row.
  struct Span {
    uint32_t first_row;
    uint64_t num_rows;
  };
  Span SpanOf(const uint32_t* selection, uint64_t at, uint64_t most) const;
  void MoveOn(uint32_t first_row, BatchView* piece);
  void GrowPieces();

  std::shared_ptr<const Pipeline> pipeline_;
  PipelineEnd* const end_;
  uint64_t piece_rows_;             // of the next piece
  const uint64_t most_piece_rows_;  // of later ones
  uint64_t rows_until_growth_;
  bool spreads_ = false;                      // there is a map before the first probe
  std::vector<uint32_t> moved_;               // a selection
  std::vector<std::unique_ptr<Step>> steps_;  // and the sink
  bool is_again_ = false;                     // the last piece failed, so that the next one is the same
};

}  // namespace quern

#endif  // QUERN_RUNTIME_PIPELINE_PIPELINE_H_
