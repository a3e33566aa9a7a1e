// SPDX-License-Identifier: Apache-2.0
// The result of a sort whose rows were divided into ranges of keys: each is sorted in memory when its turn comes.
#ifndef QUERN_RUNTIME_SORT_SPILLING_SORTED_PARTITIONS_H_
#define QUERN_RUNTIME_SORT_SPILLING_SORTED_PARTITIONS_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/stop_flag.h"
#include "runtime/rows/output_batch.h"
#include "runtime/sort/local_rows.h"
#include "runtime/sort/spilling/row_tuples.h"
#include "runtime/spill/partitioned_tuples.h"
#include "runtime/spill/spill_context.h"

namespace quern {

// *Threads*: any number at once.
class SortedPartitions {
 public:
  // tuples: complete, in partitions by ranges of keys. incomplete: keys with values that do not fit their words.
  // stop_flag: not owned; may be null.
  SortedPartitions(const SortContext& context, const QuernSortEntryPoints& generic, std::shared_ptr<SpillContext> spill,
                   const RowTuples& layout, std::unique_ptr<PartitionedTuples> tuples, uint32_t incomplete,
                   const StopFlag* stop_flag);
  ~SortedPartitions();

  uint64_t num_rows() const { return num_rows_; }
  // What is to be freed, so that so many readers have room for a partition each.
  uint64_t BytesToFreeFor(uint64_t num_readers) const;
  // Writes rows of a partition that memory holds, until so many bytes are free. Returns how many are. *Errors*: those
  // of the store.
  absl::StatusOr<uint64_t> FreePart(uint32_t part, uint64_t bytes) { return tuples_->FreeKeptOf(part, bytes); }

  // The partition that one reader has at present.
  class Partition;
  struct Reader {
    Reader();
    Reader(Reader&&) noexcept;
    Reader& operator=(Reader&&) noexcept;
    ~Reader();
    std::unique_ptr<Partition> partition;  // null: none
  };
  // The next rows of the reader's partition, or, where it has none left, of one that nobody has taken: as
  // SortReader::Next. A reader that is refused memory for a partition, while others have theirs, has no rows; the
  // others read the rest. *Cost*: a call that begins a partition reads and sorts it.
  absl::StatusOr<bool> Next(Reader* reader, OutputBatch* out, uint64_t* position);
  // Leaves the rest of a partition to other readers.
  void GiveBack(Reader reader);

 private:
  uint64_t BytesToSort(uint64_t num_rows) const;
  absl::StatusOr<bool> Take(Reader* reader);
  absl::Status Load(Partition* partition);
  absl::Status Sort(Partition* partition, PartitionedTuples::Taken taken);
  absl::Status SortInRuns(Partition* partition, PartitionedTuples::Taken taken);
  absl::StatusOr<bool> Count(OutputBatch* out, uint64_t* position);
  void End(Reader* reader, const absl::Status& status);

  const SortContext context_;
  const QuernSortEntryPoints generic_;
  const std::shared_ptr<SpillContext> spill_;
  const RowTuples layout_;
  const std::unique_ptr<PartitionedTuples> tuples_;
  const uint32_t incomplete_;
  const StopFlag* const stop_flag_;
  std::vector<uint64_t> first_rows_;  // of each partition, and one more
  uint64_t num_rows_ = 0;
  std::mutex mutex_;  // guards what follows
  uint32_t next_ = 0;
  uint32_t num_active_ = 0;         // partitions that readers have
  std::vector<Reader> given_back_;  // in part
  absl::Status status_;             // of the first reader that has failed
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_SPILLING_SORTED_PARTITIONS_H_
