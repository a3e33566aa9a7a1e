// SPDX-License-Identifier: Apache-2.0
// The local state of an aggregation: a table of groups and, where that stops paying, partitions by hash for the threads
// to merge.
#ifndef QUERN_RUNTIME_AGGREGATE_LOCAL_GROUPS_H_
#define QUERN_RUNTIME_AGGREGATE_LOCAL_GROUPS_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "runtime/aggregate/computed_columns.h"
#include "runtime/aggregate/group_runs.h"
#include "runtime/aggregate/key_dictionaries.h"
#include "runtime/aggregate/lane_segments.h"
#include "runtime/aggregate/spilled_groups.h"
#include "runtime/aggregate/tables/group_table.h"
#include "runtime/aggregate/tables/stored_keys.h"
#include "runtime/rows/batch_view.h"
#include "runtime/rows/tuple_store.h"
#include "runtime/sink/sink.h"
#include "runtime/spill/budget_with_reserve.h"

namespace quern {

class LocalGroups final : public LocalState, public MemoryHolder {
 public:
  // num_local_states: the number of threads that take part; a single thread does not partition.
  LocalGroups(const GroupContext& context, std::shared_ptr<DictionarySeries> series,
              const std::atomic<uint32_t>* num_local_states);
  ~LocalGroups() override;

  // *Errors*: ResourceExhausted, after which the rows taken are whole blocks, and the next block may have been begun:
  // it has made groups, or some of its rows are in states; OutOfRange for a checked sum that does not fit;
  // InvalidArgument for damaged states.
  absl::Status Append(const BatchView& batch, RowKind kind, uint64_t first_row_id) override;

  // From the next batch on.
  void SetPrefetch(PrefetchLoop loop, const PrefetchSetting& setting);

  // From now on groups are written to `spilled` where memory is refused. Call it before Append.
  void SpillTo(std::shared_ptr<SpilledGroups> spilled);
  // Writes all groups, and begins again without any. *Errors*: those of the store; ResourceExhausted beyond the memory
  // that is set aside for it.
  absl::Status Spill();
  // Writes the groups of a table to which those of several threads were added. *Errors*: as of Spill.
  absl::Status SpillMerged(GroupTable* table);
  // Gives back memory that is held for appending.
  void FreeReserve();
  absl::Status SpillOrAsk(bool* is_at_work) override;
  absl::Status FreeMemory(const absl::Status& refused) override;
  // Of the table, and of rows in partitions.
  uint64_t group_bytes() const;
  // Whether groups in partitions lie in blocks that may be written (tuple_blocks.h).
  bool uses_blocks() const { return uses_blocks_; }
  // Lets them lie there from now on, as those of another thread do.
  void UseBlocks() { uses_blocks_ = blocks_ != nullptr; }
  std::unique_ptr<TupleBlocks> TakeBlocks() { return std::move(blocks_); }
  // Whether rows lie in partitions.
  bool is_partitioned() const;

  // Moves the table's groups into 2^partition_bits partitions. *Cost*: one pass. *Errors*: ResourceExhausted, which
  // leaves them in the table.
  absl::Status PartitionRows();

  uint64_t num_rows() const { return num_rows_; }
  uint64_t num_groups() const override { return table_ == nullptr ? 0 : table_->num_groups(); }
  // The total number of groups, estimated from the rows so far.
  uint64_t expected_groups() const { return expected_groups_; }
  GroupTable* table() { return table_.get(); }
  std::unique_ptr<GroupTable> TakeTable() { return std::move(table_); }
  uint64_t num_tuples_of(uint64_t part) const;
  TupleList* mutable_part(uint64_t part);
  // Frees what MergePart has left of it.
  void FreePart(uint64_t part);
  // The groups before this position of the table are in another one.
  void SetMerged(uint64_t position) { num_merged_ = position; }
  void DropParts();
  AccumulatorMemory* memory() { return &*memory_; }

 private:
  struct Batch;
  // A block of rows that was refused memory when its groups had been found: what has been added of it.
  struct Begun {
    uint32_t num_rows = 0;   // of the block; 0: there is none
    size_t aggregate = 0;    // the aggregates before it, and those that the kernel updates, have all rows
    uint32_t num_added = 0;  // of the rows that this one takes

