// SPDX-License-Identifier: Apache-2.0
// What a finished table tells of one key of its rows, so that a scan of the other side can leave rows out.
#ifndef QUERN_RUNTIME_JOIN_KEY_SUMMARY_H_
#define QUERN_RUNTIME_JOIN_KEY_SUMMARY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/base/bytes.h"
#include "runtime/base/stop_flag.h"
#include "runtime/join/join_table.h"
#include "runtime/join/tables/packed_key_table.h"

namespace quern {

struct KeySummary {
  uint64_t num_build_rows = 0;
  uint64_t num_null_rows = 0;  // of these, rows with a null key that matches nothing
  uint64_t num_keys = 0;       // different keys, each of all its columns; at most so many where it is not exact
  bool num_keys_is_exact = false;
  bool has_null = false;   // of this key, where null matches null
  bool has_range = false;  // there are values, and they are integers, decimals, dates, times or bools
  // In two's complement, extended by the sign of signed types.
  blocks::uint128_t min = 0;
  blocks::uint128_t max = 0;
};

// Summarises key number `key` of the table's rows; num_build_rows and num_null_rows remain 0. range: of all packed
// keys. *Cost*: a pass over the bitmap or the entries of `bitmap`, `dense` and `csr`. A pass over the table as well (1
// ns a slot or tuple), unless the key is the only one, packed, and its nulls are not equal. *Errors*: Cancelled.
absl::StatusOr<KeySummary> SummariseKey(const JoinTable& table, const QuernRowLayout& rows, const PackedKeyRange& range,
                                        uint32_t key, const StopFlag* stop_flag);

// What is known of key number `key` without a table: its range, where it is the only one, packed, and its nulls are not
// equal; num_keys remains 0. sign_bit: of the packed word.
KeySummary SummariseRange(const QuernRowLayout& rows, const PackedKeyRange& range, uint64_t sign_bit, uint32_t key);

}  // namespace quern

#endif  // QUERN_RUNTIME_JOIN_KEY_SUMMARY_H_
