// SPDX-License-Identifier: Apache-2.0
// The host receives columns where they are: those of its own batch as it gave them, those of a step in that step's
// memory, with one selection for all. Example: a filter passes rows 1 and 3 of four, then a map adds a column; both
// columns have four elements, of which the host reads two:
//
//     price      5  7  9  2          selection   1  3
//     doubled    ?  14 ?  4          num_rows    2
//
// A copy of the selected rows would be read once, by a host that copies them itself to where it needs them.
#include "hosts/c/host_rows.h"

#include <string>

#include "runtime/base/status.h"

namespace quern::c_abi {

absl::Status HostRows::CheckOpen(const char* call) const {
  if (finished_) {
    return absl::FailedPreconditionError(std::string(call) +
                                         " after finish: the rows were handed over; accepted: a new input");
  }
  if (!lost_rows_) return absl::OkStatus();
  return absl::FailedPreconditionError(std::string(call) +
                                       " after a failure: the host has a part of the batch; accepted: a new input");
}

absl::Status HostRows::Append(const BatchView& batch, uint64_t* taken_rows) {
  *taken_rows = 0;
  quern_batch rows = {};
  rows.keys = keys_.Show(batch.keys);
  rows.payload = payload_.Show(batch.payload);
  rows.selection = batch.selection;
  rows.num_rows = batch.num_rows;
  rows.first_row_id = batch.first_row_id == kCountedRowIds ? 0 : batch.first_row_id;
  try {
    has_stopped_ = !on_rows_(context_, &rows);
  } catch (...) {  // a host in C++ may throw: also std::bad_alloc, after which the rows must not come again
    lost_rows_ = true;
    return absl::AbortedError("function of a pipeline's host failed: an exception; accepted: true or false");
  }
  if (has_stopped_) return absl::CancelledError("the host wants no more rows");
  *taken_rows = batch.num_rows;
  return absl::OkStatus();
}

absl::Status HostRows::Finish() {
  QUERN_RETURN_IF_ERROR(CheckOpen("finish"));
  finished_ = true;
  return absl::OkStatus();
}

}  // namespace quern::c_abi