    friend bool operator==(const Begun&, const Begun&) = default;
  };
  // Keys of a batch, as kernels see them.
  struct Keys {
    std::vector<QuernColumn> columns;
    bool is_plain;                                  // dictionary keys come as values
    std::vector<KeyDictionaries::Numbers> numbers;  // by key
    uint64_t encoded_rows;                          // the first rows, of which dictionary keys have their numbers
  };
  static constexpr uint32_t kScanRows = 1024;  // positions of a table that are looked at together
  static constexpr uint32_t kEncodedRows = 2 * kMaxBatchRows;
  static TupleFormat FormatOf(const GroupContext& context);
  absl::Status AppendRest(const BatchView& batch, RowKind kind, uint64_t first_row_id);
  absl::Status AppendInput(const BatchView& batch, uint64_t first_row_id);
  absl::Status AppendStates(const BatchView& batch);
  absl::Status AppendTuples(const BatchView& batch);
  absl::Status EndBlock(uint32_t n);
  void PrefetchSparse(const BatchView& batch, const uint32_t* selection, uint32_t n) const;
  Keys KeysOf(const BatchView& batch, bool is_plain);
  absl::Status EncodeNext(const BatchView& batch, Keys* keys);
  absl::Status Encode(const BatchView& batch, uint32_t n, Keys* keys);
  absl::Status LeaveFullDictionaries(bool is_refused, Keys* keys);
  uint32_t BlockRows() const;
  uint32_t RowsWithinReserve(const BatchView& batch, RowKind kind, const QuernColumn* keys, uint32_t n) const;
  absl::Status AppendRows(const Batch& batch, const KeyRows& rows);
  absl::Status FindTuples(const KeyRows& rows, uint8_t** tuples);
  void KeepBegun(uint8_t* const* tuples);
  absl::Status PartitionRows(const Batch& batch, const KeyRows& rows);
  absl::Status AddToBlocks(const Batch& batch, const KeyRows& rows);
  absl::Status AddToBlocks(uint8_t* const* tuples, uint32_t n);
  template <class F>
  absl::Status ForEachPartitioned(const F& f);
  template <class F>
  absl::Status ForEachOfRefusedBlock(const F& f);
  absl::Status MoveToBlocks();
  bool IsShortOfMemory() const;
  bool RowsAreGroups() const;
  void DoWithoutTable(uint64_t num_rows);
  absl::Status LetGo();
  absl::Status LetGoAndHold();
  absl::Status CompactBlocks();
  static absl::Status Lost(const absl::Status& status);
  absl::Status MakeDealt(const Batch& batch, const KeyRows& rows, uint8_t** tuples, uint64_t* hashes);
  absl::Status HashDealt(const KeyRows& rows, uint8_t* const* tuples, uint64_t* hashes) const;
  absl::Status Update(const Batch& batch, const KeyRows& rows, uint8_t* const* tuples);
  absl::Status UpdateFixed(const Batch& batch, const KeyRows& rows, uint8_t* const* tuples);
  absl::Status ComputeArguments(const Batch& batch, uint64_t first, const uint32_t* selection, uint32_t n);
  uint32_t UpdateLanes(const Batch& batch, const KeyRows& rows, uint8_t* const* tuples, bool has_runs,
                       const GroupRuns& runs);
  absl::Status UpdateOutOfLine(const Batch& batch, const KeyRows& rows, uint8_t* const* tuples);
  absl::Status MergeSaved(const Batch& batch, const KeyRows& rows, uint8_t* const* tuples);
  absl::Status MergeFixed(const QuernColumn* column, const KeyRows& rows, size_t aggregate, uint8_t* const* tuples);
  void CountTable();
  absl::Status CheckPays();
  absl::Status MakeRoom(const absl::Status& refused);
  template <class Write>
  absl::Status WithSpiller(const Write& write);
  absl::Status WriteTable(GroupTable* table, uint64_t first_position, GroupSpiller* spiller);
  absl::Status WriteAll(GroupSpiller* spiller);
  absl::Status SpillIfAsked();
  bool has_groups() const { return table_->num_groups() != 0 || parts_.num_tuples() != 0; }
  bool has_memory() const { return has_groups() || (blocks_ != nullptr && blocks_->bytes() != 0); }
  bool is_short() const { return is_reserve_open_ && begun_.num_rows == 0 && has_memory(); }
  void HoldReserve();
  absl::Status SpillAndHold();
  absl::Status SpillWithinBlock();
  void BeginAgain(uint64_t expected_groups);
  absl::Status Compact();
  absl::Status CompactPart(TupleList* part);

