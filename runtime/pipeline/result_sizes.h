// SPDX-License-Identifier: Apache-2.0
// A probe gives fewer rows at a time where the strings of all find no memory. A piece that was refused memory later is
// sent again, and what has arrived at the pipeline's end by then is left out there batch by batch. So it must become
// the same batches, whatever memory there is now:
//
//     piece             4,096 rows, then 512 as memory was refused, then an error behind the probe
//     the same again    4,096 rows, then 512, then as many as there is memory for
#ifndef QUERN_RUNTIME_PIPELINE_RESULT_SIZES_H_
#define QUERN_RUNTIME_PIPELINE_RESULT_SIZES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/status.h"

namespace quern {

// The sizes of the results that a step has made of a piece. *Threads*: one.
class ResultSizes {
 public:
  void BeginPiece(bool is_again) {
    next_ = 0;
    if (!is_again) sizes_.clear();
  }

  // Rows of the next result, of which there are `most` if memory allows.
  uint64_t Next(uint64_t most) const { return next_ < sizes_.size() ? std::min(most, sizes_[next_]) : most; }

  // A result has so many rows, more than none. *Errors*: ResourceExhausted where it had more before: the piece has to
  // be sent once more.
  absl::Status Add(uint64_t num_rows) {
    if (next_ == sizes_.size()) sizes_.push_back(num_rows);
    return sizes_[next_++] == num_rows ? absl::OkStatus() : OutOfMemory();
  }

 private:
  std::vector<uint64_t> sizes_;
  size_t next_ = 0;  // the number of the next result
};

}  // namespace quern

#endif  // QUERN_RUNTIME_PIPELINE_RESULT_SIZES_H_
