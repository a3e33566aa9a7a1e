// SPDX-License-Identifier: Apache-2.0
// The local state of a join's build side: tuples, their key range and their counts.
#ifndef QUERN_RUNTIME_JOIN_BUILD_SIDE_H_
#define QUERN_RUNTIME_JOIN_BUILD_SIDE_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/memory.h"
#include "runtime/join/join_descriptor.h"
#include "runtime/join/join_loop.h"
#include "runtime/join/join_options.h"
#include "runtime/join/spilled_build.h"
#include "runtime/join/tables/packed_key_table.h"
#include "runtime/rows/tuple_store.h"
#include "runtime/sink/sink.h"

namespace quern {

class BuildSide final : public LocalState, public MemoryHolder {
 public:
  BuildSide(std::shared_ptr<const JoinDescriptor> descriptor, JoinEntrySource entry_points,
            std::shared_ptr<CounterSet> counters, const JoinOptions& options,
            const std::shared_ptr<MemoryBudget>& budget);
  ~BuildSide() override;

  // *Errors*: ResourceExhausted, after which the rows taken are whole steps.
  absl::Status Append(const BatchView& batch, RowKind kind, uint64_t first_row_id) override;
  absl::Status FreeMemory(const absl::Status& refused) override;
  // Adds tuples that were read; their owner stays as long as this object. *Errors*: ResourceExhausted, after which
  // some may have been added.
  absl::Status AppendTuples(const ReadTuples& read, std::shared_ptr<const void> owner);

  // From now on rows are written where memory is refused. Call it before Append.
  void SpillTo(std::shared_ptr<SpilledBuild> spilled);
  // Writes all rows, and begins again without any. *Errors*: those of SpilledBuild::Write.
  absl::Status Spill();
  absl::Status SpillOrAsk(bool* is_at_work) override;

  TupleStore* store() { return &store_; }
  // Frees everything but the null rows and the memory that strings point into; call it once the table owns the tuples.
  void DropTuples();
  // Rows whose null key matches nothing, kept where the join kind outputs them.
  const TupleList& null_rows() const { return null_store_.flat(); }
  const PackedKeyRange& range() const { return range_; }
  // Whether batches came with owners of all strings.
  bool owns_strings() const { return owns_strings_; }
  uint64_t num_rows() const { return num_rows_; }
  uint64_t num_stored() const { return num_stored_; }  // of these, those that were not written
  uint64_t num_null_keys() const { return num_null_keys_; }

 private:
  struct Step;
  void GrowScratch(uint64_t num_rows);
  absl::Status AppendSteps(const BatchView& batch, uint64_t first_row_id);
  absl::Status PartitionIfMany();
  bool has_rows() const { return num_stored_ != 0; }
  absl::Status MakeRoom(const absl::Status& refused);
  absl::Status WriteAll();
  absl::Status AppendStep(const BatchView& batch, uint64_t first_row_id, uint64_t next, uint32_t n);
  absl::Status StoreRows(const Step& step, uint32_t n);
  absl::Status StoreFlat(const Step& step);
  absl::Status StoreParts(const Step& step);
  absl::Status StoreNullRows(const Step& step, const uint32_t* rows, uint32_t n);
  void Write(const Step& step, const BatchRows& rows, const uint64_t* words, uint8_t* tuples) const;
  bool LooksDense() const;

  std::shared_ptr<const JoinDescriptor> descriptor_;
  const JoinEntrySource entry_points_;
  const JoinOptions& options_;  // the join's
  TupleStore store_;
  TupleStore null_store_;
  PackedKeyRange range_;
  uint64_t sign_bit_;
  uint32_t step_rows_;
  uint64_t num_rows_ = 0;
  uint64_t num_null_keys_ = 0;
  uint64_t num_flat_ = 0;
  uint64_t num_stored_ = 0;  // rows that are here
  std::vector<std::shared_ptr<const void>> owners_;
  bool owns_strings_ = true;
  std::vector<uint32_t> rows_;  // scratch; each holds the largest batch so far, up to step_rows_
  std::vector<uint32_t> dropped_;
  std::vector<uint64_t> words_;
  std::vector<uint64_t> hashes_;
  std::vector<uint8_t> staged_;
  // Members for spilling.
  std::shared_ptr<SpilledBuild> spilled_;  // null: rows stay in memory
  std::mutex at_work_;                     // held while the thread appends
  std::atomic<bool> asked_{false};         // to spill, by a thread that has no memory
  uint32_t num_starved_ = 0;               // how often it was refused with nothing to spill, since it last had rows
};

}  // namespace quern

#endif  // QUERN_RUNTIME_JOIN_BUILD_SIDE_H_
