// SPDX-License-Identifier: Apache-2.0
// Texts in Python are those of the command line, so one parser reads both: tools/frontend/*_text.cc, compiled into this
// module. Here its results become tuples and dictionaries, which the Python layer resolves against the columns:
//
//     parse_sort_keys("by", "day desc nulls first, name")  ->  [("day", "", True, True), ("name", "", False, False)]
//     parse_where("where", "x > 5 and s like 'a%'")
//         ->  {"kind": "and", "children": [{"kind": "compare", "column": ("x", ""), ..
//
// Texts of constants are bytes, since x'ff' is one. Errors are the parser's, with the argument's name in place of the
// option's.
#include "texts.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arrow_columns.h"
#include "errors.h"
#include "runtime/collation/collation.h"
#include "runtime/rows/arrow_import.h"
#include "runtime/spec/aggregate_spec.h"
#include "runtime/spec/spec_text.h"
#include "tools/frontend/aggregate_text.h"
#include "tools/frontend/column_names.h"
#include "tools/frontend/condition_text.h"
#include "tools/frontend/errors.h"
#include "tools/frontend/sort_text.h"
#include "tools/frontend/where_text.h"

namespace nb = nanobind;

namespace quern::python {
namespace {

template <class T>
T Value(absl::StatusOr<T> result) {
  Check(result.status());
  return *std::move(result);
}

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

nb::list ParseKeyPairs(const std::string& what, const std::string& text) {
  nb::list list;
  for (const cli::KeyPairText& pair : Value(cli::ParseKeyPairs(what, text))) {
    list.append(nb::make_tuple(pair.probe, pair.build, pair.collation));
  }
  return list;
}

nb::list ParseComparisons(const std::string& what, const std::string& text) {
  nb::list list;
  for (const cli::ComparisonText& test : Value(cli::ParseComparisons(what, text))) {
    list.append(nb::make_tuple(test.probe, SignOf(test.op), test.build));
  }
  return list;
}

nb::list ParseSortKeys(const std::string& what, const std::string& text) {
  nb::list list;
  for (const cli::SortKeyText& key : Value(cli::ParseSortKeys(what, text))) {
    list.append(nb::make_tuple(key.column.name, key.column.collation, key.descending, key.nulls_first));
  }
  return list;
}

nb::list ParseWindows(const std::string& what, const std::string& text) {
  nb::list list;
  for (const cli::WindowText& window : Value(cli::ParseWindows(what, text)))
    list.append(nb::make_tuple(window.text, window.name));
  return list;
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

const char* FormText(cli::WhereConstant::Form form) {
  switch (form) {
    case cli::WhereConstant::Form::kBare: return "bare";
    case cli::WhereConstant::Form::kText: return "text";
    case cli::WhereConstant::Form::kBytes: return "bytes";
  }
  return "";
}

nb::dict WhereDict(const cli::WhereText& where) {
  nb::dict dict;
  nb::list children, constants;
  for (const cli::WhereText& child : where.children) children.append(WhereDict(child));
  for (const cli::WhereConstant& constant : where.constants) {
    const nb::bytes text(constant.text.data(), constant.text.size());
    constants.append(nb::make_tuple(FormText(constant.form), text, constant.shown));
  }
  dict["kind"] = KindText(where.kind);
  dict["children"] = children;
  dict["column"] = nb::make_tuple(where.column.name, where.column.collation);
  dict["other"] = nb::make_tuple(where.other.name, where.other.collation);
  dict["op"] = SignOf(where.op);
  dict["bare"] = where.is_bare;
  dict["negated"] = where.negated;
  dict["constants"] = constants;
  dict["escape"] = static_cast<uint32_t>(where.escape);
  return dict;
}

// The condition of an aggregate, which is one comparison.
nb::dict WhereDict(const cli::ConditionText& condition) {
  cli::WhereText where{.kind = PredicateKind::kCompare};
  where.column.name = condition.column;
  where.is_bare = !condition.op.has_value();
  if (condition.op.has_value()) where.op = *condition.op;
  cli::WhereConstant constant;
  if (condition.is_quoted) constant.form = cli::WhereConstant::Form::kText;
  constant.text = where.is_bare ? "true" : condition.constant;
  constant.shown = condition.is_quoted ? "'" + condition.constant + "'" : constant.text;
  where.constants.push_back(std::move(constant));
  return WhereDict(where);
}

nb::dict ParseWhere(const std::string& what, const std::string& text) {
  return WhereDict(Value(cli::ParseWhere(what, text)));
}

// ---- aggregates ----

nb::list ParseAggregates(const std::string& what, const std::string& text) {
  nb::list list;
  for (const cli::AggregateText& aggregate : Value(cli::ParseAggregates(what, text))) {
    nb::dict dict;
    nb::list arguments;
    for (const cli::KeyText& argument : aggregate.arguments)
      arguments.append(nb::make_tuple(argument.name, argument.collation));
    dict["function"] = std::string(RowOf(aggregate.function).text);
    dict["arguments"] = arguments;
    dict["quantile"] = aggregate.quantile;
    dict["separator"] = nb::bytes(aggregate.separator.data(), aggregate.separator.size());
    dict["filter"] = aggregate.filter.has_value() ? nb::object(WhereDict(*aggregate.filter)) : nb::none();
    dict["name"] = aggregate.name;
    list.append(dict);
  }
  return list;
}

// ---- types ----

std::string TypeText(const std::string& format, const std::string& dictionary, const std::string& collation,
                     bool nullable) {
  ArrowSchema schema = {};
  ExportSchema({{"", format, dictionary, nullable, false}}, &schema);
  absl::StatusOr<ColumnType> type = TypeOfArrow(*schema.children[0]);
  schema.release(&schema);
  if (!type.ok()) return "";
  type->nullable = nullable;
  if (!collation.empty()) type->collation = Value(CollationNamed(collation));
  return PrintItem(*type);
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
              nb::sig("def parse_key_pairs(what: str, text: str) -> list[tuple[str | None, str, str]]"),
              "[(probe, build, collation), ..].");
  module->def("parse_comparisons", ParseComparisons, nb::arg("what"), nb::arg("text"),
              nb::sig("def parse_comparisons(what: str, text: str) -> list[tuple[str | None, str, str]]"),
              "[(probe, sign, build), ..].");
  module->def("parse_sort_keys", ParseSortKeys, nb::arg("what"), nb::arg("text"),
              nb::sig("def parse_sort_keys(what: str, text: str) -> list[tuple[str, str, bool, bool]]"),
              "[(name, collation, descending, nulls_first), ..].");
  module->def("parse_windows", ParseWindows, nb::arg("what"), nb::arg("text"),
              nb::sig("def parse_windows(what: str, text: str) -> list[tuple[str, str]]"), "[(function, name), ..].");
  module->def("parse_where", ParseWhere, nb::arg("what"), nb::arg("text"),
              nb::sig("def parse_where(what: str, text: str) -> dict[str, typing.Any]"),
              "The tree of a condition, as dictionaries.");
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
