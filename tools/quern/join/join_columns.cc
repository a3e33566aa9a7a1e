// SPDX-License-Identifier: Apache-2.0
// Two steps lie between a command line and a kernel spec. *Resolving* works on names alone, so that it comes before the
// files' columns are read; *preparing* works on the columns and finds their types. For
//
//     quern join --on id=order --select qty,probe.note,id probe.csv build.csv
//                                                                     probe.csv: id,note    build.csv: order,qty,note
//
// resolving gives the key (id, order) and the result columns build qty, probe note, probe id: PROBE is to be read for
// id,note, BUILD for order,qty. If id is an i64 and order an i32, preparing casts order to i64, and gives the spec
//
//     join.inner keys=i64 build=i64 probe=utf8,i64
//
// Its kernel writes probe payload, then build payload: here note, id, qty. `order` = 2, 0, 1 puts these into the
// requested order. The mark of a mark join stands between the two. Columns of --residual are read after the payload of
// their sides and not written. A key that is also selected is read twice from one column if its type did not change,
// and from two columns if it did: the result has the file's type. Sides of keys and comparisons that are expressions
// are computed of each batch by a map, one for each side of the join, whose columns stand behind those of the table.
#include "tools/quern/join/join_columns.h"

#include <arrow/api.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "runtime/base/status.h"
#include "tools/frontend/errors.h"
#include "tools/frontend/expression_text.h"
#include "tools/quern/files/input_columns.h"
#include "tools/quern/files/key_types.h"
#include "tools/quern/files/row_map.h"

