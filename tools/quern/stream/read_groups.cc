// SPDX-License-Identifier: Apache-2.0
#include "tools/quern/stream/read_groups.h"

#include <arrow/api.h>

#include <algorithm>
#include <utility>

#include "runtime/base/shared_work.h"
#include "runtime/base/status.h"
#include "runtime/rows/output_batch.h"
#include "tools/quern/files/batches.h"
#include "tools/quern/stream/append_batches.h"

namespace quern::cli {
namespace {

// Of the operator's memory, that a reader of groups which were spilled needs: for a partition and its result batch,
// beside a writer of files, which holds rows until they are a row group. Two readers under 48 MiB were refused memory.
constexpr uint64_t kReaderBytes = uint64_t{48} << 20;

// One thread's share.
struct Share {
  std::vector<RecordBatchPointer> batches;
  uint64_t num_rows = 0;
};

absl::Status ReadShare(const std::shared_ptr<HashAggregate>& aggregate, const GroupRows& rows,
                       const std::shared_ptr<MemoryBudget>& budget, Share* share) {
  GroupReader reader(aggregate, rows.columns);
  reader.SetCopies(rows.copies_of);
  OutputBatch out(rows.types, kOutputRows, budget);
  bool more = true;
  while (more) {
    QUERN_ASSIGN_OR_RETURN(more, reader.Next(&out));
    share->num_rows += out.num_rows();
    if (rows.types.empty() || out.num_rows() == 0) continue;
    QUERN_ASSIGN_OR_RETURN(RecordBatchPointer batch, TakeRows(rows.schema, &out));
    share->batches.push_back(std::move(batch));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ReadRows> ReadGroups(const std::shared_ptr<HashAggregate>& aggregate, const GroupRows& rows,
                                    const std::shared_ptr<MemoryBudget>& budget, uint32_t threads) {
  const uint64_t num_batches = aggregate->stats().num_groups / kOutputRows + 1;
  std::vector<Share> shares(std::min<uint64_t>(threads, num_batches));
  QUERN_RETURN_IF_ERROR(RunMorsels(threads, shares.size(), [&](uint32_t, uint64_t reader) {
    return ReadShare(aggregate, rows, budget, &shares[reader]);
  }));
  ReadRows read;
  std::vector<std::vector<RecordBatchPointer>> batches;
  for (Share& share : shares) {
    read.num_rows += share.num_rows;
    batches.push_back(std::move(share.batches));
  }
  if (rows.types.empty()) return read;
  QUERN_ASSIGN_OR_RETURN(read.table, TableOf(rows.schema, batches));
  return read;
}

absl::Status StreamGroups(const std::shared_ptr<HashAggregate>& aggregate, const GroupRows& rows,
                          const MemoryBudget& budget, const std::shared_ptr<MemoryBudget>& out_budget, uint32_t threads,
                          ResultStream* results) {
  const uint64_t limit = budget.limit_bytes();
  if (limit != 0) threads = static_cast<uint32_t>(std::clamp<uint64_t>(limit / kReaderBytes, 1, threads));
  return RunMorsels(threads, threads, [&](uint32_t, uint64_t) -> absl::Status {
    GroupReader reader(aggregate, rows.columns);
    reader.SetCopies(rows.copies_of);
    const std::unique_ptr<OutputBatch> out = StreamedResults(rows.types, budget, out_budget);
    bool more = true;
    while (more) {
      QUERN_ASSIGN_OR_RETURN(more, reader.Next(out.get()));
      QUERN_RETURN_IF_ERROR(results->Write(out.get()));
    }
    return absl::OkStatus();
  });
}

}  // namespace quern::cli
