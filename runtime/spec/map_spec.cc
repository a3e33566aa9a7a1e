// SPDX-License-Identifier: Apache-2.0
// The text form of maps: the list of columns, which contains no blank, then the expressions, which may contain blanks.
// `in` comes first, because the types of the columns decide those of the expressions.
#include "runtime/spec/map_spec.h"

#include <utility>

#include "runtime/base/messages.h"
#include "runtime/base/status.h"
#include "runtime/spec/spec_fields.h"
#include "runtime/spec/spec_text.h"

namespace quern {
namespace {

constexpr char kForm[] = "map in=TYPE,TYPE,.. out=EXPRESSION,EXPRESSION,..";
constexpr std::string_view kIn = "in=", kOut = "out=";

}  // namespace

absl::Status ParseValueColumns(std::string_view list, std::vector<ValueType>* columns) {
  if (list.empty()) return absl::OkStatus();
  for (const std::string_view item : Split(list, ',')) {
    if (item.empty()) return Wrong("empty item in a list", "in=" + std::string(list), "types separated by ','");
    QUERN_ASSIGN_OR_RETURN(const ValueType type, ParseValueType(item));
    columns->push_back(type);
  }
  return absl::OkStatus();
}

absl::Status CheckValueColumns(std::span<const ValueType> columns) {
  for (const ValueType& type : columns) {
    QUERN_RETURN_IF_ERROR(CheckType(ColumnTypeOf(type), "in"));
    const absl::StatusOr<ValueType> read = ParseValueType(PrintValueType(type));
    QUERN_RETURN_IF_ERROR(read.status());
    if (*read != type) return Wrong("digits of a column that has none", PrintValueType(type), PrintValueType(*read));
  }
  return absl::OkStatus();
}

Names MapSpec::Names() { return {"map"}; }

absl::StatusOr<MapSpec> MapSpec::Parse(std::string_view, std::string_view fields) {
  MapSpec spec;
  const size_t begin = std::min(fields.find_first_not_of(' '), fields.size());
  fields.remove_prefix(begin);
  if (fields.starts_with(kIn)) {
    const size_t end = std::min(fields.find(' '), fields.size());
    QUERN_RETURN_IF_ERROR(ParseValueColumns(fields.substr(kIn.size(), end - kIn.size()), &spec.columns));
    fields.remove_prefix(std::min(fields.find_first_not_of(' ', end), fields.size()));
  }
  if (!fields.starts_with(kOut)) return Wrong("fields of a map", fields.empty() ? "end of the spec" : fields, kForm);
  fields.remove_prefix(kOut.size());
  size_t num_nodes = 0;
  while (true) {
    QUERN_ASSIGN_OR_RETURN(Expression result, ParseExpression(fields, spec.columns, &fields));
    num_nodes += SizeOf(result);
    if (num_nodes > kMaxExpressionNodes)
      return Wrong("expressions of too many parts", std::to_string(num_nodes),
                   "up to " + std::to_string(kMaxExpressionNodes));
    spec.results.push_back(std::move(result));
    if (fields.empty()) return spec;
    if (!fields.starts_with(',')) return Wrong("text behind an expression", fields, "',' and an expression");
    fields.remove_prefix(1);
  }
}

absl::Status MapSpec::Validate() const {
  QUERN_RETURN_IF_ERROR(CheckCount("in", columns.size(), 0, kMaxMapColumns));
  QUERN_RETURN_IF_ERROR(CheckCount("out", results.size(), 1, kMaxMapColumns));
  QUERN_RETURN_IF_ERROR(CheckValueColumns(columns));
  size_t num_nodes = 0;
  for (const Expression& result : results) {
    QUERN_RETURN_IF_ERROR(ValidateExpression(result, columns));
    num_nodes += SizeOf(result);
  }
  if (num_nodes <= kMaxExpressionNodes) return absl::OkStatus();
  return Wrong("expressions of too many parts", std::to_string(num_nodes),
               "up to " + std::to_string(kMaxExpressionNodes));
}

std::string MapSpec::Print() const {
  std::string text = "map";
  for (size_t i = 0; i < columns.size(); ++i) text += (i == 0 ? " in=" : ",") + PrintValueType(columns[i]);
  for (size_t i = 0; i < results.size(); ++i) text += (i == 0 ? " out=" : ",") + PrintExpression(results[i]);
  return text;
}

std::vector<ColumnType> MapInputTypes(const MapSpec& spec) {
  std::vector<ColumnType> types;
  for (const ValueType& type : spec.columns) types.push_back(ColumnTypeOf(type));
  return types;
}

std::vector<ColumnType> MapOutputTypes(const MapSpec& spec) {
  std::vector<ColumnType> types;
  for (const Expression& result : spec.results) {
    ColumnType type = ColumnTypeOf(result.type);
    if (type.is_dictionary) type = {.id = type.id, .nullable = type.nullable};
    type.collation = kCollationBinary;
    types.push_back(type);
  }
  return types;
}

}  // namespace quern
