// SPDX-License-Identifier: Apache-2.0
// The spec of a hash aggregation:
//
//     aggregate keys=i64,utf8(utf8mb4_bin):nullable aggs=count_star,sum(i64),min(f64)
//               ^groups; nulls are one group        ^functions of further columns (aggregate_spec.h)
//
//     aggregate keys=i64 in=decimal128(15,2),decimal128(15,2) aggs=sum($0),sum(multiply($0,$1)),count_star
//                        ^further columns $0, $1, ..          ^functions of expressions of them (expression.h)
#ifndef QUERN_RUNTIME_SPEC_AGGREGATION_SPEC_H_
#define QUERN_RUNTIME_SPEC_AGGREGATION_SPEC_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/spec/aggregate_spec.h"
#include "runtime/spec/key_spec.h"
#include "runtime/spec/map_spec.h"

namespace quern {

struct AggregationSpec {
  std::vector<KeySpec> keys;              // 0 .. kMaxKeys; none only if there are aggregates
  std::vector<ValueType> columns;         // `in`; none: aggregates have columns of their own
  std::vector<AggregateSpec> aggregates;  // 0 .. kMaxAggregates

  // The text form, as every operator has it (spec.h).
  static constexpr size_t kMaxTextBytes = size_t{1} << 18;
  static std::vector<std::string_view> Names();
  static absl::StatusOr<AggregationSpec> Parse(std::string_view name, std::string_view fields);
  absl::Status Validate() const;
  std::string Print() const;

  bool operator==(const AggregationSpec&) const = default;
};

// The columns of a batch behind its keys.
std::vector<ColumnType> AggregateInputTypes(const AggregationSpec& spec);

// Arguments and filters of a spec with `in` that are no columns of a batch, each once, as a map of its columns. Without
// any the map has no results.
MapSpec ComputedArguments(const AggregationSpec& spec);

// The columns of an aggregation's result: keys (dictionaries decoded, without collations), then aggregates.
std::vector<ColumnType> AggregateOutputTypes(const AggregationSpec& spec);

}  // namespace quern

#endif  // QUERN_RUNTIME_SPEC_AGGREGATION_SPEC_H_
