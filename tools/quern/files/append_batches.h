// SPDX-License-Identifier: Apache-2.0
// Appends one input to an operator's state with any number of threads, which take its batches in turns; then all
// threads finalise together.
//
//     append     A: batches 0, 2, 5, ..   B: 1, 3, 4, ..    6,000,000 rows: 92 batches; each of 4 threads takes about
//     23 finalise   A and B together
//
// A single thread appends to the state itself.
#ifndef QUERN_TOOLS_FILES_APPEND_BATCHES_H_
#define QUERN_TOOLS_FILES_APPEND_BATCHES_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/shared_work.h"
#include "runtime/base/status.h"
#include "tools/quern/files/batches.h"
#include "tools/quern/files/progress.h"

namespace quern::cli {

// The number of threads that an input keeps busy.
inline uint32_t ThreadsFor(const InputBatches& batches, uint32_t threads) {
  return static_cast<uint32_t>(std::min<size_t>(threads, std::max<size_t>(batches.size(), 1)));
}

template <class State>
absl::Status AppendByOne(const InputBatches& batches, Progress* progress, State* state) {
  std::vector<uint32_t> selection;
  for (size_t i = 0; i < batches.size(); ++i) {
    QUERN_ASSIGN_OR_RETURN(const BatchView view, batches.View(i, &selection));
    QUERN_RETURN_IF_ERROR(state->Append(view));
    progress->Add(batches.num_rows(i));
  }
  return absl::OkStatus();
}

template <class Appender, class State>
absl::Status AppendByAll(const InputBatches& batches, uint32_t threads, Progress* progress,
                         const std::shared_ptr<State>& state) {
  std::vector<std::unique_ptr<Appender>> appenders;
  for (uint32_t thread = 0; thread < threads; ++thread) appenders.push_back(std::make_unique<Appender>(state));
  std::vector<std::vector<uint32_t>> selections(threads);
  const absl::Status appended = RunMorsels(threads, batches.size(), [&](uint32_t thread, uint64_t i) -> absl::Status {
    QUERN_ASSIGN_OR_RETURN(const BatchView view, batches.View(i, &selections[thread]));
    QUERN_RETURN_IF_ERROR(appenders[thread]->Append(view));
    progress->Add(batches.num_rows(i));
    return absl::OkStatus();
  });
  QUERN_RETURN_IF_ERROR(appended);
  return RunMorsels(threads, threads, [&](uint32_t, uint64_t i) { return appenders[i]->Finish(); });
}

// Appends all batches, then finalises. `Appender` is what each of several threads has; it has the functions of the
// state.
template <class Appender, class State>
absl::Status AppendAndFinalise(const InputBatches& batches, uint32_t threads, Progress* progress,
                               const std::shared_ptr<State>& state) {
  progress->Begin("append", batches.num_rows());
  if (threads == 1) {
    QUERN_RETURN_IF_ERROR(AppendByOne(batches, progress, state.get()));
    progress->Begin("finalise", 0);
    return state->Finalise();
  }
  QUERN_RETURN_IF_ERROR(AppendByAll<Appender>(batches, threads, progress, state));
  progress->Begin("finalise", 0);
  return RunMorsels(threads, threads, [&state](uint32_t, uint64_t) { return state->FinaliseShared(); });
}

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FILES_APPEND_BATCHES_H_
