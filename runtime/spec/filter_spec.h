// SPDX-License-Identifier: Apache-2.0
// The spec of a filter:
//
//     filter utf8(utf8mb4_bin) = 'zzzz' and date32 >= 8766
//            ^a condition over the batch's columns, in the order of mention (condition.h)
#ifndef QUERN_RUNTIME_SPEC_FILTER_SPEC_H_
#define QUERN_RUNTIME_SPEC_FILTER_SPEC_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/spec/condition.h"

namespace quern {

struct FilterSpec {
  Predicate where;

  // The text form, as every operator has it (spec.h).
  static constexpr size_t kMaxTextBytes = size_t{4} << 20;  // most of which may be IN lists
  static std::vector<std::string_view> Names();
  static absl::StatusOr<FilterSpec> Parse(std::string_view name, std::string_view condition);
  absl::Status Validate() const;
  std::string Print() const;

  bool operator==(const FilterSpec&) const = default;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SPEC_FILTER_SPEC_H_
