// SPDX-License-Identifier: Apache-2.0
// The text form of a kernel spec, read and written.
//
//     spec  = operator { blank field }               join.left keys=i64,utf8(ascii_bin):nullable:nullequal build=f64 residual=i32:lt
//     field = name "=" [ item { "," item } ]         each name at most once, those of the operator: a join's keys (required), build,
//                                                    probe and residual; an aggregate's keys and aggs, one of them at least
//     item  = type { ":" flag }                      spec_text.cc; of aggs an aggregate: sum(i64):filter, aggregate_spec.cc
//
// Text becomes a spec in one way only and a spec becomes one text only, so that the text can be a cache key: what is the default anyway
// (`:asc`, `:nulls_last`, `(binary)`) may be written and is never printed, and fields and flags are printed in a fixed order. The
// example above has 2 keys; printed again it is the same to the byte. For the same reason a struct that a caller filled is refused where
// it says something that no text says, such as a separator of a sum.
#include "runtime/spec.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "runtime/spec_text.h"
#include "runtime/status.h"

namespace quern {
namespace {

constexpr size_t kMaxTextBytes = 65536;
constexpr std::string_view kJoin = "join.";
constexpr std::string_view kAggregate = "aggregate";

// ---- fields ----

struct Field {
  std::string_view name;
  std::string_view item;  // as messages call one, and several
  std::string_view items;
  absl::Status (*append)(std::string_view item, KernelSpec* spec);
};

template <Role kRole>
absl::Status AppendKey(std::string_view text, KernelSpec* spec) {
  QUERN_ASSIGN_OR_RETURN(Item item, ParseItem(text, kRole));
  if (kRole == Role::kAggregateKey) item.key.null_equal = item.key.type.nullable;
  spec->keys.push_back(item.key);
  return absl::OkStatus();
}

template <std::vector<ColumnType> KernelSpec::* kSide>
absl::Status AppendPayload(std::string_view text, KernelSpec* spec) {
  QUERN_ASSIGN_OR_RETURN(const Item item, ParseItem(text, Role::kPayload));
  (spec->*kSide).push_back(item.key.type);
  return absl::OkStatus();
}

absl::Status AppendResidual(std::string_view text, KernelSpec* spec) {
  QUERN_ASSIGN_OR_RETURN(const Item item, ParseItem(text, Role::kResidual));
  spec->residual.push_back({item.key.type, item.op});
  return absl::OkStatus();
}

absl::Status AppendAggregate(std::string_view text, KernelSpec* spec) {
  QUERN_ASSIGN_OR_RETURN(AggregateSpec aggregate, ParseAggregate(text));
  spec->aggregates.push_back(std::move(aggregate));
  return absl::OkStatus();
}

constexpr Field kJoinFields[] = {
    {"keys", "TYPE", "types", AppendKey<Role::kJoinKey>},
    {"build", "TYPE", "types", AppendPayload<&KernelSpec::build>},
    {"probe", "TYPE", "types", AppendPayload<&KernelSpec::probe>},
    {"residual", "TYPE", "types", AppendResidual},
};
constexpr Field kAggregateFields[] = {
    {"keys", "TYPE", "types", AppendKey<Role::kAggregateKey>},
    {"aggs", "AGGREGATE", "aggregates", AppendAggregate},
};

std::span<const Field> FieldsOf(Operator op) {
  switch (op) {
    case Operator::kJoin: return kJoinFields;
    case Operator::kAggregate: return kAggregateFields;
  }
  return {};
}

std::string ListForm(const Field& field) {
  const std::string item(field.item);
  return std::string(field.name) + "=" + item + "," + item + ",..";
}

absl::Status ParseList(std::string_view word, std::string_view list, const Field& field, KernelSpec* spec) {
  if (list.empty()) return absl::OkStatus();
  for (std::string_view item : Split(list, ',')) {
    if (item.empty()) return Wrong("empty item in a list", word, std::string(field.items) + " separated by ','");
    QUERN_RETURN_IF_ERROR(field.append(item, spec));
  }
  return absl::OkStatus();
}

// `given`: the names of the fields before.
absl::Status ParseField(std::string_view word, Names* given, KernelSpec* spec) {
  const size_t equals = word.find('=');
  const std::string_view name = word.substr(0, equals);
  Names names;
  for (const Field& field : FieldsOf(spec->op)) {
    names.push_back(field.name);
    if (field.name != name) continue;
    if (equals == std::string_view::npos) return Wrong("field without a value", word, ListForm(field));
    if (std::find(given->begin(), given->end(), name) != given->end()) return Wrong("field given twice", name, "each field once");
    given->push_back(name);
    return ParseList(word, word.substr(equals + 1), field, spec);
  }
  return Unknown("field", name, names);
}

absl::Status CheckFieldsGiven(const KernelSpec& spec) {
  if (!spec.keys.empty() || !spec.aggregates.empty()) return absl::OkStatus();
  if (spec.op == Operator::kJoin) return Wrong("missing field", "keys", "keys=TYPE,TYPE,.. with 1 to 16 types");
  return Wrong("missing field", "keys or aggs",
               "one of them at least: " + ListForm(kAggregateFields[0]) + " " + ListForm(kAggregateFields[1]));
}

// ---- operators ----

// The kinds of join in the order of their enum, then aggregate.
Names OperatorNames() {
  static const std::vector<std::string> texts = [] {
    std::vector<std::string> operators;
    for (const JoinKindRow& row : AllJoinKinds()) operators.push_back(std::string(kJoin) + std::string(row.text));
    operators.emplace_back(kAggregate);
    return operators;
  }();
  return {texts.begin(), texts.end()};
}

std::string_view JoinText(JoinKind kind) { return OperatorNames()[static_cast<size_t>(kind)]; }

absl::Status ParseOperator(std::string_view text, KernelSpec* spec) {
  const Names names = OperatorNames();
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) return Unknown("operator", text, names);
  if (text == kAggregate) spec->op = Operator::kAggregate;
  else spec->join_kind = static_cast<JoinKind>(found - names.begin());
  return absl::OkStatus();
}

template <class Items>
void AppendField(const char* name, const Items& items, std::string* text) {
  for (size_t i = 0; i < items.size(); ++i) *text += (i == 0 ? name : ",") + PrintItem(items[i]);
}

// ---- what a kind of join accepts ----

absl::Status CheckPayloadOfKind(const KernelSpec& spec) {
  const JoinKindRow& kind = RowOf(spec.join_kind);
  const auto refused = [&](const char* field, const std::vector<ColumnType>& types, const char* accepted) {
    std::string text;
    AppendField(field, types, &text);
    return Wrong("payload of a side that does not come out of " + std::string(JoinText(kind.id)), text, accepted);
  };
  if (!kind.has_build_columns() && !spec.build.empty()) return refused("build=", spec.build, "probe=TYPE,TYPE,..");
  if (!kind.has_probe_columns() && !spec.probe.empty()) return refused("probe=", spec.probe, "build=TYPE,TYPE,..");
  return absl::OkStatus();
}

// Where a null key makes the answer unknown, the answer hangs on all rows of the build side, not on those with equal keys: it is defined
// for one key, which decides alone.
absl::Status CheckNullAwareness(const KernelSpec& spec) {
  const auto may_be_unknown = [](const KeySpec& key) { return key.type.nullable && !key.null_equal; };
  const bool is_anti = spec.join_kind == JoinKind::kAntiNullAware;
  const bool is_mark = spec.join_kind == JoinKind::kMark && std::any_of(spec.keys.begin(), spec.keys.end(), may_be_unknown);
  if (!is_anti && !is_mark) return absl::OkStatus();
  const std::string where = std::string(JoinText(spec.join_kind)) + (is_mark ? " with a key that may be null" : "");
  const std::string otherwise = is_mark ? ", or keys without nullable or with nullequal" : "";
  if (spec.keys.size() != 1) return Wrong("number of keys of " + where, std::to_string(spec.keys.size()), "1" + otherwise);
  if (!spec.residual.empty()) {
    std::string text;
    AppendField("residual=", spec.residual, &text);
    return Wrong("residual of " + where, text, "none" + otherwise);
  }
  return absl::OkStatus();
}

// ---- validation ----

absl::Status CheckCount(std::string_view what, size_t n, size_t min, size_t max) {
  if (n >= min && n <= max) return absl::OkStatus();
  return Wrong("number of " + std::string(what) + " out of range", std::to_string(n), std::to_string(min) + " to " + std::to_string(max));
}

absl::Status CheckTextBytes(size_t bytes) {
  if (bytes <= kMaxTextBytes) return absl::OkStatus();
  return Wrong("kernel spec too long", std::to_string(bytes) + " bytes", "up to " + std::to_string(kMaxTextBytes));
}

// Each item of a list by its check; `name` of the list, as in "keys[0]".
template <class Items, class Check>
absl::Status CheckEach(const Items& items, const std::string& name, Check check) {
  for (size_t i = 0; i < items.size(); ++i) QUERN_RETURN_IF_ERROR(check(items[i], name + "[" + std::to_string(i) + "]"));
  return absl::OkStatus();
}

absl::Status CheckJoin(const KernelSpec& spec) {
  QUERN_RETURN_IF_ERROR(CheckCount("keys", spec.keys.size(), 1, kMaxKeys));
  QUERN_RETURN_IF_ERROR(CheckCount("build columns", spec.build.size(), 0, kMaxPayloadColumns));
  QUERN_RETURN_IF_ERROR(CheckCount("probe columns", spec.probe.size(), 0, kMaxPayloadColumns));
  QUERN_RETURN_IF_ERROR(CheckCount("residual columns", spec.residual.size(), 0, kMaxResiduals));
  if (!spec.aggregates.empty()) return Wrong("aggregates of a join", std::to_string(spec.aggregates.size()), "none");
  QUERN_RETURN_IF_ERROR(CheckEach(spec.keys, "keys", CheckJoinKey));
  QUERN_RETURN_IF_ERROR(CheckPayload(spec.build, "build"));
  QUERN_RETURN_IF_ERROR(CheckPayload(spec.probe, "probe"));
  QUERN_RETURN_IF_ERROR(CheckEach(spec.residual, "residual", CheckResidual));
  QUERN_RETURN_IF_ERROR(CheckPayloadOfKind(spec));
  return CheckNullAwareness(spec);
}

absl::Status CheckNothingOfAJoin(const KernelSpec& spec) {
  if (spec.join_kind != JoinKind::kInner) return Wrong("join kind of an aggregate", RowOf(spec.join_kind).text, "inner");
  const auto refused = [](const char* field) { return Wrong("join's columns in an aggregate", field, "keys and aggs"); };
  if (!spec.build.empty()) return refused("build");
  if (!spec.probe.empty()) return refused("probe");
  if (!spec.residual.empty()) return refused("residual");
  return absl::OkStatus();
}

absl::Status CheckAggregation(const KernelSpec& spec) {
  QUERN_RETURN_IF_ERROR(CheckNothingOfAJoin(spec));
  QUERN_RETURN_IF_ERROR(CheckCount("keys", spec.keys.size(), 0, kMaxKeys));
  QUERN_RETURN_IF_ERROR(CheckCount("aggregates", spec.aggregates.size(), 0, kMaxAggregates));
  QUERN_RETURN_IF_ERROR(CheckFieldsGiven(spec));
  QUERN_RETURN_IF_ERROR(CheckEach(spec.keys, "keys", CheckAggregateKey));
  return CheckEach(spec.aggregates, "aggs", CheckAggregate);
}

absl::Status CheckOperator(const KernelSpec& spec) {
  switch (spec.op) {
    case Operator::kJoin: return CheckJoin(spec);
    case Operator::kAggregate: return CheckAggregation(spec);
  }
  return Wrong("operator number out of range", std::to_string(static_cast<int>(spec.op)), "0 to 1");
}

// ---- printing ----

// The types of keys alone: that nulls are a group goes without saying.
std::vector<ColumnType> KeyTypes(const KernelSpec& spec) {
  std::vector<ColumnType> types;
  for (const KeySpec& key : spec.keys) types.push_back(key.type);
  return types;
}

std::string PrintJoin(const KernelSpec& spec) {
  std::string text(JoinText(spec.join_kind));
  AppendField(" keys=", spec.keys, &text);
  AppendField(" build=", spec.build, &text);
  AppendField(" probe=", spec.probe, &text);
  AppendField(" residual=", spec.residual, &text);
  return text;
}

std::string PrintAggregation(const KernelSpec& spec) {
  std::string text(kAggregate);
  AppendField(" keys=", KeyTypes(spec), &text);
  AppendField(" aggs=", spec.aggregates, &text);
  return text;
}

}  // namespace

