// SPDX-License-Identifier: Apache-2.0
// Arrow batches of a port: its binding, its arrays, the schema of its results. Internal.
#ifndef QUERN_HOSTS_C_PORT_ARROW_H_
#define QUERN_HOSTS_C_PORT_ARROW_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "hosts/c/job.h"
#include "hosts/c/quern.h"
#include "runtime/abi/arrow_abi.h"
#include "runtime/rows/batch_view.h"

namespace quern::c_abi {

// The functions of the ABI of similar names, for arguments that are not null.
absl::Status BindPort(Job* job, quern_port port, const ArrowSchema& schema, const int32_t* keys,
                      const int32_t* payload);
absl::Status ExportResultSchema(Job* job, quern_port port, ArrowSchema* schema);

// *Errors*: FailedPrecondition for a port whose batches need a binding and have none.
absl::Status CheckBound(const PortColumns& columns);

// Takes an array over. rows: null for all of them; a selection stays where it is. *Errors*: FailedPrecondition without
// a binding; InvalidArgument for an array or rows that are not valid.
absl::StatusOr<BatchView> ImportRows(const PortColumns& columns, ArrowArray* batch, const quern_arrow_rows* rows);
// The keys of an array that remains the caller's; the payload is not looked at. *Errors*: as above.
absl::StatusOr<BatchView> BorrowKeys(const PortColumns& columns, const ArrowArray& batch, const quern_arrow_rows* rows);

}  // namespace quern::c_abi

#endif  // QUERN_HOSTS_C_PORT_ARROW_H_
