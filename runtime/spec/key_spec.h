// SPDX-License-Identifier: Apache-2.0
// One key of a spec, as joins, aggregations and sorts have them.
#ifndef QUERN_RUNTIME_SPEC_KEY_SPEC_H_
#define QUERN_RUNTIME_SPEC_KEY_SPEC_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/spec/column_type.h"

namespace quern {

// `nullable` (of the type): the column may hold nulls, in a join on either side.
struct KeySpec {
  ColumnType type;
  bool null_equal = false;   // null matches null (IS NOT DISTINCT FROM); otherwise a null key never matches
  bool descending = false;   // sorts only, as all below
  bool nulls_first = false;  // in either direction; otherwise nulls come last
  bool out = false;          // the column is part of the result

  bool operator==(const KeySpec&) const = default;
};

// Reads one type with its ':' flags, as it stands in a list ("utf8(utf8mb4_bin):nullable").
absl::StatusOr<KeySpec> ParseKey(std::string_view text);

// The type of a key in a result: dictionaries decoded, without a collation.
ColumnType ResultTypeOf(const KeySpec& key);

}  // namespace quern

#endif  // QUERN_RUNTIME_SPEC_KEY_SPEC_H_
