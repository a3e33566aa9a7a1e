// SPDX-License-Identifier: Apache-2.0
// Adds the rows of a workload to a sink, as the command line adds those of files: a free thread takes the next batch.
#ifndef QUERN_BENCH_COMMON_APPEND_ROWS_H_
#define QUERN_BENCH_COMMON_APPEND_ROWS_H_

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "runtime/sink/sink_driver.h"

namespace quern::bench {

constexpr uint64_t kBatchRows = uint64_t{1} << 16;

// view(first, num_rows): the batch of these rows. A single thread adds to the sink itself, several ones to appenders.
template <class View>
absl::Status AppendRows(const std::shared_ptr<Sink>& sink, uint64_t num_rows, uint32_t threads, const View& view) {
  const uint64_t num_batches = (num_rows + kBatchRows - 1) / kBatchRows;
  return AppendMorsels(sink, num_batches, threads, [&](const SinkInput& input, uint32_t /*thread*/, uint64_t batch) {
    const uint64_t first = batch * kBatchRows;
    return input.Append(view(first, std::min(kBatchRows, num_rows - first)));
  });
}

}  // namespace quern::bench

#endif  // QUERN_BENCH_COMMON_APPEND_ROWS_H_
