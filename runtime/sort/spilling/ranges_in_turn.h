// SPDX-License-Identifier: Apache-2.0
// The result of a sort that has spilled, as ranges of rows in order, which readers take in turn.
#ifndef QUERN_RUNTIME_SORT_SPILLING_RANGES_IN_TURN_H_
#define QUERN_RUNTIME_SORT_SPILLING_RANGES_IN_TURN_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/rows/output_batch.h"

namespace quern {

// The rows of one range. *Threads*: one at a time.
class RangeReader {
 public:
  virtual ~RangeReader() = default;
  // Fills `out` with the next rows; no rows: the end. *Errors*: any, after which the range is lost.
  virtual absl::Status Read(OutputBatch* out) = 0;
};

// *Threads*: any number at once.
class RangesInTurn {
 public:
  // first_rows: the position of each range's first row in the result, and the number of all rows.
  explicit RangesInTurn(std::vector<uint64_t> first_rows) : first_rows_(std::move(first_rows)) {}
  virtual ~RangesInTurn() = default;
  RangesInTurn(const RangesInTurn&) = delete;
  RangesInTurn& operator=(const RangesInTurn&) = delete;

  uint64_t num_rows() const { return first_rows_.back(); }

  // What one reader has at present.
  struct Held {
    std::unique_ptr<RangeReader> rows;  // null: no range
    uint64_t position = 0, end = 0;     // rows of the result that are left of it
  };
  // The next rows of the range, or, where it has none left, of one that nobody has taken: as SortReader::Next. A reader
  // that is refused memory for a range, while others have theirs, has no rows; the others read the rest.
  absl::StatusOr<bool> Next(Held* held, OutputBatch* out, uint64_t* position);
  // Leaves the rest of a range, which the reader has, to others.
  void GiveBack(Held held);

 protected:
  // Of the result.
  uint64_t rows_of(uint64_t range) const { return first_rows_[range + 1] - first_rows_[range]; }
  // Makes the reader of a range that has rows, whose memory others cannot take any more; null where there is too little
  // beside that of other readers. is_first: no other reader has a range. Called for one range after the other.
  virtual absl::StatusOr<std::unique_ptr<RangeReader>> Begin(uint64_t range, bool is_first) = 0;
  // A range has been read, and its reader is gone; no other reader has one.
  virtual void HasReadAllBegun() {}
  // For both: whether there are ranges that have not begun.
  bool has_ranges_left() const { return next_range_ < num_ranges(); }

 private:
  absl::StatusOr<bool> Take(Held* held);
  absl::StatusOr<bool> Count(OutputBatch* out, uint64_t* position);
  void End(Held* held, const absl::Status& status);
  uint64_t num_ranges() const { return first_rows_.size() - 1; }

  const std::vector<uint64_t> first_rows_;
  std::mutex mutex_;  // guards what follows
  uint64_t next_range_ = 0;
  uint32_t num_active_ = 0;       // ranges that readers have
  std::vector<Held> given_back_;  // in part
  absl::Status status_;           // of the first reader that has failed
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_SPILLING_RANGES_IN_TURN_H_
