// SPDX-License-Identifier: Apache-2.0
// The kernel spec: what a kernel computes, and nothing about how. It has one text form, the same in the CLI, the C ABI,
// logs, bench names, tests and cache keys; its first word names the operator:
//
//     join.inner keys=i64,utf8(utf8mb4_bin):nullable build=f64,utf8 probe=i32 residual=i64:lt       join_spec.h
//     aggregate keys=i64,utf8(utf8mb4_bin):nullable aggs=count_star,sum(i64),min(f64)              aggregation_spec.h
//     sort keys=i32:desc:nulls_first:out,utf8(utf8mb4_bin):nullable payload=i64,rowid limit=100    sort_spec.h
//     filter utf8(utf8mb4_bin) = 'zzzz' and date32 >= 8766                                         filter_spec.h
//     set.intersect keys=i64:nullable,utf8(utf8mb4_bin)                                            set_spec.h
//     map in=i64,i64:nullable out=add_checked($0,$1)                                              map_spec.h
#ifndef QUERN_RUNTIME_SPEC_SPEC_H_
#define QUERN_RUNTIME_SPEC_SPEC_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/status/statusor.h"
#include "runtime/base/messages.h"
#include "runtime/spec/aggregation_spec.h"
#include "runtime/spec/filter_spec.h"
#include "runtime/spec/join_spec.h"
#include "runtime/spec/map_spec.h"
#include "runtime/spec/set_spec.h"
#include "runtime/spec/sort_spec.h"

namespace quern {

// The operators. Whatever has a part for each operator follows this list (OverOperators, ForEachOperator). A spec has
//
//     kMaxTextBytes        the longest text
//     Names()              the first words of its texts
//     Parse(name, rest)    *Errors*: InvalidArgument that names the value and what is accepted
//     Validate()           finds what only a caller who fills the struct can get wrong, since no text expresses it:
//                          numbers of keys, flags without meaning
//     Print()              the canonical text
using KernelSpec = std::variant<JoinSpec, AggregationSpec, SortSpec, FilterSpec, SetSpec, MapSpec>;

namespace spec_internal {

template <template <class> class T, class... Specs>
std::variant<T<Specs>...> Over(std::type_identity<std::variant<Specs...>>);

}  // namespace spec_internal

// std::variant<T<JoinSpec>, T<AggregationSpec>, ..>
template <template <class> class T>
using OverOperators = decltype(spec_internal::Over<T>(std::type_identity<KernelSpec>()));

// Calls f(std::type_identity<Spec>()) for each operator.
template <class F>
void ForEachOperator(const F& f) {
  [&]<size_t... kIs>(std::index_sequence<kIs...>) {
    (f(std::type_identity<std::variant_alternative_t<kIs, KernelSpec>>()), ...);
  }(std::make_index_sequence<std::variant_size_v<KernelSpec>>());
}

// Functions for std::visit, one for each operator: Overloaded{[](const JoinSpec&) {..}, [](const SortSpec&) {..}, ..}.
template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};

// Whether the spec is one of these operators: Is<JoinSpec, AggregationSpec>(spec).
template <class... Specs>
bool Is(const KernelSpec& spec) {
  return (std::holds_alternative<Specs>(spec) || ...);
}

// The keys of a spec; empty for operators that have none.
std::span<const KeySpec> KeysOf(const KernelSpec& spec);

// Reads the text form. Fields may stand in any order, flags too.
// Errors: InvalidArgument that names the value and what is accepted.
absl::StatusOr<KernelSpec> ParseSpec(std::string_view text);

// Reads the text of one operator. *Errors*: also InvalidArgument for another operator's.
template <class Spec>
absl::StatusOr<Spec> ParseSpecOf(std::string_view text) {
  absl::StatusOr<KernelSpec> spec = ParseSpec(text);
  if (!spec.ok()) return spec.status();
  if (!Is<Spec>(*spec)) return Unknown("operator", text, Spec::Names());
  return std::get<Spec>(*std::move(spec));
}

// Writes the canonical text form: ParseSpec(PrintSpec(s)) == s, and equal specs print equal.
std::string PrintSpec(const KernelSpec& spec);

// Validate of the operator, and the length of the text.
absl::Status ValidateSpec(const KernelSpec& spec);

}  // namespace quern

#endif  // QUERN_RUNTIME_SPEC_SPEC_H_
