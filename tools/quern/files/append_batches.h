// SPDX-License-Identifier: Apache-2.0
// Appends one input to an operator with any number of threads, which take its batches in turns; then all threads
// finalise together.
//
//     append     A: batches 0, 2, 5, ..   B: 1, 3, 4, ..    6,000,000 rows: 92 batches; each of 4 threads takes about
//     23 finalise   A and B together
//
// A single thread appends to the operator itself.
#ifndef QUERN_TOOLS_FILES_APPEND_BATCHES_H_
#define QUERN_TOOLS_FILES_APPEND_BATCHES_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/status.h"
#include "runtime/sink/sink_driver.h"
#include "tools/quern/files/batches.h"
#include "tools/quern/files/progress.h"

namespace quern::cli {

// The number of threads that so many batches keep busy.
inline uint32_t ThreadsFor(size_t num_batches, uint32_t threads) {
  return static_cast<uint32_t>(std::min<size_t>(threads, std::max<size_t>(num_batches, 1)));
}

// Appends all batches, then finalises.
inline absl::Status AppendAndFinalise(const InputBatches& batches, uint32_t threads, Progress* progress,
                                      const std::shared_ptr<Sink>& sink) {
  progress->Begin("append", batches.num_rows());
  std::vector<std::vector<uint32_t>> selections(std::max(threads, 1u));
  const auto append = [&](const SinkInput& input, uint32_t thread, uint64_t i) -> absl::Status {
    QUERN_ASSIGN_OR_RETURN(const BatchView view, batches.View(i, &selections[thread]));
    QUERN_RETURN_IF_ERROR(input.Append(view));
    progress->Add(batches.num_rows(i));
    return absl::OkStatus();
  };
  QUERN_RETURN_IF_ERROR(AppendMorsels(sink, batches.size(), threads, append));
  progress->Begin("finalise", 0);
  return FinaliseOnThreads(sink.get(), threads);
}

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FILES_APPEND_BATCHES_H_
