// SPDX-License-Identifier: Apache-2.0
// Joins the parts of a join that has spilled, one after the other.
#ifndef QUERN_RUNTIME_JOIN_PART_PROBER_H_
#define QUERN_RUNTIME_JOIN_PART_PROBER_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/memory.h"
#include "runtime/join/spilled_join.h"
#include "runtime/rows/batch_view.h"
#include "runtime/rows/output_batch.h"
#include "runtime/spill/budget_with_reserve.h"
#include "runtime/spill/spilled_rows.h"

namespace quern {

class HashJoin;
class JoinProber;

// *Threads*: one; any number of them share the parts.
class PartProber {
 public:
  // join: has spilled, and its parts have begun. Goes on with what SpilledJoin::BeginReading has begun.
  PartProber(std::shared_ptr<const HashJoin> join, void* host_context);
  PartProber(const PartProber&) = delete;
  PartProber& operator=(const PartProber&) = delete;
  ~PartProber();

  // Empties `out` and adds rows; any number of them, also none. Returns whether there may be more. Without output
  // columns it counts. *Errors*: as JoinProber::Next; those of the store.
  absl::StatusOr<bool> Next(OutputBatch* out);

 private:
  // What comes next.
  enum class Stage : uint8_t { kPart, kProbe, kMatches, kUnmatched, kNullRows, kNullRowsOut };
  // What became of a part that was taken.
  enum class Fit : uint8_t { kInMemory, kDivided, kLeft };

  absl::StatusOr<bool> BeginPart();
  absl::StatusOr<Fit> FitPart();
  void EndPart();
  uint64_t BytesOf(const SpilledRows& rows, size_t num_blocks) const;
  bool HasRoomForResults(uint64_t bytes) const;
  bool TakeMemory(uint64_t bytes);
  void TakeChunk(size_t num_blocks);
  absl::Status BeginCarrying();
  absl::Status ChooseChunk();
  absl::Status BuildTable();
  absl::Status NextBatch();
  absl::Status EndInput();
  absl::Status EndChunk();
  absl::Status NextNullRows();
  SpilledJoin& spilled() const;

  const std::shared_ptr<const HashJoin> join_;
  void* const host_context_;
  Stage stage_ = Stage::kPart;
  bool is_reading_ = true;
  JoinPart part_;  // `build`: the rows that no chunk has had yet
  BudgetWithReserve memory_;
  std::shared_ptr<SpilledRows> chunk_;  // build rows that are joined together: all, or as many as fit
  std::shared_ptr<HashJoin> table_;     // of them
  std::unique_ptr<JoinProber> prober_;
  std::unique_ptr<RowReader> rows_;  // of the probe side, or with null keys
  uint64_t first_row_ = 0;           // of the next batch, among the part's probe rows
  bool is_chunked_ = false;          // there are several chunks
  HugeBuffer found_;        // with several chunks, a bit for each probe row: whether an earlier one has a match
  BatchView null_rows_;     // that come out
  ReadTuples null_tuples_;  // of them
};

}  // namespace quern

#endif  // QUERN_RUNTIME_JOIN_PART_PROBER_H_
