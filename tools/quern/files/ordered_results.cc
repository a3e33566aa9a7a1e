// SPDX-License-Identifier: Apache-2.0
// Two threads merge ranges of a sorted result, each from its first row to its last:
//
//     A   range 0: merges and writes          writes what B has put       range 3: ..
//     B   range 1: merges and puts    range 2: merges and puts                             waits where there is no room
#include "tools/quern/files/ordered_results.h"

#include <arrow/api.h>
#include <arrow/util/byte_size.h>

#include <utility>

#include "runtime/base/status.h"

namespace quern::cli {
namespace {

uint64_t BytesOf(const RecordBatchPointer& rows) {
  return rows == nullptr ? 0 : static_cast<uint64_t>(arrow::util::TotalBufferSize(*rows));
}

}  // namespace

// The thread that has the next rows never waits, and needs some of the memory.
bool OrderedResults::HasRoom(uint64_t bytes) const {
  constexpr uint64_t kFreeShare = 3;
  const uint64_t limit = budget_->limit_bytes();
  return waiting_bytes_ + bytes <= most_bytes_ &&
         (limit == 0 || budget_->used_bytes() + limit / kFreeShare + bytes <= limit);
}

absl::Status OrderedResults::Put(uint64_t position, OutputBatch* rows) {
  const uint64_t num_rows = rows->num_rows();
  if (num_rows == 0) return absl::OkStatus();
  QUERN_ASSIGN_OR_RETURN(RecordBatchPointer batch, results_->Take(rows));
  const uint64_t bytes = BytesOf(batch);
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return !status_.ok() || position == next_position_ || HasRoom(bytes); });
  QUERN_RETURN_IF_ERROR(status_);
  if (position == next_position_) return WriteNext(&lock, std::move(batch));
  waiting_.emplace(position, std::move(batch));
  waiting_bytes_ += bytes;
  return absl::OkStatus();
}

// No other thread has the next rows, so that none writes meanwhile.
absl::Status OrderedResults::WriteNext(std::unique_lock<std::mutex>* lock, RecordBatchPointer rows) {
  for (;;) {
    const auto num_rows = static_cast<uint64_t>(rows->num_rows());
    lock->unlock();
    absl::Status status = results_->Write(rows);
    rows.reset();
    lock->lock();
    if (!status.ok()) {
      status_ = status;
      changed_.notify_all();
      return status;
    }
    next_position_ += num_rows;
    const auto next = waiting_.begin();
    const bool has_next = next != waiting_.end() && next->first == next_position_;
    if (has_next) {
      rows = std::move(next->second);
      waiting_bytes_ -= BytesOf(rows);
      waiting_.erase(next);
    }
    changed_.notify_all();
    if (!has_next) return absl::OkStatus();
  }
}

absl::Status OrderedResults::End(const absl::Status& status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (status_.ok()) status_ = status;
  changed_.notify_all();
  return status_;
}

}  // namespace quern::cli
