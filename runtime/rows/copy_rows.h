// SPDX-License-Identifier: Apache-2.0
// Copies rows of a batch into an output batch, as a kernel copies the payload of a probe.
#ifndef QUERN_RUNTIME_ROWS_COPY_ROWS_H_
#define QUERN_RUNTIME_ROWS_COPY_ROWS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/rows/batch_view.h"
#include "runtime/rows/output_batch.h"
#include "runtime/spec/column_type.h"

namespace quern {

// Adds the selected rows of a batch from number first_row on behind the rows of `out`, whose columns are batch.keys of
// these types, dictionaries decoded. Returns how many it has added: fewer than there are where `out` is full, or where
// the strings of a column would exceed 2 GiB. *Cost*: one pass over the columns, and over the bytes of strings.
// *Errors*: ResourceExhausted, for memory and for one string above 2 GiB.
absl::StatusOr<uint64_t> CopyRows(const BatchView& batch, const std::vector<ColumnType>& types, uint64_t first_row,
                                  OutputBatch* out);

}  // namespace quern

#endif  // QUERN_RUNTIME_ROWS_COPY_ROWS_H_
