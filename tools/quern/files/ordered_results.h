// SPDX-License-Identifier: Apache-2.0
// Puts the rows of several threads in the order of their positions, and writes them to a stream of results.
#ifndef QUERN_TOOLS_FILES_ORDERED_RESULTS_H_
#define QUERN_TOOLS_FILES_ORDERED_RESULTS_H_

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>

#include "absl/status/status.h"
#include "runtime/base/memory.h"
#include "runtime/rows/output_batch.h"
#include "tools/quern/files/batches.h"
#include "tools/quern/files/result_stream.h"

namespace quern::cli {

// *Threads*: any number at once. The thread that has the next rows writes them, and all that others have put behind
// them.
class OrderedResults {
 public:
  // budget: of the rows. most_bytes: of rows that wait for others, roughly.
  OrderedResults(ResultStream* results, const MemoryBudget* budget, uint64_t most_bytes)
      : results_(results), budget_(budget), most_bytes_(most_bytes) {}

  // Takes rows at a position of the result. Waits while others must come first and there is no room. *Errors*: those
  // of the stream, and what End was told.
  absl::Status Put(uint64_t position, OutputBatch* rows);
  // A thread has no more rows. An error ends the waiting of all others. Returns the first error of any.
  absl::Status End(const absl::Status& status);

 private:
  bool HasRoom(uint64_t bytes) const;
  absl::Status WriteNext(std::unique_lock<std::mutex>* lock, RecordBatchPointer rows);

  ResultStream* const results_;
  const MemoryBudget* const budget_;
  const uint64_t most_bytes_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  absl::Status status_;
  uint64_t next_position_ = 0;
  std::map<uint64_t, RecordBatchPointer> waiting_;  // by position
  uint64_t waiting_bytes_ = 0;
};

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FILES_ORDERED_RESULTS_H_
