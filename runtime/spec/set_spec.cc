// SPDX-License-Identifier: Apache-2.0
// The text form of set operations: keys. `set.except keys=i64:nullable` groups the rows of both sides as
//
//     aggregate keys=i64:nullable aggs=bit_or(u8)
//
// does, where a row of the left side has the bit 1 and one of the right side the bit 2, and returns the groups whose
// bits are 1.
#include "runtime/spec/set_spec.h"

#include <algorithm>
#include <iterator>

#include "runtime/base/status.h"
#include "runtime/spec/spec_fields.h"

namespace quern {
namespace {

// In the order of SetKind.
constexpr std::string_view kNames[] = {"set.union", "set.intersect", "set.except", "set.intersect_all",
                                       "set.except_all"};

constexpr Field<SetSpec> kFields[] = {{"keys", "TYPE", "types", AppendKey<Role::kAggregateKey>}};

}  // namespace

Names SetSpec::Names() { return {std::begin(kNames), std::end(kNames)}; }

absl::StatusOr<SetSpec> SetSpec::Parse(std::string_view name, std::string_view fields) {
  SetSpec spec;
  spec.kind = static_cast<SetKind>(std::find(std::begin(kNames), std::end(kNames), name) - std::begin(kNames));
  QUERN_RETURN_IF_ERROR(ParseFields<SetSpec>(fields, kFields, &spec));
  QUERN_RETURN_IF_ERROR(CheckKeysGiven(spec.keys));
  return spec;
}

absl::Status SetSpec::Validate() const {
  if (const size_t last = std::size(kNames) - 1; static_cast<size_t>(kind) > last)
    return Wrong("set kind out of range", std::to_string(static_cast<int>(kind)), "0 to " + std::to_string(last));
  QUERN_RETURN_IF_ERROR(CheckCount("keys", keys.size(), 1, kMaxKeys));
  return CheckEach(keys, "keys", CheckAggregateKey);
}

std::string SetSpec::Print() const {
  std::vector<ColumnType> types;
  for (const KeySpec& key : keys) types.push_back(key.type);
  std::string text(kNames[static_cast<size_t>(kind)]);
  AppendField(" keys=", types, &text);
  return text;
}

std::vector<ColumnType> SetOutputTypes(const SetSpec& spec) {
  std::vector<ColumnType> types;
  for (const KeySpec& key : spec.keys) types.push_back(ResultTypeOf(key));
  return types;
}

AggregationSpec GroupsOf(const SetSpec& spec) {
  AggregationSpec groups;
  groups.keys = spec.keys;
  const auto of_number = [](AggregateFunction function, TypeId type) {
    AggregateSpec aggregate;
    aggregate.function = function;
    aggregate.arguments.push_back({.id = type});
    return aggregate;
  };
  AggregateSpec count;
  count.filtered = true;
  switch (spec.kind) {
    case SetKind::kUnion: break;
    case SetKind::kIntersect:
    case SetKind::kExcept: groups.aggregates = {of_number(AggregateFunction::kBitOr, TypeId::kU8)}; break;
    case SetKind::kExceptAll: groups.aggregates = {of_number(AggregateFunction::kSum, TypeId::kI8)}; break;
    case SetKind::kIntersectAll: groups.aggregates.assign(2, count); break;
  }
  return groups;
}

}  // namespace quern
