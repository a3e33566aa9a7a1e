// SPDX-License-Identifier: Apache-2.0
// Names are checked before columns are read; then the columns determine the spec. For
//
//     quern set intersect --by 'name collate utf8mb4_bin, id' old.csv new.csv        old.csv: id,name,note
//                                                                                    new.csv: name,id,day
//
// with id an i32 on the left and an i64 on the right, and nulls among the names on the right, id of old.csv is cast to
// i64, and the spec is
//
//     set.intersect keys=utf8(utf8mb4_bin):nullable,i64
//
// Columns belong together by their names, not by their places. Without --by, columns of RIGHT that LEFT does not have
// are not read.
#include "tools/quern/set/set_columns.h"

#include <arrow/api.h>

#include <set>
#include <utility>

#include "runtime/base/status.h"
#include "tools/frontend/errors.h"
#include "tools/quern/files/input_columns.h"
#include "tools/quern/files/key_types.h"

namespace quern::cli {
namespace {

absl::Status AddKey(const KeyText& key, InputColumns (&inputs)[2], arrow::FieldVector* fields, PreparedSet* set) {
  const auto left = inputs[0].Find(key.name), right = inputs[1].Find(key.name);
  const std::string left_text = inputs[0].Text(key.name);
  std::shared_ptr<arrow::DataType> type = CommonKeyType(left->type(), right->type());
  if (type == nullptr) {
    return CommandError("columns of types that do not compare: " + left_text + " is " + left->type()->ToString() +
                        ", " + inputs[1].Text(key.name) + " is " + right->type()->ToString() +
                        "; accepted: the same type, integers and decimals, integers and floats, "
                        "strings with strings");
  }
  if (type->id() == arrow::Type::NA) type = arrow::utf8();  // neither side has a value
  KeySpec spec;
  QUERN_ASSIGN_OR_RETURN(spec.type, KernelType(left_text, *type));
  QUERN_ASSIGN_OR_RETURN(const Collation collation, CollationByName(key.collation));
  QUERN_RETURN_IF_ERROR(SetCollation(collation, left_text, *left->type(), &spec.type));
  spec.type.nullable = HasNulls(*left) || HasNulls(*right);
  spec.null_equal = spec.type.nullable;
  set->spec.keys.push_back(spec);
  fields->push_back(arrow::field(key.name, DecodedType(type), spec.type.nullable));
  for (const int side : {0, 1}) {
    QUERN_ASSIGN_OR_RETURN(const int place, inputs[side].Add(key.name, type));
    set->inputs[side].binding.keys.push_back(place);
    set->inputs[side].keys.push_back(spec.type);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<KeyText>> ResolveSetKeys(const SetRequest& request, const TableInput& left,
                                                    const TableInput& right) {
  std::vector<KeyText> keys = request.keys;
  if (keys.empty())
    for (const std::string& name : left.column_names()) keys.push_back({name, ""});
  if (keys.empty() || keys.size() > kMaxKeys) {
    return CommandError("number of columns out of range: " + std::to_string(keys.size()) + "; accepted: 1 to " +
                        std::to_string(kMaxKeys) + ", chosen by --by");
  }
  std::set<std::string> names;
  for (const KeyText& key : keys) {
    QUERN_RETURN_IF_ERROR(CheckColumn(left.column_names(), left.what(), key.name));
    QUERN_RETURN_IF_ERROR(CheckColumn(right.column_names(), right.what(), key.name));
    QUERN_RETURN_IF_ERROR(CollationByName(key.collation).status());
    if (!names.insert(key.name).second)
      return CommandError("column named twice in --by: " + QuoteName(key.name) + "; accepted: once");
  }
  return keys;
}

absl::StatusOr<PreparedSet> PrepareSet(SetKind kind, const std::vector<KeyText>& keys,
                                       const std::shared_ptr<arrow::Table>& left,
                                       const std::shared_ptr<arrow::Table>& right) {
  PreparedSet set;
  set.spec.kind = kind;
  InputColumns inputs[2] = {InputColumns(kSetSideWords[0], left), InputColumns(kSetSideWords[1], right)};
  arrow::FieldVector fields;
  for (const KeyText& key : keys) QUERN_RETURN_IF_ERROR(AddKey(key, inputs, &fields, &set));
  for (const int side : {0, 1}) set.inputs[side].table = inputs[side].Finish();
  QUERN_RETURN_IF_ERROR(ValidateSpec(set.spec));
  set.schema = arrow::schema(std::move(fields));
  return set;
}

}  // namespace quern::cli
