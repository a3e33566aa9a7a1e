// SPDX-License-Identifier: Apache-2.0
// One reader always makes progress: it has its range, or takes the next one while no other reader has any.
#include "runtime/sort/spilling/ranges_in_turn.h"

#include <utility>

#include "runtime/base/status.h"

namespace quern {

absl::StatusOr<bool> RangesInTurn::Take(Held* held) {
  const std::lock_guard<std::mutex> lock(mutex_);
  QUERN_RETURN_IF_ERROR(status_);
  if (!given_back_.empty()) {
    *held = std::move(given_back_.back());
    given_back_.pop_back();
    ++num_active_;
    return true;
  }
  while (next_range_ < num_ranges() && first_rows_[next_range_] == first_rows_[next_range_ + 1]) ++next_range_;
  if (!has_ranges_left()) return false;
  QUERN_ASSIGN_OR_RETURN(held->rows, Begin(next_range_, num_active_ == 0));
  if (held->rows == nullptr) return false;
  held->position = first_rows_[next_range_];
  held->end = first_rows_[++next_range_];
  ++num_active_;
  return true;
}

void RangesInTurn::End(Held* held, const absl::Status& status) {
  *held = {};
  const std::lock_guard<std::mutex> lock(mutex_);
  if (status_.ok()) status_ = status;
  if (--num_active_ == 0) HasReadAllBegun();
}

void RangesInTurn::GiveBack(Held held) {
  const std::lock_guard<std::mutex> lock(mutex_);
  --num_active_;
  given_back_.push_back(std::move(held));
}

absl::StatusOr<bool> RangesInTurn::Next(Held* held, OutputBatch* out, uint64_t* position) {
  if (out->num_columns() == 0) return Count(out, position);
  if (held->rows == nullptr) {
    *position = num_rows();
    QUERN_ASSIGN_OR_RETURN(const bool has_range, Take(held));
    if (!has_range) return false;
  }
  *position = held->position;
  absl::Status status = held->rows->Read(out);
  if (status.ok() && (out->num_rows() == 0 || out->num_rows() > held->end - held->position))
    status = absl::InternalError("sort that spills: a range has other rows than were counted");
  if (!status.ok()) {
    End(held, status);
    return status;
  }
  held->position += out->num_rows();
  if (held->position != held->end) return true;
  End(held, absl::OkStatus());
  const std::lock_guard<std::mutex> lock(mutex_);
  return has_ranges_left() || !given_back_.empty();
}

// All rows that no reader has taken, without reading them.
absl::StatusOr<bool> RangesInTurn::Count(OutputBatch* out, uint64_t* position) {
  const std::lock_guard<std::mutex> lock(mutex_);
  QUERN_RETURN_IF_ERROR(status_);
  *position = first_rows_[next_range_];
  out->set_num_rows(num_rows() - *position);
  next_range_ = num_ranges();
  return false;
}

}  // namespace quern
