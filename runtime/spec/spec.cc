// SPDX-License-Identifier: Apache-2.0
// Parses and prints the text form of a kernel spec.
//
//     spec  = operator { blank field }            join.left keys=i64,utf8(ascii_bin):nullable:nullequal build=f64
//                                                 residual=i32:lt
//     field = name "=" [ item { "," item } ]      each name at most once. A join has keys (required), build, probe and
//           | name "=" number | name              residual; an aggregation keys and aggs, at least one of them; a sort
//                                                 keys (required), payload, limit (a number), stable (a word),
//                                                 partition, window
//     item  = type { ":" flag }                   spec_text.cc; in aggs, an aggregate (aggregate_spec.cc):
//                                                 sum(i64):filter
//
// Each spec has exactly one canonical text, so that the text can be a cache key: defaults (`:asc`, `:nulls_last`,
// `(binary)`, `partition=0`) may be written and are never printed, and fields and flags are printed in a fixed order (a
// filter has no fields but a condition, filter_spec.cc). The example above has 2 keys and prints as it was written, to
// the byte. For the same reason a struct filled by a caller is rejected if it contains something that no text
// expresses, such as a separator of a sum.
#include "runtime/spec/spec.h"

#include <algorithm>
#include <charconv>
#include <span>
#include <string>
#include <utility>

#include "runtime/base/fork_safety.h"
#include "runtime/base/status.h"
#include "runtime/spec/spec_text.h"

