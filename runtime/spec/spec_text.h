// SPDX-License-Identifier: Apache-2.0
// The common parts of the text form of every operator's spec (spec.cc, aggregate_spec.cc): messages, lists, types and
// flags.
#ifndef QUERN_RUNTIME_SPEC_SPEC_TEXT_H_
#define QUERN_RUNTIME_SPEC_SPEC_TEXT_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/messages.h"
#include "runtime/spec/aggregate_spec.h"
#include "runtime/spec/join_spec.h"
#include "runtime/spec/sort_spec.h"

namespace quern {

// ---- splitting ----

// Splits at separators outside parentheses. An empty text is one empty part.
std::vector<std::string_view> Split(std::string_view text, char separator);
std::vector<std::string_view> SplitWords(std::string_view text);

// NAME or NAME(PARAMETER), split: "utf8(ascii_bin)" is utf8 and ascii_bin.
struct NamedText {
  std::string_view whole;
  std::string_view name;
  std::string_view parameter;
  bool has_parameter = false;
};
// *Errors*: unbalanced parentheses, or text behind them; `form` is what the message lists as accepted.
absl::StatusOr<NamedText> SplitName(std::string_view text, const std::string& form);

// ---- items: a type and its flags ----

// Where an item stands determines what it may be.
enum class Role { kKey, kJoinKey, kPayload, kResidual, kAggregateKey, kAggregate, kArgument, kSortKey, kCondition };

// One item of a list with the values of its flags.
struct Item {
  KeySpec key;
  Comparison op = Comparison::kLess;
  bool filtered = false;
};

absl::StatusOr<Item> ParseItem(std::string_view text, Role role);
absl::StatusOr<WindowFunction> ParseWindowFunction(std::string_view text);
// Reads the flags parts[1..] of an item whose text before them is parts[0].
absl::Status ParseFlags(const std::vector<std::string_view>& parts, Role role, Item* item);

std::string PrintItem(const KeySpec& key);
std::string PrintItem(const ColumnType& type);
std::string PrintItem(const ResidualSpec& residual);
std::string PrintItem(WindowFunction function);

// ---- specs filled by a caller; `where` names the value: "keys[0]" ----

absl::Status CheckType(const ColumnType& type, const std::string& where);
absl::Status CheckJoinKey(const KeySpec& key, const std::string& where);
absl::Status CheckAggregateKey(const KeySpec& key, const std::string& where);
absl::Status CheckSortKey(const KeySpec& key, const std::string& where);
absl::Status CheckPayload(const std::vector<ColumnType>& types, const char* name);
absl::Status CheckResidual(const ResidualSpec& residual, const std::string& where);
absl::Status CheckConditionColumn(const ColumnType& type, const std::string& where);
absl::Status CheckWindowFunction(WindowFunction function, const std::string& where);

// ---- aggregates (aggregate_spec.cc) ----

absl::StatusOr<AggregateSpec> ParseAggregate(std::string_view text);
// One of expressions of these columns; `rest` receives the text behind it.
absl::StatusOr<AggregateSpec> ParseAggregateOf(std::span<const ValueType> columns, std::string_view text,
                                               std::string_view* rest);
std::string PrintItem(const AggregateSpec& aggregate);
// columns: those of `in`; empty: there is none.
absl::Status CheckAggregate(const AggregateSpec& aggregate, std::span<const ValueType> columns,
                            const std::string& where);

// ---- columns of expressions (map_spec.cc) ----

// Reads the text behind `in=`.
absl::Status ParseValueColumns(std::string_view list, std::vector<ValueType>* columns);
absl::Status CheckValueColumns(std::span<const ValueType> columns);

}  // namespace quern

#endif  // QUERN_RUNTIME_SPEC_SPEC_TEXT_H_
