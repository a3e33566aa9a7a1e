// SPDX-License-Identifier: Apache-2.0
// A join whose build rows exceed its memory (hybrid hash join: DeWitt, Katz, Olken, Shapiro, Stonebraker, Wood,
// Implementation Techniques for Main Memory Database Systems, SIGMOD 1984). What is written lies in partitions by the
// hash of the keys. As many of them as fit are read back and form the table. Probe rows of the others are written, too,
// and joined partition by partition at the end.
#ifndef QUERN_RUNTIME_JOIN_SPILLED_JOIN_H_
#define QUERN_RUNTIME_JOIN_SPILLED_JOIN_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/join/build_side.h"
#include "runtime/join/join_descriptor.h"
#include "runtime/join/join_parts.h"
#include "runtime/join/spilled_build.h"
#include "runtime/join/spilling_builder.h"

namespace quern {

class OutputBatch;

// Rows that are joined on their own: a partition, or the rows with null keys.
struct JoinPart {
  uint32_t level = 0;      // at which its rows were divided last
  bool is_skewed = false;  // dividing it again would not help
  bool are_null_rows = false;
  SpilledRows build, probe;
};

// The rows of a join that are not in its table. *Threads*: any number at once.
class SpilledJoin {
 public:
  // build_parts: by partition; null where the partition is in the table.
  // generic: entry points for any descriptor.
  SpilledJoin(JoinContext context, const QuernJoinEntryPoints& generic, std::shared_ptr<SpilledBuild> build,
              std::vector<std::shared_ptr<SpilledRows>> build_parts, SpilledRows null_rows);

  const std::shared_ptr<SpillContext>& spill() const { return build_->spill(); }
  const SpilledBuild& build() const { return *build_; }
  const ProbeColumns& probe_columns() const { return probe_columns_; }
  // Of rows that are read back.
  const std::shared_ptr<const JoinDescriptor>& part_descriptor() const { return part_descriptor_; }
  const JoinEntrySource& part_entry_points() const { return part_entry_points_; }

  // Writes the partition of each of the batch's rows, or kNoPart where the row is to be probed now.
  absl::Status FindParts(const BatchView& batch, QuernProbeScratch* scratch, uint32_t* numbers) const;
  // *Errors*: FailedPrecondition after BeginParts; those of CheckWhole.
  absl::Status CheckProbing() const;
  // Writes probe rows to their partitions. *Errors*: those of CheckProbing, after which nothing was written; those of
  // PartitionedWriter::Append, but Unavailable where memory was refused (MemoryLost): some of the rows were written, so
  // that they cannot come again, and the join is broken.
  absl::Status WriteProbe(const BatchView& columns, const uint32_t* numbers);

  // Marks the join as missing rows, or as having some twice. Returns the first error with which it was marked.
  absl::Status Break(const absl::Status& error);
  // *Errors*: that one.
  absl::Status CheckWhole() const;

  // Completes the parts: no probe row comes any more. Only the first call does anything. *Errors*: those of CheckWhole;
  // those of writing, after which the join is broken.
  absl::Status BeginParts();
  // Between them a thread reads: it scans the table's rows, or takes parts until there are none.
  void BeginReading();
  void EndReading();
  uint32_t num_reading() const;
  // Whether other threads read.
  bool HasOthers() const { return num_reading() > 1; }
  // Threads that are within a call that reads, and do not wait for others.
  std::atomic<int32_t>* num_running() { return &num_running_; }
  // Waits a moment for memory of another thread that reads; false where none of them has been at work for some time.
  absl::StatusOr<bool> WaitForOthers();
  // Allocates results whose memory the host has taken, and others perhaps since: until one of their parts ends.
  absl::Status ResetResults(OutputBatch* out);
  // The next part. None where all have been taken: that ends reading, so that no other thread leaves a part to this
  // one any more.
  std::optional<JoinPart> Take();
  // Divides a part, whose own parts are taken next.
  absl::Status Divide(JoinPart part);
  // For a thread that has no memory for a part: leaves it to the others that read, and ends reading. False, and the
  // part unchanged, where there are none.
  bool GiveBack(JoinPart* part);
  // The same for a thread that has not begun, and has no memory for its results.
  bool Leave();
  // Held while a thread looks whether there is memory for a part, and takes it.
  std::mutex& fit_mutex() { return fit_mutex_; }

 private:
  absl::StatusOr<std::vector<SpilledRows>> DivideBuild(JoinPart* part, uint32_t level) const;
  absl::StatusOr<std::vector<SpilledRows>> DivideProbe(JoinPart* part, uint32_t level) const;
  absl::Status EndWriting();
  void AddPart(JoinPart part);

  const JoinContext context_;
  const std::shared_ptr<SpilledBuild> build_;
  const JoinKindRow& kind_;
  const TupleFormat format_;
  const ProbeColumns probe_columns_;
  std::shared_ptr<const JoinDescriptor> part_descriptor_;
  JoinEntrySource part_entry_points_;
  std::vector<std::shared_ptr<SpilledRows>> build_parts_;
  SpilledRows null_rows_;
  std::mutex write_mutex_;  // guards the making and the end of writer_
  std::shared_ptr<PartitionedWriter> writer_;
  std::atomic<bool> has_begun_parts_{false};
  std::atomic<bool> is_broken_{false};
  std::mutex fit_mutex_;
  std::mutex divide_mutex_;   // the memory set aside is for one division at a time
  mutable std::mutex mutex_;  // guards what follows
  absl::Status first_error_;  // where is_broken_ is set
  std::deque<JoinPart> parts_;
  uint32_t num_reading_ = 0;
  std::atomic<int32_t> num_running_{0};
};

}  // namespace quern

#endif  // QUERN_RUNTIME_JOIN_SPILLED_JOIN_H_