absl::StatusOr<KernelSpec> ParseSpec(std::string_view text) {
  QUERN_RETURN_IF_ERROR(CheckTextBytes(text.size()));
  const std::vector<std::string_view> words = SplitWords(text);
  if (words.empty()) return Wrong("missing operator", "", Listed(OperatorNames()));
  KernelSpec spec;
  QUERN_RETURN_IF_ERROR(ParseOperator(words[0], &spec));
  Names given;
  for (size_t i = 1; i < words.size(); ++i) QUERN_RETURN_IF_ERROR(ParseField(words[i], &given, &spec));
  QUERN_RETURN_IF_ERROR(CheckFieldsGiven(spec));
  QUERN_RETURN_IF_ERROR(ValidateSpec(spec));
  return spec;
}

absl::StatusOr<KeySpec> ParseKey(std::string_view text) {
  QUERN_RETURN_IF_ERROR(CheckTextBytes(text.size()));
  QUERN_ASSIGN_OR_RETURN(const Item item, ParseItem(text, Role::kKey));
  return item.key;
}

std::string PrintSpec(const KernelSpec& spec) { return spec.op == Operator::kAggregate ? PrintAggregation(spec) : PrintJoin(spec); }

std::vector<ColumnType> AggregateOutputTypes(const KernelSpec& spec) {
  std::vector<ColumnType> types;
  for (const ColumnType& key : KeyTypes(spec)) {
    types.push_back({.id = key.id, .width_bytes = key.width_bytes, .nullable = key.nullable});
  }
  for (const AggregateSpec& aggregate : spec.aggregates) types.push_back(AggregateResultType(aggregate, !spec.keys.empty()));
  return types;
}

absl::Status ValidateSpec(const KernelSpec& spec) {
  if (const size_t last = AllJoinKinds().size() - 1; static_cast<size_t>(spec.join_kind) > last) {
    return Wrong("join kind out of range", std::to_string(static_cast<int>(spec.join_kind)), "0 to " + std::to_string(last));
  }
  QUERN_RETURN_IF_ERROR(CheckOperator(spec));
  return CheckTextBytes(PrintSpec(spec).size());
}

}  // namespace quern
