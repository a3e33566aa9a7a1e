// SPDX-License-Identifier: Apache-2.0
// The build rows of a join that its memory has no room for, as tuples, by partition.
#ifndef QUERN_RUNTIME_JOIN_SPILLED_BUILD_H_
#define QUERN_RUNTIME_JOIN_SPILLED_BUILD_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/output_buffer.h"
#include "runtime/join/join_descriptor.h"
#include "runtime/join/join_parts.h"
#include "runtime/join/tuple_strings.h"
#include "runtime/rows/batch_view.h"
#include "runtime/rows/tuple_store.h"
#include "runtime/spill/memory_holders.h"
#include "runtime/spill/spill_context.h"
#include "runtime/spill/spilled_rows.h"

namespace quern {

// *Threads*: any number write at once.
class SpilledBuild {
 public:
  SpilledBuild(std::shared_ptr<const JoinDescriptor> descriptor, std::shared_ptr<SpillContext> spill);

  const std::shared_ptr<SpillContext>& spill() const { return spill_; }
  MemoryHolders* holders() { return &holders_; }
  const HashParts& parts() const { return parts_; }
  const std::vector<ColumnType>& types() const { return types_; }
  const TupleStrings& strings() const { return strings_; }
  const QuernRowLayout& layout() const { return *descriptor_->rows(); }
  // Whether rows were written.
  bool is_used() const { return is_used_.load(std::memory_order_acquire); }

  // Writes tuples to their partitions. *Errors*: those of PartitionedWriter::Append.
  absl::Status Write(const TupleSpan& span) { return WriteSpan(span, false); }
  // Writes rows whose null key matches nothing.
  absl::Status WriteNullRows(const TupleSpan& span) { return WriteSpan(span, true); }

  // Completes what was written, by one thread; nothing is written any more. Returns the rows of each partition and,
  // behind them, those with null keys.
  absl::StatusOr<std::vector<SpilledRows>> Finish();

 private:
  absl::Status WriteSpan(const TupleSpan& span, bool are_null_rows);
  absl::StatusOr<uint64_t> AddStrings(const uint8_t* tuples, uint64_t n, OutputBuffer* bytes,
                                      std::vector<int64_t>* offsets) const;
  PartitionedWriter* Writer();

  const std::shared_ptr<const JoinDescriptor> descriptor_;
  const std::shared_ptr<SpillContext> spill_;
  const TupleFormat format_;
  const TupleStrings strings_;
  const std::vector<ColumnType> types_;
  const HashParts parts_;
  MemoryHolders holders_;
  std::mutex mutex_;  // guards the making of writer_
  std::unique_ptr<PartitionedWriter> writer_;
  std::atomic<bool> is_used_{false};
};

TupleFormat FormatOf(const QuernRowLayout& layout);

// The tuples of a batch that was read, which point to its strings; valid as long as the batch's owner and this object.
class ReadTuples {
 public:
  ReadTuples(const QuernRowLayout& layout, const TupleStrings& strings)
      : format_(FormatOf(layout)), strings_(strings) {}

  // *Errors*: DataLoss.
  absl::Status Set(const BatchView& batch);
  uint64_t num_tuples() const { return num_tuples_; }
  const uint8_t* tuples() const { return tuples_; }
  const uint64_t* hashes() const { return hashes_; }  // null: packed keys

 private:
  const TupleFormat format_;
  const TupleStrings& strings_;
  std::vector<uint8_t> pointed_;  // tuples with strings
  const uint8_t* tuples_ = nullptr;
  const uint64_t* hashes_ = nullptr;
  uint64_t num_tuples_ = 0;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_JOIN_SPILLED_BUILD_H_
