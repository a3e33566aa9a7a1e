// SPDX-License-Identifier: Apache-2.0
// The kernel spec: what a kernel has to compute, and nothing of how. It has one text form, the same in the CLI, the C ABI, logs,
// bench names, tests and cache keys:
//
//     join.inner keys=i64,utf8(utf8mb4_bin):nullable build=f64,utf8 probe=i32
//     ^operator  ^equal on both sides, in pairs      ^payload of the build side, then of the probe side
#ifndef QUERN_RUNTIME_SPEC_H_
#define QUERN_RUNTIME_SPEC_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/column_type.h"

namespace quern {

enum class Operator : uint8_t { kJoin };
enum class JoinKind : uint8_t { kInner };

// One key. `nullable` (of the type): the column may hold nulls on either side.
struct KeySpec {
  ColumnType type;
  bool null_equal = false;  // null matches null (IS NOT DISTINCT FROM); otherwise a null key matches nothing
  bool descending = false;  // order, for sorts; no meaning in a join, where it is refused
  bool nulls_first = false;

  bool operator==(const KeySpec&) const = default;
};

struct KernelSpec {
  Operator op = Operator::kJoin;
  JoinKind join_kind = JoinKind::kInner;
  std::vector<KeySpec> keys;      // 1 .. kMaxKeys
  std::vector<ColumnType> build;  // payload columns, stored with each tuple
  std::vector<ColumnType> probe;  // payload columns, copied from the probe batch

  bool operator==(const KernelSpec&) const = default;
};

// Reads the text form. Fields may stand in any order, flags too.
// Errors: InvalidArgument that names the value and what is accepted.
absl::StatusOr<KernelSpec> ParseSpec(std::string_view text);

// Reads one type with its ':' flags, as it stands in a list ("utf8(utf8mb4_bin):nullable").
absl::StatusOr<KeySpec> ParseKey(std::string_view text);

// Writes the canonical text form: ParseSpec(PrintSpec(s)) == s, and equal specs print equal.
std::string PrintSpec(const KernelSpec& spec);

// What no text can express wrongly but a caller who fills the struct can: numbers of keys, flags without meaning.
absl::Status ValidateSpec(const KernelSpec& spec);

}  // namespace quern

#endif  // QUERN_RUNTIME_SPEC_H_