namespace quern {
namespace {

constexpr size_t kMaxTextBytes = 65536;
constexpr size_t kMaxFilterTextBytes = 4 << 20;  // most of which may be IN lists
constexpr std::string_view kJoin = "join.";
constexpr std::string_view kAggregate = "aggregate";
constexpr std::string_view kSort = "sort";
constexpr std::string_view kFilter = "filter";
constexpr uint64_t kMaxLimit = ~uint64_t{0} >> 1;

// ---- fields ----

// NAME=ITEM,ITEM,.., NAME=NUMBER, or the name alone.
enum class FieldForm : uint8_t { kList, kNumber, kWord };

struct Field {
  std::string_view name;
  std::string_view item;  // one item, and several, in messages
  std::string_view items;
  // For a list `item` is one item, otherwise the text behind '='.
  absl::Status (*append)(std::string_view item, KernelSpec* spec);
  FieldForm form = FieldForm::kList;
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

template <class Number>
bool ReadNumber(std::string_view text, Number* number) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && rest == end;
}

absl::Status LimitOutOfRange(std::string_view value) {
  return Wrong("limit out of range", value, "1 to " + std::to_string(kMaxLimit));
}

absl::Status SetLimit(std::string_view text, KernelSpec* spec) {
  return ReadNumber(text, &spec->limit) && spec->limit != 0 ? absl::OkStatus() : LimitOutOfRange(text);
}

absl::Status SetStable(std::string_view, KernelSpec* spec) {
  spec->stable = true;
  return absl::OkStatus();
}

// The number of keys may be specified later.
absl::Status SetPartition(std::string_view text, KernelSpec* spec) {
  return ReadNumber(text, &spec->partition) ? absl::OkStatus()
                                            : Wrong("partition out of range", text, "0 to the number of keys");
}

absl::Status AppendWindow(std::string_view text, KernelSpec* spec) {
  QUERN_ASSIGN_OR_RETURN(const WindowFunction function, ParseWindowFunction(text));
  spec->window.push_back(function);
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
constexpr Field kSortFields[] = {
    {"keys", "TYPE", "types", AppendKey<Role::kSortKey>},  // the first key is the most significant
    {"payload", "TYPE", "types", AppendPayload<&KernelSpec::payload>},
    {"limit", "N", {}, SetLimit, FieldForm::kNumber},  // rows
    {"stable", {}, {}, SetStable, FieldForm::kWord},
    {"partition", "N", {}, SetPartition, FieldForm::kNumber},  // the first N keys
    {"window", "FUNCTION", "functions", AppendWindow},
};

std::span<const Field> FieldsOf(Operator op) {
  switch (op) {
    case Operator::kJoin: return kJoinFields;
    case Operator::kAggregate: return kAggregateFields;
    case Operator::kSort: return kSortFields;
    case Operator::kFilter: return {};
  }
  return {};
}

std::string FormOf(const Field& field) {
  const std::string name(field.name), item(field.item);
  switch (field.form) {
    case FieldForm::kList: return name + "=" + item + "," + item + ",..";
    case FieldForm::kNumber: return name + "=" + item;
    case FieldForm::kWord: return name;
  }
  return {};
}

absl::Status ParseList(std::string_view word, std::string_view list, const Field& field, KernelSpec* spec) {
  if (list.empty()) return absl::OkStatus();
  for (std::string_view item : Split(list, ',')) {
    if (item.empty()) return Wrong("empty item in a list", word, std::string(field.items) + " separated by ','");
    QUERN_RETURN_IF_ERROR(field.append(item, spec));
  }
  return absl::OkStatus();
}

absl::Status CheckForm(std::string_view word, const Field& field) {
  const bool has_value = word.size() > field.name.size(), is_word = field.form == FieldForm::kWord;
  if (has_value != is_word) return absl::OkStatus();
  return Wrong(is_word ? "field that takes no value" : "field without a value", word, FormOf(field));
}

absl::Status ParseValue(std::string_view word, const Field& field, KernelSpec* spec) {
  if (field.form == FieldForm::kWord) return field.append({}, spec);
  const std::string_view value = word.substr(field.name.size() + 1);
  return field.form == FieldForm::kList ? ParseList(word, value, field, spec) : field.append(value, spec);
}

// `given`: the names of the fields before this one.
absl::Status ParseField(std::string_view word, Names* given, KernelSpec* spec) {
  const std::string_view name = word.substr(0, word.find('='));
  Names names;
  for (const Field& field : FieldsOf(spec->op)) {
    names.push_back(field.name);
    if (field.name != name) continue;
    QUERN_RETURN_IF_ERROR(CheckForm(word, field));
    if (std::find(given->begin(), given->end(), name) != given->end())
      return Wrong("field given twice", name, "each field once");
    given->push_back(name);
    return ParseValue(word, field, spec);
  }
  return Unknown("field", name, names);
}

absl::Status CheckFieldsGiven(const KernelSpec& spec) {
  if (!spec.keys.empty() || !spec.aggregates.empty()) return absl::OkStatus();
  if (spec.op != Operator::kAggregate) return Wrong("missing field", "keys", "keys=TYPE,TYPE,.. with 1 to 16 types");
  return Wrong("missing field", "keys or aggs",
               "one of them at least: " + FormOf(kAggregateFields[0]) + " " + FormOf(kAggregateFields[1]));
}

// ---- operators ----

// The kinds of join in the order of their enum, then the other operators.
Names OperatorNames() {
  const NoFork no_fork;  // the first call makes it
  static const std::vector<std::string> texts = [] {
    std::vector<std::string> operators;
    for (const JoinKindRow& row : AllJoinKinds()) operators.push_back(std::string(kJoin) + std::string(row.text));
    operators.emplace_back(kAggregate);
    operators.emplace_back(kSort);
    operators.emplace_back(kFilter);
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
  else if (text == kSort) spec->op = Operator::kSort;
  else if (text == kFilter) spec->op = Operator::kFilter;
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

// If a null key makes the result unknown, it depends on all rows of the build side, not only on those with equal keys.
// So it is defined only for a single key.
absl::Status CheckNullAwareness(const KernelSpec& spec) {
  const auto may_be_unknown = [](const KeySpec& key) { return key.type.nullable && !key.null_equal; };
  const bool is_anti = spec.join_kind == JoinKind::kAntiNullAware;
  const bool is_mark =
      spec.join_kind == JoinKind::kMark && std::any_of(spec.keys.begin(), spec.keys.end(), may_be_unknown);
  if (!is_anti && !is_mark) return absl::OkStatus();
  const std::string where = std::string(JoinText(spec.join_kind)) + (is_mark ? " with a key that may be null" : "");
  const std::string otherwise = is_mark ? ", or keys without nullable or with nullequal" : "";
  if (spec.keys.size() != 1)
    return Wrong("number of keys of " + where, std::to_string(spec.keys.size()), "1" + otherwise);
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
  return Wrong("number of " + std::string(what) + " out of range", std::to_string(n),
               std::to_string(min) + " to " + std::to_string(max));
}

absl::Status CheckTextBytes(size_t bytes, Operator op = Operator::kJoin) {
  const size_t max = op == Operator::kFilter ? kMaxFilterTextBytes : kMaxTextBytes;
  if (bytes <= max) return absl::OkStatus();
  return Wrong("kernel spec too long", std::to_string(bytes) + " bytes", "up to " + std::to_string(max));
}

// Checks each item of a list; `name` is the list's name, as in "keys[0]".
template <class Items, class Check>
absl::Status CheckEach(const Items& items, const std::string& name, Check check) {
  for (size_t i = 0; i < items.size(); ++i)
    QUERN_RETURN_IF_ERROR(check(items[i], name + "[" + std::to_string(i) + "]"));
  return absl::OkStatus();
}

// The names of an operator's fields, for messages about fields that it does not have.
std::string FieldNames(Operator op) {
  Names names;
  for (const Field& field : FieldsOf(op)) names.push_back(field.name);
  return names.empty() ? "a condition" : Listed(names);
}

// Rejects a join's fields. `a`: the operator with its article.
absl::Status CheckNothingOfAJoin(const KernelSpec& spec, const std::string& a) {
  if (spec.join_kind != JoinKind::kInner) return Wrong("join kind of " + a, RowOf(spec.join_kind).text, "inner");
  const auto refused = [&](const char* field) { return Wrong("join's columns in " + a, field, FieldNames(spec.op)); };
  if (!spec.build.empty()) return refused("build");
  if (!spec.probe.empty()) return refused("probe");
  if (!spec.residual.empty()) return refused("residual");
  return absl::OkStatus();
}

absl::Status CheckNothingOfASort(const KernelSpec& spec, const std::string& a) {
  const auto refused = [&](const char* field) { return Wrong("sort's field in " + a, field, FieldNames(spec.op)); };
  if (!spec.payload.empty()) return refused("payload");
  if (spec.limit != 0) return refused("limit");
  if (spec.stable) return refused("stable");
  if (spec.partition != 0) return refused("partition");
  if (!spec.window.empty()) return refused("window");
  return absl::OkStatus();
}

absl::Status CheckNoCondition(const KernelSpec& spec, const std::string& a) {
  if (spec.where == Predicate()) return absl::OkStatus();
  return Wrong("filter's condition in " + a, "where", FieldNames(spec.op));
}

absl::Status CheckJoin(const KernelSpec& spec) {
  QUERN_RETURN_IF_ERROR(CheckNoCondition(spec, "a join"));
  QUERN_RETURN_IF_ERROR(CheckNothingOfASort(spec, "a join"));
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

absl::Status CheckAggregation(const KernelSpec& spec) {
  QUERN_RETURN_IF_ERROR(CheckNoCondition(spec, "an aggregate"));
  QUERN_RETURN_IF_ERROR(CheckNothingOfAJoin(spec, "an aggregate"));
  QUERN_RETURN_IF_ERROR(CheckNothingOfASort(spec, "an aggregate"));
  QUERN_RETURN_IF_ERROR(CheckCount("keys", spec.keys.size(), 0, kMaxKeys));
  QUERN_RETURN_IF_ERROR(CheckCount("aggregates", spec.aggregates.size(), 0, kMaxAggregates));
  QUERN_RETURN_IF_ERROR(CheckFieldsGiven(spec));
  QUERN_RETURN_IF_ERROR(CheckEach(spec.keys, "keys", CheckAggregateKey));
  return CheckEach(spec.aggregates, "aggs", CheckAggregate);
}

absl::Status CheckWindow(const KernelSpec& spec) {
  QUERN_RETURN_IF_ERROR(CheckEach(spec.window, "window", CheckWindowFunction));
  for (WindowFunction function : spec.window) {
    if (std::count(spec.window.begin(), spec.window.end(), function) == 1) continue;
    return Wrong("window function given twice", PrintItem(function), "each window function once");
  }
  const std::string partition = std::to_string(spec.partition);
  if (spec.partition > spec.keys.size())
    return Wrong("partition out of range", partition, "0 to " + std::to_string(spec.keys.size()));
  if (spec.partition == 0 || !spec.window.empty()) return absl::OkStatus();
  return Wrong("partition without window functions", partition, "0, or window=FUNCTION,FUNCTION,..");
}

absl::Status CheckSort(const KernelSpec& spec) {
  QUERN_RETURN_IF_ERROR(CheckNoCondition(spec, "a sort"));
  QUERN_RETURN_IF_ERROR(CheckNothingOfAJoin(spec, "a sort"));
  if (!spec.aggregates.empty()) return Wrong("aggregates of a sort", std::to_string(spec.aggregates.size()), "none");
  QUERN_RETURN_IF_ERROR(CheckCount("keys", spec.keys.size(), 1, kMaxKeys));
  QUERN_RETURN_IF_ERROR(CheckCount("payload columns", spec.payload.size(), 0, kMaxPayloadColumns));
  QUERN_RETURN_IF_ERROR(CheckEach(spec.keys, "keys", CheckSortKey));
  QUERN_RETURN_IF_ERROR(CheckPayload(spec.payload, "payload"));
  if (spec.limit > kMaxLimit) return LimitOutOfRange(std::to_string(spec.limit));
  return CheckWindow(spec);
}

absl::Status CheckFilter(const KernelSpec& spec) {
  QUERN_RETURN_IF_ERROR(CheckNothingOfAJoin(spec, "a filter"));
  QUERN_RETURN_IF_ERROR(CheckNothingOfASort(spec, "a filter"));
  QUERN_RETURN_IF_ERROR(CheckCount("keys of a filter", spec.keys.size(), 0, 0));
  if (!spec.aggregates.empty()) return Wrong("aggregates of a filter", std::to_string(spec.aggregates.size()), "none");
  return ValidateCondition(spec.where);
}

absl::Status CheckOperator(const KernelSpec& spec) {
  switch (spec.op) {
    case Operator::kJoin: return CheckJoin(spec);
    case Operator::kAggregate: return CheckAggregation(spec);
    case Operator::kSort: return CheckSort(spec);
    case Operator::kFilter: return CheckFilter(spec);
  }
  return Wrong("operator number out of range", std::to_string(static_cast<int>(spec.op)), "0 to 3");
}

// ---- printing ----

// The types of keys without :nullequal: in a group, nulls are always equal.
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

std::string PrintSort(const KernelSpec& spec) {
  std::string text(kSort);
  AppendField(" keys=", spec.keys, &text);
  AppendField(" payload=", spec.payload, &text);
  if (spec.limit != 0) text += " limit=" + std::to_string(spec.limit);
  if (spec.stable) text += " stable";
  if (spec.partition != 0) text += " partition=" + std::to_string(spec.partition);
  AppendField(" window=", spec.window, &text);
  return text;
}

std::string_view FirstWord(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_first_of(kBlanks));
}

// `condition`: where it begins in `text`.
absl::StatusOr<KernelSpec> ParseFilter(std::string_view text, std::string_view::iterator condition) {
  QUERN_RETURN_IF_ERROR(CheckTextBytes(text.size(), Operator::kFilter));
  KernelSpec spec;
  spec.op = Operator::kFilter;
  QUERN_ASSIGN_OR_RETURN(spec.where, ParseCondition({condition, text.end()}));
  QUERN_RETURN_IF_ERROR(CheckTextBytes(PrintSpec(spec).size(), spec.op));
  return spec;
}

// The type in the result: dictionaries decoded, without a collation.
ColumnType OutputType(const ColumnType& key) {
  return {.id = key.id, .width_bytes = key.width_bytes, .nullable = key.nullable};
}

}  // namespace

absl::StatusOr<KernelSpec> ParseSpec(std::string_view text) {
  if (const std::string_view word = FirstWord(text); word == kFilter) return ParseFilter(text, word.end());
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

std::string PrintSpec(const KernelSpec& spec) {
  switch (spec.op) {
    case Operator::kJoin: return PrintJoin(spec);
    case Operator::kAggregate: return PrintAggregation(spec);
    case Operator::kSort: return PrintSort(spec);
    case Operator::kFilter: return std::string(kFilter) + " " + PrintCondition(spec.where);
  }
  return {};
}

std::vector<ColumnType> AggregateOutputTypes(const KernelSpec& spec) {
  std::vector<ColumnType> types;
  for (const KeySpec& key : spec.keys) types.push_back(OutputType(key.type));
  for (const AggregateSpec& aggregate : spec.aggregates)
    types.push_back(AggregateResultType(aggregate, !spec.keys.empty()));
  return types;
}

std::vector<ColumnType> SortOutputTypes(const KernelSpec& spec) {
  std::vector<ColumnType> types;
  for (const KeySpec& key : spec.keys)
    if (key.out) types.push_back(OutputType(key.type));
  types.insert(types.end(), spec.payload.begin(), spec.payload.end());
  types.insert(types.end(), spec.window.size(), {.id = TypeId::kU64});
  return types;
}

std::vector<ColumnType> SortKeyTypes(const KernelSpec& spec) {
  std::vector<ColumnType> types;
  for (const KeySpec& key : spec.keys) types.push_back(OutputType(key.type));
  return types;
}

absl::Status ValidateSpec(const KernelSpec& spec) {
  if (const size_t last = AllJoinKinds().size() - 1; static_cast<size_t>(spec.join_kind) > last) {
    return Wrong("join kind out of range", std::to_string(static_cast<int>(spec.join_kind)),
                 "0 to " + std::to_string(last));
  }
  QUERN_RETURN_IF_ERROR(CheckOperator(spec));
  return CheckTextBytes(PrintSpec(spec).size(), spec.op);
}

}  // namespace quern
