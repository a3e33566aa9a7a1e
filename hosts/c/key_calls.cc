// SPDX-License-Identifier: Apache-2.0
// The functions of the ABI that look at keys without running the job: what a join's table tells of its keys and of
// those of a batch, and the partitions of rows.
#include <string>

#include "hosts/c/host_batch.h"
#include "hosts/c/job.h"
#include "hosts/c/port_arrow.h"
#include "runtime/base/status.h"
#include "runtime/join/hash_join.h"
#include "runtime/rows/key_partitions.h"

namespace quern::c_abi {
namespace {

static_assert(kPartitionVersion == QUERN_PARTITION_VERSION);

absl::StatusOr<const HashJoin*> JoinOf(const quern_job* job) {
  if (job == nullptr) return MissingArgument("job");
  QUERN_RETURN_IF_ERROR(job->job->stop->Check());
  if (job->job->hash_join() != nullptr) return job->job->hash_join();
  return InvalidArgument("wrong job for the keys of a join: " + std::string(job->job->name) +
                         "; accepted: a job of a kernel `join.KIND ..`");
}

// The keys of a host's batch.
absl::StatusOr<BatchView> KeysOf(const quern_job* job, const PortColumns& columns, const quern_batch* batch) {
  QUERN_RETURN_IF_ERROR(CheckBatch(batch));
  QUERN_ASSIGN_OR_RETURN(HostBatchView view,
                         ViewOfHostBatch(*batch, columns.types.keys, {}, columns.name, {job->job->budget}));
  return std::move(view.batch);
}

absl::StatusOr<BatchView> KeysOf(const quern_job* /*job*/, const PortColumns& columns, const ArrowArray* batch,
                                 const quern_arrow_rows* selected) {
  if (batch == nullptr) return MissingArgument("batch");
  return BorrowKeys(columns, *batch, selected);
}

// ---- what a table tells ----

absl::Status SummariseKey(const quern_job* job, uint32_t key, quern_key_summary* summary) {
  if (summary == nullptr) return MissingArgument("summary");
  WriteAnswer(quern_key_summary{}, summary);
  QUERN_ASSIGN_OR_RETURN(const HashJoin* join, JoinOf(job));
  const size_t num_keys = job->job->FindPort(QUERN_PORT_BUILD)->types.keys.size();
  if (key >= num_keys) {
    return InvalidArgument("key number out of range: " + std::to_string(key) + "; accepted: 0 to " +
                           std::to_string(num_keys - 1));
  }
  QUERN_ASSIGN_OR_RETURN(const KeySummary found, join->Summarise(key));
  quern_key_summary answer = {};
  answer.num_rows = found.num_build_rows;
  answer.num_null_rows = found.num_null_rows;
  answer.num_keys = found.num_keys;
  answer.num_keys_is_exact = found.num_keys_is_exact;
  answer.has_null = found.has_null;
  answer.has_range = found.has_range;
  answer.min = static_cast<int64_t>(found.min);
  answer.max = static_cast<int64_t>(found.max);
  answer.min_high = static_cast<int64_t>(found.min >> 64);
  answer.max_high = static_cast<int64_t>(found.max >> 64);
  WriteAnswer(answer, summary);
  return absl::OkStatus();
}

struct MatchAnswer {
  MemberAnswer where;
  uint64_t* num_rows;
};

// batch: of either form, with its selection.
template <class... Batch>
absl::Status MayMatch(const quern_job* job, const MatchAnswer& answer, Batch... batch) {
  if (answer.num_rows == nullptr) return MissingArgument("num_rows");
  const auto find = [&]() -> absl::StatusOr<uint64_t> {
    QUERN_ASSIGN_OR_RETURN(const HashJoin* join, JoinOf(job));
    if (answer.where.rows != nullptr && answer.where.bitmap != nullptr)
      return InvalidArgument("both rows and bitmap; accepted: one of them, or neither to count");
    QUERN_ASSIGN_OR_RETURN(const BatchView view, KeysOf(job, *job->job->FindPort(QUERN_PORT_PROBE), batch...));
    return join->FindMembers(view, answer.where);
  };
  const absl::StatusOr<uint64_t> found = find();
  *answer.num_rows = found.value_or(0);  // at the end: it may be a member of the batch
  return found.status();
}

// ---- partitions ----

struct PartitionAnswer {
  uint32_t num_partitions;
  uint32_t* partitions;
};

template <class... Batch>
absl::Status Partition(const quern_job* job, const quern_port& given, const PartitionAnswer& answer, Batch... batch) {
  if (job == nullptr) return MissingArgument("job");
  if (answer.partitions == nullptr) return MissingArgument("partitions");
  if (answer.num_partitions == 0)
    return InvalidArgument("number of partitions out of range: 0; accepted: 1 to " + std::to_string(UINT32_MAX));
  QUERN_ASSIGN_OR_RETURN(const quern_port port, PortOf(given));
  QUERN_RETURN_IF_ERROR(job->job->stop->Check());
  if (!job->job->HasPartitions(port)) {
    return job->job->NoSuchPort(port,
                                "QUERN_PORT_BUILD or QUERN_PORT_PROBE of a join, QUERN_PORT_ROWS of an "
                                "aggregation, QUERN_PORT_LEFT or QUERN_PORT_RIGHT of a set operation");
  }
  const PortColumns& columns = *job->job->FindPort(port);
  QUERN_ASSIGN_OR_RETURN(const BatchView view, KeysOf(job, columns, batch...));
  return PartitionRows(columns.types.keys, view, answer.num_partitions, job->job->stop.get(), answer.partitions);
}

}  // namespace
}  // namespace quern::c_abi

namespace c_abi = quern::c_abi;

extern "C" {

quern_status quern_job_summarise_key(const quern_job* job, uint32_t key, quern_key_summary* summary,
                                     quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::SummariseKey(job, key, summary); });
}

quern_status quern_job_may_match(const quern_job* job, const quern_batch* batch, uint32_t* rows, uint8_t* bitmap,
                                 uint64_t* num_rows, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::MayMatch(job, {{rows, bitmap}, num_rows}, batch); });
}

quern_status quern_job_may_match_arrow(const quern_job* job, const ArrowArray* batch, const quern_arrow_rows* selected,
                                       uint32_t* rows, uint8_t* bitmap, uint64_t* num_rows, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::MayMatch(job, {{rows, bitmap}, num_rows}, batch, selected); });
}

quern_status quern_job_partition(const quern_job* job, quern_port port, const quern_batch* batch,
                                 uint32_t num_partitions, uint32_t* partitions, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::Partition(job, port, {num_partitions, partitions}, batch); });
}

quern_status quern_job_partition_arrow(const quern_job* job, quern_port port, const ArrowArray* batch,
                                       const quern_arrow_rows* selected, uint32_t num_partitions, uint32_t* partitions,
                                       quern_error* error) {
  return c_abi::Boundary(error,
                         [&] { return c_abi::Partition(job, port, {num_partitions, partitions}, batch, selected); });
}

}  // extern "C"
