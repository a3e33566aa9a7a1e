// SPDX-License-Identifier: Apache-2.0
// Batches are divided into morsels that threads take one after the other, so no thread waits for a slow one (Leis,
// Boncz, Kemper, Neumann, Morsel-Driven Parallelism, SIGMOD 2014). A morsel names rows of a batch and copies nothing.
// 65536 rows are some hundred microseconds of work: long compared with the counter that hands them out, short compared
// with a whole run. Example: a batch of 150,000 rows and one of 3 are
//
//     batch 0, rows 0 to 65535 | batch 0, rows 65536 to 131071 | batch 0, rows 131072 to 149999 | batch 1, rows 0 to 2
//
// Results go to the host's function at once, on the thread that made them. An exception of that function becomes the
// run's error (RunMorsels), as Boundary does for the calling thread.
#include "hosts/c/morsels.h"

#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <thread>

#include "hosts/c/boundary.h"
#include "hosts/c/host_batch.h"
#include "runtime/base/shared_work.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"

namespace quern::c_abi {
namespace {

using thresholds::kMorselRows;
constexpr uint32_t kMaxThreads = 1024;

}  // namespace

absl::StatusOr<std::vector<Morsel>> CutIntoMorsels(const Batches& side, const char* name) {
  if (side.count != 0 && side.batches == nullptr) return MissingArgument(name);
  std::vector<Morsel> morsels;
  for (size_t i = 0; i < side.count; ++i) {
    const quern_batch& batch = side.batches[i];
    QUERN_RETURN_IF_ERROR(CheckNumRows(batch.num_rows));
    for (uint64_t row = 0; row < batch.num_rows; row += kMorselRows) {
      morsels.push_back({&batch, row, std::min(kMorselRows, batch.num_rows - row)});
    }
  }
  return morsels;
}

uint64_t RowsOf(const std::vector<Morsel>& morsels) {
  uint64_t num_rows = 0;
  for (const Morsel& morsel : morsels) num_rows += morsel.num_rows;
  return num_rows;
}

absl::StatusOr<uint32_t> NumThreads(uint32_t threads) {
  if (threads > kMaxThreads) {
    return InvalidArgument("threads out of range: " + std::to_string(threads) + "; accepted: 0 to " +
                           std::to_string(kMaxThreads));
  }
  return threads != 0 ? threads : std::clamp(std::thread::hardware_concurrency(), 1u, kMaxThreads);
}

void ResultSink::Take(const quern_result& result) {
  if (result.num_rows == 0 || stopped) return;
  num_rows += result.num_rows;
  if (on_result != nullptr && !on_result(context, &result)) stopped = true;
}

}  // namespace quern::c_abi
