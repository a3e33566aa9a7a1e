// SPDX-License-Identifier: Apache-2.0
// Texts in Python are those of the command line, so one parser reads both: tools/frontend/*_text.cc, compiled into this
// module. Here its results become tuples and dictionaries, which the Python layer resolves against the columns:
//
//     parse_windows("window", "rank as place")  ->  [("rank", "place")]
//     parse_where("where", "x > 5 and s like 'a%'")
//         ->  Where(kind="and", children=[Where(kind="compare", column=("x", ""), op=">", ..
//
// A condition stays the parser's tree: its constants are read here too, by the type that the Python layer has found for
// their column (tools/frontend/where_leaf.cc). Errors are the parser's, with the argument's name in place of the
// option's.
#include "texts.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "arrow_columns.h"
#include "errors.h"
#include "runtime/collation/collation.h"
#include "runtime/pipeline/fused_arguments.h"
#include "runtime/rows/arrow_import.h"
#include "runtime/spec/aggregate_spec.h"
#include "runtime/spec/condition.h"
#include "runtime/spec/map_spec.h"
#include "runtime/spec/spec.h"
#include "runtime/spec/spec_text.h"
#include "tools/frontend/aggregate_text.h"
#include "tools/frontend/column_names.h"
#include "tools/frontend/errors.h"
#include "tools/frontend/expression_text.h"
#include "tools/frontend/expression_types.h"
#include "tools/frontend/join_text.h"
#include "tools/frontend/select_text.h"
#include "tools/frontend/sort_text.h"
#include "tools/frontend/value_types.h"
#include "tools/frontend/where_leaf.h"
#include "tools/frontend/where_text.h"

namespace nb = nanobind;

