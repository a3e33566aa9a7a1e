// SPDX-License-Identifier: Apache-2.0
// Names are checked before columns are read; then the columns say what the spec is. For
//
//     quern sort --partition-by shop --by 'price desc, name collate utf8mb4_bin' --window rank --select name,id,price
//
// with shop an i32, price a decimal(15, 2) in which nulls were read, name a string and id an i64, the spec is
//
//     sort keys=i32,decimal128:desc:nullable:out,utf8(utf8mb4_bin):out payload=i64 partition=1 window=rank
//
// A column that is both a key and in the result is a key that comes out: the sort keeps its original value, including
// blanks that a collation ignores and the sign of -0. shop is only a key, id is payload. The kernel writes keys, then
// payload, then window functions: here price, name, id, rank. `order` = 1, 2, 0, 3 puts these into the requested order.
//
// A key that is an expression is computed of each batch by a map, whose columns stand behind those of the table. It is
// only a key, and does not come out.
//
// A column may be a key twice, under two collations: values that are equal under one may be ordered by the other. A CSV
// column without values has type null and counts as a string column.
#include "tools/quern/sort/sort_request.h"

#include <arrow/api.h>

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/sort/row_sort.h"
#include "tools/frontend/computed_key.h"
#include "tools/frontend/errors.h"
#include "tools/frontend/expression_text.h"
#include "tools/quern/files/input_columns.h"
#include "tools/quern/files/key_types.h"
#include "tools/quern/files/row_condition.h"
#include "tools/quern/files/row_map.h"

namespace quern::cli {
namespace {

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// ---- names ----

absl::Status ResolveKeys(const TableInput& input, SortRequest* request) {
  std::set<std::pair<std::string, Collation>> keys;
  for (SortKeyText& key : request->keys) {
    QUERN_RETURN_IF_ERROR(ResolveColumn(input, &key.column));
    QUERN_RETURN_IF_ERROR(CheckNoConstant("--by", key.column));
    QUERN_ASSIGN_OR_RETURN(const Collation collation, CollationByName(key.column.collation));
    if (keys.insert({key.column.name, collation}).second) continue;
    return CommandError("key given twice: " + QuoteName(key.column.name) +
                        "; accepted: once, or with another collation");
  }
  if (request->keys.size() <= kMaxKeys) return absl::OkStatus();
  return CommandError("too many keys: " + std::to_string(request->keys.size()) + "; accepted: 1 to " +
                      std::to_string(kMaxKeys));
}

absl::Status CheckWindows(const SortRequest& request) {
  std::set<WindowFunction> functions;
  for (const WindowText& window : request.windows) {
    if (functions.insert(window.function).second) continue;
    return CommandError("window function given twice: " + window.text + "; accepted: once");
  }
  return absl::OkStatus();
}

absl::Status CheckResultNames(const SortRequest& request, const std::vector<std::string>& selected) {
  std::set<std::string> names;
  for (const std::string& name : selected) {
    if (!names.insert(name).second)
      return CommandError("column selected twice: " + QuoteName(name) + "; accepted: once");
  }
  for (const WindowText& window : request.windows) {
    if (names.insert(window.name).second) continue;
    return CommandError("two result columns of one name: " + QuoteName(window.name) +
                        "; accepted: different names, as by --window '" + window.text + " as NAME'");
  }
  if (selected.size() <= kMaxPayloadColumns) return absl::OkStatus();
  return CommandError("too many columns selected: " + std::to_string(selected.size()) + "; accepted: up to " +
                      std::to_string(kMaxPayloadColumns));
}

// ---- preparing ----

// Builds a PreparedSort column by column.
class Preparation {
 public:
  Preparation(const SortRequest& request, const std::vector<std::string>& selected, const TableInput& input,
              const std::shared_ptr<arrow::Table>& table)
      : request_(request), selected_(selected), columns_(input.what(), table), expressions_(&columns_) {}

  absl::StatusOr<PreparedSort> Prepare();

 private:
  absl::Status AddKey(const SortKeyText& text);
  absl::Status AddPayload(const std::string& name);
  void AddWindows();
  void OrderColumns();
  bool ComesOut(const std::string& name) const;

