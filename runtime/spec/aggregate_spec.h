// SPDX-License-Identifier: Apache-2.0
// Aggregates as part of a kernel spec: which function of which columns.
//
//     aggs=count_star,sum(i64),avg(f64:nullable):filter,min(utf8(utf8mb4_bin)),quantile(f64,0.9),string_agg(utf8,x'2c20'),host.f(f64,f64)
//
// A batch brings the columns of all aggregates one after the other: of each its arguments, then, where it has
// `:filter`, the bool column whose true rows take part (null counts as false).
#ifndef QUERN_RUNTIME_SPEC_AGGREGATE_SPEC_H_
#define QUERN_RUNTIME_SPEC_AGGREGATE_SPEC_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "runtime/spec/column_type.h"

namespace quern {

enum class AggregateFunction : uint8_t {
#define QUERN_AGGREGATE(Id, text, num_arguments, accepts, result) Id,
#include "runtime/spec/aggregate_functions.def"
};

// What the arguments of a function may be. Dictionaries of accepted types are accepted; rowid is not.
enum class Accepts : uint8_t {
  kAnything,
  kNumbers,       // integers, floats, decimal128
  kPlainNumbers,  // integers, floats
  kIntegers,
  kBooleans,
  kTexts,  // utf8, binary and their large and view forms
};

enum class ResultRule : uint8_t {
  kCount,      // i64, never null
  kSumOf,      // of signed integers i64, of unsigned ones u64, of floats f64, of decimals decimal128
  kAverageOf,  // f64; of decimals decimal128
  kSame,       // the argument's, decoded and without its collation
  kDecimal,    // decimal128
  kDouble,     // f64
  kOfHost,     // what the host said
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
  bool filtered = false;              // followed by a bool column
  double quantile = 0.5;              // of kQuantile: 0 to 1
  std::string separator;              // of kStringAgg: any bytes
  std::string host_name;              // of kHost: letters, digits, '_'

  bool operator==(const AggregateSpec&) const = default;
};
constexpr size_t kMaxAggregates = 256;

// The type of one aggregate's column in the result; `has_keys`: of the spec. Nullable where a group may have no value:
// an argument that may be null, a filter, no keys, and always for sample variances, covariances, correlations and the
// host's. Of a host's function: the type that the host registered (host_aggregates.h), or i64 where it is not (yet)
// registered, which whoever makes a kernel has to refuse.
ColumnType AggregateResultType(const AggregateSpec& aggregate, bool has_keys);

// The columns that a batch brings for a spec's aggregates, in order (`:filter` columns as bool:nullable).
std::vector<ColumnType> AggregateInputTypes(const std::vector<AggregateSpec>& aggregates);

}  // namespace quern

#endif  // QUERN_RUNTIME_SPEC_AGGREGATE_SPEC_H_
