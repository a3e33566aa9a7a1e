// SPDX-License-Identifier: Apache-2.0
// A group of eight aggregates takes 80 bytes. As slots of an open table, such tuples are found by one probe, and a row
// that finds its word there has touched no line that its update does not need. But the table is half empty, and its
// tuples move when it grows: with millions of groups, fresh pages for unused slots cost more than all probes together.
// So
//
//     groups that fit the L2 cache    slots, or an array, or a list, as for narrow tuples    packed_key_groups.h
//     more of them                    tuples in order of arrival behind a directory          directory_groups.h
//
// and the groups move once, as whole tuples.
#include "runtime/aggregate/tables/wide_groups.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "runtime/aggregate/tables/directory_groups.h"
#include "runtime/aggregate/tables/packed_key_groups.h"
#include "runtime/base/status.h"

namespace quern {
namespace {

constexpr uint32_t kMoveRows = 1024;

}  // namespace

WideGroups::WideGroups(const GroupContext& context, uint64_t expected_groups)
    : context_(context), expected_groups_(expected_groups), has_slots_(!IsTooLarge(expected_groups)) {
  if (has_slots_) table_ = std::make_unique<PackedKeyGroups>(context, expected_groups);
  else table_ = std::make_unique<DirectoryGroups>(context, expected_groups);
}

bool WideGroups::IsTooLarge(uint64_t groups) const {
  return groups > context_.options.caches.l2_bytes / context_.descriptor->group()->tuple_bytes;
}

absl::Status WideGroups::MoveToDirectory() {
  const uint64_t tuple_bytes = context_.descriptor->group()->tuple_bytes, num_positions = table_->num_positions();
  auto directory = std::make_unique<DirectoryGroups>(context_, std::max(expected_groups_, 2 * table_->num_groups()));
  uint8_t *from[kMoveRows], *to[kMoveRows];
  for (uint64_t begin = 0; begin < num_positions; begin += kMoveRows) {
    const uint32_t n = table_->Scan(begin, std::min<uint64_t>(begin + kMoveRows, num_positions), from);
    QUERN_RETURN_IF_ERROR(directory->FindTuples({from, nullptr, n}, to));
    for (uint32_t i = 0; i < n; ++i) std::memcpy(to[i], from[i], tuple_bytes);
  }
  directory->TakeTally();  // groups that moved were not found by lookups
  growths_before_ += table_->num_growths() + 1;
  table_ = std::move(directory);
  has_slots_ = false;
  return absl::OkStatus();
}

// A list takes no more memory than its groups.
absl::Status WideGroups::MakeRoom() {
  const bool moves = has_slots_ && IsTooLarge(table_->num_groups()) && std::string_view(table_->layout()) != "sorted";
  return moves ? MoveToDirectory() : absl::OkStatus();
}

void WideGroups::CountTable() {
  const TableTally counted = table_->TakeTally();
  tally()->hits += counted.hits;
  tally()->steps += counted.steps;
}

absl::Status WideGroups::Find(const KeyRows& rows, uint8_t** tuples) {
  QUERN_RETURN_IF_ERROR(MakeRoom());
  QUERN_RETURN_IF_ERROR(table_->Find(rows, tuples));
  CountTable();
  return absl::OkStatus();
}

absl::Status WideGroups::FindTuples(const GroupTuples& from, uint8_t** tuples) {
  QUERN_RETURN_IF_ERROR(MakeRoom());
  QUERN_RETURN_IF_ERROR(table_->FindTuples(from, tuples));
  CountTable();
  return absl::OkStatus();
}

void WideGroups::HashesOf(uint64_t begin, uint8_t* const* tuples, uint32_t n, uint64_t* hashes) const {
  table_->HashesOf(begin, tuples, n, hashes);
}

void WideGroups::SetPrefetch(PrefetchLoop loop, const PrefetchSetting& setting) {
  context_.options.prefetch.Set(loop, setting);
  table_->SetPrefetch(loop, setting);
}

}  // namespace quern
