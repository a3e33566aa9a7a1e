// SPDX-License-Identifier: Apache-2.0
// The kernel spec: what a kernel computes, and nothing about how. It has one text form, the same in the CLI, the C ABI,
// logs, bench names, tests and cache keys:
//
//     join.inner keys=i64,utf8(utf8mb4_bin):nullable build=f64,utf8 probe=i32 residual=i64:lt
//     ^operator  ^equal on both sides, in pairs      ^payload of the build side, then of the probe side
//
//     aggregate keys=i64,utf8(utf8mb4_bin):nullable aggs=count_star,sum(i64),min(f64)
//               ^groups; nulls are one group        ^functions of further columns (aggregate_spec.h)
//
//     sort keys=i32:desc:nulls_first:out,utf8(utf8mb4_bin):nullable payload=i64,rowid limit=100 stable partition=1
//          ^most significant first; `out`: also in the result       ^further columns            ^equal keys by row id
//          window=row_number
//
//     filter utf8(utf8mb4_bin) = 'zzzz' and date32 >= 8766
//            ^a condition over the batch's columns, in the order of mention (filter_spec.h)
#ifndef QUERN_RUNTIME_SPEC_SPEC_H_
#define QUERN_RUNTIME_SPEC_SPEC_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/spec/aggregate_spec.h"
#include "runtime/spec/column_type.h"
#include "runtime/spec/filter_spec.h"

namespace quern {

enum class Operator : uint8_t { kJoin, kAggregate, kSort, kFilter };

// What a result row of a join consists of (join_kinds.def).
enum class JoinKind : uint8_t {
#define QUERN_JOIN_KIND(Id, text, pairs, probe_row, build_row) Id,
#include "runtime/spec/join_kinds.def"
};

// When a row of one side comes out on its own.
enum class RowsOut : uint8_t { kNever, kMatched, kUnmatched, kAlways };

struct JoinKindRow {
  JoinKind id;
  std::string_view text;
  bool pairs;
  RowsOut probe_row;
  RowsOut build_row;

  bool has_probe_columns() const { return pairs || probe_row != RowsOut::kNever; }
  bool has_build_columns() const { return pairs || build_row != RowsOut::kNever; }
  bool nulls_probe_columns() const {
    return pairs && build_row != RowsOut::kNever;
  }  // the result's probe columns may be null
  bool nulls_build_columns() const { return pairs && probe_row != RowsOut::kNever; }
  bool flags_matched_rows() const { return build_row != RowsOut::kNever; }
};
const JoinKindRow& RowOf(JoinKind kind);
const std::vector<JoinKindRow>& AllJoinKinds();

// One key. `nullable` (of the type): the column may hold nulls on either side.
struct KeySpec {
  ColumnType type;
  bool null_equal = false;   // null matches null (IS NOT DISTINCT FROM); otherwise a null key never matches
  bool descending = false;   // sorts only, as all below
  bool nulls_first = false;  // in either direction; otherwise nulls come last
  bool out = false;          // the column is part of the result

  bool operator==(const KeySpec&) const = default;
};

// probe column OP build column. True only if both have a value; NaN equals NaN and is greater than every number, -0
// equals 0.
enum class Comparison : uint8_t { kLess, kLessEqual, kGreater, kGreaterEqual, kNotEqual, kEqual };

// One conjunct of a join's residual predicate: pairs with equal keys match only where it holds too. Text:
// type[:nullable]:OP with OP one of lt, le, gt, ge, ne, eq. Types of fixed width; no fixed_binary, dictionary or rowid.
struct ResidualSpec {
  ColumnType type;
  Comparison op = Comparison::kLess;

  bool operator==(const ResidualSpec&) const = default;
};
constexpr size_t kMaxResiduals = 16;

// Columns, of type u64, that a sort adds to each row of the result. Rows are numbered from 1 within a partition, which
// is the rows that are equal in the first KernelSpec::partition keys. A rank counts the preceding rows, a dense rank
// the preceding distinct keys.
enum class WindowFunction : uint8_t { kRowNumber, kRank, kDenseRank };

struct KernelSpec {
  Operator op = Operator::kJoin;
  JoinKind join_kind = JoinKind::kInner;
  std::vector<KeySpec> keys;      // 1 .. kMaxKeys
  std::vector<ColumnType> build;  // payload columns, stored with each tuple
  std::vector<ColumnType> probe;  // payload columns, copied from the probe batch
  // On both sides, batches have the columns of the residual predicate, one for each conjunct, after their payload
  // columns.
  std::vector<ResidualSpec> residual;
  // kAggregate: 0 .. kMaxAggregates. `keys` may be empty if there are any; all fields below are.
  std::vector<AggregateSpec> aggregates;
  // kSort, as all below.
  std::vector<ColumnType> payload;  // up to kMaxPayloadColumns; may be `rowid`
  uint64_t limit = 0;               // most rows of the result; 0: all
  bool stable = false;              // rows with equal keys keep the order of their row ids; otherwise any order
  uint32_t partition = 0;           // 0 .. number of keys; 0 unless there are window functions
  std::vector<WindowFunction> window;
  Predicate where;  // kFilter, which uses no other field

  bool operator==(const KernelSpec&) const = default;
};

// Reads the text form. Fields may stand in any order, flags too.
// Errors: InvalidArgument that names the value and what is accepted.
absl::StatusOr<KernelSpec> ParseSpec(std::string_view text);

// Reads one type with its ':' flags, as it stands in a list ("utf8(utf8mb4_bin):nullable").
absl::StatusOr<KeySpec> ParseKey(std::string_view text);

// Writes the canonical text form: ParseSpec(PrintSpec(s)) == s, and equal specs print equal.
std::string PrintSpec(const KernelSpec& spec);

// The columns of a join's result: probe payload, then the mark (bool) of a mark join, then build payload. Where rows of
// one side come out on their own, the other side's columns are nullable.
std::vector<ColumnType> JoinOutputTypes(const KernelSpec& spec);

// The columns of an aggregation's result: keys (dictionaries decoded, without collations), then aggregates.
std::vector<ColumnType> AggregateOutputTypes(const KernelSpec& spec);

// The columns of a sort's result: keys flagged `out` (dictionaries decoded, without collations), payload, window
// functions (u64).
std::vector<ColumnType> SortOutputTypes(const KernelSpec& spec);
// The types of all keys in the same form: the columns of a threshold.
std::vector<ColumnType> SortKeyTypes(const KernelSpec& spec);

// Checks what only a caller who fills the struct can get wrong, since no text expresses it: numbers of keys, flags
// without meaning.
absl::Status ValidateSpec(const KernelSpec& spec);

}  // namespace quern

#endif  // QUERN_RUNTIME_SPEC_SPEC_H_
