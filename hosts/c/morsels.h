// SPDX-License-Identifier: Apache-2.0
// The shared parts of runs on threads of the library (join_run.cc, aggregate_run.cc, sort_run.cc): batches divided into
// morsels, tasks for threads, and the destination of results. Internal.
#ifndef QUERN_HOSTS_C_MORSELS_H_
#define QUERN_HOSTS_C_MORSELS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "hosts/c/handles.h"
#include "hosts/c/quern.h"

namespace quern::c_abi {

struct Batches {
  const quern_batch* batches;
  size_t count;
};

// Rows of one batch.
struct Morsel {
  const quern_batch* batch;
  uint64_t first_row;
  uint64_t num_rows;
};

// Divides batches into morsels of up to 65536 rows. *Errors*: InvalidArgument for a null pointer, which is called
// `name`, or for a batch that is too large.
absl::StatusOr<std::vector<Morsel>> CutIntoMorsels(const Batches& side, const char* name);
uint64_t RowsOf(const std::vector<Morsel>& morsels);

// The threads of a run; 0: as many as the machine has. *Errors*: InvalidArgument above 1024.
absl::StatusOr<uint32_t> NumThreads(uint32_t threads);

// RunMorsels for tasks that call a host's function: its exceptions become the task's error.
absl::Status RunTasks(uint32_t threads, uint64_t num_tasks,
                      const std::function<absl::Status(uint32_t thread, uint64_t task)>& task);

// Hands morsels to appenders (handles) of an operator's state, one a thread. An appender is made when its thread has
// its first morsel, and finished at the end. `append` takes a handle and a morsel. *Errors*: any; afterwards morsels of
// a batch may be missing, even if an append was rejected as a whole.
template <class Appender, class State, class Append>
absl::Status AppendByThreads(const std::shared_ptr<State>& state, const std::vector<Morsel>& morsels, uint32_t threads,
                             const Append& append) {
  FailureMark mark(&state->append_failed);
  std::vector<std::unique_ptr<Appender>> appenders(threads);
  QUERN_RETURN_IF_ERROR(RunTasks(threads, morsels.size(), [&](uint32_t thread, uint64_t number) {
    if (!appenders[thread]) appenders[thread] = std::make_unique<Appender>(state);
    return append(appenders[thread].get(), morsels[number]);
  }));
  for (const auto& appender : appenders) {
    if (appender) QUERN_RETURN_IF_ERROR(FinishAppender(appender.get()));
  }
  mark.AllWentWell();
  return absl::OkStatus();
}

// The same, except that a single thread or a single morsel appends to the operator itself, which then has nothing to
// merge; `append` gets no handle.
template <class Appender, class State, class Append>
absl::Status AppendMorsels(const std::shared_ptr<State>& state, const std::vector<Morsel>& morsels, uint32_t threads,
                           const Append& append) {
  if (threads > 1 && morsels.size() > 1) return AppendByThreads<Appender>(state, morsels, threads, append);
  FailureMark mark(&state->append_failed);
  Appender* const no_appender = nullptr;
  for (const Morsel& morsel : morsels) QUERN_RETURN_IF_ERROR(append(no_appender, morsel));
  mark.AllWentWell();
  return absl::OkStatus();
}

// The destination of rows, and their number. *Threads*: any.
struct ResultSink {
  quern_on_result on_result;
  void* context;
  std::atomic<bool> stopped{false};  // the host wants no more
  std::atomic<uint64_t> num_rows{0};

  void Take(const quern_result& result);
};

}  // namespace quern::c_abi

#endif  // QUERN_HOSTS_C_MORSELS_H_
