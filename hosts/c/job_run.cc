// SPDX-License-Identifier: Apache-2.0
// A whole job over batches that are all there, on threads of the library, for hosts that have no threads to spare. It
// uses the same inputs and outputs as hosts with threads. Example: a join, 3 threads, 200,000 build rows in one batch
// and 150,000 probe rows in two:
//
//     inputs     65536 | 65536 | 65536 | 3392    each thread by its own input, finished when no morsel is left
//     work       all threads
//     probe      65536 | 9464   65536 | 9464     each thread by its own output; results go to the host at once
//     unmatched  all threads share the build rows; only for kinds of join that return them, and for joins
//                that have spilled, whose written rows are joined there
//
// Groups are read by all threads, and the rows of a sort by this one alone: the host's function receives them in order,
// so that further threads could only read ahead and wait for each other's turn. A host that can use rows by position
// makes its own outputs.
//
// No phase begins before all threads have finished the previous one. A morsel that fails ends the run. A host that
// wants no more results ends it without an error: the remaining morsels are then taken and dropped. No exception of a
// host's function leaves its thread.
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "hosts/c/host_batch.h"
#include "hosts/c/job.h"
#include "hosts/c/jobs/pipeline_job.h"
#include "hosts/c/morsels.h"
#include "runtime/base/shared_work.h"
#include "runtime/base/status.h"
#include "runtime/join/join_descriptor.h"
#include "runtime/sink/sink_driver.h"

namespace quern::c_abi {
namespace {

constexpr size_t kRunOptionsSize = sizeof(quern_run_options);

// The morsels of one port's batches.
struct PortMorsels {
  quern_port port;
  std::vector<Morsel> morsels;
};

class JobRun {
 public:
  // end: the job itself, or that of a pipeline's end.
  JobRun(std::shared_ptr<Job> job, std::shared_ptr<SinkJob> end, const quern_run_options& options, ResultSink* sink)
      : job_(std::move(job)), end_(std::move(end)), sink_(sink) {
    if (options.batch_rows != 0) output_options_.batch_rows = options.batch_rows;
  }

  absl::Status Run(std::span<const PortMorsels> ports, uint32_t threads) {
    uint64_t num_rows = 0;
    for (const PortMorsels& port : ports) num_rows += RowsOf(port.morsels);
    job_->ExpectRows(num_rows, threads);
    for (const PortMorsels& port : ports) {
      if (port.port != QUERN_PORT_PROBE) QUERN_RETURN_IF_ERROR(Append(port, threads));
    }
    if (auto* const pipeline = dynamic_cast<PipelineJob*>(job_.get())) {
      QUERN_RETURN_IF_ERROR(pipeline->CheckInputs());
      QUERN_RETURN_IF_ERROR(RunMorsels(threads, threads, [&](uint32_t, uint64_t) { return pipeline->SendLeft(); }));
    }
    QUERN_RETURN_IF_ERROR(FinaliseOnThreads(end_->sink.get(), threads));
    if (const auto* join = std::get_if<JoinSpec>(&job_->kernel->plan.spec)) return Probe(*join, ports, threads);
    return Is<SortSpec>(job_->kernel->plan.spec) ? ReadSorted() : ReadAll(QUERN_PORT_ROWS, threads);
  }

 private:
  using Inputs = std::vector<std::unique_ptr<quern_input>>;
  using Outputs = std::vector<std::unique_ptr<quern_output>>;

  absl::Status Append(const PortMorsels& port, uint32_t threads) {
    Inputs inputs(threads);
    const BatchTypes& types = job_->FindPort(port.port)->types;
    const absl::Status appended =
        RunMorsels(threads, port.morsels.size(), [&](uint32_t thread, uint64_t number) -> absl::Status {
          if (inputs[thread] == nullptr) {
            QUERN_ASSIGN_OR_RETURN(inputs[thread], NewInput(job_, port.port, {}));
          }
          const Morsel& morsel = port.morsels[number];
          const BatchSlice slice(*morsel.batch, types.keys, types.payload, morsel.first_row, morsel.num_rows);
          return AppendHostBatch(inputs[thread].get(), slice.batch());
        });
    for (const std::unique_ptr<quern_input>& input : inputs) {
      if (input == nullptr) continue;
      if (!appended.ok())
        input->input->LoseRows();  // of a batch that was divided, even if a part was refused as a whole
      else QUERN_RETURN_IF_ERROR(input->input->Finish());
    }
    return appended.ok() ? appended : end_->sink->FirstLoss(appended);
  }

  absl::Status TakeAll(quern_output* output) {
    while (!sink_->stopped) {
      QUERN_RETURN_IF_ERROR(NextResult(output));
      sink_->Take(output->output->result);
      if (output->output->result.state != QUERN_RESULT_MORE) break;
    }
    return absl::OkStatus();
  }

