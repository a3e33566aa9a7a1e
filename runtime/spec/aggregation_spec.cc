// SPDX-License-Identifier: Apache-2.0
// The text form of aggregations: keys and aggs, at least one of them.
#include "runtime/spec/aggregation_spec.h"

#include <utility>

#include "runtime/base/status.h"
#include "runtime/spec/spec_fields.h"

namespace quern {
namespace {

absl::Status AppendAggregate(std::string_view text, AggregationSpec* spec) {
  QUERN_ASSIGN_OR_RETURN(AggregateSpec aggregate, ParseAggregate(text));
  spec->aggregates.push_back(std::move(aggregate));
  return absl::OkStatus();
}

constexpr Field<AggregationSpec> kFields[] = {
    {"keys", "TYPE", "types", AppendKey<Role::kAggregateKey>},
    {"aggs", "AGGREGATE", "aggregates", AppendAggregate},
};

absl::Status CheckFieldsGiven(const AggregationSpec& spec) {
  if (!spec.keys.empty() || !spec.aggregates.empty()) return absl::OkStatus();
  return Wrong("missing field", "keys or aggs", "one of them at least: " + kFields[0].Form() + " " + kFields[1].Form());
}

}  // namespace

Names AggregationSpec::Names() { return {"aggregate"}; }

absl::StatusOr<AggregationSpec> AggregationSpec::Parse(std::string_view, std::string_view fields) {
  AggregationSpec spec;
  QUERN_RETURN_IF_ERROR(ParseFields<AggregationSpec>(fields, kFields, &spec));
  QUERN_RETURN_IF_ERROR(CheckFieldsGiven(spec));
  return spec;
}

absl::Status AggregationSpec::Validate() const {
  QUERN_RETURN_IF_ERROR(CheckCount("keys", keys.size(), 0, kMaxKeys));
  QUERN_RETURN_IF_ERROR(CheckCount("aggregates", aggregates.size(), 0, kMaxAggregates));
  QUERN_RETURN_IF_ERROR(CheckFieldsGiven(*this));
  QUERN_RETURN_IF_ERROR(CheckEach(keys, "keys", CheckAggregateKey));
  return CheckEach(aggregates, "aggs", CheckAggregate);
}

// Keys print without :nullequal: in a group, nulls are always equal.
std::string AggregationSpec::Print() const {
  std::vector<ColumnType> types;
  for (const KeySpec& key : keys) types.push_back(key.type);
  std::string text = "aggregate";
  AppendField(" keys=", types, &text);
  AppendField(" aggs=", aggregates, &text);
  return text;
}

std::vector<ColumnType> AggregateOutputTypes(const AggregationSpec& spec) {
  std::vector<ColumnType> types;
  for (const KeySpec& key : spec.keys) types.push_back(ResultTypeOf(key));
  for (const AggregateSpec& aggregate : spec.aggregates)
    types.push_back(AggregateResultType(aggregate, !spec.keys.empty()));
  return types;
}

}  // namespace quern
