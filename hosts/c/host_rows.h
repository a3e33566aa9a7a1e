// SPDX-License-Identifier: Apache-2.0
// The end of a pipeline whose rows go to a function of the host. Internal.
#ifndef QUERN_HOSTS_C_HOST_ROWS_H_
#define QUERN_HOSTS_C_HOST_ROWS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "hosts/c/host_batch.h"
#include "hosts/c/job.h"
#include "hosts/c/quern.h"
#include "runtime/rows/batch_view.h"

namespace quern::c_abi {

// Hands each batch to the host, as the quern_batch that a job's input takes; nothing is copied. *Threads*: one.
class HostRows final : public JobInput {
 public:
  HostRows(decltype(quern_pipeline_options::on_rows) on_rows, void* context) : on_rows_(on_rows), context_(context) {}

  // *Errors*: FailedPrecondition after Finish, or after LoseRows: the host has a part of a batch.
  absl::Status CheckOpen(const char* call) const override;
  // *Errors*: Cancelled once the host wants no more rows; Aborted for an exception of its function.
  absl::Status Append(const BatchView& batch, uint64_t* taken_rows) override;
  absl::Status Finish() override;
  void LoseRows() override { lost_rows_ = true; }

  // Whether the host wants no more rows.
  bool has_stopped() const { return has_stopped_; }

 private:
  const decltype(quern_pipeline_options::on_rows) on_rows_;
  void* const context_;
  bool finished_ = false, lost_rows_ = false, has_stopped_ = false;
  ShownColumns keys_, payload_;  // of the batch
};

}  // namespace quern::c_abi

#endif  // QUERN_HOSTS_C_HOST_ROWS_H_
