// SPDX-License-Identifier: Apache-2.0
// Names are looked up before columns are read; then the columns determine the spec. For
//
//     quern filter --where "name collate utf8mb4_general_ci = 'ada' and due < shipped" --select id,name sales.parquet
//
// with name a string in which nulls were read, due and shipped dates and id an i64, the spec is
//
//     filter utf8(utf8mb4_general_ci):nullable = 'ada' and date32 < date32
//
// The table that the filter runs over has the columns name, due, shipped, id: the first three are the kernel's keys,
// and the result is taken from 3 and 0 (row_condition.h has the condition's part).
#include "tools/quern/filter/filter_request.h"

#include <arrow/api.h>

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/base/status.h"
#include "tools/frontend/errors.h"
#include "tools/quern/files/input_columns.h"
#include "tools/quern/files/key_types.h"
#include "tools/quern/files/row_condition.h"

namespace quern::cli {
namespace {

constexpr char kOption[] = "--where";

// Builds a PreparedFilter.
class Preparation {
 public:
  Preparation(const TableInput& input, const std::shared_ptr<arrow::Table>& table) : columns_(input.what(), table) {}

  absl::StatusOr<PreparedFilter> Prepare(const FilterRequest& request, const std::vector<std::string>& selected);

 private:
  absl::Status AddResult(const std::string& name);

  InputColumns columns_;
  PreparedFilter prepared_;
  arrow::FieldVector fields_;  // of the result
};

absl::Status Preparation::AddResult(const std::string& name) {
  const auto column = columns_.Find(name);
  const bool has_values = column->type()->id() != arrow::Type::NA;
  QUERN_ASSIGN_OR_RETURN(const int place, columns_.Add(name, has_values ? column->type() : arrow::utf8()));
  prepared_.result.push_back(place);
  fields_.push_back(arrow::field(name, has_values ? DecodedType(column->type()) : arrow::utf8(), HasNulls(*column)));
  return absl::OkStatus();
}

absl::StatusOr<PreparedFilter> Preparation::Prepare(const FilterRequest& request,
                                                    const std::vector<std::string>& selected) {
  QUERN_ASSIGN_OR_RETURN(RowCondition condition, PrepareCondition(kOption, request.where, &columns_));
  prepared_.input.binding = condition.binding;
  prepared_.input.keys = condition.keys;
  prepared_.where = std::make_shared<RowTest>(std::move(condition));
  for (const std::string& name : selected) QUERN_RETURN_IF_ERROR(AddResult(name));
  prepared_.schema = arrow::schema(std::move(fields_));
  prepared_.input.table = columns_.Finish();
  return std::move(prepared_);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ResolveColumns(const TableInput& input, bool count, FilterRequest* request) {
  QUERN_RETURN_IF_ERROR(ResolveNames(input, &request->where));
  if (count && !request->select.has_value()) return std::vector<std::string>();
  std::vector<std::string> selected;
  std::set<std::string> names;
  for (std::string name : request->select.value_or(input.column_names())) {
    QUERN_RETURN_IF_ERROR(ResolveName(input, &name));
    if (names.insert(name).second) selected.push_back(std::move(name));
    else if (!request->may_repeat)
      return CommandError("column selected twice: " + QuoteName(name) + "; accepted: once");
  }
  if (count) selected.clear();  // the names are right, but the columns are not needed
  return selected;
}

std::vector<std::string> ColumnsToRead(const FilterRequest& request, const std::vector<std::string>& selected) {
  std::vector<std::string> wanted, names;
  AddNames(request.where, &wanted);
  wanted.insert(wanted.end(), selected.begin(), selected.end());
  for (const std::string& name : wanted)
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}

absl::StatusOr<PreparedFilter> PrepareFilter(const FilterRequest& request, const std::vector<std::string>& selected,
                                             const TableInput& input, const std::shared_ptr<arrow::Table>& table) {
  return Preparation(input, table).Prepare(request, selected);
}

}  // namespace quern::cli
