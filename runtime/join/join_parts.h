// SPDX-License-Identifier: Apache-2.0
// The partitions of a join's rows that its memory has no room for. Both sides are divided by the hash of their keys, so
// that a partition of one side only meets the same partition of the other one.
#ifndef QUERN_RUNTIME_JOIN_JOIN_PARTS_H_
#define QUERN_RUNTIME_JOIN_JOIN_PARTS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/counters.h"
#include "runtime/join/join_descriptor.h"
#include "runtime/rows/batch_view.h"
#include "runtime/rows/entry_slot.h"
#include "runtime/rows/tuple_store.h"
#include "runtime/spec/column_type.h"
#include "runtime/spill/spill_context.h"
#include "runtime/spill/spilled_rows.h"

namespace quern {

// The partition of a row that has no match.
constexpr uint32_t kNoPart = UINT32_MAX;

// Divides rows by bits of their hash. Each level divides the partitions of the one before by other bits, none of which
// are those that choose a slot of a table.
class HashParts {
 public:
  // spill: for the number of partitions, which is less where rows are so wide that a block for each would take too much
  // of the memory set aside.
  HashParts(const SpillContext& spill, uint64_t row_bytes);

  uint32_t num_parts() const { return uint32_t{1} << bits_; }
  // How often rows can be divided.
  uint32_t num_levels() const { return kHashBits / bits_; }
  uint32_t PartOf(uint64_t hash, uint32_t level) const {
    return static_cast<uint32_t>(hash * kMultiplier >> (64 - bits_ * (level + 1))) & (num_parts() - 1);
  }

 private:
  static constexpr uint32_t kHashBits = 48;
  // The upper bits of a product depend on all lower ones of the hash. (2^64 / golden ratio, made odd: Knuth, The Art of
  // Computer Programming 3, 6.4.)
  static constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15;
  uint32_t bits_;
};

// ---- the build side ----

// The columns as which tuples are written: the tuple; its hash, where the key is not packed; the bytes of its strings,
// where there may be any.
std::vector<ColumnType> TupleColumns(const QuernRowLayout& layout);

// What so many tuples take in a TupleStore, about.
uint64_t TupleBytesOf(const QuernRowLayout& layout, uint64_t num_tuples);
// The bytes of strings that written tuples point to, about.
uint64_t StringBytesOf(const QuernRowLayout& layout, const SpilledRows& tuples);

// Writes the partitions of n tuples. hashes: of unpacked keys; null: the words of packed ones are hashed.
void PartsOfTuples(const TupleFormat& format, const uint8_t* tuples, const uint64_t* hashes, uint64_t n,
                   const HashParts& parts, uint32_t level, uint32_t* numbers);

// ---- the probe side ----

// Writes the partition of each of the batch's rows (of its selection's, in their order): kNoPart for those with a null
// key that matches nothing. batch.payload is not read. *Errors*: those of hashing keys under a collation.
absl::Status PartsOfRows(const QuernJoinDescriptor& descriptor, const JoinEntrySource& entry_points,
                         const BatchView& batch, const HashParts& parts, uint32_t level, QuernProbeScratch* scratch,
                         uint32_t* numbers);

// The rows of a probe side as they are written: the keys; the payload without row ids; the columns of the residual
// predicate; and the row id, where the result or the host's residual has it.
class ProbeColumns {
 public:
  explicit ProbeColumns(const JoinSpec& spec);

  const std::vector<ColumnType>& types() const { return types_; }
  // As they are read: without dictionaries.
  const std::vector<ColumnType>& read_types() const { return read_types_; }
  // The columns of a batch in this order. row_ids: of its rows by number; read where has_row_ids().
  BatchView ToWrite(const BatchView& batch, const uint64_t* row_ids) const;
  // What was read as a batch of the probe side, row ids as a column like others (of SpilledJoinSpec).
  BatchView FromRead(const BatchView& read) const;
  bool has_row_ids() const { return has_row_ids_; }
  // The row ids of what was read; null where they were not written.
  const uint64_t* RowIdsOf(const BatchView& read) const;

 private:
  size_t num_keys_;
  std::vector<bool> is_row_id_;  // by column of payload and residual
  bool has_row_ids_;
  std::vector<ColumnType> types_, read_types_;
};

// The spec of a join whose probe rows are read back: columns without dictionaries, row ids as numbers. Its tuples are
// those of `spec`.
JoinSpec SpilledJoinSpec(JoinSpec spec);
// Whether it differs from the spec, so that a kernel of its own is needed.
bool ChangesWhenSpilled(const JoinSpec& spec);

}  // namespace quern

#endif  // QUERN_RUNTIME_JOIN_JOIN_PARTS_H_
