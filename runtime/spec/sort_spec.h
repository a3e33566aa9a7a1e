// SPDX-License-Identifier: Apache-2.0
// The spec of a sort:
//
//     sort keys=i32:desc:nulls_first:out,utf8(utf8mb4_bin):nullable payload=i64,rowid limit=100 stable partition=1
//          ^most significant first; `out`: also in the result       ^further columns            ^equal keys by row id
//          window=row_number
#ifndef QUERN_RUNTIME_SPEC_SORT_SPEC_H_
#define QUERN_RUNTIME_SPEC_SORT_SPEC_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/spec/key_spec.h"

namespace quern {

// Columns, of type u64, that a sort adds to each row of the result. Rows are numbered from 1 within a partition, which
// is the rows that are equal in the first SortSpec::partition keys. A rank counts the preceding rows, a dense rank the
// preceding distinct keys.
enum class WindowFunction : uint8_t { kRowNumber, kRank, kDenseRank };

struct SortSpec {
  std::vector<KeySpec> keys;        // 1 .. kMaxKeys
  std::vector<ColumnType> payload;  // up to kMaxPayloadColumns; may be `rowid`
  uint64_t limit = 0;               // most rows of the result; 0: all
  bool stable = false;              // rows with equal keys keep the order of their row ids; otherwise any order
  uint32_t partition = 0;           // 0 .. number of keys; 0 unless there are window functions
  std::vector<WindowFunction> window;

  // The text form, as every operator has it (spec.h).
  static constexpr size_t kMaxTextBytes = 65536;
  static std::vector<std::string_view> Names();
  static absl::StatusOr<SortSpec> Parse(std::string_view name, std::string_view fields);
  absl::Status Validate() const;
  std::string Print() const;

  bool operator==(const SortSpec&) const = default;
};

// The columns of a sort's result: keys flagged `out` (without collations), payload, window functions (u64);
// dictionaries decoded.
std::vector<ColumnType> SortOutputTypes(const SortSpec& spec);
// The types of all keys in the same form: the columns of a threshold.
std::vector<ColumnType> SortKeyTypes(const SortSpec& spec);

}  // namespace quern

#endif  // QUERN_RUNTIME_SPEC_SORT_SPEC_H_
