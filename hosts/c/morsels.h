// SPDX-License-Identifier: Apache-2.0
// Runs on threads of the library (job_run.cc): batches divided into morsels, and the destination of results. Internal.
#ifndef QUERN_HOSTS_C_MORSELS_H_
#define QUERN_HOSTS_C_MORSELS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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
