// SPDX-License-Identifier: Apache-2.0
// Names are looked up before columns are read; then the columns determine the spec. For
//
//     quern map --select 'name, price * qty as total, *' --where 'ok' sales.csv
//
// with the columns id, name, price, qty, ok, the result has name, total, id, name, .. and is refused, since two columns
// are called name. Without the *, the table that the map runs over has name, price, qty, ok; the kernel reads price and
// qty, the condition reads ok, and name is copied (row_map.h, row_condition.h).
#include "tools/quern/map/map_request.h"

#include <arrow/api.h>

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/base/status.h"
#include "tools/frontend/column_names.h"
#include "tools/frontend/errors.h"
#include "tools/quern/files/input_columns.h"
#include "tools/quern/files/key_types.h"

namespace quern::cli {
namespace {

std::vector<SelectText> WithAllColumns(const std::vector<std::string>& columns, std::vector<SelectText> select) {
  std::vector<SelectText> all;
  for (SelectText& selected : select) {
    if (!selected.is_all) {
      all.push_back(std::move(selected));
      continue;
    }
    for (const std::string& name : columns)
      all.push_back({.expression = {.form = ExpressionText::Form::kColumn, .text = name}, .name = name});
  }
  return all;
}

}  // namespace

absl::Status ResolveRequest(const std::string& what, const std::vector<std::string>& columns, MapRequest* request) {
  request->select = WithAllColumns(columns, std::move(request->select));
  const auto resolve = [&](std::string* name) { return ResolveName(what, columns, name); };
  std::set<std::string> names;
  for (SelectText& selected : request->select) {
    QUERN_RETURN_IF_ERROR(VisitNames(&selected.expression, resolve));
    if (selected.is_column() && !selected.is_named) selected.name = selected.expression.text;
    if (!names.insert(selected.name).second)
      return CommandError("two result columns of one name: " + QuoteName(selected.name) +
                          "; accepted: different names, as by EXPRESSION as NAME");
  }
  return absl::OkStatus();
}

std::vector<std::string> ColumnsToRead(const MapRequest& request, const TableInput& input) {
  std::vector<std::string> wanted, names;
  for (const SelectText& selected : request.select) AddNames(selected.expression, &wanted);
  if (request.where.has_value()) AddNames(*request.where, &wanted);
  for (const std::string& name : wanted)
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  if (names.empty() && !input.column_names().empty()) names.push_back(input.column_names().front());
  return names;
}

absl::StatusOr<PreparedMap> PrepareMap(const MapRequest& request, const std::string& what,
                                       const std::shared_ptr<arrow::Table>& table) {
  InputColumns columns(what, table);
  ExpressionPreparation expressions(&columns);
  PreparedMap prepared;
  arrow::FieldVector fields;
  for (const SelectText& selected : request.select) {
    if (!selected.is_column()) {
      QUERN_ASSIGN_OR_RETURN(const size_t number, expressions.Add("--select", selected.expression, selected.name));
      prepared.results.push_back({.is_computed = true, .number = number});
      fields.push_back(expressions.field(number)->WithName(selected.name));
      continue;
    }
    const std::string& name = selected.expression.text;
    const auto values = columns.Find(name);
    const auto type = values->type()->id() == arrow::Type::NA ? arrow::utf8() : values->type();
    QUERN_ASSIGN_OR_RETURN(const int place, columns.Add(name, type));
    prepared.results.push_back({.is_computed = false, .number = static_cast<size_t>(place)});
    fields.push_back(arrow::field(selected.name, DecodedType(type), HasNulls(*values)));
  }
  if (request.where.has_value()) {
    QUERN_ASSIGN_OR_RETURN(RowCondition condition, PrepareCondition("--where", *request.where, &columns));
    prepared.where = std::make_shared<RowTest>(std::move(condition));
  }
  QUERN_ASSIGN_OR_RETURN(RowExpressions prepared_expressions, expressions.Finish());
  prepared.map = std::make_shared<RowMap>(std::move(prepared_expressions));
  prepared.schema = arrow::schema(std::move(fields));
  prepared.table = columns.size() == 0 ? table : columns.Finish();
  return prepared;
}

}  // namespace quern::cli