namespace quern::python {
namespace {

const char* SignOf(Comparison op) {
  switch (op) {
    case Comparison::kLess: return "<";
    case Comparison::kLessEqual: return "<=";
    case Comparison::kGreater: return ">";
    case Comparison::kGreaterEqual: return ">=";
    case Comparison::kNotEqual: return "!=";
    case Comparison::kEqual: return "=";
  }
  return "=";
}

// ---- lists ----

// None where the text is only a name.
nb::object ExpressionOf(const cli::KeyText& key) {
  return key.computed == nullptr ? nb::none() : nb::cast(*key.computed);
}

nb::list ParseNames(const std::string& what, const std::string& text) {
  nb::list list;
  for (const cli::NameText& name : Value(cli::ParseNames(what, text)))
    list.append(nb::make_tuple(name.whole, name.side, name.name));
  return list;
}

nb::list ParseKeys(const std::string& what, const std::string& text) {
  nb::list list;
  for (const cli::KeyText& key : Value(cli::ParseKeys(what, text)))
    list.append(nb::make_tuple(key.name, key.collation));
  return list;
}

// (name, expression or None, whether the text may be a name)
nb::tuple SideOf(const cli::KeyText& key) { return nb::make_tuple(key.name, ExpressionOf(key), key.may_be_column); }

nb::list ParseKeyPairs(const std::string& what, const std::string& text) {
  nb::list list;
  for (const cli::JoinTermText& pair : Value(cli::ParseKeyPairs(what, text)))
    list.append(nb::make_tuple(SideOf(pair.probe), SideOf(pair.build), pair.collation));
  return list;
}

nb::list ParseComparisons(const std::string& what, const std::string& text) {
  nb::list list;
  for (const cli::JoinTermText& test : Value(cli::ParseComparisons(what, text)))
    list.append(nb::make_tuple(SideOf(test.probe), SignOf(test.op), SideOf(test.build)));
  return list;
}

nb::list ParseSortKeys(const std::string& what, const std::string& text) {
  nb::list list;
  for (const cli::SortKeyText& key : Value(cli::ParseSortKeys(what, text))) {
    list.append(nb::make_tuple(key.column.name, key.column.collation, key.descending, key.nulls_first,
                               ExpressionOf(key.column), key.column.may_be_column));
  }
  return list;
}

nb::list ParseWindows(const std::string& what, const std::string& text) {
  nb::list list;
  for (const cli::WindowText& window : Value(cli::ParseWindows(what, text)))
    list.append(nb::make_tuple(window.text, window.name));
  return list;
}

// ---- types ----

// The type of a spec that reads a column of an Arrow format. *Errors*: no kernel reads it.
absl::StatusOr<ColumnType> TypeOf(const std::string& format, const std::string& dictionary,
                                  const std::string& collation, bool nullable) {
  ArrowSchema schema = {};
  ExportSchema({{"", format, dictionary, nullable, false}}, &schema);
  absl::StatusOr<ColumnType> type = TypeOfArrow(*schema.children[0]);
  schema.release(&schema);
  if (!type.ok()) return type;
  type->nullable = nullable;
  if (!collation.empty()) type->collation = Value(CollationNamed(collation));
  return type;
}

std::string TypeText(const std::string& format, const std::string& dictionary, const std::string& collation,
                     bool nullable) {
  const absl::StatusOr<ColumnType> type = TypeOf(format, dictionary, collation, nullable);
  return type.ok() ? PrintItem(*type) : "";
}

// ---- conditions ----

const char* KindText(PredicateKind kind) {
  switch (kind) {
    case PredicateKind::kAnd: return "and";
    case PredicateKind::kOr: return "or";
    case PredicateKind::kNot: return "not";
    case PredicateKind::kCompare: return "compare";
    case PredicateKind::kCompareColumns: return "compare_columns";
    case PredicateKind::kBetween: return "between";
    case PredicateKind::kIn: return "in";
    case PredicateKind::kLike: return "like";
    case PredicateKind::kIsNull: return "is_null";
  }
  return "";
}

cli::WhereText ParseWhere(const std::string& what, const std::string& text) {
  return Value(cli::ParseWhere(what, text));
}

// A comparison with constants as a spec has it. `text` names the column, `type_name` its type, for errors; the others
// are those of TypeOf.
std::string LeafText(const cli::WhereText& leaf, const std::string& option, const std::string& text,
                     const std::string& type_name, const std::string& format, const std::string& dictionary,
                     const std::string& collation, bool nullable) {
  const ColumnType type = Value(TypeOf(format, dictionary, collation, nullable));
  return PrintCondition(
      Value(cli::LeafOf(leaf, {option, text, type_name, dictionary.empty() ? format : dictionary, type})));
}

std::pair<std::string, std::string> Pair(const cli::KeyText& column) { return {column.name, column.collation}; }

void DefineWhere(nb::module_* module) {
  using cli::WhereText;
  nb::class_<WhereText>(*module, "Where", "A condition over names: the tree that parse_where makes of a text.")
      .def_prop_ro("kind", [](const WhereText& where) { return KindText(where.kind); })
      .def_prop_ro("children", [](const WhereText& where) { return where.children; })
      .def_prop_ro(
          "column", [](const WhereText& where) { return Pair(where.column); }, "(name, collation)")
      .def_prop_ro(
          "other", [](const WhereText& where) { return Pair(where.other); }, "(name, collation)")
      .def_prop_ro("op", [](const WhereText& where) { return SignOf(where.op); })
      .def_prop_ro(
          "names",
          [](const WhereText& where) {
            std::vector<std::string> names;
            cli::AddNames(where, &names);
            return names;
          },
          "The columns that are mentioned, in order.")
      .def_prop_ro("negated", [](const WhereText& where) { return where.negated; })
      .def("leaf_text", LeafText, nb::arg("option"), nb::arg("text"), nb::arg("type_name"), nb::arg("format"),
           nb::arg("dictionary"), nb::arg("collation"), nb::arg("nullable"),
           "A leaf on a column of this type as a spec has it.");
}

// ---- expressions ----

// [(name, expression, is_named), ..]; None in place of an expression: all columns.
nb::list ParseSelect(const std::string& what, const std::string& text) {
  nb::list list;
  for (const cli::SelectText& selected : Value(cli::ParseSelect(what, text)))
    list.append(
        nb::make_tuple(selected.name, selected.is_all ? nb::none() : nb::cast(selected.expression), selected.is_named));
  return list;
}

cli::ExpressionText ParseExpression(const std::string& what, const std::string& text) {
  return Value(cli::ParseExpressionText(what, text));
}

std::vector<std::string> NamesIn(const cli::ExpressionText& text) {
  std::vector<std::string> names;
  cli::AddNames(text, &names);
  return names;
}

// The expression with other names, one for each of NamesIn.
cli::ExpressionText Renamed(cli::ExpressionText text, const std::vector<std::string>& names) {
  size_t next = 0;
  Check(cli::VisitNames(&text, [&](std::string* name) {
    *name = names.at(next++);
    return absl::OkStatus();
  }));
  return text;
}

// name, text for errors, name of the type, format, nullable.
using ColumnTuple = std::tuple<std::string, std::string, std::string, std::string, bool>;

std::vector<cli::ExpressionColumn> Named(const std::vector<ColumnTuple>& columns, MapSpec* spec) {
  std::vector<cli::ExpressionColumn> named;
  for (const auto& [name, text, type_name, format, nullable] : columns) {
    named.push_back(
        cli::MakeExpressionColumn(name, text, type_name, format, TypeOf(format, "", "", nullable), nullable));
    spec->columns.push_back(named.back().TypeInSpec());
  }
  return named;
}

// The map over these columns, in this order.
MapSpec MapOf(const std::string& what, const std::vector<cli::ExpressionText>& expressions,
              const std::vector<ColumnTuple>& columns) {
  MapSpec spec;
  const std::vector<cli::ExpressionColumn> named = Named(columns, &spec);
  for (const cli::ExpressionText& expression : expressions)
    spec.results.push_back(Value(cli::TypedExpression(what, expression, named)));
  Check(spec.Validate());
  return spec;
}

std::string MapText(const std::string& what, const std::vector<cli::ExpressionText>& expressions,
                    const std::vector<ColumnTuple>& columns) {
  return MapOf(what, expressions, columns).Print();
}

// The same for the sides of comparisons: left[i] with right[i], over columns of two inputs.
std::pair<std::string, std::string> SideMapTexts(const std::string& what, const std::vector<cli::ExpressionText>& left,
                                                 const std::vector<ColumnTuple>& left_columns,
                                                 const std::vector<cli::ExpressionText>& right,
                                                 const std::vector<ColumnTuple>& right_columns) {
  MapSpec specs[2];
  const std::vector<cli::ExpressionColumn> on_left = Named(left_columns, &specs[0]);
  const std::vector<cli::ExpressionColumn> on_right = Named(right_columns, &specs[1]);
  for (size_t i = 0; i < left.size(); ++i) {
    cli::TypedSides sides = Value(cli::TypedComparison(what, left[i], on_left, right.at(i), on_right));
    specs[0].results.push_back(std::move(sides.left));
    specs[1].results.push_back(std::move(sides.right));
  }
  for (const MapSpec& spec : specs) Check(spec.Validate());
  return {specs[0].Print(), specs[1].Print()};
}

// ---- arguments that are expressions ----

std::vector<std::string> ResultTypes(const std::string& what, const std::vector<cli::ExpressionText>& expressions,
                                     const std::vector<ColumnTuple>& columns) {
  std::vector<std::string> types;
  for (const Expression& result : MapOf(what, expressions, columns).results)
    types.push_back(PrintItem(ColumnTypeOf(result.type)));
  return types;
}

// number, format, that of a dictionary's values or "", collation, nullable.
using ReadTuple = std::tuple<uint32_t, std::string, std::string, std::string, bool>;

// A column as an expression; nullopt: expressions do not have its type.
std::optional<Expression> AsExpression(const ReadTuple& column) {
  const auto& [number, format, dictionary, collation, nullable] = column;
  const ColumnType type = Value(TypeOf(format, dictionary, collation, nullable));
  const std::optional<ValueType> value = cli::MakeExpressionColumn("", "", "", format, type, nullable).type;
  if (!value.has_value()) return std::nullopt;
  Expression expression;
  expression.type = *value;
  expression.type.collation = type.collation;
  expression.column = number;
  return ColumnTypeOf(expression.type) == type ? std::optional(expression) : std::nullopt;
}

// text: the spec of an aggregation. arguments: for each column of a batch that it reads behind the keys the number of
// an expression, or a column, whose number is that in `columns` if it is one of these. Returns the spec with `in`, and
// the number of each column of `in`. nullopt: the map has to stay.
std::optional<std::pair<std::string, std::vector<uint32_t>>> FusedText(
    const std::string& text, const std::string& what, const std::vector<cli::ExpressionText>& expressions,
    const std::vector<ColumnTuple>& columns, const std::vector<std::variant<size_t, ReadTuple>>& arguments) {
  const MapSpec map = MapOf(what, expressions, columns);
  std::vector<Expression> fused;
  for (const auto& argument : arguments) {
    if (const size_t* number = std::get_if<size_t>(&argument)) {
      fused.push_back(map.results.at(*number));
      continue;
    }
    std::optional<Expression> column = AsExpression(std::get<ReadTuple>(argument));
    if (!column.has_value()) return std::nullopt;
    fused.push_back(*std::move(column));
  }
  const KernelSpec spec = Value(ParseSpec(text));
  std::optional<FusedAggregation> result = FuseArguments(std::get<AggregationSpec>(spec), std::move(fused));
  if (!result.has_value()) return std::nullopt;
  return std::pair(result->spec.Print(), std::move(result->columns));
}

void DefineExpressions(nb::module_* module) {
  nb::class_<cli::ExpressionText>(*module, "Expression", "An expression over names: the tree of a text.")
      .def_prop_ro("is_column",
                   [](const cli::ExpressionText& text) { return text.form == cli::ExpressionText::Form::kColumn; })
      .def_prop_ro("names", NamesIn, "The columns that are mentioned, in order.")
      .def("renamed", Renamed, nb::arg("names"), "The same expression with these names in place of `names`.");
  module->def(
      "column_expression",
      [](const std::string& name) {
        return cli::ExpressionText{
            .form = cli::ExpressionText::Form::kColumn, .text = name, .shown = cli::QuoteName(name)};
      },
      nb::arg("name"), "The column of this name, whatever its letters.");
  module->def("parse_expression", ParseExpression, nb::arg("what"), nb::arg("text"), "The tree of an expression.");
  module->def("parse_select", ParseSelect, nb::arg("what"), nb::arg("text"),
              nb::sig("def parse_select(what: str, text: str) -> list[tuple[str, Expression | None, bool]]"),
              "[(name, expression, whether the user gave the name), ..] of a list; None: all columns.");
  module->def("map_text", MapText, nb::arg("what"), nb::arg("expressions"), nb::arg("columns"),
              "The spec of a map over columns (name, text, type_name, format, nullable).");
  module->def("result_types", ResultTypes, nb::arg("what"), nb::arg("expressions"), nb::arg("columns"),
              "The types of its results, as a spec writes them.");
  module->def("fused_text", FusedText, nb::arg("text"), nb::arg("what"), nb::arg("expressions"), nb::arg("columns"),
              nb::arg("arguments"),
              "(spec, numbers of its columns) of an aggregation whose arguments are expressions, by number, or columns "
              "(number, format, dictionary, collation, nullable); None where these cannot be part of it.");
  module->def("side_map_texts", SideMapTexts, nb::arg("what"), nb::arg("left"), nb::arg("left_columns"),
              nb::arg("right"), nb::arg("right_columns"),
              "The same for comparisons of two inputs: of each, the map of its side, in the type that both have.");
}

// ---- aggregates ----

// An argument is (name, collation, expression or None, whether the text may be the name of a column).
nb::list ParseAggregates(const std::string& what, const std::string& text) {
  nb::list list;
  for (const cli::AggregateText& aggregate : Value(cli::ParseAggregates(what, text))) {
    nb::dict dict;
    nb::list arguments;
    for (const cli::KeyText& argument : aggregate.arguments)
      arguments.append(
          nb::make_tuple(argument.name, argument.collation, ExpressionOf(argument), argument.may_be_column));
    dict["function"] = std::string(RowOf(aggregate.function).text);
    dict["arguments"] = arguments;
    dict["quantile"] = aggregate.quantile;
    dict["separator"] = nb::bytes(aggregate.separator.data(), aggregate.separator.size());
    dict["filter"] = aggregate.filter.has_value() ? nb::cast(*aggregate.filter) : nb::none();
    dict["computed_filter"] = aggregate.computed_filter == nullptr ? nb::none() : nb::cast(*aggregate.computed_filter);
    dict["name"] = aggregate.name;
    list.append(dict);
  }
  return list;
}

std::string UnknownWord(const std::string& noun, const std::string& value, const std::vector<std::string>& accepted) {
  return cli::UnknownWord(noun, value, accepted);
}

}  // namespace

void DefineTexts(nb::module_* module) {
  // The stub for type checkers (_quern.pyi) has these signatures: a plain nb::list would be a list of anything there.
  module->def("parse_names", ParseNames, nb::arg("what"), nb::arg("text"),
              nb::sig("def parse_names(what: str, text: str) -> list[tuple[str | None, str, str]]"),
              "[(whole, side, name), ..] of a list of columns.");
  module->def("parse_keys", ParseKeys, nb::arg("what"), nb::arg("text"),
              nb::sig("def parse_keys(what: str, text: str) -> list[tuple[str, str]]"), "[(name, collation), ..].");
  module->def("parse_key_pairs", ParseKeyPairs, nb::arg("what"), nb::arg("text"),
              nb::sig("def parse_key_pairs(what: str, text: str) -> "
                      "list[tuple[tuple[str, Expression | None, bool], tuple[str, Expression | None, bool], str]]"),
              "[(probe, build, collation), ..]; each side is (name, expression, whether the text may be a name).");
  module->def("parse_comparisons", ParseComparisons, nb::arg("what"), nb::arg("text"),
              nb::sig("def parse_comparisons(what: str, text: str) -> "
                      "list[tuple[tuple[str, Expression | None, bool], str, tuple[str, Expression | None, bool]]]"),
              "[(probe, sign, build), ..], with sides as those of parse_key_pairs.");
  module->def("parse_sort_keys", ParseSortKeys, nb::arg("what"), nb::arg("text"),
              nb::sig("def parse_sort_keys(what: str, text: str) -> "
                      "list[tuple[str, str, bool, bool, Expression | None, bool]]"),
              "[(name, collation, descending, nulls_first, expression or None, whether the text may be a name), ..].");
  module->def("parse_windows", ParseWindows, nb::arg("what"), nb::arg("text"),
              nb::sig("def parse_windows(what: str, text: str) -> list[tuple[str, str]]"), "[(function, name), ..].");
  DefineWhere(module);
  DefineExpressions(module);
  module->def("parse_where", ParseWhere, nb::arg("what"), nb::arg("text"), "The tree of a condition.");
  module->def("parse_aggregates", ParseAggregates, nb::arg("what"), nb::arg("text"),
              nb::sig("def parse_aggregates(what: str, text: str) -> list[dict[str, typing.Any]]"),
              "The calls of a list, as dictionaries.");
  module->def("type_text", TypeText, nb::arg("format"), nb::arg("dictionary"), nb::arg("collation"),
              nb::arg("nullable"), "A type as a spec writes it; \"\" where no kernel reads the Arrow format.");
  module->def(
      "quote_name", [](const std::string& name) { return cli::QuoteName(name); }, nb::arg("name"),
      "The name as a list wants it: in double quotes where it needs them.");
  module->def("unknown_word", UnknownWord, nb::arg("noun"), nb::arg("value"), nb::arg("accepted"),
              "The text of an error.");
}

}  // namespace quern::python
