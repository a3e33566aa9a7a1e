// SPDX-License-Identifier: Apache-2.0
// The state of one hash join: build batches in, finalise, probe batches in, output batches out. It owns the memory and the order of the
// steps; the loops are a kernel's (generic or compiled), reached through QuernJoinEntryPoints.
//
//     HashJoin join(spec, shape, entry points, options);
//     join.Append(...)*  ->  join.Finalise()  ->  any number of JoinProber: SetInput(...), Next(...)*
#ifndef QUERN_RUNTIME_HASH_JOIN_H_
#define QUERN_RUNTIME_HASH_JOIN_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/join_shape.h"
#include "runtime/kernel_abi.h"
#include "runtime/memory.h"
#include "runtime/spec.h"

namespace quern {

// Distances for the classes of table size. The class of a table is found at Finalise from its own bytes.
struct PrefetchClasses {
  uint64_t l2_bytes = 1 << 20;   // tables up to this size: l2
  uint64_t l3_bytes = 32 << 20;  // up to this size: l3; above: dram
  uint32_t l2_distance = 0;      // rows
  uint32_t l3_distance = 16;
  uint32_t dram_distance = 64;

  uint32_t DistanceFor(uint64_t table_bytes) const;
};

struct JoinOptions {
  PrefetchClasses prefetch;
  bool huge_pages = true;
};

// Row ids go on from the batch before.
constexpr uint64_t kCountedRowIds = UINT64_MAX;

// Columns of one batch as kernels see them, plus what keeps their memory alive.
struct BatchView {
  std::vector<QuernColumn> keys;
  std::vector<QuernColumn> payload;
  const uint32_t* selection = nullptr;     // rows that take part, in order; nullptr: all
  uint64_t num_rows = 0;                   // selected rows
  uint64_t first_row_id = kCountedRowIds;  // what rowid columns call the batch's row 0
  std::shared_ptr<const void> owner;       // kept until the last reader of the columns is gone; may be null if the caller keeps them
};

struct JoinStats {
  uint64_t build_rows = 0;  // appended, null keys included
  uint64_t table_rows = 0;  // tuples in the table
  uint64_t directory_bytes = 0;
  uint64_t tuple_bytes = 0;        // all tuples
  uint32_t prefetch_distance = 0;  // chosen at Finalise; rows; 0 where the plan does not prefetch
};

class HashJoin {
 public:
  // *Ownership*: `code` keeps the kernel's machine code alive. *Errors*: none; memory is taken later.
  HashJoin(std::shared_ptr<const JoinShape> shape, QuernJoinEntryPoints entry_points, std::shared_ptr<const void> code,
           std::shared_ptr<MemoryBudget> budget, const JoinOptions& options);
  ~HashJoin();

  // Adds a batch to the build side. Strings are not copied: the batch's owner is kept until the join is destroyed.
  // *Cost*: one pass; tuple_bytes + 8 bytes a row. *Threads*: one at a time. *Errors*: ResourceExhausted over the budget,
  // FailedPrecondition after Finalise, InvalidArgument for a batch without the spec's columns; the join is then as it was before.
  absl::Status Append(const BatchView& batch);

  // Builds the table. *Cost*: two random cache lines a row, prefetched; twice the tuples' bytes at the peak. *Errors*: ResourceExhausted,
  // which leaves the join as it was before.
  absl::Status Finalise();

  const JoinStats& stats() const { return stats_; }
  const JoinShape& shape() const { return *shape_; }

 private:
  friend class JoinProber;
  struct Chunk;
  absl::Status NewChunk(uint64_t rows);
  absl::Status AppendToChunks(const BatchView& batch);

  std::shared_ptr<const JoinShape> shape_;
  QuernJoinEntryPoints entry_points_;
  std::shared_ptr<const void> code_;
  std::shared_ptr<MemoryBudget> budget_;
  JoinOptions options_;
  JoinStats stats_;
  bool finalised_ = false;
  uint32_t shift_ = 0;
  std::vector<std::shared_ptr<const void>> owners_;
  std::vector<std::unique_ptr<Chunk>> chunks_;
  HugeBuffer directory_;  // one entry more than slots: entry 0 is the sentinel
  HugeBuffer tuples_;
};

// One output batch: probe payload columns, then build payload columns. Buffers are owned by the batch.
class OutputBatch;

// Probes a finalised join. *Threads*: each prober belongs to one thread; any number of them may share a join.
class JoinProber {
 public:
  explicit JoinProber(std::shared_ptr<const HashJoin> join);
  ~JoinProber();

  // Starts on a batch, whose columns must stay until Next has answered false.
  absl::Status SetInput(BatchView batch);

  // Fills `out` (emptied first) with up to out->capacity() rows, fewer only where the input ends or an output column is full to its
  // offsets' limit. Answers whether there is more to come from this input. Without payload columns it counts, in one call.
  // *Errors*: InvalidArgument for an output batch of other columns or of no rows; ResourceExhausted, after which rows of this input are
  // lost and only SetInput helps.
  absl::StatusOr<bool> Next(OutputBatch* out);

 private:
  std::shared_ptr<const HashJoin> join_;
  BatchView input_;
  QuernJoinProbeArgs args_;
  uint64_t rows_seen_ = 0;
  std::unique_ptr<QuernProbeScratch> scratch_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_HASH_JOIN_H_
