// SPDX-License-Identifier: Apache-2.0
// Aggregates as part of a kernel spec: functions and their columns.
//
//     aggs=count_star,sum(i64),avg(f64:nullable):filter,min(utf8(utf8mb4_bin)),quantile(f64,0.9),
//          string_agg(utf8,x'2c20'),host.f(f64,f64)
//
// A batch has the columns of all aggregates one after the other: for each its arguments, then, if it has `:filter`, the
// bool column whose true rows take part (null counts as false). A spec with `in` names the batch's columns instead, and
// arguments and filters are expressions of them (aggregation_spec.h):
//
//     in=i64,f64:nullable aggs=sum(multiply_checked($0,$0)),avg($1):filter(less($0,5:i64))
#ifndef QUERN_RUNTIME_SPEC_AGGREGATE_SPEC_H_
#define QUERN_RUNTIME_SPEC_AGGREGATE_SPEC_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "runtime/spec/column_type.h"
#include "runtime/spec/expression.h"

namespace quern {

enum class AggregateFunction : uint8_t {
#define QUERN_AGGREGATE(Id, text, num_arguments, accepts, result) Id,
#include "runtime/spec/aggregate_functions.def"
};

// Which arguments a function accepts. Dictionaries of accepted types are accepted; rowid is not.
enum class Accepts : uint8_t {
  kAnything,
  kNumbers,       // integers, floats, decimals
  kPlainNumbers,  // integers, floats
  kIntegers,
  kBooleans,
  kTexts,  // utf8, binary and their large and view forms
};

enum class ResultRule : uint8_t {
  kCount,      // i64, never null
  kSumOf,      // signed integers: i64; unsigned ones: u64; floats: f64; decimals: decimal128
  kAverageOf,  // f64; decimals: decimal128
  kSame,       // the argument's, decoded and without its collation
  kDecimal,    // decimal128
  kDouble,     // f64
  kOfHost,     // as registered by the host
};

struct AggregateFunctionRow {
  AggregateFunction id;
  std::string_view text;
  uint8_t num_arguments;
  Accepts accepts;
  ResultRule result;
};
std::span<const AggregateFunctionRow> AllAggregateFunctions();
const AggregateFunctionRow& RowOf(AggregateFunction function);

struct AggregateSpec {
  AggregateFunction function = AggregateFunction::kCountStar;
  std::vector<ColumnType> arguments;  // `nullable` of each: the column may hold nulls
  bool filtered = false;              // a bool column follows the arguments
  double quantile = 0.5;              // kQuantile: 0 to 1
  std::string separator;              // kStringAgg: any bytes
  std::string host_name;              // kHost: letters, digits, '_'
  // Specs with `in`: the arguments, whose types `arguments` has, and the filter. Else empty.
  std::vector<Expression> expressions = {};
  std::optional<Expression> filter = std::nullopt;

  bool operator==(const AggregateSpec&) const = default;
};
constexpr size_t kMaxAggregates = 256;

// Whether the arguments are computed: one of them at least is no column. Then all are, so that a function reads them in
// one way.
bool HasComputedArguments(const AggregateSpec& aggregate);

// The type of one aggregate's column in the result; `has_keys`: whether the spec has keys. Nullable where a group may
// have no value: for an argument that may be null, a filter, or no keys, and always for sample variances, covariances,
// correlations and host functions. The type of a host function is the one that the host registered (host_aggregates.h),
// or i64 if it is not (yet) registered; then no kernel may be made of the spec.
ColumnType AggregateResultType(const AggregateSpec& aggregate, bool has_keys);

// The columns that aggregates read, in order (`:filter` columns as bool:nullable).
std::vector<ColumnType> AggregateInputTypes(const std::vector<AggregateSpec>& aggregates);

}  // namespace quern

#endif  // QUERN_RUNTIME_SPEC_AGGREGATE_SPEC_H_
