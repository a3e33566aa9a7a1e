// SPDX-License-Identifier: Apache-2.0
// The partition of a key: the same number in every process and on every machine.
#ifndef QUERN_RUNTIME_ROWS_KEY_PARTITIONS_H_
#define QUERN_RUNTIME_ROWS_KEY_PARTITIONS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/stop_flag.h"
#include "runtime/rows/batch_view.h"
#include "runtime/spec/column_type.h"

namespace quern {

// Raised whenever a key may change its partition. The same number in quern.h: QUERN_PARTITION_VERSION.
constexpr uint32_t kPartitionVersion = 1;

// The partition of a hash: the hash as a fraction of all partitions.
inline uint32_t PartitionOf(uint64_t hash, uint32_t num_partitions) {
  return static_cast<uint32_t>((static_cast<unsigned __int128>(hash) * num_partitions) >> 64);
}

// Writes the partition of each of the batch's rows; `partitions` has room for batch.num_rows. types: of the keys, in
// their order. Equal keys have equal numbers, and a null is a value like others. num_partitions is at least 1.
// *Cost*: 2 to 10 ns a row and key. *Threads*: any. *Errors*: InvalidArgument for a batch without the keys; Cancelled.
absl::Status PartitionRows(const std::vector<ColumnType>& types, const BatchView& batch, uint32_t num_partitions,
                           const StopFlag* stop_flag, uint32_t* partitions);

}  // namespace quern

#endif  // QUERN_RUNTIME_ROWS_KEY_PARTITIONS_H_
