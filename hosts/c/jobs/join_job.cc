// SPDX-License-Identifier: Apache-2.0
// Joins as jobs:
//
//     BUILD ─> HashJoin (a sink) ─ all work done ─> PROBE: batches in, rows out; then UNMATCHED: build rows
//
// Both sides have the columns of the residual predicate after their payload. Tuples point to the bytes of long strings.
#include <algorithm>
#include <string>

#include "hosts/c/arrow_fields.h"
#include "hosts/c/host_batch.h"
#include "hosts/c/job.h"
#include "hosts/c/jobs/growing_output.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/join/hash_join.h"
#include "runtime/join/join_descriptor.h"

namespace quern::c_abi {
namespace {

std::vector<ColumnType> WithResidual(std::vector<ColumnType> payload, const std::vector<ResidualSpec>& residual) {
  for (const ResidualSpec& conjunct : residual) payload.push_back(conjunct.type);
  return payload;
}

// A large batch is probed in slices, so that the job can be stopped within it.
class ProbeOutput final : public GrowingOutput, public OnOwnLines {
 public:
  ProbeOutput(const std::shared_ptr<const HashJoin>& join, const JoinSpec& spec, const OutputOptions& options,
              const std::shared_ptr<MemoryBudget>& budget)
      : GrowingOutput(JoinOutputTypes(spec), options.batch_rows, budget), prober_(join, options.context) {}

  absl::Status Push(BatchView batch, const BatchTypes& types) override {
    state.reset();
    num_rows_ = batch.num_rows;
    batch_ = std::move(batch);
    types_ = &types;
    next_row_ = 0;
    FitRows(num_rows_);
    QUERN_RETURN_IF_ERROR(StartSlice());
    state = QUERN_RESULT_MORE;
    return absl::OkStatus();
  }

  absl::StatusOr<quern_result_state> Fill(quern_result* /*result*/) override {
    if (types_ == nullptr) {
      QUERN_RETURN_IF_ERROR(rows->Reset());
      rows->set_num_rows(0);
      return QUERN_RESULT_NEEDS_INPUT;
    }
    QUERN_ASSIGN_OR_RETURN(const bool more, prober_.Next(rows.get()));
    if (more) return QUERN_RESULT_MORE;
    if (next_row_ < num_rows_) {
      QUERN_RETURN_IF_ERROR(StartSlice());
      return QUERN_RESULT_MORE;
    }
    types_ = nullptr;
    return QUERN_RESULT_NEEDS_INPUT;
  }

 private:
  absl::Status StartSlice() {
    const uint64_t num_rows = std::min(thresholds::kMorselRows, num_rows_ - next_row_);
    const bool is_whole = num_rows == num_rows_;
    BatchView slice =
        is_whole ? std::move(batch_) : SliceOf(batch_, types_->keys, types_->payload, next_row_, num_rows);
    next_row_ += num_rows;
    return prober_.SetInput(std::move(slice));
  }

  JoinProber prober_;
  BatchView batch_;
  const BatchTypes* types_ = nullptr;     // of the batch; null: there is none
  uint64_t num_rows_ = 0, next_row_ = 0;  // of the batch
};

class UnmatchedOutput final : public JobOutput, public OnOwnLines {
 public:
  UnmatchedOutput(const std::shared_ptr<const HashJoin>& join, const JoinSpec& spec, const OutputOptions& options,
                  std::shared_ptr<MemoryBudget> budget)
      : JobOutput(JoinOutputTypes(spec), options.batch_rows, std::move(budget)), prober_(join, options.context) {}

  absl::Status Begin() { return prober_.SetUnmatched(); }
  absl::StatusOr<quern_result_state> Fill(quern_result* /*result*/) override {
    QUERN_ASSIGN_OR_RETURN(const bool more, prober_.Next(rows.get()));
    return more ? QUERN_RESULT_MORE : QUERN_RESULT_DONE;
  }

