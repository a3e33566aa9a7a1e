// SPDX-License-Identifier: Apache-2.0
// The text form of sorts: keys, payload, limit (a number), stable (a word), partition, window.
#include "runtime/spec/sort_spec.h"

#include <algorithm>
#include <string>

#include "runtime/base/status.h"
#include "runtime/spec/spec_fields.h"

namespace quern {
namespace {

constexpr uint64_t kMaxLimit = ~uint64_t{0} >> 1;

absl::Status LimitOutOfRange(std::string_view value) {
  return Wrong("limit out of range", value, "1 to " + std::to_string(kMaxLimit));
}

absl::Status SetLimit(std::string_view text, SortSpec* spec) {
  return ReadNumber(text, &spec->limit) && spec->limit != 0 ? absl::OkStatus() : LimitOutOfRange(text);
}

absl::Status SetStable(std::string_view, SortSpec* spec) {
  spec->stable = true;
  return absl::OkStatus();
}

// The number of keys may be specified later.
absl::Status SetPartition(std::string_view text, SortSpec* spec) {
  return ReadNumber(text, &spec->partition) ? absl::OkStatus()
                                            : Wrong("partition out of range", text, "0 to the number of keys");
}

absl::Status AppendWindow(std::string_view text, SortSpec* spec) {
  QUERN_ASSIGN_OR_RETURN(const WindowFunction function, ParseWindowFunction(text));
  spec->window.push_back(function);
  return absl::OkStatus();
}

constexpr Field<SortSpec> kFields[] = {
    {"keys", "TYPE", "types", AppendKey<Role::kSortKey>},  // the first key is the most significant
    {"payload", "TYPE", "types", AppendPayload<SortSpec, &SortSpec::payload>},
    {"limit", "N", {}, SetLimit, FieldForm::kNumber},  // rows
    {"stable", {}, {}, SetStable, FieldForm::kWord},
    {"partition", "N", {}, SetPartition, FieldForm::kNumber},  // the first N keys
    {"window", "FUNCTION", "functions", AppendWindow},
};

absl::Status CheckWindow(const SortSpec& spec) {
  QUERN_RETURN_IF_ERROR(CheckEach(spec.window, "window", CheckWindowFunction));
  for (WindowFunction function : spec.window) {
    if (std::count(spec.window.begin(), spec.window.end(), function) == 1) continue;
    return Wrong("window function given twice", PrintItem(function), "each window function once");
  }
  const std::string partition = std::to_string(spec.partition);
  if (spec.partition > spec.keys.size())
    return Wrong("partition out of range", partition, "0 to " + std::to_string(spec.keys.size()));
  if (spec.partition == 0 || !spec.window.empty()) return absl::OkStatus();
  return Wrong("partition without window functions", partition, "0, or window=FUNCTION,FUNCTION,..");
}

}  // namespace

Names SortSpec::Names() { return {"sort"}; }

absl::StatusOr<SortSpec> SortSpec::Parse(std::string_view, std::string_view fields) {
  SortSpec spec;
  QUERN_RETURN_IF_ERROR(ParseFields<SortSpec>(fields, kFields, &spec));
  QUERN_RETURN_IF_ERROR(CheckKeysGiven(spec.keys));
  return spec;
}

absl::Status SortSpec::Validate() const {
  QUERN_RETURN_IF_ERROR(CheckCount("keys", keys.size(), 1, kMaxKeys));
  QUERN_RETURN_IF_ERROR(CheckCount("payload columns", payload.size(), 0, kMaxPayloadColumns));
  QUERN_RETURN_IF_ERROR(CheckEach(keys, "keys", CheckSortKey));
  QUERN_RETURN_IF_ERROR(CheckPayload(payload, "payload"));
  if (limit > kMaxLimit) return LimitOutOfRange(std::to_string(limit));
  return CheckWindow(*this);
}

std::string SortSpec::Print() const {
  std::string text = "sort";
  AppendField(" keys=", keys, &text);
  AppendField(" payload=", payload, &text);
  if (limit != 0) text += " limit=" + std::to_string(limit);
  if (stable) text += " stable";
  if (partition != 0) text += " partition=" + std::to_string(partition);
  AppendField(" window=", window, &text);
  return text;
}

std::vector<ColumnType> SortKeyTypes(const SortSpec& spec) {
  std::vector<ColumnType> types;
  for (const KeySpec& key : spec.keys) types.push_back(ResultTypeOf(key));
  return types;
}

std::vector<ColumnType> SortOutputTypes(const SortSpec& spec) {
  std::vector<ColumnType> types;
  for (const KeySpec& key : spec.keys)
    if (key.out) types.push_back(ResultTypeOf(key));
  for (const ColumnType& type : spec.payload) types.push_back(DecodedType(type));
  types.insert(types.end(), spec.window.size(), {.id = TypeId::kU64});
  return types;
}

}  // namespace quern
