// SPDX-License-Identifier: Apache-2.0
// What aggregations and set operations have in common as jobs: their sink groups rows. Internal.
#ifndef QUERN_HOSTS_C_JOBS_GROUP_JOB_H_
#define QUERN_HOSTS_C_JOBS_GROUP_JOB_H_

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "codegen/operators.h"
#include "hosts/c/job.h"
#include "runtime/aggregate/hash_aggregate.h"

namespace quern::c_abi {

// *Errors*: InvalidArgument for a key that the spec does not have.
absl::StatusOr<GroupHints> HintsOf(const quern_job_options& options, size_t num_keys);

class GroupOutput final : public JobOutput {
 public:
  GroupOutput(const std::shared_ptr<HashAggregate>& groups, GroupColumns columns, std::vector<ColumnType> types,
              const OutputOptions& options, std::shared_ptr<MemoryBudget> budget,
              GroupReader::CopiesOf copies_of = nullptr)
      : JobOutput(std::move(types), ResultRows(options.batch_rows, groups->stats().num_groups), std::move(budget)),
        reader_(groups, columns, options.partition, options.num_partitions) {
    reader_.SetCopies(copies_of);
  }

  absl::StatusOr<quern_result_state> Fill(quern_result* /*result*/) override {
    QUERN_ASSIGN_OR_RETURN(const bool more, reader_.Next(rows.get()));
    return more ? QUERN_RESULT_MORE : QUERN_RESULT_DONE;
  }

 private:
  GroupReader reader_;
};

class GroupJob : public SinkJob {
 public:
  GroupJob(const CompiledKernel& compiled, const quern_job_options& options, const GroupHints& hints, const char* name)
      : SinkJob(compiled, options, name) {
    SetSink(MakeHashAggregate(kernel, budget, hints));
  }

  Kept kept(quern_port /*port*/) const override { return Kept::kNothing; }
  bool reads_format(quern_port port) const override { return port == QUERN_PORT_STATES; }
  bool writes_format(quern_port port) const override { return port == QUERN_PORT_STATES; }
  void FillStats(quern_job_stats* stats) const override;
  const char* prefetch_class() const override { return sink->is_finalised() ? groups()->stats().prefetch_class : ""; }

 protected:
  std::shared_ptr<HashAggregate> groups() const { return std::static_pointer_cast<HashAggregate>(sink); }
  // The port of states that another job of the spec returned.
  static PortColumns StatesPort(const AggregationSpec& spec);
};

}  // namespace quern::c_abi

#endif  // QUERN_HOSTS_C_JOBS_GROUP_JOB_H_