 private:
  JoinProber prober_;
};

class JoinJob final : public SinkJob {
 public:
  JoinJob(const JoinSpec& spec, const CompiledKernel& compiled, const quern_job_options& options)
      : SinkJob(compiled, options, "join"), spec_(spec), residual_{options.residual, options.residual_user} {
    const std::shared_ptr<HashJoin> made = MakeHashJoin(kernel, budget);
    if (options.residual != nullptr) made->SetHostResidual({KeepPairs, &residual_});
    SetSink(made);
    std::vector<ColumnType> keys;
    for (const KeySpec& key : spec_.keys) keys.push_back(key.type);
    ports.reserve(2);
    ports.push_back({QUERN_PORT_BUILD, "build", {keys, WithResidual(spec_.build, spec_.residual)}});
    ports.back().held_key_bytes = made->descriptor().inline_key_bytes();
    ports.push_back({QUERN_PORT_PROBE, "probe", {keys, WithResidual(spec_.probe, spec_.residual)}});
    keeps_strings_ = HasStrings({keys, spec_.build});
  }

  absl::StatusOr<std::unique_ptr<JobInput>> NewInput(quern_port port, const InputOptions& /*options*/) override {
    if (port != QUERN_PORT_BUILD) return NoSuchPort(port, "QUERN_PORT_BUILD for inputs");
    return NewSinkInput(RowKind::kInput);
  }

  absl::StatusOr<std::unique_ptr<JobOutput>> NewOutput(quern_port port, const OutputOptions& options) override {
    const bool unmatched = port == QUERN_PORT_UNMATCHED;
    if (!unmatched && port != QUERN_PORT_PROBE)
      return NoSuchPort(port, "QUERN_PORT_PROBE or QUERN_PORT_UNMATCHED for outputs");
    QUERN_RETURN_IF_ERROR(CheckDone());
    if (!unmatched) return std::make_unique<ProbeOutput>(join(), spec_, options, budget);
    ++num_unmatched_outputs;
    absl::StatusOr<std::unique_ptr<JobOutput>> output = NewUnmatched(options);
    if (!output.ok()) --num_unmatched_outputs;
    return output;
  }

  Kept kept(quern_port /*port*/) const override { return keeps_strings_ ? Kept::kStrings : Kept::kNothing; }
  absl::Status CheckBindings() const override {
    const std::optional<PortBinding>& probe = FindPort(QUERN_PORT_PROBE)->binding;
    return probe.has_value() ? CheckUnits(*probe) : absl::OkStatus();
  }
  absl::StatusOr<std::vector<ResultField>> FieldsBehindProbe(const PortBinding& probe) const override;
  absl::StatusOr<std::vector<ResultField>> ResultFields(quern_port port) const override {
    if (port != QUERN_PORT_PROBE && port != QUERN_PORT_UNMATCHED)
      return NoSuchPort(port, "QUERN_PORT_PROBE or QUERN_PORT_UNMATCHED for outputs");
    return FieldsBehindProbe(*FindPort(QUERN_PORT_PROBE)->binding);
  }

  void FillStats(quern_job_stats* stats) const override {
    const JoinStats& counted = join()->stats();
    stats->layout = sink->is_finalised() ? counted.layout : "";
    stats->input_rows = counted.build_rows;
    stats->num_rows = counted.table_rows;
    stats->directory_bytes = counted.directory_bytes;
    stats->tuple_bytes = counted.tuple_bytes;
    stats->prefetch_distance = counted.prefetch_distance;
  }
  const char* prefetch_class() const override { return sink->is_finalised() ? join()->stats().prefetch_class : ""; }
  const HashJoin* hash_join() const override { return static_cast<const HashJoin*>(sink.get()); }
  bool HasPartitions(quern_port port) const override { return FindPort(port) != nullptr; }