  GroupContext context_;
  const std::shared_ptr<DictionarySeries> series_;
  std::shared_ptr<KeyDictionaries> dictionaries_;  // those that the groups have numbers of
  const std::atomic<uint32_t>* num_local_states_;
  std::unique_ptr<GroupTable> table_;
  RunSplitter splitter_;
  AdaptiveGate lane_gate_;
  std::unique_ptr<LaneSegments> segments_;
  std::unique_ptr<ComputedColumns> computed_;  // null where no argument is an expression
  const TupleFormat format_;
  TupleStore parts_;
  bool deals_ = false;  // new rows go directly to the partitions
  uint64_t num_dealt_ = 0;
  uint64_t expected_groups_ = 0;
  uint64_t compact_at_;
  KeyBytes key_bytes_;                                // of rows that are partitioned
  std::optional<AccumulatorMemory> memory_;           // never empty
  std::vector<std::vector<uint32_t>> codes_;          // of dictionary keys, for one batch
  std::vector<uint8_t> saved_tuples_;                 // scratch of MergeSavedStates
  std::vector<uint8_t> overflowed_;                   // by aggregate
  std::vector<std::unique_ptr<GroupTable>> emptied_;  // tables whose strings the partitions still point to
  std::vector<KeyBytes> old_key_bytes_;  // the same of rows, and memory of tuples, since Compact was refused
  std::vector<TupleStore> old_parts_;
  Begun begun_;
  HugeBuffer dealt_tuples_;
  uint64_t num_rows_ = 0;
  uint64_t num_merged_ = 0;  // positions of the table
  // Members for spilling.
  std::shared_ptr<SpilledGroups> spilled_;    // null: groups stay in memory
  bool is_expecting_;                         // the table begins with memory for groups that are expected
  bool block_is_spilled_ = false;             // that was refused: its rows leave with the groups
  std::mutex at_work_;                        // held while the thread appends
  std::atomic<bool> asked_{false};            // to spill, by a thread that has no memory
  uint32_t num_refusals_ = 0;                 // since the last block that was added
  uint64_t num_rows_before_ = 0;              // that were added before the table began
  std::unique_ptr<TupleBlocks> blocks_;       // null: groups have no whole tuples, or stay in memory
  bool uses_blocks_ = false;                  // parts_ is empty, and stays so
  uint64_t rows_without_table_ = 0;           // next rows that go to blocks_ as groups of one row each
  std::optional<BudgetWithReserve> reserve_;  // memory for the rest of a block that was refused when it had begun
  uint64_t reserve_bytes_ = 0;
  uint64_t most_dictionary_bytes_ = 0;  // with which other rows begin
  bool leaves_dictionaries_ = false;    // before the next rows, which are encoded again
  bool has_left_dictionaries_ = false;  // since the last block that was added
  bool is_reserve_open_ = false;
  std::vector<uint8_t*> begun_tuples_;  // of that block
  bool lacks_begun_tuples_ = false;     // since the groups were written when it had begun
  Begun written_within_;                // how much of it had been added then
};

// Adds all tuples of one partition to a table, states included, and drops them. *Errors*: ResourceExhausted, after
// which `part` has those that were not added, and no state is added twice when the call is repeated; OutOfRange.
absl::Status MergePart(const GroupContext& context, TupleList* part, GroupTable* table, AccumulatorMemory* memory);

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_LOCAL_GROUPS_H_
