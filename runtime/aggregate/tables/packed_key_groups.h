// SPDX-License-Identifier: Apache-2.0
// Groups with packed keys (kernel_abi.h): an array where the keys' range is small, a list where they come in order,
// otherwise open addressing.
#ifndef QUERN_RUNTIME_AGGREGATE_TABLES_PACKED_KEY_GROUPS_H_
#define QUERN_RUNTIME_AGGREGATE_TABLES_PACKED_KEY_GROUPS_H_

#include <memory>
#include <vector>

#include "runtime/aggregate/tables/dense_groups.h"
#include "runtime/aggregate/tables/group_table.h"
#include "runtime/aggregate/tables/open_groups.h"
#include "runtime/aggregate/tables/register_cache.h"
#include "runtime/aggregate/tables/sorted_groups.h"

namespace quern {

// Slots, log2, of an open table for so many groups.
uint32_t OpenGroupBits(uint64_t groups, uint32_t tuple_bytes, const AggregateOptions& options);

// Begins as an array where the first batch's words have a small range, or as a list where they are in order. It changes
// its layout when a word falls outside the range or breaks the order or, conversely, when it would grow and an array
// would be no larger.
class PackedKeyGroups : public GroupTable {
 public:
  PackedKeyGroups(const GroupContext& context, uint64_t expected_groups);

  absl::Status Find(const KeyRows& rows, uint8_t** tuples) override;
  absl::Status FindTuples(const GroupTuples& from, uint8_t** tuples) override;
  uint64_t num_groups() const override;
  uint64_t num_positions() const override;
  uint32_t Scan(uint64_t begin, uint64_t end, uint8_t** tuples) override;
  void HashesOf(uint64_t begin, uint8_t* const* tuples, uint32_t n, uint64_t* hashes) const override;
  void Release() override;
  uint64_t bytes() const override;
  uint64_t num_growths() const override { return num_growths_; }
  PrefetchSetting prefetch() const override;
  void SetPrefetch(PrefetchLoop loop, const PrefetchSetting& setting) override {
    context_.options.prefetch.Set(loop, setting);
  }
  const char* layout() const override;
  bool is_broken() const override { return open_.is_broken(); }
  bool has_prefetched_keys() const override { return has_prefetched_keys_; }

 private:
  absl::Status FindRuns(const uint64_t* words, uint32_t n, uint8_t** tuples);
  absl::Status FindPackedKeys(const uint64_t* words, uint32_t n, uint8_t** tuples, uint32_t packed_keys_ahead = 0);
  absl::Status FindOpen(const uint64_t* words, uint32_t n, uint8_t** tuples, uint32_t packed_keys_ahead);
  const uint64_t* ColumnOfPackedKeys(const KeyRows& rows) const;
  absl::Status Begin(const uint64_t* words, uint32_t n);
  absl::Status WidenDense(const uint64_t* words, uint32_t n);
  absl::Status GrowOpen(const uint64_t* words, uint32_t n);
  absl::Status BecomeOpen(uint64_t groups);
  absl::Status MoveGroups(uint8_t* const* from, const uint64_t* words, uint32_t n, OpenGroups* to) const;
  absl::Status BecomeDense(const PackedKeyRanges& ranges);
  bool EndsBehind(const uint64_t* words, uint32_t n) const;
  bool GoesOnInOrder(const uint64_t* words, uint32_t n);
  absl::Status BecomeSorted();
  PrefetchSetting SettingOf(PrefetchLoop loop, uint64_t table_bytes) const;
  uint64_t MaxCells() const;
  uint64_t Expected(uint64_t groups) const;
  uint32_t BitsFor(uint64_t groups) const;

  GroupContext context_;
  uint64_t expected_groups_;
  enum class Table : uint8_t { kNone, kDense, kOpen, kSorted };
  Table table_ = Table::kNone;
  uint64_t rows_seen_ = 0;
  bool has_prefetched_keys_ = false;
  uint64_t num_growths_ = 0;
  DenseGroups dense_;
  OpenGroups open_;
  RegisterCache few_;         // of open_
  uint64_t few_growths_ = 0;  // num_growths_ when few_ was last updated
  SortedGroups sorted_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_TABLES_PACKED_KEY_GROUPS_H_