 private:
  absl::Status CheckUnits(const PortBinding& probe) const;
  absl::StatusOr<std::unique_ptr<JobOutput>> NewUnmatched(const OutputOptions& options) {
    if (const int64_t num_open = num_open_pipelines; num_open != 0) {
      return absl::FailedPreconditionError(
          "QUERN_PORT_UNMATCHED before all inputs of pipelines have finished: " + std::to_string(num_open) +
          " with rows; accepted: after quern_input_finish of each");
    }
    auto output = std::make_unique<UnmatchedOutput>(join(), spec_, options, budget);
    QUERN_RETURN_IF_ERROR(output->Begin());
    return output;
  }
  std::shared_ptr<const HashJoin> join() const { return std::static_pointer_cast<const HashJoin>(sink); }

  struct Residual {
    decltype(quern_job_options::residual) keep_pairs;
    void* user;
  };
  // A host in C++ may throw, which is a failure like any result other than 0.
  static int KeepPairs(void* residual, void* context, const uint64_t* probe_rows, const uint64_t* build_rows,
                       uint64_t num_pairs, uint8_t* keep) {
    const Residual& host = *static_cast<const Residual*>(residual);
    try {
      return host.keep_pairs(host.user, context, probe_rows, build_rows, num_pairs, keep);
    } catch (...) {
      return -1;
    }
  }

  const JoinSpec& spec_;  // of the kernel
  Residual residual_;
  bool keeps_strings_ = false;
};

absl::Status CheckResidual(const JoinSpec& spec, const quern_job_options& options) {
  if (spec.host_residual && options.residual == nullptr)
    return InvalidArgument("residual without a function: host; accepted: quern_job_options with `residual`");
  if (!spec.host_residual && options.residual != nullptr)
    return InvalidArgument("residual that the spec does not ask for: a function; accepted: NULL, or residual=host");
  return absl::OkStatus();
}

// Keys and columns of the residual predicate are compared as numbers, so their units must be the same on both sides.
absl::Status JoinJob::CheckUnits(const PortBinding& probe) const {
  const std::optional<PortBinding>& build = FindPort(QUERN_PORT_BUILD)->binding;
  if (!build.has_value()) return absl::OkStatus();
  for (size_t i = 0; i < spec_.keys.size(); ++i)
    QUERN_RETURN_IF_ERROR(CheckSameUnit({build->keys[i], "build"}, {probe.keys[i], "probe"}, "keys", i));
  for (size_t i = 0; i < spec_.residual.size(); ++i) {
    const BoundField &of_build = build->payload[spec_.build.size() + i],
                     &of_probe = probe.payload[spec_.probe.size() + i];
    QUERN_RETURN_IF_ERROR(CheckSameUnit({of_build, "build"}, {of_probe, "probe"}, "residual", i));
  }
  return absl::OkStatus();
}

// A column may be null where the result's types allow it.
absl::StatusOr<std::vector<ResultField>> JoinJob::FieldsBehindProbe(const PortBinding& probe) const {
  QUERN_RETURN_IF_ERROR(CheckUnits(probe));
  const std::vector<ColumnType> types = JoinOutputTypes(spec_);
  std::vector<ResultField> fields;
  const auto add = [&](const std::vector<ColumnType>& payload, const PortBinding& binding, const char* rowid) {
    for (size_t i = 0; i < payload.size(); ++i)
      fields.push_back(FieldOf(binding.payload[i], payload[i], rowid, types[fields.size()].nullable));
  };
  add(spec_.probe, probe, "probe_rowid");
  if (types.size() > spec_.probe.size() + spec_.build.size())
    fields.push_back({"mark", "b", types[fields.size()].nullable});
  add(spec_.build, *FindPort(QUERN_PORT_BUILD)->binding, "build_rowid");
  return fields;
}

}  // namespace

NewJobResult NewJob(const JoinSpec& spec, const CompiledKernel& compiled, const quern_job_options& options) {
  QUERN_RETURN_IF_ERROR(CheckResidual(spec, options));
  return std::make_shared<JoinJob>(spec, compiled, options);
}

}  // namespace quern::c_abi
