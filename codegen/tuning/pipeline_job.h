// SPDX-License-Identifier: Apache-2.0
// A whole pipeline that a tuner can time: compiled kernels, tables and rows, sent through in pieces of any size.
#ifndef QUERN_CODEGEN_TUNING_PIPELINE_JOB_H_
#define QUERN_CODEGEN_TUNING_PIPELINE_JOB_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/plan/plan.h"
#include "codegen/tuning/job_data.h"
#include "runtime/base/memory.h"
#include "runtime/pipeline/pipeline.h"
#include "runtime/pipeline/pipeline_spec.h"
#include "runtime/sink/sink.h"

namespace quern {

struct CompiledPipeline;
struct Kernel;

// How many tables a pipeline probes by turns; reductions are none.
uint32_t NumProbedTables(const PipelineSpec& spec);

namespace tuning {

// *Threads*: one at a time.
class PipelineJob {
 public:
  // spec: the text. params: of its plan. num_rows: of the source. max_bytes: of a table; 0: any. *Cost*: compiling, and
  // that of the rows and the tables. *Errors*: those of CompilePipeline; ResourceExhausted where memory is short;
  // Unimplemented for columns that no rows can be made of; OutOfRange where a map has no result for them.
  static absl::StatusOr<std::unique_ptr<PipelineJob>> Make(const std::string& spec, const PlanOverrides& params,
                                                           uint64_t num_rows, uint64_t max_bytes);

  // Sends all rows to a new end. Returns ns a row of the source, without finalising. *Errors*: those of the operators.
  absl::StatusOr<double> Run(uint32_t piece_rows);

  // The share of the source's rows that have reached the end in the last run; above 1 where a join has more matches
  // than rows.
  double share_of_rows_out() const { return share_of_rows_out_; }

 private:
  PipelineJob() = default;
  absl::Status MakeSource(const PipelineSpec& spec);
  absl::Status MakePipeline(const CompiledPipeline& compiled);
  std::shared_ptr<Sink> NewEnd() const;

  uint64_t num_rows_ = 0;
  uint64_t most_table_rows_ = 0;
  std::shared_ptr<MemoryBudget> budget_ = std::make_shared<MemoryBudget>();
  std::vector<NumberColumn> source_;
  std::shared_ptr<const Pipeline> pipeline_;
  std::shared_ptr<const Kernel> end_;  // null: rows are emitted
  double share_of_rows_out_ = 0;
};

}  // namespace tuning
}  // namespace quern

#endif  // QUERN_CODEGEN_TUNING_PIPELINE_JOB_H_
