// SPDX-License-Identifier: Apache-2.0
// The kinds of join as an array, and the result columns that follow from a kind's row.
//
// A matching pair fills the columns of both sides, a row that comes out on its own only those of its side. So a column
// may be null in the result although it never is in its input: in `join.full keys=i64 build=f64 probe=rowid` both are,
// since a probe row without a match has no f64, and a build row without one has no number on the probe side. The mark
// column of `join.mark keys=i64:nullable probe=i32` is the second of two columns, a bool that may be null: with a null
// among the keys it can be unknown whether a row has a match.
#include <algorithm>

#include "runtime/base/fork_safety.h"
#include "runtime/spec/spec.h"

namespace quern {
namespace {

using enum RowsOut;

constexpr bool IsUnknownForNulls(const KeySpec& key) { return key.type.nullable && !key.null_equal; }

void AppendTypes(const std::vector<ColumnType>& types, bool nulls, std::vector<ColumnType>* all) {
  for (const ColumnType& type : types) {
    all->push_back(type);
    all->back().nullable = type.nullable || nulls;
  }
}

}  // namespace

const std::vector<JoinKindRow>& AllJoinKinds() {
  const NoFork no_fork;  // the first call makes it
  static const std::vector<JoinKindRow> rows = {
#define QUERN_JOIN_KIND(Id, text, pairs, probe_row, build_row) {JoinKind::Id, text, pairs, probe_row, build_row},
#include "runtime/spec/join_kinds.def"
  };
  return rows;
}

const JoinKindRow& RowOf(JoinKind kind) { return AllJoinKinds()[static_cast<size_t>(kind)]; }

std::vector<ColumnType> JoinOutputTypes(const KernelSpec& spec) {
  const JoinKindRow& kind = RowOf(spec.join_kind);
  std::vector<ColumnType> types;
  AppendTypes(spec.probe, kind.nulls_probe_columns(), &types);
  if (kind.probe_row == kAlways) {
    types.push_back(
        {.id = TypeId::kBool, .nullable = std::any_of(spec.keys.begin(), spec.keys.end(), IsUnknownForNulls)});
  }
  AppendTypes(spec.build, kind.nulls_build_columns(), &types);
  return types;
}

}  // namespace quern
