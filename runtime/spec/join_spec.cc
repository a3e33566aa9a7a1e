// SPDX-License-Identifier: Apache-2.0
// The text form of joins, the kinds of join as an array, and the result columns that follow from a kind's row.
//
// A matching pair fills the columns of both sides, a row that comes out on its own only those of its side. So a column
// may be null in the result although it never is in its input: in `join.full keys=i64 build=f64 probe=rowid` both are,
// since a probe row without a match has no f64, and a build row without one has no number on the probe side. The mark
// column of `join.mark keys=i64:nullable probe=i32` is the second of two columns, a bool that may be null: with a null
// among the keys it can be unknown whether a row has a match.
#include "runtime/spec/join_spec.h"

#include <algorithm>
#include <utility>

#include "runtime/base/fork_safety.h"
#include "runtime/base/status.h"
#include "runtime/spec/spec_fields.h"

namespace quern {
namespace {

using enum RowsOut;

constexpr bool IsUnknownForNulls(const KeySpec& key) { return key.type.nullable && !key.null_equal; }

// nulls: the side may be without a row.
void AppendTypes(const std::vector<ColumnType>& types, bool nulls, std::vector<ColumnType>* all) {
  for (const ColumnType& type : types) {
    all->push_back(DecodedType(type));
    all->back().nullable = type.nullable || nulls;
  }
}

constexpr std::string_view kHostResidual = "host";

absl::Status AppendResidual(std::string_view text, JoinSpec* spec) {
  if (text == kHostResidual) {
    if (spec->host_residual) return Wrong("residual given twice", text, "one host");
    spec->host_residual = true;
    return absl::OkStatus();
  }
  QUERN_ASSIGN_OR_RETURN(const Item item, ParseItem(text, Role::kResidual));
  spec->residual.push_back({item.key.type, item.op});
  return absl::OkStatus();
}

constexpr Field<JoinSpec> kFields[] = {
    {"keys", "TYPE", "types", AppendKey<Role::kJoinKey>},
    {"build", "TYPE", "types", AppendPayload<JoinSpec, &JoinSpec::build>},
    {"probe", "TYPE", "types", AppendPayload<JoinSpec, &JoinSpec::probe>},
    {"residual", "TYPE", "types", AppendResidual},
};

void AppendResiduals(const char* name, const JoinSpec& spec, std::string* text) {
  AppendField(name, spec.residual, text);
  if (spec.host_residual) *text += (spec.residual.empty() ? name : ",") + std::string(kHostResidual);
}

// By kind: join.inner, join.left, ..
const std::vector<std::string>& KindNames() {
  const NoFork no_fork;  // the first call makes it
  static const std::vector<std::string> names = [] {
    std::vector<std::string> texts;
    for (const JoinKindRow& row : AllJoinKinds()) texts.push_back("join." + std::string(row.text));
    return texts;
  }();
  return names;
}

const std::string& NameOf(JoinKind kind) { return KindNames()[static_cast<size_t>(kind)]; }

absl::Status CheckPayloadOfKind(const JoinSpec& spec) {
  const JoinKindRow& kind = RowOf(spec.kind);
  const auto refused = [&](const char* field, const std::vector<ColumnType>& types, const char* accepted) {
    std::string text;
    AppendField(field, types, &text);
    return Wrong("payload of a side that does not come out of " + NameOf(kind.id), text, accepted);
  };
  if (!kind.has_build_columns() && !spec.build.empty()) return refused("build=", spec.build, "probe=TYPE,TYPE,..");
  if (!kind.has_probe_columns() && !spec.probe.empty()) return refused("probe=", spec.probe, "build=TYPE,TYPE,..");
  return absl::OkStatus();
}

// If a null key makes the result unknown, it depends on all rows of the build side, not only on those with equal keys.
// So it is defined only for a single key.
absl::Status CheckNullAwareness(const JoinSpec& spec) {
  const bool is_anti = spec.kind == JoinKind::kAntiNullAware;
  const bool is_mark =
      spec.kind == JoinKind::kMark && std::any_of(spec.keys.begin(), spec.keys.end(), IsUnknownForNulls);
  if (!is_anti && !is_mark) return absl::OkStatus();
  const std::string where = NameOf(spec.kind) + (is_mark ? " with a key that may be null" : "");
  const std::string otherwise = is_mark ? ", or keys without nullable or with nullequal" : "";
  if (spec.keys.size() != 1)
    return Wrong("number of keys of " + where, std::to_string(spec.keys.size()), "1" + otherwise);
  if (!spec.residual.empty() || spec.host_residual) {
    std::string text;
    AppendResiduals("residual=", spec, &text);
    return Wrong("residual of " + where, text, "none" + otherwise);
  }
  return absl::OkStatus();
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

Names JoinSpec::Names() { return {KindNames().begin(), KindNames().end()}; }

absl::StatusOr<JoinSpec> JoinSpec::Parse(std::string_view name, std::string_view fields) {
  JoinSpec spec;
  spec.kind = static_cast<JoinKind>(std::find(KindNames().begin(), KindNames().end(), name) - KindNames().begin());
  QUERN_RETURN_IF_ERROR(ParseFields<JoinSpec>(fields, kFields, &spec));
  QUERN_RETURN_IF_ERROR(CheckKeysGiven(spec.keys));
  return spec;
}

absl::Status JoinSpec::Validate() const {
  if (const size_t last = AllJoinKinds().size() - 1; static_cast<size_t>(kind) > last) {
    return Wrong("join kind out of range", std::to_string(static_cast<int>(kind)), "0 to " + std::to_string(last));
  }
  QUERN_RETURN_IF_ERROR(CheckCount("keys", keys.size(), 1, kMaxKeys));
  QUERN_RETURN_IF_ERROR(CheckCount("build columns", build.size(), 0, kMaxPayloadColumns));
  QUERN_RETURN_IF_ERROR(CheckCount("probe columns", probe.size(), 0, kMaxPayloadColumns));
  QUERN_RETURN_IF_ERROR(CheckCount("residual columns", residual.size(), 0, kMaxResiduals));
  QUERN_RETURN_IF_ERROR(CheckEach(keys, "keys", CheckJoinKey));
  QUERN_RETURN_IF_ERROR(CheckPayload(build, "build"));
  QUERN_RETURN_IF_ERROR(CheckPayload(probe, "probe"));
  QUERN_RETURN_IF_ERROR(CheckEach(residual, "residual", CheckResidual));
  QUERN_RETURN_IF_ERROR(CheckPayloadOfKind(*this));
  return CheckNullAwareness(*this);
}

std::string JoinSpec::Print() const {
  std::string text = NameOf(kind);
  AppendField(" keys=", keys, &text);
  AppendField(" build=", build, &text);
  AppendField(" probe=", probe, &text);
  AppendResiduals(" residual=", *this, &text);
  return text;
}

std::vector<ColumnType> JoinOutputTypes(const JoinSpec& spec) {
  const JoinKindRow& kind = RowOf(spec.kind);
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
