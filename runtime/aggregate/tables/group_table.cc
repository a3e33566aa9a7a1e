// SPDX-License-Identifier: Apache-2.0
// Chooses the table for a descriptor, and implements the table of one group. Slots of an open table move when it grows
// and are half empty, so a tuple in one should be no wider than a cache line. Wider tuples lie in order of arrival
// behind a directory, like those of all keys that are not packed, unless there are few.
#include "runtime/aggregate/tables/group_table.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/aggregate/tables/directory_groups.h"
#include "runtime/aggregate/tables/packed_key_groups.h"
#include "runtime/aggregate/tables/wide_groups.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"

namespace quern {
namespace {

constexpr uint32_t kWidestSlotBytes = thresholds::kWidestGroupSlot;
constexpr uint32_t kWidestSmallSlotBytes = thresholds::kWidestSmallGroupSlot;

class SingleGroup : public GroupTable {
 public:
  explicit SingleGroup(const GroupContext& context)
      : tuple_(context.descriptor->group()->tuple_bytes / sizeof(uint64_t)) {}

  absl::Status Find(const KeyRows& rows, uint8_t** tuples) override { return FindAll(rows.n, tuples); }
  absl::Status FindTuples(const GroupTuples& from, uint8_t** tuples) override { return FindAll(from.n, tuples); }
  uint8_t* const* only_group() override {
    if (of_all_rows_.empty()) of_all_rows_.assign(kMaxBatchRows, reinterpret_cast<uint8_t*>(tuple_.data()));
    return of_all_rows_.data();
  }
  uint64_t num_groups() const override { return 1; }
  uint64_t num_positions() const override { return 1; }
  uint32_t Scan(uint64_t begin, uint64_t end, uint8_t** tuples) override {
    if (begin == end) return 0;
    tuples[0] = reinterpret_cast<uint8_t*>(tuple_.data());
    return 1;
  }
  void HashesOf(uint64_t, uint8_t* const*, uint32_t n, uint64_t* hashes) const override {
    std::fill(hashes, hashes + n, uint64_t{0});
  }
  void Release() override { std::fill(tuple_.begin(), tuple_.end(), uint64_t{0}); }
  uint64_t bytes() const override { return tuple_.size() * sizeof(uint64_t); }
  uint64_t num_growths() const override { return 0; }
  PrefetchSetting prefetch() const override { return {}; }
  void SetPrefetch(PrefetchLoop, const PrefetchSetting&) override {}
  const char* layout() const override { return "single"; }

 private:
  absl::Status FindAll(uint32_t n, uint8_t** tuples) {
    std::fill(tuples, tuples + n, reinterpret_cast<uint8_t*>(tuple_.data()));
    return absl::OkStatus();
  }

  std::vector<uint64_t> tuple_;
  std::vector<uint8_t*> of_all_rows_;  // empty until it is asked for
};

}  // namespace

namespace {

double Met(double rows, double groups) { return -groups * std::expm1(-rows / groups); }

}  // namespace

uint64_t ExpectedGroups(uint64_t rows, uint64_t groups) {
  if (groups >= rows) return UINT64_MAX;
  double low = static_cast<double>(groups), high = 1e18;
  for (int i = 0; i < 64; ++i) {
    const double d = std::sqrt(low * high);
    (Met(static_cast<double>(rows), d) < static_cast<double>(groups) ? low : high) = d;
  }
  return static_cast<uint64_t>(low);
}

uint64_t GroupsMet(uint64_t rows, uint64_t groups) {
  if (groups == 0 || rows == 0) return 0;
  return std::min(rows, static_cast<uint64_t>(Met(static_cast<double>(rows), static_cast<double>(groups))) + 1);
}

std::unique_ptr<GroupTable> MakeGroupTable(const GroupContext& context, uint64_t expected_groups) {
  const QuernRowLayout& group = *context.descriptor->group();
  if (group.num_keys == 0) return std::make_unique<SingleGroup>(context);
  const GroupLayout layout = context.options.layout;
  const bool fits_slot = group.tuple_bytes <= kWidestSlotBytes;
  if (group.packed_bytes != 0 && layout != GroupLayout::kDirectory && (fits_slot || layout == GroupLayout::kOpen)) {
    return std::make_unique<PackedKeyGroups>(context, expected_groups);
  }
  const bool may_fit_slot = group.tuple_bytes <= kWidestSmallSlotBytes;
  if (group.packed_bytes != 0 && layout == GroupLayout::kAuto && may_fit_slot)
    return std::make_unique<WideGroups>(context, expected_groups);
  return std::make_unique<DirectoryGroups>(context, expected_groups);
}

}  // namespace quern
