// SPDX-License-Identifier: Apache-2.0
// Sorts as jobs:
//
//     ROWS ─> RowSort (a sink) ─ all work done ─> ROWS: outputs take the next rows that no other has taken
//     THRESHOLD <─> its threshold, while rows arrive
//
// As in the build side of a join, rows point to the bytes of long strings, which the host keeps in place or has copied.
// A sort that keeps no more rows than a small limit copies the strings of those rows, so `copy_bytes` has nothing to
// do.
//
// A sort with a limit has a threshold, which it updates when it selects the best of its rows. Example: `sort
// keys=i32:desc limit=2`:
//
//     rows so far 5, 9, 4, ..    best two 9, 5     threshold 5: a row below 5 will not come out
//     then 7, 3, ..              best two 9, 7     threshold 7
#include <string>

#include "hosts/c/arrow_fields.h"
#include "hosts/c/job.h"
#include "hosts/c/jobs/row_columns.h"
#include "runtime/base/status.h"
#include "runtime/sort/row_sort.h"

namespace quern::c_abi {
namespace {

class SortedOutput final : public JobOutput {
 public:
  SortedOutput(const std::shared_ptr<RowSort>& sort, const SortSpec& spec, const OutputOptions& options,
               std::shared_ptr<MemoryBudget> budget)
      : JobOutput(SortOutputTypes(spec), ResultRows(options.batch_rows, sort->stats().num_rows), std::move(budget)),
        reader_(sort) {}

  absl::StatusOr<quern_result_state> Fill(quern_result* filled) override {
    QUERN_ASSIGN_OR_RETURN(const bool more, reader_.Next(rows.get()));
    filled->position = reader_.position();
    return more ? QUERN_RESULT_MORE : QUERN_RESULT_DONE;
  }

 private:
  SortReader reader_;
};

class ThresholdOutput final : public JobOutput {
 public:
  ThresholdOutput(std::shared_ptr<RowSort> sort, const SortSpec& spec, std::shared_ptr<MemoryBudget> budget)
      : JobOutput(SortKeyTypes(spec), 1, std::move(budget)), sort_(std::move(sort)) {}

  absl::StatusOr<quern_result_state> Fill(quern_result* /*result*/) override {
    state = QUERN_RESULT_MORE;  // it may be asked again, whatever comes
    QUERN_RETURN_IF_ERROR(sort_->CheckOpen("threshold"));
    QUERN_ASSIGN_OR_RETURN(const bool exists, sort_->GetThreshold(rows.get()));
    if (!exists) rows->set_num_rows(0);
    return QUERN_RESULT_MORE;
  }

 private:
  std::shared_ptr<RowSort> sort_;
};

class ThresholdInput final : public JobInput {
 public:
  explicit ThresholdInput(std::shared_ptr<RowSort> sort) : sort_(std::move(sort)) {}

  absl::Status CheckOpen(const char* /*call*/) const override { return sort_->CheckOpen("threshold"); }
  absl::Status Append(const BatchView& batch, uint64_t* /*taken_rows*/) override { return sort_->SetThreshold(batch); }
  absl::Status Finish() override { return absl::OkStatus(); }

 private:
  std::shared_ptr<RowSort> sort_;
};

class SortJob final : public SinkJob {
 public:
  SortJob(const SortSpec& spec, const CompiledKernel& compiled, const quern_job_options& options)
      : SinkJob(compiled, options, "sort"), spec_(spec) {
    SetSink(MakeRowSort(kernel, budget));
    ports.reserve(2);
    ports.push_back(RowColumns(spec_));
    ports.push_back({QUERN_PORT_THRESHOLD, "threshold", {ports.front().types.keys, {}}, true});
    keeps_strings_ = sort()->keeps_strings() && HasStrings(ports.front().types);
  }

  absl::StatusOr<std::unique_ptr<JobInput>> NewInput(quern_port port, const InputOptions& /*options*/) override {
    if (port == QUERN_PORT_ROWS) return NewSinkInput(RowKind::kInput);
    if (port == QUERN_PORT_THRESHOLD) return std::make_unique<ThresholdInput>(sort());
    return NoSuchPort(port, kPorts);
  }

  absl::StatusOr<std::unique_ptr<JobOutput>> NewOutput(quern_port port, const OutputOptions& options) override {
    if (port == QUERN_PORT_THRESHOLD) return std::make_unique<ThresholdOutput>(sort(), spec_, budget);
    if (port != QUERN_PORT_ROWS) return NoSuchPort(port, kPorts);
    QUERN_RETURN_IF_ERROR(CheckDone());
    return std::make_unique<SortedOutput>(sort(), spec_, options, budget);
  }

  Kept kept(quern_port port) const override {
    return port == QUERN_PORT_ROWS && keeps_strings_ ? Kept::kStrings : Kept::kNothing;
  }
  bool writes_format(quern_port port) const override { return port == QUERN_PORT_ROWS; }  // a run
  absl::StatusOr<std::vector<ResultField>> ResultFields(quern_port port) const override {
    if (port != QUERN_PORT_ROWS) return NoSuchPort(port, "QUERN_PORT_ROWS");
    return RowFields(spec_, *ports.front().binding);
  }

  void FillStats(quern_job_stats* stats) const override {
    const SortStats& counted = sort()->stats();
    stats->layout = sink->is_finalised() ? counted.method : "";
    stats->input_rows = counted.input_rows;
    stats->num_rows = counted.num_rows;
    stats->dropped_rows = counted.dropped_rows;
    stats->collided_rows = counted.collided_rows;
    stats->entry_bytes = counted.entry_bytes;
    stats->key_bits = counted.key_bits;
  }
  const char* prefetch_class() const override { return sink->is_finalised() ? sort()->stats().prefetch_class : ""; }

 private:
  static constexpr const char* kPorts = "QUERN_PORT_ROWS or QUERN_PORT_THRESHOLD";
  std::shared_ptr<RowSort> sort() const { return std::static_pointer_cast<RowSort>(sink); }

  const SortSpec& spec_;  // of the kernel
  bool keeps_strings_ = false;
};

}  // namespace

NewJobResult NewJob(const SortSpec& spec, const CompiledKernel& compiled, const quern_job_options& options) {
  if (options.num_runs != 0) return NewMergeJob(spec, compiled, options);
  return std::make_shared<SortJob>(spec, compiled, options);
}

}  // namespace quern::c_abi
