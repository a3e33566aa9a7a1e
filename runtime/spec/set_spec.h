// SPDX-License-Identifier: Apache-2.0
// The spec of a set operation over two sides, with SQL's meaning:
//
//     set.intersect_all keys=i64,utf8(utf8mb4_general_ci):nullable
//         ^kind              ^the columns of both sides, in pairs: rows are equal where all are; null equals null
#ifndef QUERN_RUNTIME_SPEC_SET_SPEC_H_
#define QUERN_RUNTIME_SPEC_SET_SPEC_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/spec/aggregation_spec.h"
#include "runtime/spec/key_spec.h"

namespace quern {

// How often a row comes out that is in the left side l times and in the right side r times.
enum class SetKind : uint8_t {
  kUnion,         // once
  kIntersect,     // once, if l > 0 and r > 0
  kExcept,        // once, if l > 0 and r = 0
  kIntersectAll,  // min(l, r) times
  kExceptAll,     // max(l - r, 0) times
};

struct SetSpec {
  SetKind kind = SetKind::kUnion;
  std::vector<KeySpec> keys;  // 1 .. kMaxKeys

  // The text form, as every operator has it (spec.h).
  static constexpr size_t kMaxTextBytes = 65536;
  static std::vector<std::string_view> Names();
  static absl::StatusOr<SetSpec> Parse(std::string_view name, std::string_view fields);
  absl::Status Validate() const;
  std::string Print() const;

  bool operator==(const SetSpec&) const = default;
};

// The columns of the result: the keys, dictionaries decoded, without collations.
std::vector<ColumnType> SetOutputTypes(const SetSpec& spec);

// The aggregation that does the work: it groups the rows of both sides, and finds out what the kind asks of a group.
//
//     kIntersect, kExcept   bit_or(u8)   which sides have rows: 1 the left one, 2 the right one
//     kExceptAll            sum(i8)      l - r: a row of the left side counts 1, one of the right side -1
//     kIntersectAll         count_star:filter, twice   l and r
AggregationSpec GroupsOf(const SetSpec& spec);

}  // namespace quern

#endif  // QUERN_RUNTIME_SPEC_SET_SPEC_H_