namespace quern::cli {
namespace {

constexpr const char* kMarkName = "mark";

using Inputs = std::array<const TableInput*, 2>;               // by JoinSide
using Names = std::array<const std::vector<std::string>*, 2>;  // of the files' columns, by JoinSide

int64_t CountName(const std::vector<std::string>& names, const std::string& name) {
  return std::count(names.begin(), names.end(), name);
}

absl::Status CheckColumn(const Names& names, JoinSide side, const std::string& name) {
  return cli::CheckColumn(*names[side], kSideWords[side], name);
}

// The columns or expressions of both sides, with the names of the files.
absl::StatusOr<std::array<KeyText, 2>> ResolveSides(const JoinTermText& term, const Inputs& inputs) {
  std::array<KeyText, 2> sides = {term.probe, term.build};
  for (const JoinSide side : {kProbe, kBuild}) QUERN_RETURN_IF_ERROR(ResolveColumn(*inputs[side], &sides[side]));
  return sides;
}

absl::StatusOr<std::vector<KeyColumns>> ResolveKeys(const JoinRequest& request, const Inputs& inputs) {
  std::vector<KeyColumns> keys;
  for (const JoinTermText& pair : request.keys) {
    QUERN_ASSIGN_OR_RETURN(auto sides, ResolveSides(pair, inputs));
    QUERN_ASSIGN_OR_RETURN(const Collation collation, CollationByName(pair.collation));
    keys.push_back({std::move(sides), collation, false});
  }
  if (keys.size() > kMaxKeys) {
    return CommandError("too many keys: " + std::to_string(keys.size()) + "; accepted: 1 to " +
                        std::to_string(kMaxKeys));
  }
  return keys;
}

// A key is named by either of its columns; the probe's name comes first.
absl::Status MarkNullEqual(const NameText& name, std::vector<KeyColumns>* keys) {
  for (const JoinSide side : {kProbe, kBuild}) {
    for (KeyColumns& key : *keys) {
      if (key.sides[side].name != name.whole) continue;
      key.null_equal = true;
      return absl::OkStatus();
    }
  }
  std::vector<std::string> accepted;
  for (const KeyColumns& key : *keys) accepted.push_back(QuoteName(key.sides[kProbe].name));
  return CommandError(UnknownWord("key in --null-equal", QuoteName(name.whole.value_or(name.name)), accepted));
}

bool ComesOut(JoinKind kind, JoinSide side) {
  return side == kProbe ? RowOf(kind).has_probe_columns() : RowOf(kind).has_build_columns();
}

bool HasMark(JoinKind kind) { return RowOf(kind).probe_row == RowsOut::kAlways; }

// What --select may name.
std::vector<std::string> SelectableColumns(JoinKind kind, const Names& names) {
  std::vector<std::string> accepted;
  for (const JoinSide side : {kProbe, kBuild}) {
    if (!ComesOut(kind, side)) continue;
    const auto other = static_cast<JoinSide>(1 - side);
    for (const std::string& column : *names[side]) {
      const bool needs_side =
          (ComesOut(kind, other) && CountName(*names[other], column) > 0) || (HasMark(kind) && column == kMarkName);
      accepted.push_back((needs_side ? kSidePrefixes[side] : "") + QuoteName(column));
    }
  }
  if (HasMark(kind)) accepted.emplace_back(kMarkName);
  return accepted;
}

absl::StatusOr<ResultColumn> ColumnOfSide(JoinSide side, const std::string& name, JoinKind kind, const Names& names) {
  if (!ComesOut(kind, side)) {
    return CommandError("column of " + std::string(kSideWords[side]) + " does not come out of join type " +
                        std::string(RowOf(kind).text) + ": " + QuoteName(name) +
                        "; accepted: " + JoinWords(SelectableColumns(kind, names)));
  }
  QUERN_RETURN_IF_ERROR(CheckColumn(names, side, name));
  return ResultColumn{side, name, ""};
}

absl::StatusOr<ResultColumn> ResolveSelected(const NameText& text, JoinKind kind, const Names& names) {
  if (HasMark(kind) && text.whole == kMarkName) return ResultColumn{kProbe, kMarkName, "", true};
  const bool whole[2] = {text.whole.has_value() && CountName(*names[kProbe], *text.whole) > 0,
                         text.whole.has_value() && CountName(*names[kBuild], *text.whole) > 0};
  if (whole[kProbe] && whole[kBuild]) {
    if (!ComesOut(kind, kBuild)) return ColumnOfSide(kProbe, *text.whole, kind, names);
    if (!ComesOut(kind, kProbe)) return ColumnOfSide(kBuild, *text.whole, kind, names);
    const std::string quoted = QuoteName(*text.whole);
    return CommandError("ambiguous column: " + quoted + "; accepted: probe." + quoted + ", build." + quoted);
  }
  if (whole[kProbe]) return ColumnOfSide(kProbe, *text.whole, kind, names);
  if (whole[kBuild]) return ColumnOfSide(kBuild, *text.whole, kind, names);
  if (!text.side.empty()) return ColumnOfSide(text.side == "probe" ? kProbe : kBuild, text.name, kind, names);
  return CommandError(UnknownWord("column", QuoteName(*text.whole), SelectableColumns(kind, names)));
}

absl::StatusOr<std::vector<ResultColumn>> AllColumns(JoinKind kind, const Names& names) {
  std::vector<ResultColumn> result;
  for (const JoinSide side : {kProbe, kBuild}) {
    if (!ComesOut(kind, side)) continue;
    for (const std::string& name : *names[side]) {
      QUERN_RETURN_IF_ERROR(CheckColumn(names, side, name));
      result.push_back({side, name, ""});
    }
  }
  if (!HasMark(kind)) return result;
  if (CountName(*names[kProbe], kMarkName) > 0) {
    return CommandError("two result columns of one name: " + std::string(kMarkName) + "; accepted: a --select with " +
                        kMarkName + ", the join's own, or " + kSidePrefixes[kProbe] + kMarkName);
  }
  result.push_back({kProbe, kMarkName, "", true});
  return result;
}

absl::StatusOr<std::vector<ResultColumn>> ResolveResult(const JoinRequest& request, const Names& names) {
  if (!request.select.has_value()) return AllColumns(request.kind, names);
  std::vector<ResultColumn> result;
  for (const NameText& text : *request.select) {
    QUERN_ASSIGN_OR_RETURN(ResultColumn column, ResolveSelected(text, request.kind, names));
    result.push_back(std::move(column));
  }
  return result;
}

absl::Status SelectedTwice(const std::string& name) {
  return CommandError("column selected twice: " + name + "; accepted: once");
}

// Gives names to the result's columns. No two may have one name, which also refuses a column that is selected twice.
absl::Status NameResult(std::vector<ResultColumn>* result) {
  std::set<std::string> of_side[2];
  bool has_mark = false;
  for (const ResultColumn& column : *result) {
    if (column.is_mark) {
      if (std::exchange(has_mark, true)) return SelectedTwice(kMarkName);
    } else if (!of_side[column.side].insert(column.name).second) {
      return SelectedTwice(kSidePrefixes[column.side] + QuoteName(column.name));
    }
  }
  std::set<std::string> result_names;
  for (ResultColumn& column : *result) {
    const bool in_both = of_side[1 - column.side].count(column.name) > 0 || (has_mark && column.name == kMarkName);
    column.result_name = (in_both && !column.is_mark ? kSidePrefixes[column.side] : "") + column.name;
    if (!result_names.insert(column.result_name).second) {
      return CommandError("two result columns of one name: " + QuoteName(column.result_name) +
                          "; accepted: a --select with one of them");
    }
  }
  if (std::max(of_side[kProbe].size(), of_side[kBuild].size()) > kMaxPayloadColumns) {
    return CommandError("too many columns selected: " + std::to_string(result->size()) + "; accepted: up to " +
                        std::to_string(kMaxPayloadColumns) + " of a side");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ResidualColumns>> ResolveResidual(const JoinRequest& request, const Inputs& inputs) {
  std::vector<ResidualColumns> residual;
  for (const JoinTermText& text : request.residual) {
    QUERN_ASSIGN_OR_RETURN(auto sides, ResolveSides(text, inputs));
    residual.push_back({std::move(sides), text.op});
  }
  if (residual.size() > kMaxResiduals) {
    return CommandError("too many comparisons in --residual: " + std::to_string(residual.size()) +
                        "; accepted: up to " + std::to_string(kMaxResiduals));
  }
  return residual;
}

// One side of a join while it is prepared.
struct Side {
  Side(JoinSide side, const std::shared_ptr<arrow::Table>& table)
      : columns(kSideWords[side], table), expressions(&columns) {}
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  InputColumns columns;
  ExpressionPreparation expressions;
};

using Sides = std::array<std::unique_ptr<Side>, 2>;  // by JoinSide

// "column id of PROBE is int64, column name of BUILD is string"
std::string TypesText(const std::array<KeyText, 2>& names, const Sides& sides) {
  std::string text;
  for (const JoinSide side : {kProbe, kBuild}) {
    const InputColumns& columns = sides[side]->columns;
    text += (text.empty() ? "" : ", ") + columns.Text(names[side].name) + " is " +
            columns.Find(names[side].name)->type()->ToString();
  }
  return text;
}

bool IsComputed(const std::array<KeyText, 2>& names) {
  return names[kProbe].computed != nullptr || names[kBuild].computed != nullptr;
}

// Both sides of a comparison in the type that they have in common. Returns the type in a spec; places: receives
// theirs.
absl::StatusOr<ColumnType> AddColumns(const std::array<KeyText, 2>& names, const std::shared_ptr<arrow::DataType>& type,
                                      const Sides& sides, int (&places)[2]) {
  const auto probe = sides[kProbe]->columns.Find(names[kProbe].name);
  const auto build = sides[kBuild]->columns.Find(names[kBuild].name);
  QUERN_ASSIGN_OR_RETURN(ColumnType read, KernelType(sides[kProbe]->columns.Text(names[kProbe].name), *type));
  read.nullable = HasNulls(*probe) || HasNulls(*build);
  for (const JoinSide side : {kProbe, kBuild}) {
    QUERN_ASSIGN_OR_RETURN(places[side], sides[side]->columns.Add(names[side].name, type));
  }
  return read;
}

// The same where one of them is an expression.
absl::StatusOr<ColumnType> AddExpressions(const char* option, const std::array<KeyText, 2>& names, const Sides& sides,
                                          int (&places)[2]) {
  QUERN_ASSIGN_OR_RETURN(const auto read, ReadSides(option, names[kProbe], &sides[kProbe]->expressions, names[kBuild],
                                                    &sides[kBuild]->expressions));
  for (const JoinSide side : {kProbe, kBuild}) places[side] = read[side].place;
  ColumnType type = read[kProbe].type;
  type.nullable = type.nullable || read[kBuild].type.nullable;
  return type;
}

std::shared_ptr<arrow::DataType> CommonType(const std::array<KeyText, 2>& names, const Sides& sides) {
  return CommonKeyType(sides[kProbe]->columns.Find(names[kProbe].name)->type(),
                       sides[kBuild]->columns.Find(names[kBuild].name)->type());
}

absl::StatusOr<ColumnType> KeyType(const KeyColumns& key, const Sides& sides, int (&places)[2]) {
  if (IsComputed(key.sides)) {
    QUERN_ASSIGN_OR_RETURN(ColumnType type, AddExpressions("--on", key.sides, sides, places));
    const std::string& probe = key.sides[kProbe].name;
    if (key.collation != kCollationBinary)
      return CommandError("collation on a key without text: " + probe + "; accepted: utf8 columns");
    return type;
  }
  std::shared_ptr<arrow::DataType> type = CommonType(key.sides, sides);
  if (type == nullptr) {
    return CommandError("keys of types that do not compare: " + TypesText(key.sides, sides) +
                        "; accepted: the same type, integers and decimals, integers and floats, "
                        "strings with strings");
  }
  if (type->id() == arrow::Type::NA) type = arrow::utf8();  // neither side has a value
  QUERN_ASSIGN_OR_RETURN(ColumnType read, AddColumns(key.sides, type, sides, places));
  const InputColumns& probe = sides[kProbe]->columns;
  const std::string& name = key.sides[kProbe].name;
  QUERN_RETURN_IF_ERROR(SetCollation(key.collation, probe.Text(name), *probe.Find(name)->type(), &read));
  return read;
}

absl::Status AddKey(const KeyColumns& key, const Sides& sides, PreparedJoin* join) {
  int places[2];
  KeySpec spec;
  QUERN_ASSIGN_OR_RETURN(spec.type, KeyType(key, sides, places));
  spec.null_equal = key.null_equal && spec.type.nullable;  // without nulls there is nothing to compare them by
  join->spec.keys.push_back(spec);
  for (const JoinSide side : {kProbe, kBuild}) {
    join->inputs[side].binding.keys.push_back(places[side]);
    join->inputs[side].keys.push_back(spec.type);
  }
  return absl::OkStatus();
}

absl::Status AddPayload(const ResultColumn& column, InputColumns* input, KernelInput* side,
                        arrow::FieldVector* kernel_fields) {
  QUERN_ASSIGN_OR_RETURN(const ReadColumn values, input->Add(KeyText{column.name, ""}, arrow::utf8()));
  side->binding.payload.push_back(values.place);
  side->payload.push_back(values.type);
  kernel_fields->push_back(arrow::field(column.result_name, DecodedType(values.arrow)));
  return absl::OkStatus();
}

bool IsResidualType(const ColumnType& type) {
  const Storage storage = RowOf(type.id).storage;
  return !type.is_dictionary && storage != kFixed && storage != kRowId && !IsVariable(storage);
}

std::string ResidualTypesText() {
  std::vector<std::string> accepted;
  for (const TypeRow& row : AllTypes()) {
    if (IsResidualType({.id = row.id})) accepted.emplace_back(row.text);
  }
  return JoinWords(accepted);
}

absl::StatusOr<ColumnType> ResidualType(const ResidualColumns& residual, const Sides& sides, int (&places)[2]) {
  if (IsComputed(residual.sides)) return AddExpressions("--residual", residual.sides, sides, places);
  std::shared_ptr<arrow::DataType> type = CommonType(residual.sides, sides);
  if (type == nullptr) {
    return CommandError("residual on types that do not compare: " + TypesText(residual.sides, sides) +
                        "; accepted: the same type, integers and decimals, integers and floats");
  }
  type = type->id() == arrow::Type::NA ? arrow::boolean() : DecodedType(type);
  const std::string text = sides[kProbe]->columns.Text(residual.sides[kProbe].name);
  QUERN_ASSIGN_OR_RETURN(const ColumnType read, KernelType(text, *type));
  if (!IsResidualType(read)) {
    return CommandError("residual on a type that it cannot have: " + TypesText(residual.sides, sides) +
                        "; accepted: " + ResidualTypesText());
  }
  return AddColumns(residual.sides, type, sides, places);
}

absl::Status AddResidual(const ResidualColumns& residual, const Sides& sides, PreparedJoin* join) {
  int places[2];
  QUERN_ASSIGN_OR_RETURN(const ColumnType type, ResidualType(residual, sides, places));
  join->spec.residual.push_back({.type = type, .op = residual.op});
  for (const JoinSide side : {kProbe, kBuild}) {
    join->inputs[side].binding.payload.push_back(places[side]);
    join->inputs[side].payload.push_back(type);
  }
  return absl::OkStatus();
}

// The payload of both sides, and the kernel's columns in their order.
absl::Status AddResult(const std::vector<ResultColumn>& result, const Sides& sides, arrow::FieldVector* kernel_fields,
                       PreparedJoin* join) {
  join->order.resize(result.size());
  for (const JoinSide side : {kProbe, kBuild}) {
    for (size_t i = 0; i < result.size(); ++i) {
      if (result[i].side != side || result[i].is_mark) continue;
      join->order[i] = static_cast<int>(kernel_fields->size());
      QUERN_RETURN_IF_ERROR(AddPayload(result[i], &sides[side]->columns, &join->inputs[side], kernel_fields));
    }
    if (side == kBuild || !HasMark(join->spec.kind)) continue;
    for (size_t i = 0; i < result.size(); ++i) {
      if (result[i].is_mark) join->order[i] = static_cast<int>(kernel_fields->size());
    }
    kernel_fields->push_back(arrow::field(kMarkName, arrow::boolean()));
  }
  for (const ResultColumn& column : result) join->result_names.push_back(column.result_name);
  return absl::OkStatus();
}

std::shared_ptr<arrow::Schema> KernelSchema(const JoinSpec& spec, arrow::FieldVector fields) {
  const std::vector<ColumnType> types = JoinOutputTypes(spec);
  for (size_t i = 0; i < fields.size(); ++i) fields[i] = fields[i]->WithNullable(types[i].nullable);
  return arrow::schema(std::move(fields));
}

}  // namespace

absl::StatusOr<JoinColumns> ResolveColumns(const JoinRequest& request, const TableInput& probe, const TableInput& build,
                                           bool count) {
  const Inputs inputs = {&probe, &build};
  const Names names = {&probe.column_names(), &build.column_names()};
  JoinColumns columns;
  columns.kind = request.kind;
  QUERN_ASSIGN_OR_RETURN(columns.keys, ResolveKeys(request, inputs));
  QUERN_ASSIGN_OR_RETURN(columns.residual, ResolveResidual(request, inputs));
  for (const NameText& name : request.null_equal) QUERN_RETURN_IF_ERROR(MarkNullEqual(name, &columns.keys));
  if (count && !request.select.has_value()) return columns;
  QUERN_ASSIGN_OR_RETURN(columns.result, ResolveResult(request, names));
  QUERN_RETURN_IF_ERROR(NameResult(&columns.result));
  if (count) columns.result.clear();  // the names are right, but the columns are not needed
  return columns;
}

std::vector<std::string> ColumnsToRead(const JoinColumns& columns, JoinSide side) {
  std::vector<std::string> names;
  const auto add = [&names](const std::string& name) {
    if (CountName(names, name) == 0) names.push_back(name);
  };
  const auto add_side = [&add](const KeyText& text) {
    if (text.computed == nullptr) return add(text.name);
    std::vector<std::string> mentioned;
    AddNames(*text.computed, &mentioned);
    for (const std::string& name : mentioned) add(name);
  };
  for (const KeyColumns& key : columns.keys) add_side(key.sides[side]);
  for (const ResidualColumns& residual : columns.residual) add_side(residual.sides[side]);
  for (const ResultColumn& column : columns.result) {
    if (column.side == side && !column.is_mark) add(column.name);
  }
  return names;
}

absl::StatusOr<PreparedJoin> PrepareJoin(const JoinColumns& columns, const std::shared_ptr<arrow::Table>& probe,
                                         const std::shared_ptr<arrow::Table>& build) {
  PreparedJoin join;
  join.spec.kind = columns.kind;
  const Sides sides = {std::make_unique<Side>(kProbe, probe), std::make_unique<Side>(kBuild, build)};
  for (const KeyColumns& key : columns.keys) QUERN_RETURN_IF_ERROR(AddKey(key, sides, &join));
  arrow::FieldVector kernel_fields;
  QUERN_RETURN_IF_ERROR(AddResult(columns.result, sides, &kernel_fields, &join));
  join.spec.build = join.inputs[kBuild].payload;
  join.spec.probe = join.inputs[kProbe].payload;
  for (const ResidualColumns& residual : columns.residual) QUERN_RETURN_IF_ERROR(AddResidual(residual, sides, &join));
  for (const JoinSide side : {kProbe, kBuild})
    QUERN_RETURN_IF_ERROR(FinishInput(sides[side]->columns, &sides[side]->expressions, &join.inputs[side]));
  QUERN_RETURN_IF_ERROR(ValidateSpec(join.spec));
  join.kernel_schema = KernelSchema(join.spec, std::move(kernel_fields));
  return join;
}

}  // namespace quern::cli
