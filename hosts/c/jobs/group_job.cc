// SPDX-License-Identifier: Apache-2.0
// Hints, statistics and states of jobs whose sink groups rows. An aggregation `aggregate keys=utf8 aggs=sum(i64)` takes
// states with the key utf8 and one binary column; a set operation `set.except keys=utf8` takes them with two, the
// numbers of rows on its two sides.
#include "hosts/c/jobs/group_job.h"

#include <string>

#include "hosts/c/boundary.h"
#include "runtime/base/status.h"

namespace quern::c_abi {

absl::StatusOr<GroupHints> HintsOf(const quern_job_options& options, size_t num_keys) {
  GroupHints hints;
  hints.expected_groups = options.expected_groups;
  if (options.num_key_ranges == 0) return hints;
  if (options.key_ranges == nullptr) return MissingArgument("key_ranges");
  hints.ranges.resize(num_keys);
  for (size_t i = 0; i < options.num_key_ranges; ++i) {
    const quern_key_range& range = options.key_ranges[i];
    if (range.key >= num_keys) {
      return InvalidArgument(
          "key number out of range: " + std::to_string(range.key) + "; accepted: " +
          (num_keys == 0 ? "none, since the spec has no keys" : "0 to " + std::to_string(num_keys - 1)));
    }
    hints.ranges[range.key] = {true, range.min, range.max};
  }
  return hints;
}

void GroupJob::FillStats(quern_job_stats* stats) const {
  const AggregateStats& counted = groups()->stats();
  stats->layout = sink->is_finalised() ? counted.layout : "";
  stats->input_rows = counted.input_rows;
  stats->num_rows = counted.num_groups;
  stats->table_bytes = counted.table_bytes;
  stats->num_growths = counted.num_growths;
  stats->prefetch_distance = counted.prefetch_distance;
}

PortColumns GroupJob::StatesPort(const AggregationSpec& spec) {
  PortColumns states = {QUERN_PORT_STATES, "states", {}, true};
  const std::vector<ColumnType> types = AggregateStateTypes(spec);
  const auto num_keys = static_cast<ptrdiff_t>(spec.keys.size());
  states.types.keys.assign(types.begin(), types.begin() + num_keys);
  states.types.payload.assign(types.begin() + num_keys, types.end());
  return states;
}

}  // namespace quern::c_abi
