// SPDX-License-Identifier: Apache-2.0
// Builds a finished table from the tuples of all appenders: chooses the layout and runs the phases that build it.
#ifndef QUERN_RUNTIME_JOIN_TABLE_BUILDER_H_
#define QUERN_RUNTIME_JOIN_TABLE_BUILDER_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "runtime/abi/join_abi.h"
#include "runtime/base/memory.h"
#include "runtime/base/shared_work.h"
#include "runtime/join/join_options.h"
#include "runtime/join/join_table.h"
#include "runtime/join/tables/crowded_slots.h"
#include "runtime/join/tables/packed_key_table.h"
#include "runtime/join/tables/unchained_table.h"
#include "runtime/rows/tuple_store.h"
#include "runtime/spec/join_spec.h"

namespace quern {

// The memory to which a JoinTable points.
struct TableMemory {
  HugeBuffer tuples;     // slots of an open table
  HugeBuffer directory;  // unchained: directory; csr: runs
  HugeBuffer bitmap;
  std::unique_ptr<CrowdedSlots> crowded;  // unchained: null where there are none

  uint64_t directory_bytes() const { return directory.bytes() + bitmap.bytes(); }
};

class TableBuilder {
 public:
  // range: of the keys; its `ascends` says that the tuples of the stores, one after the other, are in that order.
  // *Ownership*: the caller keeps the stores. They are only read, except that they may be partitioned, or taken.
  TableBuilder(const QuernJoinDescriptor& descriptor, const JoinKindRow& kind, const JoinOptions& options,
               std::shared_ptr<MemoryBudget> budget, std::vector<TupleStore*> stores, const PackedKeyRange& range);
  TableBuilder(const TableBuilder&) = delete;
  TableBuilder& operator=(const TableBuilder&) = delete;
  ~TableBuilder() { ReleaseSpare(); }

  // The work after which the table is complete. *Errors*: ResourceExhausted.
  SharedWork* work() { return &work_; }
  // Its phases, for a caller with work around them; not to be called as well as work().
  absl::StatusOr<std::optional<SharedWork::Phase>> NextPhase();
  // Whether it has taken tuples from the stores: where the work fails, they are lost.
  bool has_taken_tuples() const { return takes_tuples_; }

  // What building takes beside the stores, for so many tuples. Layouts that take more give way where they are refused.
  static uint64_t LeastBytes(const QuernJoinDescriptor& descriptor, uint64_t num_tuples);
  // The same where all tuples are in partitions, and the table takes them.
  static uint64_t LeastBytesTaking(const QuernJoinDescriptor& descriptor, uint64_t num_tuples);

  JoinTable table;
  TableMemory memory;

 private:
  using Phase = SharedWork::Phase;
  std::vector<Layout> LayoutsToTry() const;
  bool NeedsTuples() const;
  bool HasRanks(uint64_t range) const;
  bool OneMatchIsEnough() const;
  uint64_t NullTupleBytes() const { return std::max(descriptor_.rows.tuple_bytes, 64u); }
  absl::Status BeginLayout(Layout layout);
  absl::Status BeginUnchained();
  absl::Status AllocateUnchained(uint32_t bits, bool takes_tuples);
  absl::Status TakeTuples();
  absl::Status BeginOpen(Layout layout);
  absl::Status BeginBitmap(Layout layout);
  absl::Status BeginRanked();
  absl::Status BeginRuns();
  bool NextFilterPhase();
  void BeginKeyFilter(const PackedKeyRange& range);
  absl::Status AllocateBitmaps(uint64_t range);
  bool IsInOrder() const;
  void AddCopyPhase();
  void AddBitmapPhases(Duplicates duplicates);
  absl::Status AllocateTuples(uint64_t num_places, uint32_t place_bytes, Contents contents) {
    return AllocateTuples(num_places, place_bytes, contents, budget_);
  }
  absl::Status AllocateTuples(uint64_t num_places, uint32_t place_bytes, Contents contents,
                              std::shared_ptr<MemoryBudget> budget);
  void SetPrefetch();
  Phase PerPart(std::function<absl::Status(uint64_t part, const TupleList& spans)> run);
  Phase PerStore(std::function<void(uint64_t store, const TupleList& spans)> run);
  absl::Status BuildUnchainedPart(uint64_t part, const TupleList& spans);
  void ZeroSlots(const UnchainedBuild& build);
  absl::Status TakePages(uint64_t part);
  void MovePart(uint64_t part);
  void ReleaseSpare();
  absl::Status IndexCrowded();
  absl::Status InsertPart(const TupleList& spans, Duplicates duplicates);
  void FillBitmapOf(uint64_t store, const TupleList& spans, Duplicates duplicates);
  void MergeBitmaps(Duplicates duplicates);
  void Stop(Inserted why);

  const QuernJoinDescriptor& descriptor_;
  const JoinKindRow& kind_;
  const JoinOptions& options_;
  std::shared_ptr<MemoryBudget> budget_;
  std::vector<TupleStore*> stores_;
  PackedKeyRange range_;
  TupleFormat format_;
  uint64_t num_tuples_ = 0;
  bool is_partitioned_ = false;
  bool partitions_first_ = false;             // some stores are partitioned and others are not
  bool takes_tuples_ = false;                 // unchained: a partition leaves the stores when it is built
  uint64_t spare_bytes_ = 0;                  // of the stores' memory, what is more than the table's; reserved
  std::vector<std::once_flag> groups_begun_;  // unchained, of groups of partitions that the table takes
  bool has_begun_ = false;
  uint32_t filter_steps_ = 0;               // of the key filter, begun
  std::vector<PackedKeyRange> key_ranges_;  // of unpacked keys, by store
  std::vector<Layout> to_try_;
  std::deque<Phase> phases_;
  std::vector<uint64_t> part_begin_;       // unchained: byte offset of each partition's first tuple
  std::vector<HashRuns> crowded_runs_;     // unchained: of each partition
  std::vector<HugeBuffer> store_bitmaps_;  // of all stores but the first
  std::atomic<uint64_t> num_inserted_{0};  // open
  std::atomic<uint32_t> max_walk_{0};      // open
  std::atomic<Inserted> stopped_{Inserted::kAll};
  SharedWork work_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_JOIN_TABLE_BUILDER_H_
