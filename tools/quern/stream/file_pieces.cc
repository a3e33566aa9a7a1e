// SPDX-License-Identifier: Apache-2.0
// Readers have a quarter of the limit, and each of the threads has the same part of it: under 16 MiB, of which 12 are
// the budget of the run, each of two threads has 1.5 MiB. Rows of 16 columns of 8 bytes come in batches of 3072 then.
#include "tools/quern/stream/file_pieces.h"

#include <arrow/util/thread_pool.h>

#include <algorithm>
#include <utility>

#include "runtime/base/thresholds.h"
#include "tools/quern/files/reading_memory.h"

namespace quern::cli {

FilePieces::FilePieces(std::string path, std::vector<std::string> columns)
    : path_(std::move(path)), columns_(std::move(columns)), may_be_null_(columns_.size()) {}

uint64_t ReaderBytes() {
  constexpr uint64_t kShare = 4;
  const auto threads = static_cast<uint64_t>(std::max(arrow::GetCpuThreadPoolCapacity(), 1));
  return ReadingLimit() / kShare / threads;
}

// A column's builder may be twice as long as its values, and the values longer than their encoding.
int64_t BatchRows(uint64_t row_bytes) {
  constexpr uint64_t kTimesEncoded = 4, kFewestRows = 1024;
  if (ReadingLimit() == 0) return static_cast<int64_t>(thresholds::kMorselRows);
  const uint64_t rows = ReaderBytes() / (kTimesEncoded * std::max<uint64_t>(row_bytes, 1));
  return static_cast<int64_t>(std::clamp<uint64_t>(rows, kFewestRows, thresholds::kMorselRows));
}

}  // namespace quern::cli
