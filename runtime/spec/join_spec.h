// SPDX-License-Identifier: Apache-2.0
// The spec of a hash join:
//
//     join.inner keys=i64,utf8(utf8mb4_bin):nullable build=f64,utf8 probe=i32 residual=i64:lt
//          ^kind ^equal on both sides, in pairs      ^payload of the build side, then of the probe side
#ifndef QUERN_RUNTIME_SPEC_JOIN_SPEC_H_
#define QUERN_RUNTIME_SPEC_JOIN_SPEC_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/spec/condition.h"
#include "runtime/spec/key_spec.h"

namespace quern {

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

// One conjunct of a join's residual predicate, probe column OP build column: pairs with equal keys match only where it
// holds too. Text: type[:nullable]:OP with OP one of lt, le, gt, ge, ne, eq. Types of fixed width; no fixed_binary,
// dictionary or rowid. In place of a conjunct the text may say `host`, once: JoinSpec::host_residual.
struct ResidualSpec {
  ColumnType type;
  Comparison op = Comparison::kLess;

  bool operator==(const ResidualSpec&) const = default;
};
constexpr size_t kMaxResiduals = 16;

struct JoinSpec {
  JoinKind kind = JoinKind::kInner;
  std::vector<KeySpec> keys;      // 1 .. kMaxKeys
  std::vector<ColumnType> build;  // payload columns, stored with each tuple
  std::vector<ColumnType> probe;  // payload columns, copied from the probe batch
  // On both sides, batches have the columns of the residual predicate, one for each conjunct, after their payload
  // columns.
  std::vector<ResidualSpec> residual;
  bool host_residual = false;  // a function of the host decides about the pairs for which `residual` holds

  // The text form, as every operator has it (spec.h).
  static constexpr size_t kMaxTextBytes = 65536;
  static std::vector<std::string_view> Names();
  static absl::StatusOr<JoinSpec> Parse(std::string_view name, std::string_view fields);
  absl::Status Validate() const;
  std::string Print() const;

  bool operator==(const JoinSpec&) const = default;
};

// The columns of a join's result: probe payload, then the mark (bool) of a mark join, then build payload, dictionaries
// decoded. Where rows of one side come out on their own, the other side's columns are nullable.
std::vector<ColumnType> JoinOutputTypes(const JoinSpec& spec);

}  // namespace quern

#endif  // QUERN_RUNTIME_SPEC_JOIN_SPEC_H_
