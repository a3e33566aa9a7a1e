// SPDX-License-Identifier: Apache-2.0
// A whole join over batches that are all there, on threads of the library, for hosts that have no threads to spare.
//
// Each batch is divided into morsels of 64 Ki rows, and each thread takes the next morsel when it has finished its last
// one, so no thread waits for a slow one (Leis, Boncz, Kemper, Neumann, Morsel-Driven Parallelism, SIGMOD 2014).
// Example: 3 threads, 200,000 build rows in one batch and 150,000 probe rows in two:
//
//     build      65536 | 65536 | 65536 | 3392    each thread by its own appender, finished when no morsel is left
//     finalise   all threads, as quern_join_finalise_shared does
//     probe      65536 | 9464   65536 | 9464     each thread by its own prober; results go to the host at once
//     unmatched  all threads share the scan of unmatched build rows; only for kinds of join that have one
//
// No phase begins before all threads have finished the previous one. A morsel that fails ends the run. A host that
// wants no more results ends it without an error: the remaining morsels are then taken and dropped. No exception of a
// host's function leaves its thread.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "hosts/c/handles.h"
#include "hosts/c/host_batch.h"
#include "hosts/c/morsels.h"
#include "hosts/c/quern.h"
#include "runtime/base/shared_work.h"

namespace quern::c_abi {
namespace {

// The probers of a run, one a thread, each made when its thread has its first morsel.
class Probers {
 public:
  Probers(const std::shared_ptr<JoinState>& state, uint64_t batch_rows, uint32_t threads, ResultSink* sink)
      : state_(state), batch_rows_(batch_rows), sink_(sink), probers_(threads) {}

  absl::Status Probe(uint32_t thread, const Morsel& morsel) {
    if (sink_->stopped) return absl::OkStatus();
    QUERN_ASSIGN_OR_RETURN(quern_prober * prober, ProberOf(thread));
    const BatchSlice slice(*morsel.batch, state_->probe.keys, state_->probe.payload, morsel.first_row, morsel.num_rows);
    QUERN_RETURN_IF_ERROR(StartHostProbe(prober, slice.batch()));
    return TakeAll(prober);
  }

  absl::Status ScanUnmatched(uint32_t thread) {
    if (sink_->stopped) return absl::OkStatus();
    QUERN_ASSIGN_OR_RETURN(quern_prober * prober, ProberOf(thread));
    QUERN_RETURN_IF_ERROR(StartUnmatched(prober));
    return TakeAll(prober);
  }

 private:
  absl::StatusOr<quern_prober*> ProberOf(uint32_t thread) {
    if (!probers_[thread]) {
      QUERN_ASSIGN_OR_RETURN(probers_[thread], NewProber(state_, batch_rows_));
    }
    return probers_[thread].get();
  }

  absl::Status TakeAll(quern_prober* prober) {
    bool more = true;
    while (more && !sink_->stopped) {
      QUERN_ASSIGN_OR_RETURN(more, NextRows(prober));
      sink_->Take(ResultOf(prober));
    }
    return absl::OkStatus();
  }

  const std::shared_ptr<JoinState>& state_;
  uint64_t batch_rows_;
  ResultSink* sink_;
  std::vector<std::unique_ptr<quern_prober>> probers_;
};

absl::Status RunJoin(quern_join* join, const Batches& build, const Batches& probe, uint32_t threads,
                     uint64_t batch_rows, ResultSink* sink) {
  if (join == nullptr) return MissingArgument("join");
  QUERN_ASSIGN_OR_RETURN(const std::vector<Morsel> build_morsels, CutIntoMorsels(build, "build"));
  QUERN_ASSIGN_OR_RETURN(const std::vector<Morsel> probe_morsels, CutIntoMorsels(probe, "probe"));
  QUERN_ASSIGN_OR_RETURN(threads, NumThreads(threads));
  QUERN_RETURN_IF_ERROR(CheckBatchRows(batch_rows));
  QUERN_RETURN_IF_ERROR(join->state->sink->CheckOpen("run"));
  ExpectRows(*join->state->kernel, RowsOf(build_morsels) + RowsOf(probe_morsels), threads);
  const JoinState& state = *join->state;
  const auto append = [&state](const SinkInput& input, const quern_batch& batch) {
    return AddHostBatch(state, input, batch, false);
  };
  QUERN_RETURN_IF_ERROR(AppendAndFinalise(state, state.build, build_morsels, threads, append));
  Probers probers(join->state, batch_rows, threads, sink);
  QUERN_RETURN_IF_ERROR(RunMorsels(threads, probe_morsels.size(), [&](uint32_t thread, uint64_t number) {
    return probers.Probe(thread, probe_morsels[number]);
  }));
  if (!RowOf(join->state->spec().join_kind).flags_matched_rows()) return absl::OkStatus();
  return RunMorsels(threads, threads, [&](uint32_t thread, uint64_t) { return probers.ScanUnmatched(thread); });
}

}  // namespace
}  // namespace quern::c_abi

extern "C" {

quern_status quern_join_run(quern_join* join, const quern_batch* build, size_t num_build, const quern_batch* probe,
                            size_t num_probe, uint32_t threads, uint64_t batch_rows, quern_on_result on_result,
                            void* context, uint64_t* num_rows, quern_error* error) {
  quern::c_abi::ResultSink sink{on_result, context};
  const quern_status status = quern::c_abi::Boundary(error, [&] {
    return quern::c_abi::RunJoin(join, {build, num_build}, {probe, num_probe}, threads, batch_rows, &sink);
  });
  if (num_rows != nullptr) *num_rows = sink.num_rows;
  return status;
}

}  // extern "C"