  const SortRequest& request_;
  const std::vector<std::string>& selected_;
  InputColumns columns_;
  ExpressionPreparation expressions_;
  PreparedSort prepared_;
  arrow::FieldVector fields_;  // of the kernel's columns
};

// Whether the kernel has a result column of that name already.
bool Preparation::ComesOut(const std::string& name) const {
  return std::any_of(fields_.begin(), fields_.end(), [&name](const auto& field) { return field->name() == name; });
}

absl::Status Preparation::AddKey(const SortKeyText& text) {
  QUERN_ASSIGN_OR_RETURN(const ReadColumn column, expressions_.Read("--by", text.column, arrow::utf8()));
  KeySpec key;
  key.type = column.type;
  key.descending = text.descending;
  key.nulls_first = text.nulls_first && column.type.nullable;  // without nulls there are none to come first
  const bool is_column = text.column.computed == nullptr;
  key.out = is_column && Contains(selected_, text.column.name) && !ComesOut(text.column.name);
  if (key.out) fields_.push_back(arrow::field(text.column.name, DecodedType(column.arrow)));
  prepared_.spec.keys.push_back(key);
  prepared_.input.keys.push_back(column.type);
  prepared_.input.binding.keys.push_back(column.place);
  return absl::OkStatus();
}

absl::Status Preparation::AddPayload(const std::string& name) {
  QUERN_ASSIGN_OR_RETURN(const ReadColumn column, columns_.Add(KeyText{name, ""}, arrow::utf8()));
  prepared_.input.payload.push_back(column.type);
  prepared_.input.binding.payload.push_back(column.place);
  fields_.push_back(arrow::field(name, DecodedType(column.arrow)));
  return absl::OkStatus();
}

void Preparation::AddWindows() {
  for (const WindowText& window : request_.windows) {
    prepared_.spec.window.push_back(window.function);
    fields_.push_back(arrow::field(window.name, arrow::uint64()));
  }
  prepared_.spec.partition = request_.num_partition_keys;
}

// The columns of the file in the requested order, then the window functions, which are last already.
void Preparation::OrderColumns() {
  const size_t first_window = fields_.size() - request_.windows.size();
  for (const std::string& name : selected_) {
    const auto field =
        std::find_if(fields_.begin(), fields_.end(), [&name](const auto& other) { return other->name() == name; });
    prepared_.order.push_back(static_cast<int>(field - fields_.begin()));
  }
  for (size_t i = first_window; i < fields_.size(); ++i) prepared_.order.push_back(static_cast<int>(i));
}

absl::StatusOr<PreparedSort> Preparation::Prepare() {
  SortSpec& spec = prepared_.spec;
  spec.limit = request_.limit;
  spec.stable = request_.stable;
  for (const SortKeyText& key : request_.keys) QUERN_RETURN_IF_ERROR(AddKey(key));
  for (const std::string& name : selected_) {
    if (!ComesOut(name)) QUERN_RETURN_IF_ERROR(AddPayload(name));
  }
  AddWindows();
  spec.payload = prepared_.input.payload;
  if (request_.where.has_value()) {
    QUERN_ASSIGN_OR_RETURN(RowCondition condition, PrepareCondition("--filter", *request_.where, &columns_));
    prepared_.input.where = std::make_shared<RowTest>(std::move(condition));
  }
  QUERN_RETURN_IF_ERROR(ValidateSpec(spec));
  OrderColumns();
  const std::vector<ColumnType> types = SortOutputTypes(spec);
  for (size_t i = 0; i < fields_.size(); ++i) fields_[i] = fields_[i]->WithNullable(types[i].nullable);
  prepared_.kernel_schema = arrow::schema(std::move(fields_));
  QUERN_RETURN_IF_ERROR(FinishInput(columns_, &expressions_, &prepared_.input));
  return std::move(prepared_);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> SelectColumns(const TableInput& input, bool count, SortRequest* request) {
  QUERN_RETURN_IF_ERROR(ResolveKeys(input, request));
  QUERN_RETURN_IF_ERROR(CheckWindows(*request));
  if (request->where.has_value()) QUERN_RETURN_IF_ERROR(ResolveNames(input, &*request->where));
  if (count && !request->select.has_value()) return std::vector<std::string>();
  std::vector<std::string> selected = request->select.value_or(input.column_names());
  for (const std::string& name : selected) QUERN_RETURN_IF_ERROR(CheckColumn(input.column_names(), input.what(), name));
  QUERN_RETURN_IF_ERROR(CheckResultNames(*request, selected));
  if (count) selected.clear();  // the names are right, but the columns are not needed
  return selected;
}

std::vector<std::string> ColumnsToRead(const SortRequest& request, const std::vector<std::string>& selected) {
  std::vector<std::string> names;
  const auto add = [&names](const std::string& name) {
    if (!Contains(names, name)) names.push_back(name);
  };
  std::vector<std::string> mentioned;
  for (const SortKeyText& key : request.keys)
    if (key.column.computed != nullptr) AddNames(*key.column.computed, &mentioned);
    else mentioned.push_back(key.column.name);
  mentioned.insert(mentioned.end(), selected.begin(), selected.end());
  if (request.where.has_value()) AddNames(*request.where, &mentioned);
  for (const std::string& name : mentioned) add(name);
  return names;
}

absl::StatusOr<PreparedSort> PrepareSort(const SortRequest& request, const std::vector<std::string>& selected,
                                         const TableInput& input, const std::shared_ptr<arrow::Table>& table) {
  return Preparation(request, selected, input, table).Prepare();
}

}  // namespace quern::cli
