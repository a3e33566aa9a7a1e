// SPDX-License-Identifier: Apache-2.0
// Groups of any keys: a directory of tags and addresses, by hash, over tuples in order of arrival.
#ifndef QUERN_RUNTIME_AGGREGATE_TABLES_DIRECTORY_GROUPS_H_
#define QUERN_RUNTIME_AGGREGATE_TABLES_DIRECTORY_GROUPS_H_

#include <memory>
#include <vector>

#include "runtime/aggregate/tables/directory_probe.h"
#include "runtime/aggregate/tables/group_cache.h"
#include "runtime/aggregate/tables/group_table.h"
#include "runtime/aggregate/tables/short_string_probe.h"
#include "runtime/aggregate/tables/stored_keys.h"
#include "runtime/base/hash_secret.h"
#include "runtime/rows/tuple_store.h"

namespace quern {

class DirectoryGroups : public GroupTable {
 public:
  DirectoryGroups(const GroupContext& context, uint64_t expected_groups);

  absl::Status Find(const KeyRows& rows, uint8_t** tuples) override;
  absl::Status FindTuples(const GroupTuples& from, uint8_t** tuples) override;
  uint64_t num_groups() const override { return num_groups_; }
  uint64_t num_positions() const override { return num_positions_; }
  uint32_t Scan(uint64_t begin, uint64_t end, uint8_t** tuples) override;
  void HashesOf(uint64_t begin, uint8_t* const* tuples, uint32_t n, uint64_t* hashes) const override;
  void Release() override;
  uint64_t bytes() const override { return directory_.bytes() + arena_.bytes(); }
  uint64_t num_growths() const override { return num_growths_; }
  PrefetchSetting prefetch() const override;
  void SetPrefetch(PrefetchLoop loop, const PrefetchSetting& setting) override {
    context_.options.prefetch.Set(loop, setting);
  }
  bool prefetches_both_lines() const override { return true; }
  const char* layout() const override { return "directory"; }

 private:
  template <class F>
  absl::Status FindOrDrop(F&& find);
  void DropGroups(uint64_t num_left);
  absl::Status FindRows(const KeyRows& rows, uint8_t** tuples);
  absl::Status FindGroups(const GroupTuples& from, uint8_t** tuples);
  template <class Keys>
  absl::Status FindAll(const Keys& keys, uint32_t n, uint8_t** tuples);
  template <class Keys>
  void Compare(const Keys& keys, DirectoryRows* looking, uint8_t** tuples) const;
  template <class Prefetch>
  void TestOnce(uint32_t n, const PrefetchSetting& setting, DirectoryRows* looking, uint8_t** tuples) const;
  template <class Keys>
  void FindMost(const Keys& keys, uint32_t n, const PrefetchSetting& setting, DirectoryRows* looking, uint8_t** tuples);
  void PlaceAll(uint32_t n, DirectoryRows* looking) const;
  template <class Keys>
  absl::Status MakeGroups(const Keys& keys, const PrefetchSetting& setting, DirectoryRows* looking, uint8_t** tuples);
  template <class Prefetch>
  void PrefetchCandidates(const DirectoryRows& looking, uint8_t* const* tuples) const;
  absl::Status FindOthers(const KeyRows& rows, const uint32_t* others, uint32_t n, uint8_t** tuples);
  absl::Status MakeRoom(uint32_t n);
  absl::Status Grow(uint64_t groups);
  absl::Status Rehash();
  void InsertAllWithSecret();
  void InsertAll();
  uint64_t SlotOf(uint64_t hash) const { return (hash << context_.common_bits) >> shift_; }
  void Insert(uint64_t hash, const uint8_t* tuple);

  GroupContext context_;
  uint64_t expected_groups_;
  bool weighs_keys_;      // by a collation's weights, which may need memory
  HugeBuffer directory_;  // 2^k entries: address << 16 | tag; 0: none
  uint64_t num_entries_ = 0;
  uint32_t shift_ = 64;
  Arena arena_;  // of tuples and hashes
  TupleList spans_;
  std::vector<uint64_t> span_positions_;  // of each span's first tuple
  bool has_secret_ = false;               // entries are placed by hashes of the stored keys under secret_
  TableSecret secret_;
  std::vector<uint64_t> process_hashes_;  // of the batch, then: spans keep these
  KeyBytes key_bytes_;
  GroupCache short_keys_;
  AdaptiveGate finds_first_;  // open: the last batch had few new groups
  ShortStringProbe short_strings_;
  uint64_t num_groups_ = 0;
  uint64_t num_positions_ = 0;
  uint64_t rows_seen_ = 0;
  uint64_t rows_at_growth_ = 0;
  uint64_t groups_at_growth_ = 0;
  uint64_t num_growths_ = 0;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_TABLES_DIRECTORY_GROUPS_H_
