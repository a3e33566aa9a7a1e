// SPDX-License-Identifier: Apache-2.0
// Parses and prints the text form of a kernel spec: an operator's name, and what the operator reads behind it.
//
//     spec  = operator { blank field }            join.left keys=i64,utf8(ascii_bin):nullable:nullequal build=f64
//                                                 residual=i32:lt
//     field                                       spec_fields.h, with the tables of fields in join_spec.cc,
//                                                 aggregation_spec.cc and sort_spec.cc; a filter has a condition
//                                                 instead
//     item  = type { ":" flag }                   spec_text.cc; in aggs, an aggregate (aggregate_spec.cc):
//                                                 sum(i64):filter
//
// Each spec has exactly one canonical text, so that the text can be a cache key: defaults (`:asc`, `:nulls_last`,
// `(binary)`, `partition=0`) may be written and are never printed, and fields and flags are printed in a fixed order.
// The example above has 2 keys and prints as it was written, to the byte. For the same reason a struct filled by a
// caller is rejected if it contains something that no text expresses, such as a separator of a sum.
#include "runtime/spec/spec.h"

#include <algorithm>
#include <optional>
#include <string>

#include "runtime/base/status.h"
#include "runtime/spec/spec_fields.h"

namespace quern {
namespace {

Names OperatorNames() {
  Names names;
  ForEachOperator([&]<class Spec>(std::type_identity<Spec>) {
    const Names of_spec = Spec::Names();
    names.insert(names.end(), of_spec.begin(), of_spec.end());
  });
  return names;
}

absl::Status CheckTextBytes(size_t bytes, size_t max) {
  if (bytes <= max) return absl::OkStatus();
  return Wrong("kernel spec too long", std::to_string(bytes) + " bytes", "up to " + std::to_string(max));
}

std::string_view FirstWord(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_first_of(kBlanks));
}

template <class Spec>
absl::StatusOr<KernelSpec> ParseAs(std::string_view name, std::string_view text) {
  QUERN_RETURN_IF_ERROR(CheckTextBytes(text.size(), Spec::kMaxTextBytes));
  QUERN_ASSIGN_OR_RETURN(KernelSpec spec, Spec::Parse(name, {name.end(), text.end()}));
  QUERN_RETURN_IF_ERROR(ValidateSpec(spec));
  return spec;
}

}  // namespace

absl::Status CheckCount(std::string_view what, size_t n, size_t min, size_t max) {
  if (n >= min && n <= max) return absl::OkStatus();
  return Wrong("number of " + std::string(what) + " out of range", std::to_string(n),
               std::to_string(min) + " to " + std::to_string(max));
}

absl::Status CheckKeysGiven(const std::vector<KeySpec>& keys) {
  if (!keys.empty()) return absl::OkStatus();
  return Wrong("missing field", "keys", "keys=TYPE,TYPE,.. with 1 to 16 types");
}

absl::StatusOr<KernelSpec> ParseSpec(std::string_view text) {
  const std::string_view name = FirstWord(text);
  std::optional<absl::StatusOr<KernelSpec>> parsed;
  ForEachOperator([&]<class Spec>(std::type_identity<Spec>) {
    const Names names = Spec::Names();
    if (std::find(names.begin(), names.end(), name) != names.end()) parsed = ParseAs<Spec>(name, text);
  });
  if (parsed.has_value()) return *std::move(parsed);
  QUERN_RETURN_IF_ERROR(CheckTextBytes(text.size(), JoinSpec::kMaxTextBytes));
  if (name.empty()) return Wrong("missing operator", "", Listed(OperatorNames()));
  return Unknown("operator", name, OperatorNames());
}

absl::StatusOr<KeySpec> ParseKey(std::string_view text) {
  QUERN_RETURN_IF_ERROR(CheckTextBytes(text.size(), JoinSpec::kMaxTextBytes));
  QUERN_ASSIGN_OR_RETURN(const Item item, ParseItem(text, Role::kKey));
  return item.key;
}

ColumnType ResultTypeOf(const KeySpec& key) {
  return {.id = key.type.id, .width_bytes = key.type.width_bytes, .nullable = key.type.nullable};
}

std::span<const KeySpec> KeysOf(const KernelSpec& spec) {
  return std::visit(
      [](const auto& of) -> std::span<const KeySpec> {
        if constexpr (requires { of.keys; }) return of.keys;
        else return {};
      },
      spec);
}

std::string PrintSpec(const KernelSpec& spec) {
  return std::visit([](const auto& of) { return of.Print(); }, spec);
}

absl::Status ValidateSpec(const KernelSpec& spec) {
  return std::visit(
      [](const auto& of) {
        QUERN_RETURN_IF_ERROR(of.Validate());
        return CheckTextBytes(of.Print().size(), of.kMaxTextBytes);
      },
      spec);
}

}  // namespace quern
