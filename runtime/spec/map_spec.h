// SPDX-License-Identifier: Apache-2.0
// The spec of a map, which computes columns:
//
//     map in=decimal128(15,2),decimal128(15,2):nullable out=multiply($0,subtract(1.00:decimal128(3,2),$1)),is_null($1)
//         ^the columns $0, $1, ..                       ^an expression for each column of the result (expression.h)
#ifndef QUERN_RUNTIME_SPEC_MAP_SPEC_H_
#define QUERN_RUNTIME_SPEC_MAP_SPEC_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/spec/expression.h"

namespace quern {

struct MapSpec {
  std::vector<ValueType> columns;   // 0 .. kMaxMapColumns
  std::vector<Expression> results;  // 1 .. kMaxMapColumns

  // The text form, as every operator has it (spec.h).
  static constexpr size_t kMaxTextBytes = size_t{1} << 18;
  static std::vector<std::string_view> Names();
  static absl::StatusOr<MapSpec> Parse(std::string_view name, std::string_view fields);
  absl::Status Validate() const;
  std::string Print() const;

  bool operator==(const MapSpec&) const = default;
};
constexpr size_t kMaxMapColumns = 1024;

// The columns that a map reads and writes: the latter with dictionaries decoded, and without collations.
std::vector<ColumnType> MapInputTypes(const MapSpec& spec);
std::vector<ColumnType> MapOutputTypes(const MapSpec& spec);

}  // namespace quern

#endif  // QUERN_RUNTIME_SPEC_MAP_SPEC_H_
