// SPDX-License-Identifier: Apache-2.0
// Groups of packed keys whose tuples are wider than a cache line: slots of a table as long as that fits the cache,
// tuples behind a directory from then on.
#ifndef QUERN_RUNTIME_AGGREGATE_TABLES_WIDE_GROUPS_H_
#define QUERN_RUNTIME_AGGREGATE_TABLES_WIDE_GROUPS_H_

#include <memory>

#include "runtime/aggregate/tables/group_table.h"

namespace quern {

class WideGroups : public GroupTable {
 public:
  WideGroups(const GroupContext& context, uint64_t expected_groups);

  absl::Status Find(const KeyRows& rows, uint8_t** tuples) override;
  absl::Status FindTuples(const GroupTuples& from, uint8_t** tuples) override;
  uint64_t num_groups() const override { return table_->num_groups(); }
  uint64_t num_positions() const override { return table_->num_positions(); }
  uint32_t Scan(uint64_t begin, uint64_t end, uint8_t** tuples) override { return table_->Scan(begin, end, tuples); }
  void HashesOf(uint64_t begin, uint8_t* const* tuples, uint32_t n, uint64_t* hashes) const override;
  void Release() override { table_->Release(); }
  uint64_t bytes() const override { return table_->bytes(); }
  uint64_t num_growths() const override { return growths_before_ + table_->num_growths(); }
  PrefetchSetting prefetch() const override { return table_->prefetch(); }
  void SetPrefetch(PrefetchLoop loop, const PrefetchSetting& setting) override;
  bool prefetches_both_lines() const override { return table_->prefetches_both_lines(); }
  bool is_broken() const override { return table_->is_broken(); }
  const char* layout() const override { return table_->layout(); }

 private:
  bool IsTooLarge(uint64_t groups) const;
  absl::Status MakeRoom();
  absl::Status MoveToDirectory();
  void CountTable();

  GroupContext context_;
  uint64_t expected_groups_;
  bool has_slots_;
  std::unique_ptr<GroupTable> table_;
  uint64_t growths_before_ = 0;  // of the table that there was before
};

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_TABLES_WIDE_GROUPS_H_