  absl::Status Probe(const JoinSpec& spec, std::span<const PortMorsels> ports, uint32_t threads) {
    Outputs outputs(threads);
    const BatchTypes& types = job_->FindPort(QUERN_PORT_PROBE)->types;
    for (const PortMorsels& port : ports) {
      if (port.port != QUERN_PORT_PROBE) continue;
      const auto probe = [&](uint32_t thread, uint64_t number) -> absl::Status {
        if (sink_->stopped) return absl::OkStatus();
        if (outputs[thread] == nullptr) {
          QUERN_ASSIGN_OR_RETURN(outputs[thread], NewOutput(job_, QUERN_PORT_PROBE, output_options_));
        }
        const Morsel& morsel = port.morsels[number];
        const BatchSlice slice(*morsel.batch, types.keys, types.payload, morsel.first_row, morsel.num_rows);
        QUERN_RETURN_IF_ERROR(PushHostBatch(outputs[thread].get(), slice.batch()));
        return TakeAll(outputs[thread].get());
      };
      QUERN_RETURN_IF_ERROR(RunMorsels(threads, port.morsels.size(), probe));
    }
    if (!RowOf(spec.kind).flags_matched_rows() && !job_->hash_join()->has_spilled()) return absl::OkStatus();
    return ReadAll(QUERN_PORT_UNMATCHED, threads);
  }

  // Each thread takes rows until there are no more.
  absl::Status ReadAll(quern_port port, uint32_t threads) {
    return RunMorsels(threads, threads, [&](uint32_t, uint64_t) -> absl::Status {
      if (sink_->stopped) return absl::OkStatus();
      QUERN_ASSIGN_OR_RETURN(const std::unique_ptr<quern_output> output, NewOutput(job_, port, output_options_));
      return TakeAll(output.get());
    });
  }

  absl::Status ReadSorted() {
    if (sink_->on_result != nullptr) return ReadAll(QUERN_PORT_ROWS, 1);
    quern_job_stats stats = {};
    job_->FillStats(&stats);
    sink_->num_rows = stats.num_rows;
    return absl::OkStatus();
  }

  const std::shared_ptr<Job> job_;
  const std::shared_ptr<SinkJob> end_;
  OutputOptions output_options_;
  ResultSink* sink_;
};

// The ports by which batches of a run enter: those of rows and states; of a pipeline, those of its end, too, by which
// rows pass no step that its own ROWS does.
std::vector<const PortColumns*> RunPorts(const Job& job, const PipelineJob* pipeline) {
  std::vector<const PortColumns*> ports;
  for (const PortColumns& columns : job.ports)
    if (columns.port != QUERN_PORT_THRESHOLD) ports.push_back(&columns);
  if (pipeline == nullptr) return ports;
  for (const PortColumns& columns : pipeline->end()->ports)
    if (columns.port == QUERN_PORT_PROBE || columns.port == QUERN_PORT_STATES) ports.push_back(&columns);
  return ports;
}

absl::Status CheckRunPort(const std::vector<const PortColumns*>& ports, const quern_port& port) {
  std::string accepted;
  for (const PortColumns* columns : ports) {
    const uint32_t number = NumberOf(columns->port);
    if (number == NumberOf(port)) return absl::OkStatus();
    accepted += (accepted.empty() ? "" : " or ") + PortText(columns->port) + " (" + std::to_string(number) + ")";
  }
  return InvalidArgument("port of a run's batches: " + std::to_string(NumberOf(port)) + "; accepted: " + accepted);
}

absl::Status RunJob(quern_job* job, std::span<const quern_run_input> inputs, const quern_run_options& options,
                    ResultSink* sink) {
  const auto* const pipeline = dynamic_cast<const PipelineJob*>(job->job.get());
  const auto sink_job = std::dynamic_pointer_cast<SinkJob>(pipeline == nullptr ? job->job : pipeline->end());
  if (sink_job == nullptr) {
    return InvalidArgument("run of a " + std::string(job->job->name) +
                           "; accepted: a join, an aggregation or a sort, or a pipeline into one");
  }
  const std::vector<const PortColumns*> accepted = RunPorts(*job->job, pipeline);
  std::vector<PortMorsels> ports;
  for (const quern_run_input& input : inputs) {
    QUERN_RETURN_IF_ERROR(CheckRunPort(accepted, input.port));
    QUERN_ASSIGN_OR_RETURN(std::vector<Morsel> morsels, CutIntoMorsels({input.batches, input.num_batches}, "batches"));
    ports.push_back({input.port, std::move(morsels)});
  }
  QUERN_ASSIGN_OR_RETURN(const uint32_t threads, NumThreads(options.threads));
  QUERN_RETURN_IF_ERROR(CheckBatchRows(options.batch_rows));
  QUERN_RETURN_IF_ERROR(sink_job->sink->CheckOpen("run"));
  return JobRun(job->job, sink_job, options, sink).Run(ports, threads);
}

absl::Status CheckAndRun(quern_job* job, const quern_run_input* inputs, size_t num_inputs,
                         const quern_run_options* given, ResultSink* sink) {
  if (job == nullptr) return MissingArgument("job");
  if (inputs == nullptr && num_inputs != 0) return MissingArgument("inputs");
  QUERN_ASSIGN_OR_RETURN(const quern_run_options options, ReadOptions(given, kRunOptionsSize));
  sink->on_result = options.on_result;
  sink->context = options.context;
  return RunJob(job, {inputs, num_inputs}, options, sink);
}

}  // namespace
}  // namespace quern::c_abi

extern "C" {

quern_status quern_job_run(quern_job* job, const quern_run_input* inputs, size_t num_inputs,
                           const quern_run_options* options, uint64_t* num_rows, quern_error* error) {
  quern::c_abi::ResultSink sink{};
  const quern_status status =
      quern::c_abi::Boundary(error, [&] { return quern::c_abi::CheckAndRun(job, inputs, num_inputs, options, &sink); });
  if (num_rows != nullptr) *num_rows = sink.num_rows;
  return status;
}

}  // extern "C"
